"""Matrix products on an emulated GPU, against exact ones."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("seed", "count", "most"), [(1, 250, 33), (2, 40, 150)])
def test_products_are_exact(process, seed, count, most):
    process.pool.submit(_products, seed, count, most).result()


def test_einstein_sums_are_exact(process):
    process.pool.submit(_einsums).result()


def test_other_products_are_within_the_bound_of_a_sum(process):
    process.pool.submit(_rounding).result()


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
