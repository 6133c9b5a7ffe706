"""The operands of `tilearray.linalg`: Arrays on a device that computes, matrices of shapes that fit, one float dtype.

A backend says by ``numpy.linalg.LinAlgError`` that a decomposition does not exist. `computed` turns it into the
library's error, which says what to write instead.
"""

from __future__ import annotations

from functools import lru_cache
from numbers import Real
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import Factors
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, check_array
from tilearray.errors import LinAlgError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import OnHost, Runs, as_array, common_dtype, matrices_of, ran
from tilearray.functions.conversion import to_numpy
from tilearray.geometry.shapes import broadcast_shapes
from tilearray.ops.promotion_methods import Promotion, computed_as
from tilearray.ops.row import ANY


def matrices(function: str, *operands: ArrayBase) -> Runs:
    """Return what computes on the device of the operands.

    Raises
    ------
    DeviceError
        If the device has no such part, or the operands are on different devices.
    """
    first = operands[0]
    check_array(function, first)
    deepest = (first if len(operands) == 1 else max(operands, key=lambda x: x.device.depth)).device
    if deepest.functions is not None:
        common_device(function, [x._signature for x in operands])
        return deepest.functions.matrices(function)
    factors = first.device.backend.factors
    if factors is None:
        part: Runs = OnHost(matrices_of(function, first))
    else:
        part = _on_device(factors)
    if len(operands) > 1:
        common_device(function, [x._signature for x in operands])
    return part


@lru_cache(16)
def _on_device(factors: Factors) -> Runs:
    from tilearray.linalg.device_matrices import DeviceMatrices  # the host does not need it

    return DeviceMatrices(factors)


def float_dtype(function: str, *operands: ArrayBase) -> np.dtype:
    """Return the common dtype of operands; that of their true division for bool and integers.

    Examples
    --------
    >>> import tilearray as ta
    >>> float_dtype("inv", ta.asarray([1, 2])), float_dtype("inv", ta.asarray([1.0], dtype="bfloat16"))
    (dtype('float32'), dtype(bfloat16))
    """
    changes, rules = State.changes, STATE.get().semantics
    given = [x._signature.dtype for x in operands]
    key = (changes, rules.key, *given)
    found = _FLOATS.get(key)
    if found is None:
        found = _FLOATS.put(key, computed_as(Promotion.TRUE_DIVISION, rules, common_dtype(function, given, ANY)))
    return found


_FLOATS: TwoGenerations[np.dtype] = TwoGenerations(1024)
"""The dtypes that `float_dtype` found."""


def check_matrices(function: str, x: ArrayBase, name: str = "x") -> None:
    """Raise ShapeError if an array has fewer than two axes."""
    if x.ndim < 2:
        raise ShapeError(
            f"{function}: expected matrices of shape (..., M, N) for {name}, got shape {x.shape}; "
            f"write {name}[None, :] for one row"
        )


def check_square(function: str, x: ArrayBase, name: str = "x", instead: str = "x @ x.mT") -> None:
    """Raise ShapeError if the last two axes are not of equal sizes."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{function}: expected square matrices of shape (..., M, M) for {name}, got shape {x.shape}; "
            f"write {instead if x.ndim > 1 else f'ta.reshape({name}, (M, M))'}"
        )


_REASONS: Final = (
    ("infs or NaNs", "expected finite elements, got inf or NaN; write ta.nan_to_num(x)"),
    ("ingular", "expected invertible matrices, got a singular one; write ta.linalg.pinv(x) for the pseudo-inverse"),
    ("positive definite", "expected positive-definite matrices, got another; write ta.linalg.eigh(x)"),
    ("converge", "the iteration does not converge; write ta.all(ta.isfinite(x)) to look for inf and NaN"),
)  # fmt: skip
"""A part of NumPy's message, and ours."""


def computed(function: str, part: Runs, method: str, *arguments: Any) -> Any:
    """Return the result of a method of `Matrices` as Arrays. The first argument is an Array, or a list of them.

    Raises
    ------
    LinAlgError
        If the matrices do not have it.
    ImportError
        If a library of the device is not installed.
    """
    try:
        return ran(function, part, method, *arguments)
    except np.linalg.LinAlgError as error:
        text = str(error)
    reason = next((ours for part, ours in _REASONS if part in text), f"{text}; write ta.isfinite(x) to look at x")
    raise LinAlgError(f"{function}: {reason}")


def computed_of_square(method: str, x: Any, *options: Any, instead: str = "x @ x.mT") -> Any:
    """Return the result of a function of square matrices: of the method of `Matrices` that has its name.

    The method takes the matrices, options and the float dtype.
    """
    function = f"linalg.{method}"
    x = as_array(function, x)
    part = matrices(function, x)
    check_square(function, x, instead=instead)
    return computed(function, part, method, x, *options, float_dtype(function, x))


def tolerances(function: str, name: str, value: Any, like: ArrayBase) -> np.ndarray | None:
    """Return a tolerance as an ndarray of float64: a number, or an Array of one number for each matrix of `like`.

    Raises
    ------
    OperandError
        If it is neither, or complex.
    BroadcastError
        If it does not broadcast against the axes before the matrices.
    DeviceError
        If it is on another device than `like`.
    """
    if value is None:
        return None
    if isinstance(value, ArrayBase):
        common_device(function, [like._signature, value._signature])
        if dtypes.info(value.dtype).kind != "complex":
            broadcast_shapes(value.shape, like.shape[:-2], function=f"{function}: {name}")
            return to_numpy(value).astype(np.float64)
    elif isinstance(value, Real):
        return np.asarray(float(value))
    raise OperandError(
        f"{function}: expected {name} as a real number or a real Array, got {type_name(value)}; write {name}=1e-6"
    )
