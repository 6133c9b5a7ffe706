"""`scripts/gpu`: the tests that need a GPU, and the benchmarks, within a time that may end before they do.

Exit status: 0 if everything passed; 1 if something failed; 2 for invalid arguments; 3 if the time ended too early.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from _gpu_bench import run_benchmarks
from _gpu_processes import ROOT, say
from _gpu_tests import PROCESSES, run_tests


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
