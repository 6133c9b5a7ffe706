"""Fused functions that write arguments, on a device, emulated or real: the bits of the same operations on the host.

A function of `READ_OTHERWISE` reads the memory of its target in another way than element by element, in the launch that
writes it. So it writes new memory, which is copied to the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.trees import bits

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "back": lambda x: x[..., ::-1],
    "turned": lambda x: x[::-1],
    "gaps": lambda x: ta.concat([x, x], axis=-1)[..., : 2 * x.shape[-1] : 2],
    "transposed": lambda x: x.T.copy().T,
}
SHAPES = [(3, 5), (40, 30), (7, 700)]


def _sums_to_a_column(x: Any) -> None:
    x[:, 0] = ta.sum(x, axis=1)


def _sums_to_a_column_of_two_axes(x: Any) -> None:
    x[:, :1] = ta.sum(x, axis=1, keepdims=True)


def _sums_to_a_row(x: Any) -> None:
    x[0] = ta.sum(x, axis=0)


def _variances_beside_a_product(x: Any) -> Any:
    found = ta.var(x, axis=-1, keepdims=True)
    x *= 3
    return found


def _quotients_by_variances(x: Any) -> None:
    x /= ta.var(x, axis=-1, keepdims=True)


def _turned_rows(x: Any) -> None:
    x[...] = x[:, ::-1] - ta.mean(x, axis=-1, keepdims=True)


def _sums_beside_shifted_rows(x: Any) -> Any:
    found = ta.sum(x[:, 1:] + x[:, :-1], axis=-1)
    x[:, 1:] = x[:, :-1] * 2
    return found


READ_OTHERWISE = [
    _sums_to_a_column,
    _sums_to_a_column_of_two_axes,
    _sums_to_a_row,
    _variances_beside_a_product,
    _quotients_by_variances,
    _turned_rows,
    _sums_beside_shifted_rows,
]


def check_targets(device: Any) -> None:
    """Compare results and targets of each function, layout and shape with those of the host."""
    for shape in SHAPES:
        values = (np.random.default_rng(1).normal(size=shape) * 9).astype(np.float32)
        for name, layout in LAYOUTS.items():
            for function in READ_OTHERWISE:
                ours, plain = [layout(ta.asarray(values.copy(), device=where)) for where in (device, "cpu")]
                found, expected = ta.fuse(function)(ours), function(plain)
                place = (function.__name__, name, shape)
                assert expected is None or bits(found) == bits(expected), place
                assert bits(ours) == bits(plain), place
