"""``python -m benchmarks.copies``: dense copies of permuted arrays on a GPU, beside torch and CuPy.

A row is the shape of an array and a permutation of its axes, of which the copy has the order. Its figure is the rate of
the bytes that are read and written, and the fraction of a device-to-device copy of the same run. The first row of a
shape copies it in its own order: many of these arrays are too small for a copy's full rate. Every result is compared
with torch's before it is timed. The host times are those of a matrix of 32 x 32.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, agrees, libraries

SIZES = {"full": 1, "small": 16}
"""What the first extent is divided by."""
COPIED = {"full": (16384, 16384), "small": (128, 128)}

Ints = tuple[int, ...]


class Row(NamedTuple):
    """A shape, the axes in the order of the copy, and the dtype."""

    shape: Ints
    axes: Ints
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The row's name in a table."""
        order = "its order" if self.axes == tuple(sorted(self.axes)) else f"axes {self.axes}"
        return f"{self.dtype} {self.shape} {order}"


def _reversed(*shapes: Ints, dtype: str = "float32") -> list[Row]:
    return [Row(shape, tuple(range(len(shape)))[::-1], dtype) for shape in shapes]


def _rows() -> list[Row]:
    columns = (20, 24, 28, 36, 40, 48, 50, 60, 72, 80, 100)
    rows = _reversed(*[(600_000, n) for n in columns])
    for shape in ((300, 40, 40, 20), (90, 200, 36, 40), (18, 30, 26, 44, 42)):
        rows += [Row(shape, tuple(range(len(shape)))), *_reversed(shape)]
    rows += _reversed((90, 200, 36, 44), (90, 180, 30, 50), (100, 180, 40, 36))
    rows += [Row((300, 40, 40, 20), axes) for axes in ((0, 1, 3, 2), (0, 3, 2, 1), (3, 1, 2, 0))]
    for dtype in ("uint8", "bfloat16", "float64"):
        rows += _reversed((600_000, 36), (600_000, 50), (90, 200, 36, 40), dtype=dtype)
    return rows


ROWS = tuple(_rows())
CALL = "copied(x)"

VIEWS: dict[str, Callable[[Any, Any, Ints], Any]] = {
    "tilearray": lambda library, x, axes: library.permute_dims(x, axes),
    "torch": lambda _, x, axes: x.permute(axes),
    "cupy": lambda _, x, axes: x.transpose(axes),
}
"""How each library permutes axes, which is not timed."""
COPIES: dict[str, Callable[[Any, Any], Any]] = {
    "tilearray": lambda library, x: library.ascontiguousarray(x),
    "torch": lambda _, x: x.contiguous(),
    "cupy": lambda library, x: library.ascontiguousarray(x),
}
"""How each library copies a view that is not dense."""
IN_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "tilearray": lambda library, x: library.asarray(x, copy=True),
    "torch": lambda _, x: x.clone(),
    "cupy": lambda _, x: x.copy(),
}
"""How each library copies a dense array, which the functions above give as it is."""


def copying(library: Library, row: Row) -> Callable[[Any], Any]:
    """Return the function of a view that is timed."""
    copies = IN_ORDER if row.axes == tuple(sorted(row.axes)) else COPIES
    return partial(copies[library.name], library.module)


def made(torch: Any, row: Row, size: str) -> Any:
    """Return the array of a row as a torch tensor."""
    torch.manual_seed(7)
    shape = (max(2, row.shape[0] // SIZES[size]), *row.shape[1:])
    return torch.randint(0, 250, shape, device="cuda", dtype=torch.uint8).to(getattr(torch, row.dtype))


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library."""
    x, rate = made(torch, row, size), copy()
    nbytes = 2 * x.nbytes
    wanted = x.permute(row.axes).contiguous()

    def checked(library: Library) -> Any:
        view, run = VIEWS[library.name](library.module, library.adopt(x), row.axes), copying(library, row)
        return partial(run, view) if agrees(torch, library, run(view), wanted) else tables.MISMATCH

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of a copy of a transposed matrix of 32 x 32."""
    x = torch.rand((32, 32), device="cuda")
    names = {
        each.name: {
            "copied": partial(COPIES[each.name], each.module),
            "x": VIEWS[each.name](each.module, each.adopt(x), (1, 0)),
        }
        for each in found
    }
    return [tables.host_row(clock, "copy of m.T", ((name, CALL, given) for name, given in names.items()), size)]


BENCHMARK = tables.Benchmark(
    "copies",
    "Copies",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Copies: "),
    copied=COPIED.__getitem__,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
