"""How long it takes from nothing to the first result: each number from a process of its own.

A child imports NumPy, then tilearray; on a GPU it imports the driver's bindings and makes the context, which everybody
on a GPU pays for; it moves an array there, and adds. With an empty cache folder the first addition compiles (cold);
the next child finds what the first one left (warm). ``python -m benchmarks.startup DEVICE`` is the child: it prints its
seconds as JSON.
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
    """Median seconds of every step, cold and warm; where a child fails, its last line."""
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
    """One start in a process of its own."""
    paths = [str(ROOT), str(ROOT / "backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TILEARRAY_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    command = [sys.executable, "-m", "benchmarks.startup", device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    return json.loads(done.stdout)


def steps(device: str) -> dict[str, float]:
    """The seconds of each step in this process, which must not have done any of them."""
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
