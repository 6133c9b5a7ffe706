"""Creation: `asarray` of everything, fills, ranges. NumPy is the oracle for values, the written rules for dtypes."""

from __future__ import annotations

import array
import enum
import math

import numpy as np
import pytest
from hypothesis import given
from support.views import views

import tilearray as ta
from tilearray.errors import (
    DeviceError,
    DTypeError,
    InterchangeError,
    LayoutError,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    ShapeError,
)

bf16 = ta.bfloat16.type


class Flag(enum.IntEnum):
    UP = 3


class Metres(float):
    pass


# --- Python data -------------------------------

DATA = [
    # data, dtype under array-api, dtype under triton
    (True, "bool", "bool"),
    (5, "int64", "int32"),
    (2**31, "int64", "uint32"),
    (-(2**63), "int64", "int64"),
    (2**63, "uint64", "uint64"),
    (1.5, "float32", "float32"),
    (1e300, "float64", "float64"),
    (math.inf, "float32", "float32"),
    (1j, "complex64", "complex64"),
    (1e300 + 0j, "complex128", "complex128"),
    (Flag.UP, "int64", "int32"),
    ([], "float32", "float32"),
    ([[], []], "float32", "float32"),
    (range(0), "int64", "int32"),
    (range(2, 9, 3), "int64", "int32"),
    ([range(2), range(2)], "int64", "int32"),
    ([1, 2], "int64", "int32"),
    ((1, -1), "int64", "int32"),
    ([1, 2**31], "int64", "uint32"),
    ([-1, 2**31], "int64", "int64"),
    ([1, 2**63], "uint64", "uint64"),
    ([True, False], "bool", "bool"),
    ([True, 2], "int64", "int32"),
    ([1, 2.5], "float32", "float32"),
    ([1, True, 2.5], "float32", "float32"),
    ([1.5, math.nan, -math.inf], "float32", "float32"),
    ([1e300, 1], "float64", "float64"),
    ([1, 1j], "complex64", "complex64"),
    ([1.5, -1e300j], "complex128", "complex128"),
    ([[1, 2], (3, 4.0)], "float32", "float32"),
    ([[[1]], [[2]]], "int64", "int32"),
    ([Flag.UP, 1], "int64", "int32"),
]


@pytest.mark.parametrize(("data", "name", "triton"), DATA, ids=[str(data) for data, *_ in DATA])
def test_python_data_take_default_dtypes_or_wider_ones(data, name, triton):
    wanted = np.array(data, dtype=name)
    for rules, dtype in (("array-api", name), ("triton", triton)):
        with ta.semantics(rules):
            x = ta.asarray(data)
        assert x.dtype == dtype
        assert x.shape == wanted.shape
        assert repr(x.tolist()) == repr(wanted.tolist())  # nan and -0.0 included


TYPED = [
    ([np.int8(1), np.int8(2)], "int8"),
    ([np.int8(1), 2], "int8"),
    ([1, np.int8(2)], "int8"),
    ([1, 2.5, np.int8(2)], "float32"),
    ([np.bool_(True), 2**40], "int64"),
    ([1.0, np.float64(2)], "float64"),
    ([np.float16(1), 2.5], "float16"),
    ([np.int32(2), np.float32(1)], "float32"),
    ([np.uint8(200), np.int8(-1)], "int16"),
    ([np.array([1.5]), [2.5]], "float64"),
    ([[1.5], np.array([1], "int8")], "float32"),
    ([bf16(1), bf16(2.5)], "bfloat16"),
    ([bf16(1), np.float16(2.5)], "float32"),
    ([ta.asarray(1), 2], "int64"),
    ([ta.asarray(1, dtype="bfloat16"), ta.asarray(2.5, dtype="bfloat16")], "bfloat16"),
    ([ta.asarray([1, 2], dtype="int8"), (3, 4), np.array([5, 6], "int16")], "int16"),
    ([ta.asarray([[1, 2]]).T, [[3.5], [4.5]]], "float32"),
    ([memoryview(array.array("h", [1, 2])), array.array("b", [3, 4])], "int16"),
    ([Flag.UP, np.int8(2)], "int8"),
    ([[Metres(2.5), Flag.UP], np.array([1, 2], "float32")], "float32"),
]


@pytest.mark.parametrize(("data", "name"), TYPED, ids=[str(index) for index in range(len(TYPED))])
def test_typed_elements_promote_as_operands_do(data, name):
    x = ta.asarray(data)
    assert x.dtype == name
    assert x.tolist() == [ta.asarray(part).tolist() for part in data]


def test_lists_of_tensors_promote_as_operands_do():
    torch = pytest.importorskip("torch")
    x = ta.asarray([torch.tensor([1, 2], dtype=torch.int8), torch.tensor([1.5, 2], dtype=torch.float64)])
    assert (x.dtype, x.tolist()) == (ta.float64, [[1, 2], [1.5, 2]])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e5m2", "complex64"])
def test_integers_among_floats_are_rounded_once(name):
    """2**60 + 2**36 + 1 is above the middle of two float32; by way of float64 it would be on it, and go to even."""
    value = 2**60 + 2**36 + 1
    wanted = ta.asarray(value, dtype=name).item()
    if name == "float32":
        assert wanted == 2**60 + 2**37
    assert ta.asarray([0.5, value], dtype=name).tolist()[1] == wanted
    assert ta.asarray([value], dtype=name).tolist() == [wanted]
    assert ta.asarray([2**70], dtype=name).tolist() == [ta.asarray(2.0**70, dtype=name).item()]
    assert ta.asarray([2**2000, 0.5], dtype="float32").tolist() == [math.inf, 0.5]


def test_values_are_cast_to_the_dtype_that_is_asked_for():
    assert ta.asarray([1.7, -1.7, math.nan, 300.0], dtype="int8").tolist() == [1, -1, 0, 127]
    assert ta.asarray(1.7, dtype="int8").item() == 1
    assert ta.asarray([0, 0.5, 2], dtype=bool).tolist() == [False, True, True]
    assert ta.asarray([1.1], dtype="bfloat16").item() == 1.1015625
    assert ta.asarray([np.float64(0.1)], dtype="float32").item() == np.float32(0.1)
    assert ta.asarray([1], dtype=complex).dtype == ta.complex128


REFUSED = [
    ([300], "int8", ScalarOverflowError, r"asarray: 300 does not fit int8 \(-128 to 127\)"),
    (-1, "uint8", ScalarOverflowError, r"asarray: -1 does not fit uint8 \(0 to 255\)"),
    ([np.int8(1), 300], None, ScalarOverflowError, r"asarray: 300 does not fit int8"),
    ([np.int16(300)], "int8", ScalarOverflowError, r"asarray: 300 does not fit int8"),
    (
        [-1, 2**63],
        None,
        ScalarOverflowError,
        r"no integer dtype holds everything from -1 to 9223372036854775808; write",
    ),
    (2**64, None, ScalarOverflowError, r"asarray: no integer dtype holds 18446744073709551616; write dtype='float64'"),
    (
        [2**64],
        None,
        ScalarOverflowError,
        r"asarray: no integer dtype holds 18446744073709551616; write dtype='float64'",
    ),
    ([np.uint64(1), np.int8(1)], None, PromotionError, r"asarray: int8 and uint64 have no common dtype"),
    ([1j], "float32", DTypeError, r"asarray: complex numbers do not become float32; write their real parts"),
    (1j, "int8", DTypeError, r"asarray: complex numbers do not become int8"),
    ([[1, 2], [3]], None, ShapeError, r"asarray: nested lists must be rectangular"),
    ([1, [2]], None, ShapeError, r"asarray: nested lists must be rectangular"),
    ([np.ones(2), np.ones(3)], None, ShapeError, r"elements of shapes \(2,\) and \(3,\); write lists of equal length"),
    ([np.ones(2), 1], None, ShapeError, r"elements of shapes \(\) and \(2,\)"),
    ("12", None, OperandError, r"asarray: expected .* nested lists of numbers, got str; write ta.asarray\(list\(x\)\)"),
    (None, None, OperandError, r"got NoneType"),
    ({}, None, OperandError, r"got dict"),
    ({1}, None, OperandError, r"got set"),
    (object(), None, OperandError, r"got object"),
    (float, None, OperandError, r"got type"),
    ((value for value in [1]), None, OperandError, r"got generator"),
    (["1"], None, OperandError, r"expected numbers or arrays in nested lists, got str; write float\(x\) for it"),
    ([[1, None]], None, OperandError, r"in nested lists, got NoneType"),
    ([b"ab"], None, OperandError, r"in nested lists, got bytes"),
    ([np.str_("a")], None, DTypeError, r"holds text"),
    (np.array(["a"]), None, DTypeError, r"asarray: dtype 'str32' is not supported: it holds text"),
    (np.array([None]), None, DTypeError, r"holds Python objects"),
    (np.array([1], "M8[s]"), None, DTypeError, r"holds dates or durations"),
    ([np.longdouble(1)], None, DTypeError, r"asarray: dtype 'float128' is not supported"),
    ([np.zeros((), "i4,i4")], None, DTypeError, r"structured"),
    (np.arange(2, dtype=">i4"), None, DTypeError, r"int32 in foreign byte order; write x.astype\('int32'\)"),
    (np.ma.masked_array([1]), None, InterchangeError, r"masked"),
    (1, "float33", DTypeError, r"asarray: 'float33' is not a dtype; write one of bool, int8"),
    (1, "tf32", DTypeError, r"asarray: dtype 'tf32' is not supported"),
]


@pytest.mark.parametrize(("data", "dtype", "error", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_objects_that_are_not_arrays_are_named(data, dtype, error, message):
    with pytest.raises(error, match=message):
        ta.asarray(data, dtype=dtype)


def test_lists_nested_without_end_are_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ShapeError, match=r"nested up to 64 times"):
        ta.asarray(endless)


# --- memory that can be shared -------------------------------

BUFFERS = [
    (lambda: array.array("h", [1, 2, 3]), "int16"),
    (lambda: bytearray(b"\1\2\3"), "uint8"),
    (lambda: memoryview(bytearray(b"\1\2\3")), "uint8"),
    (lambda: np.array([1, 2, 3], "float32"), "float32"),
    (lambda: np.array([0, 3, 0, 2, 0, 1], "int64")[::-2], "int64"),
]


@pytest.mark.parametrize(("make", "name"), BUFFERS)
def test_host_memory_is_shared(make, name):
    source = make()
    for copied in (None, False):
        x = ta.asarray(source, copy=copied)
        assert (x.dtype, x.shape) == (name, (3,))
        assert x._address == np.asarray(source).ctypes.data
        x[0] = 7
        assert np.asarray(source)[0] == 7
    other = ta.asarray(source, copy=True)
    other[0] = 0
    assert np.asarray(source)[0] == 7


def test_bytes_are_read_only():
    assert ta.asarray(b"ab")._buffer.readonly
    assert not ta.asarray(b"ab", copy=True)._buffer.readonly


def test_an_array_is_itself_unless_something_is_asked_for():
    x = ta.arange(3)
    assert ta.asarray(x) is ta.asarray(x, copy=False) is ta.asarray(x, dtype="int64", device="cpu") is x
    copied = ta.asarray(x, copy=True)
    assert copied._buffer is not x._buffer
    assert ta.asarray(x, dtype="int8").dtype == ta.int8


REFUSED_COPIES = [
    (1, {}, r"asarray: copy=False, but Python numbers have no memory to share; write copy=None"),
    ([1], {}, r"Python numbers have no memory to share"),
    (np.float32(1), {}, r"a float32 does not share its memory with NumPy; write copy=None"),
    (np.ones(2), {"dtype": "int8"}, r"copy=False, but float64 on cpu becomes int8 on cpu; write copy=None"),
    (ta.ones(2), {"dtype": "int8"}, r"copy=False, but float32 on cpu becomes int8 on cpu; write copy=None"),
    (np.frombuffer(bytes(9), "i4", 2, 1), {}, r"multiples of the itemsize 4, .*; write copy=None, or x.copy\(\) first"),
]


@pytest.mark.parametrize(("data", "options", "message"), REFUSED_COPIES)
def test_copy_false_never_copies(data, options, message):
    with pytest.raises(LayoutError, match=message):
        ta.asarray(data, copy=False, **options)


def test_a_misaligned_array_is_copied_where_that_is_allowed():
    source = np.frombuffer(bytes(range(9)), "i4", 2, 1)
    x = ta.asarray(source)
    assert x.tolist() == source.tolist()
    assert x._address % 4 == 0


def test_tensors_are_shared():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool):
        tensor = torch.zeros((2, 3), dtype=dtype).T[1:]
        x = ta.asarray(tensor)
        assert (x.shape, x._address) == ((2, 2), tensor.data_ptr())
        assert ta.asarray(tensor, copy=True)._address != tensor.data_ptr()
    with pytest.raises(InterchangeError, match=r"requires grad, which would be lost; write x.detach\(\) first"):
        ta.asarray(torch.ones(2, requires_grad=True))
    assert ta.asarray(torch.ones(2, requires_grad=True).detach()).tolist() == [1, 1]


@pytest.mark.parametrize(
    "function", [ta.asarray, ta.zeros, ta.ones, ta.empty, ta.arange, lambda x, **kw: ta.full(x, 1, **kw)]
)
def test_a_device_is_named(function):
    assert function(3, device="cpu").device == "cpu"
    name = getattr(function, "__name__", "full").replace("<lambda>", "full")
    with pytest.raises(DeviceError, match=rf"{name}: 'gpu' is not a device; write 'cpu', 'cuda' or 'cuda:N'"):
        function(3, device="gpu")
    with pytest.raises(DTypeError, match=rf"{name}: 'float33' is not a dtype"):
        function(3, dtype="float33")


# --- fills -------------------------------


@pytest.mark.parametrize("shape", [(), 0, 3, (2, 3), [2, 3], (0, 3), (np.int8(2), 1)], ids=repr)
@pytest.mark.parametrize("dtype", [None, "int8", "bool", "bfloat16", "complex64", "float8_e4m3fn", "float4_e2m1fn"])
def test_fills(shape, dtype):
    for function, value in [
        (ta.zeros, 0),
        (ta.ones, 1),
        (lambda *a, **kw: ta.full(*a, 1.0 if dtype is None else 1, **kw), 1),
    ]:
        x = function(shape, dtype=dtype)
        wanted = np.full(shape, value, "float32")
        assert x.dtype == (dtype or "float32")
        assert x.shape == wanted.shape
        assert x.tolist() == wanted.tolist()
    assert ta.empty(shape, dtype=dtype).shape == wanted.shape


@pytest.mark.parametrize("shape", [-1, (2, -1), 1.5, (1, 2.0), True, "a", None, (2, None)], ids=repr)
@pytest.mark.parametrize("function", [ta.zeros, ta.ones, ta.empty])
def test_bad_shapes_are_named(function, shape):
    with pytest.raises(ShapeError, match=rf"{function.__name__}: expected (shape as an int|sizes >= 0)"):
        function(shape)


FILLS = [
    (7, "int64"),
    (2**63, "uint64"),
    (2.5, "float32"),
    (1e300, "float64"),
    (True, "bool"),
    (1j, "complex64"),
    (np.float64(2.5), "float64"),
    (np.array(3, "int8"), "int8"),
    (ta.asarray(2.5, dtype="bfloat16"), "bfloat16"),
]


@pytest.mark.parametrize(("value", "name"), FILLS, ids=repr)
def test_full_takes_numbers_and_0_d_arrays(value, name):
    x = ta.full((2, 2), value)
    assert x.dtype == name
    assert x.tolist() == [[value, value]] * 2
    assert ta.full_like(ta.zeros(1, dtype=name), value).item() == value


@pytest.mark.parametrize("value", ["a", None], ids=str)
def test_full_refuses_other_arguments(value):
    for call in (lambda: ta.full(2, value), lambda: ta.full_like(ta.zeros(2), value)):
        with pytest.raises(OperandError, match=r"full\w*: expected a number or a 0-d array, got"):
            call()


def test_full_checks_the_range():
    with pytest.raises(ScalarOverflowError, match=r"full: 300 does not fit int8"):
        ta.full(2, 300, dtype="int8")
    with pytest.raises(DTypeError, match=r"full: int8 cannot hold 2.5; write int\(value\)"):
        ta.full(2, 2.5, dtype="int8")
    with pytest.raises(ScalarOverflowError, match=r"full_like: -1 does not fit uint8"):
        ta.full_like(ta.zeros(1, dtype="uint8"), -1)


@given(views())
def test_likes_keep_the_axis_order(both):
    mine, theirs = both
    for made, wanted in [
        (ta.zeros_like(mine), 0),
        (ta.ones_like(mine), 1),
        (ta.full_like(mine, 5), 5),
        (ta.ones_like(mine, dtype="float16"), 1),
    ]:
        assert made.tolist() == np.full(theirs.shape, wanted).tolist()
        assert made.shape == mine.shape
        if theirs.size and min(theirs.strides, default=1) > 0:
            steps = zip(made.shape, made.strides, np.empty_like(theirs).strides, strict=True)
            assert all(step * theirs.itemsize == want for size, step, want in steps if size > 1)
    assert ta.empty_like(mine).dtype == mine.dtype
    with pytest.raises(OperandError, match=r"empty_like: expected a tilearray Array, got str"):
        ta.empty_like("ab")
