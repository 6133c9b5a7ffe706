"""The programs of examples/ on a GPU: what each prints and returns, beside the NumPy program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import FILES, of_numpy, ran, text_of

import tilearray as ta

CLOSE = {"adam": 2e-3}
"""How far elements may be apart, if that is more than 1e-6.

adam rounds weights to bfloat16 in each of 301 steps. Sums in another order may round one to its other neighbour, and
the steps after it differ. With NumPy's sums off by up to 2**-24 of the sums of magnitudes, its weights were off by
1.5e-3 at most; by up to a quarter of that, 1.5e-5. What it prints has to be the same.
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_gives_what_the_numpy_program_gives(file: Path, capsys: Any):
    pytest.importorskip("scipy")  # one of them takes a function of SciPy
    expected, array = ran(of_numpy(text_of(file)), capsys)
    before = ta.default_device()
    ta.set_default_device("cuda:0")
    try:
        printed, ours = ran(text_of(file), capsys)
    finally:
        ta.set_default_device(before)
    assert (type(ours), str(ours.device), ours.dtype) == (ta.Array, "cuda:0", array.dtype)
    np.testing.assert_allclose(ta.to_numpy(ours), array, rtol=2e-6, atol=CLOSE.get(file.stem, 1e-6))
    assert printed == expected
