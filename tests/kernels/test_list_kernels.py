"""`foreach` on an emulated GPU: one launch for a list, with the bits of the unfused operations on each member."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import Kernel, compiled, flat_kernel, needs_triton
from support.optimizer import adam, same

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]

NAMES = ["_optimizer", "_many", "_layouts", "_results", "_numbers", "_dependent", "_reductions", "_launches_of_classes"]


@pytest.mark.parametrize("name", NAMES)
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
def test_a_kernel_over_a_list_reads_and_writes_the_same_vectors(dtype, aligned):
    from tilearray_cuda.kernels.lists import source_of_list

    alone = flat_kernel("add", dtype, dtype, aligned=aligned)
    schedule = alone.schedule.for_lists()
    listed = compiled(Kernel(schedule, source_of_list(schedule), alone.loop))
    for masked in (False, True):
        assert listed.accesses("st", masked) == compiled(alone).accesses("st", masked)
    assert listed.accesses("ld", True) == compiled(alone).accesses("ld", True)
    tables = {4: 1, 8: 5}  # the member; its first program and its extent, and three addresses
    assert listed.accesses("ld", False) - compiled(alone).accesses("ld", False) == tables


# --- in the process that interprets ----------------------------------------------------------------------------------


def _device():
    from support.interpreter.emulated_gpu import emulated_device

    return emulated_device()


def _launched(function, *lists):
    """What `foreach` returns, and its launches."""
    backend = _device().backend
    before = backend.launches
    found = ta.foreach(function, *lists)
    return found, backend.launches - before


def _floats(rng, *shape, dtype="float32"):
    return ta.asarray(rng.normal(size=shape).astype(np.float32), device=_device()).astype(dtype)


SHAPES = [(3, 5), (7,), (), (3, 5), (2, 1, 4), (0, 3), (2000,), (64, 16), (1024,)]


def _optimizer():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "bfloat16"):
        ours = [[_floats(rng, *shape, dtype=dtype) for shape in SHAPES] for _ in range(4)]
        ours[3] = [x * x for x in ours[3]]
        plain = [[x.copy() for x in each] for each in ours]
        for turn in (1, 2):
            found, launches = _launched(adam, *ours, 1e-3, turn)
            assert (found, launches) == ([None] * len(SHAPES), 1)
            for each in zip(*plain, strict=True):
                adam(*each, 1e-3, turn)
        for found, expected in zip(ours, plain, strict=True):
            same(found, expected)


def _many():
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 40, 1000)
    sizes[[0, 500, 999]] = 3000, 1025, 1
    x, y = ([rng.normal(size=size).astype(np.float32) for size in sizes] for _ in range(2))
    ours = [[ta.asarray(each, device=_device()) for each in given] for given in (x, y)]
    found, launches = _launched(lambda x, y: ta.where(x > 0, x - y, -0.0 * y), *ours)
    assert launches == 1
    expected = [np.where(a > 0, a - b, np.float32(-0.0) * b) for a, b in zip(x, y, strict=True)]
    assert [ta.to_numpy(each).tobytes() for each in found] == [each.tobytes() for each in expected]


def _views(rng, dtype):
    """Arrays of one dtype and many layouts: misaligned, reversed, transposed, sliced, broadcast, 0-d."""
    memory = _floats(rng, 40, 60, dtype=dtype)
    long = _floats(rng, 3000, dtype=dtype)
    some = [memory.T, memory[:, ::-1], memory[::2, 1:50], memory[3:], long[1:], long[::-1], long[::3], long[5], long]
    some += [ta.broadcast_to(long[:60], (40, 60)), memory[0:0], memory[7], ta.reshape(long, (3, 1000))[:, 7:400]]
    return some


def _layouts():
    rng = np.random.default_rng(2)
    for dtype in ("float32", "complex64"):
        x = _views(rng, dtype)
        y = [_floats(rng, *view.shape, dtype=dtype) for view in x]
        for function in (lambda x, y: x * y + x, lambda x, y: (x == y, x - y)):
            found, launches = _launched(function, x, y)
            results = [function(*each) for each in zip(x, y, strict=True)]
            if isinstance(results[0], tuple):
                found, results = ([part for each in calls for part in each] for calls in (found, results))
            same(found, results)
            assert launches < 15, launches
        targets = [view.copy() for view in x]
        _launched(lambda t, x: t.__imul__(x), targets, x)
        same(targets, [view * view for view in x])


def _results():
    rng = np.random.default_rng(3)
    x = [_floats(rng, *shape) for shape in SHAPES]
    bias = _floats(rng)

    def several(x, bias, k):
        return {"sum": x * k + bias, "sign": x > 0, "same": x, "number": k + 1, "half": x.astype("float16")}

    found, launches = _launched(several, x, bias, 3)
    for each, given in zip(found, x, strict=True):
        assert each.pop("same") is given
        assert each.pop("number") == 4
        same(each.values(), [given * 3 + bias, given > 0, given.astype("float16")])
    assert launches == 2  # beside one element, the bias is like an array of it


def _numbers():
    rng = np.random.default_rng(4)
    x = [_floats(rng, *shape) for shape in SHAPES]
    found, launches = _launched(lambda x, k: x * k, x, [0.5] * len(x))
    assert launches == 1
    same(found, [each * 0.5 for each in x])
    found, launches = _launched(lambda x, k: x * k, x, [float(place) for place in range(len(x))])
    assert launches == len(x) - 1  # one is empty
    same(found, [each * float(place) for place, each in enumerate(x)])
    found, launches = _launched(lambda x: x * len(x.shape), x)
    same(found, [each * each.ndim for each in x])
    found, launches = _launched(lambda x, k: x * (k / max(x.size, 1)), x, 2.0)
    same(found, [each * (2.0 / max(each.size, 1)) for each in x])
    zeros = [ta.zeros(3, device=_device()), ta.zeros(4, device=_device())]
    found, launches = _launched(lambda x, k: x - k, zeros, [0.0, -0.0])
    same(found, [zeros[0] - 0.0, zeros[1] - -0.0])
    for k in (2, 2**40, -1.5, 3):
        found, launches = _launched(lambda x, k: ta.where(x > 0, x * (k // 1), x), x, k)
        assert launches == 1
        same(found, [ta.where(each > 0, each * (k // 1), each) for each in x])


def _dependent():
    """Calls that share memory run one after the other."""
    for kind in (lambda x: [x, x], lambda x: [x[1:], x[:-1]], lambda x: [x[:5], x[3:]]):
        ours, plain = (ta.asarray(np.arange(8.0, dtype=np.float32), device=_device()) for _ in range(2))
        _launched(lambda x: x.__imul__(x), kind(ours))
        for each in kind(plain):
            each *= each
        same([ours], [plain])
    x = [ta.ones(5, device=_device()) for _ in range(3)]
    _launched(lambda x, y: x.__iadd__(y), x, [x[2], x[0], x[1]])
    assert [float(each[0]) for each in x] == [2.0, 3.0, 4.0]
    halves = ta.ones(8, device=_device())
    assert _launched(lambda x: x.__iadd__(1), [halves[:4], halves[4:]])[1] == 1
    assert ta.to_numpy(halves).tolist() == [2.0] * 8


def _reductions():
    """Launches that are not elementwise run one by one; those before and after them are one."""
    rng = np.random.default_rng(5)
    x = [_floats(rng, *shape) for shape in [(3, 40), (5, 7), (30, 50)]]

    def clipped(x, largest):
        y = x * 2
        return ta.sum(y, axis=0), y[:, ::-1]

    found, _ = _launched(clipped, x, 1.0)
    for each, given in zip(found, x, strict=True):
        same(each, [ta.sum(given * 2, axis=0), (given * 2)[:, ::-1]])


def _launches_of_classes():
    """One launch for the arrays of each dtype and layout class, and none for empty lists and arrays."""
    rng = np.random.default_rng(6)
    x = [_floats(rng, *shape, dtype=dtype) for dtype in ("float32", "float16") for shape in SHAPES]
    assert _launched(lambda x: x + 1, x)[1] == 2
    assert _launched(lambda x: x + 1, [each.T for each in x])[1] == 2
    assert _launched(lambda x: x + 1, [_floats(rng, 9)[1:], _floats(rng, 5000)[1:], *x[:3]])[1] == 2
    assert _launched(lambda x: x + 1, [x[5]])[1] == 0
    assert _launched(lambda x: x + 1, [x[0]])[1] == 1
