"""Selection by conditions on the GPU, against NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.oracles import selection
from support.oracles.selection import check_selections

import tilearray as ta
from tilearray_cuda.errors import CaptureError

CASES, SHARDS = 5 * int(os.environ.get("TILEARRAY_EXAMPLES", "400")), 8
KINDS = int(os.environ.get("TILEARRAY_KINDS", "40"))


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(("seed", "elements", "share"), [(31, 60, 2), (32, 5000, 3), (33, 300_000, 6)])
def test_selections_are_numpys(seed, elements, share, shard):
    check_selections("cuda:0", seed + 100 * shard, max(1, CASES // share // SHARDS), elements, KINDS)


@pytest.mark.parametrize("name", ["check_keys", "check_refusals", "check_names"])
def test_keys_and_names(name):
    getattr(selection, name)("cuda:0")


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 2**22, 2**24 + 1, 30_000_001, 50_000_003])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_many_elements(size, share):
    rng = np.random.default_rng(size)
    host, mask = rng.integers(0, 100, size, dtype=np.int32), rng.random(size) < share
    x, condition = ta.asarray(host, device="cuda"), ta.asarray(mask, device="cuda")
    np.testing.assert_array_equal(ta.to_numpy(x[condition]), host[mask])
    np.testing.assert_array_equal(ta.to_numpy(ta.nonzero(condition)[0]), np.nonzero(mask)[0])


@pytest.mark.whole_gpu
def test_beyond_2_to_31_elements():
    n = 2**31 + 4099
    mask = ta.zeros(n, dtype="bool", device="cuda")
    places = [0, 1, 2**31 - 1, 2**31, n - 1]
    mask[ta.asarray(places, device="cuda")] = True
    assert ta.nonzero(mask)[0].tolist() == places
    x = ta.arange(n, dtype="int64", device="cuda") % 251
    assert x.astype("uint8")[mask].tolist() == [place % 251 for place in places]
    del x
    target = ta.zeros(n, dtype="uint8", device="cuda")
    target[mask] = ta.arange(1, 6, dtype="uint8", device="cuda")
    assert target[ta.asarray(places, device="cuda")].tolist() == [1, 2, 3, 4, 5]
    target[mask[::-1]] = 9  # a mask that is a view
    assert ta.nonzero(target == 9)[0].tolist() == [n - 1 - place for place in places[::-1]]


def test_other_streams():
    with ta.cuda.stream(ta.cuda.Stream("cuda:0")):
        x = ta.arange(1_000_000, device="cuda")
        found = x[x % 3 == 0]
    assert found.shape == (333_334,)
    assert int(ta.sum(found)) == sum(range(0, 1_000_000, 3))


def test_a_capture_is_refused():
    torch = pytest.importorskip("torch")
    x = ta.arange(5, device="cuda")
    mask = x > 2
    x[mask]
    y = x + x
    graph = torch.cuda.CUDAGraph()

    def captured() -> None:
        with torch.cuda.graph(graph), ta.cuda.stream(torch.cuda.current_stream()):
            ta.add(x, x, out=y)  # torch warns of a graph without a launch
            x[mask]

    with pytest.raises(CaptureError):
        captured()
