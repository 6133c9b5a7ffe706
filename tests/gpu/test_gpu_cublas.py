"""Matrix products through cuBLAS on the GPU, against NumPy; `test_gpu_products` has exact products of all layouts."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.oracles.products import check_products

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.functions.products import _CHECKED

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from tilearray_cuda.libraries import cublas
from tilearray_cuda.libraries.cublas import LibraryProduct, Products

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvmath") is None, reason="nvmath-python is not installed")
DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of all products that are planned: those of small matrices as well."""
    found: list[str] = []
    planned = Products.kernel

    def kernel(self: Products, dtype: Any, loop: Any, aligned: tuple[bool, bool]) -> LibraryProduct:
        product = planned(self, dtype, loop, aligned)
        found.append(product.text)
        return product

    monkeypatch.setattr(Products, "kernel", kernel)
    monkeypatch.setattr(cublas, "SMALL", {})
    PLANS.clear()
    _CHECKED.clear()
    return found


@pytest.fixture
def without_library() -> Iterator[None]:
    """A GPU whose products are all kernels."""
    backend: Any = ta.zeros(1, device="cuda").device.backend
    products = backend.products
    backend.products = None
    PLANS.clear()
    _CHECKED.clear()
    yield
    backend.products = products
    PLANS.clear()
    _CHECKED.clear()


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, ta.Array]:
    """Normal numbers in a dtype: exactly on the host as float64 or complex128, and on the GPU."""
    values = rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    x = ta.astype(ta.asarray(values, device="cuda"), dtype)
    return ta.to_numpy(ta.astype(x, "complex128" if dtype.startswith("complex") else "float64")), x


def near(found: ta.Array, left: np.ndarray, right: np.ndarray, dtype: str) -> None:
    """Within the bound of a sum in any order, and one rounding."""
    wanted, sizes = left @ right, np.abs(left) @ np.abs(right)
    depth = left.shape[-1]
    eps = 2.0**-53 if dtype in ("float64", "complex128") else 2.0**-24
    last = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, eps)
    assert found.dtype == ta.asarray([], dtype=dtype).dtype
    given = ta.to_numpy(ta.astype(found, "complex128" if dtype.startswith("complex") else "float64"))
    assert given.shape == wanted.shape
    assert (np.abs(given - wanted) <= 4 * depth * eps * sizes + last * np.abs(wanted) + 1e-30).all()


def test_small_products_are_kernels(calls, monkeypatch):
    monkeypatch.setattr(cublas, "SMALL", {"float32": 64**3})
    x, y = ta.ones((64, 64), device="cuda"), ta.ones((64, 65), device="cuda")
    assert (x @ x)[5, 5].item() == (x @ x[0])[5].item() == 64
    assert len(calls) == 1  # the vector
    assert (x @ y)[5, 5].item() == 64
    assert len(calls) == 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_within_the_bound_of_a_sum(calls, dtype):
    """Also where sums in 16 bits, or TF32, would not be."""
    rng = np.random.default_rng(5)
    for rows, depth, columns in ((64, 64, 64), (129, 4096, 257), (1, 513, 70), (300, 700, 1), (33, 20000, 2)):
        left, x = drawn(rng, (rows, depth), dtype)
        right, y = drawn(rng, (depth, columns), dtype)
        near(x @ y, left, right, dtype)
        near(y.T @ x.T, right.T, left.T, dtype)
        near(x[:, 1:] @ y[1:], left[:, 1:], right[1:], dtype)
        near(x[0] @ y, left[0], right, dtype)
        near(x @ y[:, 0], left, right[:, 0], dtype)
    left, x = drawn(rng, (5, 2, 30, 40), dtype)
    right, y = drawn(rng, (2, 40, 20), dtype)
    near(x @ y, left, right, dtype)
    near(x[:, :1] @ y, left[:, :1], right, dtype)
    near(x[..., 0, :][..., None, :] @ y, left[..., 0, :][..., None, :], right, dtype)
    near(x @ y[0], left, right[0], dtype)
    functions = {text.split()[1].rstrip(",") for text in calls}
    assert {"gemm_ex", "gemm_strided_batched_ex"} <= functions
    assert any(function.endswith("gemv") for function in functions) == (dtype not in ("float16", "bfloat16"))


def test_kernels_multiply_without_the_library(without_library):
    check_products("cuda:0", 3, 40, 60)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_padded_copies(calls, dtype):
    """Of large products whose rows are not aligned, also in a graph; NaN stays in its row and column."""
    rng = np.random.default_rng(6)
    left, x = drawn(rng, (2047, 2051), dtype)
    right, y = drawn(rng, (2051, 2045), dtype)
    near(x @ y, left, right, dtype)
    near(y.T @ x.T, right.T, left.T, dtype)
    near(x[:, 1:2049] @ y[1:2049], left[:, 1:2049], right[1:2049], dtype)
    assert sum("padded copies" in text for text in calls) == 3
    wanted = ta.to_numpy(ta.astype(x @ y, "float64"))
    with ta.cuda.graph() as g:
        z = x @ y
    x[5, 7], y[9, 11] = float("nan"), float("inf")
    g.replay()
    found = ta.to_numpy(ta.astype(z, "float64"))
    assert np.isnan(found[5]).all()
    assert not np.isfinite(found[:, 11]).any()
    others = np.ix_(np.arange(2047) != 5, np.arange(2045) != 11)
    np.testing.assert_array_equal(found[others], wanted[others])


def test_special_values():
    """cuBLAS does not read the new memory of a result, which may hold NaN."""
    for dtype in DTYPES:
        for _ in range(3):
            ta.full((64, 64), float("nan"), dtype=dtype, device="cuda")
            assert ta.all(ta.ones((64, 64), dtype=dtype, device="cuda") @ ta.eye(64, dtype=dtype, device="cuda") == 1)
    x = ta.asarray([[1.0, np.inf], [np.nan, -1.0]], device="cuda")
    found = ta.to_numpy(x @ ta.asarray([[1.0, 2.0], [3.0, 0.0]], device="cuda"))
    np.testing.assert_array_equal(found, [[np.inf, np.nan], [np.nan, np.nan]])
    assert (ta.zeros((3, 0), device="cuda") @ ta.zeros((0, 4), device="cuda")).tolist() == np.zeros((3, 4)).tolist()
    assert (ta.zeros((0, 3), device="cuda") @ ta.zeros((3, 4), device="cuda")).shape == (0, 4)


def test_streams_and_threads():
    """More streams than keep handles, and threads that share a stream."""
    rng = np.random.default_rng(8)
    left, x = drawn(rng, (200, 300), "float32")
    right, y = drawn(rng, (300, 100), "float32")
    for stream in [ta.cuda.Stream() for _ in range(20)]:
        with ta.cuda.stream(stream):
            near(x @ y, left, right, "float32")
    wanted = ta.to_numpy(x @ y)

    def repeated(_: int) -> bool:
        return all(np.array_equal(ta.to_numpy(x @ y), wanted) for _ in range(30))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(repeated, range(16)))


def test_graphs():
    """A captured product reads what its operands hold at each replay, beside other products."""
    x = ta.ones((256, 2048), device="cuda")
    y = ta.ones((2048, 256), device="cuda")
    assert ta.all(x @ y == 2048)
    with ta.cuda.graph() as g:
        z = x @ y
        total = z @ z
    for value in (1.0, 2.0):
        x[...] = value
        other = x @ y
        g.replay()
        assert ta.all(z == 2048 * value)
        assert ta.all(other == 2048 * value)
        assert ta.all(total == 256 * (2048 * value) ** 2)


def test_the_same_bits_on_each_run():
    for dtype in DTYPES:
        rng = np.random.default_rng(2)
        (_, x), (_, y) = drawn(rng, (100, 30000), dtype), drawn(rng, (30000, 7), dtype)
        first = ta.to_numpy(x @ y).tobytes()
        assert all(ta.to_numpy(x @ y).tobytes() == first for _ in range(5))


@pytest.mark.whole_gpu
def test_long_strides():
    """Leading dimensions beyond 2**31 need the functions for 64 bits."""
    memory = ta.zeros(2**31 + 4096, dtype="float16", device="cuda")
    x = ta.as_strided(memory, (2, 1024), (2**31 + 1024, 1))
    x[...] = 1
    assert ta.all(x @ ta.ones((1024, 3), dtype="float16", device="cuda") == 1024)
    assert ta.all(ta.ones((3, 2), dtype="float16", device="cuda") @ x == 2)
