"""Searching and sorting: where elements are, and their order, on the host through NumPy.

The order is NumPy's: ascending, with NaN behind everything else; descending is the same order the other way round, so
NaN comes first there. Sorting is always stable, `stable=False` included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.engine.signature import A, ArrayBase
from tilearray.errors import DTypeError, IndexingError, OperandError, ShapeError, type_name
from tilearray.functions.on_host import INDEX, REAL, array_of, check_kind, common_dtype, on_host, truth, values
from tilearray.geometry.shapes import normalize_axis
from tilearray.ops.numbers import class_of, host_number
from tilearray.promotion.scalars import classify


def argmax(x: A, /, *, axis: int | None = None, keepdims: bool = False) -> A:
    """Return the index of the first largest element, or of the first NaN, as int64.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool, on the host.
    axis : int, optional
        Along which axis; None counts through all elements in C order.
    keepdims : bool
        Whether the axis, or all of them, stays with size 1.

    Raises
    ------
    ShapeError
        If there is no such axis, or there are no elements to choose from.
    DTypeError
        If `x` is complex.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argmax(ta.asarray([[1, 5], [4, 3]]), axis=1)
    Array([1, 0], dtype=int64, device='cpu')
    """
    return _position("argmax", np.argmax, x, axis, keepdims)


def argmin(x: A, /, *, axis: int | None = None, keepdims: bool = False) -> A:
    """Return the index of the first smallest element, or of the first NaN, as int64.

    Parameters and errors are those of `argmax`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argmin(ta.asarray([[1, 5], [4, 0]])).item()
    3
    """
    return _position("argmin", np.argmin, x, axis, keepdims)


def _position(function: str, search: Any, x: A, axis: Any, keepdims: bool) -> A:
    shape = on_host(function, x).shape
    check_kind(function, x.dtype, REAL)
    place = None if axis is None else normalize_axis(axis, len(shape), function)
    if not (x.size if place is None else shape[place]):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {shape}; "
            f"write ta.{function}(x) only where x.size > 0"
        )
    return array_of(search(values(x), axis=place, keepdims=keepdims), INDEX, x)


def nonzero(x: A, /) -> tuple[A, ...]:
    """Return the indices of all elements other than 0, in C order: an int64 array for each axis.

    Raises
    ------
    ShapeError
        If `x` is 0-d.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> [axis.tolist() for axis in ta.nonzero(ta.asarray([[0, 7], [8, 0]]))]
    [[0, 1], [1, 0]]
    """
    if not on_host("nonzero", x).ndim:
        raise ShapeError("nonzero: expected an array with axes, got a 0-d one; write ta.reshape(x, 1)")
    return tuple([array_of(places, INDEX, x) for places in np.nonzero(truth(x))])


def searchsorted(x1: A, x2: Any, /, *, side: str = "left", sorter: A | None = None) -> A:
    """Return where values would have to be inserted into a sorted array to keep it sorted.

    Parameters
    ----------
    x1 : Array
        Of shape (M,) and a real dtype, on the host; in the order of `sort`, or with a `sorter` that brings it there.
    x2 : Array or number
        What to search for, compared in the common dtype.
    side : {"left", "right"}
        Whether before or behind elements that are equal.
    sorter : Array, optional
        Indices of shape (M,), as `argsort` returns them.

    Returns
    -------
    Array
        Of the shape of `x2`, int64, from 0 to M.

    Raises
    ------
    ShapeError
        If `x1` is not 1-d, `sorter` is not of its shape, or `side` is neither word.
    IndexingError
        If an index of `sorter` is out of bounds.
    DTypeError
        If a dtype is complex, or that of `sorter` no integer.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.searchsorted(ta.asarray([10, 20, 30]), ta.asarray([20, 35]))
    Array([1, 3], dtype=int64, device='cpu')
    """
    if on_host("searchsorted", x1).ndim != 1:
        raise ShapeError(f"searchsorted: expected a 1-d array, got shape {x1.shape}; write ta.reshape(x1, -1)")
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: expected side as 'left' or 'right', got {side!r}; write one of the two")
    if classify(x2) is None:
        dtype = common_dtype("searchsorted", [x1.dtype, on_host("searchsorted", x2).dtype], REAL)
        wanted = values(x2, dtype)
    else:
        dtype = common_dtype("searchsorted", [x1.dtype, class_of(x2)], REAL)
        wanted = values(array_of(host_number(x2, dtype, "searchsorted"), dtype, x1))
    row = values(x1, dtype)
    row = row if sorter is None else row[_order(sorter, row.size)]
    return array_of(np.searchsorted(row, wanted, side=side), INDEX, x1)  # type: ignore[call-overload]


def _order(sorter: Any, size: int) -> np.ndarray:
    """The indices of a sorter, checked."""
    if not isinstance(sorter, ArrayBase):
        raise OperandError(
            f"searchsorted: expected sorter as an Array, got {type_name(sorter)}; write sorter=ta.argsort(x1)"
        )
    order = values(on_host("searchsorted", sorter))
    if order.dtype.kind not in "iu":
        raise DTypeError(
            f"searchsorted: expected integers in sorter, got {sorter._signature.dtype.name}; write ta.argsort(x1)"
        )
    if order.shape != (size,):
        raise ShapeError(f"searchsorted: expected sorter of shape {(size,)}, got {order.shape}; write ta.argsort(x1)")
    if size and not (int(order.min()) >= 0 and int(order.max()) < size):
        raise IndexingError(
            f"searchsorted: expected indices from 0 to {size - 1} in sorter, got {order.min()} to {order.max()}; "
            f"write ta.argsort(x1)"
        )
    return order


def sort(x: A, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> A:
    """Return a sorted copy.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool, on the host.
    axis : int
        Along which axis.
    descending : bool
        Whether the largest comes first, and NaN before it; else NaN comes last.
    stable : bool
        Whether what is equal keeps its order; it does in any case.

    Raises
    ------
    ShapeError
        If there is no such axis.
    DTypeError
        If `x` is complex.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sort(ta.asarray([2, 3, 1]), descending=True)
    Array([3, 2, 1], dtype=int64, device='cpu')
    """
    del stable
    place = _sorted_axis("sort", x, axis)
    host = values(x)
    ordered = (
        np.flip(np.sort(np.flip(host, place), place, "stable"), place) if descending else np.sort(host, place, "stable")
    )
    return array_of(ordered, x.dtype, x)


def argsort(x: A, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> A:
    """Return the indices that sort an array, as int64. Parameters and errors are those of `sort`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.argsort(ta.asarray([2, 3, 2, 1]), descending=True)
    Array([1, 0, 2, 3], dtype=int64, device='cpu')
    """
    del stable
    place = _sorted_axis("argsort", x, axis)
    host = values(x)
    if not descending:
        return array_of(np.argsort(host, place, "stable"), INDEX, x)
    backward = np.argsort(np.flip(host, place), place, "stable")
    return array_of(host.shape[place] - 1 - np.flip(backward, place), INDEX, x)


def _sorted_axis(function: str, x: Any, axis: Any) -> int:
    place = normalize_axis(axis, on_host(function, x).ndim, function)
    check_kind(function, x.dtype, REAL)
    return place
