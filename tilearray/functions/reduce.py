"""How a chapter runs a reduction: by the engine, on every device, or without it if there are no elements to reduce."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Call
from tilearray.engine.caches import leaf_at
from tilearray.engine.context import STATE, State
from tilearray.engine.execute import run
from tilearray.engine.operation import Operation, typed_scalar
from tilearray.engine.plan import Key, Plan
from tilearray.engine.remembered import INT_OR_NONE, Words, again_of_arrays, is_plain, remember
from tilearray.engine.signature import ArrayBase, new_array, signature_of
from tilearray.errors import WriteError
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import reduced_shape
from tilearray.geometry.strides import broadcast_strides
from tilearray.ops.execute import fill
from tilearray.ops.reduction import measured_in, reduction_of
from tilearray.ops.summation_order import SummationOrder
from tilearray.promotion.scalars import Number

CallOf = Callable[[Call], Call]
FLOAT64 = np.dtype(np.float64)
NONE: dict[str, Any] = {
    "sum": 0, "prod": 1, "mean": math.nan, "var": math.nan, "std": math.nan, "all": True, "any": False,
    "count_nonzero": 0, "nanmax": math.nan, "nanmin": math.nan, "squares": 0, "vecdot": 0, "norm": 0, "sizes": 0,
    "inverse_of_exponentials": math.inf, "log_of_exponentials": -math.inf,
}  # fmt: skip
"""The reductions of no elements."""


_FLAGS = frozenset({bool, type(None)})
"""The classes of `keepdims` in words: True also equals 1 and 1.0, which are read differently."""


def again(words: Words | None, x: Any) -> Any:
    """Run a reduction for which a call has asked in the same words; None if there was none, or its plan is evicted.

    Words are the function, `axis`, `keepdims`, and `order` if it has one, without other options; then `State.changes`
    if the dtypes depend on the semantics. The axes and dtypes are found and checked once.
    """
    if words is None or words[2].__class__ not in _FLAGS:
        return None
    if words[1].__class__ not in INT_OR_NONE and not is_plain(words[1]):
        return None
    state = STATE.get()
    try:  # as in `tilearray.engine.remembered.again`: another frame takes a tenth of the time of this one
        call = state.plans[words][x._signature]
    except (KeyError, AttributeError, TypeError):
        return None
    return call(state.stream, x)


def again_where(words: Words | None, x: Any, where: Any) -> Any:
    """As `again`, for a reduction of the elements where a mask is true."""
    if words is None or words[2].__class__ not in _FLAGS:
        return None
    if words[1].__class__ not in INT_OR_NONE and not is_plain(words[1]):
        return None
    return again_of_arrays((*words, WHERE), x, where)


WHERE = "where"
"""The last one of the words of such a reduction."""


def remember_plan(
    words: Words, arrays: Sequence[ArrayBase], operation: Operation, keys: list[Key], call_of: CallOf | None = None
) -> None:
    """Keep the call of a reduction or a scan under the words that asked for it.

    `call_of` returns it if it is not the call of the plan.
    """
    if is_plain(words[1]):
        plan: Plan | None = leaf_at(STATE.get().plans, (operation, *keys))
        if plan is not None:  # another thread may have evicted it
            remember(words, arrays, plan.call if call_of is None else call_of(plan.call))


def reduce(
    function: str,
    x: A,
    axes: tuple[int, ...],
    dtype: np.dtype,
    keepdims: bool,
    *numbers: float,
    order: SummationOrder = "fixed",
    words: Words | None = None,
) -> A:
    """Return a reduction of `x` over axes, as a new array of a dtype.

    Parameters
    ----------
    function : str
        A reduction of `tilearray.ops.reduction`.
    x : Array
        Of a dtype that the reduction takes.
    axes : tuple of int
        Not negative, each once.
    dtype : numpy.dtype
        The dtype of the result.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    numbers : float
        The operands after the arrays: the number of elements of a mean, for example.
    order : {"fixed", "any"}
        As the device has it (`tilearray.ops.summation_order`).
    words : Words, optional
        `again` finds the plan under these words.

    Examples
    --------
    >>> import tilearray as ta
    >>> reduce("sum", ta.asarray([[1, 2], [3, 4]]), (0,), ta.int64, False)
    Array([4, 6], dtype=int64, device='cpu')
    """
    if is_empty(x, axes):
        return _of_nothing(function, x, axes, dtype, keepdims, numbers)
    operation = reduction_of(function, dtype, axes, keepdims, order)
    arrays = (x, _middle(x, axes, dtype, numbers[0], order)) if function in ("var", "std") else (x,)
    keys: list[Key] = [*[array._signature for array in arrays], *[typed_scalar(FLOAT64) for _ in numbers]]
    found = run(operation, keys, (*arrays, *numbers), None, refuse)
    if words is not None:
        call_of = partial(_call_of_array, arrays, axes, dtype, numbers, order) if len(keys) > 1 else None
        remember_plan(words, (x,), operation, keys, call_of)
    return found


def is_empty(x: ArrayBase, axes: tuple[int, ...]) -> bool:
    """Return whether there are no elements along axes. The answer is not part of what `fuse` records for a shape."""
    layout = x._signature.layout
    return not layout.size and not all(layout.shape[axis] for axis in axes)


def _call_of_array(
    arrays: tuple[ArrayBase, ...],
    axes: tuple[int, ...],
    dtype: np.dtype,
    numbers: tuple[float, ...],
    order: SummationOrder,
    call: Call,
) -> Call:
    """Return the call of a mean or a variance of any array with the signature of the first one."""
    if len(arrays) == 1:

        def counted(stream: Any, x: Any) -> Any:
            return call(stream, x, *numbers)

        return counted
    first = arrays[1]._signature if order == "fixed" else None

    def about(stream: Any, x: Any) -> Any:
        middle = _middle(x, axes, dtype, numbers[0], order) if first is None else x._make(x._buffer, x._offset, first)
        return call(stream, x, middle, *numbers)

    return about


def reduce_from(
    function: str,
    x: A,
    axes: tuple[int, ...],
    dtype: np.dtype,
    keepdims: bool,
    initial: Number,
    order: SummationOrder = "fixed",
) -> A:
    """Return a reduction of `x` and of a number, which counts as one more element of every result.

    Parameters
    ----------
    function : {"sum", "prod", "max", "min"}
    x, axes, dtype, keepdims, order
        As for `reduce`.
    initial : bool, int, float or complex
        It is rounded to `dtype`; then the result is rounded once.

    Examples
    --------
    >>> import tilearray as ta
    >>> reduce_from("sum", ta.asarray([[1, 2], [3, 4]]), (0,), ta.int64, False, 100)
    Array([104, 106], dtype=int64, device='cpu')
    """
    if is_empty(x, axes):
        return _filled(x, axes, dtype, keepdims, initial, function)
    operation = reduction_of(f"{function}_from", dtype, axes, keepdims, order)
    return run(operation, [x._signature, typed_scalar(dtype)], (x, initial), None, refuse)


def reduce_arrays(
    function: str,
    arrays: Sequence[A],
    axes: tuple[int, ...],
    dtype: np.dtype,
    keepdims: bool,
    order: SummationOrder = "fixed",
    words: Words | None = None,
) -> A:
    """Return a reduction of several arrays, which broadcast to the shape of the first one.

    `again_of_arrays` finds the plan under the words, if there are any.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([1.0, 2.0])
    >>> reduce_arrays("vecdot", (x, x), (0,), ta.float32, False)
    Array(5., dtype=float32, device='cpu')
    """
    first = arrays[0]
    if is_empty(first, axes):
        return _of_nothing(function, first, axes, dtype, keepdims, ())
    return run_arrays(reduction_of(function, dtype, axes, keepdims, order), arrays, words)


def run_arrays(operation: Operation, arrays: Sequence[A], words: Words | None) -> A:
    """Run an operation of arrays without numbers. `again` or `again_of_arrays` finds the plan under the words."""
    keys: list[Key] = [x._signature for x in arrays]
    found = run(operation, keys, arrays, None, refuse)
    if words is not None:
        remember_plan(words, arrays, operation, keys)
    return found


def _of_nothing(
    function: str, x: A, axes: tuple[int, ...], dtype: np.dtype, keepdims: bool, numbers: tuple[float, ...]
) -> A:
    nothing = NONE[function]
    if function in ("var", "std"):  # no squares, over the divisor
        nothing = 0.0 / numbers[-1]
    if dtypes.info(dtype).kind == "complex" and math.isnan(nothing):
        nothing = complex(math.nan, math.nan)
    return _filled(x, axes, dtype, keepdims, nothing, function)


def _filled(x: A, axes: tuple[int, ...], dtype: np.dtype, keepdims: bool, number: Number, function: str) -> A:
    """Return a new array of the shape of a reduction, full of a number."""
    shape = reduced_shape(x.shape, axes, keepdims)
    out = new_array(x.__class__, signature_of(Layout.of(shape), dtype, x.device))
    return fill(out, number, function)


def _first(x: A, axes: tuple[int, ...]) -> A:
    """Return the first elements along axes, repeated to the shape of `x`."""
    layout = x._signature.layout
    shape = reduced_shape(layout.shape, axes, True)
    return x._view(Layout(layout.shape, broadcast_strides(shape, layout.strides, layout.shape)))


def _middle(x: A, axes: tuple[int, ...], dtype: np.dtype, count: float, order: SummationOrder) -> A:
    """Return what a variance of a dtype measures distances from: the first elements, or the mean in any order."""
    if order == "fixed":
        return _first(x, axes)
    layout, wide = x._signature.layout, measured_in(x._signature.dtype, dtype, order)
    words = None
    if wide == x._signature.dtype and len(axes) in (1, layout.ndim):
        words = ("mean", axes[0] if len(axes) == 1 else None, True, order, State.changes)
    mean = again(words, x)
    if mean is None:
        mean = reduce("mean", x, axes, wide, True, count, order=order, words=words)
    return mean._view(mean._signature.layout.broadcast_to(layout.shape))


def refuse(operation: Operation, operands: Any, out: ArrayBase) -> Any:
    """Raise WriteError: what the engine calls for operands of one memory, which no reduction has."""
    del operands, out
    raise WriteError(f"{operation.name}: a reduction makes a new array")
