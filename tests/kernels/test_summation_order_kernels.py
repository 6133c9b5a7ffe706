"""``order="any"`` on an emulated GPU is the fixed order: the bits of the host, by the same operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, order: ta.sum(x, axis=1, order=order),
    "prod": lambda x, order: ta.prod(x, axis=0, order=order),
    "mean": lambda x, order: ta.mean(x, order=order),
    "var": lambda x, order: ta.var(x, axis=0, order=order),
    "std": lambda x, order: x.std(order=order),
    "vecdot": lambda x, order: ta.vecdot(x, x, order=order),
    "vector_norm": lambda x, order: ta.linalg.vector_norm(x, axis=1, order=order),
    "cumulative_sum": lambda x, order: ta.cumulative_sum(x, axis=1, order=order),
    "fused": lambda x, order: ta.fuse(lambda x: ta.sum(x * 2 - 1, axis=1, order=order))(x),
    "gradient": lambda x, order: ta.grad(lambda x: ta.var(x, order=order))(x),
}


def _in_both_orders(name: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device

    values = 1 + np.random.default_rng(5).normal(size=(9, 333)).astype("float32") * 0.1
    x, host = ta.asarray(values, device=emulated_device()), ta.asarray(values, device="cpu")
    found = [ta.to_numpy(CALLS[name](x, order)) for order in ("any", "fixed")]
    assert np.array_equal(*found)
    if name != "gradient":
        assert np.array_equal(found[0], ta.to_numpy(CALLS[name](host, "fixed")))


@pytest.mark.parametrize("name", CALLS)
def test_any_order_is_the_fixed_one(process, name: str) -> None:
    process.pool.submit(_in_both_orders, name).result()


def test_the_operation_is_that_of_the_fixed_order() -> None:
    x = ta.ones((9, 333), device="cpu")
    found = str(ta.explain(lambda x: ta.sum(x, axis=1, order="any"), x, arch=90))
    assert "add over float64(x0)" in found
    assert "any_order" not in found


def _refused() -> str:
    from support.interpreter.emulated_gpu import emulated_device

    with pytest.raises(ta.errors.OperandError) as error:
        ta.sum(ta.ones(3, device=emulated_device()), order="fast")
    return str(error.value)


def test_another_word_is_an_error(process) -> None:
    assert process.pool.submit(_refused).result() == (
        "sum: expected order as 'fixed' or 'any', got 'fast'; write order='any'"
    )
