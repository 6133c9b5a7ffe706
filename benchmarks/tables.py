"""The commands whose rows are timed on a GPU beside torch and CuPy: options, the loop over rows, the record.

Each such benchmark gives its rows, and the functions that measure and print one. TF32 is off everywhere.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report, timing

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = ("tilearray", "torch", "cupy")
MISMATCH = {"status": "mismatch"}
"""The result of a library that computes something else."""


class Benchmark(NamedTuple):
    """A table of rows, and one of host times.

    Attributes
    ----------
    name, subject : the module's name, and what it compares
    sizes : the names of sizes
    rows : with a name each
    libraries : ``libraries(torch, names)``
    measured : ``measured(torch, clock, row, found, size)``, and ``copy`` where rates are compared with a copy
    host_times : ``host_times(torch, clock, found, size)``
    line : a measured row as text
    markdown : the report of a result
    copied : the shape of the float32 array that a size copies, or None
    names : the libraries that are timed if the command names none
    """

    name: str
    subject: str
    sizes: Sequence[str]
    rows: Sequence[Any]
    libraries: Callable[[Any, Sequence[str]], Sequence[Any]]
    measured: Callable[..., dict[str, Any]]
    host_times: Callable[[Any, Any, Any, str], list[dict[str, Any]]]
    line: Callable[[dict[str, Any]], str]
    markdown: Callable[[dict[str, Any]], str]
    copied: Callable[[str], Any] | None = None
    names: Sequence[str] = NAMES


def run(benchmark: Benchmark, arguments: Sequence[str] | None) -> int:
    """Run a command with the given arguments (default: those of the process) and return its exit status."""
    name = f"benchmarks.{benchmark.name}"
    top = argparse.ArgumentParser(prog=f"python -m {name}", description=f"{benchmark.subject} beside the peers.")
    top.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    top.add_argument("--size", choices=tuple(benchmark.sizes), default="full")
    top.add_argument("--libraries", default=",".join(benchmark.names))
    top.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    chosen = top.parse_args(arguments)
    try:
        clock = timing.GpuClock()
        torch: Any = importlib.import_module("torch")
    except (timing.DriverError, ImportError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = False
    found = benchmark.libraries(torch, chosen.libraries.split(","))
    copy = () if benchmark.copied is None else (copy_rate(torch, clock, benchmark.copied(chosen.size), chosen.size),)
    rows: list[dict[str, Any]] = []
    result = {**report.environment("cuda", clock, name), "size": chosen.size, "rows": rows, "calls": []}
    for row in benchmark.rows:
        if chosen.only in row.name:
            rows.append(benchmark.measured(torch, clock, row, found, chosen.size, *copy))
            print(benchmark.line(rows[-1]), flush=True)
            report.write_unfinished(result, chosen.out, benchmark.markdown(result), f"-{benchmark.name}")
            torch.cuda.empty_cache()
    result["calls"] = benchmark.host_times(torch, clock, found, chosen.size)
    for call in result["calls"]:
        print(call["name"], {each: round(value, 2) for each, value in call["microseconds"].items()}, flush=True)
    for path in report.write(result, chosen.out, benchmark.markdown(result), f"-{benchmark.name}"):
        print(f"wrote {path}")
    ours = [row["results"].get("tilearray", {"status": "ok"})["status"] for row in rows]
    return 1 if any(status in ("mismatch", "error") for status in ours) else 0


def copy_rate(torch: Any, clock: Any, shape: Any, size: str) -> Callable[[], float]:
    """Return the function that measures the GB/s of a device-to-device copy of float32."""
    source, target = (torch.rand(shape, device="cuda") for _ in range(2))

    def rate() -> float:
        copier = clock.copier(target, source)  # which has their addresses alone
        return 2 * source.nbytes / timing.kernel_timing(clock, copier, timing.EFFORTS[size]).seconds / 1e9

    return rate


def results_of(
    clock: Any,
    found: Sequence[Any],
    checked: Callable[[Any], Callable[[], Any] | dict[str, Any]],
    size: str,
    figures: Callable[[timing.Timing], dict[str, float]],
) -> dict[str, dict[str, Any]]:
    """Check each library, time it if its result is right, and return the results by name.

    Parameters
    ----------
    checked : callable
        ``checked(library)`` returns the function that is timed, or the result of a library that is not, as `MISMATCH`.
        The arrays that it compares are free before the function is timed.
    figures : callable
        ``figures(timing)`` returns what a result has besides the times.
    """
    results: dict[str, Any] = {}
    for library in found:
        try:
            call = checked(library)
            timed = None if isinstance(call, dict) else timing.kernel_timing(clock, call, timing.EFFORTS[size])
        except Exception as error:  # any error of a library; the run continues, and the report contains the error
            results[library.name] = failed(error)
            continue
        results[library.name] = call if timed is None else {"status": "ok", **timed.as_dict(), **figures(timed)}
    return results


def failed(error: Exception) -> dict[str, Any]:
    """Return the result of a library that raised an error."""
    return {"status": "error", "why": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def rated(spent: timing.Timing, nbytes: float, rate: float) -> dict[str, float]:
    """Return the rate of a library that moved bytes, and the fraction of the GB/s of a copy."""
    gigabytes = nbytes / spent.seconds / 1e9
    return {"gb_per_s": gigabytes, "of_copy": gigabytes / rate}


def host_row(clock: Any, name: str, calls: Iterable[tuple[str, str, dict[str, Any]]], size: str) -> dict[str, Any]:
    """Return the host microseconds of a call: for each library its name, the statement, and the names in it."""
    times = {
        library: timing.host_timing(clock, statement, itertools.repeat(names), timing.EFFORTS[size]).seconds * 1e6
        for library, statement, names in calls
    }
    return {"name": name, "microseconds": times}


def line_of_milliseconds(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    figures = [
        f"{name} {result['seconds'] * 1e3:.3f} ms"
        if result["status"] == "ok"
        else f"{name} {result['status']} {result.get('why', '')}"
        for name, result in row["results"].items()
    ]
    return f"{row['name']}: {', '.join(figures)}"


def line_of_rates(row: dict[str, Any]) -> str:
    """Return a row as a line of text: GB/s, and the fraction of a copy."""
    figures = [
        f"{name} {result['gb_per_s']:.0f} ({result['of_copy']:.3f})"
        if result["status"] == "ok"
        else f"{name} {result['status']} {result.get('why', '')}"
        for name, result in row["results"].items()
    ]
    return f"{row['name']}: {', '.join(figures)}"


def host_table(found: dict[str, Any], names: Sequence[str] = NAMES) -> str:
    """Return the table of host times."""
    calls = [
        [call["name"], *[f"{call['microseconds'][name]:.2f}" if name in call["microseconds"] else "" for name in names]]
        for call in found["calls"]
    ]
    return report.table(["host microseconds", *names], calls, right=tuple(range(1, len(names) + 1)))


def markdown_of_milliseconds(found: dict[str, Any], title: str, rate: str, unit: str, digits: int) -> str:
    """Return the report of times, and of our rate, which results have under the name `rate`, with some digits."""
    table: list[list[str]] = []
    for row in found["rows"]:
        results = row["results"]
        spent = {name: result["seconds"] * 1e3 for name, result in results.items() if result["status"] == "ok"}
        figures = [f"{spent[name]:.3f}" if name in spent else results.get(name, {}).get("status", "") for name in NAMES]
        ours = spent.pop("tilearray", None)
        own = f"{results['tilearray'][rate]:.{digits}f}" if ours else ""
        table.append([row["name"], *figures, own, f"{min(spent.values()) / ours:.2f}" if ours and spent else ""])
    head = "\n".join(report.provenance(found, title))
    times = report.table(["milliseconds", *NAMES, unit, "of best peer"], table, right=tuple(range(1, 6)))
    return f"{head}\n{times}\n{host_table(found)}"
