"""Matrix products through a library of the device: a stand-in of cuBLAS in NumPy checks the arguments of each call.

Everything else of the device runs on the host, so the layouts, copies, casts and stacks are those of a GPU.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles import products as oracle

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.engine.devices import Device
from tilearray.functions import device_products
from tilearray.functions.products import _CHECKED

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from support.fake_cublas import FakeGpu

from tilearray_cuda.libraries import cublas, gemm

TAKEN = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.fixture
def gpu(elsewhere: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device with a library, for which every operand is copied that it does not read."""
    elsewhere.backend = FakeGpu()  # type: ignore[assignment]
    monkeypatch.setattr(device_products, "LARGE", 0)
    monkeypatch.setattr(oracle, "NARROW", TAKEN)
    monkeypatch.setattr(oracle, "OTHERS", TAKEN)
    PLANS.clear()
    _CHECKED.clear()
    yield elsewhere
    PLANS.clear()
    _CHECKED.clear()


@pytest.mark.parametrize("seed", range(4))
def test_products_are_exact(gpu, seed):
    oracle.check_products(gpu, seed, 250, 40)
    calls = gpu.backend.products.library.calls
    assert {"gemm_ex", "gemm_strided_batched_ex"} < set(calls)
    assert len(calls) > 150


def test_einstein_sums_are_exact(gpu):
    oracle.check_einsums(gpu, 3, 150, TAKEN[2:])
    assert len(gpu.backend.products.library.calls) > 20


def test_einstein_sums_take_the_cheapest_pairs_first(gpu):
    """Of three matrices and a vector: three matrices times a vector, and no product of matrices."""
    rng = np.random.default_rng(8)
    given = [rng.integers(-3, 4, shape).astype("float64") for shape in ((9, 8), (8, 7), (7, 6), (6,))]
    found = ta.einsum("ij,jk,kl,l->i", *[ta.asarray(x, device=gpu) for x in given])
    assert found.tolist() == np.linalg.multi_dot(given).tolist()
    assert gpu.backend.products.library.calls == ["dgemv"] * 3


def test_other_products_are_within_the_bound_of_a_sum(gpu):
    oracle.check_rounding(gpu, 4)


def test_vectors_need_no_views(gpu):
    """Of a matrix and a vector of any positive stride: one call, with one plan for each pair of layouts."""
    x = ta.asarray(np.arange(12.0).reshape(3, 4), device=gpu)
    y = ta.asarray(np.arange(8.0), device=gpu)[::2]
    wanted = np.arange(12.0).reshape(3, 4) @ np.arange(8.0)[::2]
    assert (x @ y).tolist() == wanted.tolist()
    assert (y @ x.T).tolist() == wanted.tolist()
    assert gpu.backend.products.library.calls == ["dgemv", "dgemv"]


def test_stacks_that_share_a_matrix_are_one_matrix(gpu):
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(4, 5)
    a, b = ta.asarray(x, device=gpu), ta.asarray(y, device=gpu)
    assert (a @ b).tolist() == (x @ y).tolist()
    assert (b.T @ ta.permute_dims(a, (0, 2, 1))).tolist() == (y.T @ x.transpose(0, 2, 1)).tolist()
    assert gpu.backend.products.library.calls[0] == "gemm_ex"


def test_large_matrices_take_the_functions_for_64_bits(gpu, monkeypatch):
    monkeypatch.setattr(cublas, "MOST", 100)
    oracle.check_products(gpu, 9, 100, 40)
    assert {"gemm_ex_64", "gemm_strided_batched_ex_64"} <= set(gpu.backend.products.library.calls)


def test_sums_of_products_are_reductions(gpu):
    x = ta.asarray([1.0, 2.0, 3.0], device=gpu)
    assert (x @ x).item() == 14
    assert gpu.backend.products.library.calls == []


def test_operands_of_two_dtypes_are_cast(gpu):
    x = ta.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float32", device=gpu)
    assert (x @ x.astype("float16")).tolist() == [[7, 10], [15, 22]]
    assert (x @ x.astype("complex64")).tolist() == [[7, 10], [15, 22]]
    assert gpu.backend.products.library.calls == ["gemm_ex", "gemm_ex"]


def test_small_products_of_other_layouts_are_kernels(gpu, monkeypatch):
    monkeypatch.setattr(device_products, "LARGE", 2**27)
    x = ta.asarray(np.ones((4, 4), "float32"), device=gpu)
    products = gpu.backend.products
    assert device_products.whole("matmul", x, x, x.dtype) is not None
    assert device_products.whole("matmul", x, x[::-1], x.dtype) is not None  # by a kernel
    assert device_products._by_library("matmul", x, x[::-1], x.dtype) is None
    assert device_products._by_library("matmul", x[::-1, ::2], x[::2], x.dtype) is None
    assert products.library.calls == []


def test_the_plan_of_any_readable_product_is_kept(gpu, monkeypatch):
    """Also that of a kernel which is preferred to the library, for matrices of any size."""
    monkeypatch.setattr(device_products, "LARGE", 2**12)
    products = gpu.backend.products
    monkeypatch.setattr(products, "is_small", functools.partial(cublas.Products.is_small, products))
    monkeypatch.setattr(cublas, "SMALL", {name: work // 2**14 for name, work in cublas.SMALL.items()})
    for rows, dtype, small in ((16, "float32", True), (64, "float32", False), (16, "float64", False)):
        x = ta.zeros((rows, 16), dtype=dtype, device=gpu)
        y = ta.zeros((16, 16), dtype=dtype, device=gpu)
        assert products.is_small(x.dtype, rows, 16, 16) == small
        assert device_products.whole("matmul", x, y, x.dtype) is not None
    assert device_products.whole("matmul", x, y[::-1], x.dtype) is None  # of which a copy is made first


def test_long_sums_of_few_results_are_no_small_products(gpu):
    is_small = functools.partial(cublas.Products.is_small, gpu.backend.products, np.dtype("float32"))
    assert is_small(64, 1024, 64)
    assert not is_small(64, 1025, 64)
    assert is_small(16, 1500, 1600)
    assert not is_small(2, 100_000, 2)


AXES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.lists(st.integers(1, 3), max_size=3))
def test_the_arguments_describe_the_product(data, rows, columns, depth, stack):
    """For strides of any memory: each element of each call is read and written where the strides say."""
    sizes = {"a": (rows, depth), "b": (depth, columns)}
    arrays = {}
    for name, (down, across) in sizes.items():
        shared = [data.draw(st.booleans()) for _ in stack]
        shape = [1 if one else size for one, size in zip(shared, stack, strict=True)]
        if data.draw(st.booleans()):
            memory = np.arange(np.prod([*shape, across, down + 1])).reshape(*shape, across, down + 1)
            whole = np.swapaxes(memory[..., :down], -1, -2)
        else:
            memory = np.arange(np.prod([*shape, down, across + 2])).reshape(*shape, down, across + 2)
            whole = memory[..., :across]
        arrays[name] = memory, np.broadcast_to(whole, (*stack, down, across))
    out = np.zeros((*stack, rows, columns), np.int64)
    strides = {name: tuple(step // 8 for step in view.strides) for name, (_, view) in arrays.items()}
    c = tuple(step // 8 for step in out.strides)
    axes = list(zip(c, strides["a"], strides["b"], stack))
    product = gemm.product_of(axes, (rows, columns, depth), c[-2:], strides["a"][-2:], strides["b"][-2:])
    m, n, k = product.sizes
    flat = out.reshape(-1)
    first, second = ("b", "a") if product.swapped else ("a", "b")
    for offset_c, *offsets in product.offsets:
        offset_a, offset_b = offsets[::-1] if product.swapped else offsets
        for count in range(product.matrices):
            step_a, step_b, step_c = [count * step for step in product.steps]
            lda, ldb, ldc = product.pitches
            memory_a, memory_b = arrays[first][0].ravel(), arrays[second][0].ravel()
            for i, j in itertools.product(range(m), range(n)):
                total = 0
                for at in range(k):
                    place_a = at + i * lda if product.transposed[0] else i + at * lda
                    place_b = j + at * ldb if product.transposed[1] else at + j * ldb
                    total += memory_a[offset_a + step_a + place_a] * memory_b[offset_b + step_b + place_b]
                flat[offset_c + step_c + i + j * ldc] += total
    assert (out == arrays["a"][1] @ arrays["b"][1]).all()
