"""Sums of exponentials beside mpmath and SciPy: any layout, axes, infinities and NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import REAL_NAMES, axes_of, groups, pairs, python

import tilearray as ta
from tilearray.errors import AxisError, DTypeError

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed: the extra `test` has it")

FLOATS = st.sampled_from(["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])


def log_of_sum(values: list[float]) -> Any:
    """The exact logarithm of the sum of exponentials, for what is not NaN."""
    if not values:
        return mpmath.mpf("-inf")
    largest = max(values)
    if math.isinf(largest):
        return mpmath.mpf(largest)
    with mpmath.workdps(40):
        return mpmath.mpf(largest) + mpmath.log(
            mpmath.fsum([mpmath.exp(max(mpmath.mpf(v) - largest, -2000)) for v in values])
        )


def near(got: float, want: Any, name: str) -> bool:
    """Whether a result is within a few ulp of the number in its dtype, or of 1 in the dtype that computes."""
    if math.isinf(want):
        return got == want
    info = ta.finfo(name)
    computed = ta.finfo("float64" if name == "float64" else "float32")
    slack = 4 * max(info.eps * abs(want), computed.eps) + 2 * info.smallest_normal
    return bool(abs(got - want) <= slack) or (abs(want) >= info.max * (1 - info.eps) and not math.isfinite(got))


@given(pairs(FLOATS), st.data(), st.booleans())
def test_the_logarithm_of_sums_of_exponentials(pair, data, keepdims):
    axis = data.draw(axes_of(pair.theirs.ndim))
    found = ta.logsumexp(pair.mine, axis=axis, keepdims=keepdims)
    shape, lists = groups(pair.theirs, axis, keepdims)
    name = pair.mine.dtype.name
    assert (found.shape, found.dtype.name) == (shape, name)
    for got, values in zip(python(ta.to_numpy(found)).ravel(), lists, strict=True):
        if any(map(math.isnan, values)):
            assert math.isnan(got)
        elif name != "float8_e4m3fn" or values:  # it has no infinity
            assert near(got, log_of_sum(values), name), (got, values)


@given(pairs(FLOATS), st.data())
def test_shares_and_their_logarithms(pair, data):
    axis = data.draw(st.integers(-pair.theirs.ndim, pair.theirs.ndim - 1)) if pair.theirs.ndim else None
    shares, logarithms = (function(pair.mine, axis=axis) for function in (ta.softmax, ta.log_softmax))
    name = pair.mine.dtype.name
    assert shares.shape == logarithms.shape == pair.theirs.shape
    assert shares.dtype == logarithms.dtype == pair.mine.dtype
    rows = (np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) if axis is not None and x.size else x.reshape(1, -1)
            for x in map(python, (pair.theirs, ta.to_numpy(shares), ta.to_numpy(logarithms))))  # fmt: skip
    for values, share, logarithm in zip(*rows, strict=True):
        if all(map(math.isfinite, values)):
            total = log_of_sum(list(values))
            for value, got, log_got in zip(values, share, logarithm, strict=True):
                exact = mpmath.mpf(value) - total
                assert near(log_got, exact, name), (value, log_got, exact)
                assert near(got, mpmath.exp(max(exact, -2000)), name), (value, got)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's, of infinities
@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, -2.0], [math.inf, 0.0], [-math.inf, 0.0], [-math.inf, -math.inf], [math.inf, -math.inf],
        [math.inf, math.inf], [math.nan, 0.0], [math.nan, math.inf], [1e30, 1e30], [-3.4e38, -3.4e38], [-1000.0],
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_infinities_give_what_scipy_gives(values, name):
    special = pytest.importorskip("scipy.special")
    x = np.array(values, name)
    for function in ("softmax", "log_softmax", "logsumexp"):
        want = getattr(special, function)(x, axis=-1)
        found = ta.to_numpy(getattr(ta, function)(ta.asarray(x), axis=-1))
        np.testing.assert_allclose(found, want, rtol=3e-7 if name == "float32" else 1e-15, err_msg=function)


@given(pairs(REAL_NAMES), st.data())
def test_integers_become_the_float_of_their_true_division(pair, data):
    axis = data.draw(axes_of(pair.theirs.ndim))
    if pair.mine.dtype.kind in "biu":
        as_float = pair.mine.astype("float32")
        for function in (ta.softmax, ta.log_softmax, ta.logsumexp):
            found = function(pair.mine, axis=axis)
            assert found.dtype == ta.float32
            assert ta.array_equal(found, function(as_float, axis=axis), equal_nan=True)


def test_no_elements_and_no_axes():
    assert ta.logsumexp(ta.zeros((0,))).item() == -math.inf
    assert ta.logsumexp(ta.zeros((2, 0)), axis=1, keepdims=True).tolist() == [[-math.inf], [-math.inf]]
    assert ta.logsumexp(ta.zeros((2, 0)), axis=0).shape == (0,)
    assert ta.softmax(ta.zeros((2, 0))).shape == ta.log_softmax(ta.zeros((2, 0))).shape == (2, 0)
    assert ta.logsumexp(ta.asarray(3.0)).item() == 3
    assert ta.softmax(ta.asarray(3.0), axis=None).item() == 1
    assert ta.logsumexp(ta.asarray([1.0, 2.0]), axis=()).tolist() == [1, 2]


def test_many_narrow_elements_are_added_up_wide():
    x = ta.zeros(1 << 14, dtype="float16")
    assert ta.softmax(x)[0].item() == 2.0**-14
    assert ta.logsumexp(x).item() == float(np.float16(14 * math.log(2)))


ERRORS = [
    (lambda: ta.softmax(ta.asarray([1j])), DTypeError, r"softmax: expected .*got complex64"),
    (lambda: ta.logsumexp(ta.ones((2, 2)), axis=2), AxisError, r"logsumexp: expected -2 <= axis < 2, got axis 2"),
    (lambda: ta.log_softmax(ta.asarray(1.0)), AxisError, r"log_softmax: expected no axis"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
