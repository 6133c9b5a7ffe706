"""The methods of rows: NumPy's ufuncs are the oracle of values; of dtypes it is the row itself, called step by step."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import DeviceError, DTypeError, IndexingError, OperandError, ShapeError, WriteError
from tilearray.functions import ufunc_at
from tilearray.ops import PUBLIC

BINARY = {
    name: (op, getattr(np, op.ufunc or name))
    for name, op in PUBLIC.items()
    if op.arity == 2 and not op.exponents and isinstance(getattr(np, op.ufunc or name, None), np.ufunc)
}
OF_INTEGERS = {name for name in BINARY if name.startswith("bitwise")} | {"gcd", "lcm"}
TESTS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
CLOSED = sorted(BINARY.keys() - TESTS)


def inputs(name):
    """Arrays that every step of an op takes: of several layouts, with more and less than a power of two of elements."""
    rng = np.random.default_rng(7)
    if name in OF_INTEGERS:
        whole = rng.integers(0, 4 if "shift" in name else 100, (5, 3, 4))
    elif name == "pow":
        whole = rng.integers(1, 3, (5, 3, 4)).astype(float)
    else:
        whole = rng.uniform(0.5, 2, (5, 3, 4)) * (
            1 if name in ("float_power", "remainder") else rng.choice([-1, 1], (5, 3, 4))
        )
    return [
        whole,
        whole[::-2, :, ::-1],
        whole.transpose(2, 0, 1),
        whole[:, 0, 0],
        whole[:1],
        np.broadcast_to(whole[0], (2, 3, 4)),
    ]


def folded(ufunc, theirs, axis):
    """The result of ``ufunc.reduce``. NumPy 2.4 itself is wrong for two: np.power.reduce([2.0, 2.0, 2.0]) is 4."""
    if ufunc.__name__ in ("power", "arctan2"):
        return functools.reduce(ufunc, np.moveaxis(theirs, axis, 0))
    return ufunc.reduce(theirs, axis)


def accumulated(ufunc, theirs, axis):
    """The result of ``ufunc.accumulate``, by `folded`."""
    parts = [folded(ufunc, theirs.take(range(stop), axis), axis) for stop in range(1, theirs.shape[axis] + 1)]
    return np.stack([theirs.take(0, axis).astype(parts[0].dtype), *parts[1:]], axis)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CLOSED)
def test_reduce_and_accumulate_are_numpys(name):
    op, ufunc = BINARY[name]
    for theirs in inputs(name):
        x = ta.asarray(theirs)
        for axis in {0, -1, theirs.ndim - 1}:
            for found, want in (
                (op.reduce(x, axis), folded(ufunc, theirs, axis)),
                (op.reduce(x, axis, None, None, True), np.expand_dims(folded(ufunc, theirs, axis), axis)),
                (op.accumulate(x, axis), accumulated(ufunc, theirs, axis)),
            ):
                assert found.shape == want.shape
                assert np.allclose(ta.to_numpy(found), want, rtol=1e-12, atol=0, equal_nan=True), (theirs.shape, axis)
                assert not np.shares_memory(found, x)
        if ufunc.identity is not None or name in ("maximum", "minimum"):
            found, want = op.reduce(x, None), ufunc.reduce(theirs, None)
            assert np.allclose(ta.to_numpy(found), want, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_outer_is_numpys(name):
    op, ufunc = BINARY[name]
    first, second = inputs(name)[3], inputs(name)[1]
    for one, other in ((first, second), (second, first), (first, first[:0]), (first, first[0])):
        found, want = op.outer(ta.asarray(one), ta.asarray(other)), ufunc.outer(one, other)
        assert np.allclose(ta.to_numpy(found), want, rtol=1e-12, equal_nan=True)
        assert found.shape == want.shape
        assert op.outer(one, ta.asarray(other)).shape == want.shape
    number = first[0].item()
    assert op.outer(ta.asarray(first), number).shape == first.shape


NARROW = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["subtract", "divide", "maximum", "logical_xor", "bitwise_xor", "hypot"])
def test_every_step_is_a_call_of_the_row(name, dtype):
    op = PUBLIC[name]
    x = ta.asarray([3, 1, 0, 2, 7, 1, 5]).astype(dtype)
    try:
        want = [x[0] if name != "logical_xor" else x[0].astype("bool")]
        for element in x[1:]:
            want.append(op(want[-1], element))
    except ta.DTypeError:
        with pytest.raises(DTypeError):
            op.reduce(x)
        return
    reduced, scanned = op.reduce(x), op.accumulate(x)
    assert reduced.dtype == scanned.dtype == want[-1].dtype
    assert ta.to_numpy(reduced).tobytes() == ta.to_numpy(want[-1]).tobytes()
    assert ta.to_numpy(scanned).tobytes() == b"".join(ta.to_numpy(one.astype(want[-1].dtype)).tobytes() for one in want)


def test_reductions_with_a_name_of_their_own():
    x = ta.asarray([[1, 5, 2], [7, 0, 3]], dtype="int8")
    assert repr(ta.add.reduce(x)) == repr(ta.sum(x, axis=0))
    assert repr(ta.multiply.reduce(x, (0, 1), "float64")) == repr(ta.prod(x, dtype="float64"))
    assert repr(ta.maximum.reduce(x, 1, initial=6, keepdims=True)) == repr(ta.max(x, axis=1, initial=6, keepdims=True))
    assert repr(ta.logical_and.reduce(x)) == repr(ta.all(x, axis=0))
    assert ta.logical_or.reduce(x, where=x > 6).tolist() == [True, False, False]
    assert ta.add.accumulate(x, 1).dtype == ta.int64
    assert ta.maximum.reduce(x, dtype="float32").dtype == ta.float32
    assert ta.maximum.reduce([1.5, 2.5], 0).item() == 2.5


def test_starts_masks_and_targets():
    x = np.array([[1, 2, 4], [8, 16, 32]])
    mask = np.array([[True, False, True], [False, False, True]])
    for name, initial in (
        ("bitwise_or", None),
        ("bitwise_xor", 3),
        ("bitwise_and", 12),
        ("subtract", 100),
        ("divide", 64),
    ):
        op, ufunc = BINARY[name]
        given = {} if initial is None else {"initial": initial}
        for axis in (0, 1):
            want = ufunc.reduce(x, axis, where=mask, **given)
            assert op.reduce(ta.asarray(x), axis, where=ta.asarray(mask), **given).tolist() == want.tolist()
            want = ufunc.reduce(x, axis, **given)
            assert op.reduce(ta.asarray(x), axis, **given).tolist() == want.tolist()
    assert ta.bitwise_and.reduce(ta.zeros((0, 2), dtype="int8")).tolist() == [-1, -1]
    assert ta.bitwise_and.reduce(ta.zeros((0, 2), dtype="bool")).tolist() == [True, True]
    assert ta.logical_xor.reduce([]).item() is False
    assert ta.subtract.reduce([], initial=3).item() == 3
    assert ta.subtract.accumulate(ta.zeros((0, 2))).shape == (0, 2)
    out = ta.zeros(3)
    assert ta.subtract.reduce(ta.asarray(x), out=out) is out
    assert ta.add.reduce(ta.asarray(x), 0, None, out) is out
    assert out.tolist() == [9, 18, 36]
    assert ta.maximum.accumulate(ta.asarray([3, 1, 5]), 0, "float32", out) is out
    assert out.tolist() == [3, 3, 5]


AT = {
    "add": "f8",
    "subtract": "f4",
    "multiply": "i8",
    "maximum": "f8",
    "minimum": "i2",
    "divide": "f4",
    "pow": "f8",
} | dict.fromkeys(("bitwise_or", "bitwise_xor", "remainder", "floor_divide", "hypot"), "u1")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "uint8"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "divide", "bitwise_xor", "remainder"])
def test_at_applies_the_op_once_for_every_occurrence(name, dtype):
    op, rng = PUBLIC[name], np.random.default_rng(3)
    kind = dtype if dtype in ("int64", "uint8") else "float64"
    values = rng.integers(1, 6, 20).astype(kind)
    rows, columns = rng.integers(0, 3, 20), rng.integers(-4, 4, 20)
    target = ta.asarray(rng.integers(1, 9, (4, 3))).astype(dtype).T  # not in C order
    want = target.copy()
    try:
        for row, column, value in zip(rows, columns, values):
            want[row, column] = op(want[row, column], ta.asarray(value).astype(dtype), out=ta.empty((), dtype=dtype))
    except ta.DTypeError:
        with pytest.raises(DTypeError):
            op.at(target, (rows, columns), ta.asarray(values).astype(dtype))
        return
    op.at(target, (ta.asarray(rows), columns), ta.asarray(values).astype(dtype))
    assert ta.to_numpy(target).tobytes() == ta.to_numpy(want).tobytes()


@pytest.mark.parametrize("name", ["maximum", "minimum", "divide"])
def test_at_of_many_floats_at_one_place_is_one_call_of_numpy(monkeypatch, name):
    one_by_one = ta.ones(2, dtype="float32")
    values = np.float32([2, np.inf, -np.inf, 0, -0.0, np.nan])
    for value in values:
        one_by_one[1] = PUBLIC[name](one_by_one[1], ta.asarray(value))
    monkeypatch.setattr(ufunc_at, "_at_in_rounds", lambda *_: pytest.fail("a round for each repetition"))
    target = ta.ones(2, dtype="float32")
    PUBLIC[name].at(target, np.ones(len(values), int), values)
    assert ta.to_numpy(target).tobytes() == ta.to_numpy(one_by_one).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_at_rounds_a_number_as_the_op_does(name, dtype):
    x = ta.asarray(np.random.default_rng(4).normal(size=500)).astype(dtype)
    for semantics, number in itertools.product(("array-api", "torch"), (0.1, 1e6, 3)):
        target = x.copy()
        with ta.semantics(semantics):
            PUBLIC[name].at(target, np.arange(500), number)
            assert ta.to_numpy(target).tobytes() == ta.to_numpy(PUBLIC[name](x, number)).tobytes()


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_at_takes_the_zero_of_the_op(name):
    zeros, others = (ta.asarray(given, dtype="float16") for given in ([0.0, -0.0], [-0.0, 0.0]))
    wanted = PUBLIC[name](zeros, others)
    PUBLIC[name].at(zeros, np.array([0, 1]), others)
    assert ta.to_numpy(zeros).tobytes() == ta.to_numpy(wanted).tobytes()


@pytest.mark.parametrize("name", ["add", "subtract", "power", "floor_divide", "arctan2"])
def test_at_reads_values_in_the_memory_of_the_target_as_they_were(name):
    rng = np.random.default_rng(4)
    kind = float if name == "arctan2" else int
    for values in (lambda x: x, lambda x: x[::-1], lambda x: x[3:4]):
        theirs, places = rng.integers(1, 9, 8).astype(kind), rng.integers(0, 8, 8)
        ours = ta.asarray(theirs.copy())
        getattr(np, name).at(theirs, places, values(theirs))
        getattr(ta, name).at(ours, ta.asarray(places), values(ours))
        np.testing.assert_allclose(ta.to_numpy(ours), theirs, rtol=1e-6)


def test_at_takes_every_index_and_operand():
    for key in (
        slice(None, None, 2),
        1,
        [1, 1],
        np.array([True, False, True, False]),
        (slice(2), [0, 0]),
        ...,
        (None, 1),
    ):
        theirs, ours = np.arange(8.0).reshape(4, 2), ta.asarray(np.arange(8.0).reshape(4, 2))
        np.add.at(theirs, key, 2.5)
        ta.add.at(ours, key, 2.5)
        assert ours.tolist() == theirs.tolist()
        np.divide.at(theirs, key, 2.0)
        ta.divide.at(ours, key, ta.asarray(2.0))
        assert ours.tolist() == theirs.tolist()
        np.negative.at(theirs, key)
        ta.negative.at(ours, key)
        assert ours.tolist() == theirs.tolist()
    single = ta.asarray(3.0)
    ta.add.at(single, (), 1)
    ta.divide.at(single, (), 2)
    assert single.item() == 2
    counts = ta.zeros(3, dtype="int8")
    ta.add.at(counts, [], 1)
    ta.add.at(counts, [0, 0], [100, 100])  # wraps
    ta.add.at(counts, ta.asarray([1, 2]), np.array([3, 4], np.int8))
    assert counts.tolist() == [-56, 3, 4]


def test_methods_by_numpys_names():
    x, target = ta.asarray([1.0, 2.0, 4.0]), np.zeros(3)
    for found, want in (
        (np.add.reduce(x), 7),
        (np.add.reduce(x, initial=1, keepdims=True), [8]),
        (np.subtract.accumulate(x), [1, -1, -5]),
        (np.multiply.outer(x, [1, 10]), [[1, 10], [2, 20], [4, 40]]),
        (np.multiply.outer([1, 10], x), [[1, 2, 4], [10, 20, 40]]),
        (ta.maximum.reduce([x, x + 1]), [2, 3, 5]),
        (np.add.reduceat(x, [0, 1]), [1, 6]),
        (np.gcd.reduce(ta.asarray([4, 6])), 2),
        (np.maximum.reduce(ta.asarray([1j, 2.0])), 2),
    ):
        assert isinstance(found, ta.Array)
        assert found.tolist() == want
    assert np.add.accumulate(x, out=target) is target
    assert target.tolist() == [1, 3, 7]
    assert np.add.at(target, [0, 0], x[:2]) is None
    assert np.add.at(x, [0, 0], target[:2]) is None
    assert (target.tolist(), x.tolist()) == ([4, 3, 7], [8, 2, 4])


# --- where and dtype -------------------------------


def test_where_keeps_the_elements_of_the_target_or_is_zero():
    x, mask = np.array([[1.0, -2.0], [3.0, -4.0]]), np.array([True, False])
    for ours, theirs in ((ta.add, np.add), (ta.divide, np.divide), (ta.less, np.less)):
        target, want = (
            ta.asarray([[7, 7], [7, 7]]).astype(theirs(x, x).dtype),
            np.full((2, 2), 7).astype(theirs(x, x).dtype),
        )
        theirs(x, 2, out=want, where=mask)
        assert ours(ta.asarray(x), 2, out=target, where=ta.asarray(mask)) is target
        assert target.tolist() == want.tolist()
        assert ours(ta.asarray(x), 2, where=mask).tolist() == np.where(mask, theirs(x, 2), 0).tolist()
    same = ta.asarray(x, copy=True)
    ta.sqrt(same, same, where=same > 0)
    assert same.tolist() == [[1, -2], [3**0.5, -4]]
    assert ta.add([1, 2], 1, where=[[True], [False]]).tolist() == [[2, 3], [0, 0]]
    assert ta.logical_not([1, 0], where=[True, False]).tolist() == [False, False]
    assert ta.exp(ta.asarray([0, 0], dtype="bfloat16"), where=[True, False]).dtype == ta.bfloat16
    assert ta.add(1, 2, where=False).item() == 0
    assert np.add(ta.asarray(x), 2, where=mask).tolist() == [[3, 0], [5, 0]]
    with pytest.raises(DTypeError, match=r"add: expected where as a bool array, got int64; write where=mask != 0"):
        ta.add([1], 1, where=[1])
    with pytest.raises(ta.BroadcastError, match="add"):
        ta.add([1, 2], 1, where=[True, False, True])


def test_dtype_is_that_of_the_computation_and_the_result():
    x = ta.asarray([1, 2**24 + 1])
    assert (ta.add(x, 1, dtype="float64").dtype, ta.add(x, 1, dtype="float64").tolist()) == (ta.float64, [2, 2**24 + 2])
    assert ta.divide(x, 3, dtype="float64").tolist() == np.divide(x.tolist(), 3).tolist()
    assert ta.sqrt(2, dtype="bfloat16").dtype == ta.bfloat16
    assert ta.add(1, 2, dtype="int8").dtype == ta.int8
    assert ta.less(x, 2, dtype=bool).tolist() == [True, False]
    assert ta.where(x > 1, x, 0).dtype == ta.int64
    assert ta.ldexp(ta.asarray([1.0]), [3], dtype="float64").tolist() == [8]
    assert ta.multiply(np.array([1], np.int8), [2], dtype="int16").dtype == ta.int16
    assert np.add(x, 1, dtype="float64").dtype == ta.float64
    out = ta.zeros(2, dtype="float32")
    assert ta.add(x, 1, out, dtype="float64") is out
    errors = [
        (lambda: ta.add(x, 1.0, dtype="int32"), r"add: .*1\.0|int32"),
        (
            lambda: ta.add(x + 0.5, 1, dtype="int32"),
            r"add: expected operands that become int32, got float32; write x.as",
        ),
        (lambda: ta.sqrt(x, dtype="int64"), r"sqrt: expected dtype='float32', the dtype that sqrt makes of int64, got"),
        (lambda: ta.less(x, 2, dtype="int8"), r"less: expected dtype='bool'"),
    ]
    for call, message in errors:
        with pytest.raises(DTypeError, match=message):
            call()


@pytest.mark.parametrize("casting", ["safe", "same_kind", "unsafe"])
def test_casting_decides_which_targets_a_result_may_have(casting):
    x, mask = np.array([[1.75, -2.5], [3.25, -4.0]]), np.array([True, False])
    calls = [
        (np.multiply, (x, 2.5)),
        (np.sqrt, (np.abs(x),)),
        (np.add, (np.arange(4).reshape(2, 2), 300)),
        (np.less, (x, 1)),
    ]
    for ufunc, operands in calls:
        for target in ("int8", "int64", "float32", "float64", "bool"):
            for where in (True, mask):
                want, found = np.full((2, 2), 1, target), ta.ones((2, 2), dtype=target, device="cpu")
                op, given = getattr(ta, ufunc.__name__), [ta.asarray(operands[0]), *operands[1:]]
                with ta.semantics("numpy"):
                    try:
                        ufunc(*operands, out=want, where=where, casting=casting)
                    except TypeError:
                        with pytest.raises(DTypeError, match=rf"^{ufunc.__name__}: .*; write "):
                            op(*given, out=found, where=where, casting=casting)
                    else:
                        assert op(*given, found, where=where, casting=casting) is found
                assert ta.to_numpy(found).tolist() == want.tolist()


def test_casting_decides_which_operands_become_a_dtype():
    x = ta.asarray([1.75, -2.5])
    assert (
        ta.add(x, 1, dtype="int16", casting="unsafe").tolist()
        == np.add([1.75, -2.5], 1, dtype="i2", casting="unsafe").tolist()
    )
    assert ta.add(x, 1, dtype="float64", casting="safe").dtype == ta.float64
    with pytest.raises(DTypeError, match=r"^add: expected operands that become float16, got float32; write x.astype"):
        ta.add(x, 1, dtype="float16", casting="safe")
    with pytest.raises(
        OperandError, match=r"^add: expected casting as 'safe', 'same_kind' or 'unsafe', got 'no'; leave"
    ):
        ta.add(x, 1, casting="no")
    whole = np.ones(2, int)
    assert np.add(x, 0.5, out=whole, casting="unsafe") is whole
    assert whole.tolist() == [2, -2]
    assert np.add(x, x, casting="no").tolist() == [3.5, -5.0]


def test_targets_by_position():
    x, out = ta.asarray([1.0, 2.0]), ta.zeros(2)
    assert ta.multiply(x, 3, out) is out
    assert ta.negative(out, out) is out
    assert out.tolist() == [-3, -6]
    assert ta.logical_not(x, ta.zeros(2, dtype="bool")).tolist() == [False, False]
    assert ta.where(ta.asarray([True, False]), x, out).tolist() == [1, -6]
    assert ta.add(x, x, out, where=[True, False]) is out
    assert out.tolist() == [2, -6]
    with pytest.raises(OperandError, match=r"add: expected a tilearray Array as out, got int"):
        ta.add(x, x, 3)


# --- errors -------------------------------


def test_bad_calls_are_named():
    x = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
    for call, error, message in (
        (
            lambda: ta.sin.reduce(x),
            OperandError,
            r"sin.reduce: expected an op of two operands of one dtype; write ta.sin",
        ),
        (
            lambda: ta.ldexp.accumulate(x),
            OperandError,
            r"ldexp.accumulate: expected an op of two operands of one dtype",
        ),
        (lambda: ta.exp.outer(x, x), OperandError, r"exp.outer: expected an op of two operands"),
        (lambda: ta.subtract.reduce(x, None), ShapeError, r"subtract.reduce: expected one axis, .* got \(0, 1\)"),
        (lambda: ta.subtract.reduce(x, 2), ta.AxisError, r"subtract.reduce: expected -2 <= axis < 2, got axis 2"),
        (
            lambda: ta.subtract.reduce(x[:0]),
            ShapeError,
            r"subtract.reduce: expected at least one element, got shape \(0, 2",
        ),
        (lambda: ta.hypot.reduce({1}), OperandError, r"hypot.reduce: expected a tilearray Array, got set"),
        (lambda: ta.less.reduce(x), DTypeError, r"less.reduce: expected an op that returns float32, less returns bool"),
        (lambda: ta.subtract.reduce(x, where=x > 1), OperandError, r"subtract.reduce: expected initial= beside where="),
        (lambda: ta.add.accumulate(x, 5), ta.AxisError, r"add.accumulate: expected -2 <= axis < 2"),
        (lambda: ta.add.at([1], 0, 1), OperandError, r"add.at: expected a tilearray Array, got list"),
        (lambda: ta.add.at(x, 0), OperandError, r"add.at: expected an op of one operand, or of two and values"),
        (lambda: ta.negative.at(x, 0, 1), OperandError, r"negative.at: expected an op of one operand"),
        (lambda: ta.add.at(x, 7, 1), IndexingError, r"add.at: index 7 is out of bounds"),
        (lambda: ta.add.at(x, 0, [1, 2, 3]), ta.BroadcastError, r"broadcast"),
        (lambda: ta.add.at(x.astype("int8"), 0, 1.5), DTypeError, r"add: expected a target that can store the float32"),
        (
            lambda: ta.add.at(ta.broadcast_to(x, (2, 2, 2)), 0, 1),
            WriteError,
            r"add.at: the target has several elements",
        ),
        (
            lambda: ta.add(x, 1, order="K"),
            TypeError,
            r"add\(\) got an unexpected keyword argument 'order'; its opt",
        ),
        (lambda: ta.sin(x, rounding="rz"), OperandError, r"sin: .*rounding|sin\(\) has no option rounding"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert x.tolist() == [[1, 2], [3, 4]]


def test_on_a_gpu_the_steps_run_there_and_at_is_refused(elsewhere):
    x = ta.asarray([1.0, 2.0, 4.0], device=elsewhere)
    for found in (ta.subtract.reduce(x), ta.subtract.accumulate(x), ta.subtract.outer(x, x), ta.add(x, 1, where=x > 1)):
        assert found.device is elsewhere
    assert ta.subtract.outer(x, x).to_device("cpu").tolist() == np.subtract.outer([1, 2, 4], [1, 2, 4]).tolist()
    whole = ta.asarray([1, 2, 4], device=elsewhere)
    assert ta.bitwise_or.reduce(whole).to_device("cpu").item() == 7
    assert ta.bitwise_or.accumulate(whole).to_device("cpu").tolist() == [1, 3, 7]
    with pytest.raises(
        DeviceError, match=r"add.at: expected an array on the host, got one on cuda:7654321, .* write ta."
    ):
        ta.add.at(x, 0, 1)
    with pytest.raises(
        DeviceError, match=r"add.at: expected indices on the host, got cuda:7654321; write indices.to_dev"
    ):
        ta.add.at(ta.ones(3), whole, 1)
    assert np.add.reduce(x).device is elsewhere


def test_halving_takes_every_size():
    for size in range(1, 20):
        bits = np.array([1 << place for place in range(size)])
        assert ta.bitwise_or.reduce(bits).item() == functools.reduce(int.__or__, bits.tolist())
        assert ta.bitwise_or.accumulate(bits).tolist() == [(2 << place) - 1 for place in range(size)]
