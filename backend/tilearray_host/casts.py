"""Casts between all dtypes of the table. Each cast rounds the exact value once, to nearest even.

NumPy and ml_dtypes cast to a narrow float through float32. If the source has more bits than float32's 24, that rounds
twice. For example, float64 ``1 + 2**-8 + 2**-40`` lies above the midpoint of two bfloat16 neighbours. It becomes
float32's ``1 + 2**-8``, a tie, which rounds to the wrong neighbour. Such pairs go through float32 *rounded to odd*
instead: an inexact value takes the neighbour whose last bit is 1. No narrower format can mistake that neighbour for a
tie or for an exact value (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
rounding to odd", 2008).

===============================  ================================================================================
source to target                 method
===============================  ================================================================================
complex to real                  an error, except to bool
float32 or float64 to an         toward zero; out of range saturates, NaN is 0. NumPy's cast of values in range, else
  integer                        of clipped ones. For signed integers of 32 and 64 bits the processor says whether a
                                 value is out of range, else the extremes do. To 8 and 16 bits, many floats of which the
                                 first are out of range and elements with gaps are always clipped, and rows of float64
                                 with gaps go through int32
bfloat16 to an integer           the same; ml_dtypes' cast of values in range
8-bit floats, and integers of    a table of the 256 results
  8 bits to 8-bit floats
bfloat16 and float16 to 8-bit    a table of the 65,536 results, from `TABLED` elements on
  floats, float16 to integers
float16 to float32               the same to memory without gaps: NumPy takes twice the time
float32 to 8-bit floats          the table of bfloat16, after rounding to odd; fewer elements by ml_dtypes
float32 to float16               integer arithmetic on the bits, from `MANY` elements on: NumPy takes 40 ns for each
                                 value that is out of range or subnormal
float64, or 32- or 64-bit        NumPy's float32, then ml_dtypes; again, as below, where float32 lies on a tie. NumPy's
  integer, to bfloat16           own cast of integers that float32 holds. The other narrow floats overflow long before
                                 2**24, so ml_dtypes' own cast of integers is exact enough
float64 to an ml_dtypes float    float32 rounded to odd, then ml_dtypes
anything to float8_e8m0fnu       as above, then a correction: ml_dtypes rounds all between 2**-127 and 2**-126 up
float8_e8m0fnu to float8/4       through float32, exactly: ml_dtypes has no direct cast
all other pairs                  NumPy and ml_dtypes themselves; tests/host/test_casts.py verifies them
===============================  ================================================================================

A value that a format cannot hold becomes the same as in ml_dtypes' cast from float32: infinity or NaN. float4_e2m1fn
has neither; it takes the largest value, and a zero for NaN. float8_e8m0fnu has no sign, zero or mantissa: negative
numbers and zeros become NaN, values below its smallest value become that value, and a tie rounds up.

A table is filled by the method that it replaces, when it is needed first.

The method of a pair is looked up, never decided per call: ``caster`` returns it for a plan to keep, and ``cast`` looks
it up and calls it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tilearray_host.float_errors import QUIET, STRICT, get_state, set_state
from tilearray_host.scratch import give_back, take

Array = np.ndarray[Any, np.dtype[Any]]
Caster = Callable[[Array, np.dtype[Any], "Array | None"], Array]

_INT32, _COMPLEX128 = np.dtype(np.int32), np.dtype(np.complex128)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_BFLOAT16, _FLOAT8_E8M0 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e8m0fnu)


_PAIRS = {"float4_e2m1fn_x2": np.dtype([("float4_e2m1fn_x2", "u1")])}
"""The dtypes whose elements are pairs: structures to NumPy."""


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype of NumPy or ml_dtypes that has a name.

    Examples
    --------
    >>> dtype_named("bfloat16").itemsize
    2
    """
    return _PAIRS.get(name) or np.dtype(getattr(ml_dtypes, name, name))


def cast(x: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """Convert an array to another dtype with one rounding; see the module docstring for the rules.

    Parameters
    ----------
    x : ndarray
        Any strides, any number of dimensions.
    dtype : dtype
        The target dtype, of NumPy or ml_dtypes.
    out : ndarray, optional
        The array to write to, of dtype ``dtype``. x must broadcast to its shape. It must not overlap x in part.

    Returns
    -------
    ndarray
        ``out``, or a new array in x's stride order. Never x itself.

    Raises
    ------
    TypeError
        If x is complex and ``dtype`` is neither complex nor bool.

    Examples
    --------
    >>> cast(np.array([1e20, -1.5, np.nan]), np.dtype(np.int8))
    array([127,  -1,   0], dtype=int8)
    """
    return _SILENT[x.dtype, dtype](x, dtype, out)


def caster(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    """Return the function ``f(x, target, out) -> ndarray`` that casts this pair, for a caller that keeps it.

    Unlike `cast`, the function does not silence warnings: the caller does so once for a whole plan.

    Examples
    --------
    >>> widen = caster(np.dtype(np.float16), np.dtype(np.float32))
    >>> widen(np.array([1.5], np.float16), np.dtype(np.float32), None)
    array([1.5], dtype=float32)
    """
    return _CASTERS[source, target]


def scalar(value: bool | int | float | complex, dtype: np.dtype[Any]) -> Array:
    """Convert a Python number to a 0-d array with one rounding, also for an int of any size.

    An int that is too large for a float becomes infinity (or the format's substitute). An int that an integer dtype
    does not hold raises OverflowError.

    Examples
    --------
    >>> float(scalar(2**70 + 2**46 + 1, np.dtype(np.float32)) - np.float32(2**70)) == 2.0**47
    True
    """
    if dtype.char in "fd" and not isinstance(value, complex) and (not value or 2**-100 < abs(value) < 2**24):
        return np.array(value, dtype)  # the common case, which cannot warn
    if isinstance(value, bool) or not isinstance(value, int):
        return cast(np.asarray(value), dtype)
    if dtype.kind in "iu":
        return np.array(value, dtype)
    if dtype.kind == "c":
        return cast(scalar(value, np.dtype(f"f{dtype.itemsize // 2}")), dtype)
    wide = _nearest_float(value) if dtype == _FLOAT64 else _odd_float(value)
    return cast(np.array(wide), dtype)


def plain_numbers(numbers: Any, dtype: np.dtype[Any], is_flat: bool) -> Array | None:
    """Return floats as float32 or float64, or ints as these or int64; None if one may be out of range.

    All numbers are in range if the root of the sum of their squares is: of a float dtype, for ints up to 2**53, which
    float64 holds exactly. `is_flat` says that the numbers are a flat sequence and not a single number.

    Examples
    --------
    >>> plain_numbers([1.0, 2.5], np.dtype("float32"), True), plain_numbers(1e300, np.dtype("float32"), False)
    (array([1. , 2.5], dtype=float32), None)
    """
    try:
        if dtype.kind != "i":
            first = numbers[0] if is_flat else numbers
            limit = 2.0**53 if type(first) is int else 1e38
            if not (math.hypot(*numbers) if is_flat else abs(numbers)) < limit:
                return None
        return np.array(numbers, dtype)
    except OverflowError:  # an int
        return None


# --- Python ints of any size -----------------------------------------------------------------------------------


def _nearest_float(value: int) -> float:
    """Return ``float(value)``, which rounds to nearest even, or infinity if that overflows."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _odd_float(value: int) -> float:
    """Return a float64 rounded to odd: truncated toward zero, with the last bit set if any bit was lost."""
    magnitude, lost = abs(value), value.bit_length() - 53
    if lost <= 0:
        return float(value)
    kept = magnitude >> lost
    try:
        rounded = math.ldexp(kept | (kept << lost != magnitude), lost)
    except OverflowError:
        rounded = math.inf
    return rounded if value > 0 else -rounded


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return an array in a dtype: x itself if it has that dtype, else a cast copy."""
    return x if x.dtype == dtype else cast(x, dtype)


def computable(x: Array, dtype: np.dtype[Any] | None = None) -> Array:
    """Return values, rounded to a dtype if one is given, as NumPy computes with them: narrow floats as float32.

    float32 holds every value of float16, bfloat16 and float8, and NumPy has no arithmetic for the last two.

    Examples
    --------
    >>> computable(np.array([1.5], np.float16)).dtype, computable(np.array([1.5]), dtype_named("int8")).dtype
    (dtype('float32'), dtype('int8'))
    """
    rounded = x if dtype is None else converted(x, dtype)
    return converted(rounded, _FLOAT32) if is_narrow_float(rounded.dtype) else rounded


def is_narrow_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a float narrower than float32."""
    return _kind(dtype) == "f" and dtype.itemsize < 4


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a float of 8 bits or fewer."""
    return _kind(dtype) == "f" and dtype.itemsize == 1


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which values are added up: float64 or complex128; bool and integers in their own.

    Examples
    --------
    >>> accumulator(dtype_named("bfloat16")), accumulator(dtype_named("int8"))
    (dtype('float64'), dtype('int8'))
    """
    return {"f": _FLOAT64, "c": _COMPLEX128}.get(_kind(dtype), dtype)


# --- the methods of casting -------------------------------------------------------------------------------------------


def _native(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast as NumPy or ml_dtypes does."""
    if out is None:
        return x.astype(dtype)
    out[...] = x  # as np.copyto does it, in half the time
    return out


def _refuse(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    raise TypeError(
        f"cast: expected a real array for {dtype.name}, got {x.dtype.name}; write x.real to drop the imaginary part"
    )


def _through_odd(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast any dtype to a narrow float."""
    return _CASTERS[_FLOAT32, dtype](odd_float32(x), dtype, out)


def _to_scale(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast any dtype to float8_e8m0fnu. Below the midpoint of the two smallest values, the nearest has code 0."""
    near = odd_float32(x)
    result = _native(near, dtype, out)
    np.copyto(result.view(np.uint8), 0, where=(near > 0) & (near < 1.5 * 2.0**-127))
    return result


def _odd_float64(x: Array) -> Array:
    """Return 64-bit integers as float64. Beyond 53 bits, one sticky bit replaces the last 11 bits."""
    odd = (x >> 11 | ((x & 2047) != 0)) << 11
    exact = x <= 2**53
    if x.dtype.kind == "i":  # NumPy 2.1 ends the process where strided uint64 are compared with a negative number
        exact &= x >= -(2**53)
    return np.where(exact, x, odd).astype(_FLOAT64)


def odd_float32(x: Array) -> Array:
    """Return float32 rounded to odd: the nearest value, moved back toward zero if beyond, last bit set if inexact."""
    if x.dtype == _FLOAT32 or x.dtype.itemsize <= 2:
        return x.astype(_FLOAT32, copy=False)
    wide = _odd_float64(x) if x.dtype.kind in "iu" and x.dtype.itemsize == 8 else x.astype(_FLOAT64, copy=False)
    near = np.asarray(wide, _FLOAT32)  # an array also of a scalar
    back, bits = near.astype(_FLOAT64), near.view(np.uint32)
    np.subtract(bits, np.abs(back) > np.abs(wide), out=bits)
    np.bitwise_or(bits, back != wide, out=bits)
    return near


def _narrow_to_integer(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast floats of up to 16 bits: as ml_dtypes does if all of 16 bits are in range, else through float32."""
    if x.itemsize != 2 or not x.flags.forc:
        return _CASTERS[_FLOAT32, dtype](x.astype(_FLOAT32), dtype, out)
    if _in_range(x, dtype):
        return _native(x, dtype, out)
    clip = _clipped_small if dtype.itemsize <= 2 and _gives_zero(_FLOAT32, dtype) else _clipped
    return clip(x.astype(_FLOAT32), dtype, out)


def _to_integer(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast as NumPy does if every value is in range, which one or two passes find out; else clip."""
    return _native(x, dtype, out) if _in_range(x, dtype) else _clipped(x, dtype, out)


def _to_small_integer(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """The same, to 8 or 16 bits, of elements without gaps. Others are clipped, in one pass."""
    if x.flags.forc:
        in_range = x.nbytes < CACHED or _in_range(x.ravel("K")[:SAMPLE], dtype)  # the first few may tell
        return _native(x, dtype, out) if in_range and _in_range(x, dtype) else _clipped_small(x, dtype, out)
    by_int32 = x.itemsize == 8 in x.strides and not x.flags.forc and _says_invalid(x.dtype, _INT32)
    return _through_int32(x, dtype, out) if by_int32 else _clipped_small(x, dtype, out)


def _clipped_small(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Clip to integers, which every float holds, and cast as NumPy does, which gives 0 for NaN: some at a time."""
    return x.clip(*_limits(x.dtype, dtype), np.empty_like(x, dtype) if out is None else out, casting="unsafe")


def _through_int32(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast to int32, and clip there; if the processor says that int32 does not hold a value, clip the floats."""
    piece = take(x.size * _INT32.itemsize)
    whole, before = np.ndarray(x.shape, _INT32, piece), get_state()
    try:
        set_state(STRICT)
        whole[...] = x
    except FloatingPointError:
        whole = None
    finally:
        set_state(before)
    if whole is not None:
        low, high = _limits(_INT32, dtype)
        if np.minimum.reduce(whole, axis=None) < low or np.maximum.reduce(whole, axis=None) > high:
            whole.clip(low, high, whole)
    result = _clipped_small(x, dtype, out) if whole is None else _native(whole, dtype, out)
    give_back(piece)
    return result


@cache
def _limits(source: np.dtype[Any], target: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the largest integer of a dtype as numbers of another."""
    limits = np.iinfo(target)
    return source.type(limits.min), source.type(limits.max)


def _in_range(x: Array, dtype: np.dtype[Any]) -> bool:
    """Whether integers of a dtype hold all floats of an array, truncated. The smallest one may count as outside.

    The bits of floats that are not negative have their order, and NaN comes last. As unsigned integers, the bits of
    negative floats are greater, and their order is reversed; as signed ones, they are less. If the greatest unsigned
    bits are those of a negative float, a second pass finds the greatest of the others.
    """
    if not x.size:
        return False
    unsigned, signed, above, below = _outside(x.dtype, dtype)
    greatest = int(np.maximum.reduce(x.view(unsigned), None))
    return greatest < above or (greatest < below and int(np.maximum.reduce(x.view(signed), None)) < above)


@cache
def _outside(source: np.dtype[Any], target: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any], int, int]:
    """Return the dtypes of a float's bits, and the bits of the first floats above and below the range of a target.

    No bits are below the range of an unsigned target: every negative float counts as above. They are Python's ints,
    since NumPy compares numbers of unlike dtypes in the time of many elements.
    """
    bits, is_signed = target.itemsize * 8, target.kind == "i"
    unsigned, signed = (np.dtype(f"{kind}{source.itemsize}") for kind in "ui")
    limits = (2 ** (bits - 1), -(2 ** (bits - 1)) - 1) if is_signed else (2**bits, 2**bits)
    with np.errstate(over="ignore"):  # float16 has no numbers above the range of 16 bits
        above, below = (int(source.type(float(limit)).view(unsigned)) for limit in limits)
    return unsigned, signed, above, below


def _to_integer_strictly(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast as NumPy does; if the processor says that a value was out of range, clip. `out` may be the memory of x."""
    if out is not None and np.may_share_memory(x, out):
        return _clipped(x, dtype, out)
    return _to_integer_elsewhere(x, dtype, out)


def _to_integer_elsewhere(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """The same, to memory that x does not have."""
    before = get_state()
    try:
        set_state(STRICT)
        return _native(x, dtype, out)
    except FloatingPointError:
        pass
    finally:
        set_state(before)
    return _clipped(x, dtype, out)


@cache
def _gives_zero(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether NumPy's cast of NaN is 0, at every place of a vector: C leaves it to the processor."""
    with np.errstate(all="ignore"):
        return all(not np.full(67, sign * np.nan, source).astype(target).any() for sign in (1, -1))


@cache
def _says_invalid(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether NumPy's cast reports a value that the target does not hold, at every place of a vector."""
    for bad in (np.nan, np.inf, -np.inf, 2.0 ** (target.itemsize * 8 - 1), -(2.0 ** (target.itemsize * 8))):
        for place in (0, 15, 33, 66):
            x = np.ones(67, source)
            x[place] = bad
            try:
                with np.errstate(all="ignore", invalid="raise"):
                    x.astype(target)
            except FloatingPointError:
                continue
            return False
    return True


def _clipped(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Clip, then truncate. If the float cannot hold the largest integer, clip at the next power of two instead."""
    bits, signed = dtype.itemsize * 8, dtype.kind == "i"
    low, above = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    exact = bits <= (16 if x.dtype == _FLOAT32 else 32)
    clipped = np.asarray(x.clip(x.dtype.type(low), x.dtype.type(above - exact)))
    result = _native(clipped, dtype, out)
    if x.size and np.maximum.reduce(clipped, axis=None) < above:  # no NaN
        return result
    if (nan := np.isnan(clipped)).any():
        np.copyto(result, 0, where=nan)
    if not exact and (beyond := clipped == above).any():
        np.copyto(result, above - 1, where=beyond)
    return result


CACHED = 2**20
"""The bytes up to which passes over floats that find one out of range in vain take less time than to look at a few."""
SAMPLE = 2**10
"""The elements of many that are looked at before all are."""
EXACT = 2**24
"""float32 holds all integers up to it."""
FEW = 64
"""One of so many elements takes less time alone than a comparison of all."""
MANY = 8192
"""The elements from which a cast to float16 works on the bits."""


def _to_float16(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast float32.

    Adding 2**13 times its power of two, which is at least 2**-14, rounds a value to the 10 bits after that power. The
    last bits of the sum count its steps, and the exponent of the power is that of float16 and 126.
    """
    if x.size < MANY:
        return _native(x, dtype, out)
    bits = x.view(np.int32)
    codes = bits & 0x7FFFFFFF
    nan = codes > 0x7F800000 if codes.max() > 0x7F800000 else None
    codes.clip(0, 0x47800000, codes)  # 2**16 and all above are infinity; np.minimum takes three times as long
    powers = codes & 0x7F800000
    powers.clip(0x38800000, 0x7F800000, powers)
    powers += 13 << 23
    near = codes.view(np.float32)
    near += powers.view(np.float32)
    codes -= powers
    powers >>= 13
    codes += powers
    codes -= 126 << 10
    if nan is not None:
        np.copyto(codes, 0x7E00, where=nan)
    np.right_shift(bits, 16, out=powers)
    powers &= 0x8000
    codes |= powers
    result = np.empty_like(x, dtype) if out is None else out
    result.view(np.uint16)[...] = codes
    return result


def _to_bfloat16(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Cast float64 or long integers through float32, or odd float32 where the former may be a rounded tie."""
    if x.dtype.kind != "f" and x.size and np.maximum.reduce(x, None) <= EXACT and np.minimum.reduce(x, None) >= -EXACT:
        return _native(x, dtype, out)
    near = x.astype(_FLOAT32)
    ties = np.asarray((near.view(np.uint32) & 0xFFFF) == 0x8000)
    if np.count_nonzero(ties) > x.size // FEW:
        ties &= near != x if x.dtype.kind == "f" else np.abs(near) >= EXACT
    if ties.any():
        places = np.nonzero(ties) if ties.ndim else ties
        near[places] = odd_float32(x[places])
    return _native(near, dtype, out)


TABLED = 4096
"""The elements from which a cast of 16-bit floats uses a table: to fill it takes the time of 65,536 elements."""


class Table:
    """A cast by a table, which `method` fills at first use."""

    def __init__(self, source: np.dtype[Any], target: np.dtype[Any], method: Caster) -> None:
        self._method = method
        self._source = source
        self._target = target
        self._least = 0 if source.itemsize == 1 else TABLED
        self._only_dense = source == np.float16 and target == _FLOAT32
        self._codes = np.dtype(f"u{source.itemsize}")
        self._table: Array | None = None

    def __call__(self, x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
        if x.size < self._least or (self._only_dense and out is not None and not out.flags.c_contiguous):
            return self._method(x, dtype, out)
        table = self._table
        if table is None:
            every = np.arange(2 ** (8 * self._source.itemsize)).astype(self._codes).view(self._source)
            with np.errstate(all="ignore"):
                table = self._table = self._method(every, self._target, None)
        codes = self._codes_of(x)
        if out is None:
            out = np.empty_like(x, self._target)
        elif out.shape != x.shape:
            codes = np.broadcast_to(codes, out.shape)
        return table.take(codes, out=out, mode="clip")  # no code is outside; "raise" would buffer the result

    def _codes_of(self, x: Array) -> Array:
        return x.view(self._codes)


class TableOfOdd(Table):
    """A cast of float32 to 8 bits or fewer, by a table of bfloat16.

    A float32 is rounded to odd first, to the bits of bfloat16: their last bit is set if any lower one is. They have at
    least two bits more than the target, so the table's rounding is the only one that counts, in every mode.

    Examples
    --------
    >>> small = dtype_named("float8_e4m3fn")
    >>> convert = TableOfOdd(small, *(caster(dtype_named(name), small) for name in ("bfloat16", "float32")))
    >>> convert(np.float32([1.0625, 1.0626] * 4096), small, None).tolist()[:2]
    [1.0, 1.125]
    """

    def __init__(self, target: np.dtype[Any], method: Caster, few: Caster) -> None:
        super().__init__(_BFLOAT16, target, method)
        self._few = few

    def __call__(self, x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
        return self._few(x, dtype, out) if x.size < self._least else super().__call__(x, dtype, out)

    def _codes_of(self, x: Array) -> Array:
        words = x.view(np.uint32)
        codes = np.right_shift(words, 16).astype(np.uint16)
        np.bitwise_or(codes, np.bitwise_and(words, 0xFFFF) != 0, out=codes)
        return codes


# --- the method of each pair ------------------------------------------------------------------------------------


def _kind(dtype: np.dtype[Any]) -> str:
    """Return NumPy's kind letter, and f for the floats of ml_dtypes (whose kind is V or f)."""
    return dtype.kind if dtype.kind in "biuc" else "f"


def _is_ml(dtype: np.dtype[Any]) -> bool:
    return dtype.type.__module__.startswith("ml_dtypes")


def is_tabled(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether a pair is cast by a table."""
    narrow = _is_ml(target) and target.itemsize == 1
    if source.itemsize == 1:
        by_itself = "b" in (_kind(source), _kind(target)) or (_kind(source) in "iu" and target == _BFLOAT16)
        return source != target and not by_itself and (_is_ml(source) or _is_ml(target))
    if source == np.float16 and (_kind(target) in "iu" or target == _FLOAT32):
        return True
    return narrow and source.itemsize == 2 and _kind(source) == "f"


def _choose(source: np.dtype[Any], target: np.dtype[Any]) -> Caster:
    kinds = _kind(source) + _kind(target)
    if source == target or kinds[1] == "b":
        return _native
    if kinds[0] == "c" and kinds[1] != "c":
        return _refuse
    if kinds in ("fi", "fu"):
        if source.itemsize < 4:
            return _narrow_to_integer
        if target.itemsize <= 2 and _gives_zero(source, target):
            return _to_small_integer
        strict = target.kind == "i" and target.itemsize >= 4 and _says_invalid(source, target)
        return _to_integer_strictly if strict else _to_integer
    if target == _FLOAT8_E8M0:
        return _to_scale
    if target == np.float16 and source == _FLOAT32:
        return _to_float16
    if target == _BFLOAT16 and (source == _FLOAT64 or (kinds[0] in "iu" and source.itemsize >= 4)):
        return _to_bfloat16
    if _is_ml(target) and source in (_FLOAT64, _FLOAT8_E8M0):
        return _through_odd
    return _native


def block_of(convert: Caster) -> float:
    """Return the elements that a method is to cast at once, so that its temporaries stay in a cache.

    Examples
    --------
    >>> block_of(caster(np.dtype(np.float32), np.dtype(np.float64)))  # no temporaries
    inf
    >>> block_of(caster(np.dtype(np.float32), np.dtype(np.uint8)))
    262144
    """
    return _BLOCKS.get(convert, 2**16)


_BLOCKS: dict[Caster, float] = {
    **dict.fromkeys((_native, _to_integer_strictly, _to_integer_elsewhere), math.inf),
    **dict.fromkeys((_narrow_to_integer, _to_integer, _to_small_integer), 2**18),  # most make none
}


def assigns(convert: Caster) -> bool:
    """Whether a method does what ``out[...] = x`` does."""
    return convert is _native


def to_new_memory(convert: Caster) -> Caster:
    """Return the method for an `out` that shares no memory with the array."""
    return _to_integer_elsewhere if convert is _to_integer_strictly else convert


def never_warns(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether the pair raises no floating-point flag for any value, including a signalling NaN."""
    if source == target:
        return True
    if _kind(source) in "biu":
        return target != np.float16
    return source.itemsize <= 2 and target == _FLOAT32


class _Casters(dict[tuple[np.dtype[Any], np.dtype[Any]], Caster]):
    """Pair -> function, selected at first use."""

    def __missing__(self, pair: tuple[np.dtype[Any], np.dtype[Any]]) -> Caster:
        method = _choose(*pair)
        if is_tabled(*pair):
            method = Table(*pair, method)
        elif pair[0] == _FLOAT32 and is_small_float(pair[1]):
            method = TableOfOdd(pair[1], _choose(_BFLOAT16, pair[1]), method)
        return self.setdefault(pair, method)


class _SilentCasters(_Casters):
    """The same functions, silenced where they can warn."""

    def __missing__(self, pair: tuple[np.dtype[Any], np.dtype[Any]]) -> Caster:
        found = _CASTERS[pair]
        return self.setdefault(pair, found if never_warns(*pair) else _silenced(found))


def _silenced(method: Caster) -> Caster:
    def silent(x: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
        before = get_state()
        try:
            set_state(QUIET)
            return method(x, dtype, out)
        finally:
            set_state(before)

    return silent


_CASTERS, _SILENT = _Casters(), _SilentCasters()
