"""Which public functions have gradients: a call of each, from which docs/gradients.md and a test are made.

The variables are arrays of float64: `x` and `y` of shape (3, 4) and `w` of shape (5,), with different values between 0
and 1; `m` of shape (3, 3), positive definite; `n` are integers and `b` bools of the shape of `x`. Each call depends on
`x`, and `m` and `w` are made of `x`. `into(write, x)` is an array to which
a function has written.
"""

from __future__ import annotations

DIFFERENTIABLE = """
    abs(x - 0.5); absolute(x - 0.5); acos(x); acosh(x + 1); add(x, y); amax(x, 1); amin(x, 1); angle(x + 1j * y)
    append(x, y); apply_along_axis(sort, 1, x); apply_over_axes(sum, x, [0]); arccos(x); arccosh(x + 1); arcsin(x)
    arcsinh(x); arctan(x); arctan2(x, y); arctanh(x); around(x, 1); array(x); array_split(w, 2)
    as_strided(x, (2, 2), (1, 4)); asanyarray(x); asarray(x); ascontiguousarray(x.T); asfortranarray(x); asin(x)
    asinh(x); astype(x, "float64"); atan(x); atan2(x, y); atanh(x); atleast_1d(x); atleast_2d(w); atleast_3d(x)
    average(x, 1, y); block([x, y]); broadcast_arrays(x, w[:4]); broadcast_to(w, (2, 5)); cbrt(x); ceil(x)
    choose(n, [x, y, x * y, x, y]); clip(x, 0.3, y); column_stack([x, y]); compress(b[:, 0], x, 0)
    concat([x, y]); concatenate([x, y]); conj(x + 1j); conjugate(x + 1j); convolve(w, w[:3]); copy(x); copysign(x, -y)
    corrcoef(x); correlate(w, w[:3]); cos(x); cosh(x); cov(x); cross(x[:, :3], y[:, :3]); cumprod(x, 1); cumsum(x, 1)
    cumulative_prod(x, axis=1); cumulative_sum(x, axis=1); deg2rad(x); degrees(x); delete(x, 1, 1); diag(m)
    diagflat(w); diagonal(x); diff(x); divide(x, y); divmod(x, 0.4); dot(x, y.T); dsplit(x[None] * y[:, None], 2)
    dstack([x, y]); ediff1d(x); einsum("ij,kj->ik", x, y); entr(x); erf(x); erfc(x); erfinv(x); exp(x); exp2(x)
    expand(x, 2, 3, 4); expand_dims(x, axis=1); expit(x); expm1(x); extract(b, x); fabs(x); fix(x * 3); flip(x)
    fliplr(x); flipud(x); float_power(x, y); floor(x); floor_divide(x, y); fma(x, y, x); fmax(x, y); fmin(x, y)
    fmod(x, 0.4); frexp(x); gamma(x); gradient(x); heaviside(floor(x), x); hsplit(x, 2); hstack([x, y]); hypot(x, y)
    imag(x * 1j); inner(x, y); insert(x, 1, y[:, 0], axis=1); interp(x, cumsum(y[0]), w[:4]); kron(x[:2], y[:2])
    ldexp(x, n); lgamma(x); log(x); log10(x); log1p(x); log2(x); log_softmax(x); logaddexp(x, y); logaddexp2(x, y)
    logit(x); logsumexp(x); matmul(x, y.T); matrix_transpose(x); matvec(x, w[:4]); max(x, axis=1); maximum(x, y)
    mean(x, axis=1); median(x); meshgrid(w, w); min(x, axis=1); minimum(x, y); mod(x, 0.4); modf(x); moveaxis(x, 0, 1)
    multiply(x, y); nan_to_num(x); nancumprod(x, 1); nancumsum(x, 1); nanmax(x); nanmean(x); nanmedian(x); nanmin(x)
    nanpercentile(x, 30); nanprod(x); nanquantile(x, 0.3); nanstd(x); nansum(x); nanvar(x); ndtr(x); negative(x)
    outer(w, w); pad(x, 1); partition(x, 1); percentile(x, 30); permute_dims(x, (1, 0)); polyval(w, x)
    piecewise(x, [x > 0.5], [lambda t: t * t, lambda t: t]); positive(x); pow(x, y); power(x, y); prod(x); ptp(x)
    quantile(x, 0.3); rad2deg(x); radians(x); ravel(x); real(x + 1j); real_if_close(x); reciprocal(x); remainder(x, y)
    repeat(x, 2); reshape(x, (4, 3)); resize(x, (2, 5)); rint(x); roll(x, 1); rollaxis(x, 1); rot90(x); round(x)
    rsqrt(x); select([b], [x], 0.5); sign(x + 1j * y); sin(x); sinc(x); sinh(x); sliding_window_view(w, 2); softmax(x)
    sort(x); split(w[:4], 2); sqrt(x); square(x); squeeze(x[None]); stack([x, y]); std(x); subtract(x, y); sum(x)
    sum_to_shape(x, (4,)); swapaxes(x, 0, 1); take(x, n); take_along_axis(x, n[:, :2] % 3, 1); tan(x); tanh(x)
    tensordot(x, y); tile(x, 2); top_k(x, 2); trace(m); transpose(x); trapezoid(x); tril(x); trim_zeros(w); triu(x)
    true_divide(x, y); trunc(x); unstack(x); unwrap(x * 9); vander(w); var(x); vdot(w, w); vecdot(x, y)
    vecmat(w[:3], x); view(x, "float64"); vsplit(x, 3); vstack([x, y]); where(b, x, y); xlog1py(x, y); xlogy(x, y)
    copyto: into(lambda out, x: copyto(out, x * 2), x); fill_diagonal: into(lambda out, w: fill_diagonal(out, w[0]), w)
    place: into(lambda out, x: place(out, b, w), x); put: into(lambda out, x: put(out, [1, 5], w[:2]), x)
    put_along_axis: into(lambda out, x: put_along_axis(out, n[:, :1] % 3, x[:, :1], 1), x)
    putmask: into(lambda out, x: putmask(out, b, x * 2), x); ix_: x[ix_([0, 2], [1])]
    fuse: fuse(lambda t: exp(t) * t)(x); pointwise: pointwise(lambda t: t * t)(x); evaluate("a * b + a", a=x, b=y)
    foreach: foreach(lambda t: t * 2, [x, y]); array_agnostic: array_agnostic(lambda t: t * 2)(x)
    from_dlpack(x); to_device(x, "cpu"); dequantize(x, y[:, :1], block=(1, 4), dtype="float64")
    tiles: tiles(x, (2, 2))[0, 0]; bincount: bincount(n.ravel(), x.ravel()); poly(w)
    histogram(n, 3, weights=x); histogramdd(astype(n, "float64"), 2, weights=w[:3])
    histogram2d(astype(n[0], "float64"), n[1], 2, weights=x[2])
    polyfit(w, sin(w * 3), 2); roots(w)
    grad: grad(lambda t: sum(t * t * t))(x); value_and_grad: value_and_grad(lambda t: sum(t * t * t))(x)
    vjp: vjp(exp, x)[1](y); jvp: jvp(exp, (x,), (y,))
    linalg.cholesky(m); linalg.cond(m); linalg.cross(x[:, :3], y[:, :3]); linalg.det(m); linalg.diagonal(m)
    linalg.eig: abs(linalg.eig(m).eigenvectors); linalg.eigh: abs(linalg.eigh(m).eigenvectors); linalg.eigvals(m)
    linalg.eigvalsh(m); linalg.inv(m); linalg.lstsq(x.T, w[:4]); linalg.matmul(x, y.T); linalg.matrix_norm(m)
    linalg.matrix_power(m, 3); linalg.matrix_transpose(x); linalg.multi_dot([x, y.T, x]); linalg.norm(x)
    linalg.outer(w, w); linalg.pinv(x); linalg.qr(m); linalg.slogdet(m); linalg.solve(m, x); linalg.svdvals(x)
    linalg.svd: abs(linalg.svd(x, full_matrices=False).U); linalg.tensordot(x, y); linalg.tensorinv(m[..., None], 1)
    linalg.tensorsolve(m, w[:3]); linalg.trace(m); linalg.vecdot(x, y); linalg.vector_norm(x)
    fft.fft(x); fft.fft2(x); fft.fftn(x); fft.fftshift(x); fft.hfft(x); fft.ifft(x); fft.ifft2(x); fft.ifftn(x)
    fft.ifftshift(x); fft.ihfft(x); fft.irfft(x); fft.irfft2(x); fft.irfftn(x); fft.rfft(x); fft.rfft2(x); fft.rfftn(x)
"""
"""Calls whose gradient is that of the function. A call is of the function it begins with, or that stands before `:`."""

WITHOUT = """
    all(x); allclose(x, y); any(x); argmax(x); argmin(x); argpartition(x, 1); argsort(x); argwhere(x); array_equal(x, y)
    array_equiv(x, y); bitwise_and(n, n); bitwise_invert(n); bitwise_left_shift(n, n); bitwise_not(n)
    bitwise_or(n, n); bitwise_right_shift(n, n); bitwise_xor(n, n); count_nonzero(x); empty_like: empty_like(x) * 0
    equal(x, y); flatnonzero(x); full_like(x, 2.0); gcd(n, n); greater(x, y); greater_equal(x, y); invert(n)
    isclose(x, y); iscomplex(x); iscomplexobj(x); isfinite(x); isin(x, y); isinf(x); isnan(x); isneginf(x)
    isposinf(x); isreal(x); isrealobj(x); in1d(x, y); lcm(n, n); left_shift(n, n); less(x, y); less_equal(x, y)
    lexsort([x, y]); logical_and(x, y); logical_not(x); logical_or(x, y); logical_xor(x, y); nanargmax(x); nanargmin(x)
    digitize(x, [0.2, 0.5])
    ndim(x); nonzero(x); not_equal(x, y); ones_like(x); ravel_multi_index((n % 3, n % 4), (3, 4)); right_shift(n, n)
    searchsorted(w, x); shape(x); signbit(x); size(x); unravel_index(n, (3, 4)); zeros_like(x); may_share_memory(x, y)
    shares_memory(x, y); linalg.matrix_rank(m); diag_indices_from(m); tril_indices_from(x); triu_indices_from(x)
    quantize: quantize(x, "int8")[0]; pack_float4: pack_float4(astype(x, "float4_e2m1fn"))
    unpack_float4(astype(x, "uint8")); result_type(x, y); can_cast: can_cast(x, "float32")
"""
"""Calls whose results are integers, bools, or new constants: derivatives end there."""

REFUSED = """
    histogram_bin_edges(x); intersect1d(x, y); nextafter(x, 1.0)
    scaled_matmul: scaled_matmul(astype(n[:3, :3], "int8"), astype(n[:3, :3], "int8"), w[0], 1.0)
    setdiff1d(x, y); setxor1d(x, y); to_numpy(x); union1d(x, y); unique(x); unique_all(x)
    unique_counts(x); unique_inverse(x); unique_values(x); to_torch(x)
    save_safetensors("x", {"x": x}); save("x", x); savez("x", x); savez_compressed("x", x)
"""
"""Calls that raise GradientError."""

OTHERS = """
    __array_namespace_info__ arange bartlett blackman broadcast_shapes default_device devices diag_indices empty
    explain_promotion eye finfo frombuffer fromfunction fromiter full geomspace get_printoptions get_semantics geterr
    hamming hanning identity iinfo indices isdtype isscalar issubdtype iterable kaiser linspace load load_safetensors
    logspace ndenumerate ndindex ones printoptions promote_types safetensors_metadata set_default_device
    set_index_check set_printoptions set_semantics set_transfer_guard seterr tri tril_indices triu_indices
    unbroadcast_axes zeros fft.fftfreq fft.rfftfreq draw explain to_cupy to_jax
"""
"""Functions that compute nothing of arrays, or hand them to other libraries."""


def calls(text: str) -> dict[str, str]:
    """Return the calls of a table by the names of their functions.

    >>> calls("add(x, y); put: into(put, x)")
    {'add': 'add(x, y)', 'put': 'into(put, x)'}
    """
    found: dict[str, str] = {}
    for entry in text.replace("\n", ";").split(";"):
        name, colon, call = entry.strip().partition(": ")
        if name and not (colon and name.replace(".", "").isidentifier()):
            name, call = entry.strip().partition("(")[0], entry.strip()
        if name:
            found[name] = call
    return found
