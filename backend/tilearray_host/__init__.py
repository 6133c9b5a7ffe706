"""The host backend of tilearray: plans executed by NumPy and ml_dtypes, exactly.

It receives expressions, loops and buffers, and knows nothing of arrays, promotion or devices. `HostDevice` offers what
`tilearray.engine.backend.Backend` asks of a device.
"""

from __future__ import annotations

from tilearray_host.device import HOST, HostDevice

__all__ = ["HOST", "HostDevice", "open_device"]


def open_device(index: int) -> HostDevice:
    """Return the host device; there is one."""
    del index
    return HOST
