"""The rows of the benchmark of selections, with small arrays of torch on the host."""

from __future__ import annotations

from typing import Any

import pytest

import tilearray as ta
from benchmarks import selection, timing

torch: Any = pytest.importorskip("torch")


class OnTheHost:
    """torch, whose new arrays are on the host."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(torch, name)
        if name in ("rand", "randint", "randperm"):
            return lambda *sizes, device, **options: found(*sizes, **options)
        return found


def test_every_row_has_the_result_of_torch(monkeypatch):
    monkeypatch.setattr(
        timing, "kernel_timing", lambda clock, run, effort, wait: (run(), timing.Timing.of([1e-3], 1))[1]
    )
    found = [selection.Library("torch", torch, lambda x: x), selection.Library("tilearray", ta, ta.asarray)]
    rows = [selection.measured(OnTheHost(), None, row, found, "small", lambda: 10.0) for row in selection.ROWS]
    assert len({row["name"] for row in rows}) == len(rows)
    assert {result["status"] for row in rows for result in row["results"].values()} == {"ok"}
