"""The commands whose rows are programs on one device, the host or a GPU: options, the loop over rows, the record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report, tables, timing


class Programs(NamedTuple):
    """A table of programs.

    Attributes
    ----------
    name, subject : the module's name, and what it compares
    sides : the sizes and their numbers
    rows : with a name each
    libraries : ``libraries(device)``, each with a name; "tilearray fused" is always there
    measured : ``measured(clock, row, found, size)``
    markdown : the report of a result
    facts : ``facts(clock, device, size)``, what the record says of the device
    host_times : ``host_times(clock, row, found)`` of the first row and the last one, or None
    """

    name: str
    subject: str
    sides: dict[str, int]
    rows: Sequence[Any]
    libraries: Callable[[str], Sequence[Any]]
    measured: Callable[[Any, Any, Sequence[Any], str], dict[str, Any]]
    markdown: Callable[[dict[str, Any]], str]
    facts: Callable[[Any, str, str], dict[str, Any]] = lambda *_: {}
    host_times: Callable[[Any, Any, Sequence[Any]], dict[str, float]] | None = None


def run(benchmark: Programs, arguments: Sequence[str] | None) -> int:
    """Run a command with the given arguments (default: those of the process) and return its exit status."""
    chosen = options(benchmark, arguments)
    import tilearray as ta

    if chosen.device not in map(str, ta.devices()):
        print(f"benchmarks.{benchmark.name}: there is no device {chosen.device}", file=sys.stderr)
        return 2
    size = chosen.size or ("host" if chosen.device == "cpu" else "full")
    kind = chosen.device.partition(":")[0]
    names = chosen.libraries.split(",") if chosen.libraries else []
    clock = timing.open_clock(kind)
    found = [
        each for each in benchmark.libraries(chosen.device) if not names or each.name in ("tilearray fused", *names)
    ]
    rows: list[dict[str, Any]] = []
    result = {**report.environment(kind, clock, f"benchmarks.{benchmark.name}"), "size": size, "rows": rows}
    result |= benchmark.facts(clock, chosen.device, size) | ({"calls": {}} if benchmark.host_times else {})
    for row in benchmark.rows:
        if chosen.only in row.name:
            rows.append(benchmark.measured(clock, row, found, size))
            cells = [f"  {name:16} {cell(one)}" for name, one in rows[-1]["results"].items()]
            print(row.name, *cells, sep="\n", flush=True)
            if chosen.out:
                report.write_unfinished(result, chosen.out, benchmark.markdown(result), f"-{benchmark.name}")
    if benchmark.host_times is not None:
        ends = (benchmark.rows[0], benchmark.rows[-1])
        result["calls"] = {row.name: benchmark.host_times(clock, row, found) for row in ends}
        print(*[f"{name}: {times}" for name, times in result["calls"].items()], sep="\n", flush=True)
    if chosen.out and rows:
        for path in report.write(result, chosen.out, benchmark.markdown(result), f"-{benchmark.name}"):
            print(f"wrote {path}")
    return int(any(row["results"]["tilearray fused"]["status"] != "ok" for row in rows))


def options(benchmark: Programs, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command."""
    name = f"python -m benchmarks.{benchmark.name}"
    top = argparse.ArgumentParser(prog=name, description=f"{benchmark.subject} beside the peers.")
    top.add_argument("--device", default="cpu", help="cpu, or a GPU as cuda or cuda:0")
    top.add_argument("--size", choices=tuple(benchmark.sides), default=None)
    top.add_argument("--libraries", default="", metavar="NAMES", help="some of the libraries, with commas between")
    top.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    top.add_argument("--out", type=Path, default=None, metavar="DIR", help="write a record")
    chosen = top.parse_args(arguments)
    if chosen.device == "cuda":
        chosen.device = "cuda:0"
    return chosen


def measured_row(
    clock: Any, row: Any, found: Sequence[Any], checked: Callable[[Any], Any], size: str, moved: int
) -> dict[str, Any]:
    """Check and time a row that moves bytes, as `tables.results_of` does."""

    def figures(spent: timing.Timing) -> dict[str, float]:
        return {"gb_per_s": moved / spent.seconds / 1e9}

    return {"name": row.name, "bytes": moved, "results": tables.results_of(clock, found, checked, size, figures)}


def to_torch(torch: Any, device: str, x: np.ndarray) -> Any:
    """Return a tensor with the numbers and the dtype of an ndarray, whose dtype torch does not read from it."""
    return torch.asarray(x.astype(np.float32), device=device).to(getattr(torch, x.dtype.name))


def compiled_by_torch(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return torch.compile of a function. It compiles eight functions of one name, and runs the others without."""
    torch.compiler.reset()
    return torch.compile(function)


def cell(result: dict[str, Any]) -> str:
    """Return a result as text."""
    if result["status"] != "ok":
        return f"{result['status']} {result.get('why', '')[:60]}".strip()
    return f"{result['seconds'] * 1e3:.3f} ms, {result['gb_per_s']:.0f} GB/s"
