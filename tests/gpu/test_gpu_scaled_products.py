"""Products of quantized matrices on the GPU, through cuBLASLt where it is installed, and by our kernels."""

from __future__ import annotations

import pytest
from support.oracles.products import check_scaled

import tilearray as ta
from tilearray.engine.caches import TwoGenerations
from tilearray.low_precision import scaled_products


@pytest.mark.parametrize("most", [64, 512])
def test_products_are_within_the_bound_of_a_sum(most):
    """The library's tensor cores add up some products with fewer bits."""
    check_scaled("cuda:0", most, 48, most, unit=2.0**-11)


@pytest.mark.parametrize("most", [64, 512])
def test_our_kernels_are_within_the_bound_of_a_float32_sum(most, monkeypatch):
    device = ta.devices()[0].backend
    monkeypatch.setattr(type(device.products.scaled), "planned", lambda *_: None)
    monkeypatch.setattr(scaled_products, "_READY", TwoGenerations(8))
    check_scaled("cuda:0", most + 1, 48, most)
