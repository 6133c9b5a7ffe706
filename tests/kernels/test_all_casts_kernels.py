"""Every cast between floats of 16 bits or fewer on an emulated GPU: the bits of the host."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton
from support.oracles.all_casts import FLOATS, WAYS, wrong_on_device

pytestmark = needs_triton


@pytest.mark.parametrize("source", ["float8_e8m0fnu", "float4_e2m1fn"])
def test_a_few_values(process, source):
    assert process.pool.submit(_wrong, source).result() == []


@pytest.mark.slow
@pytest.mark.parametrize("source", FLOATS)
def test_every_value(process, source):
    assert process.pool.submit(_wrong, source).result() == []


def _wrong(source: str) -> list[str]:
    from support.interpreter.emulated_gpu import emulated_device

    return [row for way in WAYS for row in wrong_on_device(emulated_device().name, source, *way)]
