"""Functions give the same bits on every layout, although NumPy has other loops for negative strides and for overlap."""

from __future__ import annotations

import numpy as np
import pytest
from support.drawing import pool
from support.oracles.formats import dtype_of

import tilearray as ta
from tilearray.ops import PUBLIC

DTYPES = ["float32", "float64", "complex64", "complex128"]


def operands(name, dtype, size, seed):
    rng = np.random.default_rng(seed)
    return [pool(dtype)[rng.integers(0, 65536, size)] for _ in range(PUBLIC[name].arity)]


def accepted(name, dtype):
    row = PUBLIC[name]
    return ("complex" if "complex" in dtype else "float") in row.kinds and not (row.masks or row.exponents)


def assert_same(found, expected):
    found, expected = (np.ascontiguousarray(ta.to_numpy(each)) for each in (found, expected))
    parts = [each.view(f"f{each.itemsize // 2}") if each.dtype.kind == "c" else each for each in (found, expected)]
    nan = (parts[0] != parts[0]) & (parts[1] != parts[1])
    assert (nan | (parts[0] == parts[1])).all()


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in PUBLIC for dtype in DTYPES if accepted(name, dtype)]
)
def test_negative_strides_do_not_change_a_bit(name, dtype):
    values = operands(name, dtype, 500, 1)
    expected = PUBLIC[name](*map(ta.asarray, values))
    for turned in {(0,), (len(values) - 1,), tuple(range(len(values)))}:
        given = [
            ta.asarray(np.ascontiguousarray(x[::-1]))[::-1] if place in turned else ta.asarray(x)
            for place, x in enumerate(values)
        ]
        assert_same(PUBLIC[name](*given), expected)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_one_complex_number_is_multiplied_in_place_as_elsewhere(dtype):
    for x, y in zip(*operands("multiply", dtype, 300, 2), strict=True):
        x, y = (ta.asarray(np.array([each], dtype_of(dtype))) for each in (x, y))
        product, square = x * y, ta.square(x)
        assert_same(ta.square(x, out=x.copy()), square)
        x *= y
        assert_same(x, product)
