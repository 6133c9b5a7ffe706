"""NumPy's names against NumPy: every call of a table, with arrays of several dtypes and layouts.

The table is in `support.oracles.name_calls`; a new name needs one line there.
"""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracles.name_calls import CALLS, LINES, Namespace, check_line, values
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.engine.devices import Device
from tilearray.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    IndexingError,
    LayoutError,
    LinAlgError,
    OperandError,
    ScalarOverflowError,
    ShapeError,
    WriteError,
)
from tilearray.numpy_names import names, padding, polynomials


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_a_name_gives_numpys_result(line: str, dtype: str):
    check_line(line, dtype, "cpu")


@pytest.mark.parametrize("call", ["fabs(x)", "rint(x)", "fmax(x, 2.5)", "fmin(x, 2.5)", "logaddexp2(x, 3)"])
def test_a_dtype_is_that_of_the_whole_computation(call: str):
    whole = np.array([2**24 + 1, -7])
    found = eval(call.replace(")", ", dtype='float64')"), Namespace(ta, {"x": ta.asarray(whole, device="cpu")}))
    want = eval(call.replace(")", ", dtype='float64')"), Namespace(np, {"x": whole}))
    assert found.dtype == ta.float64
    np.testing.assert_allclose(ta.to_numpy(found), want, rtol=1e-15)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize(
    "call",
    [
        *("fabs(x)", "rint(x)", "modf(x)", "logaddexp2(x, 3)", "logaddexp2(2.5, x)", "logaddexp2(x, h)"),
        *("choose([1, 0], [x, 1])", "choose([1, 0], [2.5, x])", "setdiff1d(x, [3.5])", "setdiff1d(x, h)"),
        *("logspace(0, x[0], 3)", "logspace(0.0, x, 3)"),
    ],
)
def test_dtypes_are_numpys_under_its_semantics(call: str, dtype: str):
    theirs = {"x": np.array([0, 1], dtype), "h": np.array([3, 4], "float16")}
    with ta.semantics("numpy"):
        found = eval(call, Namespace(ta, {name: ta.asarray(value, device="cpu") for name, value in theirs.items()}))
    want = eval(call, Namespace(np, theirs))
    for one, other in zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]:
        assert one.dtype == other.dtype
        np.testing.assert_allclose(
            ta.to_numpy(one), other, rtol=4 * np.finfo(other.dtype).eps if other.dtype.kind == "f" else 0
        )


@pytest.mark.parametrize(
    "call",
    [
        *("unique(x)", "unique(x, return_counts=True)", "unique(x, return_inverse=True)", "union1d(x, y)"),
        *("intersect1d(x, y)", "setxor1d(x, y)", "setdiff1d(x, y)", "x[lexsort((x,))]"),
    ],
)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_many_float16_are_in_order(call: str, zero: float):
    """NumPy's own sort puts some of them before smaller ones."""
    x = np.round(3 * np.random.default_rng(0).normal(size=70_000)).astype("float16")
    x[x == 0] = 0
    x[:5] = zero
    theirs = {"x": x.astype("float64"), "y": np.array([-1.0, 0, 99])}
    ours = {name: ta.asarray(value, "float16", device="cpu") for name, value in theirs.items()}
    found, want = eval(call, Namespace(ta, ours)), eval(call, Namespace(np, theirs))
    for one, other in zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]:
        np.testing.assert_array_equal(ta.to_numpy(one), other)


def test_a_number_that_the_choices_cannot_hold_is_an_error():
    x = ta.asarray([1, 2], dtype="int8", device="cpu")
    with pytest.raises(ScalarOverflowError, match="300"):
        ta.choose([0, 1], [x, 300])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_coordinates_of_the_largest_padded_arrays_fit_32_bits(mode):
    """A kernel adds the first number to a place, or takes it from one."""
    for size in (1, padding.MOST // 2, padding.MOST - 1):
        for before in (0, 1, padding.MOST - size):
            first, second = padding._numbers(mode, size, before)
            assert first >= 0
            assert max(padding.MOST - 1 + first, second) < 2**32


# --- on a device that is not the host ------------------------------------------------------------------------------

EVERYWHERE = """
    absolute append arctan2 array_split around ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d block
    column_stack concatenate conjugate copy degrees diagflat dsplit dstack fabs fix fliplr flipud fmax fmin hsplit
    hstack iscomplex isposinf logaddexp2 modf polyval ravel resize rint rollaxis rot90 select split swapaxes vander
    vsplit vstack
"""


NO_SELECTION = "count: the host runs no such node"
"""This device has the kernels of the host, none of which selects elements by a mask."""
GATHERING = ("choose", "delete", "x[ix_", "pad")  # this device has no memory for the errors of indices


def devices_of(found: Any) -> set[Any]:
    if isinstance(found, (tuple, list)):
        return set().union(*map(devices_of, found))
    return {found.device} if isinstance(found, ta.Array) else set()


def outcome(call: str, ours: dict[str, Any]) -> tuple[Any, str]:
    """The result of a call, or its error."""
    try:
        return eval(call, Namespace(ta, ours)), ""
    except (DeviceError, IndexingError, NotImplementedError, OperandError) as error:
        return None, str(error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_goes_to_the_host_by_itself(elsewhere: Device):
    """Each call of the table computes where its arrays are, or is an error that names the transfer."""
    ours = {name: ta.asarray(value, device=elsewhere) for name, value in values("float32").items()}
    advice = ("to_device('cpu')", f"write ta.asarray(y, device='{elsewhere}')", NO_SELECTION)
    ran: set[str] = set()
    for call in (call.strip() for line in LINES for call in line.split(";")):
        name = call.partition("(")[0]
        if name in (*GATHERING, "fromfunction"):
            continue
        found, message = outcome(call, ours)
        assert not message or any(words in message for words in advice), (call, message)
        if not message:
            ran.add(name)
            used = set(re.findall(r"\b[xyvwsznqijkumbc]\b", call.replace("v.dtype", "")))
            assert devices_of(found) <= {elsewhere} or not used, call
    assert set(EVERYWHERE.split()) <= ran


def test_ranges_lie_on_the_device_of_the_arrays_beside_them(elsewhere: Device):
    j = ta.asarray([7, 8], device=elsewhere)
    for found in (ta.r_[0:4:2, j], ta.r_[0:1:3j, j, 5], ta.c_[0:2, j]):
        assert found.device is elsewhere
    assert ta.to_numpy(ta.r_[0:4:2, j]).tolist() == [0, 2, 7, 8]


def test_host_functions_name_the_transfer(elsewhere: Device):
    x = ta.zeros((3, 3), device=elsewhere)
    for name in ("median", "nanmedian", "cov", "corrcoef", "histogram", "unwrap", "unique", "gradient", "interp"):
        more = (x, x) if name == "interp" else ()
        message = (
            rf"^{name}: expected arrays on the host, got one on cuda:7654321, where tilearray has no {name} yet; "
            rf"write ta.{name}\(x.to_device\('cpu'\)\)$"
        )
        with pytest.raises(DeviceError, match=message):
            getattr(ta, name)(x, *more)
    with pytest.raises(DeviceError, match=r"write ta.vectorize\(f\)\(x.to_device\('cpu'\)\)$"):
        ta.vectorize(lambda a: a + 1)(x)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("weights", [None, "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("density", [False, True])
def test_histograms_have_the_dtypes_of_numpy_under_its_semantics(dtype, weights, density):
    x = np.arange(6).astype(dtype).reshape(3, 2)
    w = None if weights is None else np.ones((3, 2), weights)
    ours, scale = ta.asarray(x), None if w is None else ta.asarray(w)
    with ta.semantics("numpy"):
        pairs = [
            (ta.histogram(ours, 3, density=density, weights=scale), np.histogram(x, 3, density=density, weights=w))
        ]
        if weights is None:
            pairs.append((ta.histogram2d(*ours.T, 2, density=density), np.histogram2d(*x.T, 2, density=density)))
            found, wanted = (xp.histogramdd(each, 2, density=density) for xp, each in ((ta, ours), (np, x)))
            pairs.append(((found[0], *found[1]), (wanted[0], *wanted[1])))
    for found, wanted in pairs:
        assert [each.dtype for each in found] == [each.dtype for each in wanted]
        for mine, numpys in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ta.to_numpy(mine), numpys, rtol=2e-3 if dtype == "float16" else 0)


@pytest.mark.parametrize("edges", ["bool", "int8", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "float64"])
def test_given_edges_come_back_as_they_are(dtype: str, edges: str):
    x, bins = ta.asarray([0, 1, 1], dtype=dtype), ta.asarray([0, 0, 1], dtype=edges)
    for limits in (bins, ta.to_numpy(bins)):
        found = [ta.histogram(x, limits)[1], ta.histogram_bin_edges(x, limits), *ta.histogram2d(x, x, limits)[1:]]
        found += [*ta.histogramdd((x, x), [limits, 3])[1][:1], *ta.histogram2d(x, x, [limits, limits])[1:]]
        assert [(each.dtype, each.tolist()) for each in found] == [(bins.dtype, bins.tolist())] * len(found)
    assert ta.histogramdd((x, x), ta.asarray([2, 3]))[0].shape == ta.histogram2d(x, x, np.array([2, 3]))[0].shape


def test_edges_of_many_narrow_elements_come_back_as_they_are():
    edges = ta.asarray([0.1, 0.7, 2.0], dtype="float64")
    counts, found = ta.histogram(ta.ones(2**18 + 1, dtype="float16"), edges)
    assert (counts.tolist(), found.dtype, found.tolist()) == ([0, 2**18 + 1], edges.dtype, edges.tolist())


@pytest.mark.parametrize("default", [0, True, np.float32(0.5), np.zeros(3, "int16")])
@pytest.mark.parametrize("dtypes", [("float32", "bool"), ("int8", "bool"), ("bool", "bool"), ("int8", "uint8")])
def test_select_has_the_common_dtype_of_all_choices_in_any_order(dtypes, default):
    conditions = [np.array([True, False, False]), np.array([True, True, False])]
    for order in (dtypes, dtypes[::-1]):
        choices = [np.ones(3, dtype) for dtype in order]
        with ta.semantics("numpy"):
            found = ta.select([ta.asarray(one) for one in conditions], [ta.asarray(one) for one in choices], default)
        wanted = np.select(conditions, choices, default)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(ta.to_numpy(found), wanted)


@pytest.mark.parametrize("method", ["linear", "lower", "nearest", "midpoint"])
@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_quantiles_of_nothing_have_the_dtype_of_the_others(dtype, method):
    x = ta.ones((2, 3), dtype=dtype)
    assert ta.quantile(x[:0], 0.5, 1, method=method).dtype == ta.quantile(x, 0.5, 1, method=method).dtype


def test_counts_are_exact_beyond_what_narrow_floats_count():
    x = ta.zeros(3001, dtype="float16")
    assert ta.histogram2d(x, x, 1)[0].tolist() == [[3001.0]]
    assert ta.histogramdd(x.astype("bfloat16")[:, None], 1)[0].tolist() == [3001.0]
    assert ta.histogram(x, 1, weights=ta.ones(3001))[0].tolist() == [3001.0]
    assert ta.histogram(x, 1, (0, 1), weights=ta.ones(3001, dtype="bfloat16"))[0].dtype == ta.bfloat16


def test_every_name_is_tested():
    """In a line of the table, in a test below, or in test_files.py."""
    here = Path(__file__)
    text = CALLS + here.read_text(encoding="utf-8").partition("# --- by themselves")[2]
    text += here.with_name("test_files.py").read_text(encoding="utf-8")
    assert names.MODULE_OF.keys() - set(re.findall(r"\w+", text)) == set()


# --- by themselves -------------------------------------------------------------------------------------------------

DTYPES = """
    bool_ bool, byte int8, short int16, intc int32, longlong int64, int_ int64, intp int64, ubyte uint8, ushort uint16,
    uintc uint32, ulonglong uint64, uint uint64, uintp uint64, half float16, single float32, double float64,
    csingle complex64, cdouble complex128
"""


@pytest.mark.parametrize(("name", "dtype"), [pair.split() for pair in DTYPES.split(",")])
def test_a_dtype_has_numpys_name(name: str, dtype: str):
    assert getattr(ta, name) == np.dtype(dtype) == np.dtype(getattr(np, name))
    assert getattr(ta, name) is getattr(ta, dtype)


OBJECTS = """
    complexfloating dtype errstate euler_gamma floating generic geterr index_exp inexact integer iterable number s_
    seterr signedinteger unsignedinteger
"""


@pytest.mark.parametrize("name", OBJECTS.split())
def test_an_object_is_numpys(name: str):
    assert getattr(ta, name) is getattr(np, name)


def test_an_array_is_an_ndarray_of_this_library():
    assert isinstance(ta.zeros(2), ta.ndarray)
    assert not isinstance(np.zeros(2), ta.ndarray)
    assert type(ta.ndarray(2)) is ta.ndarray


@pytest.mark.parametrize("order", [None, "C", "F"])
@pytest.mark.parametrize("shape", [(), 3, np.int64(3), (2, 3), (0, 2)])
@pytest.mark.parametrize("dtype", [float, "int16", np.complex64])
def test_ndarray_makes_an_uninitialised_array(shape, dtype, order):
    mine, theirs = ta.ndarray(shape, dtype, order=order), np.ndarray(shape, dtype, order=order)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    assert mine.flags.f_contiguous is theirs.flags.f_contiguous
    mine[...] = 1
    assert ta.all(mine == 1)


def test_ndarray_has_the_default_dtype_and_device():
    assert ta.ndarray(shape=(2,)).dtype == "float32"
    with ta.semantics("numpy"):
        assert ta.ndarray((2,)).dtype == np.ndarray((2,)).dtype
    assert ta.ndarray(2).device == ta.default_device()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 8])
def test_ndarray_over_a_buffer_shares_it(offset: int, order: str):
    memory = bytearray(range(40))
    for buffer in (memory, np.frombuffer(memory, "int32"), ta.frombuffer(memory, "int32")):
        mine = ta.ndarray((2, 3), "int32", buffer, offset, order=order)
        theirs = np.ndarray((2, 3), "int32", memory, offset, order=order)
        mine[1, 1] += 1
        assert np.array_equal(np.asarray(mine), theirs)
        assert mine.strides == tuple(stride // 4 for stride in theirs.strides)
    assert sum(memory) == sum(range(40)) + 3
    assert not ta.ndarray((2, 3), "int32", bytes(memory), offset).flags.writeable


BAD_NDARRAYS = [
    (
        lambda: ta.ndarray([2, 3]),
        ShapeError,
        r"^Array: expected shape as an int or a tuple of ints, got list; write ta",
    ),
    (lambda: ta.ndarray(np.arange(3)), ShapeError, r"got numpy.ndarray; write ta.asarray\(data\)"),
    (lambda: ta.Array(ta.ones(3)), ShapeError, r"got tilearray.Array; write ta.asarray\(data\)"),
    (lambda: ta.ndarray((2, -1)), ShapeError, r"^Array: expected sizes >= 0"),
    (lambda: ta.ndarray((2, 2), strides=(16, 8)), OperandError, r"got \(16, 8\); write ta.as_strided\(x, shape, strid"),
    (
        lambda: ta.ndarray(2, "int8", [1, 2]),
        OperandError,
        r"^Array: a bytes-like object is required, not 'list'; write",
    ),
    (lambda: ta.ndarray(2, "int32", b"1234"), OperandError, r"^Array: buffer is too small for requested array; write"),
    (lambda: ta.ndarray(2, "int8", ta.ones(9, dtype="int8")[::3]), OperandError, r"not contiguous; write a buffer"),
    (lambda: ta.ndarray(1, "int8", b"1234", -1), ShapeError, r"^Array: expected offset >= 0, got -1; write the number"),
    (lambda: ta.ndarray(1, "int8", b"1234", 0.5), ShapeError, r"^Array: expected offset as an int, got float"),
    (
        lambda: ta.ndarray(1, "int32", np.zeros(8, "int8"), 2),
        LayoutError,
        r"^Array: the data starts at an address that",
    ),
    (lambda: ta.ndarray(2, order="X"), LayoutError, r"^Array: expected order as one of C, F, A, K, got 'X'"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_NDARRAYS)
def test_a_bad_call_of_ndarray_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


CLASSES = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating]
KINDS = ["bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", KINDS)
def test_issubdtype_is_numpys(dtype: str):
    for given in (dtype, np.dtype(dtype), np.dtype(dtype).type):
        for other in [*CLASSES, np.complexfloating, "float32", np.int64, np.dtype("bool"), float, int]:
            assert ta.issubdtype(given, other) == np.issubdtype(given, other), other


def test_issubdtype_counts_the_short_floats():
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float16"):
        answers = [
            ta.issubdtype(name, one) for one in (ta.floating, ta.inexact, ta.number, ta.integer, ta.float32, name)
        ]
        assert answers == [True, True, True, False, False, True]
    assert ta.issubdtype(np.floating, np.inexact)


def both(shape: tuple[int, ...], dtype: str = "float64") -> tuple[np.ndarray, ta.Array]:
    """Equal arrays of both libraries, with steps."""
    data = np.arange(4 * np.prod(shape)).astype(dtype).reshape(*shape[:-1], -1)[..., ::4]
    return data.copy().T.copy().T, ta.asarray(data)


CHANGES = """
    fill_diagonal(x, 7)
    fill_diagonal(x, -1, wrap=True)
    fill_diagonal(x, [5, 6])
    fill_diagonal(x[:3, :3], x[3, :3])
    putmask(x, x > 9, -1)
    putmask(x, x > 9, [1, 2, 3])
    putmask(x, x > 9, x * 2)
    putmask(x.T, x.T > 9, x.T - 1)
    place(x, x > 5, [1, 2, 3])
    place(x, x % 2 == 0, x[0])
    place(x, x > 1e9, 3)
    place(x.T, x.T > 5, [1, 2])
    copyto(x, 5)
    copyto(x, x[0])
    copyto(x, x[0] / 2, "unsafe")
    copyto(x, 2.5, "unsafe", where=x > 5)
    copyto(x, 9, where=x > 5)
    copyto(x[:, 1], [1, 2, 3, 4, 5], where=[True, False, True, False, True])
    put(x, [0, 5, -1], [1, 2, 3])
    put(x, [0, 5], 9)
    put(x, [[1, 2], [3, 4]], [7, 8, 9, 10])
    put(x.T, [1, 2], 99)
    put(x, [0, 99], 4, mode="clip")
    put(x, [0, 99], 4, mode="wrap")
    put_along_axis(x, asarray([[0], [2], [1], [0], [2]]), -5, 1)
    put_along_axis(x, asarray([[4, 0, 1]]), asarray([[7, 8, 9]]), 0)
"""


@pytest.mark.parametrize("call", [line.strip() for line in CHANGES.strip().splitlines()])
@pytest.mark.parametrize("dtype", ["float64", "int16", "bfloat16"])
def test_a_function_changes_its_operand_as_numpys_does(call: str, dtype: str):
    theirs, ours = both((5, 3), "float64" if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        ours = ours.astype(dtype)
    assert eval(call, Namespace(ta, {"x": ours})) is None
    eval(call, Namespace(np, {"x": theirs}))
    np.testing.assert_array_equal(ta.to_numpy(ours).astype(theirs.dtype), theirs)


def test_arrays_of_buffers_and_iterators():
    raw = bytearray(np.arange(6, dtype=np.int16).tobytes())
    x = ta.frombuffer(raw, "int16", offset=2, count=3)
    assert x.tolist() == [1, 2, 3]
    x[0] = 9
    assert np.frombuffer(raw, np.int16)[1] == 9  # the memory is shared
    assert ta.frombuffer(b"\0\0\x80\x3f").tolist() == [1.0]
    with pytest.raises(WriteError, match="read-only"):
        ta.frombuffer(b"abc", ta.uint8)[0] = 1
    assert ta.fromiter((n * n for n in range(5)), "float32", 3).tolist() == [0.0, 1.0, 4.0]
    assert ta.fromiter([], "int8").shape == (0,)
    with pytest.raises(OperandError, match=r"^fromiter: expected 4 numbers, got 1; write count=-1"):
        ta.fromiter([1], "int8", 4)


def test_array_copies_and_asarray_does_not():
    source = np.arange(6.0).reshape(2, 3)
    for of in (source, ta.asarray(source), source.T):
        copied, shared = ta.array(of), ta.array(of, copy=None)
        assert copied.strides == shared.strides
        assert not np.shares_memory(ta.to_numpy(copied), source)
        assert np.shares_memory(ta.to_numpy(shared), source)
    assert ta.array(source, order="F").strides == (1, 2)
    assert ta.array([[1, 2], [3, 4]], order="F").strides == (1, 2)
    assert ta.array(3, "int8", ndmin=2).shape == (1, 1)
    assert ta.array([1, 2], "bfloat16").dtype == ta.bfloat16
    with pytest.raises(LayoutError, match="copy=False"):
        ta.array([1, 2], copy=False)


def test_orders_and_views():
    x = ta.asarray(np.arange(6.0).reshape(2, 3))
    assert ta.asfortranarray(x).strides == (1, 2)
    assert ta.ascontiguousarray(x.T).strides == (2, 1)
    for view in (ta.ravel(x), ta.split(x, 2)[0], ta.fliplr(x), ta.rot90(x), ta.atleast_3d(x), ta.swapaxes(x, 0, 1)):
        assert ta.may_share_memory(view, x)
    assert ta.ascontiguousarray(x) is x
    assert not ta.may_share_memory(ta.copy(x), x)


def test_iteration_over_indices():
    assert list(ta.ndindex((2, 3))) == list(np.ndindex((2, 3)))
    assert list(ta.ndindex(2, 3)) == list(np.ndindex(2, 3))
    x = np.arange(6).reshape(2, 3).T
    assert list(ta.ndenumerate(ta.asarray(x))) == list(np.ndenumerate(x))


SHORT = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
ON_SHORT_FLOATS = """
    median(x) median(x,1) percentile(x,30) nanmedian(x) histogram(x,3)[1] unique(x) interp(x,x[0],x[1]) gradient(x)[0]
    hstack([x,x]) nanmax(x,1) nanmin(x) nansum(x) nanmean(x,0) ptp(x) average(x,1) pad(x,1,"edge") pad(x,1)
    delete(x,0,0) insert(x,1,0.5,0) resize(x,(2,2)) union1d(x,x) convolve(x[0],x[0]) trapezoid(x) cumsum(x) fmax(x,0.25)
"""


@pytest.mark.parametrize("dtype", SHORT)
def test_short_floats_stay_short_and_are_rounded_once(dtype: str):
    x = ta.asarray([[0.5, 1.0, 2.0], [0.25, 4.0, 1.5]], "float64")
    for call in ON_SHORT_FLOATS.split():
        narrow = eval(call, Namespace(ta, {"x": x.astype(dtype)}))
        assert narrow.dtype == dtype, call
        expected = eval(call, Namespace(np, {"x": ta.to_numpy(x)}))
        wanted = ta.to_numpy(ta.asarray(np.asarray(expected, np.float64)).astype(dtype)).astype(np.float64)
        np.testing.assert_allclose(ta.to_numpy(narrow).astype(np.float64), wanted, rtol=0.07, err_msg=call)


# --- errors --------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x: ta.split(x, 4),
        ShapeError,
        "^split: expected an axis that divides into 4 equal parts, got size 3",
    ),
    (lambda x: ta.array_split(x, 0), ShapeError, "^array_split: expected at least one part, got 0"),
    (lambda x: ta.hsplit(ta.zeros(()), 2), ShapeError, r"^hsplit: expected at least 1 axes, got shape \(\)"),
    (lambda x: ta.hstack([]), OperandError, "^hstack: expected a list or tuple .*, got an empty one; write ta.hstack"),
    (lambda x: ta.vstack(3), OperandError, "^vstack: expected a list or tuple of at least one array, got int"),
    (lambda x: ta.nanargmax(x * ta.nan), ShapeError, "^nanargmax: expected a number to choose in every slice"),
    (
        lambda x: ta.average(x, weights=ta.zeros((3, 4))),
        OperandError,
        "^average: expected weights with a sum other",
    ),
    (lambda x: ta.average(x, 1, [1, 2]), ShapeError, r"^average: expected weights of shape \(3, 4\) or of the axes"),
    (lambda x: ta.fill_diagonal(x[0], 1), ShapeError, "^fill_diagonal: expected two axes, or more of one size"),
    (lambda x: ta.pad(x, (1, 2, 3)), ShapeError, "^pad: expected an int, a pair, or a pair for each of 2 axes"),
    (lambda x: ta.pad(x, -1), ShapeError, "^pad: expected pad_width >= 0, got -1"),
    (lambda x: ta.pad(x.astype("int8"), 1, constant_values=2.5), DTypeError, "^pad: int8 cannot hold 2.5"),
    (lambda x: ta.pad(x, 1, constant_values="b"), OperandError, "^pad: expected constant_values as numbers, got 'b'"),
    (lambda x: ta.pad(x, 1, constant_values=(1, 2, 3)), ShapeError, "^pad: expected constant_values as a number, a"),
    (lambda x: ta.pad(x, 1, end_values=3), OperandError, "^pad: expected no end_values for mode='constant'"),
    (lambda x: ta.pad(x, 1, "wrap", end_values=3), OperandError, "^pad: expected no end_values for mode='wrap'"),
    (lambda x: ta.pad(x[:0], 1, "edge"), ShapeError, "^pad: can't extend empty axis 0 .*; write mode='constant'"),
    (lambda x: ta.pad(x, 1, mode="up"), ShapeError, "^pad: mode 'up' is not supported"),
    (lambda x: ta.interp(1.0, x, x), ShapeError, "^interp: object too deep for desired array"),
    (lambda x: ta.select([x], [x]), DTypeError, "^select: expected bool conditions, got float32; write condition != 0"),
    (lambda x: ta.select([], []), ShapeError, "^select: expected as many choices as conditions and at least one"),
    (lambda x: ta.choose([-1], [x, x]), OperandError, "^choose: expected numbers from 0 to 1, got a negative one"),
    (lambda x: ta.choose([0], [x], mode="up"), OperandError, "^choose: expected mode as 'raise', 'wrap' or 'clip'"),
    (lambda x: ta.compress(x > 0, x), ShapeError, "^compress: expected a 1-d condition"),
    (lambda x: ta.piecewise(x, [x > 0], [1, 2, 3]), ShapeError, "^piecewise: expected 1 functions or 2, got 3"),
    (lambda x: ta.putmask(x, [True], 1), ShapeError, r"^putmask: expected a mask of shape \(3, 4\), got \(1,\)"),
    (lambda x: ta.place(x, x > -1, []), ShapeError, "^place: expected at least one value, got none"),
    (lambda x: ta.delete(x, 9, 0), ShapeError, "^delete: index 9 is out of bounds"),
    (lambda x: ta.delete(x, [True], 0), ShapeError, "^delete: boolean array argument obj to delete must be"),
    (lambda x: ta.insert(x, 9, 0, 0), IndexingError, "^insert: index 9 is out of bounds"),
    (lambda x: ta.insert(x.astype("int8"), 0, 300), ScalarOverflowError, "^insert: 300 does not fit int8"),
    (lambda x: ta.copyto(x.astype("int8"), x), DTypeError, "^copyto: casting='same_kind' does not allow float32 to"),
    (lambda x: ta.copyto(x.astype("int8"), 2.5), DTypeError, "^copyto: casting='same_kind' does not allow 2.5 to"),
    (lambda x: ta.copyto(x, x.astype("float64"), "safe"), DTypeError, "^copyto: casting='safe' does not allow float64"),
    (lambda x: ta.copyto(x, x, "some"), OperandError, "^copyto: expected casting as 'no', .* got 'some'"),
    (lambda x: ta.partition(x, 4), ShapeError, "^partition: expected kth as integers from -4 to 3, got 4; write kth=2"),
    (lambda x: ta.argpartition(x, [0, -4], 0), ShapeError, "^argpartition: expected kth as integers from -3 to 2"),
    (lambda x: ta.partition(x, 1.0), ShapeError, "^partition: expected kth as integers from -4 to 3, got 1.0"),
    (lambda x: ta.polyval(x, x), ShapeError, r"^polyval: expected coefficients of one axis, got shape \(3, 4\)"),
    (lambda x: ta.ptp(x * 1j), DTypeError, "^ptp: expected dtypes of kind bool"),
    (lambda x: ta.nanmax(x * 1j), DTypeError, "^nanmax: expected dtypes of kind bool"),
    (lambda x: ta.nanargmin(x * 1j), DTypeError, "^nanargmin: expected dtypes of kind bool"),
    (lambda x: ta.unravel_index(12, x.shape), ShapeError, "^unravel_index: index 12 is out of bounds"),
    (lambda x: ta.ravel_multi_index((3, 0), x.shape), ShapeError, "^ravel_multi_index: invalid entry in coordinates"),
    (lambda x: ta.geomspace(0, 1), ShapeError, "^geomspace: Geometric sequence cannot include zero"),
    (lambda x: ta.median(x, 2), AxisError, "^median: axis 2 is out of bounds for array of dimension 2"),
    (lambda x: ta.roots([1.0, ta.nan, 2.0]), LinAlgError, "^roots: Array must not contain infs or NaNs"),
    (lambda x: ta.quantile(x[:0], 0.5), ShapeError, "^quantile: expected at least one element to choose from"),
    (lambda x: ta.histogramdd((x, x)), ShapeError, "^histogramdd: expected arrays of one axis and one size, got"),
    (lambda x: ta.r_["0,2", x], OperandError, "^r_: expected slices, numbers and arrays, got a string of directions"),
    (lambda x: ta.mgrid[3], OperandError, r"^mgrid: expected slices with a stop, got 3; write ta.mgrid\[0:3, 0:4\]"),
    (lambda x: ta.ix_(x), ShapeError, r"^ix_: expected 1-d indices, got shape \(3, 4\)"),
    (lambda x: ta.diag_indices_from(x), ShapeError, "^diag_indices_from: expected at least two axes of one size"),
    (lambda x: ta.tril_indices_from(x[0]), ShapeError, "^tril_indices_from: expected an array of two axes"),
    (lambda x: ta.vander(x), ShapeError, "^vander: expected a 1-d array"),
    (lambda x: ta.vander(x[0], -1), ShapeError, "^vander: expected N >= 0, got -1; write N=None"),
    (lambda x: ta.trim_zeros(x), ShapeError, "^trim_zeros: expected a 1-d array"),
    (lambda x: ta.flipud(ta.zeros(())), ShapeError, "^flipud: expected at least 1 axes"),
    (lambda x: ta.block([]), ShapeError, "^block: expected lists with at least one array"),
    (
        lambda x: ta.block([[x], [x, x]]),
        ShapeError,
        r"^block: expected the sizes of \(3, 4\) along all axes but 0, got",
    ),
    (lambda x: ta.block([x, [x]]), ShapeError, "^block: expected all arrays in equally many lists, got one in 1 less"),
    (lambda x: ta.cov(x, fweights=[1]), ShapeError, "^cov: incompatible numbers of samples and fweights; write one"),
    (
        lambda x: ta.ravel_multi_index((x, x), (2, 2)),
        DTypeError,
        "^ravel_multi_index: only int indices .*; write x.ast",
    ),
    (lambda x: ta.apply_along_axis(len, 0, x[:, :0]), ShapeError, "^apply_along_axis: expected at least one slice"),
    (lambda x: ta.median("a"), OperandError, "^median: expected a tilearray Array, got str; write float"),
    (lambda x: ta.median(x.astype("float4_e2m1fn")), DTypeError, "^median: float4_e2m1fn is a storage dtype"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call(ta.asarray(np.arange(12, dtype=np.float32).reshape(3, 4)))


def test_functions_have_numpys_parameters_first():
    """By position a call means the same; ours may have more, or lack the last ones."""
    wrong = [name for name in names.MODULE_OF if not same_positions(getattr(ta, name), getattr(np, name, None))]
    assert wrong == []


HINTS = {"overwrite_input", "like", "subok"}


def same_positions(ours: Any, theirs: Any) -> bool:
    if not inspect.isfunction(ours) or theirs is None or isinstance(theirs, (type, np.ufunc)):
        return True
    lists = [[one for one in inspect.signature(f).parameters.values() if one.name not in HINTS] for f in (ours, theirs)]
    positional = [[one for one in parameters if one.kind is not one.KEYWORD_ONLY] for parameters in lists]
    return all(x.name == y.name or x.default is x.empty for x, y in zip(*positional))


def test_distinct_elements_are_always_sorted():
    assert ta.unique([5, 3, 5], sorted=False).tolist() == [3, 5]


def test_a_name_is_imported_when_it_is_used():
    code = (
        "import sys, tilearray as ta; before = {n for n in sys.modules if 'numpy_names' in n}; ta.hstack; ta.hstack; "
    )
    code += "print(len(before), 'tilearray.numpy_names.stacking' in sys.modules, 'hstack' in vars(ta))"
    assert in_fresh_python(code).split() == ["0", "True", "True"]


def test_functions_and_grids_are_pickled_by_name():
    for name in ("hstack", "median", "mgrid", "ogrid", "r_", "c_", "concatenate", "vectorize"):
        value = getattr(ta, name)
        assert pickle.loads(pickle.dumps(value)) is value


# --- names that are missing ----------------------------------------------------------------------------------------


def test_polyfit_takes_the_options_of_numpys():
    x, y, w = np.arange(6.0), np.array([0.0, 1, 5, 8, 17, 25]), np.array([1.0, 2, 1, 1, 3, 1])
    ours = ta.asarray(x), ta.asarray(y)
    assert ta.polyfit(*ours, 2, w=ta.asarray(w)).tolist() == np.polyfit(x, y, 2, w=w).tolist()
    for options in ({"full": True}, {"cov": True}, {"w": w, "cov": "unscaled"}, {"rcond": 0.1, "full": True}):
        found, expected = ta.polyfit(*ours, 2, **options), np.polyfit(x, y, 2, **options)
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected):
            np.testing.assert_array_equal(np.asarray(mine), theirs)
    with pytest.raises(ta.GradientError, match=r"^polyfit: .*; write ta.linalg.lstsq$"):
        ta.grad(lambda x: ta.sum(ta.polyfit(x, ours[1], 1, w=w)))(ours[0])


@pytest.mark.parametrize("options", [{}, {"w": True}, {"rcond": 0.1}], ids=str)
@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_fit_by_our_operations_is_numpys(options, columns):
    """As polyfit computes where NumPy does not."""
    rng = np.random.default_rng(5)
    x, y, w = rng.standard_normal(9), rng.standard_normal((9, *columns)), rng.random(9) + 0.5
    theirs = options | ({"w": w} if "w" in options else {})
    weights = ta.asarray(w) if "w" in options else None
    fit = polynomials.fitted(ta.asarray(x), ta.asarray(y), weights, 3, options.get("rcond"))
    wanted, residuals, rank, values, rcond = np.polyfit(x, y, 3, full=True, **theirs)
    for mine, expected in ((fit.coefficients, wanted), (fit.residuals, residuals), (fit.singular_values, values)):
        np.testing.assert_allclose(ta.to_numpy(mine), expected, 1e-9, 1e-9)
    assert (fit.rank, fit.rcond) == (rank, rcond)
    for scale in (True, "unscaled") if rank == 4 else ():
        _, wanted = np.polyfit(x, y, 3, cov=scale, **theirs)
        found = polynomials.covariances(fit, scale is True)
        np.testing.assert_allclose(ta.to_numpy(found), wanted, 1e-9, 1e-9)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows_are_numpys_rounded_once(name):
    for points in (-3, 0, 1, True, 2, 3, 5.5, 12, np.int64(7), 12345):
        wanted = getattr(np, name)(points).astype("float32")
        np.testing.assert_array_equal(ta.to_numpy(getattr(ta, name)(points)), wanted)
    for points in ("a", None, [1], np.nan, np.inf):
        with pytest.raises(ta.OperandError, match=f"^{name}: expected a .*number, got .*; write {name}"):
            getattr(ta, name)(points)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_the_bound_of_a_fit_is_the_float_that_numpy_takes(dtype):
    """float16 has no number so small."""
    x = np.array([1, 2, 3, 5], dtype)
    read = x.astype("float32") if dtype == "float16" else x
    for rcond in (None, 0.25):
        found = ta.polyfit(ta.asarray(x), ta.asarray(x).astype("float16"), 1, rcond, full=True)[-1]
        assert (type(found), found) == (float, np.polyfit(read, read, 1, rcond, full=True)[-1])


ONE, TWO, PLACES = ta.ones(3), ta.ones((2, 3)), ta.arange(3)


def weighted(weights: Any, axis: Any = None) -> ta.Array:
    return ta.quantile(ONE, 0.5, axis, weights=weights, method="inverted_cdf")


def test_quantiles_with_weights_have_no_derivative():
    with pytest.raises(ta.GradientError, match=r"^quantile: quantiles with weights have no derivative; leave"):
        ta.grad(lambda x: ta.quantile(x, 0.5, weights=ONE, method="inverted_cdf"))(ONE)
    with pytest.raises(ta.GradientError, match=r"^quantile: quantiles with weights have no derivative; leave"):
        ta.grad(weighted)(ONE)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ta.quantile(ONE, 2), ShapeError, "range \\[0, 1\\]; write fractions from 0 to 1, or ta.percentile$"),
        (lambda: ta.percentile(ONE, 101), ShapeError, "write percentages from 0 to 100$"),
        (lambda: ta.quantile(ONE, 0.5, weights=ONE), ShapeError, "^quantile: Only .*; write method='inverted_cdf'$"),
        (lambda: weighted(-ONE), ShapeError, "^quantile: .*non-negative; write ta.abs"),
        (lambda: weighted(0 * ONE), ShapeError, "^quantile: .*; write finite weights, not all 0$"),
        (lambda: weighted([1, 2, 3, 4]), OperandError, "^quantile: Axis must be .*; write axis=$"),
        (lambda: weighted([1, 2, 3, 4], axis=0), ShapeError, "^quantile: Shape of .*; write a weight for each element"),
        (lambda: ta.median(ONE, axis=1), AxisError, "dimension 1; write an axis from -x.ndim to x.ndim - 1$"),
        (lambda: ta.histogram(ONE, bins=0), ShapeError, "write bins=10, or an array of edges$"),
        (lambda: ta.histogram(ONE, bins=[2, 1]), ShapeError, r"write ta.sort\(bins\)$"),
        (lambda: ta.histogram(ONE, range=(3, 1)), ShapeError, r"write range=\(low, high\) with low < high$"),
        (lambda: ta.histogram(ONE / 0), ShapeError, r"write x\[ta.isfinite\(x\)\], or range=\(low, high\)$"),
        (lambda: ta.bincount(ONE), DTypeError, r"write x.astype\('int64'\)$"),
        (lambda: ta.bincount(-PLACES), ShapeError, r"write x\[x >= 0\] to leave them out$"),
        (lambda: ta.bincount(PLACES, ta.ones(2)), ShapeError, "expected weights of shape .* reshape them$"),
        (lambda: ta.bincount(TWO.astype("int8")), ShapeError, r"write ta.reshape\(x, -1\)$"),
        (lambda: ta.pad(ONE, 1, mode="foo"), ShapeError, "write mode='constant', 'edge', .* or 'wrap'$"),
        (lambda: ta.interp(ONE, [1, 2], [1]), ShapeError, "write arrays of one length$"),
        (lambda: ta.polyfit(ONE, ONE, -1), ShapeError, "write deg=1 for a line$"),
        (lambda: ta.polyfit(ONE, ta.ones(2), 1), OperandError, "write arrays of one length$"),
        (lambda: ta.unwrap(PLACES.astype("uint8"), period=4), ScalarOverflowError, "write numbers that the dtype"),
        (lambda: ta.gradient(ta.ones(1)), ShapeError, "expected at least 2 elements along axis 0, got 1; write axis=$"),
        (lambda: ta.cov(ta.ones((2, 2, 2))), ShapeError, r"write ta.reshape\(x, \(len\(x\), -1\)\)"),
        (lambda: ta.insert(ONE, 9, 1), IndexingError, "write indices within the shape$"),
        (lambda: ta.unravel_index([9], (3,)), ShapeError, "write indices within the shape$"),
        (lambda: ta.ravel_multi_index(([9],), (3,)), ShapeError, r"within each of the axes \(3,\), or mode="),
        (lambda: ta.ravel_multi_index((9,), (3,)), ShapeError, r"within each of the axes \(3,\), or mode="),
        (lambda: ta.geomspace(0, 1), ShapeError, "write a start and a stop other than 0, and num >= 0$"),
        (lambda: ta.delete(ONE, [True]), ShapeError, "write an index of the axis$"),
        (lambda: ta.pad(ta.ones(0), 1, "edge"), ShapeError, "write mode='constant' for an axis without elements$"),
        (lambda: ta.ediff1d(PLACES, to_end=0.5), DTypeError, r"write int\(value\) to drop the fraction$"),
    ],
)  # fmt: skip
def test_what_numpy_refuses_names_the_function_and_says_what_to_write(
    call: Callable[[], Any], error: type[Exception], text: str
):
    with pytest.raises(error, match=text) as found:
        call()
    assert re.match(r"\w+: ", str(found.value))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trapz", "write ta.trapezoid$"),
        ("cat", "write ta.concat$"),
        ("loadtxt", r"write ta.asarray\(np.loadtxt\(...\)\)$"),
        ("savetxt", r"write np.savetxt\(..., ta.to_numpy\(x\)\)$"),
        ("busday_count", r"write np.busday_count with ta.to_numpy\(x\), on the host$"),
        ("concatenat", "write ta.concatenate$"),
        ("zzz", r"NumPy has no such name either; see dir\(ta\)$"),
    ],
)
def test_a_missing_name_says_what_to_write(name: str, text: str):
    with pytest.raises(AttributeError, match=text):
        getattr(ta, name)
    assert not hasattr(ta, name)


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        (ta.linalg, "nrom", r"^module 'tilearray.linalg' has no attribute 'nrom'; write ta.linalg.norm$"),
        (ta.linalg, "expm", r"^module 'tilearray.linalg' has .* see dir\(ta.linalg\)$"),
        (ta.random, "normal", r"'normal'; write ta.random.default_rng\(seed\).normal$"),
        (ta.random, "randn", r"'randn'; write ta.random.default_rng\(seed\).standard_normal$"),
        (ta.random, "seed", r"'seed'; write ta.random.default_rng\(seed\)$"),
        (ta.random, "rayleigh", r"'rayleigh'; write ta.random.default_rng\(seed\).rayleigh$"),
        (ta.random, "get_state", r"write np.random.get_state with ta.to_numpy\(x\), on the host$"),
        (ta.cuda, "is_available", r"^module 'tilearray.cuda' has .*; write ta.cuda.device_count\(\) > 0$"),
        (ta.cuda, "synchronise", r"; write ta.cuda.synchronize$"),
        (ta.cuda, "nvtx", r"^module 'tilearray.cuda' has no attribute 'nvtx'; see dir\(ta.cuda\)$"),
        (ta.fft, "fftt", r"^module 'tilearray.fft' has no attribute 'fftt'; write ta.fft.fft2?$"),
        (ta.fft, "test", r"write np.fft.test with ta.to_numpy\(x\), on the host$"),
    ],
)
def test_a_missing_name_of_an_extension_says_what_to_write(module: Any, name: str, text: str):
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match=text):
        getattr(module, name)


def test_the_advice_for_missing_names_is_true():
    for name, advice in names.MISSING.items():
        assert name not in ta.__all__
        for word in re.findall(r"\bta\.(\w+)", advice):
            assert hasattr(ta, word), (name, word)
        for word in re.findall(r"\bnp\.(\w+)", advice.format(name=name) if "{name}" in advice else advice):
            assert hasattr(np, word) or name == "fromregex", (name, word)


def test_from_import_of_a_missing_name_is_an_import_error():
    with pytest.raises(ImportError, match="cannot import name 'trapz'"):
        from tilearray import trapz  # noqa: F401


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
@pytest.mark.parametrize("others", [[], [-1.0, 1.0], [0.5] * 200])
def test_zeros_win_by_their_sign_beside_nans(dtype, others):
    below, above = [-abs(each) for each in others], [abs(each) for each in others]
    for nan in (ta.nan, -ta.nan):
        for zeros in ([0.0, -0.0], [-0.0, 0.0], [-0.0], [0.0]):
            x, y = (ta.asarray([nan, *zeros, *side, nan]).astype(dtype) for side in (below, above))
            assert str(ta.nanmax(x).item()) == ("0.0" if "0.0" in map(str, zeros) else "-0.0")
            assert str(ta.nanmin(y).item()) == ("-0.0" if "-0.0" in map(str, zeros) else "0.0")


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_rows_of_nan_and_empty_rows(name):
    function, expected = getattr(ta, name), getattr(np, name)
    host = np.array([[np.nan, np.nan], [1.0, np.nan]])
    assert np.array_equal(ta.to_numpy(function(host[1:], 1)), expected(host[1:], 1))
    assert np.isnan(ta.to_numpy(function(host, 1))[0])
    assert function(host, initial=5.0, where=host > 7).item() == expected(host, initial=5.0, where=host > 7)
    assert function(np.zeros((0, 2)), 0, initial=5.0).tolist() == [5.0, 5.0]
    with pytest.raises(ShapeError, match=rf"^{name}: expected at least one element .* got shape \(0, 2\); write ta"):
        function(np.zeros((0, 2)), 0)
    with pytest.raises(OperandError, match=f"^{name}: expected initial= beside where="):
        function(host, where=host > 0)


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64"])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_a_number_beside_integers_takes_their_dtype(name: str, dtype: str, semantics: str):
    host = np.array([6, 9, 0, 100], dtype)
    with ta.semantics(semantics):
        found = getattr(ta, name)(ta.asarray(host), 3)
        turned = getattr(ta, name)(3, ta.asarray(host))
        with pytest.raises(OverflowError, match=f"^{name}: (-1000.*; )?no integer dtype holds"):
            getattr(ta, name)(ta.asarray(host), -(10**21))
    wanted = getattr(np, name)(host, 3)
    for each in (found, turned):
        assert each.dtype == dtype
        np.testing.assert_array_equal(ta.to_numpy(each), wanted)
