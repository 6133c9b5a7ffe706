"""Functions of bfloat16 on the GPU, whose results are rounded from approximations: all numbers, and pairs of many."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.narrow import EXACT, SPECIAL, apart, patterns

import tilearray as ta


@pytest.mark.parametrize("name", ["asinh", "atan"])
def test_all_numbers(name):
    x = patterns(1)
    assert apart(ta.to_numpy(getattr(ta, name)(ta.asarray(x, device="cuda"))), EXACT[name](x)).max() == 0


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_pairs(name):
    """All numbers and every 67th; at most two pairs of 100,000 have not the nearest number."""
    x, off, count = patterns(1), 0, 0
    for y in np.concatenate([SPECIAL, patterns(67)]):
        pair = x, np.full_like(x, y)
        found = ta.to_numpy(getattr(ta, name)(*[ta.asarray(each, device="cuda") for each in pair]))
        wrong = apart(found, EXACT["power" if name == "pow" else name](*pair))
        assert wrong.max() <= 1, (x[wrong.argmax()], y, found[wrong.argmax()])
        off, count = off + np.count_nonzero(wrong), count + x.size
    assert off <= count * 2e-5


@pytest.mark.parametrize("number", [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0])
def test_powers_by_a_number(number):
    x = patterns(1)
    found = ta.to_numpy(ta.asarray(x, device="cuda") ** number)
    assert apart(found, EXACT["power"](x, np.full_like(x, number))).max() <= 1


def test_fused_functions_have_the_bits_of_unfused_ones():
    x, y = (ta.asarray(np.resize(patterns(step), 1 << 16), device="cuda") for step in (1, 3))

    def function(x, y):
        return ta.asinh(x) + ta.atan2(x, y) * ta.pow(x, y), ta.atan(y) ** 3

    for one, other in zip(ta.fuse(function)(x, y), function(x, y), strict=True):
        assert ta.to_numpy(one).tobytes() == ta.to_numpy(other).tobytes()
