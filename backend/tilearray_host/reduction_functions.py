"""The functions that only reductions call, by NumPy: of complex numbers by parts, and squares beyond float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray_host.reduction import COMBINE

Array = np.ndarray[Any, np.dtype[Any]]

DOWN, UP = 2.0**-600, 2.0**600
LEAST, MOST = 2.0**-900, 2.0**1020
"""A sum of squares between these lost nothing by underflow, and did not overflow."""
LEAST_OF_FLOAT32, MOST_OF_FLOAT32 = 2.0**-90, 2.0**120
"""The same of float32."""


def divide_parts(x: Any, y: Array, *, out: Any) -> None:
    """Divide both parts of complex numbers by real numbers."""
    np.divide(x.real, y, out=out.real)
    np.divide(x.imag, y, out=out.imag)


def squared_length(x: Any, *, out: Array) -> None:
    """Compute the square of the absolute value of complex numbers."""
    np.add(x.real * x.real, x.imag * x.imag, out=out)


def conjugate_product(x: Any, y: Any, *, out: Any) -> None:
    """Compute ``conj(x) * y`` by parts, since the bits of NumPy's own products depend on the processor."""
    np.add(x.real * y.real, x.imag * y.imag, out=out.real)
    np.subtract(x.real * y.imag, x.imag * y.real, out=out.imag)


def square_of_large(x: Any, *, out: Array) -> None:
    """Compute the square of the absolute value of ``x * DOWN``."""
    _scaled_square(x, DOWN, out)


def square_of_small(x: Any, *, out: Array) -> None:
    """Compute the square of the absolute value of ``x * UP``."""
    _scaled_square(x, UP, out)


def _scaled_square(x: Any, factor: float, out: Array) -> None:
    if x.dtype.kind == "c":  # by parts: a complex product with an infinity has a NaN
        real, imaginary = x.real * factor, x.imag * factor
        np.add(real * real, imaginary * imaginary, out=out)
    else:
        np.multiply(x, factor, out=out)
        np.multiply(out, out, out=out)


def usable_sum(squares: Array, large: Array, small: Array, *, out: Array) -> None:
    """Choose the sum of squares that neither overflowed nor underflowed. NaN is in all of them."""
    if squares.size == 1:  # Python chooses in a twentieth of the time
        out[...] = _usable(squares.item(), large, small, squares)
        return
    out[...] = np.where(squares > MOST, large, np.where(squares < LEAST, small, squares))


def usable_scale(squares: Array, large: Array, small: Array, *, out: Array) -> None:
    """Compute the factor that takes the root of `usable_sum` back to the scale of the numbers."""
    if squares.size == 1:
        out[...] = _usable(squares.item(), UP, DOWN, 1.0)
        return
    out[...] = np.where(squares > MOST, UP, np.where(squares < LEAST, DOWN, 1.0))


def usable_of_float32(squares: Array, wide: Array, *, out: Array) -> None:
    """Choose a sum of squares in float32 if it neither overflowed nor underflowed, else that in float64."""
    out[...] = np.where((squares > LEAST_OF_FLOAT32) & (squares < MOST_OF_FLOAT32), squares, wide)


def _usable(square: float, large: Any, small: Any, usual: Any) -> Any:
    return large if square > MOST else small if square < LEAST else usual


def larger(x: Array, y: Array, *, out: Array) -> None:
    """Compute the larger operand; NaN if one is NaN, and 0.0 of both zeros."""
    (out[...],) = COMBINE["maximum"].pair([x], [y])


def smaller(x: Array, y: Array, *, out: Array) -> None:
    """Compute the smaller operand; NaN if one is NaN, and -0.0 of both zeros."""
    (out[...],) = COMBINE["minimum"].pair([x], [y])


OF_REDUCTIONS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        *(divide_parts, squared_length, conjugate_product),
        *(square_of_large, square_of_small, usable_sum, usable_scale, usable_of_float32),
        *(larger, smaller),
    )
}
