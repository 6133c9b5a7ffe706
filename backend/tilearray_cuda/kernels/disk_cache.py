"""Compiled kernels, kept in memory and on disk: source and options in, cubin out.

A kernel takes 0.1 s to compile and Triton half a second to import, so neither may happen twice. `load_or_compile` asks
memory, then the directory, then the compiler; only the last of them imports triton.

- **Never wrong**: the key names everything that decides the code, and what is not exactly the file written under it is
  no hit and is replaced by the compiled kernel (`cubin.py`). Files of any other name are never touched.
- **Shared**: threads asking for one key compile it once. Two processes may both compile it; the last one's equal file
  stays, and nobody sees half of one.
- **Ours**: code that another user could have written is not loaded (`cache_directory.py`). Such a file is no hit and is
  replaced; such a directory is not used, which costs one `CacheWarning`.
- **Bounded**: reading a file from disk sets its mtime; when the directory holds more than the bound, the longest unused
  go. The directory is looked through once in many writes, so other processes can push it over the bound for a while.
- **Never in the way**: a directory that cannot be written costs one `CacheWarning` in a process, and kernels then stay
  in memory. One that can only be read, as in a container image, serves hits without a word.

cuda.core's `FileStreamProgramCache` (1.2) was the alternative. It documents that payloads are not validated, so there
is no checksum and a damaged file goes to the driver; it keeps the code alone, without the kernel's name, warps and
shared memory; it raises where the directory cannot be written; and importing it takes 0.2 s more than the bindings.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from tilearray_cuda.kernels.cache_directory import (
    DEFAULT_LIMIT,
    CacheWarning,
    KernelFile,
    UntrustedError,
    check_directory,
    check_file,
    directory_from_environment,
    files_in,
    limit_from_environment,
    make_directory,
)
from tilearray_cuda.kernels.cubin import Cubin, key_of, open_file, pack, read, read_head, write

if TYPE_CHECKING:  # with all that it imports, it took 7 ms of a first operation's 18
    from pathlib import Path

__all__ = [
    "CacheWarning",
    "Cubin",
    "CubinCache",
    "Entry",
    "Statistics",
    "UntrustedError",
    "clear",
    "directory",
    "entries",
    "key_of",
    "load_or_compile",
    "lookup",
    "process_cache",
    "statistics",
]

MEMORY_LIMIT = 2**26
"""Bytes of code held in memory, beyond which the longest unused leave; the driver has its own copy by then."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """A kernel on disk: `size` of its file in bytes, `last_used` in seconds since the epoch."""

    key: str
    label: str
    arch: int
    size: int
    last_used: float


class Statistics(NamedTuple):
    """What one process asked of the cache."""

    memory_hits: int
    disk_hits: int
    compiles: int
    evictions: int


class CubinCache:
    """A memory -> disk cache of kernels in one directory. The module's functions use one for the whole process.

    Parameters
    ----------
    directory : str or os.PathLike
        Where files are kept; made when the first one is written.
    limit : int
        Bytes that the files may take together. A kernel larger than that is not written; 0 writes nothing.

    Examples
    --------
    >>> import tempfile
    >>> cache = CubinCache(tempfile.mkdtemp())
    >>> compile_it = lambda: Cubin(b"code", "kernel", num_warps=4, shared=0)
    >>> cache.load_or_compile("source", 90, (("fuse", False),), "add float32", compile_it).label
    'add float32'
    >>> cache.load_or_compile("source", 90, (("fuse", False),), "add float32", compile_it).code
    b'code'
    >>> cache.statistics()
    Statistics(memory_hits=1, disk_hits=0, compiles=1, evictions=0)
    """

    def __init__(self, directory: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        self._directory = os.path.abspath(directory)
        self.limit = limit
        self._lock = Lock()  # guards what follows; not renewed at a fork: see _start_over
        self._memory: dict[str, Cubin] = {}  # longest unused first
        self._memory_size = 0
        self._compiling: dict[str, tuple[Lock, list[None]]] = {}  # per key, its lock and one item a thread that uses it
        self._counts = dict.fromkeys(Statistics._fields, 0)
        self._warned = False
        self._trusted = False  # the directory was looked at, and nobody else can write there
        self._sweeping = Lock()  # guards _room, and lets one thread look through the directory at a time
        self._room = 0  # bytes to write before the directory has to be looked through again

    @property
    def directory(self) -> Path:
        """Where files are kept."""
        from pathlib import Path

        return Path(self._directory)

    def check(self) -> None:
        """Raise UntrustedError where another user can write to the directory. One that is in order is asked once."""
        if not self._trusted:
            check_directory(self._directory)
            self._trusted = True

    def prepare(self) -> None:
        """Make the directory where it is missing, or went away in the meantime; then `check` it."""
        make_directory(self._directory)
        self._trusted = False
        self.check()

    def load_or_compile(
        self, source: str, arch: int, options: tuple[tuple[str, object], ...], label: str, make: Callable[[], Cubin]
    ) -> Cubin:
        """Return a kernel from memory or disk, else what `make` returns, labelled and kept. See `load_or_compile`."""
        key = key_of(source, arch, options)
        found = self._from_memory(key)
        if found is not None:
            return found
        with self._alone_with(key):
            found = self.lookup(key)
            if found is not None:
                return found
            cubin = make()._replace(label=label)
            data = pack(key, arch, cubin)
            self._count("compiles")
            self._remember(key, cubin)  # before the disk, which may warn, and a warning may be an error
            self._store(f"{key}.cubin", data)
            return cubin

    def lookup(self, key: str) -> Cubin | None:
        """Return a kernel from memory or disk, or None."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"lookup: expected a key as key_of returns it, 64 hexadecimal digits; got {key!r}")
        return self._from_memory(key) or self._from_disk(key)

    def entries(self) -> list[Entry]:
        """Return the kernels on disk, the last used one first. Files that are no entries are left out."""
        return sorted(self._entries(), key=lambda entry: (-entry.last_used, entry.key))

    def clear(self) -> tuple[int, int]:
        """Forget every kernel, here and on disk; return how many files that were, and how many bytes."""
        with self._lock:
            self._memory.clear()
            self._memory_size = 0
        removed = [file.size for file in list(files_in(self._directory)) if self._remove(file.name)]
        return len(removed), sum(removed)

    def statistics(self) -> Statistics:
        """Return how often memory, disk and compiler were the answer, and how many files were evicted."""
        with self._lock:
            return Statistics(**self._counts)

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    @contextmanager
    def _alone_with(self, key: str) -> Iterator[None]:
        """Let one thread at a time work on a key."""
        with self._lock:
            lock, users = self._compiling.setdefault(key, (Lock(), []))
            users.append(None)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                users.pop()
                if not users:
                    del self._compiling[key]

    def _from_memory(self, key: str) -> Cubin | None:
        with self._lock:
            cubin = self._memory.pop(key, None)
            if cubin is not None:
                self._memory[key] = cubin  # last, as the one just used
                self._counts["memory_hits"] += 1
            return cubin

    def _remember(self, key: str, cubin: Cubin) -> None:
        with self._lock:
            before = self._memory.pop(key, None)
            self._memory[key] = cubin
            self._memory_size += len(cubin.code) - (len(before.code) if before else 0)
            while self._memory_size > MEMORY_LIMIT and len(self._memory) > 1:
                self._memory_size -= len(self._memory.pop(next(iter(self._memory))).code)

    def _from_disk(self, key: str) -> Cubin | None:
        try:
            self.check()
            with open_file(self._path(f"{key}.cubin")) as file:
                check_file(file)
                cubin = read(file, key)
                with suppress(OSError):  # not ours, or read-only: it is used all the same
                    os.utime(file.fileno())
        except (OSError, ValueError):
            return None
        self._count("disk_hits")
        self._remember(key, cubin)
        return cubin

    def _store(self, name: str, data: bytes) -> None:
        if len(data) > self.limit:
            return
        try:
            try:
                self.check()
                write(self._path(name), data)
            except FileNotFoundError:
                self.prepare()
                write(self._path(name), data)
        except UntrustedError as error:
            self._warn(
                f"load_or_compile: expected to keep compiled kernels in {self._directory!r}, where no other user can"
                f" write, got one where {error}. Kernels there are not used and none is kept: each process compiles its"
                " own. Name another directory in TILEARRAY_CACHE_DIR where that cannot be changed"
            )
        except OSError as error:
            self._warn(
                f"load_or_compile: expected to keep compiled kernels in {self._directory!r}, got {error}: they stay"
                " in memory, and the next process compiles them again. Make room or make it writable, or name another"
                " directory in TILEARRAY_CACHE_DIR"
            )
        else:
            self._keep_bound(name, len(data))

    def _warn(self, message: str) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            message += "; TILEARRAY_CACHE_SIZE=0 keeps kernels in memory and is silent"
            warnings.warn(message, CacheWarning, stacklevel=2)

    def _keep_bound(self, name: str, size: int) -> None:
        """Account for a file just written, and evict others where the bound requires it.

        Between two looks at the directory a process writes a sixteenth of what was free at most; a look that evicts
        goes on to 90% of the bound, so that looks stay rare when the directory is full.
        """
        with self._sweeping:
            self._room -= size
            if self._room < 0:
                self._room = max(0, self.limit - self._evict(name)) // 16

    def _evict(self, keep: str) -> int:
        """Remove what dead writers left, and the longest unused entries but `keep` if too many; return bytes left."""
        entries: list[KernelFile] = []
        for file in list(files_in(self._directory)):
            if file.name.endswith(".cubin"):
                entries.append(file)
            else:
                self._remove(file.name)
        total = sum(entry.size for entry in entries)
        if total <= self.limit:
            return total
        for entry in sorted(entries):
            if total <= self.limit * 9 // 10:
                break
            if entry.name != keep and self._remove(entry.name):
                total -= entry.size
                self._count("evictions")
        return total

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _remove(self, name: str) -> bool:
        try:
            os.unlink(self._path(name))
        except OSError:
            return False
        return True

    def _entries(self) -> Iterator[Entry]:
        for used, size, name in files_in(self._directory):
            with suppress(OSError, ValueError), open_file(self._path(name)) as file:
                _, details, _ = read_head(file)
                if name == f"{details.key}.cubin":
                    yield Entry(details.key, details.label, details.arch, size, used / 1e9)


_shared: list[CubinCache] = []
_sharing = Lock()


def process_cache() -> CubinCache:
    """Return the cache of this process; the environment is read when it is made."""
    with _sharing:
        if not _shared:
            _shared.append(CubinCache(directory_from_environment(), limit_from_environment()))
        return _shared[0]


def _start_over() -> None:
    """In a forked child: locks may have been held by threads that are not there, so nothing is kept but the files."""
    global _sharing
    _sharing = Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_start_over)


def load_or_compile(
    source: str, arch: int, options: tuple[tuple[str, object], ...], label: str, make: Callable[[], Cubin]
) -> Cubin:
    """Return a compiled kernel from memory or disk, else from `make`, whose result is kept.

    Threads that ask for the same key at the same time wait for one of them to compile. What `make` raises passes
    through, nothing is kept then, and the next who asks tries again.

    Parameters
    ----------
    source, arch, options
        What the code depends on, as for `key_of`.
    label : str
        A readable name for `entries`; no part of the key.
    make : callable
        Compiles: the only place where triton may be imported.

    Warns
    -----
    CacheWarning
        Once in a process, if the kernel cannot be written to `directory`. It is returned and kept in memory all the
        same; where warnings are errors, the next call returns it. `CubinCache` has an example.
    """
    return process_cache().load_or_compile(source, arch, options, label, make)


def lookup(key: str) -> Cubin | None:
    """Return the kernel that a key names, from memory or disk, or None.

    Examples
    --------
    >>> lookup(key_of("never compiled", 90, ())) is None
    True
    """
    return process_cache().lookup(key)


def entries() -> list[Entry]:
    """Return the kernels on disk, the last used one first."""
    return process_cache().entries()


def clear() -> tuple[int, int]:
    """Forget every kernel, here and on disk; return how many files that were, and how many bytes."""
    return process_cache().clear()


def statistics() -> Statistics:
    """Return what this process asked of the cache."""
    return process_cache().statistics()


def directory() -> Path:
    """Return where kernels are kept: ``TILEARRAY_CACHE_DIR``, else tilearray in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Whoever can write there decides what runs on the GPU, so it has to be a directory that only its owner may write, and
    its owner is this user or root; otherwise it is not used.
    """
    return process_cache().directory
