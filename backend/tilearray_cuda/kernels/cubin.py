"""A compiled kernel, its key, and its file.

- **Key**: sha256 of the source, Triton's version, the architecture, the options, the environment variables that change
  Triton's output, and `SCHEMA`. Each change that could change the code changes the key, so no entry is ever stale.
- **File**: magic, schema, two lengths; JSON; the code; sha256 of all these. `read` raises ValueError for every file
  except the one written under the same key: for a truncated, damaged or foreign file, for another key's file, and for
  anything that is not a regular file.
- **Atomic writes**: we write the file beside its place under a temporary name, and rename it. A reader sees the whole
  file or no file. We do not call fsync: a file damaged by a power cut fails the checksum.

The key must cost less than the cache saves, so we do not import triton for its version.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import stat
import struct
from contextlib import suppress
from typing import BinaryIO, NamedTuple

try:  # hashlib loads OpenSSL, which takes 5 ms; this takes 0.4 ms. The standard library's random does the same.
    from _sha2 import sha256  # pyright: ignore
except ImportError:  # not CPython 3.12 or later
    from hashlib import sha256

SCHEMA = 1
"""The version of the key and of the file. Increase it when either changes, or the meaning of a kernel's arguments."""

# They change the instructions that Triton or ptxas emit. TRITON_DISABLE_LINE_INFO changes only debug information.
COMPILER_VARIABLES = (
    "DISABLE_LLVM_OPT",
    "DISABLE_PTXAS_OPT",
    "LLVM_PASS_PLUGIN_PATH",
    "PTXAS_OPTIONS",
    "TRITON_ENABLE_ASAN",
    "TRITON_LIBDEVICE_PATH",
    "TRITON_MOCK_PTX_VERSION",
    "TRITON_OVERRIDE_ARCH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "TRITON_PTXAS_PATH",
)

_MAGIC = b"tilearray cubin\n"
_HEADER = struct.Struct("<16sIII")  # magic, schema, bytes of JSON, bytes of code
_DIGEST_SIZE = 32
_DIST_INFO = re.compile(r"(?:pytorch_)?triton-([^-]+)\.dist-info")


class Cubin(NamedTuple):
    """A compiled kernel, with the facts that a launch needs."""

    code: bytes
    name: str
    num_warps: int
    shared: int
    label: str = ""


class Details(NamedTuple):
    """The JSON part of a file."""

    key: str
    arch: int
    name: str
    num_warps: int
    shared: int
    label: str


_DETAIL_TYPES = (str, int, str, int, int, str)


@functools.cache
def triton_version() -> str:
    """Return the installed Triton's version without importing it, or ``"absent"``.

    The name of the ``.dist-info`` folder beside the package has the version; this takes 0.2 ms. The import of
    `importlib.metadata` takes 15 ms, so we use it only if that folder is elsewhere (editable installs).
    """
    try:
        spec = importlib.util.find_spec("triton")
    except ValueError:  # a module that was added to sys.modules by hand
        spec = None
    if spec is None or spec.origin is None:
        return "absent"
    names: list[str] = []
    with suppress(OSError):  # in a zip file
        names = os.listdir(os.path.dirname(os.path.dirname(spec.origin)))
    versions = [found[1] for found in map(_DIST_INFO.fullmatch, names) if found]
    if len(versions) == 1:
        return versions[0]
    from importlib import metadata

    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:  # vendored: the file contains the version
        with open(spec.origin, "rb") as file:
            return sha256(file.read()).hexdigest()


def key_of(source: str, arch: int, options: tuple[tuple[str, object], ...]) -> str:
    """Return the key of a kernel: 64 hexadecimal digits.

    Parameters
    ----------
    source : str
        The kernel's source.
    arch : int
        Compute capability, as 90 for sm_90.
    options : tuple of (str, object)
        All other facts that decide the code, in any order. Values are None, numbers, str, bytes, and tuples of them.

    Raises
    ------
    TypeError
        If an option has another value, because its repr could change from process to process.

    Examples
    --------
    >>> key = key_of("def kernel(): pass", 90, (("num_warps", 4), ("fuse", False)))
    >>> len(key), key == key_of("def kernel(): pass", 90, (("fuse", False), ("num_warps", 4)))
    (64, True)
    """
    for name, value in options:
        _check_option(name, value)
    variables = tuple(map(os.environ.get, COMPILER_VARIABLES))
    identity = (SCHEMA, triton_version(), arch, sorted(options, key=lambda option: option[0]), variables, source)
    return sha256(repr(identity).encode()).hexdigest()


def _check_option(name: str, value: object) -> None:
    if type(value) is tuple:
        for item in value:
            _check_option(name, item)
    elif value is not None and type(value) not in (bool, int, float, str, bytes):
        raise TypeError(
            f"key_of: expected option {name!r} as None, a number, str, bytes, or a tuple of them, because its repr is "
            f"part of the key; got {value!r} of {type(value).__name__}; write it as a tuple or a str"
        )


def _checked(details: Details) -> Details:
    if tuple(map(type, details)) != _DETAIL_TYPES:
        raise ValueError(f"load_or_compile: expected a kernel of {Details.__annotations__}, got {details}")
    return details


def pack(key: str, arch: int, cubin: Cubin) -> bytes:
    """Return the file of a kernel; raise ValueError if a field of the kernel has a wrong type."""
    details = _checked(Details(key, arch, cubin.name, cubin.num_warps, cubin.shared, cubin.label))
    text = json.dumps(details._asdict()).encode()
    body = _HEADER.pack(_MAGIC, SCHEMA, len(text), len(cubin.code)) + text + cubin.code
    return body + sha256(body).digest()


def read_head(file: BinaryIO) -> tuple[bytes, Details, int]:
    """Return the bytes before the code, their meaning, and the code's length; raise ValueError for other files."""
    info = os.fstat(file.fileno())
    header = file.read(_HEADER.size) if stat.S_ISREG(info.st_mode) else b""
    if len(header) != _HEADER.size:
        raise ValueError("expected a regular file with a header, got another file, or a short one")
    magic, schema, text_size, code_size = _HEADER.unpack(header)
    if magic != _MAGIC or schema != SCHEMA or info.st_size != _HEADER.size + text_size + code_size + _DIGEST_SIZE:
        raise ValueError("expected a cubin file of this schema and of the stated length")
    text = file.read(text_size)
    try:
        return header + text, _checked(Details(**json.loads(text))), code_size
    except (TypeError, RecursionError) as error:
        raise ValueError("expected the JSON of a cubin file") from error


def read(file: BinaryIO, key: str) -> Cubin:
    """Return the kernel in a file; raise ValueError if the file differs from the one written under `key`."""
    head, details, code_size = read_head(file)
    code = file.read(code_size)
    digest = sha256(head)
    digest.update(code)
    if file.read(_DIGEST_SIZE) != digest.digest() or details.key != key:
        raise ValueError("expected an undamaged file of this key")
    return Cubin(code, details.name, details.num_warps, details.shared, details.label)


def open_file(path: str) -> BinaryIO:
    """Open a file for reading. Do not follow links, and do not wait if the path names a pipe."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW))


def write(path: str, data: bytes) -> None:
    """Write a file atomically, for this user alone; raise FileNotFoundError if the directory is missing."""
    temporary = f"{path.removesuffix('.cubin')}.{os.urandom(8).hex()}.tmp"
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
