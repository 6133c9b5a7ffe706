"""The time from the start of a process to the first result. Each number comes from its own process.

A child process imports NumPy, then tilearray. On a GPU it imports the driver's bindings and makes the context, a cost
that every GPU library has. Then it moves an array to the device, and adds. With an empty cache folder the first
addition compiles (cold). The next child finds the compiled kernel (warm). ``python -m benchmarks.startup DEVICE`` is
the child: it prints its seconds as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.timing import GpuClock

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("import numpy", "import tilearray", "import cuda.bindings", "context", "asarray", "first op", "second op")
TIMEOUT = 120


def measure(device: str, starts: int) -> dict[str, dict[str, float] | str]:
    """Return the median seconds of every step, cold and warm; or the last line of a child that failed."""
    found: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    try:
        for _ in range(starts):
            with tempfile.TemporaryDirectory(prefix="tilearray-bench-") as cache:
                for kind in ("cold", "warm"):
                    found[kind].append(child(device, cache))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"error": str(getattr(error, "stderr", "") or error).strip().splitlines()[-1]}
    return {kind: {step: median(one[step] for one in runs) for step in STEPS} for kind, runs in found.items()}


def child(device: str, cache: str) -> dict[str, float]:
    """Run one start in its own process."""
    paths = [str(ROOT), str(ROOT / "backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TILEARRAY_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled to bytecode
    command = [sys.executable, "-m", "benchmarks.startup", device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    return json.loads(done.stdout)


def steps(device: str) -> dict[str, float]:
    """Return the seconds of each step in this process, which must not have run any of them before."""
    marks = [time.perf_counter()]

    import numpy as np

    marks.append(time.perf_counter())
    import tilearray as ta

    marks.append(time.perf_counter())
    if device == "cuda":
        importlib.import_module("cuda.bindings.driver")
    marks.append(time.perf_counter())
    if device == "cuda":
        GpuClock()
    marks.append(time.perf_counter())
    x = ta.asarray(np.ones(1000, np.float32), device=device)
    marks.append(time.perf_counter())
    for _ in range(2):
        ta.to_numpy(x + x)
        marks.append(time.perf_counter())
    return {step: after - before for step, before, after in zip(STEPS, marks, marks[1:])}


if __name__ == "__main__":
    print(json.dumps(steps(sys.argv[1])))
