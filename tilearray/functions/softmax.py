"""Sums of exponentials, and shares of them: `logsumexp`, `softmax` and `log_softmax`, on every device.

Each one subtracts the largest element first, so that nothing overflows: it is a `max`, a reduction of exponentials, and
an elementwise operation for the rest. On a GPU these are one launch if rows are short enough to be held by a program;
the results have the same bits. `tilearray.ops.softmax` has the formulas. Infinities give what they give in
`scipy.special`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilearray import dtypes
from tilearray.dtypes import finfo
from tilearray.engine.array_type import A
from tilearray.engine.backend import Call
from tilearray.engine.caches import leaf_at
from tilearray.engine.context import STATE, State
from tilearray.engine.execute import is_recorded, run
from tilearray.engine.operation import Operation, typed_scalar
from tilearray.engine.plan import Key
from tilearray.engine.remembered import remember
from tilearray.engine.signature import HostData
from tilearray.functions.arguments import as_array, check_kind
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like, squeeze
from tilearray.functions.reduce import Words, again, refuse, run_arrays
from tilearray.functions.reductions import Axis, reduced_axes
from tilearray.geometry.reduction import is_held
from tilearray.geometry.shapes import reduced_shape
from tilearray.ops.execute import fill
from tilearray.ops.options import checked_flag
from tilearray.ops.reduction import computed_in, reduction_of
from tilearray.ops.row import REAL
from tilearray.ops.summation_order import SummationOrder, accumulator, order_on


def logsumexp(x: A | HostData, /, axis: Axis = None, keepdims: bool = False, *, order: SummationOrder = "fixed") -> A:
    """Return the logarithm of the sum of exponentials, without overflow; of no elements it is -infinity.

    Parameters
    ----------
    x : Array
        Of a real dtype. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    order : {"fixed", "any"}
        The order of additions, as for `sum`.

    Returns
    -------
    Array
        NaN if there is a NaN, else infinity if there is one.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.logsumexp(ta.asarray([1000.0, -1000.0]))
    Array(1000., dtype=float32, device='cpu')
    """
    words = ("logsumexp", axis, keepdims, order, State.changes)
    known = again(words, x)
    if known is not None:
        return known
    keepdims = checked_flag("logsumexp", "keepdims", keepdims)
    given, axes = _floats("logsumexp", x, axis)
    order = order_on(given.device, "logsumexp", order)
    if given.size:
        whole = _in_one_launch("logsumexp", given, axes, keepdims, words, order)
        if whole is not None:
            return whole
        return _in_launches("logsumexp", given, axes, keepdims, order, words if given is x else None)
    found = fill(new_like(given, reduced_shape(given.shape, axes, True)), -math.inf, "logsumexp")
    return found if keepdims else squeeze(found, axis=axes)


def softmax(x: A | HostData, /, axis: Axis = -1) -> A:
    """Return exponentials divided by their sum along axes: ``exp(x) / sum(exp(x))``, without overflow.

    Parameters
    ----------
    x : Array
        Of a real dtype. Bool and integers give the float of their true division.
    axis : int or tuple of int, optional
        The axes along which results add up to 1; None is all.

    Returns
    -------
    Array
        Of the shape of `x`. All NaN along axes with a NaN, with an infinity, or with elements of -infinity alone.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or an axis occurs twice.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.softmax(ta.asarray([[0.0, 0.0], [1000.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    return _shares("softmax", x, axis)


def log_softmax(x: A | HostData, /, axis: Axis = -1) -> A:
    """Return the logarithm of `softmax`, more exactly than ``log(softmax(x))``. Parameters and errors are its own.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.log_softmax(ta.asarray([1000.0, 0.0])).tolist()
    [0.0, -1000.0]
    """
    return _shares("log_softmax", x, axis)


def _shares(function: str, x: Any, axis: Axis) -> Any:
    words = (function, axis, None, State.changes)
    known = again(words, x)
    if known is not None:
        return known
    given, axes = _floats(function, x, axis)
    if not given.size:
        return fill(new_like(given, given.shape), 0.0, function)
    whole = _in_one_launch(function, given, axes, True, words)
    if whole is not None:
        return whole
    return _in_launches(function, given, axes, True, "fixed", words if given is x else None)


def _in_one_launch(
    function: str, x: A, axes: tuple[int, ...], keepdims: bool, words: Words, order: SummationOrder = "fixed"
) -> A | None:
    """Return the function of floats if one launch does it, else None."""
    device = x.device
    backend = device.backend
    held = backend.holds_rows and is_held(x._signature.layout, axes, x.dtype.itemsize, backend.most_members)
    if not held and device.functions is None:
        return None
    return run_arrays(_formulas().row_function_of(function, x.dtype, axes, keepdims, order), (x,), words)


def _formulas() -> Any:
    """Return the module of the formulas, imported at its first use."""
    from tilearray.ops import softmax

    return softmax


def _floats(function: str, x: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """The operand as floats, and the axes."""
    x = as_array(function, x)
    axes = reduced_axes(function, x, axis)
    check_kind(function, x.dtype, REAL)
    is_float = dtypes.info(x.dtype).kind == "float"
    return x if is_float else astype(x, STATE.get().semantics.true_division), axes


class _Calls:
    """Runs operations that make new arrays, and notes the calls of their plans."""

    def __init__(self) -> None:
        self.noted: list[Call | None] = []

    def run(self, operation: Operation, *operands: Any, numbers: Sequence[float] = ()) -> Any:
        """Run an operation of arrays, and of numbers after them."""
        keys: list[Key] = [x._signature for x in operands]
        keys += [typed_scalar(computed_in(operands[0].dtype)) for _ in numbers]
        found = run(operation, keys, (*operands, *numbers), None, refuse)
        plan = leaf_at(STATE.get().plans, (operation, *keys))
        self.noted.append(None if plan is None else plan.call)
        return found


def _in_launches(
    function: str, x: Any, axes: tuple[int, ...], keepdims: bool, order: SummationOrder, words: Words | None
) -> Any:
    """The function as a maximum, a sum of exponentials, and the rest; their calls are remembered under the words."""
    formulas, calls, most = _formulas(), _Calls(), float(finfo(x.dtype).max)
    largest = calls.run(reduction_of("max", x.dtype, axes, True), x)
    if function != "softmax":
        largest = calls.run(formulas.finite_of(x.dtype), largest, numbers=(-most, most))
    name = "inverse_of_exponentials" if function == "softmax" else "log_of_exponentials"
    total = calls.run(reduction_of(name, accumulator(x.dtype, order), axes, True, order), x, largest)
    read = (largest, total) if function == "logsumexp" else (x, largest, total)
    found = calls.run(formulas.rest_of(function, x.dtype, order), *read)
    result = found if keepdims else squeeze(found, axis=axes)
    if words is not None and None not in calls.noted and not is_recorded(x._signature.device):
        remember(words, (x,), _chained(function, calls.noted, most, None if result is found else result._signature))
    return result


def _chained(function: str, calls: list[Any], most: float, view: Any) -> Call:
    """Return a function of an array that makes the calls again, and returns the result or a view of it."""
    maximum, *finite, exponentials, rest = calls
    reads_elements = function != "logsumexp"

    def chained(stream: Any, x: Any) -> Any:
        largest = maximum(stream, x)
        if finite:
            largest = finite[0](stream, largest, -most, most)
        total = exponentials(stream, x, largest)
        found = rest(stream, x, largest, total) if reads_elements else rest(stream, largest, total)
        return found if view is None else found._make(found._buffer, found._offset, view)

    return chained
