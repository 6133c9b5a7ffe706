"""`scripts/gpu`: the tests that need a GPU, and the benchmarks, within a time that may end before they do.

`tests` runs each file of tests/gpu in a process of its own. Each process writes its events at once (`_gpu_events.py`),
and DIR/NAME.txt follows them, so whoever ends this command, even with SIGKILL, loses no message. Failed tests run once
more at the end, alone and without limits of memory: what passes then failed because of the other processes.

Exit status: 0 if everything passed; 1 if something failed; 2 for invalid arguments; 3 if the time ended too early.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from _gpu_events import BAD, Story, append, counts_of, short, story_of, text_of

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "gpu"
GIB = 1 << 30
PROCESSES, MEMORY, CONTEXT = 8, 8 * GIB, GIB
"""By default: the most processes, the least memory for each, and what the context and kernels of one take."""
PAUSE = 0.05
"""Seconds between two looks at the processes."""
OUTSIDE = 120
"""Seconds that imports, the collection or the end of a process may take, if a test may not take more."""


class OutOfTimeError(Exception):
    """The command's time ends, or someone ends the command."""


@dataclass
class File:
    """A file of tests, and where its events, its text and what it printed are."""

    path: Path
    folder: Path

    def __post_init__(self) -> None:
        self.name = self.path.stem
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
        """Run what is not finished, several at a time, and then failed tests alone."""
        share = f" of {self.share / GIB:.1f} GiB of the GPU's memory" if self.share > 0 else ""
        say(f"{len(self.files)} files, {self.processes} processes{share}; results: {self.chosen.out}")
        self.run_all([file for file in self.files if not file.story().finished], alone=False)
        self.run_all([file for file in self.files if file.story().to_repeat()], alone=True)

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
        found = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
        found["PYTHONPATH"] = os.pathsep.join(
            [*map(str, (ROOT, ROOT / "backend", ROOT / "tests")), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        if not alone:
            found.setdefault("OMP_NUM_THREADS", str(max(1, processors() // self.processes)))
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
            again = bool(story.to_repeat()) if child.alone else True
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
        again = bool(story.current) and (not child.alone or bool(file.story().to_repeat()))
        self.close(child, f"{why}{where}", again=again)

    def close(self, child: Child, why: str = "", again: bool = False) -> None:
        """Write the text, say how it went, and queue the rest of the file."""
        self.children.remove(child)
        if again:
            self.waiting.appendleft(child.file)
        child.file.write()
        self.summarise()
        story = child.file.story()
        done = sum(file.story().finished for file in self.files)
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
        left = [file.name for file in self.files if not file.story().finished]
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
    files = in_order([File(path, chosen.out) for path in known.values()], chosen)
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
    """Return the files as they are named, then those that failed last time, then those that took longest."""
    named = [Path(name).stem for name in chosen.files]
    place = {name: index for index, name in enumerate(named)}
    stories = {file.name: file.story() for file in files}
    wanted = [file for file in files if not named or chosen.rest or file.name in place]
    return sorted(
        wanted,
        key=lambda file: (
            place.get(file.name, len(place)), not stories[file.name].bad, -stories[file.name].seconds, file.name
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
    return 0 if all(story.finished for story in stories) else 3


# ---------------------------------------------------------------------- benchmarks


def run_benchmarks(chosen: argparse.Namespace) -> int:
    """Run benchmarks one after the other, and return the exit status."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    began, statuses = time.monotonic(), list[int]()
    for number, name in enumerate(chosen.names, 1):
        left = 60 * chosen.minutes - (time.monotonic() - began)
        text = chosen.out / f"{file_name(name)}.txt"
        if chosen.resume and text.exists() and "\n== ended with status" in text.read_text(encoding="utf-8"):
            say(f"[{number}/{len(chosen.names)}] {name}: ran before")
        elif left <= 0:
            say(f"{chosen.minutes:g} minutes are over; not run: {'; '.join(chosen.names[number - 1 :])}")
            return max([*statuses, 3])
        else:
            say(f"[{number}/{len(chosen.names)}] {name}")
            statuses.append(measured(name, text, min(left, chosen.limit), chosen))
    return max(statuses, default=0)


def measured(name: str, text: Path, limit: float, chosen: argparse.Namespace) -> int:
    """Run one benchmark, show what it prints, keep that as a file, and return 0, 1, or 3 if a limit ended it."""
    known, began = set(chosen.out.iterdir()), time.monotonic()
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(ROOT / "backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    with text.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command_of(name, chosen.out), cwd=ROOT, env=environment, stdout=log, stderr=log, process_group=0
        )
    shown = lines_of(text)
    try:
        while process.poll() is None and time.monotonic() - began < limit:
            time.sleep(PAUSE)
            print(*shown.__next__(), sep="", end="", flush=True)
        status = process.poll()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # a table writes the rows that it has
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        end_group(process)
    print(*shown.__next__(), sep="", end="", flush=True)
    how = f"its {limit:.0f} s were over" if status is None else f"ended with status {status}"
    how = f"{how}, {time.monotonic() - began:.0f} s"
    with text.open("a", encoding="utf-8") as log:
        log.write(f"\n== {how}\n")
    records = sorted(path.name for path in set(chosen.out.iterdir()) - known - {text} if path.is_file())
    say(f"{name}: {how}; records: {' '.join(records) or 'none'}")
    return 3 if status is None else min(abs(status), 1)


def command_of(name: str, out: Path) -> list[str]:
    """Return the command of a benchmark: a module and its arguments, where `{out}` is the folder of results."""
    module, *arguments = shlex.split(name)
    command = [sys.executable, "-m", "benchmarks" if module == "bar" else f"benchmarks.{module}"]
    if module == "bar":
        command += ["--parts", "bar"]
    takes_out = any(word in source_of(module) for word in ('"--out"', "tables.run("))
    folder = ["--out", str(out)] if takes_out and "{out}" not in name else []
    return [*command, *[word.replace("{out}", str(out)) for word in arguments], *folder]


def source_of(module: str) -> str:
    path = ROOT / "benchmarks" / f"{'__main__' if module == 'bar' else module}.py"
    return path.read_text(encoding="utf-8")


def file_name(name: str) -> str:
    """Return the name of the file for what a benchmark prints."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def lines_of(path: Path) -> Iterator[list[str]]:
    """Yield what was added to a file since the step before."""
    with path.open(encoding="utf-8", errors="replace") as file:
        while True:
            yield file.readlines()


# ---------------------------------------------------------------------- the machine


def smallest_memory() -> int:
    """Return the bytes of the GPU with the least memory; 0 if there is none."""
    return min((int(line) << 20 for line in output_of("--query-gpu=memory.total")), default=0)


def gpus() -> list[str]:
    return output_of("--query-gpu=name,driver_version")


def output_of(query: str) -> list[str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_processes(total: int) -> int:
    """Return how many processes the processors and the memory of the GPU carry."""
    return max(1, min(PROCESSES, processors(), total // MEMORY if total else PROCESSES))


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(log: Path, begin: int) -> str:
    """Return the stack that faulthandler printed, without pytest's own functions, or the last lines of a process."""
    text = log.read_bytes()[begin:].decode(errors="replace")
    if "Fatal Python error" not in text:
        return text[-4000:]
    lines = text[text.rfind("Fatal Python error") :].splitlines()
    return "\n".join(line for line in lines if "/_pytest/" not in line and "/pluggy/" not in line)


def say(text: str) -> None:
    print(text, flush=True)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="scripts/gpu", description="The tests and the benchmarks that need a GPU.")
    parts = top.add_subparsers(dest="part", required=True)
    tests = parts.add_parser("tests", help="files of tests/gpu, each in a process of its own")
    tests.add_argument("files", nargs="*", help="run in this order; all by default, those that failed last time first")
    tests.add_argument("--rest", action="store_true", help="after the named files all others")
    tests.add_argument(
        "--processes", type=int, help=f"at a time; by default what the machine carries, {PROCESSES} at most"
    )
    tests.add_argument("--limit", type=float, default=480, metavar="S", help="seconds of a file's process")
    tests.add_argument("--test-limit", type=float, default=150, metavar="S", help="seconds of a test")
    tests.add_argument("--tell", type=float, default=15, metavar="S", help="seconds between two lines about what runs")
    bench = parts.add_parser("bench", help="benchmarks, one after the other")
    bench.add_argument(
        "names", nargs="+", help="a module of benchmarks/, in quotes with arguments: 'fused --only axpy'"
    )
    bench.add_argument("--limit", type=float, default=300, metavar="S", help="seconds of a benchmark")
    for part, folder in ((tests, "gpu-tests"), (bench, "gpu-bench")):
        part.add_argument("--minutes", type=float, default=1e9, metavar="N", help="of all together")
        part.add_argument(
            "--out", type=Path, default=ROOT / "build" / folder, metavar="DIR", help="the folder of results"
        )
        part.add_argument("--resume", action="store_true", help="go on with what --out has not finished")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    chosen = parser().parse_args(arguments)
    chosen.out = chosen.out.resolve()
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return run_tests(chosen) if chosen.part == "tests" else run_benchmarks(chosen)
    except KeyboardInterrupt:
        say("interrupted")
        return 3


if __name__ == "__main__":
    sys.exit(main())
