"""Linear algebra: the extension of the array API standard, and the names of `numpy.linalg` beside them.

`standard <https://data-apis.org/array-api/2025.12/extensions/linear_algebra_functions.html>`_

All functions take stacks of matrices. Bool and integers become the dtype of their true division, except in products,
`trace`, `diagonal` and `matrix_power`, which keep integers. Floats narrower than float32 are computed as float32, and
each result is rounded once to the dtype of the operands.
"""

from typing import TYPE_CHECKING

from tilearray.errors import LinAlgError
from tilearray.functions.products import matmul, matrix_transpose, tensordot, vecdot
from tilearray.linalg.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from tilearray.linalg.determinants import SlogdetResult, det, matrix_rank, slogdet
from tilearray.linalg.equations import LstsqResult, inv, lstsq, pinv, solve, tensorinv, tensorsolve
from tilearray.linalg.norms import cond, matrix_norm, norm, vector_norm
from tilearray.linalg.stacks import cross, diagonal, matrix_power, multi_dot, outer, trace
from tilearray.missing_names import MissingNameError as _MissingNameError
from tilearray.ops.signatures import show as _show

# fmt: off
__all__ = [
    "EigResult", "EighResult", "LinAlgError", "LstsqResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]
# fmt: on

_show([globals()[_name] for _name in __all__])

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        raise _MissingNameError(name, __all__, "linalg")


def __dir__() -> list[str]:
    return sorted(__all__)


del TYPE_CHECKING
