"""Pickles of arrays.

A pickle of protocol 5 lends the memory of a host array without a copy, as NumPy's do. A dtype of ml_dtypes travels as
the unsigned integer of the same width, because Python's buffers cannot name it. Memory on a GPU is copied to the host,
and from there to the device of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilearray.dtypes import as_dtype, info
from tilearray.engine.array_type import A
from tilearray.engine.signature import ArrayBase, from_host
from tilearray.functions.conversion import to_device, to_numpy
from tilearray.interchange.capsules import CARRIERS
from tilearray.interchange.numpy import share_or_copy


def parts(x: A) -> tuple[Callable[..., A], tuple[np.ndarray, str, str]]:
    """Return the function that makes an equal array, and its arguments: ``__reduce__`` of an array."""
    return rebuild, (carried(x), info(x.dtype).name, str(x.device))


def carried(x: ArrayBase) -> np.ndarray:
    """Return the elements as an ndarray of a dtype of NumPy's own; it shares the memory of an array on the host."""
    return to_numpy(x).view(CARRIERS.get(x.dtype, x.dtype))


def rebuild(carrier: np.ndarray, dtype: str, device: Any) -> Any:
    """Return the array that a pickle describes. It shares the carrier's memory if that can be written."""
    array = carrier if carrier.flags.writeable else carrier.copy()
    array = share_or_copy(array.view(as_dtype(dtype)), None, "pickle.loads")
    return to_device(from_host(array, ArrayBase._public), device)
