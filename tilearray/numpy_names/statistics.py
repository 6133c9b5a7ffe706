"""Means with weights, quantiles, polynomials: what NumPy's users compute of a sample."""

from __future__ import annotations

import math
from typing import Any
from warnings import warn

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full, zeros_like
from tilearray.engine.context import semantics
from tilearray.errors import GradientError, OperandError, ShapeError
from tilearray.functions.arguments import all_arrays, as_array, as_array_beside, check_kind, is_differentiated
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import broadcast_to, moveaxis, reshape
from tilearray.functions.reduce import reduce_arrays
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import any, max, mean, min, reduced_axes, sum
from tilearray.functions.scans import diff
from tilearray.geometry.shapes import normalize_axes, normalize_axis
from tilearray.numpy_names.on_device import as_read, there
from tilearray.numpy_names.polynomials import covariances, fitted, least_that_counts, poly_of, roots_there
from tilearray.numpy_names.quantiles import (
    hundredths,
    median_there,
    parts_of,
    quantile_by_numpy,
    quantile_there,
    runs_there,
)
from tilearray.numpy_names.through_numpy import by_numpy, exact, float_of
from tilearray.ops.arithmetic import divide, equal, multiply, subtract
from tilearray.ops.number_parts import conj
from tilearray.ops.row import REAL


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """Return the mean with weights.

    Parameters
    ----------
    a : Array
    axis : int or tuple of int, optional
        The axes to reduce; None reduces all.
    weights : Array, optional
        Of the shape of `a`, or of the axes that are reduced, in their order. None counts all elements alike.
    returned : bool
        Whether to return the sum of the weights as well.
    keepdims : bool

    Raises
    ------
    ShapeError
        If the weights do not fit.
    OperandError
        If the weights have a sum of 0.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.average([1.0, 4.0], weights=[2, 1])
    Array(2., dtype=float32, device='cpu')
    """
    if weights is None:
        x: Array = as_array("average", a)
        found = mean(x, axis, keepdims=keepdims)
        axes = range(x.ndim) if axis is None else normalize_axes(axis, x.ndim, "average")
        count = math.prod([x.shape[place] for place in axes])
        return (found, full(found.shape, count, found.dtype, device=found.device)) if returned else found
    x, given = all_arrays("average", [a, weights])
    scale = _weights(x, given, axis)
    target = float_of("average", [x.dtype, given.dtype])
    wide = dtypes.complex128 if dtypes.info(target).kind == "complex" else dtypes.float64
    axes = reduced_axes("average", x, axis)
    total = sum(scale, axis, wide, keepdims=keepdims)
    if bool(any(equal(total, 0))):
        raise OperandError("average: expected weights with a sum other than 0, got 0; write ta.mean(x)")
    products = reduce_arrays("vecdot", (conj(scale), x), axes, wide, keepdims)
    found = astype(divide(products, total), target)
    return (found, astype(total, target)) if returned else found


def _weights(x: Array, weights: Array, axis: Any) -> Array:
    """The weights in the shape of `x`."""
    if weights.shape == x.shape:
        return weights
    axes = normalize_axes(axis, x.ndim, "average") if axis is not None else ()
    if weights.shape != tuple([x.shape[place] for place in axes]):
        raise ShapeError(
            f"average: expected weights of shape {x.shape} or of the axes that are reduced, got {weights.shape}; "
            f"write axis= for them"
        )
    shape = [x.shape[place] if place in axes else 1 for place in range(x.ndim)]
    places = sorted(range(len(axes)), key=lambda position: axes[position])
    return broadcast_to(reshape(moveaxis(weights, places, list(range(len(places)))), tuple(shape)), x.shape)


def ptp(a: Any, axis: Any = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """Return the largest element less the smallest.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.ptp([[1, 5], [3, 4]], 1).tolist()
    [4, 1]
    """
    x = as_array("ptp", a)
    check_kind("ptp", x.dtype, REAL)
    return finished("ptp", subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims)), out)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Return the integral by the trapezoidal rule along an axis.

    Parameters
    ----------
    y : Array
    x : Array, optional
        The places of the samples: 1-d, or of the shape of `y`. None spaces them by `dx`.
    dx : number
    axis : int

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.trapezoid([1.0, 2.0, 4.0])
    Array(4.5, dtype=float32, device='cpu')
    """
    heights, steps = (as_array("trapezoid", y), dx) if x is None else all_arrays("trapezoid", [y, x])
    place = normalize_axis(axis, heights.ndim, "trapezoid")
    if x is not None:
        steps = diff(steps, axis=0 if steps.ndim == 1 else axis)
        if steps.ndim == 1:
            steps = reshape(steps, tuple([steps.size if other == place else 1 for other in range(heights.ndim)]))
    before = (slice(None),) * place
    areas = heights[(*before, slice(1, None))] + heights[(*before, slice(-1))]
    areas = multiply(steps, areas)  # of three such arrays, two are in memory at a time
    return sum(divide(areas, 2.0), axis)


# --- quantiles -----------------------------------------------------------------------------------------------------


def median(
    a: Any, axis: Any = None, out: Array | None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return the median: the middle element in sorted order, or the mean of the two in the middle.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.median([3, 1, 2, 10])
    Array(2.5, dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("median", a)
    if runs_there("median", x):
        return median_there("median", x, axis, out, keepdims)
    return by_numpy("median", (a,), axis=axis, keepdims=keepdims, out=out)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return quantiles.

    Parameters
    ----------
    a : Array
        Of a real dtype.
    q : number, or sequence of numbers
        From 0 to 1; the axes of a sequence come first in the result. If it is an Array on a GPU, the call waits for
        it.
    axis : int or tuple of int, optional
    out : Array, optional
    overwrite_input : bool
        Ignored, as in all quantiles: the array stays as it is.
    method : str
        How to interpolate between elements: see `numpy.quantile`.
    keepdims : bool
    weights : Array, optional
        How often each element counts, with ``method="inverted_cdf"``, on the host: of the shape of `a`, or of the axes
        that are reduced.

    Raises
    ------
    ShapeError
        If `q` is not from 0 to 1, or the weights do not fit, or are negative or all 0, or `method` takes none.
    DeviceError
        If `a` is on a GPU and there are weights, or `q` is on a GPU and `a` is not on the same one.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.quantile([0.0, 1.0, 2.0], [0.25, 0.5])
    Array([0.5, 1. ], dtype=float32, device='cpu')
    >>> ta.quantile([1.0, 2.0, 3.0], 0.5, weights=[1, 1, 5], method="inverted_cdf")
    Array(3., dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("quantile", a)
    if runs_there("quantile", x, method, weights):
        return quantile_there("quantile", x, parts_of("quantile", x, q), axis, out, keepdims, method=method)
    return quantile_by_numpy("quantile", a, q, axis, out, method, keepdims, weights)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Array:
    """Return percentiles: `quantile` with `q` from 0 to 100.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.percentile([0.0, 1.0, 2.0], 75)
    Array(1.5, dtype=float32, device='cpu')
    """
    del overwrite_input
    x = as_array("percentile", a)
    if runs_there("percentile", x, method, weights):
        parts = hundredths(parts_of("percentile", x, q))
        return quantile_there("percentile", x, parts, axis, out, keepdims, method=method)
    return quantile_by_numpy("percentile", a, q, axis, out, method, keepdims, weights)


# --- polynomials ---------------------------------------------------------------------------------------------------


def polyval(p: Any, x: Any) -> Array:
    """Return a polynomial's values at `x`; the coefficient of the highest power comes first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.polyval([3, 0, 1], 5)
    Array(76, dtype=int64, device='cpu')
    """
    coefficients, places = all_arrays("polyval", [p, x])
    if coefficients.ndim != 1:
        raise ShapeError(
            f"polyval: expected coefficients of one axis, got shape {coefficients.shape}; write ta.reshape(p, -1)"
        )
    if not coefficients.size:
        return zeros_like(places)
    found = multiply(places, 0)
    for place in range(coefficients.shape[0]):
        found = found * places + coefficients[place]
    return found


def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Return the coefficients of the polynomial of a degree that fits points best; highest power first.

    On a GPU the call waits for the rank.

    Parameters
    ----------
    x, y : Array
        The points; `y` may have several columns.
    deg : int
    rcond, full, w, cov
        As of ``np.polyfit``: the least singular value that counts, whether to return how the fit ended, a weight for
        each point, and whether to return the covariances of the coefficients.

    Returns
    -------
    Array
        Or the tuple that NumPy returns with `full` or `cov`, in which `rcond` is a float.

    Raises
    ------
    GradientError
        If the points are differentiated and one of the options is given.
    OperandError
        If there are no points, or another number of values or weights.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 3).tolist()
    [2.0, 1.0]
    """
    has_options = rcond is not None or full or w is not None or bool(cov)
    if has_options and (is_differentiated(x) or is_differentiated(y)):
        raise GradientError("polyfit: rcond, full, w and cov have no derivative; write ta.linalg.lstsq")
    given = there("polyfit", (x, y))
    if given is None:
        found = by_numpy("polyfit", (x, y), deg, rcond=rcond, full=full, w=exact("polyfit", w), cov=cov)
        if not full:
            return found
        return (*found[:-1], least_that_counts(as_read("polyfit", as_array("polyfit", x)), rcond))
    with semantics("numpy"):
        places, values = given.arrays
        weights = None if w is None else as_read("polyfit", as_array_beside("polyfit", w, places, "w"))
        fit = fitted(places, values, weights, deg, rcond)
        found = given.finished(fit.coefficients)
        if full:
            residuals, values = given.finished(fit.residuals), given.finished(fit.singular_values)
            return found, residuals, fit.rank_as_array(), values, fit.rcond
        if fit.rank < fit.columns.shape[1]:
            warn("polyfit: the points determine no such polynomial", np.exceptions.RankWarning, stacklevel=2)
        return (found, given.finished(covariances(fit, cov != "unscaled"))) if cov else found


def roots(p: Any) -> Array:
    """Return the roots of a polynomial, in no particular order; the coefficient of the highest power comes first.

    They are the eigenvalues of a matrix. On a GPU the call waits for them: they are real if no imaginary part is left.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.sort(ta.roots([1.0, -3.0, 2.0])), 3).tolist()
    [1.0, 2.0]
    """
    elsewhere = isinstance(p, Array) and not p.device.backend.on_host
    return roots_there(p) if elsewhere or is_differentiated(p) else by_numpy("roots", (p,))


def poly(seq_of_zeros: Any) -> Array:
    """Return the coefficients of the polynomial with given roots, or the characteristic one of a square matrix.

    On a GPU the call waits for complex roots: coefficients are real if their conjugates are roots too.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.poly([1.0, 2.0])
    Array([ 1., -3.,  2.], dtype=float32, device='cpu')
    """
    given = there("poly", (seq_of_zeros,))
    if given is None:
        return by_numpy("poly", (seq_of_zeros,))
    if given.arrays[0].shape == (0,):
        return by_numpy("poly", ([],))  # a number
    with semantics("numpy"):
        return given.finished(poly_of(given.arrays[0]))
