"""The functions of the op table, for arrays of one compute dtype: ``f(*operands, out=out) -> None``.

All operands have one dtype: bool, an integer dtype, float32, float64, complex64 or complex128. They are broadcast to
``out`` by their strides, or are 0-d. (Comparisons also accept uint64 with a signed integer. ``where`` and ``identity``
only move values, and accept any dtype.) ``out`` has the result dtype. It may be one of the operands: a function writes
an element only after its last use.

If NumPy follows the library's rule, the table lists the ufunc itself. Each other function states the difference in one
line. The caller enters ``np.errstate`` once for a whole kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray_host import exact_fma, packed, parts, philox, rounding, shuffles, special, stochastic, transcendental
from tilearray_host.selecting import where_elsewhere

Array = np.ndarray[Any, np.dtype[Any]]


def floor_divide(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``floor(x / y)``, also for infinite floats, where Python and NumPy differ to match their ``%``.

    Examples
    --------
    >>> out = np.empty(3)
    >>> with np.errstate(all="ignore"):
    ...     floor_divide(np.array([np.inf, 1.0, 7.0]), np.array([2.0, -np.inf, 2.0]), out=out)
    >>> out
    array([inf, -0.,  3.])
    """
    if x.dtype.kind != "f" or not np.any(beyond := (np.abs(x) == np.inf) | (np.abs(y) == np.inf)):
        np.floor_divide(x, y, out=out)
    else:
        np.copyto(out, np.where(beyond, x / y, np.floor_divide(x, y)))


def floor_divide_trunc(x: Array, y: Array, *, out: Array) -> None:
    """Divide integers toward zero, as C does; ``x // 0`` is 0 and ``INT_MIN // -1`` is INT_MIN.

    The division is exact after C's remainder is subtracted, so NumPy's floor does not round.

    Examples
    --------
    >>> x, out = np.array([-7, 7, 7]), np.empty(3, int)
    >>> floor_divide_trunc(x, np.array([2, -2, 3]), out=out)
    >>> out
    array([-3, -3,  2])
    """
    np.floor_divide(x - np.fmod(x, y), y, out=out)


def _apart(ufunc: np.ufunc) -> Callable[..., None]:
    """Compute one element in memory of its own: if `out` is an operand, another loop of NumPy has other last bits."""

    def compute(*operands: Array, out: Array) -> None:
        if out.size == 1:
            np.copyto(out, ufunc(*operands))
        else:
            ufunc(*operands, out=out)

    return compute


_power = _apart(np.power)


def power(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``x ** y``. Integers wrap. Negative integer exponents give exact powers of 1 and -1, else 0 (also of 0).

    Floats follow C: ``1 ** y`` and ``x ** 0`` are 1 also for NaN. For a signalling NaN, NumPy's loops disagree,
    and the processor and the strides select the loop. Multiplication by 1 makes it quiet. The square has the same bits
    as the power of every float32 and of integers, and takes one pass.

    Examples
    --------
    >>> out = np.empty(4, int)
    >>> power(np.array([1, -1, 2, 3]), np.array([-5, -5, -1, 4]), out=out)
    >>> out
    array([ 1, -1,  0, 81])
    """
    if y.ndim == 0 and x.dtype.kind != "c" and y.item() == 2:
        np.square(x, out=out)
        return
    if y.ndim == 0 and x.dtype.kind == "f" and y.item() == 0.5:
        _root(x, out)
        return
    if x.dtype.kind == "i" and np.any(negative := y < 0):
        # The powers of 1 and -1 depend only on the parity of the exponent. Every positive power of 0 is 0.
        x = np.where(negative & (x != 1) & (x != -1), 0, x)
        y = np.where(negative, 2 - (y & 1), y)
    elif x.dtype.kind == "f":
        if np.any(half := y == 0.5):
            # For an exponent with stride 0, NumPy computes the root, which differs from the power for -0.0 and -inf.
            x = np.where(half & ((x == 0) | (x == -np.inf)), np.abs(x), x)
        if parts.has_nan(x) or parts.has_nan(y):
            x, y = x * 1, y * 1
    _power(x, y, out=out)


def _root(x: Array, out: Array) -> None:
    """Compute ``x ** 0.5``, which is not the square root of -0.0 and -inf: 0.0 and inf."""
    infinite = x == -np.inf
    np.add(x, 0, out=out)
    np.sqrt(out, out=out)
    if infinite.any():
        np.copyto(out, np.inf, where=infinite)


def power_numpy(x: Array, y: Array, *, out: Array) -> None:
    """Compute ``x ** y`` as `power` does, but refuse negative integer exponents as NumPy does.

    Examples
    --------
    >>> power_numpy(np.array([2]), np.array([-1]), out=np.empty(1, int))
    Traceback (most recent call last):
    ValueError: pow: Integers to negative integer powers are not allowed; write x.astype('float64') ** y
    """
    if x.dtype.kind == "i" and np.any(y < 0):
        raise ValueError("pow: Integers to negative integer powers are not allowed; write x.astype('float64') ** y")
    power(x, y, out=out)


def reciprocal(x: Array, *, out: Array) -> None:
    """Compute ``1 / x``, of integers rounded toward zero. It is 0 for the integer 0, which C does not define.

    Examples
    --------
    >>> out = np.empty(4, int)
    >>> reciprocal(np.array([2, 1, -1, 0]), out=out)
    >>> out
    array([ 0,  1, -1,  0])
    """
    if x.dtype.kind in "iu":
        np.copyto(out, np.where((x == 1) | (x == -1), x, 0))
    else:
        np.reciprocal(x, out=out)


def isnan(x: Array, *, out: Array) -> None:
    """Compute ``x != x``, for any kind. ``np.isnan`` writes wrong values to strided outputs (NumPy 2.4.6, AVX-512).

    Examples
    --------
    >>> out = np.empty(2, bool)
    >>> isnan(np.array([1.0, np.nan]), out=out)
    >>> out
    array([False,  True])
    """
    if x.dtype.kind in "biu":
        np.copyto(out, False)
    else:
        np.not_equal(x, x, out=out)


def where(condition: Array, x: Array, y: Array, *, out: Array) -> None:
    """Select ``x`` where the condition is true, else ``y``.

    Examples
    --------
    >>> out = np.empty(2)
    >>> where(np.array([True, False]), np.array(1.0), np.array(2.0), out=out)
    >>> out
    array([1., 2.])
    """
    if np.may_share_memory(out, x) or np.may_share_memory(out, condition):
        np.copyto(out, np.where(condition, x, y))
    elif np.may_share_memory(out, y):
        out[...] = y
        np.copyto(out, x, where=condition)
    else:
        where_elsewhere(condition, x, y, out=out)


def clip(x: Array, low: Array, high: Array, *, out: Array) -> None:
    """Compute ``minimum(maximum(x, low), high)``. NaN of any operand propagates; ``high`` overrides a larger ``low``.

    Examples
    --------
    >>> out = np.empty(3)
    >>> clip(np.array([-1.0, 0.5, np.nan]), np.array(0.0), np.array(1.0), out=out)
    >>> out
    array([0. , 0.5, nan])
    """
    is_float = x.dtype.kind not in "biu"
    if is_float and not (_is_plain_number(low) and _is_plain_number(high)):
        raised = np.maximum(x, low, out=None if np.may_share_memory(out, high) else out)
        np.minimum(raised, high, out=out)
        return
    has_zero = is_float and not (low.item() and high.item())
    x.clip(low, high, out)  # in one pass, and with numbers in a fifth of the time of np.maximum and np.minimum
    if has_zero:
        np.add(out, 0, out=out)  # where `ndarray.clip` leaves -0.0, they take the bound


def _is_plain_number(bound: Array) -> bool:
    """Whether a bound is a number other than -0.0."""
    return bound.size == 1 and bool(bound.item() or not np.signbit(bound))


def identity(x: Array, *, out: Array) -> None:
    """Copy x.

    Examples
    --------
    >>> out = np.empty(2)
    >>> identity(np.array([1.0, 2.0]), out=out)
    >>> out
    array([1., 2.])
    """
    out[...] = x


NEVER_WARN = frozenset({"identity", "positive", "where"})
"""Functions that only move values, so that no floating-point exception can occur."""

TO_NEW_MEMORY = {"where": where_elsewhere}
"""Functions that need not look whether `out` shares memory with an operand."""

FORWARDS = frozenset({
    *("cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "atan2", "sinh"),
    *("cosh", "asinh", "acosh", "atanh", "pow", "pow_numpy", "float_power"),
    *("expit", "logit", "entr", "xlogy", "xlog1py"),
})  # fmt: skip
"""Functions whose last bits differ in NumPy if an operand has negative strides: another loop computes them then."""
SLOW = FORWARDS | {
    *("sin", "cos", "tanh", "sinc", "erf", "erfc", "erfinv", "lgamma", "gamma", "ndtr", "logaddexp", "hypot", "fma"),
    *("logaddexp2", "remainder", "floor_divide", "gcd", "lcm"),
}
"""Functions that take some nanoseconds for each element of 8 bytes."""
FORWARDS_OF_COMPLEX = FORWARDS | {"multiply", "square", "abs", "angle"}
"""The same if an operand is complex."""


def forwards(x: np.ndarray) -> np.ndarray:
    """Return an operand without negative strides: itself, or a copy."""
    return x.copy() if min(x.strides, default=0) < 0 else x


OF_COMPLEX: dict[str, Callable[..., Any]] = {"multiply": _apart(np.multiply), "square": _apart(np.square)}
"""The functions of complex numbers that are not those of the table."""

TEMPORARIES = frozenset({
    *("fma", "ndtr", "expit", "logit", "entr", "xlogy", "xlog1py", "sinc", "frexp_mantissa", "frexp_exponent"),
})  # fmt: skip
"""Functions that make several temporaries of the size of the result, so that they run block by block."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "identity": identity,
    "positive": identity,
    "negative": np.negative,
    "abs": parts.absolute,
    "square": np.square,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "reciprocal": reciprocal,
    "floor_divide": floor_divide,
    "floor_divide_trunc": floor_divide_trunc,
    "floor_divide_numpy": np.floor_divide,
    "remainder": np.remainder,
    "remainder_trunc": np.fmod,
    "fmod": np.fmod,
    "gcd": np.gcd,
    "lcm": np.lcm,
    "fma": exact_fma.fma,
    "pow": power,
    "pow_numpy": power_numpy,
    "float_power": power,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "clip": clip,
    "where": where,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_invert": np.bitwise_invert,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "sqrt": np.sqrt,
    "rsqrt": transcendental.rsqrt,
    "cbrt": np.cbrt,
    "hypot": transcendental.hypot,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": transcendental.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": transcendental.log1p,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": transcendental.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": transcendental.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sinc": transcendental.sinc,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "lgamma": special.lgamma,
    "gamma": special.gamma,
    "ndtr": special.ndtr,
    "expit": special.expit,
    "logit": special.logit,
    "entr": special.entr,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": parts.round,
    "isnan": isnan,
    "isinf": parts.isinf,
    "isfinite": parts.isfinite,
    "sign": parts.sign,
    "signbit": parts.signbit,
    "copysign": np.copysign,
    "heaviside": np.heaviside,
    "nextafter": np.nextafter,
    "ldexp": parts.ldexp,
    "frexp_mantissa": parts.frexp_mantissa,
    "frexp_exponent": parts.frexp_exponent,
    "real": parts.real,
    "imag": parts.imag,
    "conj": np.conjugate,
    "angle": parts.angle,
    "isclose": parts.isclose,
    "nan_to_num": parts.nan_to_num,
}
FUNCTIONS |= rounding.variants(FUNCTIONS)

OF_BITS: dict[str, Callable[..., None]] = {"abs": parts.absolute_of_bits, "negative": parts.negative_of_bits}
"""The functions of a float that change its sign bit alone."""

OF_WORDS: dict[str, Callable[..., Any]] = {
    "bitcast": philox.bitcast,
    "multiply_high": philox.multiply_high,
    "philox_32": philox.philox_32,
    "philox_32_anywhere": philox.philox_32_anywhere,
    "philox_64": philox.philox_64,
    "shuffled_index": shuffles.shuffled_index,
    **stochastic.rounders(),
    "key_of_parts": stochastic.key_of_parts,
    "quotient_by": rounding.quotient_by,
    "pack_float4": packed.pack_float4,
    "quotients_of_pairs": packed.quotients_of_pairs,
    "e4m3fn_scale": packed.e4m3fn_scale,
    "scaled_pairs": packed.scaled_pairs,
    "without_signs": packed.without_signs,
    "larger_half": packed.larger_half,
    "unpack_float4_0": packed.unpack_first,
    "unpack_float4_1": packed.unpack_second,
    "half_of_word_0": packed.first_half,
    "half_of_word_1": packed.second_half,
    **{
        f"philox_{words}_{name}": philox.of_pair(words, which)
        for words in (32, 64, 128)
        for which, name in enumerate(("first", "second"))
    },
}
"""The functions of random words and of bits, which are not in the op table."""


def add(name: str, function: Callable[..., Any]) -> None:
    """Add a function of a user, ``function(*arrays, out=out)``; its name is that of no other function."""
    FUNCTIONS[name] = function


def function_named(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return the function of a name that gives a dtype."""
    if name in OF_WORDS:
        return OF_WORDS[name]
    return OF_COMPLEX.get(name, FUNCTIONS[name]) if dtype.kind == "c" else FUNCTIONS[name]
