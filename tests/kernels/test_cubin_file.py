"""The key and the file of a compiled kernel: the facts that a key contains, and every fault of a file.

No test here compiles: `make` returns invented code, which identifies each result.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import random
import shutil
import socket
import struct
import sys
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cubins import OPTIONS, ask, kernel_of, key, never, output, path_of, start, temporary_files

from tilearray_cuda.kernels import cubin
from tilearray_cuda.kernels.disk_cache import CacheWarning, Cubin, CubinCache, Statistics, key_of

# The key


VARIANTS: dict[str, tuple[Any, ...]] = {
    "source": ("def other(): pass", 90, OPTIONS),
    "a space more": ("def kernel(): pass ", 90, OPTIONS),
    "architecture": ("def kernel(): pass", 100, OPTIONS),
    "value": ("def kernel(): pass", 90, (("num_warps", 8), ("enable_fp_fusion", False))),
    "name": ("def kernel(): pass", 90, (("num_stages", 4), ("enable_fp_fusion", False))),
    "type bool": ("def kernel(): pass", 90, (("num_warps", True), ("enable_fp_fusion", False))),
    "int for bool": ("def kernel(): pass", 90, (("num_warps", 1), ("enable_fp_fusion", False))),
    "float for int": ("def kernel(): pass", 90, (("num_warps", 1.0), ("enable_fp_fusion", False))),
    "str for int": ("def kernel(): pass", 90, (("num_warps", "1"), ("enable_fp_fusion", False))),
    "bytes for int": ("def kernel(): pass", 90, (("num_warps", b"1"), ("enable_fp_fusion", False))),
    "None": ("def kernel(): pass", 90, (("num_warps", None), ("enable_fp_fusion", False))),
    "tuple": ("def kernel(): pass", 90, (("num_warps", (1,)), ("enable_fp_fusion", False))),
    "nested": ("def kernel(): pass", 90, (("num_warps", ((1,), "i32")), ("enable_fp_fusion", False))),
    "fewer": ("def kernel(): pass", 90, (("num_warps", 4),)),
    "none": ("def kernel(): pass", 90, ()),
}


def test_everything_that_decides_the_code_is_part_of_the_key(monkeypatch):
    keys = [key_of(*variant) for variant in VARIANTS.values()]
    keys.append(plain := key_of("def kernel(): pass", 90, OPTIONS))
    for variable in cubin.COMPILER_VARIABLES:
        for value in ("", "1"):
            with monkeypatch.context() as patch:
                patch.setenv(variable, value)
                keys.append(key_of("def kernel(): pass", 90, OPTIONS))
    with monkeypatch.context() as patch:
        patch.setattr(cubin, "triton_version", lambda: "99.0")
        keys.append(key_of("def kernel(): pass", 90, OPTIONS))
    with monkeypatch.context() as patch:
        patch.setattr(cubin, "SCHEMA", cubin.SCHEMA + 1)
        keys.append(key_of("def kernel(): pass", 90, OPTIONS))
    assert len(set(keys)) == len(keys) == len(VARIANTS) + 3 + 2 * len(cubin.COMPILER_VARIABLES)
    assert key_of("def kernel(): pass", 90, OPTIONS) == plain


def test_the_key_ignores_the_order_of_options():
    assert key_of("source", 90, OPTIONS) == key_of("source", 90, OPTIONS[::-1])


option_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


def exact(value: object) -> object:
    """Return a value with its type: in Python 1 == True == 1.0, and 0.0 == -0.0."""
    return tuple(map(exact, value)) if type(value) is tuple else (type(value), str(value))


@given(st.text(), option_values, st.text(), option_values)
def test_keys_are_equal_if_and_only_if_all_parts_are_equal(source, value, other_source, other_value):
    same = source == other_source and exact(value) == exact(other_value)
    assert (key_of(source, 90, (("x", value),)) == key_of(other_source, 90, (("x", other_value),))) == same


def test_another_process_makes_the_same_key():
    code = (
        "from tilearray_cuda.kernels.disk_cache import key_of; print(key_of('s', 90, (('a', (1, 'x')), ('b', None))))"
    )
    keys = {output(start(code, PYTHONHASHSEED=seed)).strip() for seed in ("0", "1")}
    assert keys == {key_of("s", 90, (("a", (1, "x")), ("b", None)))}


@pytest.mark.parametrize(
    "value",
    [[1], {"a": 1}, {1}, object(), np.int64(1), np.float64(1), (1, [2])],
    ids=lambda value: type(value).__name__,
)
def test_an_option_without_a_lasting_repr_is_refused(value):
    with pytest.raises(TypeError, match=r"key_of: expected option 'tile' as None.*write it as a tuple or a str"):
        key_of("source", 90, (("tile", value),))


@pytest.mark.parametrize("bad", ["", "abc", "../" * 21 + "a", "A" * 64, "0" * 65, "/" + "0" * 63, "0" * 64 + "\n"])
def test_lookup_takes_keys_only(fresh, bad):
    with pytest.raises(ValueError, match=r"lookup: expected a key of 64 hexadecimal digits, got "):
        fresh().lookup(bad)


# Triton's version


def test_the_version_of_the_installed_triton_is_found_without_an_import():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    code = (
        "import sys; from tilearray_cuda.kernels import cubin; print(cubin.triton_version());"
        "print(*{'triton', 'importlib.metadata', 'cuda', 'numpy'} & set(sys.modules))"
    )
    assert output(start(code)).split() == [importlib.metadata.version("triton")]


def version_with(monkeypatch, origin: str | None) -> str:
    spec = importlib.machinery.ModuleSpec("triton", None, origin=origin)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return cubin.triton_version.__wrapped__()


def test_the_version_of_other_installations_of_triton(monkeypatch, tmp_path):
    package = tmp_path / "triton"
    package.mkdir()
    init = package / "__init__.py"
    init.write_text("__version__ = '3.6.0'")
    (tmp_path / "triton_kernels-1.0.0.dist-info").mkdir()
    (tmp_path / "tritonclient-2.0.0.dist-info").mkdir()

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    vendored = version_with(monkeypatch, str(init))
    init.write_text("__version__ = '3.7.0'")
    assert version_with(monkeypatch, str(init)) not in (vendored, "absent")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} 3.8")
    assert version_with(monkeypatch, str(init)) == "triton 3.8"  # editable
    assert version_with(monkeypatch, str(tmp_path / "bundle.zip" / "triton" / "__init__.py")) == "triton 3.8"
    (tmp_path / "pytorch_triton-3.6.0+git1234567.dist-info").mkdir()
    assert version_with(monkeypatch, str(init)) == "3.6.0+git1234567"
    (tmp_path / "triton-3.5.0.dist-info").mkdir()  # two folders: importlib.metadata decides
    assert version_with(monkeypatch, str(init)) == "triton 3.8"
    assert version_with(monkeypatch, None) == "absent"


def test_the_version_if_another_module_replaces_triton(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", type(sys)("triton"))  # __spec__ is None: find_spec raises
    assert cubin.triton_version.__wrapped__() == "absent"


def test_the_environment_variables_of_the_key_are_tritons_own():
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        pytest.skip("triton is not installed")
    root = Path(spec.origin).parent
    knobs = (root / "knobs.py").read_text()
    tools = {"TRITON_PTXAS_PATH": '_tool("ptxas")', "TRITON_PTXAS_BLACKWELL_PATH": '_tool("ptxas-blackwell")'}
    with open(root / "_C" / "libtriton.so", "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as library:
        for variable in cubin.COMPILER_VARIABLES:
            assert tools.get(variable, variable) in knobs or library.find(variable.encode()) >= 0, variable


# The file


def test_the_file_has_the_documented_format(fresh):
    kept = fresh()
    made = ask(kept, "a", label="add float32 flat")
    text = json.dumps(
        {"key": key("a"), "arch": 90, "name": "kernel_a", "num_warps": 4, "shared": 1024, "label": "add float32 flat"}
    ).encode()
    body = struct.pack("<16sIII", b"tilearray cubin\n", 1, len(text), 64) + text + made.code
    assert path_of(kept, "a").read_bytes() == body + hashlib.sha256(body).digest()


kernels = st.builds(
    Cubin, st.binary(max_size=300), st.text(), st.integers(1, 32), st.integers(0, 2**18), st.text(max_size=20)
)


@given(kernels)
def test_a_written_entry_is_read_by_the_next_process(tmp_path_factory, kernel):
    directory = tmp_path_factory.mktemp("cubins")
    arguments = ("source", 90, OPTIONS, kernel.label)
    assert CubinCache(directory).load_or_compile(*arguments, lambda: kernel) == kernel
    assert CubinCache(directory).load_or_compile(*arguments, never) == kernel
    shutil.rmtree(directory)


@pytest.mark.parametrize("field", [{"name": 1}, {"shared": 1.0}, {"num_warps": np.int64(4)}, {"shared": True}], ids=str)
def test_a_kernel_with_a_wrong_field_is_refused(fresh, field):
    kept = fresh()
    with pytest.raises(ValueError, match=r"load_or_compile: expected a kernel of .*num_warps.*, got Details\("):
        kept.load_or_compile("a", 90, OPTIONS, "", lambda: kernel_of("a")._replace(**field))
    assert kept.lookup(key("a")) is None


def assert_replaced(fresh: Callable[[], CubinCache], good: bytes) -> None:
    """The file of a is a miss, a compilation replaces it, and the next process reads the new file."""
    assert fresh().lookup(key("a")) is None
    kept = fresh()
    assert ask(kept, "a").code == kernel_of("a").code
    assert kept.statistics() == Statistics(0, 0, 1, 0)
    assert path_of(kept, "a").read_bytes() == good
    assert fresh().lookup(key("a")) == kernel_of("a")


def test_a_truncated_file_is_a_miss_and_is_replaced(fresh):
    kept = fresh()
    ask(kept, "a")
    path, good = path_of(kept, "a"), path_of(kept, "a").read_bytes()
    assert len(good) > 200
    for length in range(len(good)):
        path.write_bytes(good[:length])
        assert_replaced(fresh, good)


def test_a_file_with_any_flipped_bit_is_a_miss(fresh):
    kept = fresh()
    ask(kept, "a")
    path, good = path_of(kept, "a"), path_of(kept, "a").read_bytes()
    reader = fresh()
    for position in range(len(good)):
        for bit in range(8):
            damaged = bytearray(good)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            assert reader.lookup(key("a")) is None, (position, bit)
            reader.entries()  # reads only the head, and does not raise
    assert_replaced(fresh, good)


def test_a_randomly_damaged_file_is_a_miss(fresh):
    kept, chance = fresh(), random.Random(3)
    ask(kept, "a")
    path, good = path_of(kept, "a"), path_of(kept, "a").read_bytes()
    reader = fresh()
    for _ in range(1500):
        damaged = bytearray(good)
        start, stop = sorted(chance.choices(range(len(good) + 1), k=2))
        kind = chance.randrange(4)
        if kind == 0:
            damaged[start:stop] = chance.randbytes(stop - start)
        elif kind == 1:
            damaged[start:stop] = bytes(stop - start)
        elif kind == 2:
            del damaged[start:stop]
        else:
            damaged[start:start] = chance.randbytes(chance.randrange(1, 50))
        path.write_bytes(damaged)
        assert (reader.lookup(key("a")) is None) == (damaged != good)
        reader = fresh()


def sealed(text: bytes, code: bytes = b"code", magic: bytes = b"tilearray cubin\n", schema: int = 1) -> bytes:
    """Return a file with correct lengths and checksum, for any content."""
    body = struct.pack("<16sIII", magic, schema, len(text), len(code)) + text + code
    return body + hashlib.sha256(body).digest()


def details(**changes: object) -> bytes:
    return json.dumps(
        {"key": key("a"), "arch": 90, "name": "k", "num_warps": 4, "shared": 0, "label": "", **changes}
    ).encode()


FOREIGN = {
    "empty": b"",
    "an ELF file": b"\x7fELF" + bytes(500),
    "text": b"hello\n" * 100,
    "random": random.Random(1).randbytes(1000),
    "another magic": sealed(details(), magic=b"somebody's cubin"),
    "an older schema": sealed(details(), schema=0),
    "a newer schema": sealed(details(), schema=2),
    "another key": sealed(details(key=key("b"))),
    "something more": sealed(details()) + b"\0",
    "a field more": sealed(details(extra=1)),
    "a field less": sealed(b'{"key": "x"}'),
    "a field of another type": sealed(details(shared="0")),
    "a bool for a number": sealed(details(num_warps=True)),
    "a huge number": sealed(details()[:-1] + b', "arch": ' + b"9" * 5000 + b"}"),
    "a list": sealed(b"[1, 2]"),
    "no JSON": sealed(b"{"),
    "no UTF-8": sealed(b"\xff\xfe"),
    "deep JSON": sealed(b"[" * 100_000),
    "lengths beyond the file": struct.pack("<16sIII", b"tilearray cubin\n", 1, 2**32 - 1, 2**32 - 1) + bytes(100),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_a_miss_is_not_listed_and_is_replaced(fresh, content):
    kept = fresh()
    ask(kept, "a")
    good = path_of(kept, "a").read_bytes()
    path_of(kept, "a").write_bytes(content)
    assert fresh().entries() == []
    assert_replaced(fresh, good)


def test_sealed_files_without_a_fault_are_hits(fresh):
    """Shows that the faults cause the misses of the test above."""
    kept = fresh()
    kept.directory.mkdir()
    path_of(kept, "a").write_bytes(sealed(details()))
    assert kept.lookup(key("a")) == Cubin(b"code", "k", 4, 0)


def test_a_file_of_another_key_under_the_right_name_is_a_miss(fresh):
    kept = fresh()
    ask(kept, "a")
    ask(kept, "b")
    good = path_of(kept, "a").read_bytes()
    shutil.copy(path_of(kept, "b"), path_of(kept, "a"))
    assert [entry.key for entry in fresh().entries()] == [key("b")]
    assert_replaced(fresh, good)


def in_the_way_socket(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 characters
    try:
        listener.bind(path.name)
    finally:
        os.chdir(here)
        listener.close()


def in_the_way_open_pipe(path: Path) -> None:
    os.mkfifo(path)
    os.open(path, os.O_RDWR)  # stays open, so that a read of the other end would wait


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a pipe held open": in_the_way_open_pipe,
    "a socket": in_the_way_socket,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a directory": lambda path: path.symlink_to(path.parent),
}


@pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY.keys())
def test_a_path_that_is_not_a_file_does_not_block_and_is_replaced(fresh, put):
    kept = fresh()
    ask(kept, "a")
    good = path_of(kept, "a").read_bytes()
    path_of(kept, "a").unlink()
    put(path_of(kept, "a"))
    assert fresh().entries() == []
    assert_replaced(fresh, good)
    assert not path_of(kept, "a").is_symlink()


@pytest.mark.parametrize("full", [False, True])
def test_a_directory_in_the_files_place_stays_and_the_kernel_is_kept_in_memory(fresh, full):
    kept = fresh()
    path_of(kept, "a").mkdir(parents=True)
    if full:
        (path_of(kept, "a") / "file").write_text("mine")
    with pytest.warns(CacheWarning, match="Is a directory"):
        ask(kept, "a")
    assert kept.load_or_compile("a", 90, OPTIONS, "", never).code == kernel_of("a").code
    assert kept.entries() == []
    assert kept.clear() == (0, 0)
    assert path_of(kept, "a").is_dir()
    assert temporary_files(kept.directory) == []
