"""`Array` as a Python object: attributes, operators with everything on either side, conversions, copies, iteration."""

from __future__ import annotations

import copy
import decimal
import fractions
import math
import operator
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from support.views import views

import tilearray as ta
from tilearray.errors import (
    DTypeError,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    ShapeError,
    TileArrayError,
)


@given(views())
def test_attributes_are_numpys(both):
    mine, theirs = both
    assert (mine.shape, mine.ndim, mine.size) == (theirs.shape, theirs.ndim, theirs.size)
    assert (mine.dtype, mine.itemsize, mine.nbytes) == (theirs.dtype, theirs.itemsize, theirs.nbytes)
    assert mine.device == "cpu"
    assert all(type(value) is int for value in (*mine.shape, *mine.strides, mine.offset, mine.size))


def test_offset_counts_elements():
    x = ta.arange(12).reshape(3, 4)
    assert (x.offset, x[1, 2].offset, x[::-1].offset, x[1:].view("int32")[:, 3].offset) == (0, 6, 8, 11)


def test_nothing_can_be_set():
    x = ta.zeros(2)
    for name in ("size", "strides", "dtype", "foo", "T", "flags", "base"):
        with pytest.raises(AttributeError):
            setattr(x, name, (2,))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert weakref.ref(x)() is x


# --- operators -------------------------------

ARITHMETIC = ["add", "sub", "mul", "floordiv", "mod"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LEFT = np.array([[7, -7, 3], [2, 5, -1]])
RIGHT = np.array([2, 3, 5])
BINARY = [*ARITHMETIC, *BITS, "pow", *COMPARISONS]


def check(found: ta.Array, wanted: np.ndarray) -> None:
    assert isinstance(found, ta.Array)
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name):
    """Twice each: the second call finds the plan of the first."""
    act = getattr(operator, name)
    x, y = ta.asarray(LEFT), ta.asarray(RIGHT)
    for _ in range(2):
        check(act(x, y), act(LEFT, RIGHT))
        check(act(y, ta.abs(x)), act(RIGHT, np.abs(LEFT)))
        check(act(x, 2), act(LEFT, 2))
        check(act(2, ta.abs(x)), act(2, np.abs(LEFT)))
        check(act(x, np.int64(2)), act(LEFT, np.int64(2)))
        check(act(np.int64(2), ta.abs(x)), act(np.int64(2), np.abs(LEFT)))
        check(act(x[:0], y), act(LEFT[:0], RIGHT))
        check(act(x[0, 0], y[0]), np.asarray(act(LEFT[0, 0], RIGHT[0])))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_binary_operators_on_floats(name):
    act = getattr(operator, name)
    left, right = LEFT.astype("float32"), np.abs(RIGHT).astype("float32")
    x, y = ta.asarray(left), ta.asarray(right)
    check(act(y, y), act(right, right))
    check(act(abs(x), 2.5), act(abs(left), np.float32(2.5)))
    check(act(2.5, y), act(np.float32(2.5), right))
    check(act(np.float32(2.5), y), act(np.float32(2.5), right))
    check(act(np.float64(2.5), y), act(np.float64(2.5), right.astype("float64")))
    check(act(y, np.float64(2.5)), act(right.astype("float64"), 2.5))


@pytest.mark.parametrize(
    "name", ["iadd", "isub", "imul", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift", "ipow"]
)
def test_in_place_operators(name):
    act = getattr(operator, name)
    for other, mine in [(RIGHT, ta.asarray(RIGHT)), (2, 2), (np.int64(2), np.int64(2)), (True, True)]:
        source = np.abs(LEFT)
        x = ta.asarray(source.copy())
        kept, buffer = x, x._buffer
        x = act(x, mine)
        assert x is kept
        assert x._buffer is buffer
        check(x, act(source, other))


def test_in_place_division_of_floats():
    x = ta.asarray([1.0, 3.0])
    x /= 2
    assert x.tolist() == [0.5, 1.5]
    x /= ta.asarray([2, 4], dtype="int8")
    assert (x.tolist(), x.dtype) == ([0.25, 0.375], ta.float32)


@pytest.mark.parametrize("name", ["pos", "neg", "abs", "invert"])
def test_unary_operators(name):
    check(getattr(operator, name)(ta.asarray(LEFT)), getattr(operator, name)(LEFT))


@pytest.mark.parametrize("other", [2, np.int64(2), ta.asarray(2)], ids=repr)
def test_divmod(other):
    x = ta.asarray(LEFT)
    for found, wanted in zip(divmod(x, other), divmod(LEFT, 2), strict=True):
        check(found, wanted)
    for found, wanted in zip(divmod(other, ta.asarray(RIGHT)), divmod(2, RIGHT), strict=True):
        check(found, wanted)


def test_operators_on_bool():
    x, y = ta.asarray([True, True, False]), ta.asarray([True, False, False])
    assert (x + y).tolist() == (x | y).tolist() == [True, True, False]
    assert (x * y).tolist() == (x & y).tolist() == [True, False, False]
    assert (~x).tolist() == [False, False, True]
    assert (x / y).dtype == ta.float32
    assert (x + 1).dtype == ta.int32
    assert (x + 2**40).dtype == ta.int64
    for name in ("sub", "floordiv", "mod", "pow", "lshift", "rshift"):
        with pytest.raises(DTypeError, match=r"write x.astype\('int8'\) first"):
            getattr(operator, name)(x, y)
    with pytest.raises(DTypeError, match=r"negative: .*got bool"):
        operator.neg(x)


def test_comparisons_of_integers_are_exact():
    octets = ta.asarray([0, 255], dtype="uint8")
    assert (octets < 300).tolist() == [True, True]
    assert (octets == -1).tolist() == [False, False]
    assert (octets > -1).tolist() == [True, True]
    assert (octets < 10**30).tolist() == [True, True]
    big = ta.asarray([2**63], dtype="uint64")
    assert (big > ta.asarray([-1])).tolist() == [True]
    assert (big == ta.asarray([-(2**63)])).tolist() == [False]
    assert (ta.asarray([2**53 + 1]) == 2**53).tolist() == [False]


NOBODYS = [None, "a", object(), decimal.Decimal(1), fractions.Fraction(1, 2), {}, {1}, slice(None), b"a"]


@pytest.mark.parametrize("other", NOBODYS, ids=[type(other).__name__ for other in NOBODYS])
def test_foreign_objects_are_unequal_and_otherwise_refused_by_python(other):
    x = ta.asarray([1, 2])
    assert (x == other) is False
    assert (other == x) is False
    assert (x != other) is True
    assert other not in x
    for name in ("add", "sub", "lt", "truediv", "iadd", "and_"):
        with pytest.raises(
            TypeError, match=r"not supported between|unsupported operand|can only concatenate|must be str"
        ):
            getattr(operator, name)(x, other)


class Stranger:
    """Another library's array, which knows what to do."""

    def __radd__(self, other: object) -> str:
        return "radd"

    def __add__(self, other: object) -> str:
        return "add"

    def __eq__(self, other: object) -> bool:
        return True


def test_strangers_have_their_turn():
    x = ta.asarray([1])
    assert x + Stranger() == "radd"
    assert Stranger() + x == "add"
    assert (x == Stranger()) is True
    y = x
    y += Stranger()
    assert y == "radd"


def test_torch_tensors_beside_an_array_are_an_error_that_says_what_to_write():
    torch = pytest.importorskip("torch")
    x = ta.asarray([1.0, 2.0])
    for act in (lambda y: x + y, lambda y: y + x, lambda y: x == y, lambda y: y < x):
        with pytest.raises(OperandError, match=r"a tilearray Array and torch.Tensor; write ta.asarray\(y\)"):
            act(torch.ones(2))


def test_scalars_are_weak_numpy_scalars_strong():
    x = ta.asarray([1, 2], dtype="int8")
    assert (x + 1).dtype == ta.int8
    assert (x + 1.5).dtype == ta.float32
    assert (x + 1e300).dtype == ta.float64
    assert (x + 1j).dtype == ta.complex64
    assert (x + np.float64(1)).dtype == (np.float64(1) + x).dtype == ta.float64
    assert (x + np.int16(1)).dtype == (np.int16(1) + x).dtype == ta.int16
    assert (x + np.bool_(True)).dtype == ta.int8
    assert (ta.asarray([1.5], dtype="bfloat16") * 2.5).dtype == ta.bfloat16
    for act in (lambda: x + 128, lambda: 128 + x, lambda: x * -129, lambda: x + 2**70):
        with pytest.raises(ScalarOverflowError, match=r"does not fit int8 \(-128 to 127\)"):
            act()
    with pytest.raises(PromotionError, match=r"write x.astype\('int64'\) for the uint64 operand"):
        x + ta.asarray([1], dtype="uint64")


def test_semantics_reach_the_operators():
    """The same arrays under one semantics and the other, and plans of neither found by the other."""
    octets, counts = ta.asarray([200], dtype="uint8"), ta.asarray([-7], dtype="int8")
    for _ in range(2):
        with ta.semantics("triton"):
            assert (octets + counts).dtype == ta.uint8
            assert (counts // 2).tolist() == [-3]
            assert (counts % 2).tolist() == [-1]
            assert [part.tolist() for part in divmod(counts, 2)] == [[-3], [-1]]
            assert (2 // counts).tolist() == [0]
            assert ta.asarray([1]).dtype == ta.int32
            floats = counts.astype("float32")
            assert (floats // 2).tolist() == [-4]
            floor = ta.asarray([-7])
            floor //= 2
            assert floor.tolist() == [-3]
        assert (octets + counts).dtype == ta.int16
        assert (octets + counts).tolist() == [193]
        assert (counts // 2).tolist() == [-4]
        assert (counts % 2).tolist() == [1]
        assert [part.tolist() for part in divmod(counts, 2)] == [[-4], [1]]


# --- Python's protocols -------------------------------


def test_conversions_to_python_numbers():
    assert bool(ta.asarray(0.0)) is False
    assert bool(ta.asarray([[True]])) is True
    assert (int(ta.asarray(-2.7)), type(int(ta.asarray(3, dtype="uint8")))) == (-2, int)
    assert float(ta.asarray(1.5, dtype="bfloat16")) == 1.5
    assert complex(ta.asarray(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][ta.asarray(1)] == operator.index(ta.asarray(20))
    assert math.sqrt(ta.asarray(4.0)) == 2
    assert round(float(ta.asarray(2.6))) == 3
    for convert in (float, int):
        with pytest.raises(TypeError, match="complex"):
            convert(ta.asarray(1j))
    for convert in (bool, int, float, complex):
        for x in (ta.zeros(2), ta.zeros(0)):
            with pytest.raises(ShapeError, match=rf"{convert.__name__}: expected an array of one element, got shape"):
                convert(x)
    for x in (ta.asarray(1.0), ta.asarray(True), ta.asarray([1])):
        with pytest.raises(OperandError, match=r"index: expected a 0-d integer array"):
            operator.index(x)


def test_len_and_iteration():
    x = ta.arange(6).reshape(3, 2)
    assert len(x) == 3
    rows = list(x)
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    rows[1][...] = 9
    assert x.tolist() == [[0, 1], [9, 9], [4, 5]]
    first, second, third = x.T[0]
    assert [value.item() for value in (first, second, third)] == [0, 9, 4]
    assert list(ta.zeros((0, 3))) == []
    assert [row.shape for row in ta.zeros((2, 0))] == [(0,), (0,)]
    assert [row.tolist() for row in reversed(x)] == [[4, 5], [9, 9], [0, 1]]
    with pytest.raises(OperandError, match=r"len: a 0-d array has no length; write x.item\(\)"):
        len(ta.asarray(1))
    with pytest.raises(OperandError, match=r"iter: a 0-d array cannot be iterated over"):
        iter(ta.asarray(1))


def test_membership():
    x = ta.asarray([[1, 2], [3, 4]])
    assert 3 in x
    assert 5 not in x
    assert np.int8(4) in x
    assert ta.asarray([3, 9]) in x
    assert 1 not in ta.zeros((0, 2))
    assert 1 in ta.asarray(1)
    assert [1, 9] in x


@given(views())
def test_copies_are_dense_and_their_own(both):
    mine, theirs = both
    for made in (mine.copy(), copy.copy(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine)), +mine):
        assert made.tolist() == theirs.tolist()
        assert made.dtype == mine.dtype
        assert made.device is mine.device
        assert made._buffer is not mine._buffer
        assert not made._buffer.readonly
        assert ta.to_numpy(made).nbytes == made._buffer.nbytes
    if theirs.size and min(theirs.strides, default=0) >= 0:
        steps = zip(mine.shape, ta.to_numpy(mine.copy()).strides, np.positive(theirs).strides, strict=True)
        assert all(step == wanted for size, step, wanted in steps if size > 1)


def test_deepcopy_copies_a_shared_array_once():
    x = ta.arange(3)
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first is not x


def test_errors_are_tilearrays_and_pythons():
    with pytest.raises(TileArrayError):
        ta.zeros(2) + ta.zeros(3)
    with pytest.raises(ValueError, match="add"):
        ta.zeros(2) + ta.zeros(3)


def test_functions_count_their_operands():
    with pytest.raises(TypeError, match=r"add: expected 2 operands, got 1"):
        ta.add(ta.zeros(1))
    with pytest.raises(TypeError, match=r"add: expected 2 operands, got 4"):
        ta.add(1, 2, 3, 4)
    with pytest.raises(OperandError, match=r"add: .* Arrays or numbers, got str as operand 2; write float\(x2\)"):
        ta.add(ta.zeros(1), "a")
    with pytest.raises(OperandError, match=r"as operand 1; write ta.asarray\(x1\)"):
        ta.add({1}, ta.zeros(1))
