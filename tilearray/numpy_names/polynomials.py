"""Polynomials of arrays that are differentiated, as formulas, and roots on a GPU: NumPy computes all others."""

from __future__ import annotations

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import ones, zeros
from tilearray.arrays.triangular import eye
from tilearray.engine.devices import Device
from tilearray.errors import ShapeError
from tilearray.functions.arguments import all_arrays, without_derivative
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import reshape
from tilearray.functions.reductions import sum
from tilearray.linalg.operands import computed, matrices
from tilearray.numpy_names.grids import vander
from tilearray.numpy_names.through_numpy import float_of, rounded
from tilearray.ops.arithmetic import divide
from tilearray.ops.elementary import sqrt
from tilearray.ops.number_parts import real
from tilearray.ops.promotion_methods import REAL_PART, opmath


def fitted(x: Array, y: Array, deg: int) -> Array:
    """Return the coefficients of the polynomial that fits points best: least squares with columns of length 1."""
    x, y = all_arrays("polyfit", [x, y])
    dtype = float_of("polyfit", [x.dtype, y.dtype])
    x, y = astype(x, dtype, copy=False), astype(y, dtype, copy=False)
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or deg < 0:
        raise ShapeError(
            f"polyfit: expected points of one axis and deg >= 0, got {x.shape}, {y.shape} and deg={deg}; "
            "write polyfit(x, y, 1)"
        )
    columns = vander(x, deg + 1)
    lengths = sqrt(sum(columns * columns, axis=0))
    part = _deepest(x, y).functions.matrices("polyfit")
    found, *_ = part.lstsq(divide(columns, lengths), y, x.shape[0] * float(np.finfo(dtype).eps), dtype)
    return divide(found, lengths if y.ndim == 1 else lengths[:, None])


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
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        return poly_of(x._signature.device.functions.matrices("poly").eigvals(x, x.dtype))
    if x.ndim != 1:
        raise ShapeError(
            f"poly: expected roots of one axis or a square matrix, got shape {x.shape}; write ta.reshape(x, -1)"
        )
    found = ones(1, x.dtype, device=_place(x))
    nothing = zeros(1, x.dtype, device=_place(x))
    for place in range(x.shape[0]):
        found = concat([found, nothing]) - x[place] * concat([nothing, found])
    values = np.sort(to_numpy(without_derivative(x).to_device("cpu")))
    return real(found) if np.iscomplexobj(values) and np.array_equal(values, np.sort(np.conj(values))) else found


def _deepest(*arrays: Array) -> Device:
    return max((x._signature.device for x in arrays), key=lambda device: device.depth)


def _place(x: Array) -> Device:
    functions = x._signature.device.functions
    return x.device if functions is None else functions.place
