"""`ta.linalg` on a device with factors of matrices: a stand-in of cuSOLVER by LAPACK checks the arguments."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.factors import CHECKS, DTYPES, check_errors, check_functions

import tilearray as ta
from tilearray.errors import DeviceError
from tilearray.functions import device_products
from tilearray.linalg.device_matrices import cheapest_splits

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")

from support.fake_cublas import FakeGpu
from support.fake_cusolver import FakeFactors


@pytest.fixture
def gpu(elsewhere, monkeypatch):
    """A device with factors, all of whose products go through a library."""
    monkeypatch.setattr(device_products, "LARGE", 0)
    elsewhere.backend = FakeGpu()
    elsewhere.backend.factors = FakeFactors(elsewhere.backend)
    return elsewhere


@pytest.mark.parametrize("name", DTYPES)
def test_all_functions(gpu, name):
    check_functions(gpu, name, 1, 6)
    calls = set(gpu.backend.factors.library.calls)
    assert {"xpotrf", "xgetrf", "xgetrs", "xgeqrf", "xsyevd", "xgesvd", "xgeev"} < calls
    assert len(CHECKS) == 10


def test_errors_and_empty_matrices(gpu):
    check_errors(gpu)


def test_integers_keep_their_dtype_in_powers(gpu):
    x = ta.asarray([[1, 1], [1, 0]], dtype="int32", device=gpu)
    assert ta.linalg.matrix_power(x, 0).tolist() == [[1, 0], [0, 1]]
    assert ta.linalg.matrix_power(x, 0).dtype == np.dtype("int32")


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_every_semantics_computes(gpu, semantics):
    x = ta.asarray(np.array([[2.0, 1.0], [1.0, 3.0]], "float32"), device=gpu)
    with ta.semantics(semantics):
        for call in (ta.linalg.pinv, ta.linalg.cond, ta.linalg.det, ta.linalg.qr, ta.linalg.eigh, ta.linalg.inv):
            found = call(x)
            assert all(one.dtype.name == "float32" for one in (found if isinstance(found, tuple) else (found,)))


def test_without_factors_an_error_says_what_to_write(elsewhere):
    with pytest.raises(DeviceError, match=r"write ta.linalg.inv\(x.to_device\('cpu'\)\)"):
        ta.linalg.inv(ta.ones((2, 2), device=elsewhere))


def test_products_are_split_where_they_are_cheapest():
    """Against all ways to split."""

    def cost(sizes, splits, first, last):
        if first == last:
            return 0
        at = splits[first, last]
        own = sizes[first] * sizes[at + 1] * sizes[last + 1]
        return own + cost(sizes, splits, first, at) + cost(sizes, splits, at + 1, last)

    def least(sizes):
        if len(sizes) == 2:
            return 0
        return min(
            least(sizes[: at + 1]) + least(sizes[at:]) + sizes[0] * sizes[at] * sizes[-1]
            for at in range(1, len(sizes) - 1)
        )

    rng = np.random.default_rng(4)
    for count in (2, 3, 4, 6):
        for _ in range(10):
            sizes = rng.integers(1, 20, count + 1).tolist()
            assert cost(sizes, cheapest_splits(sizes), 0, count - 1) == least(sizes)
