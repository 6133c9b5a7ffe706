"""Helpers of the tests of the disk cache: invented kernels, other processes, and threads that start together."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilearray_cuda.kernels import cubin, disk_cache
from tilearray_cuda.kernels.disk_cache import Cubin, CubinCache, key_of

OPTIONS: tuple[tuple[str, object], ...] = (("num_warps", 4), ("enable_fp_fusion", False))


def kernel_of(source: str, size: int = 64) -> Cubin:
    """Code that only `source` has, of `size` bytes."""
    return Cubin(random.Random(source).randbytes(size), f"kernel_{source}", 4, 1024)


def ask(kept: CubinCache, source: str, size: int = 64, label: str = "") -> Cubin:
    return kept.load_or_compile(source, 90, OPTIONS, label, lambda: kernel_of(source, size))


def never() -> Cubin:
    raise AssertionError("compiled, although the kernel is kept")


def key(source: str) -> str:
    return key_of(source, 90, OPTIONS)


def path_of(kept: CubinCache, source: str) -> Path:
    return kept.directory / f"{key(source)}.cubin"


def bytes_in(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir())


def temporary_files(directory: Path) -> list[Path]:
    return list(directory.glob("*.tmp"))


def age(kept: CubinCache, source: str, seconds: float) -> None:
    """Let the last use of a kernel be so long ago."""
    then = time.time() - seconds
    os.utime(path_of(kept, source), (then, then))


def file_size(size: int) -> int:
    return len(cubin.pack(key("a"), 90, kernel_of("a", size)))


def empty_cache(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the shared cache, of this process and of those that it starts, be in a directory that is not there yet."""
    monkeypatch.setenv("TILEARRAY_CACHE_DIR", str(directory))
    monkeypatch.delenv("TILEARRAY_CACHE_SIZE", raising=False)
    monkeypatch.setattr(disk_cache, "_shared", [])
    return directory


def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    return out
