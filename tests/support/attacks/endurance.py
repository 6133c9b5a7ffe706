"""Mixed operations for a long time, and the memory that they hold meanwhile, as a plot.

::

    python -m support.attacks.endurance                                  1e6 operations on the host
    python -m support.attacks.endurance --device cuda --operations 10000000 --json h200.json
    python -m support.attacks.endurance --plot docs/endurance.svg h200.json cpu.json

Memory is flat if neither the process nor the GPU holds more at the end than after a tenth of the operations.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.parts import place
from tilearray import cuda

SAMPLES = 100
GROWTH = 4 << 20
"""The bytes by which the process may grow after the first tenth: Python's own memory moves by so much."""
BLOCKS = 64 << 10
"""The bytes by which the GPU's memory may grow then: a few blocks, if garbage lived longer once."""


def work(device: str) -> list[Callable[[], object]]:
    """Operations of all kinds on small arrays; each call is one operation, and drops its result."""
    found: list[Callable[[], object]] = []
    for shape, dtype in (((1000,), "float32"), ((30, 40), "float16"), ((7, 5, 6), "int32"), ((2000,), "float64")):
        x = ta.asarray(np.arange(np.prod(shape)).reshape(shape) % 7, device=device).astype(dtype)
        y, out = x[::-1], ta.empty_like(x)
        found += [
            *(lambda x=x: x + 1, lambda x=x, y=y: x * y, lambda x=x: -x, lambda x=x, y=y: x < y, lambda x=x: x.T),
            *(lambda x=x: x[1:], lambda x=x: ta.sum(x), lambda x=x: ta.max(x, axis=0), lambda x=x: x.astype("int64")),
            *(lambda x=x, out=out: ta.add(x, x, out=out), lambda x=x: ta.reshape(x, -1), lambda x=x: x[0]),
            *(lambda out=out: _in_place(out), lambda x=x, y=y: ta.where(x > 2, x, y), lambda x=x: x.copy()),
            *(lambda x=x: ta.zeros_like(x), lambda x=x: ta.concat([x, x]), lambda x=x: ta.sqrt(ta.abs(x))),
        ]
    return found


def seldom(device: str) -> list[Callable[[], object]]:
    """Operations that wait, or that keep objects of their own: one of them for each hundred others."""
    x, places = ta.arange(500, dtype="float32", device=device), ta.asarray([3, 5, 400], device=device)
    side = cuda.Stream() if device != "cpu" else None

    def aside() -> object:
        with cuda.stream(side):
            return x + 1

    return [
        *(lambda: x.tolist(), lambda: ta.asarray([1.0, 2.0], device=device), lambda: x[x > 7], lambda: x[places]),
        *(lambda: ta.sort(x), lambda: ta.from_dlpack(x), lambda: ta.cumulative_sum(x), lambda: _cycle(x)),
        *(lambda: float(x[3]), lambda: ta.to_numpy(x), lambda: ta.random.default_rng(1).random(9, device=device)),
        *([aside] if side is not None else []),
    ]


def _in_place(x: Any) -> None:
    x *= 1


def _cycle(x: Any) -> None:
    found: list[Any] = [x + 1]
    found.append(found)


def resident() -> int:
    """The bytes of the process that are in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def run(operations: int, device: str, seconds: float = 1e9) -> dict[str, Any]:
    """Run operations, at most for some seconds; return the memory over time."""
    often, rarely = work(device), seldom(device)
    samples: list[tuple[int, int, int]] = []
    done, started = 0, time.perf_counter()
    step = max(1, operations // SAMPLES)
    while done < operations and time.perf_counter() - started < seconds:
        until = min(operations, done + step)
        while done < until:
            for call in often:
                call()
            rarely[done // len(often) % len(rarely)]()
            done += len(often) + 1
        gc.collect()
        held = cuda.memory_statistics(device).held if device != "cpu" else 0
        samples.append((done, resident(), held))
    taken = time.perf_counter() - started
    return {"place": place(device), "device": device, "operations": done, "seconds": taken, "samples": samples}


def growth(record: dict[str, Any]) -> tuple[int, int]:
    """The bytes by which the process and the GPU's memory grew after a tenth of the operations."""
    samples = record["samples"]
    tenth, last = samples[len(samples) // 10], samples[-1]
    return last[1] - tenth[1], last[2] - tenth[2]


def plot(records: list[dict[str, Any]]) -> str:
    """Draw the memory of records as an SVG: one line each for the process, and for the GPU."""
    lines: list[tuple[str, list[tuple[int, int]]]] = []
    for number, record in enumerate(records, 1):
        name = f"{record['place'].split(',')[0]}, {number}" if len(records) > 1 else record["place"].split(",")[0]
        lines.append((f"process, {name}", [(n, held) for n, held, _ in record["samples"]]))
        if record["device"] != "cpu":
            lines.append((f"GPU memory, {name}", [(n, held) for n, _, held in record["samples"]]))
    most = max(n for _, points in lines for n, _ in points)
    drawn = [_panel(name, points, most, number) for number, (name, points) in enumerate(lines)]
    height = 90 * len(lines) + 30
    font = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" {font}>'
    foot = f'<text x="700" y="{height - 10}" text-anchor="end">{most:,} operations</text>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, foot, "</svg>"]) + "\n"


def _panel(name: str, points: list[tuple[int, int]], most: int, number: int) -> str:
    top, high = 90 * number + 10, max(max(held for _, held in points), 1)
    path = " ".join(f"{20 + 680 * n / most:.1f},{top + 70 - 50 * held / high:.1f}" for n, held in points)
    said = f"{name}: {points[-1][1] / 2**20:.1f} MiB at the end, {high / 2**20:.1f} at most"
    return (
        f'<text x="20" y="{top + 10}">{said}</text>\n'
        f'<path d="M20,{top + 70}H700" stroke="#999"/>\n'
        f'<polyline points="{path}" fill="none" stroke="#06c" stroke-width="1.5"/>'
    )


def main(arguments: list[str]) -> int:
    """Run operations and keep the record, or plot records; the status is 1 if memory grew."""
    parser = argparse.ArgumentParser(prog="python -m support.attacks.endurance", description="Run for a long time.")
    parser.add_argument("files", nargs="*", type=Path, help="records to plot")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="at most")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="write the record into a file")
    parser.add_argument("--plot", type=Path, help="write a plot of records")
    options = parser.parse_args(arguments)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in options.files]
    if not records:
        records = [run(options.operations, options.device, options.seconds)]
    if options.json:
        options.json.write_text(json.dumps(records[0]) + "\n", encoding="utf-8")
    if options.plot:
        options.plot.write_text(plot(records), encoding="utf-8")
    for record in records:
        grew = growth(record)
        each = f"{record['seconds'] / record['operations'] * 1e6:.2f} us each"
        print(f"{record['place']}: {record['operations']:,} operations, {each}; the process grew by {grew[0]:,} bytes")
        if record["device"] != "cpu":
            print(f"GPU memory grew by {grew[1]:,} bytes")
    return 1 if any(growth(each)[0] > GROWTH or growth(each)[1] > BLOCKS for each in records) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
