"""The step of an optimizer, which `foreach` runs over lists of arrays, and the comparison of lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tilearray as ta
from support.trees import bits


def adam(p: Any, g: Any, m: Any, v: Any, rate: float, turn: int) -> None:
    """Update a parameter `p` and its moments `m` and `v` by the gradient `g`."""
    m *= 0.9
    m += 0.1 * g
    v *= 0.99
    v += 0.01 * g * g
    p -= rate * (m / (1 - 0.9**turn)) / (ta.sqrt(v / (1 - 0.99**turn)) + 1e-8)


def same(found: Iterable[ta.Array], expected: Iterable[ta.Array]) -> None:
    """Compare lists of arrays: dtypes, shapes and bits."""
    assert [bits(x) for x in found] == [bits(x) for x in expected]
