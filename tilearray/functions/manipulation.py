"""Shape manipulation: views of the same memory. Only `reshape` copies, and only if the strides allow no view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.remembered import is_plain
from tilearray.engine.signature import ArrayBase, HostData, check_alignment, dense_signature, new_array, placed
from tilearray.errors import LayoutError, ShapeError
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.indexing.views import get, keep_view, reshaped, view_again
from tilearray.functions.orders import Order, check_order, is_fortran
from tilearray.geometry.layout import Layout, as_shape, broadcast_shapes, resolve_shape
from tilearray.geometry.shapes import as_int, as_ints, normalize_axis
from tilearray.ops.execute import store
from tilearray.ops.options import checked_flag

Axes = int | Sequence[int]


def new_like(x: A, shape: tuple[int, ...], dtype: np.dtype | None = None) -> A:
    """Return uninitialised memory in C order: of the class, device and dtype of `x`, unless a dtype is given.

    Examples
    --------
    >>> import tilearray as ta
    >>> new_like(ta.zeros(3), (2, 4)).strides
    (4, 1)
    """
    return new_array(x.__class__, dense_signature(shape, dtype or x.dtype, x.device))


def c_contiguous(x: A) -> A:
    """Return a new array of the same elements in C order."""
    result = new_like(x, x.shape)
    store(result, x)
    return result


def dense(x: A) -> A:
    """Return an array in C order: the array itself, or a copy."""
    return x if x._signature.layout.contiguous else c_contiguous(x)


def derived(function: str, x: A | HostData, layout_of: Callable[..., Any], *arguments: Any) -> A:
    """Return the view of an array whose layout follows from that of the array and from arguments.

    ``layout_of(layout, *arguments)`` returns it, or also the shift of its first element, in elements. It is called once
    for each signature and arguments.

    Examples
    --------
    >>> import tilearray as ta
    >>> derived("flip", ta.arange(3), Layout.flip, 0).tolist()
    [2, 1, 0]
    """
    words = (function, *arguments) if all(map(is_plain, arguments)) else None
    known = None if words is None or x.__class__ is not ArrayBase._public else view_again(words, x)
    if known is not None:
        return known
    x = as_array(function, x)
    found = layout_of(x._signature.layout, *arguments)
    layout, shift = found if found.__class__ is tuple else (found, 0)
    view = x._view(layout, shift)
    if words is not None and x.__class__ is ArrayBase._public:
        keep_view(words, x, view)
    return view


def permute_dims(x: A | HostData, /, axes: Sequence[int]) -> A:
    """Return the view whose axis ``i`` is axis ``axes[i]`` of `x`.

    Raises
    ------
    ShapeError
        If `axes` is not a permutation of the axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.permute_dims(ta.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return derived("permute_dims", x, Layout.permute, axes)


def transpose(x: A | HostData, /, axes: Sequence[int] | None = None) -> A:
    """Return the view with its axes permuted; reversed if `axes` is None.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.transpose(ta.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    return derived("transpose", x, _permuted, axes)


def _permuted(layout: Layout, axes: Sequence[int] | None) -> Layout:
    return layout.permute(range(layout.ndim)[::-1] if axes is None else axes)


def moveaxis(x: A | HostData, source: Axes, destination: Axes, /) -> A:
    """Return the view with some axes moved, the others in their order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.moveaxis(ta.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return derived("moveaxis", x, Layout.moveaxis, source, destination)


def expand_dims(x: A | HostData, /, axis: Axes = 0) -> A:
    """Return the view with axes of size 1 inserted, at their positions in the result.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.expand_dims(ta.zeros((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    return derived("expand_dims", x, Layout.expand_dims, axis)


def squeeze(x: A | HostData, /, axis: Axes | None = None) -> A:
    """Return the view without the named axes of size 1; without all of them if `axis` is None.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.squeeze(ta.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    return derived("squeeze", x, Layout.squeeze, axis)


def reshape(x: A | HostData, /, shape: Any, order: Order = "C", *, copy: bool | None = None) -> A:
    """Return the elements in another shape, read and written in C order.

    Parameters
    ----------
    x : Array
    shape : int or tuple of int
        One size may be -1: it follows from the others.
    order : {"C", "F", "A"}
        "F" reads and writes in Fortran order, the first axis changing fastest; "A" does so if `x` is in that order.
    copy : bool, optional
        True always copies, False raises if a view is impossible, None copies only then.

    Raises
    ------
    ShapeError
        If the sizes do not fit.
    LayoutError
        If ``copy=False`` and the strides of `x` allow no view.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.reshape(ta.arange(6), (2, -1)).strides
    (3, 1)
    """
    is_usual = copy is None and order.__class__ is str and order == "C" and x.__class__ is ArrayBase._public
    words = ("reshape", shape) if is_usual and is_plain(shape) else None
    known = None if words is None else view_again(words, x)
    if known is not None:
        return known
    x = as_array("reshape", x)
    layout = x._signature.layout
    target = resolve_shape(shape, layout.size)
    if order != "C" and _in_fortran_order(order, x):
        return transpose(reshape(transpose(x), target[::-1], copy=copy))
    if copy is not None:
        copy = checked_flag("reshape", "copy", copy)
    if not copy:
        found = reshaped(x, target)
        if found is not None:
            if words is not None:
                keep_view(words, x, found)
            return found
    if copy is False:
        raise LayoutError(
            f"reshape: shape {layout.shape} with strides {layout.strides} has no view of shape {target}; "
            f"write copy=None or x.copy()"
        )
    return c_contiguous(x)._view(Layout.of(target))


def _in_fortran_order(order: Any, x: ArrayBase) -> bool:
    """Whether `reshape` reads in Fortran order."""
    word = check_order("reshape", order, "CFA")
    return word == "F" or (word == "A" and is_fortran(x._signature.layout))


def broadcast_to(x: A | HostData, /, shape: Any) -> A:
    """Return the view of `x` repeated to a shape with stride 0. It cannot be written to.

    Raises
    ------
    BroadcastError
        If an axis of `x` is neither 1 nor of the requested size.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.broadcast_to(ta.arange(3), (2, 3)).strides
    (0, 1)
    """
    return derived("broadcast_to", x, _repeated, shape)


def _repeated(layout: Layout, shape: Any) -> Layout:
    return layout.broadcast_to(as_shape(shape, "broadcast_to"))


def broadcast_arrays(*arrays: A | HostData) -> tuple[A, ...]:
    """Return views of all arrays, broadcast to their common shape.

    Examples
    --------
    >>> import tilearray as ta
    >>> [x.shape for x in ta.broadcast_arrays(ta.zeros((2, 1)), ta.zeros(3))]
    [(2, 3), (2, 3)]
    """
    found = all_arrays("broadcast_arrays", arrays)
    shape = broadcast_shapes(*[x.shape for x in found], function="broadcast_arrays")
    return tuple([broadcast_to(x, shape) for x in found])


def expand(x: A | HostData, /, *shape: Any) -> A:
    """Return `x` broadcast to a shape in which -1 keeps an axis as it is, as torch's `expand` does.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.expand(ta.zeros((2, 1)), -1, 4).shape
    (2, 4)
    """
    x = as_array("expand", x)
    given = as_ints(shape[0] if len(shape) == 1 else shape, "expand", "shape", "sizes")
    old = x.shape
    new = len(given) - len(old)
    if new < 0 or any(size == -1 for size in given[:new]):
        raise ShapeError(
            f"expand: expected a size for each new axis and at least {len(old)} sizes for shape {old}, got {given}; "
            f"write -1 for each axis that stays"
        )
    return broadcast_to(x, tuple(old[axis - new] if size == -1 else size for axis, size in enumerate(given)))


def flip(x: A | HostData, /, axis: Axes | None = None) -> A:
    """Return the view with the order along axes reversed; along all of them if `axis` is None.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.flip(ta.arange(3)).tolist()
    [2, 1, 0]
    """
    return derived("flip", x, Layout.flip, axis)


def unstack(x: A | HostData, /, axis: int = 0) -> tuple[A, ...]:
    """Return the views of an array at each position along an axis, without that axis.

    Raises
    ------
    ShapeError
        If `x` has no such axis; a 0-d array has none.

    Examples
    --------
    >>> import tilearray as ta
    >>> [column.tolist() for column in ta.unstack(ta.asarray([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    x = as_array("unstack", x)
    place = normalize_axis(axis, x.ndim, "unstack")
    before = (slice(None),) * place
    return tuple([get(x, (*before, position)) for position in range(x.shape[place])])


def diagonal(x: A | HostData, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> A:
    """Return the view of a diagonal of two axes; it becomes the last axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diagonal(ta.reshape(ta.arange(9), (3, 3)), offset=1).tolist()
    [1, 5]
    """
    return derived("diagonal", x, Layout.diagonal, offset, axis1, axis2)


def sliding_window_view(x: A | HostData, /, window_shape: Any, axis: Axes | None = None) -> A:
    """Return the view of all windows of a shape, the window's axes last. It cannot be written to.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sliding_window_view(ta.arange(4), 2).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return derived("sliding_window_view", x, Layout.sliding_window, window_shape, axis)


def as_strided(x: A | HostData, /, shape: Any, strides: Axes, offset: int = 0) -> A:
    """Return a view of any shape and strides of the memory behind `x`.

    Parameters
    ----------
    x : Array
    shape : tuple of int
    strides : tuple of int
        In elements.
    offset : int
        The position of the first element, in elements from the first element of `x`.

    Raises
    ------
    LayoutError
        If an element would lie outside the buffer of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.as_strided(ta.arange(5), (3, 3), (1, 1)).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    x = as_array("as_strided", x)
    itemsize = x.itemsize
    low = -(x._offset // itemsize)
    high = (x._buffer.nbytes - x._offset) // itemsize - 1
    start = as_int(offset, "as_strided", "offset")
    return x._view(x._signature.layout.as_strided(shape, strides, start, low, high), start)


def view(x: A | HostData, dtype: DTypeLike) -> A:
    """Return the same bytes read as another dtype.

    If the itemsize changes, the last axis shrinks or grows with it and must be dense.

    Raises
    ------
    LayoutError
        If the last axis is not dense, or the memory is not aligned for the dtype.
    ShapeError
        If the bytes of the last axis are not a multiple of the itemsize.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.view(ta.asarray([1.0, -2.0]), "uint16").tolist()
    [0, 16256, 0, 49152]
    """
    x = as_array("view", x)
    new = dtypes.as_dtype(dtype, "view")
    old, layout = x.dtype, x._signature.layout
    if layout.size:
        check_alignment(x._address, new.itemsize, "view")
    if new.itemsize == old.itemsize:
        return x._view(layout, dtype=new)
    if layout.ndim == 0 or (layout.size and layout.strides[-1] != 1 and layout.shape[-1] > 1):
        instead = "x.copy('C')" if layout.ndim else "ta.reshape(x, 1)"
        raise LayoutError(
            f"view: from {old.name} to {new.name} the last axis must be dense, got shape {layout.shape} with strides "
            f"{layout.strides}; write {instead}.view({new.name!r})"
        )
    resized = _resized(layout, old.itemsize, new.itemsize, f"view: from {old.name} to {new.name}")
    return x._make(x._buffer, x._offset, placed(x._buffer, x._offset, resized, new, x.device))


def _resized(layout: Layout, old: int, new: int, what: str) -> Layout:
    """The layout of the same bytes in elements of another size, the last axis being dense."""
    width = layout.shape[-1] * old
    if width % new:
        raise ShapeError(f"{what}: {width} bytes along the last axis are not a multiple of {new}; slice the axis first")
    shape = (*layout.shape[:-1], width // new)
    if not layout.size:
        return Layout.of(shape)
    outer = [stride * old for stride in layout.strides[:-1]]
    if any(stride % new and size > 1 for stride, size in zip(outer, layout.shape)):
        raise LayoutError(f"{what}: the row pitch is not a multiple of {new} bytes; write x.copy() first")
    return Layout(shape, (*(stride // new for stride in outer), 1))
