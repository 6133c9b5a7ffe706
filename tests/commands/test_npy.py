"""Files in NumPy's format: what is opened is what NumPy would load, and what is written is whole or not there."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tilearray as ta
from tilearray import dtypes
from tilearray.commands.eval import npy
from tilearray.commands.eval.npy import FileError, check_place, open_npy, write_npy

DTYPES = [dtype for dtype in dtypes.ALL if dtype.isbuiltin == 1]
INDEX = st.sampled_from([(), (Ellipsis, slice(None, None, -1)), (slice(None, None, 2),), (Ellipsis, None)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def arrays() -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    plain = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes))
    return st.one_of(
        plain,
        plain.map(np.transpose),
        st.builds(lambda x, key: x[key] if x.ndim else x, plain, INDEX),
        plain.map(lambda x: np.broadcast_to(x, (2, *x.shape))),
    )


# --- both ways ------------------------------------------------------------------------------------------------------


@given(array=arrays())
def test_a_written_array_is_equal_after_numpy_load_and_open_npy(array: np.ndarray, folder: Path):
    path = folder / "x.npy"
    write_npy(path, array)
    for found in (np.load(path, allow_pickle=False), open_npy(path)):
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    np.save(path, array)
    assert open_npy(path).tobytes() == array.tobytes()
    assert not open_npy(path).flags.writeable


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype.isbuiltin != 1], ids=str)
def test_dtypes_that_the_format_has_no_name_for_have_a_descriptor(dtype: np.dtype, tmp_path: Path):
    path = tmp_path / "x.npy"
    values = np.array([[0, 1, 2], [0.5, 4, 1]]).astype(dtype).T
    write_npy(path, values)
    raw = np.load(path, allow_pickle=False)
    assert raw.dtype.descr == [(dtype.name, f"<u{dtype.itemsize}" if dtype.itemsize > 1 else "|u1")]
    for found in (raw.view(dtype), open_npy(path, dtype), open_npy(path), ta.to_numpy(ta.asarray(raw, device="cpu"))):
        assert (found.dtype, found.tobytes()) == (dtype, values.tobytes())


def test_two_raw_bytes_are_bfloat16_and_one_needs_a_dtype(tmp_path: Path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones(3, ml_dtypes.bfloat16))  # as NumPy writes it
    assert open_npy(path).dtype == dtypes.bfloat16
    np.save(path, np.ones(3, ml_dtypes.float8_e4m3fn))
    assert open_npy(path, dtypes.float8_e4m3fn).tolist() == [1, 1, 1]
    with pytest.raises(FileError) as error:
        open_npy(path)
    assert str(error.value) == (
        f"{str(path)!r} contains raw elements of 1 byte; write the dtype after the name, as in a:float8_e4m3fn=FILE.npy"
    )
    with pytest.raises(FileError, match="contains raw elements of 1 byte, but bfloat16 has 2; write the dtype"):
        open_npy(path, dtypes.bfloat16)
    np.save(path, np.ones(3, "int8"))
    assert open_npy(path, dtypes.int8).dtype == dtypes.int8
    with pytest.raises(FileError, match=r"contains int8, not uint8; write ta.astype or ta.view in the expression"):
        open_npy(path, dtypes.uint8)


def test_chunks_are_told_and_add_up_to_the_file(tmp_path: Path):
    sizes: list[int] = []
    array = np.zeros((5, 2**20), "float64")[:, ::2]
    write_npy(tmp_path / "x.npy", array, sizes.append)
    assert sum(sizes) == (tmp_path / "x.npy").stat().st_size == array.nbytes + 128
    assert len(sizes) > 2


# --- what cannot be opened ------------------------------------------------------------------------------------------


def files(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    np.save(tmp_path / "good.npy", np.zeros(100))
    good = (tmp_path / "good.npy").read_bytes()
    damaged = "is not a .npy file, or is damaged: "
    contents = [
        (f"{damaged}EOF: reading magic string, expected 8 bytes got 0", b""),
        (f"{damaged}the magic string is not correct", b"PK\3\4 an archive, as .npz is"),
        (f"{damaged}EOF: reading array header", good[:50]),
        (f"{damaged}mmap length is greater than file size", good[:-1]),
        (damaged, good.replace(b"descr", b"dscr}")),
        (damaged, good.replace(b"(100,)", b"(100,('")),
        (damaged, good.replace(b"(100,), }" + 16 * b" ", b"(4611686018427387904,), }")),
    ]
    for number, (message, content) in enumerate(contents):
        path = tmp_path / f"{number}.npy"
        path.write_bytes(content)
        yield message, path
    np.save(tmp_path / "objects.npy", np.array([{}, 1], object))
    yield "contains Python objects, which are not unpickled; save numbers", tmp_path / "objects.npy"
    yield "cannot be read: No such file or directory", tmp_path / "none.npy"
    yield "cannot be read: Not a directory", tmp_path / "good.npy" / "below.npy"
    yield "is a folder; write the path of a .npy file", tmp_path
    os.mkfifo(tmp_path / "pipe")
    yield "is not a regular file; write the path of a .npy file", tmp_path / "pipe"
    yield "is not a regular file; write the path of a .npy file", Path("/dev/null")


def test_a_file_that_cannot_be_opened_is_named_with_the_reason(tmp_path: Path):
    for message, path in files(tmp_path):
        with pytest.raises(FileError) as error:
            open_npy(path)
        assert str(error.value).startswith(f"{str(path)!r} ")
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_an_unreadable_file_is_named_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*arguments: object, **named: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    np.save(tmp_path / "x.npy", np.zeros(1))
    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)  # root, as tests may run, can read everything
    with pytest.raises(FileError, match=r"x.npy' cannot be read: Permission denied$"):
        open_npy(tmp_path / "x.npy")


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, 140), st.integers(0, 255)), max_size=6), st.integers(0, 200))
def test_a_damaged_file_is_opened_or_a_file_error(folder: Path, damage: list[tuple[int, int]], length: int):
    np.save(folder / "good.npy", np.zeros(100, "float16"))
    content = bytearray((folder / "good.npy").read_bytes())
    for place, byte in damage:
        content[place] = byte
    (folder / "damaged.npy").write_bytes(content[:length] if length < 200 else content)
    with suppress(FileError):
        open_npy(folder / "damaged.npy").tobytes()


# --- what cannot be written -----------------------------------------------------------------------------------------


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path: Path):
    before = os.umask(0o027)
    try:
        write_npy(tmp_path / "new.npy", np.zeros(3))
        assert (tmp_path / "new.npy").stat().st_mode & 0o777 == 0o640
        (tmp_path / "old.npy").touch()
        (tmp_path / "old.npy").chmod(0o606)
        write_npy(tmp_path / "old.npy", np.zeros(3))
        assert (tmp_path / "old.npy").stat().st_mode & 0o777 == 0o606
    finally:
        os.umask(before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npy", "old.npy"]


def test_a_link_is_followed_and_stays(tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link.npy").symlink_to(tmp_path / "there" / "x.npy")
    for values in ([1], [2, 3]):
        write_npy(tmp_path / "link.npy", np.array(values))
        assert (tmp_path / "link.npy").is_symlink()
        assert np.load(tmp_path / "there" / "x.npy").tolist() == values


def test_a_result_can_replace_its_own_input(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.arange(5))
    mapped = open_npy(tmp_path / "x.npy")
    write_npy(tmp_path / "x.npy", mapped[::-1])
    assert mapped.tolist() == [0, 1, 2, 3, 4]
    assert np.load(tmp_path / "x.npy").tolist() == [4, 3, 2, 1, 0]


def test_an_invalid_path_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    places = {
        tmp_path / "no" / "x.npy": f"the folder {str(tmp_path / 'no')!r} does not exist; make it first",
        tmp_path / "file" / "x.npy": f"the folder {str(tmp_path / 'file')!r} does not exist; make it first",
        tmp_path: "it is a folder; write the path of a .npy file",
        Path("/dev/full"): "it is not a regular file; write the path of a .npy file",
    }
    for path, message in places.items():
        with pytest.raises(FileError) as error:
            check_place(path)
        assert str(error.value) == f"{str(path)!r} cannot be written: {message}"


@pytest.mark.parametrize("there", [False, True], ids=["a new file", "a file that was there"])
def test_a_place_that_is_read_only_is_named(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.npy"
    if there:
        path.touch()
    asked: list[str] = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(str(path)))  # root may write everywhere
    with pytest.raises(FileError, match=r"x.npy' cannot be written: Permission denied; write a path that you own"):
        check_place(path)
    assert asked == [str(path if there else tmp_path)]


class Full:
    """A file on a disk that has no room for more than a few bytes."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: bytes) -> NoReturn:
        self.file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("there", [False, True], ids=["a new file", "a file that was there"])
def test_a_full_disk_leaves_everything_as_it_was(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.npy"
    if there:
        path.write_bytes(b"old")
    monkeypatch.setattr(npy, "_Counting", lambda file, advance: Full(file))
    with pytest.raises(FileError) as error:
        write_npy(path, np.zeros(10))
    left = "the file is unchanged" if there else "no file was made"
    assert str(error.value) == f"{str(path)!r} cannot be written: No space left on device; {left}"
    assert [file.name for file in tmp_path.iterdir()] == ["x.npy"] * there
    assert not there or path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_late_leaves_everything_as_it_was(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(FileError, match="cannot be written: Input/output error; the file is unchanged"):
        write_npy(path, np.zeros(10))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_an_interrupt_leaves_everything_as_it_was(tmp_path: Path):
    def interrupt(size: int) -> NoReturn:
        raise KeyboardInterrupt

    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_npy(path, np.zeros(10), interrupt)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_the_file_is_complete_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, calls = tmp_path / "x.npy", []
    path.write_bytes(b"old")
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        calls.append(("fsync", os.fstat(descriptor).st_size, path.read_bytes()[:3]))
        sync(descriptor)

    def replaced(source: Any, target: Any) -> None:
        calls.append(("replace", source.parent, target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_npy(path, np.zeros(10))
    assert calls[:2] == [("fsync", 208, b"old"), ("replace", tmp_path, path)]
    assert [call[0] for call in calls] == ["fsync", "replace", "fsync"]  # the last one is the folder's


def test_a_limit_of_the_system_on_the_size_of_files(tmp_path: Path):
    """No disk to fill up: a limit on the size of files makes the system refuse a real write."""
    code = (
        "import sys, numpy, resource, signal; from tilearray.commands.eval.npy import write_npy\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)); write_npy(sys.argv[1], numpy.zeros(10**6))"
    )
    assert resource.RLIMIT_FSIZE is not None
    assert signal.SIGXFSZ
    path = tmp_path / "x.npy"
    path.write_bytes(b"old")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.endswith(f"FileError: {str(path)!r} cannot be written: File too large; the file is unchanged\n")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"
