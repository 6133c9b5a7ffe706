"""The directory of compiled kernels: where it is, which files in it are ours, and who else can write there.

A kernel runs with the rights of the process that loads it. The sha256 in its file shows damage; it shows no author.

- **The file decides.** It is looked at through its descriptor, which nobody can exchange afterwards: it belongs to us
  or to root, and neither its group nor others may write it. Its content names its key, so to rename one of our own
  files to another is of no use.
- **The directory** belongs to us or to root, and neither its group nor others may write it. Its path is looked at once
  in a process. Who exchanges the directory later has to put files of ours into it, by the rule above.
- **Folders above** need less. One that anybody may write is refused, because anybody can rename what is in it; with the
  sticky bit, as /tmp has it, only the owner can, so what we pass there must belong to us or to root. Other owners and
  groups pass: whoever chose the path chose them, and home folders of container images, mounted volumes and folders of
  projects look like that. They can put another directory in place of ours, which is then refused by its owner.

Directories that we make have mode 0700, whatever the umask is. Where users have no numbers (Windows), nothing is asked.
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
"""Nanoseconds after which a temporary file's writer is taken for dead. One that lives writes its file again."""

_LINKS = 40  # on one path, as Linux counts
DEFAULT_LIMIT = 2**30  # bytes


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk, or a setting of the cache was not understood."""


class UntrustedError(PermissionError):
    """Another user could have written a kernel, or could exchange it. The text says how, and what ends that."""


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
    if not os.path.isabs(base):  # what is relative is to be ignored: XDG Base Directory Specification 0.8
        base = os.path.expanduser("~/.cache")
    # Without a home there is no place of our own, and under this path nothing can be written or planted.
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
    """Make a directory, and those above it that are missing, for this user alone."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        make_directory(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # made by another process in the meantime
        if not os.path.isdir(path):
            raise


def files_in(directory: str) -> Iterator[KernelFile]:
    """Every regular file that is an entry by its name, or a temporary file that a dead writer left."""
    abandoned = time.time_ns() - _ABANDONED
    with suppress(OSError), os.scandir(directory) as found:
        for file in found:
            entry = bool(_ENTRY_NAME.fullmatch(file.name))
            if entry or _TEMPORARY_NAME.fullmatch(file.name):
                with suppress(OSError):  # one that went away in the meantime
                    info = file.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode) and (entry or info.st_mtime_ns < abandoned):
                        yield KernelFile(info.st_mtime_ns, info.st_size, file.name)


def check_file(file: BinaryIO) -> None:
    """Raise UntrustedError unless an open file belongs to us or to root, and only its owner may write it."""
    if hasattr(os, "geteuid"):
        _check_owner_and_mode(os.fstat(file.fileno()), file.name)


def check_directory(path: str) -> None:
    """Raise UntrustedError where another user can write a directory, or anybody can exchange it; see the module.

    Parameters
    ----------
    path : str
        An absolute path. FileNotFoundError if nothing is there; what is no directory passes, for nothing is read there.
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
    """Refuse what anybody could have put where it is. `mode` is that of the folder `above`, which holds `step`."""
    if not mode & stat.S_IWOTH:
        return
    if not mode & stat.S_ISVTX:
        raise UntrustedError(f"anybody can rename what is in {above!r}, which is ended by: chmod o-w {above!r}")
    if _is_a_strangers(info):
        raise UntrustedError(f"{step!r} belongs to user {info.st_uid}, and anybody can write in {above!r}")


def _check_owner_and_mode(info: os.stat_result, path: str) -> None:
    if _is_a_strangers(info):
        raise UntrustedError(f"{path!r} belongs to user {info.st_uid}")
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(
            f"mode {stat.S_IMODE(info.st_mode):o} lets others write, which is ended by: chmod go-w {path!r}"
        )


def _is_a_strangers(info: os.stat_result) -> bool:
    return info.st_uid not in (0, os.geteuid())
