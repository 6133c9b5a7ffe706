"""Launches that walk rows and carry sums of columns, compiled and on an emulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = needs_triton


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    distance = x - ta.mean(x, axis=-1, keepdims=True)
    return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1e-5) * scale + shift


def gradients(x: Any, scale: Any, shift: Any, cotangent: Any) -> Any:
    _, pull = ta.vjp(layer_norm, x, scale, shift)
    return pull(cotangent)


def forward_and_gradients(x: Any, scale: Any, shift: Any, cotangent: Any) -> Any:
    result, pull = ta.vjp(layer_norm, x, scale, shift)
    return result, *pull(cotangent)


def both_sums(x: Any, scale: Any, shift: Any, cotangent: Any) -> Any:
    """The rows and the columns of one array are added up, and their largest elements found."""
    total = ta.sum(cotangent, axis=-1, keepdims=True)
    centred = cotangent * scale - total * x
    return centred, total, ta.sum(cotangent, axis=0), ta.max(total * x, axis=0)


def launches_of(function: Callable[..., Any], *shape: int, dtype: str = "float32") -> list[Any]:
    x, scale = ta.empty(shape, dtype=dtype), ta.empty(shape[-1], dtype=dtype)
    return list(ta.explain(ta.fuse(function), x, scale, scale.copy(), x.copy(), arch=90).launches)


def schedules_of(function: Callable[..., Any], *shape: int, dtype: str = "float32") -> list[str]:
    return [launch.kernel.schedule for launch in launches_of(function, *shape, dtype=dtype)]


@pytest.mark.slow  # the compiler takes 10 seconds
@pytest.mark.parametrize(("dtype", "lanes", "sum_bytes"), [("float32", 16, 8), ("bfloat16", 8, 4)])
def test_gradients_of_a_norm_read_each_array_once(dtype, lanes, sum_bytes):
    walk, *sums = launches_of(gradients, 16384, 4096, dtype=dtype)
    assert (walk.kernel.schedule, walk.kernel.programs, walk.kernel.warps) == ("walked_rows", 64 * lanes, 4)
    rows = 16384 * 4096 * ta.empty(0, dtype=dtype).itemsize
    assert walk.bytes_read - 2 * rows < rows // 1000
    assert sums[0].bytes_read == 2 * walk.kernel.programs * 4096 * sum_bytes  # what each program carried


@pytest.mark.parametrize(
    "shape",
    [
        (16384, 16384),  # a program has no registers for the sums
        (2000, 4096),  # what programs would store takes longer than reading arrays again
        (100, 256),  # few programs
    ],
)
def test_launches_of_their_own_for_columns(shape):
    assert "walked_rows" not in schedules_of(gradients, *shape)


def test_rows_in_an_order_that_columns_have_not_are_not_walked():
    def transposed(x, scale, shift, cotangent):
        return gradients(ta.permute_dims(x, (1, 0)), scale, shift, ta.permute_dims(cotangent, (1, 0)))

    x, scale = ta.empty((4096, 16384)), ta.empty(4096)
    launches = ta.explain(ta.fuse(transposed), x, scale, scale.copy(), x.copy(), arch=90).launches
    assert "walked_rows" not in [launch.kernel.schedule for launch in launches]


def test_walked_rows_have_the_bits_of_the_host(process):
    process.pool.submit(_compared).result()


def _compared() -> None:
    """Rows and columns that fill chunks and segments or not, backwards, of narrow floats, and of two axes as one."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits
    from support.walked_graphs import Counted, factors

    device, rng = emulated_device(), np.random.default_rng(4)
    for shape, dtype, step in (
        ((600, 200), "float32", 1),
        ((515, 256), "bfloat16", 1),
        ((2, 300, 130), "float32", 1),
        ((515, 130), "float32", -1),
    ):
        for function in (gradients, forward_and_gradients, both_sums)[: 2 if len(shape) > 2 else 3]:
            x, cotangent = factors(rng, shape, dtype)
            given = [x, *rng.normal(size=(2, shape[-1])), cotangent]
            arrays = [ta.asarray(each).astype(dtype)[..., ::step] for each in given]
            there = [ta.asarray(each).astype(dtype).to_device(device)[..., ::step] for each in given]
            told = f"{function.__name__} {shape} {dtype} {step}"
            fused, before = ta.fuse(function), device.backend.launches
            with Counted() as counted:
                found = fused(*there)
            if function is forward_and_gradients:  # two results as large as the arrays
                assert counted.count == 0, told
            elif step > 0:
                assert (counted.count, device.backend.launches) == (1, before + 3), told
            for ours, other in zip(found, function(*arrays), strict=True):
                assert bits(ours) == bits(other), told


@pytest.mark.slow  # 100 programs take a minute
def test_random_functions_of_rows_and_columns_have_the_bits_of_the_host(process):
    walked = process.pool.submit(_drawn, range(100)).result()
    assert walked >= 15


def _drawn(seeds: range) -> int:
    """Return how many of these functions walked rows."""
    import random

    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits
    from support.walked_graphs import Counted, drawn

    device, walked = emulated_device(), 0
    for seed in seeds:
        function, arguments, told = drawn(random.Random(seed))
        here, there = arguments("cpu"), arguments(device)
        with Counted() as counted, np.errstate(all="ignore"):
            expected, found = function(*here), ta.fuse(function)(*there)
        walked += counted.count > 0
        for ours, other in zip((*found, *there), (*expected, *here), strict=True):
            assert bits(ours) == bits(other), f"{seed}: {told}"
    return walked
