"""Covariances and correlations of variables. On a GPU they are computed in float64 or complex128, as on the host.

Each result is rounded once, to the dtype of the result. On a GPU no call waits for values: weights there are not
checked for negative numbers and fractions, and weights with a sum of 0 give NaN.
"""

from __future__ import annotations

from typing import Any

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import semantics
from tilearray.engine.devices import common_device
from tilearray.errors import ShapeError, shown
from tilearray.functions.arguments import as_array_beside
from tilearray.functions.conversion import astype
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import diagonal, reshape
from tilearray.functions.products import matmul, matrix_transpose
from tilearray.functions.reductions import mean, sum
from tilearray.numpy_names.on_device import there
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.ops.arithmetic import divide, maximum, multiply, subtract
from tilearray.ops.composed import clip
from tilearray.ops.elementary import sqrt
from tilearray.ops.number_parts import conj


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
    """Return the covariance matrix of variables, computed in float64 or complex128.

    Parameters
    ----------
    m : Array
        Of at most two axes: a row for each variable, a column for each observation.
    y : Array, optional
        More variables of the same observations.
    rowvar : bool
        False reads columns as variables.
    bias : bool
        Whether to divide by the number of observations, and not by one less.
    ddof : int, optional
        Divides by the number of observations less this, whatever `bias` is.
    fweights, aweights : Array, optional
        How often each observation counts, and its importance: of shape (observations,), not negative. On a GPU the
        values are not checked.
    dtype : dtype or name, optional
        The dtype of the result.

    Raises
    ------
    ShapeError
        If an array has more axes, or the numbers of observations differ.
    DeviceError
        If the arrays are on several devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    given = there("cov", (m, y))
    if given is None:
        weights = [exact("cov", one) for one in (fweights, aweights)]
        try:
            found = by_numpy("cov", (m, y), rowvar, bias, ddof, *weights)
        except RuntimeError as error:
            raise ShapeError(f"cov: {error}; write one weight for each observation") from error
    else:
        correction = int(not bias) if ddof is None else _whole(ddof)
        with semantics("numpy"):
            variables = _variables("cov", given.arrays[0], given.arrays[1], rowvar)
            weights = [_weights(name, one, variables) for name, one in (("f", fweights), ("a", aweights))]
            found = given.finished(_covariances(variables, correction, weights[0], weights[1]))
    return found if dtype is None else astype(found, dtype)


def _whole(ddof: Any) -> int:
    """An integer, which may be written as a float."""
    try:
        whole = int(ddof)
        if whole == ddof:
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    raise ShapeError(f"cov: expected ddof as an integer, got {shown(ddof)}; write ddof=1")


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """Return the matrix of Pearson's correlation coefficients of variables, computed in float64 or complex128.

    Parameters and errors are those of `cov`. A variable without variance gives NaN.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    given = there("corrcoef", (x, y))
    if given is None:
        found = by_numpy("corrcoef", (x, y), rowvar)
    else:
        with semantics("numpy"):
            variables = _variables("corrcoef", given.arrays[0], given.arrays[1], rowvar)
            found = given.finished(_correlations(_covariances(variables, 1, None, None)))
    return found if dtype is None else astype(found, dtype)


def _variables(function: str, x: Array, y: Array | None, rowvar: bool) -> Array:
    """All variables as rows, in float64 or complex128."""
    rows: list[Array] = []
    for one in (x, y):
        if one is None:
            continue
        if one.ndim > 2:
            raise ShapeError(f"{function}: expected at most two axes, got shape {one.shape}; write ta.reshape(x, ...)")
        two = one if one.ndim == 2 else reshape(one, (1, one.size))
        stands = one.ndim != 1 if one is x else two.shape[0] != 1  # NumPy asks so
        rows.append(two if rowvar or not stands else matrix_transpose(two))
    is_complex = [dtypes.info(one.dtype).kind == "complex" for one in rows]
    wide = dtypes.complex128 if True in is_complex else dtypes.float64
    if len(rows) > 1 and rows[0].shape[0] and rows[0].shape[1] != rows[1].shape[1]:
        raise ShapeError(
            f"{function}: expected as many observations in both arrays, got {rows[0].shape[1]} and {rows[1].shape[1]}; "
            f"write rowvar=False if they are rows"
        )
    rows = rows if rows[0].shape[0] else rows[:1]  # without variables in the first array, NumPy returns none
    wider = [astype(one, wide, copy=False) for one in rows]
    return concat(wider) if len(wider) > 1 else wider[0]


def _weights(name: str, weights: Any, variables: Array) -> Array | None:
    """The weights of observations in float64."""
    if weights is None:
        return None
    found: Array = as_array_beside("cov", weights, variables, f"{name}weights")
    common_device("cov", [variables._signature, found._signature])
    if found.shape != variables.shape[1:]:
        raise ShapeError(
            f"cov: expected {name}weights of shape {variables.shape[1:]}, got {found.shape}; "
            f"write one for each observation"
        )
    return astype(found, dtypes.float64, copy=False)


def _covariances(variables: Array, correction: int, fweights: Array | None, aweights: Array | None) -> Array:
    """The covariances of rows, without axes of size 1."""
    if not variables.shape[0]:
        return zeros((0, 0), dtype=variables.dtype, device=variables.device)
    weights = aweights if fweights is None else fweights if aweights is None else multiply(fweights, aweights)
    scale: Any
    if weights is None:
        count = variables.shape[1] - correction
        scale = 1 / count if count > 0 else float("inf")
        centred = subtract(variables, mean(variables, 1, keepdims=True))
        weighted = centred
    else:
        total = sum(weights)
        centres = divide(sum(multiply(variables, weights), 1, keepdims=True), total)
        scale = divide(1.0, maximum(_divisor(total, weights, correction, aweights), 0.0))
        centred = subtract(variables, centres)
        weighted = multiply(centred, weights)
    if dtypes.info(weighted.dtype).kind == "complex":
        weighted = conj(weighted)
    found = multiply(matmul(centred, matrix_transpose(weighted)), scale)
    return reshape(found, tuple([size for size in found.shape if size != 1]))


def _divisor(total: Array, weights: Array, correction: int, aweights: Array | None) -> Array:
    """The number of observations with weights, less the correction."""
    if not correction:
        return total
    if aweights is None:
        return subtract(total, correction)
    return subtract(total, divide(multiply(sum(multiply(weights, aweights)), correction), total))


def _correlations(covariances: Array) -> Array:
    """Covariances divided by the deviations of both variables."""
    if not covariances.ndim:
        return divide(covariances, covariances)
    is_complex = dtypes.info(covariances.dtype).kind == "complex"
    variances = diagonal(covariances)
    deviations = sqrt(variances.real if is_complex else variances)
    found = divide(divide(covariances, reshape(deviations, (-1, 1))), deviations)
    if not is_complex:
        return clip(found, -1, 1)
    for part in (found.real, found.imag):
        part[...] = clip(part, -1, 1)
    return found
