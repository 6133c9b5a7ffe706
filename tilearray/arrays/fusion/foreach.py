"""`foreach`: a fused function on each of several arrays, as an optimizer step over the parameters of a model.

All calls are checked and planned before the first one runs. So an error in one of them, such as two shapes that do not
fit, comes before anything is written. On a GPU, calls that compute the same are one launch (the module `together`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from tilearray.arrays.frameworks import called, is_foreign
from tilearray.arrays.fusion.containers import leaves, member_of
from tilearray.arrays.fusion.fuse import Fused
from tilearray.engine.caches import TwoGenerations
from tilearray.errors import OperandError, type_name
from tilearray.ops.signatures import show


def foreach(function: Callable[..., Any], /, *lists: Any) -> list[Any]:
    """Run a fused function on the first members of some lists, on the second ones, and so on.

    All calls are checked before the first one runs, so an error in one of them comes before anything is written. On a
    GPU, calls with the same dtypes and layout class are one launch, whatever their shapes.

    Parameters
    ----------
    function : callable
        A function as for `fuse`, or a function that is fused. It may update its arguments in place.
    *lists : list, tuple or any other argument
        Lists of equal length with the arguments of the calls. An argument that is not a list, such as a number, is the
        same in all calls.

    Returns
    -------
    list
        What each call returns.

    Raises
    ------
    OperandError
        If no argument is a list, or two lists differ in length.
    FusionError
        If the function cannot be fused. The message says what to write instead.

    Examples
    --------
    >>> import tilearray as ta
    >>> def step(p, g, rate):
    ...     p -= rate * g
    >>> parameters, gradients = [ta.ones(2), ta.ones((1, 3))], [ta.ones(2), ta.zeros((1, 3))]
    >>> _ = ta.foreach(step, parameters, gradients, 0.5)
    >>> parameters
    [Array([0.5, 0.5], dtype=float32, device='cpu'), Array([[1., 1., 1.]], dtype=float32, device='cpu')]
    """
    from tilearray.arrays.fusion.together import run_together  # here: few programs need it

    fused = _fused(function)
    count = _count(lists)
    found = run_together(fused, count, lists)
    if found is not None:
        return found
    if any(is_foreign(leaf) for leaf in leaves(lists)):
        return called(_on_arrays, (fused, count, lists), {})
    return _one_by_one(fused, count, lists)


def _on_arrays(fused: Fused, count: int, lists: Sequence[Any]) -> list[Any]:
    """Run the calls, together if they may."""
    from tilearray.arrays.fusion.together import run_together

    found = run_together(fused, count, lists)
    return _one_by_one(fused, count, lists) if found is None else found


def _one_by_one(fused: Fused, count: int, lists: Sequence[Any]) -> list[Any]:
    """Plan all calls, then run them."""
    runs = [fused.planned(*[member_of(each, place) for each in lists]) for place in range(count)]
    return [run() for run in runs]


def _count(lists: Sequence[Any]) -> int:
    """Return the number of calls."""
    counts = [len(cast("Sequence[Any]", each)) for each in lists if isinstance(each, list | tuple)]
    if not counts:
        given = ", ".join([type_name(each) for each in lists]) or "no arguments"
        raise OperandError(f"foreach: expected lists of arrays, got {given}; write ta.foreach(f, [x, y])")
    if min(counts) != max(counts):
        raise OperandError(f"foreach: expected lists of equal length, got lengths {counts}; write one member a call")
    return counts[0]


_FUSED: TwoGenerations[Fused] = TwoGenerations(64)
"""The fused form of functions that were not fused."""


def _fused(function: Any) -> Fused:
    if isinstance(function, Fused):
        return function
    if not callable(function):
        raise OperandError(f"foreach: expected a function, got {type_name(function)}; write ta.foreach(f, [x, y])")
    if function.__hash__ is None:
        return Fused(function, "each")
    return _FUSED.get(function) or _FUSED.put(function, Fused(function, "each"))


show([foreach])
