"""A few cases of the attacks on reductions, scans and selections, on an emulated GPU."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(("name", "cases"), [("reductions", 60), ("scans", 20), ("selections", 30)])
def test_no_case_differs(process, name, cases):
    tried, wrong, _ = process.pool.submit(_attacked, name, cases).result()
    assert (tried, wrong) == (cases, [])


def test_cases_of_a_kind_share_kernels(process):
    first, second = (process.pool.submit(_attacked, "reductions", 40, seed, 20).result() for seed in (0, 1))
    assert second[2] < first[2] / 2


@pytest.mark.parametrize("name", ["reductions", "scans"])
def test_other_bits_are_seen(process, name):
    _, wrong, _ = process.pool.submit(_attacked, name, 8, broken=True).result()
    assert len(wrong) > 4
    assert all("AssertionError in compare: #" in line for line in wrong)


def _attacked(name: str, cases: int, seed: int = 1, kinds: int = 300, broken: bool = False) -> tuple[int, Any, int]:
    """Attack small arrays; return how many cases were tried, what was wrong, and how many kernels were new."""
    from support.attacks import walks
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import reductions

    import tilearray as ta
    from tilearray.engine.caches import KERNELS

    device = emulated_device()
    same = reductions.compare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "ELEMENTS", (60, 60, 2000))
        patch.setitem(walks.KINDS, name, kinds)
        if broken:
            patch.setattr(reductions, "compare", lambda one, other, told: same(one, ta.logical_not(other), told))
        before = len(KERNELS)
        outcome = getattr(walks, f"run_{name}")(cases, seed, device.name)
        return outcome.tried, outcome.wrong, len(KERNELS) - before
