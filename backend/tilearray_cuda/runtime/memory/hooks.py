"""Functions that are told of device memory: which arrays take it, and what comes from the driver and goes back.

A call that finds its memory in a free list asks nobody, so functions would not hear of it. While a function listens,
the allocators forget which free list serves a size; then each allocation passes here. Without listeners nothing is
slower.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import after_fork


class MemoryEvent(NamedTuple):
    """What a memory hook is told."""

    kind: str
    """``"take"``: an array takes memory. ``"obtain"`` and ``"release"``: a block comes from the driver's pool, or from
    the allocator in use, and goes back. ``"refuse"``: there is too little memory."""
    nbytes: int
    """The array's bytes, or the block's."""
    pointer: int
    """The address; 0 for ``"refuse"``."""
    stream: int
    """The handle of the stream that orders the memory."""
    device: int
    """The index of the GPU."""


Hook = Callable[[MemoryEvent], object]

active: tuple[Hook, ...] = ()
"""The functions that listen; a new tuple at each change, so that a reader sees one state."""
_lock = Lock()
_telling = threading.local()


def _in_child() -> None:
    global _lock
    _lock = Lock()


after_fork.append(_in_child)


def add(hook: Hook) -> None:
    """Let a function listen."""
    global active
    with _lock:
        active = (*active, hook)


def remove(hook: Hook) -> None:
    """Let a function listen once less."""
    global active
    with _lock:
        left = list(active)
        left.remove(hook)
        active = tuple(left)


def tell(*event: Any) -> None:
    """Tell all listeners. What a listener allocates itself is not told."""
    if not active or getattr(_telling, "now", False):
        return
    _telling.now = True
    try:
        for hook in active:
            hook(MemoryEvent(*event))
    finally:
        _telling.now = False
