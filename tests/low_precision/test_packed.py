"""Packed float4: a dtype whose elements are bytes with two values. It is moved, exchanged, printed and stored."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import DTypeError

X2 = ta.float4_e2m1fn_x2
CODES = np.arange(48, dtype=np.uint8).reshape(4, 12) * np.uint8(5)


def packed() -> ta.Array:
    return ta.asarray(CODES, copy=True).view(X2)


def values(codes: np.ndarray) -> np.ndarray:
    """The values of bytes, the one of the lower four bits first, by ml_dtypes."""
    both = np.stack([codes & 15, codes >> 4], -1).astype(np.uint8).view(ml_dtypes.float4_e2m1fn)
    return both.astype(np.float64).reshape(*codes.shape[:-1], -1)


def test_a_pair_is_an_element() -> None:
    x = packed()
    assert (x.dtype, x.itemsize, x.shape, x.nbytes) == (X2, 1, (4, 12), 48)
    assert ta.unpack_float4(x).tolist() == values(CODES).tolist()
    assert ta.pack_float4(ta.unpack_float4(x)).dtype == X2
    assert ta.pack_float4(ta.unpack_float4(x)).view("uint8").tolist() == CODES.tolist()
    assert x.tolist()[0][:2] == [(0.0, 0.0), tuple(values(CODES)[0, 2:4].tolist())]
    assert x[0, 1].item() == tuple(values(CODES)[0, 2:4].tolist())


def test_views_begin_at_even_values() -> None:
    x = packed()
    for key in (np.s_[:, 1:], np.s_[::2, ::-3], np.s_[1], np.s_[..., None, 2:4]):
        view = x[key]
        assert ta.shares_memory(view, x)
        assert ta.unpack_float4(view).tolist() == values(np.ascontiguousarray(CODES[key])).tolist()
    x[:, :2] = x[:, 2:4].copy()
    assert x.view("uint8").tolist() == np.concatenate([CODES[:, 2:4], CODES[:, 2:]], 1).tolist()


@pytest.mark.parametrize(
    "move",
    [
        lambda x, xp: x.T.copy(),
        lambda x, xp: xp.concat([x, x[:1]]),
        lambda x, xp: xp.stack([x, x], axis=1),
        lambda x, xp: xp.take(x, xp.asarray([2, 0]), axis=1),
        lambda x, xp: x[xp.asarray([True, False, True, False])],
        lambda x, xp: xp.roll(x, 3, axis=1),
        lambda x, xp: xp.flip(x, axis=0).reshape(-1)[1:7].copy(),
        lambda x, xp: xp.broadcast_to(x[:, :1], (4, 5)).copy(),
    ],
)
def test_moves(move: Any) -> None:
    found = move(packed(), ta)
    assert found.dtype == X2
    assert found.view("uint8").tolist() == move(CODES, np).tolist()


def test_names_and_limits() -> None:
    assert dtypes.info(X2).name == "float4_e2m1fn_x2"
    assert dtypes.as_dtype("float4_e2m1fn_x2") is X2
    assert ta.finfo(X2) == ta.finfo("float4_e2m1fn")
    assert not ta.isdtype(X2, ("numeric", "bool"))
    assert ta.result_type(X2, X2) == X2
    assert not ta.can_cast(X2, "float32")
    assert not ta.can_cast("float32", X2)


def test_text() -> None:
    x = ta.asarray([33, 15], dtype="uint8").view(X2)
    assert repr(x) == "Array([( 0.5, 1.), (-6. , 0.)], dtype=float4_e2m1fn_x2, device='cpu')"
    assert str(x[0]) == "(0.5, 1.0)"
    assert "..." in repr(ta.zeros(5000, dtype=X2))
    assert "float4_e2m1fn_x2 (2,)" in x._repr_html_()


def test_copies_of_other_kinds(tmp_path: Path) -> None:
    x = packed()
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), ta.from_dlpack(x), ta.asarray(np.asarray(x))):
        assert (other.dtype, other.tolist()) == (X2, x.tolist())
    np.save(tmp_path / "x.npy", ta.to_numpy(x))
    assert b"float4_e2m1fn_x2" in (tmp_path / "x.npy").read_bytes()
    assert ta.asarray(np.load(tmp_path / "x.npy")).tolist() == x.tolist()
    with pytest.raises(AttributeError, match="NumPy has no float4_e2m1fn_x2 of its own"):
        _ = x.__array_interface__


def test_torch_shares_it_both_ways() -> None:
    torch = pytest.importorskip("torch")
    x = packed()
    for there in (ta.to_torch(x), torch.from_dlpack(x)):
        assert (there.dtype, tuple(there.shape)) == (torch.float4_e2m1fn_x2, (4, 12))
        there.view(torch.uint8)[0, 0] += 1
        assert there.view(torch.uint8).tolist() == x.view("uint8").tolist()
        for back in (ta.asarray(there), ta.from_dlpack(there), ta.asarray(there[1:, 2:])):
            assert back.dtype == X2
            assert ta.shares_memory(back, x)
    assert ta.asarray(there[1:, 2:]).tolist() == x[1:, 2:].tolist()
    assert ta.zeros(2, dtype=torch.float4_e2m1fn_x2).dtype == X2


def test_quantize_gives_it_and_dequantize_takes_it() -> None:
    x = ta.asarray(np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32))
    for source in ("float32", "bfloat16"):
        plain, found = (
            ta.quantize(x.astype(source), "e2m1", block=16, scale="e4m3", packed=each) for each in (False, True)
        )
        assert found.values.dtype == X2
        assert ta.dequantize(*found).tolist() == ta.dequantize(*plain).tolist()
        bytes_ = found.values.view("uint8")
        assert ta.dequantize(bytes_, *found[1:], packed=True).tolist() == ta.dequantize(*plain).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: x + x,
            "add: float4_e2m1fn_x2 is a storage dtype, it is not computed with; write ta.unpack_float4(",
        ),
        (lambda x: x * 2, "multiply: float4_e2m1fn_x2 is a storage dtype"),
        (lambda x: x == x, "equal: float4_e2m1fn_x2 is a storage dtype"),
        (lambda x: ta.sum(x), "sum: float4_e2m1fn_x2 is a storage dtype"),
        (
            lambda x: x.astype("float32"),
            "astype: float4_e2m1fn_x2 does not become float32, because a pair is not a number; write "
            "ta.unpack_float4(x).astype(...)",
        ),
        (
            lambda x: ta.ones(2).astype(X2),
            "astype: float32 does not become float4_e2m1fn_x2, because a pair is not a number; write ta.pack_float4(",
        ),
        (lambda x: float(x[0, 0]), "float: an element of float4_e2m1fn_x2 is two numbers; write ta.unpack_float4(x)"),
        (lambda x: ta.full(3, 1.0, dtype=X2), "full: an element of float4_e2m1fn_x2 is two numbers, got 1.0; write"),
        (lambda x: x.__setitem__(0, 1.0), "setitem: an element of float4_e2m1fn_x2 is two numbers, got 1.0"),
        (lambda x: ta.asarray([1.0], dtype=X2), "asarray: Python numbers do not become float4_e2m1fn_x2; write"),
        (lambda x: ta.quantize(ta.ones(2), X2), "quantize: expected a signed float of 8 bits or fewer, or int8, got"),
        (
            lambda x: x.__setitem__(0, ta.unpack_float4(x[0])[::2]),
            "setitem: expected a target that can store the float4_e2m1fn result, got float4_e2m1fn_x2",
        ),
    ],
)
def test_it_is_not_computed_with(call: Any, message: str) -> None:
    with pytest.raises(DTypeError, match=re.escape(message)):
        call(packed())


def test_zeros() -> None:
    assert ta.zeros_like(packed()).view("uint8").tolist() == np.zeros_like(CODES).tolist()
    x = packed()
    x[1:] = 0
    assert x.view("uint8").tolist() == [CODES[0].tolist()] + [[0] * 12] * 3
