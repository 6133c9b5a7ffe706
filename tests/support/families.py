"""A few calls of each family of kernels, small and of odd sizes: the program that `scripts/sanitize` runs on a GPU.

::

    python -m support.families                       each family on the GPU, compared with the host
    python -m support.families scans sorts           some of them
    python -m support.families --list
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.functions import binary_search, distinct, largest
from tilearray.geometry import reduction
from tilearray.geometry import selection as segments
from tilearray.numpy_names import counting
from tilearray.ops import one_launch

Family = Callable[["Inputs"], list[Any]]


class Inputs:
    """Arrays on one device with the same values everywhere."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, *shape: int, dtype: str = "float32", seed: int = 0) -> Any:
        values = np.random.default_rng(seed + len(shape)).integers(-40, 40, shape) / 4
        return ta.astype(ta.asarray(values, dtype="float64", device=self.device), dtype)

    def ints(self, *shape: int, below: int, seed: int = 0) -> Any:
        """Integers from 0, such as indices."""
        return ta.asarray(np.random.default_rng(seed).integers(0, below, shape), device=self.device)


def elementwise(of: Inputs) -> list[Any]:
    x, y, row = of(37, 41), of(41, 37, seed=1), of(41)
    wide = of(7, 300, 5)
    return [
        *(x + 1, x * y.T, x[::-1, 1::2] - 3, x + row, x[:, :1] * row, -wide[:, ::7].mT, ta.where(x > 0, x, row)),
        *(ta.permute_dims(wide, (2, 0, 1)) + 1, x[1:, 1:] + y.T[1:, 1:], ta.exp(of(1001)), ta.sqrt(ta.abs(x))),
        *(x // 2, x % 3, ta.astype(x, "int32") << 1, of(9, 9, dtype="complex64") * (1 + 2j), ta.clip(x, -1, 2)),
    ]


def casts(of: Inputs) -> list[Any]:
    x = of(33, 65)
    names = ("float16", "bfloat16", "float64", "int8", "uint8", "int64", "float8_e4m3fn", "float8_e5m2", "complex64")
    found = [ta.astype(x.T, name) for name in names]
    return [*[ta.astype(each, "complex64") for each in found], ta.astype(x, "float16") + ta.astype(x, "bfloat16")]


def in_place(of: Inputs) -> list[Any]:
    x, y = of(300, 3), of(257)
    x += 1
    x[1:] += x[:-1]
    y[::2] *= 3
    y[5:9] = 0
    ta.add(y, y, out=y)
    return [x, y]


def fused(of: Inputs) -> list[Any]:
    x, y = of(65, 130), of(130)
    norm = ta.fuse(lambda x, w: (x - ta.mean(x, axis=1, keepdims=True)) * w)
    polynomial = ta.fuse(lambda x, w: x * x * 2 + w * x - 1)
    both = ta.fuse(lambda x, w: (ta.sum(x * w, axis=1), ta.max(x, axis=1)))
    lists = ta.foreach(lambda a, b: a * 2 + b, [x, y, of(3)], [x + 1, y + 1, of(3)])
    return [norm(x, y), polynomial(x, y), *both(x, y), *lists]


def reductions(of: Inputs) -> list[Any]:
    x, flat, tall, half = of(70, 129), of(20_001), of(5000, 3), of(40, 600, dtype="float16")
    return [
        *(ta.sum(flat), ta.sum(x, axis=0), ta.sum(x, axis=1), ta.mean(tall, axis=0), ta.var(tall, axis=0)),
        *(ta.std(x, axis=1), ta.max(flat), ta.min(x.T, axis=0), ta.argmax(x, axis=1), ta.argmin(flat)),
        *(ta.sum(of(5, 60, 7), axis=1), ta.sum(half, axis=1), ta.all(x > -99), ta.any(tall > 9, axis=0)),
        *(ta.count_nonzero(flat), ta.prod(of(3, 9), axis=1), ta.sum(x[::2, ::-1], axis=1), ta.median(x, axis=1)),
        *(ta.vecdot(x, x), ta.sum(flat, dtype="float64"), ta.logsumexp(x, axis=1)),
    ]


def rows(of: Inputs) -> list[Any]:
    x = of(19, 1000) / 8
    long = of(3, 20_000) / 8
    return [
        *(ta.softmax(x, axis=1), ta.softmax(x, axis=0), ta.log_softmax(long, axis=1), ta.softmax(long, axis=1)),
        ta.fuse(lambda x: x / ta.sqrt(ta.mean(x * x, axis=-1, keepdims=True) + 1e-5))(x),
    ]


def columns(of: Inputs) -> list[Any]:
    """Programs of a group meet: columns that one holds, columns of several, and columns that are read again."""
    short, tall, long = of(19, 70) / 8, of(3001, 37) / 8, of(20_001, 3) / 8
    centred = ta.fuse(lambda x, w: (x - ta.mean(x, axis=0)) / ta.sqrt(ta.var(x, axis=0) + 1e-5) * w)
    return [
        *(ta.softmax(short, axis=0), ta.softmax(tall, axis=0), ta.log_softmax(long, axis=0)),
        *(ta.softmax(of(2, 500, 7) / 8, axis=1), ta.softmax(ta.astype(tall, "float16"), axis=0)),
        *(centred(short, short[0]), centred(tall, tall[0])),
    ]


def scans(of: Inputs) -> list[Any]:
    x, flat, tall = of(33, 700), of(30_003, dtype="int32"), of(5000, 3)
    return [
        *(ta.cumulative_sum(x, axis=1), ta.cumulative_sum(tall, axis=0), ta.cumulative_sum(flat)),
        *(ta.cumulative_prod(of(4, 5), axis=1), ta.maximum.accumulate(x, axis=1), ta.cumulative_sum(x, axis=0)),
        ta.cumulative_sum(flat, include_initial=True),
    ]


def selection(of: Inputs) -> list[Any]:
    x, flat = of(70, 33), of(20_001)
    y = flat.copy()
    y[y > 3] = 0
    return [
        *(flat[flat > 0], x[x > 9], x[x[:, 0] > 0], *ta.nonzero(x > 5), y, ta.where(x > 0, x, 0)),
        *(ta.argwhere(x > 8), ta.compress(flat > 2, flat)),
    ]


def gathers(of: Inputs) -> list[Any]:
    x, flat, places = of(50, 33), of(1000), of.ints(77, below=50)
    y, z, counted = x.copy(), flat.copy(), of(40)
    y[places] = 1
    z[of.ints(300, below=1000)] = 5
    ta.add.at(z, of.ints(400, below=1000, seed=2), 2)
    ta.maximum.at(z, of.ints(400, below=1000, seed=3), 4)
    ta.put(counted, of.ints(9, below=40), 7)
    with replaced(counting, MANY=1), replaced(segments, PAIRED_SEGMENTS=2):
        many = ta.bincount(ta.minimum(of.ints(90_001, below=90_000), 9000), minlength=9001)
    return [
        *(x[places], x[:, of.ints(9, below=33)], x[places, 3], ta.take(x, places, axis=0), y, z, counted),
        *(ta.take_along_axis(x, of.ints(50, 4, below=33), axis=1), flat[of.ints(3, 4, below=1000)]),
        *(ta.bincount(of.ints(5000, below=31)), ta.histogram(flat, bins=9)[0], ta.searchsorted(ta.sort(flat), flat)),
        *(many, ta.tiles(x, (8, 8)).stack()),
    ]


def sorts(of: Inputs) -> list[Any]:
    x, flat, ints = of(9, 700), of(20_001), of(5000, dtype="int16")
    with replaced(distinct, MARKED=1, MOST_MARKS=1, IN_RUNS=1):
        in_runs = ta.unique_values(of.ints(20_001, below=1 << 20))
    return [
        *(ta.sort(flat), ta.argsort(flat, stable=True), ta.sort(x, axis=1), ta.sort(x, axis=0, descending=True)),
        *(ta.sort(ints), ta.unique_values(flat), ta.unique_counts(ints).counts, ta.isin(flat, of(50))),
        *(ta.top_k(x, 5)[0], ta.partition(flat, 100)[100], ta.sort(of(3000, dtype="float64")), in_runs),
    ]


def products(of: Inputs) -> list[Any]:
    a, b, v = of(65, 130), of(130, 33), of(130)
    return [
        *(a @ b, a @ v, v @ b, ta.astype(a, "int32") @ ta.astype(b, "int32"), ta.outer(v, v), a.T @ a),
        *(ta.astype(a, "float16") @ ta.astype(b, "float16"), of(4, 17, 19) @ of(4, 19, 5), ta.matvec(a, v)),
        *(ta.einsum("ij,jk,k->i", a, b, of(33)), ta.tensordot(a, b, 1), a @ ta.astype(b, "float64")),
    ]


def randoms(of: Inputs) -> list[Any]:
    rng = ta.random.default_rng(5)
    where: dict[str, Any] = {"device": of.device}
    return [
        *(rng.random(1001, **where), rng.normal(size=(33, 7), **where), rng.integers(0, 99, size=501, **where)),
        *(
            rng.permutation(ta.arange(1000, **where)),
            rng.exponential(size=77, **where),
            rng.gamma(2.5, size=500, **where),
        ),
        rng.choice(ta.arange(50, **where), size=20, replace=False),
    ]


def quantized(of: Inputs) -> list[Any]:
    x = of(48, 128)
    found: list[Any] = []
    for dtype, options in (
        ("float8_e4m3fn", {"axis": -1}),
        ("int8", {"axis": -1}),
        ("e2m1", {"block": 16, "scale": "float8_e4m3fn"}),
        ("float8_e4m3fn", {"block": 32, "scale": "float8_e8m0fnu"}),
        ("e2m1", {"block": 32, "scale": "float8_e8m0fnu", "packed": True}),
    ):
        q = ta.quantize(x, dtype, **options)
        found.append(ta.dequantize(*q, dtype="float32"))
    return found


def joined(of: Inputs) -> list[Any]:
    x, y = of(30, 41), of(7, 41)
    return [
        *(ta.concat([x, y]), ta.stack([x, x], axis=1), ta.repeat(x, 3, axis=1), ta.tile(y, (2, 3)), ta.roll(x, 5)),
        *(ta.pad(x, ((1, 2), (3, 0)), mode="reflect"), ta.pad(y, 1), ta.tril(x), ta.flip(x), ta.diag(of(30))),
        *(ta.arange(1001, device=of.device), ta.linspace(0, 1, 333, device=of.device), ta.eye(33, device=of.device)),
        *(ta.interp(of(100), ta.arange(9.0, device=of.device), of(9)), ta.gradient(of(99)), ta.diff(x, axis=0)),
    ]


def gradients(of: Inputs) -> list[Any]:
    x, w = of(17, 33), of(33)
    places = of.ints(12, below=17)
    gate = ta.fuse(lambda a, b, c, d: ta.tanh(a + b + c) * d)  # it stores the value of tanh
    kept, pull = ta.vjp(gate, *[of(17, 33, seed=seed) / 8 for seed in range(4)])
    return [
        *(kept, *pull(x)),
        ta.grad(lambda w: ta.sum(ta.histogram(of(33), 5, weights=w)[0] ** 2))(w),
        ta.grad(lambda x: ta.sum(ta.tanh(x) * w))(x),
        ta.grad(lambda x: ta.sum(ta.softmax(x, axis=1)[:, 3]))(x),
        ta.grad(lambda x: ta.sum(ta.cumulative_sum(x, axis=1) ** 2))(x),
        ta.grad(lambda x: ta.sum(x[places] * 2))(x),
        ta.grad(lambda x: ta.sum((x @ ta.ones((33, 4), device=of.device)) ** 2))(x),
    ]


@contextmanager
def replaced(module: ModuleType, **values: Any) -> Iterator[None]:
    """Replace bounds, from which large arrays have kernels of their own, by smaller ones."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def crossed(of: Inputs) -> list[Any]:
    """Reduced axes along which one array is dense and another is not; the last is copied ahead to shared memory."""
    x, y = of(130, 1200), of(1200, 130, seed=1)
    even, narrow = of(128, 2048), of(2048, 128, seed=1)
    axes = ta.permute_dims(of(3, 40, 300), (2, 0, 1))
    products = ta.fuse(lambda x, y: ta.sum(x * y.T, axis=1))
    with replaced(reduction, ROW_PROGRAMS=dict.fromkeys(reduction.ROW_PROGRAMS, 64)):
        ahead = products(of(72, 4352), of(4352, 72, seed=1))
    return [
        *(products(x, y), ta.vecdot(x, y.T)),
        *(ta.fuse(lambda x, y: ta.max(x - y.T, axis=1))(x, y), products(ta.astype(even, "float64"), narrow)),
        *(products(even, narrow), products(ta.astype(even, "float16"), ta.astype(narrow, "float16"))),
        *(axes.copy(), ta.sum(axes, axis=(0, 2)), ta.softmax(of(600, 64, dtype="float16") / 8, axis=0)),
        *(ta.softmax(of(600, 96, dtype="bfloat16") / 8, axis=0), ta.softmax(of(40, 4096, dtype="float16") / 8, axis=1)),
        *(ta.var(of(9, 4096), axis=1), ahead),
    ]


def special(of: Inputs) -> list[Any]:
    x, y = ta.abs(of(501)) / 2 + 0.25, ta.abs(of(501, seed=1)) / 2 + 0.5
    share, functions = x / (x + y), ta.special
    return [
        *(functions.gammaln(x), functions.psi(x), functions.gammainc(x, y), functions.gammaincc(x, y)),
        *(functions.betainc(x, y, share), functions.betaincc(x, y, share), functions.zeta(x + 1.25, y)),
        *(functions.polygamma(2, x), functions.i0(x), functions.i0e(x), functions.i1(x), functions.i1e(x)),
        *(functions.ndtri(share), functions.log_ndtr(x - 4), functions.erfinv(share), functions.stdtr(x, y - 2)),
        *(functions.chdtr(x, y), functions.chdtrc(x, y), functions.xlogy(x, y), functions.entr(x)),
    ]


def searches(of: Inputs) -> list[Any]:
    """Searches of some values, and in buckets of keys."""
    flat, values, ints = ta.sort(of(3001)), of(45, 67, seed=2), ta.sort(of(999, dtype="int32"))
    alone = ta.searchsorted(flat, values)
    with replaced(binary_search, BUCKETS=1 << 6, MOST_BUCKETS=1 << 6, FEW_VALUES=100, FEW_SORTED=100):
        return [
            *(alone, ta.searchsorted(flat, values), ta.searchsorted(flat, values, side="right")),
            *(ta.isin(values, flat[:300]), ta.searchsorted(flat[::2], values.T)),
            ta.searchsorted(ints, of(501, dtype="int32")),
        ]


def names(of: Inputs) -> list[Any]:
    """NumPy's names: windows of signals, what NaN leaves over, weights of few places, and places that come or go."""
    x, flat, ints = of(37, 65), of(5001), of.ints(5001, below=9)
    gaps, long = ta.where(x > 5, ta.nan, x), of(9, 4099)
    with replaced(largest, MANY=1), replaced(one_launch, LARGE=0):
        tops, few = ta.top_k(long, 7), [*ta.divmod(ints, 4), *ta.modf(x), ta.round(x, 1), ta.vander(flat, 4)]
        few += [ta.nansum(gaps, axis=1), ta.nanmean(gaps, axis=0), ta.nanvar(gaps), ta.nanmax(gaps, axis=1)]
        few += [ta.sum(x, axis=0, where=x > 0), ta.max(x, axis=1, where=x > -9, initial=-99)]
    return [
        *(ta.convolve(flat, of(50)), ta.correlate(flat, of(7)), ta.convolve(of(901), of(700), "same"), *tops, *few),
        *(ta.convolve(ta.astype(flat, "complex64"), of(33)), ta.convolve(ta.astype(of(99), "int16"), ints[:13])),
        *(ta.bincount(ints, flat), ta.bincount(ints, ta.astype(flat, "float64"), 12)),
        *(ta.gcd(ints, 6), ta.logaddexp2(x, x[0])),
        *(ta.delete(flat, np.arange(0, 5000, 7)), ta.insert(flat, np.arange(0, 5000, 9), 1), ta.delete(x, 3, axis=1)),
        *(ta.pad(x, 3, "linear_ramp"), ta.softmax(ta.astype(long, "bfloat16")), ta.log_softmax(of(9, 20_001))),
    ]


FAMILIES: dict[str, Family] = {
    **{each.__name__: each for each in (elementwise, casts, in_place, fused, reductions, rows, columns, scans)},
    **{each.__name__: each for each in (selection, gathers, sorts, products, randoms, quantized, joined, gradients)},
    **{each.__name__: each for each in (crossed, special, searches, names)},
}


def differences(name: str, device: str) -> list[str]:
    """Run one family on a device, and say which results are not those of the host."""
    found, expected = FAMILIES[name](Inputs(device)), FAMILIES[name](Inputs("cpu"))
    told: list[str] = []
    for number, (ours, host) in enumerate(zip(found, expected, strict=True)):
        one, other = (ta.to_numpy(ta.astype(x.to_device("cpu"), "complex128")) for x in (ours, host))
        if one.shape != other.shape or not np.allclose(one, other, rtol=2e-3, atol=2e-3, equal_nan=True):
            told.append(
                f"{name}, result {number}: {one.ravel()[:4]} of shape {one.shape}, on the host {other.ravel()[:4]}"
            )
    return told


def main(arguments: list[str]) -> int:
    """Run families on a GPU; the status is 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m support.families", description="Run each family of kernels.")
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES], help="all by default")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args(arguments)
    if options.list:
        print(*FAMILIES, sep="\n")
        return 0
    told: list[str] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in options.families or FAMILIES:
            told += differences(name, options.device)
    print(*told or ["every result is that of the host"], sep="\n")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
