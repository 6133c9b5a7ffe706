"""Fused functions, recorded blocks and `foreach` on a GPU: the bits of the operations, and the number of launches."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from support.beside_on_device import check_beside
from support.reduced_trees import check_numbers, check_reduced
from support.rows_on_device import check_groups, check_quotients
from support.targets_on_device import check_orders, check_targets
from support.trees import bits, check, check_recorded, grow

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")


@pytest.fixture
def launches(monkeypatch):
    """The stream of each launch of a program."""
    from tilearray_cuda.kernel import Kernel

    found = []

    def counted(bind):
        def bound(self, *loop):
            launch = bind(self, *loop)

            def run(stream, *operands):
                found.append(stream)
                return launch(stream, *operands)

            return run

        return bound

    for name in ("bind", "bind_fused"):
        monkeypatch.setattr(Kernel, name, counted(getattr(Kernel, name)))
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


def test_random_reductions_have_the_same_bits():
    assert Counter(check_reduced(seed, "cuda:0") for seed in range(60))["equal"] > 50
    trees = [grow(random.Random(seed), 12, in_place=seed % 2 == 0, reductions=True) for seed in range(30)]
    assert Counter(check(tree, "cuda:0").split(":")[0] for tree in trees)["equal"] > 18


def test_a_product_is_summed_in_one_launch(launches):
    a, b = floats(3000, 500), floats(500, 3000, seed=1)
    found = ta.fuse(lambda a, b: ta.sum(a * b.T, axis=1))(a, b)
    assert len(launches) == 1
    same(found, ta.sum(a * b.T, axis=1))


HELD = [(3000, 1000), (3000, 4096), (100, 4000), (5000, 7), (3000, 5000), (2500, 16000)]
TOO_LONG = {(300, 16384): (5, 3, 1), (140, 40_000): (5, 3, 5)}
"""Rows too long to hold for so few of them, and the launches of the three functions."""


@pytest.mark.parametrize("shape", [*HELD, *TOO_LONG])
def test_norms_and_quantisation_have_the_bits_of_the_operations(launches, shape):
    def norm(x, scale):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1e-5) * scale

    def quantised(x, scale):
        size = ta.max(ta.abs(x), axis=-1, keepdims=True)
        return ta.round(x / size * 127).astype("int8"), size

    x, scale = floats(*shape), floats(shape[1], seed=1)
    functions = (norm, quantised, lambda x, scale: ta.softmax(x * scale, axis=-1))
    for function, count in zip(functions, TOO_LONG.get(shape, (1, 1, 1)), strict=True):
        launches.clear()
        found = ta.fuse(function)(x, scale)
        assert len(launches) == count
        expected = function(x, scale)
        for one, other in zip(
            *[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True
        ):
            same(one, other)


def test_divisions_by_a_number_of_each_row_have_the_bits_of_the_host():
    check_quotients("cuda:0")


def test_targets_that_are_read_otherwise_have_the_bits_of_the_host():
    check_targets("cuda:0")


def test_reductions_of_numbers_have_the_bits_of_the_host():
    check_numbers("cuda:0")


def test_sums_beside_targets_of_any_layout_have_the_order_of_the_host():
    check_orders("cuda:0")


def test_reductions_with_stores_beside_have_the_bits_of_the_host():
    check_beside("cuda:0")


def test_quotients_of_bfloat16_have_the_bits_of_divisions():
    """All dividends by powers of two, by the least and the largest numbers, and by others."""
    others = np.random.default_rng(1).integers(0, 1 << 16, 300)
    y = np.concatenate([np.arange(0, 1 << 15, 128), np.arange(0, 128, 3), np.arange(0x7F00, 0x7FFF, 7), others])
    x = ta.view(ta.asarray(np.arange(1 << 16, dtype=np.uint16)), "bfloat16")[:, None]
    y = ta.view(ta.asarray(y.astype(np.uint16)), "bfloat16")
    same(x.to_device("cuda:0") / y.to_device("cuda:0"), x.to_device("cpu") / y.to_device("cpu"))


def test_groups_of_lanes_have_the_bits_of_the_host():
    check_groups("cuda:0")
