"""The cache of compiled kernels between processes: a shared directory, settings, and the cost of a hit."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from support.cubins import OPTIONS, ask, bytes_in, kernel_of, key, never, output, path_of, start, temporary_files

from tilearray_cuda.kernels import cubin, disk_cache
from tilearray_cuda.kernels.disk_cache import CacheWarning, CubinCache, Statistics

# Many processes


@pytest.mark.slow
def test_a_reader_sees_a_whole_file_while_others_write_it(fresh):
    """Two writers replace one entry again and again with files of different lengths."""
    code = """
import sys
from tilearray_cuda.kernels import cubin
path, key, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = cubin.pack(key, 90, cubin.Cubin(bytes(size), "k", 4, 0))
print("ready", flush=True)
while not sys.stdin.closed:
    cubin.write(path, data)
"""
    kept = fresh()
    ask(kept, "a")
    path = path_of(kept, "a")
    writers = [start(code, path, key("a"), size) for size in (20_000, 300_000)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        sizes = set()
        for _ in range(1500):
            with cubin.open_file(str(path)) as file:
                sizes.add(len(cubin.read(file, key("a")).code))  # raises if it reads a partial file
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert sizes >= {20_000, 300_000}


HAMMER = """
import random, sys, threading
from tilearray_cuda.kernels.disk_cache import Cubin, CubinCache
directory, seed, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def kernel(source):
    return Cubin(random.Random(source).randbytes(500 + 100 * int(source)), "k" + source, 4, int(source))

def work(kept, seed):
    chance = random.Random(seed)
    for step in range(120):
        source = str(chance.randrange(24))
        found = kept.load_or_compile(source, 90, (), source, lambda: kernel(source))
        if found != kernel(source)._replace(label=source):
            wrong.append(source)
        if chance.random() < 0.1:
            kept._memory.clear()  # so that it reads the directory
        if chance.random() < 0.05:
            kept.entries()
        if chance.random() < 0.01:
            kept.clear()

def guarded(*arguments):
    try:
        work(*arguments)
    except BaseException as error:
        wrong.append(repr(error))

wrong = []
kept = CubinCache(directory, limit)
threads = [threading.Thread(target=guarded, args=(kept, 100 * seed + number)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong, wrong[:5]
assert not kept._compiling
print(*kept.statistics())
"""


@pytest.mark.slow
def test_eight_processes_of_eight_threads_in_one_directory(tmp_path):
    directory, limit = tmp_path / "cubins", 15_000
    processes = [start(HAMMER, directory, seed, limit) for seed in range(8)]
    totals = np.array([[int(word) for word in output(process).split()] for process in processes]).sum(axis=0)
    memory_hits, disk_hits, compiles, evictions = totals
    assert memory_hits + disk_hits + compiles == 8 * 8 * 120
    assert min(disk_hits, compiles, evictions) > 50, "too few hits or evictions: the test shows little"
    assert temporary_files(directory) == []
    assert bytes_in(directory) <= limit
    kept = CubinCache(directory, limit)
    for entry in kept.entries():
        assert kept.lookup(entry.key) is not None, "a damaged file"
    assert len(kept.entries()) == len(list(directory.iterdir()))


def test_a_forked_child_does_not_wait_for_locks_of_missing_threads(tmp_path):
    code = """
import os, sys, threading
from tilearray_cuda.kernels import disk_cache
make = lambda: disk_cache.Cubin(b"code", "k", 4, 0)
disk_cache.load_or_compile("parent", 90, (), "", make)
kept = disk_cache.process_cache()
held = threading.Event()
def hold():
    with disk_cache._sharing, kept._lock, kept._sweeping:
        held.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
disk_cache.load_or_compile("child", 90, (), "", make)
assert disk_cache.statistics() == (0, 0, 1, 0)
assert disk_cache.lookup(disk_cache.key_of("parent", 90, ())).code == b"code"
os._exit(5)
"""
    variables = {"PYTHONWARNINGS": "ignore::DeprecationWarning", "TILEARRAY_CACHE_DIR": str(tmp_path)}
    process = start(code, **variables)
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 5


# One cache per process, from the environment


@pytest.fixture
def no_cache_yet(monkeypatch):
    monkeypatch.setattr(disk_cache, "_shared", [])
    for variable in ("TILEARRAY_CACHE_DIR", "TILEARRAY_CACHE_SIZE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("no_cache_yet")
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TILEARRAY_CACHE_DIR": "/some/where"}, "/some/where"),
        ({"TILEARRAY_CACHE_DIR": "/some/where", "XDG_CACHE_HOME": "/xdg"}, "/some/where"),
        ({"TILEARRAY_CACHE_DIR": "~/kernels"}, "/home/me/kernels"),
        ({"TILEARRAY_CACHE_DIR": ""}, "/home/me/.cache/tilearray"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/tilearray"),
        ({"XDG_CACHE_HOME": "relative/is/ignored"}, "/home/me/.cache/tilearray"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/tilearray"),
        ({}, "/home/me/.cache/tilearray"),
    ],
)
def test_the_directory_is_the_platforms_or_the_named_one(monkeypatch, variables, expected):
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert disk_cache.directory() == Path(expected)


@pytest.mark.usefixtures("no_cache_yet")
def test_a_relative_directory_does_not_move(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEARRAY_CACHE_DIR", "kernels")
    assert disk_cache.directory() == tmp_path / "kernels"
    monkeypatch.chdir("/")
    assert disk_cache.directory() == tmp_path / "kernels"


@pytest.mark.usefixtures("no_cache_yet")
def test_without_a_home_folder_kernels_are_kept_in_memory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without an entry
    with pytest.warns(CacheWarning, match="TILEARRAY_CACHE_DIR"):
        disk_cache.load_or_compile("a", 90, OPTIONS, "", lambda: kernel_of("a"))
    assert disk_cache.load_or_compile("a", 90, OPTIONS, "", never) == kernel_of("a")
    assert (disk_cache.entries(), disk_cache.clear()) == ([], (0, 0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_cache_yet")
@pytest.mark.parametrize(("text", "expected"), [("5000", 5000), ("0", 0), ("", 2**30), (None, 2**30)])
def test_the_bound_comes_from_the_environment(monkeypatch, text, expected):
    if text is not None:
        monkeypatch.setenv("TILEARRAY_CACHE_SIZE", text)
    assert disk_cache.process_cache().limit == expected


@pytest.mark.usefixtures("no_cache_yet")
@pytest.mark.parametrize("text", ["1GB", "-1", "1.5", " 1", "٣", "9" * 5000])
def test_an_invalid_size_limit_is_reported_and_ignored(monkeypatch, text):
    monkeypatch.setenv("TILEARRAY_CACHE_SIZE", text)
    with pytest.warns(CacheWarning, match=r"TILEARRAY_CACHE_SIZE: expected a number of bytes, got .*Write TILEARRAY_"):
        kept = disk_cache.process_cache()
    assert kept.limit == 2**30


@pytest.mark.usefixtures("no_cache_yet")
def test_the_functions_of_the_module_share_one_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEARRAY_CACHE_DIR", str(tmp_path))
    made = disk_cache.load_or_compile("a", 90, OPTIONS, "add", lambda: kernel_of("a"))
    assert disk_cache.lookup(key("a")) is made
    assert [(entry.key, entry.label) for entry in disk_cache.entries()] == [(key("a"), "add")]
    assert disk_cache.statistics() == Statistics(1, 0, 1, 0)
    assert disk_cache.clear() == (1, cubin.pack(key("a"), 90, made).__len__())
    assert disk_cache.lookup(key("a")) is None


# The cost of a hit


def test_a_hit_in_a_new_process_imports_no_framework(tmp_path):
    code = """
import sys
before = set(sys.modules)
from tilearray_cuda.kernels import disk_cache
def make():
    if sys.argv[1] == "hit":
        raise SystemExit("compiled")
    import triton  # as the compiler does
    return disk_cache.Cubin(b"code", "k", 4, 0)
print(disk_cache.load_or_compile("a", 90, (("num_warps", 4),), "", make).code)
print(disk_cache.statistics().disk_hits, *sys.modules)
print(*(set(sys.modules) - before))
"""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    miss, hit = (
        output(start(code, what, TILEARRAY_CACHE_DIR=str(tmp_path), PYTHONWARNINGS="ignore")).splitlines()
        for what in ("miss", "hit")
    )
    assert miss[0] == hit[0] == "b'code'"
    counts = [line[1].split()[0] for line in (miss, hit)]
    assert counts == ["0", "1"]
    assert "triton" in miss[1].split()
    imported = {name.partition(".")[0] for name in hit[1].split()}
    assert imported.isdisjoint({"triton", "cuda", "torch", "cupy", "jax", "numpy", "tilearray"})
    slow = {"pathlib"} if sys.version_info < (3, 12) else {"pathlib", "hashlib"}
    assert slow.isdisjoint(hit[2].split()), "slow imports, which a hit does not need"
    assert "importlib.metadata" not in hit[1].split()


def test_a_hit_on_disk_takes_few_calls(fresh):
    """Counts calls, because a busy machine takes more time: benchmarks/startup.py measures the time."""
    ask(fresh(), "a", size=40_000)
    kept, calls = fresh(), []

    def note(frame, event, what):
        calls.append(event)

    sys.setprofile(note)
    try:
        kept.load_or_compile("a", 90, OPTIONS, "", never)
    finally:
        sys.setprofile(None)
    assert kept.statistics().disk_hits == 1
    assert calls.count("call") + calls.count("c_call") < 300
