"""Indices by NumPy's names: of elements other than 0, and along the axes of a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.errors import DTypeError, ShapeError, shown
from tilearray.functions.arguments import all_arrays, as_array, by_expressions, listed
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.indexing.gather import checks_indices
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import reshape
from tilearray.functions.reductions import max, min
from tilearray.functions.searching import nonzero
from tilearray.geometry.shapes import as_ints
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.ops.arithmetic import add, floor_divide, multiply, remainder
from tilearray.ops.composed import clip


def flatnonzero(a: Any) -> Array:
    """Return the places of the elements other than 0 among all elements in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.flatnonzero([[0, 7], [8, 0]])
    Array([1, 2], dtype=int64, device='cpu')
    """
    return nonzero(reshape(as_array("flatnonzero", a), -1))[0]


def argwhere(a: Any) -> Array:
    """Return the indices of the elements other than 0: a row for each.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argwhere([[0, 7], [8, 0]]).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_array("argwhere", a)
    if not x.ndim:
        return reshape(nonzero(reshape(x, 1))[0], (-1, 1))[:, :0]
    return stack(nonzero(x), 1)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Return the indices along each axis of places among all elements; of a Python int, Python ints.

    Raises
    ------
    ShapeError
        If a place lies outside the shape. On a GPU the call waits for that, unless `set_index_check` says otherwise.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unravel_index(5, (2, 3))
    (1, 2)
    """
    if isinstance(indices, int):
        return _place_by_numpy(indices, shape, order)
    x = as_array("unravel_index", indices)
    if not by_expressions(x):
        return by_numpy("unravel_index", (indices,), shape, order)
    sizes, axes = _grid("unravel_index", shape, order)
    rest = _inside("unravel_index", x, math.prod(sizes))
    found: dict[int, Array] = {}
    for axis in axes:
        found[axis] = remainder(rest, sizes[axis] or 1)
        rest = floor_divide(rest, sizes[axis] or 1)
    return tuple([found[axis] for axis in range(len(sizes))])


def _place_by_numpy(place: int, shape: Any, order: Any) -> tuple[int, ...]:
    try:
        return tuple([int(index) for index in np.unravel_index(place, shape, order)])
    except ValueError as error:
        raise ShapeError(f"unravel_index: {error}; write a place within shape {shown(shape)}") from error


def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Return the places among all elements of indices along each axis; of Python ints, a Python int.

    Parameters
    ----------
    multi_index : sequence of Array
        Indices along each axis; they broadcast.
    dims : tuple of int
    mode : {"raise", "wrap", "clip"} or a tuple of them
        Indices outside an axis are errors, count modulo its size, or become the nearest index.
    order : {"C", "F"}

    Raises
    ------
    ShapeError
        If an index lies outside its axis. On a GPU the call waits for that, unless `set_index_check` says otherwise.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ravel_multi_index((1, 2), (2, 3))
    5
    """
    multi_index = listed("ravel_multi_index", multi_index)
    if all(isinstance(one, int) for one in multi_index):
        return int(_joined_by_numpy(tuple(multi_index), dims, mode, order))
    given = all_arrays("ravel_multi_index", multi_index)
    if by_expressions(given[0]):
        return _joined(given, dims, mode, order)
    along = tuple([exact("ravel_multi_index", one) for one in given])
    return as_array("ravel_multi_index", _joined_by_numpy(along, dims, mode, order))


def _joined_by_numpy(along: tuple[Any, ...], dims: Any, mode: Any, order: Any) -> Any:
    try:
        return np.ravel_multi_index(along, dims, mode, order)
    except ValueError as error:
        raise ShapeError(
            f"ravel_multi_index: {error}; write indices within each of the axes {shown(dims)}, or mode='wrap' or 'clip'"
        ) from error
    except TypeError as error:
        raise DTypeError(f"ravel_multi_index: {error}; write x.astype('int64')") from error


def _joined(given: list[Array], dims: Any, mode: Any, order: str) -> Array:
    """The places of indices along each axis, on a device."""
    sizes, axes = _grid("ravel_multi_index", dims, order)
    if len(given) != len(sizes):
        raise ShapeError(
            f"ravel_multi_index: expected indices for each of {len(sizes)} axes, got {len(given)}; "
            f"write a tuple of arrays"
        )
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    found: Any = 0
    stride = 1
    for axis in axes:
        found = add(multiply(_inside("ravel_multi_index", given[axis], sizes[axis], modes[axis]), stride), found)
        stride *= sizes[axis]
    return found


def _grid(function: str, shape: Any, order: Any) -> tuple[tuple[int, ...], list[int]]:
    """A shape, and its axes from the one whose places follow each other."""
    sizes = as_ints(shape, function, "shape", "sizes")
    if order not in ("C", "F"):
        raise ShapeError(f"{function}: expected order as 'C' or 'F', got {shown(order)}; write order='C'")
    axes = list(range(len(sizes)))
    return sizes, axes if order == "F" else axes[::-1]


def _inside(function: str, indices: Array, size: int, mode: Any = "raise") -> Array:
    """Indices of an axis as int64; those outside are errors, or as a mode says."""
    if dtypes.info(indices.dtype).kind not in ("int", "uint"):
        raise DTypeError(f"{function}: expected integers as indices, got {indices.dtype.name}; write x.astype('int64')")
    found = astype(indices, dtypes.int64, copy=False)
    if mode == "wrap":
        return remainder(found, size)
    if mode == "raise" and checks_indices():
        if found.size:
            low, high = to_numpy(stack([min(found), max(found)])).tolist()
            if low < 0 or high >= size:
                raise ShapeError(
                    f"{function}: expected indices from 0 to {size - 1}, got {low} to {high}; "
                    f"write ta.clip(x, 0, {size - 1})"
                )
        return found
    if mode not in ("raise", "clip"):
        raise ShapeError(
            f"{function}: expected mode as 'raise', 'wrap' or 'clip', got {shown(mode)}; write one of them"
        )
    return clip(found, 0, size - 1)
