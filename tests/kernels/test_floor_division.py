"""Float ``//`` and ``%`` in Triton's interpreter: the short way, which blocks of usual quotients take."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.interpreter.run import Interpreter
from support.kernels import needs_triton
from support.oracles.floor_division import assert_same_bits, expected, near_integers

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_quotients_beside_integers(name: str, dtype: str, interpreter: Interpreter) -> None:
    """A quotient that is rounded up to an integer is found out, and the remainder is rounded once."""
    x, y = near_integers(dtype, 30_000)
    assert (np.abs(x / y) < (2**22 if dtype == "float32" else 2**51)).all()
    wanted = expected(name, x, y)
    assert_same_bits(interpreter.call(name, x, y), wanted, x, y)
    x[::1024], y[512::1024] = np.inf, 0  # every block takes the long way
    with np.errstate(all="ignore"):
        usual = np.isfinite(expected(name, x, y)) & np.isfinite(x)
    assert_same_bits(interpreter.call(name, x, y)[usual], wanted[usual], x[usual], y[usual])


def test_bfloat16_computes_in_float32(interpreter: Interpreter) -> None:
    x, y = (each.astype(ml_dtypes.bfloat16) for each in near_integers("float32", 20_000, 1))
    for name in ("floor_divide", "remainder"):
        wide = expected(name, x.astype(np.float32), y.astype(np.float32)).astype(ml_dtypes.bfloat16)
        assert_same_bits(interpreter.call(name, x, y), wide, x, y)
