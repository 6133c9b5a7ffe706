"""The functions of `Matrices` on a device that has factors of matrices: Arrays in, Arrays out.

A library computes the factors; all else are operations on arrays. Matrices are copied to the column-major order that
the library reads, and its results are often transposed views. Matrices in C order are the columns of the transposed
ones, so an inverse needs neither: it lies as its operand does. Narrow floats are computed as float32, and each result
is rounded once.

A call waits once for the device if the factors may not exist. Inverses and solutions wait for the factors alone, with
the rest already launched. The library gives no error for inf and NaN, so the kernels that write the matrices of
eigenvalues and singular values report them, in a word that the host reads after that wait. The addresses of the
matrices of a stack are computed on the device.

A function raises ``numpy.linalg.LinAlgError`` in NumPy's words, as the host does; `operands.computed` translates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange, zeros
from tilearray.arrays.triangular import eye, tril, triu
from tilearray.engine.backend import Factors
from tilearray.engine.context import STATE, decided
from tilearray.engine.execute import run_fixed
from tilearray.engine.signature import signature_of
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.manipulation import broadcast_to, diagonal, expand_dims, new_like, reshape, squeeze
from tilearray.functions.reduce import reduce
from tilearray.functions.reductions import all, any, count_nonzero, max, min, prod, sum
from tilearray.functions.searching import where
from tilearray.geometry.layout import Layout
from tilearray.linalg import device_kernels as kernels
from tilearray.ops.arithmetic import abs, minimum
from tilearray.ops.elementary import log
from tilearray.ops.execute import store
from tilearray.ops.number_parts import conj, isfinite, isnan, sign
from tilearray.ops.promotion_methods import COMPLEX_OF, REAL_PART, opmath

_INT32: Final = dtypes.int32
_LARGEST: Final = float(np.finfo(np.float64).max)

THIN_ROWS, THIN = 2**20, 16
"""A triangular factor gives the singular values of matrices with more rows than this, and so many for each column."""

_SINGULAR = "Singular matrix"
_NOT_POSITIVE = "Matrix is not positive definite"
_NO_SVD = "SVD did not converge"
_NO_EIGENVALUES = "Eigenvalues did not converge"
_NOT_FINITE = "Array must not contain infs or NaNs"


class DeviceMatrices:
    """Decompositions, inverses, determinants and norms, from the factors that a device computes.

    The methods are those of `tilearray.engine.backend.Matrices`, with Arrays instead of ndarrays.
    """

    def __init__(self, factors: Factors) -> None:
        self._factors = factors

    def run(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method. The dtypes are decided, so the semantics in force have no influence."""
        return decided(getattr(self, method), *arguments)

    # ------------------------------------------------------------------ decompositions

    def cholesky(self, x: Any, upper: bool, dtype: np.dtype) -> Any:
        """Return the triangular factor of positive-definite matrices."""
        a = _columns(x, opmath(dtype))
        if a.size:
            _kept, (first,) = self._places("potrf", a)
            info = self._run("potrf", a, not upper, x.shape[-1], _count(a.shape[:-2]), first)
            _check(to_numpy(info), _NOT_POSITIVE)
        return _rounded((tril if upper else triu)(a).mT, dtype)

    def qr(self, x: Any, mode: str, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the orthogonal and the triangular factor."""
        wide, (*stack, m, n) = opmath(dtype), x.shape
        k = m if n > m else n
        width = m if mode == "complete" else k
        if not x.size:
            q = broadcast_to(eye(m, width, dtype=dtype, device=x.device), (*stack, m, width))
            return astype(q, dtype), zeros((*stack, width, n), dtype, device=x.device)
        a = _columns(x, wide)
        tau = new_like(x, (*stack, k), wide)
        self._run("geqrf", a, m, n, _count(stack), a._address, tau._address)
        r = tril(a[..., :width]).mT
        if width > n:
            columns = new_like(x, (*stack, width, m), wide)
            columns[..., :n, :] = a
            columns[..., n:, :] = 0
            a = columns
        self._run("orgqr", a, m, width, k, _count(stack), a._address, a.shape[-2] * m, tau._address)
        return _rounded(a[..., :width, :].mT, dtype), _rounded(r, dtype)

    def svd(self, x: Any, full_matrices: bool, hermitian: bool, dtype: np.dtype) -> tuple[Any, Any, Any]:
        """Return the left singular vectors, the singular values and the adjoint of the right singular vectors."""
        x = _hermitian(x) if hermitian else x
        u, s, vh = self._svd(x, full_matrices, opmath(dtype))
        return _rounded(u, dtype), _rounded(s, _real(dtype)), _rounded(vh, dtype)

    def svdvals(self, x: Any, hermitian: bool, dtype: np.dtype) -> Any:
        """Return the singular values in descending order."""
        return _rounded(self._values(x, hermitian, opmath(dtype)), _real(dtype))

    def eig(self, x: Any, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the eigenvalues and eigenvectors, always complex."""
        return self._eig(x, dtype, True)

    def eigvals(self, x: Any, dtype: np.dtype) -> Any:
        """Return the eigenvalues, always complex."""
        return self._eig(x, dtype, False)[0]

    def eigh(self, x: Any, lower: bool, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the real eigenvalues, ascending, and the eigenvectors of the matrices that one triangle describes."""
        values, vectors = self._eigh(x, lower, opmath(dtype), True)
        return _rounded(values, _real(dtype)), _rounded(vectors, dtype)

    def eigvalsh(self, x: Any, lower: bool, dtype: np.dtype) -> Any:
        """Return the real eigenvalues, ascending, of the matrices that one triangle describes."""
        return _rounded(self._eigh(x, lower, opmath(dtype), False)[0], _real(dtype))

    # ------------------------------------------------------------------ equations

    def inv(self, x: Any, dtype: np.dtype) -> Any:
        """Return the inverses."""
        if not x.size:
            return new_like(x, x.shape, dtype)
        found, said = self._inverted(x, opmath(dtype), self._fetched)
        found = _rounded(found, dtype)
        _check(said(), _SINGULAR)
        return found

    def solve(self, x1: Any, x2: Any, dtype: np.dtype) -> Any:
        """Return the solutions of ``x1 @ x = x2`` for stacks of matrices `x2`, or for one vector."""
        if x2.ndim == 1:
            return squeeze(self.solve(x1, expand_dims(x2, axis=1), dtype), axis=-1)
        wide, (n, columns) = opmath(dtype), x2.shape[-2:]
        stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        a = _columns(x1 if x1.shape[:-2] == stack else broadcast_to(x1, (*stack, n, n)), wide)
        b = _columns(x2 if x2.shape[:-2] == stack else broadcast_to(x2, (*stack, n, columns)), wide)
        if not (a.size and b.size):
            return _rounded(b.mT, dtype)
        _kept, (first, right) = self._places("getrf", a, b)
        info, pivots = self._factored(a, first)
        said = self._fetched(info)
        self._solve(b, first, pivots, right)
        found = _rounded(b.mT, dtype)
        _check(said(), _SINGULAR)
        return found

    def lstsq(self, a: Any, b: Any, rcond: float | None, dtype: np.dtype) -> tuple[Any, Any, Any, Any]:
        """Return the least-squares solution of one system, its residuals, the rank and the singular values."""
        wide, (m, n) = opmath(dtype), a.shape
        right = astype(b if b.ndim == 2 else expand_dims(b, axis=1), wide, copy=False)
        matrix = astype(a, wide, copy=False)
        u, s, vh = self._svd(matrix, False, wide)
        share = _default_rtol(a.shape, wide) if rcond is None else rcond
        limit = s[..., :1] * share
        x = _adjoint(vh) @ (expand_dims(_inverse(s, limit), axis=-1) * (_adjoint(u) @ right))
        rank = int(count_nonzero(s > limit).item()) if s.size else 0
        residuals = zeros(0, _real(wide), device=a.device)
        if m > n == rank:
            residuals = sum(abs(right - matrix @ x) ** 2, axis=0)
        found = x if b.ndim == 2 else squeeze(x, axis=1)
        return _rounded(found, dtype), _rounded(residuals, _real(dtype)), rank, _rounded(s, _real(dtype))

    def pinv(self, x: Any, rtol: np.ndarray | None, hermitian: bool, dtype: np.dtype) -> Any:
        """Return the pseudo-inverses. Singular values up to `rtol` times the largest one count as 0."""
        wide = opmath(dtype)
        u, s, vh = self._svd(_hermitian(x) if hermitian else x, False, wide)
        share = _shares(rtol, x, wide)
        inverses = expand_dims(_inverse(s, s[..., :1] * share), axis=-2)
        return _rounded((_adjoint(vh) * inverses) @ _adjoint(u), dtype)

    def matrix_power(self, x: Any, n: int, dtype: np.dtype) -> Any:
        """Return the n-th powers; the inverses take part for negative n."""
        wide = opmath(dtype)
        power = self.inv(x, wide) if n < 0 else astype(x, wide, copy=False)
        found: Any = None
        times = -n if n < 0 else n
        while times:
            if times % 2:
                found = power if found is None else found @ power
            times //= 2
            power = power @ power if times else power
        if found is None:
            found = broadcast_to(eye(x.shape[-1], dtype=wide, device=x.device), x.shape)
        return astype(found, dtype)

    def multi_dot(self, arrays: Sequence[Any], dtype: np.dtype) -> Any:
        """Return the product of matrices in the cheapest order; the first and the last may be vectors."""
        wide = opmath(dtype)
        given = [astype(x, wide, copy=False) for x in arrays]
        first, last = given[0], given[-1]
        rows, columns = first.shape[0] if first.ndim > 1 else 1, last.shape[1] if last.ndim > 1 else 1
        splits = cheapest_splits([rows, *[x.shape[0] for x in given[1:]], columns])
        return astype(_product(given, splits, 0, len(given) - 1), dtype, copy=False)

    # ------------------------------------------------------------------ numbers of a matrix

    def det(self, x: Any, dtype: np.dtype) -> Any:
        """Return the determinants."""
        wide = opmath(dtype)
        return _rounded(prod(self._triangle(x, wide), axis=-1, dtype=wide), dtype)

    def slogdet(self, x: Any, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the signs and the logarithms of the absolute values of the determinants."""
        wide = opmath(dtype)
        elements = self._triangle(x, wide)
        signs = prod(sign(elements), axis=-1, dtype=wide)
        return _rounded(signs, dtype), _rounded(sum(log(abs(elements)), axis=-1, dtype=_real(wide)), _real(dtype))

    def matrix_rank(
        self, x: Any, tol: np.ndarray | None, rtol: np.ndarray | None, hermitian: bool, dtype: np.dtype
    ) -> Any:
        """Return how many singular values are above `tol`, or above `rtol` times the largest one."""
        wide = opmath(dtype)
        values = self._values(x, hermitian, wide)
        if tol is None:
            limit = values[..., :1] * _shares(rtol, x, wide)
        else:
            limit = asarray(tol[..., None].astype(_real(wide)), device=x.device)
        return count_nonzero(values > limit, axis=-1)

    def cond(self, x: Any, ord: Any, dtype: np.dtype) -> Any:
        """Return the condition numbers in a norm; infinity for singular matrices, NaN for those with NaN."""
        wide = opmath(dtype)
        if ord in (None, 2, -2):
            values = self._values(x, False, wide)
            first, last = values[..., 0], values[..., -1]
            found = last / first if ord == -2 else first / last
        else:
            inverse, info = self._inverted(x, wide, lambda info: info)
            found = self.matrix_norm(x, ord, False, wide) * self.matrix_norm(inverse, ord, False, wide)
            found = where(reshape(info, x.shape[:-2]) != 0, math.inf, found)
        found = where(isnan(found), math.inf, found)
        found = where(any(isnan(x), axis=(-2, -1)), math.nan, found)
        return _rounded(found, _real(dtype))

    def matrix_norm(self, x: Any, ord: Any, keepdims: bool, dtype: np.dtype) -> Any:
        """Return the norms of matrices: "nuc", or 1, 2 and infinity of either sign; of others the Euclidean one."""
        real = _real(dtype)
        if ord in ("nuc", 2, -2):
            found = _spectral(self._values(x, False, opmath(dtype)), ord)
        elif ord in (1, -1, math.inf, -math.inf):
            lines = sum(abs(_wide(x, opmath(dtype))), axis=-2 if ord in (1, -1) else -1, dtype=dtypes.float64)
            found = max(lines, axis=-1, initial=0) if ord > 0 else min(lines, axis=-1)
        else:
            found = sum(abs(_wide(x, opmath(dtype))) ** 2, axis=(-2, -1), dtype=dtypes.float64) ** 0.5
        return _rounded(expand_dims(found, axis=(-2, -1)) if keepdims else found, real)

    # ------------------------------------------------------------------ factors

    def _run(self, function: str, like: Any, *arguments: Any) -> Any:
        """Call a function of the library for the matrices of an array; return its int32 for each of them."""
        info = new_like(like, (_count(like.shape[:-2]),), _INT32)  # which the library writes
        method = getattr(self._factors, function)
        method(STATE.get().stream, dtypes.info(like.dtype).name, *arguments, info._address)
        return info

    def _fetched(self, info: Any) -> Callable[[], np.ndarray]:
        """Begin to copy what a library says, before later work; return what waits for the copy alone."""
        said = self._factors.fetch(STATE.get().stream, info._address, info.size)

        def found(kept: Any = info) -> np.ndarray:
            del kept  # many are copied only now, from memory that lives until then
            return said()

        return found

    def _places(self, function: str, a: Any, b: Any = None) -> tuple[Any, list[int]]:
        """Return by which addresses a function finds matrices and their right sides, and what must stay meanwhile."""
        if self._factors.is_one_call(function, a.shape[-1], _count(a.shape[:-2])):
            return _addressed(a, b)
        return None, [x._address for x in (a, b) if x is not None]

    def _inverted(self, x: Any, wide: np.dtype, told: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return the inverses, and the result of `told`, which gets the array of which matrices are singular.

        They lie as `x` does. `told` is called as soon as the factors are launched.
        """
        if not x._signature.layout.contiguous and x.mT._signature.layout.contiguous:
            found, said = self._inverted(x.mT, wide, told)
            return found.mT, said
        n, count = x.shape[-1], _count(x.shape[:-2])
        found = new_like(x, x.shape, wide)
        if not x.size:
            return found, told(zeros(count, _INT32, device=x.device))
        if self._factors.inverts_at_once(n):
            a = _readable(x, wide)
            _kept, places = _addressed(a, found)
            return found, told(self._run("matinv", a, n, count, *places))
        a = _copied(x, wide)
        _kept, (first, second) = self._places("getrf", a, found)
        info, pivots = self._factored(a, first)
        said = told(info)
        if self._factors.inverts_stacks(n, count):
            self._run("getri", a, n, count, first, pivots._address, second)
        else:
            run_fixed(kernels.identity(wide), [n**2, n + 1], found)
            self._solve(found, first, pivots, second)
        return found, said

    def _factored(self, a: Any, first: int) -> tuple[Any, Any]:
        """Overwrite matrices with their LU factors; return which ones are singular, and the pivots."""
        n, count = a.shape[-1], _count(a.shape[:-2])
        pivots = new_like(a, a.shape[:-1], _INT32 if self._factors.is_one_call("getrf", n, count) else dtypes.int64)
        return self._run("getrf", a, n, count, first, pivots._address), pivots

    def _solve(self, b: Any, first: int, pivots: Any, right: int) -> None:
        """Overwrite right sides, which lie as columns, with the solutions, from LU factors."""
        columns, n = b.shape[-2:]
        self._run("getrs", b, n, columns, _count(b.shape[:-2]), first, pivots._address, right)

    def _triangle(self, x: Any, wide: np.dtype) -> Any:
        """Return the diagonals of the triangular factors, negative where rows were exchanged."""
        n, stack = x.shape[-1], x.shape[:-2]
        a = _columns(x, wide)
        if not a.size:
            return new_like(x, (*stack, n), wide)
        _kept, (first,) = self._places("getrf", a)
        _, pivots = self._factored(a, first)
        rows = broadcast_to(arange(1, n + 1, dtype=pivots.dtype, device=x.device), (*stack, n))
        operands = diagonal(a, 0, -2, -1), pivots, rows
        return run_fixed(kernels.exchanged(wide, pivots.dtype), operands, new_like(x, (*stack, n), wide))

    def _eigh(self, x: Any, lower: bool, wide: np.dtype, vectors: bool) -> tuple[Any, Any]:
        a, values, n = new_like(x, x.shape, wide), new_like(x, x.shape[:-1], _real(wide)), x.shape[-1]
        if not x.size:
            return values, a

        def launched(word: Any) -> tuple[Any, Any]:
            run_fixed(kernels.triangles(x.dtype, wide), [*_read(x, a), 1 if lower else -1, _word(word, a)], a)
            return None, self._run("syevd", a, vectors, lower, n, _count(x.shape[:-2]), a._address, values._address)

        said = self._reporting(launched)
        if said.is_failed or said.is_reported:
            raise np.linalg.LinAlgError(_NO_EIGENVALUES)
        return values, a.mT

    def _values(self, x: Any, hermitian: bool, wide: np.dtype) -> Any:
        """Return the singular values."""
        return self._svd(_hermitian(x) if hermitian else x, None, wide)[1]

    def _svd(self, x: Any, full_matrices: bool | None, wide: np.dtype) -> tuple[Any, Any, Any]:
        """Return the singular value decomposition; only values if `full_matrices` is None.

        The library takes no wide matrices, so a wide one is transposed: ``x^T = U S V^H``, and ``x = conj(V) S U^T``.
        If rotations do not converge, QR steps do.
        """
        *stack, m, n = x.shape
        most, least = (m, n) if m > n else (n, m)
        if not x.size:
            factors = _svd_of_nothing(x, (*stack, most, least), bool(full_matrices), wide)
            return factors if m >= n else (factors[2].mT, factors[1], factors[0].mT)
        sizes = reduce("norm", x, (x.ndim - 2, x.ndim - 1), dtypes.float64, True)
        tall = x if m >= n else x.mT
        function = self._factors.svd_function(most, least, _count(stack))
        said = self._reporting(lambda word: self._tall_svd(function, tall, sizes, word, full_matrices, wide))
        if said.is_reported:
            _check_finite(x, _NO_SVD)
            sizes = minimum(sizes, _LARGEST)
        if said.is_failed or said.is_reported:
            said = self._reporting(lambda word: self._tall_svd("gesvd", tall, sizes, word, full_matrices, wide))
            if said.is_failed:
                raise np.linalg.LinAlgError(_NO_SVD)
        factors = u, s, vh = said.result
        return factors if m >= n else (vh.mT, s, u.mT)

    def _tall_svd(
        self, function: str, x: Any, sizes: Any, word: Any, full_matrices: bool | None, wide: np.dtype
    ) -> tuple[tuple[Any, Any, Any], Any]:
        """Return U, S and V^H of matrices with m >= n, and what the library says.

        The library gets multiples of the matrices whose `sizes`, Euclidean norms, are in [1, 2). A size that is not
        finite is reported in a word.
        """
        *stack, m, n = x.shape
        if function == "gesvd" and not full_matrices and m > THIN_ROWS and m >= THIN * n:
            return self._thin_svd(x, sizes, word, full_matrices, wide)
        is_square = bool(full_matrices) or function == "gesvdj_batched"
        a, s = new_like(x, (*stack, n, m), wide), new_like(x, (*stack, n), _real(wide))
        u = new_like(x, (*stack, m if is_square else n, m), wide)
        v = new_like(x, (*stack, n, n), wide)
        _write_scaled(x, sizes, word, a)
        how = full_matrices is not None, bool(full_matrices), m, n, _count(stack)
        info = self._run(function, a, *how, a._address, s._address, u._address, v._address)
        found = _restored(s, sizes)
        if full_matrices is None:
            return (u, found, v), info
        left = u.mT if full_matrices or not is_square else u[..., :n, :].mT
        return (left, found, v.mT if function == "gesvd" else _conjugate(v)), info

    def _thin_svd(
        self, x: Any, sizes: Any, word: Any, full_matrices: bool | None, wide: np.dtype
    ) -> tuple[tuple[Any, Any, Any], Any]:
        """Return the same of matrices of many rows and few columns, by the singular values of their triangular factors.

        The library refuses to decompose 1e7 rows.
        """
        *stack, m, n = x.shape
        count = _count(stack)
        a, tau, s = (
            new_like(x, (*stack, n, m), wide),
            new_like(x, (*stack, n), wide),
            new_like(x, (*stack, n), _real(wide)),
        )
        u, v = (new_like(x, (*stack, n, n), wide) for _ in range(2))
        _write_scaled(x, sizes, word, a)
        self._run("geqrf", a, m, n, count, a._address, tau._address)
        r = tril(a[..., :n])
        has_vectors = full_matrices is not None
        info = self._run("gesvd", r, has_vectors, False, n, n, count, r._address, s._address, u._address, v._address)
        if not has_vectors:
            return (u, _restored(s, sizes), v), info
        self._run("orgqr", a, m, n, n, count, a._address, n * m, tau._address)
        return (a.mT @ u.mT, _restored(s, sizes), v.mT), info

    def _eig(self, x: Any, dtype: np.dtype, vectors: bool) -> tuple[Any, Any]:
        given = opmath(dtype)
        wide = COMPLEX_OF.get(given, given)
        a, n = new_like(x, x.shape, wide if vectors else given), x.shape[-1]
        values, right = new_like(x, x.shape[:-1], wide), new_like(x, x.shape if vectors else (0, 0), wide)
        if not x.size:
            return values, right

        def launched(word: Any) -> tuple[Any, Any]:
            run_fixed(kernels.finite(x.dtype, a.dtype), [*_read(x, a), _word(word, a)], a)
            addresses = a._address, values._address, right._address if vectors else 0
            return None, self._run("geev", a, n, _count(x.shape[:-2]), *addresses)

        said = self._reporting(launched)
        if said.is_failed or said.is_reported:
            raise np.linalg.LinAlgError(_NOT_FINITE if said.is_reported else _NO_EIGENVALUES)
        return values, right.mT

    def _reporting(self, launched: Callable[[Any], tuple[Any, Any]]) -> _Said:
        """Wait for a call, which gets a word for reports and returns its result and the int32 of each matrix."""
        stream = STATE.get().stream
        word = self._factors.take_word(stream)
        try:
            result, info = launched(word)
            is_failed = bool(to_numpy(info).any())
        except BaseException:
            self._factors.is_reported(word, stream)  # which waits for kernels that write to it
            raise
        return _Said(result, is_failed, self._factors.is_reported(word, stream))


class _Said(NamedTuple):
    """The result of a call of the library; whether it failed for a matrix, and whether a kernel made a report."""

    result: Any
    is_failed: bool
    is_reported: bool


# --- matrices in memory -----------------------------------------------------------------------------------------------


def _word(word: Any, x: Any) -> Any:
    """Return a word for reports as an operand of a loop that writes `x`."""
    signature = signature_of(Layout(x.shape, (0,) * x.ndim), dtypes.int64, x.device)
    return x._make(word, 0, signature)


def _columns(x: Any, dtype: np.dtype) -> Any:
    """Return a copy of matrices in column-major order, as an array of the transposed matrices in C order."""
    return _copied(x.mT, dtype)


def _copied(x: Any, dtype: np.dtype) -> Any:
    """Return a copy in C order."""
    found = new_like(x, x.shape, dtype)
    if x.size:
        store(found, x)
    return found


def _readable(x: Any, dtype: np.dtype) -> Any:
    """Return an array that a library may read on the active stream: in C order."""
    if x.dtype != dtype or not x._signature.layout.contiguous:
        return _copied(x, dtype)
    x.device.backend.join(x._buffer, STATE.get().stream)
    return x


def _read(x: Any, out: Any) -> list[Any]:
    """Return the operands of a loop that writes columns of matrices.

    They are the memory of the matrices; their rows and columns; and the elements from one matrix, row and column to the
    next. Matrices are copied if the axes of the stack have steps of their own.
    """
    m, n = x.shape[-2:]
    *stack, row, column = x._signature.layout.strides
    step = stack[0] if len(stack) == 1 else m * n
    if len(stack) > 1 and not (x._signature.layout.contiguous or x.mT._signature.layout.contiguous):
        x, row, column = _copied(x, x.dtype), n, 1
    return [_as_memory(x, out), m, n, step, row, column]


def _as_memory(x: Any, out: Any) -> Any:
    """Return an array as an operand from which a loop that writes another one gathers."""
    return x._view(Layout(out.shape, (0,) * out.ndim))


def _addressed(a: Any, b: Any = None) -> tuple[Any, list[int]]:
    """Return an array of the addresses of matrices, and of those of another stack, and the address of each part."""
    count, a_step = _count(a.shape[:-2]), _step(a)
    found = new_like(a, (count if b is None else 2 * count,), dtypes.int64)
    others = (0, 0) if b is None else (b._address, _step(b))
    run_fixed(kernels.addresses(), [count, a._address, a_step, *others], found)
    first = found._address
    return found, [first] if b is None else [first, first + found.itemsize * count]


def _step(x: Any) -> int:
    """Return the bytes of a matrix."""
    return x.shape[-2] * x.shape[-1] * x.itemsize


def _svd_of_nothing(x: Any, shape: tuple[int, ...], full: bool, dtype: np.dtype) -> tuple[Any, Any, Any]:
    """Return U, S and V^H of matrices without elements."""
    *stack, m, n = shape
    width = m if full else n
    u = new_like(x, (*stack, m, width), dtype)
    u[...] = eye(m, width, dtype=dtype, device=x.device)
    return u, new_like(x, (*stack, n), _real(dtype)), new_like(x, (*stack, n, n), dtype)


def _write_scaled(x: Any, sizes: Any, word: Any, a: Any) -> None:
    """Write matrices to columns, divided by powers of 2 next to their sizes."""
    operands = [*_read(x, a), _as_memory(_readable(sizes, dtypes.float64), a), _word(word, a)]
    run_fixed(kernels.scaled(x.dtype, a.dtype), operands, a)


def _restored(s: Any, sizes: Any) -> Any:
    """Return singular values of matrices of some sizes, given those of the scaled ones."""
    found = new_like(s, s.shape)
    run_fixed(kernels.restored(s.dtype), [s, broadcast_to(squeeze(sizes, axis=-1), s.shape)], found)
    return found


def _count(stack: Sequence[int]) -> int:
    return math.prod(stack)


def _real(dtype: np.dtype) -> np.dtype:
    return REAL_PART.get(dtype, dtype)


def _wide(x: Any, dtype: np.dtype) -> Any:
    return astype(x, dtype, copy=False)


_rounded = _wide


def _is_complex(x: Any) -> bool:
    return dtypes.info(x.dtype).kind == "complex"


def _conjugate(x: Any) -> Any:
    return conj(x) if _is_complex(x) else x


def _adjoint(x: Any) -> Any:
    return _conjugate(x).mT


def _hermitian(x: Any) -> Any:
    """Return the Hermitian matrices of which the lower triangles are given; diagonals are real."""
    lower = tril(x, -1)
    found = lower + _adjoint(lower)
    elements = diagonal(x, 0, -2, -1)
    diagonal(found, 0, -2, -1)[...] = elements.real if _is_complex(x) else elements
    return found


# --- values of matrices -----------------------------------------------------------------------------------------------


def _check(info: np.ndarray, message: str) -> None:
    """Raise LinAlgError if a library says that factors do not exist."""
    if info.any():
        raise np.linalg.LinAlgError(message)


def _check_finite(x: Any, message: str) -> None:
    if x.size and not all(isfinite(x)).item():
        raise np.linalg.LinAlgError(message)


def _default_rtol(shape: Sequence[int], dtype: np.dtype) -> float:
    """Return the share of the largest singular value up to which others count as 0."""
    m, n = shape[-2:]
    return (m if m > n else n) * float(np.finfo(dtype).eps)


def _shares(rtol: np.ndarray | None, x: Any, dtype: np.dtype) -> Any:
    """Return a number, or an array of one for each matrix, of which the last axis has size 1."""
    if rtol is None:
        return _default_rtol(x.shape, dtype)
    return asarray(rtol[..., None].astype(_real(dtype)), device=x.device)


def _inverse(values: Any, limit: Any) -> Any:
    """Return the inverses of singular values above a limit, and 0 for the others."""
    shape = np.broadcast_shapes(values.shape, limit.shape)
    found = new_like(values, shape)
    if not found.size:
        return found
    return run_fixed(kernels.inverses(values.dtype), [broadcast_to(values, shape), broadcast_to(limit, shape)], found)


def _spectral(values: Any, ord: Any) -> Any:
    if ord == "nuc":
        return sum(values, axis=-1, dtype=dtypes.float64)
    return max(values, axis=-1, initial=0) if ord == 2 else min(values, axis=-1)


# --- products of several matrices -------------------------------------------------------------------------------------


def cheapest_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a product of matrices, so that it takes the fewest multiplications.

    Matrix i has ``sizes[i]`` rows and ``sizes[i + 1]`` columns. The part from matrix `first` to `last` is the product
    of the parts up to ``splits[first, last]`` and after it.

    Examples
    --------
    >>> cheapest_splits([10, 100, 5, 50])[0, 2]
    1
    """
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            choices = [
                (costs[first, at] + costs[at + 1, last] + sizes[first] * sizes[at + 1] * sizes[last + 1], at)
                for at in range(first, last)
            ]
            costs[first, last], splits[first, last] = sorted(choices)[0]
    return splits


def _product(arrays: Sequence[Any], splits: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return arrays[first]
    at = splits[first, last]
    return _product(arrays, splits, first, at) @ _product(arrays, splits, at + 1, last)
