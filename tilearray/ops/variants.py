"""Variants: rows derived from a row for a rounding mode, for flushing to zero, or for NaN as a missing number.

A call that asks for an option is a call of a variant: a row with an expression and a function of its own. It is planned,
cached and run like every row. So an option costs nothing where a call does not ask for it, and two modes never share a
kernel.
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
    """Return the row that an op is with these options: the op itself where they ask for nothing.

    Raises
    ------
    OperandError
        If the op does not take them, or one that is True or False is neither.

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
    """Return the row derived for a choice, the same object for every call."""
    if choice == USUAL:
        return op
    found = _VARIANTS.get((op, choice))
    return found if found is not None else _VARIANTS.setdefault((op, choice), _derive(op, choice))


def _check_taken(op: Row, option: str, taken: object) -> None:
    if not taken:
        names = list(op.options.names)
        takes = f"it takes {' and '.join(names)}" if names else "it takes no options but out"
        raise OperandError(f"{op.name}: there is no {option}= for it, {takes}; leave it out")


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
    return replace(op, choice=choice, function=function, triton=triton, operator="", into=object())


def _flushed(expression: str) -> str:
    """An expression whose operands and result are flushed."""
    for name in "xyz":
        expression = expression.replace(f"{{{name}}}", f"flush_f32({{{name}}})")
    return f"flush_f32({expression})"
