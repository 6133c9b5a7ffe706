"""Repeating: every element several times, or whole arrays laid side by side.

One count for all elements is an assignment by broadcasting along an axis that the result gains by a reshape, so no
element is computed. ``tile(x, (3, 2))`` of a row of 4, for example, reshapes the result of shape (3, 8) into axes of
copies and axes of elements, and assigns the row to all of it in one launch::

    result (3, 8) -> (3, 1, 2, 4)    copies and sizes of each axis in turn
    x      (4,)   -> (1, 1, 1, 4)

With a count for each element, the element of a place is the first one whose sum of counts is beyond the place.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Indexing
from tilearray.engine.devices import CPU, common_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, again, is_plain, remember, remember_launch
from tilearray.engine.signature import ArrayBase, HostData, Signature, dense_signature, over
from tilearray.errors import DTypeError, ShapeError
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype, single, to_numpy
from tilearray.functions.indexing.gather import gather_selected
from tilearray.functions.indexing.keys import Selection, host_index
from tilearray.functions.indexing.take import take
from tilearray.functions.indexing.views import get, reshaped
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import new_like, reshape
from tilearray.functions.reductions import min
from tilearray.functions.scans import scan
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int, as_ints, normalize_axis
from tilearray.ops.execute import store
from tilearray.ops.moves import assign


def repeat(x: A | HostData, /, repeats: Any, axis: int | None = None) -> A:
    """Return an array with every element repeated, the copies next to each other.

    Parameters
    ----------
    x : Array
    repeats : int, or Array, ndarray or list of integers
        The number of copies: one count for all elements, or one for each.
    axis : int or None
        The axis that grows; None repeats the elements in C order, as one axis.

    Raises
    ------
    ShapeError
        If `repeats` is negative or not an integer, there are not as many counts as elements, or `x` has no such axis.
    DTypeError
        If the counts do not have an integer dtype.
    DeviceError
        If the counts are an Array on a GPU, and `x` is not on the same one.

    Notes
    -----
    If the counts are on a GPU, the call waits once for their sum, which is the size of the result.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.repeat(ta.asarray([[1, 2], [3, 4]]), 2, axis=1)
    Array([[1, 1, 2, 2],
           [3, 3, 4, 4]], dtype=int64, device='cpu')
    >>> ta.repeat(ta.asarray([1, 2]), [3, 1]).tolist()
    [1, 1, 1, 2]
    """
    words = ("repeat", repeats, axis) if repeats.__class__ is int and is_plain(axis) else None
    known = again(words, x)
    if known is not None:
        return known
    x = as_array("repeat", x)
    shape = x.shape
    if issubclass(type(repeats), (ArrayBase, np.ndarray, list, tuple)):
        return _each_repeated(x, repeats, axis)
    count = _count(repeats)
    place = None if axis is None else normalize_axis(axis, len(shape), "repeat")
    sizes = (x.size * count,) if place is None else _scaled(shape, place, count)
    indexing = x._signature.device.backend.indexing
    if indexing is not None:
        signature = dense_signature(sizes, x.dtype, CPU, "repeat")
        times = count if x.size else 0  # of no elements NumPy refuses more copies than it can count
        return _repeated_here(words, x, signature, indexing, times, place)
    last = len(shape) - 1 if place is None else place
    before, after = shape[: last + 1], shape[last + 1 :]
    spread = _reshaped(x, (*before, 1, *after))
    return _of_copies(words, x, (*before, count, *after), spread, sizes)


def _repeated_here(
    words: Words | None, x: A, signature: Signature, indexing: Indexing, count: int, axis: int | None
) -> A:
    """With one count on the host: a new array of a signature."""

    def repeated(stream: Any, x: A) -> A:
        return over(indexing.repeat(CPU.backend.elements(x), count, axis).ravel(), signature, x.__class__)

    if words is not None:
        remember(words, (x,), repeated)
    return repeated(None, x)


def _reshaped(x: A, shape: tuple[int, ...]) -> A:
    """The view of another shape that an axis joins or splits."""
    view = reshaped(x, shape)
    assert view is not None
    return view


def _each_repeated(x: A, repeats: Any, axis: Any) -> A:
    """With a count for each element: `take` with each index as often as its count."""
    counts: Any = repeats if isinstance(repeats, ArrayBase) else host_index(repeats, "repeat")
    flat, place = (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, "repeat"))
    size = flat.shape[place]
    if counts.size and counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat: expected integers as counts, got {counts.dtype}; write repeats.astype('int64')")
    if counts.shape not in ((size,), (1,), ()):
        raise ShapeError(
            f"repeat: expected one count or {size}, got counts of shape {counts.shape}; write one for each element"
        )
    if isinstance(counts, ArrayBase) and not counts.device.backend.on_host:
        common_device("repeat", [x._signature, counts._signature])
        return _repeated_there(flat, counts, place)
    numbers = to_numpy(counts) if isinstance(counts, ArrayBase) else counts
    if numbers.size:
        _count(int(numbers.min()), "counts")
    return take(flat, np.repeat(np.arange(size), numbers.astype(np.int64)), axis=place)


def _repeated_there(x: A, counts: Any, axis: int) -> A:
    """With counts on a device that reads their sum and the least of them."""
    if counts.shape != (x.shape[axis],):
        return repeat(x, _count(single(counts, "repeat"), "counts"), axis)
    if not counts.size:
        return take(x, np.arange(0), axis=axis)
    ends = scan("repeat", "add", astype(counts, dtypes.int64, copy=False), 0, dtypes.int64)
    least = astype(reshape(min(counts), 1), dtypes.int64, copy=False)
    smallest, total = to_numpy(concat([least, get(ends, slice(-1, None))])).tolist()
    _count(smallest, "counts")
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    if not total:
        return new_like(x, shape)
    places = owners_of(ends, total)
    return gather_selected(Selection(x, (axis,), (places,), places.shape, axis, True))


def owners_of(ends: A, total: int) -> A:
    """Return for each of `total` places, more than none, the first element whose end is beyond it.

    Examples
    --------
    >>> import tilearray as ta
    >>> owners_of(ta.asarray([2, 2, 5], device="cuda"), 5).tolist()  # doctest: +SKIP
    [0, 0, 2, 2, 2]
    """
    places = new_like(ends, (total,))
    run_fixed(_placing(), [ends._view(Layout((total,), (0,))), ends.size], places)
    return places


@cache
def _placing() -> FixedOperation:
    """Return the operation that finds the element of each place: the sums of counts, and how many they are."""
    builder = ExpressionBuilder()
    ends, count = builder.memory(dtypes.int64), builder.number(dtypes.int64)
    found = builder.node("search", ends, count, builder.node("index"), "right")
    return FixedOperation("repeat", builder.build([found], [dtypes.int64]))


def _count(repeats: Any, name: str = "repeats") -> int:
    count = as_int(repeats, "repeat", "repeats")
    if count < 0:
        raise ShapeError(f"repeat: expected {name} >= 0, got {count}; write 0 for no copies")
    return count


def _scaled(shape: tuple[int, ...], axis: int, count: int) -> tuple[int, ...]:
    return (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])


def tile(x: A | HostData, /, reps: int | tuple[int, ...]) -> A:
    """Return copies of an array laid side by side like tiles.

    Parameters
    ----------
    x : Array
    reps : int or tuple of int
        The number of copies along each axis. If there are fewer numbers than axes, or fewer axes than numbers, 1 is put
        in front.

    Raises
    ------
    ShapeError
        If a number of repetitions is negative or not an integer.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.tile(ta.asarray([1, 2]), (2, 3))
    Array([[1, 2, 1, 2, 1, 2],
           [1, 2, 1, 2, 1, 2]], dtype=int64, device='cpu')
    """
    words = ("tile", reps) if is_plain(reps) else None
    known = again(words, x)
    if known is not None:
        return known
    x = as_array("tile", x)
    shape = x.shape
    counts = as_ints(reps, "tile", "reps", "repetitions")
    if any(count < 0 for count in counts):
        raise ShapeError(f"tile: expected reps >= 0, got {counts}; write 0 for no copies")
    ndim = max(len(shape), len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * (ndim - len(shape)) + shape
    pairs = [pair for size, count in zip(sizes, counts) for pair in ((count, 1), (size, size)) if pair[0] != 1]
    spread = reshape(x, tuple([source for _, source in pairs]), copy=False)
    shape = tuple([count * size for count, size in zip(counts, sizes)])
    return _of_copies(words, x, tuple([target for target, _ in pairs]), spread, shape)


def _of_copies(words: Words | None, x: A, parts: tuple[int, ...], source: A, shape: tuple[int, ...]) -> A:
    """A new array like `x` with `source` broadcast into the shape `parts`, in another shape."""
    copies = new_like(x, parts)
    store(copies, source)
    result = _reshaped(copies, shape)
    remember_launch(words, x, assign, [source], result, copies)
    return result
