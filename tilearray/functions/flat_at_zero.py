"""Roots and powers that have the derivative 0 at 0, where that of the function is infinite.

The chain rule would multiply this infinity by the 0 of a norm or a deviation, and return NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilearray.functions.arguments import is_differentiated
from tilearray.ops.arithmetic import choose


def flat_at_zero(function: Callable[[Any], Any], x: Any, at_zero: float = 0.0) -> Any:
    """Return a function of an array; if that is differentiated, all derivatives at 0 are 0.

    Parameters
    ----------
    function : callable
    x : Array
        Of a real dtype.
    at_zero : float
        The value of the function at 0.
    """
    if not is_differentiated(x):
        return function(x)
    is_zero = x == 0
    return choose(is_zero, at_zero, function(choose(is_zero, 1, x)))
