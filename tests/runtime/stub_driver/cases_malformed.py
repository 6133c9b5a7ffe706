"""Random faults in CUDA Array Interface dictionaries: each faulty one gives a clear error."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes
from tilearray_cuda.device import open_device

CASES = 8000
INTEGERS = [-(2**64), -(2**63), -9, -1, 0, 1, 2, 3, 7, 2**31, 2**40, 2**61, 2**63, 2**64, 10**30]
ANYTHING = [None, True, "x", b"x", 2.5, (), [1], {}, object(), 3j, float("nan"), *INTEGERS]
TYPES = ["|b1", "|i1", "<i2", "<i8", "<u4", "<f2", "<f4", "<f8", "<c8", "<c16"]
BAD_TYPES = [
    *(">f4", "<f16", "<c32", "|O", "|S3", "<U2", "|V4", "<M8[s]", "<m8", "<q9", "", "f", "nonsense", "|b2", "<i3"),
    *(None, 4, b"<f4", np.dtype("f4"), ["<f4"], [("a", "<f4")]),
]


class Described:
    def __init__(self, described):
        self.__cuda_array_interface__ = described


def anything(draw):
    return draw.choice(ANYTHING)


def numbers(draw):
    return tuple(draw.choice(INTEGERS) for _ in range(draw.randrange(4)))


CHANGES = {
    "shape": lambda draw: draw.choice([anything, numbers, numbers])(draw),
    "strides": lambda draw: draw.choice([anything, numbers, numbers])(draw),
    "data": lambda draw: draw.choice(
        [anything(draw), (anything(draw), False), (draw.choice(INTEGERS), anything(draw))]
    ),
    "typestr": lambda draw: draw.choice([*TYPES, *BAD_TYPES]),
    "version": lambda draw: draw.choice([99, 4, -1, 2**40, *ANYTHING]),
    "stream": lambda draw: draw.choice([0, -1, *ANYTHING]),
    "mask": anything,
}


def forged(draw, address):
    """Return a dictionary, correct except for some of its values."""
    described = {
        "shape": (3, 4),
        "typestr": draw.choice(TYPES),
        "data": (address, draw.random() < 0.5),
        "version": draw.choice([0, 1, 2, 3]),
        "strides": None,
        "stream": draw.choice([None, 1, 2, 12345]),
    }
    for key in draw.sample([*CHANGES], draw.choice([0, 1, 1, 2, 3])):
        if draw.random() < 0.1:
            described.pop(key, None)
        else:
            described[key] = CHANGES[key](draw)
    return described


@pytest.mark.parametrize("seed", range(8))
def test_forged_dictionaries(seed):
    draw = random.Random(seed)
    kept = open_device(0).allocate(4096, 0)
    outcomes, message = {}, ""
    for _ in range(CASES // 8):
        described = forged(draw, kept.pointer)
        try:
            x = ta.asarray(Described(described))
        except ta.TileArrayError as error:
            found, message = type(error).__name__, str(error)
        else:
            found = "taken"
            assert x.dtype in dtypes.ALL
            assert x.shape == tuple(described["shape"])
            assert x.size == 0 or x._buffer.pointer == kept.pointer or described.get("strides")
            assert described.get("mask") is None
            assert described.get("version", 0) in (0, 1, 2, 3)
        assert found == "taken" or message.startswith("asarray: ")
        outcomes[found] = outcomes.get(found, 0) + 1
    assert outcomes.keys() >= {"taken", "InterchangeError", "DTypeError", "LayoutError"}, outcomes


@pytest.mark.parametrize("described", [None, 3, "x", [], {}, {"shape": (2,)}, {"version": 3}])
def test_malformed_descriptions_are_refused(described):
    with pytest.raises(ta.InterchangeError, match="asarray: the __cuda_array_interface__ of Described is malformed"):
        ta.asarray(Described(described))


def test_memory_that_no_gpu_owns_is_refused():
    host = np.zeros(4)
    described = {"shape": (4,), "typestr": "<f8", "data": (host.ctypes.data, False), "version": 3}
    with pytest.raises(ta.InterchangeError, match=r"the pointer 0x.* is not in the memory of a GPU"):
        ta.asarray(Described(described))
