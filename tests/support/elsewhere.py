"""A device that is not the host, although its memory is: what crosses the border is copied, as for a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.engine.devices import CPU, Device


class Elsewhere:
    """The host's backend, without what a GPU lacks."""

    on_host = False
    scans_whole = True
    indexing = sorting = linear_algebra = products = matrices = factors = fourier = transforms = None

    def __getattr__(self, name: str) -> Any:
        return getattr(CPU.backend, name)

    def from_numpy(self, array: np.ndarray, *, copy: bool, stream: Any = None) -> Any:
        return CPU.backend.from_numpy(array, copy=True)

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, *, stream: Any = None) -> Any:
        return CPU.backend.from_numpy(CPU.backend.to_numpy(buffer, offset, (nbytes,), (1,), np.dtype("u1")), copy=True)[
            0
        ]

    def to_numpy(self, *view: Any) -> np.ndarray:
        return CPU.backend.to_numpy(*view).copy("K")


ELSEWHERE = Device("cuda", 7654321)
"""One device for all tests of a process: signatures are interned by the names of devices."""
