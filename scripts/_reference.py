"""The reference of the site: a page for each chapter, from the docstrings of the public names.

A chapter is a set of modules. Each name of `tilearray.__all__` stands on exactly one page; a name that is the same
object as another name is listed as that name's alias.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "backend")]

import tilearray as ta  # noqa: E402
from tilearray.ops import arithmetic, elementary, number_parts  # noqa: E402

CHAPTERS = {
    "Arrays": "arrays.asarray arrays.fills arrays.triangular arrays.frameworks engine.devices functions.conversion",
    "Dtypes and promotion": "dtypes engine.context ops.explain_promotion promotion.semantics numpy",
    "Arithmetic": "ops.arithmetic ops.composed",
    "Elementary functions": "ops.elementary",
    "Parts of numbers": "ops.number_parts",
    "Shapes and views": "functions.manipulation functions.joining functions.repeating functions.diagonals "
    "geometry.shapes",
    "Reductions and scans": "functions.reductions functions.scans functions.softmax functions.sum_to_shape",
    "Searching, sorting and sets": "functions.searching functions.sets functions.indexing functions.largest",
    "Products": "functions.products functions.tensor_products",
    "Fusion, gradients and explaining": "arrays.fusion gradients explaining commands.eval",
    "Low precision": "low_precision",
    "Tiles": "tile_space",
    "NumPy's other names": "numpy_names",
    "Settings and inspection": "functions.inspection",
    "Errors": "errors",
}
"""The modules of each chapter, below `tilearray`. The longest prefix decides."""
NAMESPACES = ("linalg", "fft", "random", "cuda", "distributed")
ROWS = {"ops.arithmetic": arithmetic, "ops.elementary": elementary, "ops.number_parts": number_parts}


def module_of(name: str, value: Any) -> str:
    """The module that decides the chapter of a public name, without `tilearray.`."""
    if isinstance(value, ta.ops.op.Op):
        return next((module for module, rows in ROWS.items() if vars(rows).get(value.name) is value), "ops.composed")
    if isinstance(value, type(ta.float32)) or type(value).__module__.startswith(("numpy.dtype", "ml_dtypes")):
        return "dtypes"
    module = getattr(value, "__module__", None) or type(value).__module__
    if name in ("Array", "ndarray"):
        return "arrays.asarray"
    return module.removeprefix("tilearray.") if module.startswith("tilearray.") else "numpy"


def chapter_of(name: str, value: Any) -> str:
    """The chapter of a public name."""
    module = module_of(name, value)
    found = [
        (len(prefix), title)
        for title, prefixes in CHAPTERS.items()
        for prefix in prefixes.split()
        if f"{module}.".startswith(f"{prefix}.")
    ]
    if not found:
        raise LookupError(f"no chapter has the module {module} of {name}; add it to CHAPTERS")
    return max(found)[1]


def chapters() -> dict[str, dict[str, Any]]:
    """The public names of each chapter, in the order of the alphabet."""
    pages: dict[str, dict[str, Any]] = {title: {} for title in CHAPTERS}
    for name in sorted(ta.__all__, key=str.lower):
        value = getattr(ta, name)
        if not inspect.ismodule(value):
            pages[chapter_of(name, value)][name] = value
    return pages


def namespaces() -> dict[str, dict[str, Any]]:
    """The public names of each namespace."""
    found: dict[str, dict[str, Any]] = {}
    for space in NAMESPACES:
        module = importlib.import_module(f"tilearray.{space}")
        names = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
        found[space] = {f"{space}.{name}": getattr(module, name) for name in names}
    return found


def called(value: Any) -> str:
    """The name that an object has itself."""
    return getattr(value, "__name__", "") or getattr(value, "name", "")


def entry(name: str, value: Any, directive: str = "") -> str:
    """One name as reStructuredText."""
    directive = directive or ("class" if inspect.isclass(value) else "function" if callable(value) else "data")
    head = f".. py:{directive}:: {name}{signature(value) if directive in ('function', 'method') else ''}\n"
    if own_alias(name, value):
        return f"{head}\n   The same object as `{called(value)}`.\n\n"
    text = documentation(value) if directive != "data" else f"``{value!r}``"
    return f"{head}\n{textwrap.indent(text, '   ')}\n\n"


def own_alias(name: str, value: Any) -> bool:
    """Whether a name is another name of an object of the library."""
    other = called(value)
    return other not in ("", name.rpartition(".")[2]) and "." not in name and getattr(ta, other, None) is value


def signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value)).replace("\n", " ")
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r"^\(self(, (/, )?)?", "(", text)


def documentation(value: Any) -> str:
    """The docstring as numpydoc renders it."""
    from numpydoc.docscrape_sphinx import SphinxDocString

    if not str(getattr(value, "__module__", "")).startswith("tilearray") and not isinstance(value, ta.ops.op.Op):
        return "NumPy's own object."
    return str(SphinxDocString(inspect.getdoc(value) or "", {"show_class_members": False}))


def members(owner: type) -> str:
    """The public methods and attributes of a class."""
    found = []
    for name in (name for name in dir(owner) if name[0] != "_" and hasattr(owner, name)):
        value = inspect.getattr_static(owner, name)
        attribute = isinstance(value, property) or not callable(getattr(owner, name))
        value = getattr(value, "fget", None) or getattr(owner, name)
        kind = "attribute" if attribute else "method"
        found.append(entry(f"{owner.__name__}.{name}", value, kind))
    return "".join(found)


def page(title: str, names: dict[str, Any], more: str = "") -> str:
    return f"{title}\n{'=' * len(title)}\n\n.. py:currentmodule:: tilearray\n\n" + "".join(
        entry(name, value) for name, value in names.items()
    ) + more  # fmt: skip


def slug(title: str) -> str:
    return title.lower().replace("'", "").replace(",", "").replace(" ", "-")


def write(folder: Path) -> list[str]:
    """Write all pages; return their names without suffix."""
    folder.mkdir(parents=True)
    pages = {slug(title): page(title, names) for title, names in chapters().items()}
    pages["array-methods"] = page("Methods of Array", {}, members(ta.Array))
    pages |= {space: page(f"tilearray.{space}", names) for space, names in namespaces().items()}
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    return list(pages)
