"""Reductions whose launch also stores elements, on a device, emulated or real: the bits of the host, and the launches.

A case is a function of two matrices and a row; the launches of small, of wide and of cut loops follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.trees import bits


def _in_place(x: Any, y: Any, row: Any) -> Any:
    total = ta.sum(x * y, axis=0)
    x += 2 * y
    return total


def _blocks(x: Any, y: Any, row: Any) -> Any:
    x = ta.reshape(x, (-1, 4, x.shape[1]))
    return ta.sum(x, axis=(0, 1)), ta.max(x, axis=1), x * row


CASES: dict[str, tuple[Callable[..., Any], tuple[int, int, int]]] = {
    "columns": (lambda x, y, row: (x * row, ta.sum(x * y, axis=0), y - x), (1, 1, 2)),
    "columns of a transposed matrix": (lambda x, y, row: (x.T * 2, ta.sum(x.T * y.T, axis=1)), (1, 1, 2)),
    "rows": (lambda x, y, row: (x * y, ta.sum(x - y, axis=1)), (1, 1, 1)),
    "all": (lambda x, y, row: (ta.sum(x * y), 2 * x), (1, 1, 1)),
    "two reductions": (lambda x, y, row: (ta.sum(x, axis=0), ta.max(y, axis=0), x + y), (1, 1, 2)),
    "after": (lambda x, y, row: (ta.mean(x, axis=0) * 2 + 1, x + y), (1, 1, 2)),
    "rows and elements after": (lambda x, y, row: (x - ta.mean(x, axis=1)[:, None], x * y), (1, 1, 1)),
    "nothing in common": (lambda x, y, row: (ta.sum(x, axis=0), y * 2), (2, 2, 3)),
    "in place": (_in_place, (1, 1, 2)),
    "columns of blocks": (_blocks, (2, 2, 3)),
    "crossed families": (
        lambda x, y, row: (ta.sum(x, axis=0), ta.sum(x, axis=1), x * ta.sum(y), y * ta.sum(x)),
        (3, 3, 4),
    ),
}
SHAPES = ((40, 30), (24, 600), (300, 33))
DTYPES = ("float32", "bfloat16", "float64", "complex64", "int16")


def check_beside(device: Any, dtypes: tuple[str, ...] = DTYPES) -> None:
    """Compare each case with the same operations on the host; count launches of float32 if the device does."""
    for dtype in dtypes:
        for column, shape in enumerate(SHAPES):
            if dtype != dtypes[0] and column < 2:
                continue
            rng = np.random.default_rng(column)
            arrays = [rng.normal(size=size) * 9 for size in (shape, shape, shape[1:])]
            given = [ta.asarray(each, device="cpu").astype(dtype) for each in arrays]
            for name, (function, expected) in CASES.items():
                if dtype == "complex64" and name in ("two reductions", "columns of blocks"):
                    continue  # they have no order
                mine, others = [each.to_device(device).copy() for each in given], [each.copy() for each in given]
                counter = getattr(device, "backend", None)
                before = counter and counter.launches
                found, wanted = ta.fuse(function)(*mine), function(*others)
                if counter and dtype == "float32":
                    launches = counter.launches - before
                    assert launches == expected[column], (name, shape, launches)
                pairs = zip(_parts(found), _parts(wanted), strict=True)
                assert all(bits(x) == bits(y) for x, y in pairs), (name, dtype, shape)
                assert bits(mine[0]) == bits(others[0]), (name, dtype, shape)


def _parts(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)
