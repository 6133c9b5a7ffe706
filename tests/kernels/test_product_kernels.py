"""Matrix products on an emulated GPU, against exact ones."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "most"), [(1, 100, 33), (2, 20, 150)])
def test_products_are_exact(process, seed, count, most):
    process.pool.submit(_products, seed, count, most).result()


def test_einstein_sums_are_exact(process):
    process.pool.submit(_einsums).result()


def test_other_products_are_within_the_bound_of_a_sum(process):
    process.pool.submit(_rounding).result()


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

    check_einsums(emulated_device(), 3, 90)


def _rounding() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.products import check_rounding

    check_rounding(emulated_device(), 4)


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
