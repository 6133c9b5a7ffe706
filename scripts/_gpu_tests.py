"""`scripts/gpu tests`: each file of tests/gpu in a process of its own, or a long one in several, some at a time.

Each process writes its events at once (`_gpu_events.py`), and DIR/NAME.txt follows them, so whoever ends this command,
even with SIGKILL, loses no message. Tests that are marked `whole_gpu` run at the end, alone and without limits of
memory, and failed tests run once more there: what passes then failed because of the other processes.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from _gpu_events import BAD, Story, append, counts_of, short, story_of, text_of
from _gpu_processes import PAUSE, ROOT, end_group, environment_of, gpus, processors, say, smallest_memory

FOLDER = ROOT / "tests" / "gpu"
GIB = 1 << 30
PROCESSES, MEMORY, CONTEXT = 14, 5 * GIB, GIB
"""By default: the most processes, the least memory for each, and what the context and kernels of one take."""
PARTS = {
    "test_gpu_all_casts": 2, "test_gpu_gradients": 2, "test_gpu_numpy_names": 2, "test_gpu_op_properties": 8,
    "test_gpu_products": 2, "test_gpu_reductions": 2, "test_gpu_rows": 2, "test_gpu_scans": 4, "test_gpu_scatter": 2,
    "test_gpu_selection": 4, "test_gpu_sorting": 3, "test_gpu_special": 3, "test_gpu_tiles": 2, "test_odd_layouts": 2,
}  # fmt: skip
"""In how many parts, each as if it were a file, a long file is run."""
OUTSIDE = 120
"""Seconds that imports, the collection or the end of a process may take, if a test may not take more."""


class OutOfTimeError(Exception):
    """The command's time ends, or someone ends the command."""


@dataclass
class File:
    """A file of tests or a part of one, and where its events, its text and what it printed are."""

    path: Path
    folder: Path
    part: int
    parts: int

    def __post_init__(self) -> None:
        self.name = self.path.stem + (f"-{self.part + 1}of{self.parts}" if self.parts > 1 else "")
        self.events, self.text, self.log = (self.folder / f"{self.name}{end}" for end in (".events", ".txt", ".log"))

    def story(self) -> Story:
        return story_of(self.events)

    def write(self) -> None:
        """Write the text anew, and whole even if this process is killed meanwhile."""
        unfinished = self.text.with_suffix(".unfinished")
        unfinished.write_text(text_of(self.name, self.story()), encoding="utf-8")
        unfinished.replace(self.text)


@dataclass
class Child:
    """The process of a file: when it began, where its log begins, the length of its events, and when they last grew."""

    file: File
    alone: bool
    process: subprocess.Popen[bytes]
    began: float
    printed: int
    length: int
    heard: float


class Tests:
    """The files that wait and those that run."""

    def __init__(self, files: Sequence[File], chosen: argparse.Namespace) -> None:
        self.files, self.chosen, self.children = files, chosen, list[Child]()
        self.waiting: deque[File] = deque()
        self.known: set[tuple[str, str]] = set()
        self.began, self.said = time.monotonic(), time.monotonic()
        self.total = smallest_memory()
        self.processes = chosen.processes or default_processes(self.total)
        self.share = int(0.95 * self.total / self.processes) - CONTEXT if self.total else 0

    def run(self) -> None:
        """Run what is not finished, several at a time, and then alone what needs that."""
        share = f" of {self.share / GIB:.1f} GiB of the GPU's memory" if self.share > 0 else ""
        say(f"{len(self.files)} files, {self.processes} processes{share}; results: {self.chosen.out}")
        self.run_all([file for file in self.files if not file.story().finished], alone=False)
        self.run_all([file for file in self.files if file.story().to_run_alone()], alone=True)

    def run_all(self, files: Sequence[File], alone: bool) -> None:
        self.waiting.extend(files)
        while self.waiting or self.children:
            while self.waiting and len(self.children) < (1 if alone else self.processes):
                self.children.append(self.start(self.waiting.popleft(), alone))
            time.sleep(PAUSE)
            for child in list(self.children):
                self.look(child)
            self.tell()
            if time.monotonic() - self.began > 60 * self.chosen.minutes:
                raise OutOfTimeError(f"{self.chosen.minutes:g} minutes are over")

    def start(self, file: File, alone: bool) -> Child:
        command = [sys.executable, str(ROOT / "scripts" / "_gpu_events.py"), str(file.events), str(file.path)]
        command += ["--part", str(file.part), str(file.parts)]
        if alone:
            command += ["--alone"]
        elif self.share > 0:
            command += ["--memory", str(self.share), str(self.total)]
        append(file.events, event="run", alone=alone)
        with file.log.open("ab") as log:
            printed = log.tell()
            process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment(alone), stdout=log, stderr=log, process_group=0
            )
        now = time.monotonic()
        return Child(file, alone, process, now, printed, file.events.stat().st_size, now)

    def environment(self, alone: bool) -> dict[str, str]:
        found = environment_of(ROOT, ROOT / "backend", ROOT / "tests")
        if not alone:
            for name in ("OMP_NUM_THREADS", "TILEARRAY_THREADS"):
                found.setdefault(name, str(max(1, processors() // self.processes)))
            if self.share > 0:
                found["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{self.share / 4 / self.total:.4f}"
                found["CUPY_GPU_MEMORY_LIMIT"] = str(self.share // 4)
        return found

    def look(self, child: Child) -> None:
        """Take note of what a process wrote, and end it at a limit."""
        now, length = time.monotonic(), child.file.events.stat().st_size
        if length != child.length:
            child.length, child.heard = length, now
            child.file.write()
        status = child.process.poll()
        if status is not None:
            self.ended(child, status)
        elif now - child.heard > (limit := self.limit_of(child)):
            self.kill(child, with_stack=True)
            self.died(child, "hung", f"nothing ended for {limit:g} s")
        elif now - child.began > self.chosen.limit:
            story = child.file.story()
            self.kill(child)
            self.close(child, f"its {self.chosen.limit:g} s are over, in {short(story.current or 'no test')}")

    def limit_of(self, child: Child) -> float:
        """Return how many seconds may pass without an event."""
        limit = self.chosen.test_limit
        if time.monotonic() - child.heard > limit and not child.file.story().current:
            return max(limit, OUTSIDE)
        return limit

    def ended(self, child: Child, status: int) -> None:
        """Take note of a process that ended by itself."""
        story = child.file.story()
        if status in (0, 1, 5) or (status == 2 and story.broken):  # 5: nothing was left to run
            if not child.alone:
                append(child.file.events, event="finished")
            self.close(child)
        elif story.stopped:
            again = bool(story.to_run_alone()) if child.alone else True
            self.close(child, "the next test needs a new process" if again else "", again=again)
        else:
            self.died(child, "died", f"the process ended with status {status}")

    def died(self, child: Child, outcome: str, why: str) -> None:
        """Note which test a process was in, and let another process run the rest of the file."""
        file, story = child.file, child.file.story()
        alone = {"alone": True} if child.alone else {}
        text = f"{why}\n{last_words(file.log, child.printed)}"
        seconds = time.monotonic() - child.heard
        if story.current:
            append(file.events, event="failure", test=story.current, text=text, **alone)
            append(file.events, event="ended", test=story.current, outcome=outcome, seconds=seconds, **alone)
        else:
            append(file.events, event="broken", text=text)
            if not child.alone:
                append(file.events, event="finished")
        where = f", in {short(story.current)}" if story.current else ""
        again = bool(story.current) and (not child.alone or bool(file.story().to_run_alone()))
        self.close(child, f"{why}{where}", again=again)

    def close(self, child: Child, why: str = "", again: bool = False) -> None:
        """Write the text, say how it went, and queue the rest of the file."""
        self.children.remove(child)
        if again:
            self.waiting.appendleft(child.file)
        child.file.write()
        self.summarise()
        story = child.file.story()
        done = sum(file.story().complete for file in self.files)
        say(
            f"[{done}/{len(self.files)}] {child.file.name}{' alone' if child.alone else ''}: "
            f"{counts_of(story)}{'; ' if why else ''}{why}"
        )
        for name in story.named(*BAD):
            test = story.tests[name]
            line = f"    {test.outcome}{f', alone {test.alone}' if test.alone else ''}: {short(name)}"
            if (child.file.name, line) not in self.known:
                self.known.add((child.file.name, line))
                say(line)

    def kill(self, child: Child, with_stack: bool = False) -> None:
        """End a process and those that it started, after pytest's faulthandler printed its stack if that is wanted."""
        if with_stack:
            child.process.send_signal(signal.SIGABRT)
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(3)
        end_group(child.process)

    def stop(self) -> None:
        """End all processes; each text says which test it was in, and `--resume` begins with that test."""
        for child in self.children:
            end_group(child.process)
            child.file.write()
            say(f"    {child.file.name} was in {short(child.file.story().current or 'no test')}")
        self.summarise()

    def tell(self) -> None:
        """Say now and then what runs."""
        if time.monotonic() - self.said < self.chosen.tell:
            return
        self.said = time.monotonic()
        running = [(child, child.file.story()) for child in self.children]
        where = [
            f"{child.file.name} {sum(bool(test.outcome) for test in story.tests.values())}/{story.count} "
            f"{short(story.current or '')}, {self.said - child.heard:.0f} s"
            for child, story in running
        ]
        say(f"at {self.said - self.began:.0f} s, {len(self.waiting)} files wait; " + "; ".join(where))

    def summarise(self) -> None:
        """Write the line of each file."""
        lines = [f"{file.name}: {counts_of(file.story())}" for file in self.files if file.events.exists()]
        left = [file.name for file in self.files if not file.story().complete]
        text = "\n".join([*lines, *([f"not finished: {' '.join(left)}"] if left else []), *gpus()])
        (self.chosen.out / "summary.txt").write_text(text + "\n", encoding="utf-8")


def run_tests(chosen: argparse.Namespace) -> int:
    """Run files of tests, and return the exit status."""
    known = {path.stem: path for path in sorted(FOLDER.glob("test_*.py"))}
    unknown = sorted({Path(name).stem for name in chosen.files} - set(known))
    if unknown:
        say(f"tests: expected files of {FOLDER.relative_to(ROOT)}, got {' '.join(unknown)}")
        return 2
    chosen.out.mkdir(parents=True, exist_ok=True)
    parts = {path: PARTS.get(path.stem, 1) for path in known.values()}
    files = [File(path, chosen.out, part, count) for path, count in parts.items() for part in range(count)]
    files = in_order(files, chosen)
    if not chosen.resume:
        put_aside(chosen.out)
    tests = Tests(files, chosen)
    try:
        tests.run()
    except (OutOfTimeError, KeyboardInterrupt) as error:
        say(f"{str(error) or 'interrupted'}; scripts/gpu tests --resume goes on")
        tests.stop()
    return status_of([file.story() for file in files])


def in_order(files: Sequence[File], chosen: argparse.Namespace) -> list[File]:
    """Return the files as they are named, then those that failed last time, then the longest ones."""
    named = [Path(name).stem for name in chosen.files]
    place = {name: index for index, name in enumerate(named)}
    stories = {file.name: file.story() for file in files}
    wanted = [file for file in files if not named or chosen.rest or file.path.stem in place]
    return sorted(
        wanted,
        key=lambda file: (
            *(place.get(file.path.stem, len(place)), not stories[file.name].bad),
            *(-stories[file.name].seconds, -file.parts, file.name),
        ),
    )  # fmt: skip


def put_aside(folder: Path) -> None:
    """Move the results of the run before to a folder of their own, in the place of older ones."""
    old = [path for end in ("events", "txt", "log") for path in folder.glob(f"*.{end}")]
    if old:
        before = folder / "before"
        shutil.rmtree(before, ignore_errors=True)
        before.mkdir()
        for path in old:
            path.rename(before / path.name)


def status_of(stories: Sequence[Story]) -> int:
    if any(story.bad for story in stories):
        return 1
    return 0 if all(story.complete for story in stories) else 3


def default_processes(total: int) -> int:
    """Return how many processes the processors and the memory of the GPU carry."""
    return max(1, min(PROCESSES, processors(), total // MEMORY if total else PROCESSES))


def last_words(log: Path, begin: int) -> str:
    """Return the stack that faulthandler printed, without pytest's own functions, or the last lines of a process."""
    text = log.read_bytes()[begin:].decode(errors="replace")
    if "Fatal Python error" not in text:
        return text[-4000:]
    lines = text[text.rfind("Fatal Python error") :].splitlines()
    return "\n".join(line for line in lines if "/_pytest/" not in line and "/pluggy/" not in line)
