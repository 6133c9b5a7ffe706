"""Gradients from other sources than the rules: central differences of the library's results, and torch's autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilearray as ta

STEP = 1e-5


def unbroadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums over the axes along which a shape was repeated."""
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(axis for axis, size in enumerate(shape) if size == 1 != g.shape[axis]), keepdims=True)


def of_elements(function: Callable[..., Any], args: Sequence[np.ndarray], g: np.ndarray, place: int) -> np.ndarray:
    """The gradient of one operand of an elementwise function, by differences of five points; all elements at once."""
    operand = np.broadcast_to(args[place], g.shape)

    def slope(step: Any) -> np.ndarray:
        def at(times: int) -> np.ndarray:
            moved = [*args[:place], operand + times * step, *args[place + 1 :]]
            return ta.to_numpy(function(*[ta.asarray(arg) for arg in moved]))

        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)

    found = (np.conj(g) * slope(STEP)).real
    if operand.dtype.kind == "c":
        found = found + 1j * (np.conj(g) * slope(1j * STEP)).real
    return unbroadcast(found, args[place].shape)


def of_function(function: Callable[..., Any], args: Sequence[np.ndarray], g: np.ndarray, place: int) -> np.ndarray:
    """The gradient of one argument of any function of NumPy arrays, by differences of five points, one element each."""
    found = np.zeros_like(args[place])
    steps = [STEP] if found.dtype.kind == "f" else [STEP, 1j * STEP]
    for index in np.ndindex(found.shape):
        for step in steps:

            def at(times: int, index: Any = index, step: Any = step) -> Any:
                moved = args[place].copy()
                moved[index] += times * step
                return function(*args[:place], moved, *args[place + 1 :])

            slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)
            found[index] += (np.conj(g) * slope).real.sum() * (1 if step == STEP else 1j)
    return found


def checked(function: Callable[[Any], Any], x: np.ndarray) -> None:
    """Compare the gradient of a function of one array with differences, and with its derivative along a direction."""
    given = ta.asarray(x)
    result, pull = ta.vjp(function, given)
    np.testing.assert_array_equal(ta.to_numpy(given), x)
    plain = ta.to_numpy(function(given))
    np.testing.assert_allclose(ta.to_numpy(result), plain, rtol=1e-12, atol=1e-12)
    g = np.random.default_rng(5).standard_normal(result.shape)
    g = g + 1j * np.random.default_rng(6).standard_normal(g.shape) if plain.dtype.kind == "c" else g
    found = ta.to_numpy(pull(ta.asarray(np.asarray(g)))[0])
    expected = of_function(lambda x: ta.to_numpy(function(ta.asarray(x))), [x], np.asarray(g), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    if plain.dtype.kind == "f" and x.dtype.kind == "f":  # the derivative along a direction is the transpose
        direction = np.random.default_rng(8).standard_normal(x.shape)
        _, tangent = ta.jvp(function, (given,), (ta.asarray(direction),))
        np.testing.assert_allclose((ta.to_numpy(tangent) * g).sum(), (found * direction).sum(), rtol=1e-9, atol=1e-9)
