"""The host's written calls and expressions: the same as NumPy's over views, targets, numbers and blocks."""

from __future__ import annotations

import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
import tilearray_host.kernel
from tilearray_host.calls import number_of
from tilearray_host.casts import block_of, caster, to_new_memory
from tilearray_host.float_errors import QUIET, STRICT, get_state, quietly, set_state

DTYPES = ("bool", "int8", "uint64", "float16", "float32", "complex64", "bfloat16", "float8_e4m3fn")
VIEWS = (np.s_[:], np.s_[::2], np.s_[::-1], np.s_[3:3], np.s_[5], np.s_[..., ::-3])


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 3, shape).astype(np.float32)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_and_targets_on_views(dtype: str) -> None:
    """NumPy and ml_dtypes add, multiply and compare these small integers exactly."""
    for key, transposed in itertools.product(VIEWS, (False, True)):
        x, y = (drawn((6, 6), dtype, seed) for seed in (1, 2))
        a, b = ta.asarray(x.copy(), device="cpu"), ta.asarray(y.copy(), device="cpu")
        if transposed:
            a, x = a.T, x.T
        x, y, a, b = x[key], y[key], a[key], b[key]
        for op, same in ((ta.add, np.add), (ta.multiply, np.multiply), (ta.less_equal, np.less_equal)):
            if dtype == "complex64" and op is ta.less_equal:
                continue
            want = same(x, y)
            assert np.array_equal(np.asarray(op(a, b)), want)
            out = ta.zeros((*want.shape, 2), dtype=want.dtype, device="cpu")[..., 0]
            assert op(a, b, out=out) is out
            assert np.array_equal(np.asarray(out), want)


def test_results_are_writable_memory_of_their_own() -> None:
    for dtype in DTYPES:
        x = ta.zeros(3, dtype=dtype, device="cpu")
        result = x.copy()
        result[1] = 1
        assert (x.tolist(), result.tolist()) == ([0, 0, 0], [0, 1, 0])
        assert result._buffer.nbytes == 3 * x.itemsize
        assert not result._buffer.readonly
        assert np.asarray(result)[:1].base is not None
        assert ta.from_dlpack(result)[1] == 1 if dtype in {"float32", "int8"} else True


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_a_target_that_shares_memory_gets_what_numpy_gives(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target and its operand are views of one buffer, or of two over the same memory; bfloat16 runs in blocks."""
    monkeypatch.setattr(tilearray_host.kernel, "BLOCK", 2)
    keys = (np.s_[1:], np.s_[:-1], np.s_[-2::-1], np.s_[:8:2], np.s_[1:9:2])
    for twice, (left, right) in itertools.product((False, True), itertools.product(keys, repeat=2)):
        memory = np.arange(9.0).astype(getattr(ml_dtypes, dtype, dtype))
        want = memory.copy()
        if want[left].shape != want[right].shape:
            continue
        x = ta.asarray(memory, device="cpu")
        y = ta.asarray(memory, device="cpu") if twice else x
        for _ in range(3):  # the first call makes the plan
            want[left] += want[right].copy()
            target = x[left]
            assert ta.add(target, y[right], out=target) is target
            want[left] = want[right].copy()
            x[left] = y[right]
            assert np.array_equal(memory, want)
        ta.where(y[right] == 0, y[right], x[left], out=x[left])
        want[left] = np.where(want[right] == 0, want[right], want[left])
        assert np.array_equal(memory, want)


def test_a_read_only_target_is_refused_by_a_known_plan() -> None:
    x, frozen = ta.zeros(4, device="cpu"), np.zeros(4, np.float32)
    ta.add(x, 1.0, out=ta.zeros(4, device="cpu"))
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ta.WriteError, match="add: the target is read-only; write to"):
            ta.add(x, 1.0, out=ta.asarray(frozen, device="cpu"))


def test_numbers_become_the_dtype_of_their_operand() -> None:
    class Whole(int):
        pass

    def take(value: object) -> object:
        return value

    for number in (0.0, -0.0, 1e-40, 1e-300, 0.1, 1e39, -1e300, float("inf"), float("nan")):
        with np.errstate(all="ignore"):
            want = np.float64(number).astype(np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = number_of(take, np.dtype("float32"), True)(number)
        assert found.tobytes() == want.tobytes()
        assert found.shape == ()
    narrow = number_of(take, np.dtype("int8"), True)
    assert [narrow(value).item() for value in (-128, 127, True, Whole(5), 1, 1)] == [-128, 127, 1, 5, 1, 1]
    assert narrow(1) is narrow(1)
    precise = number_of(take, np.dtype("float32"), True)
    assert [precise(value).item() for value in (0.0, -0.0, 1, True, 2**24 + 1, 2**60 + 1)] == [0, 0, 1, 1, 2**24, 2**60]
    assert [np.signbit(precise(value)).item() for value in (0.0, -0.0, 0, -0.0)] == [False, True, False, True]
    with pytest.raises(OverflowError):
        narrow(128)
    x = ta.zeros(2, dtype="int8", device="cpu")
    for _ in range(2):
        with pytest.raises(ta.ScalarOverflowError, match="setitem: 128 does not fit int8"):
            x[:] = 128


def test_expressions_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Casts before and after the call, temporaries that are written twice, numbers, and positions of elements."""
    x = drawn((5, 7), "bfloat16", 3)
    want = ((x.astype(np.float32) * 2 + 1) ** 2).astype(x.dtype)
    for block in (1, 3, 7, 100):
        monkeypatch.setattr(tilearray_host.kernel, "BLOCK", block)
        a = ta.asarray(x, device="cpu")
        assert np.array_equal(np.asarray((a * 2 + 1) * (2 * a + 1)), want)
        assert np.array_equal(np.asarray(a.T * a.T), (x.T.astype(np.float32) ** 2).astype(x.dtype))
        assert ta.linspace(0, 8, 9, dtype="bfloat16", device="cpu").tolist() == list(range(9))
        assert ta.arange(-5, 30, 5, dtype="float16", device="cpu").tolist() == list(range(-5, 30, 5))


@pytest.mark.parametrize("target", ["int32", "int64"])
def test_casts_without_temporaries_are_not_cut(target: str) -> None:
    convert = caster(np.dtype(np.float32), np.dtype(target))
    assert block_of(to_new_memory(convert)) == block_of(convert)


@pytest.mark.parametrize("factor", [1.0, 1e6])
@pytest.mark.parametrize(("target", "low", "high"), [("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1)])
def test_casts_of_several_blocks(target: str, low: int, high: int, factor: float) -> None:
    """In range and beyond, to new memory and into a transposed view; the last block is shorter."""
    x = (np.random.default_rng(4).uniform(low, high, (7, 2**17 // 3)) * factor).astype(np.float32)
    assert x.size > block_of(caster(x.dtype, np.dtype(target)))
    want = np.clip(np.trunc(x.astype(np.float64)), low, high).astype(target)
    a = ta.asarray(x, device="cpu")
    assert np.array_equal(np.asarray(a.astype(target)), want)
    out = ta.zeros((x.shape[1], 14), dtype=target, device="cpu")
    with ta.semantics("numpy"):  # assigns floats to integers
        out[:, ::2] = a.T
    assert np.array_equal(np.asarray(out[:, ::2]), want.T)
    assert not np.asarray(out[:, 1::2]).any()


def test_the_callers_error_state_comes_back() -> None:
    before = get_state()
    with pytest.raises(TypeError):
        quietly(np.add, 1)
    assert get_state() is before
    try:
        set_state(STRICT)
        with pytest.raises(FloatingPointError):
            np.array([np.inf]) - np.inf
        set_state(QUIET)
        assert np.isnan(np.array([np.inf]) - np.inf)
    finally:
        set_state(before)
    with np.errstate(all="raise"):
        assert ta.divide(ta.ones(2, device="cpu"), 0.0).tolist() == [np.inf, np.inf]
        with pytest.raises(FloatingPointError):
            np.array([1.0]) / 0.0
