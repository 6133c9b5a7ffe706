"""``python -m benchmarks.sorting``: sorts and sets on a GPU, beside torch and CuPy.

A row is a call on an array of random values. Its figures are milliseconds, and the elements of a second. Before it is
timed, the result of each library is compared with torch's: values of sorts and sets, and for indices the elements that
they name, with the order of equal ones. The host times are those of arrays of 1000 elements.

torch sorts values and indices at once; its figures for a sort include the indices.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

from benchmarks import tables

MANY = 100_000_000
SMALL = 5000


class Row(NamedTuple):
    """A call on an array ``x`` of a shape and dtype, written for each library ``lib``; None if it has no such call.

    Values are drawn from all of the dtype's, or below `count`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    tilearray: str
    torch: str
    cupy: str | None
    count: int = 0


def _sorts(dtype: str, shape: tuple[int, ...], about: str, axis: int = -1, count: int = 0) -> list[Row]:
    """Return the rows of a sort and of its order."""
    stable = f"lib.argsort(x, stable=True, dim={axis})"
    values = f"lib.sort(x, dim={axis}, stable=True).values"
    return [
        Row(f"sort {about}", dtype, shape, f"lib.sort(x, axis={axis})", values, f"lib.sort(x, axis={axis})", count),
        Row(
            f"argsort {about}",
            dtype,
            shape,
            f"lib.argsort(x, axis={axis})",
            stable,
            f"lib.argsort(x, axis={axis}, kind='stable')",
            count,
        ),
    ]


ROWS = (
    *[row for dtype in ("float32", "int32", "int64", "uint8") for row in _sorts(dtype, (MANY,), f"{dtype} 1e8")],
    *_sorts("int64", (MANY,), "int64 1e8, values below 1000", count=1000),
    *_sorts("float32", (16384, 16384), "float32 16384 x 16384"),
    *_sorts("float32", (100_000, 1000), "float32 100000 x 1000"),
    *_sorts("float32", (1000, 100_000), "float32 1000 x 100000, axis 0", axis=0),
    *_sorts("float32", (1_000_000,), "float32 1e6"),
    Row("unique int32 1e8", "int32", (MANY,), "lib.unique_values(x)", "lib.unique(x)", "lib.unique(x)"),
    Row(
        "unique int32 1e8, values below 1000",
        "int32",
        (MANY,),
        "lib.unique_values(x)",
        "lib.unique(x)",
        "lib.unique(x)",
        1000,
    ),
    *[
        Row(
            f"top_k of {k}, {dtype} 1e8",
            dtype,
            (MANY,),
            f"lib.top_k(x, min({k}, len(x))).values",
            f"lib.topk(x, min({k}, len(x))).values",
            f"lib.ascontiguousarray(lib.sort(x)[::-1][:{k}])",
        )
        for k, dtype in ((100, "float32"), (1_000_000, "float32"), (100, "int32"))
    ],
    Row(
        "isin int32 1e8 of 1e6",
        "int32",
        (MANY,),
        "lib.isin(x, x[:1_000_000])",
        "lib.isin(x, x[:1_000_000])",
        "lib.isin(x, x[:1_000_000])",
    ),
)


def data(torch: Any, row: Row, size: str) -> Any:
    """Return the values of a row, as a tensor: fewer of them if `size` is small."""
    most = MANY if size == "full" else SMALL if len(row.shape) == 1 else 70
    shape = tuple([min(extent, most) for extent in row.shape])
    torch.manual_seed(7)
    if row.dtype == "float32":
        return torch.randn(shape, device="cuda")
    dtype = getattr(torch, row.dtype)
    info = torch.iinfo(dtype)
    low, high = (0, row.count) if row.count else (info.min, info.max)
    return torch.randint(low, high, shape, dtype=dtype, device="cuda")


class Library(NamedTuple):
    """A library."""

    name: str
    module: Any

    def given(self, x: Any) -> dict[str, Any]:
        """Return the names of a call on a tensor."""
        return {"lib": self.module, "x": x if self.name == "torch" else self.module.from_dlpack(x)}


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return the libraries that are installed and wanted."""
    import tilearray as ta

    found = [Library("torch", torch), Library("tilearray", ta)]
    if importlib.util.find_spec("cupy"):
        found.append(Library("cupy", importlib.import_module("cupy")))
    return [library for library in found if library.name in wanted]


def same(torch: Any, mine: Any, theirs: Any) -> bool:
    """Whether a result is torch's."""
    found = mine if isinstance(mine, torch.Tensor) else torch.from_dlpack(mine)
    return found.shape == theirs.shape and bool((found == theirs).all())


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    x = data(torch, row, size)
    wanted = eval(row.torch, {"lib": torch, "x": x})

    def checked(library: Library) -> Any:
        text = getattr(row, library.name)
        if text is None:
            return {"status": "absent", "why": "no such call"}
        given = library.given(x)
        if not same(torch, eval(text, given), wanted):
            return tables.MISMATCH
        return partial(eval, compile(text, row.name, "eval"), given)

    def figures(spent: Any) -> dict[str, float]:
        return {"elements_per_ns": prod(x.shape) / spent.seconds / 1e9}

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, figures)}


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of calls on 1000 elements."""
    rows: list[dict[str, Any]] = []
    for row in ROWS[:2]:
        calls = ((each.name, getattr(row, each.name), each.given(torch.randn(1000, device="cuda"))) for each in found)
        rows.append(tables.host_row(clock, row.name.split(" 1e8")[0], calls, size))
    return rows


BENCHMARK = tables.Benchmark(
    "sorting",
    "Sorts and sets",
    ("full", "small"),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="Sorts: ", rate="elements_per_ns", unit="elements/ns", digits=1),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
