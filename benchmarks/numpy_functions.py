"""``python -m benchmarks.numpy_functions``: NumPy's functions on a GPU, beside CuPy: large arrays, and host times.

Other benchmarks have the functions that programs spend their time in; this one has a row for each of the others, so
that none is forgotten. A row is an expression of `lib`, which is tilearray or CuPy, and of the arrays in `ARRAYS`. Each
result is compared with CuPy's before it is timed.

Exit status: 0 for success; 1 if a result differs or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library
from benchmarks.selection import libraries as all_libraries

SIZES = {"full": 10**7, "small": 1000}
"""The elements of most arrays."""
NAMES = ("tilearray", "cupy")
NEAR = 2e-2
"""The largest difference of results, relative to the largest value."""

UNLIKE = ("lib.argsort", "lib.lexsort", "lib.angle", "lib.remainder")
"""Rows that are not compared: equal elements in another order, and numbers on both sides of a jump."""

Make = Callable[[Any, int], Any]
"""Returns an array of a generator of CuPy and a number of elements."""


def _normal(*shape: Callable[[int], int], dtype: str = "float32") -> Make:
    return lambda rng, n: rng.standard_normal([size(n) for size in shape], dtype="float32").astype(dtype)


def _all(n: int) -> int:
    return n


def _root(n: int) -> int:
    return int(n**0.5)


def _hundred(n: int) -> int:
    return 100


def _rows(n: int) -> int:
    return n // 100


ARRAYS: dict[str, Make] = {
    "x": _normal(_all),
    "y": _normal(_all),
    "d": _normal(_all, dtype="float64"),
    "h": _normal(_all, dtype="float16"),
    "p": lambda rng, n: rng.random(n, dtype="float32"),
    "z": lambda rng, n: rng.standard_normal(n, dtype="float32") + 1j * rng.standard_normal(n, dtype="float32"),
    "i": lambda rng, n: rng.integers(0, 100, n),
    "k": lambda rng, n: rng.integers(1, 50, n),
    "j": lambda rng, n: rng.integers(0, n, n),
    "few": lambda rng, n: rng.integers(0, n, 50),
    "b": lambda rng, n: rng.random(n, dtype="float32") < 0.5,
    "r": _normal(_rows, _hundred),
    "w": _normal(_rows),
    "m": _normal(_root, _root),
    "o": _normal(_root, _root),
    "v": _normal(_root),
    "s": lambda rng, n: _sorted(rng.standard_normal(1000, dtype="float32")),
    "t": lambda rng, n: rng.standard_normal(1000, dtype="float32"),
    "c": lambda rng, n: rng.standard_normal(50, dtype="float32"),
    "l": lambda rng, n: rng.standard_normal(4 * _root(n), dtype="float32"),
    "g": _normal(_rows, lambda n: 10),
    "e": lambda rng, n: rng.standard_normal((n // 3, 3), dtype="float32"),
}
"""The arrays of the rows, by their names."""


def _sorted(x: Any) -> Any:
    x.sort()
    return x


ROWS_OF_ONE = """
    nanmax nanmin nanmean nansum nanstd nanvar nanargmax nanprod median nanmedian ptp cumsum cumprod nancumsum diff
    ediff1d gradient trapezoid sort argsort unique flatnonzero argwhere ravel flip imag angle sign signbit isfinite
    isnan rint fix trunc nan_to_num cbrt sinc deg2rad frexp modf square reciprocal average std var any all
    count_nonzero argmax exp expm1 sin cos tan arctan sinh cosh tanh arcsinh exp2
"""
ROWS_OF_TWO = """
    arctan2 hypot copysign maximum fmax minimum logaddexp logaddexp2 nextafter heaviside isclose allclose array_equal
    dot vdot inner intersect1d union1d setdiff1d setxor1d isin append
"""
ROWS_OF_ROWS = "nanmean nanstd nanmax nansum argmin ptp std cumprod sort argsort nancumsum median percentile"
ROWS_OF_PARTS = "log log1p log2 log10 sqrt arcsin arccos arctanh"
ROWS_OF_COMPLEX = "abs angle conj exp log sqrt sin tanh sum mean var cumsum real"
TEXTS = """
    lib.power(p, y); lib.gcd(i, k); lib.lcm(i, k); lib.floor_divide(i, k); lib.remainder(i, k); lib.divmod(i, k)[1]
    lib.isin(i, few); lib.left_shift(i, 3); lib.bitwise_xor(i, k); ~i; x ** 3; p ** 0.5; p ** 2.5; 2.0 ** x; i ** 3
    lib.round(x, 2); lib.clip(x, -1, 1); lib.percentile(x, 30); lib.quantile(x, 0.7); lib.percentile(x, [10, 50, 90])
    lib.average(r, axis=0, weights=w); lib.average(x, weights=p); lib.gradient(m)[0]; lib.gradient(m)[1]
    lib.diff(x, n=2); lib.diff(m, axis=0); lib.trapezoid(r, axis=0); lib.digitize(x, s); lib.searchsorted(s, x)
    lib.interp(x, s, t); lib.histogram(x, bins=100)[0]; lib.histogram(x, bins=s)[0]
    lib.histogram(x, bins=100, weights=p)[0]; lib.histogram2d(x, y, bins=50)[0]; lib.bincount(i)
    lib.bincount(i, weights=p); lib.bincount(i, minlength=5000); lib.unique(i); lib.unique(i, return_counts=True)[1]
    lib.unique(i, return_inverse=True)[1]; lib.partition(x, 100)[:100].sum(); lib.lexsort(lib.stack([y, x]))
    lib.where(b, x, y); lib.where(x > 0, x, 0.1 * x); lib.select([x > 1, x > 0], [x, y], 0.0)
    lib.piecewise(x, [x < 0, x >= 0], [-1.0, 1.0]); lib.compress(b, x); lib.extract(b, x); x[b]; x[j]; lib.take(x, j)
    lib.take_along_axis(r, lib.argsort(r, axis=1), axis=1); lib.delete(x, 5); lib.delete(x, few); lib.trim_zeros(x)
    lib.outer(v, v); lib.kron(g[:10], m[:100]); lib.cross(e, e[::-1]); lib.trace(m); lib.tensordot(m, o, axes=1)
    lib.einsum('ij,ij->i', r, r); lib.einsum('ij,kj->ik', m, o); lib.einsum('ij->j', m); lib.einsum('ij,j->i', m, v)
    lib.einsum('bi,bj->bij', g, g); lib.matmul(m, v); lib.matmul(v, m); lib.matmul(m, o); lib.matmul(r, r.T[:, :10])
    lib.matmul(r.T, r); lib.cov(r.T); lib.corrcoef(r.T); lib.convolve(x, c); lib.correlate(x, c)
    lib.convolve(x, c[:5], 'same'); lib.convolve(l, l); lib.polyval(c[:8], p); lib.vander(p, 5)
    lib.polyfit(d, d[::-1], 3); lib.rot90(m).copy(); lib.tril(m); lib.triu(m, 1); m.T.copy()
    lib.flip(m, axis=1).copy(); lib.roll(x, 5); lib.roll(m, 3, axis=1); lib.roll(m, (2, 3), axis=(0, 1))
    lib.repeat(x, 2); lib.repeat(m, 3, axis=1); lib.tile(x, 2); lib.tile(m, (2, 2)); lib.pad(m, 3)
    lib.pad(m, 3, mode='reflect'); lib.pad(m, 3, mode='edge'); lib.pad(m, 3, mode='linear_ramp')
    lib.stack([x, y]); lib.stack([x, y], axis=1); lib.vstack((x, y)); lib.dstack((x, y)); lib.column_stack((x, y))
    lib.concatenate([m, o], axis=1); lib.concatenate([x, y, x, y]); lib.array_split(x, 7)[3] + 0
    lib.meshgrid(v, v)[0] + 0; lib.linspace(0, 1, x.size); lib.arange(x.size); lib.full(x.shape, 3.5)
    lib.eye(len(m)); lib.logspace(0, 2, x.size); lib.tri(len(m)); lib.hamming(x.size); lib.indices(m.shape)
    lib.diag(v); lib.diag(m) + 0; lib.zeros_like(x); x.astype('float64'); x.astype('int32'); p.astype('uint8')
    x.astype('complex64'); x.astype('float16'); i.astype('float32'); lib.exp(d); lib.sin(d); lib.tanh(d); lib.exp(h)
    lib.sin(h); z * z; z / (z + 1); z ** 2; lib.linalg.norm(x); lib.linalg.norm(r, axis=1); lib.linalg.norm(m)
    lib.linalg.norm(r, ord=1, axis=0); lib.linalg.norm(m, lib.inf); lib.fft.fft(x); lib.fft.rfft(x)
    lib.fft.fft(m, axis=1); lib.fft.fft2(m); lib.fft.rfft2(m); lib.fft.irfft(z); lib.fft.fftshift(m)
    lib.fft.fft(r, axis=0); lib.fft.fft(r, n=1000); x[::2] + y[::2]; x[::-1] * 2; x[1:] - x[:-1]; v + v[:, None]
    x.reshape(100, -1).T + 0; (r - lib.mean(r, axis=0)) / lib.std(r, axis=0); lib.sum((x - y) ** 2)
    (r - lib.mean(r, axis=1, keepdims=True)) / lib.std(r, axis=1, keepdims=True); lib.max(lib.abs(x)); lib.mean(x * y)
    lib.sqrt(lib.sum((e[:1000, None] - e[None, :1000]) ** 2, axis=-1)); lib.any(lib.isnan(x)); (x > 0) & (y > 0)
    lib.count_nonzero(r > 0, axis=1); g @ g[:1000].T; -x; r.T @ w; lib.sum(x > 0); lib.nonzero(b)[0]
    lib.ravel_multi_index((i, k), (100, 100)); lib.unravel_index(j, (1000, 100000))[0]; lib.nonzero(x > 1)[0]
"""


class Row(NamedTuple):
    """An expression."""

    name: str


def _rows_of(names: str, call: str) -> list[Row]:
    return [Row(f"lib.{name}({call})") for name in names.split()]


ROWS = (
    *_rows_of(ROWS_OF_ONE, "x"),
    *_rows_of(ROWS_OF_TWO, "x, y"),
    *[
        Row(f"lib.{name}(r, {rest}axis={axis})")
        for name in ROWS_OF_ROWS.split()
        for axis in (0, 1)
        for rest in ("30, " if name == "percentile" else "",)
    ],
    *_rows_of(ROWS_OF_PARTS, "p"),
    *_rows_of(ROWS_OF_COMPLEX, "z"),
    *[Row(text.strip()) for line in TEXTS.splitlines() for text in line.split(";") if text.strip()],
)


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return tilearray and CuPy, if it is installed, of those that are wanted."""
    found = all_libraries(torch, wanted)
    return [library for library in found if library.name in NAMES]


def made(row: Row, size: int) -> dict[str, Any]:
    """Return the arrays that a row names, as CuPy's."""
    rng: Any = importlib.import_module("cupy").random.default_rng(7)
    names = compile(row.name, row.name, "eval").co_names
    return {name: make(rng, size) for name, make in ARRAYS.items() if name in names}


def call_of(library: Library, row: Row, size: int) -> Callable[[], Any]:
    """Return a row as a function of no arguments, of one library."""
    adopt = library.adopt if library.name == "tilearray" else lambda x: x
    names = {"lib": library.module} | {name: adopt(array) for name, array in made(row, size).items()}
    return partial(eval, compile(row.name, row.name, "eval"), names)


def first_of(result: Any) -> Any:
    """Return the first array of a result."""
    while isinstance(result, (tuple, list)):
        result = result[0]
    return result


def is_near(cupy: Any, result: Any, exact: Any) -> bool:
    """Return whether two results have one shape, and values that differ little from the largest one."""
    ours, theirs = [cupy.asarray(first_of(each)).astype("complex128") for each in (result, exact)]
    if ours.shape != theirs.shape:
        return False
    largest = cupy.abs(theirs[cupy.isfinite(theirs)]).max() if theirs.size else 0
    return bool(cupy.allclose(ours, theirs, rtol=NEAR, atol=NEAR * float(largest), equal_nan=True))


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with both libraries."""
    cupy: Any = importlib.import_module("cupy")
    peer = next(library for library in all_libraries(torch, NAMES) if library.name == "cupy")

    def checked(library: Library) -> Any:
        call = call_of(library, row, SIZES[size])
        is_compared = library.name == "tilearray" and not row.name.startswith(UNLIKE)
        if is_compared and not is_near(cupy, call(), call_of(peer, row, SIZES[size])()):
            return tables.MISMATCH
        return call

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, lambda _: {})}


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host microseconds of each row with small arrays, where both libraries have it."""
    rows: list[dict[str, Any]] = []
    for row in ROWS:
        try:
            calls = [(library.name, "call()", {"call": call_of(library, row, SIZES["small"])}) for library in found]
            rows.append(tables.host_row(clock, row.name, calls, size))
        except Exception as error:  # of either library: the table of large arrays tells it
            print(f"{row.name}: {type(error).__name__}")
    return rows


BENCHMARK = tables.Benchmark(
    "numpy_functions",
    "NumPy's functions",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="NumPy's functions: ", names=NAMES),
    names=NAMES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
