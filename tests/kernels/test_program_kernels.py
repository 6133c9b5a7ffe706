"""The functions of example programs on an emulated GPU, without copies to the host, against NumPy."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("name", ["check_attention", "check_equalise", "check_kmeans", "check_layers", "check_returns"])
def test_programs_stay_on_the_device(process, name):
    process.pool.submit(_on_the_device, name).result()


def _on_the_device(name: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import programs

    getattr(programs, name)(emulated_device())


def test_joins_have_the_bits_of_the_host(process):
    process.pool.submit(_joins).result()


def _joins() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.joined_graphs import check_joined

    check_joined(emulated_device())
