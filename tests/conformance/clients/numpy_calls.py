"""NumPy's own functions on our arrays: ``np.median(x)`` beside the same of a ndarray."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.calls import part as part

PACKAGE = "numpy"
SEMANTICS = "array-api"


def missing(checkout: Path | None) -> str | None:
    return None


def names(array: Callable[[Any], Any]) -> dict[str, Any]:
    """Matrices `a` and `b` (`n` has NaN), squares `s` and `p`, lines `t` `u` `v`, integers `i`, complex `z`, masks."""
    values = np.arange(12.0).reshape(3, 4)
    return {
        "a": array(np.cos(values) * 3.0),
        "b": array(np.sin(values) + 2.0),
        "n": array(np.where(values % 5 == 3, np.nan, values)),
        "s": array(np.cos(np.arange(9.0)).reshape(3, 3) + 3 * np.eye(3)),
        "p": array(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])),
        "t": array(np.array([3.0, 1.0, 2.0, 5.0])),
        "u": array(np.array([0.5, -1.5, 2.5, 3.5])),
        "v": array(np.array([1.0, 2.0, 4.0, 8.0])),
        "i": array(np.array([3, 1, 2, 1])),
        "m": array(values % 3 == 0),
        "w": array(np.array([True, False, True, True])),
        "z": array(np.array([1 + 2j, -3j, 0.5 + 0j, 2 - 1j])),
        "c": array(np.arange(24.0).reshape(2, 3, 4)),
        "np": np,
    }


_UNARY = (
    "abs absolute arccos:u/4 arccosh:v arcsin:u/4 arcsinh arctan arctanh:u/4 cbrt ceil conj conjugate cos cosh deg2rad "
    "degrees exp exp2 expm1 fabs floor isfinite isinf isnan log:b log10:b log1p:b log2:b negative positive rad2deg "
    "radians reciprocal rint sign signbit sin sinh spacing sqrt:b square tan tanh trunc invert:i logical_not:m "
    "bitwise_count:i frexp modf angle:z real:z imag:z fix i0 sinc nan_to_num:n real_if_close isneginf isposinf "
    "iscomplex isreal iscomplexobj isrealobj round around"
)
_BINARY = (
    "add subtract multiply divide true_divide floor_divide mod remainder fmod divmod power:b,a arctan2 hypot maximum "
    "minimum fmax fmin copysign nextafter logaddexp logaddexp2 heaviside greater greater_equal less less_equal equal "
    "not_equal logical_and logical_or logical_xor isclose float_power:b,a bitwise_and:i,i bitwise_or:i,i "
    "bitwise_xor:i,i left_shift:i,i right_shift:i,i gcd:i,i lcm:i,i ldexp:t,i"
)
_REDUCE = (
    "sum prod mean std var max min amax amin argmax argmin any all ptp median count_nonzero cumsum cumprod "
    "cumulative_sum:t cumulative_prod:t"
)
_NAN = "nansum nanprod nanmean nanstd nanvar nanmax nanmin nanargmax nanargmin nanmedian nancumsum nancumprod"


def _calls(table: str, default: str) -> list[str]:
    """``f:x,y`` is ``np.f(x, y)``; without operands they are `default`."""
    pairs = [one.partition(":") for one in table.split()]
    return [f"np.{name}({operands.replace(',', ', ') or default})" for name, _, operands in pairs]


CALLS = {
    "elementwise": [*_calls(_UNARY, "a"), *_calls(_BINARY, "a, b"), "np.clip(a, -1.0, 1.0)", "np.where(m, a, b)"],
    "reduce": [*_calls(_REDUCE, "a"), "np.sum(a, axis=0)", "np.mean(a, 1, keepdims=True)", "np.std(a, ddof=1)"],
    "nan": [*_calls(_NAN, "n"), "np.nanpercentile(n, 30)", "np.nanquantile(n, 0.3)", "np.nanmean(n, axis=0)"],
    "statistics": [
        "np.average(a)",
        "np.average(a, axis=0, weights=np.array([1.0, 2.0, 3.0]))",
        "np.percentile(a, 30)",
        "np.quantile(a, [0.25, 0.75], axis=1)",
        "np.corrcoef(a)",
        "np.cov(a)",
        "np.correlate(t, u)",
        "np.convolve(t, u)",
        "np.histogram(a, bins=4)",
        "np.histogram2d(t, u, bins=2)",
        "np.histogramdd(a[:, :2], bins=2)[0]",
        "np.histogram_bin_edges(a, bins=3)",
        "np.bincount(i)",
        "np.digitize(t, v)",
    ],
    "shape": [
        "np.reshape(a, (4, 3))",
        "np.ravel(a)",
        "np.transpose(a)",
        "np.permute_dims(a)",
        "np.matrix_transpose(a)",
        "np.swapaxes(c, 0, 2)",
        "np.moveaxis(c, 0, 2)",
        "np.rollaxis(c, 2)",
        "np.expand_dims(a, 0)",
        "np.squeeze(a[:1])",
        "np.atleast_1d(t)",
        "np.atleast_2d(t)",
        "np.atleast_3d(t)",
        "np.broadcast_to(t, (3, 4))",
        "np.broadcast_arrays(a, t)",
        "np.flip(a)",
        "np.fliplr(a)",
        "np.flipud(a)",
        "np.rot90(a)",
        "np.roll(a, 1)",
        "np.roll(a, 1, axis=1)",
        "np.shape(a)",
        "np.size(a)",
        "np.ndim(a)",
        "np.resize(t, (2, 3))",
        "np.lib.stride_tricks.sliding_window_view(t, 2)",
        "np.trim_zeros(t)",
        "np.copy(a)",
    ],
    "join": [
        "np.concatenate([a, b])",
        "np.concat([a, b], axis=1)",
        "np.stack([t, u])",
        "np.vstack([t, u])",
        "np.hstack([t, u])",
        "np.dstack([t, u])",
        "np.column_stack([t, u])",
        "np.block([[a, b], [b, a]])",
        "np.append(t, u)",
        "np.insert(t, 1, 9.0)",
        "np.delete(t, 1)",
        "np.split(t, 2)",
        "np.array_split(t, 3)",
        "np.hsplit(a, 2)",
        "np.vsplit(a, 3)",
        "np.dsplit(c, 2)",
        "np.unstack(a)",
        "np.tile(t, 2)",
        "np.repeat(t, 2)",
        "np.pad(a, 1)",
        "np.pad(t, (1, 2), mode='reflect')",
        "np.meshgrid(t, u)",
        "np.ix_(i, i)",
    ],
    "index": [
        "np.take(a, [0, 2], axis=1)",
        "np.take_along_axis(a, np.argsort(a, axis=1), axis=1)",
        "np.put_along_axis(a, np.argmax(a, axis=1, keepdims=True), 0.0, axis=1); a",
        "np.compress(w, t)",
        "np.extract(w, t)",
        "np.choose(i - 1, [t, u, v])",
        "np.select([w, t > 2.0], [t, u])",
        "np.place(t, w, [9.0]); t",
        "np.put(t, [0, 1], [7.0, 8.0]); t",
        "np.putmask(t, w, u); t",
        "np.copyto(t, u); t",
        "np.nonzero(m)",
        "np.flatnonzero(m)",
        "np.argwhere(m)",
        "np.where(m)",
        "np.diagonal(s)",
        "np.diag(s)",
        "np.diag(t)",
        "np.diagflat(t)",
        "np.fill_diagonal(s, 0.0); s",
        "np.tril(s)",
        "np.triu(s, 1)",
        "np.tril_indices_from(s)",
        "np.triu_indices_from(s)",
        "np.diag_indices_from(s)",
        "np.unravel_index(i, (2, 2))",
        "np.ravel_multi_index((i - 1, i - 1), (3, 3))",
        "np.apply_along_axis(np.sum, 1, a)",
        "np.apply_over_axes(np.sum, a, [0, 1])",
        "np.vectorize(lambda x: x + 1.0)(t)",
        "np.piecewise(t, [t < 2.0, t >= 2.0], [0.0, 1.0])",
    ],
    "sort": [
        "np.sort(a)",
        "np.sort(a, axis=0)",
        "np.argsort(t)",
        "np.lexsort((i, t))",
        "np.partition(t, 2)[2]",
        "np.argpartition(t, 2)[2]",
        "np.sort_complex(z)",
        "np.searchsorted(v, t)",
        "np.unique(i)",
        "np.unique(i, return_index=True, return_inverse=True, return_counts=True)",
        "np.unique_all(i)",
        "np.unique_counts(i)",
        "np.unique_inverse(i)",
        "np.unique_values(i)",
        "np.isin(i, [1, 3])",
        "np.intersect1d(i, np.array([1, 9]))",
        "np.union1d(i, np.array([1, 9]))",
        "np.setdiff1d(i, np.array([1, 9]))",
        "np.setxor1d(i, np.array([1, 9]))",
    ],
    "calculus": [
        "np.diff(t)",
        "np.diff(a, 2, axis=1)",
        "np.ediff1d(t)",
        "np.gradient(t)",
        "np.gradient(a, axis=0)",
        "np.trapezoid(t)",
        "np.interp(t, v, u)",
        "np.cross(t[:3], u[:3])",
        "np.polyfit(t, u, 1)",
        "np.polyval(u, t)",
        "np.poly(t)",
        "np.roots(v)",
        "np.polyadd(t, u)",
        "np.polymul(t, u)",
        "np.polyder(t)",
        "np.polyint(t)",
        "np.unwrap(t)",
        "np.maximum.accumulate(t)",
        "np.add.reduce(a)",
        "np.add.outer(t, u)",
        "np.add.at(t, np.array([0, 0, 1]), 1.0); t",
        "np.multiply.reduceat(t, [0, 2])",
        "np.add(a, b, out=a); a",
        "np.add(a, b, dtype=np.float32)",
        "np.add(a, b, where=m, out=a); a",
    ],
    "linear": [
        "np.dot(a, b.T)",
        "np.dot(t, u)",
        "np.vdot(z, z)",
        "np.vecdot(t, u)",
        "np.inner(t, u)",
        "np.outer(t, u)",
        "np.matmul(a, b.T)",
        "np.tensordot(a, b, axes=2)",
        "np.einsum('ij,ij->i', a, b)",
        "np.einsum_path('ij,jk->ik', a, b.T)[0]",
        "np.kron(t, u)",
        "np.trace(s)",
        "np.linalg.norm(a)",
        "np.linalg.norm(a, axis=1)",
        "np.linalg.vector_norm(t)",
        "np.linalg.matrix_norm(a)",
        "np.linalg.det(s)",
        "np.linalg.slogdet(s)",
        "np.linalg.inv(s)",
        "np.linalg.pinv(a)",
        "np.linalg.solve(s, t[:3])",
        "np.linalg.lstsq(a.T, t)[0]",
        "np.linalg.cholesky(p)",
        "np.abs(np.linalg.qr(s)[1])",
        "np.linalg.svd(a, compute_uv=False)",
        "np.linalg.svdvals(a)",
        "np.linalg.eigh(p)[0]",
        "np.linalg.eigvalsh(p)",
        "np.linalg.eigvals(p)",
        "np.linalg.eig(p)[0]",
        "np.linalg.matrix_rank(s)",
        "np.linalg.matrix_power(s, 3)",
        "np.linalg.cond(s)",
        "np.linalg.multi_dot([a, b.T, s])",
        "np.linalg.outer(t, u)",
        "np.linalg.cross(t[:3], u[:3])",
        "np.linalg.diagonal(s)",
        "np.linalg.trace(s)",
        "np.linalg.tensorinv(s, ind=1)",
        "np.linalg.tensorsolve(s, t[:3])",
    ],
    "fft": [
        "np.fft.fft(t)",
        "np.fft.ifft(z)",
        "np.fft.rfft(t)",
        "np.fft.irfft(z)",
        "np.fft.fft2(a)",
        "np.fft.fftn(c)",
        "np.fft.rfftn(a)",
        "np.fft.hfft(z)",
        "np.fft.ihfft(t)",
        "np.fft.fftshift(t)",
        "np.fft.ifftshift(t)",
    ],
    "like": [
        "np.zeros_like(a)",
        "np.ones_like(a)",
        "np.full_like(a, 2.0)",
        "np.empty_like(a).shape",
        "np.zeros_like(a, shape=(2, 2))",
        "np.asarray(a)",
        "np.array(a)",
        "np.asanyarray(a)",
        "np.ascontiguousarray(a.T)",
        "np.asfortranarray(a)",
        "np.require(a)",
        "np.asarray([1.0], like=a)",
        "np.linspace(t, u, 3)",
        "np.logspace(t, u, 3)",
        "np.geomspace(v, v + 1.0, 3)",
        "np.vander(t)",
        "np.astype(a, np.float32)",
    ],
    "ask": [
        "np.allclose(a, a)",
        "np.array_equal(a, a)",
        "np.array_equiv(a, a)",
        "np.may_share_memory(a, a)",
        "np.shares_memory(a, a)",
        "np.result_type(a, np.float32)",
        "np.can_cast(a.dtype, np.float64)",
        "np.common_type(a, b)",
        "np.min_scalar_type(i[0])",
        "np.isscalar(a)",
        "np.iterable(a)",
        "np.array2string(t, precision=2)",
        "np.array_str(t)",
        "np.testing.assert_allclose(a, a)",
        "np.testing.assert_equal(a, a)",
        "np.testing.assert_array_equal(a, a)",
        "np.testing.assert_array_almost_equal(a, a)",
        "np.issubdtype(a.dtype, np.floating)",
        "np.packbits(w)",
        "np.unpackbits(i.astype('uint8'))",
        "np.ma.masked_array(a, a > 1.0).sum()",
        "np.float64(t[0])",
        "list(np.nditer(t))",
        "list(np.ndenumerate(t))",
    ],
}
