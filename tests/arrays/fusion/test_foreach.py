"""`foreach`: the results of a loop over the lists, checks before the first write, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from support.optimizer import adam, same

import tilearray as ta
from tilearray.errors import BroadcastError, FusionError, OperandError, WriteError

SHAPES = [(3, 5), (7,), (), (3, 5), (2, 1, 4), (0, 3)]


def arrays(seed, dtype="float32"):
    rng = np.random.default_rng(seed)
    return [ta.asarray(rng.normal(size=shape)).astype(dtype) for shape in SHAPES]


def test_an_optimizer_step_gives_the_bits_of_a_loop():
    ours = [arrays(seed) for seed in range(2)] + [[x * 0 for x in arrays(0)] for _ in range(2)]
    plain = [[x.copy() for x in each] for each in ours]
    for turn in (1, 2):
        assert ta.foreach(adam, *ours, 1e-3, turn) == [None] * len(SHAPES)
        for each in zip(*plain, strict=True):
            adam(*each, 1e-3, turn)
    for found, expected in zip(ours, plain, strict=True):
        same(found, expected)


def test_results_in_order_and_arguments_that_are_the_same_in_all_calls():
    x, bias = arrays(1), ta.asarray(0.5)
    found = ta.foreach(lambda x, bias, k: (x * k + bias, x > 0), x, bias, 2)
    same([first for first, _ in found], [each * 2 + bias for each in x])
    same([second for _, second in found], [each > 0 for each in x])
    assert ta.foreach(lambda x: x + 1, []) == []
    same(ta.foreach(lambda x, k: x * k, tuple(x), list(range(6))), [each * k for k, each in enumerate(x)])


def test_dtypes_and_layouts_may_differ():
    x = [ta.asarray([[1, 2], [3, 4]]).T, ta.asarray([1.5, 2.5], dtype="bfloat16")[::-1], ta.asarray([True, False])]
    same(ta.foreach(lambda x: ta.where(x > 1, x * 3, 7), x), [ta.where(each > 1, each * 3, 7) for each in x])


def test_a_function_is_traced_once_for_arrays_of_one_kind():
    traces = []

    def double(x):
        traces.append(x)
        return x * 2

    for size in range(1, 5):
        ta.foreach(double, [ta.ones(size), ta.ones(size + 1)])
    assert len(traces) == 1
    fused = ta.fuse(double)
    ta.foreach(fused, [ta.ones(1), ta.ones((1, 1))])
    assert fused.traces == 2


def test_arrays_of_numpy():
    x = [np.ones(2), np.zeros((2, 2))]
    first, second = ta.foreach(lambda x, k: x + k, x, 1.5)
    assert type(first) is np.ndarray
    assert (first.tolist(), second.tolist()) == ([2.5] * 2, [[1.5] * 2] * 2)
    ta.foreach(lambda x: x.__iadd__(1), x)
    assert x[1].tolist() == [[1.0] * 2] * 2


def test_within_a_fused_function():
    x = arrays(2)

    @ta.fuse
    def outer(x):
        return ta.foreach(lambda x: x + 1, x)

    same(outer(x), [each + 1 for each in x])


def test_in_a_block_that_records():
    x, total = arrays(3), arrays(4)
    expected = [t + (each * 2) for each, t in zip(x, total, strict=True)]
    with ta.lazy():
        doubled = [each * 2 for each in x]
        ta.foreach(lambda t, d: t.__iadd__(d), total, doubled)
    same(total, expected)


def frozen():
    found = ta.ones(3)
    found.flags.writeable = False
    return found


def overlapping():
    memory = ta.ones(5)
    return memory[1:], memory[:-1]


@pytest.mark.parametrize(
    ("error", "last"),
    [
        (BroadcastError, (ta.ones(3), ta.ones(4))),
        (WriteError, (frozen(), ta.ones(3))),
        (FusionError, overlapping()),
        (ta.errors.DTypeError, (ta.asarray([1, 2]), ta.ones(2))),
    ],
)
def test_errors_come_before_anything_is_written(error, last):
    x, y = [ta.ones(3), last[0]], [ta.ones(3), last[1]]
    with pytest.raises(error):
        ta.foreach(lambda x, y: x.__iadd__(y), x, y)
    assert x[0].tolist() == [1.0] * 3


def test_arrays_that_are_the_same_or_overlap_between_calls():
    memory, plain = ta.ones(5), ta.ones(5)
    ta.foreach(lambda x, y: x.__iadd__(y), [memory[1:], memory], [memory[1:], memory])
    plain[1:] += plain[1:]
    plain += plain
    same([memory], [plain])


def test_errors_of_arguments():
    with pytest.raises(OperandError, match=r"foreach: expected lists of equal length, got lengths \[2, 1\]"):
        ta.foreach(lambda x, y: x + y, [ta.ones(1), ta.ones(1)], [ta.ones(1)])
    with pytest.raises(OperandError, match="foreach: expected lists of arrays, got int"):
        ta.foreach(lambda x: x, 3)
    with pytest.raises(OperandError, match="foreach: expected lists of arrays, got no arguments"):
        ta.foreach(lambda: None)
    with pytest.raises(OperandError, match="foreach: expected a function, got list"):
        ta.foreach([ta.ones(1)])
    with pytest.raises(FusionError, match="cumulative_sum is not elementwise"):
        ta.foreach(lambda x: ta.cumulative_sum(x), [ta.ones(2)])
