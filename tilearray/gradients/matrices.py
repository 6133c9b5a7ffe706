"""Gradients of decompositions, inverses and determinants.

`FollowedMatrices` is what `tilearray.linalg` runs on followed arrays. A factor is computed on the arrays below, by
whatever has factors there, and recorded with its pullback; norms, powers and condition numbers are operations on
factors, as on a GPU. So each function of `linalg` has the values and the errors that it has without `vjp`.

Pullbacks call public functions, so they can be differentiated again. In them ``a``, ``b`` are operands, capital letters
the factors, and ``g`` cotangents; `adjoint` is the conjugate transpose. For a function of Hermitian matrices the
gradient is Hermitian, as in torch, although one triangle is read. Vectors of equal eigenvalues or singular values have
no derivative: it is NaN, as in torch. The values have one; a cotangent is None where nothing depends on a result.

The rules are those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application
in optimum experimental design" (2010), and Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear
least squares problems whose variables separate" (1973); and for complex numbers those of torch's conventions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tilearray import dtypes, linalg
from tilearray.arrays.fills import zeros, zeros_like
from tilearray.arrays.triangular import eye, tril, triu
from tilearray.engine.context import semantics
from tilearray.errors import GradientError
from tilearray.functions.conversion import astype
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import diagonal, expand_dims
from tilearray.functions.products import matmul, matrix_transpose
from tilearray.functions.reductions import any, prod
from tilearray.functions.searching import where
from tilearray.gradients.followed import FollowingDevice, lowered, place_of
from tilearray.gradients.following import recorded_all
from tilearray.gradients.rules import is_real
from tilearray.linalg.device_matrices import DeviceMatrices
from tilearray.linalg.operands import matrices
from tilearray.ops.number_parts import conj, imag, real

Rule = Callable[..., Sequence[Any]]
"""``rule(operands, results, cotangents)``: the cotangents of the operands."""


class FollowedMatrices(DeviceMatrices):
    """The functions of `Matrices` on followed arrays.

    Parameters
    ----------
    function : str
        The name of the function that was called, for errors.
    device : FollowingDevice
        That of the deepest operand.
    """

    def __init__(self, function: str, device: FollowingDevice) -> None:
        super().__init__(cast(Any, None))
        self._function = function
        self._device = device

    def _recorded(self, method: str, operands: Sequence[Any], options: Sequence[Any], rule: Rule) -> Any:
        """Run a method on the arrays below, and record it."""
        given = [lowered(x, self._device) for x in operands]
        found = matrices(self._function, *given).run(method, *given, *options)
        several = isinstance(found, tuple)
        results = cast("tuple[Any, ...]", found if several else (found,))
        wide = [astype(x, results[0].dtype, copy=False) if _differs(x, results[0]) else x for x in given]

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
            del wanted
            with semantics("array-api"):
                return rule(wide, results, cotangents)

        followed = recorded_all(self._device, results, operands, pull)
        return followed if several else followed[0]

    def _refused(self, what: str, instead: str) -> GradientError:
        return GradientError(f"vjp: {self._function} has no derivative {what}; write {instead}")

    # ------------------------------------------------------------------ factors

    def cholesky(self, x: Any, upper: bool, dtype: np.dtype) -> Any:
        return self._recorded("cholesky", (x,), (upper, dtype), _upper_cholesky if upper else _cholesky)

    def qr(self, x: Any, mode: str, dtype: np.dtype) -> Any:
        m, n = x.shape[-2:]
        if mode == "complete" and m > n:
            raise self._refused("in the columns of Q beyond the rank", "mode='reduced'")
        return self._recorded("qr", (x,), (mode, dtype), _qr if m >= n else _wide_qr)

    def svd(self, x: Any, full_matrices: bool, hermitian: bool, dtype: np.dtype) -> Any:
        m, n = x.shape[-2:]
        if full_matrices and m != n:
            raise self._refused("in the vectors beyond the singular values", "full_matrices=False")
        return self._recorded("svd", (x,), (full_matrices, hermitian, dtype), _hermitian_svd if hermitian else _svd)

    def svdvals(self, x: Any, hermitian: bool, dtype: np.dtype) -> Any:
        return self.svd(x, False, hermitian, dtype)[1]

    def eig(self, x: Any, dtype: np.dtype) -> Any:
        return self._recorded("eig", (x,), (dtype,), _eig)

    def eigvals(self, x: Any, dtype: np.dtype) -> Any:
        return self.eig(x, dtype)[0]

    def eigh(self, x: Any, lower: bool, dtype: np.dtype) -> Any:
        return self._recorded("eigh", (x,), (lower, dtype), _eigh)

    def eigvalsh(self, x: Any, lower: bool, dtype: np.dtype) -> Any:
        return self.eigh(x, lower, dtype)[0]

    def _values(self, x: Any, hermitian: bool, wide: np.dtype) -> Any:
        return self.svdvals(x, hermitian, wide)

    # ------------------------------------------------------------------ equations

    def inv(self, x: Any, dtype: np.dtype) -> Any:
        return self._recorded("inv", (x,), (dtype,), _inv)

    def solve(self, x1: Any, x2: Any, dtype: np.dtype) -> Any:
        if x2.ndim == 1:
            return super().solve(x1, x2, dtype)
        return self._recorded("solve", (x1, x2), (dtype,), _solve)

    def _inverted(self, x: Any, wide: np.dtype, told: Callable[[Any], Any]) -> tuple[Any, Any]:
        found, info = _without_errors(self.inv(x, wide))
        return found, told(info)

    def lstsq(self, a: Any, b: Any, rcond: float | None, dtype: np.dtype) -> Any:
        def rule(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
            return _lstsq(rcond, operands, results, cotangents)

        return self._recorded("lstsq", (a, b), (rcond, dtype), rule)

    def pinv(self, x: Any, rtol: np.ndarray | None, hermitian: bool, dtype: np.dtype) -> Any:
        return self._recorded("pinv", (x,), (rtol, hermitian, dtype), _hermitian_pinv if hermitian else _pinv)

    # ------------------------------------------------------------------ numbers of a matrix

    def det(self, x: Any, dtype: np.dtype) -> Any:
        return self._recorded("det", (x,), (dtype,), _det)

    def slogdet(self, x: Any, dtype: np.dtype) -> Any:
        return self._recorded("slogdet", (x,), (dtype,), _slogdet)


# --- matrices --------------------------------------------------------------------------------------------------------


def _without_errors(found: Any) -> tuple[Any, Any]:
    """Return results, and that none of their matrices is singular: a singular one has raised an error."""
    return found, zeros(math.prod(found.shape[:-2]), dtypes.int32, device=place_of(found))


def _differs(x: Any, result: Any) -> bool:
    """Whether an operand of a rule is cast first: integers and narrow floats to the floats of the result."""
    return dtypes.info(x.dtype).kind not in ("float", "complex") or x.dtype.itemsize < result.dtype.itemsize


def adjoint(x: Any) -> Any:
    """Return conjugate transposes."""
    turned = matrix_transpose(x)
    return turned if is_real(x) else conj(turned)


def _hermitian_part(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def _diagonal(x: Any) -> Any:
    """Square matrices with these diagonals, and 0 elsewhere."""
    return where(_identity(x.shape[-1], x), expand_dims(x, axis=-1), 0)


def _identity(n: int, like: Any) -> Any:
    return eye(n, dtype=dtypes.bool_, device=place_of(like))


def _columns(x: Any) -> Any:
    """Vectors as one row, which multiplies the columns of matrices."""
    return expand_dims(x, axis=-2)


def _numbers(x: Any) -> Any:
    """Numbers as matrices of one element."""
    return expand_dims(x, axis=(-2, -1))


def _gaps(values: Any) -> Any:
    """For a matrix of all pairs, the reciprocal of the second value less the first; 0 on the diagonal."""
    same = _identity(values.shape[-1], values)
    return where(same, 0, 1 / where(same, 1, _columns(values) - expand_dims(values, axis=-1)))


def _filled(g: Any, like: Any) -> Any:
    """A cotangent, or zeros."""
    return zeros_like(like) if g is None else g


def _over(x: Any, right: Any) -> Any:
    """``x @ inv(adjoint(right))``."""
    return adjoint(linalg.solve(right, adjoint(x)))


# --- factors ---------------------------------------------------------------------------------------------------------


def _cholesky(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    del operands
    (lower,), (g,) = results, cotangents
    inner = tril(matmul(adjoint(lower), g))
    inner = where(_identity(inner.shape[-1], inner), inner / 2, inner)
    left = linalg.solve(adjoint(lower), inner)
    return [_hermitian_part(_over(left, adjoint(lower)))]


def _upper_cholesky(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    return _cholesky(operands, [adjoint(results[0])], [adjoint(cotangents[0])])


def _qr(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """Of matrices with as many rows as columns, or more."""
    del operands
    q, r = results
    gq, gr = (_filled(*pair) for pair in zip(cotangents, results, strict=True))
    inner = triu(matmul(gr, adjoint(r)) - matmul(adjoint(q), gq))
    both = inner + adjoint(inner)
    both = where(_identity(r.shape[-1], r), both / 2, both)
    return [_over(gq + matmul(q, both), r)]


def _wide_qr(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """Of matrices with more columns: Q is that of the square at the left, and R beyond it is ``adjoint(Q) @ a``."""
    (a,), (q, r) = operands, results
    gq, gr = (_filled(*pair) for pair in zip(cotangents, results, strict=True))
    n = q.shape[-1]
    rest, g_rest = a[..., n:], gr[..., n:]
    (square,) = _qr((), (q, r[..., :n]), (gq + matmul(rest, adjoint(g_rest)), gr[..., :n]))
    return [concat([square, matmul(q, g_rest)], axis=-1)]


def _eigh(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    del operands
    (values, vectors), (g, g_vectors) = results, cotangents
    inner = _diagonal(_filled(g, values))
    if g_vectors is not None:
        inner = inner + matmul(adjoint(vectors), g_vectors) * _gaps(values)
    return [_hermitian_part(matmul(matmul(vectors, inner), adjoint(vectors)))]


def _eig(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """Vectors have length 1; the loss does not depend on their phases."""
    del operands
    (values, vectors), (g, g_vectors) = results, cotangents
    turned = adjoint(vectors)
    inner = _diagonal(_filled(g, values))
    if g_vectors is not None:
        slope = matmul(turned, g_vectors)
        slope = slope - matmul(turned, vectors) * _columns(real(diagonal(slope, 0, -2, -1)))
        inner = inner + slope * conj(_gaps(values))
    return [linalg.solve(turned, matmul(inner, turned))]


def _svd(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    del operands
    u, s, vh = results
    gs = _filled(cotangents[1], s)
    if cotangents[0] is None and cotangents[2] is None:
        return [matmul(u * _columns(gs), vh)]
    gu, gv, v = _filled(cotangents[0], u), adjoint(_filled(cotangents[2], vh)), adjoint(vh)
    gaps = _gaps(s * s)
    left, right = matmul(adjoint(u), gu), matmul(vh, gv)
    inner = (left - adjoint(left)) * gaps * _columns(s) + expand_dims(s, axis=-1) * ((right - adjoint(right)) * gaps)
    middle = gs if is_real(u) else gs + 1j * imag(diagonal(left, 0, -2, -1)) / s
    found = matmul(matmul(u, inner + _diagonal(middle)), vh)
    if u.shape[-2] > s.shape[-1]:
        found = found + matmul((gu - matmul(u, left)) / _columns(s), vh)
    if vh.shape[-1] > s.shape[-1]:
        found = found + matmul(u / _columns(s), adjoint(gv - matmul(v, right)))
    return [found]


def _hermitian_svd(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    return [_hermitian_part(*_svd(operands, results, cotangents))]


# --- equations -------------------------------------------------------------------------------------------------------


def _inv(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    del operands
    turned = adjoint(results[0])
    return [-matmul(matmul(turned, cotangents[0]), turned)]


def _solve(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    right = linalg.solve(adjoint(operands[0]), cotangents[0])
    return [-matmul(right, adjoint(results[0])), right]


def _pinv(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    (a,), (y,), (g,) = operands, results, cotangents
    turned, back = adjoint(y), adjoint(g)
    rows = matmul(back, matmul(y, turned))
    columns = matmul(matmul(turned, y), back)
    return [
        (rows - matmul(a, matmul(y, rows)))
        + (columns - matmul(matmul(columns, y), a))
        - matmul(matmul(turned, g), turned)
    ]


def _hermitian_pinv(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    return [_hermitian_part(*_pinv([_hermitian_part(operands[0])], results, cotangents))]


def _lstsq(
    rcond: float | None, operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]
) -> Sequence[Any]:
    """The solution is ``pinv(a) @ b``, and the residuals are the squares of ``b - a @ x``."""
    a, b = operands
    x, residuals = results[:2]
    g, g_residuals, g_values = (_filled(*pair) for pair in zip(cotangents, (x, residuals, results[-1]), strict=True))
    alone = b.ndim == 1
    if alone:
        b, x, g = (expand_dims(each, axis=-1) for each in (b, x, g))
    y = linalg.pinv(a, rcond)
    (g_a,) = _pinv((a,), (y,), (matmul(g, adjoint(b)),))
    g_b = matmul(adjoint(y), g)
    if residuals.size:
        slope = 2 * (b - matmul(a, x)) * g_residuals
        g_a, g_b = g_a - matmul(slope, adjoint(x)), g_b + slope
    u, _, vh = linalg.svd(a, full_matrices=False)
    return [g_a + matmul(u * _columns(g_values), vh), g_b[..., 0] if alone else g_b]


# --- determinants ----------------------------------------------------------------------------------------------------


def _det(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """The adjoint of the adjugate: ``conj(det) * inv(adjoint(a))``; of singular matrices by their singular values."""
    (a,), (found,), (g,) = operands, results, cotangents
    if not bool(any(found == 0)):
        size = found if is_real(found) else conj(found)
        return [_numbers(g * size) * adjoint(linalg.inv(a))]
    u, s, vh = linalg.svd(a)
    others = prod(where(_identity(s.shape[-1], s), 1, _columns(s)), axis=-1)
    sign = linalg.det(u) * linalg.det(vh)
    return [_numbers(g * (sign if is_real(sign) else conj(sign))) * matmul(u * _columns(others), vh)]


def _slogdet(operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
    """Of complex matrices the phase has a derivative as well; that of the sign of real ones is 0."""
    sign, (g_sign, g) = results[0], cotangents
    slope = _filled(g, results[1])
    if g_sign is not None and not is_real(sign):
        slope = slope + 1j * real(conj(g_sign) * (1j * sign))
    return [_numbers(slope) * adjoint(linalg.inv(operands[0]))]
