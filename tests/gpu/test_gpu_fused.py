"""Fused functions, recorded blocks and `foreach` on a GPU: the bits of the operations, and the number of launches."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from support.trees import bits, check, check_recorded, grow

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")


@pytest.fixture
def launches(monkeypatch):
    """The stream of each launch of a program."""
    from tilearray_cuda.kernel import Kernel

    found = []
    bind = Kernel.bind

    def counted(self, loop):
        launch = bind(self, loop)

        def run(stream, *operands):
            found.append(stream)
            launch(stream, *operands)

        return run

    monkeypatch.setattr(Kernel, "bind", counted)
    return found


def floats(*shape, seed=0):
    return ta.asarray(np.random.default_rng(seed).random(shape, np.float32), device="cuda:0")


def same(x, y):
    assert bits(x) == bits(y)
    assert x.strides == y.strides


def test_random_programs_have_the_same_bits():
    found = Counter(check(grow(random.Random(seed), 12, in_place=True), "cuda:0").split(":")[0] for seed in range(40))
    assert found["equal"] > 25


def test_random_recorded_programs_have_the_same_bits():
    programs = [(grow(random.Random(seed), 12, in_place=True), random.Random(seed)) for seed in range(300, 340)]
    assert [check_recorded(tree, rng, "cuda:0") for tree, rng in programs].count("equal") > 25


def test_a_recorded_expression_is_one_launch(launches):
    a, b = floats(300, 500), floats(500, 300, seed=1).T
    with ta.lazy():
        y = a * b + a * 2 - b
        assert y.device == "cuda:0"
        assert launches == []
    assert launches == [0]
    same(y, a * b + a * 2 - b)


def test_a_recorded_write_is_one_launch(launches):
    x, y, out = floats(1000), floats(1000, seed=1), floats(1000, seed=2)
    expected = out + x * y
    with ta.lazy():
        out += x * y
    assert launches == [0]
    same(out, expected)


def test_another_stream(launches):
    x = floats(1 << 20)
    stream = ta.cuda.Stream()
    with ta.lazy():
        y = x + 1
        with ta.cuda.stream(stream):
            z = y * 2
        w = z - x
    assert len(launches) == 3
    same(w, (x + 1) * 2 - x)


def test_foreach_over_arrays_of_many_shapes():
    def step(p, g, m, rate):
        m *= 0.9
        m += 0.1 * g
        p -= rate * m

    shapes = [(17,), (64, 64), (1, 3, 5), (1000, 33), (17,)]
    ours = [[floats(*shape, seed=seed + 10 * place) for place, shape in enumerate(shapes)] for seed in range(3)]
    plain = [[x.copy() for x in each] for each in ours]
    ta.foreach(step, *ours, 0.125)
    for each in zip(*plain, strict=True):
        step(*each, 0.125)
    for found, expected in zip(ours, plain, strict=True):
        for x, y in zip(found, expected, strict=True):
            same(x, y)
