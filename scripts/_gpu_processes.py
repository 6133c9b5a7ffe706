"""What the parts of `scripts/gpu` have in common: their processes, and the machine on which these run."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAUSE = 0.05
"""Seconds between two looks at a process."""


def environment_of(*folders: Path) -> dict[str, str]:
    """Return the variables of a process that imports from these folders of the tree, and takes no memory ahead."""
    path = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def smallest_memory() -> int:
    """Return the bytes of the GPU with the least memory; 0 if there is none."""
    return min((int(line) << 20 for line in output_of("--query-gpu=memory.total")), default=0)


def gpus() -> list[str]:
    return output_of("--query-gpu=name,driver_version")


def output_of(query: str) -> list[str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def say(text: str) -> None:
    print(text, flush=True)
