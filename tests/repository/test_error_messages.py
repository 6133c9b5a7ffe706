"""Bad input, in one place: what each mistake raises, and that its message names function, fact and remedy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import (
    BroadcastError,
    DeviceError,
    DTypeError,
    IndexingError,
    LayoutError,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    SemanticsError,
    ShapeError,
    TileArrayError,
    WriteError,
)


def octets(*values: int) -> ta.Array:
    return ta.asarray(values, dtype="int8")


Case = tuple[Callable[[], object], type[Exception], str]
SHAPES: list[Case] = [
    (lambda: ta.zeros((2, 3)) + ta.zeros((2, 4)), BroadcastError, r"add: expected equal sizes, or 1, along axis -1 "),
    (
        lambda: ta.zeros((2, 3)) + ta.zeros((2, 4)),
        BroadcastError,
        r"not be broadcast together .*\(2, 3\) \(2, 4\); write",
    ),
    (lambda: ta.zeros((5, 1, 3)) * ta.zeros((2, 4, 3)), BroadcastError, r"multiply: .*axis -3 .*got 5 and 2"),
    (lambda: ta.where(ta.ones(2, dtype="bool"), ta.zeros(3), 1), BroadcastError, r"where: .*axis -1 .*got 2 and 3"),
    (lambda: ta.sin(ta.zeros(3), out=ta.zeros(2)), BroadcastError, r"sin: .*axis -1 .*got 3 and 2"),
    (
        lambda: ta.sin(ta.zeros(3), out=ta.zeros(1)),
        BroadcastError,
        r"sin: .*shape \(3,\).*\(1,\) and could not be",
    ),
    (lambda: ta.broadcast_shapes((2,), (3,)), BroadcastError, r"broadcast_shapes: .*got 2 and 3"),
    (
        lambda: ta.zeros(3).reshape(2, 2),
        ShapeError,
        r"reshape: expected a shape of 3 elements, .*: cannot reshape .*; write",
    ),
    (lambda: ta.zeros(-1), ShapeError, r"zeros: expected sizes >= 0 in the shape, got \(-1,\): negative .*; write"),
    (lambda: bool(ta.zeros(2)), ShapeError, r"bool: expected an array of one element, got .*ambiguous; write ta.any"),
]
DTYPES: list[Case] = [
    (
        lambda: ta.zeros(1, dtype="uint64") + octets(1),
        PromotionError,
        r"add: int8 and uint64 have no common dtype: .*write",
    ),
    (
        lambda: ta.promote_types("uint64", "int8"),
        PromotionError,
        r"promote_types: int8 and uint64 have no common dtype",
    ),
    (
        lambda: ta.zeros(1, dtype="float8_e3m4") + 1.0,
        DTypeError,
        r"add: float8_e3m4 is a storage dtype, .*write x.astype",
    ),
    (
        lambda: ta.zeros(1, dtype="float8_e3m4") + ta.zeros(1),
        PromotionError,
        r"add: .*float8_e3m4.* no common dtype.*write x.astype",
    ),
    (lambda: ta.ones(1, dtype="bool") - True, DTypeError, r"subtract: expected dtypes of kind .*got bool; write"),
    (lambda: ta.zeros(1) & 1, DTypeError, r"bitwise_and: expected dtypes of kind .*got float32; write"),
    (lambda: ta.asarray([1j]) < 1, DTypeError, r"less: expected dtypes of kind .*got complex64; write x.real, x.imag"),
    (lambda: ta.zeros(1, dtype="float33"), DTypeError, r"zeros: 'float33' is not a dtype; write one of bool, int8"),
    (lambda: ta.zeros(1, dtype="complex32"), DTypeError, r"zeros: dtype 'complex32' is not supported: .*write"),
    (lambda: ta.zeros(1, dtype=object), DTypeError, r"zeros: .*not supported: it holds Python objects; write"),
    (lambda: ta.zeros(1).__iadd__(1j), DTypeError, r"add: .*store the complex64 result, got float32"),
    (
        lambda: octets(1).__itruediv__(octets(1)),
        DTypeError,
        r"divide: expected .* store the float32 result, got int8; write .* see ta.semantics\('array-api', float=...\)$",
    ),
    (lambda: ta.asarray([1j]).astype(float), DTypeError, r"astype: float64 cannot hold complex64: .*write x.real"),
]
NUMBERS: list[Case] = [
    (
        lambda: octets(1) + 128,
        ScalarOverflowError,
        r"add: 128 does not fit int8 \(-128 to 127\); write x.astype\('int16'\)",
    ),
    (lambda: -129 * octets(1), ScalarOverflowError, r"multiply: -129 does not fit int8 \(-128 to 127\); write"),
    (lambda: ta.zeros(1, dtype="uint8") + -1, ScalarOverflowError, r"add: -1 does not fit uint8 \(0 to 255\); write"),
    (lambda: octets(1) + 2**70, ScalarOverflowError, r"add: 1180591620717411303424 does not fit int8"),
    (lambda: ta.clip(octets(1), 0, 300), ScalarOverflowError, r"clip: 300 does not fit int8"),
    (lambda: octets(1).__setitem__(0, 300), ScalarOverflowError, r"setitem: 300 does not fit int8"),
    (lambda: octets(1).__setitem__(0, 1.5), DTypeError, r"setitem: int8 cannot hold 1.5; write int\(value\)"),
    (lambda: ta.full(1, 300, dtype="int8"), ScalarOverflowError, r"full: 300 does not fit int8"),
    (lambda: ta.asarray([300], dtype="int8"), ScalarOverflowError, r"asarray: 300 does not fit int8"),
    (lambda: ta.arange(300, dtype="int8"), ScalarOverflowError, r"arange: 299 does not fit int8"),
    (
        lambda: ta.ones(1, dtype="bool") + 2**64,
        ScalarOverflowError,
        r"add: no integer dtype holds an integer beyond 64 bits",
    ),
    (
        lambda: octets(2) ** -1,
        ValueError,
        r"pow: Integers to negative integer powers are not allowed, got -1; write x.astype\('float32'\) \*\* -1",
    ),
]
WRITES: list[Case] = [
    (
        lambda: ta.broadcast_to(octets(1), 3).__iadd__(1),
        WriteError,
        r"add: the target has several elements in one place",
    ),
    (
        lambda: ta.sliding_window_view(octets(1, 2, 3), 2).__setitem__(..., 1),
        WriteError,
        r"setitem: the target has several",
    ),
    (lambda: ta.asarray(b"a").__iadd__(1), WriteError, r"add: the target is read-only; write to x.copy\(\) instead"),
    (lambda: ta.asarray(b"a").__setitem__(0, 1), WriteError, r"setitem: the target is read-only; write to x.copy"),
    (lambda: ta.add(1, 2, out=ta.asarray(b"a")), WriteError, r"add: the target is read-only"),
    (
        lambda: ta.add(1, 2, out=np.zeros(1)),
        OperandError,
        r"add: expected a tilearray Array as out, got numpy.ndarray; write",
    ),
]
PLACES: list[Case] = [
    (
        lambda: ta.zeros(3)[3],
        IndexingError,
        r"expected -3 <= index < 3 .*, got 3: index 3 is out of bounds .*; write",
    ),
    (lambda: ta.zeros((2, 3))[0, -4], IndexingError, r"for axis 1 of size 3, got -4"),
    (
        lambda: ta.zeros(3)[0, 0],
        IndexingError,
        r"at most 1 indices for shape \(3,\), got 2: too many indices .*; write",
    ),
    (lambda: ta.zeros((2, 3)).T.flat[[1, 6]], IndexingError, r"flat: index 6 is out of bounds .* with size 6; write"),
    (lambda: ta.zeros(0)[0], IndexingError, r"expected no index at all for axis 0 of size 0, got 0"),
    (
        lambda: octets(1, 2, 3)[1:].view("int16"),
        LayoutError,
        r"view: the data starts at an address that is 1 bytes past",
    ),
    (lambda: octets(1, 2, 3)[::2].view("int16"), LayoutError, r"view: .*the last axis must be dense"),
    (
        lambda: ta.asarray(np.frombuffer(bytes(9), "i4", 2, 1), copy=False),
        LayoutError,
        r"asarray: expected an address and strides that are multiples of the itemsize 4, .*write copy=None",
    ),
    (lambda: ta.as_strided(octets(1), 2, 1), LayoutError, r"as_strided: expected elements 0 to 0, got 0 to 1 .*write"),
    (lambda: ta.zeros(1, device="gpu"), DeviceError, r"zeros: 'gpu' is not a device; write 'cpu', 'cuda' or 'cuda:N'"),
    (lambda: ta.zeros(1).to_device("gpu"), DeviceError, r"to_device: 'gpu' is not a device; write"),
    (
        lambda: ta.semantics("numpi"),
        SemanticsError,
        r"semantics: unknown semantics 'numpi'; write 'array-api' or 'triton'",
    ),
    (lambda: ta.sin({1}), OperandError, r"sin: expected tilearray Arrays or numbers, got set as operand 1; write"),
    (lambda: ta.sin(None), OperandError, r"sin: expected tilearray Arrays or numbers, got NoneType"),
]
ALL = [*SHAPES, *DTYPES, *NUMBERS, *WRITES, *PLACES]


@pytest.mark.parametrize(("act", "error", "message"), ALL, ids=[message for *_, message in ALL])
def test_bad_input_is_named(act, error, message):
    with pytest.raises(error, match=message) as caught:
        act()
    text = str(caught.value)
    assert isinstance(caught.value, TileArrayError) or error is ValueError
    assert ": " in text, "names the function first"
    assert "write" in text, "says what to write instead"
    assert "/" not in text.replace(" / ", ""), "names no place on this machine"


@pytest.mark.parametrize(("act", "error", "message"), ALL, ids=[message for *_, message in ALL])
def test_bad_input_is_as_bad_the_second_time(act, error, message):
    """A failed call leaves nothing in the caches."""
    for _ in range(2):
        with pytest.raises(error, match=message):
            act()
    assert (octets(1) + 1).tolist() == [2]


def test_a_traceback_shows_one_error():
    with pytest.raises(BroadcastError) as caught:
        ta.zeros(3) + ta.zeros(4)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("value", [ta.zeros(3, dtype="int8"), ta.zeros(2)], ids=["shape", "dtype"])
def test_assignment_errors_name_the_assignment(value):
    with pytest.raises(TileArrayError, match=r"^setitem: "):
        octets(1, 2)[...] = value


def test_python_integers_alone_that_uint64_holds():
    assert ta.add(1, 2**63).item() == 2**63 + 1
    with pytest.raises(ScalarOverflowError, match=r"^add: -1 does not fit uint64"):
        ta.add(-1, 2**63)


def test_clip_takes_its_bounds_by_name():
    assert ta.clip(octets(1, 5, 9), min=2, max=6).tolist() == [2, 5, 6]
