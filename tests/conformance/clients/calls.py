"""Runs a table of calls twice, with NumPy's arrays and with ours, and compares what comes back.

A table is a module of this folder with ``PACKAGE``, ``SEMANTICS``, ``missing(checkout)``, ``names(array)``, which
returns the names that calls use, made from arrays by ``array(ndarray)``, and ``CALLS``: sources by group. Where a
table has ``needed(group)``, it says whether a group can run. A source is Python, statements and then one expression,
separated by ``; ``. Each call gets names of its own, so a call may write to them. The call passes if both results
have the same structure, shapes, kinds of dtype and values. Whether ours still holds an Array is counted apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

import tilearray as ta
from clients import peers

TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-6}
"""The relative tolerance by the bytes of the narrower of two floats: a client may sum in another order."""


def run(table: ModuleType, semantics: str) -> dict[str, dict[str, Any]]:
    """Return the outcome of each call by ``group::source``."""
    outcomes: dict[str, dict[str, Any]] = {}
    with ta.semantics(semantics), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group, sources in table.CALLS.items():
            here = getattr(table, "needed", lambda group: True)(group)
            for source in sources:
                outcomes[f"{group}::{source}"] = outcome(table, source) if here else {"outcome": "skipped"}
    return outcomes


def outcome(table: ModuleType, source: str) -> dict[str, Any]:
    """Run one call with both libraries."""
    theirs = evaluate(source, table.names(np.array))
    try:
        ours = evaluate(source, table.names(peers.maker()))
        problem = difference(plain(ours), plain(theirs))
    except Exception as error:  # any error of a client is a failure of the call
        return {"outcome": "failed", "message": f"{type(error).__name__}: {error}"}
    if problem:
        return {"outcome": "failed", "message": f"other result: {problem}"}
    return {"outcome": "passed", "kept": holds(ours, peers.kind())}


def evaluate(source: str, names: dict[str, Any]) -> Any:
    """Run the statements of a source, and return the value of its last expression."""
    *statements, last = source.split("; ")
    for statement in statements:
        exec(statement, names)
    return eval(last, names)


def plain(value: Any) -> Any:
    """A result as nested lists and dictionaries of NumPy's arrays, numbers and texts."""
    if isinstance(value, (str, bytes, bool, int, float, complex, type(None), type, slice)):
        return value
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    if type(value).__module__.startswith(("xarray", "pandas")) and hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return peers.to_numpy(value) if isinstance(value, peers.kind()) else np.asarray(value)


def holds(value: Any, kind: type) -> bool:
    """Whether a result is, or contains, one of our arrays."""
    if isinstance(value, kind):
        return True
    if isinstance(value, Mapping):
        return any(holds(one, kind) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds(one, kind) for one in value)
    inside = getattr(value, "_meta", getattr(value, "data", None))
    return isinstance(inside, kind)


def difference(ours: Any, theirs: Any) -> str | None:
    """Name the first thing in which two plain results differ; None if there is nothing."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if ours.keys() != theirs.keys():
            return f"names {sorted(ours)}, expected {sorted(theirs)}"
        return next(filter(None, (difference(ours[name], theirs[name]) for name in theirs)), None)
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            return f"{len(ours)} results, expected {len(theirs)}"
        return next(filter(None, map(difference, ours, theirs)), None)
    if isinstance(theirs, (str, bytes, type, slice, type(None))):
        return None if ours == theirs else f"{ours!r}, expected {theirs!r}"
    return _difference_of_arrays(np.asarray(ours), np.asarray(theirs))


def _difference_of_arrays(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, expected {theirs.shape}"
    if ours.dtype.kind != theirs.dtype.kind:
        return f"dtype {ours.dtype}, expected {theirs.dtype}"
    if theirs.dtype.kind in "fc":
        width = min(one.dtype.itemsize // (2 if one.dtype.kind == "c" else 1) for one in (ours, theirs))
        same = np.allclose(ours, theirs, rtol=TOLERANCE[width], atol=TOLERANCE[width], equal_nan=True)
    elif theirs.dtype.kind == "O":
        same = all(difference(plain(a), plain(b)) is None for a, b in zip(ours.flat, theirs.flat))
    else:
        same = np.array_equal(ours, theirs)
    return None if same else f"{ours.tolist()}, expected {theirs.tolist()}"


def part(test: str) -> str:
    """The group of a call."""
    return test.partition("::")[0]
