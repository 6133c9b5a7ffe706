"""How a chapter of functions asks a backend: the array is checked, then the part that computes is taken.

Reductions, sorting and linear algebra are parts that a backend may lack. A chapter checks axes and dtypes, hands
ndarrays to the part, and wraps its result. Nothing moves between devices: if the backend of a device lacks the part,
the error says how to write the move.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import LinearAlgebra, Reductions, Sorting
from tilearray.engine.context import STATE
from tilearray.engine.signature import A, ArrayBase, check_array, from_host
from tilearray.errors import DeviceError, DTypeError
from tilearray.geometry.layout import Layout

INDEX = dtypes.int64
"""The dtype of indices and counts, in every semantics."""

Part = TypeVar("Part")


def reductions_of(function: str, x: ArrayBase) -> Reductions:
    """Return the backend's reductions, if `x` is an Array on a device that has them.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sum([1, 2])
    Traceback (most recent call last):
    tilearray.errors.OperandError: sum: expected a tilearray Array, got list; write ta.asarray(x)
    """
    check_array(function, x)
    return _available(function, x, x.device.backend.reductions)


def sorting_of(function: str, x: ArrayBase) -> Sorting:
    """Return the backend's sorting, if `x` is an Array on a device that has it."""
    check_array(function, x)
    return _available(function, x, x.device.backend.sorting)


def linear_algebra_of(function: str, x: ArrayBase) -> LinearAlgebra:
    """Return the backend's linear algebra, if `x` is an Array on a device that has it."""
    check_array(function, x)
    return _available(function, x, x.device.backend.linear_algebra)


def _available(function: str, x: ArrayBase, part: Part | None) -> Part:
    if part is None:
        raise DeviceError(
            f"{function}: expected an array on the host, got one on {x.device}, where tilearray has no {function} yet; "
            f"write ta.{function}(x.to_device('cpu'))"
        )
    return part


def result(host: np.ndarray, like: A) -> A:
    """Return the ndarray that a backend computed as an array of the class of `like`, in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> result(np.array([1, 2]), ta.zeros(3))
    Array([1, 2], dtype=int64, device='cpu')
    """
    return from_host(np.asarray(host, order="C"), like.__class__)._view(Layout.of(host.shape))


# --- dtypes ----------------------------------------------------------------------------------------------------------

_INSTEAD = {"bool": "x.astype('int8')", "complex": "x.real, x.imag or ta.abs(x)"}


def check_kind(function: str, dtype: np.dtype, kinds: Collection[str]) -> None:
    """Raise DTypeError unless a function takes a dtype: of one of `kinds`, and not for storage only."""
    dtypes.check_arithmetic(function, dtype)
    kind = dtypes.info(dtype).kind
    if kind not in kinds:
        raise DTypeError(
            f"{function}: expected dtypes of kind {dtypes.kinds_in_words(kinds)}, got {dtype.name}; "
            f"write {_INSTEAD[kind]} first"
        )


def common_dtype(function: str, given: Sequence[Any], kinds: Collection[str]) -> np.dtype:
    """Return the common dtype of dtypes and value classes of numbers, if the function takes it."""
    dtype = STATE.get().semantics.result_type(given, function)
    check_kind(function, dtype, kinds)
    return dtype
