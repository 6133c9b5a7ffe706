"""Arrays to other things and back: Python values, pickles, `__array__`, ufuncs, DLPack with NumPy and torch."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from support.views import pair, views

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import (
    DTypeError,
    IndexingError,
    InterchangeError,
    LayoutError,
    OperandError,
    ShapeError,
)

EVERY = [dtype.name for dtype in dtypes.ALL]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float4_e2m1fn"]


def sample(name: str) -> np.ndarray:
    """Two rows of values that every dtype but the unsigned exponent one holds."""
    return np.array([[0, 1, 2], [1, 0.5, 3]]).astype(dtypes.as_dtype(name))


# --- Python values -------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_tolist_and_item_give_python_numbers(name):
    source = sample(name)
    x = ta.asarray(source)
    wanted = source.astype("float64" if name in NARROW or name.startswith("float8") else source.dtype).tolist()
    assert str(x.tolist()) == str(wanted)
    for position in np.ndindex(2, 3):
        value = x.item(*position)
        assert str(value) == str(wanted[position[0]][position[1]])
        assert type(value) in (bool, int, float, complex)
    assert x[:0].tolist() == []
    assert x[:, :0].tolist() == [[], []]


def test_item_counts_as_numpys():
    source, x = pair((2, 3))
    assert [x.T.item(n) for n in range(-6, 6)] == [source.T.item(n) for n in range(-6, 6)]
    assert x.item(1, 2) == x.item((1, 2)) == x[1].item(2) == 5
    assert ta.asarray(7).item() == ta.asarray([[7]]).item() == ta.asarray(7).item(0) == 7
    for y, index in [(x, (6,)), (x, (-7,)), (x, (2, 0)), (x[0], (3,)), (ta.asarray(7), (1,))]:
        with pytest.raises(IndexingError, match=r"expected .* <= index < .* got .* is out of bounds for (size|axis)"):
            y.item(*index)
    with pytest.raises(ShapeError, match=r"item: expected an array of one element, got shape \(2, 3\); write x.item\("):
        ta.zeros((2, 3)).item()
    with pytest.raises(TypeError):
        x.item(0.5)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_hold_every_dtype_and_view(name, protocol):
    x = ta.asarray(sample(name))
    for view in (x, x.T, x[::-1, ::-2], x[1], x[0, 1], x[:0], ta.broadcast_to(x, (2, 2, 3))):
        data = pickle.dumps(view, protocol)
        back = pickle.loads(data)
        assert (back.dtype, back.shape, back.device) == (view.dtype, view.shape, view.device)
        assert ta.to_numpy(back).tobytes() == ta.to_numpy(view).tobytes()


def test_a_pickle_of_a_small_view_is_small():
    x = ta.zeros(1_000_000)
    assert len(pickle.dumps(x[::100_000])) < 1000


def test_read_only_arrays_come_back_writable():
    for made in (pickle.loads(pickle.dumps(ta.asarray(b"ab"))), copy.deepcopy(ta.asarray(b"ab"))):
        made[0] = 0
        assert made.tolist() == [0, 98]


# --- __array__ -------------------------------


@given(views())
def test_numpy_shares_the_memory(both):
    mine, theirs = both
    for made in (np.asarray(mine), np.array(mine, copy=False), ta.to_numpy(mine)):
        assert made.tolist() == theirs.tolist()
        assert (made.dtype, made.shape) == (theirs.dtype, theirs.shape)
        assert not theirs.size or made.ctypes.data == theirs.ctypes.data
    copied = np.array(mine)
    assert copied.tolist() == theirs.tolist()
    assert not np.shares_memory(copied, theirs)


def test_numpy_asks_for_another_dtype():
    x = ta.asarray([1.5, -1.5], dtype="bfloat16")
    assert np.asarray(x).dtype == ml_dtypes.bfloat16
    assert np.asarray(x, dtype="float32").tolist() == [1.5, -1.5]
    assert np.asarray(x, dtype=int).tolist() == [1, -1]
    assert np.asarray(ta.asarray([1, 2]), dtype=object).tolist() == [1, 2]
    assert np.asarray(ta.asarray([1, 2]), dtype=">i2").tolist() == [1, 2]
    with pytest.raises(LayoutError, match=r"__array__: copy=False, but bfloat16 becomes float32; write copy=None"):
        np.array(x, dtype="float32", copy=False)
    with pytest.warns(np.exceptions.ComplexWarning):  # NumPy reads the memory, and casts it by its own rules
        np.asarray(ta.asarray([1j]), dtype=float)
    with pytest.raises(DTypeError, match=r"the imaginary part would be lost; write x.real.astype\('float64'\)"):
        ta.asarray([1j]).__array__(dtype=float)


def test_numpy_views_of_read_only_memory_are_read_only():
    assert not np.asarray(ta.asarray(b"ab")).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(ta.asarray(b"ab"))[0] = 1


def test_to_numpy_takes_arrays_only():
    with pytest.raises(OperandError, match=r"to_numpy: expected a tilearray Array, got list; write np.asarray\(x\)"):
        ta.to_numpy([1])


# --- ufuncs -------------------------------

UNARY = ["negative", "positive", "absolute", "square", "sqrt", "exp", "log", "sin", "tanh", "floor", "isnan"]
BINARY = [
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "mod", "power", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "minimum", "maximum",
]  # fmt: skip
OF_BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]


@pytest.mark.parametrize("name", UNARY)
def test_unary_ufuncs_give_arrays(name):
    source = np.array([0.5, 1.0, 2.25], "float32")
    found = getattr(np, name)(ta.asarray(source))
    assert isinstance(found, ta.Array)
    assert np.array_equal(ta.to_numpy(found), getattr(np, name)(source))


@pytest.mark.parametrize("name", BINARY + OF_BITS)
def test_binary_ufuncs_give_arrays(name):
    ufunc = getattr(np, name)
    source = np.array([7, 2, 5], "int64" if name in OF_BITS else "float64")
    x = ta.asarray(source)
    scalar = source.dtype.type(2)
    for found, wanted in [
        (ufunc(x, x), ufunc(source, source)),
        (ufunc(x, 2), ufunc(source, 2)),
        (ufunc(2, x), ufunc(2, source)),
        (ufunc(x, scalar), ufunc(source, scalar)),
        (ufunc(scalar, x), ufunc(scalar, source)),
        (ufunc(np.array(2, source.dtype), x), ufunc(scalar, source)),
    ]:
        assert isinstance(found, ta.Array)
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())


def test_ufuncs_write_into_arrays():
    x, out = ta.asarray([1, 2]), ta.zeros(2)
    assert np.add(x, 2, out=out) is out
    assert np.add(x, 2, out=(x,)) is x
    assert (x.tolist(), out.tolist()) == ([3, 4], [3, 4])
    assert np.invert(x).tolist() == [-4, -5]
    assert [part.tolist() for part in np.divmod(x, 2)] == [[1, 2], [1, 0]]


# --- DLPack -------------------------------


@given(views())
def test_numpy_takes_any_view_by_dlpack(both):
    mine, theirs = both
    found = np.from_dlpack(mine)
    assert found.tolist() == theirs.tolist()
    assert not theirs.size or found.ctypes.data == theirs.ctypes.data
    back = ta.from_dlpack(mine)
    assert back.tolist() == theirs.tolist()
    assert back.shape == mine.shape
    assert not theirs.size or back._address == mine._address


def test_dlpack_copies_if_asked():
    x = ta.arange(3)
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 9
    assert x.tolist() == [0, 1, 2]
    assert x.__dlpack_device__() == (1, 0)
    mine = ta.from_dlpack(x, copy=True)
    assert mine._address != x._address
    assert ta.from_dlpack(x, device="cpu")._address == x._address
    with pytest.raises(InterchangeError, match=r"expected stream=None for host memory"):
        x.__dlpack__(stream=1)
    with pytest.raises(InterchangeError, match=r"read-only"):
        ta.asarray(b"ab").__dlpack__()
    with pytest.raises(InterchangeError, match=r"from_dlpack: expected an object with __dlpack__"):
        ta.from_dlpack([1])


TORCH = [
    "bool",
    "int8",
    "uint8",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
]


@pytest.mark.parametrize("name", TORCH)
def test_torch_and_tilearray_share_memory(name):
    torch = pytest.importorskip("torch")
    x = ta.asarray(sample(name))
    for view in (x, x.T, x[1:, ::2], ta.broadcast_to(x[0], (2, 3)), x[0, 1], x[:0]):
        tensor = torch.from_dlpack(view)
        assert tensor.dtype == getattr(torch, name)
        assert (tuple(tensor.shape), tensor.tolist()) == (view.shape, view.tolist())
        assert not view.size or tensor.data_ptr() == view._address
        back = ta.from_dlpack(tensor)
        assert (back.dtype, back.shape, back.tolist()) == (view.dtype, view.shape, view.tolist())
        assert not view.size or back._address == view._address
    torch.from_dlpack(x)[0, 0] = 1
    assert x[0, 0].item() == 1
    y = ta.asarray(torch.zeros(3, dtype=getattr(torch, name)))
    y[1] = True
    assert y.tolist() == [0, 1, 0]


def test_torch_is_not_given_negative_strides():
    torch = pytest.importorskip("torch")
    with pytest.raises(BufferError, match=r"torch ends the process at negative strides.*; write x.copy\(\)"):
        torch.from_dlpack(ta.arange(3)[::-1])
    assert torch.from_dlpack(ta.arange(3)[::-1].copy()).tolist() == [2, 1, 0]


# --- astype and devices -------------------------------


@given(views())
def test_astype_keeps_shape_values_and_axis_order(both):
    mine, theirs = both
    found = mine.astype("float64")
    assert found.dtype == ta.float64
    assert found.tolist() == theirs.tolist()
    assert mine.astype("int16", copy=False) is mine
    assert mine.astype("int16")._buffer is not mine._buffer
    assert ta.astype(mine, bool).tolist() == theirs.astype(bool).tolist()
    assert mine.astype("float32", device="cpu").device is mine.device


def test_astype_names_what_it_cannot_do():
    with pytest.raises(
        DTypeError, match=r"astype: float32 cannot hold complex64: .*; write x.real.astype\('float32'\)"
    ):
        ta.asarray([1j]).astype("float32")
    with pytest.raises(DTypeError, match=r"astype: 'float33' is not a dtype"):
        ta.zeros(1).astype("float33")
    assert ta.asarray([0j, 1j]).astype(bool).tolist() == [False, True]
