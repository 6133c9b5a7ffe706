"""The benchmark of scaled conversions: torch's formulas give tilearray's values, and wrong ones are found."""

from __future__ import annotations

import pytest

import tilearray as ta
from benchmarks import low_precision

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("row", low_precision.ROWS, ids=lambda row: row.name)
def test_torch_converts_alike(row):
    x = torch.randn((256, 256), generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    ours = low_precision.Library("tilearray", ta).call(row, x)()
    function, shape = low_precision.FORMULAS[row.formula]
    theirs = function(torch, x.view(shape(256)))
    assert low_precision.close(torch, ours[0], theirs[0])
    assert low_precision.same_as_host(ta, row, x, ours)
    wrong = ours[0].copy()
    wrong[:64] = wrong[64:128]
    assert not low_precision.close(torch, wrong, theirs[0])
    assert not low_precision.same_as_host(ta, row, x, (wrong, ours[1]))
    nbytes = ours[0].nbytes + ours[1].nbytes + 2 * x.numel()
    assert row.nbytes * x.numel() == pytest.approx(nbytes, rel=0.006)
