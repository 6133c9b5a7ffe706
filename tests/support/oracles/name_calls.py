"""Calls of NumPy's names that mean the same in both libraries.

The variables of a call are arrays: ours in our namespace, the same values as ndarrays in NumPy's.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import tilearray as ta

RNG = np.random.default_rng(11)

# x y (4, 6); v w (12,), any step; s 0-d; z (0, 3); n with NaN, q with a row of NaN; i (4, 6) integers; j (10,) small
# and not negative; k sorted; u uint8; m (4, 6) bool; b (12,) bool; c complex
CALLS = """
    absolute(x)
    amax(x, 1)
    amin(x, 0)
    append(x, y); append(x, y, 0); append(v, s)
    angle(c), angle(c, True), angle(x, deg=True), angle(s, deg=False)
    apply_along_axis(lambda row: row[::2], 1, x); apply_along_axis(lambda row: row[0], 0, x)
    apply_over_axes(sum, x, (0, 1))
    arccos(x / 100)
    arccosh(1 + abs(x))
    arcsin(x / 100)
    arcsinh(x)
    arctan(x)
    arctan2(x, y)
    arctanh(x / 100)
    argpartition(sort(v), 3)
    argwhere(m); argwhere(x > 0); argwhere(z)
    around(x, 1); around(x)
    array(x); array(x, v.dtype, ndmin=3); array(x, order="F"); array(s, ndmin=2); array(z)
    array_equal(x, x), array_equal(x, y), array_equal(n, n), array_equal(n, n, equal_nan=True), array_equal(x, v)
    array_equiv(x, x), array_equiv(x, x[0]), array_equiv(x[:1], x[0]), array_equiv(x, v)
    allclose(x, x), allclose(x, x + 1e-9), allclose(x, y), allclose(n, n), allclose(n, n, equal_nan=True)
    array_split(v, 5); array_split(x, [1, 3, 9], 1); array_split(x, 4, -1); array_split(z, 3)
    asanyarray(x); asanyarray(x, copy=True)
    ascontiguousarray(x); ascontiguousarray(s)
    asfortranarray(x)
    atleast_1d(s); atleast_1d(x); atleast_1d(s, x)
    atleast_2d(s); atleast_2d(v); atleast_2d(x)
    atleast_3d(s); atleast_3d(v); atleast_3d(x); atleast_3d(z)
    average(x); average(x, 1); average(x, 1, abs(y)); average(x, weights=abs(y)); average(x, 1, abs(y[0]))
    average(x, 0, returned=True); average(x, 1, abs(y[0]), True); average(i, 0, abs(y), keepdims=True)
    bincount([]); bincount(j); bincount(j, minlength=20); bincount(j, v[:10])
    bitwise_not(i); bitwise_not(m); invert(u)
    block([[x, y], [y, x]]); block([v, s]); block(x); block([[[x]], [[y]]]); block([[x[:, :2], x[:, 2:]], [i]])
    choose(j % 3, [v[:10], w[:10], j]); choose(j, [j, j + 1, j + 2], mode="clip"); choose(-j, [j, j * 2], mode="wrap")
    choose(j % 3, [v[:10], 2.5, j]); choose(j % 2, [7, v[:10]]); choose(j % 2, [1, 2])
    c_[v, w]; c_[x, y]; c_[j]
    column_stack([v, w]); column_stack([x, y[:, 0]])
    compress(b[:4], x, 0); compress(b, x); compress(b[:3], x, 1)
    concatenate([x, y]); concatenate([x, y], 1); concatenate([x, z.reshape(-1)], None)
    conjugate(c)
    convolve(v, w); convolve(v, w[:3], "same"); convolve(j, j, "valid"); convolve([1, 2, 3], [0, 1])
    copy(x); copy(x, "F"); copy(x, "C")
    corrcoef(x); corrcoef(x, y); corrcoef(x, rowvar=False)
    correlate(v, w); correlate(v, w[:3], "full"); correlate(c[0], c[1])
    cov(x); cov(x, y); cov(x, rowvar=False, bias=True); cov(x, ddof=0); cov(x, fweights=j[:6]); cov(v)
    cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]); median([3.0, 1.0, 2.0]); nanpercentile([3.0, 1.0, 2.0], 30)
    cumprod(x / 50); cumprod(x / 50, 1)
    cumsum(x); cumsum(i, 0); cumsum(u, 1, "int16"); cumsum(m)
    degrees(x); radians(x)
    delete(v, 3); delete(v, [1, -1]); delete(x, slice(1, 3), 1); delete(x, 0, 0); delete(v, b); delete(v, [])
    diag_indices(3); diag_indices(2, 3); diag_indices_from(x[:, :4])
    diagflat(v); diagflat(x[:2, :2], -2)
    digitize(v, k); digitize(x, k, True); digitize(v, k[::-1])
    dsplit(x.reshape((2, 3, 4)), 2)
    dstack([v, w]); dstack([x, y])
    ediff1d(v); ediff1d(x, v[:2], v[2:3])
    extract(m, x); extract(b, v)
    fabs(x); fabs(v); fabs(x, y * 1.0, where=m); fabs(i, out=x * 1.0, where=m)
    fix(x)
    flatnonzero(m); flatnonzero(i); flatnonzero(z)
    fliplr(x); flipud(x); flipud(v)
    fmax(n, x); fmin(n, x); fmax(x, y, copy(x), where=m); fmin(x, y, copy(i), casting="unsafe")
    fromfunction(lambda a, b: a + 2 * b, (3, 4), dtype=v.dtype); fromfunction(lambda a: a, (4,))
    gcd(i, 12); lcm(j, 6)
    gradient(v); gradient(x); gradient(x, axis=1); gradient(v, 0.5); gradient(v, k[:12]); gradient(x, edge_order=2)
    histogram(v); histogram(x, 5); histogram(x, k); histogram(v, 4, (-50, 50)); histogram(v, 3, weights=w, density=True)
    histogram(u); histogram(v, "fd"); histogram(v, 3, weights=c[:2].reshape(-1)); histogram(v, k, weights=w * 1j)
    histogram(v, 2, weights=c[:2].reshape(-1), density=True)
    histogram2d(v, w); histogram2d(v, w, [3, 4]); histogram2d(v, w, (k[:5], k[3:9]))
    histogramdd(x); histogramdd(x[:, :2], (3, [-50, 0, 50])); histogramdd(y[:, :2], 2, weights=v[:4])
    histogramdd((v, w), 3); histogramdd([v, w], [2, 3], weights=w); histogramdd(v, 4)
    histogram_bin_edges(v); histogram_bin_edges(v, "auto")
    hsplit(x, 3); hsplit(v, [2, 5]); vsplit(x, 2)
    hstack([x, y]); hstack([v, w]); hstack([s, s])
    identity(3, v.dtype); identity(2)
    in1d(i, j); in1d(i, j, invert=True)
    indices((2, 3)); indices((3,)); indices((2, 3), "int16"); indices((2, 3), sparse=True); indices(())
    insert(v, 3, 9); insert(v, [1, 5], w[:2]); insert(x, 2, y[:, 0], 1); insert(x, [0, 2], 7, 0); insert(x, 1, 5)
    interp(v, k, k * 2 + 1); interp(x, k, abs(k), -1, 99); interp(v, k, k, period=30); interp(2.5, k, k)
    intersect1d(i, j); intersect1d(j, j[::2], return_indices=True); setdiff1d(i, j); setxor1d(i, j); union1d(i, j)
    iscomplex(c); isreal(c); isreal(x); iscomplex(x)
    iscomplexobj(c), iscomplexobj(x), isrealobj(c), isrealobj(x), isrealobj(m), isscalar(x), isscalar(3)
    isneginf(n); isposinf(n)
    ix_(j[:2], b[:4]); x[ix_([0, 2], [1, 3])]; ix_([], [1])
    lexsort([j, -j]); lexsort(i); lexsort(i, 0); lexsort([c.real, c * 0, c]); lexsort([c[0], j[:6]])
    logaddexp2(x, y); logaddexp2(x, y, x * 1.0, where=m); logaddexp2(x, 3); logaddexp2(2.5, x)
    may_share_memory(x, x[0]), may_share_memory(v, w), shares_memory(x, x[0]), shares_memory(x[:, ::2], x[:, 1::2])
    median(x); median(x, 0); median(v[:5]); median(n, 1); median(x, (0, 1), keepdims=True); median(i, 1)
    median(z, 0); median(z, 1); median(z); median(z, (0, 1), keepdims=True); nanmedian(z, 0); nanquantile(z, 0.5, 0)
    mgrid[0:3, 0:2]; mgrid[1:9:2]; mgrid[0:4, 2:7:2, 0:1]; ogrid[0:3, 0:2]; ogrid[3:5]
    modf(x); modf(n)
    nanargmax(n); nanargmax(n, 1); nanargmin(n, 0); nanargmax(i, 1, keepdims=True); nanargmin(m)
    nancumsum(n); nancumsum(n, 1); nancumprod(n / 50, 0); nancumsum(i)
    nanmax(n); nanmax(n, 1); nanmax(q, 1); nanmax(q, 1, initial=3); nanmax(i, 0); nanmin(q, 0); nanmin(n, keepdims=True)
    nanmean(n); nanmean(q, 1); nanmean(n, 0, keepdims=True); nanmean(i, 1); nanmean(n, where=m)
    nanmedian(n); nanmedian(q, 1); nanmedian(n, 0, keepdims=True)
    nanpercentile(n, 30); nanpercentile(q, [10, 90], 1); nanquantile(n, 0.3); nanquantile(q, [0.1, 0.9], 0)
    nanstd(n); nanstd(q, 1); nanvar(n, 0, ddof=1); nanvar(q, 1, keepdims=True); nanvar(i)
    nanvar(n, 1, correction=1); nanstd(q, 0, correction=0.5)
    isin(i, j, True, True, kind="sort"); isin(j, test_elements=i); unique(i, return_counts=True)
    nansum(n); nansum(q, 1); nansum(n, 0, keepdims=True, initial=5); nansum(i, 1); nanprod(n / 50, 1); nanprod(q[1], 0)
    ndim(x), ndim(s), ndim([[1]]), shape(x), shape([[1, 2]]), size(x), size(x, 1), size(z), size([1, 2])
    pad(v, 2); pad(x, (1, 2)); pad(x, ((1, 0), (2, 3)), constant_values=7); pad(x, 1, constant_values=((1, 2), (3, 4)))
    pad(v, 3, "edge"); pad(x, ((1, 2), (3, 0)), "reflect"); pad(x, 5, "symmetric"); pad(v, (2, 30), "wrap")
    pad(v, 2, "linear_ramp", end_values=3); pad(x, 1, "mean"); pad(x, 1, "maximum")
    pad(v, 2, "reflect", reflect_type="odd"); pad(x, {0: (1, 2)}); pad(z, 1)
    partition(sort(v), 3); partition(sort(x, 0), 1, 0)
    percentile(x, 25); percentile(x, [25, 50], 1); percentile(v, 50, method="lower"); quantile(x, 0.1, 0, keepdims=True)
    quantile(x, 0.3, weights=abs(y), method="inverted_cdf"); quantile(i, 0.4, 0, weights=abs(y), method="inverted_cdf")
    percentile(x, [25, 50], 1, weights=abs(y[0]), method="inverted_cdf"); median(copy(v), overwrite_input=True)
    nanquantile(n, 0.3, weights=abs(y), method="inverted_cdf"); percentile(copy(v), 9, 0, None, True, "lower", True)
    nanpercentile(q, [10, 90], 0, weights=abs(y), method="inverted_cdf"); nanmedian(copy(n), 1, overwrite_input=True)
    quantile(z, 0.1, 1); quantile(z, [0.1, 0.2], 1, keepdims=True); quantile(x, [], 0); percentile(z, 50, 1)
    piecewise(x, [x < -10, x > 10], [-1, lambda t: t * 2, lambda t: t * t]); piecewise(x, [m], [3, 4])
    piecewise(v, b, [5]); piecewise(v, b, [lambda t, f: t * f, 1], 3)
    poly(v[:3]); sort(real(roots([1.0, -6.0, 11.0, -6.0])))
    polyfit(v, w, 2); polyval(v[:3], x); polyval([1, 2], i); polyval(v[:0], n)
    ptp(x); ptp(x, 1); ptp(i, 0, keepdims=True); ptp(v, -1)
    r_[v, 3, w]; r_[u, [u[0]], u]; r_[u[0], 3, -0]; c_[u[0], u[1]]; r_[0:4]; r_[0:4:2, j]; r_[x, y]; r_[s, s]
    ravel(x); ravel(x, "F"); ravel(s); ravel(x.T, "A"); ravel(copy(x, "F"), "K")
    ravel(x, "K"); ravel(x[::-1], "K"); ravel(x[:, ::2].T, "K"); ravel(x.reshape((2, 3, 4)).swapaxes(0, 1), "K")
    ravel_multi_index((j % 4, j % 6), (4, 6)); ravel_multi_index((1, 2), (4, 6)); unravel_index(j, (4, 6))
    unravel_index(7, (4, 6)); unravel_index(i % 24, (4, 6), "F")
    real_if_close(c); real_if_close(c * 0 + 3)
    resize(x, (3, 5)); resize(v, 30); resize(v, (2, 2)); resize(z, (2, 2)); resize(v, (0,))
    rint(x); rint(x, y * 1.0, where=m); rint(x, copy(i), casting="unsafe")
    rollaxis(x.reshape((2, 3, 4)), 2); rollaxis(x.reshape((2, 3, 4)), 0, 3); rollaxis(x.reshape((2, 3, 4)), 1, 2)
    rot90(x); rot90(x, 2); rot90(x, -1); rot90(x.reshape((2, 3, 4)), 1, (2, 0))
    searchsorted(k, v=x, side="right")
    select([x > 10, x < -10], [x, y], 5); select([m, ~m], [x * 2, x - 1])
    split(x, 2); split(x, [1, 2], 1); split(v, 3)
    swapaxes(x, 0, 1); swapaxes(x.reshape((2, 3, 4)), -1, 0)
    trapezoid(v); trapezoid(x, axis=0); trapezoid(x, dx=0.5); trapezoid(v, k[:12]); trapezoid(x, k[:4], axis=0)
    tri(3, 4, 1, v.dtype); tri(2); tri(3, dtype="int8")
    tril_indices(3, 1); tril_indices(3, -1, 5); triu_indices(4, 1, 3)
    tril_indices_from(x); triu_indices_from(x, 1)
    trim_zeros(j * (j > 3)); trim_zeros(j * 0); trim_zeros(v * b, "f"); trim_zeros(v * b, "b")
    unique(i); unique(j, True); unique(j, True, True, True); unique(n); unique(i % 2, axis=0)
    unique(n, equal_nan=False); unique(m); unique(c)
    unwrap(v); unwrap(x, axis=0, period=40)
    vander(v[:4]); vander(v[:4], 3, True); vander(j[:3]); vander(v[:2], 0); vander(u[0])
    vectorize(lambda a, b: a + b)(x, y); vectorize(divmod)(i, 7); vectorize(len, signature="(n)->()")(x)
    vstack([x, y]); vstack([v, w]); vstack([s, s])
    bartlett(5); blackman(6); hamming(5); hanning(6); kaiser(5, 3.5); hanning(1)
    logspace(0, 2, 5); logspace(1, 3, 4, False, 2.0); geomspace(1, 100, 5); geomspace(8, 1, 4, dtype=v.dtype)
"""
LINES = [line.strip() for line in CALLS.strip().splitlines()]


def values(dtype: str) -> dict[str, np.ndarray]:
    """The variables of the table."""
    grid = RNG.uniform(-40, 40, (6, 8)).astype(dtype)
    line = RNG.uniform(-40, 40, 24).astype(dtype)
    with_nan, rows_of_nan = grid[:4, :6].copy(), grid[:4, :6].copy()
    with_nan[[0, 1, 3, 3], [2, 5, 0, 1]] = np.nan
    with_nan[2, 2:4] = np.inf, -np.inf
    rows_of_nan[1], rows_of_nan[2, 3] = np.nan, np.nan
    whole = RNG.integers(-9, 10, (4, 6))
    return {
        "x": grid.T[1::2, ::-1],
        "y": RNG.uniform(-40, 40, (4, 6)).astype(dtype, order="F"),
        "v": line[::-2],
        "w": line[:12].copy(),
        "s": np.array(2.5, dtype),
        "z": np.zeros((0, 3), dtype),
        "n": with_nan,
        "q": rows_of_nan.T.copy().T,
        "i": whole,
        "j": RNG.integers(0, 8, 20)[::2],
        "k": np.sort(RNG.uniform(-50, 50, 14)).astype(dtype),
        "u": np.abs(whole).astype(np.uint8),
        "m": whole[::-1] > 0,
        "b": line[:12] > 0,
        "c": (grid[:4, :6] + 1j * grid[1:5, :6]).astype(np.result_type(dtype, np.complex64)),
    }


def whole_values() -> dict[str, np.ndarray]:
    """The variables of the table as integers; without NaN and complex numbers."""
    return {
        name: value.astype(np.int64) if value.dtype.kind == "f" else value
        for name, value in values("float64").items()
        if name not in "nq"
    }


class Namespace(dict[str, Any]):
    """The names of a module, which it may import when they are asked for."""

    def __init__(self, module: Any, variables: dict[str, Any]) -> None:
        super().__init__(variables)
        self._module = module

    def __missing__(self, name: str) -> Any:
        return getattr(self._module, name) if hasattr(self._module, name) else _OLD[name]


_OLD = {"in1d": lambda x, y, invert=False: np.isin(x.ravel(), y, invert=invert), "divmod": divmod}


def agrees(ours: Any, theirs: Any, dtype: str) -> None:
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (type(theirs), tuple))
        assert len(ours) == len(theirs)
        for mine, its in zip(ours, theirs, strict=True):
            agrees(mine, its, dtype)
    elif isinstance(theirs, (bool, int)) or isinstance(ours, int):
        assert type(ours) is type(theirs) or isinstance(theirs, np.integer)
        assert ours == theirs
    else:
        expected = np.asarray(theirs)
        kind = expected.dtype.kind
        float_of = "float32" if dtype == "int64" else dtype
        wanted = {"f": np.dtype(float_of), "c": np.result_type(float_of, np.complex64)}.get(kind, expected.dtype)
        assert isinstance(ours, ta.Array)
        assert ours.shape == expected.shape
        assert ours.dtype == wanted
        tolerance = {"float64": 1e-9, "float32": 2e-4}[float_of] if kind in "fc" else 0
        np.testing.assert_allclose(ta.to_numpy(ours), expected, rtol=tolerance, atol=tolerance)


def check_line(line: str, dtype: str, device: Any, leaves_out: tuple[str, ...] = ()) -> None:
    """Compare the calls of a line with NumPy's, with arrays on a device."""
    theirs = whole_values() if dtype == "int64" else values(dtype)
    ours = {name: ta.asarray(value, device=device) for name, value in theirs.items()}
    before = {name: value.copy() for name, value in theirs.items()}
    with ta.semantics("array-api", float=dtype) if dtype == "float64" else ta.semantics("array-api"):
        for call in map(str.strip, line.split(";")):
            if (dtype == "int64" and re.search(r"\b[nqc]\b", call)) or call.startswith(leaves_out):
                continue
            expected = eval(call, Namespace(np, theirs))
            agrees(eval(call, Namespace(ta, ours)), expected, dtype)
    for name, value in before.items():  # no call writes to its operands
        np.testing.assert_array_equal(theirs[name], value)
