"""The steps of gcd in floats, by reciprocals that are as rough as a GPU's: each step must be exact, and there are few.

Triton's interpreter has exact reciprocals, so the device function runs here on NumPy.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.kernels import body_for, kernel_for, needs_triton

from tilearray_cuda.kernels.source import _device_functions

ROUGH = {np.float32: 2.0**-22, np.float64: 2.0**-19}
"""Relative errors of reciprocals, twice and more of those that PTX documents."""
MOST_STEPS = 40


class _Block(np.ndarray):
    """An array with Triton's cast."""

    def to(self, dtype: Any) -> _Block:
        return self.astype(dtype).view(_Block)


def _function(steps: list[int]) -> Any:
    """`divisor_by_floats` on NumPy; it adds the number of its steps to a list."""
    rng = np.random.default_rng(0)

    def reciprocal(x: Any) -> Any:
        rough = 1 + rng.uniform(-1, 1, x.shape) * ROUGH[x.dtype.type]
        return (np.divide(1, x, where=x != 0, out=np.full_like(x, np.inf)) * rough).astype(x.dtype)

    def fma(x: Any, y: Any, z: Any) -> Any:
        return (x.astype(np.longdouble) * y + z).astype(x.dtype)

    def largest_of(x: Any) -> Any:
        steps.append(1)
        assert len(steps) <= MOST_STEPS
        return np.max(x)

    tl = SimpleNamespace(
        constexpr=object,
        float32=np.float32,
        where=lambda *given: np.where(*given).view(_Block),
        abs=np.abs,
        full=lambda shape, value, dtype: dtype(value),
    )
    names: dict[str, Any] = {
        "tl": tl,
        "libdevice": SimpleNamespace(fma=fma, rcp64h=reciprocal),
        "reciprocal_approx_ftz": reciprocal,
        "largest_of": largest_of,
    }
    exec(_device_functions()["divisor_by_floats"], names)
    return names["divisor_by_floats"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, 24), (np.float64, 53)])
def test_steps_by_rough_reciprocals_are_exact(dtype: Any, bits: int) -> None:
    rng = np.random.default_rng(bits)
    size = 40_000
    some = [rng.integers(0, 2**bits, size) >> rng.integers(0, bits, size) for _ in "xyz"]
    halves = [each >> bits // 2 for each in some]
    largest, few = 2**bits - 1 - rng.integers(0, 4, size), rng.integers(0, 9, size)
    x = np.concatenate([some[0], halves[0] * halves[2], largest, few, largest])
    y = np.concatenate([some[1], halves[1] * halves[2], few, largest, some[0]])
    function = _function([])
    found = function(x.astype(np.uint64).view(_Block), y.astype(np.uint64).view(_Block), dtype)
    np.testing.assert_array_equal(np.asarray(found), np.gcd(x, y))


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64"])
def test_small_integers_take_no_division_of_integers(dtype: str) -> None:
    from tilearray_cuda.kernels.compile import compile_source

    ptx = compile_source(kernel_for(body_for("gcd", [dtype] * 2), (100_000,), [(1,)] * 3).source, 90).ptx
    assert "rcp.approx.ftz.f32" in ptx
    assert ("rem.u" in ptx) == (dtype == "int64")
    assert ("rcp.approx.ftz.f64" in ptx) == (dtype in ("uint32", "int64"))
