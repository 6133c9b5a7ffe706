"""Files in NumPy's ``.npy`` format: memory-mapped for reading, and written atomically.

A file is mapped into memory, read-only, and never unpickled. A new file is written under another name in the same
folder, synchronised with the disk, and renamed. So an incomplete file never appears, and a failure leaves the previous
file unchanged.

bfloat16 and float8 are written with a descriptor: see `tilearray.numpy_names.files`. NumPy itself writes them as raw
bytes. Raw elements of 2 bytes are read as bfloat16, the only such dtype. Raw elements of 1 byte can be any float8, so
the caller must give the dtype.
"""

from __future__ import annotations

import os
import secrets
import stat
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tilearray import dtypes
from tilearray.commands.text import counted
from tilearray.errors import DTypeError, TileArrayError
from tilearray.numpy_names.files import NOT_A_HEADER, stored

_NOT_MAPPED = (*NOT_A_HEADER, MemoryError)  # NumPy trusts the numbers of a header

_DTYPES = {descriptor: dtype for dtype, descriptor in dtypes.DESCRIPTORS.items()}


class FileError(TileArrayError):
    """A file cannot be read or written; the message names the file and the reason."""


def open_npy(path: str | os.PathLike[str], dtype: np.dtype | None = None) -> np.ndarray:
    """Map a file into memory, read-only.

    Parameters
    ----------
    path : str or os.PathLike
    dtype : numpy.dtype, optional
        The dtype of raw bytes. For other files, the dtype that the file must have.

    Raises
    ------
    FileError
        If the file does not exist, is not a valid NumPy file, contains Python objects, or has another dtype.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.npy"
    >>> write_npy(path, np.arange(3, dtype="int16"))
    >>> open_npy(path).tolist()
    [0, 1, 2]
    """
    shown = repr(os.fspath(path))
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"{shown} is {_kind(path)}; write the path of a .npy file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers from Python 2, and sizes that overflow
            mapped = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise FileError(f"{shown} cannot be read: {error.strerror}") from error
    except _NOT_MAPPED as error:
        if "Python objects" in str(error):
            raise FileError(f"{shown} contains Python objects, which are not unpickled; save numbers") from error
        reason = " ".join(str(error).split())
        raise FileError(f"{shown} is not a .npy file, or is damaged: {reason:.200}") from error
    return _typed(mapped, dtype, shown)


def _kind(path: str | os.PathLike[str]) -> str:
    return "a folder" if os.path.isdir(path) else "not a regular file"


def _typed(array: np.ndarray, dtype: np.dtype | None, shown: str) -> np.ndarray:
    array = array.view(_DTYPES.get(array.dtype, array.dtype))
    found: np.dtype[Any] = array.dtype
    if found in _DTYPES.values() and dtype in (None, found):
        return array
    if found.kind != "V" or found.names or found.subdtype:
        if dtype not in (None, found):
            raise FileError(f"{shown} contains {found.name}, not {dtype}; write ta.astype or ta.view in the expression")
        return _supported(array, shown)
    if dtype is None and found.itemsize == 2:
        dtype = dtypes.bfloat16
    if dtype is None or dtype.itemsize != found.itemsize:
        but = "" if dtype is None else f", but {dtype} has {dtype.itemsize}"
        raise FileError(
            f"{shown} contains raw elements of {counted(found.itemsize, 'byte')}{but}; "
            f"write the dtype after the name, as in a:float8_e4m3fn=FILE.npy"
        )
    return array.view(dtype)


def _supported(array: np.ndarray, shown: str) -> np.ndarray:
    try:
        dtypes.as_dtype(array.dtype, shown)
    except DTypeError as error:
        raise FileError(str(error)) from error
    return array


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the path at which to write a file, with links resolved. Raise FileError if it is not writable.

    The command calls this before a long computation, so that a missing folder is an error before it.
    """
    shown, place = repr(os.fspath(path)), Path(os.path.realpath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{shown} cannot be written: it is {_kind(path)}; write the path of a .npy file")
    if not place.parent.is_dir():
        raise FileError(f"{shown} cannot be written: the folder {str(place.parent)!r} does not exist; make it first")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise FileError(f"{shown} cannot be written: Permission denied; write a path that you own")
    return place


def write_npy(
    path: str | os.PathLike[str], array: np.ndarray, advance: Callable[[int], object] = lambda size: None
) -> None:
    """Write an array. Call `advance` with the number of bytes of each chunk.

    Raises
    ------
    FileError
        If the file cannot be written. A previous file is then unchanged, and no other file remains.
    """
    place = check_place(path)
    try:
        with _replacing(place) as file:
            np.lib.format.write_array(_Counting(file, advance), stored(array), allow_pickle=False)
    except OSError as error:
        state = "the file is unchanged" if place.exists() else "no file was made"
        raise FileError(f"{os.fspath(path)!r} cannot be written: {error.strerror}; {state}") from error


class _Counting:
    """A file object that counts bytes. NumPy writes to it in chunks of 16 MiB, because it is not a real file."""

    def __init__(self, file: BinaryIO, advance: Callable[[int], object]) -> None:
        self.file = file
        self.advance = advance

    def write(self, data: bytes) -> int:
        written = self.file.write(data)
        self.advance(written)
        return written


@contextmanager
def _replacing(place: Path) -> Generator[BinaryIO, None, None]:
    """Yield a file that replaces `place` when it is complete, with the permissions of the previous file."""
    unfinished = place.with_name(f".tilearray-{secrets.token_hex(8)}.unfinished")
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            if place.exists():
                os.chmod(unfinished, place.stat().st_mode & 0o777)  # not the bits that run a file as its owner
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, place)
    finally:
        with suppress(OSError):  # it was renamed, or never made
            os.unlink(unfinished)
    with suppress(OSError):  # some systems cannot synchronise a folder
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
