"""Processes that share one directory of kernels, which is damaged meanwhile: at worst they compile again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.attacks.outcome import Outcome

PROCESSES, LOOKUPS = 4, 150
PROGRAM = """
import random, sys, threading, warnings
from tilearray_cuda.kernels.disk_cache import Cubin, CubinCache

def kernel(source, arch):
    return Cubin(random.Random(f"{source} {arch}").randbytes(300 + 50 * int(source)), "k" + source, 4, arch, source)

def work(kept, seed, wrong):
    chance = random.Random(seed)
    for _ in range(int(sys.argv[3])):
        source, arch = str(chance.randrange(12)), chance.choice([80, 90, 100])
        found = kept.load_or_compile(source, arch, (), source, lambda: kernel(source, arch))
        if found != kernel(source, arch):
            wrong.append(f"{source} for {arch}")
        if chance.random() < 0.3:
            kept._memory.clear()  # so that it reads the directory

warnings.simplefilter("ignore")
wrong = []
kept = CubinCache(sys.argv[1], 60_000)
threads = [threading.Thread(target=work, args=(kept, f"{sys.argv[2]} {number}", wrong)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*kept.statistics(), len(wrong), wrong[:3])
"""


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Start processes on one empty directory, and damage what they write; a case is one lookup."""
    outcome, rng = Outcome("lookups in a cache that is damaged", "cpu"), random.Random(seed)
    del device  # the cache does not ask which machine code it keeps
    while outcome.wants(cases):
        with tempfile.TemporaryDirectory() as folder:
            _round(Path(folder) / "kernels", rng, outcome, cases)
    return outcome


def _round(directory: Path, rng: random.Random, outcome: Outcome, cases: int) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(directory), str(rng.random()), str(LOOKUPS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(PROCESSES)
    ]
    while any(process.poll() is None for process in started):
        _damage(directory, rng)
    for process in started:
        printed, errors = process.communicate()
        if process.returncode or errors:
            outcome.fail(f"status {process.returncode}: {errors[-300:]}")
            continue
        memory, disk, compiled, _, wrong, *told = printed.split(maxsplit=5)
        for end, count in (("from memory", memory), ("from disk", disk), ("compiled", compiled)):
            for _ in range(int(count)):
                outcome.count(end, cases)
        if int(wrong):
            outcome.fail(f"{wrong} wrong kernels: {told}")


def _damage(directory: Path, rng: random.Random) -> None:
    """Delete the directory, or cut, flip, swap, empty or delete a file of it."""
    if rng.random() < 0.02:
        shutil.rmtree(directory, ignore_errors=True)
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file())
        if not files:
            return
        path, other = rng.choice(files), rng.choice(files)
        data = bytearray(path.read_bytes())
        way = rng.randrange(5)
        if way == 0:
            path.unlink()
        elif way == 1:
            path.write_bytes(data[: rng.randrange(len(data) + 1)])
        elif way == 2 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        elif way == 3:
            path.write_bytes(other.read_bytes())
        else:
            path.write_bytes(b"")
    except OSError:  # another process was faster
        pass
