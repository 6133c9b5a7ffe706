"""NumPy's functions and ufuncs on Arrays: ours where they exist, NumPy's over the same memory elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.devices import CPU
from tilearray.errors import AxisError, DeviceError, ImplicitTransferError, OperandError, PromotionError
from tilearray.functions import numpy_dispatch
from tilearray.ops import BY_UFUNC, PUBLIC

# --- operands of other libraries -------------------------------


class Quantity:
    """A class with both protocols, as pint's, dask's and sparse's."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"{ufunc.__name__} by its own class"

    def __array_function__(self, function, types, args, kwargs):
        return f"{function.__name__} by its own class"


class Series:
    """A class that leaves the protocols to others, as pandas' does."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __radd__(self, other):
        return "radd"


SCIPYS = {  # the functions of scipy.special that are ops, and the functions of ta
    **{name: name for name in ("erf", "erfc", "erfinv", "gamma", "ndtr", "expit", "logit", "entr", "xlogy", "xlog1py")},
    "gammaln": "lgamma",
    "cbrt": "cbrt",
    "exp2": "exp2",
    "expm1": "expm1",
    "log1p": "log1p",
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SCIPYS)
def test_scipys_functions_are_ours(name, dtype):
    special = pytest.importorskip("scipy.special")
    row, values = getattr(ta, SCIPYS[name]), np.array([0.0, 0.125, 0.75, 1.0], dtype)
    operands = [ta.asarray(values) for _ in range(row.arity)]
    found, expected = getattr(special, name)(*operands), row(*operands)
    assert type(found) is ta.Array
    assert found.dtype == dtype
    assert ta.to_numpy(found).tobytes() == ta.to_numpy(expected).tobytes()
    assert np.allclose(ta.to_numpy(found), getattr(special, name)(*[values] * row.arity), rtol=1e-6, equal_nan=True)


def test_scipys_ufuncs_are_ours_where_its_names_are_functions(monkeypatch):
    special, ufuncs = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.special._ufuncs")
    monkeypatch.setattr(special, "erf", lambda x: ufuncs.erf(x))  # as with SCIPY_ARRAY_API=1
    monkeypatch.setattr(numpy_dispatch, "_OPS", {})
    assert numpy_dispatch._op_of(ufuncs.erf) is PUBLIC["erf"]


def test_a_ufunc_of_another_library_is_not_ours_by_its_name(monkeypatch):
    half = np.frompyfunc(lambda x: x / 2, 1, 1)
    monkeypatch.setitem(BY_UFUNC, half.__name__, PUBLIC["negative"])
    assert [*map(float, half(ta.asarray([1.0, 3.0])))] == [0.5, 1.5]


def test_other_classes_take_their_turn():
    x, theirs = ta.asarray([1.0, 2.0]), Quantity()
    assert np.add(x, theirs) == np.add(theirs, x) == "add by its own class"
    assert np.sin(x, out=theirs) == "sin by its own class"
    assert np.gcd(x, theirs) == "gcd by its own class"
    assert np.where(x > 1, theirs, x) == "where by its own class"
    assert np.concatenate([x, theirs]) == np.concatenate([theirs, x]) == "concatenate by its own class"
    assert np.median(x, out=theirs) == "median by its own class"
    assert x + Series() == "radd"
    with pytest.raises(TypeError, match=r"operand type\(s\) all returned NotImplemented"):
        np.add(x, Series())


class Column:
    """A class that only converts itself, as pandas' Series does for functions."""

    def __array__(self, dtype=None, copy=None):
        return np.array([3.0, 4.0], dtype)


def test_objects_that_only_convert_themselves_are_read_by_numpys_functions_only():
    x = ta.asarray([1.0, 2.0])
    assert np.concatenate([x, Column()]).tolist() == [1, 2, 3, 4]
    assert np.where(Column(), x, 0).tolist() == [1, 2]
    with pytest.raises(OperandError, match=r"concat: expected a tilearray Array, got test_numpy_dispatch.Column"):
        ta.concat([x, Column()])
    tensor = type("Tensor", (Column,), {"__module__": "torch"})()
    with pytest.raises(OperandError, match=r"concat: expected a tilearray Array, got torch.Tensor; write ta.asarray"):
        np.concatenate([x, tensor])


# --- ufuncs -------------------------------


def test_ufuncs_take_ndarrays_and_targets():
    x, target, plain = ta.asarray([1, 2]), ta.zeros(2), np.zeros(2)
    for found in (np.add(x, np.array([3, 4])), np.add([3, 4], x), np.array([3, 4]) + x):
        assert isinstance(found, ta.Array)
        assert found.tolist() == [4, 6]
    assert np.add(x, [1, 2], out=target) is target
    assert np.add(x, 2, out=plain) is plain
    assert (target.tolist(), plain.tolist()) == ([2, 4], [3, 4])
    mantissa, exponent = np.zeros(2, "float32"), ta.zeros(2, dtype="int32")
    found = np.frexp(ta.asarray([12.0, -0.1]), out=(mantissa, exponent))
    assert (found[0] is mantissa, found[1] is exponent, exponent.tolist()) == (True, True, [4, -3])
    assert np.divmod(x, 2, out=(x, None))[1].tolist() == [1, 0]
    assert x.tolist() == [0, 1]
    with pytest.raises(PromotionError, match="add: int64 and uint64 have no common dtype"):
        np.add(ta.asarray([1]), np.array([1], "uint64"))
    with pytest.raises(OperandError, match=r"add: expected tilearray Arrays or numbers, got str as operand 2"):
        np.add(x, "a")


def test_ufuncs_without_an_op_compute_with_numpy():
    x, y = ta.asarray([1.5, ta.nan]), ta.asarray([0.5, 2.0])
    assert repr(np.fmax(x, y)) == "Array([1.5, 2. ], dtype=float32, device='cpu')"
    assert np.fmin(x, 1, out=y) is y
    assert y.tolist() == [1, 1]
    assert [part.tolist() for part in np.modf(ta.asarray([1.5]))] == [[0.5], [1.0]]
    assert np.add(x, 1, casting="unsafe", dtype="float32").dtype == ta.float32
    with pytest.raises(TypeError, match=r"expected dtypes of kind .*, got complex64"):
        np.modf(ta.asarray([1j]))


# --- functions -------------------------------


def test_results_share_memory_and_keep_their_identity():
    x = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.atleast_2d(x) is x
    view = np.swapaxes(x, 0, 1)
    view[0, 1] = 9
    assert x.tolist() == [[1, 2], [9, 4]]
    assert np.median(x, axis=0, out=x[0]).tolist() == x[0].tolist() == [5, 3]
    np.fill_diagonal(x, 0)
    np.copyto(x[1], [7, 8])
    assert x.tolist() == [[0, 3], [7, 8]]
    assert np.nan_to_num(x, copy=False) is x
    assert np.shares_memory(x, view)
    assert not np.may_share_memory(x, x.copy())


def test_orders_of_memory_are_kept():
    x = ta.zeros((2, 3), order="F")
    assert np.zeros_like(x).strides == np.empty_like(x, order="F").strides == (1, 2)
    assert np.zeros_like(x, order="C").strides == np.ones_like(x, order="C").strides == (3, 1)
    assert np.copy(x).strides == (1, 2)
    assert np.copy(x, order="C").strides == (3, 1)


def test_results_of_all_kinds():
    x = ta.asarray([3.0, 1.0])
    found = np.linalg.svd(ta.asarray([[3.0, 0.0], [0.0, 4.0]]))
    assert type(found).__name__ == "SVDResult"
    assert all(isinstance(part, ta.Array) for part in found)
    assert found.S.tolist() == [4, 3]
    assert repr(np.average(x)) == "Array(2., dtype=float32, device='cpu')"
    assert np.allclose(x, x) is True
    assert np.ndim(x) == 1
    assert np.array2string(x) == "[3. 1.]"
    assert [type(part) for part in np.array_split(x, 2)] == [ta.Array] * 2
    assert isinstance(np.char.upper(np.array(["a"])), np.ndarray)
    assert np.min_scalar_type(x) == ta.float32
    assert np.block([[x, x], [x, np.ones(2)]]).dtype == ta.float64


def test_numpys_own_errors_are_raised_where_numpy_computes():
    with pytest.raises(np.linalg.LinAlgError, match=r"[sS]ingular"):
        np.linalg.inv(ta.zeros((2, 2)))
    with pytest.raises(AxisError, match="sum: expected"):
        np.sum(ta.zeros(2), axis=3)


def test_numpys_semantics_where_ours_refuses():
    x = ta.asarray([[3, 1], [0, 2]])
    assert np.where(x, 1, 0).tolist() == [[1, 1], [0, 1]]
    assert np.cumsum(x).tolist() == [3, 4, 4, 6]
    assert np.take(x, [3, 0]).tolist() == [2, 3]
    assert np.diff(x > 1).tolist() == [[True], [True]]
    assert np.max(ta.asarray([1j, 2.0])).tolist() == 2
    assert np.sum(x, where=x > 1).tolist() == 5
    assert np.reshape(x, (4,), order="F").tolist() == [3, 0, 1, 2]
    assert np.clip(ta.asarray([7], dtype="uint8"), -1, 300).tolist() == [7]
    with pytest.raises(PromotionError):
        np.concatenate([x, ta.asarray([[1, 2]], dtype="uint64")])


def test_creation_like_an_array():
    x = ta.asarray([1.0, 2.0])
    assert np.asarray(x, like=x) is x
    assert np.shares_memory(np.asarray(ta.to_numpy(x), like=x), x)
    assert not np.shares_memory(np.array(x, like=x), x)
    made = {
        "asarray": np.asarray([1, 2], like=x),
        "zeros": np.zeros((2, 3), "int8", like=x),
        "arange": np.arange(3, like=x),
        "full": np.full(2, x[0], like=x),
        "eye": np.eye(2, like=x),
        "fromfunction": np.fromfunction(lambda i: 2 * i, (3,), like=x),
    }
    assert {type(found) for found in made.values()} == {ta.Array}
    assert [found.dtype.name for found in made.values()] == ["int64", "int8", "int64", "float32", "float64", "float64"]
    assert made["fromfunction"].tolist() == [0, 2, 4]


def test_numpys_tests_take_arrays():
    x, other = ta.asarray([1.0, np.nan]), ta.asarray([1.0, 3.0])
    for name in ("array_equal", "allclose", "array_almost_equal"):
        test = getattr(np.testing, f"assert_{name}")
        test(x, x.copy())
        test(x, ta.to_numpy(x))
        with pytest.raises(AssertionError, match="nan location mismatch"):
            test(x, other)
    np.testing.assert_equal(x, ta.to_numpy(x))
    np.testing.assert_equal(x[0], ta.asarray(1.0))
    with pytest.raises(AssertionError):
        np.testing.assert_equal(ta.to_numpy(x), other)


# --- GPUs -------------------------------


def test_on_a_gpu_a_missing_function_is_an_error_that_names_the_transfer(elsewhere):
    x = ta.ones((2, 2), device=elsewhere)
    message = (
        r"^np.{}: tilearray has no such function on cuda:7654321, and NumPy would copy the array to the host; "
        r"write np.{}\(ta.to_numpy\(x\)\), or allow the copy with ta.set_transfer_guard\('allow'\)$"
    )
    calls = {
        "i0": lambda: np.i0(x),
        "array2string": lambda: np.array2string(x),
        "savetxt": lambda: np.savetxt("file", X=x),
        "spacing": lambda: np.spacing(x),
        "fmax.reduce": lambda: np.fmax.reduce(np.ones(2), out=x),
    }
    for name, call in calls.items():
        with pytest.raises(ImplicitTransferError, match=message.format(name, name)):
            call()
    for name, call in {
        "sort": lambda: np.sort(x),
        "median": lambda: np.median(x),
        "linalg.svd": lambda: np.linalg.svd(x),
        "fft.fft": lambda: np.fft.fft(x),
    }.items():
        with pytest.raises(DeviceError, match=rf"{name}: expected .* write ta.{name}\(x.to_device\('cpu'\)"):
            call()
    for found in (np.vstack([x, x]), np.swapaxes(x, 0, 1), np.atleast_1d(x), np.outer(x, x), np.rot90(x), np.ravel(x)):
        assert found.device is elsewhere
    assert np.add(x, 1).device is np.where(x, x, 2).device is np.sum(x).device is elsewhere


def test_none_among_the_arrays_is_an_object_on_the_host_alone(elsewhere):
    x = ta.asarray([1.0, 2.0], device="cpu")
    found, nothing = np.broadcast_arrays(x, None)  # as matplotlib's bar writes
    assert type(found) is ta.Array
    assert found.tolist() == [1, 2]
    assert nothing.tolist() == [None, None]
    with pytest.raises(OperandError, match=r"np.broadcast_arrays: expected arrays, got None; leave it out"):
        np.broadcast_arrays(x.to_device(elsewhere), None)


def test_other_classes_take_their_turn_beside_an_array_on_a_gpu(elsewhere):
    x, theirs = ta.ones(2, device=elsewhere), Quantity()
    assert np.concatenate([x, theirs]) == "concatenate by its own class"
    assert np.fmax(x, theirs) == "fmax by its own class"


def test_creation_like_an_array_on_a_gpu_is_there(elsewhere):
    x = ta.asarray([1.0, 2.0], device=elsewhere)
    assert np.asarray(x, like=x) is x
    assert {np.zeros(3, like=x).device, np.asarray([1], like=x).device} == {elsewhere}
    copied = np.array(x, dtype="int8", like=x)
    assert (copied.device, copied.dtype) == (elsewhere, ta.int8)


def test_the_transfer_guard_allows_a_copy_but_no_lost_write(elsewhere):
    x = ta.asarray([3.0, 1.0], device=elsewhere)
    ta.set_transfer_guard("allow")
    try:
        assert np.median(x).device is CPU
        whole = ta.ones(2, device=elsewhere)
        with pytest.raises(ValueError, match=r"read-only"):
            np.fmax(np.ones(2), 1, out=whole)
        with pytest.raises(OperandError, match=r"np.sort: order is not taken for tilearray Arrays on a GPU"):
            np.sort(x, order="field")
    finally:
        ta.set_transfer_guard("error")
    assert x.to_device("cpu").tolist() == [3, 1]
