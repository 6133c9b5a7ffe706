"""Programs of one launch that wait for each other: each one has a thread, and the threads take turns.

A program runs until its next atomic operation; then the next one of those that run has its turn. As on a GPU with few
multiprocessors, some programs run at once, and another one starts when one of them ends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from support.interpreter.mended import FaultError

PATIENCE = 1000
"""The turns of a program in a row without the end of any program, before that is an error."""


class Together:
    """A launch of programs, of which `residents` run at once.

    Parameters
    ----------
    run : callable
        ``run()``: the kernel. It finds the number of its program in `program`.
    """

    def __init__(self, run: Callable[[], Any], programs: int, residents: int) -> None:
        self._run = run
        self._waiting = deque(range(programs))
        self._residents = residents
        self._turns: deque[threading.Semaphore] = deque()
        self._own = threading.local()
        self._done = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._idle = 0

    @property
    def program(self) -> int:
        """The number of the program whose turn it is."""
        return self._own.program

    def launch(self) -> None:
        """Run all programs; raise the first error of one."""
        for _ in range(min(self._residents, len(self._waiting))):
            self._start()
        self._next()
        self._done.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Let the others run."""
        self._idle += 1
        if self._idle > PATIENCE * (len(self._turns) + 1) and self._error is None:
            self._error = FaultError("the programs of a launch wait for each other, and none ends")
        self._turns.append(self._own.turn)
        self._next()
        self._own.turn.acquire()
        if self._error is not None:
            raise FaultError("another program of the launch failed")

    def _start(self) -> None:
        turn = threading.Semaphore(0)
        self._turns.append(turn)
        threading.Thread(target=self._work, args=(self._waiting.popleft(), turn), daemon=True).start()

    def _work(self, program: int, turn: threading.Semaphore) -> None:
        turn.acquire()
        self._own.program, self._own.turn = program, turn
        try:
            with np.errstate(all="ignore"):
                if self._error is None:
                    self._run()
        except BaseException as error:  # raised again by `launch`
            self._error = self._error or error
        self._idle = 0
        if self._waiting and self._error is None:
            self._start()
        self._next()

    def _next(self) -> None:
        if self._turns:
            self._turns.popleft().release()
        else:
            self._done.release()
