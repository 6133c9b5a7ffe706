"""Every cast from numbers of 16 bits or fewer, of every value, in every mode, against exact arithmetic."""

from __future__ import annotations

import pytest
from support.oracles.all_casts import FLOATS, SMALL_INTEGERS, WAYS, wrong_integers_on_host, wrong_on_host


@pytest.mark.parametrize("source", [name for name in FLOATS if "16" not in name])
def test_every_value_of_8_bits(source: str) -> None:
    assert [row for way in WAYS for row in wrong_on_host(source, *way)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "saturate"), WAYS)
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_value_of_16_bits(source: str, mode: str, saturate: bool) -> None:
    assert wrong_on_host(source, mode, saturate) == []


@pytest.mark.parametrize("source", [name for name in SMALL_INTEGERS if "16" not in name])
def test_every_integer_of_8_bits(source: str) -> None:
    assert wrong_integers_on_host(source) == []


@pytest.mark.slow
@pytest.mark.parametrize("source", ["int16", "uint16"])
def test_every_integer_of_16_bits(source: str) -> None:
    assert wrong_integers_on_host(source) == []
