"""Rules of the tree itself: how long a file may be, and which way the arrow of imports points."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = sorted((ROOT / "tilearray").rglob("*.py"))
BACKENDS = sorted((ROOT / "backend").rglob("*.py"))
OTHERS = sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "benchmarks").rglob("*.py"))
FRAMEWORKS = {"triton", "cuda", "torch", "cupy", "jax"}


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT).as_posix())


def imports(file: Path, *, at_import: bool = False) -> Iterator[str]:
    """Full names that `file` imports, relative ones resolved; `at_import`: only those that run when it is imported."""
    package = name_of(file).removesuffix(".py").split("/")[:-1]
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)
        if not (at_import and runs_later(node)):
            waiting.extend(ast.iter_child_nodes(node))


def runs_later(node: ast.AST) -> bool:
    """A function's body, or what only a type checker reads."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return isinstance(node, functions) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))


def top(names: Iterator[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("file", LIBRARY + BACKENDS + OTHERS, ids=name_of)
def test_a_file_stays_under_800_lines(file: Path):
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines < 800


@pytest.mark.parametrize("file", BACKENDS, ids=name_of)
def test_a_backend_imports_nothing_of_the_library(file: Path):
    assert "tilearray" not in top(imports(file))


@pytest.mark.parametrize("file", LIBRARY, ids=name_of)
def test_the_library_imports_frameworks_and_the_device_backend_late_or_never(file: Path):
    assert top(imports(file, at_import=True)).isdisjoint(FRAMEWORKS | {"tilearray_cuda"})


@pytest.mark.parametrize("name", ["errors", "layout", "loop"])
def test_geometry_is_pure_python(name: str):
    assert "numpy" not in top(imports(ROOT / "tilearray" / f"{name}.py"))


def test_modules_of_promotion_form_no_cycle_with_lazy_imports():
    modules = {f"tilearray.promotion.{file.stem}": file for file in (ROOT / "tilearray" / "promotion").glob("*.py")}
    edges = {
        module: {longest_module(name, modules) for name in imports(file)} - {None, module}
        for module, file in modules.items()
    }
    assert len(edges) > 5
    TopologicalSorter(edges).prepare()


def test_modules_of_the_library_form_no_cycle():
    modules = {name_of(file).removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in LIBRARY}
    edges = {
        module: {longest_module(name, modules) for name in imports(file, at_import=True)} - {None, module}
        for module, file in modules.items()
        if module != "tilearray"  # gathers the public names, and nobody needs it
    }
    TopologicalSorter(edges).prepare()  # raises CycleError, which names the cycle


def longest_module(name: str, modules: dict[str, Path]) -> str | None:
    """The module in `modules` that importing `name` runs: `a.b.c` is module a.b.c, or a name in a.b."""
    return next((known for known in (name, name.rpartition(".")[0]) if known in modules), None)
