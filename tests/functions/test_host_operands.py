"""ndarrays, lists and NumPy's scalars beside Arrays: typed operands on the host, an error beside an Array on a GPU."""

# ruff: noqa: RUF005 - a list is an operand here, not a part of another list

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.devices import CPU
from tilearray.errors import DTypeError, OperandError, PromotionError

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"]
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
X = np.array([[1, 2, 3], [4, 5, 6]], np.int64)
HOST = {
    "int64": np.array([3, 1, 2]),
    "int8": np.array([[3], [2]], np.int8),
    "negative strides": np.arange(12, dtype=np.int16)[::-2].reshape(2, 3) + np.int16(1),
    "stride 0": np.broadcast_to(np.uint8(2), (2, 3)),
    "0-d": np.array(2),
    "empty": np.ones((0, 1, 1), np.int64),
    "read-only": np.frombuffer(b"\1\2\3", np.uint8),
    "list": [1, 2, 3],
    "nested": [[1], [2]],
    "tuple": (3, 2, 1),
    "range": range(1, 4),
    "scalars in a list": [np.int8(1), np.int8(2), np.int8(3)],
}


@pytest.mark.parametrize("name", [*BINARY, *BITS])
def test_operators_take_host_data_on_both_sides(name):
    x, act = ta.asarray(X), getattr(operator, name)
    for label, other in HOST.items():
        for left, right in ((x, other), (other, x)):
            found = act(left, right)
            want = act(*[X if side is x else np.asarray(side) for side in (left, right)])
            assert isinstance(found, ta.Array), label
            assert (found.shape, found.dtype.kind) == (want.shape, want.dtype.kind), label
            assert np.allclose(ta.to_numpy(found), want), label
            typed = [ta.asarray(side) for side in (left, right)]
            assert found.dtype == act(*typed).dtype, label


FLOATS = np.array([0.1, -0.0, np.nan, np.inf])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float8_e4m3fn"])
def test_host_data_is_typed_and_loses_nothing(dtype):
    x = ta.zeros(4, dtype=dtype)
    assert (x + FLOATS).dtype == (x + FLOATS.tolist()).dtype == ta.float64
    for found in (x + FLOATS, FLOATS + x, x + FLOATS.tolist(), ta.add(FLOATS.tolist(), x)):
        assert ta.to_numpy(found).tobytes() == (0.0 + FLOATS).tobytes()
    half = FLOATS.astype("float16")
    assert (x + half).dtype == ta.result_type(x, ta.float16)
    narrow = ta.to_numpy(ta.ones(4, dtype=dtype))
    assert (x + narrow).dtype == (narrow + x).dtype == ta.result_type(x, x)


def test_lists_have_numpys_dtype_beside_arrays_and_the_default_dtype_alone():
    single = ta.asarray([0.5], dtype="float32")
    assert (single + [0.5]).dtype == ta.float64
    assert ta.add([0.5], [0.5]).dtype == ta.sqrt([0.5]).dtype == ta.asarray([0.5]).dtype == ta.float32
    assert ta.add([0.5], np.ones(1)).dtype == ta.add([0.5], np.float64(1)).dtype == ta.float64
    assert ta.add([0.1], np.ones(1)).tolist() == [1.1]
    assert (ta.asarray([1], dtype="int8") + [1]).dtype == ta.add([1], [1]).dtype == ta.int64
    assert (ta.asarray([1j]) + [1j]).dtype == ta.complex128
    assert (ta.asarray([1], dtype="int8") + [True]).dtype == ta.int8
    assert (single + []).shape == (0,)
    assert (ta.asarray([1], dtype="uint64") + [2**63]).tolist() == [2**63 + 1]
    with ta.semantics("numpy"):
        assert ta.sqrt([0.5]).dtype == ta.float64
        assert (single + [0.5]).dtype == ta.float64
    with pytest.raises(PromotionError, match="add: int64 and uint64 have no common dtype"):
        ta.asarray([1], dtype="uint64") + [1]


def test_an_ndarray_shares_its_memory_with_the_operand():
    source = np.zeros(3)
    for view in ta.broadcast_arrays(source, np.zeros((2, 1))):
        assert np.shares_memory(ta.to_numpy(view), source) == (view.strides == (0, 1))
    x = ta.asarray(source)
    x += np.array([1, 2, 3])
    assert source.tolist() == [1, 2, 3]
    x[:2] += source[1:]  # overlaps the target
    assert source.tolist() == [3, 5, 3]
    out = np.zeros(3)
    assert np.multiply(x, 2, out=out) is out
    out += x
    assert out.tolist() == [9, 15, 9]
    with pytest.raises(DTypeError, match="add: expected a target that can store the float64 result, got int8"):
        np.zeros(3, "int8").__iadd__(x)


def test_in_place_operators_keep_the_dtype():
    x = ta.asarray([1, 2], dtype="float32")
    same = x
    x += [1.5, 2.5]
    x *= np.array([2, 2])
    assert (x is same, x.dtype, x.tolist()) == (True, ta.float32, [5, 9])
    with pytest.raises(DTypeError, match="add: expected a target that can store the float64 result, got int64"):
        operator.iadd(ta.asarray([1, 2]), [0.5, 0.5])


def test_matrix_products_take_host_data():
    x = ta.asarray(X)
    for other in (X.T, X.T.tolist(), [1, 2, 3], np.array([1, 2, 3])):
        assert (x @ other).tolist() == (X @ np.asarray(other)).tolist()
    for other in (X.T, X.T.tolist(), [1, 2]):
        assert (other @ x).tolist() == (np.asarray(other) @ X).tolist()
    square = ta.asarray([[1, 2], [3, 4]])
    square @= [[0, 1], [1, 0]]
    assert square.tolist() == [[2, 1], [4, 3]]


def test_data_that_is_no_number_is_an_error():
    x = ta.asarray([1.0])
    with pytest.raises(DTypeError, match=r"add: dtype 'str32' is not supported: it holds text"):
        x + np.array(["a"])
    with pytest.raises(OperandError, match=r"add: expected numbers or arrays in nested lists, got str"):
        x + ["a"]
    with pytest.raises(OperandError, match=r"add: expected tilearray Arrays or numbers, got set as operand 2"):
        ta.add(x, {1})
    assert (x == "a") is False


def test_a_masked_array_takes_its_turn():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for found in (ta.asarray([1.0, 1.0]) + masked, masked + ta.asarray([1.0, 1.0])):
        assert isinstance(found, np.ma.MaskedArray)
        assert found.tolist() == [2.0, None]
    with pytest.raises(OperandError, match=r"sqrt: expected tilearray Arrays or numbers, got numpy.ma.MaskedArray"):
        ta.sqrt(masked)


@pytest.mark.parametrize("name", ["torch", "cupy", "jax"])
def test_tensors_stay_an_error(name):
    Tensor = type("Tensor", (), {"__module__": f"{name}.somewhere"})  # noqa: N806
    x = ta.asarray([1.0])
    with pytest.raises(OperandError, match=rf"the operands of '\+' are a tilearray Array and {name}.somewhere.Tensor"):
        x + Tensor()
    with pytest.raises(OperandError, match=rf"the operands of '@' are a tilearray Array and {name}.somewhere.Tensor"):
        x @ Tensor()


@pytest.mark.parametrize("other", [np.ones(2), [1.0, 2.0], (1.0, 2.0)], ids=["ndarray", "list", "tuple"])
def test_beside_an_array_on_a_gpu_host_data_is_an_error(other, elsewhere):
    x = ta.ones(2, device=elsewhere)
    kind = r"numpy.ndarray|list|tuple"
    message = (
        rf"add: the operands are a tilearray Array on cuda:7654321 and ({kind}), which is on the host; "
        r"write ta.asarray\(y, device='cuda:7654321'\) for the latter"
    )
    calls = [
        lambda: x + other,
        lambda: other + x,
        lambda: ta.add(other, x),
        lambda: operator.iadd(x, other),
        lambda: ta.add([1.0, 1.0], other, out=x),
    ]
    for call in calls:
        with pytest.raises(OperandError, match=message):
            call()
    assert x.to_device("cpu").tolist() == [1, 1]
    assert (x + np.float32(1)).device is (np.float32(1) + x).device is elsewhere


def test_data_alone_goes_to_the_default_device(elsewhere):
    ta.set_default_device(elsewhere)
    try:
        assert ta.sqrt([4.0]).device is ta.add(np.ones(1), [1]).device is elsewhere
        assert (ta.ones(1, device="cpu") + [1]).device is CPU
    finally:
        ta.set_default_device(None)


# --- functions of all chapters -------------------------------

INTS = [[3, 1, 2], [6, 5, 4]]
FUNCTIONS = {
    "sum": lambda xp, x: xp.sum(x, axis=0),
    "prod": lambda xp, x: xp.prod(x),
    "max": lambda xp, x: xp.max(x, axis=1),
    "min": lambda xp, x: xp.min(x),
    "mean": lambda xp, x: xp.mean(x, axis=1),
    "var": lambda xp, x: xp.var(x),
    "std": lambda xp, x: xp.std(x),
    "all": lambda xp, x: xp.all(x),
    "any": lambda xp, x: xp.any(x, axis=0),
    "count_nonzero": lambda xp, x: xp.count_nonzero(x),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=0),
    "diff": lambda xp, x: xp.diff(x, prepend=[[0], [0]]),
    "argmax": lambda xp, x: xp.argmax(x, axis=1),
    "argmin": lambda xp, x: xp.argmin(x),
    "argsort": lambda xp, x: xp.argsort(x, axis=1),
    "sort": lambda xp, x: xp.sort(x),
    "nonzero": lambda xp, x: xp.stack(xp.nonzero(x)),
    "searchsorted": lambda xp, x: xp.searchsorted([1, 3, 5], x),
    "searchsorted sorter": lambda xp, x: xp.searchsorted([3, 1, 5], x, sorter=[1, 0, 2]),
    "unique_values": lambda xp, x: xp.sort(xp.unique_values(x)),
    "isin": lambda xp, x: xp.isin(x, [1, 2]),
    "isin of a number": lambda xp, x: xp.isin(1, x),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "transpose": lambda xp, x: xp.transpose(x),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=1),
    "squeeze": lambda xp, x: xp.squeeze(x),
    "reshape": lambda xp, x: xp.reshape(x, (3, 2)),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2, 3)),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, [[1], [2]])[1],
    "flip": lambda xp, x: xp.flip(x, axis=0),
    "diagonal": lambda xp, x: xp.diagonal(x),
    "unstack": lambda xp, x: xp.unstack(x)[1],
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "concat": lambda xp, x: xp.concat([x, [[7, 8, 9]]]),
    "concat of lists": lambda xp, x: xp.concat([[1], [2, 3]]),
    "stack": lambda xp, x: xp.stack([x, x]),
    "stack of numbers": lambda xp, x: xp.stack([1, 2]),
    "repeat": lambda xp, x: xp.repeat(x, 2),
    "tile": lambda xp, x: xp.tile(x, 2),
    "roll": lambda xp, x: xp.roll(x, 1),
    "take": lambda xp, x: xp.take(x, [1], axis=1),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    "tril": lambda xp, x: xp.tril(x),
    "triu": lambda xp, x: xp.triu(x),
    "meshgrid": lambda xp, x: xp.meshgrid([1, 2], [3, 4])[1],
    "zeros_like": lambda xp, x: xp.zeros_like(x),
    "full_like": lambda xp, x: xp.full_like(x, 3),
    "matmul": lambda xp, x: xp.matmul(x, [1, 2, 3]),
    "vecdot": lambda xp, x: xp.vecdot(x, [1, 2, 3]),
    "tensordot": lambda xp, x: xp.tensordot(x, [1, 2, 3], axes=1),
    "einsum": lambda xp, x: xp.einsum("ij,j", x, [1, 2, 3]),
    "clip": lambda xp, x: xp.clip(x, 2, [5, 6, 3]),
    "where": lambda xp, x: xp.where([True, False, True], x, [0, 0, 0]),
    "isclose": lambda xp, x: xp.isclose(x, [[3, 1, 2]]),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "logical_and": lambda xp, x: xp.logical_and(x, [0, 1, 1]),
    "divmod": lambda xp, x: xp.divmod(x, [2, 2, 2])[1],
    "abs": lambda xp, x: xp.abs(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_host_data(name):
    if not hasattr(np, name.partition(" ")[0]):
        pytest.skip("the installed NumPy lacks it")
    call = FUNCTIONS[name]
    want = call(np, np.array(INTS))
    beside = call(ta, ta.asarray(INTS))
    for x in (INTS, np.array(INTS), tuple(INTS), np.array(INTS)[::-1, ::-1][::-1, ::-1]):
        found = call(ta, x)
        assert isinstance(found, ta.Array)
        assert found.dtype == beside.dtype
        assert np.allclose(ta.to_numpy(found), want)
        assert ta.to_numpy(found).shape == np.shape(want)


def test_functions_take_numbers_as_0d_arrays():
    assert repr(ta.sum(2)) == "Array(2, dtype=int64, device='cpu')"
    assert ta.mean(2.5).dtype == ta.float32
    assert ta.sum(np.float64(2)).dtype == ta.float64
    assert ta.reshape(3, (1, 1)).tolist() == [[3]]


def test_conversions_take_arrays_only():
    for name, call in {
        "astype": lambda: ta.astype([0.1], "float64"),  # by float32, the default dtype, it would lose digits
        "to_device": lambda: ta.to_device(np.ones(2), "cpu"),
    }.items():
        with pytest.raises(OperandError, match=rf"{name}: expected a tilearray Array, got .*; write ta.asarray\(x\)"):
            call()


def test_lists_joined_to_arrays_lose_nothing():
    x = ta.asarray([0.5], dtype="float64")
    for found in (ta.concat([x, [0.1]]), ta.stack([x, [0.1]]), ta.concat([np.array([0.5]), [0.1]])):
        assert (found.dtype, ta.to_numpy(found).ravel().tolist()) == (ta.float64, [0.5, 0.1])
    assert ta.concat([[0.5], [0.1]]).dtype == ta.float32
    assert ta.searchsorted(x, [0.1, 0.7]).tolist() == [0, 1]


def test_functions_of_arrays_on_a_gpu_refuse_host_data(elsewhere):
    x = ta.ones(2, device=elsewhere)
    for name, call in {
        "concat": lambda: ta.concat([x, np.ones(2)]),
        "stack": lambda: ta.stack([[1.0, 2.0], x]),
        "broadcast_arrays": lambda: ta.broadcast_arrays(x, [1]),
        "matmul": lambda: x @ [1, 2],
        "where": lambda: ta.where([True, False], x, 0),
        "isin": lambda: ta.isin(x, [1]),
        "diff": lambda: ta.diff(x, prepend=[1.0]),
        "searchsorted": lambda: ta.searchsorted(x, [1]),
        "meshgrid": lambda: ta.meshgrid(x, [1]),
    }.items():
        with pytest.raises(
            OperandError, match=rf"{name}: the operands are .* write ta.asarray\(y, device='cuda:7654321'"
        ):
            call()
