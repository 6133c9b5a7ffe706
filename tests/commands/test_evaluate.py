"""`ta.evaluate`: the value of the same expression in Python, as one kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import ExpressionError

A = ta.asarray(np.linspace(-2, 3, 12, dtype="f4").reshape(3, 4))
B = ta.asarray(np.arange(4), dtype="int8")


@pytest.mark.parametrize(
    "text",
    [
        "a*b + sin(a)",
        "ta.where(a > b, a, -b)",
        "(a.T[::-1] * 2 + 1)[1:]",
        "clip(a, -1, 1) ** 2 // 0.25",
        "ta.astype(a, ta.int8) + b",
        "k * a + k",
        "sum(a * b) / k",
    ],
)
def test_the_value_is_that_of_the_expression(text):
    names = {"ta": ta, "sin": ta.sin, "clip": ta.clip, "sum": ta.sum, "a": A, "b": B, "k": 2.5}
    found, expected = ta.evaluate(text, a=A, b=B, k=2.5), eval(text, names)
    assert found.dtype == expected.dtype
    assert ta.to_numpy(found).tobytes() == ta.to_numpy(expected).tobytes()


def test_arrays_of_numpy_and_a_target():
    found = ta.evaluate("a + 1", a=np.arange(3))
    assert type(found) is np.ndarray
    assert found.tolist() == [1, 2, 3]
    out = ta.zeros(4)
    assert ta.evaluate("b * 2", b=B, out=out) is out
    assert out.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a + c", "`c`: no array has this name; write c=array"),
        ("a if a else b", "`a if a else b`: `if` does not work on elements; write ta.where(condition, x, y)"),
        ("a.shape", "an expression cannot read attributes except .T"),
        ("__import__('os')", "an expression cannot call this"),
        ("sort(a) + b", "`sort(a)`: fuse: sorting, searching or a set is not elementwise, and not a reduction"),
        ("a[0] + b[:3]", "`a[0] + b[:3]`: add: "),
    ],
)
def test_errors_quote_the_part(text, message):
    with pytest.raises(ExpressionError, match=re.escape(message)):
        ta.evaluate(text, a=A, b=B)
