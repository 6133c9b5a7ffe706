"""`ta.special`: SciPy finds our functions there, and only where its arrays are ours."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.numpy_names import beta_on_gpu, special_on_gpu

SHARES = ("chdtr", "chdtrc", "gammainc", "gammaincc")
BETA = ("betainc", "betaincc")
FORMULAS = (*SHARES, *BETA, "i0", "i0e", "i1", "i1e", "log_ndtr", "ndtri", "polygamma", "psi", "stdtr", "zeta")
TWO = (*SHARES, "polygamma", "stdtr", "zeta")


def formula(name: str) -> Any:
    return getattr(special_on_gpu, name, None) or getattr(beta_on_gpu, name)


def test_every_name_is_scipys_and_a_function_of_ours():
    special = pytest.importorskip("scipy.special")
    for name in ta.special.__all__:
        assert hasattr(special, name)
        if getattr(ta.special, name).__module__ != "tilearray.numpy_names.special":  # one of ours
            assert getattr(ta.special, name) is getattr(ta, {"gammaln": "lgamma"}.get(name, name))


def test_the_module_shows_its_functions_and_says_where_others_are():
    assert dir(ta.special) == sorted(ta.special.__all__)
    with pytest.raises(AttributeError, match=r"^module 'tilearray.special' .* 'jv'; write scipy.special.jv, which"):
        getattr(ta.special, "jv")  # noqa: B009
    special = pytest.importorskip("scipy.special")
    assert special.jv(1, ta.asarray([0.5])).tolist() == special.jv(1, np.float32([0.5])).tolist()


def arity(name: str) -> int:
    return 3 if name in BETA else 2 if name in TWO else 1


# --- formulas --------------------------------------------------------------------------------------------------------


def operands(name: str) -> list[np.ndarray]:
    """Values of every branch of a formula, where the function is not near one of its zeros."""
    rng = np.random.default_rng(5)
    signed = np.concatenate([rng.normal(size=300), rng.normal(size=300) * 25, rng.normal(size=50) * 1e4])
    size = np.concatenate([np.abs(signed), 10 ** rng.uniform(-5, 4, 200)])
    if name in SHARES:
        near = size[:600] + rng.normal(size=600) * np.sqrt(size[:600])
        return [np.concatenate([size, size[:600]]), np.concatenate([rng.permutation(size), np.abs(near)])]
    if name in BETA:
        a, b = 10 ** rng.uniform(-4, 10, (2, 3000))
        near = a / (a + b) + rng.normal(size=3000) * np.sqrt(a * b / (a + b) ** 3)
        return [a, b, np.where((rng.random(3000) < 0.5) | (near <= 0) | (near >= 1), rng.random(3000), near)]
    if name == "stdtr":
        return [10 ** rng.uniform(-2, 14, 3000), rng.normal(size=3000) * 8]
    if name == "ndtri":
        return [np.concatenate([rng.random(500), 10 ** -rng.uniform(0, 300, 200)])]
    if name == "zeta":
        return [1 + np.abs(signed) / 10, size[: signed.size] / 10]
    if name == "polygamma":
        return [rng.integers(1, 7, signed.size).astype(float), np.abs(signed)]
    return [np.where(np.abs(signed - 1.4616) < 0.1, 2, signed) if name == "psi" else np.where(signed < 37, signed, 1)]


def both(special: Any, name: str, given: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The results of SciPy, whose order of `polygamma` is an integer, and of the formula."""
    theirs = [given[0].astype(int), given[1]] if name == "polygamma" else given
    with np.errstate(all="ignore"):
        found = formula(name)(*map(ta.asarray, given))
        return getattr(special, name)(*theirs), ta.to_numpy(found)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_scipys_function(name):
    special, given = pytest.importorskip("scipy.special"), operands(name)
    expected, found = both(special, name, given)
    kept = np.isnan(expected) | np.isinf(expected) | (np.abs(expected) > 1e-250)
    least = {"gammaincc": 1e-15, "chdtrc": 1e-15, **dict.fromkeys(BETA, 1e-14)}.get(name, 0)  # 1 less the other share
    np.testing.assert_allclose(found[kept], expected[kept], rtol=4e-10 if name in BETA else 2e-11, atol=least)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_has_scipys_limits(name):
    special = pytest.importorskip("scipy.special")
    values = np.array([0.0, -0.0, 1.0, 0.5, -1.0, -0.5, 2.0, np.inf, np.nan])
    given = [x.ravel() for x in np.meshgrid(*[values] * arity(name))]
    if name == "polygamma":
        given = [np.ones_like(values), np.where(values == np.inf, 3, values)]
    expected, found = both(special, name, given)
    if name in ("i0", "i1"):
        expected[values == np.inf] = np.inf  # SciPy has NaN
    if name == "zeta":  # SciPy has an infinite zeta(nan, 0), and NaN for zeta(inf, 2)
        expected[np.isnan(given[0]) | np.isnan(given[1])] = np.nan
        expected[(given[0] == np.inf) & (given[1] == 2)] = 0
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_incomplete_gamma_functions_of_large_parameters():
    mpmath = pytest.importorskip("mpmath")
    a, x = np.array([9000.0, 2e4, 1e6]), np.array([9100.0, 1.98e4, 1.002e6])
    with mpmath.workdps(40):  # the last one is an integral of mpmath
        exact = [float(mpmath.gammainc(p, 0, q, regularized=True)) for p, q in zip(a[:2], x[:2])]
    found = ta.to_numpy(special_on_gpu.gammainc(ta.asarray(a), ta.asarray(x)))
    np.testing.assert_allclose(found, [*exact, 0.9771959041012301], rtol=1e-12)


def test_incomplete_beta_functions_of_large_parameters():
    mpmath = pytest.importorskip("mpmath")
    for a, b, x in ((2e6, 3e6, 0.4003), (1.4e6, 9.4e9, 1.49e-4), (9.4e9, 1.4e6, 0.999851), (1e-5, 150.0, 0.0066)):
        with mpmath.workdps(40):

            def density(t: Any, a: float = a, b: float = b) -> Any:
                return mpmath.exp((a - 1) * mpmath.log(t) + (b - 1) * mpmath.log1p(-t)) / mpmath.beta(a, b)

            deviation = mpmath.sqrt(a * b / (a + b) ** 3)
            points = [x + steps * deviation for steps in (0, 1, 2, 4, 8, 16, 32) if x + steps * deviation < 1]
            exact = float(mpmath.quad(density, [*points, 1] if a < 1 else points))
        found = ta.to_numpy(beta_on_gpu.betaincc(*[ta.asarray(np.array([value])) for value in (a, b, x)]))
        np.testing.assert_allclose(found, [exact], rtol=2e-11)


def test_riemanns_function():
    special = pytest.importorskip("scipy.special")
    x = np.array([-150.5, -4.0, -3.3, -1.0, 0.0, 0.5, 1.0, 1.5, 30.0, np.inf, np.nan])
    found = ta.to_numpy(special_on_gpu.zeta(ta.asarray(x)))
    np.testing.assert_allclose(found, special.zeta(x), rtol=1e-12)


def test_far_below_zero():
    """The terms of `zeta` that are large, of negative numbers, are as many as its second operand is far below 0."""
    special, rng = pytest.importorskip("scipy.special"), np.random.default_rng(8)
    orders, x = rng.integers(2, 40, 4000).astype(float), -40 * rng.random(4000)
    x[:1000] = np.round(x[:1000]) - 10 ** rng.uniform(-6, -1, 1000)
    for name, given in (("zeta", [orders, x]), ("polygamma", [orders, x])):
        expected, found = both(special, name, given)
        near_zero = (orders % 2 == 1) == (name == "zeta")  # terms of both signs
        np.testing.assert_allclose(found[~near_zero], expected[~near_zero], rtol=2e-11)
        apart = np.abs(expected) > 1e-3 * special.gamma(orders + 1)
        np.testing.assert_allclose(found[near_zero & apart], expected[near_zero & apart], rtol=2e-11)
    far = np.array([-1.5e154, -1.8e154])
    np.testing.assert_allclose(ta.to_numpy(special_on_gpu.log_ndtr(ta.asarray(far))), special.log_ndtr(far), rtol=1e-12)
    far = -4503599627370497.0 - 2 * np.arange(4)
    assert np.isnan(ta.to_numpy(special_on_gpu.psi(ta.asarray(far)))).all()
    far = -257.9 - np.arange(4) / 2
    np.testing.assert_allclose(ta.to_numpy(special_on_gpu.zeta(ta.asarray(far))), special.zeta(far), rtol=2e-11)


@pytest.mark.parametrize("name", FORMULAS)
def test_they_stay_on_their_device_in_the_dtype_of_the_operands(name, elsewhere):
    x = ta.asarray(np.array([0.25, 0.75]), dtype="float32", device=elsewhere)
    function = getattr(ta.special, name)
    found = function(*[2] * (arity(name) - 1), x + 1)
    assert (found.device, found.dtype, found.shape) == (elsewhere, "float32", (2,))
    whole = ta.asarray([1, 1], device=elsewhere)
    found = function(whole, *[x] * (arity(name) - 1))
    assert (found.device, found.dtype) == (elsewhere, "float64")  # as on the host, SciPy's
    if name in TWO:
        listed, single = function(x + 1, [1.25, 1.75]), function(np.float32(2), x + 1)
        assert (listed.dtype, single.dtype) == ("float64", "float32")
        assert listed.astype("float32").tolist() == function(x + 1, x + 1).tolist()


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int32", "float8_e4m3fn", "bfloat16", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("name", ["betainc", "i0", "ndtri", "polygamma", "psi", "stdtr"])
def test_dtypes_are_those_of_the_host(name, dtype, elsewhere):
    pytest.importorskip("scipy")
    x = ta.asarray([1, 1]).astype(dtype)
    found = [getattr(ta.special, name)(*[each] * arity(name)) for each in (x, x.to_device(elsewhere))]
    assert found[0].dtype == found[1].dtype == ("float64" if dtype in ("int32", "float64") else "float32")


SOURCE = """
import numpy as np, tilearray as ta
from scipy import special
whole = ta.asarray([1, 2, 3])
for name in {names}:
    row = getattr(ta.special, name)
    found = getattr(special, name)(*[whole] * row.arity)
    assert type(found) is ta.Array and found.dtype == ta.float32, (name, found)
assert special.erf(np.asarray([1, 2])).dtype == np.float64
"""


@pytest.mark.slow  # a process that imports SciPy with SCIPY_ARRAY_API=1
def test_scipy_takes_them_for_arrays_with_its_array_api():
    pytest.importorskip("scipy", minversion="1.16")
    names = [name for name in ta.special.__all__ if name in ("gammaln", *ta.ops.PUBLIC)]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "TILEARRAY_SEMANTICS": "array-api"}
    command = [sys.executable, "-c", SOURCE.format(names=names)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_zeta_beside_0_and_of_large_numbers():
    special = pytest.importorskip("scipy.special")
    x = np.array([-1e-20, -1e-16, -1e-12, -1e-7, -0.3, -0.5, -0.50001])
    np.testing.assert_allclose(ta.to_numpy(special_on_gpu.zeta(ta.asarray(x))), special.zeta(x), rtol=1e-12)
    n, q = np.array([3.0, 9.0, 1.0]), np.array([1e100, 1e33, 1e160])
    found = ta.to_numpy(special_on_gpu.polygamma(ta.asarray(n), ta.asarray(q)))
    np.testing.assert_allclose(found, special.polygamma(n, q), rtol=1e-12)


def test_polygamma_of_high_order_at_negative_half_integers():
    """Terms of both signs cancel, so that SciPy has few digits or none."""
    mpmath = pytest.importorskip("mpmath")
    n, x = np.array([8.0, 20, 21, 40, 40]), np.array([-2.5, -2.5, -2.5, -0.5, -9.5])
    with mpmath.workdps(80):
        exact = [float(mpmath.psi(int(order), place)) for order, place in zip(n, x)]
    found = ta.to_numpy(special_on_gpu.polygamma(ta.asarray(n), ta.asarray(x)))
    np.testing.assert_allclose(found, exact, rtol=1e-11)


def test_a_parameter_near_the_end_of_its_range():
    given = [2.0, 1e300, 2.0], [1e300, 2.0, 1e200], [0.5, 0.5, 0.5]
    wide = [ta.asarray(each, dtype="float64") for each in given]
    assert beta_on_gpu.betainc(*wide).tolist() == [1, 0, 1]
    assert beta_on_gpu.betaincc(*wide).tolist() == [0, 1, 0]


def test_shares_are_from_0_to_1():
    tiny = ta.asarray(np.array([5e-324, 1e-300, 1e-20, 1e-17, 1e-9]))
    x = ta.asarray(np.array([1e-300, 1e-20, 1e-5, 0.3, 3.0]))[:, None]
    for function in (special_on_gpu.gammainc, special_on_gpu.gammaincc):
        found = ta.to_numpy(function(*ta.broadcast_arrays(tiny, x)))
        assert ((found >= 0) & (found <= 1)).all()
    inside = ta.asarray(np.array([1e-300, 1e-20, 1e-5, 0.3, 0.9]))[:, None]
    for function in (beta_on_gpu.betainc, beta_on_gpu.betaincc):
        found = ta.to_numpy(function(*ta.broadcast_arrays(tiny, 1.0 + 0 * tiny, inside)))
        assert ((found >= 0) & (found <= 1)).all()
