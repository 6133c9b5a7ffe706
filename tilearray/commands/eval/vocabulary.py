"""The vocabulary of expressions: functions, keywords, dtypes, constants and operators.

`tilearray.commands.eval.grammar` parses the text and looks up every name here. An expression can compute nothing else.
The functions are the public functions of whole chapters of the library, so a new function needs no entry here.
Operators check their operands: a list times a number would be a longer list, and ``9**9**9`` would not end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import ExpressionError
from tilearray.geometry.shapes import normalize_axis
from tilearray.ops.op import Op
from tilearray.ops.options import MODES
from tilearray.promotion.scalars import StandIn

WIDEST = 128
"""The maximum number of bits of an integer, more than any dtype has."""
MOST_PARTS = 4096
"""The maximum number of arrays that `unstack` gives."""

# --- names ------------------------------------------------------------------------------------------------------------

CHAPTERS = (
    "ops.composed",
    *(
        "arrays.fills",
        "functions.diagonals",
        "functions.indexing.take",
        "functions.joining",
        "functions.manipulation",
        "functions.repeating",
    ),
    *("functions.products", "functions.reductions", "functions.scans", "functions.searching", "functions.sets"),
    *("functions.softmax", "functions.sum_to_shape", "functions.tensor_products", "arrays.triangular"),
)
"""The modules whose public functions an expression can call, in addition to all operations of the table."""
ELSEWHERE = ("asarray", "astype")
REFUSED = ("einsum", "empty", "empty_like", "evaluate", "from_dlpack")
"""Functions that take strings of their own, return uninitialised memory, or take objects of other libraries."""


def _is_callable(name: str, value: Any) -> bool:
    if not callable(value):
        return False
    chapter = value.__module__.removeprefix("tilearray.")
    return name in ELSEWHERE or isinstance(value, Op) or chapter in CHAPTERS


def _unstacked(x: Any, /, axis: int = 0) -> tuple[ta.Array, ...]:
    """Return the arrays along an axis, if they are few: an array of a few bytes can be broadcast to 10**12 of them."""
    count = x.shape[normalize_axis(axis, x.ndim, "unstack")] if isinstance(x, ta.Array) else 0
    if count > MOST_PARTS:
        raise ExpressionError(f"unstack gives at most {MOST_PARTS} arrays here, not {count}; write x[0], x[1], ...")
    return ta.unstack(x, axis)


def _nan_to_num(x: Any, /, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> ta.Array:
    """Call `nan_to_num` without `copy`: an expression writes to none of its arrays."""
    return ta.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name in ta.__all__ if name not in REFUSED and _is_callable(name, value := getattr(ta, name))
}
FUNCTIONS["nan_to_num"], FUNCTIONS["unstack"] = _nan_to_num, _unstacked
"""The functions that an expression can call, by name."""
KEYWORDS = frozenset({
    "M", "N",
    "append", "atol", "axes", "axis", "axis1", "axis2", "axisa", "axisb", "axisc", "copy", "correction", "ddof",
    "decimals", "deg", "descending", "dtype", "endpoint", "equal_nan", "fill_value", "flush_to_zero", "include_initial",
    "indexing", "indices", "initial", "invert", "k", "keepdims", "max", "mean", "min", "n", "nan", "neginf", "num",
    "offset", "posinf", "prepend", "propagate_nan", "repeats", "reps", "rounding", "rtol", "saturate", "seed", "shape",
    "shift", "side", "sorter", "stable", "start", "step", "stop", "strides", "test_elements", "v", "where",
    "window_shape",
})  # fmt: skip
"""Without ``out``, ``device`` and ``stream``: an expression does not choose where it is computed, and in which order.

Without ``retstep``: an expression is one array."""
DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}
WORDS = {*DTYPES, *dtypes.SHORT_NAMES} | {"xy", "ij", "left", "right"} | {*MODES, *map(str.upper, MODES)}
"""The strings that can be arguments: names of dtypes, and values of ``indexing``, ``side`` or ``rounding``."""
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
    return ExpressionError(f"an integer can have at most {WIDEST} bits; write a float, such as 2.0")


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
    """Return an operator that accepts only arrays and numbers, and never returns an integer wider than `WIDEST`."""

    def compute(*operands: Any) -> Any:
        for operand in operands:
            if not isinstance(operand, (ta.Array, bool, int, float, complex, StandIn)):
                kind = type(operand).__name__
                raise ExpressionError(f"expected arrays or numbers, got a {kind}; write x[0], x[1], ... for its parts")
        result = function(*operands)
        if isinstance(result, int) and result.bit_length() > WIDEST:
            raise too_wide()
        return result

    return compute


def transposed(x: Any) -> Any:
    """Return ``x.T`` of an array."""
    if not isinstance(x, ta.Array):
        raise ExpressionError(f"expected an array before .T, got a {type(x).__name__}; omit .T")
    return x.T


def item(x: Any, key: Any) -> Any:
    """Return ``x[key]`` of an array, or one of several arrays that a function returned."""
    if isinstance(x, ta.Array):
        return x[key]
    if isinstance(x, (tuple, list)) and isinstance(key, int):
        return cast("tuple[Any, ...]", x)[key]
    kind = type(cast(object, x)).__name__
    raise ExpressionError(f"expected an array before [...], got a {kind}; index several arrays by an integer")
