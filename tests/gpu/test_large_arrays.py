"""More than 2**31 elements: strided, broadcast and transposed; each element is compared with its formula."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.caches import KERNELS, RECIPES
from tilearray.geometry.loop import make_loop
from tilearray_cuda.kernels.schedules.choose import loop_class

N = 2**31
PLACES = np.array([0, 1, 2**16, 2**30 + 7, N - 2**10, N - 2, N - 1])


def pattern(size: int) -> ta.Array:
    """Return ``i % 251`` as uint8."""
    return (ta.arange(size, dtype="uint32" if size < 2**32 else "int64", device="cuda") % 251).astype("uint8")


@pytest.fixture(autouse=True)
def emptied():
    ta.cuda.empty_cache()
    yield
    ta.cuda.empty_cache()


def check(found: ta.Array, wanted, places: np.ndarray) -> None:
    for place in places.tolist():
        assert found.reshape(-1)[place].item() == wanted(place), place


@pytest.mark.whole_gpu
def test_every_second_element_of_a_contiguous_one():
    x = pattern(2 * N + 2)[::2]
    assert x.size == N + 1
    y = x + 1
    check(y, lambda i: (2 * i % 251 + 1) % 256, np.append(PLACES, N))
    y[::-1] += x
    check(y, lambda i: (2 * i % 251 + 1 + 2 * (N - i) % 251) % 256, np.append(PLACES, N))


@pytest.mark.whole_gpu
def test_a_small_first_operand_is_broadcast():
    rows, columns = 2**16 + 1, 2**15
    row = pattern(columns)
    matrix = pattern(rows * columns).reshape(rows, columns)
    y = row + matrix
    last = rows * columns - 1
    wanted = lambda i: (i % columns % 251 + i % 251) % 256  # noqa: E731
    check(y, wanted, np.append(PLACES, [last, last - 1, N + 12345]))
    column = pattern(rows).reshape(rows, 1)
    check(column - matrix, lambda i: (i // columns % 251 - i % 251) % 256, np.append(PLACES, [last, N + 12345]))
    one = ta.asarray(3, dtype="uint8", device="cuda")
    check(one * matrix, lambda i: 3 * (i % 251) % 256, np.append(PLACES, last))


@pytest.mark.whole_gpu
@pytest.mark.parametrize("rows", [2**15 - 1, 2**15 + 1])
def test_triangles_of_almost_and_of_more_than_as_many(rows: int):
    columns = 2**16
    y = ta.tril(pattern(rows * columns).reshape(rows, columns), k=5)
    inner = columns * np.array([0, 2, 12345, 30000, rows - 1]) + np.array([0, 8, 12350, 30005, rows + 4])
    last = rows * columns - 1
    check(y, lambda i: i % 251 * (i % columns <= i // columns + 5), np.concatenate([inner, inner + 1, [last]]))


@pytest.mark.whole_gpu
def test_transposed():
    rows, columns = 2**16 + 1, 2**15 + 1
    x = pattern(rows * columns).reshape(rows, columns)
    y = ta.add(x, pattern(rows * columns).reshape(columns, rows).T)
    last = rows * columns - 1
    wanted = lambda i: (i % 251 + (i % columns * rows + i // columns) % 251) % 256  # noqa: E731
    check(y, wanted, np.append(PLACES, [last, last - 1, N + 12345]))


@pytest.mark.whole_gpu
def test_outer_broadcast_of_two_small_operands():
    side = 46341  # its square exceeds 2**31
    x, y = pattern(side), pattern(side)
    z = x[:, None] + y
    check(z, lambda i: (i // side % 251 + i % side % 251) % 256, np.append(PLACES, side * side - 1))


def test_1000_shapes_compile_a_kernel_a_loop_class():
    rng = np.random.default_rng(5)
    RECIPES.clear()
    KERNELS.clear()
    classes = set()
    for _ in range(1000):
        shape = tuple(int(size) for size in rng.integers(1, 12, rng.integers(1, 5)))
        x = ta.zeros(shape, dtype="int32", device="cuda")
        y = ta.zeros(shape[::-1], dtype="int32", device="cuda")
        forms = [x, x[..., ::-1], x[..., :1], x[:1]]
        others = [y.transpose(), ta.zeros(shape, dtype="int32", device="cuda"), y.transpose()[..., :1]]
        a, b = forms[rng.integers(4)], others[rng.integers(3)]
        result = ta.add(a, b)
        layouts = [operand._signature.layout.broadcast_to(result.shape).strides for operand in (a, b)]
        classes.add(loop_class(make_loop(result.shape, [result.strides, *layouts])))
    adds = {key for key in [*KERNELS._young, *KERNELS._old] if any(node[0] == "call" for node in key[0].nodes)}
    assert {key[1] for key in adds} == classes
    alignments = len({key[2] for key in adds})
    assert len(adds) <= len(classes) * alignments
    assert len(classes) < 80
