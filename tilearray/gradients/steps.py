"""Steps: what a differentiated function did, in order. Each `vjp` that runs is a level with a record of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from tilearray.arrays.fusion.tracing import open_trace
from tilearray.errors import GradientError
from tilearray.gradients.pullbacks import Pullback
from tilearray.gradients.views import View

T = TypeVar("T")
FLOATS = ("float", "complex")
"""The kinds of dtypes that have derivatives."""


class Step(NamedTuple):
    """A recorded call.

    Attributes
    ----------
    reads : tuple of (View or None)
        For each operand the view that it read; None if no argument reaches it.
    writes : tuple of View
        Its results.
    pull : Pullback or None
        From the cotangents of the results to those of the operands. None: nothing goes back, as from a constant.
    """

    reads: tuple[View | None, ...]
    writes: tuple[View, ...]
    pull: Pullback | None


class Record:
    """The steps of a function, in order.

    Attributes
    ----------
    level : int
        The number of vjps that are open, with this one.
    steps : list of Step
    through : callable or None
        ``through(name of the operation, result)`` returns the array that the function goes on with, of equal elements.
    gave_numbers : bool
        Whether the function took Python numbers of values that its arguments reach.
    """

    def __init__(self, level: int, through: Callable[[str, Any], Any] | None = None) -> None:
        self.level = level
        self.through = through
        self.steps: list[Step] = []
        self.trace = open_trace()
        self.gave_numbers = False


_OPEN: ContextVar[tuple[Record, ...]] = ContextVar("tilearray.vjp", default=())


def with_record(run: Callable[[Record], T], through: Callable[[str, Any], Any] | None = None) -> T:
    """Run a function whose operations on the arrays that a `Record` follows are recorded."""
    before = _OPEN.get()
    record = Record(len(before) + 1, through)
    try:  # an interrupt may arrive behind each call: so the record is opened within
        _OPEN.set((*before, record))
        return run(record)
    finally:
        _OPEN.set(before)


def levels_below(level: int) -> list[int]:
    """Return the levels that are open around one, in the same trace."""
    return [record.level for record in _OPEN.get()[: level - 1] if record.trace is open_trace()]


def note_numbers(level: int) -> None:
    """Note that the function of a level, if it still runs, took Python numbers of values that its arguments reach."""
    for record in _OPEN.get()[level - 1 : level]:
        record.gave_numbers = True


def current(level: int) -> Record:
    """Return the record of a level."""
    records = _OPEN.get()
    if len(records) < level:
        raise GradientError("vjp: an array of a differentiated function is used after it; return it from the function")
    record = records[level - 1]
    if record.trace is not open_trace():
        raise GradientError(
            "vjp: a fused function reads a differentiated array from outside of it; write it as an argument"
        )
    return record
