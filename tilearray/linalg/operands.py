"""The operands of `tilearray.linalg`: Arrays on a device that computes, matrices of shapes that fit, one float dtype.

A backend says by ``numpy.linalg.LinAlgError`` that a decomposition does not exist. `computed` turns it into the
library's error, which says what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, Final, Protocol

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import Matrices
from tilearray.engine.context import STATE
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, check_array
from tilearray.errors import LinAlgError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import common_dtype, matrices_of, result
from tilearray.functions.conversion import to_numpy
from tilearray.ops.promotion_methods import Promotion, computed_as
from tilearray.ops.row import ANY


class OnHost:
    """The functions of `Matrices` for Arrays on the host."""

    def __init__(self, part: Matrices) -> None:
        self._part = part

    def run(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method as Arrays of the class of the first Array, in C order."""
        like = next(_arrays(arguments))
        found: Any = getattr(self._part, method)(*[_on_host(one) for one in arguments])
        if found.__class__ in (list, tuple):
            return tuple([_array(one, like) for one in found])
        return _array(found, like)


def _arrays(arguments: Any) -> Iterator[Any]:
    """Yield the Arrays among arguments, and those of lists."""
    for one in arguments:
        if isinstance(one, ArrayBase):
            yield one
        elif isinstance(one, list):
            yield from _arrays(one)


def _on_host(argument: Any) -> Any:
    if isinstance(argument, list):
        return [to_numpy(x) for x in _arrays(argument)]
    return to_numpy(argument) if isinstance(argument, ArrayBase) else argument


def _array(found: Any, like: Any) -> Any:
    """Return an ndarray or a NumPy scalar as an Array, and a Python number as it is."""
    return result(found, like) if hasattr(found, "dtype") else found


class Part(Protocol):
    """What runs the functions of `tilearray.engine.backend.Matrices` on a device, for Arrays."""

    def run(self, method: str, *arguments: Any) -> Any: ...


def matrices(function: str, *operands: ArrayBase) -> Part:
    """Return what computes on the device of the operands.

    Raises
    ------
    DeviceError
        If the device has no such part, or the operands are on different devices.
    """
    check_array(function, operands[0])
    factors = operands[0].device.backend.factors
    if factors is None:
        part: Part = OnHost(matrices_of(function, operands[0]))
    else:
        from tilearray.linalg.device_matrices import DeviceMatrices  # the host does not need it

        part = DeviceMatrices(factors)
    if len(operands) > 1:
        common_device(function, [x._signature for x in operands])
    return part


def float_dtype(function: str, *operands: ArrayBase) -> np.dtype:
    """Return the common dtype of operands; that of their true division for bool and integers.

    Examples
    --------
    >>> import tilearray as ta
    >>> float_dtype("inv", ta.asarray([1, 2])), float_dtype("inv", ta.asarray([1.0], dtype="bfloat16"))
    (dtype('float32'), dtype(bfloat16))
    """
    common = common_dtype(function, [x.dtype for x in operands], ANY)
    return computed_as(Promotion.TRUE_DIVISION, STATE.get().semantics, common)


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


def computed(function: str, part: Part, method: str, *arguments: Any) -> Any:
    """Return the result of a method of `Matrices` as Arrays. The first argument is an Array, or a list of them.

    Raises
    ------
    LinAlgError
        If the matrices do not have it.
    """
    try:
        return part.run(method, *arguments)
    except np.linalg.LinAlgError as error:
        text = str(error)
    reason = next((ours for part, ours in _REASONS if part in text), f"{text}; write ta.isfinite(x) to look at x")
    raise LinAlgError(f"{function}: {reason}")


def tolerances(function: str, name: str, value: Any, like: ArrayBase) -> np.ndarray | None:
    """Return a tolerance as an ndarray of float64: a number, or an Array of one number for each matrix.

    Raises
    ------
    OperandError
        If it is neither, or complex.
    DeviceError
        If it is on another device than `like`.
    """
    if value is None:
        return None
    if isinstance(value, ArrayBase):
        common_device(function, [like._signature, value._signature])
        if dtypes.info(value.dtype).kind != "complex":
            return to_numpy(value).astype(np.float64)
    elif isinstance(value, Real):
        return np.asarray(float(value))
    raise OperandError(
        f"{function}: expected {name} as a real number or a real Array, got {type_name(value)}; write {name}=1e-6"
    )
