"""The library whose arrays a client gets: ours, or a peer on a GPU, for figures beside ours. `run.py` sets it.

::

    scripts/clients einops --device cuda --library cupy
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

OURS = "tilearray"
PEERS = ("cupy", "torch")
VARIABLE = "CLIENTS_LIBRARY"


def name() -> str:
    """The library's name."""
    return os.environ.get(VARIABLE, OURS)


def on_the_host() -> bool:
    """Whether new arrays of ours are on the host."""
    return os.environ.get("TILEARRAY_DEVICE", "cpu") == "cpu"


def device() -> str | None:
    """The device that the library must be told; ours and CuPy have a default one."""
    return "cuda" if name() == "torch" else None


def maker() -> Callable[[Any], Any]:
    """What makes an array of the library, with memory of its own, from data."""
    library = importlib.import_module(name())
    if name() == "torch":
        return lambda x: library.as_tensor(np.array(x), device="cuda")
    return lambda x: library.asarray(np.array(x), copy=True)


def kind() -> type:
    """The class of the library's arrays."""
    return getattr(importlib.import_module(name()), {"cupy": "ndarray", "torch": "Tensor"}.get(name(), "Array"))


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """An array of the library on the host."""
    if name() == "torch":
        return x.cpu().numpy()
    return importlib.import_module("cupy").asnumpy(x) if name() == "cupy" else importlib.import_module(OURS).to_numpy(x)
