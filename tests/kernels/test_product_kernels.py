"""Matrix products on an emulated GPU, against exact ones."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "most"), [(1, 40, 33), (2, 5, 150)])
def test_products_are_exact(process, seed, count, most):
    process.pool.submit(_products, seed, count, most).result()


def test_einstein_sums_are_exact(process):
    process.pool.submit(_einsums).result()


def test_other_products_are_within_the_bound_of_a_sum(process):
    process.pool.submit(_rounding).result()


def test_integers_wrap_as_products_of_digits(process):
    process.pool.submit(_integers).result()


def test_scaled_products_are_within_the_bound_of_a_sum(process):
    """By our kernels, and through a stand-in of cuBLASLt, which checks the arguments of each call."""
    process.pool.submit(_scaled).result()


def test_products_through_a_library_are_exact(process):
    """A stand-in of cuBLAS checks the arguments of each call as the library does."""
    calls = process.pool.submit(_by_library, 3, 60, 33).result()
    assert "gemm_ex" in calls
    assert len(calls) > 5


def _products(seed: int, count: int, most: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_products

    check_products(emulated_device(), seed, count, most)


def _einsums() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_einsums

    check_einsums(emulated_device(), 3, 42)


def _rounding() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_rounding

    check_rounding(emulated_device(), 4)


def _integers() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_integers

    from tilearray.functions import device_products, integer_products

    large, deepest = device_products.LARGE_INTEGERS, integer_products.DEEPEST
    device_products.LARGE_INTEGERS, integer_products.DEEPEST = 2, 32
    try:
        check_integers(emulated_device(), 5, 8, 40)
    finally:
        device_products.LARGE_INTEGERS, integer_products.DEEPEST = large, deepest


def _scaled() -> None:
    from support.fake_cublas import FakeProducts
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_scaled

    from tilearray.low_precision import scaled_products

    device = emulated_device()
    check_scaled(device, 5, 8, 40)
    device.backend.products = FakeProducts(device.backend)
    scaled = device.backend.products.scaled
    try:
        check_scaled(device, 6, 20, 64)
        scaled._library.takes_vectors = False
        scaled._plans.clear()
        check_scaled(device, 7, 8, 64)
    finally:
        device.backend.products = None
    calls, plans = scaled._library.calls, list(scaled._plans.values())
    assert len(calls) > 5
    assert {vectors for *_, vectors in calls} == {False, True}
    assert any(plan is None for plan in plans)  # both of float8_e5m2
    scaled._plans.clear()
    scaled_products._READY.clear()
    del plans
    assert not scaled._library.descriptions
    assert len(scaled._library.layouts) == 0


def _by_library(seed: int, count: int, most: int) -> list[str]:
    from support.fake_cublas import FakeProducts
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_products

    from tilearray.engine.caches import PLANS
    from tilearray.functions.products import _CHECKED

    device = emulated_device()
    device.backend.products = found = FakeProducts(device.backend)
    PLANS.clear()
    _CHECKED.clear()
    try:
        check_products(device, seed, count, most)
    finally:
        device.backend.products = None
        PLANS.clear()
        _CHECKED.clear()
    return found.library.calls
