"""Distinct elements and membership on a device that sorts by expressions.

Many integers that are near each other are marked by bits, one for each that may occur. Many others of at most 32 bits
are sorted by their upper bits only. Each run of equal upper bits then makes a set of its lowest bits. All others are
sorted, and compared with the ones before them. The number of those that differ is the size of the results, so a
call waits for the device once. Complex numbers are in NumPy's order: those without NaN first, by real parts and then by
imaginary ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import leaf_at
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.remembered import Words, again, remember
from tilearray.errors import GradientError
from tilearray.functions.binary_search import contained
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.indexing.gather import gather_selected
from tilearray.functions.indexing.keys import Selection
from tilearray.functions.indexing.masks import compressed, places_of, without_repeats
from tilearray.functions.indexing.scatter import scattering
from tilearray.functions.indexing.take import take
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import c_contiguous, dense, new_like, reshape
from tilearray.functions.ordering import Sample, by_digits, order_along, sample_of, sorted_along
from tilearray.functions.reductions import any
from tilearray.functions.scans import scan
from tilearray.functions.sort_keys import (
    counting_distinct,
    integer_of,
    integers_from,
    key_bits,
    marking,
    narrowed,
    reading_marks,
    starting_runs,
    storing_distinct,
    turned_by,
)
from tilearray.geometry.layout import Layout
from tilearray.geometry.sorting import LONGEST, MOST_SWEPT, OVERFULL, RUN_BITS
from tilearray.ops.arithmetic import (
    bitwise_and,
    bitwise_invert,
    greater_equal,
    less_equal,
    not_equal,
    subtract,
)
from tilearray.ops.execute import fill
from tilearray.ops.number_parts import isnan

_BOOL, _INT64, _UINT64 = dtypes.bool_, dtypes.int64, dtypes.uint64
_LARGEST = 2**63 - 1
_COMPARED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
"""The dtypes of which a kernel compares elements as they are in memory."""

MARKED = 1 << 23
"""The elements from which integers are marked by bits, if they are near each other."""
FEW_BITS = 16
"""The bits of a dtype all of whose integers are near each other."""
MOST_MARKS = 1 << 27
"""The most bits: on an H100, 1e8 elements set them in 1.9 ms, and take longer for more."""
IN_RUNS = 1 << 26
"""The elements from which sets of runs take less time than a sort."""
SET_BITS = 32
"""The most bits of the keys of which runs make sets: half of them are sorted by."""
REMAINDERS = 4093
"""A prime number near the size of a sample."""
WASTED = 8
"""A result is copied if more than one part in so many of its memory is empty."""


class Distinct(NamedTuple):
    """The distinct elements, and all that was asked for about them, as in `tilearray.engine.backend.Unique`."""

    values: Any
    indices: Any
    inverse: Any
    counts: Any


def distinct(x: Any, indices: bool, inverse: bool, counts: bool, *, equal_nan: bool = False) -> Distinct:
    """Return the distinct elements of an array, read in C order.

    Parameters
    ----------
    x : Array
    indices, inverse, counts : bool
        Whether to return where each comes first, which of them each element is, and how often each comes.
    equal_nan : bool
        Whether all NaNs count as one.
    """
    _check_not_differentiated(x)
    words = None if indices or inverse or counts else ("distinct", equal_nan)
    known = again(words, x)
    if known is not None:
        return Distinct(known, None, None, None)
    flat = reshape(dense(x), (x.size,))
    found, sample = (None, None) if indices or inverse or counts else _near_integers(flat)
    if found is None and sample is not None:
        found = _integers_in_runs(flat, sample)
    if found is not None:
        return Distinct(found, None, None, None)
    is_complex = dtypes.info(x.dtype).kind == "complex"
    order = order_by(complex_keys(flat)) if is_complex else None
    if order is None and (indices or inverse):
        order = order_along(flat, 0, False)
    ordered = sorted_along(flat, 0, False, sample) if order is None else taken(flat, order)
    if x.size and order is None and dtypes.info(x.dtype).name in _COMPARED and not counts:
        values = without_repeats(ordered, equal_nan)
        if words is not None and x._signature.layout.contiguous and x.size < MARKED:
            _remember_values(words, x, flat, ordered, equal_nan)
        return Distinct(values, None, None, None)
    is_first = _is_first(ordered, equal_nan)
    if not (indices or counts):
        return Distinct(compressed(ordered, is_first), None, _inverse(order, is_first, x) if inverse else None, None)
    (starts,) = places_of(is_first)
    return Distinct(
        taken(ordered, starts),
        taken(order, starts) if indices else None,
        _inverse(order, is_first, x) if inverse else None,
        _distances(starts, x.size) if counts else None,
    )


def _remember_values(words: Words, x: Any, flat: Any, ordered: Any, equal_nan: bool) -> None:
    """Keep the call of the distinct elements of a dense array: that of its sort, and that of the first ones of runs."""
    plans = STATE.get().plans
    sort = leaf_at(plans, (("sort", False), flat._signature))
    select = leaf_at(plans, (("without_repeats", equal_nan), ordered._signature))
    if sort is not None and select is not None:

        def values(stream: Any, x: Any) -> Any:
            return select(stream, sort(stream, x))

        remember(words, (x,), values)


def _near_integers(flat: Any) -> tuple[Any, Sample | None]:
    """Return the distinct integers, where a bit for each one between them takes less time than a sort; else None.

    The second result is the sample that was taken, for a sort.
    """
    dtype, kind = flat.dtype, dtypes.info(flat.dtype).kind
    if flat.size < MARKED or kind not in ("int", "uint"):
        return None, None
    turned, sample = turned_by(dtype, False), None
    most = min(flat.size, MOST_MARKS)
    if turned.bits > FEW_BITS:
        row = reshape(flat, (1, flat.size))
        sample = sample_of(row)
        if 1 << sample.bits > most:
            return None, sample
        turned = narrowed(row, turned, sample.middle)
    count = 1 << turned.bits
    if count > most:
        return None, sample
    words = fill(new_like(flat, (-(-count // 32),), dtypes.int32), 0, "unique")
    run_fixed(marking(dtype), [flat, turned.base], words)
    memory = words._view(Layout((count,), (0,)))
    found = run_fixed(reading_marks(), [memory], new_like(flat, (count,), _BOOL))
    first = integer_of(turned.base, dtype)
    return compressed(run_fixed(integers_from(dtype), [first], new_like(flat, (count,))), found), sample


def _integers_in_runs(flat: Any, sample: Sample) -> Any:
    """Return the distinct integers, if their keys have few bits and no run of equal upper bits is too long; else None.

    The result may be the first part of memory that has room for all.
    """
    size, dtype, turned = flat.size, flat.dtype, turned_by(flat.dtype, False)
    if not IN_RUNS <= size < MOST_SWEPT or min(turned.bits, sample.bits) > SET_BITS:
        return None
    if _has_long_run(sample.first >> sample.first.dtype.type(RUN_BITS), size):
        return None
    row = reshape(flat, (1, size))
    turned = turned if turned.bits <= SET_BITS else narrowed(row, turned, sample.middle)
    if turned.bits > SET_BITS:
        return None
    base = min(turned.base, (1 << key_bits(dtype)) - (1 << turned.bits))  # so that all runs begin at integers
    first, runs = integer_of(base, dtype), 1 << max(turned.bits - RUN_BITS, 0)
    found = reshape(by_digits(row, turned._replace(base=base), RUN_BITS), (size,))
    memory = found._view(Layout((runs,), (0,)))
    starts = run_fixed(starting_runs(dtype), [memory, size, first], new_like(flat, (runs,), dtypes.int32))
    given = [found, base, starts]
    sizes = run_fixed(counting_distinct(dtype), given, new_like(flat, (runs,), _INT64))
    ends = scan("unique", "add", sizes, 0, _INT64)
    out = run_fixed(storing_distinct(dtype), [*given, ends, first], new_like(flat, (size,)))
    count = to_numpy(get(ends, slice(-1, None))).item()
    if count >= OVERFULL:
        return None
    part = get(out, slice(count))
    return part if count >= size - size // WASTED else c_contiguous(part)


def _has_long_run(upper: np.ndarray, size: int) -> bool:
    """Whether a run is most probably too long, since too many elements of a sample have the same upper bits.

    Upper bits are counted by their remainders: there are nearly as many remainders as elements of a sample, so few
    different upper bits have the same one.

    >>> _has_long_run(np.repeat(7, 4096), 1 << 24), _has_long_run(np.arange(4096) << 4, 1 << 24)
    (True, False)
    """
    most = 8 + 2 * len(upper) * LONGEST // size
    return bool(np.bincount((upper % REMAINDERS).astype(np.intp)).max() > most)


def distinct_rows(rows: Any, indices: bool, inverse: bool, counts: bool) -> Distinct:
    """Return the distinct rows of an array of two axes in the order of their elements, the first of which counts most.

    Parameters are those of `distinct`. A row with NaN differs from all others.
    """
    _check_not_differentiated(rows)
    extent, columns = rows.shape
    keys: list[Any] = []
    for column in reversed(range(columns)):
        key = get(rows, (slice(None), column))
        keys += complex_keys(key) if dtypes.info(rows.dtype).kind == "complex" else [key]
    order = order_by(keys or [new_like(rows, (extent,), _BOOL)])
    ordered = gather_selected(Selection(rows, (0,), (order,), order.shape, 0, True)) if rows.size else rows
    is_first = new_like(rows, (extent,), _BOOL)
    if extent:
        fill(get(is_first, slice(1)), True, "unique")
        any(not_equal(get(ordered, slice(1, None)), get(ordered, slice(-1))), 1, get(is_first, slice(1, None)))
    (starts,) = places_of(is_first)
    return Distinct(
        gather_selected(Selection(ordered, (0,), (starts,), starts.shape, 0, True)),
        taken(order, starts) if indices else None,
        _inverse(order, is_first, order) if inverse else None,
        _distances(starts, extent) if counts else None,
    )


def _check_not_differentiated(x: Any) -> None:
    if x._signature.device.functions is not None:
        raise GradientError(
            "vjp: distinct elements have no derivative; write ta.take(x, indices) with the indices of ta.unique_all as "
            "an argument"
        )


def sorted_all(x: Any) -> Any:
    """Return all elements, sorted, in one axis."""
    flat = reshape(dense(x), (x.size,))
    is_complex = dtypes.info(x.dtype).kind == "complex"
    return taken(flat, order_by(complex_keys(flat))) if is_complex else sorted_along(flat, 0, False)


def _is_first(ordered: Any, equal_nan: bool) -> Any:
    """Whether each element of a sorted array differs from the one before it."""
    found = new_like(ordered, ordered.shape, _BOOL)
    if ordered.size:
        fill(get(found, slice(1)), True, "unique")
        later, earlier, rest = get(ordered, slice(1, None)), get(ordered, slice(-1)), get(found, slice(1, None))
        not_equal(later, earlier, out=rest)
        if equal_nan and dtypes.info(ordered.dtype).kind in ("float", "complex"):
            bitwise_and(rest, bitwise_invert(isnan(earlier)), out=rest)
    return found


def _inverse(order: Any, is_first: Any, x: Any) -> Any:
    """The number of each element among the distinct ones, in the places of the elements."""
    numbers = scan("unique", "add", is_first, 0, _INT64)
    subtract(numbers, 1, out=numbers)
    found = new_like(x, (x.size,), _INT64)
    if x.size:
        run_fixed(scattering(_INT64, False), [numbers, order], found._view(Layout((x.size,), (0,))))
    return reshape(found, x.shape)


def _distances(starts: Any, end: int) -> Any:
    """The lengths of runs that start at these places."""
    found = new_like(starts, starts.shape)
    if starts.size:
        subtract(get(starts, slice(1, None)), get(starts, slice(-1)), out=get(found, slice(-1)))
        subtract(end, get(starts, slice(-1, None)), out=get(found, slice(-1, None)))
    return found


def taken(x: Any, places: Any) -> Any:
    """Return the elements of an array of one axis at places that lie within it."""
    if not places.size:
        return new_like(x, (0,))
    device = x._signature.device
    if device.functions is not None or device.backend.indexing is not None:
        return take(x, places, axis=0)
    return gather_selected(Selection(x, (0,), (places,), places.shape, 0, True))


def order_by(keys: Sequence[Any]) -> Any:
    """Return the stable order of elements by keys of one axis, of which the last one counts most."""
    order: Any = None
    for key in keys:
        found = order_along(key if order is None else taken(key, order), 0, False)
        order = found if order is None else taken(order, found)
    return order


def complex_keys(x: Any) -> list[Any]:
    """Return the keys by which complex numbers are sorted, for `order_by`."""
    return [x.imag, x.real, isnan(x.imag), isnan(x.real)]


# --- membership -------------------------------------------------------------------------------------------------------


def members(x: Any, others: Any, dtype: np.dtype | None) -> Any:
    """Return for each element whether it is among others, compared in a dtype, or as integers if it is None."""
    if not (x.size and others.size):
        return fill(new_like(x, x.shape, _BOOL), False, "isin")
    if dtype is None:
        return _among_integers(x, others)
    if dtypes.info(dtype).kind == "complex":
        return _among_complex(astype(x, dtype, copy=False), astype(others, dtype, copy=False))
    return _among(astype(x, dtype, copy=False), astype(others, dtype, copy=False))


def _among(x: Any, others: Any) -> Any:
    """Whether elements are among others of the same dtype."""
    ordered = sorted_along(reshape(dense(others), (others.size,)), 0, False)
    flat = reshape(dense(x), (x.size,))
    return reshape(contained(ordered, flat, x.dtype), x.shape)


def _among_integers(x: Any, others: Any) -> Any:
    """Whether integers are among others, compared as numbers."""
    mine, theirs = x.dtype == _UINT64, others.dtype == _UINT64
    if x.dtype == others.dtype:
        return _among(x, others)
    found = _among(astype(x, _INT64, copy=False), astype(others, _INT64, copy=False))
    if mine:  # large numbers became negative ones
        return bitwise_and(found, less_equal(x, _LARGEST))
    return bitwise_and(found, greater_equal(x, 0)) if theirs else found


def _among_complex(x: Any, others: Any) -> Any:
    """Whether complex numbers are among others: both are numbered by the distinct ones of all."""
    both = concat([reshape(dense(x), (x.size,)), reshape(dense(others), (others.size,))])
    numbers = distinct(both, False, True, False).inverse
    found = _among(get(numbers, slice(x.size)), get(numbers, slice(x.size, None)))
    return reshape(found, x.shape)
