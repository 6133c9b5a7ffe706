"""Ctrl-C at every bytecode of a piece of work, one after the other, in the way in which Python delivers it.

A signal sets a flag, and Python looks at the flag at some bytecodes only. A trace function that raises would raise
between bytecodes where no signal ever does, and so does one that is called again once the flag is set. This one ends
the tracing and then sets the flag, with no such bytecode of its own behind it.
"""

from __future__ import annotations

import _thread
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any


def interrupted_everywhere(work: Callable[[], object]) -> Iterator[tuple[int, bool]]:
    """Run `work` again and again, with an interrupt that arrives at its first bytecode, its second, and so on.

    Yields the number of the bytecode, and whether a KeyboardInterrupt came out of the work; a finalizer swallows it.
    What an interrupt leaves to be made anew may lengthen the next run: the first run, without one, has the last number.
    """
    interrupted(lambda: None, 0)  # the first trace of a process sees no bytecode in Python 3.12
    last, _ = interrupted(work, 0)
    for target in range(1, last + 1):
        yield target, interrupted(work, target)[1]


def interrupted(work: Callable[[], object], target: int) -> tuple[int, bool]:
    """Run `work` with an interrupt at one bytecode; return how many there were until then, and whether it came out."""
    seen = 0
    interrupt: dict[int, None] = defaultdict(_thread.interrupt_main)

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal seen
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == target:
                sys.settrace(None)
                interrupt[target]  # a subscript, behind which Python does not look at signals as it does behind a call
        return trace

    hook, raised = sys.unraisablehook, False
    sys.unraisablehook = lambda _: None
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        try:
            sys.settrace(trace)
            work()
        finally:
            sys.settrace(None)
    except KeyboardInterrupt as error:
        raised = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        error.__traceback__ = None
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, handler)
    return seen, raised
