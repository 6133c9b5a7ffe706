"""Sums of exponentials, and shares of them: `logsumexp`, `softmax` and `log_softmax`, on every device.

Each one subtracts the largest element first, so that nothing overflows: it is a `max`, a reduction of exponentials, and
an elementwise operation for the rest. On a GPU these are one launch if rows are short enough to be held by a program;
the results have the same bits. `tilearray.ops.softmax` has the formulas. Infinities give what they give in
`scipy.special`.
"""

from __future__ import annotations

import math
from typing import Any

from tilearray import dtypes
from tilearray.dtypes import finfo
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE, State
from tilearray.engine.execute import run_fixed
from tilearray.engine.signature import HostData
from tilearray.functions.arguments import as_array, check_kind
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like, squeeze
from tilearray.functions.reduce import Words, again, reduce, reduce_arrays, run_arrays
from tilearray.functions.reductions import Axis, reduced_axes
from tilearray.geometry.reduction import is_held
from tilearray.geometry.shapes import reduced_shape
from tilearray.ops.arithmetic import clamp
from tilearray.ops.execute import fill
from tilearray.ops.options import checked_flag
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
        largest = _finite(given, axes)
        wide = accumulator(given.dtype, order)
        logs = reduce_arrays("log_of_exponentials", (given, largest), axes, wide, True, order)
        found = run_fixed(_formulas().rest_of("logsumexp", given.dtype, order), (largest, logs), None)
    else:
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
    x, axes = _floats(function, x, axis)
    if not x.size:
        return fill(new_like(x, x.shape), 0.0, function)
    whole = _in_one_launch(function, x, axes, True, words)
    if whole is not None:
        return whole
    largest = _largest(x, axes) if function == "softmax" else _finite(x, axes)
    name = "inverse_of_exponentials" if function == "softmax" else "log_of_exponentials"
    total = reduce_arrays(name, (x, largest), axes, accumulator(x.dtype), True)
    return run_fixed(_formulas().rest_of(function, x.dtype), (x, largest, total), None)


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


def _largest(x: Any, axes: tuple[int, ...]) -> Any:
    return reduce("max", x, axes, x.dtype, True)


def _finite(x: Any, axes: tuple[int, ...]) -> Any:
    """The largest elements, as finite numbers or NaN."""
    most = finfo(x.dtype).max
    return clamp(_largest(x, axes), -most, most)
