"""Pointwise functions on a GPU: those written for Triton, against NumPy, and what a decorator declares."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")
pytest.importorskip("triton")


def test_functions_written_for_triton_against_numpy():
    from support.jit_functions import check

    check("cuda:0", [(), (7,), (0, 3), (5, 33), (2, 3, 1500), (1 << 20,)])


def test_they_have_the_bits_of_the_same_function_in_python():
    """Without fma, a function of exact operations has one result."""
    from support.jit_functions import step

    plain = ta.pointwise(is_tensor=[True, True, False], promotion=[(0, 1, "default"), (0, 1, "always_bool")])(
        lambda x, y, rate: (x - rate * y, ta.abs(y) > 1)
    )
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        host = [rng.normal(size=(300, 700)).astype(np.float32) for _ in range(2)]
        x, y = (ta.asarray(each, device="cuda:0").astype(dtype) for each in host)
        for one, other in ((x, y), (x.T, y.T), (x[::2], y[::2, ::-1]), (x[1], y), (x.T[3:], y[:, :1].T)):
            one, other = (ta.broadcast_to(each, np.broadcast_shapes(one.shape, other.shape)) for each in (one, other))
            for found, expected in zip(step(one, other, 0.3), plain(one, other, 0.3), strict=True):
                assert found.dtype == expected.dtype
                assert ta.to_numpy(found).tobytes() == ta.to_numpy(expected).tobytes()


def test_within_fused_functions_lists_and_targets():
    from support.jit_functions import chosen, step

    x = [ta.asarray(np.arange(size, dtype=np.float32), device="cuda:0") for size in (3, 700, 20_000)]
    for each, given in zip(ta.foreach(lambda x: step(x * 2, x, 0.5)[0] + 1, x), x, strict=True):
        assert np.array_equal(ta.to_numpy(each), ta.to_numpy(given) * np.float32(1.5) + 1)
    step(x[0], x[0][::-1], 0.25, out0=x[0])
    assert ta.to_numpy(x[0]).tolist() == [-0.5, 0.75, 2.0]
    narrow = ta.asarray(np.array([1.5, -2.0, 3.0], dtype=np.float32), device="cuda:0").astype("bfloat16")
    found, moved = chosen(narrow > 0, narrow, -narrow, 2)
    assert ta.to_numpy(found).tolist() == [1.5, 2.0, 3.0]
    assert ta.to_numpy(moved).tolist() == [3.0, 0.0, 5.0]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    from support.jit_functions import gelu

    x = torch.linspace(-3, 3, 1000, device="cuda")
    found = gelu(x)
    assert isinstance(found, torch.Tensor)
    assert torch.allclose(found, 0.5 * x * (1 + torch.tanh(0.75 * (x + 0.0625 * x**3))), atol=1e-6)


def test_threads():
    from support.jit_functions import step

    x = ta.asarray(np.arange(5000, dtype=np.float32), device="cuda:0")
    found = {}

    def work(place):
        with ta.cuda.stream(ta.cuda.Stream()):
            for _ in range(30):
                found[place] = step(x, x, place / 8)[0]

    workers = [threading.Thread(target=work, args=(place,)) for place in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for place, each in found.items():
        expected = np.arange(5000, dtype=np.float32) - np.float32(place / 8) * np.arange(5000, dtype=np.float32)
        assert np.array_equal(ta.to_numpy(each), expected)


def test_python_functions_beside_the_host():
    """Promotion methods, outputs, layouts, numbers: the host computes the same."""
    rng = np.random.default_rng(1)
    methods = ("default", "no_opmath", "int_to_float", "always_bool", "bool_to_long")
    for method in methods:
        function = ta.pointwise(promotion=[(0, 1, method), (0, "default")], is_tensor=[True, True, False])(
            lambda x, y, k: (x * y + k, x * k)
        )
        for dtype in ("int16", "float32", "float16", "int64"):
            host = [ta.asarray(rng.integers(-9, 9, (40, 300)).astype(dtype), device="cpu") for _ in range(2)]
            ours = [each.to_device("cuda:0") for each in host]
            for cut in (lambda x: x, lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[0, 0], lambda x: x[:0]):
                expected = function(*map(cut, host), 3)
                for one, other in zip(function(*map(cut, ours), 3), expected, strict=True):
                    assert one.dtype == other.dtype
                    assert ta.to_numpy(one).tobytes() == ta.to_numpy(other).tobytes()
