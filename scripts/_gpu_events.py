"""The events of a file of tests: its process writes each as a line of JSON at once, so a kill loses no message.

`python scripts/_gpu_events.py EVENTS FILE` runs a file with pytest and appends to EVENTS. Tests that have an outcome
there do not run again; with `--alone` those run that failed, and those that are marked `whole_gpu`. `Story` is what the
events say, and `text_of` shows it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINES, LAST_LINES = 60, 10
"""The lines of a failure that the text shows: the first ones, and the last ones of a longer failure."""
AGAIN = 20
"""The failed tests of a file that run once more alone, at most."""
BAD = ("failed", "hung", "died")
LOST_CONTEXT = (
    *("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_MISALIGNED_ADDRESS"),
    *("CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_ASSERT", "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    *("illegal memory access", "device-side assert", "misaligned address", "unspecified launch failure"),
)
"""Errors after which every call of a process fails: the next test needs a new process."""


@dataclass
class Test:
    """A test: its outcome (empty while it runs), its message, and its outcome in a process without others."""

    outcome: str = ""
    seconds: float = 0.0
    text: str = ""
    alone: str = ""


@dataclass
class Story:
    """What the events say about a file.

    Attributes
    ----------
    tests : those that began, by name, in order
    count, whole : the number of collected tests, and the names of those that need the memory of a whole GPU
    current : the test that has begun and not ended
    broken : messages that belong to no test: of the collection, or of the process's end
    stopped : whether the last process asks for a new one
    finished, seconds : whether nothing is left to run beside others, and how long the processes took together
    """

    tests: dict[str, Test] = field(default_factory=dict)
    count: int = 0
    whole: list[str] = field(default_factory=list)
    current: str | None = None
    broken: list[str] = field(default_factory=list)
    stopped: bool = False
    finished: bool = False
    seconds: float = 0.0

    def named(self, *outcomes: str) -> list[str]:
        """Return the tests with one of these outcomes."""
        return [name for name, test in self.tests.items() if test.outcome in outcomes]

    @property
    def bad(self) -> bool:
        return bool(self.broken or self.named(*BAD))

    @property
    def complete(self) -> bool:
        """Return whether all tests have an outcome."""
        return self.finished and not self._whole_left()

    def to_run_alone(self) -> list[str]:
        """Return the tests that need a whole GPU, and failed ones: another process's memory may be what failed them."""
        failed = [name for name in self.named("failed", "died")[:AGAIN] if not self.tests[name].alone]
        return self._whole_left() + failed

    def _whole_left(self) -> list[str]:
        return [name for name in self.whole if name not in self.tests or not self.tests[name].outcome]


def story_of(events: Path) -> Story:
    """Read a file of events; a line that a kill cut off is left out."""
    story, begun, last = Story(), 0.0, 0.0
    for line in events.read_text(encoding="utf-8").splitlines() if events.exists() else ():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event["event"] == "run":
            story.seconds += last - begun
            begun = event["time"]
        last = event["time"]
        _take(story, event)
    story.seconds += last - begun
    return story


def _take(story: Story, event: dict[str, Any]) -> None:
    kind, alone, name = event["event"], event.get("alone", False), event.get("test")
    if kind == "run":
        story.stopped, story.current = False, None
    elif kind == "collected" and not alone:
        story.count, story.whole = event["count"], event.get("whole", [])
    elif kind == "began":
        story.current = name
        story.tests.setdefault(name, Test())
    elif kind == "failure":
        story.tests[name].text = event["text"]
    elif kind == "ended":
        story.current = None
        test = story.tests.setdefault(name, Test())
        if alone:
            test.alone = event["outcome"]
        if not alone or name in story.whole:
            test.outcome, test.seconds = event["outcome"], event["seconds"]
            test.text = event.get("text") or test.text
    elif kind == "broken":
        story.broken.append(event["text"])
    elif kind == "stopped":
        story.stopped = True
    elif kind == "finished":
        story.finished = True


def append(events: Path, **event: Any) -> None:
    """Write one event, on a line of its own even after a line that was cut off."""
    with events.open("ab+") as file:
        file.seek(max(0, file.tell() - 1))
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + json.dumps({**event, "time": time.time()}).encode() + b"\n")


# ---------------------------------------------------------------------- text


def counts_of(story: Story) -> str:
    """Return the counts and the seconds as a line."""
    counts = Counter(test.outcome for test in story.tests.values() if test.outcome)
    parts = [f"{counts[name]} {name}" for name in ("passed", "failed", "hung", "died", "skipped") if counts[name]]
    broken = [f"{len(story.broken)} broken"] if story.broken else []
    done = sum(counts.values())
    rest = [f"{story.count - done} not run"] if story.count > done else []
    return f"{', '.join(parts + broken + rest) or 'no tests'}, {story.seconds:.1f} s"


def short(name: str) -> str:
    """Return a test's name without the folder and the file."""
    return name.partition("::")[2] or name


def text_of(name: str, story: Story) -> str:
    """Return the results of a file: counts, messages, reasons of skips, the slowest tests."""
    where = f" in {short(story.current)}" if story.current else ""
    lines = [f"{name}: {counts_of(story)}", "finished" if story.complete else f"not finished{where}"]
    for text in story.broken:
        lines += ["", "BROKEN", *shown(text)]
    for each, test in story.tests.items():
        if test.outcome in BAD or (test.text and not test.outcome):
            alone = f"; alone: {test.alone}" if test.alone else ""
            lines += ["", f"{(test.outcome or 'failed').upper()} {short(each)}, {test.seconds:.1f} s{alone}"]
            lines += shown(test.text)
    reasons = Counter(story.tests[each].text for each in story.named("skipped"))
    lines += ["", "skipped"] * bool(reasons) + [f"  {count}: {reason}" for reason, count in reasons.most_common()]
    slowest = sorted(story.tests.items(), key=lambda item: -item[1].seconds)[:5]
    slow = [f"  {test.seconds:.1f} s {short(each)}" for each, test in slowest if test.seconds >= 1]
    return "\n".join([*lines, *(["", "slowest", *slow] if slow else [])]) + "\n"


def shown(text: str) -> list[str]:
    """Return the lines of a message that the text shows."""
    lines = text.rstrip().splitlines()
    if len(lines) <= LINES + LAST_LINES:
        return lines
    left_out = len(lines) - LINES - LAST_LINES
    return [*lines[:LINES], f"... {left_out} lines ...", *lines[-LAST_LINES:]]


# ---------------------------------------------------------------------- the process of a file


class Recorder:
    """A plugin of pytest: chooses the tests, and writes the events."""

    def __init__(self, events: Path, alone: bool, part: Sequence[int], memory: Sequence[int]) -> None:
        self.events, self.alone, self.part, self.memory = events, alone, part, memory
        self.outcome, self.text, self.seconds = "passed", "", 0.0
        self.session: Any = None

    def write(self, event: str, **rest: Any) -> None:
        append(self.events, event=event, **rest, **({"alone": True} if self.alone else {}))

    def pytest_sessionstart(self, session: Any) -> None:
        self.session = session

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        part, parts = self.part
        items[:] = items[part::parts]
        whole = [item.nodeid for item in items if item.get_closest_marker("whole_gpu")]
        self.write("collected", count=len(items), whole=whole)
        story = story_of(self.events)
        alone, not_now = story.to_run_alone(), {*whole, *(name for name, test in story.tests.items() if test.outcome)}
        items[:] = [item for item in items if (item.nodeid in alone if self.alone else item.nodeid not in not_now)]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write("broken", text=report.longreprtext)
        elif report.skipped:
            self.write("ended", test=report.nodeid, outcome="skipped", seconds=0.0, text=reason_of(report))

    def pytest_collection_finish(self) -> None:
        if self.memory and not self.alone:
            limit_memory(*self.memory)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.outcome, self.text, self.seconds = "passed", "", 0.0
        self.write("began", test=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds += report.duration
        if report.failed:
            self.outcome = "failed"
            self.text += f"{report.longreprtext}\n"
            self.write("failure", test=report.nodeid, text=self.text)
        elif report.skipped and self.outcome == "passed":
            self.outcome, self.text = "skipped", reason_of(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        reason = {"text": self.text} if self.outcome == "skipped" else {}  # a failure's text is written
        self.write("ended", test=nodeid, outcome=self.outcome, seconds=self.seconds, **reason)
        lost = [error for error in LOST_CONTEXT if self.outcome == "failed" and error in self.text]
        if lost:
            self.write("stopped")
            self.session.shouldstop = f"{lost[0]}: the rest needs a new process"


def reason_of(report: Any) -> str:
    """Return why a test or a file is skipped."""
    if hasattr(report, "wasxfail"):
        return f"xfail: {report.wasxfail}"
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")


def limit_memory(share: int, total: int) -> None:
    """Limit what tilearray and torch hold on the first GPU, in bytes; variables of the environment limit the others."""
    tilearray, torch = sys.modules.get("tilearray"), sys.modules.get("torch")
    if tilearray is not None and tilearray.cuda.device_count():
        tilearray.cuda.set_memory_limit(share // 2, "cuda:0")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(share / 4 / total, 0)


def main() -> int:
    """Run a file of tests."""
    top = argparse.ArgumentParser(description=__doc__)
    top.add_argument("events", type=Path)
    top.add_argument("file")
    top.add_argument("--alone", action="store_true")
    top.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("PART", "PARTS"))
    top.add_argument("--memory", type=int, nargs=2, default=(), metavar=("SHARE", "TOTAL"))
    chosen = top.parse_args()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the process that started it

    import pytest

    options = ["-q", "--no-header", "--tb=short", "-r", "N", "-p", "no:cacheprovider"]
    recorder = Recorder(chosen.events, chosen.alone, chosen.part, chosen.memory)
    return int(pytest.main([*options, chosen.file], [recorder]))


if __name__ == "__main__":
    sys.exit(main())
