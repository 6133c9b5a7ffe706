"""Memory for temporaries, which the next block and the next call take again.

The C library returns freed memory at the end of its heap to the system, which clears every page that is touched again:
0.3 to 1.5 us for 4 kB, more than the arithmetic on them takes. So the temporaries of a block are views of one piece of
memory, all blocks of a thread use the same piece, and the last few pieces are kept for other calls. No two threads
share a piece: `take` removes it from the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilearray_host.memory import BYTE

Array = np.ndarray[Any, np.dtype[Any]]
Ints = tuple[int, ...]

PIECES = 4
"""The number of pieces that are kept."""
KEPT_BYTES = 2**22
"""The most bytes of a piece that is kept."""
_PIECES: list[Array] = []


def take(nbytes: int) -> Array:
    """Return uninitialised bytes, at least as many.

    Examples
    --------
    >>> piece = take(1000)
    >>> give_back(piece)
    >>> take(500) is piece
    True
    """
    if nbytes > KEPT_BYTES:
        return np.empty(nbytes, BYTE)
    try:
        while (piece := _PIECES.pop()).nbytes < nbytes:  # too small: dropped, and a larger one comes back
            pass
    except IndexError:
        return np.empty(nbytes, BYTE)
    return piece


def give_back(piece: Array) -> None:
    """Keep a piece for the next call, if there are few."""
    if piece.nbytes <= KEPT_BYTES and len(_PIECES) < PIECES:
        _PIECES.append(piece)


Temporaries = Sequence[tuple[np.dtype[Any], tuple[bool, ...]]]
"""The dtype of each temporary, and for each axis whether it has one element there; () if it has all."""


def layout_of(temporaries: Temporaries, shape: Ints) -> tuple[int, list[tuple[Ints, np.dtype[Any], int]]]:
    """Return the bytes of the temporaries of a block of a shape, and the shape, dtype and offset of each.

    Examples
    --------
    >>> layout_of([(np.dtype("float32"), ()), (np.dtype("int8"), (False, True))], (3, 10))
    (192, [((3, 10), dtype('float32'), 0), ((3, 1), dtype('int8'), 128)])
    """
    offset = 0
    found: list[tuple[Ints, np.dtype[Any], int]] = []
    for dtype, repeats in temporaries:
        own = shape
        if repeats:
            own = tuple([1 if repeat else extent for extent, repeat in zip(shape, repeats, strict=True)])
        found.append((own, dtype, offset))
        offset += -(-prod(own) * dtype.itemsize // 64) * 64
    return offset, found
