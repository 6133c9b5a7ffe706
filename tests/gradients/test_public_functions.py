"""Every public function has the gradient of its differences, has none by nature, or raises GradientError."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import checked, of_function
from support.public_calls import DIFFERENTIABLE, FLAT, OTHERS, REFUSED, WITHOUT, X, Y, called, numbers

import tilearray as ta


def of_second(call: str, y: Any) -> Any:
    """The same, with `x` as the constant and `y` as the variable; `v` is the beginning of `y`."""
    return called(call, ta.asarray(X), y=y, v=ta.reshape(y, -1)[:5])


def gradients(call: str, of: Any = called, at: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the sum of a call's results, and the differences."""
    result, pull = ta.vjp(lambda x: numbers(of(call, x)), ta.asarray(at))
    expected = of_function(lambda x: ta.to_numpy(numbers(of(call, ta.asarray(x)))), [at], np.ones(result.shape), 0)
    return ta.to_numpy(pull(1.0)[0]), expected


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (ta.roots, [[0.0, 1.0, -3.0, 2.0, 0.0]]),
        (ta.roots, [[2.0, 0.0, 2.0]]),
        (ta.roots, [[0.0, 0.0]]),
        (ta.poly, [[1.0, 2.0, 3.5]]),
        (ta.poly, [[[1.0, -2.0], [3.0, 4.0]]]),
        (ta.poly, [[1j, -1j, 2.0]]),
        (lambda x, y: ta.polyfit(x, y, 2), [[0.0, 1.0, 2.0, 4.0], [1.0, 3.0, 2.0, 5.0]]),
        (lambda w: ta.bincount(ta.asarray([3, 0, 3]), w, 6), [[0.5, 1.5, 4.0]]),
        (lambda x: ta.digitize(x, [0.2, 0.5]), [[0.1, 0.5, 0.7]]),
    ],
)
def test_formulas_for_derivatives_give_the_result_of_the_function(function: Any, given: list[Any]) -> None:
    arrays = [ta.asarray(np.asarray(each, "c16" if 1j in np.ravel(each) else "f8")) for each in given]
    plain, (found, _) = function(*arrays), ta.vjp(function, *arrays)
    assert (found.dtype, found.shape) == (plain.dtype, plain.shape)
    np.testing.assert_allclose(ta.to_numpy(found), ta.to_numpy(plain), atol=1e-12)


@pytest.mark.parametrize(("places", "count"), [([0, -1], 2), ([0, 1, 2], 2)])
def test_places_of_weights_that_are_differentiated_are_checked(places: list[int], count: int) -> None:
    with pytest.raises((ValueError, ta.TileArrayError)):
        ta.vjp(lambda w: ta.bincount(ta.asarray(places), w), ta.ones(count))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_is_that_of_differences(name: str):
    found, expected = gradients(DIFFERENTIABLE[name])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert found.any() == (name not in FLAT)


BESIDE = {
    **{name: call for name, call in DIFFERENTIABLE.items() if re.search(r"\by\b", call) and name != "copysign"},
    "values of interp": "interp(x, [0.0, 0.5, 1.0], v[:3])",
    "places of interp": "interp(x, cumsum(v[:3]), w[:3])",
    "right side": "linalg.solve(m, y)",
    "weights": "average(x, 1, y)",
    "coordinates": "trapezoid(w, v)",
    "second variables": "cov(x, y)",
    "ends": "ediff1d(w, to_end=v, to_begin=v[:1])",
    "inserted": "insert(w, [1, 2], v[:2])",
    "numbers for truths": "piecewise(x, [x > 0.5], [y[0, 0], lambda t: t * t])",
    "default": "select([b], [x], y[0, 0])",
    "joined": "r_[w, v, 2.0]",
    "rows": "full((2, 5), v)",
    "a number": "full((2,), y[0, 0])",
    "a number like": "full_like(x, y[0, 0])",
    "limits": "linspace(y[0, 0], y[0, 1], 3, dtype='float64')",
    "a limit": "linspace(0.0, y[0, 1], 3, dtype='float64')",
    "logarithms of limits": "logspace(y[0, 0], y[0, 1], 3, dtype='float64')",
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_a_constant_may_stand_beside_or_before(name: str):
    found, expected = gradients(BESIDE[name], of_second, Y)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert found.any() == (name not in FLAT)


READ = {
    "sum": "sum(y, initial=y[0, 0])",
    "max": "max(x, initial=y[0, 0])",
    "arange": "arange(y[0, 0], 5.0)",
    "interp": "interp(x, [0.3, 0.5], [1.0, 2.0], left=y[0, 0])",
    "unwrap": "unwrap(x, period=y[0, 0])",
    "quantile": "quantile(x, y[0, 0])",
    "a list": "asarray([y[0, 0], y[1, 1]])",
    "a mask": "into(lambda out, x: out.__setitem__(b, y[b]), x)",
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_no_option_ends_a_derivative_silently(name: str):
    of_second(READ[name], ta.asarray(Y))
    with pytest.raises(ta.GradientError, match=r"^vjp: .*; write"):
        ta.vjp(lambda y: of_second(READ[name], y), ta.asarray(Y))


@pytest.mark.parametrize("name", WITHOUT)
def test_derivatives_end_at_places_truth_values_and_constants(name: str):
    found, expected = gradients(WITHOUT[name])
    assert not found.any()
    assert not expected.any()


@pytest.mark.parametrize("name", REFUSED)
def test_other_functions_say_that_they_have_no_derivative(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if name == "to_torch":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    called(REFUSED[name], ta.asarray(X))
    with pytest.raises(ta.GradientError, match=r"^vjp: .*; (write|return)"):
        ta.vjp(lambda x: called(REFUSED[name], x), ta.asarray(X))


DRAWS: dict[str, Any] = {
    "normal": lambda rng, x: rng.normal(x, x * 2, dtype="float64") ** 2,
    "uniform": lambda rng, x: rng.uniform(-x, x * 2, dtype="float64") ** 2,
    "exponential": lambda rng, x: rng.exponential(x, dtype="float64") ** 2,
    "choice": lambda rng, x: rng.choice(x, 3) ** 2,
    "permutation": lambda rng, x: rng.permutation(x, axis=1) * ta.arange(4),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_functions_of_their_parameters(name: str):
    checked(lambda x: DRAWS[name](ta.random.default_rng(7), x), X)


@pytest.mark.parametrize("name", ["gamma", "poisson", "binomial"])
def test_draws_by_rejection_have_no_derivative(name: str):
    args = (5,) if name == "binomial" else ()
    with pytest.raises(ta.GradientError, match=f"vjp: {name} has no derivative"):
        ta.vjp(lambda x: getattr(ta.random.default_rng(7), name)(*args, x), ta.asarray(X))


def test_the_table_has_every_public_function_once():
    public = [f"{space}{name}" for space in ("", "linalg.", "fft.") for name in functions(space.rstrip("."))]
    listed = [*DIFFERENTIABLE, *WITHOUT, *REFUSED, *OTHERS]
    assert sorted(public) == sorted(listed)


def functions(space: str) -> list[str]:
    module = getattr(ta, space) if space else ta
    found = {name: getattr(module, name) for name in module.__all__}
    return [name for name, value in found.items() if callable(value) and not inspect.isclass(value)]
