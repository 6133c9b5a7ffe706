"""Random programs: gradients against torch's autograd, and against differences of the loss along a direction."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from support.gradient_trees import ALL, EXACT_ONE, EXACT_TWO, Program, grow

import tilearray as ta

EXAMPLES = int(os.environ.get("TILEARRAY_EXAMPLES", "400"))
"""The number of programs of the slow test. 5,000 pass in two minutes."""
STEP = 1e-6


def gradients(program: Program, function: Any = None) -> list[np.ndarray]:
    loss = function or (lambda *args: program.loss(0, *args))
    found = ta.grad(loss, tuple(range(len(program.arguments))))(*map(ta.asarray, program.arguments))
    return [ta.to_numpy(each) for each in found]


def checked(program: Program, seed: int) -> None:
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(x, requires_grad=True) for x in program.arguments]
    program.loss(1, *tensors).backward()
    mine = gradients(program)
    for found, tensor in zip(mine, tensors, strict=True):
        expected = np.zeros(found.shape) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7, err_msg=f"{seed} {program.steps}")
    if any(name == "single" for name, _ in program.steps):
        return  # float32 has no differences this small
    rng = np.random.default_rng(seed)
    directions = [rng.uniform(-1, 1, x.shape) for x in program.arguments]

    def along(step: float) -> float:
        moved = [ta.asarray(x + step * d) for x, d in zip(program.arguments, directions, strict=True)]
        return float(program.loss(0, *moved))

    slope = (8 * (along(STEP) - along(-STEP)) - (along(2 * STEP) - along(-2 * STEP))) / (12 * STEP)
    assert slope == pytest.approx(sum((g * d).sum() for g, d in zip(mine, directions)), rel=1e-5, abs=1e-5), seed


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_random_programs(part: int):
    for seed in range(part, 120, 4):
        checked(grow(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_gradients_of_many_random_programs(part: int):
    for seed in range(1000 + part, 1000 + EXAMPLES, 8):
        checked(grow(seed), seed)


def test_gradients_of_random_fused_programs():
    """The bits of programs of exact operations, and all others within a tolerance."""
    for seed in range(40):
        program = grow(seed, exact=seed % 2 == 0, steps=6)
        fused = ta.fuse(lambda *args, program=program: program.values(0, args)[-1])
        try:
            fused(*map(ta.asarray, program.arguments))
        except ta.FusionError:
            continue
        plain = gradients(program, lambda *args, p=program: ta.sum(p.values(0, args)[-1]))
        found = gradients(program, lambda *args, f=fused: ta.sum(f(*args)))
        for one, other in zip(found, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10, err_msg=f"{seed} {program.steps}")


def test_programs_contain_every_operation():
    names = {name for seed in range(150) for name, _ in grow(seed).steps}
    assert names == set(ALL)
    exact = {name for seed in range(150) for name, _ in grow(seed, exact=True).steps}
    assert exact == {*EXACT_ONE, *EXACT_TWO}
