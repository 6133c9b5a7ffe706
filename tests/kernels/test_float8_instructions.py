"""Casts to float8: one instruction for two values where the architecture has it, integer arithmetic elsewhere."""

from __future__ import annotations

import pytest
from support.kernels import compiled, kernel_for, needs_triton
from support.oracles.formats import dtype_of

from tilearray.engine.operation import expression_of
from tilearray.ops.moves import convert
from tilearray.ops.options import Choice
from tilearray.ops.variants import derived
from tilearray.promotion.systems import ARRAY_API

pytestmark = needs_triton


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("target", "name"), [("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2")])
def test_casts_to_float8(target: str, name: str, saturate: bool) -> None:
    row = derived(convert, Choice(saturate=saturate))
    body = expression_of(row, ARRAY_API, (dtype_of("bfloat16"),), dtype_of(target))
    for arch in (80, 90):
        code = compiled(kernel_for(body, (100_000,), [(1,)] * 2, arch=arch), arch)
        assert (code.count(rf"cvt\.rn\.satfinite\.{name}x2\.f32") > 0) == (arch >= 89)


@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_the_second_of_two_bytes_is_taken_from_a_word(target: str, stride: int) -> None:
    """A shift of 16 bits is moved before the instruction by ptxas 12.8: the byte was a part of another register."""
    body = expression_of(convert, ARRAY_API, (dtype_of("int8"),), dtype_of(target))
    code = compiled(kernel_for(body, (100_000,), [(1,), (stride,)]))
    assert "satfinite" in code.ptx
    assert "shr.u16" not in code.ptx


@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_a_word_of_bytes_is_not_put_together_by_mov(target: str) -> None:
    """For four equal values ptxas 12.8 makes one instruction of two, and merges its result with another register."""
    body = expression_of(convert, ARRAY_API, (dtype_of("bool"),), dtype_of(target))
    code = compiled(kernel_for(body, (700, 130), [(1, 700), (0, 1)]))
    assert "satfinite" in code.ptx
    assert "{l, h}" not in code.ptx


@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_a_block_of_one_element_is_cast(target: str) -> None:
    """An array that repeats one element is read as a block of it."""
    source = {"float8_e4m3fn": "float8_e5m2", "float8_e5m2": "float8_e4m3fn"}[target]
    body = expression_of(convert, ARRAY_API, (dtype_of(source),), dtype_of(target))
    assert compiled(kernel_for(body, (100_000,), [(1,), (0,)])).ptx.count("satfinite") >= 1
