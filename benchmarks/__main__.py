"""``python -m benchmarks``: measure, and print and write the tables. See README.md in this folder.

Exit status: 0 for success; 1 if a result was wrong or tilearray failed (the report is still written, and names the
row); 2 for invalid arguments, or if nothing can be measured.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import compare, peers, plot, report, run, startup, timing
from benchmarks.bar import BAR
from benchmarks.cases import CALLS, LAYOUTS, Call, Case

USUAL = ("layouts", "calls", "startup")
PARTS = (*USUAL, "bar")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    top = parser()
    chosen = top.parse_args(arguments)
    if len(chosen.compare) > 2:
        top.error(f"argument --compare: expected OLD.json and at most a NEW.json, got {len(chosen.compare)} files")
    if chosen.plot:
        return draw_again(chosen.plot, chosen.out)
    try:
        stored = [compare.load(path) for path in chosen.compare]
    except compare.ReportError as error:
        return refused(error)
    if len(stored) == 2:
        print(compare.moved(*stored))
        return 0
    return measure(chosen, stored)


def measure(chosen: argparse.Namespace, stored: Sequence[dict[str, Any]]) -> int:
    """Measure the chosen parts, print and write the report, and print the changes since a stored report if given."""
    if "startup" not in chosen.parts and not any(selected(chosen)):
        return refused(f"no row of {','.join(chosen.parts)} has {chosen.only!r} in its name")
    device = chosen.device or default_device()
    chosen.out.mkdir(parents=True, exist_ok=True)  # before the measurements, so that an error comes early
    try:
        session = open_session(device, chosen.size, chosen.libraries or peers.COMPARED[device])
    except timing.DriverError as error:
        return refused(f"{error}; write --device cpu")
    except (peers.NotHereError, ImportError) as error:
        return refused(error)
    found = measured(session, device, chosen)
    print(report.markdown(found))
    for path in report.write(found, chosen.out):
        print(f"wrote {path}")
    try:
        for path in plot.draw(found, chosen.out):
            print(f"wrote {path}")
    except plot.NoPlotError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
    for old in stored:
        print("\n" + compare.moved(old, found))
    return 0 if report.succeeded(found) else 1


def draw_again(path: Path, folder: Path) -> int:
    """Draw the pictures of a stored report."""
    try:
        found = compare.load(path)
        folder.mkdir(parents=True, exist_ok=True)
        for drawn in plot.draw(found, folder):
            print(f"wrote {drawn}")
    except (compare.ReportError, plot.NoPlotError) as error:
        return refused(error)
    return 0


def refused(why: object) -> int:
    """Print why nothing is measured, and return the exit status for that."""
    print(f"benchmarks: {why}", file=sys.stderr)
    return 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benchmarks", description="tilearray beside its peers.")
    top.add_argument("--device", choices=sorted(peers.COMPARED), help="default: cuda if there is a GPU, else cpu")
    top.add_argument(
        "--size", choices=("full", "small"), default="full", help="small: takes seconds; its figures are meaningless"
    )
    top.add_argument("--out", type=Path, default=report.RESULTS, metavar="DIR", help="folder for the reports")
    top.add_argument("--only", default="", metavar="TEXT", help="measure only rows whose name contains TEXT")
    top.add_argument(
        "--parts",
        type=words(PARTS),
        default=USUAL,
        metavar=",".join(PARTS),
        help="the parts to measure (default: all except bar, which is every layout at every itemsize)",
    )
    top.add_argument(
        "--libraries", type=words(tuple(peers.PEERS)), metavar=",".join(peers.PEERS), help="the libraries to measure"
    )
    top.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        default=[],
        metavar=("OLD.json", "NEW.json"),
        help="measure, and print the changes since OLD.json; with NEW.json, compare the two and measure nothing",
    )
    top.add_argument("--plot", type=Path, metavar="RESULT.json", help="measure nothing; draw a stored result in --out")
    return top


def words(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return the type of an argument that lists some of `known`, separated by commas."""

    def some(text: str) -> tuple[str, ...]:
        given = tuple(filter(None, text.split(",")))
        unknown = sorted(set(given) - set(known))
        if unknown or not given:
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, got {text!r}")
        return given

    return some


def default_device() -> str:
    import tilearray as ta

    return ta.default_device().type


def open_session(device: str, size: str, libraries: Sequence[str]) -> run.Session:
    """Open the clock, the libraries, and the library that owns the arrays."""
    kind = "host" if device == "cpu" and size == "full" else size
    clock = timing.open_clock(device)
    here, missing = peers.open_libraries(device, libraries)
    return run.Session(kind, here, missing, peers.open_owner(device), clock, timing.EFFORTS[kind])


def selected(chosen: argparse.Namespace) -> tuple[list[Case], list[Call]]:
    """Return the chosen rows of the tables."""
    tables = {"layouts": LAYOUTS, "bar": BAR}
    layouts = [
        case for part, table in tables.items() if part in chosen.parts for case in table if chosen.only in case.name
    ]
    return layouts, [call for call in CALLS if "calls" in chosen.parts and chosen.only in call.name]


def measured(session: run.Session, device: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the whole report. An error that ends the run, such as an illegal access, loses only the later rows."""
    layouts, calls = selected(chosen)
    rows: dict[str, list[dict[str, Any]]] = {"layouts": [], "calls": []}
    floor, stopped = None, ""
    try:
        # Calls first: after moving gigabytes, a process no longer measures nanoseconds well.
        floor = run.launch_floor(session) if calls else None
        rows["calls"].extend(shown((run.run_call(session, call) for call in calls), len(calls), "calls"))
        rows["layouts"].extend(shown(run.run_cases(session, layouts), len(layouts), "layouts"))
    except (Exception, KeyboardInterrupt) as error:  # scripts/gpu interrupts at the end of the time
        traceback.print_exc()
        stopped = f"{type(error).__name__}: {error}"
    return {
        **report.environment(device, session.clock),
        "size": session.size,
        "libraries": [*(chosen.libraries or peers.COMPARED[device])],
        "copied": {name: library.copied for name, library in session.libraries.items() if library.copied},
        "stopped": stopped,
        "yardsticks": run.finish(session, rows["layouts"]),
        **rows,
        "launch_floor": floor,
        "startup": startup.measure(device, session.effort.starts) if "startup" in chosen.parts else {},
    }


def shown(rows: Iterable[dict[str, Any]], total: int, title: str) -> Iterator[dict[str, Any]]:
    """Yield the rows as they arrive, and show the progress: a bar in a terminal with rich, else lines."""
    if total and sys.stderr.isatty() and importlib.util.find_spec("rich"):
        console = importlib.import_module("rich.console").Console(stderr=True)
        yield from importlib.import_module("rich.progress").track(rows, title, total, console=console, transient=True)
        return
    for number, row in enumerate(rows, 1):
        states = ", ".join(f"{name} {found['status']}" for name, found in row["results"].items())
        print(f"{title} {number}/{total}  {row['name']}: {states}", file=sys.stderr, flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
