"""Files in NumPy's formats: ``.npy`` with one array, ``.npz`` with arrays by their names.

The formats have no names for the dtypes of ml_dtypes. NumPy writes bfloat16 and float8 as raw bytes, and reads elements
that are nothing but memory. Here such an array is written with a descriptor: a structure with one field that has the
dtype's name. NumPy reads the structure, and `load` and `asarray` the dtype. NumPy's own functions call these for
Arrays, so ``np.save(file, x)`` writes the same bytes.
"""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any, Final, Literal

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.engine.devices import DeviceLike
from tilearray.errors import DTypeError, InterchangeError, OperandError, shown, type_name
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import to_numpy
from tilearray.ops.options import checked_flag

File = str | os.PathLike[str] | IO[bytes]

NOT_A_HEADER: Final = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, tokenize.TokenError)
"""NumPy's errors for an invalid header, which it parses as Python."""
_LZMA: Any = getattr(getattr(zipfile, "lzma", None), "LZMAError", zlib.error)  # Python may be built without lzma
_NOT_NUMPYS: Final = (*NOT_A_HEADER, EOFError, RuntimeError, OSError, zipfile.BadZipFile, zlib.error, _LZMA)
"""Those of other files. zipfile raises a RuntimeError for encryption and unknown compression, bz2 a bare OSError."""
_NUMPYS: Any = (np.ndarray, np.generic)  # Any: else a type checker takes the parts of values to be unknown
_DICT: Any = dict
_MODES: Final = (None, "r", "r+", "c")


def stored(array: np.ndarray) -> np.ndarray:
    """Return the array as the format can store it: itself, or with a descriptor of a dtype for which it has no name.

    Examples
    --------
    >>> stored(np.zeros(3, dtypes.bfloat16)).dtype.descr, stored(np.zeros(3)).dtype.str
    ([('bfloat16', '<u2')], '<f8')
    """
    return array.view(dtypes.DESCRIPTORS.get(array.dtype, array.dtype))


def save(file: File, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in the ``.npy`` format. `load` reads it with the same dtype.

    Parameters
    ----------
    file : str, path or file object
        Open for writing bytes. A name gets the suffix ``.npy`` if it lacks it.
    arr : Array
        Of any device and layout; those on a GPU are copied to the host. bfloat16, float8 and float4 are written with a
        descriptor, which names the dtype: ``np.load(file).view("bfloat16")`` reads them without tilearray.
    allow_pickle : bool
        As of ``np.save``; Arrays have no Python objects.

    Raises
    ------
    OperandError
        If `arr` is not an array.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.npy"
    >>> ta.save(path, ta.asarray([1.5, 2.0], dtype="bfloat16"))
    >>> ta.load(path, device="cpu")
    Array([1.5, 2. ], dtype=bfloat16, device='cpu')
    """
    np.save(file, _on_host("save", arr), allow_pickle=allow_pickle)


def savez(file: File, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to a file in the ``.npz`` format, a zip archive. `load` reads it.

    Parameters
    ----------
    file : str, path or file object
        Open for writing bytes. A name gets the suffix ``.npz`` if it lacks it.
    *args : Array
        As for `save`; their names are ``arr_0``, ``arr_1`` and so on.
    allow_pickle : bool
        As of ``np.savez``; Arrays have no Python objects.
    **kwds : Array
        Arrays by their names.

    Raises
    ------
    OperandError
        If a value is not an array.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.npz"
    >>> ta.savez(path, weight=ta.ones(2, dtype="float8_e4m3fn"), bias=ta.zeros(1))
    >>> {name: x.dtype.name for name, x in ta.load(path, device="cpu").items()}
    {'weight': 'float8_e4m3fn', 'bias': 'float32'}
    """
    _save_all("savez", np.savez, file, args, kwds, allow_pickle)


def savez_compressed(file: File, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to a compressed file in the ``.npz`` format. Parameters and errors are those of `savez`.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.npz"
    >>> ta.savez_compressed(path, ta.ones(1000, dtype="bfloat16"))
    >>> ta.load(path, device="cpu")["arr_0"].shape
    (1000,)
    """
    _save_all("savez_compressed", np.savez_compressed, file, args, kwds, allow_pickle)


def load(
    file: File,
    mmap_mode: Literal["r", "r+", "c"] | None = None,
    allow_pickle: Literal[False] = False,
    *,
    device: DeviceLike | None = None,
) -> Array | dict[str, Array]:
    """Return the array of a ``.npy`` file, or the arrays of a ``.npz`` file by their names.

    Parameters
    ----------
    file : str, path or file object
        Open for reading bytes, with `seek`. Python objects are never read from it.
    mmap_mode : {"r", "r+", "c"}, optional
        As of ``np.load``: an array on the host is a view of the mapped file.
    allow_pickle : False
        As of ``np.load``, whose default it is. True is an error: nothing is unpickled.
    device : Device or str, optional
        Where the arrays go: by default the default device.

    Returns
    -------
    Array or dict of str to Array
        The dtypes are those that `save` was given. Raw elements of two bytes, as NumPy writes bfloat16, are bfloat16,
        because no other dtype of two bytes is written so.

    Raises
    ------
    InterchangeError
        If the file is not in one of the formats, is damaged, or contains Python objects.
    OperandError
        If `file` is neither a name nor a file object, `mmap_mode` is another word, or `allow_pickle` is true.
    DTypeError
        If tilearray lacks the dtype, or the elements are raw bytes that may be of several dtypes.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.npy"
    >>> np.save(path, np.arange(3))
    >>> ta.load(path, device="cpu")
    Array([0, 1, 2], dtype=int64, device='cpu')
    """
    if mmap_mode not in _MODES:
        raise OperandError(f"load: expected mmap_mode as 'r', 'r+', 'c' or None, got {shown(mmap_mode)}; write 'r'")
    if checked_flag("load", "allow_pickle", allow_pickle):
        raise OperandError(
            "load: expected allow_pickle=False, got True: nothing is unpickled; leave it out, or write "
            "np.load(file, allow_pickle=True)"
        )
    name = _name(file)
    try:
        if mmap_mode is None and isinstance(file, (str, os.PathLike)):
            with open(file, "rb") as opened:  # NumPy leaves a damaged archive open
                found = _contents(opened, None)
        else:
            found = _contents(file, mmap_mode)
    except _NOT_NUMPYS as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's
            raise
        reason = " ".join(str(error).split())
        if "pickled" in reason:  # NumPy's guess of each file that begins otherwise, with advice for its own load
            reason = "it is neither, or is a pickle of Python objects, which is never read"
        raise InterchangeError(
            f"load: expected a .npy or .npz file with numbers, got {name}: {reason:.200}; write the path of a file of "
            f"ta.save or np.save"
        ) from None
    if isinstance(found, _DICT):
        return {key: _read(value, f"{key!r} of {name}", device) for key, value in found.items()}
    return _read(found, name, device)


# --- shared parts -----------------------------------------------------------------------------------------------------


def _save_all(
    function: str, write: Any, file: File, args: tuple[Any, ...], kwds: Mapping[str, Any], allow_pickle: bool
) -> None:
    named = {name: _on_host(function, x, name) for name, x in kwds.items()}
    write(file, *[_on_host(function, x) for x in args], allow_pickle=allow_pickle, **named)


def _on_host(function: str, x: Any, name: str = "x") -> np.ndarray:
    """An array as NumPy writes it; NumPy's own arrays may have dtypes that ours lack, such as text."""
    if isinstance(x, _NUMPYS):
        return stored(np.asanyarray(x))
    return stored(to_numpy(as_array(function, x, name)))


def _name(file: Any) -> str:
    if isinstance(file, (str, os.PathLike)):
        return shown(os.fspath(file))
    if not hasattr(file, "read"):
        raise OperandError(
            f"load: expected the name of a file or a file object, got {type_name(file)}; write a path, or "
            f"open(path, 'rb')"
        )
    return "a file object"


def _contents(file: Any, mmap_mode: Any) -> Any:
    """An array, or the arrays of an archive by their names."""
    found: Any = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    if not isinstance(found, np.lib.npyio.NpzFile):
        return found
    with found:
        members: dict[str, Any] = {key: found[key] for key in found.files}
    for key, value in members.items():
        if not isinstance(value, np.ndarray):  # NumPy reads other files of an archive as bytes
            raise ValueError(f"the member {key!r} is not a .npy file")
    return members


def _read(array: np.ndarray, name: str, device: DeviceLike | None) -> Array:
    raw = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.subdtype is None
    if raw and array.dtype.itemsize == dtypes.bfloat16.itemsize:
        array = array.view(dtypes.bfloat16)
    elif raw:
        raise DTypeError(
            f"load: expected elements of a dtype, got raw elements of {array.dtype.itemsize} bytes in {name}; write "
            f"ta.asarray(np.load(file).view('float8_e4m3fn')), or another dtype"
        )
    return asarray(array, device=device)
