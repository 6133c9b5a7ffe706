"""`ta.special` on a GPU: distributions and closed forms, beside SciPy's on drawn numbers and at limits."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.numpy_names import bessel_on_gpu, beta_on_gpu, closed_forms_on_gpu, special_on_gpu

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BESSEL = ("j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e")
NAMES = {
    bessel_on_gpu: BESSEL,
    beta_on_gpu: ("fdtr", "fdtrc"),
    special_on_gpu: ("gdtr", "gdtrc", "pdtr", "pdtrc"),
    closed_forms_on_gpu: (
        *("boxcox", "boxcox1p", "cosdg", "cosm1", "cotdg", "ellipk", "ellipkm1", "erfcx", "exp10", "exprel"),
        *("gammasgn", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "loggamma", "pseudo_huber", "radian"),
        *("rel_entr", "rgamma", "sindg", "tandg", "zetac"),
    ),
}
FORMULAS = {name: getattr(module, name) for module, names in NAMES.items() for name in names}
ARITY = {name: len(inspect.signature(formula).parameters) for name, formula in FORMULAS.items()}


def draws(rng: np.random.Generator, name: str) -> dict[str, list[np.ndarray]]:
    """Operands of all sizes and both signs, of one sign, whole numbers, and beyond all whole numbers of float64."""
    scale = rng.choice([0.01, 1, 10, 100], (ARITY[name], 2000))
    signed = list(rng.normal(size=scale.shape) * scale)
    whole = list(rng.integers(-20, 21, scale.shape).astype(float))
    large = list(rng.integers(-(2**63), 2**63, scale.shape).astype(float))
    positive = [np.abs(each) for each in signed]
    return {"signed": signed, "positive": positive, "whole": whole, "large": large}


def both(name: str, given: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    special = pytest.importorskip("scipy.special")
    with np.errstate(all="ignore"):
        return ta.to_numpy(FORMULAS[name](*map(ta.asarray, given))), getattr(special, name)(*given)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_scipys_function(name):
    for kind, given in draws(np.random.default_rng(3), name).items():
        if kind == "large" and name in BESSEL:  # of which SciPy loses the digits
            continue
        found, expected = both(name, given)
        loose = 1e-8 if name == "cotdg" else 2e-11  # SciPy's is the less exact one near 0
        np.testing.assert_allclose(found, expected, rtol=loose, atol=1e-15, err_msg=kind)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_has_scipys_limits(name):
    ends = np.array([0.0, -0.0, 1.0, 0.5, -1.0, -0.5, 2.0, np.inf, -np.inf, np.nan])
    given = [each.ravel() for each in np.meshgrid(*[ends] * ARITY[name])]
    if name in ("fdtr", "fdtrc"):
        given = [np.where(np.isinf(each), 3.0, each) for each in given[:2]] + given[2:]  # SciPy's depend on x
    found, expected = both(name, given)
    if name in ("pdtr", "pdtrc"):
        expected[np.isnan(given[0])] = np.nan  # SciPy has 1 and 0 of m = 0
    if name == "pseudo_huber":
        kept = np.isfinite(given[0])  # SciPy has NaN
        found, expected = found[kept], expected[kept]
    if name in BESSEL:
        expected[np.isinf(given[0]) & (found == 0)] = 0  # SciPy has NaN
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_they_stay_on_their_device_in_the_dtype_of_the_host(name, elsewhere):
    pytest.importorskip("scipy")
    for dtype in ("float32", "float64", "bfloat16"):
        x = ta.asarray(np.array([1.0, 2.0])).astype(dtype)
        host, found = (getattr(ta.special, name)(*[each] * ARITY[name]) for each in (x, x.to_device(elsewhere)))
        assert (found.device, found.dtype, found.shape) == (elsewhere, host.dtype, (2,))


def test_what_scipy_loses():
    mpmath = pytest.importorskip("mpmath")
    x = np.array([1e-5, 3e-4, 89.9999999, 180.0000001])
    with mpmath.workdps(40):
        exact = [float(mpmath.cot(mpmath.radians(mpmath.mpf(value)))) for value in x]
    np.testing.assert_allclose(ta.to_numpy(FORMULAS["cotdg"](ta.asarray(x))), exact, rtol=2e-15)


def exact_bessel(name: str, value: float) -> tuple[Any, Any]:
    """The function and its size, which beside a zero is that of both kinds."""
    mpmath = pytest.importorskip("mpmath")
    order, x = int(name[1]), mpmath.mpf(value)
    if name[0] == "k":
        found = mpmath.besselk(order, x) * (mpmath.exp(x) if name.endswith("e") else 1)
        return found, found
    first, second = mpmath.besselj(order, x), mpmath.bessely(order, x)
    found = first if name[0] == "j" else second
    return found, abs(found) if value < 0.5 else mpmath.hypot(first, second)


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_to_the_last_digits(name):
    mpmath = pytest.importorskip("mpmath")
    x = [*(10 ** np.random.default_rng(0).uniform(-8, 2.5, 40)), *np.linspace(0.1, 30, 40), 2.0, 8.0]
    with mpmath.workdps(40):
        for value, found in zip(x, ta.to_numpy(FORMULAS[name](ta.asarray(np.array(x))))):
            exact, size = exact_bessel(name, float(value))
            assert abs(mpmath.mpf(float(found)) - exact) < 4e-15 * size, value
