"""The largest or smallest elements along an axis: `top_k`, on every device.

The result is the beginning of a stable sort. A device that sorts by expressions need not sort all elements:

- Of one long row it counts the digits of keys, from the highest, and keeps elements whose highest digits may belong to
  the result, until they are few. Only these are sorted.
- Of several rows it finds the largest element of each group of neighbours, and sorts the elements of the k groups that
  come first. An element of a group behind them is none of the first k, since each of these groups has one before it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Generic, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.execute import run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import HostData
from tilearray.errors import ShapeError
from tilearray.functions.arguments import as_array, check_kind, result, sorting_of, without_derivative
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.masks import places_of
from tilearray.functions.indexing.take import along_axis
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import dense, expand_dims, new_like, reshape
from tilearray.functions.reduce import reduce
from tilearray.functions.reductions import sum
from tilearray.geometry.shapes import as_int, normalize_axis
from tilearray.geometry.sorting import DIGIT, DIGITS, blocks_of
from tilearray.ops.arithmetic import (
    add,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    choose,
    less,
    minimum,
)
from tilearray.ops.options import checked_flag
from tilearray.ops.row import REAL

FEW = 1 << 16
"""The number of elements that are sorted without a further count."""
SHARE = 8
"""The number, for each element that is wanted."""
MANY = 1 << 18
"""The least elements of rows that are taken in groups. Fewer are sorted sooner than ten launches follow each other."""


class TopK(NamedTuple, Generic[A]):
    """The result of `top_k`."""

    values: A
    indices: A


def top_k(x: A | HostData, /, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True) -> TopK[A]:
    """Return the k largest or smallest elements along an axis, and their indices.

    Parameters
    ----------
    x : Array
        Of a real dtype or bool.
    k : int
        From 0 to the size of the axis.
    axis : int
    largest : bool
        False returns the smallest elements.
    sorted : bool
        False allows any order. The elements are in order all the same.

    Returns
    -------
    values : Array
        In the dtype of `x`: the first k elements of ``sort(x, axis, descending=largest)``.
    indices : Array
        Their indices, int64: the first k of ``argsort(x, axis, descending=largest)``.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or fewer than `k` elements along it.
    DTypeError
        If `x` is complex.

    Notes
    -----
    NaN is larger than all numbers, as in `sort`, and of equal elements those of lower indices come first. A GPU counts
    the digits of a row's keys if the row is long, and waits for each count.

    Examples
    --------
    >>> import tilearray as ta
    >>> found = ta.top_k(ta.asarray([3, 9, 5, 9]), 3)
    >>> found.values.tolist(), found.indices.tolist()
    ([9, 9, 5], [1, 3, 2])
    >>> ta.top_k(ta.asarray([[4, 1], [2, 8]]), 1, largest=False).values.tolist()
    [[1], [2]]
    """
    largest = checked_flag("top_k", "largest", largest)
    checked_flag("top_k", "sorted", sorted)
    x = as_array("top_k", x)
    check_kind("top_k", x.dtype, REAL)
    axis = normalize_axis(axis, x.ndim, "top_k")
    k = _checked(k, x.shape[axis])
    places = _places(without_derivative(x), k, axis, largest)
    return TopK(along_axis(x, places, axis, inside=True), places)


def _checked(k: Any, extent: int) -> int:
    k = as_int(k, "top_k", "k")
    if not 0 <= k <= extent:
        raise ShapeError(f"top_k: expected k from 0 to {extent}, the size of the axis, got {k}; write k={extent}")
    return k


def _places(x: Any, k: int, axis: int, largest: bool) -> Any:
    """The indices of the first k elements along an axis."""
    first = (*[slice(None)] * axis, slice(k))
    if not k:
        return new_like(x, (*x.shape[:axis], 0, *x.shape[axis + 1 :]), dtypes.int64)
    sorting = sorting_of("top_k", x)
    if sorting is not None:
        order = sorting.argsort(to_numpy(x), axis, largest, True)
        return result(np.ascontiguousarray(order[first]), x)
    from tilearray.functions.ordering import order_along  # here: few programs need it

    if x.size == x.shape[axis] > most_sorted(k):
        places = _selected(dense(reshape(x, (1, x.size))), k, largest)
        return reshape(places, (*x.shape[:axis], k, *x.shape[axis + 1 :]))
    if x.size >= MANY and axis == x.ndim - 1 and x.device.functions is None and _is_grouped(x.shape[axis], k):
        return _of_groups(x, k, largest)
    return get(order_along(x, axis, largest), first)


def most_sorted(k: int) -> int:
    """Return the most elements that are sorted to find the first k."""
    return max(FEW, SHARE * k)


# --- several rows -----------------------------------------------------------------------------------------------------


def _shift_of(extent: int, k: int) -> int:
    """Return the binary logarithm of the size of groups: there are about as many as elements in the first k of them."""
    return (extent // k).bit_length() // 2


def _is_grouped(extent: int, k: int) -> bool:
    """Return whether groups leave a quarter of a row to sort, or less."""
    shift = _shift_of(extent, k)
    return shift > 0 and (extent >> shift) + (k << shift) <= extent // 4


def _of_groups(x: Any, k: int, largest: bool) -> Any:
    """The indices of the first k elements of each row, by the first k groups of neighbours."""
    from tilearray.functions.ordering import order_along, sorted_rows

    *rows, extent = x.shape
    shift, last = _shift_of(extent, k), len(rows)
    groups, front = extent >> shift, (*[slice(None)] * last,)
    in_groups = reshape(get(x, (*front, slice(groups << shift))), (*rows, groups, 1 << shift))
    lowest = "nanmin" if dtypes.info(x.dtype).kind == "float" else "min"  # NaN is larger than all numbers
    extremes = reduce("max" if largest else lowest, in_groups, (last + 1,), x.dtype, False)
    chosen = sorted_rows(dense(get(order_along(extremes, last, largest), (*front, slice(k)))))
    found = along_axis(in_groups, expand_dims(chosen, axis=-1), last, inside=True)
    found = reshape(found, (*rows, k << shift))
    if groups << shift < extent:
        found = concat([found, get(x, (*front, slice(groups << shift, None)))], axis=last)
    order = get(order_along(found, last, largest), (*front, slice(k)))
    group = along_axis(chosen, minimum(bitwise_right_shift(order, shift), k - 1), last, inside=True)
    place = add(bitwise_left_shift(group, shift), bitwise_and(order, (1 << shift) - 1))
    return choose(less(order, k << shift), place, add(order, (groups - k) << shift))


# --- one long row -----------------------------------------------------------------------------------------------------


def _selected(row: Any, k: int, largest: bool) -> Any:
    """The indices of the first k elements of a dense row, without a sort of all."""
    from tilearray.functions.ordering import order_of_rows
    from tilearray.functions.sort_keys import key_bits

    bits = key_bits(row.dtype)
    flip = (1 << bits) - 1 if largest else 0
    shift, prefix, left = bits, 0, k
    found = row.size
    while shift > 0 and found > most_sorted(k):
        width = min(DIGIT, shift)
        shift -= width
        ends = np.cumsum(_counts(row, shift, flip, prefix))
        digit = int(np.searchsorted(ends, left))
        found = k - left + int(ends[digit])
        left -= int(ends[digit - 1]) if digit else 0
        prefix = prefix << width | digit
    places = _those(row, shift, flip, prefix, "<=") if found <= most_sorted(k) else _ties(row, flip, prefix, left)
    order = order_of_rows(reshape(_taken(row, places), (1, places.size)), largest)
    return _taken(places, get(reshape(order, (places.size,)), slice(k)))


def _counts(row: Any, shift: int, flip: int, prefix: int) -> np.ndarray:
    """How often each digit comes among the elements with the same higher digits."""
    blocks = new_like(row, (1, DIGITS * blocks_of(1, row.size)), dtypes.int32)
    run_fixed(_counting(row.dtype), [row, shift, flip, prefix], blocks)
    return to_numpy(sum(reshape(blocks, (DIGITS, -1)), axis=1, dtype=dtypes.int64))


def _ties(row: Any, flip: int, threshold: int, left: int) -> Any:
    """The indices of the elements with keys below a threshold, and of the first ones with that key."""
    equal = get(_those(row, 0, flip, threshold, "=="), slice(left))
    return concat([_those(row, 0, flip, threshold, "<"), equal])


def _those(row: Any, shift: int, flip: int, prefix: int, how: str) -> Any:
    """The indices of the elements whose higher digits compare with a number."""
    flat = reshape(row, (row.size,))
    compared = run_fixed(
        _comparing(row.dtype, how), [flat, shift, flip, prefix], new_like(row, flat.shape, dtypes.bool_)
    )
    return places_of(compared)[0]


def _taken(x: Any, places: Any) -> Any:
    return along_axis(reshape(x, (x.size,)), places, 0, inside=True)


@cache
def _counting(dtype: np.dtype) -> FixedOperation:
    """Return the operation that counts the digits of blocks, where the digits above are those of a prefix."""
    from tilearray.functions.sort_keys import Keyed

    builder = Keyed(dtype, True)
    digit = builder.digit()
    prefix = builder.number(builder.key_dtype)
    same = f"tl.where(({{x}} >> {{y}}) >> {DIGIT} == {{z}}, {{w}}, {DIGITS})"
    counted = builder.call("same", (builder.key, builder.shift, prefix, digit), dtypes.int32, same)
    return FixedOperation("top_k", builder.build([builder.node("digits", counted, False)], [dtypes.int32]))


@cache
def _comparing(dtype: np.dtype, how: str) -> FixedOperation:
    """Return the operation that compares the digits of keys from a shift on with a number."""
    from tilearray.functions.sort_keys import Keyed

    builder = Keyed(dtype, True)
    prefix = builder.number(builder.key_dtype)
    found = builder.call("compare", (builder.key, builder.shift, prefix), dtypes.bool_, f"({{x}} >> {{y}}) {how} {{z}}")
    return FixedOperation("top_k", builder.build([found], [dtypes.bool_]))
