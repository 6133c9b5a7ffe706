"""Work in threads that start together. Results are returned, and errors of the threads are raised."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any


def in_threads(
    count: int, work: Callable[[int], object], *, interval: float | None = None, patience: float = 60
) -> list[Any]:
    """Results of `work(0)`, `work(1)`, ... which start together; what one raises is its result.

    `interval` is how often Python switches between them, `patience` how long each is waited for, both in seconds. The
    interval begins when all threads exist: to start threads under a short one takes seconds on a busy machine.
    """
    results: list[Any] = [None] * count
    together = threading.Barrier(count + 1)

    def run(number: int) -> None:
        together.wait(patience)
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    before = sys.getswitchinterval()
    for thread in threads:
        thread.start()
    sys.setswitchinterval(before if interval is None else interval)
    try:
        together.wait(patience)
        for thread in threads:
            thread.join(patience)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    return results


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns in a thread of its own, or raises."""
    (result,) = in_threads(1, lambda number: work())
    if isinstance(result, BaseException):
        raise result
    return result
