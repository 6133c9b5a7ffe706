"""``python -m benchmarks.npbench CHECKOUT``: NPBench's kernels on a GPU after one changed import, beside CuPy.

NPBench's own initializers make the data of its preset "S", with NumPy. Each kernel runs as it is written, with NumPy,
and again with ``import tilearray as np`` and with ``import cupy as np``; where that fails with CuPy, NPBench's own
version for CuPy runs. Results must be NumPy's. A figure is the time from the call until the GPU is done, on arrays that
lie there already: the best of the runs of some time after the first one; NumPy runs once. Kernels write to their
arguments, so each run gets copies.

Exit status: 0; 2 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "conformance"))

from clients import calls, npbench

from benchmarks import report, tables, timing

LONGEST = 15
"""The seconds after which a run is given up. The first one compiles."""
NAMES = ("tilearray", "cupy", "numpy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.npbench", description="NPBench beside CuPy.")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("kernels", nargs="*", help="of NPBench; all by default")
    parser.add_argument("--out", type=Path, default=report.RESULTS, metavar="DIR")
    parser.add_argument("--largest", type=int, default=10**9, help="cut all sizes at this number")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no kernel begins")
    parser.add_argument("--seconds", type=float, default=0.2, help="in which the best run is found")
    options = parser.parse_args(arguments)
    try:
        clock = timing.GpuClock()
        libraries = {name: importlib.import_module(name) for name in NAMES}
    except (timing.DriverError, ImportError) as error:
        print(f"benchmarks.npbench: {error}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    result = {**report.environment("cuda", clock, "benchmarks.npbench"), "size": "S", "rows": rows}
    until = time.perf_counter() + options.limit
    files = sorted((options.checkout / "bench_info").glob("*.json"))
    with libraries["tilearray"].semantics("numpy"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in files:
            if time.perf_counter() < until and (not options.kernels or file.stem in options.kernels):
                rows.append(measured(options.checkout, file, libraries, clock, options.largest, options.seconds))
                print(tables.line(rows[-1]), flush=True)
                report.write_unfinished(result, options.out, markdown(result), "-npbench")
    for path in report.write(result, options.out, markdown(result), "-npbench"):
        print(f"wrote {path}")
    return 0


def measured(
    checkout: Path, file: Path, libraries: dict[str, Any], clock: Any, largest: int, seconds: float
) -> dict[str, Any]:
    """Check and time one kernel with every library."""
    about = json.loads(file.read_text(encoding="utf-8"))["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / about["relative_path"]
    data = npbench.made(folder / f"{about['module_name']}.py", about, largest)
    source = (folder / f"{about['module_name']}_numpy.py").read_text(encoding="utf-8")
    own = folder / f"{about['module_name']}_cupy.py"
    texts = {name: [source.replace(npbench.IMPORT, f"import {name} as np")] for name in NAMES}
    texts["cupy"] += [own.read_text(encoding="utf-8")] if own.exists() else []
    wanted: Any = None
    results: dict[str, Any] = {}
    for name in reversed(NAMES):
        for text in texts[name]:
            run = runner(npbench.function(text, about["func_name"]), about, data, libraries[name], clock)
            try:
                spent, found = run()
                found = plain(found, libraries["cupy"])
                wanted = found if name == "numpy" else wanted
                problem = calls.difference(found, wanted)
                once = {"status": "ok", "seconds": spent, "runs": 1}
                timed = once if name == "numpy" else None if problem else best(run, seconds)
                results[name] = timed or {"status": "mismatch", "why": str(problem)[:200]}
                break
            except Exception as error:  # whatever a kernel meets is a result of the library
                results[name] = tables.failed(error)
    return {"name": file.stem, "results": {name: results[name] for name in NAMES}}


def runner(kernel: Callable[..., Any], about: dict[str, Any], data: dict[str, Any], library: Any, clock: Any) -> Any:
    """Return what runs a kernel on copies of its data: it returns seconds, and all that the kernel returned or got."""

    def run() -> tuple[float, Any]:
        given = [data[name] for name in about["input_args"]]
        given = [library.array(x) if isinstance(x, np.ndarray) else x for x in given]
        clock.synchronize()
        signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(LONGEST)
        try:
            started = time.perf_counter()
            found = kernel(*given)
            clock.synchronize()
            return time.perf_counter() - started, [found, given]
        finally:
            signal.alarm(0)

    return run


def _give_up(*_: Any) -> None:
    raise TimeoutError(f"more than {LONGEST} s")


def best(run: Callable[[], tuple[float, Any]], spent: float) -> dict[str, Any]:
    """Return the time of the fastest run: of one after the first, and of more while there is time."""
    until = time.perf_counter() + spent
    seconds = [run()[0]]
    while time.perf_counter() < until:
        seconds.append(run()[0])
    return {"status": "ok", "seconds": min(seconds), "runs": len(seconds)}


def plain(value: Any, cupy: Any) -> Any:
    """Return a result as `calls.plain` does, of CuPy's arrays as well."""
    if isinstance(value, (list, tuple)):
        return [plain(one, cupy) for one in value]
    return calls.plain(cupy.asnumpy(value) if isinstance(value, cupy.ndarray) else value)


def markdown(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    table: list[list[str]] = []
    counts = dict.fromkeys(NAMES, 0)
    for row in found["rows"]:
        spent = {name: each["seconds"] * 1e3 for name, each in row["results"].items() if each["status"] == "ok"}
        for name in spent:
            counts[name] += 1
        figures = [f"{spent[name]:.3f}" if name in spent else row["results"][name]["status"] for name in NAMES]
        ratio = f"{spent['cupy'] / spent['tilearray']:.2f}" if {"cupy", "tilearray"} <= spent.keys() else ""
        table.append([row["name"], *figures, ratio])
    head = "\n".join(report.provenance(found, "NPBench: "))
    right = ", ".join(f"{name} {count}" for name, count in counts.items())
    times = report.table(["ms, NPBench's preset S", *NAMES, "of CuPy"], table, right=(1, 2, 3, 4))
    return f"{head}\nKernels with NumPy's results, of {len(table)}: {right}.\n\n{times}"


if __name__ == "__main__":
    sys.exit(main())
