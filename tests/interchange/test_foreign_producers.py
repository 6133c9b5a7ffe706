"""Capsules of producers other than NumPy, and malformed capsules."""

from __future__ import annotations

import ctypes
import gc
import types
import weakref

import numpy as np
import pytest
from support.capsules import (
    TENSOR_AT,
    Producer,
    RawProducer,
    address,
    capsule_name,
    capsule_pointer,
    export,
    field,
    new_capsule,
    sample,
)

from tilearray import dtypes
from tilearray.errors import DTypeError, InterchangeError, LayoutError
from tilearray.interchange.dlpack import from_capsule_producer

# --- memory without strides, with its own deleter, or misaligned ----------------------------------------------------


def test_a_foreign_deleter_runs_once_and_finds_its_own_type_code():
    producer = RawProducer(np.array([0x3F80, 0x4000, 0xC040], np.uint16), 3)
    taken = from_capsule_producer(producer, copy=None)
    assert taken.dtype is dtypes.bfloat16
    assert taken.astype(np.float32).tolist() == [1, 2, -3]
    assert producer.managed.tensor.code == 4
    part = taken[1:]
    del taken
    gc.collect()
    assert producer.deleted == []
    del part
    gc.collect()
    assert producer.deleted == [4]


def test_a_refused_capsule_is_left_as_it_was():
    producer = RawProducer(np.zeros(4, np.uint16), 4, code=6, bits=16)
    with pytest.raises(DTypeError):
        from_capsule_producer(producer, copy=None)
    assert producer.managed.tensor.code == 6
    assert producer.deleted == []


def test_misaligned_data_are_copied_or_refused():
    producer = RawProducer(np.array([0x8000, 0x003F, 0], np.uint16), 2, byte_offset=1)
    taken = from_capsule_producer(producer, copy=None)
    assert taken.tolist() == [1, 0]
    assert taken.flags.aligned
    assert producer.deleted == [4]  # the copy does not need it
    with pytest.raises(LayoutError, match=r"multiples of the itemsize 2, got an address 1 bytes past one"):
        from_capsule_producer(producer, copy=False)


# --- faults of producers --------------------------------------------------------------------------------------------

NULL = None
MALFORMED = {
    "lanes": (
        {"lanes": 4},
        DTypeError,
        r"expected a supported dtype, got float, 32 bits, 4 lanes \(DLPack type code 2\)",
    ),
    "unknown code": ({"code": 99}, DTypeError, r"an unknown kind, 32 bits, 1 lanes \(DLPack type code 99\)"),
    "float of 128 bits": ({"bits": 128}, DTypeError, "float, 128 bits"),
    "complex32": ({"code": 5}, DTypeError, "complex, 32 bits"),
    "int4": ({"code": 0, "bits": 4}, DTypeError, "int, 4 bits"),
    "handle": ({"code": 3}, DTypeError, "handle, 32 bits"),
    "float6": ({"code": 15, "bits": 6}, DTypeError, "float6_e2m3fn, 6 bits"),
    "float4": ({"code": 17, "bits": 4}, DTypeError, "float4_e2m1fn.*packed; export the bytes as uint8"),
    "packed float4": ({"code": 17, "bits": 4, "lanes": 4}, DTypeError, "4 lanes.*packed"),
    "device": (
        {"device_type": 77},
        InterchangeError,
        r"an unknown device \(DLPack device type 77\), which has no backend",
    ),
    "ndim": ({"ndim": -1}, InterchangeError, "malformed: expected 0 to 64 dimensions, got -1"),
    "many dimensions": ({"ndim": 65}, InterchangeError, "expected 0 to 64 dimensions, got 65"),
    "no shape": ({"shape": NULL}, InterchangeError, "malformed: expected a shape for 2 dimensions, got a null pointer"),
    "no data": (
        {"data": NULL},
        InterchangeError,
        r"malformed: expected data for the shape \[4, 6\], got a null pointer",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_capsules_are_refused(case, max_version):
    changes, error, message = MALFORMED[case]
    owner = sample(dtypes.float32)
    alive = weakref.ref(owner)
    held = [export(owner, max_version)]
    for name, value in changes.items():
        field(held[0], name).value = value
    with pytest.raises(error, match=message):
        from_capsule_producer(Producer(lambda **_: held[0]), copy=None)
    assert capsule_name(held[0]) in TENSOR_AT  # not consumed
    del owner
    held.clear()
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("shape", (4, -6), r"expected sizes >= 0, got the shape \[4, -6\]"),
        ("shape", (2**40, 2**40), "exceeds any address space"),
        ("shape", (0, 2**62), "exceeds any address space"),
        ("strides", (2**61, 1), r"with strides \[2305843009213693952, 1\] at 0x\w+ exceeds any address space"),
        ("strides", (-(2**63), 1), "exceeds any address space"),
    ],
)
def test_impossible_sizes_are_refused(name, values, message):
    capsule = export(sample(dtypes.float32))
    (ctypes.c_int64 * 2).from_address(field(capsule, name).value)[:] = values
    with pytest.raises(InterchangeError, match=message):
        from_capsule_producer(Producer(lambda **_: capsule), copy=None)


def test_a_capsule_of_another_version_is_refused():
    capsule = export(sample(dtypes.float32))
    ctypes.c_uint32.from_address(capsule_pointer(capsule, b"dltensor_versioned")).value = 99
    with pytest.raises(InterchangeError, match=r"expected DLPack version 1, got a capsule of version 99\.0"):
        from_capsule_producer(Producer(lambda **_: capsule), copy=None)


def test_an_empty_array_without_data_is_taken():
    capsule = export(np.empty((0, 3), dtypes.bfloat16))
    field(capsule, "data").value = None
    taken = from_capsule_producer(Producer(lambda **_: capsule), copy=None)
    assert (taken.shape, taken.dtype) == ((0, 3), dtypes.bfloat16)


def test_strides_may_be_left_out():
    taken = from_capsule_producer(RawProducer(np.zeros(6, np.uint16), 6), copy=False)
    assert taken.strides == (2,)


def test_pinned_host_memory_is_host_memory():
    view = sample(dtypes.float32)
    capsule = export(view)
    field(capsule, "device_type").value = 3
    taken = from_capsule_producer(Producer(lambda **_: capsule, lambda: (3, 0)), copy=False)
    assert address(taken) == address(view)


def fail() -> None:
    raise RuntimeError("no idea")


NAME = b"arrow_array"  # lives as long as the capsule that borrows it
NO_PRODUCERS = {
    "a list": ([1, 2], "expected an object with __dlpack__ and __dlpack_device__, got builtins.list; write asarray"),
    "a capsule": (export(np.ones(2)), "got builtins.PyCapsule; .* pass the array itself"),
    "half a producer": (types.SimpleNamespace(__dlpack__=None), "expected an object with __dlpack__ and"),
    "on rocm": (Producer(fail, lambda: (10, 0)), "memory on rocm .*, which has no backend here"),
    "device None": (Producer(fail, lambda: None), "does not state its device"),
    "device of text": (Producer(fail, lambda: ("cpu", 0)), "does not state its device"),
    "device raises": (Producer(fail, fail), "does not state its device: no idea"),
    "raises": (Producer(lambda **_: fail()), "refused to export its data: no idea"),
    "takes nothing": (Producer(lambda x, **_: x), "refused to export its data: .* missing"),
    "None": (Producer(lambda **_: None), "expected __dlpack__ to return a capsule, got a NoneType"),
    "another capsule": (Producer(lambda **_: new_capsule(8, NAME, None)), "named 'dltensor'.* got b'arrow_array'"),
    "a nameless capsule": (Producer(lambda **_: new_capsule(8, None, None)), "named 'dltensor'.* got None"),
}


@pytest.mark.parametrize("case", NO_PRODUCERS)
def test_objects_that_export_nothing_are_refused(case):
    obj, message = NO_PRODUCERS[case]
    with pytest.raises(InterchangeError, match=message):
        from_capsule_producer(obj, copy=None)


def test_an_ndarray_needs_no_capsule():
    view = sample(dtypes.bfloat16)
    assert from_capsule_producer(view, copy=None) is view
    with pytest.raises(DTypeError, match="from_dlpack"):
        from_capsule_producer(np.array(["a"]), copy=None)
