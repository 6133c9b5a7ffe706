"""Permutations on an emulated GPU: the bits of the host; and their kernels, compiled."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import compiled, kernel_for, needs_triton

from tilearray.random.shuffles import shuffled

pytestmark = needs_triton


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 4, 100), (2, 2, 3000)])
def test_the_emulated_gpu_gives_the_order_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def test_a_few_orders_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 3, 1, 100).result()


def test_choices_that_sort_are_those_of_the_host(process):
    process.pool.submit(_chooses).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.shuffles import check_same_order

    device = emulated_device()
    before = device.backend.launches
    check_same_order(device, seed, count, elements)
    assert device.backend.launches > before + 10 * count


def _chooses() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    for count, wanted in ((10, 9), (200, 50)):
        weights = np.arange(count) / np.arange(count).sum()
        chosen = [
            ta.random.default_rng(3, device=where).choice(count, wanted, replace=False, p=weights).tolist()
            for where in (device, "cpu")
        ]
        assert chosen[0] == chosen[1]
        assert len({*chosen[0]}) == wanted


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("arrays", [False, True])
def test_kernels_of_permutations_compile(arrays, arch):
    strides = [(64, 1), (0, 1), (1, 0)] if arrays else [(1,)]
    shape = (128, 64) if arrays else (4096,)
    assert compiled(kernel_for(shuffled(arrays).graph, shape, strides, arch=arch), arch).cubin.startswith(b"\x7fELF")
