"""Memory shared with NumPy, torch and raw capsules. What a capsule holds is read by the byte offsets of dlpack.h."""

from __future__ import annotations

import ctypes
import gc
import types
import weakref

import numpy as np
import pytest

from tilearray import dtypes
from tilearray.errors import DTypeError, InterchangeError, LayoutError
from tilearray.interchange.dlpack import from_capsule_producer, to_capsule

# --- oracles: dlpack.h, and layouts ---------------------------------------------------------------------------------

DLPACK = {  # (code, bits) as dlpack.h 1.1 numbers them
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
SHARED = {name: dtypes.as_dtype(name) for name in DLPACK}
TENSOR_AT = {b"dltensor": 0, b"dltensor_versioned": 32}
FIELDS = {  # of DLTensor: offset and format
    "data": (0, ctypes.c_void_p),
    "device_type": (8, ctypes.c_int32),
    "ndim": (16, ctypes.c_int32),
    "code": (20, ctypes.c_uint8),
    "bits": (21, ctypes.c_uint8),
    "lanes": (22, ctypes.c_uint16),
    "shape": (24, ctypes.c_void_p),
    "strides": (32, ctypes.c_void_p),
    "byte_offset": (40, ctypes.c_uint64),
}
capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def field(capsule: object, name: str) -> ctypes._SimpleCData:
    offset, kind = FIELDS[name]
    found = capsule_name(capsule)
    return kind.from_address(capsule_pointer(capsule, found) + TENSOR_AT[found] + offset)


def flags_of(capsule: object) -> int:
    return ctypes.c_uint64.from_address(capsule_pointer(capsule, b"dltensor_versioned") + 24).value


LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "sliced": lambda a: a[1:, ::2],
    "negative": lambda a: a[::-1, ::-2],
    "broadcast": lambda a: np.ndarray(a.shape, a.dtype, a, 0, (a.strides[0], 0)),
    "0-d": lambda a: a[2, 3, ...],
    "size 0": lambda a: a[:, 2:2],
    "offset": lambda a: a[2],
}


def sample(dtype: np.dtype, shape: tuple[int, ...] = (4, 6)) -> np.ndarray:
    """Different values, all of them finite in every dtype."""
    numbers = np.arange(1, 1 + np.prod(shape), dtype=np.uint8).reshape(shape)
    return numbers.astype(bool) if dtype.kind == "b" else numbers.astype(np.float32).astype(dtype)


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint8)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


class Exporter:
    """The least that an array has to be to export through `to_capsule`."""

    def __init__(self, view: np.ndarray) -> None:
        self.view = view

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return to_capsule(self.view, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return (1, 0)


class Producer:
    """A foreign producer whose two methods are given."""

    def __init__(self, export, device=lambda: (1, 0)) -> None:
        self.export = export
        self.device = device

    def __dlpack__(self, **keywords):
        return self.export(**keywords)

    def __dlpack_device__(self):
        return self.device()


def export(view: np.ndarray, max_version=(1, 0), dl_device=None, copy=None, stream=None) -> object:
    return to_capsule(view, max_version=max_version, dl_device=dl_device, copy=copy, stream=stream)


# --- DLPack: export -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("name", DLPACK)
def test_a_capsule_holds_what_dlpack_h_says(name, max_version):
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
    with pytest.raises(InterchangeError, match=r"device \(1, 0\), and asked for on \(2, 0\); write x\.to_device"):
        export(view, dl_device=(2, 0))
    with pytest.raises(InterchangeError, match="expected stream=None for host memory, got 1"):
        export(view, stream=1)


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0)])
def test_float4_is_exported_only_where_the_consumer_learns_that_it_is_padded(max_version):
    with pytest.raises(InterchangeError, match=r"float4_e2m1fn.*learns from DLPack 1\.1 on.*write x\.view\('uint8'\)"):
        export(np.zeros(4, dtypes.float4_e2m1fn), max_version)


def test_padded_float4_goes_and_comes():
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

    with pytest.raises(InterchangeError, match=r"test_interchange\.Producer refused to export its data: I have to"):
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
    with pytest.raises(InterchangeError, match="consumed already; call __dlpack__ again"):
        from_capsule_producer(producer, copy=None)
    assert np.array_equal(bits(taken), bits(sample(dtype)))


class RawManaged(ctypes.Structure):
    """DLManagedTensor, written out: a producer that has nothing in common with NumPy."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class RawProducer:
    """Exports `words` as bfloat16, without strides, and notes what its deleter finds."""

    def __init__(self, words: np.ndarray, count: int, byte_offset: int = 0, code: int = 4, bits: int = 16) -> None:
        self.words = words
        self.deleted = []
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        self.shape = (ctypes.c_int64 * 1)(count)
        self.managed = RawManaged(
            address(words), (1, 0), 1, code, bits, 1, ctypes.addressof(self.shape), None, byte_offset, None,
            ctypes.cast(self.deleter, ctypes.c_void_p),
        )  # fmt: skip

    def delete(self, at: int) -> None:
        assert at == ctypes.addressof(self.managed)
        self.deleted.append(self.managed.code)

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


def test_a_foreign_deleter_runs_once_and_finds_its_own_type_code():
    producer = RawProducer(np.array([0x3F80, 0x4000, 0xC040], np.uint16), 3)
    taken = from_capsule_producer(producer, copy=None)
    assert taken.dtype is dtypes.bfloat16
    assert taken.astype(np.float32).tolist() == [1, 2, -3]
    assert producer.managed.code == 4
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
    assert producer.managed.code == 6
    assert producer.deleted == []


def test_misaligned_data_are_copied_or_refused():
    producer = RawProducer(np.array([0x8000, 0x003F, 0], np.uint16), 2, byte_offset=1)
    taken = from_capsule_producer(producer, copy=None)
    assert taken.tolist() == [1, 0]
    assert taken.flags.aligned
    assert producer.deleted == [4]  # the copy does without it
    with pytest.raises(LayoutError, match=r"multiples of the itemsize 2, got an address 1 bytes past one"):
        from_capsule_producer(producer, copy=False)


# --- DLPack: what producers get wrong -------------------------------------------------------------------------------

NULL = None
MALFORMED = {
    "lanes": ({"lanes": 4}, DTypeError, r"float, 32 bits, 4 lanes \(DLPack type code 2\), which is no dtype here"),
    "unknown code": ({"code": 99}, DTypeError, r"no known kind, 32 bits, 1 lanes \(DLPack type code 99\)"),
    "float of 128 bits": ({"bits": 128}, DTypeError, "float, 128 bits"),
    "complex32": ({"code": 5}, DTypeError, "complex, 32 bits"),
    "int4": ({"code": 0, "bits": 4}, DTypeError, "int, 4 bits"),
    "handle": ({"code": 3}, DTypeError, "handle, 32 bits"),
    "float6": ({"code": 15, "bits": 6}, DTypeError, "float6_e2m3fn, 6 bits"),
    "float4": ({"code": 17, "bits": 4}, DTypeError, "float4_e2m1fn.*DLPack packs it.*as uint8"),
    "packed float4": ({"code": 17, "bits": 4, "lanes": 2}, DTypeError, "2 lanes.*DLPack packs it"),
    "device": ({"device_type": 77}, InterchangeError, r"an unknown device \(DLPack device type 77\): no backend"),
    "ndim": ({"ndim": -1}, InterchangeError, "malformed: expected 0 to 64 dimensions, got -1"),
    "many dimensions": ({"ndim": 65}, InterchangeError, "expected 0 to 64 dimensions, got 65"),
    "no shape": ({"shape": NULL}, InterchangeError, "malformed: 2 dimensions, but no shape"),
    "no data": ({"data": NULL}, InterchangeError, r"malformed: no data for the shape \[4, 6\]"),
}


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
        ("shape", (4, -6), r"negative extents in the shape \[4, -6\]"),
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
    "on rocm": (Producer(fail, lambda: (10, 0)), "memory on rocm .*: no backend for it exists"),
    "device None": (Producer(fail, lambda: None), "does not say where its data are"),
    "device of text": (Producer(fail, lambda: ("cpu", 0)), "does not say where its data are"),
    "device raises": (Producer(fail, fail), "does not say where its data are: no idea"),
    "raises": (Producer(lambda **_: fail()), "refused to export its data: no idea"),
    "takes nothing": (Producer(lambda x, **_: x), "refused to export its data: .* missing"),
    "None": (Producer(lambda **_: None), "expected __dlpack__ to return a capsule, got a NoneType"),
    "another capsule": (Producer(lambda **_: new_capsule(8, NAME, None)), "named 'dltensor'.* got b'arrow_array'"),
    "a nameless capsule": (Producer(lambda **_: new_capsule(8, None, None)), "named 'dltensor'.* got None"),
}


@pytest.mark.parametrize("case", NO_PRODUCERS)
def test_what_is_no_producer_is_refused(case):
    obj, message = NO_PRODUCERS[case]
    with pytest.raises(InterchangeError, match=message):
        from_capsule_producer(obj, copy=None)


def test_an_ndarray_needs_no_capsule():
    view = sample(dtypes.bfloat16)
    assert from_capsule_producer(view, copy=None) is view
    with pytest.raises(DTypeError, match="from_dlpack"):
        from_capsule_producer(np.array(["a"]), copy=None)


# --- torch ----------------------------------------------------------------------------------------------------------

TORCH = [name for name in DLPACK if name not in ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz")]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "negative"])
@pytest.mark.parametrize("name", TORCH)
def test_torch_takes_an_export(torch, name, layout):
    view = LAYOUTS[layout](sample(SHARED[name]))
    tensor = torch.from_dlpack(Exporter(view))
    assert tensor.dtype is getattr(torch, name)
    assert tuple(tensor.shape) == view.shape
    if view.size:
        assert tensor.data_ptr() == address(view)
        assert tensor.stride() == tuple(stride // view.itemsize for stride in view.strides)
    wide = torch.complex128 if "complex" in name else torch.float64
    assert np.array_equal(tensor.to(wide).numpy(), view.astype(str(wide)[6:]))


@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t.T, lambda t: t[1:, ::2], lambda t: t[:, :1].expand(4, 6), lambda t: t[2, 3]]
)
@pytest.mark.parametrize("name", TORCH)
def test_a_tensor_is_taken(torch, name, view):
    tensor = view(torch.arange(24).reshape(4, 6).to(getattr(torch, name)))
    taken = from_capsule_producer(tensor, copy=False)
    assert taken.dtype is SHARED[name]
    assert taken.shape == tuple(tensor.shape)
    assert address(taken) == tensor.data_ptr()
    assert tuple(stride // taken.itemsize for stride in taken.strides) == tensor.stride()
    assert taken.flags.writeable
    wide = torch.complex128 if "complex" in name else torch.float64
    assert np.array_equal(tensor.to(wide).numpy(), taken.astype(str(wide)[6:]))


def test_an_empty_tensor_is_taken(torch):
    taken = from_capsule_producer(torch.empty((0, 3), dtype=torch.bfloat16), copy=False)
    assert (taken.shape, taken.dtype) == ((0, 3), dtypes.bfloat16)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "bool"])
def test_torch_and_we_see_each_others_writes(torch, name):
    view = sample(SHARED[name])
    tensor = torch.from_dlpack(Exporter(view))
    tensor[1, 2] = 1
    view[3, 3] = 0
    assert view[1, 2] == 1
    assert float(tensor[3, 3]) == 0
    back = from_capsule_producer(tensor, copy=None)
    assert address(back) == address(view)
    back[0, 1] = 0
    assert float(tensor[0, 1]) == 0


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_memory_lives_as_long_as_torch_or_we_need_it(torch, dtype):
    owner = sample(dtype)
    alive = weakref.ref(owner)
    tensor = torch.from_dlpack(Exporter(owner))
    del owner
    taken = from_capsule_producer(tensor[1:], copy=None)
    del tensor
    gc.collect()
    assert alive() is not None
    assert taken.astype(np.float32)[0, 1] == 8
    del taken
    gc.collect()
    assert alive() is None


def test_negative_strides_are_refused_before_torch_ends_the_process(torch):
    reverse = Exporter(sample(dtypes.float32)[::-1])
    for consume in (torch.from_dlpack, torch.asarray, torch.as_tensor, torch.utils.dlpack.from_dlpack):
        with pytest.raises(InterchangeError, match=r"torch has no negative strides.*strides \(-24, 4\).*x\.copy\(\)"):
            consume(reverse)
    assert torch.from_dlpack(reverse, copy=True).tolist() == reverse.view.tolist()
    assert np.from_dlpack(reverse).strides == (-24, 4)


TORCH_OBSTACLES = {
    "requires_grad": (lambda t: t.ones(2, requires_grad=True), r"requires grad.*write x\.detach\(\) first"),
    "a result with a gradient": (lambda t: t.ones(2, requires_grad=True) * 2, r"write x\.detach\(\) first"),
    "conj": (lambda t: t.ones(2, dtype=t.complex64).conj(), r"lazy conjugate.*write x\.resolve_conj\(\) first"),
    "neg": (lambda t: t.ones(2, dtype=t.complex64).conj().imag, r"lazy negative.*write x\.resolve_neg\(\) first"),
    "sparse": (lambda t: t.eye(2).to_sparse(), r"not strided but torch\.sparse_coo; write x\.to_dense\(\) first"),
}


@pytest.mark.parametrize("case", TORCH_OBSTACLES)
def test_tensors_that_are_more_than_their_memory_are_refused(torch, case):
    make, message = TORCH_OBSTACLES[case]
    with pytest.raises(InterchangeError, match=message):
        from_capsule_producer(make(torch), copy=None)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_refused(torch):
    tensor = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    with pytest.raises(InterchangeError, match=r"quantized; write x\.dequantize\(\), or x\.int_repr\(\) first"):
        from_capsule_producer(tensor, copy=None)


def test_a_tensor_on_no_device_is_refused(torch):
    with pytest.raises(InterchangeError, match=r"torch\.Tensor does not say where its data are.*meta"):
        from_capsule_producer(torch.ones(2, device="meta"), copy=None)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_dtypes_of_torch_alone_are_refused(torch):
    with pytest.raises(DTypeError, match="complex, 32 bits"):
        from_capsule_producer(torch.zeros(2, dtype=torch.complex32), copy=None)
    with pytest.raises(DTypeError, match=r"float4_e2m1fn, 4 bits, 2 lanes.*export the bytes, as uint8"):
        from_capsule_producer(torch.empty(2, dtype=torch.float4_e2m1fn_x2), copy=None)
