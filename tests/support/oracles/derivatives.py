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
