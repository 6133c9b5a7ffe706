"""Sums of products of the windows of an array with a shorter one, on a device that runs expressions.

One launch has all places. If these are few, programs take parts of the shorter array, and another launch adds them up.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import Node
from tilearray.engine.operation import FixedOperation
from tilearray.engine.splice import Splicer
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import dense, new_like, permute_dims
from tilearray.functions.reductions import sum
from tilearray.geometry.layout import Layout

ACCUMULATED: dict[np.dtype, np.dtype] = {
    dtypes.bool_: dtypes.int32,
    **dict.fromkeys(
        (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16, dtypes.uint32), dtypes.int32
    ),
    **dict.fromkeys((dtypes.int64, dtypes.uint64), dtypes.int64),
    **dict.fromkeys((dtypes.float32, dtypes.float64), dtypes.float64),
    **dict.fromkeys((dtypes.complex64, dtypes.complex128), dtypes.complex128),
}
"""The dtype in which products of a dtype are added up. Integers wrap; bools are counted."""
PROGRAM = 256
"""The places of a program."""
ENOUGH = 2048
"""The programs that keep a GPU busy: there are more parts of the shorter array until there are as many."""
LEAST_PART = 256
"""The least elements of a part."""


def windowed_sums(x: Array, y: Array, before: int, after: int, conjugated: str = "") -> Array:
    """Return the sums of products of an array and a shorter one, at every place.

    Parameters
    ----------
    x, y : Array
        Of one axis and one dtype; `y` is not longer.
    before, after : int
        How many elements of `y` may lie before `x`, and after it: they do not count.
    conjugated : {"", "long", "short"}
        The array whose conjugate is multiplied.
    """
    x, count = dense(x), before + x.size + after - y.size + 1
    parts = min(-(-ENOUGH // -(-count // PROGRAM)), -(-y.size // LEAST_PART))
    wide = ACCUMULATED[x.dtype]
    found: Array = new_like(x, (count,), x.dtype) if parts == 1 else new_like(x, (parts, count), wide)
    target = found if parts == 1 else permute_dims(found, (1, 0))
    everywhere = Layout(target.shape, (0,) * target.ndim)
    (step,) = y._signature.layout.strides
    operands = [x._view(everywhere), y._view(everywhere), x.size, y.size, before, step]
    run_fixed(_sums(x.dtype, found.dtype, conjugated), operands, target)
    return found if parts == 1 else _added(x.dtype)(found)


@cache
def _sums(dtype: np.dtype, result: np.dtype, conjugated: str) -> FixedOperation:
    """Return the operation: of both arrays, their sizes, how far the shorter one begins before, and its stride.

    A product and a sum may be one rounding (fma).
    """
    splicer, wide = Splicer(), ACCUMULATED[dtype]
    chains = [_chain(splicer, name, dtype, wide, position) for name, position in (("x", "position"), ("y", "index"))]
    numbers = [splicer.number(name, dtypes.int64) for name in ("size", "count", "before", "step")]
    total = splicer.node("windows", *chains, wide.name, conjugated, *numbers)
    total = total if result == wide else splicer.node("cast", total, result.name)
    return FixedOperation("convolve", replace(splicer.build([total], [result]), contract=True))


def _chain(splicer: Splicer, name: str, dtype: np.dtype, wide: np.dtype, position: str) -> Node:
    """Return the nodes of a place, the element of an array there, and the element in the dtype of sums."""
    place = splicer.node(position)
    element = splicer.node("gather", splicer.memory(name, dtype), place)
    return (place, element) if dtype == wide else (place, element, splicer.node("cast", element, wide.name))


@cache
def _added(dtype: np.dtype) -> Any:
    """Return the fused function that adds up the sums of parts, and rounds once."""
    from tilearray.arrays.fusion.fuse import fuse  # here: few programs need it

    @fuse
    def added(parts: Any) -> Any:
        return astype(sum(parts, 0, ACCUMULATED[dtype]), dtype)

    return added
