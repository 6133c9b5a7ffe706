"""NumPy's methods of arrays: the same calls on both, by position and by name, and writing to targets."""

from __future__ import annotations

import inspect
import io
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support.views import views

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, OperandError, ShapeError, WriteError

SOURCE = np.array([[[3, -1, 2, 0], [7, 7, -5, 1], [0, 4, 4, -2]], [[9, 8, -8, 6], [1, 1, 2, 2], [5, 0, 3, -9]]])

# The layouts on which each call runs.
LAYOUTS = {
    "C": lambda x: x,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "negative": lambda x: x[::-1, ::2, ::-1],
    "one axis": lambda x: x[1, :, 2],
}

# A call of a method; the same text runs on an ndarray and on an Array.
CALLS = """
x.sum(); x.sum(0); x.sum(axis=-1, keepdims=True); x.sum(-1, "float32"); x.sum(0, dtype="float64", initial=2)
x.prod(0); x.prod(axis=-1, dtype="float64"); x.sum((0,)); x.sum(where=x > 0); x.prod(-1, None, None, True, 2, x > 1)
x.max(); x.max(0); x.max(axis=-1, keepdims=True); x.max(-1, None, True); x.min(0); x.min(initial=-50)
x.max(0, None, False, 5)
x.all(); x.all(0); x.any(axis=-1, keepdims=True); x.any(-1); x.all(where=x > 0)
x.argmax(); x.argmax(-1); x.argmin(axis=0); x.argmin(0, keepdims=True); x.argmax(1 - x.ndim, keepdims=True)
x.cumsum(); x.cumsum(0); x.cumsum(axis=-1, dtype="float64"); x.cumprod(-1); x.cumprod(dtype="float64")
x.argsort(kind="stable"); x.argsort(0, "stable"); x.argsort(axis=None, stable=True)
x.ravel(); x.ravel("F"); x.ravel(order="A"); x.flatten(); x.flatten("F"); x.flatten(order="C")
x.conj(); x.conjugate(); x.take([0, 1]); x.take([0, -1], 0); x.take(indices=1, axis=-1); x.take([[1], [0]], axis=0)
x.take([9, -9], 0, None, "wrap"); x.take([99, 0], mode="clip")
x.repeat(2); x.repeat(3, 0); x.repeat(repeats=2, axis=-1); x.clip(0); x.clip(0, 3); x.clip(max=2); x.clip(-1, max=4)
x.round(); x.round(2); x.round(decimals=0); x.nonzero(); x.swapaxes(0, -1); x.swapaxes(-1, 0)
x.reshape(-1).searchsorted([2, 5]); x.reshape(-1).searchsorted(v=3, side="right")
x.flat[2]; x.flat[::2]; x.flat[[0, -1]]
x.tobytes(); x.tobytes("F"); x.tobytes(order="A"); bytes(x); x.itemsize; x.nbytes; x.flags.c_contiguous
x.flags["F_CONTIGUOUS"]; x.flags.fnc; x.flags.forc; x.flags.writeable; x.flags.aligned; len(x.flat)
x.mean(); x.mean(0); x.mean(axis=-1, keepdims=True); x.mean(0, "float64"); x.var(0); x.var(ddof=1)
x.var(-1, None, None, 1); x.std(); x.std(axis=0, ddof=1, keepdims=True); x.std(-1, "float64"); x.mean(where=x > 0)
"""
MATRIX_CALLS = """
x.diagonal(); x.diagonal(1); x.diagonal(-1, 1, 2); x.diagonal(offset=0, axis1=2, axis2=0); x.trace(); x.trace(1)
x.trace(0, 1, 2); x.trace(dtype="float64"); x[0].dot(x[1].T); x.dot(x[0, 0])
x[0, 0].dot(x[1, 0]); x.dot(3); x[0].dot(x.swapaxes(1, 2))
"""


def calls(text: str) -> list[str]:
    return [call.strip() for call in re.split(r"[;\n]", text) if call.strip()]


def assert_same(found: Any, wanted: Any, call: str) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(wanted), call
        for one, other in zip(found, wanted):
            assert_same(one, other, call)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert isinstance(found, ta.Array), call
        assert found.shape == wanted.shape, call
        assert found.dtype.kind == wanted.dtype.kind, call
        np.testing.assert_allclose(
            np.asarray(found), wanted, rtol=1e-6 if found.dtype == ta.float32 else 1e-12, err_msg=call
        )
    else:
        assert found == wanted, call


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_methods_are_numpys(layout: str, dtype: str) -> None:
    theirs = LAYOUTS[layout](SOURCE.astype(dtype))
    mine = LAYOUTS[layout](ta.asarray(SOURCE.astype(dtype)))
    for call in calls(CALLS + (MATRIX_CALLS if theirs.ndim == 3 and layout == "C" else "")):
        assert_same(eval(call, {"x": mine}), eval(call, {"x": theirs}), call)


def test_each_parameter_has_numpys_name_and_place() -> None:
    """The parameters of NumPy's methods as its documentation has them; NumPy's own methods have no signatures."""
    documented = {
        "sum": "axis dtype out keepdims initial where", "prod": "axis dtype out keepdims initial where",
        "mean": "axis dtype out keepdims where", "var": "axis dtype out ddof keepdims where",
        "std": "axis dtype out ddof keepdims where", "max": "axis out keepdims initial where",
        "min": "axis out keepdims initial where", "all": "axis out keepdims where", "any": "axis out keepdims where",
        "argmax": "axis out keepdims", "argmin": "axis out keepdims", "cumsum": "axis dtype out",
        "cumprod": "axis dtype out", "trace": "offset axis1 axis2 dtype out", "sort": "axis kind order stable",
        "argsort": "axis kind order stable", "nonzero": "", "searchsorted": "v side sorter",
        "take": "indices axis out mode", "repeat": "repeats axis", "clip": "min max out", "round": "decimals out",
        "conj": "", "conjugate": "", "fill": "value", "dot": "b out", "ravel": "order", "flatten": "order",
        "diagonal": "offset axis1 axis2", "swapaxes": "axis1 axis2", "tobytes": "order", "tofile": "fid sep format",
    }  # fmt: skip
    for name, wanted in documented.items():
        found = list(inspect.signature(getattr(ta.Array, name)).parameters)[1:]
        assert found[: len(wanted.split())] == wanted.split(), name
        assert set(found[len(wanted.split()) :]) <= {"correction", "descending", "mean", "order"}, name


TARGETS = """
x.sum(0, out={}); x.sum(0, None, {}); x.prod(0, None, {}); x.mean(0, None, {}); x.var(0, None, {}); x.std(0, out={})
x.max(0, {}); x.min(axis=0, out={}); x.dot(y, {}); x[0].clip(0, 1, {}); x[0].round(0, {}); x.take(1, 0, {})
x.sum(0, "float32", {}); x.argmax(0, {}); x.argmin(1, out={}); x.all(0, {}); x.any(1, {}); x.cumsum(1, None, {})
x.cumprod(0, out={}); x.trace(0, 0, 1, None, {})
"""


@pytest.mark.parametrize("call", calls(TARGETS))
def test_a_target_takes_the_result_and_keeps_its_dtype(call: str) -> None:
    """The target is every other element of a larger array."""
    theirs, vector = SOURCE[0].astype("float64"), np.arange(4.0)
    wanted = eval(call.format("None"), {"x": theirs, "y": vector})
    memory = np.zeros((*wanted.shape, 2), wanted.dtype)
    target = ta.asarray(memory, copy=False)[..., 0]
    found = eval(call.format("out"), {"x": ta.asarray(theirs), "y": ta.asarray(vector), "out": target})
    assert found is target
    assert target.dtype == wanted.dtype
    np.testing.assert_allclose(memory[..., 0], wanted, rtol=1e-6)
    assert not memory[..., 1].any()


def test_wrong_targets_are_errors() -> None:
    x = ta.asarray(SOURCE[0])
    with pytest.raises(ShapeError, match=r"sum: expected out of shape \(4,\), got \(3,\); write out=ta.empty"):
        x.sum(0, out=ta.zeros(3))
    with pytest.raises(DTypeError, match=r"mean: expected out of a dtype that can store float32, got int64"):
        x.mean(0, out=ta.zeros(4, dtype="int64"))
    with pytest.raises(WriteError, match=r"max: the target is read-only; write to x.copy\(\) instead"):
        x.max(out=ta.asarray(np.broadcast_to(np.int64(3), ())))
    overlapping = ta.asarray(SOURCE[0].copy())
    overlapping.sum(0, out=overlapping[1])
    assert overlapping[1].tolist() == SOURCE[0].sum(0).tolist()


def test_sort_is_in_place() -> None:
    for make in LAYOUTS.values():
        theirs, mine = SOURCE.copy(), ta.asarray(SOURCE.copy())
        for axis in (-1, 0):
            assert make(theirs).sort(axis) is make(mine).sort(axis=axis) is None
            assert mine.tolist() == theirs.tolist()
    x = ta.asarray([2, 3, 1])
    x.sort(descending=True)
    assert x.tolist() == [3, 2, 1]
    with pytest.raises(
        OperandError, match=r"sort: expected an axis to sort in place, got None; write ta.sort\(x, axis=None"
    ):
        x.sort(None)
    with pytest.raises(OperandError, match=r"argsort: order names fields of a structured dtype, got 'a'; leave it out"):
        x.argsort(order="a")
    with pytest.raises(WriteError, match="read-only"):
        ta.asarray(b"ba").sort()
    with pytest.raises(AxisError):
        x.sort(1)


def test_fill_writes_every_element() -> None:
    for make in LAYOUTS.values():
        theirs, mine = SOURCE.copy(), ta.asarray(SOURCE.copy())
        make(theirs).fill(7)
        assert make(mine).fill(7) is None
        assert mine.tolist() == theirs.tolist()
    with pytest.raises(WriteError, match="read-only"):
        ta.asarray(b"ba").fill(1)


def test_flatten_copies_and_ravel_does_not() -> None:
    x = ta.arange(6).reshape(2, 3)
    for order in "CFAK":
        assert not np.shares_memory(np.asarray(x.flatten(order)), np.asarray(x))
    assert np.shares_memory(np.asarray(x.ravel()), np.asarray(x))
    assert np.shares_memory(np.asarray(x.T.ravel("K")), np.asarray(x))
    assert x.T.ravel("K").tolist() == x.T.flatten("K").tolist() == np.arange(6).reshape(2, 3).T.ravel("K").tolist()


def test_narrow_floats_and_complex_numbers() -> None:
    values = [[1.5, -2.0], [0.25, 8.0]]
    for dtype in ("bfloat16", "float16", "float8_e4m3fn"):
        x = ta.asarray(values, dtype=dtype)
        assert x.sum(0).dtype == x.dtype
        assert x.max().item() == 8.0
        assert x.astype("float32").tobytes() == np.array(values, "float32").tobytes()
        assert (x.T.tobytes(), x.tobytes("F")) == (x.T.copy().tobytes(), x.T.tobytes())
        assert bytes(x.view("uint8")) == x.tobytes()
        x.sort()
        assert x.tolist() == np.sort(values).tolist()
    z = ta.asarray([1 + 2j, 3 - 4j])
    assert z.conj().tolist() == z.conjugate().tolist() == [1 - 2j, 3 + 4j]
    assert (z.dot(z).item(), z.var().dtype) == ((1 + 2j) ** 2 + (3 - 4j) ** 2, ta.float32)


def test_round_of_a_number_is_a_number() -> None:
    assert (round(ta.asarray(2.5)), type(round(ta.asarray(2.5)))) == (2, int)
    assert (round(ta.asarray(-7)), round(ta.asarray(3.5, dtype="bfloat16"))) == (-7, 4)
    found = round(ta.asarray([1.25, -0.5]), 1)
    assert found.tolist() == pytest.approx(np.round([1.25, -0.5], 1).tolist())
    assert round(ta.asarray([1.5, 2.5])).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        round(ta.asarray(1j))


def test_conversion_and_copies_take_numpys_parameters() -> None:
    theirs = SOURCE[0].astype("float64")
    x = ta.asarray(theirs)
    for found, wanted in (
        (x.astype("float32", "F"), theirs.astype("float32", "F")),
        (x.astype(int, "C", "unsafe", True, False), theirs.astype(int, "C", "unsafe", True, False)),
        (x.astype(dtype="float32", casting="same_kind"), theirs.astype(dtype="float32", casting="same_kind")),
        (x.copy("F"), theirs.copy("F")),
        (x.T.copy(order="C"), theirs.T.copy(order="C")),
        (x.reshape(4, 3, order="F"), theirs.reshape(4, 3, order="F")),
        (x.reshape((6, -1)), theirs.reshape((6, -1))),
    ):
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
        assert tuple(stride * found.itemsize for stride in found.strides) == wanted.strides
    assert x.astype("float64", copy=False) is x
    assert x.view() is not x
    assert np.shares_memory(np.asarray(x.view()), np.asarray(x))
    with pytest.raises(
        DTypeError, match="astype: casting='safe' does not allow float64 to bfloat16; leave casting out"
    ):
        x.astype("bfloat16", casting="safe")


# --- flat ------------------------------------------------------------------------------------------------------------


@given(views())
def test_flat_is_in_c_order(both) -> None:
    mine, theirs = both
    assert [int(element) for element in mine.flat] == theirs.flatten().tolist() == np.asarray(mine.flat).tolist()
    assert mine.flat[1::3].tolist() == theirs.flatten()[1::3].tolist()
    assert mine.flat[::-1].tolist() == mine.flat.copy().tolist()[::-1]
    if mine.size:
        assert mine.flat[-1].shape == ()
        assert mine.flat[-1].item() == theirs.flat[-1]
        assert mine.flat[ta.asarray([0, -1])].tolist() == theirs.flatten()[[0, -1]].tolist()
        assert next(mine.flat).item() == theirs.flat[0]


@pytest.mark.parametrize("key", [3, -1, slice(None, None, 5), [0, 4, -2], slice(2, 6)])
def test_flat_writes_to_the_array(key) -> None:
    for make in LAYOUTS.values():
        theirs, mine = np.resize(SOURCE, (2, 6, 8)).copy(), ta.asarray(np.resize(SOURCE, (2, 6, 8)).copy())
        make(theirs).flat[key] = 99
        make(mine).flat[key] = 99
        assert mine.tolist() == theirs.tolist()
    x = ta.zeros((2, 3)).T
    x.flat = ta.arange(6, dtype="float32")
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]
    x.flat = 8
    assert x.sum() == 48


# --- memory ----------------------------------------------------------------------------------------------------------


@given(views())
def test_bytes_flags_and_base_are_numpys(both) -> None:
    mine, theirs = both
    for order in ("C", "F", "A"):
        assert mine.tobytes(order) == theirs.tobytes(order)
    flags = ("c_contiguous", "f_contiguous", "forc", "fnc")
    assert [getattr(mine.flags, name) for name in flags] == [getattr(theirs.flags, name) for name in flags]
    assert mine.flags.writeable is np.asarray(mine).flags.writeable
    assert mine.flags.writeable or 0 in theirs.strides
    assert memoryview(mine.data).tolist() == theirs.tolist()
    assert mine.data.readonly is not mine.flags.writeable
    if mine.base is not None:
        assert np.shares_memory(np.asarray(mine), np.asarray(mine.base)) or not mine.size


def test_flags_are_read_only() -> None:
    x = ta.zeros((2, 3))
    assert repr(x.flags) == "\n".join(repr(np.zeros((2, 3)).flags).splitlines()[:5])
    assert x.flags == ta.ones((2, 3)).flags != x.T.flags
    assert (x.flags.owndata, x[1:].flags.owndata, x.flags["W"]) == (True, False, True)
    with pytest.raises(AttributeError, match=r"flags: owndata is read-only; write x.copy\(\)"):
        x.flags.owndata = False
    with pytest.raises(KeyError, match=r"flags: expected one of C_CONTIGUOUS, .*, got 'Q'"):
        x.flags["Q"]
    assert not ta.asarray(b"ab").flags.writeable


def test_an_array_can_be_protected_from_writing() -> None:
    x = ta.asarray(np.arange(6).reshape(2, 3))
    before, exported = x[0], np.from_dlpack(x)
    for protect in (lambda: setattr(x.flags, "writeable", False), lambda: x.setflags(write=False)):
        x.flags["WRITEABLE"] = True
        protect()
        assert [x.flags.writeable, x[0].flags.writeable, np.asarray(x).flags.writeable] == [False] * 3
        for act in (
            lambda: x.fill(0),
            lambda: x.__setitem__(0, 1),
            lambda: x.__iadd__(1),
            lambda: ta.add(x, x, out=x.T.T),
        ):
            with pytest.raises(WriteError, match="read-only"):
                act()
        with pytest.raises(BufferError):
            x.__buffer__(1)
    before[0] = 7  # a view that was made before keeps its access
    assert (x[0, 0].item(), exported[0, 0]) == (7, 7)
    x.flags.writeable = True
    x[1] = 8
    assert x.tolist() == [[7, 1, 2], [8, 8, 8]]
    assert before.flags.writeable
    for fixed, message in ((ta.asarray(b"ab"), "cannot be written to"), (ta.broadcast_to(x[0], (2, 3)), "one place")):
        with pytest.raises(WriteError, match=rf"flags: .*{message}; write x.copy\(\)"):
            fixed.flags.writeable = True


def test_parts_of_complex_numbers_can_be_assigned() -> None:
    theirs, mine = np.array([1 + 2j, 3 - 4j]), ta.asarray(np.array([1 + 2j, 3 - 4j]))
    for both in (theirs, mine):
        both.real = 5
        both.imag = both.real * 2
    assert mine.tolist() == theirs.tolist() == [5 + 10j] * 2
    x = ta.zeros(2)
    x.real = ta.asarray([1.0, 2.0])
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(DTypeError, match=r"imag: expected a complex array, got float32; write x.astype\('complex64'\)"):
        x.imag = 1
    assert x[1:].ctypes.data - x.ctypes.data == 4


def test_tofile_writes_bytes_or_text(tmp_path) -> None:
    source = SOURCE[0].astype("float32")
    x = ta.asarray(source)
    x.T.tofile(tmp_path / "bytes")
    assert (tmp_path / "bytes").read_bytes() == source.T.tobytes()
    x.tofile(str(tmp_path / "text"), " ", "%.1f")
    assert (tmp_path / "text").read_text().split()[:2] == ["3.0", "-1.0"]
    with open(tmp_path / "open", "wb") as file:
        x.tofile(file)
    assert io.BytesIO((tmp_path / "open").read_bytes()).getvalue() == source.tobytes()


def test_a_shape_can_be_assigned() -> None:
    x = ta.arange(6)
    same = x[:]
    x.shape = (2, -1)
    assert (x.shape, x.strides, x.tolist(), same.shape) == ((2, 3), (3, 1), [[0, 1, 2], [3, 4, 5]], (6,))
    x += 1
    assert same.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.from_dlpack(x).shape == (2, 3)
    x.shape = 6
    assert np.from_dlpack(x).shape == (6,)
    with pytest.raises(ShapeError, match="expected a shape of 6 elements"):
        x.shape = 4
    y = x.reshape(2, 3).T
    with pytest.raises(AttributeError, match=r"shape: strides \(1, 3\) of shape \(3, 2\) .*; write x = x.reshape\(6\)"):
        y.shape = 6
    assert y.shape == (3, 2)


def test_a_bool_is_a_mask_of_no_axes() -> None:
    for key in (True, False, np.True_, (True, 1), (1, True), (slice(None), False), (True, [0, 1]), (None, True, 0)):
        found, wanted = ta.asarray(SOURCE)[key], SOURCE[key]
        assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
        assert not np.shares_memory(np.asarray(found), SOURCE)
    x = ta.arange(3)
    x[False] = 5
    assert x.tolist() == [0, 1, 2]
    x[True] = 5
    assert x.tolist() == [5, 5, 5]
