"""What the text of an expression may speak of: functions, keywords, dtypes, constants and operators.

`tilearray.commands.eval.grammar` reads the text; whatever it finds is looked up here, and what is not here cannot be computed.
The functions are the public ones of whole chapters of the library, so that a new one needs no word here. Operators
check what they are given: a list times a number would be a longer list, and ``9**9**9`` never ends.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import ExpressionError
from tilearray.ops.op import Op
from tilearray.ops.options import MODES

WIDEST = 128
"""Bits of an integer: more than any dtype has."""

# --- names ------------------------------------------------------------------------------------------------------------

CHAPTERS = (
    "ops.composed",
    *("creation.fills", "functions.indexing.take", "functions.joining", "functions.linalg"),
    *("functions.manipulation", "functions.reductions", "functions.scans", "functions.searching", "functions.sets"),
    "creation.triangular",
)
"""The modules whose public functions may be called, as every operation of the table may."""
ELSEWHERE = ("asarray", "astype")
REFUSED = ("einsum", "empty", "empty_like", "from_dlpack")
"""What takes a text of its own, memory that nobody wrote to, objects of other libraries."""


def _may_be_called(name: str, value: Any) -> bool:
    if name in REFUSED or not callable(value):
        return False
    chapter = value.__module__.removeprefix("tilearray.")
    return name in ELSEWHERE or isinstance(value, Op) or chapter in CHAPTERS


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name in ta.__all__ if _may_be_called(name, value := getattr(ta, name))
}
"""What an expression may call, by name."""
KEYWORDS = frozenset({
    "append", "atol", "axes", "axis", "axis1", "axis2", "copy", "correction", "descending", "dtype", "endpoint",
    "equal_nan", "fill_value", "flush_to_zero", "include_initial", "indexing", "invert", "k", "keepdims", "max", "min",
    "n", "nan", "neginf", "num", "offset", "posinf", "prepend", "propagate_nan", "repetitions", "rounding", "rtol",
    "saturate", "shape", "shift", "side", "sorter", "stable", "start", "step", "stop", "strides", "window_shape",
})  # fmt: skip
"""No ``out``, ``device`` or ``stream``: an expression says what is computed, and not where."""
DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}
WORDS = frozenset(DTYPES) | {"xy", "ij", "left", "right"} | {*MODES, *map(str.upper, MODES)}
"""What a text may be: the name of a dtype, or the value of ``indexing``, ``side`` or ``rounding``."""
CONSTANTS = {name: getattr(ta, name) for name in ("pi", "e", "inf", "nan")}


# --- operators --------------------------------------------------------------------------------------------------------


def _power(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and (abs(x).bit_length() - 1) * y > WIDEST:
        raise too_wide()
    return x**y


def _left_shift(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and y > WIDEST:
        raise too_wide()
    return x << y


def too_wide() -> ExpressionError:
    return ExpressionError(f"integers have at most {WIDEST} bits; write a float, such as 2.0")


Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

UNARY: dict[type[ast.unaryop], Unary] = {
    ast.USub: lambda x: -x,
    ast.UAdd: lambda x: +x,
    ast.Invert: lambda x: not x if isinstance(x, bool) else ~x,
}
BINARY: dict[type[ast.operator], Binary] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: x / y,
    ast.FloorDiv: lambda x, y: x // y,
    ast.Mod: lambda x, y: x % y,
    ast.Pow: _power,
    ast.MatMult: lambda x, y: x @ y,
    ast.BitAnd: lambda x, y: x & y,
    ast.BitOr: lambda x, y: x | y,
    ast.BitXor: lambda x, y: x ^ y,
    ast.LShift: _left_shift,
    ast.RShift: lambda x, y: x >> y,
}
COMPARISONS: dict[type[ast.cmpop], Binary] = {
    ast.Eq: lambda x, y: x == y,
    ast.NotEq: lambda x, y: x != y,
    ast.Lt: lambda x, y: x < y,
    ast.LtE: lambda x, y: x <= y,
    ast.Gt: lambda x, y: x > y,
    ast.GtE: lambda x, y: x >= y,
}


def on_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator that takes arrays and numbers alone, and gives no integer that is wider than `WIDEST`."""

    def compute(*operands: Any) -> Any:
        for operand in operands:
            if not isinstance(operand, (ta.Array, bool, int, float, complex)):
                kind = type(operand).__name__
                raise ExpressionError(f"expected arrays and numbers, got a {kind}; write x[0], x[1], ... for its parts")
        result = function(*operands)
        if isinstance(result, int) and result.bit_length() > WIDEST:
            raise too_wide()
        return result

    return compute


def transposed(x: Any) -> Any:
    """``x.T`` of an array."""
    if not isinstance(x, ta.Array):
        raise ExpressionError(f"expected an array before .T, got a {type(x).__name__}; leave it out")
    return x.T


def item(x: Any, key: Any) -> Any:
    """``x[key]`` of an array; or one of the several that a function returned."""
    if isinstance(x, ta.Array):
        return x[key]
    if isinstance(x, (tuple, list)) and isinstance(key, int):
        return cast("tuple[Any, ...]", x)[key]
    kind = type(cast(object, x)).__name__
    raise ExpressionError(f"expected an array before [...], got a {kind}; several arrays have an integer index")
