"""Compiled kernels, kept in memory and on disk: source and options in, cubin out.

A kernel takes 0.1 s to compile, and Triton half a second to import, so neither must happen twice. `load_or_compile`
looks in memory, then in the directory, and then compiles. Only the compiler imports triton.

- **Correct**: the key contains all facts that decide the code. A file that differs from the one written under its key
  is a miss, and the compiled kernel replaces it (`cubin.py`). Files with other names are never changed.
- **Shared**: threads that ask for one key compile it once. Two processes may both compile it. Their files are equal,
  the last one stays, and no reader sees a part of a file.
- **Trusted**: code that another user could have written is not loaded (`cache_directory.py`). Such a file is a miss and
  is replaced. Such a directory is not used, which causes one `CacheWarning`.
- **Bounded**: a read from disk sets the file's mtime. When the directory exceeds the bound, the least recently used
  files are removed. A process scans the directory only once in many writes, so several processes can exceed the bound
  for a short time.
- **Tolerant**: a directory that is not writable causes one `CacheWarning` per process, and kernels then stay in memory.
  A read-only directory, as in a container image, serves hits without a warning.

We do not use cuda.core's `FileStreamProgramCache` (1.2). Its documentation says that it does not validate payloads, so
it has no checksum, and a damaged file goes to the driver. It stores the code alone, without the kernel's name, warps
and shared memory. It raises if the directory is not writable. Its import takes 0.2 s more than the bindings.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
from tilearray_cuda.locks import Lock

if TYPE_CHECKING:  # its import took 7 ms of the 18 ms of a first operation
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
"""The limit of code in memory, in bytes. Above it we drop the least recently used kernels; the driver has copies."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """A kernel on disk: `size` of its file in bytes, `last_used` in seconds since the epoch."""

    key: str
    label: str
    arch: int
    size: int
    last_used: float


class Statistics(NamedTuple):
    """The requests of one process to the cache."""

    memory_hits: int
    disk_hits: int
    compiles: int
    evictions: int


class CubinCache:
    """A memory -> disk cache of kernels in one directory. The module's functions use one for the whole process.

    Parameters
    ----------
    directory : str or os.PathLike
        The directory of the files; made when the first file is written.
    limit : int
        The largest total size of the files, in bytes. A larger kernel is not written; with 0, no kernel is written.

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
        self._lock = Lock()  # guards the next five; not renewed at a fork: see _start_over
        self._memory: dict[str, Cubin] = {}  # least recently used first
        self._memory_size = 0
        self._compiling: dict[str, tuple[Lock, list[None]]] = {}  # key -> its lock, and an item per thread that uses it
        self._counts = dict.fromkeys(Statistics._fields, 0)
        self._warned = False
        self._trusted = False  # the directory was checked, and no other user can write there
        self._sweeping = Lock()  # guards _room, and lets one thread scan the directory at a time
        self._room = 0  # bytes to write before the next scan of the directory

    @property
    def directory(self) -> Path:
        """The directory of the files."""
        from pathlib import Path

        return Path(self._directory)

    def check(self) -> None:
        """Raise UntrustedError if another user can write to the directory. A trusted directory is checked once."""
        if not self._trusted:
            check_directory(self._directory)
            self._trusted = True

    def prepare(self) -> None:
        """Make the directory if it is missing, also if it was removed; then `check` it."""
        make_directory(self._directory)
        self._trusted = False
        self.check()

    def load_or_compile(
        self, source: str, arch: int, options: tuple[tuple[str, object], ...], label: str, make: Callable[[], Cubin]
    ) -> Cubin:
        """Return a kernel from memory or disk, else from `make`, with the label, and keep it. See `load_or_compile`."""
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
            self._remember(key, cubin)  # before the write, which may warn, and warnings may be errors
            self._store(f"{key}.cubin", data)
            return cubin

    def lookup(self, key: str) -> Cubin | None:
        """Return a kernel from memory or disk, or None."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"lookup: expected a key of 64 hexadecimal digits, got {key!r}; write lookup(key_of(...))")
        return self._from_memory(key) or self._from_disk(key)

    def place_of(self, key: str) -> str:
        """Return where a kernel is kept: "memory", "disk" or "" for nowhere."""
        with self._lock:
            in_memory = key in self._memory
        return "memory" if in_memory else "disk" if os.path.exists(self._path(f"{key}.cubin")) else ""

    def entries(self) -> list[Entry]:
        """Return the kernels on disk, the most recently used first. Other files are ignored."""
        return sorted(self._entries(), key=lambda entry: (-entry.last_used, entry.key))

    def clear(self) -> tuple[int, int]:
        """Forget every kernel, in memory and on disk; return the number of removed files, and of their bytes."""
        with self._lock:
            self._memory.clear()
            self._memory_size = 0
        removed = [file.size for file in list(files_in(self._directory)) if self._remove(file.name)]
        return len(removed), sum(removed)

    def statistics(self) -> Statistics:
        """Return the number of hits in memory, of hits on disk, of compilations, and of evicted files."""
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
                self._memory[key] = cubin  # last: the most recently used
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
                with suppress(OSError):  # another owner, or read-only: use the file anyway
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
                f"load_or_compile: expected a kernel directory where no other user can write, got {self._directory!r},"
                f" where {error}. Kernels there are not used, and new kernels are not stored: each process compiles its"
                " own. If you cannot change this, name another directory in TILEARRAY_CACHE_DIR"
            )
        except OSError as error:
            self._warn(
                f"load_or_compile: expected to store compiled kernels in {self._directory!r}, got {error}: kernels stay"
                " in memory, and the next process compiles them again. Free disk space, make the directory writable, or"
                " name another directory in TILEARRAY_CACHE_DIR"
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
        """Count a new file, and evict others if the directory exceeds the bound.

        Between two scans of the directory, a process writes at most a sixteenth of the free room. A scan that evicts
        stops at 90% of the bound, so that scans stay rare when the directory is full.
        """
        with self._sweeping:
            self._room -= size
            if self._room < 0:
                self._room = max(0, self.limit - self._evict(name)) // 16

    def _evict(self, keep: str) -> int:
        """Remove files of dead writers, and above the bound the oldest entries except `keep`; return the bytes left."""
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
    """Return the cache of this process. The first call reads the environment."""
    with _sharing:
        if not _shared:
            _shared.append(CubinCache(directory_from_environment(), limit_from_environment()))
        return _shared[0]


def _start_over() -> None:
    """Forget the cache in a forked child, because threads that no longer exist may hold its locks. The files stay."""
    global _sharing
    _sharing = Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_start_over)


def load_or_compile(
    source: str, arch: int, options: tuple[tuple[str, object], ...], label: str, make: Callable[[], Cubin]
) -> Cubin:
    """Return a compiled kernel from memory or disk, else from `make`, and keep the result.

    If several threads ask for one key at the same time, one compiles and the others wait. An error of `make` passes
    through, and no kernel is kept; the next call compiles again.

    Parameters
    ----------
    source, arch, options
        The facts that decide the code, as for `key_of`.
    label : str
        A readable name for `entries`, not a part of the key.
    make : callable
        The function that compiles; only here may triton be imported.

    Warns
    -----
    CacheWarning
        Once per process, if the kernel cannot be written to `directory`. The kernel is still returned, and kept in
        memory. If warnings are errors, the next call returns it. `CubinCache` has an example.
    """
    return process_cache().load_or_compile(source, arch, options, label, make)


def lookup(key: str) -> Cubin | None:
    """Return the kernel of a key from memory or disk, or None.

    Examples
    --------
    >>> lookup(key_of("never compiled", 90, ())) is None
    True
    """
    return process_cache().lookup(key)


def entries() -> list[Entry]:
    """Return the kernels on disk, the most recently used first."""
    return process_cache().entries()


def clear() -> tuple[int, int]:
    """Forget every kernel, in memory and on disk; return the number of removed files, and of their bytes."""
    return process_cache().clear()


def statistics() -> Statistics:
    """Return the requests of this process to the cache."""
    return process_cache().statistics()


def directory() -> Path:
    """Return the kernel directory: ``TILEARRAY_CACHE_DIR``, else tilearray in ``XDG_CACHE_HOME`` or ``~/.cache``.

    A user who can write there can run code on the GPU. So the directory is used only if this user or root owns it, and
    only its owner can write there.
    """
    return process_cache().directory
