"""The written rules, coded a second time: the dtype of a call, and the operands and values of every operation.

The promotion rules are the sentences of the design on kinds and widths, which are read from the dtypes' names. `RULES`
states the operands and the result of every operation, and computes it with Python's numbers: integers exactly, floats
by one operation in float64. That is wide enough for the rounding to float32 that follows to be the only one that counts
(S. Figueroa, "When is double rounding innocuous?", SIGNUM 1995). Other operations name a NumPy function.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from support.oracles import exact
from support.oracles.exact import by_mpmath, by_parts
from support.oracles.formats import FORMATS, KINDS, STORAGE, Number, kind_of, limits_of, width_of
from tilearray.errors import PromotionError, ScalarOverflowError

# --- promotion, rule by rule --------------------------------------------------------------------------------------


def join(names: set[str], semantics: str) -> str:
    """The common dtype of arrays: the highest kind first, then within it the wider, the supremum, the signedness."""
    if len(names) == 1:
        return next(iter(names))
    if names & set(STORAGE):
        raise PromotionError("storage dtypes join only themselves")
    top = max((kind_of(name) for name in names), key=KINDS.index)
    among = {name for name in names if kind_of(name) == top}
    if top == "complex":
        return "complex128" if names & {"float64", "complex128"} else "complex64"
    if top == "int":
        return join_integers(among, semantics)
    widest = [name for name in among if width_of(name) == max(map(width_of, among))]
    return widest[0] if len(widest) == 1 else {8: "float16", 16: "float32"}[width_of(widest[0])]


def join_integers(names: set[str], semantics: str) -> str:
    """array-api: mixed signedness goes to the next wider signed integer; triton: the wider, else the unsigned."""
    unsigned = max((width_of(name) for name in names if name[0] == "u"), default=0)
    signed = max((width_of(name) for name in names if name[0] != "u"), default=0)
    if not (unsigned and signed):
        return f"uint{unsigned}" if unsigned else f"int{signed}"
    if semantics == "triton":
        return f"int{signed}" if signed > unsigned else f"uint{unsigned}"
    if unsigned == 64:
        raise PromotionError("no integer dtype holds both ranges")
    return f"int{max(signed, 2 * unsigned)}"


def number_kind(value: Number) -> str:
    return next(kind for kind in KINDS if type(value).__name__ == kind)


def rung(value: Number) -> str:
    """The first of int32 < uint32 < int64 < uint64, or float32 < float64, whose range holds a number."""
    kind = number_kind(value)
    if kind == "bool":
        return "bool"
    if kind == "complex":
        return "complex64"
    if kind == "float":
        return "float64" if FORMATS["float32"].largest < abs(value) < math.inf else "float32"  # type: ignore[arg-type]
    for name in ("int32", "uint32", "int64", "uint64"):
        if limits_of(name)[0] <= value <= limits_of(name)[1]:  # type: ignore[operator]
            return name
    raise ScalarOverflowError("no integer dtype holds it")


def alone(value: Number, semantics: str) -> str:
    """A number without an array: under array-api int64 and float32, unless only a wider dtype holds it."""
    name = rung(value)
    return "int64" if semantics == "array-api" and name in ("int32", "uint32") else name


def common(names: set[str], numbers: list[Number], semantics: str) -> str:
    """The common dtype of arrays and Python numbers: only numbers of a higher kind than all arrays take part."""
    highest = max((KINDS.index(kind_of(name)) for name in names), default=-1)
    top = max((KINDS.index(number_kind(value)) for value in numbers), default=-1)
    chosen = [value for value in numbers if KINDS.index(number_kind(value)) == top]
    if not names:
        found = {alone(value, semantics) for value in chosen}
        return "uint64" if "uint64" in found else join(found, semantics)
    return join(names | {rung(value) for value in chosen} if top > highest else names, semantics)


def same_kind(source: str, target: str) -> bool:
    """What an in-place operator or ``out=`` may store: never a lower kind, and nothing signed as unsigned."""
    signed_to_unsigned = source[0] == "i" and target[0] == "u"
    return KINDS.index(kind_of(source)) <= KINDS.index(kind_of(target)) and not signed_to_unsigned


# --- the table: what each operation takes and gives ---------------------------------------------------------------


def wrapped_power(x: int, y: int, bits: int) -> int:
    if y >= 0:
        return pow(x, y, 2**bits)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def shifted(x: int, count: int, bits: int, left: bool) -> int:
    if not 0 <= count < bits:
        return -1 if x < 0 and not left else 0
    return x << count if left else x >> count


def divided(x: float, y: float) -> float:
    """IEEE division, which Python refuses by zero."""
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def floored(x: float, y: float) -> float:
    """``floor(x / y)`` of the exact quotient."""
    if y == 0:
        return divided(x, y)
    if x != x or y != y:
        return math.nan
    if x == 0 or math.isinf(x) or math.isinf(y):
        return math.nan if math.isinf(x) and math.isinf(y) else x / y
    quotient = Fraction(x) // Fraction(y)
    try:
        return float(quotient) if quotient else math.copysign(0.0, divided(x, y))
    except OverflowError:
        return math.inf if quotient > 0 else -math.inf


def floored_in_numpy(x: float, y: float) -> float:
    """The same as Python has it: the quotient of an infinity is NaN, and of a number by one it is 0 or -1."""
    if y == 0 or x != x or y != y or not (math.isinf(x) or math.isinf(y)):
        return floored(x, y)
    if math.isinf(x):
        return math.nan
    return -1.0 if (x < 0 < y) or (y < 0 < x) else x / y


def left_over(x: float, y: float) -> float:
    return math.nan if y == 0 or math.isinf(x) else x % y


def truncated(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def picked(choose: Callable[..., Any]) -> Callable[..., Any]:
    """NaN of any operand propagates."""
    return lambda *xs: math.nan if any(x != x for x in xs) else choose(*xs)


def root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def clamped(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, low), high)


class Rule(NamedTuple):
    """One operation. Functions take Python numbers; an integer function's last argument is the width in bits."""

    arity: int
    kinds: tuple[str, ...]
    integers: Callable[..., Any] | None = None
    floats: Callable[..., Any] | None = None  # exact, one rounding away
    result: str = "common"  # or one of `RESULTS`
    complexes: Callable[..., Any] | None = None  # exact component by component
    wide: Callable[..., Any] | None = None  # a NumPy function, for what is not exact
    moves: bool = False  # only moves values, and so takes storage dtypes too
    masks: int = 0
    exponents: int = 0  # trailing operands that are integers, and take no part in promotion
    narrow: bool = False  # computed in the dtype itself, whose name is a float function's last argument
    scale: Callable[..., float] | None = (
        None  # how large the numbers are that cancel in it: the error is of their last place
    )
    open: Callable[..., bool] | None = None  # operands for which nothing is promised
    free_zero: bool = False  # the sign of a zero is left open
    steep: bool = False  # errors of a large complex operand grow: only moderate operands are tested closely


RESULTS = {
    "bool": "bool",
    "truth": "bool, of operands that are true where they are not 0",
    "float": "integers become float32",
    "real": "complex becomes the float of its parts",
    "real float": "both",
    "int": "bool becomes the default integer",
    "float bool": "bool, of operands whose integers become float32",
    "float int32": "int32, of operands whose integers become float32",
    "float64": "float64 or complex128",
}

BOOL, INT, REAL_NUMBER, NUMERIC = ("bool",), ("int",), ("int", "float"), ("int", "float", "complex")
REAL, ANY = BOOL + REAL_NUMBER, KINDS


def comparison(function: Callable[[Any, Any], bool], kinds: tuple[str, ...]) -> Rule:
    return Rule(2, kinds, lambda x, y, bits: function(x, y), function, "bool", function)


def bits(function: Callable[..., int], arity: int = 2, kinds: tuple[str, ...] = BOOL + INT) -> Rule:
    return Rule(arity, kinds, function, moves=True)


def of_floats(wide: Any, floats: Callable[[float], float] | None = None, **options: Any) -> Rule:
    return Rule(1, ANY, None, floats, "float", wide=wide, **options)


def of_reals(wide: Any, arity: int = 1, **options: Any) -> Rule:
    return Rule(arity, REAL, result="float", wide=wide, **options)


def rounding(function: Callable[[float], int]) -> Rule:
    return Rule(1, REAL_NUMBER, lambda x, bits: x, exact.integral(function))


def truth(function: Callable[..., bool], arity: int = 2) -> Rule:
    return Rule(arity, ANY, lambda *xs: function(*xs[:-1]), result="truth")


def is_any(of_parts: Callable[[complex], bool], of_integers: bool = False) -> Rule:
    return Rule(1, ANY, lambda x, bits: of_integers, of_parts, "bool", of_parts)


RULES: dict[str, Rule] = {
    "add": Rule(2, ANY, lambda x, y, bits: x + y, operator.add, complexes=operator.add),
    "subtract": Rule(2, NUMERIC, lambda x, y, bits: x - y, operator.sub, complexes=operator.sub),
    "multiply": Rule(2, ANY, lambda x, y, bits: x * y, operator.mul, wide=np.multiply),
    "divide": Rule(2, ANY, None, divided, "float", wide=np.divide),
    "floor_divide": Rule(2, REAL_NUMBER, lambda x, y, bits: x // y if y else 0, floored),
    "remainder": Rule(2, REAL_NUMBER, lambda x, y, bits: x % y if y else 0, left_over),
    "pow": Rule(2, NUMERIC, wrapped_power, wide=np.power, steep=True),
    "negative": Rule(1, NUMERIC, lambda x, bits: -x, operator.neg, complexes=operator.neg),
    "positive": Rule(1, NUMERIC, lambda x, bits: x, operator.pos, complexes=operator.pos),
    "abs": Rule(1, NUMERIC, lambda x, bits: abs(x), abs, "real", wide=np.abs),
    "square": Rule(1, ANY, lambda x, bits: x * x, lambda x: x * x, "int", wide=np.square),
    "bitwise_and": bits(lambda x, y, bits: x & y),
    "bitwise_or": bits(lambda x, y, bits: x | y),
    "bitwise_xor": bits(lambda x, y, bits: x ^ y),
    "bitwise_invert": bits(lambda x, bits: ~x if bits > 1 else not x, 1),
    "bitwise_left_shift": bits(lambda x, y, bits: shifted(x, y, bits, left=True), kinds=INT),
    "bitwise_right_shift": bits(lambda x, y, bits: shifted(x, y, bits, left=False), kinds=INT),
    "equal": comparison(operator.eq, ANY),
    "not_equal": comparison(operator.ne, ANY),
    "less": comparison(operator.lt, REAL),
    "less_equal": comparison(operator.le, REAL),
    "greater": comparison(operator.gt, REAL),
    "greater_equal": comparison(operator.ge, REAL),
    "logical_and": truth(lambda x, y: x and y),
    "logical_or": truth(lambda x, y: x or y),
    "logical_xor": truth(operator.ne),
    "logical_not": truth(operator.not_, 1),
    "reciprocal": of_floats(np.reciprocal, lambda x: divided(1.0, x)),
    "fmod": Rule(2, REAL_NUMBER, lambda x, y, bits: x - y * truncated(x, y) if y else 0, exact.left_toward_zero),
    "gcd": Rule(2, INT, lambda x, y, bits: math.gcd(x, y)),
    "lcm": Rule(2, INT, lambda x, y, bits: math.lcm(x, y)),
    "fma": Rule(3, REAL_NUMBER, lambda x, y, z, bits: x * y + z, exact.fused),
    "float_power": Rule(2, ANY, result="float64", wide=np.power, steep=True),
    "sqrt": of_floats(np.sqrt, root),
    "rsqrt": of_reals(lambda x: 1 / np.sqrt(x)),
    "cbrt": of_reals(np.cbrt),
    "hypot": of_reals(lambda x, y: np.hypot(x * 1, y * 1), 2),  # signalling NaN made quiet
    **{name: of_floats(getattr(np, name), steep=True) for name in ("exp", "exp2", "expm1")},
    **{name: of_floats(getattr(np, name)) for name in ("log", "log2", "log10", "log1p")},
    **{
        name: of_reals(getattr(np, name), 2, scale=lambda x, y: max(abs(x), abs(y)))
        for name in ("logaddexp", "logaddexp2")
    },
    **{name: of_floats(getattr(np, name), steep=True) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": of_floats(getattr(np, f"arc{name}")) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": of_reals(np.arctan2, 2),
    "sinc": of_reals(by_mpmath(exact.sinc, lambda x: 1.0)),
    "deg2rad": of_reals(np.deg2rad),
    "rad2deg": of_reals(np.rad2deg),
    "erf": of_reals(by_mpmath(exact.erf, operator.pos)),
    "erfc": of_reals(by_mpmath(exact.erfc, lambda x: 1.0)),
    "erfinv": of_reals(by_mpmath(exact.erfinv, operator.pos)),
    "lgamma": of_reals(  # 0 at 1 and 2, and often between the poles
        by_mpmath(exact.lgamma, lambda x: math.inf), scale=lambda x: 0.5 if 0.5 < x < 3 else 0.0,
        open=lambda x: x < 0 and math.isfinite(x) and x % 1 != 0,
    ),
    "gamma": of_reals(
        by_mpmath(exact.gamma, lambda x: math.copysign(math.inf, x)), open=lambda x: x < 0 and x % 1 != 0
    ),
    "ndtr": of_reals(by_mpmath(exact.ndtr, lambda x: 0.5)),
    "expit": of_reals(by_mpmath(exact.expit, lambda x: 0.5)),
    "logit": of_reals(by_mpmath(exact.logit, lambda x: -math.inf)),
    "entr": of_reals(by_mpmath(exact.entr, lambda x: 0.0)),
    "xlogy": of_reals(exact.times(np.log), 2, free_zero=True),
    "xlog1py": of_reals(exact.times(np.log1p), 2, free_zero=True),
    "floor": rounding(math.floor),
    "ceil": rounding(math.ceil),
    "trunc": rounding(math.trunc),
    "round": rounding(round)._replace(kinds=NUMERIC, complexes=by_parts(exact.integral(round))),
    "isnan": is_any(cmath.isnan),
    "isinf": is_any(cmath.isinf),
    "isfinite": is_any(cmath.isfinite, True),
    "sign": Rule(1, NUMERIC, lambda x, bits: (x > 0) - (x < 0), exact.sign, wide=np.sign),
    "signbit": Rule(
        1, REAL_NUMBER, lambda x, bits: x < 0, lambda x, name: math.copysign(1, x) < 0, "bool", narrow=True
    ),
    "copysign": Rule(  # where a NaN is widened first, hardware may drop its sign
        2, REAL, None, lambda x, y, name: math.copysign(x, y), "float", narrow=True, open=lambda x, y: y != y
    ),
    "heaviside": Rule(2, REAL, None, exact.heaviside, "float"),
    "nextafter": Rule(2, REAL, None, exact.next_after, "float", narrow=True),
    "ldexp": Rule(2, REAL, None, exact.scaled, "float", exponents=1),
    "frexp_mantissa": Rule(1, REAL, None, lambda x: math.frexp(x)[0], "float"),
    "frexp_exponent": Rule(1, REAL, None, exact.exponent, "float int32"),
    "real": Rule(1, NUMERIC, lambda x, bits: x, operator.pos, "real", lambda x: x.real),
    "imag": Rule(1, NUMERIC, lambda x, bits: 0, lambda x: 0.0, "real", lambda x: x.imag),
    "conj": Rule(1, NUMERIC, lambda x, bits: x, operator.pos, complexes=lambda x: x.conjugate()),
    "angle": Rule(1, ANY, result="real float", wide=np.angle),
    "isclose": Rule(4, ANY, None, exact.close, "float bool", exact.close, open=exact.at_the_limit),
    "nan_to_num": Rule(4, NUMERIC, lambda x, *_: x, exact.replaced, complexes=by_parts(exact.replaced)),
    "minimum": Rule(2, REAL, lambda x, y, bits: min(x, y), picked(min), free_zero=True),
    "maximum": Rule(2, REAL, lambda x, y, bits: max(x, y), picked(max), free_zero=True),
    "clip": Rule(3, REAL_NUMBER, lambda x, a, b, bits: clamped(x, a, b), picked(clamped), free_zero=True),
    "where": Rule(
        3, ANY, lambda c, x, y, bits: x if c else y, lambda c, x, y: x if c else y, moves=True, masks=1,
        complexes=lambda c, x, y: x if c else y,
    ),
    "identity": Rule(1, ANY, lambda x, bits: x, operator.pos, moves=True, complexes=operator.pos),
}  # fmt: skip
TRUNCATING = {
    "floor_divide": lambda x, y, bits: truncated(x, y),
    "remainder": lambda x, y, bits: x - y * truncated(x, y) if y else 0,
}
INTEGERS_IN_NUMPY = {"reciprocal": lambda x, bits: x if x in (1, -1) else 0}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
COMPARISONS = tuple(COMPARE)
