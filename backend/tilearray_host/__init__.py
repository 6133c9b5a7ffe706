"""The host backend of tilearray: plans executed by NumPy and ml_dtypes, exactly.

It receives expression bodies, loops and buffers, and knows nothing of arrays, promotion or devices. What a device has
to offer is in `tilearray.engine.devices.Backend`; these are the functions that offer it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilearray_host.memory import Buffer, allocate, from_numpy, to_numpy

if TYPE_CHECKING:
    from tilearray_host.kernel import Kernel, Launch

__all__ = ["Buffer", "allocate", "bind", "compile", "from_numpy", "open_device", "to_numpy"]


def open_device(index: int) -> ModuleType:
    """Return what works on a host device: there is one, and it is this module."""
    del index
    return sys.modules[__name__]


def compile(body: Any, layout_class: Any, aligned: tuple[bool, ...]) -> Kernel:
    """Return the kernel of a body; NumPy needs no other for another layout class or alignment."""
    from tilearray_host import kernel  # arrays on their way to a GPU need none

    del layout_class, aligned
    return kernel.Kernel(body)


def bind(kernel: Kernel, loop: Any) -> Launch:
    """Fix the loop of a kernel: the result takes a stream, then a buffer (or number) and an offset each."""
    return kernel.bind(loop)
