"""Variants: rows that are derived from a row for a rounding mode, for flushing to zero, or for NaN as missing value.

A call with an option is a call of a variant: a row with its own expression and function. The engine plans, caches and
runs it like every row. Therefore an option costs nothing in calls without it, and two modes never share a kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from tilearray.errors import OperandError
from tilearray.ops.options import GPU_ONLY, USUAL, Choice, checked_flag, mode_named
from tilearray.ops.row import Row

R = TypeVar("R", bound=Row)

_VARIANTS: dict[tuple[Row, Choice], Any] = {}


def variant(op: R, rounding: Any = None, flush_to_zero: bool = False, propagate_nan: bool = True) -> R:
    """Return the variant of an op for these options, or the op itself if all options have their defaults.

    Raises
    ------
    OperandError
        If the op does not have an option, or a flag is not True or False.

    Examples
    --------
    >>> import tilearray as ta
    >>> variant(ta.add, "rz").triton
    {'float': 'libdevice.add_rz({x}, {y})'}
    >>> variant(ta.add) is ta.add
    True
    """
    options = op.options
    flushes = checked_flag(op.name, "flush_to_zero", flush_to_zero)
    propagates = checked_flag(op.name, "propagate_nan", propagate_nan)
    _check_taken(op, "rounding", rounding is None or options.rounding)
    _check_taken(op, "flush_to_zero", not flushes or options.flush_to_zero)
    _check_taken(op, "propagate_nan", propagates or options.ignoring_nan)
    return derived(op, Choice(mode_named(rounding, op.name, options.rounding), flushes, propagates))


def derived(op: R, choice: Choice) -> R:
    """Return the variant of an op for a choice. Equal choices give the same object."""
    if choice == USUAL:
        return op
    found = _VARIANTS.get((op, choice))
    return found if found is not None else _VARIANTS.setdefault((op, choice), _derive(op, choice))


def _check_taken(op: Row, option: str, taken: object) -> None:
    if not taken:
        names = ", ".join(["out", *op.options.names])
        raise OperandError(f"{op.name}() has no option {option} (options: {names}); leave it out")


def _derive(op: R, choice: Choice) -> R:
    mode = choice.rounding
    if mode is not None and op.options.rounding.get(mode):
        triton = {"float": op.options.rounding[mode]}
    elif not choice.propagate_nan:
        triton = {**op.triton, "float": op.options.ignoring_nan}
    else:
        triton = op.triton
    if choice.flush_to_zero:
        expression = next(triton[kind] for kind in ("float32", "float", "any") if kind in triton)
        triton = {"float32": expression.replace("(", "_ftz(", 1) if mode in GPU_ONLY else _flushed(expression)}
    function = op.name + choice.suffix if not op.moves else ""
    derivative = op.derivative if choice.propagate_nan else op.options.derivative_ignoring_nan
    return replace(
        op, choice=choice, function=function, triton=triton, derivative=derivative, operator="", into=object()
    )


def _flushed(expression: str) -> str:
    """Return an expression that flushes its operands and its result."""
    for name in "xyz":
        expression = expression.replace(f"{{{name}}}", f"flush_f32({{{name}}})")
    return f"flush_f32({expression})"
