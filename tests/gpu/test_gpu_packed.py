"""Packed float4 on the GPU: moves, exchange with torch without a copy, quantising and back."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

X2 = ta.float4_e2m1fn_x2
CODES = np.arange(48, dtype=np.uint8).reshape(4, 12) * np.uint8(5)


def test_moves():
    x = ta.asarray(CODES, device="cuda").view(X2)
    for move in (
        lambda x, xp: x.T.copy(),
        lambda x, xp: xp.concat([x, x[:1]]),
        lambda x, xp: xp.take(x, [2, 0], axis=1),
        lambda x, xp: xp.roll(x, 3, axis=1),
        lambda x, xp: x[1:, ::-3].copy(),
    ):
        found = move(x, ta)
        assert found.dtype == X2
        assert found.view("uint8").tolist() == move(CODES, np).tolist()
    assert x.tolist() == x.to_device("cpu").tolist()
    assert ta.pack_float4(ta.unpack_float4(x)).tolist() == x.tolist()
    x[:, 1:3] = x[:, 5:7].copy()
    assert x[0, 1].item() == x[0, 5].item()


def test_torch_shares_it_both_ways():
    torch = pytest.importorskip("torch")
    x = ta.asarray(CODES, device="cuda").view(X2)
    for there in (ta.to_torch(x), torch.from_dlpack(x)):
        assert (there.dtype, there.data_ptr()) == (torch.float4_e2m1fn_x2, ta.to_torch(x.view("uint8")).data_ptr())
        for back in (ta.asarray(there), ta.from_dlpack(there)):
            assert back.dtype == X2
            assert ta.shares_memory(back, x)
            assert back.tolist() == x.tolist()


def test_quantize_and_back():
    rng = np.random.default_rng(0)
    x = ta.asarray(rng.standard_normal((64, 256)).astype(np.float32), device="cuda").astype("bfloat16")
    for options in ({"block": 32, "scale": "float8_e8m0fnu"}, {"block": 16, "scale": "e4m3"}):
        here, there = (ta.quantize(each, "e2m1", packed=True, **options) for each in (x.to_device("cpu"), x))
        assert there.values.dtype == X2
        assert there.values.tolist() == here.values.tolist()
        assert ta.dequantize(*there).tolist() == ta.dequantize(*here).tolist()
