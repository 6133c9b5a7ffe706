"""Files in the safetensors format: arrays by name, read without a copy, with all dtypes that the format names.

The format (https://github.com/huggingface/safetensors, "Format"): 8 bytes with the size of the header as a
little-endian integer; the header, JSON in UTF-8, which may end in spaces; then the bytes of all arrays in C order, one
after the other without gaps. The header gives ``{"dtype", "shape", "data_offsets"}`` for each name, and may have a
``"__metadata__"`` of strings. The package of that name is not needed.

A file is mapped into memory, so arrays on the host are views of it, and read-only. float4 values are packed, two in a
byte: they are read as float4_e2m1fn_x2 with half the extent along the last axis, as by `tilearray.pack_float4`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.engine.devices import DeviceLike
from tilearray.errors import InterchangeError, OperandError, shown, type_name
from tilearray.functions.conversion import to_numpy
from tilearray.geometry.shapes import LARGEST, MOST_AXES
from tilearray.low_precision.packing import pack_float4
from tilearray.ops.signatures import show

NAMES: Final[dict[str, np.dtype]] = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "I16": dtypes.int16,
    "U16": dtypes.uint16,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "I32": dtypes.int32,
    "U32": dtypes.uint32,
    "F32": dtypes.float32,
    "C64": dtypes.complex64,
    "F64": dtypes.float64,
    "I64": dtypes.int64,
    "U64": dtypes.uint64,
}
"""The format's names of dtypes; "F4" is read as bytes with two values."""
_NAME_OF: Final = {dtype: name for name, dtype in NAMES.items()}
_METADATA = "__metadata__"
_MOST = 100_000_000
"""The bytes of the longest header that the format allows."""


def load_safetensors(path: str | os.PathLike[str], /, *, device: DeviceLike | None = None) -> dict[str, Array]:
    """Return the arrays of a file in the safetensors format by their names.

    Parameters
    ----------
    path : str or path
    device : Device or str, optional
        Where the arrays go: by default the default device. On the host they are read-only views of the file.

    Returns
    -------
    dict of str to Array
        In the order of the file. "F4" arrays are float4_e2m1fn_x2, with two values in a byte: see `unpack_float4`.

    Raises
    ------
    InterchangeError
        If the file is not in the format, is damaged, or has a dtype that tilearray lacks.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.safetensors"
    >>> ta.save_safetensors(path, {"w": ta.asarray([1.5, 2.0]).astype("float8_e4m3fn")}, {"format": "pt"})
    >>> ta.load_safetensors(path, device="cpu")["w"]
    Array([1.5, 2. ], dtype=float8_e4m3fn, device='cpu')
    """
    size = _size(path, "load_safetensors")
    header, start = _header(path, size)
    mapped = np.memmap(path, np.uint8, "r", start) if size > start else np.empty(0, np.uint8)
    entries = sorted(header.items(), key=lambda item: item[1][2])
    _check_cover(path, [entry for _, entry in entries], mapped.size)
    found: dict[str, Array] = {}
    for name, (dtype, shape, first, last) in entries:
        part: Any = np.frombuffer(mapped, np.uint8, last - first, first) if last > first else np.empty(0, np.uint8)
        found[name] = asarray(part.view(dtype).reshape(shape), device=device)
    return found


def safetensors_metadata(path: str | os.PathLike[str], /) -> dict[str, str]:
    """Return the metadata of a file in the safetensors format: strings by their names.

    Raises
    ------
    InterchangeError
        If the file is not in the format.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.safetensors"
    >>> ta.save_safetensors(path, {}, {"format": "pt"})
    >>> ta.safetensors_metadata(path)
    {'format': 'pt'}
    """
    name = "safetensors_metadata"
    return _parsed(path, _size(path, name), name)[0].get(_METADATA) or {}


def save_safetensors(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None, /
) -> None:
    """Write arrays by their names to a file in the safetensors format. An existing file is replaced at the end.

    Parameters
    ----------
    path : str or path
    arrays : mapping of str to Array
        Of any device and layout; float4_e2m1fn arrays are packed, and float4_e2m1fn_x2 arrays are so already.
    metadata : mapping of str to str, optional

    Raises
    ------
    OperandError
        If a name is not a string, or a value is not an Array of a dtype that the format names.

    Examples
    --------
    >>> import tempfile
    >>> import tilearray as ta
    >>> path = tempfile.mkdtemp() + "/x.safetensors"
    >>> q = ta.quantize(ta.ones((4, 64)), "float8_e4m3fn", block=32, scale="float8_e8m0fnu")
    >>> ta.save_safetensors(path, {"values": q.values, "scales": q.scales})
    >>> ta.load_safetensors(path, device="cpu")["scales"].dtype
    dtype(float8_e8m0fnu)
    """
    _check_path(path, "save_safetensors")
    if not isinstance(arrays, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OperandError(
            f"save_safetensors: expected a mapping of names to Arrays, got {type_name(arrays)}; write {{'x': x}}"
        )
    for name, array in arrays.items():
        _check_entry(name, array)
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {} if metadata is None else {_METADATA: _checked(metadata)}
    end = 0
    for name, array in ordered:
        first, end = end, end + _nbytes(array)
        named = _NAME_OF.get(array.dtype, "F4")
        shape = list(array.shape)
        if array.dtype == dtypes.float4_e2m1fn_x2:
            shape[-1] *= 2
        header[name] = {"dtype": named, "shape": shape, "data_offsets": [first, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _, array in ordered:
                _write(file, array)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


# --- reading ----------------------------------------------------------------------------------------------------------

_Entry = tuple[np.dtype, tuple[int, ...], int, int]


def _check_path(path: Any, function: str) -> None:
    """Raise OperandError for anything but a path; an int would be a file descriptor."""
    if not isinstance(path, str | os.PathLike):
        raise OperandError(f"{function}: expected a path, got {type_name(path)}; write 'x.safetensors'")


def _size(path: Any, function: str) -> int:
    """Return the bytes of a file."""
    _check_path(path, function)
    return os.path.getsize(path)


def _damaged(path: Any, why: str, function: str = "load_safetensors") -> InterchangeError:
    return InterchangeError(
        f"{function}: {os.fspath(path)!r} is not a file in the safetensors format, or is damaged: {why}; write "
        f"the path of a file that save_safetensors or the package safetensors has written"
    )


def _parsed(path: Any, size: int, function: str) -> tuple[dict[str, Any], int]:
    """Return the header as JSON gives it, with metadata of strings, and where the arrays begin."""
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST):
            raise _damaged(path, f"the header has {length} bytes, and the file {size}", function)
        text = file.read(length)
    try:
        found = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"the header is not JSON: {error}", function) from None
    if not isinstance(found, dict) or not text.startswith(b"{"):
        raise _damaged(path, "the header is not a JSON object", function)
    metadata: Any = cast("dict[str, Any]", found).get(_METADATA) or {}
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):  # pyright: ignore
        raise _damaged(path, f"the metadata are not strings by name: {shown(metadata):.80}", function)
    return cast("dict[str, Any]", found), 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _header(path: Any, size: int) -> tuple[dict[str, _Entry], int]:
    """Return dtype, shape and place of each array, and where the arrays begin."""
    parsed, start = _parsed(path, size, "load_safetensors")
    parsed.pop(_METADATA, None)
    return {name: _entry(path, name, facts) for name, facts in parsed.items()}, start


def _entry(path: Any, name: str, facts: Any) -> _Entry:
    try:
        named, shape, (first, last) = facts["dtype"], tuple(facts["shape"]), facts["data_offsets"]
        sizes: list[Any] = [*shape, first, last]
    except (TypeError, KeyError, ValueError):
        raise _damaged(path, f"{name!r} has no dtype, shape and data_offsets") from None
    if not all(type(each) is int and 0 <= each <= LARGEST for each in sizes) or len(shape) > MOST_AXES:
        raise _damaged(path, f"{name!r} has sizes {shown(sizes)}")
    if named == "F4" and shape and shape[-1] % 2 == 0:
        dtype, shape = dtypes.float4_e2m1fn_x2, (*shape[:-1], shape[-1] // 2)
    elif isinstance(named, str) and named in NAMES:
        dtype = NAMES[named]
    else:
        raise InterchangeError(
            f"load_safetensors: {name!r} in {os.fspath(path)!r} has dtype {shown(named)}, which tilearray lacks; write "
            f"the array in one of {', '.join(NAMES)}"
        )
    if last - first != prod(shape) * dtype.itemsize:
        raise _damaged(path, f"{name!r} has {last - first} bytes for shape {shape} of {dtype.name}")
    return dtype, shape, first, last


def _check_cover(path: Any, entries: list[_Entry], size: int) -> None:
    """Raise InterchangeError unless the arrays follow each other from the start to the end of the file."""
    place = 0
    for _, _, first, last in entries:
        if first != place:
            raise _damaged(path, f"an array begins at byte {first}, and the one before it ends at {place}")
        place = last
    if place != size:
        raise _damaged(path, f"the arrays have {place} bytes, and the file has {size} for them")


# --- writing ----------------------------------------------------------------------------------------------------------


def _check_entry(name: Any, array: Any) -> None:
    if not isinstance(name, str) or name == _METADATA:
        raise OperandError(f"save_safetensors: expected names that are strings, got {shown(name)}; write another name")
    if not isinstance(array, Array):
        raise OperandError(
            f"save_safetensors: expected an Array for {name!r}, got {type_name(array)}; write ta.asarray(x)"
        )
    even = array.ndim and (array.dtype == dtypes.float4_e2m1fn_x2 or array.shape[-1] % 2 == 0)
    packs = even and array.dtype in (dtypes.float4_e2m1fn, dtypes.float4_e2m1fn_x2)
    if array.dtype not in _NAME_OF and not packs:
        raise OperandError(
            f"save_safetensors: the format has no {array.dtype.name} of shape {array.shape}, which is {name!r}; write "
            f"x.view('uint8') or x.astype(...) with another dtype"
        )


def _checked(metadata: Any) -> dict[str, str]:
    if isinstance(metadata, Mapping):
        found = dict(cast("Mapping[Any, Any]", metadata))
        if all(isinstance(each, str) for pair in found.items() for each in pair):
            return found
    raise OperandError(
        f"save_safetensors: expected metadata of strings by name, got {shown(metadata):.80}; write {{'a': str(b)}}"
    )


def _nbytes(array: Array) -> int:
    return array.size // 2 if array.dtype == dtypes.float4_e2m1fn else array.size * array.itemsize


def _write(file: BinaryIO, array: Array) -> None:
    """Write the bytes of an array in C order; without a copy if it lies so on the host."""
    if array.dtype == dtypes.float4_e2m1fn:
        array = pack_float4(array)
    dense: Any = np.ascontiguousarray(to_numpy(array))
    file.write(memoryview(dense.reshape(-1).view(np.uint8)))


show([load_safetensors, save_safetensors, safetensors_metadata])
