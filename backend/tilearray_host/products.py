"""Products of matrices and tensors by NumPy.

Operands are rounded to one dtype. float32 and wider go to NumPy as they are, narrower floats as float32; the result is
rounded once. Integers wrap; of bools a product is `and` and a sum is `or`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray_host.casts import computable, converted
from tilearray_host.float_errors import quiet

DType = np.dtype[Any]
Ints = tuple[int, ...]
_DIRECT = frozenset("?bhilqBHILQfdFD")
"""The dtypes, by their letters, with which NumPy computes as they are."""
_FEW = 2048
"""Elements for which NumPy's search for the best order of sums takes longer than the sums."""


@quiet
def matmul(x1: np.ndarray, x2: np.ndarray, dtype: DType, /) -> np.ndarray:
    """Return the matrix product.

    >>> matmul(np.array([[1, 2], [3, 4]]), np.array([10, 1]), np.dtype(np.int8))
    array([12, 34], dtype=int8)
    """
    if x1.dtype == x2.dtype == dtype and dtype.char in _DIRECT:
        return np.asarray(np.matmul(x1, x2))
    return _rounded(np.matmul(computable(x1, dtype), computable(x2, dtype)), dtype)


@quiet
def tensordot(x1: np.ndarray, x2: np.ndarray, axes: tuple[Ints, Ints], dtype: DType, /) -> np.ndarray:
    """Return the sum of products over pairs of axes."""
    return _rounded(np.tensordot(computable(x1, dtype), computable(x2, dtype), axes), dtype)


@quiet
def einsum(subscripts: str, operands: tuple[np.ndarray, ...], dtype: DType, /) -> np.ndarray:
    """Return the sum of products that subscripts describe, in memory of its own.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands.
    """
    hosts = [computable(x, dtype) for x in operands]
    try:
        found = np.asarray(np.einsum(subscripts, *hosts, optimize=sum([x.size for x in hosts]) > _FEW))
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(str(error)) from None
    shares = any(np.may_share_memory(found, host) for host in hosts)
    return _rounded(found.copy() if shares else found, dtype)


def _rounded(found: Any, dtype: DType) -> np.ndarray:
    return converted(np.asarray(found), dtype)
