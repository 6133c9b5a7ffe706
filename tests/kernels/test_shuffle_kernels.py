"""Permutations on an emulated GPU: the bits of the host; and their kernels, compiled."""

from __future__ import annotations

import pytest
from support.kernels import compiled, kernel_for, needs_triton

from tilearray.random.shuffles import shuffled

pytestmark = needs_triton


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 25, 100), (2, 6, 3000)])
def test_the_emulated_gpu_gives_the_order_of_the_host(process, seed, count, elements):
    process.pool.submit(_compare, seed, count, elements).result()


def test_a_few_orders_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 3, 2, 100).result()


def test_choices_that_sort_say_so_on_a_gpu(process):
    process.pool.submit(_refuses).result()


def _compare(seed: int, count: int, elements: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.shuffles import check_same_order

    device = emulated_device()
    before = device.backend.launches
    check_same_order(device, seed, count, elements)
    assert device.backend.launches > before + 10 * count


def _refuses() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    rng = ta.random.default_rng(1, device=emulated_device())
    message = r"choice: expected a device that sorts, got cuda:0.*write replace=True"
    with pytest.raises(ta.DeviceError, match=message):
        rng.choice(3, 2, replace=False, p=[0.5, 0.25, 0.25])


@pytest.mark.parametrize("arch", [80, 90, 100])
@pytest.mark.parametrize("arrays", [False, True])
def test_kernels_of_permutations_compile(arrays, arch):
    strides = [(64, 1), (0, 1), (1, 0)] if arrays else [(1,)]
    shape = (128, 64) if arrays else (4096,)
    assert compiled(kernel_for(shuffled(arrays).graph, shape, strides, arch=arch), arch).cubin.startswith(b"\x7fELF")
