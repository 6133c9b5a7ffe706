"""Factors of matrices through cuSOLVER: Cholesky, LU, QR, eigenvalues and singular values.

Matrices lie in column-major order, one after the other without gaps, and are overwritten. Stacks of small matrices are
one call for Cholesky and LU factors, which cuBLAS computes then, for eigenvalues and for singular values; for the
former the caller gives the addresses of all matrices in device memory. All else is a loop over the matrices with one
workspace of our pool. Each matrix has an int32 that says whether it has the factors; the caller fetches it. Calls run
on a stream and do not wait for it, except where the library does.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilearray_cuda.libraries.bindings import bindings
from tilearray_cuda.libraries.handles import Handles
from tilearray_cuda.libraries.numbers import NUMBERS

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_REAL = {"complex64": "float32", "complex128": "float64"}
_COMPLEX = {real: number for number, real in _REAL.items()}
_ITEMSIZE = {"float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
_NOTHING, _ALL, _SHORT = ord("N"), ord("A"), ord("S")
"""Which singular vectors `gesvd` computes: none, all, or as many as there are singular values."""
_INFO = 4
"""The bytes of the int32 of a matrix."""
_CHECK = (
    "linalg: a CUDA graph captures stream {:#x}, and a check of inf and NaN must wait; compute eigenvalues and "
    "singular values before or after the capture"
)
SMALL = 256
"""The largest matrices of which a stack is one call."""
LARGE, MANY = 512, 4
"""The largest matrices of which a stack of so many has LU factors in one call. On an H100 those of 16 float64 matrices
of 512 rows take 4.2 ms so, and 16.7 in a loop; of 4 of them 4.1 and 4.2, of 2 of 256 rows 1.2 and 0.9."""
INVERTED = 64
"""The largest matrices of which a stack is inverted by `getri`; larger ones are solutions of equations. On an H100 it
takes 0.13 ms for 200 float64 matrices of 64 rows, as equations do; for 64 of 128 rows 0.54, and 0.24 so; for 16 of 256
rows 3.4 and 0.42."""
JACOBI_STACKS = 32
"""The most rows and columns of matrices of which a stack is one call for singular values, by rotations: the library's
limit. On an H100 10,000 of 3 x 3 float32 take 2.1 ms so, and 1.9 s by QR steps, one matrix after the other. Larger ones
took half the time by rotations, with errors 10 to 40 times as large."""
JACOBI_ELEMENTS = 2**24
"""The most elements of matrices that are one call for singular values; the workspace has a size of 32 bits."""
AT_ONCE = 16
"""The largest matrices that cuBLAS inverts without factors of ours. On an H200 512 matrices of 16 rows took 81 us so,
and 85 us by factors; of 32 rows 126 and 95 us."""


class _Loaded(NamedTuple):
    """The library: its bindings, handles, and the parameters of the functions for all dtypes."""

    library: Any
    handles: Any
    parameters: int


class Factors:
    """The factors of matrices on a device. Addresses are integers; `dtype` is a name, such as "float32"."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._rotations: dict[int, int] = {}

    @functools.cached_property
    def _loaded(self) -> _Loaded:
        library = bindings("cusolverDn")
        handles = Handles(self._device, library.create, library.set_stream)
        return _Loaded(library, handles, library.create_params())

    @functools.cached_property
    def _blas(self) -> tuple[Any, Any]:
        """The bindings of cuBLAS, and handles without a workspace of ours."""
        library = bindings("cublas")
        return library, Handles(self._device, library.create, library.set_stream)

    def is_one_call(self, function: str, n: int, count: int) -> bool:
        """Whether a stack is one call of a function: "potrf", "getrf" or "syevd". Its pivots are int32 then."""
        return count > 1 and (n <= SMALL or (function == "getrf" and n <= LARGE and count >= MANY))

    def inverts_at_once(self, n: int) -> bool:
        """Whether `matinv` takes matrices of n rows."""
        return n <= AT_ONCE

    def inverts_stacks(self, n: int, count: int) -> bool:
        """Whether `getri` inverts a stack."""
        return self.is_one_call("getrf", n, count) and n <= INVERTED

    def svd_function(self, m: int, n: int, count: int) -> str:
        """The name of the function that takes matrices of m rows and n columns, m >= n."""
        return "gesvdj_batched" if count > 1 and m <= JACOBI_STACKS else "gesvd"

    def fetch(self, stream: int, info: int, count: int) -> Callable[[], np.ndarray]:
        """Begin to copy the int32 of matrices to the host; the result waits for the copy, not for later work."""
        device, nbytes = self._device, count * _INFO
        fetched = device.staging.fetch(info, nbytes, stream)

        def said() -> np.ndarray:
            found = fetched().view(np.int32)
            device.transfers.add("to_host", nbytes)
            device.index_errors.check()
            return found

        return said

    def take_word(self, stream: int) -> Any:
        """Return an empty word in which kernels on a stream report inf and NaN; the caller gives it to `is_reported`.

        CaptureError if the stream is being captured.
        """
        (word,) = self._device.index_errors.take(1, stream, _CHECK)
        return word

    def is_reported(self, word: Any, stream: int) -> bool:
        """Wait for a stream; return whether its kernels have made a report in a word, and take the word back."""
        (found,) = self._device.index_errors.read([word], stream)
        return found is not None

    def potrf(self, stream: int, dtype: str, lower: bool, n: int, count: int, a: int, info: int) -> None:
        """Overwrite one triangle of Hermitian matrices with their Cholesky factors; info > 0: there is none."""
        if self.is_one_call("potrf", n, count):
            library, handles, _ = self._loaded
            function = getattr(library, f"{_LETTERS[dtype]}potrf_batched")
            handles.run(stream, function, 0 if lower else 1, n, a, n, info, count)
            return
        code, step = NUMBERS[dtype].code, n * n * _ITEMSIZE[dtype]

        def arguments(i: int) -> tuple[int, ...]:
            return (0 if lower else 1, n, code, a + i * step, n, code)

        self._general("xpotrf", stream, count, arguments, info)

    def getrf(self, stream: int, dtype: str, n: int, count: int, a: int, pivots: int, info: int) -> None:
        """Overwrite matrices with their LU factors, and write pivots from 1; info > 0: the matrix is singular."""
        if self.is_one_call("getrf", n, count):
            library, handles = self._blas
            function = getattr(library, f"{_LETTERS[dtype]}getrf_batched")
            handles.run(stream, function, n, a, n, pivots, info, count)
            return
        code, step = NUMBERS[dtype].code, n * n * _ITEMSIZE[dtype]

        def arguments(i: int) -> tuple[int, ...]:
            return (n, n, code, a + i * step, n, pivots + i * n * 8, code)

        self._general("xgetrf", stream, count, arguments, info, lambda given: (*given[:5], given[6]))

    def getrs(
        self, stream: int, dtype: str, n: int, columns: int, count: int, a: int, pivots: int, b: int, info: int
    ) -> None:
        """Overwrite right sides with the solutions, from the factors and pivots of `getrf`."""
        size = _ITEMSIZE[dtype]
        if self.is_one_call("getrf", n, count):
            library, handles = self._blas
            function = getattr(library, f"{_LETTERS[dtype]}getrs_batched")
            said = ctypes.c_int()
            handles.run(stream, function, 0, n, columns, a, n, pivots, b, n, ctypes.addressof(said), count)
            return
        library, handles, parameters = self._loaded
        code = NUMBERS[dtype].code

        def calls(handle: int) -> None:
            for i in range(count):
                matrix, right = a + i * n * n * size, b + i * n * columns * size
                library.xgetrs(
                    handle, parameters, 0, n, columns, code, matrix, n, pivots + i * n * 8, code, right, n,
                    info + i * _INFO,
                )  # fmt: skip

        handles.run(stream, calls)

    def getri(self, stream: int, dtype: str, n: int, count: int, a: int, pivots: int, b: int, info: int) -> None:
        """Write the inverses of a stack of small matrices, from the factors and pivots of `getrf` in one call."""
        library, handles = self._blas
        handles.run(stream, getattr(library, f"{_LETTERS[dtype]}getri_batched"), n, a, n, pivots, b, n, info, count)

    def matinv(self, stream: int, dtype: str, n: int, count: int, a: int, b: int, info: int) -> None:
        """Write the inverses of matrices of at most `AT_ONCE` rows; info > 0: the matrix is singular."""
        library, handles = self._blas
        handles.run(stream, getattr(library, f"{_LETTERS[dtype]}matinv_batched"), n, a, n, b, n, info, count)

    def geqrf(self, stream: int, dtype: str, m: int, n: int, count: int, a: int, tau: int, info: int) -> None:
        """Overwrite matrices of m rows and n columns with R, and reflections below it."""
        code, size = NUMBERS[dtype].code, _ITEMSIZE[dtype]

        def arguments(i: int) -> tuple[int, ...]:
            return (m, n, code, a + i * m * n * size, m, code, tau + i * min(m, n) * size, code)

        self._general("xgeqrf", stream, count, arguments, info)

    def orgqr(
        self, stream: int, dtype: str, m: int, n: int, k: int, count: int, a: int, step: int, tau: int, info: int
    ) -> None:
        """Overwrite k reflections with the first n columns of Q; `step` is the elements from one matrix to the next."""
        library, handles, _ = self._loaded
        letter, size = _LETTERS[dtype], _ITEMSIZE[dtype]
        name = f"{letter}{'ungqr' if letter in 'cz' else 'orgqr'}"
        function, sized = getattr(library, name), getattr(library, f"{name}_buffer_size")

        def calls(handle: int) -> None:
            length = sized(handle, m, n, k, a, m, tau)
            work = self._device.allocate(length * size, stream)
            for i in range(count):
                function(
                    handle, m, n, k, a + i * step * size, m, tau + i * k * size, work.pointer, length, info + i * _INFO
                )

        handles.run(stream, calls)

    def syevd(
        self, stream: int, dtype: str, vectors: bool, lower: bool, n: int, count: int, a: int, w: int, info: int
    ) -> None:
        """Write ascending real eigenvalues of Hermitian matrices, and overwrite the matrices with eigenvectors."""
        real = _REAL.get(dtype, dtype)
        code, values = NUMBERS[dtype].code, NUMBERS[real].code
        step, step_of_values = n * n * _ITEMSIZE[dtype], n * _ITEMSIZE[real]
        if self.is_one_call("syevd", n, count):
            self._syev_batched(stream, (int(vectors), 0 if lower else 1, n, code, a, n, values, w, code), count, info)
            return

        def arguments(i: int) -> tuple[int, ...]:
            return (int(vectors), 0 if lower else 1, n, code, a + i * step, n, values, w + i * step_of_values, code)

        self._general("xsyevd", stream, count, arguments, info)

    def gesvd(
        self, stream: int, dtype: str, vectors: bool, full: bool, m: int, n: int, count: int, a: int, s: int, u: int,
        vt: int, info: int,
    ) -> None:  # fmt: skip
        """Write descending singular values, and singular vectors U and V^H if asked, of matrices with m >= n."""
        real = _REAL.get(dtype, dtype)
        code, values = NUMBERS[dtype].code, NUMBERS[real].code
        size, job = _ITEMSIZE[dtype], (_ALL if full else _SHORT) if vectors else _NOTHING
        width = m if full else n

        def arguments(i: int) -> tuple[int, ...]:
            left, right = (u + i * m * width * size, vt + i * n * n * size) if vectors else (0, 0)
            return (
                job, job, m, n, code, a + i * m * n * size, m, values, s + i * n * _ITEMSIZE[real], code, left, m,
                code, right, n, code,
            )  # fmt: skip

        self._general("xgesvd", stream, count, arguments, info)

    def gesvdj_batched(
        self, stream: int, dtype: str, vectors: bool, full: bool, m: int, n: int, count: int, a: int, s: int, u: int,
        v: int, info: int,
    ) -> None:  # fmt: skip
        """Do what `gesvd` does for a stack of small matrices, by rotations. It writes V, and a square U in any case.

        It needs the memory of vectors also for values alone.
        """
        del full
        library, handles, _ = self._loaded
        function = getattr(library, f"{_LETTERS[dtype]}gesvdj_batched")
        size_of = getattr(library, f"{_LETTERS[dtype]}gesvdj_batched_buffer_size")
        size, size_of_values = _ITEMSIZE[dtype], _ITEMSIZE[_REAL.get(dtype, dtype)]
        most = max(1, JACOBI_ELEMENTS // (m * m))

        def arguments(i: int) -> tuple[int, ...]:
            left, right = u + i * m * m * size, v + i * n * n * size
            return (int(vectors), m, n, a + i * m * n * size, m, s + i * n * size_of_values, left, m, right, n)

        def calls(handle: int) -> None:
            options = self._rotation(handle)
            length = size_of(handle, *arguments(0), options, min(most, count))
            memory = self._device.allocate(length * size, stream)
            for i in range(0, count, most):
                number = min(most, count - i)
                function(handle, *arguments(i), memory.pointer, length, info + i * _INFO, options, number)

        handles.run(stream, calls)

    def geev(self, stream: int, dtype: str, n: int, count: int, a: int, w: int, vectors: int, info: int) -> None:
        """Write the complex eigenvalues of matrices, and their right eigenvectors if the address is not 0.

        Eigenvalues of real matrices come in conjugate pairs, and real ones have no imaginary part. Eigenvectors are of
        complex matrices.
        """
        code, size = NUMBERS[dtype].code, _ITEMSIZE[dtype]
        values = _COMPLEX.get(dtype, dtype)
        code_of_values, step = NUMBERS[values].code, n * _ITEMSIZE[values]

        def arguments(i: int) -> tuple[int, ...]:
            right = vectors + i * n * n * size if vectors else 0
            return (
                0, int(bool(vectors)), n, code, a + i * n * n * size, n, code_of_values, w + i * step, code, 0, n, code,
                right, n, code,
            )  # fmt: skip

        self._general("xgeev", stream, count, arguments, info)

    def _syev_batched(self, stream: int, arguments: tuple[int, ...], count: int, info: int) -> None:
        library, handles, parameters = self._loaded

        def one_call(handle: int) -> None:
            sizes = library.xsyev_batched_buffer_size(handle, parameters, *arguments, count)
            memory = self._device.allocate(sizes[0], stream)
            host = np.empty(max(1, sizes[1]), np.uint8)  # no page is touched that the library does not use
            library.xsyev_batched(
                handle, parameters, *arguments, memory.pointer, sizes[0], host.ctypes.data, sizes[1], info, count
            )

        handles.run(stream, one_call)

    def _rotation(self, handle: int) -> int:
        """The options of rotations, which a call writes to: one for each handle.

        Sweeps end at the accuracy of the dtype unless another tolerance is set.
        """
        found = self._rotations.get(handle)
        if found is None:
            library = self._loaded.library
            found = library.create_gesvdj_info()
            library.xgesvdj_set_sort_eig(found, 1)
            self._rotations[handle] = found
        return found

    def _general(
        self,
        name: str,
        stream: int,
        count: int,
        arguments: Callable[[int], tuple[int, ...]],
        info: int,
        sized: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda given: given,
    ) -> None:
        """Call a function for all dtypes for each matrix.

        `arguments` gives those of matrix i, and `sized` those of them that also decide on the size of the workspace.
        The workspace on the host may go when the calls return.
        """
        library, handles, parameters = self._loaded
        function, size_of = getattr(library, name), getattr(library, f"{name}_buffer_size")

        def calls(handle: int) -> None:
            on_device, on_host = size_of(handle, parameters, *sized(arguments(0)))
            memory = self._device.allocate(on_device, stream)
            host = (ctypes.c_ubyte * max(1, on_host))()
            address = ctypes.addressof(host)
            for i in range(count):
                function(
                    handle, parameters, *arguments(i), memory.pointer, on_device, address, on_host, info + i * _INFO
                )

        handles.run(stream, calls)
