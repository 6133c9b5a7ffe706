"""Joining and splitting by other names than `concat`, `stack` and slices. The parts of a split are views."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros_like
from tilearray.dtypes import DTypeLike
from tilearray.errors import OperandError, ShapeError, type_name
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.conversion import to_numpy
from tilearray.functions.joining import check_sizes, concat, placed
from tilearray.functions.manipulation import broadcast_to, expand_dims, reshape
from tilearray.geometry.shapes import as_int, as_shape, normalize_axis
from tilearray.promotion.storing import Casting


def atleast_1d(*arrays: Any) -> Any:
    """Return arrays with at least one axis: a number becomes an array of one element.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.atleast_1d(2.5), ta.atleast_1d([1, 2], 3)
    (Array([2.5], dtype=float32, device='cpu'), (Array([1, 2], dtype=int64, device='cpu'), Array([3], dtype=int64, \
device='cpu')))
    """
    return _each("atleast_1d", arrays, lambda x: x if x.ndim else reshape(x, 1))


def atleast_2d(*arrays: Any) -> Any:
    """Return arrays with at least two axes: a new axis comes first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.atleast_2d([1, 2]).shape
    (1, 2)
    """
    return _each("atleast_2d", arrays, _with_rows)


def atleast_3d(*arrays: Any) -> Any:
    """Return arrays with at least three axes: shape (N,) becomes (1, N, 1), and (M, N) becomes (M, N, 1).

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.atleast_3d([1, 2]).shape, ta.atleast_3d([[1, 2]]).shape
    ((1, 2, 1), (1, 2, 1))
    """
    return _each("atleast_3d", arrays, lambda x: x if x.ndim > 2 else expand_dims(_with_rows(x), 2))


def _each(name: str, arrays: tuple[Any, ...], function: Callable[[Array], Array]) -> Any:
    found = tuple([function(as_array(name, x)) for x in arrays])
    return found[0] if len(found) == 1 else found


def _with_rows(x: Array) -> Array:
    return x if x.ndim > 1 else reshape(x, (1, x.size))


def _members(function: str, arrays: Any) -> list[Array]:
    """The arrays of a sequence; the first axis of one array counts as a sequence, as in NumPy."""
    if not issubclass(type(arrays), (list, tuple, Array)) or not len(cast("Sequence[Any]", arrays)):
        got = "an empty one" if isinstance(arrays, (list, tuple)) else type_name(cast(object, arrays))
        raise OperandError(
            f"{function}: expected a list or tuple of at least one array, got {got}; write ta.{function}([x, y])"
        )
    return all_arrays(function, list(cast("Sequence[Any]", arrays)), "arrays[{}]")


def hstack(arrays: Sequence[Any], /, *, dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Array:
    """Return arrays side by side: joined along the second axis, 1-d arrays along the first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.hstack([[1, 2], [3]])
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    parts = [atleast_1d(x) for x in _members("hstack", arrays)]
    return concat(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def vstack(arrays: Sequence[Any], /, *, dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Array:
    """Return arrays one below the other: joined along the first axis, 1-d arrays as rows.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([_with_rows(x) for x in _members("vstack", arrays)], 0, dtype=dtype, casting=casting)


def dstack(arrays: Sequence[Any], /) -> Array:
    """Return arrays one behind the other: joined along the third axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([atleast_3d(x) for x in _members("dstack", arrays)], 2)


def column_stack(arrays: Sequence[Any], /) -> Array:
    """Return 1-d arrays as the columns of a matrix; matrices are joined as they are.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in _members("column_stack", arrays)]
    return concat(parts, 1)


def block(arrays: Any, /) -> Array:
    """Return the array of nested lists of blocks: the innermost lists are joined along the last axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.block([[ta.ones((1, 2)), ta.zeros((1, 1))], [ta.zeros((1, 3))]]).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    depth = _depth(arrays)
    ndim = max(depth, *_ndims(arrays))
    shape, blocks = _laid_out(arrays, depth, ndim)
    return placed("block", [x for x, _ in blocks], [start for _, start in blocks], shape)


def _depth(arrays: Any) -> int:
    return 1 + max((_depth(part) for part in arrays), default=0) if isinstance(arrays, list) else 0  # pyright: ignore[reportUnknownVariableType]


def _ndims(arrays: Any) -> list[int]:
    if isinstance(arrays, list):
        return [0, *itertools.chain.from_iterable(_ndims(part) for part in arrays)]  # pyright: ignore[reportUnknownVariableType]
    return [as_array("block", arrays).ndim]


_Blocks = list[tuple[Array, tuple[int, ...]]]


def _laid_out(arrays: Any, depth: int, ndim: int) -> tuple[tuple[int, ...], _Blocks]:
    """Return the shape of nested lists of blocks, and each block with its start along every axis."""
    if not isinstance(arrays, list):
        x = as_array("block", arrays)
        if depth:
            raise ShapeError(
                f"block: expected all arrays in equally many lists, got one in {depth} less than others; write [x]"
            )
        x = reshape(x, (1,) * (ndim - x.ndim) + x.shape)
        return x.shape, [(x, (0,) * ndim)]
    if not arrays:
        raise ShapeError("block: expected lists with at least one array, got an empty list; write ta.empty(shape)")
    axis = ndim - depth
    parts = [_laid_out(part, depth - 1, ndim) for part in cast("list[Any]", arrays)]
    check_sizes("block", [shape for shape, _ in parts], axis)
    end, blocks = 0, _Blocks()
    for shape, inner in parts:
        blocks += [(x, (*start[:axis], start[axis] + end, *start[axis + 1 :])) for x, start in inner]
        end += shape[axis]
    first, _ = parts[0]
    return (*first[:axis], end, *first[axis + 1 :]), blocks


def append(x: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values joined to its end; without an axis the elements of both, as one axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.append(ta.asarray([1, 2]), 3)
    Array([1, 2, 3], dtype=int64, device='cpu')
    """
    return concat(all_arrays("append", [x, values]), axis)


# --- splitting -----------------------------------------------------------------------------------------------------


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return the views of consecutive parts of an axis; the first ones are longer by 1 if the axis does not divide.

    Parameters
    ----------
    x : Array
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which a new part begins.
    axis : int

    Raises
    ------
    ShapeError
        If the number of parts is less than 1, or `x` has no such axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.array_split(ta.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    array = as_array("array_split", x)
    place = normalize_axis(axis, array.ndim, "array_split")
    return _parts(array, place, _edges("array_split", array.shape[place], indices_or_sections))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Return the views of parts of an axis: of equal parts, or of those that begin at given indices.

    Raises
    ------
    ShapeError
        If the axis does not divide into equal parts.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.split(ta.arange(5), [1, 3])]
    [[0], [1, 2], [3, 4]]
    """
    return _split("split", as_array("split", x), indices_or_sections, axis)


def hsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return the views of parts of the second axis; of the first one of a 1-d array. See `split`.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.hsplit(ta.asarray([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    array = as_array("hsplit", x)
    return _split("hsplit", _with_axes("hsplit", array, 1), indices_or_sections, 0 if array.ndim == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return the views of parts of the first axis of an array with at least two. See `split`.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.vsplit(ta.asarray([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return _split("vsplit", _with_axes("vsplit", as_array("vsplit", x), 2), indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """Return the views of parts of the third axis. See `split`.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.dsplit(ta.asarray([[[1, 2]]]), 2)]
    [[[[1]]], [[[2]]]]
    """
    return _split("dsplit", _with_axes("dsplit", as_array("dsplit", x), 3), indices_or_sections, 2)


def _with_axes(function: str, x: Array, least: int) -> Array:
    if x.ndim < least:
        raise ShapeError(f"{function}: expected at least {least} axes, got shape {x.shape}; write ta.split(x, n, axis)")
    return x


def _split(function: str, x: Array, sections: Any, axis: int) -> list[Array]:
    place = normalize_axis(axis, x.ndim, function)
    edges = _edges(function, x.shape[place], sections)
    if not _is_sequence(sections) and x.shape[place] % len(edges):
        raise ShapeError(
            f"{function}: expected an axis that divides into {len(edges)} equal parts, got size {x.shape[place]}; "
            f"write ta.array_split"
        )
    return _parts(x, place, edges)


def _edges(function: str, size: int, sections: Any) -> list[tuple[int | None, int | None]]:
    """The start and the stop of each part."""
    if _is_sequence(sections):
        host = to_numpy(sections) if isinstance(sections, Array) else sections
        stops = [as_int(one, function, "indices") for one in host]
        return list(zip([0, *stops], [*stops, None]))
    count = as_int(sections, function, "sections")
    if count < 1:
        raise ShapeError(f"{function}: expected at least one part, got {count}; write 1 for the array itself")
    if count > MOST_PARTS:
        raise ShapeError(
            f"{function}: expected at most 2**31 - 1 parts, got {count}; write {max(size, 1)} for elements"
        )
    sizes = [size // count + (place < size % count) for place in range(count)]
    stops = list(itertools.accumulate(sizes))
    return list(zip([0, *stops], stops))


MOST_PARTS = 2**31 - 1
_SEQUENCES: tuple[Any, ...] = (list, tuple, range)
_ARRAYS: tuple[Any, ...] = (Array, np.ndarray)


def _is_sequence(sections: Any) -> bool:
    return issubclass(type(sections), _SEQUENCES) or (issubclass(type(sections), _ARRAYS) and sections.ndim > 0)


def _parts(x: Array, axis: int, edges: list[tuple[int | None, int | None]]) -> list[Array]:
    before = (slice(None),) * axis
    return [x[(*before, slice(start, stop))] for start, stop in edges]


def resize(x: Any, new_shape: Any) -> Array:
    """Return the elements in C order in another shape: repeated if there are too few, the first ones if too many.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.resize(ta.asarray([1, 2, 3]), (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    flat = reshape(as_array("resize", x), -1)
    shape = as_shape(new_shape, "resize")
    size = math.prod(shape)
    if not flat.size:
        return zeros_like(flat, shape=shape)
    copies = -(-size // flat.size)
    spread = reshape(broadcast_to(flat, (copies, flat.size)), -1) if copies > 1 else flat.copy()
    return reshape(spread[:size], shape)
