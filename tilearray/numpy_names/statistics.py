"""Means with weights, quantiles, correlations: what NumPy's users compute of a sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full
from tilearray.dtypes import DTypeLike
from tilearray.errors import OperandError, ShapeError
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import broadcast_to, moveaxis, reshape
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import any, max, mean, min, sum
from tilearray.functions.scans import diff
from tilearray.geometry.shapes import normalize_axes, normalize_axis
from tilearray.numpy_names.quantiles import hundredths, median_there, quantile_there, runs_there
from tilearray.numpy_names.through_numpy import by_numpy, exact, float_of
from tilearray.ops.arithmetic import divide, equal, multiply, subtract


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
    total = sum(scale, axis, wide, keepdims=keepdims)
    if bool(any(equal(total, 0))):
        raise OperandError("average: expected weights with a sum other than 0, got 0; write ta.mean(x)")
    found = astype(divide(sum(multiply(astype(x, wide), scale), axis, wide, keepdims=keepdims), total), target)
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
    pairs = heights[(*before, slice(1, None))] + heights[(*before, slice(-1))]
    return sum(divide(multiply(steps, pairs), 2.0), axis)


# --- quantiles -----------------------------------------------------------------------------------------------------


def median(a: Any, axis: Any = None, out: Array | None = None, *, keepdims: bool = False) -> Array:
    """Return the median: the middle element in sorted order, or the mean of the two in the middle.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.median([3, 1, 2, 10])
    Array(2.5, dtype=float32, device='cpu')
    """
    if runs_there(a):
        return median_there("median", a, axis, out, keepdims)
    return by_numpy("median", (a,), axis=axis, keepdims=keepdims, out=out)


def quantile(
    a: Any, q: Any, axis: Any = None, out: Array | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return quantiles; on a GPU with ``method="linear"`` only.

    Parameters
    ----------
    a : Array
        Of a real dtype.
    q : number, or sequence of numbers
        From 0 to 1; the axes of a sequence come first in the result.
    axis : int or tuple of int, optional
    out : Array, optional
    method : str
        How to interpolate between elements: see `numpy.quantile`.
    keepdims : bool

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.quantile([0.0, 1.0, 2.0], [0.25, 0.5])
    Array([0.5, 1. ], dtype=float32, device='cpu')
    """
    if runs_there(a, method):
        return quantile_there("quantile", a, exact(q), axis, out, keepdims)
    return by_numpy("quantile", (a,), exact(q), axis=axis, method=method, keepdims=keepdims, out=out)


def percentile(
    a: Any, q: Any, axis: Any = None, out: Array | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return percentiles: `quantile` with `q` from 0 to 100.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.percentile([0.0, 1.0, 2.0], 75)
    Array(1.5, dtype=float32, device='cpu')
    """
    if runs_there(a, method):
        return quantile_there("percentile", a, hundredths(exact(q)), axis, out, keepdims)
    return by_numpy("percentile", (a,), exact(q), axis=axis, method=method, keepdims=keepdims, out=out)


# --- correlations and signals --------------------------------------------------------------------------------------


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the covariance matrix of variables, each a row of `m`. On the host, computed in float64.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    found = by_numpy("cov", (m, y), rowvar, bias, ddof, exact(fweights), exact(aweights))
    return found if dtype is None else astype(found, dtype)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix of Pearson's correlation coefficients of variables. On the host, computed in float64.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    found = by_numpy("corrcoef", (x, y), rowvar)
    return found if dtype is None else astype(found, dtype)


def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """Return the discrete convolution of two 1-d arrays, on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.convolve([1, 2, 3], [0, 1])
    Array([0, 1, 2, 3], dtype=int64, device='cpu')
    """
    return by_numpy("convolve", (a, v), mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """Return the cross-correlation of two 1-d arrays, on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.correlate([1, 2, 3], [0, 1])
    Array([2, 3], dtype=int64, device='cpu')
    """
    return by_numpy("correlate", (a, v), mode)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences along axes, one-sided at the ends, on the host: an array, or one for each axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.gradient([1.0, 2.0, 4.0, 7.0])
    Array([1. , 1.5, 2.5, 3. ], dtype=float32, device='cpu')
    """
    x = as_array("gradient", f)
    spacings = [exact(one) if np.ndim(one) == 0 else exact(as_array("gradient", one)) for one in varargs]
    return by_numpy("gradient", (x,), *spacings, axis=axis, edge_order=edge_order)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Return a piecewise linear function of `x`, which is `fp` at the increasing places `xp`. On the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.interp([0.5, 1.5], [0, 1, 2], [10.0, 20.0, 40.0])
    Array([15., 30.], dtype=float32, device='cpu')
    """
    return by_numpy("interp", (x, xp, fp), left, right, period)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 6.283185307179586) -> Array:
    """Return angles with multiples of a period added, so that neighbours differ by at most half of it. On the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unwrap([0, 3, 2, 5], period=4)
    Array([ 0, -1, -2, -3], dtype=int64, device='cpu')
    """
    return by_numpy("unwrap", (p,), discont, axis, period=period)


def polyval(p: Any, x: Any) -> Array:
    """Return a polynomial's values at `x`; the coefficient of the highest power comes first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.polyval([3, 0, 1], 5)
    Array(76, dtype=int64, device='cpu')
    """
    coefficients, places = all_arrays("polyval", [p, x])
    found = multiply(places, 0)
    for place in range(coefficients.shape[0]):
        found = found * places + coefficients[place]
    return found


def polyfit(x: Any, y: Any, deg: int) -> Array:
    """Return the coefficients of the polynomial of a degree that fits points best, on the host; highest power first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 3).tolist()
    [2.0, 1.0]
    """
    return by_numpy("polyfit", (x, y), deg)


def roots(p: Any) -> Array:
    """Return the roots of a polynomial, on the host; the coefficient of the highest power comes first.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.round(ta.sort(ta.roots([1.0, -3.0, 2.0])), 3).tolist()
    [1.0, 2.0]
    """
    return by_numpy("roots", (p,))


def poly(seq_of_zeros: Any) -> Array:
    """Return the coefficients of the polynomial with given roots, on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.poly([1.0, 2.0])
    Array([ 1., -3.,  2.], dtype=float32, device='cpu')
    """
    return by_numpy("poly", (seq_of_zeros,))
