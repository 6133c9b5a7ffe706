"""cuSOLVER by LAPACK on memory of the process: each function checks its arguments as the library does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import lapack  # a test dependency, as SciPy's BLAS on the host

from support.fake_cublas import _DTYPES, _view
from tilearray_cuda.libraries import cusolver

_CODES = {"s": 0, "d": 1, "c": 4, "z": 5}
_REAL = {0: 0, 1: 1, 4: 0, 5: 1}
_WORK = 96
"""The bytes of workspace that every function asks for."""


def _matrix(address: int, code: int, rows: int, columns: int, pitch: int) -> np.ndarray:
    assert pitch >= max(1, rows), "the leading dimension is less than the rows"
    return _view(address, _DTYPES[code], (rows, columns), (1, pitch))


def _say(info: int, value: int) -> None:
    ctypes.c_int32.from_address(info).value = value


def _letter(code: int) -> str:
    return {0: "s", 1: "d", 4: "c", 5: "z"}[code]


class FakeSolver:
    """The functions that `tilearray_cuda.libraries.cusolver` calls.

    Attributes
    ----------
    calls : list of str
        The functions that were called, without those for sizes.
    options : list of int
        What `create_gesvdj_info` has made.
    unconverged : int
        What rotations say of each matrix.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.options: list[int] = []
        self.unconverged = 0

    def create_gesvdj_info(self) -> int:
        self.options.append(500 + len(self.options))
        return self.options[-1]

    def xgesvdj_set_sort_eig(self, options: int, sorts: int) -> None:
        assert options in self.options
        assert sorts == 1

    def create_params(self) -> int:
        return 77

    def __getattr__(self, name: str) -> Any:
        base = name.removesuffix("_buffer_size")
        if base.endswith("_batched"):
            code = _CODES.get(base[0], -1)
            if base == "xsyev_batched":
                return (lambda *given: (_WORK, _WORK)) if base != name else self._syev_batched
            if base[1:] == "gesvdj_batched":
                if base != name:
                    return lambda handle, *given: self._length_of_rotations(*given)
                return lambda handle, *given: self._gesvdj_batched(code, *given)
            one = getattr(self, f"_{base[1:]}")
            return lambda handle, *given: one(code, *given)
        if base[1:] in ("orgqr", "ungqr"):
            return self._length if base != name else lambda *given: self._orgqr(base, *given)
        function = getattr(self, f"_{base}", None) if not name.startswith("_") else None
        if function is None:
            raise AttributeError(name)
        if base != name:
            return lambda handle, params, *given: (_WORK, _WORK)

        def called(handle: int, params: int, *given: int) -> None:
            assert params == 77
            *given, work, on_device, host, on_host, info = given  # type: ignore[assignment]
            assert (on_device, on_host) == (_WORK, _WORK)
            ctypes.memset(work, 1, _WORK)
            ctypes.memset(host, 1, _WORK)
            self.calls.append(base)
            _say(info, int(function(*given)))

        return called

    def _length(self, handle: int, m: int, n: int, k: int, a: int, lda: int, tau: int) -> int:
        return n

    def _potrf_batched(self, code: int, uplo: int, n: int, addresses: int, lda: int, info: int, count: int) -> None:
        self.calls.append("potrf_batched")
        for i, a in enumerate(_view(addresses, "q", (count,), (1,))):
            _say(info + 4 * i, self._xpotrf(uplo, n, code, int(a), lda, code))

    def _getrf_batched(self, code: int, n: int, addresses: int, lda: int, pivots: int, info: int, count: int) -> None:
        self.calls.append("getrf_batched")
        for i, a in enumerate(_view(addresses, "q", (count,), (1,))):
            x = _matrix(int(a), code, n, n, lda)
            factors, places, said = getattr(lapack, f"{_letter(code)}getrf")(x)
            x[...] = factors
            _view(pivots + 4 * i * n, "i", (n,), (1,))[...] = places + 1
            _say(info + 4 * i, said)

    def _getrs_batched(self, code, trans, n, columns, addresses, lda, pivots, rights, ldb, said, count):
        self.calls.append("getrs_batched")
        assert trans == 0
        pairs = zip(_view(addresses, "q", (count,), (1,)), _view(rights, "q", (count,), (1,)), strict=True)
        for i, (a, b) in enumerate(pairs):
            places = _view(pivots + 4 * i * n, "i", (n,), (1,)) - 1
            right = _matrix(int(b), code, n, columns, ldb)
            found, _ = getattr(lapack, f"{_letter(code)}getrs")(_matrix(int(a), code, n, n, lda), places, right)
            right[...] = found
        _say(said, 0)

    def _getri_batched(self, code, n, addresses, lda, pivots, inverses, ldb, info, count):
        self.calls.append("getri_batched")
        pairs = zip(_view(addresses, "q", (count,), (1,)), _view(inverses, "q", (count,), (1,)), strict=True)
        for i, (a, b) in enumerate(pairs):
            places = _view(pivots + 4 * i * n, "i", (n,), (1,)) - 1
            found, said = getattr(lapack, f"{_letter(code)}getri")(_matrix(int(a), code, n, n, lda), places)
            _matrix(int(b), code, n, n, ldb)[...] = found
            _say(info + 4 * i, said)

    def _matinv_batched(self, code, n, addresses, lda, inverses, ldb, info, count):
        self.calls.append("matinv_batched")
        assert n <= 32
        pairs = zip(_view(addresses, "q", (count,), (1,)), _view(inverses, "q", (count,), (1,)), strict=True)
        for i, (a, b) in enumerate(pairs):
            factors, places, said = getattr(lapack, f"{_letter(code)}getrf")(_matrix(int(a), code, n, n, lda))
            found, _ = getattr(lapack, f"{_letter(code)}getri")(factors, places)
            _matrix(int(b), code, n, n, ldb)[...] = found
            _say(info + 4 * i, said)

    def _syev_batched(self, handle: int, params: int, *given: int) -> None:
        vectors, uplo, n, code, a, lda, code_w, w, compute, work, on_device, host, on_host, info, count = given
        assert (params, on_device, on_host) == (77, _WORK, _WORK)
        ctypes.memset(work, 1, _WORK)
        ctypes.memset(host, 1, _WORK)
        self.calls.append("xsyev_batched")
        size, real = np.dtype(_DTYPES[code]).itemsize, np.dtype(_DTYPES[code_w]).itemsize
        for i in range(count):
            found = self._xsyevd(vectors, uplo, n, code, a + i * n * n * size, lda, code_w, w + i * n * real, compute)
            _say(info + 4 * i, found)

    def _xpotrf(self, uplo: int, n: int, code: int, a: int, lda: int, compute: int) -> int:
        assert compute == code
        assert uplo in (0, 1)
        x = _matrix(a, code, n, n, lda)
        factor, info = getattr(lapack, f"{_letter(code)}potrf")(x, lower=uplo == 0, clean=False)
        x[...] = factor
        return info

    def _xgetrf(self, m: int, n: int, code: int, a: int, lda: int, pivots: int, compute: int) -> int:
        assert compute == code
        x = _matrix(a, code, m, n, lda)
        factors, places, info = getattr(lapack, f"{_letter(code)}getrf")(x)
        x[...] = factors
        _view(pivots, "q", (min(m, n),), (1,))[...] = places + 1
        return info

    def xgetrs(self, handle, params, trans, n, columns, code, a, lda, pivots, code_b, b, ldb, info):
        assert (params, trans, code_b) == (77, 0, code)
        self.calls.append("xgetrs")
        places = _view(pivots, "q", (n,), (1,)) - 1
        right = _matrix(b, code, n, columns, ldb)
        found, said = getattr(lapack, f"{_letter(code)}getrs")(_matrix(a, code, n, n, lda), places, right)
        right[...] = found
        _say(info, said)

    def _xgeqrf(self, m: int, n: int, code: int, a: int, lda: int, code_tau: int, tau: int, compute: int) -> int:
        assert code == code_tau == compute
        x = _matrix(a, code, m, n, lda)
        factors, scales, _, info = getattr(lapack, f"{_letter(code)}geqrf")(x)
        x[...] = factors
        _view(tau, _DTYPES[code], (min(m, n),), (1,))[...] = scales
        return info

    def _orgqr(self, name: str, handle, m, n, k, a, lda, tau, work, length, info):
        assert m >= n >= k
        assert length == n
        self.calls.append(name)
        code = _CODES[name[0]]
        x = _matrix(a, code, m, n, lda)
        found, _, said = getattr(lapack, name)(x, _view(tau, _DTYPES[code], (k,), (1,)))
        x[...] = found
        _say(info, said)

    def _xsyevd(self, vectors, uplo, n, code, a, lda, code_w, w, compute):
        assert (code_w, compute) == (_REAL[code], code)
        x = _matrix(a, code, n, n, lda)
        values, right = np.linalg.eigh(x, "L" if uplo == 0 else "U")
        x[...] = right if vectors else 7
        _view(w, _DTYPES[code_w], (n,), (1,))[...] = values
        return 0

    def _xgesvd(self, jobu, jobvt, m, n, code, a, lda, code_s, s, code_u, u, ldu, code_vt, vt, ldvt, compute):
        assert (code_s, code_u, code_vt, compute) == (_REAL[code], code, code, code)
        assert m >= n, "the library takes no wide matrices"
        assert jobu == jobvt
        x = _matrix(a, code, m, n, lda)
        left, values, right = np.linalg.svd(x, full_matrices=chr(jobu) == "A")
        x[...] = 7
        _view(s, _DTYPES[code_s], (n,), (1,))[...] = values
        if chr(jobu) == "N":
            assert u == vt == 0
        else:
            _matrix(u, code, m, left.shape[1], ldu)[...] = left
            _matrix(vt, code, n, n, ldvt)[...] = right
        return 0

    def _length_of_rotations(self, jobz, m, n, a, lda, s, u, ldu, v, ldv, options, count=1):
        assert options in self.options
        return m * count

    def _gesvdj_batched(self, code, jobz, m, n, a, lda, s, u, ldu, v, ldv, work, length, info, options, count):
        assert max(m, n) <= 32
        assert length >= m * count
        self.calls.append("gesvdj_batched")
        size, real = np.dtype(_DTYPES[code]).itemsize, np.dtype(_DTYPES[_REAL[code]]).itemsize
        for i in range(count):
            left, right = u + i * m * m * size, v + i * n * n * size
            said = self._rotated(code, jobz, m, n, a + i * lda * n * size, lda, s + i * n * real, left, ldu, right, ldv)
            _say(info + 4 * i, said)

    def _rotated(self, code, jobz, m, n, a, lda, s, u, ldu, v, ldv):
        """V and not its adjoint. Like the library, it takes no extreme numbers and no zeros for granted."""
        assert m >= n, "wide matrices are transposed"
        assert 0 not in (u, v), "the library writes to both also for values alone"
        x = _matrix(a, code, m, n, lda)
        size = np.linalg.norm(x.astype("complex128"))
        assert 2.0**-53 < size < 2.0001 or (x == 1).all()
        left, values, right = np.linalg.svd(x)
        x[...] = 7
        _view(s, _DTYPES[_REAL[code]], (n,), (1,))[...] = values
        _matrix(u, code, m, left.shape[1], ldu)[...] = left if jobz else 7
        _matrix(v, code, n, n, ldv)[...] = np.conj(right.T) if jobz else 7
        return self.unconverged

    def _xgeev(self, left, right, n, code, a, lda, code_w, w, code_l, vl, ldl, code_r, vr, ldr, compute):
        assert code == code_l == code_r == compute
        assert code_w == {0: 4, 1: 5}.get(code, code)
        assert (left, vl) == (0, 0)
        assert code in (4, 5) or not right, "vectors of real matrices are packed"
        values, vectors = np.linalg.eig(_matrix(a, code, n, n, lda))
        _view(w, _DTYPES[code_w], (n,), (1,))[...] = values
        if right:
            _matrix(vr, code, n, n, ldr)[...] = vectors
        return 0


class FakeFactors(cusolver.Factors):
    """The factors of a device in host memory."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self.library = FakeSolver()

    @property
    def _blas(self) -> Any:
        return self.library, self

    @property
    def _loaded(self) -> Any:
        return cusolver._Loaded(self.library, self, 77)

    def fetch(self, stream: int, info: int, count: int) -> Any:
        """What `Staging.fetch` does: later calls do not change what was said."""
        self.library.calls.append("fetch")
        said = _view(info, "i", (count,), (1,)).copy()

        def read() -> np.ndarray:
            self.library.calls.append("wait")
            return said

        return read

    def run(self, stream: int, function: Any, *arguments: Any) -> Any:
        """What `Handles.run` does."""
        return function(0, *arguments)
