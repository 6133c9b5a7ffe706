"""Float ``//``, ``%`` and nextafter on the GPU: quotients beside integers, of all sizes, infinite; all bits."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.floor_division import assert_same_bits, expected, near_integers

import tilearray as ta


def on(device, name, x, y):
    return ta.to_numpy(getattr(ta, name)(ta.asarray(x, device=device), ta.asarray(y, device=device)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_quotients_beside_integers(name, dtype):
    x, y = near_integers(dtype, 1_000_000, 2)
    assert_same_bits(on("cuda", name, x, y), expected(name, x, y), x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_all_bits(name, dtype):
    """Random bits: huge quotients, denormals, infinities and NaN; and the same among usual quotients."""
    rng = np.random.default_rng(5)
    kind = np.uint32 if dtype == "float32" else np.uint64
    x, y = (rng.integers(0, 2 ** (8 * kind().itemsize), 500_000, dtype=kind).view(dtype) for _ in range(2))
    usual = near_integers(dtype, x.size, 6)
    for share in (1.0, 0.01):
        chosen = rng.random(x.size) < share
        a, b = np.where(chosen, x, usual[0]), np.where(chosen, y, usual[1])
        got, wanted = on("cuda", name, a, b), on("cpu", name, a, b)
        nan = np.isnan(wanted)
        assert np.isnan(got[nan]).all()
        assert_same_bits(got[~nan], wanted[~nan], a[~nan], b[~nan])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_next_values(dtype):
    """Toward larger, smaller and equal values, from every kind of value; NaN is kept."""
    rng = np.random.default_rng(7)
    host = ta.asarray(rng.integers(0, 2**63, 200_000).astype(np.int64), device="cpu").view(dtype)
    other = ta.flip(host)
    for target in (other, host, ta.zeros_like(host), -host):
        got = ta.to_numpy(ta.nextafter(host.to_device("cuda"), target.to_device("cuda")))
        wanted = ta.to_numpy(ta.nextafter(host, target))
        with np.errstate(invalid="ignore"):  # some NaN are signalling
            nan = np.isnan(wanted.astype(np.float64))
            assert np.isnan(got[nan].astype(np.float64)).all()
        np.testing.assert_array_equal(got[~nan].view(np.uint8), wanted[~nan].view(np.uint8))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "int64"])
def test_squares_of_integers_wrap(dtype):
    x = ta.asarray(np.random.default_rng(8).integers(-128, 128, 10_000), device="cpu").astype(dtype)
    for exponent in (0, 1, 2, 3, 17):
        np.testing.assert_array_equal(ta.to_numpy(x.to_device("cuda") ** exponent), ta.to_numpy(x**exponent))
