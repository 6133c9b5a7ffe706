"""What an attack tried, how its cases ended, and what went wrong."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar


@dataclass
class Outcome:
    """The counts of an attack.

    Attributes
    ----------
    attack : str
        Its name.
    device : str
    ends : Counter
        How often each way of ending was seen.
    wrong : list of str
        What must not happen, a line for each case.
    seconds : float
    seed : int
    place : str
        Where it ran: the versions, and the GPU.
    deadline : float
        When the attacks of this process begin no further case, as `time.time` says it.
    """

    deadline: ClassVar[float] = math.inf

    attack: str
    device: str
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    seed: int = 0
    place: str = ""

    def __post_init__(self) -> None:
        self._started = self._told = time.perf_counter()

    @property
    def tried(self) -> int:
        """The cases."""
        return self.ends.total()

    @property
    def in_time(self) -> bool:
        """Whether there is time for one more case."""
        return time.time() < self.deadline

    def wants(self, cases: int) -> bool:
        """Whether fewer cases than these were tried, and there is time for one more."""
        return self.tried < cases and self.in_time

    def numbers(self, cases: int) -> Iterator[int]:
        """Count cases from 0 while there is time; the caller counts how each ended."""
        while self.wants(cases):
            yield self.tried

    def count(self, end: str, cases: int) -> None:
        """Count one case, and tell a terminal the progress twice a second."""
        self.ends[end] += 1
        now = time.perf_counter()
        self.seconds = now - self._started
        if now - self._told > 0.5 and sys.stderr.isatty():
            self._told = now
            share = f"{self.tried:,} of {cases:,}"
            print(f"\r{self.attack}: {share}, {len(self.wrong)} wrong ", end="", file=sys.stderr, flush=True)

    def fail(self, line: str) -> None:
        """Note what must not happen."""
        self.wrong.append(line)

    def data(self) -> dict[str, Any]:
        """The fields, as JSON takes them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def row(self) -> tuple[str, str, str, str, str, str]:
        """The cells of the table of figures."""
        ends = ", ".join(f"{count:,} {end}" for end, count in sorted(self.ends.items()))
        kind = self.device.partition(":")[0]
        return self.attack, kind, f"{self.tried:,}", ends, f"{len(self.wrong):,}", self.place


def merged(outcomes: list[Outcome]) -> list[Outcome]:
    """Add the counts of each attack on each device."""
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in outcomes:
        total = found.setdefault((outcome.attack, outcome.device), Outcome(outcome.attack, outcome.device))
        total.ends.update(outcome.ends)
        total.wrong += outcome.wrong
        total.seconds += outcome.seconds
        total.place = "; ".join(dict.fromkeys(filter(None, [*total.place.split("; "), outcome.place])))
    return list(found.values())
