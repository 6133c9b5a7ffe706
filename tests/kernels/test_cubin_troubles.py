"""The cache of compiled kernels on a failing file system: one warning, and kernels stay in memory."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from typing import Any

import pytest
from support.cubins import (
    OPTIONS,
    age,
    ask,
    file_size,
    kernel_of,
    key,
    never,
    output,
    path_of,
    start,
    temporary_files,
)

from tilearray_cuda.kernels import cubin
from tilearray_cuda.kernels.disk_cache import CacheWarning, Statistics, key_of


class FullDisk:
    """`open` on a file system where a file can hold at most 50 bytes."""

    def __init__(self, path: str, mode: str, **options: Any) -> None:
        self.file = open(path, mode, **options)  # noqa: SIM115

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> int:
        self.file.write(data[:50])
        self.file.flush()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk(monkeypatch) -> str:
    monkeypatch.setattr(
        cubin, "open", lambda path, mode, **options: (FullDisk if "x" in mode else open)(path, mode, **options), False
    )
    return "No space left on device"


def read_only_file_system(monkeypatch) -> str:
    def refuse(path: str, mode: str, **options: Any) -> Any:
        if "x" in mode:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return open(path, mode, **options)

    def refuse_change(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(cubin, "open", refuse, False)
    for name in ("makedirs", "mkdir", "utime", "unlink", "replace"):
        monkeypatch.setattr(os, name, refuse_change)
    return "Read-only file system"


def directory_of_somebody_else(monkeypatch) -> str:
    def refuse(path: str, mode: str, **options: Any) -> Any:
        if "x" in mode:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open(path, mode, **options)

    def refuse_change(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(cubin, "open", refuse, False)
    for name in ("utime", "unlink"):
        monkeypatch.setattr(os, name, refuse_change)
    return "Permission denied"


def failing_rename(monkeypatch) -> str:
    def refuse(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "replace", refuse)
    return os.strerror(errno.EDQUOT)


TROUBLES = [full_disk, read_only_file_system, directory_of_somebody_else, failing_rename]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_failing_writes_cause_one_warning_and_kernels_stay_in_memory(fresh, monkeypatch, trouble):
    ask(fresh(), "before")
    kept = fresh()
    with monkeypatch.context() as patch:
        reason = trouble(patch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results = [ask(kept, str(number)) for number in range(20)]
            results += [kept.load_or_compile(str(number), 90, OPTIONS, "", never) for number in range(20)]
            assert ask(kept, "before") == kernel_of("before")  # still read from disk
    assert results == [kernel_of(str(number)) for number in range(20)] * 2
    assert [warning.category for warning in caught] == [CacheWarning]
    message = str(caught[0].message)
    assert message.startswith(f"load_or_compile: expected to store compiled kernels in {str(kept.directory)!r}, got ")
    assert reason in message
    assert message.endswith("TILEARRAY_CACHE_SIZE=0 keeps kernels in memory and is silent")
    assert kept.statistics() == Statistics(memory_hits=20, disk_hits=1, compiles=20, evictions=0)
    assert [entry.key for entry in kept.entries()] == [key("before")]
    assert temporary_files(kept.directory) == []
    ask(kept, "afterwards")  # writes work again
    assert path_of(kept, "afterwards").exists()


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_read_only_directory_serves_hits_without_a_warning(fresh, monkeypatch, trouble):
    for source in "abc":
        ask(fresh(), source)
    kept = fresh()
    with monkeypatch.context() as patch:
        trouble(patch)
        assert [ask(kept, source) for source in "abc"] == [kernel_of(source) for source in "abc"]
    assert kept.statistics() == Statistics(0, 3, 0, 0)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_compiled_kernel_is_not_lost_if_warnings_are_errors(fresh, monkeypatch, trouble):
    trouble(monkeypatch)
    kept = fresh()
    with pytest.raises(CacheWarning):
        ask(kept, "a")
    assert kept.load_or_compile("a", 90, OPTIONS, "", never) == kernel_of("a")


def test_eviction_continues_after_a_file_that_cannot_be_removed(fresh, monkeypatch):
    kept = fresh(limit=10 * file_size(1000))
    for number, source in enumerate("abcdefghij"):
        ask(kept, source, size=1000)
        age(kept, source, 1000 - number)
    unlink = os.unlink

    def refuse_two(path: str) -> None:
        if key("a") in path:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)
        unlink(path)
        if key("b") in path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)  # another process was faster

    monkeypatch.setattr(os, "unlink", refuse_two)
    ask(kept, "k", size=1000)
    assert "".join(source for source in "abcdefghijk" if path_of(kept, source).exists()) in ("aefghijk", "adefghijk")


def test_a_removed_directory_is_made_again(fresh):
    kept = fresh()
    ask(kept, "a")
    shutil.rmtree(kept.directory)
    ask(kept, "b")
    assert [entry.key for entry in kept.entries()] == [key("b")]


def test_a_file_in_the_directorys_place_is_not_changed(fresh):
    kept = fresh()
    kept.directory.write_text("mine")
    with pytest.warns(CacheWarning, match="Not a directory"):
        ask(kept, "a")
    assert ask(kept, "a") == kernel_of("a")
    assert (kept.entries(), kept.clear()) == ([], (0, 0))
    assert kept.directory.read_text() == "mine"


def test_a_real_limit_on_file_size_leaves_no_partial_file(tmp_path):
    code = """
import resource, sys, warnings
from tilearray_cuda.kernels.disk_cache import Cubin, CubinCache
kept = CubinCache(sys.argv[1])
make = lambda: Cubin(bytes(100_000), "k", 4, 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    kept.load_or_compile("a", 90, (), "", make)
    kept.load_or_compile("b", 90, (), "", lambda: Cubin(b"small", "k", 4, 0))
print(*(str(w.message) for w in caught), len(kept.entries()))
"""
    printed = output(start(code, tmp_path / "cubins"))
    assert os.strerror(errno.EFBIG) in printed
    assert printed.strip().endswith(" 1")
    assert len(list((tmp_path / "cubins").iterdir())) == 1


def test_a_writer_that_is_killed_leaves_no_entry(fresh):
    code = """
import os, sys
from tilearray_cuda.kernels.disk_cache import Cubin, CubinCache
os.replace = lambda *_: os._exit(9)
CubinCache(sys.argv[1]).load_or_compile("a", 90, (), "", lambda: Cubin(b"code", "k", 4, 0))
"""
    kept = fresh()
    process = start(code, kept.directory)
    process.communicate(timeout=60)
    assert process.returncode == 9
    assert len(temporary_files(kept.directory)) == 1
    assert (kept.entries(), kept.lookup(key_of("a", 90, ()))) == ([], None)
