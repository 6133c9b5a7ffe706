"""Joining and rolling against NumPy: any views, all dtypes, both semantics, bit by bit."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawing import pool, shapes
from support.oracles.formats import ARITHMETIC, STORAGE, dtype_of
from support.oracles.rules import join
from support.pairs import Pair, assert_same, pairs

import tilearray as ta
from tilearray import dtypes
from tilearray.engine.devices import CPU
from tilearray.errors import DeviceError, DTypeError, OperandError, PromotionError, ShapeError
from tilearray.functions import joining

SEMANTICS = st.sampled_from(["array-api", "triton"])


# --- concat, stack -------------------------------


def in_common(pairs: list[Pair], semantics: str) -> list[np.ndarray] | None:
    """NumPy's arrays in the dtype of the written rules, if there is one. Casts have their own tests."""
    try:
        name = join({pair.mine.dtype.name for pair in pairs}, semantics)
    except PromotionError:
        return None
    with ta.semantics(semantics):  # which decide whether float8 saturates
        return [ta.to_numpy(ta.asarray(pair.theirs.copy()).astype(name)) for pair in pairs]


def check_joining(function: str, pairs: list[Pair], axis: int | None, semantics: str) -> None:
    mine, theirs = [pair.mine for pair in pairs], in_common(pairs, semantics)
    with ta.semantics(semantics):
        if theirs is None:
            with pytest.raises(PromotionError, match=rf"{function}: .* no common dtype"):
                getattr(ta, function)(mine, axis=axis)
            return
        found = [getattr(ta, function)(mine, axis=axis) for _ in range(2)]  # the second call is a known one
    for each in found:
        assert_same(each, getattr(np, function)(theirs, axis=axis), *mine)


@given(st.data(), SEMANTICS)
def test_concat_is_numpys(data, semantics):
    shape = data.draw(shapes().filter(bool))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        size = data.draw(st.integers(0, 4))
        parts.append(data.draw(pairs((*shape[:axis], size, *shape[len(shape) + axis + 1 if axis < 0 else axis + 1 :]))))
    check_joining("concat", parts, axis, semantics)


@given(st.lists(pairs(), min_size=1, max_size=4), SEMANTICS)
def test_concat_of_no_axis_joins_all_elements(parts, semantics):
    check_joining("concat", parts, None, semantics)


@given(st.data(), SEMANTICS)
def test_stack_is_numpys(data, semantics):
    shape = data.draw(shapes())
    parts = [data.draw(pairs(shape)) for _ in range(data.draw(st.integers(1, 4)))]
    check_joining("stack", parts, data.draw(st.integers(-len(shape) - 1, len(shape))), semantics)


@pytest.mark.parametrize("semantics", ["array-api", "triton"])
def test_every_two_dtypes_join_or_are_refused(semantics):
    for first, second in itertools.product([*ARITHMETIC, *STORAGE], repeat=2):
        two = [Pair(ta.asarray(x), x) for x in (pool(first)[:40], pool(second)[40:80])]
        check_joining("concat", two, 0, semantics)


def test_the_semantics_in_force_decide_the_dtype():
    arrays = ta.asarray([-1], dtype="int8"), ta.asarray([255], dtype="uint8")
    assert ta.concat(arrays).dtype == ta.int16
    with ta.semantics("triton"):
        found = ta.concat(arrays)
    assert found.dtype == ta.uint8
    assert found.tolist() == [255, 255]
    assert ta.stack([ta.asarray(2), ta.asarray([0.5], dtype="float16")[0]]).dtype == ta.float16


def test_any_sequence_of_arrays_is_joined():
    x = ta.arange(2)
    assert ta.concat((x, x)).tolist() == ta.concat(iter([x, x])).tolist() == [0, 1, 0, 1]
    assert ta.concat([x] * 100).shape == (200,)
    assert ta.stack([x[0], x[1]]).tolist() == [0, 1]
    assert ta.concat([x[0], x[1]], axis=None).tolist() == [0, 1]


# --- roll -------------------------------


STEPS = st.one_of(st.integers(-9, 9), st.sampled_from([2**70, -(2**63)]))


@given(pairs(), STEPS)
def test_roll_of_no_axis_rolls_all_elements(pair, step):
    wanted = np.roll(pair.theirs.ravel(), step % max(pair.theirs.size, 1)).reshape(pair.theirs.shape)
    assert_same(ta.roll(pair.mine, step), wanted, pair.mine)


@given(pairs().filter(lambda pair: pair.theirs.ndim), st.data())
def test_roll_is_numpys(pair, data):
    ndim = pair.theirs.ndim
    axes = data.draw(st.lists(st.integers(-ndim, ndim - 1), max_size=4).map(tuple))
    steps = data.draw(st.one_of(STEPS, st.tuples(*[STEPS] * len(axes))))
    wanted = pair.theirs
    for axis, step in zip(axes, steps if isinstance(steps, tuple) else [steps] * len(axes), strict=True):
        wanted = np.roll(wanted, step % max(wanted.shape[axis], 1), axis)
    assert_same(ta.roll(pair.mine, steps, axis=axes), wanted, pair.mine)
    if len(axes) == 1 and not isinstance(steps, tuple):
        assert_same(ta.roll(pair.mine, steps, axis=axes[0]), wanted, pair.mine)


# --- nothing but assignments, and on the arrays' own device -------------------------------


class Closed:
    """The host's backend, but nothing crosses its border, and it lacks what a GPU lacks."""

    on_host = False
    indexing = None

    def __getattr__(self, name: str) -> Any:
        return getattr(CPU.backend, name)

    def from_numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("data from the host")

    to_numpy = from_numpy


def test_nothing_leaves_the_device(elsewhere):
    device = elsewhere
    device.backend = Closed()  # type: ignore[assignment]
    x = ta.full((2, 3), 5, device=device)
    results = [
        *(ta.concat([x, x]), ta.concat([x, x], axis=None), ta.stack([x, x.T.T]), ta.repeat(x, 2), ta.tile(x, (2, 2))),
        *(ta.roll(x.T, 1), ta.roll(x, 1, axis=(0, 1)), ta.tril(x), ta.triu(x), ta.eye(3, device=device)),
        *ta.meshgrid(x[0], x[1]),
    ]
    for result in results:
        assert result.device is device
        view = CPU.backend.to_numpy(result._buffer, result._offset, result.shape, result.strides, result.dtype)
        assert set(view.ravel().tolist()) <= {5, 0, 1}
    for join_them in (ta.concat, ta.stack, lambda both: ta.meshgrid(both[0][0], both[1][0])):
        with pytest.raises(DeviceError, match=r"(concat|stack|meshgrid): .* cuda:7654321 and on cpu; move one with"):
            join_them([x, ta.zeros((2, 3), device="cpu")])


LAUNCHES = [
    (lambda x: ta.concat([x, x, x]), 3),
    (lambda x: ta.concat([x.T, x.T], axis=None), 2),
    (lambda x: ta.stack([x, x], axis=1), 2),
    (lambda x: ta.roll(x, 1), 2),
    (lambda x: ta.roll(x, 2, axis=0), 2),
    (lambda x: ta.roll(x, 1, axis=(0, 1)), 4),
    (lambda x: ta.roll(x, (1, 3), axis=(0, 1)), 2),  # three columns: the second axis stays
]


@pytest.mark.parametrize(("call", "count"), LAUNCHES)
def test_few_launches(call, count, monkeypatch, elsewhere):
    seen = []
    run = joining.store
    monkeypatch.setattr(joining, "store", lambda *given: seen.append(1) or run(*given))
    call(ta.zeros((4, 3), device=elsewhere))
    assert len(seen) == count


def test_one_array_is_the_sequence_of_its_rows():
    values = np.arange(24).reshape(2, 3, 4)
    x = ta.asarray(values)
    np.testing.assert_array_equal(ta.to_numpy(ta.concat(x)), np.concatenate(values))
    np.testing.assert_array_equal(ta.to_numpy(ta.stack(x, axis=1)), np.stack(values, axis=1))


# --- bad input -------------------------------

BAD = [
    (lambda x: ta.concat([]), ShapeError, r"concat: expected at least one array, got none; write ta.empty"),
    (lambda x: ta.stack(()), ShapeError, r"stack: expected at least one array"),
    (lambda x: ta.concat(3), OperandError, r"concat: expected a list or tuple .*, got int; write concat\(\[x, y\]\)"),
    (lambda x: ta.concat(x[0]), ShapeError, r"concat: .*got a 0-d array; write axis=None or stack"),
    (lambda x: ta.stack(3), OperandError, r"stack: expected a list or tuple of tilearray Arrays, got int"),
    (lambda x: ta.concat([x, "ab"]), OperandError, r"concat: .* got str; write float"),
    (
        lambda x: ta.stack([x, "a"]),
        OperandError,
        r"stack: expected a tilearray Array, got str; write float\(arrays\[1\]\)",
    ),
    (lambda x: ta.concat([x[0, 0]]), ShapeError, r"concat: .*got a 0-d array; write axis=None or stack"),
    (lambda x: ta.concat([x, x], axis=2), ShapeError, r"concat: expected -2 <= axis < 2, got axis 2"),
    (lambda x: ta.concat([x, x], axis=0.5), ShapeError, r"concat: expected axis as an int"),
    (lambda x: ta.stack([x, x], axis=3), ShapeError, r"stack: expected -3 <= axis < 3, got axis 3"),
    (lambda x: ta.stack([x, x], axis=None), ShapeError, r"stack: expected axis as an int"),
    (
        lambda x: ta.concat([x, x[:, 1:]]),
        ShapeError,
        r"concat: expected the sizes of \(2, 3\) along all axes but 0, got \(2, 2\) for array 1; "
        r"axis 1 has 3 and 2: slice it, or write axis=1 to join along it",
    ),
    (
        lambda x: ta.concat([x, x, x[1:]], axis=-1),
        ShapeError,
        r"concat: .* all axes but 1, got \(1, 3\) for array 2; axis 0 has 2 and 1",
    ),
    (lambda x: ta.concat([x, x[0]]), ShapeError, r"concat: .*got \(3,\) for array 1; write expand_dims or reshape"),
    (
        lambda x: ta.stack([x, x[:, :2]]),
        ShapeError,
        r"stack: expected arrays of one shape, got \(2, 3\) for array 0 and \(2, 2\) for array 1; write concat",
    ),
    (lambda x: ta.roll(x, 1.5), ShapeError, r"roll: expected shift as an int, got float; write int\(shift\)"),
    (lambda x: ta.roll(x, ta.arange(2), axis=0), ShapeError, r"roll: expected shift as an int, got .*Array"),
    (lambda x: ta.roll(x, (1, 2)), ShapeError, r"roll: expected one shift if axis is None, got \(1, 2\)"),
    (lambda x: ta.roll(x, (1, 2), axis=0), ShapeError, r"roll: .*a shift for each of the axes \(0,\), got \(1, 2\)"),
    (lambda x: ta.roll(x, (1,), axis=(0, 1)), ShapeError, r"roll: .* axes \(0, 1\), got \(1,\); write one shift"),
    (lambda x: ta.roll(x, 1, axis=(0, 2)), ShapeError, r"roll: expected -2 <= axis < 2, got axis 2"),
    (lambda x: ta.roll(x[0, 0], 1, axis=0), ShapeError, r"roll: expected no axis \(the array is 0-d\)"),
    (lambda x: ta.concat(x, x), OperandError, r"concat: expected one list of arrays, .*; write ta.concat\(\[x, y\]\)"),
    (lambda x: ta.stack(x, [[1]]), OperandError, r"stack: expected one list of arrays, .*; write ta.stack\(\[x, y\]\)"),
    (lambda x: ta.roll({1}, 2), OperandError, r"roll: expected a tilearray Array, got set"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message for *_, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(ta.zeros((2, 3)))


def test_the_oracle_has_all_dtypes():
    assert {dtype_of(name) for name in (*ARITHMETIC, *STORAGE)} == set(dtypes.ALL)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("name", ["concatenate", "stack", "hstack", "vstack"])
def test_casting_has_numpys_rules(name: str, casting: Any) -> None:
    parts = [np.array([1.75, -2.5]), np.array([3, 4], "int16")]
    mine = [ta.asarray(part, device="cpu") for part in parts]
    ours, theirs = getattr(ta, name), getattr(np, name)
    options = [{"dtype": target} for target in ("int8", "int16", "float32", "float64", "complex64")] + [{}]
    with ta.semantics("numpy"):
        for given in options:
            try:
                want = theirs(parts, casting=casting, **given)
            except TypeError:
                with pytest.raises(
                    DTypeError, match=r": expected a dtype that can store .*; write casting='unsafe', or x"
                ):
                    ours(mine, casting=casting, **given)
            else:
                found = ours(mine, casting=casting, **given)
                assert (found.dtype, found.tolist()) == (want.dtype, want.tolist())
    with pytest.raises(OperandError, match=r": expected casting as 'no', .* got 'some'; write casting='unsafe'"):
        ours(mine, casting="some")


def test_casting_decides_which_targets_a_concat_may_have() -> None:
    parts = [ta.asarray([1.75], device="cpu"), ta.asarray([-2.5], device="cpu")]
    for joining_of, out in (
        (ta.concat, ta.zeros(2, dtype="int8", device="cpu")),
        (ta.stack, ta.zeros((2, 1), dtype="int8")),
    ):
        with pytest.raises(DTypeError):
            joining_of(parts, out=out)
        with pytest.raises(DTypeError, match=r"store float32 by casting='safe', got int8"):
            joining_of(parts, out=out, casting="safe")
        assert joining_of(parts, out=out, casting="unsafe") is out
        assert ta.ravel(out).tolist() == [1, -2]
        with pytest.raises(OperandError, match=r"expected a tilearray Array as out, got int"):
            joining_of(parts, out=3, casting="unsafe")


def test_the_cached_common_dtype_is_that_of_the_semantics() -> None:
    parts = ta.ones(1, dtype="int8", device="cpu"), ta.ones(1, dtype="uint8", device="cpu")
    for _ in range(2):
        for semantics, want in (("array-api", "int16"), ("triton", "uint8"), ("numpy", "int16")):
            with ta.semantics(semantics):
                assert ta.concat(parts).dtype == want
                assert ta.stack(parts[::-1]).dtype == want
                assert ta.asarray([1, 2.5], device="cpu").dtype == ("float64" if semantics == "numpy" else "float32")
        with ta.semantics("cutile"), pytest.raises(ta.PromotionError, match="concat: "):
            ta.concat(parts)
