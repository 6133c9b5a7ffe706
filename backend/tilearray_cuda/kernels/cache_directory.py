"""The directory of compiled kernels: its path, the files in it that are ours, and the users who can write there.

A kernel runs with the rights of the process that loads it. The sha256 in its file detects damage, not another author.

- **The file decides.** We check the open file through its descriptor, because no one can replace it afterwards. It must
  belong to us or to root, and its group and others must not write it. Its content includes its key, so an attacker
  gains nothing by renaming one of our files.
- **The directory** must belong to us or to root, and its group and others must not write it. We check its path once per
  process. An attacker who replaces the directory later must put our own files into it, because of the first rule.
- **Folders above** it need less. A folder that every user can write is refused, because every user can rename its
  entries. With the sticky bit, as in /tmp, only owners can, so an entry on our path must belong to us or to root. Other
  owners and groups are accepted: the user who chose the path chose them, and home folders of container images, mounted
  volumes and project folders have them. Such an owner can replace our directory, and we then refuse the new one.

We make directories with mode 0700, for every umask. On systems without numeric users (Windows), we check nothing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

_ENTRY_NAME = re.compile(r"[0-9a-f]{64}\.cubin")
_TEMPORARY_NAME = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}\.tmp")
_ABANDONED = 60 * 10**9
"""The age in nanoseconds at which a temporary file's writer counts as dead. A living writer writes its file again."""

_LINKS = 40  # the limit of links on one path, as in Linux
DEFAULT_LIMIT = 2**30  # bytes


class CacheWarning(UserWarning):
    """Compiled kernels cannot be stored on disk, or a setting of the cache is not valid."""


class UntrustedError(PermissionError):
    """Another user could have written a kernel, or could replace it. The text states the cause and the remedy."""


class KernelFile(NamedTuple):
    """A file in the directory; `used` in nanoseconds since the epoch, `size` in bytes."""

    used: int
    size: int
    name: str


def directory_from_environment() -> str:
    named = os.environ.get("TILEARRAY_CACHE_DIR")
    if named:
        return os.path.expanduser(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # ignore a relative path: XDG Base Directory Specification 0.8
        base = os.path.expanduser("~/.cache")
    # Without a home folder we have no directory of our own. No user can write under this path.
    return os.path.join(base if os.path.isabs(base) else os.devnull, "tilearray")


def limit_from_environment() -> int:
    if not (text := os.environ.get("TILEARRAY_CACHE_SIZE")):
        return DEFAULT_LIMIT
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    message = (
        f"TILEARRAY_CACHE_SIZE: expected a number of bytes, got {text!r}; {DEFAULT_LIMIT} is used. "
        f"Write TILEARRAY_CACHE_SIZE={DEFAULT_LIMIT}"
    )
    warnings.warn(message, CacheWarning, stacklevel=2)
    return DEFAULT_LIMIT


def make_directory(path: str) -> None:
    """Make a directory, and missing folders above it, for this user alone."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        make_directory(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # another process made it in the meantime
        if not os.path.isdir(path):
            raise


def files_in(directory: str) -> Iterator[KernelFile]:
    """Yield each regular file with the name of an entry, and each temporary file of a dead writer."""
    abandoned = time.time_ns() - _ABANDONED
    with suppress(OSError), os.scandir(directory) as found:
        for file in found:
            entry = bool(_ENTRY_NAME.fullmatch(file.name))
            if entry or _TEMPORARY_NAME.fullmatch(file.name):
                with suppress(OSError):  # the file was removed in the meantime
                    info = file.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode) and (entry or info.st_mtime_ns < abandoned):
                        yield KernelFile(info.st_mtime_ns, info.st_size, file.name)


def check_file(file: BinaryIO) -> None:
    """Raise UntrustedError unless an open file belongs to us or to root, and only its owner can write it."""
    if hasattr(os, "geteuid"):
        _check_owner_and_mode(os.fstat(file.fileno()), file.name)


def check_directory(path: str) -> None:
    """Raise UntrustedError if another user can write a directory or replace it; see the module.

    Parameters
    ----------
    path : str
        An absolute path. A missing path raises FileNotFoundError. A path to a file passes, because it holds no kernels.
    """
    if not hasattr(os, "geteuid"):
        return
    place, mode, links = os.sep, os.lstat(os.sep).st_mode, 0
    names = path.split(os.sep)[::-1]
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":  # in the target of a link
            place = os.path.dirname(place)
            mode = os.lstat(place).st_mode
            continue
        step = os.path.join(place, name)
        info = os.lstat(step)
        _check_step(place, mode, step, info)
        if not stat.S_ISLNK(info.st_mode):
            place, mode = step, info.st_mode
            continue
        links += 1
        if links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(step)
        names += target.split(os.sep)[::-1]
        if target.startswith(os.sep):
            place, mode = os.sep, os.lstat(os.sep).st_mode
    info = os.lstat(place)
    if stat.S_ISDIR(info.st_mode):
        _check_owner_and_mode(info, place)


def _check_step(above: str, mode: int, step: str, info: os.stat_result) -> None:
    """Refuse `step` if every user could have made it. `mode` is the mode of `above`, the folder of `step`."""
    if not mode & stat.S_IWOTH:
        return
    if not mode & stat.S_ISVTX:
        raise UntrustedError(f"every user can rename the entries of {above!r}; run: chmod o-w {above!r}")
    if _is_a_strangers(info):
        raise UntrustedError(f"{step!r} belongs to user {info.st_uid}, and every user can write in {above!r}")


def _check_owner_and_mode(info: os.stat_result, path: str) -> None:
    if _is_a_strangers(info):
        raise UntrustedError(f"{path!r} belongs to user {info.st_uid}")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(f"mode {stat.S_IMODE(info.st_mode):o} lets others write; run: chmod go-w {path!r}")


def _is_a_strangers(info: os.stat_result) -> bool:
    return info.st_uid not in (0, os.geteuid())
