"""Random faults in capsules: we refuse each faulty capsule with our own error and do not change it."""

from __future__ import annotations

import ctypes
import math
import random

import pytest
from support.capsules import DLManagedTensor, DLManagedTensorVersioned, capsule_name, new_capsule

from tilearray import dtypes
from tilearray.errors import TileArrayError
from tilearray.interchange.dlpack import take

CASES = 8000
NAMES = [b"dltensor", b"dltensor_versioned"]
OTHER_NAMES = [None, b"", b"used_dltensor", b"used_dltensor_versioned", b"dltensor2", b"DLTENSOR", b"arrow_array"]
CODES = {dtypes.info(dtype).dlpack for dtype in dtypes.ALL}
EXTREMES = [-(2**63), -(2**62), -(2**31), -7, -1, 0, 1, 2, 3, 2**31, 2**32, 2**40, 2**59, 2**62, 2**63 - 1]

MEMORY = ctypes.create_string_buffer(4096)
ADDRESS = (ctypes.addressof(MEMORY) + 255) // 256 * 256
deleted: list[int] = []
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)


class Forged:
    """Return the producer of one capsule, correct except for the changes of `draw`."""

    def __init__(self, draw: random.Random) -> None:
        versioned = draw.random() < 0.5
        self.managed = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        self.managed.deleter = ctypes.cast(DELETER, ctypes.c_void_p)
        self.name = NAMES[versioned]
        if versioned:
            self.managed.version[:] = (1, 3)
        tensor = self.managed.tensor
        self.extents, self.steps = [3, 2], [2, 1]
        tensor.data, tensor.device_type, tensor.ndim = ADDRESS, 1, 2
        tensor.code, tensor.bits = draw.choice([(0, 8), (2, 32), (4, 16), (10, 8), (6, 8), (5, 128)])
        tensor.lanes = 1
        self.keep: list[object] = []
        for change in draw.sample(CHANGES, draw.choice([0, 1, 1, 1, 2, 3])):
            change(self, draw)
        for name, values in (("shape", self.extents), ("strides", self.steps)):
            if values is not None:
                array = (ctypes.c_int64 * max(len(values), 1))(*values)
                self.keep.append(array)
                setattr(tensor, name, ctypes.addressof(array))
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def name(forged, draw):
    forged.name = draw.choice([*OTHER_NAMES, *NAMES[type(forged.managed) is DLManagedTensorVersioned :][:1]])


def version(forged, draw):
    if type(forged.managed) is DLManagedTensorVersioned:
        forged.managed.version[0] = draw.choice([0, 2, 99, 2**32 - 1])


def kind(forged, draw):
    tensor = forged.managed.tensor
    tensor.code, tensor.bits = draw.randrange(256), draw.choice([0, 1, 4, 6, 8, 16, 32, 64, 128, 255])


def lanes(forged, draw):
    forged.managed.tensor.lanes = draw.choice([0, 2, 3, 4, 16, 65535])


def device(forged, draw):
    kinds = [-1, 0, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 77, 2**31 - 1]
    tensor = forged.managed.tensor
    tensor.device_type, tensor.device_id = draw.choice(kinds), draw.randrange(9)


def dimensions(forged, draw):
    forged.managed.tensor.ndim = draw.choice([-(2**31), -1, 65, 1000, 2**31 - 1])


def no_data(forged, draw):
    forged.managed.tensor.data = None


def offset(forged, draw):
    forged.managed.tensor.byte_offset = draw.choice([2**63, 2**64 - 1, 2**64 - ADDRESS + 3, 2**63 - 8])


def no_shape(forged, draw):
    forged.extents = None


def shape(forged, draw):
    forged.extents = [draw.choice(EXTREMES) for _ in range(2)]
    forged.steps = draw.choice([None, [draw.choice(EXTREMES) for _ in range(2)]])


CHANGES = [name, version, kind, lanes, device, dimensions, no_data, offset, no_shape, shape]


def is_right(forged: Forged) -> bool:
    """Return whether dlpack.h allows the array; sizes and addresses are exact integers."""
    managed, tensor, shape = forged.managed, forged.managed.tensor, forged.extents
    versioned = type(managed) is DLManagedTensorVersioned
    if forged.name != NAMES[versioned] or (versioned and managed.version[0] != 1) or tensor.ndim != 2 or not shape:
        return False
    if (
        (tensor.code, tensor.bits) not in CODES
        or tensor.lanes != 1 + ((tensor.code, tensor.bits) == (17, 4))
        or tensor.device_type not in (1, 2, 3, 13)
    ):
        return False
    if 0 in shape or min(shape) < 0:
        return 0 in shape and min(shape) >= 0
    steps = forged.steps or [shape[1], 1]
    reach = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    first = (tensor.data or 0) + tensor.byte_offset
    itemsize = tensor.bits * tensor.lanes // 8
    low, high = (first + itemsize * sum(f(0, r) for r in reach) for f in (min, max))
    return bool(tensor.data) and low >= 0 and high + itemsize <= 2**63


def is_huge(forged: Forged) -> bool:
    """Return whether a number is so large that it may be refused although no element uses it."""
    numbers = [abs(number) or 1 for number in (*forged.extents, *(forged.steps or []))]
    return math.prod(numbers) > 2**50 or forged.managed.tensor.byte_offset > 0


def outcome(forged: Forged) -> str:
    """Take the capsule; return "taken" or the name of the error."""
    try:
        taken = take(forged, copy=None)
    except TileArrayError as error:
        forged.error = str(error)
        return type(error).__name__
    assert taken.array.shape == tuple(forged.extents)
    assert taken.array.dtype in (*dtypes.ALL, *dtypes.PACKED)
    return "taken"


@pytest.mark.parametrize("seed", range(8))
def test_forged_capsules(seed):
    draw = random.Random(seed)
    outcomes: dict[str, int] = {}
    for _ in range(CASES // 8):
        forged = Forged(draw)
        before = bytes(forged.managed)
        deleted.clear()
        found = outcome(forged)
        outcomes[found] = outcomes.get(found, 0) + 1
        assert bytes(forged.managed) == before  # the overwritten fields have their old values
        if found == "taken":
            assert is_right(forged)
            assert deleted == [ctypes.addressof(forged.managed)]
        else:
            assert not is_right(forged) or is_huge(forged), (found, forged.error)
            assert forged.error.startswith("from_dlpack: ")
            assert deleted == []
            assert capsule_name(forged.capsule) == forged.name
    assert {"taken", "InterchangeError", "DTypeError"} <= outcomes.keys(), outcomes
    assert outcomes["taken"] < CASES // 8 / 2
