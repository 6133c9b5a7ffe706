"""The options `where`, `dtype` and `casting` of a row, as NumPy's ufuncs have them, and the operands of its methods.

``dtype`` casts the operands, and the row computes in it. ``where`` computes every element and keeps those where the
mask is true: the others keep the values of ``out``. Without ``out`` NumPy leaves them uninitialised; here they are 0.
``casting`` is the rule by which operands become ``dtype``, and the result that of ``out``: "same_kind" is what a call
without it does, by the rule of the active semantics for targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import default_device
from tilearray.engine.signature import ArrayBase, new_array, signature_of
from tilearray.errors import DTypeError, OperandError, shown
from tilearray.functions.arguments import as_array, as_array_beside, as_arrays
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import broadcast_to, new_like
from tilearray.geometry.layout import Layout, broadcast_shapes
from tilearray.ops.arithmetic import choose
from tilearray.ops.execute import check_target, execute, fill
from tilearray.ops.hooks import HOOKS
from tilearray.ops.moves import convert
from tilearray.ops.op import Op
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.variants import variant
from tilearray.promotion.scalars import as_number, classify
from tilearray.promotion.storing import Casting, allows_cast

_NAMES = {"where", "dtype", "casting", "rounding", "flush_to_zero", "propagate_nan"}
_TESTS = {Promotion.ALWAYS_BOOL, Promotion.FLOAT_TO_BOOL, Promotion.TRUTH}  # the result is bool for all operands


def run_with_options(op: Op, operands: Sequence[Any], out: Any, options: dict[str, Any]) -> Any:
    """Run a row with options.

    Parameters
    ----------
    op : Op
    operands : sequence of Array, host data or number
        And the target, if it comes by position.
    out : Array or None
    options : dict
        ``where``: a bool Array, which broadcasts with the operands. ``dtype``: that of the result, to which all
        operands but masks and exponents are cast. ``casting``: "safe", "same_kind" or "unsafe". The others are those
        of the row.

    Raises
    ------
    TypeError
        If there is no such option.
    DTypeError
        If operands do not become the dtype, the result does not have it, the mask is not bool, or ``casting`` does not
        allow the dtype of ``out``.
    OperandError
        If there is no such rule.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.add(ta.asarray([1, 2]), 10, where=ta.asarray([True, False]), dtype="float64")
    Array([11.,  0.], dtype=float64, device='cpu')
    """
    unknown = sorted(options.keys() - _NAMES)
    if unknown:
        names = ", ".join(["out", "where", "dtype", "casting", *op.options.names])
        raise TypeError(f"{op.name}() got an unexpected keyword argument {unknown[0]!r}; its options are {names}")
    mask, dtype = options.pop("where", True), options.pop("dtype", None)
    casting: Casting = _checked_rule(op.name, options.pop("casting", "same_kind"))
    if len(operands) == op.arity + 1 and out is None:
        *operands, out = operands
    if dtype is not None:
        operands = _operands_as(op, operands, dtypes.as_dtype(dtype, op.name), casting)
    chosen = variant(op, **options)
    return _run(chosen, operands, out, casting) if mask is True else _run_where(chosen, operands, out, mask, casting)


HOOKS.call = run_with_options

# --- casting ---------------------------------------------------------------------------------------------------------


def _checked_rule(function: str, casting: Any) -> Any:
    if casting not in ("safe", "same_kind", "unsafe"):
        raise OperandError(
            f"{function}: expected casting as 'safe', 'same_kind' or 'unsafe', got {shown(casting)}; leave it out, or "
            f"write casting='unsafe' to allow all casts"
        )
    return casting


def _run(op: Op, operands: Sequence[Any], out: Any, casting: Casting) -> Any:
    """Run a row; a rule other than the usual one decides whether the target takes the dtype of the result."""
    if out is None or casting == "same_kind":
        return execute(op, operands, out)
    check_target(op.name, out)
    computed = execute(op, operands)
    if not allows_cast(casting, computed.dtype, out.dtype, op.name):
        raise DTypeError(
            f"{op.name}: casting={casting!r} does not allow the {computed.dtype.name} result to become "
            f"{out.dtype.name}; write casting='unsafe'"
        )
    return execute(convert, (computed,), out)


# --- dtype -----------------------------------------------------------------------------------------------------------


def _operands_as(op: Op, operands: Sequence[Any], dtype: np.dtype, casting: Casting) -> list[Any]:
    """The operands of a call that computes in a dtype."""
    returned = dtypes.bool_ if op.promotion in _TESTS else result_dtype(op, dtype)
    if returned != dtype:
        raise DTypeError(
            f"{op.name}: expected dtype={returned.name!r}, the dtype that {op.name} makes of {dtype.name}, got "
            f"{dtype.name}; write {op.name}(...).astype({dtype.name!r})"
        )
    found = as_arrays(op.name, operands)
    if op.promotion not in _TESTS:
        beside = next((x for x in found if issubclass(type(x), ArrayBase)), None)
        for place in range(op.masks, min(op.arity - op.exponents, len(found))):
            found[place] = _in_dtype(op.name, found[place], dtype, casting, beside)
    return found


def result_dtype(op: Op, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the result of a row for operands of one dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> result_dtype(ta.divide, ta.int8)
    dtype('float32')
    """
    main = op.arity - op.masks - op.exponents
    types = [*[dtypes.bool_] * op.masks, *[dtype] * main, *[dtypes.int64] * op.exponents]
    return op.typing(STATE.get().semantics, types).result


def _in_dtype(function: str, x: Any, dtype: np.dtype, casting: Casting, beside: ArrayBase | None) -> Any:
    """An operand in a dtype, cast as a rule allows; a number is an array of it."""
    if classify(x) is not None:
        device = default_device() if beside is None else beside.device
        number = as_number(x, dtype, function)
        return fill(new_array(ArrayBase._public, signature_of(Layout.of(()), dtype, device)), number, function)
    array = as_array(function, x) if beside is None else as_array_beside(function, x, beside)
    if not allows_cast(casting, array.dtype, dtype, function):
        raise DTypeError(
            f"{function}: expected operands that become {dtype.name}, got {array.dtype.name}; "
            f"write x.astype({dtype.name!r})"
        )
    return astype(array, dtype, copy=False)


# --- where -----------------------------------------------------------------------------------------------------------


def _run_where(op: Op, operands: Sequence[Any], out: Any, where: Any, casting: Casting) -> Any:
    """Run a row, and keep its results where a mask is true."""
    if out is not None:
        check_target(op.name, out)
    operands = as_arrays(op.name, operands, out)
    beside = next((x for x in (*operands, out) if issubclass(type(x), ArrayBase)), None)
    mask = as_array(op.name, where) if beside is None else as_array_beside(op.name, where, beside, "where")
    if mask.dtype != dtypes.bool_:
        raise DTypeError(f"{op.name}: expected where as a bool array, got {mask.dtype.name}; write where=mask != 0")
    if out is not None:
        computed = _run(op, operands, new_like(out, out.shape), casting)
        return execute(choose, (mask, computed, out), out)
    computed = execute(op, operands)
    shape = broadcast_shapes(computed.shape, mask.shape, function=op.name)
    zeros = fill(new_like(computed, ()), False if computed.dtype == dtypes.bool_ else 0, op.name)
    return execute(choose, (broadcast_to(mask, shape), computed, zeros), new_like(computed, shape))


# --- operands of the methods that apply a row step by step -----------------------------------------------------------

ANY_ORDER = {
    *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "maximum", "minimum"),
    "gcd",
}
"""Rows of which neither the order nor the grouping of operands matters, not even for the last bit."""


def named(op: Op, method: str) -> str:
    """Return the name of a method of an op in messages.

    Raises
    ------
    OperandError
        If the op does not have two operands of one kind.
    """
    name = f"{op.name}.{method}"
    if op.arity != 2 or op.masks or op.exponents:
        raise OperandError(f"{name}: expected an op of two operands of one dtype; write ta.{op.name}(...)")
    return name


def closed(op: Op, name: str, x: Any, dtype: Any) -> ArrayBase:
    """Return `x` in a dtype that the op returns for operands of it: in `dtype`, unless that is None.

    Raises
    ------
    DTypeError
        If the op returns another dtype for its own results, or bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> closed(ta.divide, "divide.reduce", [6, 3], None)
    Array([6., 3.], dtype=float32, device='cpu')
    """
    array = as_array(name, x)
    if dtype is not None:
        array = astype(array, dtype, copy=False)
    if op.promotion is Promotion.TRUTH:
        return astype(array, dtypes.bool_, copy=False)
    returned = result_dtype(op, array.dtype)
    if returned != array.dtype:
        if result_dtype(op, returned) != returned or returned == dtypes.bool_:
            raise DTypeError(
                f"{name}: expected an op that returns {array.dtype.name}, {op.name} returns {returned.name}; "
                f"write x.astype({returned.name!r}) first"
            )
        array = astype(array, returned)
    return array
