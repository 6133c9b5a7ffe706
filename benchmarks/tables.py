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
    markdown: Callable[[dict[str, Any]], str]
    copied: Callable[[str], Any] | None = None
    names: Sequence[str] = NAMES


def run(benchmark: Benchmark, arguments: Sequence[str] | None) -> int:
    """Run a command with the given arguments (default: those of the process) and return its exit status."""
    name = f"benchmarks.{benchmark.name}"
    top = argparse.ArgumentParser(prog=f"python -m {name}", description=f"{benchmark.subject} beside the peers.")
    top.add_argument("--out", type=Path, default=report.RESULTS, metavar="DIR")
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
            print(line(rows[-1]), flush=True)
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
    found : sequence
        Libraries with a name each, and a function `wait` where the default stream does not order them.
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
            if isinstance(call, dict):
                results[library.name] = call
                continue
            spent = timing.kernel_timing(clock, call, timing.EFFORTS[size], getattr(library, "wait", None))
            results[library.name] = {"status": "ok", **spent.as_dict(), **figures(spent)}
        except Exception as error:  # any error of a library; the run continues, and the report contains the error
            results[library.name] = failed(error)
    return results


def failed(error: Exception) -> dict[str, Any]:
    """Return the result of a library that raised an error."""
    return {"status": "error", "why": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def host_row(clock: Any, name: str, calls: Iterable[tuple[str, str, dict[str, Any]]], size: str) -> dict[str, Any]:
    """Return the host microseconds of a call: for each library its name, the statement, and the names in it."""
    times = {
        library: timing.host_timing(clock, statement, itertools.repeat(names), timing.EFFORTS[size]).seconds * 1e6
        for library, statement, names in calls
    }
    return {"name": name, "microseconds": times}


def rated_row(
    clock: Any, row: Any, found: Sequence[Any], checked: Callable[[Any], Any], size: str, nbytes: float, rate: float
) -> dict[str, Any]:
    """Check and time a row whose figure is the rate of the bytes that it must move, beside the GB/s of a copy."""

    def figures(spent: timing.Timing) -> dict[str, float]:
        gigabytes = nbytes / spent.seconds / 1e9
        return {"gb_per_s": gigabytes, "of_copy": gigabytes / rate}

    results = results_of(clock, found, checked, size, figures)
    return {"name": row.name, "bytes": nbytes, "copy_gb_per_s": rate, "results": results}


def host_table(found: dict[str, Any], names: Sequence[str] = NAMES) -> str:
    """Return the table of host times."""
    calls = [
        [call["name"], *[f"{call['microseconds'][name]:.2f}" if name in call["microseconds"] else "" for name in names]]
        for call in found["calls"]
    ]
    return report.table(["host microseconds", *names], calls, right=tuple(range(1, len(names) + 1)))


def line(row: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    return f"{row['name']}: {', '.join(f'{name} {_figure(result)}' for name, result in row['results'].items())}"


def _figure(result: dict[str, Any]) -> str:
    """Return the rate of a result and the fraction of a copy, or the milliseconds if it has no such fraction."""
    if result["status"] != "ok":
        return f"{result['status']} {result.get('why', '')}".strip()
    if "of_copy" in result:
        return f"{result['gb_per_s']:.0f} GB/s ({result['of_copy']:.3f})"
    return f"{result['seconds'] * 1e3:.4f} ms"


def markdown_of_milliseconds(
    found: dict[str, Any], title: str, rate: str = "", unit: str = "", digits: int = 0, names: Sequence[str] = NAMES
) -> str:
    """Return the report of times, and of our rate, which results have under the name `rate`, with some digits."""
    table: list[list[str]] = []
    for row in found["rows"]:
        results = row["results"]
        spent = {name: result["seconds"] * 1e3 for name, result in results.items() if result["status"] == "ok"}
        figures = [f"{spent[name]:.4f}" if name in spent else results.get(name, {}).get("status", "") for name in names]
        ours = spent.pop("tilearray", None)
        own = [f"{results['tilearray'][rate]:.{digits}f}" if ours else ""] if rate else []
        table.append([row["name"], *figures, *own, f"{min(spent.values()) / ours:.2f}" if ours and spent else ""])
    return _report(found, title, ["milliseconds", *names, *([unit] if rate else []), "of best peer"], table, names)


def markdown_of_rates(found: dict[str, Any], title: str, names: Sequence[str] = NAMES) -> str:
    """Return the report of rates, of ours as a fraction of a copy, and of our milliseconds."""
    table: list[list[str]] = []
    for row in found["rows"]:
        results = row["results"]
        rates = {name: result["gb_per_s"] for name, result in results.items() if result["status"] == "ok"}
        figures = [f"{rates[name]:.0f}" if name in rates else results.get(name, {}).get("status", "") for name in names]
        ours = rates.pop("tilearray", None)
        mine = results.get("tilearray", {})
        own = [f"{mine['of_copy']:.3f}", f"{mine['seconds'] * 1e3:.3f}"] if ours else ["", ""]
        table.append([row["name"], *figures, *own, f"{ours / max(rates.values()):.2f}" if ours and rates else ""])
    return _report(found, title, ["GB/s", *names, "of copy", "ms", "of best peer"], table, names)


def _report(
    found: dict[str, Any], title: str, head: Sequence[str], table: list[list[str]], names: Sequence[str]
) -> str:
    """Return the provenance, the table of rows and the table of host times."""
    provenance = "\n".join(report.provenance(found, title))
    return f"{provenance}\n{report.table(head, table, right=tuple(range(1, len(head))))}\n{host_table(found, names)}"
