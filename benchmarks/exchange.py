"""``python -m benchmarks.exchange``: host time of importing and exporting GPU arrays, beside torch and CuPy.

A row is a statement over arrays of 1000 float32 (or another named dtype): ``t`` of torch, ``c`` of CuPy, ``x`` of
tilearray. The time includes the call and the destruction of its result, as `benchmarks.timing.host_timing` measures
it. A bar is a bound on a row, or on the ratio of two rows.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report, timing

COUNT = 1000

# The library that does the work, the timed statement, and the expected address of its result.
STATEMENTS = (
    ("tilearray", "ta.asarray(t)", "t.data_ptr()"),
    ("tilearray", "ta.asarray(t2.T)", "t2.data_ptr()"),
    ("tilearray", "ta.asarray(t_bfloat16)", "t_bfloat16.data_ptr()"),
    ("tilearray", "ta.from_dlpack(t)", "t.data_ptr()"),
    ("cupy", "cp.from_dlpack(t)", "t.data_ptr()"),
    ("cupy", "cp.asarray(t)", "t.data_ptr()"),
    ("tilearray", "ta.asarray(c)", "c.data.ptr"),
    ("torch", "torch.from_dlpack(c)", "c.data.ptr"),
    ("torch", "torch.as_tensor(c, device='cuda')", "c.data.ptr"),
    ("torch", "torch.from_dlpack(x)", "x._address"),
    ("torch", "torch.from_dlpack(x_bfloat16)", "x_bfloat16._address"),
    ("tilearray", "ta.to_torch(x)", "x._address"),
    ("cupy", "cp.from_dlpack(x)", "x._address"),
    ("cupy", "cp.asarray(x)", "x._address"),
    ("tilearray", "x.__dlpack__()", ""),
    ("tilearray", "x.__dlpack__(stream=1, max_version=(1, 0))", ""),
    ("tilearray", "x_bfloat16.__dlpack__()", ""),
    ("tilearray", "x_float8_e4m3fn.__dlpack__()", ""),
    ("torch", "t.__dlpack__()", ""),
    ("cupy", "c.__dlpack__()", ""),
    ("tilearray", "x.__cuda_array_interface__", ""),
    ("torch", "t.__cuda_array_interface__", ""),
    ("cupy", "c.__cuda_array_interface__", ""),
)


class Bar(NamedTuple):
    """A bound on a statement's time: as a multiple of `over`'s time, or in microseconds if `over` is empty."""

    statement: str
    over: str
    bound: float


BARS = (
    Bar("ta.asarray(t)", "cp.from_dlpack(t)", 0.2),
    Bar("ta.asarray(t)", "cp.asarray(t)", 0.5),
    Bar("torch.from_dlpack(x)", "torch.from_dlpack(c)", 1.2),
    Bar("x.__dlpack__()", "", 0.5),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.exchange", description="Exchange beside torch and CuPy.")
    top.add_argument("--out", type=Path, default=report.RESULTS, metavar="DIR", help="folder for the reports")
    top.add_argument(
        "--size", choices=("full", "small"), default="full", help="small: takes seconds; its figures are meaningless"
    )
    chosen = top.parse_args(arguments)
    try:
        clock = timing.GpuClock()
    except (timing.DriverError, ImportError) as error:
        print(f"benchmarks.exchange: {error}", file=sys.stderr)
        return 2
    names, missing = arrays()
    rows = [measured(clock, statement, names, missing, timing.EFFORTS[chosen.size]) for statement in STATEMENTS]
    found = {
        **report.environment("cuda", clock, "benchmarks.exchange"),
        "size": chosen.size,
        "rows": rows,
        "bars": judged(rows),
    }
    text = markdown(found)
    print(text)
    for path in report.write(found, chosen.out, text, "-exchange"):
        print(f"wrote {path}")
    return 1 if any(row["library"] == "tilearray" and row["status"] in report.FAILURES for row in rows) else 0


def arrays() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the names in the statements, and the reasons why some libraries are not available."""
    import tilearray as ta

    ones: Any = ta.ones(COUNT, dtype="float32", device="cuda:0")
    names: dict[str, Any] = {"ta": ta, "x": ones}
    for dtype in ("bfloat16", "float8_e4m3fn"):
        names[f"x_{dtype}"] = ta.ones(COUNT, dtype=dtype, device="cuda:0")
    missing: dict[str, str] = {}
    for package, alias, made in (("torch", "torch", of_torch), ("cupy", "cp", of_cupy)):
        try:
            library = importlib.import_module(package)
            names |= {alias: library, **made(library)}
        except Exception as error:  # not installed, or without the GPU
            missing[package] = f"{package} is not available: {type(error).__name__}: {error}"
    return names, missing


def of_torch(torch: Any) -> dict[str, Any]:
    return {
        "t": torch.ones(COUNT, device="cuda"),
        "t2": torch.ones(20, 50, device="cuda"),
        "t_bfloat16": torch.ones(COUNT, device="cuda", dtype=torch.bfloat16),
    }


def of_cupy(cupy: Any) -> dict[str, Any]:
    return {"c": cupy.ones(COUNT, dtype="float32")}


def measured(
    clock: Any, row: tuple[str, str, str], names: Mapping[str, Any], missing: Mapping[str, str], effort: timing.Effort
) -> dict[str, Any]:
    """Measure the host time of one statement, after a check of its result's address."""
    library, statement, address = row
    found: dict[str, Any] = {"library": library, "statement": statement}
    used = {name: value for name, value in names.items() if name in _names_of(statement)}
    lacking = sorted((_names_of(statement) | _names_of(address or "ta")) - names.keys())
    if lacking:
        return {**found, "status": "not available", "why": "; ".join(missing.values())}
    try:
        result = eval(statement, dict(names))
        if address and address_of(result) != eval(address, dict(names)):
            return {**found, "status": "mismatch", "why": "the result is not the same memory"}
        del result
        spent = timing.host_timing(clock, statement, itertools.repeat(used), effort)
    except Exception as error:  # any error of a library; the run continues, and the report contains the error
        return {**found, "status": "error", "why": f"{type(error).__name__}: {error}"}
    return {**found, "status": "ok", **spent.as_dict(), "microseconds": spent.seconds * 1e6}


def _names_of(text: str) -> set[str]:
    """Return the names of libraries and arrays in a statement.

    Examples
    --------
    >>> sorted(_names_of("cp.from_dlpack(t)"))
    ['cp', 't']
    """
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def address_of(array: Any) -> int:
    """Return the address of an array of any of the libraries."""
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    return array._address if hasattr(array, "_address") else array.data.ptr


def judged(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the bars with the measured values.

    Examples
    --------
    >>> rows = [{"statement": "x.__dlpack__()", "status": "ok", "microseconds": 0.25}]
    >>> [bar for bar in judged(rows) if bar["status"] == "ok"]
    [{'statement': 'x.__dlpack__()', 'over': '', 'bound': 0.5, 'status': 'ok', 'found': 0.25, 'met': True}]
    """
    times = {row["statement"]: row["microseconds"] for row in rows if row["status"] == "ok"}
    bars: list[dict[str, Any]] = []
    for bar in BARS:
        if bar.statement in times and (not bar.over or bar.over in times):
            found = times[bar.statement] / (times[bar.over] if bar.over else 1.0)
            bars.append({**bar._asdict(), "status": "ok", "found": found, "met": found <= bar.bound})
        else:
            bars.append({**bar._asdict(), "status": "not measured"})
    return bars


def markdown(found: Mapping[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        *report.provenance(found, "Exchange: "),
        f"Arrays of {COUNT} elements, float32 unless a dtype is named: `t` of torch, `c` of CuPy, `x` of tilearray.",
        "",
    ]
    bars = [
        [
            f"`{bar['statement']}`",
            f"`{bar['over']}`" if bar["over"] else "microseconds",
            f"{bar['bound']:.2f}",
            f"{bar['found']:.3f}" if bar["status"] == "ok" else bar["status"],
            {True: "met", False: "missed"}.get(bar.get("met"), ""),
        ]
        for bar in found["bars"]
    ]
    rows = [
        [
            f"`{row['statement']}`",
            *(
                [f"{row['microseconds']:.3f}", f"{row['best'] * 1e6:.3f}"]
                if row["status"] == "ok"
                else [row["status"], ""]
            ),
            row.get("why", ""),
        ]
        for row in found["rows"]
    ]
    return (
        "\n".join(lines)
        + "\n"
        + report.table(["bar", "over", "bound", "found", ""], bars, right=(2, 3))
        + "\n"
        + report.table(["host microseconds", "median", "best", ""], rows, right=(1, 2))
    )


if __name__ == "__main__":
    sys.exit(main())
