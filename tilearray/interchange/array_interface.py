"""NumPy's array interface: the memory of an array on the host as a dictionary, for NumPy, PIL and others.

The dictionary always has strides: PIL takes memory without strides for a buffer, and asks other objects for bytes. An
array whose dtype is not NumPy's own has no interface, because NumPy would read it as raw memory: then ``np.asarray``
uses ``__array__``. The consumer keeps the array alive, and the array its memory.
"""

from __future__ import annotations

from typing import Any

from tilearray.dtypes import info
from tilearray.engine.context import RECORDINGS
from tilearray.engine.signature import ArrayBase, before_access

VERSION = 3


def describe(x: ArrayBase) -> dict[str, Any]:
    """Return the dictionary of ``__array_interface__``.

    Raises
    ------
    AttributeError
        If the array is on a GPU, or NumPy does not define its dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> found = describe(ta.zeros((2, 3), dtype="int16").T)
    >>> found["shape"], found["strides"], found["typestr"]
    ((3, 2), (2, 6), '<i2')
    """
    signature = x._signature
    if not signature.device.backend.on_host:
        raise AttributeError(f"__array_interface__: the array is on {signature.device}; write ta.to_numpy(x)")
    dtype, layout = signature.dtype, signature.layout
    if dtype.isbuiltin != 1:
        raise AttributeError(f"__array_interface__: NumPy has no {info(dtype).name} of its own; write np.asarray(x)")
    if RECORDINGS:
        before_access(x)
    return {
        "version": VERSION,
        "shape": layout.shape,
        "typestr": dtype.str,
        "data": (x._address, x._buffer.readonly or (0 in layout.strides and layout.overlaps_itself)),
        "strides": tuple([stride * signature.itemsize for stride in layout.strides]),
    }
