"""Products of copies whose rows are aligned: on a device with a library in NumPy, whose new memory holds NaN."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.commands.explain_plan import planned
from tilearray.engine.caches import PLANS
from tilearray.engine.devices import Device
from tilearray.functions import device_products

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from support.fake_cublas import FakeGpu

from tilearray_cuda.libraries import cublas, gemm

Shape = tuple[int, int]
SIZES = (24, 25, 31, 40)
LAYOUTS: dict[str, tuple[Callable[[int, int], Shape], Callable[[Any], Any]]] = {
    "dense": (lambda rows, columns: (rows, columns), lambda x: x),
    "transposed": (lambda rows, columns: (columns, rows), lambda x: x.T),
    "from the second column": (lambda rows, columns: (rows, columns + 1), lambda x: x[:, 1:]),
    "from the second row": (lambda rows, columns: (rows + 1, columns), lambda x: x[1:]),
    "transposed from the second column": (lambda rows, columns: (columns, rows + 1), lambda x: x[:, 1:].T),
    "in rows of 64": (lambda rows, _: (rows, 64), lambda x: x[:, 16:]),
}
"""The shape of the memory of a matrix, and the matrix, of which the first columns count."""


@pytest.fixture
def gpu(elsewhere: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device whose library gets copies of all matrices that are not aligned."""
    elsewhere.backend = FakeGpu()  # type: ignore[assignment]
    for name in ("LAUNCH", "BYTE"):
        monkeypatch.setattr(cublas, name, 0)
    monkeypatch.setattr(device_products, "LARGE", 0)
    PLANS.clear()
    yield elsewhere
    PLANS.clear()


@pytest.fixture
def library(gpu) -> Any:
    """The library of the device."""
    return gpu.backend.products.library


@pytest.fixture
def allocated(gpu, monkeypatch) -> list[int]:
    """The bytes of each allocation."""
    found: list[int] = []
    allocate = gpu.backend.allocate

    def noted(nbytes: int, stream: Any = None) -> Any:
        found.append(nbytes)
        return allocate(nbytes, stream)

    monkeypatch.setattr(gpu.backend, "allocate", noted)
    return found


def drawn(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Small integers, of which all sums of up to 64 products are exact in 16 bits."""
    return np.random.default_rng(seed).integers(-2, 2, shape).astype("float32")


def on(device: Device, x: np.ndarray, dtype: str = "bfloat16") -> Any:
    """A dense array on a device."""
    return ta.asarray(x, device=device).astype(dtype)


def placed(device: Device, seed: int, layout: str, shape: Shape, dtype: str) -> tuple[np.ndarray, Any]:
    """A matrix in a layout, on the host and on a device."""
    memory_of, view = LAYOUTS[layout]
    memory = drawn(seed, memory_of(*shape))
    return view(memory)[:, : shape[1]], view(on(device, memory, dtype))[:, : shape[1]]


def check(found: Any, wanted: np.ndarray) -> None:
    """All elements are equal, NaN as well."""
    np.testing.assert_array_equal(ta.to_numpy(found.astype("float32")), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_all_sizes_and_layouts_are_exact_and_aligned(gpu, library, dtype):
    for seed, (rows, depth, columns) in enumerate(itertools.product(SIZES, repeat=3)):
        for first, second in itertools.islice(itertools.product(LAYOUTS, repeat=2), seed % 4, None, 4):
            left, x = placed(gpu, seed, first, (rows, depth), dtype)
            right, y = placed(gpu, seed + 1, second, (depth, columns), dtype)
            check(x @ y, left @ right)
            assert library.alignments.pop() >= 16, (rows, depth, columns, first, second)
            assert not library.alignments
    assert set(library.calls) == {"gemm_ex"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_matrices_of_other_dtypes_are_multiplied_as_they_lie(gpu, library, allocated, dtype):
    left, right = drawn(1, (25, 31)), drawn(2, (31, 33))
    x, y = on(gpu, left, dtype), on(gpu, right, dtype)
    allocated.clear()
    found = x @ y
    assert allocated == [found.nbytes]
    assert ta.to_numpy(found).tolist() == (left @ right).tolist()


def test_only_what_is_not_aligned_is_copied(gpu, library, allocated):
    """With the bytes of the copies, and last of the result: rows of copies are multiples of 128 bytes."""
    x, odd = on(gpu, drawn(1, (64, 64))), on(gpu, drawn(2, (64, 65)))
    cases = (
        (x, x, [64 * 128]),
        (x.T, x.T, [64 * 128]),
        (x[:, :40], x[:40], [64 * 128]),
        (x[:40], x, [40 * 128]),
        (x[:25], x, [25 * 128]),
        (odd[:, 1:], x, [64 * 128, 64 * 128]),
        (x, odd[:, 1:], [64 * 128, 64 * 128]),
        (x[:, 8:48], odd[:40, 1:], [40 * 128, 64 * 128]),
        (x[:, 1:], x[1:], [63 * 128, 64 * 128]),
        (x, odd, [64 * 256, 64 * 256, 64 * 65 * 2]),
        (odd, odd.T, [65 * 128, 65 * 128, 64 * 128]),
    )
    for left, right, wanted in cases:
        allocated.clear()
        found = left @ right
        assert (allocated, library.alignments.pop() >= 16) == (wanted, True), (left.shape, right.shape)
        check(found, ta.to_numpy(left.astype("float32")) @ ta.to_numpy(right.astype("float32")))


def test_an_odd_matrix_is_transposed_if_it_then_needs_no_copy_of_the_result(gpu, library, allocated):
    """One that is dense along its odd number of rows, of an aligned number of columns."""
    left, right = drawn(1, (40, 25)), drawn(2, (40, 48))
    x, y = on(gpu, left).T, on(gpu, right)
    allocated.clear()
    found = x @ y
    assert allocated == [25 * 128, 25 * 48 * 2]
    assert library.alignments.pop() >= 16
    check(found, left.T @ right)


def test_nan_and_infinity_stay_in_their_rows_and_columns(gpu, library):
    """Also beside the memory that nobody writes, which holds NaN."""
    for first, second in itertools.product(LAYOUTS, repeat=2):
        left, x = placed(gpu, 3, first, (25, 31), "bfloat16")
        right, y = placed(gpu, 4, second, (31, 33), "bfloat16")
        for host, array, place, value in (
            (left, x, (24, left.shape[1] - 1), np.inf),
            (left, x, (0, 0), np.nan),
            (right, y, (5, 32), -np.inf),
        ):
            host[place] = value
            array[place] = value
        with np.errstate(invalid="ignore"):
            wanted = left @ right
        assert np.isfinite(wanted).sum() == 23 * 32
        check(x @ y, wanted)
        assert library.alignments.pop() >= 16


def test_products_without_elements_and_vectors_are_not_padded(gpu, library, allocated):
    x, v = on(gpu, drawn(1, (25, 31))), on(gpu, drawn(2, (31,)))
    allocated.clear()
    check(x @ v, drawn(1, (25, 31)) @ drawn(2, (31,)))
    check(v @ x.T, drawn(1, (25, 31)) @ drawn(2, (31,)))
    assert max(allocated) == 25 * 4  # of `check`
    assert (x[:0] @ x.T).shape == (0, 25)
    assert (x[:, :0] @ x.T[:0]).tolist() == [[0] * 25] * 25
    assert (x @ x.T[:, :0]).shape == (25, 0)


def test_targets(gpu, library):
    left, right = drawn(1, (25, 31)), drawn(2, (31, 31))
    x, y = on(gpu, left), on(gpu, right)
    out = ta.zeros((30, 40), dtype="bfloat16", device=gpu)
    assert ta.matmul(x, y, out=out[2:27, 3:34]) is not None
    wanted = np.zeros((30, 40), "float32")
    wanted[2:27, 3:34] = left @ right
    check(out, wanted)
    x @= y
    check(x, left @ right)
    assert min(library.alignments) >= 16


def test_stacks_that_are_one_matrix_are_padded(gpu, library):
    """Others are multiplied as they lie."""
    left, right = drawn(1, (3, 5, 15)), drawn(2, (15, 7))
    check(on(gpu, left) @ on(gpu, right), left @ right)
    assert (library.calls, library.alignments.pop() >= 16) == (["gemm_ex"], True)
    both = drawn(3, (3, 15, 7))
    check(on(gpu, left) @ on(gpu, both), left @ both)
    assert library.calls == ["gemm_ex", "gemm_strided_batched_ex"]


def test_functions_of_products_are_padded_in_first_and_later_calls(gpu, library):
    left, right = drawn(1, (25, 31)), drawn(2, (31, 33))
    x, y = on(gpu, left), on(gpu, right)
    wanted = left @ right
    for _ in range(2):
        check(ta.einsum("ij,jk->ik", x, y), wanted)
        check(ta.einsum("ij,jk->ki", x, y), wanted.T)
        check(ta.tensordot(x, y, axes=1), wanted)
        check(ta.inner(x, y.T), wanted)
        check(ta.dot(x, y), wanted)
        with ta.lazy():
            pending = (x + x) @ y
        check(pending, 2 * wanted)
    assert library.calls == ["gemm_ex"] * 12
    assert min(library.alignments) >= 16


def test_gradients_are_padded(gpu, library):
    left, right = drawn(1, (25, 31)), drawn(2, (31, 33))
    found = ta.grad(lambda x, y: ta.sum((x @ y).astype("float32")), (0, 1))(on(gpu, left), on(gpu, right))
    ones = np.ones((25, 33), "float32")
    check(found[0], ones @ right.T)
    check(found[1], left.T @ ones)
    assert (len(library.calls), min(library.alignments) >= 16) == (3, True)


def test_the_result_may_have_the_memory_of_the_copies(gpu, monkeypatch):
    """Copies of operands are dropped before the result is made."""
    x, y = on(gpu, drawn(1, (25, 31))), on(gpu, drawn(2, (31, 33)))
    made: list[Any] = []
    alive: list[int] = []
    allocate = gpu.backend.allocate

    def noted(nbytes: int, stream: Any = None) -> Any:
        alive.append(sum(each() is not None for each in made))
        buffer = allocate(nbytes, stream)
        made.append(weakref.ref(buffer.memory))
        return buffer

    monkeypatch.setattr(gpu.backend, "allocate", noted)
    found = x @ y
    assert alive == [0, 1, 2, 1]
    assert found.nbytes == 25 * 33 * 2


def test_copies_are_made_where_they_are_worth_it():
    """With the figures of the GPU on which they were measured: for large products, and not for those with few rows."""
    dtype = np.dtype("float16")

    def copied(rows: int, depth: int, columns: int) -> int:
        strides = (columns, 1), (depth, 1), (columns, 1)
        _, copies = cublas.padded(gemm.product_of((), (rows, columns, depth), *strides), dtype, (True, True))
        return sum(copy is not None for copy in copies)

    assert [copied(n, n, n) for n in (63, 255, 1023, 2047, 4095)] == [0, 0, 0, 3, 3]
    assert [copied(n, n, n) for n in (64, 4096)] == [0, 0]
    assert copied(4096, 4095, 4096) == 1
    assert copied(16, 4095, 4095) == 0


def test_the_call_names_its_copies(gpu):
    x = on(gpu, drawn(1, (24, 31)))
    y = on(gpu, drawn(2, (31, 32)))
    _, plans = planned(lambda: x @ y)
    (text,) = [plan.kernel.text for plan in plans if plan.operation.name == "matmul"]
    assert text == "cuBLAS: gemm_ex, sizes (32, 24, 31), padded copies of x1"
