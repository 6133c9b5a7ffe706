"""``python -m benchmarks.tiles``: functions over grids of tiles on a GPU, beside torch and CuPy.

A row is a call on a grid of one float32 array. Its figure is the rate of the bytes that it must move, and the fraction
of a device-to-device copy of the same run: the array is read once, and the result is written once. The peers reshape
the array to its tiles, and pad it before that if tiles lie partly outside. Values are small integers, so that sums are
exact in any order, and results are compared with torch's before they are timed.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, agrees, libraries

SIZES = {"full": 16384, "small": 256}


class Row(NamedTuple):
    """A call of `CALLS` on an array of `size` + `more` rows and columns, in tiles of a shape."""

    name: str
    call: str
    more: tuple[int, int]
    tile: tuple[int, int]


_SHAPES = (((0, 0), "inside"), ((-1, 1), "partly outside"))
_TILES = ((64, 32), (128, 128), (16, 256))
ROWS = (
    Row("elementwise, without tiles", "elementwise", (0, 0), (64, 32)),
    Row("map", "map", (0, 0), (64, 32)),
    Row("map, partly outside", "map", (-1, 1), (64, 32)),
    *[Row(f"{call} of {tile[0]} x {tile[1]}, {where}", call, more, tile)
      for more, where in _SHAPES for tile in _TILES for call in ("sum", "max")],
    Row("sum of a stack of 64 x 32, partly outside", "stacked", (-1, 1), (64, 32)),
)  # fmt: skip
HOST = ("map", "sum")
"""The calls whose host time is measured."""


@cache
def _fused(library: Any) -> Callable[[Any], Any]:
    return library.fuse(lambda x: library.abs(x) * 2 + 1)


def _eager(library: Any, x: Any, tile: tuple[int, int]) -> Any:
    return library.abs(x) * 2 + 1


def _tiled(library: Any, x: Any, tile: tuple[int, int]) -> Any:
    """Return an array as its tiles, with zeros outside."""
    (rows, columns), (height, width) = x.shape, tile
    more = (-rows % height, -columns % width)
    if any(more) and library.__name__ == "torch":
        x = library.nn.functional.pad(x, (0, more[1], 0, more[0]))
    elif any(more):
        x = library.pad(x, ((0, more[0]), (0, more[1])))
    return x.reshape(-(-rows // height), height, -(-columns // width), width)


def _max(library: Any, x: Any, tile: tuple[int, int]) -> Any:
    tiles = _tiled(library, x, tile)
    return library.amax(tiles, (1, 3))


Run = Callable[[Any, Any, tuple[int, int]], Any]
CALLS: dict[str, dict[str, Run]] = {
    "elementwise": {"tilearray": lambda ta, x, _: _fused(ta)(x), "torch": _eager, "cupy": _eager},
    "map": {"tilearray": lambda ta, x, tile: x.tiles(tile).map(_fused(ta)), "torch": _eager, "cupy": _eager},
    "sum": {
        "tilearray": lambda ta, x, tile: x.tiles(tile).reduce(ta.sum),
        "torch": lambda torch, x, tile: torch.sum(_tiled(torch, x, tile), (1, 3)),
        "cupy": lambda cupy, x, tile: cupy.sum(_tiled(cupy, x, tile), (1, 3)),
    },
    "max": {"tilearray": lambda ta, x, tile: x.tiles(tile).reduce(ta.max), "torch": _max, "cupy": _max},
    "stacked": {
        "tilearray": lambda ta, x, tile: ta.sum(x.tiles(tile).stack(), axis=(2, 3)),
        "torch": lambda torch, x, tile: torch.sum(_tiled(torch, x, tile), (1, 3)),
    },
}
"""For each call what each library runs; a library that is not there has no such call."""


def made(torch: Any, row: Row, size: int) -> Any:
    """Return the array of a row as a torch tensor."""
    torch.manual_seed(7)
    shape = (size + row.more[0], size + row.more[1])
    return torch.randint(0, 8, shape, device="cuda", dtype=torch.uint8).to(torch.float32)


def bytes_of(row: Row, x: Any) -> int:
    """Return the bytes that a row must move."""
    rows, columns = x.shape
    count = -(-rows // row.tile[0]) * -(-columns // row.tile[1])
    return x.nbytes + (x.nbytes if row.call in ("elementwise", "map") else 4 * count)


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library that has the call."""
    x, rate, calls = made(torch, row, SIZES[size]), copy(), CALLS[row.call]
    nbytes = bytes_of(row, x)

    def checked(library: Library) -> Any:
        run = calls.get(library.name)
        if run is None:
            return {"status": "not there"}
        own = library.adopt(x)
        if library.name != "torch":
            wanted = calls["torch"](torch, x, row.tile)
            if not agrees(torch, library, run(library.module, own, row.tile), wanted):
                return tables.MISMATCH
        return partial(run, library.module, own, row.tile)

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of calls on 30 x 50 elements, of which some tiles lie partly outside."""

    def given(library: Library, call: str) -> dict[str, Any]:
        own = library.adopt(torch.zeros((30, 50), device="cuda"))
        return {"run": CALLS[call][library.name], "lib": library.module, "own": own, "tile": (8, 16)}

    return [
        tables.host_row(clock, call, ((each.name, "run(lib, own, tile)", given(each, call)) for each in found), size)
        for call in HOST
    ]


BENCHMARK = tables.Benchmark(
    "tiles",
    "Tiles",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Tiles: "),
    copied=lambda size: (SIZES[size], SIZES[size]),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
