"""An interrupt while a kernel is compiled or kept is a KeyboardInterrupt wherever it comes, and breaks nothing."""

from __future__ import annotations

import gc
import linecache
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from support.cubins import ask, file_size, kernel_of, temporary_files

from tilearray_cuda.kernels import compile as compiler
from tilearray_cuda.kernels.disk_cache import CubinCache


def interrupted(call: Callable[[], object], number: int) -> BaseException | None:
    """What a call raises when an interrupt comes before the `number`-th line of the cache, or of what it uses.

    None: it runs fewer lines. To leave a `with` block counts as a line for tracers. Python looks for signals after
    calls and at jumps, and there is none before the block's `__exit__` is called, so nothing is raised there.
    """
    lines = 0
    entered: set[tuple[FrameType, int]] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if frame.f_globals["__name__"].partition(".")[0] not in ("tilearray_cuda", "contextlib", "shutil", "tempfile"):
            return None
        if event == "line" and (frame, frame.f_lineno) not in entered:
            if linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
                entered.add((frame, frame.f_lineno))
            lines += 1
            if lines == number:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except BaseException as error:
        return error
    finally:
        sys.settrace(before)
    return None


def every_interrupt(make: Callable[[int], Callable[[], object]]) -> Iterator[int]:
    """Interrupt a new call before each of its lines; yield the line's number when the call is over."""
    number = 1
    while (error := interrupted(make(number), number)) is not None:
        assert type(error) is KeyboardInterrupt, (number, error)
        del error
        yield number
        number += 1


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open descriptors are listed by Linux")


@needs_proc
@pytest.mark.parametrize("state", ["no directory", "a full one", "kept already"])
def test_an_interrupt_of_the_cache_leaves_it_as_good_as_before(tmp_path: Path, state: str):
    caches: dict[int, CubinCache] = {}
    size = file_size(64)

    def make(number: int) -> Callable[[], object]:
        kept = caches[number] = CubinCache(tmp_path / str(number) / "cubins", 3 * size)
        sources = {"no directory": "", "a full one": "xyz", "kept already": "a"}[state]
        for source in sources:
            ask(CubinCache(kept.directory, 3 * size), source)
        return lambda: ask(kept, "a")

    before = descriptors()
    number = 0
    for number in every_interrupt(make):
        kept = caches.pop(number)
        if kept.directory.exists():
            assert temporary_files(kept.directory) == []
        assert kept.entries() == [entry for entry in kept.entries() if kept.lookup(entry.key)]
        assert ask(kept, "a") == kernel_of("a")  # no lock is held
        assert ask(CubinCache(kept.directory), "a") == kernel_of("a")
        shutil.rmtree(tmp_path / str(number))
    assert number > 20
    assert descriptors() == before


@needs_proc
def test_an_interrupt_of_a_compilation_is_one_wherever_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`shutil.rmtree` up to Python 3.12 made OSError(9, 'Bad file descriptor') of it, after a second close."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tempfile.mkdtemp()  # from the first call on, tempfile has its lock behind it

    def compiled(source: object, arch: int, contract: bool, folder: str) -> Any:
        place = Path(folder, "key", "deeper")
        place.mkdir(parents=True)
        (place / "kernel.ptx").write_text("")
        (place.parent / "kernel.cubin").write_bytes(b"")
        metadata = SimpleNamespace(global_scratch_size=0, name="k", num_warps=4, shared=0)
        return SimpleNamespace(metadata=metadata, asm={"cubin": b"code", "ptx": ""})

    monkeypatch.setattr(compiler, "_compile", compiled)
    source: Any = SimpleNamespace(name="k", memory=0)
    before = descriptors()
    number = 0
    for number in every_interrupt(lambda _: lambda: compiler.compile_source(source, 90)):
        assert not compiler._lock._is_owned(), number
    assert number > 20
    assert descriptors() == before
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert compiler.compile_source(source, 90).cubin == b"code"
    assert list(tmp_path.iterdir()) == []
