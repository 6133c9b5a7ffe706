"""Fused functions that write arguments, on a device, emulated or real: the bits of the same operations on the host.

A function of `READ_OTHERWISE` reads the memory of its target in another way than element by element, in the launch that
writes it. So it writes new memory, which is copied to the target. `ORDERS` are sums beside targets of any layout, which
are combined in the order that they have alone.
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


def _sums_beside(x: Any, out: Any, axis: Any) -> Any:
    found = ta.sum(x * 1.5, axis=axis)
    out[...] = x * 2
    return found


def _sums_to(x: Any, out: Any, axis: Any) -> None:
    out[...] = ta.sum(x * 1.5, axis=axis)


ORDERS: list[tuple[Callable[..., Any], tuple[int, ...], Any]] = [
    (_sums_beside, (3, 700), None),
    (_sums_beside, (300, 33), None),
    (_sums_beside, (2, 3, 700), -1),
    (_sums_beside, (33, 4, 60), (0, 1)),
    (_sums_beside, (40, 9, 11), (1, 2)),
    (_sums_to, (2, 3, 700), -1),
    (_sums_to, (2, 3, 7000), -1),
]
"""Functions, shapes and axes of sums whose order must not follow the layout of a target that is written beside them."""


def check_orders(device: Any) -> None:
    """Compare sums beside targets of each layout, and sums stored there, with those of the host."""
    layouts = {**LAYOUTS, "rows with gaps": lambda x: ta.concat([x, x], axis=1)[:, : x.shape[1]]}
    for function, shape, axis in ORDERS:
        values = np.random.default_rng(1).normal(size=shape) * 9
        out = values if function is _sums_beside else values.sum(axis=axis)
        for name in ("plain", "back", "turned", "gaps", "rows with gaps"):
            results: list[tuple[Any, Any]] = []
            for where in (device, "cpu"):
                target = layouts[name](ta.asarray(out.copy(), device=where))
                run = function if where == "cpu" else ta.fuse(function)
                results.append((run(ta.asarray(values, device=where), target, axis), target))
            (found, ours), (expected, plain) = results
            place = (function.__name__, name, shape, axis)
            assert expected is None or bits(found) == bits(expected), place
            assert bits(ours) == bits(plain), place


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
