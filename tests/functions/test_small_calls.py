"""The host time of small calls, counted: Python functions that a known call on the host enters, NumPy's not counted.

A count above the bound means that a call does something again that it need do only once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.devices import CPU, using_device

CALLS: dict[str, int] = {
    "x + y": 2,
    "x * 2.0": 3,
    "x[5]": 1,
    "x[1:]": 1,
    "x[5] = 1.0": 7,
    "x[1:] = x[:-1]": 6,
    "x[:] = host": 12,
    "x[idx]": 17,
    "x[idx] = 1.0": 21,
    "x.copy()": 3,
    "x.astype(ta.int32)": 8,
    "x.astype(ta.float64)": 5,
    "ta.asarray([1.0, 2.0])": 11,
    "ta.asarray(3.0)": 11,
    "ta.asarray(x)": 5,
    "ta.asarray(host)": 13,
    "ta.zeros(1000)": 8,
    "ta.arange(1000)": 12,
    "ta.arange(0.0, 1000.0)": 19,
}


def entered(call: Callable[[], Any]) -> list[str]:
    """The functions of the library that a call enters after it was made before."""
    for _ in range(3):
        call()
    found: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and ("tilearray" in path.rpartition("/tests/")[2]):
            found.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("statement", CALLS)
def test_a_known_call_enters_few_functions(statement: str) -> None:
    names: dict[str, Any] = {
        "ta": ta,
        "x": ta.asarray(np.arange(1000, dtype="float32"), device="cpu"),
        "y": ta.asarray(np.ones(1000, "float32"), device="cpu"),
        "host": np.ones(1000, "float32"),
        "idx": ta.asarray(np.arange(1000)[::-1].copy(), device="cpu"),
        "mask": ta.asarray(np.arange(1000) % 3 == 0, device="cpu"),
    }
    code = compile(statement, "<statement>", "exec")
    with using_device(CPU):
        found = entered(lambda: exec(code, names))
    assert len(found) <= CALLS[statement], found
