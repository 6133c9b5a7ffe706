"""The host backend of tilearray: plans executed by NumPy and ml_dtypes, exactly.

It receives expression bodies, loops and buffers, and knows nothing of arrays, promotion or devices. What a device has
to offer is in `tilearray.devices.Backend`; these are the functions that offer it.
"""

import sys
from types import ModuleType

from tilearray_host.kernel import bind, compile
from tilearray_host.memory import Buffer, allocate, from_numpy, to_numpy

__all__ = ["Buffer", "allocate", "bind", "compile", "from_numpy", "open_device", "to_numpy"]


def open_device(index: int) -> ModuleType:
    """Return what works on a host device: there is one, and it is this module."""
    del index
    return sys.modules[__name__]
