"""A run of a function on followed arrays, and the way back through its steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilearray import dtypes
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.engine.signature import ArrayBase
from tilearray.errors import frames_of_the_library
from tilearray.functions.manipulation import new_like
from tilearray.gradients.calls import spread
from tilearray.gradients.followed import followed, is_followed, level_of, lowered, memory_of, view_of
from tilearray.gradients.steps import FLOATS, Record, Step, with_record
from tilearray.gradients.views import Cotangents, View, fitted
from tilearray.ops.execute import copy_of, fill


class Argument(NamedTuple):
    """An array that is differentiated."""

    view: View
    real: Any


class Run(NamedTuple):
    """What a function did with its arguments.

    Attributes
    ----------
    record : Record
    arguments : list
        For each leaf of the arguments its view, or None if it has no gradient.
    results : any
        What the function returned, as arrays of the level below.
    views : list
        For each leaf of the results its view, or None if no argument reaches it.
    """

    steps: Sequence[Step]
    arguments: list[Argument | None]
    results: Any
    views: list[tuple[View | None, Any]]

    def pulled(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the arguments; None for an argument without a gradient."""
        found = Cotangents(spread)
        for (view, _), g in zip(self.views, cotangents, strict=True):
            if view is not None and g is not None:
                found.add(view, g)
        for step in reversed(self.steps):
            given = [found.take(view) for view in step.writes]
            if step.pull is None or all(g is None for g in given):
                continue
            wanted = [view is not None for view in step.reads]
            for view, value in zip(step.reads, step.pull(given, wanted), strict=True):
                fit = None if view is None else fitted(value, view)
                if view is not None and fit is not None:
                    found.add(view, fit)
        return [None if one is None else _given(found.take(one.view), one.real) for one in self.arguments]


def without_gaps(cotangents: Sequence[Any], views: Sequence[View]) -> list[Any]:
    """Return the cotangents of several results: zeros for a result on which nothing depends."""
    return [_zeros_of(view, cotangents) if g is None else g for view, g in zip(views, cotangents, strict=True)]


def _zeros_of(view: View, beside: Sequence[Any]) -> Any:
    like = next(g for g in beside if g is not None)
    return fill(new_like(like, view.layout.shape, view.dtype), 0, "vjp")


def _given(found: Any, real: Any) -> Any:
    """The gradient of an argument: zeros if no result depends on it, and never several elements in one place."""
    if found is not None:
        return copy_of(found) if found._signature.layout.overlaps_itself else found
    return fill(new_like(real, real.shape), 0, "vjp")


def _traced(value: ArrayBase, record: Record) -> ArrayBase:
    """An array from outside of a function that is traced, as an array of the trace: each call reads it again."""
    trace = record.trace
    outside = trace is not None and value._signature.device is trace.device.real
    return trace.lifted(value, "vjp") if trace is not None and outside else value


def _warn_of_numbers(results: Any, level: int) -> None:
    """Warn if all results are numbers that no argument reaches: the gradient is 0, which is seldom meant."""
    slopes = [each for each in leaves(results) if _kind(each) in FLOATS]
    if slopes and not any(is_followed(each) and level_of(each) == level and memory_of(each).active for each in slopes):
        warnings.warn(
            "vjp: the gradient is 0, since derivatives end at Python numbers, as of float(x), x.item() and x.tolist(), "
            "and the result depends on the arguments only through them; write arithmetic with x instead of float(x), "
            "and `if x > 0` to decide by a value",
            RuntimeWarning,
            stacklevel=frames_of_the_library(),
        )


def _kind(leaf: Any) -> str:
    if isinstance(leaf, ArrayBase):
        return dtypes.info(leaf.dtype).kind
    return "float" if isinstance(leaf, float | complex) else ""


def followed_run(
    function: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any],
    places: set[int] | None,
    through: Callable[[str, Any], Any] | None = None,
) -> Run:
    """Run a function, and record what reaches its results.

    `places` are the arguments that are differentiated; None is all. Results of operations go `through` a function, as
    `Record` says.
    """
    arguments: list[Argument | None] = []

    def run(record: Record) -> Run:
        def follow(value: Any) -> Any:
            if not (isinstance(value, ArrayBase) and dtypes.info(value.dtype).kind in FLOATS):
                arguments.append(None)
                return value
            value = _traced(value, record)
            real = copy_of(value) if value._signature.layout.overlaps_itself else value
            stands = followed(real, record.level, active=True, readonly=True)
            arguments.append(Argument(view_of(stands), value))
            return stands

        given = [mapped(each, follow) if places is None or place in places else each for place, each in enumerate(args)]
        results = function(*given, **kwargs)
        if record.gave_numbers:
            _warn_of_numbers(results, record.level)
        views: list[tuple[View | None, Any]] = []

        def end(value: Any) -> Any:
            mine = is_followed(value) and value._signature.device.level == record.level
            below = lowered(value) if mine else value
            views.append((view_of(value) if mine else None, below))
            return below

        found = mapped(results, end)
        return Run(record.steps, arguments, found, views)

    return with_record(run, through)
