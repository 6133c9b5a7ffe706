"""Pickles: buffers out of band without a copy, aligned and writable arrays, functions made by `fuse`."""

from __future__ import annotations

import pickle

import pytest

import tilearray as ta
from tilearray import dtypes


@ta.fuse
def fused(x):
    return x * 2 + 1


def double(x):
    return x * 2


@pytest.mark.parametrize("name", [dtype.name for dtype in dtypes.ALL])
@pytest.mark.parametrize("transposed", [False, True])
def test_protocol_5_lends_the_memory_of_every_dtype(name, transposed):
    x = ta.zeros((50, 40), dtype=name)
    x = x.T if transposed else x
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(data) < 300
    back = pickle.loads(data, buffers=buffers)
    assert (back.dtype, back.shape, back.strides) == (x.dtype, x.shape, x.strides)
    assert ta.may_share_memory(back, x)


def test_buffers_that_cannot_be_written_or_lie_unaligned_are_copied():
    x = ta.arange(5, dtype="complex128")
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    content = memoryview(buffers[0]).tobytes()
    unaligned = memoryview(bytearray(b"." * 9 + content))[9:]
    for given in (content, unaligned):
        back = pickle.loads(data, buffers=[given])
        back[0] = 7
        assert back.tolist() == [7, 1, 2, 3, 4]


def test_device_arrays_come_back_to_their_device(elsewhere):
    x = ta.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="bfloat16", device="cuda:7654321").T
    back = pickle.loads(pickle.dumps(x))
    assert (back.device, back.dtype) == (x.device, x.dtype)
    assert back.to_device("cpu").tolist() == [[1, 3], [2, 4]]


def test_fused_functions_are_pickled_by_name_or_by_their_parts():
    assert pickle.loads(pickle.dumps(fused)) is fused
    made = ta.fuse(double, contract=True)
    made(ta.asarray([1, 2]))
    back = pickle.loads(pickle.dumps(made))
    assert (back.function, back.contract, back.traces) == (double, True, 0)
    assert back(ta.asarray([1, 2])).tolist() == [2, 4]
