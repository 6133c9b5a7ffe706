"""Signs of narrow floats on the host: only the sign bit of each value changes, also that of NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta

NAMES = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
LAYOUTS = {
    "whole": lambda x: x,
    "reversed": lambda x: x[::-1],
    "strided": lambda x: x[3::5],
    "transposed": lambda x: x.reshape((16, -1)).T,
    "one": lambda x: x[-1:],
    "scalar": lambda x: x[-1],
}


def every(name: str) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return np.arange(2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_sign_bit_alone_changes(name, layout):
    values = every(name)
    codes = f"u{values.itemsize}"
    sign = 1 << (8 * values.itemsize - 1)
    x = LAYOUTS[layout](ta.asarray(values))
    bits = np.asarray(LAYOUTS[layout](values.view(codes)))
    assert np.array_equal(ta.to_numpy(ta.abs(x)).view(codes), bits & (sign - 1))
    assert np.array_equal(ta.to_numpy(-x).view(codes), bits ^ sign)


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_shares_memory_is_written_after_all_reads(name):
    x = ta.asarray(every(name)[:200].copy())
    want = ta.to_numpy(-x)[:-1].copy()
    ta.negative(x[:-1], out=x[1:])
    codes = f"u{want.itemsize}"
    assert np.array_equal(ta.to_numpy(x)[1:].view(codes), want.view(codes))


def test_other_dtypes_and_functions_are_cast():
    x = ta.asarray(np.array([-1.5, 2.0], np.float16))
    assert ta.abs(x).astype("float32").tolist() == [1.5, 2.0]
    assert ta.fuse(lambda x: ta.abs(x.astype("float32")).astype("bfloat16"))(x).tolist() == [1.5, 2.0]
