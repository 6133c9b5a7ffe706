"""Integer-array indexing and ranges on the GPU, against NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from support.oracles.indexing import (
    PROPERTIES,
    check_errors,
    check_host_values,
    check_property,
    check_puts,
    check_repeated_and_overlapping,
    check_rows_of_words,
    check_wide_rows,
)

import tilearray as ta
from tilearray_cuda.errors import CaptureError, DeferredIndexError

EXAMPLES = int(os.environ.get("TILEARRAY_EXAMPLES", "400"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", PROPERTIES)
def test_indexing_is_numpys(name):
    check_property(name, "cuda:0", MANY)


def test_overlap():
    check_repeated_and_overlapping("cuda:0")


def test_wide_rows():
    check_wide_rows("cuda:0")
    check_rows_of_words("cuda:0")


def test_puts():
    check_puts("cuda:0")


def test_errors():
    check_errors("cuda:0")


def test_host_values_are_copied():
    check_host_values("cuda:0")


@pytest.fixture
def mode():
    yield ta.set_index_check
    ta.set_index_check("raise")


def test_modes(mode):
    x, index = ta.arange(5, device="cuda"), ta.asarray([1, 7, -9], device="cuda")
    mode("clip")
    assert x[index].tolist() == [1, 4, 0]
    mode("deferred")
    found = x[index]
    with pytest.raises(DeferredIndexError, match=r"held (7|-9)"):
        ta.cuda.synchronize()
    assert found.tolist() == [1, 4, 0]
    mode("raise")
    with pytest.raises(ta.IndexingError, match=r"got (7|-9)"):
        x[index]
    assert x[index[:1]].tolist() == [1]


def test_under_capture(mode):
    torch = pytest.importorskip("torch")
    x, index = ta.arange(5, device="cuda"), ta.asarray([1, 3], device="cuda")
    mode("clip")
    x[index]
    mode("raise")
    graph = torch.cuda.CUDAGraph()
    with (
        pytest.raises(CaptureError, match="set_index_check"),
        torch.cuda.graph(graph),
        ta.cuda.stream(torch.cuda.current_stream()),
    ):
        x[index]


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128", "bfloat16"])
@pytest.mark.parametrize("size", [1, 4096, 3_000_001])
def test_many_elements(dtype, size):
    rng = np.random.default_rng(0)
    host = rng.integers(0, 100, 1_000_003).astype("float32")
    indices = rng.integers(-host.size, host.size, size)
    x = ta.asarray(host, device="cuda").astype(dtype)
    found = x[ta.asarray(indices, device="cuda")]
    np.testing.assert_array_equal(ta.to_numpy(found.real.astype("float32")), host[indices])
    order = ta.asarray(rng.permutation(host.size), device="cuda")
    y = ta.zeros(host.size, dtype=dtype, device="cuda")
    y[order] = x[order]
    np.testing.assert_array_equal(ta.to_numpy(y.real.astype("float32")), host)


@pytest.mark.parametrize("dtype", ["int64", "float16", "bfloat16", "uint8", "float64", "complex64", "float8_e5m2"])
def test_ranges_are_those_of_the_host(dtype):
    for make in (
        lambda device: ta.arange(0, 200, 3, dtype=dtype, device=device),
        lambda device: ta.arange(0.5, 99, 0.37, dtype=dtype, device=device),
        lambda device: ta.linspace(0, 100, 1_000_001, dtype=dtype, device=device),
        lambda device: ta.linspace(0, 100, 77, endpoint=False, dtype=dtype, device=device),
    ):
        ours, host = ta.to_numpy(make("cuda")), ta.to_numpy(make("cpu"))
        assert ours.tobytes() == host.tobytes()


@pytest.mark.whole_gpu
def test_beyond_2_to_31_elements():
    n = 2**31 + 5
    x = ta.arange(n, dtype="int64", device="cuda") % 251
    x = x.astype("uint8")
    index = ta.asarray([0, n - 1, 2**31, -1, 2**31 - 1], device="cuda")
    assert x[index].tolist() == [i % n % 251 for i in (0, n - 1, 2**31, n - 1, 2**31 - 1)]
    x[index] = 255
    assert x[2**31 - 2 :].tolist() == [255 if i in (n - 1, 2**31, 2**31 - 1) else i % 251 for i in range(2**31 - 2, n)]
