"""Values do not depend on the processor: NumPy has a loop for each of its vector units, and takes one at run time.

``NPY_DISABLE_CPU_FEATURES`` takes vector units away from a process, and stands for a processor without them.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.oracles.formats import dtype_of

import tilearray as ta

ROOT = Path(__file__).parents[2]
SAMPLE = [
    "tests/host/test_processors.py",
    "tests/host/test_float_functions.py",
    "tests/promotion/test_scalars.py",
    "tests/kernels/test_interpreter_values.py",
]
SELECTED = "signalling or float_functions or scalars or ((pow or ldexp or frexp or hypot) and float)"


def vector_units() -> list[str]:
    """What NumPy found on this processor and uses where it can, by the names of its version."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload, index]


@pytest.mark.parametrize("absent", ["AVX-512", "AVX2"])
def test_a_sample_of_values_is_right_without_a_vector_unit(absent: str) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip(f"the processor is no x86: it has no {absent}")
    found = vector_units()
    wide = [name for name in found if name.startswith("AVX512") or name == "X86_V4"]
    disabled = wide if absent == "AVX-512" else found
    if disabled == ([] if absent == "AVX-512" else wide):
        pytest.skip(f"NumPy finds no {absent} on this processor: all tests run without it")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        SELECTED,
        *SAMPLE,
    ]
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Signalling NaNs: the loops treat them differently

SIGNALLING = {"float16": 0x7C01, "bfloat16": 0x7F81, "float32": 0x7F800001, "float64": 0x7FF0000000000001}
PARTS = {"complex64": "float32", "complex128": "float64"}


def nan(dtype: str, signalling: bool) -> np.ndarray:
    """Nine NaNs: a vector and a rest."""
    kind = dtype_of(dtype)
    quiet = np.full(9, np.nan, kind)
    return np.full(9, SIGNALLING[dtype], f"u{kind.itemsize}").view(kind) if signalling else quiet


FORMS: dict[str, Callable[[np.ndarray], ta.Array]] = {
    "contiguous": ta.asarray,
    "strided": lambda values: ta.asarray(np.repeat(values, 2))[::2],
    "reversed": lambda values: ta.asarray(values)[::-1],
    "one": lambda values: ta.asarray(values[:1]),
    "broadcast": lambda values: ta.broadcast_to(ta.asarray(values[:1]), (9,)),
}
"""Memory for which NumPy has loops of its own."""


@pytest.mark.parametrize("signalling", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", SIGNALLING)
def test_power_with_a_signalling_nan_is_that_with_a_quiet_one(dtype: str, form: str, signalling: bool) -> None:
    """C: ``pow(x, 0)`` and ``pow(1, y)`` are 1 for all x and y."""
    x = FORMS[form](nan(dtype, signalling))
    zeros, ones = ta.zeros_like(x), ta.ones_like(x)
    for power in (ta.pow, ta.float_power):
        for found in (power(x, zeros), power(x, -zeros), power(x, 0), power(x, 0.0), power(ones, x), power(1, x)):
            assert found.tolist() == [1.0] * x.size
        for found in (power(x, ones), power(x, 2), power(zeros, x), power(2, x)):
            assert np.isnan(found.tolist()).all()
    written = ta.empty_like(x)
    written[...] = x
    written **= zeros
    assert written.tolist() == [1.0] * x.size


@pytest.mark.parametrize("signalling", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", SIGNALLING)
def test_the_hypotenuse_of_an_infinity_and_a_signalling_nan_is_infinite(
    dtype: str, form: str, signalling: bool
) -> None:
    x = FORMS[form](nan(dtype, signalling))
    infinities = ta.full_like(x, -np.inf)
    for found in (ta.hypot(x, infinities), ta.hypot(infinities, x)):
        assert found.tolist() == [np.inf] * x.size


@pytest.mark.parametrize("signalling", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", PARTS)
def test_a_complex_number_with_an_infinite_part_is_infinite(dtype: str, form: str, signalling: bool) -> None:
    for parts in ((-np.inf, nan(PARTS[dtype], signalling)), (nan(PARTS[dtype], signalling), np.inf)):
        values = np.empty(9, dtype)
        values.real, values.imag = parts
        x = FORMS[form](values)
        assert ta.abs(x).tolist() == [np.inf] * x.size
        assert ta.log1p(x).real.tolist() == [np.inf] * x.size
