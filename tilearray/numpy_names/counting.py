"""How often each integer occurs, and the sums of their weights.

On a GPU, if there are few places, each program counts by itself, and then adds its counts to those of the others.
Weights of floats are summed in float64, in the order of the elements.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros
from tilearray.engine.devices import common_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.errors import DTypeError, OperandError, ShapeError, shown
from tilearray.functions.arguments import as_array, as_array_beside, is_differentiated, without_derivative
from tilearray.functions.conversion import astype, single
from tilearray.functions.indexing.fold import fold
from tilearray.functions.indexing.scatter import combine
from tilearray.functions.manipulation import reshape, view
from tilearray.functions.reductions import max, min, sum
from tilearray.functions.ufunc_at import MODES, Mode
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int
from tilearray.numpy_names.through_numpy import by_numpy, float_of
from tilearray.ops.arithmetic import add

MOST_BINS = 8192
"""The most bins of which each program has counters of 32 bits in its own memory; of more bins, they have 16 bits."""
MANY = 2**18
"""The least elements that are counted so in more bins. Of fewer elements each is an atomic, since a program adds up to
65,536 counts to those of the others. On an H200 so many in 65,536 bins take 57 us, and 76 us by atomics."""
BINS = 2048
"""The bins of a launch that counts before the largest integer is known, and the least of any launch."""

SPREAD, LEAST_COPIES = 2**20, 128
"""The most elements of all copies of sums to which atomics add, and the least copies that are worth their sum: on an
H100 atomics in 65,536 places take 0.99 ms, in a million places 0.93, and in 256 places 11 ms."""


def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, mode: Mode = "ordered") -> Array:
    """Return how often each integer from 0 on occurs, or the sums of their weights.

    On a GPU the host waits for the largest element, which decides the size of the result; not if no element of the
    dtype is beyond `minlength`, as uint8 with 256.

    Parameters
    ----------
    x : Array
        Of one axis, and of integers that are not negative.
    weights : Array, optional
        Of the same shape; summed in float64.
    minlength : int
        The least size of the result.
    mode : {"ordered", "atomic"}
        On a GPU "atomic" adds weights in an order that differs from run to run, many times faster, as in
        ``ta.add.at``. The host adds them in order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.bincount([0, 2, 2])
    Array([1, 0, 2], dtype=int64, device='cpu')
    """
    if type(x) in (list, tuple) and not x:
        x = zeros(0, dtype=dtypes.int64)  # a list of nothing would be one of floats
    array: Array = as_array("bincount", x)
    if mode not in MODES:  # pyright: ignore[reportUnnecessaryContains]
        raise OperandError(f"bincount: expected a mode, got {shown(mode)}; write mode='ordered' or mode='atomic'")
    if dtypes.info(array.dtype).kind not in ("bool", "int", "uint"):
        raise DTypeError(f"bincount: expected integers, got {array.dtype.name}; write x.astype('int64')")
    if array.ndim != 1:
        raise ShapeError(f"bincount: expected integers of one axis, got shape {array.shape}; write ta.reshape(x, -1)")
    given = real_weights("bincount", weights, array)
    is_on_host = not array.device.backend.computes_places
    if is_on_host and is_differentiated(weights):
        plain = bincount(array, without_derivative(weights), minlength, mode=mode)  # with all checks
        found = weights._signature.device.functions.counted(array, astype(weights, dtypes.float64), plain.size)
        return astype(found, plain.dtype)
    if is_on_host:
        return by_numpy("bincount", (x, weights), minlength)
    minlength = as_int(minlength, "bincount", "minlength")
    if minlength < 0:
        raise ShapeError(f"bincount: expected minlength >= 0, got {minlength}; write minlength=0")
    array = astype(array, dtypes.uint8) if array.dtype == dtypes.bool_ else array
    size, counts = _size_and_counts(array, minlength, given is None)
    if counts is not None:
        return counts[:size]
    if given is None or not array.size:  # without elements as NumPy
        return counted(array, size)
    if is_differentiated(weights):
        found = weights._signature.device.functions.counted(array, astype(weights, dtypes.float64), size)
    else:
        found = weighted(array, size, given, mode)
    return astype(found, float_of("bincount", [array.dtype, given.dtype]))


def _size_and_counts(array: Array, minlength: int, counts: bool) -> tuple[int, Array | None]:
    """Return the size of a result, and how often each place occurs, if that is wanted and known already.

    The launch that finds the largest integer counts small ones meanwhile.
    """
    info = dtypes.info(array.dtype)
    if not array.size or (info.kind != "int" and minlength >= 2**info.bits):
        return minlength, None
    places = _unsigned(array)  # one of a negative integer is larger than all others
    found = _counts_and_largest(places, minlength) if counts and _is_counted_by_programs(places, minlength) else None
    largest = single(max(places) if found is None else view(found, dtypes.uint64)[-1], "bincount")
    if info.kind == "int" and largest >> (info.bits - 1):
        least = single(min(array), "bincount")
        raise ShapeError(f"bincount: expected no negative integers, got {least}; write x[x >= 0]")
    size = largest + 1 if largest >= minlength else minlength
    return size, None if found is None or size >= found.size else found


def counted(places: Array, size: int, first: int = 0) -> Array:
    """How often each place from the first one on occurs, below a size; no place is larger."""
    if places.size and _is_counted_by_programs(places, size - first):
        return _counts_and_largest(_unsigned(places), size - first, first)[: size - first]
    counts: Array = zeros(size, dtype=dtypes.int64, device=places.device)
    if places.size:
        combine("count", counts, places, 1, inside=True)
    return counts[first:]


def _is_counted_by_programs(places: Array, size: int) -> bool:
    """Whether each program counts places below a size by itself, and then adds its counts to those of the others."""
    return size <= (places.device.backend.most_bins if places.size >= MANY else MOST_BINS)


def _counts_and_largest(places: Array, size: int, first: int = 0) -> Array:
    """How often each place from the first one on occurs, up to a size or a little further, and last the largest one.

    Places are unsigned, and their distances from the first one wrap.
    """
    bins = BINS if size <= BINS else 1 << (size - 1).bit_length()
    counts: Array = zeros(bins + 1, dtype=dtypes.int64, device=places.device)
    run_fixed(_counting(places.dtype, bins, first), [places], counts)
    return counts


def _unsigned(places: Array) -> Array:
    """The same bits as unsigned integers."""
    info = dtypes.info(places.dtype)
    return places if info.kind == "uint" else view(places, np.dtype(f"uint{info.bits}"))


@cache
def _counting(dtype: np.dtype, size: int, first: int = 0) -> FixedOperation:
    """Return the operation that adds how often each integer below a power of two occurs to the counts in a target.

    Behind the counts the target has the largest integer. Integers are distances from the first one.
    """
    builder = ExpressionBuilder()
    place = builder.array(dtype)
    if first:
        place = builder.call("from_first", (place,), dtype, f"{{x}} - {first}")
    counts = builder.node("bins", place, size, 32 if size <= MOST_BINS else 16)
    return FixedOperation("bincount", builder.build([counts], [dtypes.int64], combines="add"))


def weighted(places: Array, size: int, weights: Array, mode: Mode = "ordered") -> Array:
    """The sum of the weights of each place below a size, in float64 or complex128; of integers in int64."""
    kind = dtypes.info(weights.dtype).kind
    if kind == "complex":
        sums: Array = zeros(size, dtype=dtypes.complex128, device=places.device)
        for part, given in ((sums.real, weights.real), (sums.imag, weights.imag)):
            part[...] = weighted(places, size, given, mode)
        return sums
    wide = dtypes.float64 if kind == "float" else dtypes.int64
    given = astype(weights, wide, copy=False)
    if places.size and (mode == "atomic" or kind != "float"):
        return _spread(places, size, given)
    sums = zeros(size, dtype=wide, device=places.device)
    if places.size:
        fold(add, sums, places, given, inside=True)
    return sums


def _spread(places: Array, size: int, weights: Array) -> Array:
    """The sums of weights by atomics: of few places in several copies, so that fewer atomics wait for each other."""
    copies = SPREAD // size if places.size > SPREAD else 1
    if copies < LEAST_COPIES:
        found: Array = zeros(size, dtype=weights.dtype, device=places.device)
        combine("add", found, places, weights, inside=True)
        return found
    sums: Array = zeros(copies * size, dtype=weights.dtype, device=places.device)
    everywhere = sums._view(Layout(places.shape, (0,) * places.ndim))
    run_fixed(_spreading(places.dtype, weights.dtype), [weights, places, copies, size], everywhere)
    return sum(reshape(sums, (copies, size)), axis=0)


@cache
def _spreading(dtype: np.dtype, wide: np.dtype) -> FixedOperation:
    """Return the operation that adds each weight to its place in the copy that follows from its position."""
    builder = ExpressionBuilder()
    weight, place = builder.array(wide), builder.cast(builder.array(dtype), dtype, dtypes.int64)
    parts = (builder.node("index"), builder.number(dtypes.int64), builder.number(dtypes.int64), place)
    where = builder.call("spread", parts, dtypes.int64, "{x} % {y} * {z} + {w}")
    return FixedOperation("bincount", builder.build([weight], [wide], (where,), combines="add"))


def weights_beside(function: str, weights: Any, array: Array) -> Array:
    """Weights, or the values of differentiated ones, as an Array of the shape and the device of `array`."""
    while is_differentiated(weights):
        weights = without_derivative(weights)
    given = as_array_beside(function, weights, array, "weights")
    common_device(function, [array._signature, given._signature])
    if given.shape != array.shape:
        raise ShapeError(f"{function}: expected weights of shape {array.shape}, got {given.shape}; reshape them")
    return given


def real_weights(function: str, weights: Any, array: Array) -> Any:
    """Weights by `weights_beside`, or None; not complex ones, of which NumPy has sums in `histogram` alone."""
    given = None if weights is None else weights_beside(function, weights, array)
    if given is not None and dtypes.info(given.dtype).kind == "complex":
        raise DTypeError(
            f"{function}: expected real weights, got {given.dtype.name}; write weights=w.real, and w.imag in another "
            f"call"
        )
    return given
