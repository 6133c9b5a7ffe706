"""The functions of `Fourier` on a device that has transforms along a few axes: Arrays in, Arrays out.

A library transforms elements as they lie, if it can read them, else a copy of them: dense, with the transformed axes
last. Axes that are cut or padded, and dtypes that differ, also need a copy. The result lies as the operand of the
library, so it is dense but not always in C order. More than three axes are several transforms, and so are those to real
numbers: all other axes first, in place. Divisions by the sizes are one more operation, in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import Transforms
from tilearray.engine.context import STATE, semantics, unrecorded
from tilearray.engine.signature import new_array, signature_of
from tilearray.functions.manipulation import permute_dims
from tilearray.geometry.layout import Layout
from tilearray.ops.arithmetic import multiply
from tilearray.ops.execute import execute
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import conj
from tilearray.ops.promotion_methods import REAL_PART

Ints = tuple[int, ...]

TOGETHER: Final = 3
"""The axes of one transform."""
_COMPLEX: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


class DeviceFourier:
    """Fourier transforms along any axes, from those that a device has.

    The methods are those of `tilearray.engine.backend.Fourier`, with Arrays instead of ndarrays.
    """

    def __init__(self, transforms: Transforms) -> None:
        self._transforms = transforms

    def run(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method. The dtypes are decided, so the semantics in force have no influence."""
        with unrecorded(), semantics("array-api"):
            return getattr(self, method)(*arguments)

    def transform(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return a complex transform of complex numbers."""
        x = _fitted(x, sizes, axes, dtype)
        return _scaled(self._complex(x, axes, inverse, False), sizes, inverse, norm)

    def from_real(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return the first half of a transform of real numbers along the last of `axes`."""
        x = _fitted(x, sizes, axes, dtype)
        last = axes[-TOGETHER:]
        found = self._pass("r2c", x, last, False, None, _COMPLEX[dtype])
        found = self._complex(found, axes[: -len(last)], False, True)
        if inverse and found.size:
            conj(found, out=found)
        return _scaled(found, sizes, inverse, norm)

    def to_real(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return the real transform of numbers of which the first half along the last of `axes` is given."""
        axis, size = axes[-1], sizes[-1]
        own = _fitted(x, (*sizes[:-1], size // 2 + 1), axes, dtype)
        own = own if own is not x else execute(assign, (x,), _new(x, x.shape, x.dtype))  # the library overwrites it
        if not inverse and own.size:
            conj(own, out=own)
        own = self._complex(own, axes[:-1], True, True)
        for place in (0, size // 2) if size % 2 == 0 else (0,):
            if own.size:
                own.imag[_at(own.ndim, axis, slice(place, place + 1))] = 0
        found = self._pass("c2r", own, (axis,), True, size, REAL_PART[dtype])
        return _scaled(found, sizes, inverse, norm)

    def _complex(self, x: Any, axes: Ints, inverse: bool, in_place: bool) -> Any:
        """Transform complex numbers along axes, the last ones first; `in_place` if their memory may be overwritten."""
        while axes:
            group, axes = axes[-TOGETHER:], axes[:-TOGETHER]
            group = tuple(sorted(group, key=lambda axis: -x._signature.layout.strides[axis]))
            x = self._pass("c2c", x, group, inverse, None, x.dtype, in_place)
            in_place = True
        return x

    def _pass(
        self, kind: str, x: Any, axes: Ints, inverse: bool, size: int | None, dtype: np.dtype, in_place: bool = False
    ) -> Any:
        """Transform along at most three axes; `size` is that of the last axis of a real result."""
        shape = list(x.shape)
        if kind != "c2c":
            shape[axes[-1]] = shape[axes[-1]] // 2 + 1 if kind == "r2c" else int(size or 0)
        if not x.size:
            return _new(x, tuple(shape), dtype)
        found = x if in_place and kind == "c2c" else _like(x, tuple(shape), dtype)
        if not self._readable(kind, x, found, axes):
            x = _with_last(x, axes)
            found = x if kind == "c2c" else _like(x, tuple(shape), dtype)
        complex_dtype = x.dtype if kind == "c2r" else dtype
        self._transforms.run(
            STATE.get().stream, kind, complex_dtype.name, inverse, *_places(kind, x, found, axes),
            (x._buffer, x._offset), (found._buffer, found._offset),
        )  # fmt: skip
        return found

    def _readable(self, kind: str, x: Any, found: Any, axes: Ints) -> bool:
        aligned = x._address % found.itemsize == 0 if kind == "r2c" else True
        return aligned and self._transforms.readable(kind, *_places(kind, x, found, axes))


def _places(kind: str, x: Any, found: Any, axes: Ints) -> tuple[Ints, Ints, Ints, tuple[tuple[int, int, int], ...]]:
    """Return the sizes of a transform, the strides of its operand and result along its axes, and all other axes."""
    source, target = x._signature.layout.strides, found._signature.layout.strides
    whole = found.shape if kind == "c2r" else x.shape
    others = [axis for axis in range(x.ndim) if axis not in axes]
    return (
        tuple([whole[axis] for axis in axes]),
        tuple([source[axis] for axis in axes]),
        tuple([target[axis] for axis in axes]),
        tuple([(x.shape[axis], source[axis], target[axis]) for axis in others]),
    )


def _new(x: Any, shape: Ints, dtype: np.dtype) -> Any:
    return new_array(x.__class__, signature_of(Layout.of(shape), dtype, x.device))


def _like(x: Any, shape: Ints, dtype: np.dtype) -> Any:
    """Return a new dense array whose axes lie in the order of those of `x`."""
    strides = x._signature.layout.strides
    order = sorted(range(x.ndim), key=lambda axis: -abs(strides[axis]))
    return _dense(x, shape, dtype, tuple(order))


def _with_last(x: Any, axes: Ints) -> Any:
    """Return a dense copy of an array in which some axes lie last."""
    order = (*[axis for axis in range(x.ndim) if axis not in axes], *axes)
    return execute(assign, (x,), _dense(x, x.shape, x.dtype, order))


def _dense(x: Any, shape: Ints, dtype: np.dtype, order: Ints) -> Any:
    """Return a new array whose memory has the axes in an order."""
    memory = _new(x, tuple([shape[axis] for axis in order]), dtype)
    return permute_dims(memory, tuple([order.index(axis) for axis in range(len(order))]))


def _at(ndim: int, axis: int, key: slice) -> tuple[slice, ...]:
    keys = [slice(None)] * ndim
    keys[axis] = key
    return tuple(keys)


def _fitted(x: Any, sizes: Sequence[int], axes: Ints, dtype: np.dtype) -> Any:
    """Return `x` if it has the sizes along axes and the dtype, else a copy that is cut, or padded with zeros."""
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    if tuple(shape) == x.shape and x.dtype == dtype:
        return x
    common = tuple([slice(min(size, other)) for size, other in zip(x.shape, shape, strict=True)])
    x = x[common]
    found = _like(x, tuple(shape), dtype)
    if x.shape != tuple(shape):
        found[...] = 0
    execute(assign, (x,), found[common]) if x.size else None
    return found


def _scaled(x: Any, sizes: Ints, inverse: bool, norm: str) -> Any:
    """Divide a transform by its sizes, or by their square root, in place."""
    count = prod(sizes)
    if norm == "ortho":
        scale = 1 / sqrt(count)
    elif (norm == "backward") == inverse:
        scale = 1 / count
    else:
        return x
    return multiply(x, scale, out=x) if x.size else x
