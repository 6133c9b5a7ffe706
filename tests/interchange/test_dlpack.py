"""Memory exported and imported as DLPack capsules: their fields, copies, and lifetimes."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from support.capsules import (
    DLPACK,
    LAYOUTS,
    SHARED,
    Exporter,
    Producer,
    address,
    bits,
    capsule_name,
    capsule_pointer,
    export,
    field,
    flags_of,
    sample,
)
from support.threads import in_threads

from tilearray import dtypes, from_dlpack
from tilearray.errors import InterchangeError
from tilearray.interchange.dlpack import from_capsule_producer

# --- DLPack: export -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("name", DLPACK)
def test_a_capsule_has_the_fields_of_dlpack_h(name, max_version):
    view = sample(SHARED[name])[1:, ::2]
    capsule = export(view, max_version)
    versioned = max_version is not None and max_version[0] >= 1
    assert capsule_name(capsule) == (b"dltensor_versioned" if versioned else b"dltensor")
    assert (field(capsule, "code").value, field(capsule, "bits").value) == DLPACK[name]
    assert field(capsule, "lanes").value == 1
    assert field(capsule, "device_type").value == 1
    assert field(capsule, "data").value + field(capsule, "byte_offset").value == address(view)
    extents = (ctypes.c_int64 * 2).from_address(field(capsule, "shape").value)
    strides = (ctypes.c_int64 * 2).from_address(field(capsule, "strides").value)
    assert (*extents,) == (3, 3)
    assert (*strides,) == (6, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in DLPACK if SHARED[name].type.__module__ == "numpy"])
def test_numpy_takes_an_export(name, layout):
    view = LAYOUTS[layout](sample(SHARED[name]))
    taken = np.from_dlpack(Exporter(view))
    assert (taken.dtype, taken.shape, taken.flags.writeable) == (view.dtype, view.shape, view.flags.writeable)
    assert np.array_equal(taken, view)
    if view.size:
        assert (address(taken), taken.strides) == (address(view), view.strides)


def test_read_only_is_exported_only_where_the_consumer_learns_it():
    view = sample(dtypes.bfloat16)
    view.flags.writeable = False
    assert flags_of(export(view, (1, 0))) & 1
    with pytest.raises(InterchangeError, match=r"read-only.*write x\.copy\(\), or ask with max_version=\(1, 0\)"):
        export(view, None)
    with pytest.raises(InterchangeError, match="read-only"):
        export(view, (0, 8), copy=False)
    export(view, None, copy=True)  # a copy is writable


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_an_export_copies_only_if_asked(dtype):
    view = sample(dtype)[::2]
    for copy in (None, False):
        capsule = export(view, copy=copy)
        assert field(capsule, "data").value == address(view)
        assert flags_of(capsule) == 0
    capsule = export(view, copy=True)
    assert field(capsule, "data").value != address(view)
    assert flags_of(capsule) == 2
    assert np.array_equal(bits(from_capsule_producer(Producer(lambda **_: capsule), copy=None)), bits(view))


def test_an_export_is_for_the_host():
    view = sample(dtypes.float32)
    assert capsule_name(export(view, dl_device=(1, 0))) == b"dltensor_versioned"
    with pytest.raises(InterchangeError, match=r"expected dl_device=\(1, 0\), .*, got \(2, 0\); write x\.to_device"):
        export(view, dl_device=(2, 0))
    with pytest.raises(InterchangeError, match="expected stream=None for host memory, got 1"):
        export(view, stream=1)


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0)])
def test_float4_is_exported_only_where_the_consumer_learns_that_it_is_padded(max_version):
    with pytest.raises(InterchangeError, match=r"float4_e2m1fn.*needs DLPack 1\.1 or later.*write x\.view\('uint8'\)"):
        export(np.zeros(4, dtypes.float4_e2m1fn), max_version)


def test_padded_float4_makes_a_round_trip():
    view = np.arange(-3, 4, dtype=np.float32).astype(dtypes.float4_e2m1fn)
    capsule = export(view, (1, 1))
    assert (field(capsule, "code").value, field(capsule, "bits").value, flags_of(capsule)) == (17, 4, 4)
    assert ctypes.c_uint32.from_address(capsule_pointer(capsule, b"dltensor_versioned") + 4).value == 1
    taken = from_capsule_producer(Producer(lambda **_: capsule), copy=False)
    assert taken.dtype is dtypes.float4_e2m1fn
    assert address(taken) == address(view)
    assert np.array_equal(bits(taken), bits(view))


# --- DLPack: round trips, copies, lifetimes -------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DLPACK)
def test_a_round_trip_keeps_everything(name, layout, versioned):
    view = LAYOUTS[layout](sample(SHARED[name]))
    taken = from_capsule_producer(Producer(lambda **_: export(view, (1, 0) if versioned else None)), copy=False)
    assert type(taken) is np.ndarray
    assert taken.dtype is SHARED[name]
    assert taken.shape == view.shape
    assert np.array_equal(bits(taken), bits(view))
    assert taken.flags.writeable == (versioned and view.flags.writeable)
    if view.size:
        assert (address(taken), taken.strides) == (address(view), view.strides)


@pytest.mark.parametrize("dtype", [dtypes.int16, dtypes.bfloat16, dtypes.float8_e4m3fn])
def test_writes_show_on_both_sides(dtype):
    mine = sample(dtype)
    theirs = from_capsule_producer(Exporter(mine), copy=None)
    theirs[0, 0] = 9
    mine[1, 1] = 5
    assert (float(mine[0, 0]), float(theirs[1, 1])) == (9, 5)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_an_import_copies_only_if_asked(dtype):
    view = sample(dtype)
    view.flags.writeable = False
    for copy in (None, False):
        taken = from_capsule_producer(Exporter(view), copy=copy)
        assert address(taken) == address(view)
        assert not taken.flags.writeable
    taken = from_capsule_producer(Exporter(view), copy=True)
    assert not np.may_share_memory(taken, view)
    assert taken.flags.writeable
    assert taken.dtype is dtype
    assert np.array_equal(bits(taken), bits(view))


def test_a_producer_is_told_not_to_copy_and_may_refuse():
    seen = []

    def refuse(**keywords):
        seen.append(keywords)
        raise BufferError("I have to")

    with pytest.raises(InterchangeError, match=r"capsules\.Producer refused to export its data: I have to"):
        from_capsule_producer(Producer(refuse), copy=False)
    assert seen == [{"max_version": (1, 1), "copy": False}]


def test_a_producer_of_the_old_protocol_gets_no_keywords():
    view = sample(dtypes.bfloat16)

    class Old(Exporter):
        def __dlpack__(self):  # type: ignore[override]
            return export(self.view, None)

    for copy in (None, False):
        assert address(from_capsule_producer(Old(view), copy=copy)) == address(view)
    assert address(from_capsule_producer(Old(view), copy=True)) != address(view)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.bfloat16])
def test_a_consumer_keeps_the_memory_alive(dtype):
    owner = sample(dtype)
    alive = weakref.ref(owner)
    taken = from_capsule_producer(Exporter(owner[1:, ::2]), copy=None)
    part = taken[1:]
    expected = bits(owner[2:, ::2]).copy()
    del owner, taken
    gc.collect()
    assert alive() is not None
    assert np.array_equal(bits(part), expected)
    del part
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float8_e5m2])
def test_a_capsule_that_nobody_consumes_frees_itself(dtype, max_version):
    owner = sample(dtype)
    alive = weakref.ref(owner)
    capsule = export(owner, max_version)
    del owner
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.bfloat16])
def test_a_capsule_is_consumed_once(dtype, max_version):
    capsule = export(sample(dtype), max_version)
    producer = Producer(lambda **_: capsule)
    taken = from_capsule_producer(producer, copy=None)
    with pytest.raises(InterchangeError, match="already consumed; call __dlpack__ again"):
        from_capsule_producer(producer, copy=None)
    assert np.array_equal(bits(taken), bits(sample(dtype)))


@pytest.mark.parametrize("others", [from_dlpack, np.from_dlpack], ids=["ours", "numpys"])
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_one_of_many_threads_gets_a_capsule(max_version, others):
    for _ in range(40):
        owner = sample(dtypes.float32)
        alive, wanted = weakref.ref(owner), owner.tolist()
        capsule = export(owner, max_version)
        producer = Producer(lambda capsule=capsule, **_: capsule)
        del owner

        def consume(number: int, producer=producer) -> object:
            return (from_dlpack if number % 2 else others)(producer).tolist()

        found = in_threads(8, consume, interval=1e-6)
        assert [x for x in found if not isinstance(x, Exception)] == [wanted]
        assert all("already consumed" in str(x) for x in found[1::2] if x != wanted)
        del capsule, producer, consume, found
        gc.collect()
        assert alive() is None
