"""Functions whose calls are remembered by their words: each call is to do what it does before any is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.caches import PLANS

PLACES = [0, 1, -1, None, True, 1.0, (0, 1), (True, 1), [0], np.int64(1), 7, "0"]
"""Axes and numbers, of which some are equal and read differently."""

SHAPES = [(-1,), -1, (3, 4), (4, -1), (True, 12), (1, 12), (1.0, 12), [12], (0, -1), (2, 3, 2), np.int64(12)]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[Any, ...]]]] = {
    "roll": (ta.roll, np.roll, [(shift, axis) for shift in (0, 1, True, 1.0, -8, (1, 2)) for axis in PLACES]),
    "tril": (ta.tril, np.tril, [(k,) for k in (*PLACES, -1, 2, 10**9)]),
    "triu": (ta.triu, np.triu, [(k,) for k in (*PLACES, -1, 2, 10**9)]),
    "tile": (ta.tile, np.tile, [(reps,) for reps in (*PLACES, 2, (2, 3), (2, 1, 3), (2, 0), (2, -1))]),
    "diff": (ta.diff, np.diff, [(n, axis) for n in (0, 1, True, 1.0, 2, -1) for axis in PLACES]),
    "repeat": (ta.repeat, np.repeat, [(count, axis) for count in (0, 1, True, 3, 2.0, -1, [2]) for axis in PLACES]),
    "flip": (ta.flip, np.flip, [(axis,) for axis in PLACES]),
    "expand_dims": (ta.expand_dims, np.expand_dims, [(axis,) for axis in PLACES]),
    "squeeze": (ta.squeeze, np.squeeze, [(axis,) for axis in PLACES]),
    "moveaxis": (ta.moveaxis, np.moveaxis, [(axis, to) for axis in PLACES for to in (0, 1, True, (1, 0))]),
    "swapaxes": (ta.swapaxes, np.swapaxes, [(axis, to) for axis in PLACES for to in (0, 1, True)]),
    "permute_dims": (ta.permute_dims, np.transpose, [((1, 0),), ((True, 0),), ((0, 1),), ([1, 0],), ((1.0, 0),)]),
    "transpose": (ta.transpose, np.transpose, [(None,), ((1, 0),), ((True, 0),), ((2, 0, 1),)]),
    "diagonal": (ta.diagonal, np.diagonal, [(k, axis, 1) for k in (0, 1, True, -2) for axis in PLACES]),
    "reshape": (ta.reshape, np.reshape, [(shape, order) for shape in SHAPES for order in "CF"]),
    "broadcast_to": (ta.broadcast_to, np.broadcast_to, [((2, 3, 4),), ((3, 4),), ((True, 3, 4),), ((1, 3, 4),), (4,)]),
}
"""For each name the function, NumPy's, and arguments."""


def check_words(name: str, device: Any) -> None:
    """Compare calls with NumPy's, and the errors of calls with those before any call is remembered."""
    function, exact, words = FUNCTIONS[name]
    hosts = [np.arange(12.0, dtype="float32").reshape(3, 4) + 100 * turn for turn in range(3)]

    def views(x: Any) -> list[Any]:
        return [x, x[:, ::-1], x.T, x[1:], x[0], x[:0], x.reshape(2, 2, 3), x[0, 1:]]

    for place, _ in enumerate(views(hosts[0])):
        fresh = []
        for each in words:
            PLANS.clear()
            x = views(ta.asarray(hosts[0], device=device))[place]
            x._signature.views.clear()
            fresh.append(_outcome(function, x, each))
        for host in hosts:
            x, wanted = views(ta.asarray(host, device=device))[place], views(host)[place]
            for turn in range(2):
                for before, each in zip(fresh, words, strict=True):
                    found = _outcome(function, x, each)
                    if isinstance(before[0], type):
                        assert found == before, (name, each, turn)
                    else:
                        array = exact(wanted, *each)
                        assert found == (array.tolist(), array.shape, *before[2:]), (name, each, turn)


def _outcome(function: Callable[..., Any], x: Any, words: tuple[Any, ...]) -> tuple[Any, ...]:
    """The elements, the shape and the signature of a result, and whether it is a view; or an error and its text."""
    try:
        found = function(x, *words)
    except (ta.TileArrayError, TypeError) as error:
        return type(error), str(error)
    is_view = found._buffer is x._buffer
    return ta.to_numpy(found).tolist(), found.shape, found._signature, is_view


DRAWS: list[tuple[str, tuple[Any, ...]]] = [
    *[("random", (size, dtype)) for size in (5, True, (5,), 5.0, None, [5], 8) for dtype in (None, "float64", "int8")],
    *[("standard_normal", (size,)) for size in (4, (2, 3), (True, 2), -1)],
    *[("standard_exponential", (3, dtype)) for dtype in (ta.float32, "float16", float, "no")],
    *[("normal", (mean, scale, 4)) for mean in (0, 0.0, -0.0, False, np.float32(0)) for scale in (0, 1, 1.0, -1.0)],
    *[("uniform", (low, high, 3)) for low in (0, -0.0, 1, True) for high in (1, 1.0, float("inf"), "1")],
    *[("exponential", (scale, 3)) for scale in (0.0, -0.0, 2, [2.0])],
    *[("integers", (low, high, 3)) for low in (0, 1, True, 9) for high in (None, 7, 7.0, 2**40)],
    *[("integers", (0, 5, size, "uint8", end)) for size in (4, 4.0) for end in (False, True, 0, 1)],
]
"""The names of draws and their arguments, of which some are equal and read differently."""


def check_draws(device: Any) -> None:
    """Compare draws with those of a generator of which no draw is remembered, and with the bits of the host's."""
    for seed in range(2):
        wanted = _drawn(ta.random.default_rng(seed, device="cpu"), clears=True)
        for each in (device, str(device), device):
            assert _drawn(ta.random.default_rng(seed, device=each)) == wanted
    with ta.semantics("array-api", float="float64"):
        rng = ta.random.default_rng(3, device=device)
        assert {rng.random(5).dtype.name for _ in range(3)} == {"float64"}


def _drawn(rng: ta.random.Generator, clears: bool = False) -> list[Any]:
    """Every draw, some of them several times, from places within blocks and at their starts."""
    found: list[Any] = []
    for name, words in DRAWS * 2:
        if clears:
            PLANS.clear()
        try:
            drawn = getattr(rng, name)(*words)
        except (ta.TileArrayError, TypeError, ValueError) as error:
            found.append((type(error), str(error)))
        else:
            found.append((drawn.dtype.name, drawn.shape, ta.to_numpy(drawn).tobytes()))
    return [*found, rng.bit_generator.state]


def check_takes(device: Any) -> None:
    """Compare elements at indices with NumPy's, in calls that are remembered and in those before."""
    rng = np.random.default_rng(5)
    for turn in range(3):
        for axis in (None, 0, 1, -1, True, 1.0, 2):
            for shape in ((4,), (2, 3), (0,), ()):
                host, places = rng.integers(0, 99, (5, 6)), rng.integers(-5, 5, shape)
                x, index = ta.asarray(host, device=device), ta.asarray(places, device=device)
                try:
                    found = ta.take(x, index, axis=axis)
                except ta.TileArrayError:
                    assert axis.__class__ in (bool, float) or axis == 2
                    continue
                wanted = np.take(host, places, axis)
                assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist()), (turn, axis, shape)
                assert ta.take(x[1:], index // 2, axis=axis).tolist() == np.take(host[1:], places // 2, axis).tolist()
                assert x[index].tolist() == host[places].tolist()
                outside = ta.asarray(places + 100, device=device)
                if places.size:
                    for call in (lambda: ta.take(x, outside, axis=axis), lambda: x[outside]):  # noqa: B023
                        with pytest.raises(ta.IndexingError, match="out of bounds"):
                            call()
                    assert ta.take(x, outside, axis=axis, mode="clip").shape == wanted.shape
