"""The state in which NumPy treats floating-point exceptions, switched in a tenth of the time of ``np.errstate``.

``np.errstate`` takes 1 us, because it makes a new value for its context variable. This module makes two values once: in
`QUIET` nothing warns, and in `STRICT` an invalid operation raises FloatingPointError. To set one takes 0.05 us::

    before = get_state()
    try:
        set_state(QUIET)
        np.add(x, y, out=out)
    finally:
        set_state(before)

NumPy keeps the size of its buffers in the same variable. The code between runs in the caller's own context, because
signal handlers and finalizers expect it. Python cannot handle a signal between a change and the ``finally`` block: no
bytecode boundary for it lies between.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


BUFFERED = 2048
"""The elements of NumPy's buffers in `QUIET`. NumPy copies operands of more than one axis to buffers if a few rows fit,
which takes twice the time of a product of rows of 1000. Its own 8192 are meant for conversions, which take no longer
with these."""


def _state(buffered: int | None = None, **how: Any) -> tuple[ContextVar[Any], Any]:
    """Return the context variable that ``np.errstate`` sets, and the value that stands for some settings."""
    empty = Context()
    if buffered is not None:
        empty.run(np.setbufsize, buffered)
    empty.run(lambda: np.seterr(**how))
    ((variable, value),) = empty.items()
    return variable, value


_VARIABLE, QUIET = _state(BUFFERED, all="ignore")
_QUIET_SUMS = _state(all="ignore")[1]
"""The same with NumPy's own buffers, on which the order of its own sums depends."""
STRICT = _state(over="ignore", under="ignore", divide="ignore", invalid="raise")[1]
get_state, set_state = _VARIABLE.get, _VARIABLE.set


def quietly(function: Callable[..., None], /, *args: Any, **kwargs: Any) -> None:
    """Call a function while NumPy neither warns nor raises on floating-point exceptions.

    Examples
    --------
    >>> quietly(np.log, np.zeros(1), out=np.empty(1))
    """
    before = get_state()
    try:
        set_state(QUIET)
        function(*args, **kwargs)
    finally:
        set_state(before)


def quiet(function: F) -> F:
    """Return a function that neither warns nor raises on floating-point exceptions.

    Examples
    --------
    >>> quiet(np.log)(np.zeros(1))
    array([-inf])
    """

    @wraps(function)
    def run(*arguments: Any) -> Any:
        before = get_state()
        try:
            set_state(_QUIET_SUMS)
            return function(*arguments)
        finally:
            set_state(before)

    return run  # pyright: ignore[reportReturnType]
