"""What NumPy computes on the host: how arrays go in, and how a result comes out.

Reductions, sorting, sets and matrix products have no kernels yet. Their chapters check axes and dtypes as every other
function does, then hand ndarrays to NumPy. Three rules hold for all of them, and stand here once:

- The data are on the host, or it is an error that says what to write. Nothing moves by itself.
- NumPy sees only its own dtypes. bfloat16 and float8 go in as float32, which holds all of their values, and so does
  float16; sums of floats are accumulated in float64. ml_dtypes' arithmetic is never used.
- The result is cast to its dtype once, by the library's own cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU
from tilearray.engine.signature import A, ArrayBase, from_host
from tilearray.errors import DeviceError, DTypeError, OperandError, type_name
from tilearray.functions.conversion import astype, to_numpy
from tilearray.ops.promotion_methods import opmath

REAL = ("bool", "int", "uint", "float")
NUMERIC = ("int", "uint", "float", "complex")
ANY = ("bool", *NUMERIC)
INDEX = dtypes.int64
"""The dtype of indices and counts, in every semantics."""

_WORDS = {"bool": "bool", "int": "signed integer", "uint": "unsigned integer", "float": "float", "complex": "complex"}
_INSTEAD = {"bool": "x.astype('int8')", "complex": "x.real, x.imag or ta.abs(x)", "float": "x.astype('int64')"}


def on_host(function: str, x: Any) -> ArrayBase:
    """Return `x` if it is an Array on the host, else say what to write.

    Examples
    --------
    >>> import tilearray as ta
    >>> on_host("sum", [1, 2])
    Traceback (most recent call last):
    tilearray.errors.OperandError: sum: expected a tilearray Array, got list; write ta.asarray(x)
    """
    if not isinstance(x, ArrayBase):
        raise OperandError(f"{function}: expected a tilearray Array, got {type_name(x)}; write ta.asarray(x)")
    device = x._signature.device
    if device is not CPU:
        raise DeviceError(
            f"{function}: expected an array on the host, got one on {device}, where tilearray has no {function} yet; "
            f"write ta.{function}(x.to_device('cpu'))"
        )
    return x  # type: ignore[return-value]


def check_kind(function: str, dtype: np.dtype, kinds: Sequence[str]) -> None:
    """Raise DTypeError unless a function takes a dtype: one of `kinds`, and not for storage only."""
    row = dtypes.info(dtype)
    if not row.arithmetic:
        raise DTypeError(
            f"{function}: {row.name} is a storage dtype, it is not computed with; write x.astype('float32') first"
        )
    if row.kind not in kinds:
        accepted = ", ".join(_WORDS[kind] for kind in _WORDS if kind in kinds)
        raise DTypeError(
            f"{function}: expected dtypes of kind {accepted}, got {row.name}; write {_INSTEAD[row.kind]} first"
        )


def common_dtype(function: str, given: Sequence[Any], kinds: Sequence[str]) -> np.dtype:
    """Return the common dtype of dtypes and value classes of numbers, if the function takes it."""
    dtype = STATE.get().semantics.result_type(given, function)
    check_kind(function, dtype, kinds)
    return dtype


def values(x: ArrayBase, dtype: np.dtype | None = None) -> np.ndarray:
    """Return the elements, rounded to `dtype` where it is given, as an ndarray that NumPy computes with.

    Examples
    --------
    >>> import tilearray as ta
    >>> values(ta.asarray([1.5], dtype="bfloat16")).dtype
    dtype('float32')
    """
    rounded = x if dtype is None else astype(x, dtype, copy=False)
    return to_numpy(astype(rounded, opmath(rounded.dtype), copy=False))


def truth(x: ArrayBase) -> np.ndarray:
    """Return whether each element is other than 0; NaN is."""
    return to_numpy(astype(x, dtypes.bool_, copy=False))


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which values of a dtype are added up: float64 or complex128; integers in their own."""
    return {"float": dtypes.float64, "complex": dtypes.complex128}.get(dtypes.info(dtype).kind, dtype)


def array_of(host: Any, dtype: np.dtype, like: A) -> A:
    """Return what NumPy computed as an array of a dtype, rounded once; it is of the class of `like`.

    Examples
    --------
    >>> import tilearray as ta
    >>> array_of(np.float64(1.7), dtypes.float16, ta.zeros(3))
    Array(1.7, dtype=float16, device='cpu')
    """
    return astype(from_host(np.asarray(host, order="C"), like.__class__), dtype, copy=False)
