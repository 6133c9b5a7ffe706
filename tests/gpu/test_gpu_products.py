"""Matrix products on the GPU, against exact ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles.products import check_einsums, check_integers, check_products, check_rounding

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.functions import device_products, integer_products
from tilearray.functions.products import _CHECKED

CASES = 2 * int(os.environ.get("TILEARRAY_EXAMPLES", "400"))


@pytest.mark.parametrize(("seed", "most"), [(seed, most) for seed in range(4) for most in (33, 150, 700)])
def test_products_are_exact(seed, most):
    check_products("cuda:0", 10 * seed + most, CASES // 12, most)


@pytest.mark.parametrize("most", [33, 200])
def test_integers_wrap_as_products_of_digits(most, monkeypatch):
    monkeypatch.setattr(device_products, "LARGE_INTEGERS", 2)
    monkeypatch.setattr(integer_products, "DEEPEST", 64)
    PLANS.clear()
    _CHECKED.clear()
    check_integers("cuda:0", most, 36, most)
    _CHECKED.clear()


def test_einstein_sums_are_exact():
    check_einsums("cuda:0", 5, 150)


def test_other_products_are_within_the_bound_of_a_sum():
    check_rounding("cuda:0", 6)


@pytest.mark.whole_gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_beyond_2_to_31_elements(dtype):
    """Of an operand and of the result."""
    x = ta.ones((65536 + 3, 32768), dtype=dtype, device="cuda")
    y = ta.ones((32768, 5), dtype=dtype, device="cuda")
    found = x @ y
    wanted = np.int64(32768).astype(dtype) if dtype == "int8" else 32768
    assert ta.all(found == int(wanted))
    wide = x[:, :2] @ ta.ones((2, 32768 + 5), dtype=dtype, device="cuda")
    assert wide.size > 2**31
    assert ta.all(wide == 2)
