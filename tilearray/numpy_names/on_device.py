"""How a function of this folder computes on a device that runs expressions: as NumPy does, and without the host.

`there` returns the arrays of a call that lie on such a device, in the dtypes in which NumPy computes. A function then
computes with operations of ours in NumPy's semantics, so that it has NumPy's dtypes on the way. `There.finished` rounds
floats to the dtype in which `tilearray.numpy_names.through_numpy` returns them on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full
from tilearray.engine.devices import common_device
from tilearray.functions.arguments import all_arrays, as_array_beside, by_expressions
from tilearray.functions.conversion import astype
from tilearray.numpy_names.through_numpy import check_given, float_of, rounded
from tilearray.promotion.scalars import classify


class There(NamedTuple):
    """The arrays of a call on a device that runs expressions.

    Attributes
    ----------
    arrays : list of Array or None
        Floats of 8 and 16 bits are float32; None stays None.
    target : numpy.dtype
        The dtype of floats that come back.
    """

    arrays: list[Any]
    target: np.dtype

    def finished(self, found: Array) -> Array:
        """Return a result: floats and complex numbers in the dtype of floats that come back."""
        return rounded(found, self.target)


def there(function: str, arrays: Sequence[Any]) -> There | None:
    """Return the leading arguments of a call as Arrays; None if they are on the host.

    Parameters
    ----------
    function : str
        The name of the function that was called.
    arrays : sequence of Array or Python data
        None stays None.

    Raises
    ------
    DeviceError
        If the arrays are on several devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> there("gradient", [ta.asarray([1, 2], device="cpu")])
    """
    check_given(function, arrays)
    waiting: list[Any] = [x for x in arrays if x is not None and classify(x) is None]
    known = max([x for x in waiting if isinstance(x, Array)], key=lambda x: x.device.depth, default=None)
    if known is None:  # Python data goes to the default device
        waiting = all_arrays(function, waiting or [x for x in arrays if x is not None])
        known = waiting[0]
    if not by_expressions(known):
        return None
    beside = known
    made = iter([as_array_beside(function, x, beside) for x in waiting])
    given = [None if x is None else number_beside(x, beside) if classify(x) is not None else next(made) for x in arrays]
    common_device(function, [x._signature for x in given if x is not None])
    typed = [x.dtype for x, first in zip(given, arrays) if x is not None and classify(first) is None]
    return There([None if x is None else as_read(function, x) for x in given], float_of(function, typed))


def number_beside(number: Any, x: Array) -> Array:
    """Return a Python number as a 0-d Array on the device of another one, in the dtype that NumPy gives it.

    Examples
    --------
    >>> import tilearray as ta
    >>> number_beside(1, ta.zeros(2, device="cpu"))
    Array(1, dtype=int64, device='cpu')
    """
    return full((), number, dtype=np.asarray(number).dtype, device=x.device)


def as_read(function: str, x: Array) -> Array:
    """Return an Array in the dtype in which NumPy computes: float32 for floats of 8 and 16 bits.

    Examples
    --------
    >>> import tilearray as ta
    >>> as_read("gradient", ta.zeros(2, dtype="bfloat16")).dtype
    dtype('float32')
    """
    dtypes.check_arithmetic(function, x.dtype)
    info = dtypes.info(x.dtype)
    return astype(x, dtypes.float32) if info.kind == "float" and info.bits < 32 else x
