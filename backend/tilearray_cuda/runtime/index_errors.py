"""Words of pinned host memory in which kernels report an index outside of its axis.

A kernel cannot raise. It writes an index that is outside of its axis to such a word. Correct indices cost nothing: the
host reads the word without a copy, after a wait for the stream that it needs in any case. A word without a report
holds `NOTHING`.

A kernel that counts elements reports their number in such a word as well (`Numbers`).
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilearray_cuda.errors import CaptureError, DeferredIndexError
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import STREAMS, Current, after_fork, api, call, is_capturing, torch_captures

NOTHING = 0
"""Not a report: index 0 is never outside, because an axis that a kernel indexes has an element 0."""
PITCH = 16
"""Bytes from word to word: a kernel requires operands at multiples of 16."""
PAGE = 4096
_CHECK = (
    "indexing: a CUDA graph captures stream {:#x}, and a check of index arrays must wait; write "
    "ta.set_index_check('deferred') or ta.set_index_check('clip') before the capture"
)
_NUMBER = (
    "indexing: a CUDA graph captures stream {:#x}, and a selection by a mask must wait for the number of its elements; "
    "select before or after the capture, or write ta.where"
)


class Word:
    """One word, as an operand of a kernel: a launch reads `pointer` and `stream`, as of a buffer."""

    __slots__ = ("cell", "pointer", "stream")

    def __init__(self, pointer: int, stream: int = 0) -> None:
        self.pointer = pointer
        self.stream = stream
        self.cell = ctypes.c_int64.from_address(pointer)


class IndexErrors:
    """The words of one GPU. A word in use belongs to one caller only."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._unused: list[Word] = []
        self._deferred: Word | None = None
        self._renew_lock()
        after_fork.append(self._renew_lock)

    def _renew_lock(self) -> None:
        """Make a new lock: after a fork, a thread that no longer exists may hold the old one."""
        self._lock = Lock()

    def take(self, count: int, stream: int, refusal: str = _CHECK) -> list[Word]:
        """Return empty words for kernels on a stream; the caller gives them to `read`.

        Raises
        ------
        CaptureError
            If the stream is being captured, because a captured stream cannot be waited for. `refusal` is its message,
            with a place for the stream.
        """
        if (stream and is_capturing(stream)) or torch_captures():
            raise CaptureError(refusal.format(stream))
        words: list[Word] = []
        for _ in range(count):
            word = self._word()
            word.stream = stream
            word.cell.value = NOTHING
            words.append(word)
        return words

    def read(self, words: list[Word], stream: int) -> list[int | None]:
        """Wait for a stream; return the reports of its kernels in `words`, and take the words back."""
        with Current(self._context):
            call(api.cuStreamSynchronize, STREAMS[stream])
        found: list[int | None] = []
        for word in words:
            value = word.cell.value
            found.append(None if value == NOTHING else value)
        self._unused += words
        return found

    def deferred(self, count: int, stream: int) -> list[Word]:
        """Return the word that `check` reads, as operands of kernels on a stream."""
        word = self._deferred
        if word is None:
            with self._lock:
                word = self._deferred or self._word()
                if self._deferred is None:
                    word.cell.value = NOTHING
                    self._deferred = word
        if word.stream != stream:
            word = self._deferred = Word(word.pointer, stream)
        return [word] * count

    def check(self) -> None:
        """Raise if a deferred check has failed since the last call. The caller has waited for the device."""
        word = self._deferred
        if word is None or word.cell.value == NOTHING:
            return
        index, word.cell.value = word.cell.value, NOTHING
        raise DeferredIndexError(
            f"indexing: an index array held {index}, outside of its axis, in an earlier call, which used the nearest "
            "element; write ta.set_index_check('raise') to find the call"
        )

    def _word(self) -> Word:
        try:
            return self._unused.pop()
        except IndexError:
            pass
        with Current(self._context):
            flags: Any = api.CU_MEMHOSTALLOC_PORTABLE | api.CU_MEMHOSTALLOC_DEVICEMAP
            page = int(call(api.cuMemHostAlloc, PAGE, flags))
        self._unused += [Word(page + start) for start in range(PITCH, PAGE, PITCH)]
        return Word(page)


class Numbers:
    """The words in which kernels report how many elements they found."""

    def __init__(self, words: IndexErrors) -> None:
        self._words = words

    def take(self, stream: int) -> Word:
        """Return an empty word for a kernel on a stream; CaptureError if the stream is being captured."""
        (word,) = self._words.take(1, stream, _NUMBER)
        return word

    def read(self, word: Word, stream: int) -> int:
        """Wait for a stream; return the number in the word, and take the word back.

        Indices outside of their axis that earlier kernels reported are an error then.
        """
        (found,) = self._words.read([word], stream)
        self._words.check()
        return found or 0

    def give_back(self, word: Word, stream: int) -> None:
        """Take back a word of a call that failed. A kernel that was launched may write it, so wait for the stream."""
        self._words.read([word], stream)
