"""Rounding modes, flushing and NaN: every mode of every op and cast on the host, against exact arithmetic.

The operands are ties, what is just beside them, the ends of the range, denormals, cancellation and random bits; see
tests/support/hard_to_round.py. The GPU is held to the same in tests/gpu/test_gpu_rounding.py.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import hard_to_round as hard
from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of, limits_of
from support.rounding_cases import (
    CAST_COUNT,
    CAST_MODES,
    CHECKED,
    COMPUTED,
    COUNT,
    INTEGERS,
    MODES,
    NARROW,
    NARROW_COUNT,
    OPS,
    WIDE,
    arithmetic,
    cast,
    casts,
    selection,
    shown,
)

import tilearray as ta
import tilearray_host.kernel
from tilearray.commands.eval.grammar import read
from tilearray.ops.moves import convert
from tilearray.ops.options import Choice
from tilearray.ops.variants import derived, variant
from tilearray_host.casts import TABLED

# --- arithmetic -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", OPS)
def test_arithmetic(name: str, dtype: str, mode: str) -> None:
    assert arithmetic(name, dtype, mode, False, COUNT) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPS)
def test_flushed_arithmetic(name: str, mode: str) -> None:
    assert arithmetic(name, "float32", mode, True, COUNT) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", OPS)
def test_rounding_a_narrow_float_twice_in_a_mode_equals_rounding_once(name: str, dtype: str, mode: str) -> None:
    """To float32 and to the narrow dtype; but for ``fma`` to nearest, which the documentation names."""
    if (name, mode) == ("fma", "rn"):
        return
    assert arithmetic(name, dtype, mode, False, NARROW_COUNT) == []


def test_a_million_operations_are_checked() -> None:
    assert CHECKED + len(casts()) * len(CAST_MODES) * CAST_COUNT >= 2_000_000


@pytest.mark.parametrize("dtype", WIDE)
def test_the_operands_tell_one_mode_from_another(dtype: str) -> None:
    """Else the tests above would prove little. No root is negative: toward zero and down are the same."""
    for name in OPS:
        operands = [ta.asarray(x) for x in hard.operands(name, dtype, 4000)]
        results = {mode: ta.to_numpy(getattr(ta, name)(*operands, rounding=mode)) for mode in MODES}
        for first, second in combinations(MODES, 2):
            differing = exact.differences(results[first], results[second]).size
            assert differing > 200 or (name, first, second, differing) == ("sqrt", "rz", "rm", 0)


def test_signs_of_exact_zeros() -> None:
    """IEEE 754: a sum that cancels is +0, but -0 when rounded toward -infinity."""
    x = ta.asarray([1.5, -2.0, 0.0, -0.0])
    for mode in MODES:
        sign = -1.0 if mode == "rm" else 1.0
        for zeros in (ta.subtract(x, x, rounding=mode), ta.add(x, -x, rounding=mode), ta.fma(x, 1, -x, rounding=mode)):
            assert [math.copysign(1, zero) for zero in zeros.tolist()[:2]] == [sign] * 2
        assert [math.copysign(1, z) for z in ta.add(x, x, rounding=mode).tolist()[2:]] == [1.0, -1.0]


def test_overflow_ends_where_the_mode_points() -> None:
    largest = ta.finfo("float32").max
    x = ta.asarray([largest, -largest])
    ends = {"rn": (math.inf, -math.inf), "rz": (largest, -largest), "rm": (largest, -math.inf)}
    for mode, expected in {**ends, "rp": (math.inf, -largest)}.items():
        assert tuple(ta.multiply(x, 2, rounding=mode).tolist()) == expected
        assert tuple(ta.divide(x, 0, rounding=mode).tolist()) == (math.inf, -math.inf)  # exact


def test_the_processors_own_mode_is_left_alone() -> None:
    before = 1.0 / 3.0
    ta.divide(ta.asarray([1.0]), 3, rounding="rp")
    assert (1.0 / 3.0, float(np.float64(1) / 3)) == (before, before)


# --- denormals and NaN ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rsqrt", "exp2"])
def test_functions_flush_operands_and_results(name: str) -> None:
    x = np.array([1e-40, -1e-40, 0.0, -0.0, -130.0, -140.0, -149.0, -126.0, 4.0, np.nan, np.inf], np.float32)
    with np.errstate(all="ignore"):
        want = exact.flushed(ta.to_numpy(getattr(ta, name)(ta.asarray(exact.flushed(x)))))
    got = ta.to_numpy(getattr(ta, name)(ta.asarray(x), flush_to_zero=True))
    assert exact.differences(got, want).size == 0
    assert exact.differences(ta.to_numpy(getattr(ta, name)(ta.asarray(x))), want).size > 0


@pytest.mark.parametrize("dtype", COMPUTED)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nan_is_ignored_on_request(name: str, dtype: str) -> None:
    assert selection(name, dtype, 4000) == []


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nan_is_ignored_and_subnormals_are_flushed(name: str) -> None:
    assert selection(name, "float32", 4000, flush=True) == []
    x, y = ta.asarray([1e-40, ta.nan, -1e-40]), ta.asarray([-1.0, 1.0, -2e-40])
    expected = [-1.0, math.nan, -0.0] if name == "minimum" else [0.0, math.nan, -0.0]
    assert repr(getattr(ta, name)(x, y, flush_to_zero=True).tolist()) == repr(expected)


@pytest.mark.parametrize("size", [1, 3, 8, 17, 64])
@pytest.mark.parametrize(
    ("dtype", "bits"), [("float16", 0x7C01), ("float32", 0x7F800001), ("float64", 0x7FF << 52 | 1)]
)
def test_a_signalling_nan_is_a_nan(dtype: str, bits: int, size: int) -> None:
    """Whatever the loop that NumPy takes for the size: its fmin makes NaN of it in some."""
    nan = np.full(size, bits, f"u{np.dtype(dtype).itemsize}").view(dtype)
    for function in (ta.minimum, ta.maximum):
        for strided in (nan, np.repeat(nan, 2)[::-2]):
            assert function(ta.asarray(strided), 1.0, propagate_nan=False).tolist() == [1.0] * size
            assert function(1.0, ta.asarray(strided), propagate_nan=False).tolist() == [1.0] * size


def test_integers_and_bools_have_no_nan() -> None:
    for dtype in ("int8", "uint64", "bool"):
        x, y = ta.asarray([0, 1, 1], dtype=dtype), ta.asarray([1, 0, 1], dtype=dtype)
        for name in ("minimum", "maximum"):
            function = getattr(ta, name)
            assert function(x, y, propagate_nan=False).tolist() == function(x, y).tolist()


# --- casts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), casts())
def test_casts_in_every_mode(source: str, target: str) -> None:
    for mode in CAST_MODES:
        assert cast(source, target, mode, False, CAST_COUNT) == []


@pytest.mark.parametrize("target", [name for name in (*FORMATS, exact.SCALE) if dtype_of(name).itemsize == 1])
@pytest.mark.parametrize("source", WIDE)
def test_large_arrays_that_are_cast_by_tables(source: str, target: str) -> None:
    for mode, saturate in ((None, False), ("rn", True), ("rz", False), ("rp", False), ("ra", True)):
        assert cast(source, target, mode, saturate, TABLED + 1) == []


@pytest.mark.parametrize(("source", "target"), casts())
def test_casts_of_floats_that_saturate(source: str, target: str) -> None:
    for mode in (None, *CAST_MODES):
        assert cast(source, target, mode, True, 1000) == []


@pytest.mark.parametrize("source", [*INTEGERS, "bool"])
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_that_saturate(source: str, target: str) -> None:
    assert cast(source, target, None, True, 1000) == []
    if source != "bool":
        ends = [min(max(end, limits_of(target)[0]), limits_of(target)[1]) for end in limits_of(source)]
        x = ta.asarray(np.array(limits_of(source), source))
        assert x.astype(target, saturate=True).tolist() == ends


@pytest.mark.parametrize("target", INTEGERS)
def test_a_float_becomes_an_integer_toward_zero_in_every_mode(target: str) -> None:
    for options in ({"rounding": "rzi"}, {"saturate": True}, {"rounding": "RZI", "saturate": True}):
        x = hard.sources("float32", target, 1000)
        assert exact.differences(ta.to_numpy(ta.asarray(x).astype(target, **options)), exact.cast(x, target)).size == 0


@pytest.mark.parametrize("target", INTEGERS)
def test_a_float_becomes_an_integer_in_a_mode_of_floats(target: str) -> None:
    halves = np.arange(-1100, 1100) / 4
    for source in COMPUTED:
        x = np.concatenate([exact.cast(halves, source), hard.sources(source, target, 600)])
        for mode in CAST_MODES:
            got = ta.to_numpy(ta.asarray(x).astype(target, rounding=mode))
            assert shown(got, exact.cast(x, target, f"{mode}i"), x) == [], (source, mode)


def test_a_cast_to_the_same_dtype() -> None:
    x = ta.asarray([0.1])
    assert x.astype("float32", rounding="rz", copy=False) is x
    assert x.astype("float32", rounding="rz") is not x
    assert ta.asarray([7]).astype("int64", saturate=True, copy=False).tolist() == [7]


@pytest.mark.parametrize("dtype", [name for name in FORMATS if np.isinf(np.array(np.inf).astype(dtype_of(name)))])
def test_infinities_saturate_in_their_own_dtype(dtype: str) -> None:
    x = ta.asarray(np.array([np.inf, -np.inf, np.nan, 1.0, -0.0]).astype(dtype_of(dtype)))
    largest = float(ml_dtypes.finfo(dtype_of(dtype)).max)
    for found in (x.astype(dtype, saturate=True), x.astype(dtype, saturate=True, rounding="rz", copy=False)):
        assert found.dtype == x.dtype
        assert repr(found.astype("float64").tolist()) == repr([largest, -largest, math.nan, 1.0, -0.0])
    assert math.isinf(float(x.astype(dtype)[0]))


# --- layouts, targets, operands -------------------------------------------------------------------------------------


def test_layouts_blocks_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _ = hard.operands("fma", "float32", 4000)
    for block in (7, 65536):
        monkeypatch.setattr(tilearray_host.kernel, "BLOCK", block)
        matrix, other = x[:600].reshape(20, 30), y[:600].reshape(30, 20)
        want = exact.divide(matrix.T[::-1].ravel(), other.ravel(), "rm").reshape(30, 20)
        operands = ta.asarray(matrix).T[::-1], ta.asarray(other)
        out = ta.zeros((30, 40))[:, ::2]
        assert ta.divide(*operands, rounding="rm", out=out) is out
        for got in (out, ta.divide(*operands, rounding="rm")):
            assert exact.differences(ta.to_numpy(got).copy(), want).size == 0
        assert ta.divide(ta.zeros((0, 3)), 1, rounding="rp").shape == (0, 3)
        assert ta.sqrt(ta.asarray(2.0), rounding="rp").item() == np.nextafter(np.float32(np.sqrt(2)), 2)


def test_a_target_may_be_an_operand() -> None:
    x, y = hard.operands("multiply", "float64", 1000)
    target = ta.asarray(x.copy())
    ta.multiply(target, ta.asarray(y), rounding="rp", out=target)
    assert exact.differences(ta.to_numpy(target), exact.multiply(x, y, "rp")).size == 0


def test_modes_that_write_to_one_target_are_kept_apart() -> None:
    target, x = ta.zeros(2), ta.asarray([1.0, -1.0])
    wanted = {mode: exact.divide(ta.to_numpy(x), np.float32([3, 3]), mode).tolist() for mode in MODES}
    for mode in (*MODES, *reversed(MODES), None):
        ta.divide(x, ta.asarray([3.0, 3.0]), rounding=mode, out=target)
        assert target.tolist() == wanted[mode or "rn"]


def test_a_narrower_target_is_rounded_in_the_mode() -> None:
    x, y = hard.operands("multiply", "float32", 4000)
    out = ta.empty(4000, dtype="float16")
    ta.multiply(ta.asarray(x), ta.asarray(y), rounding="rm", out=out)
    want = exact.cast(exact.multiply(x, y, "rm"), "float16", "rm")
    assert exact.differences(ta.to_numpy(out), want).size == 0


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_semantics_decide_as_they_do_without(semantics: str) -> None:
    """The dtype of the result, for arrays, 0-d arrays and numbers; and what is an error stays one."""
    values: list[Any] = [ta.asarray([1.5], dtype=d) for d in ("float16", "bfloat16", "float32", "float64")]
    values += [ta.asarray([3], dtype="int32"), ta.asarray(0.1), 0.1, 3]
    with ta.semantics(semantics):
        for x in values[:4]:
            for y in values:
                for z in ((x, y), (y, x)):
                    assert _dtype(ta.divide, *z) == _dtype(lambda *o: ta.divide(*o, rounding="rm"), *z)


def _dtype(function: Any, *operands: Any) -> object:
    try:
        return function(*operands).dtype
    except ta.TileArrayError as error:
        return type(error)


def test_numbers_are_operands() -> None:
    """A Python number is rounded to the common dtype first, to nearest, as everywhere."""
    x = ta.asarray([1.0])
    assert ta.add(x, 2**-30, rounding="rp").item() == 1 + 2**-23
    assert ta.add(2**-30, x, rounding="rz").item() == 1
    assert ta.add(1.0, 2.0**-30, rounding="rp").item() == 1 + 2**-23
    assert ta.add(x, np.float64(2**-60), rounding="rp").dtype == ta.float64


def test_integers_that_give_a_float() -> None:
    """The result is a float, and it is that which is rounded."""
    third = {mode: ta.divide(ta.asarray([1]), 3, rounding=mode).item() for mode in MODES}
    assert third["rz"] == third["rm"] < 1 / 3 < third["rp"] == third["rn"]
    assert ta.sqrt(ta.asarray([2]), rounding="rz").item() < math.sqrt(2)


# --- variants of a row ----------------------------------------------------------------------------------------------


def test_modes_have_plans_and_kernels_of_their_own() -> None:
    x = ta.asarray([1.0, 3.0])
    rows = [variant(ta.divide, mode, flush) for mode in MODES for flush in (False, True)]
    assert len({*rows, ta.divide}) == 9
    assert variant(ta.divide, "rz") is variant(ta.divide, "RZ")
    for first in MODES:
        for second in MODES:
            want = [float(v) for v in exact.divide(np.float32([1, 3]), np.float32([3, 1]), second)]
            ta.divide(x, x[::-1], rounding=first)
            assert ta.divide(x, x[::-1], rounding=second).tolist() == want


def test_without_options_the_row_itself_is_returned() -> None:
    assert variant(ta.add) is variant(ta.add, None, False, True) is ta.add
    assert variant(ta.minimum, propagate_nan=True) is ta.minimum
    assert derived(convert, Choice()) is convert
    assert variant(ta.add, "rz").name == "add"


def test_signature_and_documentation_name_options_where_there_are_any() -> None:
    names = {
        ta.divide: ["x1", "x2", "out", "where", "dtype", "casting", "rounding", "flush_to_zero"],
        ta.minimum: ["x1", "x2", "out", "where", "dtype", "casting", "flush_to_zero", "propagate_nan"],
        ta.tanh: ["x", "out", "where", "dtype", "casting", "rounding"],
        ta.sin: ["x", "out", "where", "dtype", "casting"],
    }
    for op, wanted in names.items():
        assert list(op.__signature__.parameters) == wanted
    assert ta.tanh.__signature__.parameters["rounding"].annotation == "Literal['full', 'approx'] | None"
    for row in ta.ops.PUBLIC.values():
        named = [name for name in ("rounding", "flush_to_zero", "propagate_nan") if f"\n{name} : " in row.__doc__]
        assert named == list(row.options.names)
        for mode, bound in row.options.bounds.items():
            assert f"``{mode!r}``" in row.__doc__
            assert bound in row.__doc__


def test_an_expression_as_text_takes_them() -> None:
    """As ``tilearray eval`` reads it."""
    text = 'ta.astype(ta.divide(x, 3, rounding="rp", flush_to_zero=True), "float8_e5m2", rounding="rz", saturate=True)'
    x = ta.asarray([1.0, 1e9, -1e-40])
    expected = ta.divide(x, 3, rounding="rp", flush_to_zero=True).astype("float8_e5m2", rounding="rz", saturate=True)
    found = read(text, ["x"]).evaluate({"x": x}, lambda part, operands, compute: compute())
    assert repr(found.tolist()) == repr(expected.tolist()) == "[0.3125, 57344.0, -0.0]"
    in_capitals = read('divide(x, 3, rounding="RP")', ["x"]).evaluate(
        {"x": x}, lambda part, operands, compute: compute()
    )
    assert in_capitals.tolist() == ta.divide(x, 3, rounding="rp").tolist()
