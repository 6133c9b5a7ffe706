"""GPU memory of torch and CuPy, both ways, without a copy."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

torch = pytest.importorskip("torch", reason="torch is not installed")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

VIEWS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[1:, 2::3],
    "row": lambda x: x[3],
    "empty": lambda x: x[:0],
}
DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_from_cupy_and_back(name: str, dtype: str) -> None:
    source = VIEWS[name](cupy.arange(120).reshape(8, 15).astype(dtype))
    array = ta.asarray(source)
    assert (array.device, array.dtype) == ("cuda:0", source.dtype)
    np.testing.assert_array_equal(ta.to_numpy(array), source.get())
    back = cupy.asarray(array)
    if source.size:
        assert array._address == source.data.ptr == back.data.ptr
        array[...] = 1
        assert [bool((x == 1).all()) for x in (source, back)] == [True, True]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_from_torch_and_back(name: str, dtype: str) -> None:
    source = VIEWS[name](torch.arange(120, device="cuda").reshape(8, 15).to(getattr(torch, dtype)))
    array = ta.asarray(source)
    np.testing.assert_array_equal(ta.to_numpy(array), source.cpu().numpy())
    back = torch.as_tensor(array, device="cuda")
    if source.numel():
        assert array._address == source.data_ptr() == back.data_ptr()
        array[...] = 1
        assert [bool((x == 1).all()) for x in (source, back)] == [True, True]


def test_an_import_keeps_its_producer_alive() -> None:
    array = ta.asarray(cupy.full(1000, 7, dtype="float32"))
    trash = [cupy.zeros(1000, dtype="float32") for _ in range(20)]
    assert len(trash) == 20
    assert array.tolist() == [7.0] * 1000


def test_mixed_expression() -> None:
    x = ta.asarray(torch.ones(3, 4, device="cuda")) * 2 + ta.asarray(cupy.arange(12, dtype="float32").reshape(4, 3)).T
    assert x.tolist() == (2 + np.arange(12).reshape(4, 3).T).tolist()


def test_malformed_interfaces() -> None:
    class Fake:
        def __init__(self, **changes: object) -> None:
            self.__cuda_array_interface__ = {**cupy.zeros(3).__cuda_array_interface__, **changes}

    for changes, message in [
        ({"shape": None}, "malformed"),
        ({"typestr": "<q9"}, "malformed"),
        ({"shape": (-1,)}, "expected sizes >= 0"),
        ({"mask": object()}, "mask"),
        ({"strides": (8, 8)}, "one stride"),
        ({"strides": (3,)}, "multiples of the itemsize"),
        ({"data": (0, False)}, r"expected data for the shape \(3,\), got a null pointer"),
    ]:
        with pytest.raises(ta.TileArrayError, match=message):
            ta.asarray(Fake(**changes))
