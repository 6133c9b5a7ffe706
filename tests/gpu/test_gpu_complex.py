"""Complex functions on the GPU: a million values of each beside long doubles, some beside mpmath, special values."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.complex_functions import (
    NAMES,
    by_mpmath,
    differences,
    drawn,
    drawn_powers,
    in_long_double,
    ulps,
    wide_ulps,
)

import tilearray as ta

COUNTS = {"complex64": 200_000, "complex128": 1_000_000}
ULPS = {"complex64": 1, "complex128": 4}
LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63


def on_gpu(name: str, *columns: np.ndarray) -> np.ndarray:
    return ta.to_numpy(getattr(ta, name)(*[ta.asarray(column, device="cuda") for column in columns]))


@pytest.mark.skipif(not LONG_DOUBLE, reason="long doubles are float64 here")
@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_many_values_are_within_ulps_of_the_modulus(name, dtype):
    z = drawn(name, COUNTS[dtype], dtype, 2)
    errors = wide_ulps(on_gpu(name, z), in_long_double(name, z))
    worst = errors.argmax()
    assert errors[worst] <= ULPS[dtype], (errors[worst], z[worst])


@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_values_beside_mpmath(name, dtype):
    z = drawn(name, 1000, dtype, 3)
    errors = ulps(on_gpu(name, z), by_mpmath(name, z))
    worst = errors.argmax()
    assert errors[worst] <= ULPS[dtype], (errors[worst], z[worst])


@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", ["pow", "float_power"])
def test_powers(name, dtype):
    for seed in range(4):
        z, w = drawn_powers(3000, dtype, seed)
        with np.errstate(all="ignore"):
            got = on_gpu(name, z, w).astype(dtype)
        errors = ulps(got, by_mpmath("pow", z, w))
        worst = errors.argmax()
        assert errors[worst] <= ULPS[dtype], (errors[worst], z[worst], w[worst])


@pytest.mark.parametrize("dtype", COUNTS)
def test_squares(dtype):
    """A Python number as exponent that is 2 is one product; so are the elements of an array that are 2."""
    z = drawn("pow", 10_000, dtype)
    x = ta.asarray(z, device="cuda")
    expected = ta.to_numpy(x * x)
    np.testing.assert_array_equal(ta.to_numpy(x**2), expected)
    if dtype == "complex128":  # complex64 rounds the square of float64 once
        np.testing.assert_array_equal(on_gpu("pow", z, np.full_like(z, 2)), expected)


@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_the_hosts(name, dtype):
    assert differences(lambda z: on_gpu(name, z), name, dtype) == []


@pytest.mark.parametrize("name", NAMES)
def test_layouts_give_the_same_bits(name):
    """Transposed, reversed and strided operands, and real ones of a fused function."""
    z = drawn(name, 6400, "complex128", 4).reshape(80, 80)
    x = ta.asarray(z, device="cuda")
    function = getattr(ta, name)
    expected = on_gpu(name, z)
    for view in (lambda a: a.T, lambda a: a[::-1, ::3], lambda a: a[1:, 5:]):
        np.testing.assert_array_equal(ta.to_numpy(function(view(x))), view(expected))
    fused = ta.to_numpy(ta.fuse(lambda a: function(a) * 2)(x))
    np.testing.assert_array_equal(fused, ta.to_numpy(function(x) * 2))
