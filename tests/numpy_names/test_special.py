"""`ta.special`: SciPy finds our functions there, and only where its arrays are ours."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tilearray as ta


def test_every_name_is_scipys_and_a_function_of_ours():
    special = pytest.importorskip("scipy.special")
    for name in ta.special.__all__:
        assert hasattr(special, name)
        assert getattr(ta.special, name) is getattr(ta, {"gammaln": "lgamma"}.get(name, name))


SOURCE = """
import numpy as np, tilearray as ta
from scipy import special
whole = ta.asarray([1, 2, 3])
for name in {names}:
    row = getattr(ta.special, name)
    found = getattr(special, name)(*[whole] * row.arity)
    assert type(found) is ta.Array and found.dtype == ta.float32, (name, found)
assert special.erf(np.asarray([1, 2])).dtype == np.float64
"""


@pytest.mark.slow  # a process that imports SciPy with SCIPY_ARRAY_API=1
def test_scipy_takes_them_for_arrays_with_its_array_api():
    pytest.importorskip("scipy", minversion="1.16")
    names = [name for name in ta.special.__all__ if name in ("gammaln", *ta.ops.PUBLIC)]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "TILEARRAY_SEMANTICS": "array-api"}
    command = [sys.executable, "-c", SOURCE.format(names=names)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
