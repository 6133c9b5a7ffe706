"""How the CUDA libraries name dtypes and sums; the numbers 1 and 0 in memory, and the size of workspaces."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

WORKSPACE = 32 << 20
"""The bytes of workspace that NVIDIA advises for sm_90."""
SINGLE, DOUBLE = 68, 70
"""``CUBLAS_COMPUTE_32F``, ``CUBLAS_COMPUTE_64F``"""


class Numbers(NamedTuple):
    """How the library computes with a dtype.

    Attributes
    ----------
    code : int
        The number of the dtype in ``cudaDataType``.
    compute : int
        The number of its sums in ``cublasComputeType_t``.
    letter : str
        The letter of the functions for one dtype, "" if there is none.
    """

    code: int
    compute: int
    letter: str


NUMBERS = {
    "float16": Numbers(2, SINGLE, ""),
    "bfloat16": Numbers(14, SINGLE, ""),
    "float32": Numbers(0, SINGLE, "s"),
    "float64": Numbers(1, DOUBLE, "d"),
    "complex64": Numbers(4, SINGLE, "c"),
    "complex128": Numbers(5, DOUBLE, "z"),
}
"""The dtypes that the library multiplies, by name."""

_ONES = {SINGLE: (ctypes.c_float * 2)(1), DOUBLE: (ctypes.c_double * 2)(1)}
_ZEROS = (ctypes.c_double * 2)()
ONE = {compute: ctypes.addressof(number) for compute, number in _ONES.items()}
ZERO = ctypes.addressof(_ZEROS)
"""The addresses of 1 in the dtype of sums, real or complex, and of 0."""
