"""`ta.special` on a GPU: SciPy's values, in SciPy's dtypes, without a copy to the host."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

special = pytest.importorskip("scipy.special")
TWO = (
    *("boxcox", "boxcox1p", "chdtr", "chdtrc", "gammainc", "gammaincc", "huber", "inv_boxcox", "inv_boxcox1p"),
    *("kl_div", "pdtr", "pdtrc", "polygamma", "pseudo_huber", "rel_entr", "stdtr", "xlog1py", "xlogy", "zeta"),
)
THREE = ("betainc", "betaincc", "fdtr", "fdtrc", "gdtr", "gdtrc", "radian")
NAMES = [name for name in ta.special.__all__ if name not in ("log_softmax", "logsumexp", "softmax")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_scipys(name, dtype):
    rng = np.random.default_rng(6)
    x = np.abs(np.concatenate([rng.random(3000), rng.normal(size=3000) * 4])).astype(dtype)
    if name in ("ellipk", "ellipkm1", "erfinv", "logit", "ndtri"):
        x %= 1
    given = [x[::-1].copy(), x] if name in TWO else [x[::-1].copy(), np.roll(x, 1), x % 1] if name in THREE else [x]
    if name in ("polygamma", "zeta"):
        given[0] = np.floor(given[0]) + 1
    found = getattr(ta.special, name)(*[ta.asarray(each, device="cuda") for each in given])
    assert (str(found.device), found.dtype) == ("cuda:0", dtype)
    theirs = [each.astype("float64") for each in given]
    if name == "polygamma":
        theirs[0] = theirs[0].astype(int)
    with np.errstate(all="ignore"):
        expected = getattr(special, name)(*theirs)
        near_zero = (np.abs(expected) < 0.05) & (name in ("j0", "j1", "y0", "y1"))
        kept = np.isfinite(expected.astype(dtype)) & (np.abs(expected) > 1e-30) & ~near_zero
    bound = {"float32": 2e-6, "float64": 1e-8 if name == "cotdg" else 2e-11}[dtype]
    np.testing.assert_allclose(ta.to_numpy(found)[kept], expected[kept], rtol=bound, atol=bound / 1e3)


def test_lists_of_arrays_stay_there():
    x = ta.asarray([1.5, 2.5], device="cuda")
    found = ta.asarray([[x[0], 1], [2, x[1]]])
    assert (str(found.device), found.tolist()) == ("cuda:0", [[1.5, 1.0], [2.0, 2.5]])
