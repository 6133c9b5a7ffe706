"""Try tiles and sizes of reductions and scans on a GPU: ``python -m benchmarks.tune_walks [CASE ...]``.

Each case is a call on one large array. It runs with each candidate in the place of a constant of a schedule or of the
geometry, and with each tile in the place of the schedule's, and is timed beside a copy. The fastest are printed; the
winners go by hand into `tilearray_cuda.kernels.schedules` and `tilearray.geometry`. Constants of the geometry change
the order in which elements are combined, so the last bits of results change with them.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import tilearray as ta
from benchmarks.tune import copy_rate, seconds
from tilearray.engine import caches
from tilearray.geometry import reduction, scan
from tilearray_cuda.kernels.schedules import held as held_schedule
from tilearray_cuda.kernels.schedules import reduce as reduce_schedule
from tilearray_cuda.kernels.schedules import scan as scan_schedule
from tilearray_cuda.kernels.schedules.schedule import Tile

N = 16384
MODULES = {
    "reduction": reduction,
    "scan": scan,
    "held": held_schedule,
    "reduce": reduce_schedule,
    "walk": scan_schedule,
}


class Case(NamedTuple):
    """A call, the dtype of its array, the bytes of the result for each element, and candidates.

    A candidate has values by ``module.NAME`` (``module.NAME.itemsize`` for one of a table), or by "rows" and "warps",
    which are those of the tile.
    """

    call: Callable[[Any], Any]
    dtype: str
    written: int
    candidates: dict[str, tuple[int, ...]]


def scanned(axis: int, flat: bool = False) -> Callable[[Any], Any]:
    """Return a cumulative sum along an axis, or of all elements."""
    return lambda x: ta.cumulative_sum(ta.reshape(x, (-1,)) if flat else x, axis=axis)


ROWS = {"rows": (1, 2, 4, 8), "warps": (1, 2, 4)}
CASES = {
    "scan rows": Case(scanned(1), "float32", 4, {"walk.UNROLL": (1, 2, 4), "warps": (1,)}),
    "scan rows of bfloat16": Case(scanned(1), "bfloat16", 2, {"walk.UNROLL": (1, 2, 4)}),
    "scan rows of int64": Case(scanned(1), "int64", 8, {"walk.UNROLL": (1, 2, 4), "rows": (2, 4), "warps": (2, 4)}),
    "scan columns": Case(scanned(0), "float32", 4, {"walk.STAGES": (3, 4, 6), "walk.STAGE_UNROLL": (8, 16, 32)}),
    "scan all": Case(
        scanned(0, True),
        "float32",
        4,
        {"walk.SEGMENT_UNROLL": (4, 8), "scan.PROGRAMS": (1024, 1536, 2048)},
    ),
    "argmax rows": Case(lambda x: ta.argmax(x, axis=1), "float32", 0, ROWS),
    "any rows": Case(lambda x: ta.any(x, axis=1), "bool", 0, ROWS),
    "count": Case(ta.count_nonzero, "bool", 0, {"warps": (1, 2, 4)}),
    "var": Case(ta.var, "float32", 0, {"warps": (1, 2, 4, 8)}),
    "softmax": Case(lambda x: ta.softmax(x, axis=1), "float32", 4, {"warps": (4, 8, 16, 32)}),
    "softmax of bfloat16": Case(lambda x: ta.softmax(x, axis=1), "bfloat16", 2, {"warps": (4, 8, 16)}),
    "log_softmax": Case(lambda x: ta.log_softmax(x, axis=1), "float32", 4, {"warps": (4, 8, 16, 32)}),
    "max": Case(ta.max, "float32", 0, {"warps": (1, 2, 4)}),
}


@contextmanager
def chosen(candidate: dict[str, int]) -> Iterator[None]:
    """Put a candidate in place, and the former values back."""
    undo: list[Callable[[], None]] = []
    for name, value in candidate.items():
        if "." in name:
            module, constant, *key = name.split(".")
            home: Any = MODULES[module]
            target = getattr(home, constant)
            if key:
                undo.append(lambda target=target, at=int(key[0]), old=target[int(key[0])]: target.__setitem__(at, old))
                target[int(key[0])] = value
            else:
                undo.append(lambda home=home, constant=constant, old=target: setattr(home, constant, old))
                setattr(home, constant, value)
    for schedule in (reduce_schedule.Reduce, scan_schedule.Scan, held_schedule.Held):
        fits = schedule.__dict__["fits"]
        undo.append(lambda schedule=schedule, fits=fits: setattr(schedule, "fits", fits))

        def resized(cls: Any, spec: Any, facts: Any, arch: int, fits: Any = fits) -> Any:
            tile = fits.__func__(cls, spec, facts, arch).tile
            rows = candidate.get("rows", tile.rows)
            return cls(spec, Tile(rows, tile.columns, candidate.get("warps", tile.warps)))

        schedule.fits = classmethod(resized)  # type: ignore[assignment]
    forget()
    try:
        yield
    finally:
        for step in undo:
            step()
        forget()


def forget() -> None:
    """Drop everything that was planned."""
    for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
        cache.clear()


def main() -> None:
    """Run the named cases, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tune_walks", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)} (default: all)")
    options = parser.parse_args()
    rate = copy_rate()
    for name in options.cases or list(CASES):
        case = CASES[name]
        x = ta.astype(ta.ones((N, N), dtype="float32", device="cuda"), case.dtype)
        moved = x.nbytes + case.written * x.size
        found: list[tuple[float, str]] = []
        for values in [None, *itertools.product(*case.candidates.values())]:
            candidate = dict(zip(case.candidates, values or (), strict=False))
            try:
                with chosen(candidate):
                    spent = seconds(partial(case.call, x))
            except Exception as error:  # a candidate that the compiler or the device refuses; the others go on
                print(f"{name}: {candidate}: {type(error).__name__}", flush=True)
                spent = math.inf
            found.append((moved / spent / rate, str(candidate or "now")))
        now, best = found[0][0], sorted(found, reverse=True)[:6]
        print(f"{name}: now {now:.3f}  " + "  ".join(f"{share:.3f} {text}" for share, text in best), flush=True)


if __name__ == "__main__":
    main()
