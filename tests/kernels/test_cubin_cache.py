"""The cache of compiled kernels in one process: the order of its levels, its list, and its bound."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest
from support.cubins import (
    OPTIONS,
    age,
    ask,
    bytes_in,
    file_size,
    kernel_of,
    key,
    never,
    path_of,
)
from support.threads import in_threads

from tilearray_cuda.kernels import disk_cache
from tilearray_cuda.kernels.disk_cache import Cubin, Entry, Statistics

# Memory, disk, compiler


def test_memory_comes_first_then_disk_then_the_compiler(fresh):
    kept = fresh()
    assert kept.lookup(key("a")) is None
    assert ask(kept, "a", label="add") == kernel_of("a")._replace(label="add")
    assert ask(kept, "a", label="another name for it").label == "add"
    assert kept.lookup(key("a")) is kept.lookup(key("a"))
    assert kept.statistics() == Statistics(memory_hits=3, disk_hits=0, compiles=1, evictions=0)
    path_of(kept, "a").unlink()
    assert kept.load_or_compile("a", 90, OPTIONS, "", never) == kept.lookup(key("a"))
    ask(kept, "b")
    other = fresh()
    assert other.load_or_compile("b", 90, OPTIONS, "", never) == kernel_of("b")
    assert other.load_or_compile("b", 90, OPTIONS, "", never) == kernel_of("b")
    assert other.statistics() == Statistics(memory_hits=1, disk_hits=1, compiles=0, evictions=0)


def test_memory_is_bounded_and_forgets_the_least_recently_used(fresh, monkeypatch):
    monkeypatch.setattr(disk_cache, "MEMORY_LIMIT", 3000)
    kept = fresh(limit=0)
    for source in "abc":
        ask(kept, source, size=1000)
    ask(kept, "a", size=1000)  # used
    ask(kept, "d", size=1000)
    assert [source for source in "abcd" if kept.lookup(key(source))] == ["a", "c", "d"]
    ask(kept, "large", size=5000)
    assert [source for source in ("a", "c", "d", "large") if kept.lookup(key(source))] == ["large"]
    ask(kept, "small", size=10)
    assert [source for source in ("large", "small") if kept.lookup(key(source))] == ["small"]
    assert kept._memory_size == 10


def test_a_kernel_that_two_threads_read_at_once_counts_once_in_memory(fresh):
    ask(fresh(), "a", size=1000)
    kept = fresh()
    for _ in range(2):  # both found memory empty
        assert kept._from_disk(key("a")) == kernel_of("a", 1000)
    assert kept._memory_size == 1000


def test_an_error_of_the_compiler_passes_through_and_is_not_kept(fresh):
    kept = fresh()

    def fail() -> Cubin:
        raise ZeroDivisionError("in the compiler")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the compiler"):
            kept.load_or_compile("a", 90, OPTIONS, "", fail)
    assert kept.statistics() == Statistics(0, 0, 0, 0)
    assert ask(kept, "a") == kernel_of("a")
    assert kept._compiling == {}


def test_threads_that_ask_for_one_key_compile_it_once(fresh):
    kept, compiled = fresh(), []

    def slow() -> Cubin:
        compiled.append(threading.get_ident())
        time.sleep(0.1)
        return kernel_of("a")

    results = in_threads(16, lambda _: kept.load_or_compile("a", 90, OPTIONS, "", slow))
    assert results == [kernel_of("a")] * 16
    assert len(compiled) == 1
    assert kept.statistics() == Statistics(memory_hits=15, disk_hits=0, compiles=1, evictions=0)
    assert kept._compiling == {}


def test_threads_that_ask_for_different_keys_compile_at_the_same_time(fresh):
    kept, inside = fresh(), threading.Barrier(4)

    def make() -> Cubin:
        inside.wait(30)  # for the other three threads, in the compiler
        return kernel_of("x")

    results = in_threads(4, lambda number: kept.load_or_compile(str(number), 90, OPTIONS, "", make))
    assert results == [kernel_of("x")] * 4


def test_a_thread_that_waited_for_a_failed_compilation_compiles_itself(fresh):
    kept, attempts = fresh(), []

    def fails_first() -> Cubin:
        attempts.append(None)
        time.sleep(0.05)
        if len(attempts) == 1:
            raise ZeroDivisionError
        return kernel_of("a")

    results = in_threads(4, lambda _: kept.load_or_compile("a", 90, OPTIONS, "", fails_first))
    assert sum(isinstance(result, ZeroDivisionError) for result in results) == 1
    assert results.count(kernel_of("a")) == 3
    assert len(attempts) == 2


# Listing and clearing


def test_entries_are_listed_most_recently_used_first(fresh):
    kept = fresh()
    assert kept.entries() == []
    for source, seconds in (("a", 20), ("b", 10), ("c", 30)):
        ask(kept, source, label=f"op {source}")
        age(kept, source, seconds)
    kept.load_or_compile("d", 80, OPTIONS, "op d", lambda: kernel_of("d", 5000))
    found = kept.entries()
    assert [(entry.label, entry.arch) for entry in found] == [("op d", 80), ("op b", 90), ("op a", 90), ("op c", 90)]
    assert [entry.key for entry in found[1:]] == [key("b"), key("a"), key("c")]
    assert found[1] == Entry(key("b"), "op b", 90, path_of(kept, "b").stat().st_size, found[1].last_used)
    assert found[0].size > 5000
    assert found[1].last_used == path_of(kept, "b").stat().st_mtime


def test_a_disk_hit_counts_as_a_use_and_a_memory_hit_touches_no_file(fresh):
    kept = fresh()
    ask(kept, "a")
    age(kept, "a", 1000)
    ask(kept, "a")
    assert time.time() - kept.entries()[0].last_used > 900
    other, before = fresh(), time.time()
    ask(other, "a")
    assert kept.entries()[0].last_used > before - 10  # the file system's clock may be slow
    age(kept, "a", 1000)
    ask(other, "a")  # once per process and entry
    assert time.time() - kept.entries()[0].last_used > 900


def test_clear_removes_our_files_only_and_reports_their_size(fresh):
    kept = fresh()
    for source in "abc":
        ask(kept, source)
    path_of(kept, "c").write_bytes(b"damaged")
    foreign = {"notes.txt", "x.cubin", key("a") + ".txt", key("a").upper() + ".cubin", key("a") + ".0.tmp"}
    for name in foreign:
        (kept.directory / name).write_text("mine")
    ours = sum(path_of(kept, source).stat().st_size for source in "abc")
    assert kept.clear() == (3, ours)
    assert {file.name for file in kept.directory.iterdir()} == foreign
    assert kept.lookup(key("a")) is None
    assert kept._memory_size == 0
    assert kept.clear() == (0, 0)
    assert ask(kept, "a") == kernel_of("a")


def test_a_lookup_makes_no_directory(fresh):
    kept = fresh()
    assert (kept.lookup(key("a")), kept.entries(), kept.clear()) == (None, [], (0, 0))
    assert not kept.directory.exists()


# The bound


def test_the_least_recently_used_are_evicted_first(fresh):
    kept = fresh(limit=10 * file_size(1000))
    for number, source in enumerate("abcdefghij"):
        ask(kept, source, size=1000)
        age(kept, source, 1000 - number)
    assert len(kept.entries()) == 10
    ask(fresh(), "a")  # another process uses the oldest two
    ask(fresh(), "b")
    ask(kept, "k", size=1000)
    assert "".join(source for source in "abcdefghijk" if path_of(kept, source).exists()) == "abefghijk"
    assert kept.statistics().evictions == 2  # down to 90%


def test_the_directory_is_within_the_bound_after_every_write(fresh):
    kept, chance, limit = fresh(limit=50_000), random.Random(5), 50_000
    for number in range(300):
        ask(kept, str(number), size=chance.randrange(0, 12_000))
        assert bytes_in(kept.directory) <= limit
        assert path_of(kept, str(number)).exists()
    statistics = kept.statistics()
    assert statistics.compiles == 300
    assert statistics.evictions == 300 - len(kept.entries()) > 200


def test_a_new_file_is_kept_even_if_other_clocks_differ(fresh):
    kept = fresh(limit=5 * file_size(1000))
    for source in "abcde":
        ask(kept, source, size=1000)
        age(kept, source, -1000)
    ask(kept, "f", size=1000)
    assert path_of(kept, "f").exists()
    assert kept.statistics().evictions == 2


def test_a_lower_bound_applies_from_the_next_write(fresh):
    for source in "abcdefghij":
        ask(fresh(), source, size=1000)
    kept = fresh(limit=3000)
    ask(kept, "k", size=1000)
    assert bytes_in(kept.directory) <= 3000
    assert path_of(kept, "k").exists()


def test_a_kernel_beyond_the_bound_is_not_written(fresh):
    exactly = file_size(1000)
    kept = fresh(limit=exactly - 1)
    assert ask(kept, "a", size=1000) == ask(kept, "a", size=1000)
    assert not kept.directory.exists()
    kept = fresh(limit=exactly)
    ask(kept, "a", size=1000)
    assert bytes_in(kept.directory) == exactly
    nothing = fresh(limit=0)
    ask(nothing, "b", size=0)
    assert not path_of(nothing, "b").exists()
    assert nothing.load_or_compile("a", 90, OPTIONS, "", never)  # existing files are read


def test_not_every_write_scans_the_directory(fresh, monkeypatch):
    looks = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looks.append(path) or scandir(path))
    kept = fresh(limit=100_000_000)
    for number in range(200):
        ask(kept, str(number), size=1000)
    assert len(looks) == 1
    looks.clear()
    full = fresh(limit=200_000)
    for number in range(1000, 1200):
        ask(full, str(number), size=100)
    assert 1 < len(looks) < 150
    assert bytes_in(full.directory) <= 200_000


def test_foreign_files_do_not_count_and_are_not_removed(fresh):
    kept = fresh(limit=5000)
    kept.directory.mkdir()
    (kept.directory / "data.bin").write_bytes(bytes(100_000))
    (kept.directory / f"{key('x')}.cubin").mkdir()
    os.utime(kept.directory / "data.bin", (0, 0))
    for number in range(20):
        ask(kept, str(number), size=1000)
    assert (kept.directory / "data.bin").stat().st_size == 100_000
    assert (kept.directory / f"{key('x')}.cubin").is_dir()
    assert 2 <= len(kept.entries()) <= 4


def test_files_of_dead_writers_are_removed_and_of_living_ones_kept(fresh):
    kept = fresh(limit=6000)
    ask(kept, "a", size=1000)
    dead, alive = (kept.directory / f"{key('x')}.{digit * 16}.tmp" for digit in "01")
    dead.write_bytes(bytes(1000))
    alive.write_bytes(bytes(1000))
    os.utime(dead, (time.time() - 120,) * 2)
    os.utime(alive, (time.time() - 10,) * 2)
    for number in range(4):
        ask(kept, str(number), size=1000)
    assert (dead.exists(), alive.exists()) == (False, True)
    assert path_of(kept, "3").exists()
    dead.write_bytes(bytes(1000))
    os.utime(dead, (time.time() - 120,) * 2)
    count = len(kept.entries())
    assert kept.clear()[0] == count + 1
    assert list(kept.directory.iterdir()) == [alive]
