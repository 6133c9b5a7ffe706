"""The benchmark of sums: its functions give NumPy's values in both orders, and a record has all of its tables."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from benchmarks import sums


@pytest.mark.parametrize("function", sums.FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_functions_are_numpys(function: str, axis: int | None) -> None:
    x = 1 + np.random.default_rng(1).normal(size=(9, 40) if axis is not None else 360) * 0.01
    ours, theirs = sums.FUNCTIONS[function]
    for order in ("fixed", "any"):
        found = ours(ta, ta.asarray(x, device="cpu"), axis, order)
        np.testing.assert_allclose(ta.to_numpy(found), theirs(x, axis=axis), rtol=1e-12)


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sums.FUNCTIONS, "sum", (lambda ta, x, axis, order: ta.sum(x) * 1.5 + 1e6, np.sum))
    row = sums.reduced(ta, "sum", sums.Elements("few", (30,)), "float32", 0.0)
    assert row["wrong"] == ["fixed", "any"]
    assert sums.figure(row) == "wrong: fixed, any"


def test_a_record_has_a_line_for_each_row() -> None:
    spent = {"numpy": 2.0, "fixed": 4.0, "any": 1.0}
    row = {"table": "sum", "name": "1e6, all", "dtype": "float32", "wrong": [], "microseconds": spent}
    cast = sums.cast(ta, "float32", "int8", 100, 10.0, 0.0)
    assert cast["wrong"] == []
    rows = [row, {**row, "table": "casts", "dtype": "1e+05, in range"}]
    found = {"device": {"name": "a host", "driver": "none"}, "versions": {}, "date": "", "commit": "", "size": "full"}
    text = sums.markdown({**found, "command": [], "rows": rows})
    assert "| 1e6, all   |   2.00, 0.50 |" in text
    assert "| cast     | 1e+05, in range |" in text
