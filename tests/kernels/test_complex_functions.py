"""Complex functions in Triton's interpreter: accuracy beside mpmath, special values beside the host's."""

from __future__ import annotations

import numpy as np
import pytest
from support.interpreter.run import Interpreter
from support.kernels import needs_triton
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

pytestmark = [needs_triton, pytest.mark.slow]

ULPS = {"complex64": 1, "complex128": 4}


@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_within_ulps_of_the_modulus(name: str, dtype: str, interpreter: Interpreter) -> None:
    z = drawn(name, 240, dtype)
    got = interpreter.call(name, z)
    errors = ulps(got, by_mpmath(name, z))
    assert errors.max() <= ULPS[dtype], (z[errors.argmax()], got[errors.argmax()])
    assert np.isfinite(got).mean() > 0.7


@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("name", NAMES)
def test_many_values(name: str, dtype: str, interpreter: Interpreter) -> None:
    """Beside long doubles, which lose digits of the largest and smallest operands."""
    z = drawn(name, 8000, dtype, 1)[:4000]
    errors = wide_ulps(interpreter.call(name, z), in_long_double(name, z))
    assert errors.max() <= ULPS[dtype], z[errors.argmax()]


@pytest.mark.parametrize("dtype", ULPS)
def test_powers(dtype: str, interpreter: Interpreter) -> None:
    z, w = drawn_powers(600, dtype)
    got = interpreter.call("pow", z, w)
    errors = ulps(got, by_mpmath("pow", z, w))
    assert errors.max() <= ULPS[dtype], (z[errors.argmax()], w[errors.argmax()])
    assert np.isfinite(got).mean() > 0.5
    with np.errstate(all="ignore"):
        wide = interpreter.call("float_power", z, w).astype(dtype)
    assert ulps(wide, by_mpmath("pow", z, w)).max() <= ULPS[dtype]


def test_powers_of_two_with_large_imaginary_exponents(interpreter: Interpreter) -> None:
    """The angle is known to twice the digits."""
    z = 0.5 + 1j * np.random.default_rng(0).uniform(-1, 1, 200) * np.exp2(np.arange(200) % 45)
    assert ulps(interpreter.call("exp2", z), by_mpmath("exp2", z)).max() <= 4


def test_powers_that_take_no_logarithm(interpreter: Interpreter) -> None:
    """Exponents 0, 1 and 2, and the base 0, in arrays and as Python numbers."""
    z = np.array([1 + 1j, -3 + 0j, 0.5j, 1e100 + 1j, 0, complex(np.inf, np.nan)])
    for exponent, expected in ((0, np.ones_like(z)), (1, z), (2, np.multiply(z[:4], z[:4]))):
        for given in (np.full_like(z, exponent), exponent):
            got = interpreter.call("pow", z, given)[: expected.size]
            np.testing.assert_array_equal(got, expected)
    zero = np.zeros(5, complex)
    got = interpreter.call("pow", zero, np.array([2.5, 1 + 1j, 0, -1, 1j]))
    np.testing.assert_array_equal(got, [0, 0, 1, complex(np.nan, np.nan), complex(np.nan, np.nan)])
    assert ulps(interpreter.call("pow", z[:2], 2.5), by_mpmath("pow", z[:2], np.full(2, 2.5 + 0j))).max() <= 4


@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_the_hosts(name: str, dtype: str, interpreter: Interpreter) -> None:
    assert differences(lambda z: interpreter.call(name, z), name, dtype) == []
