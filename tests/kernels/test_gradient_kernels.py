"""Gradients of random programs on an emulated GPU, against the host."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("part", range(2))
def test_gradients_of_random_programs_are_the_hosts(process, part):
    process.pool.submit(_compare, part).result()


def _compare(part: int) -> None:
    import numpy as np
    from support.gradient_trees import grow
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    emulated = emulated_device()
    for seed in range(part, 4, 2):
        program = grow(seed, exact=seed % 2 == 0, steps=6)

        def gradients(device: Any, program: Any = program) -> list[Any]:
            arguments = [ta.asarray(x, device=device) for x in program.arguments]
            found = ta.grad(lambda *args: program.loss(0, *args), tuple(range(len(arguments))))(*arguments)
            return [ta.to_numpy(g.to_device("cpu")) for g in found]

        for mine, other in zip(gradients(emulated), gradients("cpu"), strict=True):
            if seed % 2 == 0:
                np.testing.assert_array_equal(mine, other)
            else:
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-10)


def test_a_gpu_computes_the_mean_of_rows_again():
    """It holds rows in registers, so that is no other pass over them."""
    x = ta.empty((4096, 1000))

    def gradient(x: Any, g: Any) -> Any:
        return ta.vjp(ta.fuse(lambda x: x / ta.sum(x * x, axis=1, keepdims=True)), x)[1](g)

    forward, _ = ta.explain(gradient, x, x.copy(), arch=90).steps
    assert sum(launch.bytes_written for launch in forward.launches) == x.nbytes
