"""Arrays on the GPU, from creation to the copy to the host, on every layout case; NumPy is the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilearray as ta

DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 60, shape)
    return values.astype(dtype) if dtype != "bool" else values % 2 == 0


VIEWS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "rows sliced": lambda x: x[1::3],
    "columns sliced": lambda x: x[:, 1:],
    "columns stepped": lambda x: x[:, ::2],
    "flipped": lambda x: x[::-1, ::-1],
    "columns flipped": lambda x: x[:, ::-1],
    "row": lambda x: x[2],
    "column": lambda x: x[:, 3:4],
    "element": lambda x: x[4, 5],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_views_survive_the_way_there_and_back(name: str, dtype: str) -> None:
    host = data((40, 70), dtype)
    array = VIEWS[name](ta.asarray(host, device="cuda"))
    assert array.device == "cuda:0"
    np.testing.assert_array_equal(ta.to_numpy(array), VIEWS[name](host))
    np.testing.assert_array_equal(ta.to_numpy(array.copy()), VIEWS[name](host))


@pytest.mark.parametrize("shape", [(64, 64), (33, 65), (1024, 1024), (1000, 1030), (3, 4000), (4000, 3)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
def test_add_on_every_pair_of_layouts(shape: tuple[int, int], dtype: str) -> None:
    a, b = data(shape, dtype, 1), data(shape, dtype, 2)
    square = (min(shape), min(shape))
    forms = {
        "plain": lambda x: x[: square[0], : square[1]],
        "transposed": lambda x: x[: square[0], : square[1]].T,
        "flipped": lambda x: x[: square[0], : square[1]][:, ::-1],
        "row": lambda x: x[1, : square[1]],
        "column": lambda x: x[: square[0], 1:2],
        "element": lambda x: x[0, 0],
        "shifted": lambda x: x.reshape(-1)[1 : square[0] * square[1] - square[0] + 1].reshape(square[0] - 1, square[1]),
    }
    x, y = ta.asarray(a, device="cuda"), ta.asarray(b, device="cuda")
    for first, second in itertools.product(forms, forms):
        if "shifted" in (first, second) and first != second:
            continue
        got = forms[first](x) + forms[second](y)
        np.testing.assert_array_equal(ta.to_numpy(got), forms[first](a) + forms[second](b), f"{first} + {second}")


def test_permuted_and_broadcast_in_four_dimensions() -> None:
    a, b = data((6, 7, 8, 9), "float32", 1), data((9, 6, 7, 8), "float32", 2)
    x, y = ta.asarray(a, device="cuda"), ta.asarray(b, device="cuda")
    np.testing.assert_array_equal(ta.to_numpy(x + ta.permute_dims(y, (1, 2, 3, 0))), a + b.transpose(1, 2, 3, 0))
    np.testing.assert_array_equal(
        ta.to_numpy(x[:, :1] * y[0, :, :, :1][..., 0][:, :, None, None]),
        a[:, :1] * b[0, :, :, :1][..., 0][:, :, None, None],
    )
    c = ta.permute_dims(x, (3, 1, 0, 2)) + ta.permute_dims(x, (3, 1, 0, 2))[::-1]
    np.testing.assert_array_equal(ta.to_numpy(c), a.transpose(3, 1, 0, 2) + a.transpose(3, 1, 0, 2)[::-1])


def test_writes_through_views_and_overlap() -> None:
    host = data((50, 60), "float32")
    array = ta.asarray(host, device="cuda")
    for target in (host, array):
        target[::2, 1::3] = 7
        target[1:] += target[:-1].copy() if target is host else target[:-1]
        target[:, 5] = target[:, 6] * 2
    np.testing.assert_array_equal(ta.to_numpy(array), host)


def test_scalars_items_and_text() -> None:
    x = ta.arange(12, device="cuda").reshape(3, 4)
    assert repr(x * 2).startswith("Array(")
    assert "cuda:0" in repr(x)
    assert [int(x[1, 2]), float(x[2, 3] / 2), bool(x[0, 1] == 1)] == [6, 5.5, True]
    assert (x % 5).tolist() == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4, 0, 1]]
    with pytest.raises(ta.ImplicitTransferError, match=r"ta\.to_numpy"):
        np.asarray(x)
    with pytest.raises(ta.DeviceError, match="cuda:0 and on cpu"):
        x + ta.arange(4, device="cpu")


@pytest.mark.whole_gpu
def test_more_than_two_to_the_31_elements() -> None:
    n = 2**31 + 3
    x = ta.zeros(n, dtype="int8", device="cuda")
    x[-2:] = 5
    y = x + ta.ones(1, dtype="int8", device="cuda")
    assert [*y[-3:].tolist(), *y[:2].tolist()] == [1, 6, 6, 1, 1]
    z = x[::-1]
    assert z[:3].tolist() == [5, 5, 0]
    w = z + x
    assert [*w[:3].tolist(), *w[-3:].tolist()] == [5, 5, 0, 0, 5, 5]
