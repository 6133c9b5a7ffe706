"""Quotients by one number for many elements have the bits of divisions, also among denormals, zeros and infinities."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.kernels import needs_triton
from support.rows_on_device import divided

import tilearray as ta
from tilearray_cuda.kernels.source import _device_functions

DIVIDE = "tl.math.div_rn("


def quotient(name: str, toward: float) -> Any:
    """A function of the library as one of NumPy's float32. An approximate reciprocal is one float off, toward a number.

    A GPU's is exact for powers of two, as a test on a GPU shows.
    """
    wide = np.float32

    def reciprocal_approx(y: Any) -> Any:
        exact = 1 / np.asarray(y, wide)
        whole = np.frexp(exact)[0] in (0, 0.5) or not np.isfinite(exact)
        return exact if whole else np.nextafter(exact, wide(toward))

    math = SimpleNamespace(div_rn=lambda x, y: np.divide(wide(x), y))
    tl = SimpleNamespace(abs=np.abs, where=lambda where, x, y: np.where(where, wide(x), wide(y)), math=math)
    names: dict[str, Any] = {"tl": tl, "reciprocal_approx": reciprocal_approx}
    exec(_device_functions()[name].removeprefix("@triton.jit\n"), names)
    return names[name]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("step", [67, pytest.param(17, marks=pytest.mark.slow)])
def test_narrow_quotients_are_divisions(dtype: str, step: int) -> None:
    """All dividends by some divisors, and slowly by more."""
    narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
    found = [quotient(f"quotient_{dtype}", toward) for toward in (-np.inf, np.inf)]
    x = np.arange(1 << 16, dtype=np.uint16).view(narrow).astype(np.float32)
    with np.errstate(all="ignore"):
        for place, y in enumerate(np.arange(0, 1 << 15, step, dtype=np.uint16).view(narrow).astype(np.float32)):
            ours, wanted = found[place % 2](x, y).astype(narrow), (x / y).astype(narrow)
            same = (ours.view(np.uint16) == wanted.view(np.uint16)) | (np.isnan(ours) & np.isnan(wanted))
            assert same.all(), (x[~same][:3], y)


@needs_triton
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_fused_divisions_by_a_number_of_each_row_are_quotients(dtype: str) -> None:
    x = ta.empty((8192, 4096), dtype=dtype, device="cpu")
    (launch,) = ta.explain(ta.fuse(divided), x, x, arch=90).launches
    assert f"quotient_{dtype}(" in launch.kernel.source
    assert DIVIDE not in launch.kernel.source.partition("def divide")[2].replace("1.0, ", "")


@needs_triton
def test_divisions_of_rows_whose_columns_are_reduced_are_quotients() -> None:
    x = ta.empty((8192, 4096), device="cpu")
    first, *_ = ta.explain(ta.fuse(lambda x, y: ta.sum(x / y[:, None], axis=0)), x, x[:, 0].copy(), arch=90).launches
    assert "quotient_float32(" in first.kernel.source
    assert DIVIDE not in first.kernel.source


@needs_triton
def test_results_that_stay_wide_are_quotients_of_float32() -> None:
    x = ta.empty((8192, 4096), dtype="bfloat16", device="cpu")
    wide = ta.fuse(lambda x: ta.round(x / ta.max(x, axis=1)[:, None] * 127), intermediates="compute")
    (launch,) = ta.explain(wide, x, arch=90).launches
    assert "quotient_float32(" in launch.kernel.source
    assert "quotient_bfloat16(" not in launch.kernel.source


@needs_triton
def test_quotients_have_the_bits_of_divisions(process: Any) -> None:
    process.pool.submit(_emulated).result()


def _emulated() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.rows_on_device import check_quotients

    device = emulated_device()
    before = device.backend.launches
    check_quotients(device)
    assert device.backend.launches == before + 6
