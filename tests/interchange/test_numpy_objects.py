"""Host objects as ndarrays: objects that share memory, are copied, are refused, or are not for this module."""

from __future__ import annotations

import array
import ctypes
import gc
import mmap

import ml_dtypes
import numpy as np
import pytest

from tilearray import dtypes
from tilearray.errors import DTypeError, InterchangeError, LayoutError
from tilearray.interchange.numpy import from_host_object


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint8)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


def take(obj: object, copy: bool | None = None) -> np.ndarray | None:
    return from_host_object(obj, copy=copy, function="asarray")


class Interface:
    """An object with ``__array_interface__``, such as an image of Pillow."""

    def __init__(self, source: np.ndarray) -> None:
        self.__array_interface__ = source.__array_interface__
        self.source = source


class Converter:
    """An object with ``__array__``, such as a series of pandas."""

    def __init__(self, source: np.ndarray) -> None:
        self.source = source

    def __array__(self, dtype=None, copy=None):
        return self.source.copy() if copy else self.source


class Subclass(np.ndarray):
    pass


def _mapped() -> mmap.mmap:
    memory_map = mmap.mmap(-1, 4)
    memory_map[:] = b"\1\2\3\4"
    return memory_map


NUMBERS = np.arange(1, 5, dtype=np.float32)
SOURCES = {  # a constructor, the dtype, and whether it is writable
    "ndarray": (NUMBERS.copy, "float32", True),
    "ndarray of bfloat16": (lambda: NUMBERS.astype(ml_dtypes.bfloat16), "bfloat16", True),
    "subclass": (lambda: NUMBERS.copy().view(Subclass), "float32", True),
    "interface": (lambda: Interface(NUMBERS.copy()), "float32", True),
    "__array__": (lambda: Converter(NUMBERS.copy()), "float32", True),
    "array.array": (lambda: array.array("h", [1, 2, 3, 4]), "int16", True),
    "array.array q": (lambda: array.array("q", [1, 2, 3, 4]), "int64", True),
    "bytes": (lambda: bytes([1, 2, 3, 4]), "uint8", False),
    "bytearray": (lambda: bytearray([1, 2, 3, 4]), "uint8", True),
    "memoryview": (lambda: memoryview(NUMBERS.copy()), "float32", True),
    "strided memoryview": (lambda: memoryview(bytearray([1, 9, 2, 9, 3, 9, 4]))[::2], "uint8", True),
    "mmap": (_mapped, "uint8", True),
    "ctypes": (lambda: (ctypes.c_double * 4)(1, 2, 3, 4), "float64", True),
}


@pytest.mark.parametrize("case", SOURCES)
def test_host_objects_share_their_memory(case):
    make, name, writeable = SOURCES[case]
    source = make()
    taken, again = take(source, copy=False), take(source)
    assert type(taken) is np.ndarray
    assert taken.dtype is dtypes.as_dtype(name)
    assert taken.astype(np.float64).tolist() == [1, 2, 3, 4]
    assert taken.flags.writeable == writeable
    assert address(taken) == address(again)
    copied = take(source, copy=True)
    assert not np.may_share_memory(copied, taken)
    assert copied.flags.writeable
    if writeable:
        taken[0] = 7
        assert again[0] == 7
        assert copied[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("case", SOURCES)
def test_host_objects_live_as_long_as_their_memory_is_used(case):
    taken = take(SOURCES[case][0]())
    gc.collect()
    others = [np.full(4, 99, taken.dtype) for _ in range(64)]  # would get memory that was freed too early
    assert taken.astype(np.float64).tolist() == [1, 2, 3, 4]
    assert len(others) == 64


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_becomes_an_ordinary_array():
    matrix = np.matrix([[1.0, 2.0]])
    taken = take(matrix, copy=False)
    assert type(taken) is np.ndarray
    assert address(taken) == address(matrix)


@pytest.mark.parametrize(
    "scalar", [np.float32(3), np.int64(3), np.bool_(True), np.complex64(3), ml_dtypes.bfloat16(3)], ids=repr
)
def test_numpy_scalars_are_0_d(scalar):
    taken = take(scalar)
    assert (taken.shape, taken.dtype) == ((), scalar.dtype)
    assert taken == scalar
    with pytest.raises(LayoutError, match=r"copy=False, but a \w+ does not share its memory with NumPy; write copy=No"):
        take(scalar, copy=False)


def test_exports_that_copy_are_refused_if_copies_are_forbidden():
    class Copier:
        def __array__(self, dtype=None, copy=None):
            if copy is False:
                raise ValueError("cannot")
            return NUMBERS.copy()

    assert take(Copier()).tolist() == [1, 2, 3, 4]
    with pytest.raises(LayoutError, match="copy=False, but a Copier does not share its memory"):
        take(Copier(), copy=False)


class OnDevice:
    """An object such as a CuPy array: its ``__array__`` would move the data."""

    __cuda_array_interface__ = {"version": 3}  # noqa: RUF012

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("asked for a transfer")


class DLPackOnly:
    def __dlpack__(self):
        raise AssertionError("asked for a capsule")


class DLPackFirst(DLPackOnly):
    def __array__(self, dtype=None, copy=None):
        raise AssertionError("asked for a transfer")


@pytest.mark.parametrize(
    "obj",
    [
        *([1, 2], (1.0,), 3, 3.0, 1j, True, None, "text", {1: 2}, range(3), object(), np.float32, memoryview),
        *(DLPackOnly(), DLPackFirst(), OnDevice()),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_other_objects_are_left_to_others(obj):
    assert take(obj) is None


@pytest.mark.parametrize("name", dtypes.ALL, ids=str)
def test_every_dtype_comes_in(name):
    source = np.zeros((2, 3), name)
    assert take(source, copy=False) is source


def test_dtypes_equal_to_ours_become_ours():
    for given, ours in (
        (np.dtype("longlong"), dtypes.int64),
        (np.dtype("long"), dtypes.int64),
        (np.dtype("f4", metadata={"unit": "m"}), dtypes.float32),
    ):
        source = np.ones(2, given)
        taken = take(source, copy=False)
        assert taken.dtype is ours
        assert taken.dtype.metadata is None
        assert address(taken) == address(source)


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_float))


REFUSED_DTYPES = {
    "byte order": (np.zeros(2, ">f4"), r"'>f4' is float32 in foreign byte order; write x\.astype\('float32'\)"),
    "structured": (np.zeros(2, "f4, i8"), r"structured.*x\['f0'\] in NumPy"),
    "object": (np.array([1, None]), r"holds Python objects.*x\.astype\('float64'\) in NumPy"),
    "text": (np.array(["a"]), r"holds text.*x\.astype\('float64'\) in NumPy"),
    "bytes": (np.array([b"a"]), r"holds text.*x\.view\('uint8'\) for the bytes in NumPy"),
    "time": (np.zeros(2, "M8[s]"), r"holds dates.*x\.view\('int64'\) in NumPy"),
    "duration": (np.zeros(2, "m8[s]"), r"dates or durations.*x\.view\('int64'\) in NumPy"),
    "longdouble": (np.zeros(2, "longdouble"), r"x\.astype\('float64'\) in NumPy"),
    "clongdouble": (np.zeros(2, "clongdouble"), r"x\.astype\('complex128'\) in NumPy"),
    "int4": (np.zeros(2, ml_dtypes.int4), "'int4' is not supported: .*write 'int8'"),
    "a scalar": (np.str_("a"), "holds text"),
    "ctypes structure": (Point(), r"structured.*x\['x'\] in NumPy"),
    "a buffer of pointers": ((ctypes.c_void_p * 2)(), r"NumPy cannot read a buffer of format '<P'; write bytes\(x\)"),
    "an object of objects": (Converter(np.array([1, None])), "holds Python objects"),
}


@pytest.mark.parametrize("case", REFUSED_DTYPES)
def test_other_dtypes_are_refused(case):
    source, message = REFUSED_DTYPES[case]
    with pytest.raises(DTypeError, match="^asarray: .*" + message):
        take(source)


def test_masked_arrays_are_refused():
    with pytest.raises(InterchangeError, match=r"got a masked array; write x\.filled\(value\)"):
        take(np.ma.array([1, 2], mask=[0, 1]))


RAW = np.arange(67, dtype=np.uint8)[: 64 + 1]
MISALIGNED = {
    "pointer": lambda: np.ndarray((4,), np.float32, RAW, 1 + -address(RAW) % 16),
    "stride": lambda: np.ndarray((4,), np.float32, RAW, -address(RAW) % 16, (6,)),
    "bfloat16 stride": lambda: np.ndarray((4,), ml_dtypes.bfloat16, RAW, -address(RAW) % 16, (3,)),
    "complex pointer": lambda: np.ndarray((1,), np.complex128, RAW, 8 + -address(RAW) % 16),
    "complex stride": lambda: np.ndarray((2,), np.complex128, RAW, -address(RAW) % 16, (24,)),
    "field": lambda: np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")]))["b"],
}
ALIGNED = {
    "one element": lambda: np.ndarray((1, 4), np.float32, RAW, -address(RAW) % 16, (5, 4)),
    "one complex element": lambda: np.ndarray((1,), np.complex128, RAW, -address(RAW) % 16, (3,)),
    "no element": lambda: np.ndarray((0, 4), np.float32, RAW, 1 + -address(RAW) % 16),
    "no complex element": lambda: np.ndarray((0, 4), np.complex128, RAW, 1 + -address(RAW) % 16),
    "bytes": lambda: RAW[1::3],
    "complex": lambda: np.zeros((3, 4), np.complex128)[::2, ::-1],
}


@pytest.mark.parametrize("case", MISALIGNED)
def test_misaligned_arrays_are_copied_or_refused(case):
    source = MISALIGNED[case]()
    for copy in (None, True):
        taken = take(source, copy)
        assert np.array_equal(bits(taken), bits(source))
        assert address(taken) % taken.itemsize == 0
        assert all(stride % taken.itemsize == 0 for stride in taken.strides)
    with pytest.raises(LayoutError, match=r"^asarray: expected an address and strides.*write copy=None, or x\.copy"):
        take(source, copy=False)


@pytest.mark.parametrize("case", ALIGNED)
def test_aligned_arrays_are_shared(case):
    source = ALIGNED[case]()
    assert take(source, copy=False) is source
