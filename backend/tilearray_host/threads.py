"""The parts of one call on several threads: NumPy releases the interpreter lock while it computes.

The parts are independent, and each is computed as it would be alone, so the bits are those of one thread. The calling
thread takes part after part, and so do helpers from a pool. The caller does not wait for a helper that has not begun:
on a busy machine it does all the work itself.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, TypeVar, cast

from tilearray_host.float_errors import quietly

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

P = TypeVar("P")
ENVIRONMENT_VARIABLE = "TILEARRAY_THREADS"
MOST = 4
"""The most threads of a call, if the variable does not say it: more gain little where memory is the bound."""
ELEMENTS = 2**19
"""The elements from which a call uses several threads: to wake one takes some ten microseconds."""
_END = object()


def most_threads() -> int:
    """Return the most threads of a call: the value of TILEARRAY_THREADS, or the number of processors up to `MOST`.

    Raises
    ------
    ValueError
        If the variable is not a positive number.
    """
    text = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if not text:
        available = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
        return min(MOST, len(available(0)) if available else os.cpu_count() or 1)
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ValueError(f"{ENVIRONMENT_VARIABLE}: expected a number of threads from 1 on, got {text!r}; write 1 or 4")
    return int(text)


class _Helpers:
    """The threads that help callers, made at the first call that wants them."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        """Forget the threads: a forked process has none of them."""
        self._count = -1
        self._pool: ThreadPoolExecutor | None = None
        self._lock = RLock()  # a finalizer may call the library, or fork, while its thread holds it

    def dismiss(self) -> None:
        """End the threads: Python warns where a process with threads forks."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def count(self) -> int:
        """Return the number of helpers."""
        if self._count < 0:
            self._count = most_threads() - 1
        return self._count

    def begin(self, work: Callable[[], None], begun: list[Future[None]]) -> None:
        """Ask all helpers to do some work as soon as they can; add the future of each to a list."""
        if count := self.count():
            with suppress(RuntimeError), self._lock:  # the interpreter ends: then there are fewer
                pool = self._pool
                if pool is None:
                    from concurrent.futures import ThreadPoolExecutor

                    pool = self._pool = ThreadPoolExecutor(count, "tilearray")
                for _ in range(count):
                    begun.append(pool.submit(quietly, work))


_HELPERS = _Helpers()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_HELPERS.dismiss, after_in_child=_HELPERS.start_over)


def are_several(elements: int) -> bool:
    """Return whether the parts of a call of some elements run in several threads."""
    return elements >= ELEMENTS and _HELPERS.count() > 0


def in_threads(run: Callable[[P], None], parts: Iterable[P], elements: int) -> None:
    """Run independent parts, which have some elements in all: on several threads, if there are many.

    If a part raises, the parts that have not begun are left out.

    Examples
    --------
    >>> found = []
    >>> in_threads(found.append, range(3), 2**20)
    >>> sorted(found)
    [0, 1, 2]
    """
    if not are_several(elements):
        for part in parts:
            run(part)
        return
    waiting = iter(parts)
    firsts = list(itertools.islice(waiting, 2))
    if len(firsts) < 2:
        for part in firsts:
            run(part)
        return
    _shared(run, itertools.chain(firsts, waiting))


def _shared(run: Callable[[P], None], waiting: Iterator[P]) -> None:
    """Run the parts that an iterator gives, in this thread and in those of the helpers that have time."""
    lock, failed = Lock(), list[bool]()
    helpers: list[Future[None]] = []

    def work() -> None:
        try:
            while not failed:
                with lock:  # a generator runs in one thread at a time
                    part = next(waiting, _END)
                if part is _END:
                    return
                run(cast("P", part))
        except BaseException:
            failed.append(True)
            raise

    try:
        _HELPERS.begin(work, helpers)
        work()
    except BaseException:  # an interrupt between two parts, or while helpers are asked, ends the helpers as well
        failed.append(True)
        raise
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.exception()  # waits: it writes to memory of the caller
    for helper in begun:
        helper.result()
