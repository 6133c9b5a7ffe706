"""``python -m benchmarks.sums``: sums in both orders, and casts that saturate, on the host beside NumPy.

A row is a function of an array or a view. Its figures are the ratios of processor time to NumPy's on one thread, in the
fixed order and in any order. All three run in one process, in turns, and the fastest batch of calls of each is taken,
since a slower one was interrupted. Before a row is timed, its results are compared with NumPy's in float64.
``--out DIR`` writes a record; ``--only sums`` measures one table.

NumPy adds float32 in float32. The fixed order, which is that of a GPU, adds it in float64. NumPy does not saturate.

Exit status: 0 for success; 1 if a result was wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report, timing

Call = Callable[[], Any]


class Elements(NamedTuple):
    """An array of a shape, a view of it, and the axes that are reduced."""

    name: str
    shape: tuple[int, ...]
    axis: Any = None
    view: tuple[slice, ...] = ()


STEP, FIRST = (slice(None), slice(None, None, 2)), (slice(None), slice(None, 1000))
ELEMENTS = (
    Elements("1e6, all", (1_000_000,)),
    Elements("1000x1000, axis 0", (1000, 1000), 0),
    Elements("1000x1000, axis 1", (1000, 1000), 1),
    Elements("1000x2000 `[:, ::2]`, all", (1000, 2000), None, STEP),
    Elements("1000x2000 `[:, ::2]`, axis 1", (1000, 2000), 1, STEP),
    Elements("1000x2000 `[:, ::2]`, axis 0", (1000, 2000), 0, STEP),
    Elements("1000x2000 `[:, :1000]`, all", (1000, 2000), None, FIRST),
    Elements("10000x100, axis 1", (10_000, 100), 1),
    Elements("10000x100, axis 0", (10_000, 100), 0),
    Elements("100x10000, axis 1", (100, 10_000), 1),
    Elements("1000x10000, axis 0", (1000, 10_000), 0),
    Elements("333333x3, axis 1", (333_333, 3), 1),
    Elements("3x333333, axis 0", (3, 333_333), 0),
    Elements("10x1000x100, axes 0, 2", (10, 1000, 100), (0, 2)),
    Elements("10x1000x100, axis 1", (10, 1000, 100), 1),
    Elements("1e5, all", (100_000,)),
    Elements("316x316, axis 0", (316, 316), 0),
    Elements("316x316, axis 1", (316, 316), 1),
)
SCANNED = tuple(ELEMENTS[place] for place in (0, 1, 2, 9, 15, 16, 17))
COMBINED = tuple(ELEMENTS[place] for place in (0, 1, 2, 15, 16, 17))
DTYPES = ("float32", "float64")


def _logsumexp(x: Any, axis: Any) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=axis)) + np.squeeze(largest, axis=axis)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (lambda ta, x, axis, order: ta.sum(x, axis, order=order), np.sum),
    "var": (lambda ta, x, axis, order: ta.var(x, axis, order=order), np.var),
    "mean": (lambda ta, x, axis, order: ta.mean(x, axis, order=order), np.mean),
    "prod": (lambda ta, x, axis, order: ta.prod(x, axis, order=order), np.prod),
    "vector_norm": (
        lambda ta, x, axis, order: ta.linalg.vector_norm(x, axis=axis, order=order),
        np.linalg.vector_norm,
    ),
    "vecdot": (
        lambda ta, x, axis, order: ta.vecdot(x, x, axis=-x.ndim if axis in (0, None) else -1, order=order),
        lambda x, axis: np.vecdot(x, x, axis=-x.ndim if axis in (0, None) else -1),
    ),
    "logsumexp": (lambda ta, x, axis, order: ta.logsumexp(x, axis, order=order), _logsumexp),
    "cumulative_sum": (lambda ta, x, axis, order: ta.cumulative_sum(x, axis, order=order), np.cumulative_sum),
}
TABLES = {
    "sums": ("sum", "var"),
    "scans": ("cumulative_sum",),
    "others": ("mean", "prod", "vector_norm", "vecdot", "logsumexp"),
}
CASTS = (
    ("float32", "int8"), ("float32", "int16"), ("float32", "uint8"), ("float32", "uint16"), ("float64", "int8"),
    ("float64", "int16"), ("float64", "uint8"), ("float64", "uint16"), ("float64", "uint32"), ("float32", "int32"),
)  # fmt: skip
SIZES = (100_000, 1_000_000)


def microseconds(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """Return the least processor time of each call, taken in turns."""
    timers = [timeit.Timer(call, timer=time.process_time).timeit for call in calls.values()]
    return dict(zip(calls, timing.best_in_turns(timers, seconds), strict=True))


def reduced(ta: Any, function: str, elements: Elements, dtype: str, seconds: float) -> dict[str, Any]:
    """Check and time a function of elements: NumPy's, and ours in both orders."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=elements.shape).astype(dtype)
    x = np.exp(x * x.dtype.type(0.01)) if function == "prod" else x
    given = ta.asarray(x.copy(), device="cpu")
    x, given = (each[elements.view] if elements.view else each for each in (x, given))
    ours, theirs = FUNCTIONS[function]
    calls: dict[str, Call] = {
        "numpy": lambda: theirs(x, axis=elements.axis),
        "fixed": lambda: ours(ta, given, elements.axis, "fixed"),
        "any": lambda: ours(ta, given, elements.axis, "any"),
    }
    wide = np.asarray(theirs(x.astype(np.float64), axis=elements.axis))
    size = float(np.max(np.abs(wide))) + x.size**0.5
    wrong = [
        order
        for order in ("fixed", "any")
        if not np.allclose(ta.to_numpy(calls[order]()), wide, rtol=1e-4, atol=1e-4 * size)
    ]
    row = {"table": function, "name": elements.name, "dtype": dtype, "wrong": wrong}
    return row | {"microseconds": {} if wrong else microseconds(calls, seconds)}


def cast(ta: Any, source: str, target: str, size: int, deviation: float, seconds: float) -> dict[str, Any]:
    """Check and time a cast of numbers with a deviation, of absolute values to integers without a sign."""
    numbers = np.random.default_rng(1).normal(size=size) * deviation
    x = (np.abs(numbers) if target.startswith("u") else numbers).astype(source)
    given, limits = ta.asarray(x, device="cpu"), np.iinfo(target)
    calls: dict[str, Call] = {"numpy": lambda: x.astype(target), "fixed": lambda: ta.astype(given, target)}
    wanted = np.clip(x.astype(np.float64), limits.min, limits.max).astype(target)
    wrong = [] if np.array_equal(ta.to_numpy(calls["fixed"]()), wanted) else ["cast"]
    beyond = "in range" if deviation < 100 else "beyond"
    row = {"table": "casts", "name": f"{source} to {target}", "dtype": f"{size:.0e}, {beyond}", "wrong": wrong}
    with np.errstate(all="ignore"):
        return row | {"microseconds": {} if wrong else microseconds(calls, seconds)}


def rows(ta: Any, tables: Sequence[str], seconds: float) -> Iterable[dict[str, Any]]:
    """Measure the rows of some tables."""
    for table in tables:
        for function in TABLES.get(table, ()):
            for elements in {"sums": ELEMENTS, "scans": SCANNED}.get(table, COMBINED):
                for dtype in DTYPES:
                    yield reduced(ta, function, elements, dtype, seconds)
    if "casts" in tables:
        for source, target in CASTS:
            for size in SIZES:
                for deviation in (10.0, 1e6):
                    yield cast(ta, source, target, size, deviation, seconds)


def figure(row: dict[str, Any]) -> str:
    """Return the ratios of a row to NumPy's time."""
    spent = row["microseconds"]
    if row["wrong"]:
        return f"wrong: {', '.join(row['wrong'])}"
    return ", ".join(f"{spent[order] / spent['numpy']:.2f}" for order in ("fixed", "any") if order in spent)


def markdown(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    parts = [
        *report.provenance(found, "Sums in both orders, and casts: "),
        "",
        "Ratios of processor time to NumPy's on one thread, of the fastest batches in turns: in the fixed order, and",
        "in any order. NumPy adds float32 in float32; the fixed order adds it in float64. Casts saturate; NumPy's do",
        "not. Numbers in range have a deviation of 10, and are absolute values for unsigned integers; others have one",
        "of 1e6.",
    ]
    for group in (*TABLES.values(), ("casts",)):
        mine = [row for row in found["rows"] if row["table"] in group]
        heads = list(dict.fromkeys((row["table"], row["dtype"]) for row in mine))
        cells = {(row["name"], row["table"], row["dtype"]): figure(row) for row in mine}
        names = dict.fromkeys(row["name"] for row in mine)
        lines = [[name, *[cells.get((name, *head), "") for head in heads]] for name in names]
        titles = ["cast" if group == ("casts",) else "fixed, any"]
        titles += [head[1] if group == ("casts",) else f"{head[0]}, {head[1]}" for head in heads]
        if mine:
            parts += ["", report.table(titles, lines).rstrip("\n")]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder for a record")
    parser.add_argument("--only", action="append", choices=(*TABLES, "casts"), help="one of the tables")
    parser.add_argument("--seconds", type=float, default=0.3, help="the time that a row takes")
    given = parser.parse_args(arguments)
    os.environ["TILEARRAY_THREADS"] = "1"
    import tilearray as ta

    found: dict[str, Any] = {**report.environment("cpu", None, "benchmarks.sums"), "size": "full", "rows": []}
    for row in rows(ta, given.only or (*TABLES, "casts"), given.seconds):
        found["rows"].append(row)
        print(f"{row['table']:<16}{row['name']:<32}{row['dtype']:<18}{figure(row)}", flush=True)
    if given.out is not None:
        for path in report.write(found, given.out, markdown(found), "-sums"):
            print(f"wrote {path}")
    return int(any(row["wrong"] for row in found["rows"]))


if __name__ == "__main__":
    sys.exit(main())
