"""Stochastic rounding: a cast to one of the two neighbours of a value, at random, so that the mean is the value.

The distance to the neighbour toward zero, as a fraction of the step between both, is truncated to 32 bits. The value is
rounded away from zero if this fraction and a random word of 32 bits have a sum of 2**32 or more. So a value that the
target holds stays as it is, and the mean differs from the value by less than 2**-32 steps. Element i in C order takes
word i of the stream that `tilearray.random.Philox4x32` has for the seed.

In a function that `tilearray.fuse` traces, loops have no index of an element. So the operation reads the position of an
element in C order as a sum of ranges, one along each axis.

The value is rounded in float32 or float64 to a value of the target's format, without its limits, and then cast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import dense_signature, new_array
from tilearray.errors import OperandError
from tilearray.ops.arithmetic import add
from tilearray.ops.execute import store, stored_as
from tilearray.ops.moves import convert
from tilearray.ops.options import Choice
from tilearray.ops.reduction import call_row
from tilearray.ops.seeds import Seed, key_of, seed_sequence
from tilearray.ops.variants import derived
from tilearray.promotion.scalars import StandIn

_U32, _U64 = dtypes.uint32, dtypes.uint64


def rounded_at_random(x: A, target: np.dtype, choice: Choice, seed: Seed | StandIn) -> A:
    """Return the values of an array in another dtype, rounded at random. The result is in C order.

    Raises
    ------
    OperandError
        If there is no seed, or a seed and another mode.
    """
    if choice.rounding != "rs" and not _is_exact(x._signature.dtype, target):
        raise OperandError("astype: seed= applies only to rounding='rs'; leave it out, or write rounding='rs'")
    if seed is None:
        raise OperandError("astype: rounding='rs' needs a seed, got None; write seed=0 or another int")
    saturates = target in STATE.get().semantics.saturates if choice.saturate is None else choice.saturate
    positions = x._signature.device.positions
    source = _dense(x) if positions is None else x
    if _is_exact(source._signature.dtype, target):
        return stored_as(derived(convert, Choice(saturate=choice.saturate)), source, target)
    signature = source._signature
    out = new_array(type(x), dense_signature(signature.layout.shape, target, signature.device, "astype"))
    if positions is None:
        key = key_of(seed_sequence(seed, "astype"))
        return run_fixed(_cast(signature.dtype, target, saturates), [0, 0, key, source], out)
    ranges = positions(signature.layout.shape)
    operation = _cast(signature.dtype, target, saturates, len(ranges))
    return run_fixed(operation, [0, 0, *_parts_of_key(seed), *ranges, source], out)


_PARTS = (0, 21, 42)
"""The first bits of the parts of a key. Each part is an int32, so that the classes of numbers depend on no seed."""


def _parts_of_key(seed: Seed | StandIn) -> list[Any]:
    """Return the parts of a seed's key: numbers, or stand-ins if the seed is one."""

    def part(start: int) -> Callable[[Any], int]:
        return lambda seed: key_of(seed_sequence(seed, "astype")) >> start & 2**22 - 1 >> (start < 42)

    return [seed.mapped(part(start)) if isinstance(seed, StandIn) else part(start)(seed) for start in _PARTS]


def _is_exact(source: np.dtype, target: np.dtype) -> bool:
    """Whether the target holds every value of the source, so that nothing is rounded."""
    return source == target or target == dtypes.float64 or (target == dtypes.float32 and source != dtypes.float64)


def _dense(x: A) -> A:
    """Return an array in C order at an aligned address: itself, or a copy."""
    signature = x._signature
    if signature.layout.contiguous and signature.aligned:
        return x
    out = new_array(type(x), dense_signature(signature.layout.shape, signature.dtype, signature.device, "astype"))
    store(out, x)
    return out


@cache
def _cast(source: np.dtype, target: np.dtype, saturates: bool, ranges: int | None = None) -> FixedOperation:
    """Return the operation on the three numbers of a stream and a dense array.

    If there is a number of `ranges`, the third number is three parts, and the operands before the array are ranges.
    """
    builder = ExpressionBuilder()
    counters = [builder.number(_U64) for _ in range(2)]
    if ranges is None:
        index, key = builder.cast(builder.node("index"), dtypes.int64, _U64), builder.number(_U64)
    else:
        parts = tuple([builder.number(_U64) for _ in _PARTS])
        key = builder.call("key_of_parts", parts, _U64, "({x} | ({y} << 21) | ({z} << 42))")
        index = _sum(builder, [builder.array(_U64) for _ in range(ranges)])
    words = ("philox_32", "philox_32_whole") if ranges is None else ("philox_32_anywhere", "philox_32")
    word = builder.call(words[0], (index, *counters, key), _U32, words[1] + "({x}, {y}, {z}, {w})")
    wide = dtypes.float64 if source == dtypes.float64 else dtypes.float32
    value = builder.cast(builder.array(source), source, wide)
    precision, lowest = _steps(target)
    template = f"round_at_random_{8 * wide.itemsize}({{x}}, {{y}}, {precision}, {lowest})"
    near = builder.call(f"round_at_random_{target.name}", (value, word), wide, template)
    near = builder.node("cast", near, target.name, "rn", True) if saturates else builder.cast(near, wide, target)
    return FixedOperation("astype", builder.build([near], [target]))


def _sum(builder: ExpressionBuilder, nodes: list[int]) -> int:
    """Add the sum of nodes of uint64, and return its node."""
    return reduce(lambda x, y: call_row(builder, add, x, y, dtype=_U64), nodes)


def _steps(target: np.dtype) -> tuple[int, int]:
    """Return the bits of a significand, and the exponent of the smallest step, of a format or of the integers."""
    format = dtypes.info(target).format
    if format is None:
        return 64, 0
    if not format.mantissa:  # powers of two
        return 1, -format.bias
    return format.mantissa + 1, 1 - format.bias - format.mantissa
