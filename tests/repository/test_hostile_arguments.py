"""Arguments that no caller means: unhashable, deep, endless, huge, or of the wrong kind. Each is an error in our words.

An endless iterable or a product of giant integers would never return: such a test does not fail, it hangs.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilearray as ta
from tilearray.errors import (
    DeviceError,
    DTypeError,
    ExpressionError,
    InterchangeError,
    LayoutError,
    OperandError,
    ParameterError,
    SemanticsError,
    ShapeError,
    TileArrayError,
    shown,
)
from tilearray.promotion.scalars import classify

LINE = np.arange(3.0)


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


DEEP: Any = nested(5000)
CYCLIC: Any = [1]
CYCLIC.append(CYCLIC)
X = ta.asarray(LINE, device="cpu")
RULES = ta.get_semantics()

Case = tuple[Callable[[], object], type[Exception], str]
KINDS: list[Case] = [
    (lambda: ta.astype(LINE, "float32"), OperandError, r"astype: expected a tilearray Array, got numpy.ndarray; write"),
    (lambda: ta.astype(LINE, "float64", copy=False), OperandError, "astype: expected a tilearray Array"),
    (lambda: ta.to_device([1.0], "cpu"), OperandError, "to_device: expected a tilearray Array, got list; write"),
    (lambda: ta.explain_promotion("int8", "int8", op=[]), OperandError, r"explain_promotion: \[\] is not an element.*"),
    (lambda: ta.explain_promotion("int8", "int8", op=ta.sum), OperandError, "is not an elementwise op; write one of"),
    (lambda: ta.explain_promotion("int8", "int8", op=False), OperandError, "False is not an elementwise op; write"),
    (lambda: ta.semantics([]), SemanticsError, r"semantics: unknown semantics \[\]; write 'array-api' or"),
    (lambda: ta.set_semantics({}), SemanticsError, r"set_semantics: unknown semantics \{\}; write"),
    (
        lambda: ta.set_semantics(Mock(spec=ta.Semantics)),
        SemanticsError,
        "set_semantics: unknown semantics <Mock",
    ),
    (lambda: ta.set_transfer_guard(LINE), DeviceError, r"set_transfer_guard: expected a policy, got array.*; write"),
    (lambda: ta.set_index_check(LINE), DeviceError, r"set_index_check: expected a mode, got array.*; write"),
    (lambda: RULES.promote([]), OperandError, r"result_type: expected at least one dtype, got \[\]; write"),
    (lambda: RULES.promote("int8"), OperandError, "result_type: expected at least one dtype, got 'int8'; write"),
    (lambda: RULES.promote(["int8", "int9"]), DTypeError, "result_type: 'int9' is not a dtype; write"),
    (lambda: RULES.stores([], "int8"), DTypeError, r"stores: expected a dtype, got \[\] of type list; write"),
    (lambda: ta.reshape(X, 3, copy=LINE), OperandError, "reshape: expected True or False as copy, got array.*write"),
    (lambda: ta.expand(X), ShapeError, r"expand: .* at least 1 sizes for shape \(3,\), got \(\); write -1"),
    (lambda: ta.asarray(object()), OperandError, r"asarray: expected an array, .*; write .* or float\(x\)"),
    (lambda: ta.asarray([1j]) & 1, DTypeError, r"bitwise_and: .* got complex64; write x.real.astype\('int64'\)"),
    (lambda: ta.stack([ta.asarray(1), ta.asarray(2)], axis=1), ShapeError, "stack: .* write an axis in this range, or"),
]
DEVICES: list[Case] = [
    (lambda: ta.zeros(3, device=ta.Device("bogus", 0)), DeviceError, "zeros: 'bogus:0' is not a device; write 'cpu'"),
    (lambda: ta.zeros(3, device="bogus:0"), DeviceError, "zeros: 'bogus:0' is not a device; write 'cpu'"),
    (lambda: ta.zeros(3, device=ta.Device("cuda", -1)), DeviceError, "zeros: 'cuda:-1' is not a device; write 'cpu'"),
    (lambda: ta.zeros(3, device=Mock(spec=ta.Device)), DeviceError, "zeros: .*Mock.* is not a device; write 'cpu'"),
    (lambda: ta.zeros(3, device=DEEP), DeviceError, r"zeros: '\[\[.*\]\]' is not a device; write 'cpu'"),
]
FLAGS: list[Case] = [
    (lambda value=value, act=act: act(value), OperandError, rf"{name}: expected True or False as {flag}, got .*; write")
    for value in ([1], "yes", None, LINE, 2)
    for name, flag, act in (
        ("sum", "keepdims", lambda value: ta.sum(X, keepdims=value)),
        ("max", "keepdims", lambda value: ta.max(X, axis=0, keepdims=value)),
        ("std", "keepdims", lambda value: ta.std(X, axis=0, keepdims=value)),
        ("argmin", "keepdims", lambda value: ta.argmin(X, keepdims=value)),
        ("hypot.reduce", "keepdims", lambda value: ta.hypot.reduce(X, keepdims=value)),
        ("sort", "descending", lambda value: ta.sort(X, descending=value)),
        ("isin", "invert", lambda value: ta.isin(X, X, invert=value)),
        ("cumulative_sum", "include_initial", lambda value: ta.cumulative_sum(X, include_initial=value)),
        ("linspace", "endpoint", lambda value: ta.linspace(0, 1, 3, endpoint=value)),
        ("linalg.vector_norm", "keepdims", lambda value: ta.linalg.vector_norm(X, keepdims=value)),
    )
]
ENDLESS: list[Case] = [
    (lambda: ta.zeros(itertools.count(1)), ShapeError, "zeros: expected at most 64 sizes as shape, got more: .*write"),
    (lambda: ta.reshape(X, itertools.count(1)), ShapeError, "reshape: expected at most 64 sizes as shape, got more"),
    (lambda: ta.reshape(ta.zeros(0), range(100_000)), ShapeError, "reshape: expected at most 64 sizes as shape"),
    (lambda: ta.reshape(ta.zeros(0), tuple(range(100_000))), ShapeError, "reshape: expected at most 64 sizes as shape"),
    (lambda: ta.zeros(range(100_000)), ShapeError, "zeros: expected at most 64 sizes as shape, got more: .*write one"),
    (lambda: ta.broadcast_shapes(range(100_000)), ShapeError, "broadcast_shapes: expected at most 64 sizes as shape"),
    (lambda: ta.reshape(X, (10**4000,) * 60), ShapeError, "reshape: .* got .an integer of 13288 bits, .*; write"),
    (
        lambda: ta.sum(X, axis=itertools.repeat(0)),
        ShapeError,
        "sum: expected distinct axes, got repeat.0.*; write",
    ),
    (lambda: ta.concat(itertools.repeat(X)), OperandError, "concat: expected a list or tuple of .* got itertools"),
    (lambda: ta.lexsort(itertools.repeat(X)), OperandError, "lexsort: expected a list or tuple of .* write lexsort"),
    (lambda: ta.tile(X, itertools.repeat(1)), ShapeError, "tile: expected at most 64 repetitions as reps"),
    (lambda: ta.apply_over_axes(ta.sum, X, itertools.repeat(0)), ShapeError, "apply_over_axes: expected at most 64"),
    (lambda: X.__dlpack__(dl_device=itertools.repeat(1)), InterchangeError, "__dlpack__: expected dl_device=.*; write"),
]
SIZES: list[Case] = [
    *[
        (lambda make=make, shape=shape: make(shape), ShapeError, rf"{make.__name__}: expected .*; write")
        for make in (ta.empty, ta.zeros, ta.ones)
        for shape in (2**63, (1,) * 65, (2**63, 0), 2**62, (2**40, 2**40), (2**62, 4, 0))
    ],
    (
        lambda: ta.empty((2**40, 2**40), order="F"),
        ShapeError,
        r"empty: expected at most 2\*\*63 - 1 bytes, got .*write",
    ),
    (lambda: ta.linspace(0, 1, 10**30), ShapeError, r"linspace: expected at most 2\*\*63 - 1 bytes, got .*; write"),
    (lambda: ta.eye(10**18), ShapeError, r"eye: expected at most 2\*\*63 - 1 bytes, got .*; write"),
    (lambda: ta.arange(2**62), ShapeError, r"arange: expected at most 2\*\*63 - 1 bytes, got .*; write"),
    (lambda: ta.broadcast_to(X, (2**62, 3)), ShapeError, r"expected at most 2\*\*63 - 1 bytes, got .*; write"),
    (lambda: ta.repeat(X, 2**62), ShapeError, r"expected at most 2\*\*63 - 1 bytes, got .*: array is too big; write"),
    (
        lambda: ta.broadcast_to(X, (*(1,) * 65, 3)),
        ShapeError,
        "broadcast_to: expected at most 64 .*: maximum",
    ),
    (lambda: X[(None,) * 64], ShapeError, "indexing: expected at most 64 axes, got 65: .* found 65; write"),
    (lambda: ta.expand_dims(ta.zeros((1,) * 64), axis=0), ShapeError, "expand_dims: expected at most 64 axes, got 65"),
    (lambda: ta.stack([ta.zeros((1,) * 64)]), ShapeError, "expected at most 64 axes, got 65: .*; write"),
    (
        lambda: ta.tensordot(ta.zeros((1,) * 40), ta.zeros((1,) * 40), axes=0),
        ShapeError,
        "tensordot: .* axes, got 80",
    ),
    (lambda: ta.add.outer(ta.zeros((1,) * 40), ta.zeros((1,) * 40)), ShapeError, "expected at most 64 .*; write"),
    (
        lambda: ta.sliding_window_view(ta.zeros((1,) * 40), (1,) * 40),
        ShapeError,
        "sliding_window_view: expected at most 64 axes, got 80: .*; write",
    ),
]
LIAR: Any = Mock(spec=ta.Array)
LIARS: list[Case] = [
    (lambda: X + LIAR, OperandError, "add: expected tilearray Arrays or numbers, got .*Mock as operand 2; write"),
    (lambda: LIAR * X, OperandError, "multiply: expected tilearray Arrays or numbers, got .*Mock as operand 1; write"),
    (lambda: operator.iadd(X, LIAR), OperandError, "add: expected tilearray Arrays or numbers, got .*Mock"),
    (lambda: ta.add(X, X, out=LIAR), OperandError, "add: expected a tilearray Array as out, got .*Mock; write"),
    (lambda: ta.sum(LIAR), OperandError, "sum: expected a tilearray Array, got .*Mock; write ta.asarray"),
    (lambda: ta.sum(X, axis=LIAR), ShapeError, "sum: expected axis as an int .* got .*Mock.*; write"),
    (lambda: ta.astype(LIAR, "int8"), OperandError, "astype: expected a tilearray Array, got .*Mock; write"),
    (lambda: ta.asarray(LIAR), InterchangeError, "from_dlpack: .*Mock does not state its device: 'Mock' object is"),
    (lambda: ta.zeros(LIAR), ShapeError, "zeros: expected shape as an int or a tuple of ints, got .*Mock.*; write"),
    (lambda: ta.expand_dims(X, axis=LIAR), ShapeError, "expand_dims: expected axis as an int .*Mock.*; write"),
    (lambda: ta.full(3, Mock(spec=float)), OperandError, "full: expected a number or a 0-d array, got .*Mock"),
    (lambda: ta.full(3, LIAR), OperandError, "full: expected a number or a 0-d array, got .*Mock"),
    (lambda: ta.concat(LIAR), OperandError, "concat: expected a list or tuple of tilearray Arrays, got .*Mock; write"),
    (lambda: ta.hstack(LIAR), OperandError, "hstack: expected a list or tuple .* got .*Mock; write"),
    (lambda: ta.split(X, LIAR), ShapeError, "split: expected sections as an int, got .*Mock"),
    (lambda: ta.take(X, LIAR), OperandError, "indexing: expected integers or bools as indices, got .*Mock; write"),
    (lambda: ta.choose(X, LIAR), OperandError, "choose: expected a list or tuple of .* got .*Mock; write"),
    (lambda: ta.hanning(LIAR), OperandError, "hanning: expected a number, got .*Mock.*; write"),
    (lambda: ta.evaluate(LIAR), ExpressionError, "evaluate: expected an expression as text, got .*Mock; write"),
    (lambda: X.__setitem__(0, LIAR), InterchangeError, "from_dlpack: .*Mock does not state its device"),
]
FOUND: list[Case] = [
    (lambda: X.tofile(3.5), OperandError, "tofile: expected a path or an open file, got float; write open"),
    (lambda: ta.trim_zeros(X, ("f",)), OperandError, r"trim_zeros: expected trim of 'f' and 'b', got \('f',\); write"),
    (lambda: ta.unwrap(ta.asarray([1], dtype="uint8"), period=2**70), OperandError, "unwrap: Python int .*write"),
    (lambda: ta.cov(X, aweights=LINE * 0), OperandError, "cov: Weights sum to zero.*write"),
    (lambda: ta.vander(X, 2**62), ShapeError, r"vander: expected at most 2\*\*63 - 1 bytes, got .*; write"),
    (lambda: ta.piecewise(X, itertools.repeat(True), [abs]), TileArrayError, "piecewise: expected .*repeat.*; write"),
    (lambda: ta.piecewise(X, [], [abs]), ShapeError, "piecewise: expected a condition at least, got none; write"),
    (lambda: ta.piecewise(X, [X > 0], itertools.repeat(1)), OperandError, "piecewise: expected a list .*repeat; write"),
    (lambda: ta.piecewise(X, [X > 0], 3), OperandError, "piecewise: expected a list or tuple .*, got int; write"),
    (lambda: ta.gradient(X, axis=itertools.repeat(0)), ShapeError, "gradient: .*repeated axis"),
    (lambda: ta.median(X, axis=itertools.repeat(0)), ShapeError, "median: repeated axis"),
    (lambda: ta.split(X, 2**62), ShapeError, "split: expected at most .* parts, got 4611686018427387904; write"),
    (lambda: ta.fft.fftshift(X, axes=itertools.repeat(0)), ShapeError, "fftshift: expected distinct axes, .*; write"),
    (lambda: ta.fft.fftn(X, axes=itertools.repeat(0)), ShapeError, "fftn: expected distinct axes, .*; write"),
    (lambda: ta.linalg.tensorsolve(X, X, axes=itertools.repeat(0)), ShapeError, "tensorsolve: expected distinct axes"),
]
"""Faults that random calls of the interface have found."""
QUOTED: list[Case] = [
    (lambda: ta.zeros(DEEP), ShapeError, r"zeros: expected shape as an int .*, got \[\[\[\[\[\.\.\.\]\]\]\]\]; write"),
    (lambda: ta.sum(X, axis=DEEP), ShapeError, "sum: expected axis as an int .*; write"),
    (lambda: X.astype(DEEP), DTypeError, "astype: expected a dtype, got .* of type list; write"),
    (lambda: ta.add(X, X, rounding=DEEP), OperandError, "add: expected a rounding mode, .*; leave it out"),
    (lambda: ta.zeros(3, order=DEEP), LayoutError, "zeros: expected order as one of .*; write order='C'"),
    (lambda: ta.meshgrid(X, indexing=DEEP), ShapeError, "meshgrid: expected indexing as .*; write one"),
    (lambda: ta.searchsorted(X, X, side=DEEP), ShapeError, "searchsorted: expected side as .*; write one"),
    (lambda: ta.pad(X, DEEP), ShapeError, "pad: expected an int, a pair, .*; write"),
    (lambda: ta.einsum(DEEP, X), OperandError, "einsum: expected subscripts as a str, got"),
    (lambda: ta.einsum(object(), X), OperandError, "einsum: expected subscripts as a str, got .* of type obj"),
    (lambda: ta.einsum(X[0], ta.zeros(0)), OperandError, "einsum: expected subscripts as a str, got .* of type Array"),
    (lambda: ta.random.default_rng(0).spawn(2**62), ParameterError, "spawn: expected n_children <= 16777216, got 46"),
    (lambda: ta.random.default_rng(CYCLIC), OperandError, "expected seed as an int, a sequence of ints, .*; write an"),
    (lambda: ta.random.default_rng(DEEP), OperandError, "expected seed as an int, a sequence of ints, .*; write an"),
    (lambda: X.astype("float16", rounding="rs", seed=CYCLIC), OperandError, "astype: expected seed as an int, a seq"),
    (lambda: ta.fuse(lambda x, y: x * y)([1, "a"], X), OperandError, "multiply: expected numbers or arrays in nested"),
    (lambda: ta.jvp(ta.exp, itertools.repeat(X), (X,)), OperandError, "jvp: expected primals as a tuple or a list"),
    (lambda: ta.union1d([], None), OperandError, "union1d: expected an array, got None; write ta.asarray"),
    (lambda: ta.histogram2d(None, X), OperandError, "histogram2d: expected an array, got None; write"),
    (lambda: ta.histogramdd(X, itertools.repeat(1)), OperandError, "histogramdd: expected numbers of bins, or edges"),
    (lambda: ta.histogram2d(X, X, itertools.repeat(1)), OperandError, "histogram2d: expected numbers of bins, or ed"),
    (lambda: ta.frombuffer(memoryview(b"ab")[::-1]), InterchangeError, "frombuffer: .* not C-contiguous; write bytes"),
    (lambda: ta.frombuffer(3), OperandError, "frombuffer: a bytes-like object is required, not 'int'; write"),
    (lambda: ta.frombuffer(b"abc", "int16"), ShapeError, "frombuffer: buffer size must be a multiple of element size"),
    (lambda: ta.diag_indices(0, 2**62), ShapeError, "diag_indices: expected 0 to 64 axes as ndim, got 46116860184"),
    (lambda: ta.unique([0], equal_nan=slice(5)), OperandError, "unique: expected True or False as equal_nan, got s"),
    (lambda: ta.cov(X, ddof=np.inf), TileArrayError, "cov: "),
    (lambda: ta.einsum({}, X[:0]), OperandError, "einsum: expected subscripts as a str, got {} of type dict"),
    (lambda: ta.linalg.norm(X, ord=DEEP), ShapeError, "norm: expected ord as a number .*; write"),
    (lambda: ta.fft.fft(X, norm=DEEP), ShapeError, "fft: expected norm as .*; write"),
    (lambda: X.__dlpack__(stream=DEEP), InterchangeError, "__dlpack__: expected stream=None"),
    (lambda: X.__dlpack__(dl_device=DEEP), InterchangeError, r"__dlpack__: expected dl_device=.*; write"),
    (lambda: ta.set_transfer_guard(DEEP), DeviceError, "set_transfer_guard: expected a policy, .*; write"),
    (lambda: ta.semantics(DEEP), SemanticsError, "semantics: unknown semantics .*; write"),
]
ALL = [*KINDS, *LIARS, *FOUND, *DEVICES, *FLAGS, *ENDLESS, *SIZES, *QUOTED]


@pytest.mark.parametrize(("act", "error", "message"), ALL, ids=[f"{n}" for n in range(len(ALL))])
def test_a_hostile_argument_is_named(act, error, message):
    before = ta.get_semantics()
    with pytest.raises(error, match=message) as caught:
        act()
    assert isinstance(caught.value, TileArrayError)
    assert ta.get_semantics() is before
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("flag", [True, 1, np.True_, np.int8(1)])
def test_a_flag_may_be_a_number_as_in_numpy(flag):
    assert ta.sum(X, keepdims=flag).shape == np.sum(LINE, keepdims=bool(flag)).shape == (1,)


def test_a_device_of_ones_own_is_the_device():
    assert ta.zeros(3, device=ta.Device("cpu", 0)).device is ta.Device("cpu", 0) or ta.zeros(3).device == "cpu"
    with pytest.raises(ta.DeviceUnavailableError, match=r"zeros: cuda:7654: "):
        ta.zeros(3, device=ta.Device("cuda", 7654))
    with pytest.raises(ta.DeviceUnavailableError, match=r"zeros: cuda:7654: "):
        ta.zeros(3, device="cuda:7654")


@pytest.mark.parametrize("spec", [int, float, complex, bool])
def test_an_object_that_lies_about_its_class_is_no_number(spec):
    liar = Mock(spec=spec)
    assert isinstance(liar, spec)
    assert classify(liar) is None
    with pytest.raises(OperandError, match=r"asarray: expected an array, .* got Mock; write"):
        ta.asarray(liar)
    with pytest.raises(OperandError, match=r"multiply: expected tilearray Arrays or numbers, got .*Mock as operand 2"):
        ta.multiply(ta.zeros(3, dtype="int16"), liar)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 6, 10**12])
def test_diff_ends_when_nothing_is_left(dtype, count, n):
    host = np.ones((2, count), dtype)
    found, expected = ta.diff(ta.asarray(host, device="cpu"), n=n), np.diff(host, n=min(n, 20))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(ta.to_numpy(found), expected)


def test_promote_and_stores_take_names():
    assert RULES.promote(["int8", "uint8"]) == RULES.promote([ta.int8, ta.uint8]) == "int16"
    assert RULES.stores("int8", "float32")


@pytest.mark.parametrize("method", ["__add__", "__radd__", "__iadd__", "__neg__", "__eq__", "__matmul__"])
def test_methods_made_from_rows_have_names(method):
    found = vars(ta.Array)[method]
    assert (found.__name__, found.__qualname__, found.__code__.co_name) == (method, f"Array.{method}", method)


def test_a_third_operand_of_pow_is_pythons_error():
    with pytest.raises(TypeError, match=r"Array.__pow__\(\) takes 2 positional arguments but 3 were given"):
        pow(X, 2, 3)


def test_tile_takes_as_many_axes_as_numpy():
    shape, counts = (2, *(1,) * 62, 3), (1, 2, *(1,) * 61, 2)
    host = np.arange(6.0).reshape(shape)
    assert np.array_equal(ta.to_numpy(ta.tile(ta.asarray(host, device="cpu"), counts)), np.tile(host, counts))


VALUES = st.recursive(
    st.integers() | st.text() | st.binary() | st.floats() | st.none() | st.just(LINE) | st.integers().map(Exception),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner) | st.frozensets(st.text()),
)


@given(VALUES)
def test_text_of_an_argument_is_short(value):
    assert len(shown(value)) < 20_000
    assert len(shown([value] * 1000)) < 200_000


@pytest.mark.parametrize("value", [3, "x", (1, 2, 3), [1.5, None], {"a": 1}, 2**127, np.float32])
def test_short_arguments_are_shown_whole(value):
    assert shown(value) == repr(value)


def test_text_of_hostile_objects():
    class Raises:
        def __repr__(self) -> str:
            raise RuntimeError

    class list_:  # noqa: N801 - it has the name of Python's own
        pass

    list_.__name__ = "list"
    assert shown(DEEP) == "[[[[[...]]]]]"
    assert shown(10**10_000) == "an integer of 33220 bits"
    assert shown("x" * 10**6).startswith("'xxx")
    assert len(shown("x" * 10**6)) == 120
    assert shown(Raises()).startswith("<Raises instance at")
    assert "list_ object at" in shown(list_())


def test_a_giant_axis_is_walked_one_by_one():
    """NumPy's iterator makes all indices of an axis first."""
    assert list(itertools.islice(ta.ndindex(2**62, 2), 3)) == [(0, 0), (0, 1), (1, 0)]
    assert list(ta.ndindex(0, 2**62)) == []
    assert list(ta.ndindex(())) == [()]
