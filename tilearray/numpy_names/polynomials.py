"""Polynomials of arrays that are differentiated or on a GPU, as formulas: NumPy computes all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full, ones, zeros
from tilearray.arrays.triangular import eye
from tilearray.engine.devices import Device
from tilearray.errors import OperandError, ShapeError
from tilearray.functions.arguments import without_derivative
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import permute_dims, reshape
from tilearray.functions.products import matmul
from tilearray.functions.reductions import sum
from tilearray.geometry.shapes import as_int
from tilearray.linalg.operands import computed, float_dtype, matrices
from tilearray.numpy_names.grids import vander
from tilearray.numpy_names.through_numpy import float_of, rounded
from tilearray.ops.arithmetic import add, divide, multiply
from tilearray.ops.elementary import sqrt
from tilearray.ops.number_parts import real
from tilearray.ops.promotion_methods import REAL_PART, opmath


class Fit(NamedTuple):
    """Least squares with columns of length 1: what ``np.polyfit`` returns, and what its covariances follow from."""

    coefficients: Array
    residuals: Array
    rank: int
    singular_values: Array
    rcond: float
    columns: Array
    lengths: Array

    def rank_as_array(self) -> Array:
        """Return the rank beside the other results."""
        return full((), self.rank, dtype=dtypes.int32, device=self.columns.device)


def fitted(x: Array, y: Array, w: Array | None, deg: Any, rcond: float | None) -> Fit:
    """Fit a polynomial to points, with weights if there are any, in the dtypes of NumPy.

    Raises
    ------
    ShapeError
        If the degree is negative.
    OperandError
        If there are no points, or another number of values or weights.
    """
    order = as_int(deg, "polyfit", "deg") + 1
    if order < 1:
        raise ShapeError(f"polyfit: expected deg >= 0, got {deg}; write deg=1 for a line")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise OperandError(
            f"polyfit: expected points of one axis and a value for each, got shapes {x.shape} and {y.shape}; "
            "write arrays of one length"
        )
    if w is not None and w.shape != x.shape:
        raise OperandError(
            f"polyfit: expected weights of shape {x.shape}, got {w.shape}; write a weight for each point"
        )
    x, y = add(x, 0.0), add(y, 0.0)  # floats
    columns = vander(x, order)
    if w is not None:
        columns, y = multiply(columns, w[:, None]), multiply(y, w if y.ndim == 1 else w[:, None])
    lengths = sqrt(sum(multiply(columns, columns), axis=0))
    columns = divide(columns, lengths)
    limit = least_that_counts(x, rcond)
    found, residuals, rank, values = computed(
        "polyfit", matrices("polyfit", columns, y), "lstsq", columns, y, limit, float_dtype("polyfit", columns, y)
    )
    coefficients = divide(found, lengths if y.ndim == 1 else lengths[:, None])
    return Fit(coefficients, residuals, int(rank), values, limit, columns, lengths)


def least_that_counts(x: Array, rcond: float | None) -> float:
    """Return the share of the largest singular value up to which others count as 0: NumPy's if none is given.

    Examples
    --------
    >>> import tilearray as ta
    >>> least_that_counts(ta.zeros(10, dtype="int8"), None) == 10 * 2**-52
    True
    """
    dtype = x.dtype if x.dtype.kind in "fc" else dtypes.float64
    return x.shape[0] * float(np.finfo(dtype).eps) if rcond is None else float(rcond)


def covariances(fit: Fit, is_scaled: bool) -> Array:
    """Return the covariances of the coefficients of a fit, by the variance of the residuals if they are scaled."""
    points, order = fit.columns.shape
    gram = matmul(permute_dims(fit.columns, (1, 0)), fit.columns)
    inverse = computed("polyfit", matrices("polyfit", gram), "inv", gram, gram.dtype)
    found = divide(inverse, multiply(fit.lengths[:, None], fit.lengths))
    if fit.coefficients.ndim == 2:
        found = found[:, :, None]
    if not is_scaled:
        return found
    if points <= order:
        raise ShapeError(
            f"polyfit: expected more than {order} points for covariances, got {points}; write cov='unscaled'"
        )
    return multiply(found, divide(fit.residuals, points - order))


def roots_there(p: Array) -> Array:
    """Return the roots of a polynomial: the eigenvalues of its companion matrix, and zeros."""
    dtypes.check_arithmetic("roots", p.dtype)
    dtype = float_of("roots", [p.dtype])
    p = astype(p, opmath(dtype), copy=False)
    if p.ndim != 1:
        raise ShapeError(f"roots: expected coefficients of one axis, got shape {p.shape}; write ta.reshape(p, -1)")
    (places,) = np.nonzero(to_numpy(without_derivative(p).to_device("cpu")))
    first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 1)
    inner, count = p[first:last], last - first - 1
    rest = zeros(p.shape[0] - last if places.size else 0, REAL_PART.get(dtype, dtype), device=_place(p))
    if count < 1:
        return rest
    row = reshape(-inner[1:] / inner[0], (1, count))
    companion = concat([row, eye(count - 1, count, dtype=p.dtype, device=_place(p))])
    found = computed("roots", matrices("roots", p), "eigvals", companion, p.dtype)
    if dtypes.info(dtype).kind != "complex":
        values = to_numpy(without_derivative(found).to_device("cpu"))
        found = rounded(real(found) if np.isreal(values).all() else found, dtype)
    return concat([found, astype(rest, found.dtype)]) if rest.size else found


def poly_of(zeros_of_it: Array) -> Array:
    """Return the coefficients of the polynomial with given roots, or the characteristic one of a matrix."""
    x = astype(zeros_of_it, float_of("poly", [zeros_of_it.dtype]), copy=False)
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        return poly_of(computed("poly", matrices("poly", x), "eigvals", x, x.dtype))
    if x.ndim != 1:
        raise ShapeError(
            f"poly: expected roots of one axis or a square matrix, got shape {x.shape}; write ta.reshape(x, -1)"
        )
    found = ones(1, x.dtype, device=_place(x))
    nothing = zeros(1, x.dtype, device=_place(x))
    for place in range(x.shape[0]):
        found = concat([found, nothing]) - x[place] * concat([nothing, found])
    if dtypes.info(found.dtype).kind != "complex":
        return found
    values = np.sort(to_numpy(without_derivative(x).to_device("cpu")))
    return real(found) if np.array_equal(values, np.sort(np.conj(values))) else found


def _place(x: Array) -> Device:
    functions = x._signature.device.functions
    return x.device if functions is None else functions.place
