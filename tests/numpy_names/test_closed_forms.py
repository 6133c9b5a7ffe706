"""`ta.special` on a GPU: distributions and closed forms, beside SciPy's on drawn numbers and at limits."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.numpy_names import beta_on_gpu, closed_forms_on_gpu, special_on_gpu

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NAMES = {
    beta_on_gpu: ("fdtr", "fdtrc"),
    special_on_gpu: ("gdtr", "gdtrc", "pdtr", "pdtrc"),
    closed_forms_on_gpu: (
        *("boxcox", "boxcox1p", "cosdg", "cosm1", "cotdg", "ellipk", "ellipkm1", "erfcx", "exp10", "exprel"),
        *("gammasgn", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "loggamma", "pseudo_huber", "radian", "rgamma"),
        *("sindg", "tandg", "zetac"),
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
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_they_stay_on_their_device_in_the_dtype_of_the_host(name, elsewhere):
    pytest.importorskip("scipy")
    for dtype in ("float32", "float64", "bfloat16"):
        x = ta.asarray(np.array([1.0, 2.0])).astype(dtype)
        host, found = (getattr(ta.special, name)(*[each] * ARITY[name]) for each in (x, x.to_device(elsewhere)))
        assert (found.device, found.dtype, found.shape) == (elsewhere, host.dtype, (2,))


def test_what_scipy_loses(name: Any = "cotdg"):
    mpmath = pytest.importorskip("mpmath")
    x = np.array([1e-5, 3e-4, 89.9999999, 180.0000001])
    with mpmath.workdps(40):
        exact = [float(mpmath.cot(mpmath.radians(mpmath.mpf(value)))) for value in x]
    np.testing.assert_allclose(ta.to_numpy(FORMULAS[name](ta.asarray(x))), exact, rtol=2e-15)
