"""The report of a run: the measurements, the device and the versions, as JSON for programs and Markdown for people.

A report contains only measurements of its run. If a measurement is missing, the reason replaces the number.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing import GpuClock

RESULTS = Path(__file__).resolve().parent / "results"
SCHEMA = 1
CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
PACKAGES = ("numpy", "ml_dtypes", "triton", "cuda-bindings", "torch", *CUPY, "jax", "flag_gems")
FAILURES = ("mismatch", "error")
Row = Mapping[str, Any]


# ---------------------------------------------------------------------- environment


def environment(device: str, clock: Any, module: str = "benchmarks") -> dict[str, Any]:
    """Return date, device, driver, versions, command and commit."""
    import tilearray

    return {
        "schema": SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": ["python", "-m", module, *without_folder(sys.argv[1:])],
        "commit": output_of("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "device": gpu_facts(clock) if device == "cuda" else cpu_facts(),
        "versions": {"python": platform.python_version(), "tilearray": tilearray.__version__, **versions()},
    }


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def gpu_facts(clock: GpuClock) -> dict[str, Any]:
    """Return the GPU's name, its compute capability, its memory, and the versions of its driver."""
    driver, attribute = clock.driver, clock.driver.CUdevice_attribute
    name = clock.check(driver.cuDeviceGetName(128, clock.device)).partition(b"\0")[0].decode()
    parts = [getattr(attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")]
    capability = ".".join(str(clock.check(driver.cuDeviceGetAttribute(part, clock.device))) for part in parts)
    cuda = clock.check(driver.cuDriverGetVersion())
    return {
        "kind": "cuda",
        "name": name,
        "compute_capability": capability,
        "memory": clock.check(driver.cuDeviceTotalMem(clock.device)),
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
    }


def cpu_facts() -> dict[str, Any]:
    """Return the processor's name and the number of cores that this process may use."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    model = re.search(r"model name\s*: (.+)", text)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = model[1] if model else platform.processor() or platform.machine()
    return {"kind": "cpu", "name": name, "cores": cores, "driver": "none"}


def without_folder(arguments: list[str]) -> list[str]:
    """Return the arguments without ``--out``, because the folder of a report has no influence on its figures.

    >>> without_folder(["--device", "cuda", "--out", "/somewhere"])
    ['--device', 'cuda']
    """
    return [
        argument
        for before, argument in zip(["", *arguments], arguments, strict=False)
        if before != "--out" and argument != "--out" and not argument.startswith("--out=")
    ]


def output_of(*command: str) -> str:
    """Return the first line that a command prints, or "unknown"."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return (done.stdout.strip().splitlines() or ["unknown"])[0]


# ---------------------------------------------------------------------- failures


def failures(report: Row) -> list[tuple[str, str, str]]:
    """Return row, library and reason of every wrong result and every error."""
    return [
        (row["name"], library, f"{found['status']}: {found['why']}")
        for row in (*report["layouts"], *report["calls"])
        for library, found in row["results"].items()
        if found["status"] in FAILURES
    ]


def succeeded(report: Row) -> bool:
    """Whether no result was wrong and tilearray had no error. An error of a peer does not count."""
    broken = [library == "tilearray" or why.startswith("mismatch") for _, library, why in failures(report)]
    return not any(broken) and "error" not in report["startup"] and not report["stopped"]


# ---------------------------------------------------------------------- Markdown


def markdown(report: Row) -> str:
    """Return the report as Markdown."""
    parts = [heading(report)]
    if report["layouts"]:
        parts.append(layout_table(report))
    if report["calls"]:
        parts.append(call_table(report))
    if report["startup"]:
        parts.append(startup_table(report["startup"]))
    wrong = failures(report)
    if wrong:
        parts.append("## Failures\n\n" + table(["row", "library", "reason"], wrong, right=()))
    return "\n".join(parts)


def provenance(report: Row, title: str = "") -> list[str]:
    """Return the first lines of a report: device, date, versions, commit and command."""
    device, versions = report["device"], report["versions"]
    return [
        f"# {title}{device['name']}, {report['date']}",
        "",
        f"Driver {device['driver']}; " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
        f"Commit {report['commit']}; size {report['size']}; `{' '.join(report['command'])}`.",
    ]


def heading(report: Row) -> str:
    lines = provenance(report)
    for name, found in report["yardsticks"].items():
        lines.append(
            f"Yardstick {name}: {found['median']:.0f} GB/s, from {found['lowest']:.0f} to {found['highest']:.0f} "
            f"in {found['measured']} measurements of this run."
        )
    for library, why in report["copied"].items():
        lines.append(f"{library} used copies of the arrays, not the same memory: {why}.")
    if report["size"] == "small":
        lines.append("A small run: it shows that everything runs correctly; its figures say nothing about speed.")
    if report["stopped"]:
        lines.append(f"**The run stopped early: {report['stopped']}**")
    return "\n".join(lines) + "\n"


def layout_table(report: Row) -> str:
    """Return bandwidths: GB/s of ideal bytes, and tilearray's fraction of the yardstick and of the fastest peer."""
    libraries = report["libraries"]
    rows = [
        [
            f"`{row['name']}`",
            *(cell(row["results"].get(library), lambda found: f"{found['gb_per_s']:.0f}") for library in libraries),
            cell(row["results"].get("tilearray"), lambda found: f"{found['of_yardstick']:.3f}", "")
            + (" memset" if row["against"] == "memset" else ""),
            best_peer(row),
        ]
        for row in report["layouts"]
    ]
    columns = ["GB/s of ideal bytes", *libraries, "tilearray of copy (sectors)", "speed over best peer"]
    return "## Layouts\n\n" + table(columns, rows)


def call_table(report: Row) -> str:
    """Return host times: microseconds until a call returns."""
    libraries = report["libraries"]
    rows = [
        [
            f"`{row['name']}`",
            *(cell(row["results"].get(library), lambda found: f"{found['microseconds']:.2f}") for library in libraries),
            best_peer(row),
        ]
        for row in report["calls"]
    ]
    floor = report["launch_floor"]
    note = ""
    if floor:
        measured = cell(floor, lambda found: f"{found['microseconds']:.2f} microseconds")
        note = f"\nA bare launch: {measured}{floor.get('why', '') and ': ' + floor['why']}.\n"
    return "## Calls\n\n" + table(["host microseconds", *libraries, "speed over best peer"], rows) + note


def startup_table(startup: Row) -> str:
    """Return the times from the start of a process to the first result, in milliseconds."""
    if "error" in startup:
        return f"## Start-up\n\nNot measured: {startup['error']}\n"
    steps = list(startup["cold"])
    rows = [[f"{kind} cache", *(f"{startup[kind][step] * 1e3:.1f}" for step in steps)] for kind in ("cold", "warm")]
    return "## Start-up\n\n" + table(["milliseconds", *steps], rows)


def cell(found: Row | None, text: Callable[[Row], str], otherwise: str | None = None) -> str:
    """Return a number, or the reason why there is none."""
    if found is None:
        return "not requested"
    if found["status"] == "ok":
        return text(found)
    return found["status"] if otherwise is None else otherwise


def best_peer(row: Row) -> str:
    return f"{row['speed_of_best_peer']:.2f} ({row['best_peer']})" if "best_peer" in row else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] | None = None) -> str:
    """Return a Markdown table that is also readable in a terminal. All columns except the first are flush right.

    Examples
    --------
    >>> print(table(["GB/s", "torch"], [["a + b", "4286"]]), end="")
    | GB/s  | torch |
    |-------|------:|
    | a + b |  4286 |
    """
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    flush = range(1, len(header)) if right is None else right

    def padded(cell: str, column: int) -> str:
        return cell.rjust(widths[column]) if column in flush else cell.ljust(widths[column])

    text = [[padded(cell, column) for column, cell in enumerate(line)] for line in lines]
    rules = ["-" * (width + 1) + (":" if column in flush else "-") for column, width in enumerate(widths)]
    return "".join(
        [f"| {' | '.join(text[0])} |\n", f"|{'|'.join(rules)}|\n", *(f"| {' | '.join(line)} |\n" for line in text[1:])]
    )


# ---------------------------------------------------------------------- files


def file_stem(report: Row) -> str:
    """Return the name of a report's files, without extension.

    Examples
    --------
    >>> file_stem({"date": "2026-11-21T10:30:05+00:00", "device": {"name": "NVIDIA H200"}, "size": "full"})
    '2026-11-21T1030-nvidia-h200'
    """
    device = re.sub(r"[^a-z0-9]+", "-", report["device"]["name"].lower()).strip("-")
    moment = report["date"][:16].replace(":", "")
    return f"{moment}-{device}" + ("-small" if report["size"] == "small" else "")


def write(report: Row, folder: Path, text: str | None = None, part: str = "") -> list[Path]:
    """Write the report's two files atomically, and return their paths.

    A report of another kind passes its own Markdown, and a part of the file name that identifies it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = file_stem(report) + part
    contents = {
        f"{stem}.json": json.dumps(report, indent=1, allow_nan=False) + "\n",
        f"{stem}.md": markdown(report) if text is None else text,
    }
    return [write_whole(folder / name, text) for name, text in contents.items()]


def write_unfinished(report: Row, folder: Path, text: str, part: str) -> None:
    """Write what is measured so far, in the files that `write` replaces: the end of the time loses no row."""
    write({**report, "unfinished": True}, folder, f"**Unfinished: the rest of the rows is not here.**\n\n{text}", part)


def write_whole(path: Path, text: str) -> Path:
    """Write a text file atomically, and return its path."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path
