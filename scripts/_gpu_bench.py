"""`scripts/gpu bench`: benchmarks one after the other, each within its time. What each prints is kept as a file."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from _gpu_processes import PAUSE, ROOT, end_group, environment_of, say


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
    environment = environment_of(ROOT, ROOT / "backend")
    with text.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command_of(name, chosen.out), cwd=ROOT, env=environment, stdout=log, stderr=log, process_group=0
        )
    shown = text_added_to(text)
    try:
        while process.poll() is None and time.monotonic() - began < limit:
            time.sleep(PAUSE)
            print(next(shown), end="", flush=True)
        status = process.poll()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # a table writes the rows that it has
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        end_group(process)
    print(next(shown), end="", flush=True)
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
    takes_out = any(word in source_of(module) for word in ('"--out"', "tables.run(", "programs.run("))
    folder = ["--out", str(out)] if takes_out and "{out}" not in name else []
    return [*command, *[word.replace("{out}", str(out)) for word in arguments], *folder]


def source_of(module: str) -> str:
    path = ROOT / "benchmarks" / f"{'__main__' if module == 'bar' else module}.py"
    return path.read_text(encoding="utf-8")


def file_name(name: str) -> str:
    """Return the name of the file for what a benchmark prints."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def text_added_to(path: Path) -> Iterator[str]:
    """Yield what was added to a file since the step before."""
    with path.open(encoding="utf-8", errors="replace") as file:
        while True:
            yield file.read()
