"""Reductions with `where=`, and those that leave out NaN, on an emulated GPU: the bits of the host, in few launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import needs_triton

import tilearray as ta
from tilearray.errors import ShapeError

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 40, 40), (2, 12, 3000)])
def test_the_emulated_gpu_gives_the_bits_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.some_elements import check_same_bits

    check_same_bits(emulated_device(), seed, count, elements)


@pytest.mark.parametrize("part", ["masks", "without NaN", "spreads", "searches"])
def test_launches(process, part):
    process.pool.submit(_count_launches, part).result()


def _count_launches(part: str) -> None:
    """A reduction of some elements has the launches of the reduction of all."""
    from support.interpreter.emulated_gpu import emulated_device

    device = emulated_device()
    rng = np.random.default_rng(1)

    def launches(call: Any) -> int:
        call()
        before = device.backend.launches
        call()
        return device.backend.launches - before

    for shape, axis in (((300,), None), ((40, 100), 0), ((40, 100), 1), ((3, 20000), None), ((3, 20000), 1)):
        values = rng.normal(size=shape).astype("float32")
        values[rng.random(shape) < 0.2] = np.nan
        values[..., 7], values[0] = 1.0, 2.0  # a number in each slice
        x = ta.asarray(values).to_device(device)
        mask = ta.asarray(rng.random(shape) < 0.5).to_device(device)
        row = mask if axis is None else mask[0]  # beside it the axes of the array would not be one

        def of(name: str, x: Any = x, axis: Any = axis, **options: Any) -> int:
            return launches(lambda: getattr(ta, name)(x, axis=axis, **options))

        plain = of("sum")
        assert plain == (2 if x.size == 60000 else 1)
        if part == "masks":
            for name in ("sum", "prod", "mean", "all", "any"):
                assert of(name, where=mask) == plain, name
            assert of("sum", where=row, initial=2) == plain
            assert of("max", where=mask, initial=0) == plain
        elif part == "without NaN":
            for name in ("nansum", "nanprod", "nanmean", "nanmax"):
                assert of(name) == plain, name
            assert of("nansum", where=mask) == of("nanmean", where=row) == plain
        elif part == "spreads":  # rows that are long are read twice: for their mean, and for distances from it
            assert of("nanvar") == of("nanstd", ddof=1) == of("var", where=mask) == (4 if plain == 2 else 1)
        else:
            assert of("nanargmax") == of("nanargmin", keepdims=True) == of("argmax") + (axis is not None)


def test_many_shapes_are_one_kernel(process):
    process.pool.submit(_count_kernels).result()


def _count_kernels() -> None:
    """Of layouts that are traced as they come for the second time."""
    from support.interpreter.emulated_gpu import emulated_device

    from tilearray.engine.caches import KERNELS

    device = emulated_device()
    counts: list[int] = []
    for size in (200, 201, 202, 203, 210, 250):
        x = ta.ones((5, size), device=device)
        for _ in range(2):
            ta.nanmean(x, axis=1)
            ta.sum(x, axis=1, where=x > 0)
            ta.nanvar(x, axis=1, ddof=size % 3)
        counts.append(len(KERNELS))
    assert counts[3:] == [counts[2]] * 3, counts


def test_slices_of_nan_and_targets(process):
    process.pool.submit(_searches).result()


def _searches() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    device = emulated_device()
    host = np.array([[1.0, np.nan, 3.0], [np.nan] * 3, [-np.inf, 2.0, -np.inf]], "float32")
    x = ta.asarray(host).to_device(device)
    out = ta.full(3, 9, dtype="int64", device=device)
    for _ in range(2):
        for name in ("nanargmax", "nanargmin"):
            with pytest.raises(
                ShapeError, match=rf"^{name}: expected a number to choose in every slice, got a slice of"
            ):
                getattr(ta, name)(x, 1, out)
            assert ta.to_numpy(out).tolist() == [9, 9, 9]
            assert getattr(ta, name)(x).item() == getattr(np, name)(host)
            assert ta.to_numpy(getattr(ta, name)(x, 0)).tolist() == getattr(np, name)(host, 0).tolist()
    assert ta.nanargmax(x, 0, out) is out
    assert ta.to_numpy(out).tolist() == np.nanargmax(host, 0).tolist()
    empty = ta.zeros((0, 3), device=device)
    with pytest.raises(ShapeError):
        ta.nanargmax(empty, 0)
    assert ta.nansum(empty).item() == 0
    assert np.isnan(ta.nanmean(empty).item())
    assert ta.nanprod(empty, 0).tolist() == [1.0] * 3


def test_gradients_fused_and_lazy_calls(process):
    process.pool.submit(_around).result()


def _around() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    device = emulated_device()
    rng = np.random.default_rng(3)
    values = rng.normal(size=(6, 50)).astype("float32")
    values[rng.random(values.shape) < 0.2] = np.nan
    host, kept = ta.asarray(values, device="cpu"), ta.asarray(rng.random(values.shape) < 0.6, device="cpu")
    x, mask = host.to_device(device), kept.to_device(device)
    calls: dict[str, Any] = {
        "nansum": lambda x, m: ta.nansum(x, 1),
        "nanmean": lambda x, m: ta.nanmean(x, 1),
        "nanvar": lambda x, m: ta.nanvar(x, 1),
        "nanstd": lambda x, m: ta.nanstd(x, 0, ddof=1),
        "nanprod": lambda x, m: ta.nanprod(x, 0),
        "mean": lambda x, m: ta.mean(ta.nan_to_num(x), 1, where=m),
        "var": lambda x, m: ta.var(ta.nan_to_num(x), 1, where=m),
        "max": lambda x, m: ta.max(ta.nan_to_num(x), 1, where=m, initial=-9.0),
        "nansum where": lambda x, m: ta.nansum(x, 1, where=m),
    }
    for name, call in calls.items():
        expected = call(host, kept)
        for _ in range(2):
            compare(expected, call(x, mask), name)
        compare(expected, ta.fuse(call)(x, mask), name)
        with ta.lazy():
            found = call(x, mask)
        compare(expected, found, name)
        slopes = [ta.grad(lambda x, m, call=call: ta.sum(call(x, m)))(*given) for given in ((host, kept), (x, mask))]
        assert np.allclose(*map(ta.to_numpy, slopes), rtol=1e-5, atol=1e-6, equal_nan=True), name


def test_the_semantics_and_the_options_of_a_known_call_count(process):
    process.pool.submit(_words).result()


def _words() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    device = emulated_device()
    x = ta.asarray([[1.0, ta.nan, 3.0], [4.0, 5.0, 6.0]], dtype="float32").to_device(device)
    numbers = ta.asarray([[1, 2, 3], [4, 5, 6]], dtype="int16").to_device(device)
    mask = ta.asarray([True, False, True]).to_device(device)
    for _ in range(2):
        assert ta.nansum(x, 1).tolist() == [4.0, 15.0]
        assert ta.nansum(x, 1, keepdims=True).shape == (2, 1)
        assert ta.nansum(x, 1, dtype="float64").dtype == ta.float64
        assert ta.nanvar(x, 1, ddof=1).tolist() == [2.0, 1.0]
        assert ta.nanvar(x, 1).tolist() == pytest.approx([1.0, 2 / 3])
        assert ta.sum(numbers, 1, where=mask).tolist() == [4, 10]
        assert ta.sum(numbers, 1, where=mask[::-1]).tolist() == [4, 10]
        assert ta.sum(numbers, 1, where=numbers > 2).tolist() == [3, 15]
        assert ta.sum(numbers, 1, where=False).tolist() == [0, 0]
        assert ta.mean(numbers, 1, where=mask).dtype == ta.float32
        with ta.semantics("numpy"):
            assert ta.mean(numbers, 1, where=mask).dtype == ta.float64
            assert ta.nanmean(x, 1).dtype == ta.float32
