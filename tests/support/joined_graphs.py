"""Functions that join arrays of parts, and return or read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.trees import bits


def in_parts(x: Any, y: Any) -> Any:
    found = ta.empty_like(x)
    found[0, 1:] = x[1, 1:] * 2
    found[1:] = 2
    found[0, :1] = 7
    found[1:] = y[1:]
    return found, x + 1


def before_writes(x: Any, y: Any) -> Any:
    found = ta.stack([x, y])
    x += y
    y *= 2
    return found


def written_over(x: Any, y: Any) -> Any:
    """Parts of computed arrays are written again: walls, a block within them, one element, and columns from the end."""
    found, other = x * y, ta.zeros_like(x)
    found[0], found[-1], found[:, 0], found[:, -1] = 0, y[0], 2, x[:, 0]
    found[1:, 1:4] += 1
    other[::-1, 3] = x[:, 1]
    other[2, 4] = 5
    third = ta.sum(x, axis=0) + y
    third[:, ::2] = other[:, ::2] * 2
    x[0, 1:3] = 7
    return found, other + found, third, ta.pad(y, ((1, 2), (0, 1)))


def strided(x: Any, y: Any) -> Any:
    """Parts of any steps, each of which has some elements of those before it."""
    found, other = x + y, ta.zeros_like(x)
    found[:, ::2] = 1
    found[1:, 1:] = x[:-1, :-1]
    found[::2, 1:4] *= y[::2, 1:4]
    other.T[1::3, ::2] = 2
    other[:2, ::-1] += x[1:]
    other[::-2, ::3] = found[::2, 1::2]
    return found, other - found, other[1:]


def written_arguments(x: Any, y: Any) -> Any:
    """Arguments of which a part is written are read as a whole, and written again."""
    x[0], x[-1] = 0, y[0]
    y[:, ::2] = x[:, ::2] - y[:, ::2]
    y[:, 1:] = y[:, :-1] * 2
    x[1:] += x[:-1] + y[1:]
    return x[:, 1:] - x[:, :-1], ta.sum(y, axis=0), y


def rotated(x: Any, y: Any) -> Any:
    """The halves of rows change places, as in a rotary embedding."""
    return x * 2 + ta.concat([-x[:, 2:], x[:, :2]], axis=1) * y


def normed(x: Any, y: Any) -> Any:
    both = ta.stack([x, y * 2], axis=1)
    shares = both / ta.sum(both, axis=-1, keepdims=True)
    return shares, ta.sum(ta.concat([x, y])), ta.max(both, axis=(0, 1)), both[:, ::-1, 1:]


def twice(x: Any, y: Any) -> Any:
    found = ta.concat([ta.stack([x, y]) + 1, ta.stack([y, x]) * 2], axis=1)
    return ta.concat([found, found[::-1]]), found * found


JOINED: list[Callable[[Any, Any], Any]] = [
    lambda x, y: ta.stack([x, y * 2]),
    lambda x, y: ta.stack([x, y * 2, x + y], axis=1),
    lambda x, y: ta.stack([x + y, x - y], axis=-1),
    lambda x, y: ta.concat([x, y[:1], ta.sum(x, axis=0, keepdims=True)]),
    lambda x, y: ta.concat([x.T, y.T * 2], axis=1),
    lambda x, y: ta.concat([x, y.T], axis=None),
    lambda x, y: ta.concat([x.astype("int32"), y]),
    lambda x, y: ta.concat([x, y[:0]]),
    lambda x, y: ta.concat([x / ta.sum(x, axis=1, keepdims=True), y[:, :1]], axis=1),
    lambda x, y: ta.stack([ta.sum(x), ta.mean(y), ta.max(x)]),
    lambda x, y: ta.concat([x, y])[::-1].T,
    lambda x, y: (lambda found: (found, found[:2] * 2, found[1:3]))(ta.concat([x, y])),
    lambda x, y: ta.block([[x, y], [y * 2, x]]),
    lambda x, y: ta.roll(x, (1, -1), axis=(0, 1)),
    lambda x, y: ta.roll(x, (1, -1), axis=(0, 1)) + x[::-1],
    in_parts,
    before_writes,
    written_over,
    strided,
    written_arguments,
    lambda x, y: written_arguments(x[:, 1:], y[:, -2::-1]),
    rotated,
    normed,
    twice,
]


def check_joined(device: Any) -> None:
    """Compare fused functions with the host's, one operation after the other; their arguments also."""
    rng = np.random.default_rng(3)
    hosts = [rng.normal(size=(3, 5)).astype("float32") for _ in range(2)]
    for number, function in enumerate(JOINED):
        given, plain = ([ta.asarray(host.copy()).to_device(place) for host in hosts] for place in (device, "cpu"))
        found, wanted = ta.fuse(function)(*given), function(*plain)
        pairs = [(found, wanted)] if isinstance(wanted, ta.Array) else zip(found, wanted, strict=True)
        for mine, theirs in (*pairs, *zip(given, plain, strict=True)):
            assert (bits(mine), mine.strides) == (bits(theirs), theirs.strides), number
