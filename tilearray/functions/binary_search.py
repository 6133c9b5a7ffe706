"""Binary search in a sorted array, on a device that runs it as an expression: one launch for all values.

Both sides are compared in one dtype. Floats of 8 and 16 bits become float32, and bools uint8: all of their values are
there, in the same order. NaN is the last of all, as in sorting.

Of many values, each is searched in its bucket only: among elements whose keys, those of
`tilearray.functions.sort_keys`, have the same upper bits in their distances from the least key, or among floats in an
interval. A bucket has few elements, while the first steps of a search among all of them read memory in places that are
far from each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import FixedCall, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import Signature, empty_array, signature_of
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like
from tilearray.functions.sort_keys import key_dtype, key_of
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import fill, store

BUCKETS, MOST_BUCKETS = 1 << 20, 1 << 24
"""The most buckets, of few sorted elements and of many: as many as give most buckets elements of one sector only."""
FEW_VALUES = 1 << 20
"""The number of values below which buckets take longer to find than they save, as with fewer values than buckets."""
FEW_SORTED = 1 << 10
"""The number of sorted elements below which the same holds: a search among so few reads memory that is near."""
SPREAD = 4
"""The buckets for each of few sorted elements, so that most buckets have none or one."""


def search(x: Any, values: Any, dtype: np.dtype, side: str) -> Any:
    """Return where values belong in a sorted array of one axis, as int64.

    Parameters
    ----------
    x : Array
        In the order of `sort`.
    values : Array
        On the same device.
    dtype : numpy.dtype
        Both are rounded to it before they are compared.
    side : {"left", "right"}
        Whether equal elements of `x` lie after the place, or before it.
    """
    known, size = _search_for(x, values, dtype, side), x.size
    out = empty_array(values.__class__, known.out, STATE.get().stream)
    if not size:
        return fill(out, 0, "searchsorted")
    ordered, wanted = _dense(_comparable(x, dtype)), _comparable(values, dtype)
    found = _buckets_for(ordered, wanted)
    if found is not None:
        return run_fixed(_searching_in_buckets(wanted.dtype, side), [*found, size, wanted], out)
    known.call.run([ordered._make(ordered._buffer, ordered._offset, known.memory), size, wanted], out)
    return out


def bins_of(edges: Any, values: Any, dtype: np.dtype) -> Any:
    """Return the numbers of the bins of values between sorted edges, two or more: from 1 on, and 0 for those in none.

    The last edge belongs to the last bin. `dtype` is that of `search`.
    """
    known = _search_for(edges, values, dtype, "bin")
    out = empty_array(values.__class__, known.out, STATE.get().stream)
    ordered, wanted = _dense(_comparable(edges, dtype)), _comparable(values, dtype)
    memory = ordered._make(ordered._buffer, ordered._offset, known.memory)
    known.call.run([memory, edges.size - 1, wanted], out)
    return out


class _Search:
    """All parts of a search that follow from the signatures of the sorted array and of values, the dtype and the side.

    The side may also be "bin": a search for bins.

    Attributes
    ----------
    out : Signature
        The result.
    memory : Signature
        The sorted array, in the dtype in which it is compared, for each value.
    call : FixedCall
        Searches among all elements.
    """

    __slots__ = ("call", "memory", "out")

    def __init__(self, x: Signature, values: Signature, dtype: np.dtype, side: str) -> None:
        layout, device = values.layout, values.device
        compared = _COMPARED.get(dtype, dtype)
        self.out = signature_of(Layout.of(layout.shape), dtypes.int64, device)
        as_it_is = x.dtype == compared and x.layout.strides == (1,)
        everywhere = Layout(layout.shape, (0,) * layout.ndim)
        self.memory = signature_of(everywhere, compared, device, x.aligned or not as_it_is)
        self.call = FixedCall(_binning(compared) if side == "bin" else searching(compared, side))


_SEARCHES: TwoGenerations[_Search] = TwoGenerations(512)


def _search_for(x: Any, values: Any, dtype: np.dtype, side: str) -> _Search:
    asked = (x._signature, values._signature, dtype, side)
    return _SEARCHES.get(asked) or _SEARCHES.put(asked, _Search(*asked))


def _dense(x: Any) -> Any:
    """A sorted array without gaps: itself, or a copy."""
    if x._signature.layout.strides == (1,):
        return x
    dense = new_like(x, x.shape, x.dtype)
    store(dense, x)
    return dense


def contained(x: Any, values: Any, dtype: np.dtype) -> Any:
    """Return whether values are among the elements of a sorted array, which has some: one of them is at their place.

    Parameters are those of `search`.
    """
    ordered, wanted = _comparable(x, dtype), _comparable(values, dtype)
    found = _buckets_for(ordered, wanted)
    if found is not None:
        return run_fixed(_containing_in_buckets(wanted.dtype), [*found, x.size, wanted], None)
    return run_fixed(_containing(wanted.dtype), [_for_each(ordered, wanted), x.size, wanted], None)


_COMPARED = {
    **{dtype: dtypes.float32 for dtype in dtypes.ALL if dtypes.info(dtype).kind == "float" and dtype.itemsize < 4},
    dtypes.bool_: dtypes.uint8,
}
"""The dtypes as which kernels compare others."""


def _comparable(x: Any, dtype: np.dtype) -> Any:
    """An array in a dtype, or in one that kernels compare as it."""
    found = x if x._signature.dtype is dtype else astype(x, dtype, copy=False)
    compared = _COMPARED.get(dtype)
    return found if compared is None else astype(found, compared)


def _for_each(memory: Any, values: Any) -> Any:
    """A view of memory that has it for each of some values."""
    layout = values._signature.layout
    return memory._view(Layout(layout.shape, (0,) * layout.ndim))


class Buckets(NamedTuple):
    """For each value: the keys of a sorted array, where each bucket starts and the last one ends, and their rule."""

    keys: Any
    starts: Any
    rule: Any


def _buckets_for(ordered: Any, values: Any) -> Buckets | None:
    """Find the buckets of a dense sorted array; None if a search of all elements takes less time."""
    if values.size < FEW_VALUES:
        return None
    count = bucket_count(ordered.size)
    if values.size < count or not FEW_SORTED <= ordered.size < 1 << 31:
        return None
    keys = run_fixed(_keying(ordered.dtype), [ordered], new_like(ordered, ordered.shape, key_dtype(ordered.dtype)))
    rule, starts = new_like(ordered, (1,), dtypes.float64), new_like(ordered, (count + 1,), dtypes.int32)
    run_fixed(_dividing(ordered.dtype), [_for_each(keys, rule), ordered.size, count], rule)
    run_fixed(_starting(ordered.dtype), [_for_each(keys, starts), _for_each(rule, starts), ordered.size], starts)
    return Buckets(_for_each(keys, values), _for_each(starts, values), _for_each(rule, values))


def bucket_count(size: int) -> int:
    """Return the most buckets for a number of sorted elements.

    >>> [bucket_count(size).bit_length() - 1 for size in (1000, 2**17, 2**20, 2**23, 2**25, 2**30)]
    [12, 19, 20, 22, 24, 24]
    """
    bits = (size - 1).bit_length()
    return max(min(SPREAD << bits, BUCKETS), min((1 << bits) // 2, MOST_BUCKETS))


@cache
def _keying(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds the keys of elements."""
    builder = ExpressionBuilder()
    return FixedOperation("search", builder.build([key_of(builder, builder.array(dtype), dtype)], [key_dtype(dtype)]))


def _of_floats(dtype: np.dtype) -> bool:
    return dtypes.info(dtype).kind == "float"


@cache
def _dividing(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds how sorted keys are divided into a number of buckets at most."""
    builder = ExpressionBuilder()
    keys, size, count = builder.memory(key_dtype(dtype)), builder.number(dtypes.int64), builder.number(dtypes.int64)
    rule = builder.node("rule", keys, size, count, _of_floats(dtype))
    return FixedOperation("search", builder.build([rule], [dtypes.float64]))


@cache
def _starting(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds where each bucket of sorted keys starts."""
    builder = ExpressionBuilder()
    keys, rule, size = builder.memory(key_dtype(dtype)), builder.memory(dtypes.float64), builder.number(dtypes.int64)
    start = builder.node("start", keys, size, builder.node("index"), rule, _of_floats(dtype))
    return FixedOperation("search", builder.build([builder.cast(start, dtypes.int64, dtypes.int32)], [dtypes.int32]))


class _InBuckets(ExpressionBuilder):
    """A builder with sorted keys, the starts of buckets, a value, its key, and the key's place."""

    def __init__(self, dtype: np.dtype, side: str) -> None:
        super().__init__()
        self.keys, starts = self.memory(key_dtype(dtype)), self.memory(dtypes.int32)
        rule, self.size, self.value = self.memory(dtypes.float64), self.number(dtypes.int64), self.array(dtype)
        self.key = key_of(self, self.value, dtype)
        known = starts, rule, _of_floats(dtype)
        self.place = self.node("bucketed", self.keys, self.size, self.key, side, *known)


@cache
def _searching_in_buckets(dtype: np.dtype, side: str) -> FixedOperation:
    """Return the operation that finds the places of values among sorted keys."""
    builder = _InBuckets(dtype, side)
    return FixedOperation("searchsorted", builder.build([builder.place], [dtypes.int64]))


@cache
def _containing_in_buckets(dtype: np.dtype) -> FixedOperation:
    """Return the operation that compares the keys of values with those at their places. NaN equals nothing."""
    builder = _InBuckets(dtype, "left")
    place = builder.call("inside", (builder.place, builder.size), dtypes.int64, "tl.minimum({x}, {y} - 1)")
    found = builder.node("gather", builder.keys, place)
    same = builder.call("equal", (found, builder.key, builder.value), dtypes.bool_, "({x} == {y}) & ({z} == {z})")
    return FixedOperation("isin", builder.build([same], [dtypes.bool_]))


@cache
def _containing(dtype: np.dtype) -> FixedOperation:
    """Return the operation that compares values with the elements at their places in a sorted array."""
    builder = ExpressionBuilder()
    memory, count, value = builder.memory(dtype), builder.number(dtypes.int64), builder.array(dtype)
    place = builder.node("search", memory, count, value, "left")
    place = builder.call("inside", (place, count), dtypes.int64, "tl.minimum({x}, {y} - 1)")
    found = builder.node("gather", memory, place)
    same = builder.call("equal", (found, value), dtypes.bool_, "{x} == {y}")
    return FixedOperation("isin", builder.build([same], [dtypes.bool_]))


@cache
def searching(dtype: np.dtype, side: str) -> FixedOperation:
    """Return the operation that finds the places of values in a sorted array of as many elements as a number says."""
    builder = ExpressionBuilder()
    memory, count, value = builder.memory(dtype), builder.number(dtypes.int64), builder.array(dtype)
    place = builder.node("search", memory, count, value, side)
    return FixedOperation("searchsorted", builder.build([place], [dtypes.int64]))


@cache
def _binning(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds the bins of values: the edges, the number of bins, and values."""
    builder = ExpressionBuilder()
    memory, count, value = builder.memory(dtype), builder.number(dtypes.int64), builder.array(dtype)
    place, last = builder.node("search", memory, count, value, "right"), builder.node("gather", memory, count)
    bin = builder.call("bin", (place, value, last), dtypes.int64, "tl.where({y} <= {z}, {x}, 0)")
    return FixedOperation("histogram", builder.build([bin], [dtypes.int64]))
