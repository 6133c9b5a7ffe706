"""Words of pinned host memory in which kernels say that something was wrong.

A kernel cannot raise. Where it meets an index outside of its axis it leaves the index in such a word, which costs
nothing as long as all is well: the host reads it when it has waited for the stream anyway, without a copy. A word that
was not touched holds `NOTHING`.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, Any

from tilearray_cuda.errors import CaptureError, DeferredIndexError
from tilearray_cuda.runtime.driver import STREAMS, Current, after_fork, api, call, is_capturing, torch_captures

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice

NOTHING = 0
"""No index outside of its axis: every axis that is looked into has an element 0."""
PITCH = 16
"""Bytes from word to word: a kernel counts on operands at multiples of 16."""
PAGE = 4096


class Word:
    """One word, as a kernel's operand: `pointer` and `stream` are what a launch asks of a buffer."""

    __slots__ = ("cell", "pointer", "stream")

    def __init__(self, pointer: int, stream: int = 0) -> None:
        self.pointer = pointer
        self.stream = stream
        self.cell = ctypes.c_int64.from_address(pointer)


class IndexErrors:
    """The words of one device. A word in use is in nobody else's hands."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._unused: list[Word] = []
        self._deferred: Word | None = None
        self._renew_lock()
        after_fork.append(self._renew_lock)

    def _renew_lock(self) -> None:
        """A lock that no thread holds: in a forked child the old one may be a thread's that is not there."""
        self._lock = threading.Lock()

    def take(self, count: int, stream: int) -> list[Word]:
        """Return untouched words for kernels on a stream, to be given to `read`.

        Raises
        ------
        CaptureError
            If the stream is being captured: nothing can be waited for.
        """
        if is_capturing(stream) or torch_captures():
            raise CaptureError(
                f"indexing: stream {stream:#x} is being captured into a CUDA graph, and a check of index arrays waits; "
                "write ta.set_index_check('deferred') or ta.set_index_check('clip') before the capture"
            )
        words = [self._word() for _ in range(count)]
        for word in words:
            word.stream = stream
            word.cell.value = NOTHING
        return words

    def read(self, words: list[Word], stream: int) -> list[int | None]:
        """Wait for a stream; return what kernels on it left in words, which are given back."""
        with Current(self._device.context):
            call(api.cuStreamSynchronize, STREAMS[stream])
        found = [None if (value := word.cell.value) == NOTHING else value for word in words]
        self._unused += words
        return found

    def deferred(self, count: int, stream: int) -> list[Word]:
        """Return the word that `check` looks at, as operands of kernels on a stream."""
        with self._lock:
            if self._deferred is None:
                word = self._word()
                word.cell.value = NOTHING
                self._deferred = word
        return [Word(self._deferred.pointer, stream) for _ in range(count)]

    def check(self) -> None:
        """Raise if a deferred check has failed since the last call; the device has been waited for."""
        word = self._deferred
        if word is None or word.cell.value == NOTHING:
            return
        index, word.cell.value = word.cell.value, NOTHING
        raise DeferredIndexError(
            f"indexing: an index array held {index}, which is outside of its axis; the nearest element was taken since "
            "the last call that waited; write ta.set_index_check('raise') to find where"
        )

    def _word(self) -> Word:
        try:
            return self._unused.pop()
        except IndexError:
            pass
        with Current(self._device.context):
            flags: Any = api.CU_MEMHOSTALLOC_PORTABLE | api.CU_MEMHOSTALLOC_DEVICEMAP
            page = int(call(api.cuMemHostAlloc, PAGE, flags))
        self._unused += [Word(page + start) for start in range(PITCH, PAGE, PITCH)]
        return Word(page)
