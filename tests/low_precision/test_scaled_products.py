"""`scaled_matmul` on the host, and its errors; `tests/kernels/test_product_kernels.py` has the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.products import check_scaled

import tilearray as ta


def test_products_are_within_the_bound_of_a_sum():
    check_scaled("cpu", 3, 96, 70)


def test_numbers_are_scales_and_blocks_of_rows_share_one():
    x1 = ta.asarray([[1.0, 2.0]] * 4).astype("float8_e5m2")
    x2 = ta.asarray([[1.0], [4.0]]).astype("float8_e5m2")
    assert ta.scaled_matmul(x1, x2, 0.5, 2).tolist() == [[9.0]] * 4
    scales = ta.asarray([[1.0], [10.0]])
    assert ta.scaled_matmul(x1, x2, scales, 1.0).tolist() == [[9.0], [9.0], [90.0], [90.0]]
    out = ta.empty((4, 1), dtype="bfloat16")
    assert ta.scaled_matmul(x1, x2, 1.0, 1.0, dtype="bfloat16", out=out) is out
    assert out.tolist() == [[9.0]] * 4


def test_sums_of_int8_are_exact():
    x1 = ta.full((1, 3001), -127, dtype="int8")
    assert ta.scaled_matmul(x1, x1.T, 1.0, 1.0, dtype="float64").tolist() == [[float(np.float32(3001 * 127**2))]]


def test_empty_sums_are_zero():
    x1 = ta.zeros((2, 0), dtype="float8_e4m3fn")
    assert ta.scaled_matmul(x1, x1.T, 1.0, 1.0).tolist() == [[0.0, 0.0]] * 2


def test_no_rows_have_no_scales():
    none = ta.quantize(ta.zeros((0, 32)), "float8_e4m3fn", axis=-1)
    some = ta.quantize(ta.ones((32, 16)), "float8_e4m3fn", axis=0)
    assert none.scales.shape == (0, 1)
    assert ta.scaled_matmul(none.values, some.values, none.scales, some.scales).shape == (0, 16)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (
            ("float32", "float32"),
            {},
            ta.DTypeError,
            "expected values of float8_e4m3fn or float8_e5m2, or of int8 alone",
        ),
        (("int8", "float8_e5m2"), {}, ta.DTypeError, "got int8 and float8_e5m2; write ta.quantize"),
        (("int8", "int8"), {"dtype": "int32"}, ta.DTypeError, "for the result, got int32; write dtype='bfloat16'"),
        (
            ("int8", "int8"),
            {"scale1": ta.asarray([1.0, 2.0])},
            ta.ShapeError,
            r"got shape \(2,\); write scales\[:, None\]",
        ),
        (
            ("int8", "int8"),
            {"scale1": ta.asarray([[1], [2]])},
            ta.DTypeError,
            "expected scales of a float dtype, got int64",
        ),
    ],
)
def test_errors_say_what_to_write(arguments, options, error, text):
    x1, x2 = (ta.zeros((2, 2), dtype=name) for name in arguments)
    with pytest.raises(error, match=text):
        ta.scaled_matmul(x1, x2, **{"scale1": 1.0, "scale2": 1.0} | options)


def test_shapes_must_fit():
    x = ta.zeros((2, 3), dtype="int8")
    with pytest.raises(
        ta.ShapeError, match=r"expected shapes \(M, K\) and \(K, N\), got \(2, 3\) and \(2, 3\); write x2.mT"
    ):
        ta.scaled_matmul(x, x, 1.0, 1.0)


def test_it_has_no_derivative():
    x = ta.zeros((2, 2), dtype="int8")
    with pytest.raises(ta.GradientError, match=r"scaled_matmul has no derivative; write ta\.dequantize"):
        ta.vjp(lambda scale: ta.scaled_matmul(x, x, scale, 1.0), ta.asarray(1.0))
