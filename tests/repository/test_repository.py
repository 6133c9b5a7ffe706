"""Rules of the tree itself: the direction of imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = sorted((ROOT / "tilearray").rglob("*.py"))
BACKENDS = sorted((ROOT / "backend").rglob("*.py"))
FRAMEWORKS = {"triton", "cuda", "torch", "cupy", "jax"}

ORDER = {
    "tilearray": [
        "errors dtypes missing_names",
        "promotion",
        "geometry",
        "engine",
        "ops",
        "cuda typing",
        "interchange",
        "functions",
        "arrays",
        "linalg",
        "numpy_names",
        "fft random low_precision tile_space distributed",
        "gradients",
        "explaining dask",
        "__init__",
        "commands __main__",
    ],
    "tilearray_cuda": ["errors locks", "kernels runtime", "libraries", "kernel lists", "device", "__init__"],
}
"""Folders and modules in the order of imports: a module imports only from its own line and those above."""


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT).as_posix())


def module_of(file: Path) -> str:
    """The full name of the module in a file: a.b for a/b.py and for a/b/__init__.py."""
    return name_of(file).removeprefix("backend/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {module_of(file): file for file in LIBRARY + BACKENDS}


@cache
def imports(file: Path, *, at_import: bool = False) -> frozenset[str]:
    """The full names that `file` imports; relative names are resolved.

    Imports in functions and under TYPE_CHECKING count, and so do calls of `import_module` with a name in quotes.
    `at_import`: only the names that are imported when the file is.
    """
    package = name_of(file).removeprefix("backend/").removesuffix(".py").split("/")[:-1]
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            found.update(".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and called(node).endswith("import_module"):
            found.update(str(name.value) for name in node.args if isinstance(name, ast.Constant))
        if not (at_import and runs_later(node)):
            waiting.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def called(node: ast.Call) -> str:
    """The last name of what a call calls: f for a.b.f()."""
    return str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))


def runs_later(node: ast.AST) -> bool:
    """Whether a node is the body of a function, or only a type checker reads it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return isinstance(node, functions) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))


def top(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def needs(module: str) -> list[str]:
    """The modules of the same package that a module imports."""
    found = {known_module(name) for name in imports(MODULES[module])} - {None, module}
    return sorted(name for name in found if name and top([name]) == top([module]))


def known_module(name: str) -> str | None:
    """The module that an import of `name` reads: `a.b.c` is the module a.b.c, or a name in the module a.b."""
    return next((known for known in (name, name.rpartition(".")[0]) if known in MODULES), None)


def level_of(module: str) -> int:
    """The line of a module in the order of its package."""
    package, _, rest = module.partition(".")
    folder = rest.partition(".")[0] or "__init__"
    (level,) = (level for level, line in enumerate(ORDER[package]) if folder in line.split())
    return level


@pytest.mark.parametrize("package", ORDER)
def test_no_import_goes_up(package: str):
    modules = [module for module in MODULES if module.partition(".")[0] == package]
    assert len(modules) > 20
    pairs = [(module, other) for module in modules for other in needs(module)]
    wrong = [f"{module} imports {other}" for module, other in pairs if level_of(other) > level_of(module)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", [*ORDER, "tilearray_host"])
def test_no_files_import_each_other_in_a_circle(package: str):
    edges = {module: needs(module) for module in MODULES if module.partition(".")[0] == package}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail("a circle of imports: " + ", which is imported by ".join(error.args[1]))


@pytest.mark.parametrize("file", BACKENDS, ids=name_of)
def test_a_backend_imports_nothing_of_the_library(file: Path):
    assert "tilearray" not in top(imports(file))


@pytest.mark.parametrize("file", LIBRARY, ids=name_of)
def test_the_library_imports_frameworks_and_the_device_backend_late_or_never(file: Path):
    assert top(imports(file, at_import=True)).isdisjoint(FRAMEWORKS | {"tilearray_cuda"})


@pytest.mark.parametrize("file", [file for file in LIBRARY if file.parent.name == "geometry"], ids=name_of)
def test_geometry_is_pure_python(file: Path):
    assert "numpy" not in top(imports(file))


NETWORK = {"socket", "ssl", "http", "urllib", "ftplib", "smtplib", "poplib", "imaplib", "xmlrpc", "socketserver"}
NETWORK |= {"asyncio", "requests", "httpx", "aiohttp", "webbrowser", "telnetlib"}
OWN_PICKLES = ("interpreted.py", "interpreter.py")
"""A process and its own child, which talk through pipes."""
UNPICKLES = {"pickle", "_pickle", "shelve", "marshal", "cloudpickle", "dill", "joblib"}


@pytest.mark.parametrize("file", LIBRARY + BACKENDS, ids=name_of)
def test_no_file_opens_connections_or_unpickles(file: Path):
    """SECURITY.md promises it. Asyncio and webbrowser can open connections as well."""
    refused = NETWORK if file.name in OWN_PICKLES else NETWORK | UNPICKLES
    assert top(imports(file)).isdisjoint(refused)
    text = file.read_text(encoding="utf-8")
    given = [
        each.value
        for node in (ast.walk(ast.parse(text)) if "allow_pickle" in text else ())
        if isinstance(node, ast.Call) and called(node) in ("load", "open_memmap", "loadtxt")
        for each in node.keywords
        if each.arg == "allow_pickle"
    ]
    assert all(isinstance(value, ast.Constant) and value.value is False for value in given)
