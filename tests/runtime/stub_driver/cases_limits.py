"""Sizes that no GPU holds, and errors of the backend that `except ta.TileArrayError` catches."""

from __future__ import annotations

import pytest

import tilearray as ta
from tilearray_cuda.errors import CudaError, DeferredIndexError, NoDeviceError, OutOfMemoryError, UnavailableError


def test_memory_that_a_gpu_does_not_have_is_an_error_of_the_library(stub):
    with pytest.raises(ta.TileArrayError) as caught:
        ta.empty(2**60, dtype="uint8", device="cuda:0")
    assert isinstance(caught.value, OutOfMemoryError)
    assert isinstance(caught.value, MemoryError)
    for kind in (CudaError, UnavailableError, NoDeviceError, DeferredIndexError):
        assert issubclass(kind, ta.TileArrayError)
        assert issubclass(kind, RuntimeError)


def test_a_broadcast_that_a_gpu_does_not_hold(stub):
    x = ta.empty((), dtype="int8", device="cuda:0")
    with pytest.raises(ta.TileArrayError):
        ta.broadcast_to(x, (2**60, 4)) + 1


@pytest.mark.parametrize(
    "act",
    [
        lambda: ta.empty(2**62, device="cuda:0"),
        lambda: ta.empty(2**63, dtype="int8", device="cuda:0"),
        lambda: ta.empty((2**32, 2**32), device="cuda:0"),
        lambda: ta.empty((1,) * 65, device="cuda:0"),
        lambda: ta.empty((2**63, 0), device="cuda:0"),
        lambda: ta.empty((2**62, 4, 0), device="cuda:0"),
        lambda: ta.empty(1, device="cuda:0")[(None,) * 64],
        lambda: ta.expand_dims(ta.empty((1,) * 64, device="cuda:0"), axis=0),
        lambda: ta.broadcast_to(ta.empty(1, device="cuda:0"), (2**62, 4)),
        lambda: ta.eye(10**18, device="cuda:0"),
    ],
)
def test_no_array_of_a_gpu_is_beyond_what_the_host_can_hold(stub, act):
    used = stub.used()
    with pytest.raises(ta.ShapeError, match=r"expected .*; write"):
        act()
    assert stub.used() == used


def test_a_gpu_that_is_not_there_by_a_device_of_ones_own(stub):
    for device in (ta.Device("cuda", 17), "cuda:17"):
        with pytest.raises(ta.DeviceUnavailableError, match="empty: cuda:17: the NVIDIA driver offers 2 GPUs"):
            ta.empty(1, device=device)
