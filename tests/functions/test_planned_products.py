"""Products that are found again by the words of a call: on a device with a library in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.changing_semantics import dtypes_after_changes

import tilearray as ta
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import Device
from tilearray.engine.watch import WATCH
from tilearray.functions import device_einsum, device_products, planned_products

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from support.fake_cublas import FakeGpu

from tilearray_cuda.libraries import cublas

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "matmul": lambda m, x, y: m.matmul(x, y),
    "dot": lambda m, x, y: m.dot(x, y),
    "inner": lambda m, x, y: m.inner(x, y),
    "tensordot": lambda m, x, y: m.tensordot(x, y, axes=1),
    "tensordot of pairs": lambda m, x, y: m.tensordot(x, y, axes=((0, 1), (0, 1))),
    "copied pairs": lambda m, x, y: m.tensordot(x, y, axes=((0, 1), (1, 0))),
    "outer": lambda m, x, y: m.tensordot(x, y, axes=0),
    "product": lambda m, x, y: m.einsum("ij,jk->ik", x, y),
    "transposed product": lambda m, x, y: m.einsum("ij,jk", x, y.T).T,
    "rows": lambda m, x, y: m.einsum("ij,ij->i", x, y),
    "whole": lambda m, x, y: m.einsum("ij,ij->", x, y),
    "row": lambda m, x, y: m.einsum("j,jk->k", x[0], y),
    "column": lambda m, x, y: m.einsum("ij,j->i", x, y[:, 0]),
    "diagonal": lambda m, x, y: m.einsum("ii,ij->j", x, y),
    "sum of one": lambda m, x, y: m.einsum("ij->j", x),
    "sum over the last axis": lambda m, x, y: m.einsum("ij->i", y),
    "trace": lambda m, x, y: m.einsum("ii->", x),
    "transposed sum": lambda m, x, y: m.einsum("kij->ji", x[None]),
    "no sum": lambda m, x, y: m.einsum("ij->ji", x),
    "vectors": lambda m, x, y: m.inner(x[0], y[1]),
    "row by matrix": lambda m, x, y: m.matmul(x[0], y),
}


@pytest.fixture
def gpu(elsewhere: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device whose library takes small products as well."""
    monkeypatch.setattr(cublas, "SMALL", {})
    elsewhere.backend = FakeGpu()  # type: ignore[assignment]
    return elsewhere


@pytest.fixture
def multiplications(gpu, monkeypatch) -> list[str]:
    """The names of the products that are not planned yet, as they run."""
    found: list[str] = []
    multiplied = device_products.multiplied

    def noted(function: str, *rest: Any) -> Any:
        found.append(function)
        return multiplied(function, *rest)

    monkeypatch.setattr(planned_products, "_KNOWN", TwoGenerations(64))
    for module in (device_products, device_einsum):
        monkeypatch.setattr(module, "multiplied", noted)
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", CALLS)
def test_later_calls_have_the_results_of_the_first(gpu, multiplications, name, dtype):
    """Whatever the layout and the place in memory; arrays of another signature are multiplied anew."""
    rng = np.random.default_rng(3)
    host = rng.integers(-5, 5, (2, 9, 9)).astype("float32")
    memory = ta.asarray(host, device=gpu).astype(dtype)
    layouts: list[Callable[[Any], Any]] = [
        lambda x: x[:4, :4],
        lambda x: x[4:8, 4:8],
        lambda x: x[:4, :4].T,
    ]
    for first, second in itertools.product(layouts, layouts):
        operands = [layout(memory[place]) for place, layout in enumerate((first, second))]
        wanted = CALLS[name](np, *[layout(host[place]) for place, layout in enumerate((first, second))])
        for _ in range(3):
            found = CALLS[name](ta, *operands)
            assert found.dtype.name == dtype
            np.testing.assert_array_equal(ta.to_numpy(found).astype("complex64"), wanted)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "copied pairs"])
def test_a_product_is_planned_once(gpu, multiplications, name):
    x, y = (ta.ones((4, 4), device=gpu) * number for number in (2, 3))
    results = [CALLS[name](ta, x, y) for _ in range(4)]
    assert len(multiplications) <= 1
    assert len({id(each._buffer) for each in results}) == 4


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
def test_products_of_elements_are_one_launch_without_the_library(gpu, multiplications, monkeypatch, dtype):
    """Nothing is summed over: broadcast views are multiplied."""
    made: list[Any] = []
    monkeypatch.setattr(WATCH, "plan", lambda plan, keys: made.append(keys))
    host = np.arange(12).reshape(3, 4).astype(dtype)
    x = ta.asarray(host, device=gpu)
    for text in ("bi,bj->bij", "bi,bj->jbi", "ij,ij->ji", "ij,jk->kij", "ai,bj->abij"):
        other = host.T if text == "ij,jk->kij" else host
        made.clear()
        found = ta.einsum(text, x, ta.asarray(other, device=gpu))
        np.testing.assert_array_equal(ta.to_numpy(found), np.einsum(text, host, other))
        assert len(made) == 1, text
    np.testing.assert_array_equal(ta.to_numpy(ta.tensordot(x, x, axes=0)), np.tensordot(host, host, axes=0))
    assert multiplications == []


@pytest.mark.parametrize("name", ["matmul", "dot", "inner"])
def test_a_product_of_vectors_is_a_sum_over_both_as_they_lie(gpu, multiplications, monkeypatch, name):
    """Of every length, one plan and no view of an operand; complex vectors are conjugated first."""
    made: list[Any] = []
    monkeypatch.setattr(WATCH, "plan", lambda plan, keys: made.append(keys))
    for size in range(1, 40):
        host = np.arange(float(size)), 1.0 + np.arange(2.0 * size)[::-2]
        x, y = (ta.asarray(each, device=gpu) for each in host)
        for _ in range(2):
            assert CALLS[name](ta, x, y).item() == np.dot(*host)
        assert [keys == [x._signature, y._signature] for keys in made] == [True]
        made.clear()
    pair = ta.asarray([1j, 2], device=gpu)
    assert CALLS[name](ta, pair, pair).item() == 3
    assert CALLS[name](ta, pair[:0], pair[:0]).item() == 0
    assert len(made) == 4  # two conjugates, a product, and the zero of an empty one
    assert multiplications == []


@pytest.mark.parametrize("name", ["inner", "vectors", "row", "row by matrix", "column", "whole"])
def test_complex_operands_are_conjugated_once_in_a_call(gpu, monkeypatch, name):
    """The conjugate is a copy, so the product is not remembered."""
    found: list[Any] = []
    conj = device_products.conj
    monkeypatch.setattr(device_products, "conj", lambda x: found.append(x) or conj(x))
    monkeypatch.setattr(planned_products, "_KNOWN", TwoGenerations(64))
    x, y = (ta.ones((4, 4), dtype="complex64", device=gpu) for _ in range(2))
    for number in (1, 2):
        CALLS[name](ta, x, y)
        assert len(found) <= number


@pytest.mark.parametrize("name", ["row by matrix", "column", "whole", "vectors"])
def test_complex_products_are_the_hosts_in_semantics_that_do_not_compute_with_complex_numbers(gpu, name):
    host = [ta.asarray([[1, 2j], [3, 4 + 1j]], dtype="complex64", device="cpu") for _ in range(2)]
    with ta.semantics("cutile"):
        found, wanted = (CALLS[name](ta, *[x.to_device(device) for x in host]) for device in (gpu, "cpu"))
    assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())


@pytest.mark.parametrize("subscripts", ["ij->j", "ij->", "ii->", "ij"])
def test_a_sum_over_axes_of_one_operand_is_planned_once(gpu, monkeypatch, subscripts):
    found: list[str] = []
    einsum = device_einsum.einsum
    monkeypatch.setattr(planned_products, "_KNOWN", TwoGenerations(64))
    monkeypatch.setattr(device_einsum, "einsum", lambda *given: found.append(given[0]) or einsum(*given))
    x = ta.reshape(ta.arange(9.0, device=gpu), (3, 3))
    results = [ta.einsum(subscripts, x + number) for number in range(3)]
    assert len(found) == (3 if subscripts == "ij" else 1)
    for number, each in enumerate(results):
        np.testing.assert_array_equal(ta.to_numpy(each), np.einsum(subscripts, np.arange(9.0).reshape(3, 3) + number))


def test_words_that_are_equal_but_read_differently_are_other_words(gpu):
    x = ta.ones((2, 2), device=gpu)
    assert ta.tensordot(x, x, axes=1).shape == (2, 2)
    assert ta.tensordot(x, x, axes=((1,), (0,))).shape == (2, 2)
    for axes in (1.0, ((1.0,), (0,))):
        with pytest.raises(ta.TileArrayError):
            ta.tensordot(x, x, axes=axes)


def test_semantics_have_their_own_plans(gpu):
    x, y = ta.ones((2, 2), device=gpu, dtype="int32"), ta.ones((2, 2), device=gpu, dtype="float32")
    dtypes = []
    for semantics in ("array-api", "numpy", "array-api"):
        with ta.semantics(semantics):
            dtypes.append([ta.einsum("ij,jk->ik", x, y).dtype.name for _ in range(2)])
    assert dtypes == [["float32"] * 2, ["float64"] * 2, ["float32"] * 2]


@pytest.mark.parametrize("name", ["vectors", "row by matrix", "tensordot of pairs"])
def test_products_are_not_remembered_while_another_thread_changes_the_semantics(gpu, name):
    sizes = iter(range(3, 10**6))

    def operands() -> tuple[Any, Any]:
        shape = (next(sizes),) * 2
        return ta.ones(shape, dtype="int8", device=gpu), ta.ones(shape, dtype="uint8", device=gpu)

    assert dtypes_after_changes(partial(CALLS[name], ta), operands) == {("int16", "uint8")}


def test_recorded_and_followed_products_are_not_planned(gpu, multiplications):
    x = ta.ones((2, 2), device=gpu)
    planned = [ta.einsum("ij,ij->", x, x) for _ in range(2)]
    with ta.lazy():
        pending = x + 1
        lazily = [ta.einsum("ij,ij->", pending, x) for _ in range(2)]
    assert [each.tolist() for each in planned + lazily] == [4, 4, 8, 8]
    for _ in range(2):
        assert ta.grad(lambda x: ta.einsum("ij,ij->", x, x))(x).tolist() == [[2, 2]] * 2
