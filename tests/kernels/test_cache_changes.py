"""A directory of kernels that changes while it is used: files of other machines and versions, and files that vanish."""

from __future__ import annotations

import os
import shutil
import warnings

import pytest
from support.cubins import OPTIONS, ask, kernel_of, key, never, path_of, temporary_files
from support.threads import in_threads

from tilearray_cuda.kernels import cubin, disk_cache
from tilearray_cuda.kernels.disk_cache import Statistics, key_of


def test_kernels_of_several_architectures_lie_side_by_side(fresh):
    kernels = {arch: kernel_of(f"for {arch}") for arch in (80, 90, 100)}
    for arch, kernel in kernels.items():
        assert fresh().load_or_compile("a", arch, OPTIONS, "", lambda made=kernel: made) == kernel
    for arch, kernel in kernels.items():
        assert fresh().load_or_compile("a", arch, OPTIONS, "", never) == kernel


@pytest.mark.parametrize("moves", [False, True])
def test_a_file_of_another_architecture_under_the_right_name_is_a_miss(fresh, moves):
    kept = fresh()
    kept.load_or_compile("a", 80, OPTIONS, "", lambda: kernel_of("other machine"))
    other = kept.directory / f"{key_of('a', 80, OPTIONS)}.cubin"
    (os.replace if moves else shutil.copy)(other, path_of(kept, "a"))  # "a" is for 90
    kept = fresh()
    assert ask(kept, "a") == kernel_of("a")
    assert kept.statistics() == Statistics(memory_hits=0, disk_hits=0, compiles=1, evictions=0)
    assert fresh().load_or_compile("a", 90, OPTIONS, "", never) == kernel_of("a")  # replaced


@pytest.mark.parametrize("change", ["schema", "triton"])
def test_two_versions_share_a_directory_and_no_kernel(fresh, monkeypatch, change):
    """What is written by one version is neither read, nor damaged, nor counted as damage by the other."""
    mine, theirs = kernel_of("mine"), kernel_of("theirs")
    assert fresh().load_or_compile("a", 90, OPTIONS, "", lambda: mine) == mine
    with monkeypatch.context() as patch:
        if change == "schema":
            patch.setattr(cubin, "SCHEMA", cubin.SCHEMA + 1)
        else:
            patch.setattr(cubin, "triton_version", lambda: "99.0")
        assert fresh().load_or_compile("a", 90, OPTIONS, "", lambda: theirs) == theirs
        assert fresh().load_or_compile("a", 90, OPTIONS, "", never) == theirs
    assert fresh().load_or_compile("a", 90, OPTIONS, "", never) == mine
    with monkeypatch.context() as patch:
        if change == "schema":
            patch.setattr(cubin, "SCHEMA", cubin.SCHEMA + 1)
        else:
            patch.setattr(cubin, "triton_version", lambda: "99.0")
        assert fresh().load_or_compile("a", 90, OPTIONS, "", never) == theirs


def test_a_file_that_vanishes_before_it_is_opened_is_a_miss(fresh, monkeypatch):
    ask(fresh(), "a")
    kept, opened = fresh(), disk_cache.open_file

    def late(path: str):
        os.unlink(path)
        return opened(path)

    monkeypatch.setattr(disk_cache, "open_file", late)
    assert ask(kept, "a") == kernel_of("a")
    assert kept.statistics().compiles == 1


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed there")
def test_a_file_that_vanishes_while_it_is_read_is_read_to_its_end(fresh, monkeypatch):
    ask(fresh(), "a")
    kept, opened = fresh(), disk_cache.open_file

    def early(path: str):
        file = opened(path)
        os.unlink(path)
        return file

    monkeypatch.setattr(disk_cache, "open_file", early)
    assert kept.load_or_compile("a", 90, OPTIONS, "", never) == kernel_of("a")


def test_a_directory_that_vanishes_while_a_file_is_written_costs_no_kernel(fresh, monkeypatch):
    kept, replace = fresh(), os.replace

    def late(source: str, target: str) -> None:
        shutil.rmtree(kept.directory)
        replace(source, target)

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was not stored may be said
        patch.setattr(os, "replace", late)
        assert ask(kept, "a") == kernel_of("a")
    assert kept.load_or_compile("a", 90, OPTIONS, "", never) == kernel_of("a")  # in memory
    ask(kept, "b")
    assert [entry.key for entry in kept.entries()] == [key("b")]
    assert temporary_files(kept.directory) == []


def test_threads_look_up_what_others_delete(fresh):
    directory = fresh().directory

    def work(number: int) -> int:
        kept, right = fresh(), 0
        for step in range(60):
            source = str((number + step) % 7)
            kept._memory.clear()
            right += ask(kept, source) == kernel_of(source)
            if number % 4 == 0:
                shutil.rmtree(directory, ignore_errors=True)
            elif number % 4 == 1:
                kept.clear()
        return right

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel was not stored may be said
        assert in_threads(8, work, interval=1e-5) == [60] * 8
