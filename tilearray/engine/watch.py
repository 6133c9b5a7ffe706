"""Watching: functions that see each new plan and each launch of a new program, and may replace what it runs.

They are asked when something is planned, never in a call that finds its plan. ``TILEARRAY_DEBUG`` sets them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Watch:
    """The functions that watch; None for none.

    Attributes
    ----------
    plan : ``plan(plan, keys)`` sees a plan and the keys of its operands, and may replace its `call`
    launch : ``launch(expression, loop, kernel, device, launch)`` returns the launch that runs
    lists : ``lists(expression, loops, kernel, device, launch)`` does so for a launch over a list; `kernel` is that of a
        single member
    """

    __slots__ = ("launch", "lists", "plan")

    def __init__(self) -> None:
        self.plan: Callable[..., None] | None = None
        self.launch: Callable[..., Callable[..., Any]] | None = None
        self.lists: Callable[..., Callable[..., Any]] | None = None


WATCH = Watch()
