"""The host backend of tilearray: NumPy and ml_dtypes run the plans, exactly.

It receives expressions, loops and buffers. It does not know arrays, promotion or devices. `HostDevice` implements the
protocol `tilearray.engine.backend.Backend`.
"""

from __future__ import annotations

from tilearray_host.device import HOST, HostDevice

__all__ = ["HOST", "HostDevice", "open_device"]


def open_device(index: int) -> HostDevice:
    """Return the only host device."""
    del index
    return HOST
