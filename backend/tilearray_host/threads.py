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
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar, cast

from tilearray_host.float_errors import quietly
from tilearray_host.locks import Lock

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


Job = Callable[[], None]


class _Helper(Thread):
    """A thread that does job after job.

    No interrupt can divide an operation of its queue. The locks of `concurrent.futures` are objects of Python: an
    interrupt in the entry of one leaves it locked, and all later calls would wait for good.
    """

    def __init__(self) -> None:
        super().__init__(name="tilearray", daemon=True)
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()

    def run(self) -> None:
        """Do all jobs before a None."""
        while True:
            job = self.jobs.get()
            if job is None:
                return
            job()
            del job  # it refers to the arrays of its call


class _Helpers:
    """The threads that help callers, made at the first call that wants them."""

    def __init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        """Forget the threads: a forked process has none of them."""
        self._count = -1
        self._threads: list[_Helper] = []
        self._lock = Lock()  # reentrant: a finalizer may call the library, or fork, while its thread holds it

    def dismiss(self) -> None:
        """End the threads: Python warns where a process with threads forks."""
        with self._lock:
            helpers, self._threads = self._threads, []
        for helper in helpers:
            helper.jobs.put(None)
        for helper in helpers:
            helper.join()

    def count(self) -> int:
        """Return the number of helpers."""
        if self._count < 0:
            self._count = most_threads() - 1
        return self._count

    def ask(self, job: Job) -> None:
        """Let every helper do a job as soon as it can; a job may never begin, and does not raise."""
        if len(self._threads) < self.count():
            with suppress(RuntimeError), self._lock:  # the interpreter ends: then there are fewer
                while len(self._threads) < self.count():
                    helper = _Helper()
                    helper.start()
                    self._threads.append(helper)
        for helper in self._threads:
            helper.jobs.put(job)


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
    _Call(run, itertools.chain(firsts, waiting), _HELPERS.count()).run()


class _Call(Generic[P]):
    """The parts that an iterator gives, which the caller runs and helpers that have time."""

    def __init__(self, run: Callable[[P], None], waiting: Iterator[P], helpers: int) -> None:
        self._run_part = run
        self._waiting = waiting
        self._lock = Lock()  # a generator runs in one thread at a time
        self._failed = False
        self._tickets = [None] * helpers  # a helper that takes one begins; the caller takes the others at the end
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run(self) -> None:
        """Run all parts; raise the error of one that fails."""
        begun = len(self._tickets)
        try:
            _HELPERS.ask(self._help)
            self._work()
        except BaseException:  # an interrupt between two parts, or while helpers are asked, ends the helpers as well
            self._failed = True
            raise
        finally:
            while self._takes_ticket():
                begun -= 1
            errors = [self._ended.get() for _ in range(begun)]  # they write to memory of the caller
            del self._run_part, self._waiting  # a helper that is busy has the call in its queue, but not its arrays
        for error in errors:
            if error is not None:
                raise error

    def _work(self) -> None:
        while not self._failed:
            with self._lock:
                part = next(self._waiting, _END)
            if part is _END:
                return
            self._run_part(cast("P", part))

    def _help(self) -> None:
        if not self._takes_ticket():
            return
        error = None
        try:
            quietly(self._work)
        except BaseException as found:
            self._failed, error = True, found
        self._ended.put(error)

    def _takes_ticket(self) -> bool:
        try:
            self._tickets.pop()
        except IndexError:
            return False
        return True
