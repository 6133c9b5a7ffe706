"""Ten mistakes, each in a line of its own. `test_checkers.py` asks pyright and mypy for a message at each of them."""

from __future__ import annotations

import tilearray as ta


def mistakes(x: ta.Array) -> None:
    ta.add(x)  # mistake: one operand of two
    ta.exp(x, 2.0)  # mistake: two operands of one
    ta.exp("q")  # mistake: a string as an operand
    ta.sin(x, rounding="rn")  # mistake: sin has no rounding mode
    ta.exp(x, rounding="rz")  # mistake: exp has other rounding modes
    ta.zeros(3, dtype="flaot32")  # mistake: no such dtype
    ta.semantics("trition")  # mistake: no such semantics
    x // "a"  # mistake: a string beside an operator
    ta.zeros(3, device="gpu")  # mistake: no such device
    x.sum(axis="rows")  # mistake: an axis is an int
