"""`Lock`: a reentrant lock for ``with`` blocks that an interrupt never leaves locked.

Up to Python 3.13 no interrupt arrives between the entry of a ``with`` block and its body, if a lock of Python is
entered. From 3.14 on it may: then nobody would release the lock, and other threads would wait for good. So this lock
releases itself if its entry is interrupted. `tilearray_cuda.locks` and `tilearray_host.locks` are copies, because a
backend imports nothing of the library.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info < (3, 14):
    Lock = threading.RLock
else:
    _RLock: Any = type(threading.RLock())

    class Lock(_RLock):
        """A reentrant lock; its exit is that of Python's own lock, which an interrupt cannot prevent."""

        __slots__ = ()

        def __enter__(self) -> bool:
            held = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                while self._recursion_count() > held:
                    self.release()
                raise
