"""Pointwise functions on an emulated GPU: NumPy's values in the dtypes that the promotion states."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("name", ["_promotions", "_layouts", "_targets", "_wide_offsets"])
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


def _promotions() -> None:
    """Several outputs, each with its promotion, are one launch; numbers are its arguments."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()

    @ta.pointwise(
        is_tensor=[True, True, False],
        promotion=[(0, 1, 2, "default"), (0, 1, "always_bool"), (0, 1, "int_to_float"), (0, "bool_to_long")],
    )
    def f(x, y, k):
        return x * k + y, x > y, (x - y) * 0.25, x

    rng = np.random.default_rng(3)
    for left, right in [("int32", "int8"), ("float16", "int8"), ("bool", "float32"), ("float16", "float16")]:
        x, y = rng.integers(0, 2 if left == "bool" else 50, 700).astype(left), rng.integers(-9, 9, 700).astype(right)
        ours = [ta.asarray(each, device=device) for each in (x, y)]
        f(*ours, 3)
        before = device.backend.launches
        found = [ta.to_numpy(each) for each in f(*ours, 5)]
        assert device.backend.launches == before + 1
        common = {"int32": "int32", "float16": "float16", "bool": "float32"}[left]
        wide = {"float16": "float32"}.get(common, common)
        a, b = x.astype(wide), y.astype(wide)
        inexact = common if common != "int32" else "float32"
        expected = [
            (a * a.dtype.type(5) + b).astype(common),
            a > b,
            ((x.astype("f4") - y.astype("f4")) * np.float32(0.25)).astype(inexact),
            x.astype("int64") if left == "bool" else x,
        ]
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.dtype == theirs.dtype
            assert mine.tobytes() == theirs.tobytes(), (left, right)


def _layouts() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    f = ta.pointwise(num_outputs=2)(lambda x, y: (x * y - x, y))
    values = np.random.default_rng(4).random((2, 33, 34), np.float32)
    views = [
        lambda x: x,
        lambda x: x[::-1, ::2],
        lambda x: x[:1],
        lambda x: x[:, 4:5],
        lambda x: x[2, 3],
        lambda x: x[3, 3:4],
    ]
    for view in views:
        for other in (lambda x: x, lambda x: x[:, ::-1]):
            ours, theirs = ta.asarray(values, device=device), values
            x, y = view(ours[0]), other(ours[1][:, : ours[0].shape[1]])
            a, b = view(theirs[0]), other(theirs[1])
            if a.ndim == 2 and a.shape[1] == 17:
                x, a = x.T, a.T
                y, b = y[:17, :33], b[:17, :33]
            found = f(x, y)
            expected = (a * b - a, np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape)))
            for mine, wanted in zip(found, expected, strict=True):
                assert ta.to_numpy(mine).tobytes() == wanted.tobytes()
    before = device.backend.launches
    assert [each.shape for each in f(ours[0][:0], ours[1][:1])] == [(0, 34)] * 2
    assert device.backend.launches == before


def _targets() -> None:
    """Targets in place, transposed and backwards; an operand that shares a part of the target is copied."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    f = ta.pointwise(promotion=[(0, 1, "default")] * 2)(lambda x, y: (x + y, x - y))
    x, y = np.random.default_rng(5).random((2, 40, 40), np.float32)
    ours, other = ta.asarray(x, device=device, copy=True), ta.asarray(y, device=device)
    target = ta.zeros((40, 40), device=device)
    f(ours, other, out0=target.T[::-1], out1=ours)
    assert ta.to_numpy(target.T[::-1]).tobytes() == (x + y).tobytes()
    assert ta.to_numpy(ours).tobytes() == (x - y).tobytes()
    plain = x - y
    f(ours[1:], other[1:], out0=ours[:-1])
    plain[:-1] = plain[1:] + y[1:]
    assert ta.to_numpy(ours).tobytes() == plain.tobytes()
    instance = f.instantiate(2)
    for _ in range(2):
        assert ta.to_numpy(instance(ours, other)[1]).tobytes() == (plain - y).tobytes()


def _wide_offsets() -> None:
    """Operands and a target whose last element is more than 2**31 elements after the first: indices have 64 bits."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray_cuda.kernels.spec import LoopClass

    device, step = emulated_device(), 2**31 + 1
    memory = ta.empty(step + 1, dtype="int8", device=device)  # pages that nobody touches take no memory
    target = ta.empty(step + 1, dtype="int8", device=device)
    memory[::step] = ta.asarray([3, 5], dtype="int8", device=device)
    f = ta.pointwise(lambda x, y: x * y + x)
    bits = []
    plain = device.backend.loop_class
    device.backend.loop_class = lambda loop: bits.append(LoopClass(*plain(loop)).index_bits) or plain(loop)
    try:
        found = f(memory[::step], memory[::-step], out0=target[::-step])
    finally:
        device.backend.loop_class = plain
    assert bits == [64]
    assert ta.to_numpy(found).tolist() == [18, 20]
    assert ta.to_numpy(target[::step]).tolist() == [20, 18]
    assert np.array_equal(ta.to_numpy(f(memory[::step], 2)), [9, 15])
