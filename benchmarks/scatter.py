"""``python -m benchmarks.scatter``: ops at repeated indices, counts and searches on a GPU, beside torch and CuPy.

A row is a call on some arrays. Its figure is the rate of the bytes that it must move, and the fraction of a
device-to-device copy of the same run: indices, values and what is searched are read once, and a target is read and
written once. Results are compared with torch's before they are timed; values are small integers, so that sums are exact
in any order. The host times are those of calls on 1000 elements.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, agrees, libraries

SIZES = {"full": 2**25, "small": 2**12}


class Row(NamedTuple):
    """A call of `CALLS` on ``x`` (a target), ``i`` (indices), ``v`` (values) and ``s`` (a sorted array).

    Attributes
    ----------
    name, call
    places : the elements of the target, and of the sorted array; 0 for as many as there are indices
    dtype : of values
    columns : the elements of a row of the target
    """

    name: str
    call: str
    places: int
    dtype: str = "float32"
    columns: int = 1


ROWS = (
    *[Row(f"add.at int32, {places or 'n'} places", "add", places, "int32") for places in (256, 65536, 0)],
    *[Row(f"add.at float32, ordered, {places or 'n'} places", "add in order", places) for places in (256, 65536, 0)],
    *[Row(f"add.at float32, atomic, {places or 'n'} places", "add", places) for places in (256, 65536, 0)],
    Row("add.at rows of 128 float32, ordered", "add in order", 65536, columns=128),
    Row("add.at rows of 128 float32, atomic", "add", 65536, columns=128),
    Row("maximum.at float32, 65536 places", "maximum", 65536),
    *[Row(f"bincount, {places} places", "bincount", places) for places in (16, 256, 2048, 65536)],
    Row("bincount with weights, 65536 places", "weighted", 65536, "float64"),
    *[Row(f"histogram, {places} bins", "histogram", places) for places in (100, 65536)],
    *[Row(f"searchsorted {dtype}, {places or 'n'} sorted", "search", places, dtype)
      for dtype in ("float32", "int64") for places in (1000, 0)],
)  # fmt: skip
HOST = ("add", "add in order", "maximum", "bincount", "histogram", "search")
"""The calls whose host time is measured."""

Run = Callable[[Any, dict[str, Any]], Any]


def _added(library: Any, a: dict[str, Any], mode: str) -> Any:
    library.add.at(a["x"], a["i"], a["v"], mode=mode)
    return a["x"]


def _deterministic(torch: Any, a: dict[str, Any]) -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        return a["x"].index_add_(0, a["i"], a["v"])
    finally:
        torch.use_deterministic_algorithms(False)


def _largest(library: Any, a: dict[str, Any]) -> Any:
    library.maximum.at(a["x"], a["i"], a["v"])
    return a["x"]


def _scattered(name: str, a: dict[str, Any]) -> Any:
    getattr(importlib.import_module("cupyx"), name)(a["x"], a["i"], a["v"])
    return a["x"]


CALLS: dict[str, dict[str, Run]] = {
    "add": {
        "tilearray": lambda library, a: _added(library, a, "atomic"),
        "torch": lambda _, a: a["x"].index_add_(0, a["i"], a["v"]),
        "cupy": lambda _, a: _scattered("scatter_add", a),
    },
    "add in order": {"tilearray": lambda library, a: _added(library, a, "ordered"), "torch": _deterministic},
    "maximum": {
        "tilearray": _largest,
        "torch": lambda _, a: a["x"].scatter_reduce_(0, a["i"], a["v"], "amax"),
        "cupy": lambda _, a: _scattered("scatter_max", a),
    },
    "bincount": {
        name: lambda library, a: library.bincount(a["i"], minlength=len(a["x"]))
        for name in ("tilearray", "torch", "cupy")
    },
    "weighted": {
        name: lambda library, a: library.bincount(a["i"], a["v"], minlength=len(a["x"]))
        for name in ("tilearray", "torch", "cupy")
    },
    "histogram": {
        "tilearray": lambda library, a: library.histogram(a["v"], len(a["x"]), (0, 8))[0],
        "torch": lambda torch, a: torch.histc(a["v"], len(a["x"]), 0, 8).to(torch.int64),
        "cupy": lambda library, a: library.histogram(a["v"], len(a["x"]), (0, 8))[0],
    },
    "search": {
        name: lambda library, a: library.searchsorted(a["s"], a["v"]) for name in ("tilearray", "torch", "cupy")
    },
}
"""For each call what each library runs; a library that is not there has no such call."""


def made(torch: Any, row: Row, size: int) -> dict[str, Any]:
    """Return the arrays of a row as torch tensors."""
    torch.manual_seed(7)
    dtype, count = getattr(torch, row.dtype), size // row.columns
    places = min(row.places or count, size)
    rows = (row.columns,) if row.columns > 1 else ()
    values = torch.randint(0, 8, (count, *rows), device="cuda").to(dtype)
    if row.call == "search":
        values = torch.randint(0, places, (count,), device="cuda").to(dtype)
    return {
        "x": torch.zeros((places, *rows), device="cuda", dtype=dtype),
        "i": torch.randint(0, places, (count,), device="cuda"),
        "v": values,
        "s": torch.randint(0, places, (places,), device="cuda").sort().values.to(dtype),
    }


def bytes_of(row: Row, a: dict[str, Any]) -> int:
    """Return the bytes that a row must move."""
    counts = 8 * a["x"].numel()
    return {
        "bincount": a["i"].nbytes + counts,
        "weighted": a["i"].nbytes + a["v"].nbytes + counts,
        "histogram": a["v"].nbytes + counts,
        "search": a["v"].nbytes + a["s"].nbytes + 8 * a["v"].numel(),
    }.get(row.call, a["i"].nbytes + a["v"].nbytes + 2 * a["x"].nbytes)


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library that has the call."""
    nbytes, rate, calls = bytes_of(row, made(torch, row, SIZES[size])), copy(), CALLS[row.call]

    def checked(library: Library) -> Any:
        run = calls.get(library.name)
        if run is None:
            return {"status": "not there"}
        own = {name: library.adopt(x) for name, x in made(torch, row, SIZES[size]).items()}
        if library.name != "torch":
            wanted = calls["torch"](torch, made(torch, row, SIZES[size]))
            if not agrees(torch, library, run(library.module, own), wanted):
                return tables.MISMATCH
        return partial(run, library.module, own)

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of calls on 1000 elements, of 1000 places."""

    def given(library: Library, call: str) -> dict[str, Any]:
        own = {name: library.adopt(x) for name, x in made(torch, Row(call, call, 1000), 1000).items()}
        return {"run": CALLS[call][library.name], "lib": library.module, "own": own}

    rows: list[dict[str, Any]] = []
    for call in HOST:
        those = [each for each in found if each.name in CALLS[call]]
        rows.append(
            tables.host_row(clock, call, ((each.name, "run(lib, own)", given(each, call)) for each in those), size)
        )
    return rows


BENCHMARK = tables.Benchmark(
    "scatter",
    "Scatter",
    ("full", "small"),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Scatter: "),
    copied=lambda size: 8 * SIZES[size],
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
