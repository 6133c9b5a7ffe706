"""`foreach` on a GPU: one launch for a list of arrays, with the bits of the calls one by one and of NumPy."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from support.optimizer import adam, same

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

SHAPES = [(3, 5), (7,), (), (2, 1, 4), (0, 3), (2000,), (64, 16), (1024,), (1 << 20,), (333, 777)]


@pytest.fixture
def launches(monkeypatch):
    """The name of each launch: "list", or "one" for that of a single call."""
    from tilearray_cuda.kernel import Kernel
    from tilearray_cuda.lists import Bound

    found = []
    launch_list = Bound.__call__

    def counted(bind):
        def bound(self, *loop):
            launch = bind(self, *loop)

            def run(stream, *operands):
                found.append("one")
                return launch(stream, *operands)

            return run

        return bound

    def listed(self, *arguments):
        launched = launch_list(self, *arguments)
        found.extend(["list"] * launched)
        return launched

    for name in ("bind", "bind_fused"):
        monkeypatch.setattr(Kernel, name, counted(getattr(Kernel, name)))
    monkeypatch.setattr(Bound, "__call__", listed)
    return found


def floats(rng, shape, dtype="float32"):
    return ta.asarray(rng.normal(size=shape).astype(np.float32), device="cuda:0").astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_an_optimizer_step_is_one_launch(launches, dtype):
    rng = np.random.default_rng(0)
    ours = [[floats(rng, shape, dtype) for shape in SHAPES] for _ in range(4)]
    ours[3] = [x * x for x in ours[3]]
    plain = [[x.copy() for x in each] for each in ours]
    fused = ta.fuse(adam)
    for turn in (1, 2, 3):
        launches.clear()
        assert ta.foreach(fused, *ours, 1e-3, turn) == [None] * len(SHAPES)
        assert launches == ["list"]
        for each in zip(*plain, strict=True):
            adam(*each, 1e-3, turn)
    for found, expected in zip(ours, plain, strict=True):
        same(found, expected)


def test_many_arrays_beside_numpy(launches):
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 5000, 1500)
    x, y = ([rng.normal(size=size).astype(np.float32) for size in sizes] for _ in range(2))
    ours = [[ta.asarray(each, device="cuda:0") for each in given] for given in (x, y)]
    launches.clear()
    found = ta.foreach(lambda x, y: (ta.where(x > 0, x - y, -0.0 * y), x < y), *ours)
    assert launches == ["list"]
    expected = [np.where(a > 0, a - b, np.float32(-0.0) * b) for a, b in zip(x, y, strict=True)]
    assert [ta.to_numpy(each).tobytes() for each, _ in found] == [each.tobytes() for each in expected]
    assert all(np.array_equal(ta.to_numpy(each), a < b) for (_, each), a, b in zip(found, x, y, strict=True))


def views(rng, dtype):
    memory, long = floats(rng, (400, 600), dtype), floats(rng, (300_000,), dtype)
    some = [memory, memory.T, memory[:, ::-1], memory[::2, 1:50], memory[3:], long[1:], long[::-1], long[::3], long[5]]
    return [*some, long, memory[0:0], memory[7], ta.reshape(long, (3, 100, 1000))[:, ::2, 7:400]]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "complex64"])
def test_layouts(launches, dtype):
    rng = np.random.default_rng(2)
    x = [view for _ in range(3) for view in views(rng, dtype)]
    y = [floats(rng, view.shape, dtype) for view in x]
    for function in (lambda x, y: x * y + x, lambda x, y: (x == y, x - y)):
        launches.clear()
        found = ta.foreach(function, x, y)
        assert launches.count("list") >= 5
        assert len(launches) < 15
        expected = [function(*each) for each in zip(x, y, strict=True)]
        if isinstance(expected[0], tuple):
            found, expected = ([part for each in calls for part in each] for calls in (found, expected))
        same(found, expected)
    targets = [view.copy() for view in x]
    ta.foreach(lambda t, x: t.__imul__(x), targets, x)
    same(targets, [view * view for view in x])


def test_new_addresses_and_streams(launches):
    """Gradients that are new at each step, on several streams, while memory is reused."""
    rng = np.random.default_rng(3)
    p = [floats(rng, shape) for shape in SHAPES]
    plain = [x.copy() for x in p]
    streams = [None, ta.cuda.Stream(), ta.cuda.Stream()]
    fused = ta.fuse(lambda p, g, rate: p.__isub__(rate * g))
    for turn in range(30):
        host = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
        with ta.cuda.stream(streams[turn % 3]):
            g = [ta.asarray(each, device="cuda:0") * 2 for each in host]
            ta.foreach(fused, p, g, 0.5)
            del g
        for each, given in zip(plain, host, strict=True):
            each -= 0.5 * (ta.asarray(given, device="cuda:0") * 2)
        if turn % 7 == 0:
            gc.collect()
    same(p, plain)
    assert launches.count("list") == 30


def test_threads():
    rng = np.random.default_rng(4)
    lists = [[floats(rng, shape) for shape in SHAPES] for _ in range(6)]
    plain = [[x.copy() for x in each] for each in lists]
    fused = ta.fuse(lambda x, k: x.__imul__(k))

    def work(x):
        with ta.cuda.stream(ta.cuda.Stream()):
            for turn in range(40):
                ta.foreach(fused, x, 1.0 + turn / 64)

    workers = [threading.Thread(target=work, args=(x,)) for x in lists]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for found, expected in zip(lists, plain, strict=True):
        for turn in range(40):
            for each in expected:
                each *= 1.0 + turn / 64
        same(found, expected)


def test_shared_memory_and_numbers_that_differ_run_one_by_one(launches):
    ours, plain = (ta.asarray(np.arange(64.0, dtype=np.float32), device="cuda:0") for _ in range(2))
    for views_of in (lambda x: [x, x], lambda x: [x[1:], x[:-1]], lambda x: [x[:5], x[3:]]):
        ta.foreach(lambda x: x.__iadd__(x), views_of(ours))
        for each in views_of(plain):
            each += each
    same([ours], [plain])
    assert "list" not in launches
    x = [floats(np.random.default_rng(5), shape) for shape in SHAPES]
    same(ta.foreach(lambda x, k: x * k, x, list(map(float, range(10)))), [each * float(k) for k, each in enumerate(x)])


def test_a_graph_has_a_launch_for_each_array(launches):
    rng = np.random.default_rng(6)
    x, y = ([floats(rng, shape) for shape in SHAPES] for _ in range(2))
    fused = ta.fuse(lambda x, y: x.__iadd__(y))
    expected = [a + b + b + b for a, b in zip(x, y, strict=True)]
    ta.foreach(fused, x, y)
    launches.clear()
    with ta.cuda.graph() as graph:
        ta.foreach(fused, x, y)
    assert launches == ["one"] * (len(SHAPES) - 1)
    graph.replay()
    graph.replay()
    ta.cuda.synchronize()
    same(x, expected)


def test_torch_parameters():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    p, g = ([torch.randn(shape, device="cuda") for shape in SHAPES] for _ in range(2))
    expected = [a - 0.25 * b for a, b in zip(p, g, strict=True)]
    ta.foreach(lambda p, g, rate: p.__isub__(rate * g), p, g, 0.25)
    assert all(torch.equal(a, b) for a, b in zip(p, expected, strict=True))
