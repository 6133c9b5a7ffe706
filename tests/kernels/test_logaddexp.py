"""logaddexp and logaddexp2 of float64, whose kernels have a logarithm of their own, beside mpmath."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.interpreter.run import Interpreter, planned
from support.kernels import needs_triton

mpmath = pytest.importorskip("mpmath")

pytestmark = [needs_triton, pytest.mark.slow]

ULPS = 4
"""The documented bound, in the last place of the largest of both operands and the result."""
TURN = 0.8813735870195430  # exp(-TURN) is sqrt(2) - 1, from where on the logarithm is taken of half as much


def gaps() -> np.ndarray:
    """Distances of the operands: of all sizes, beside the turn, and where the exponential ends."""
    rng = np.random.default_rng(0)
    return np.concatenate(
        [
            10.0 ** rng.uniform(-18, 3, 300),
            TURN + rng.normal(size=60) * 1e-9,
            rng.uniform(0, 2, 300),
            [0.0, 5e-324, 1e-310, 36.7, 37.5, 708.4, 709.8, 744.5, 745.2, 1e4, 1e300],
        ]
    )


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
@pytest.mark.parametrize("largest", ["near the result", "of any size", "zero"])
def test_it_is_within_4_ulp(largest: str, name: str, interpreter: Interpreter) -> None:
    rng, gap = np.random.default_rng(1), gaps()
    high = {"near the result": rng.uniform(-1, 1, gap.size), "zero": np.zeros(gap.size)}
    x = high.get(largest, rng.normal(size=gap.size) * 10.0 ** rng.uniform(-3, 300, gap.size))
    y = x - gap
    with mpmath.workprec(200):
        exact = [_exact(name, *pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
        for first, second in ((x, y), (y, x)):
            found = interpreter.run(planned(name, first, second))
            for got, wanted, one, other in zip(found.tolist(), exact, x.tolist(), y.tolist(), strict=True):
                unit = np.spacing(max(abs(one), abs(other), abs(float(wanted))))
                assert abs(mpmath.mpf(got) - wanted) <= ULPS * mpmath.mpf(float(unit)), (one, other, got)


def _exact(name: str, x: float, y: float) -> Any:
    """max + log1p(exp(-gap)), in units of the base's logarithm; mpmath has no exponential of -1e300."""
    unit = mpmath.log(2) if name == "logaddexp2" else mpmath.mpf(1)
    gap = mpmath.mpf(x) - mpmath.mpf(y)
    return mpmath.mpf(x) + (mpmath.log1p(mpmath.exp(-gap * unit)) / unit if gap < 1e5 else 0)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_infinities_and_nan(name: str, interpreter: Interpreter) -> None:
    values = np.array([-np.inf, -1e308, 0.0, 1.0, 1e308, np.inf, np.nan])
    x, y = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    np.testing.assert_array_equal(interpreter.run(planned(name, x, y)), expected)
