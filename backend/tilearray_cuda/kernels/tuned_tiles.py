"""Block sizes that were measured on a GPU of this machine: a file beside the compiled kernels.

The tables of `tilearray_cuda.kernels.schedules` were measured on an H200. ``python -m benchmarks.tune --write``
measures on the GPU at hand, and writes the sizes that are faster there. The next process uses them.

- **Results stay**: block sizes decide which program takes an element, not how it is computed. They are part of a
  kernel's key, so no kernel of other sizes is used.
- **One GPU**: the file's name has the GPU's name, so two GPUs can share a directory.
- **Trusted**: as a kernel, the file decides how memory is accessed. A file or a directory that another user can write
  is refused, and so is a damaged file. Then one `CacheWarning` says so, and the tables of tilearray are used.
- **Bounded**: `schedules.schedule.tile_for` takes no size that is larger than all of its table.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tilearray_cuda.kernels.cache_directory import CacheWarning, UntrustedError, check_directory, check_file
from tilearray_cuda.kernels.cubin import open_file, write
from tilearray_cuda.kernels.disk_cache import process_cache

SCHEMA = 1
MOST = 2**20
"""The most bytes of a file that are read."""

Key = tuple[str, int]
"""The kind of a table, such as "flat copied", and the itemsize of the widest array."""
Sizes = tuple[int, int, int]
"""Rows, columns and warps."""

GPUS: dict[int, str] = {}
"""The name of the GPU by architecture; of several GPUs of one architecture, the first that was opened."""

_read: dict[str, Mapping[Key, Sizes]] = {}
_trial: list[tuple[Mapping[Key, Sizes], list[Key]]] = []


def path_of(gpu: str) -> str:
    """Return the path of a GPU's file.

    >>> os.path.basename(path_of("NVIDIA H100 80GB HBM3"))
    'tiles-nvidia-h100-80gb-hbm3.json'
    """
    name = re.sub("[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return os.path.join(process_cache().directory, f"tiles-{name}.json")


def find(arch: int, key: Key) -> Sizes | None:
    """Return the measured sizes of a kind of kernels on the GPU of an architecture, if there are any."""
    if _trial:
        tried, asked = _trial[-1]
        asked.append(key)
        return tried.get(key)
    return tiles_of(GPUS[arch]).get(key) if arch in GPUS else None


def tiles_of(gpu: str) -> Mapping[Key, Sizes]:
    """Return the sizes of a GPU's file, which is read once in a process.

    Warns
    -----
    CacheWarning
        If the file is damaged, or another user can write it or its directory.
    """
    path = path_of(gpu)
    found = _read.get(path)
    if found is None:
        _read[path] = {}  # if warnings are errors, the next call uses the tables of tilearray
        found = _read[path] = _read_file(path)
    return found


def _read_file(path: str) -> Mapping[Key, Sizes]:
    try:
        with open_file(path) as file:
            check_directory(os.path.dirname(path))
            check_file(file)
            text = file.read(MOST)
        return _parsed(text)
    except FileNotFoundError:
        return {}
    except UntrustedError as error:
        reason = f"expected a file of block sizes that only you can write, got {path!r}, where {error}"
    except (OSError, ValueError) as error:
        reason = f"expected block sizes of a GPU in {path!r}, got {error}; write them again: python -m benchmarks.tune"
    warnings.warn(f"{reason}. The sizes of tilearray are used", CacheWarning, stacklevel=2)
    return {}


def _parsed(text: bytes) -> dict[Key, Sizes]:
    """Return the sizes in a file; raise ValueError if it is no such file."""
    import json

    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r}")
        return {
            (kind, int(itemsize)): _checked(sizes)
            for kind, of_kind in data["tiles"].items()
            for itemsize, sizes in of_kind.items()
        }
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"a file without {error}" if isinstance(error, KeyError) else "another file") from None


def _checked(sizes: Any) -> Sizes:
    """Return sizes that a kernel can have: powers of two, and an element for each thread at least."""
    if not isinstance(sizes, list) or [type(each) for each in sizes] != [int] * 3:  # pyright: ignore
        raise ValueError(f"{str(sizes)[:60]} in the place of rows, columns and warps")
    rows, columns, warps = sizes  # pyright: ignore
    powers = all(each > 0 and each.bit_count() == 1 for each in (rows, columns, warps))
    if not powers or warps > 32 or rows * columns < 32 * warps:
        raise ValueError(f"{sizes} in the place of rows, columns and warps")
    return rows, columns, warps


def write_tiles(gpu: str, arch: int, tiles: Mapping[Key, Sizes], tried: str = "") -> str:
    """Write the sizes that were measured on a GPU, and return the path of the file. The next process uses them.

    Parameters
    ----------
    gpu : str
        The GPU's name, as the driver gives it.
    arch : int
        Its architecture, such as 90.
    tiles : mapping
    tried : str
        The versions that were measured.

    Raises
    ------
    UntrustedError
        If another user can write to the directory.
    """
    import json

    kinds: dict[str, dict[str, list[int]]] = {}
    for (kind, itemsize), sizes in sorted(tiles.items()):
        kinds.setdefault(kind, {})[str(itemsize)] = list(_checked(list(sizes)))
    process_cache().prepare()
    data = {"schema": SCHEMA, "gpu": gpu, "arch": arch, "measured with": tried, "tiles": kinds}
    write(path_of(gpu), json.dumps(data, indent=1).encode())
    _read.pop(path_of(gpu), None)
    return path_of(gpu)


@contextmanager
def trying(tiles: Mapping[Key, Sizes]) -> Iterator[list[Key]]:
    """Let `find` return these sizes alone within a block, and give the list of the keys that it is asked for."""
    _trial.append((tiles, []))
    try:
        yield _trial[-1][1]
    finally:
        _trial.pop()
