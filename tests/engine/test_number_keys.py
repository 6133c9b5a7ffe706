"""Numbers are looked up by their class where it decides alone: no call depends on what was called before it."""

from __future__ import annotations

import random

import pytest

import tilearray as ta
from tilearray.engine import caches, execute
from tilearray.promotion.systems import SEMANTICS

DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64")
NUMBERS = (True, 3, -1, 200, 2**31, 2**40, -(2**40), 2**63, 2**80, -(2**80), 0.5, 1e30, 1e300, float("inf"), 2 + 1j)
OPS = (ta.add, ta.multiply, ta.less, ta.divide, ta.pow, ta.bitwise_and, ta.maximum)


def outcome(op, x, number, reflected):
    """The dtype and values of a call, or its error."""
    try:
        result = op(number, x) if reflected else op(x, number)
    except (ta.TileArrayError, ValueError) as error:
        return type(error), str(error)
    return result.dtype.name, repr(result.tolist())


def forget():
    caches.PLANS.clear()
    execute._DECIDES.clear()


@pytest.mark.parametrize("name", SEMANTICS)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_call_does_not_depend_on_those_before_it(name, shape):
    drawn = random.Random(f"{name} {shape}")
    arrays = {dtype: ta.ones(shape, dtype=dtype, device="cpu") for dtype in DTYPES}
    with ta.semantics(name):
        calls = [(op, dtype, number) for op in OPS for dtype in DTYPES for number in NUMBERS]
        calls = [(*call, drawn.random() < 0.5) for call in drawn.sample(calls, 400)]
        alone = []
        for op, dtype, number, reflected in calls:
            forget()
            alone.append(outcome(op, arrays[dtype], number, reflected))
        forget()
        order = [*range(len(calls))] * 2
        drawn.shuffle(order)
        for position in order:
            op, dtype, number, reflected = calls[position]
            assert outcome(op, arrays[dtype], number, reflected) == alone[position], calls[position]
