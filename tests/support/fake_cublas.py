"""cuBLAS in NumPy: each function checks its arguments as the library does, and computes on memory of the process."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from support.elsewhere import Elsewhere
from tilearray.engine.call import _call
from tilearray_cuda.libraries import cublas
from tilearray_host.memory import Buffer

_DTYPES = {2: "e", 14: ml_dtypes.bfloat16, 0: "f", 1: "d", 4: "F", 5: "D"}
"""The numbers of ``cudaDataType``."""
_LETTERS = {"s": 0, "d": 1, "c": 4, "z": 5}


def _view(address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Memory as an array; strides in elements."""
    itemsize = np.dtype(dtype).itemsize
    span = itemsize * (1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)))
    raw = np.ctypeslib.as_array((ctypes.c_ubyte * span).from_address(address))
    return np.ndarray(shape, dtype, raw, 0, [stride * itemsize for stride in strides])


def _matrix(address: int, code: int, transposed: int, rows: int, columns: int, pitch: int) -> np.ndarray:
    """``op(x)`` of that many rows and columns, from column-major memory."""
    height, width = (columns, rows) if transposed else (rows, columns)
    assert pitch >= max(1, height), "the leading dimension is less than the rows that are stored"
    found = _view(address, _DTYPES[code], (height, width), (1, pitch))
    return found.T if transposed else found


def _number(address: int, compute: int) -> float:
    """A real number in the dtype of the sums."""
    kind = ctypes.c_double if compute == cublas._DOUBLE else ctypes.c_float
    return kind.from_address(address).value


class FakeCublas:
    """The functions that `tilearray_cuda.libraries.cublas` calls.

    Attributes
    ----------
    calls : list of str
        The functions that were called.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []

    def gemm_ex(self, handle, opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, *how):
        self.calls.append("gemm_ex")
        self._gemm(opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, *how)

    def gemm_strided_batched_ex(
        self, handle, opa, opb, m, n, k, alpha, a, atype, lda, stepa, b, btype, ldb, stepb, beta, c, ctype, ldc, stepc,
        count, *how
    ):  # fmt: skip
        self.calls.append("gemm_strided_batched_ex")
        assert count > 0
        assert stepc >= ldc * (n - 1) + m or count == 1, "the results overlap"
        for i in range(count):
            at = [x + i * step * np.dtype(_DTYPES[atype]).itemsize for x, step in ((a, stepa), (b, stepb), (c, stepc))]
            self._gemm(opa, opb, m, n, k, alpha, at[0], atype, lda, at[1], btype, ldb, beta, at[2], ctype, ldc, *how)

    def _gemm(
        self, opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, compute, algorithm
    ):  # fmt: skip
        assert min(m, n, k) > 0
        assert ldc >= max(1, m)
        assert atype == btype == ctype
        assert compute == (cublas._DOUBLE if ctype in (1, 5) else cublas._SINGLE)
        assert algorithm == -1
        assert (_number(alpha, compute), _number(beta, compute)) == (1, 0)
        wide = np.result_type({2: "f", 14: "f"}.get(atype, _DTYPES[atype]))
        x, y = _matrix(a, atype, opa, m, k, lda), _matrix(b, btype, opb, k, n, ldb)
        out = _view(c, _DTYPES[ctype], (m, n), (1, ldc))
        out[...] = (x.astype(wide) @ y.astype(wide)).astype(out.dtype)

    def _gemv(self, letter, trans, m, n, alpha, a, lda, x, incx, beta, y, incy):
        self.calls.append(f"{letter}gemv")
        code = _LETTERS[letter]
        compute = cublas._DOUBLE if letter in "dz" else cublas._SINGLE
        assert (_number(alpha, compute), _number(beta, compute)) == (1, 0)
        assert min(m, n, incx, incy) > 0
        rows, columns = (n, m) if trans else (m, n)
        matrix = _matrix(a, code, trans, rows, columns, lda)
        out = _view(y, _DTYPES[code], (rows,), (incy,))
        out[...] = matrix @ _view(x, _DTYPES[code], (columns,), (incx,))

    def __getattr__(self, name: str) -> Any:
        plain = name.removesuffix("_64")
        if plain[1:] == "gemv":
            return lambda handle, *arguments: self._gemv(plain[0], *arguments)
        if plain == name:
            raise AttributeError(name)
        self.calls.append(name)
        return getattr(self, plain)


class FakeProducts(cublas.Products):
    """The products of a device in host memory."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self.library = FakeCublas()

    @property
    def _handles(self) -> Any:
        return self

    def is_small(self, dtype: Any, work: int) -> bool:
        """The stand-in computes all products."""
        return False

    def run(self, stream: int, function: Any, *addresses: int) -> None:
        """What `Handles.run` does."""
        function(0, *addresses)

    def kernel(self, dtype: Any, loop: Any) -> cublas.LibraryProduct:
        return cublas.LibraryProduct(self._device, self, self.library, dtype, loop)


class Streamed(Buffer):
    """Memory on the legacy stream."""

    stream = 0


class FakeGpu(Elsewhere):
    """NumPy's kernels in memory of the process, with a stand-in of cuBLAS."""

    index = 0

    def __init__(self) -> None:
        self.products = FakeProducts(self)
        self.call_writer = self

    def allocate(self, nbytes: int, stream: Any = None) -> Streamed:
        return Streamed(np.empty(nbytes, np.uint8), False)

    def from_numpy(self, array: np.ndarray, *, copy: bool, stream: Any = None) -> tuple[Streamed, int]:
        buffer, offset = super().from_numpy(array, copy=copy)
        return Streamed(buffer.memory, False), offset

    def join(self, *use: Any) -> None:
        """There is one stream."""

    def bind_call(self, kernel: Any, loop: Any, rule: Any, signature: Any, gaps: Any) -> Any:
        if isinstance(kernel, cublas.LibraryProduct):
            return kernel.bind_call(loop, rule, signature, gaps)
        return _call(self.bind(kernel, loop), rule, signature, gaps)

    def bind_new(self, kernel: Any, rule: Any) -> Any:
        return lambda loop, signature: self.bind_call(kernel, loop, rule, signature, ())
