"""Pointwise functions: results against NumPy, targets, numbers, instances, and what the decorator refuses.

The oracle applies the same function with NumPy, to arrays that are cast as the promotion says.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from support.oracles.formats import dtype_of
from support.threads import in_threads

import tilearray as ta
from tilearray.errors import (
    BroadcastError,
    DeviceError,
    DTypeError,
    FusionError,
    OperandError,
    ShapeError,
    WriteError,
)


@ta.pointwise
def saxpy(a, x, y):
    return a * x + y


@ta.pointwise(num_outputs=2)
def sum_and_difference(x, y):
    return x + y, x - y


def values(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


def equal(ours, expected):
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ta.to_numpy(ours), expected, strict=True)


# --- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (5,), (4, 5), (2, 3, 4), (2, 1, 3, 2, 2)])
def test_every_shape(shape):
    a, x, y = [values(*shape, seed=k) for k in range(3)]
    equal(saxpy(ta.asarray(a), ta.asarray(x), ta.asarray(y)), a * x + y)


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3), ()), ((2, 1), (1, 3), (4, 1, 1)), ((1,), (0,), ()), ((1, 3), (3,), (3, 1))]
)
def test_operands_of_mixed_ranks_broadcast(shapes):
    a, x, y = [values(*shape, seed=k) for k, shape in enumerate(shapes)]
    equal(saxpy(ta.asarray(a), ta.asarray(x), ta.asarray(y)), a * x + y)


def test_every_result_has_the_shape_of_all_operands():
    function = ta.pointwise(num_outputs=3)(lambda x, y, k: (y, 7, k))
    for shape, other in [((2, 1), (3,)), ((4, 1), (1,)), ((1, 1), (5,)), ((), (0,))]:  # one trace serves two of them
        x, y = values(*shape), values(*other, seed=1)
        found = function(ta.asarray(x), ta.asarray(y), 2.5)
        common = np.broadcast_shapes(shape, other)
        equal(found[0], np.broadcast_to(y, common))
        equal(found[1], np.full(common, 7, "int64"))
        equal(found[2], np.full(common, 2.5, "float32"))
    assert function.fused.traces == 2


def test_a_result_that_is_an_operand_is_a_new_array():
    x = ta.asarray([1.0, 2.0])
    first, second = ta.pointwise(num_outputs=2)(lambda x: (x, x))(x)
    first[...] = 0
    second[...] = 1
    assert x.tolist() == [1, 2]
    assert first.tolist() == [0, 0]


def test_a_function_that_assigns_to_a_parameter_does_not_write_to_the_operand():
    def f(x, y):
        x += y
        x *= 2
        return x

    x, y = ta.asarray([1.0, 2.0]), ta.asarray([3.0, 4.0])
    assert ta.pointwise(f)(x, y).tolist() == [8, 12]
    assert x.tolist() == [1, 2]


VIEWS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[::-1],
    lambda x: x[:, ::-1],
    lambda x: x[::2, ::-3],
    lambda x: x[:1],
    lambda x: x[2, 3],
    lambda x: x[2:2],
]


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_any_strides(view):
    x, y = values(6, 6), values(6, 6, seed=1)
    other = view(ta.asarray(y))
    equal(saxpy(view(ta.asarray(x)), other, 3), view(x) * view(y) + np.float32(3))


def test_a_thousand_shapes_are_one_trace():
    function = ta.pointwise(lambda x, y: x * y)
    for n in range(1, 1001):
        function(ta.ones(n), ta.ones(n))
    assert function.fused.traces == 1


def test_numbers_are_never_compiled_in():
    function = ta.pointwise(is_tensor=[True, False])(lambda x, k: x * k + k)
    x = values(4)
    for k in (0.5, 1.5, -2.0, 1e30, -0.0):
        equal(function(ta.asarray(x), k), x * np.float32(k) + np.float32(k))
    assert function.fused.traces == 1


def test_operands_by_name_and_defaults():
    f = ta.pointwise(promotion=[(1, 0, "default")])(lambda x, k=3: x - k)
    x = ta.asarray([4, 6])
    instance = f.instantiate(1)
    for call in (f, instance):
        for _ in range(2):
            assert call(x).tolist() == [1, 3]
            assert call(x, k=1).tolist() == [3, 5]
    assert f(k=2, x=x).tolist() == [2, 4]


def test_two_outputs_are_one_launch():
    x = ta.ones(3)
    sum_and_difference(x, x)
    plans = [plan for versions in sum_and_difference.fused._plans._young.values() for plan in versions.values()]
    assert {len(plan.program.launches) for plan in plans} == {1}


def test_it_is_a_part_of_a_fused_function():
    @ta.fuse
    def f(x, y):
        total, difference = sum_and_difference(x[1:], y)
        return total * saxpy(2.0, difference, x[:-1])

    for shape in [(4,), (7,)]:
        x, y = values(*shape), values(shape[0] - 1, seed=1)
        equal(f(ta.asarray(x), ta.asarray(y)), (x[1:] + y) * (2 * (x[1:] - y) + x[:-1]))
    assert f.traces == 1


# --- promotion -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "given", "compute", "result"),
    [
        ("default", ["int8", "float16"], "float32", "float16"),
        ("default", ["bfloat16", "int32"], "float32", "bfloat16"),
        ("default", ["bool", "bool"], "bool", "bool"),
        ("DEFAULT", ["int8", "uint8"], "int16", "int16"),
        ("no_opmath", ["float16", "float16"], "float16", "float16"),
        ("int_to_float", ["int64", "int8"], "float32", "float32"),
        ("int_to_float", ["int8", "float16"], "float32", "float16"),
        ("always_bool", ["float32", "int8"], "float32", "bool"),
        ("complex_to_float", ["complex128", "float32"], "complex128", "float64"),
        ("bool_to_long", ["bool", "bool"], "int64", "int64"),
        ("bool_to_long", ["int8", "bool"], "int8", "int8"),
    ],
)
def test_promotion_methods(method, given, compute, result):
    seen = []

    @ta.pointwise(promotion=[(0, 1, method)])
    def f(x, y):
        seen.append((x.dtype, y.dtype))
        return abs(x * y) if compute.startswith("complex") else x * y + x

    x, y = [np.arange(5).astype(dtype_of(name)) for name in given]
    a, b = [each.astype(dtype_of(result)).astype(dtype_of(compute)) if "c" not in compute else each for each in (x, y)]
    if result == "bool":
        a, b = x.astype(compute), y.astype(compute)
    found = f(ta.asarray(x), ta.asarray(y))
    assert seen == [(dtype_of(compute), dtype_of(compute))]
    expected = abs(a * b) if compute.startswith("complex") else a * b + a
    equal(found, expected.astype(dtype_of(result)))


def test_the_function_computes_in_the_compute_dtype_without_rounding_between():
    x = np.asarray([1.001, 300.0, 2049.0], "float16")
    found = ta.pointwise(promotion=[(0, "default")])(lambda x: x * x / 300 + x)(ta.asarray(x))
    wide = x.astype("float32")
    equal(found, (wide * wide / np.float32(300) + wide).astype("float16"))
    assert np.isinf(ta.to_numpy(ta.pointwise(lambda x: x * x / 300 + x)(ta.asarray(x)))).any()  # each step rounds


def test_each_output_has_its_own_promotion():
    runs = []

    @ta.pointwise(promotion=[(0, 1, "default"), (0, 1, "int_to_float"), (1, 0, "always_bool"), (1, "bool_to_long")])
    def f(x, y):
        runs.append((x.dtype.name, y.dtype.name))
        return x + y, x + y * 0.5, x > y, y

    x, y = values(3, 4, dtype="int32"), values(4, dtype="int8", seed=1)
    total, half, greater, long = f(ta.asarray(x), ta.asarray(y))
    equal(total, x + y.astype("int32"))
    equal(half, x.astype("f4") + y.astype("f4") * np.float32(0.5))
    equal(greater, x > y)
    equal(long, np.broadcast_to(y, (3, 4)))
    assert sorted(runs) == [("float32", "float32"), ("int32", "int32"), ("int32", "int8")]  # one run for equal casts


def test_operands_without_a_position_keep_their_dtype():
    @ta.pointwise(promotion=[(1, 2, "default")])
    def choose(mask, x, y):
        return ta.where(mask, x, y)

    mask, x, y = np.asarray([True, False]), np.asarray([1, 2], "int8"), np.asarray([0.5, 1.5])
    equal(choose(ta.asarray(mask), ta.asarray(x), ta.asarray(y)), np.where(mask, x, y))


def test_numbers_take_part_in_the_promotion():
    @ta.pointwise(is_tensor=[True, False], promotion=[(0, 1, "default")])
    def scaled(x, k):
        return x * k

    x = ta.asarray([1, 2], dtype="int8")
    equal(scaled(x, 3), np.asarray([3, 6], "int8"))
    equal(scaled(x, 0.5), np.asarray([0.5, 1.0], "float32"))
    equal(scaled(x.astype("bool"), 3), np.asarray([3, 3], "int32"))
    with ta.semantics("numpy"):
        equal(scaled(x, 0.5), np.asarray([0.5, 1.0], "float64"))


def test_declared_dtypes_of_numbers():
    @ta.pointwise(dtypes=[None, float, "float16"], promotion=[(0, 1, 2, "default")])
    def f(x, a, b):
        return x * a + b

    x = values(4, dtype="float16")
    wide = x.astype("float32")
    expected = wide * np.float32(2) + np.float32(np.float16(0.1))
    equal(f(ta.asarray(x), 2, 0.1), expected.astype("float16"))
    equal(f(ta.asarray(x), np.int64(2), np.float64(0.1)), expected.astype("float16"))
    integers = values(4, dtype="int32")
    equal(f(ta.asarray(integers), True, 1), (integers.astype("f4") + np.float32(1)).astype("float16"))


def test_the_semantics_of_the_call_count():
    f = ta.pointwise(promotion=[(0, 1, "default")])(lambda x, y: x * y)
    x, y = values(3, dtype="int32"), values(3, dtype="float32")
    equal(f(ta.asarray(x), ta.asarray(y)), x.astype("f4") * y)
    with ta.semantics("numpy"):
        equal(f(ta.asarray(x), ta.asarray(y)), x * y)


def test_complex():
    f = ta.pointwise(promotion=[(0, 1, "default"), (0, 1, "complex_to_float")])(lambda x, y: (x * y, abs(x - y)))
    x, y = values(5) + 1j * values(5, seed=1), values(5, seed=2)
    found, distance = f(ta.asarray(x), ta.asarray(y))
    equal(found, x * y.astype("complex64"))
    equal(distance, abs(x - y))
    real = ta.pointwise(promotion=[(0, "complex_to_float")])(lambda x: x)
    with pytest.raises(DTypeError, match="float32 cannot hold complex64: the imaginary part would be lost"):
        real(ta.asarray(x))


# --- targets -------------------------------------------------------------------------------------------------------


def test_predefined_outputs():
    x, y = values(3, 4), values(4, seed=1)
    targets = [ta.zeros((3, 4)), ta.zeros((3, 4), dtype="float64")]
    for given in [(0,), (1,), (0, 1)]:
        found = sum_and_difference(
            ta.asarray(x), ta.asarray(y), **{f"out{position}": targets[position] for position in given}
        )
        assert all((found[position] is targets[position]) == (position in given) for position in (0, 1))
        for ours, expected in zip(found, (x + y, x - y), strict=True):
            equal(ours, expected.astype(ours.dtype))
            ours[...] = 0


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[::-1, ::-1], lambda x: ta.permute_dims(x, (1, 0)), lambda x: x[:, ::-1]]
)
def test_targets_of_any_strides(view):
    x, y = values(5, 5), values(5, 5, seed=1)
    memory = ta.zeros((5, 5))
    found = saxpy(2.0, ta.asarray(x).T, ta.asarray(y), out0=view(memory))
    equal(found, 2 * x.T + y)
    equal(view(memory), 2 * x.T + y)


def test_in_place():
    x, y = values(5), values(5, seed=1)
    ours = ta.asarray(x, copy=True)
    assert saxpy(2.0, ours, ta.asarray(y), out0=ours) is ours
    equal(ours, 2 * x + y)
    total, difference = sum_and_difference(ours, ta.asarray(y), out1=ours)
    equal(total, 2 * x + y + y)
    assert difference is ours
    equal(ours, 2 * x)


def test_a_target_that_shares_a_part_of_an_operand_gives_what_numpy_gives():
    x = values(9)
    for source, target in [(slice(0, 8), slice(1, 9)), (slice(None), slice(None, None, -1))]:
        ours, plain = ta.asarray(x, copy=True), x.copy()
        saxpy(2.0, ours[source], ours[source], out0=ours[target])
        plain[target] = 2 * plain[source] + plain[source].copy()
        equal(ours, plain)


def test_bool_results_and_targets():
    f = ta.pointwise(promotion=[(0, 1, "always_bool")])(lambda x, y: x > y)
    x, y = values(7), values(7, seed=1)
    target = ta.zeros(7, dtype="bool")
    equal(f(ta.asarray(x), ta.asarray(y), out0=target), x > y)
    equal(f(target, ta.asarray(y)), (x > y) > y)


def test_a_target_is_checked_before_anything_runs():
    x, good = ta.ones(3), ta.zeros(3)
    data = np.zeros(3, "f4")
    data.flags.writeable = False
    cases = [
        (ta.zeros(4), ShapeError, "sum_and_difference: expected out1 of shape (3,), got (4,); write ta.empty((3,))"),
        (ta.zeros((1, 3)), ShapeError, "sum_and_difference: expected out1 of shape (3,), got (1, 3)"),
        (ta.zeros(3, dtype="int32"), DTypeError, "expected a target out1 that can store the float32 result, got int32"),
        (ta.broadcast_to(ta.zeros(1), (3,)), WriteError, "sum_and_difference, out1: the target has several elements"),
        (ta.asarray(data), WriteError, "sum_and_difference, out1: the target is read-only; write to x.copy() instead"),
        (good, WriteError, "sum_and_difference: out0 and out1 share memory; write ta.empty_like(out0) for one of them"),
        (3, OperandError, "sum_and_difference, out1: expected a tilearray Array as out, got int"),
    ]
    for target, kind, message in cases:
        with pytest.raises(kind, match=re.escape(message)):
            sum_and_difference(x, x, out0=good, out1=target)
        assert good.tolist() == [0, 0, 0]
    with pytest.raises(OperandError, match=re.escape("'out2'; write sum_and_difference(x, y, out0=None, out1=None)")):
        sum_and_difference(x, x, out2=good)


def test_the_shape_of_a_target_is_checked_at_each_call():
    target = ta.zeros(3)
    sum_and_difference(ta.ones(3), ta.ones(3), out0=target)
    with pytest.raises(ShapeError, match=re.escape("expected out0 of shape (1,), got (3,)")):
        sum_and_difference(ta.ones(1), ta.ones(1), out0=target)
    with pytest.raises(ShapeError, match=re.escape("expected out0 of shape (5,), got (3,)")):
        sum_and_difference(ta.ones(5), ta.ones(1), out0=target)


def test_a_target_on_another_device():
    from tilearray.engine.devices import Device

    x = ta.ones(3)
    other = Device("cpu", 7)
    other.backend, other.name = x.device.backend, "cpu:7"
    from tilearray.engine.signature import signature_of

    target = ta.Array._make(x._buffer, 0, signature_of(x._signature.layout, x.dtype, other))
    with pytest.raises(DeviceError, match="cpu:7"):
        saxpy(2.0, x, x, out0=target)


# --- instances -----------------------------------------------------------------------------------------------------


def test_an_instance_gives_what_the_function_gives():
    instance = saxpy.instantiate(2)
    for view in (lambda x: x, lambda x: x.T, lambda x: x[::-1, 1:]):
        for k in (2, 0.5, 1e300, True):
            for _ in range(2):
                x, y = view(ta.asarray(values(4, 5))), view(ta.asarray(values(4, 5, seed=1)))
                found = instance(k, x, y)
                assert found.dtype == saxpy(k, x, y).dtype
                np.testing.assert_array_equal(ta.to_numpy(found), ta.to_numpy(saxpy(k, x, y)))
    target = ta.zeros((4, 5))
    assert instance(2, ta.ones((4, 5)), ta.ones(5), out0=target) is target
    assert (target == 3).all()


def test_an_instance_finds_its_plan_by_signatures_alone(monkeypatch):
    instance = sum_and_difference.instantiate(1)
    x = ta.asarray([1.0, 2.0])
    instance(x, x)
    monkeypatch.setattr(type(sum_and_difference), "__call__", None)
    assert instance(x + 1, x)[0].tolist() == [3, 5]


def test_an_instance_keeps_its_semantics():
    x, y = ta.asarray([1], dtype="int32"), ta.asarray([0.5], dtype="float32")
    with ta.semantics("numpy"):
        instance = ta.pointwise(lambda x, y: x * y).instantiate(1)
    assert [instance(x, y).dtype, instance(x, y).dtype] == ["float64", "float64"]


def test_an_instance_takes_arrays_of_its_rank():
    instance = saxpy.instantiate(1)
    with pytest.raises(ShapeError, match=re.escape("saxpy: expected arrays of rank 1, got rank 2; write instantiate")):
        instance(2.0, ta.ones((2, 2)), ta.ones(2))
    with pytest.raises(OperandError, match=re.escape("saxpy.instantiate: expected a rank of at least 0, got -1")):
        saxpy.instantiate(-1)


def test_an_instance_and_the_values_of_numbers():
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x

    instance = ta.pointwise(f).instantiate(0)
    assert [instance(ta.asarray(1.0), n).item() for n in (1, 2, 3, 1, 2)] == [2, 4, 8, 2, 4]


# --- other arrays, threads, processes --------------------------------------------------------------------------------


def test_numpy_arrays_and_scalars():
    x, out = np.arange(4.0), np.zeros(4)
    found = saxpy(2, x, np.float64(1), out0=out)
    assert type(found) is np.ndarray
    assert out.tolist() == [1, 3, 5, 7]
    typed = saxpy(np.float64(2), ta.ones(2), 1)
    assert typed.dtype == "float64"


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    found = saxpy(2.0, torch.arange(3.0), torch.ones(3))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [1, 3, 5]
    with pytest.raises(OperandError, match="saxpy: expected arrays of one library, got arrays of numpy and torch"):
        saxpy(2.0, torch.arange(3.0), np.ones(3))


def test_threads():
    @ta.pointwise(is_tensor=[True, True, False], promotion=[(0, 1, "default"), (0, 1, "always_bool")])
    def f(x, y, k):
        return x * k + y, x > y

    instance = f.instantiate(1)

    def work(number):
        x = np.full(100 + number % 5, float(number), "f4" if number % 2 else "f8")
        y = np.arange(len(x)).astype("i1")
        right = []
        for k in range(20):
            for call in (f, instance):
                total, greater = call(ta.asarray(x), ta.asarray(y), float(k))
                right.append((ta.to_numpy(total) == x * k + y).all() and (ta.to_numpy(greater) == (x > y)).all())
        return right

    assert all(all(found) for found in in_threads(8, work))


def test_a_function_of_a_module_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(saxpy)) is saxpy
    text = (
        "import pickle, sys; f = pickle.loads(bytes.fromhex(sys.argv[1])); import tilearray as ta; "
        "print(f(2.0, ta.ones(2), ta.ones(2)).tolist())"
    )
    path = [p for p in sys.path if p]
    program = f"import sys; sys.path[:0] = {path!r}; {text}"
    found = subprocess.run(
        [sys.executable, "-c", program, pickle.dumps(saxpy).hex()], capture_output=True, text=True, check=False
    )
    assert found.stdout.strip() == "[3.0, 3.0]", found.stderr


# --- errors --------------------------------------------------------------------------------------------------------


def two(x, y):
    return x + y


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (
            two,
            {"is_tensor": [True]},
            "expected is_tensor with 2 entries, one for each of x, y, got 1; write is_tensor=",
        ),
        (two, {"is_tensor": True}, "expected is_tensor with 2 entries, one for each of x, y, got bool"),
        (two, {"is_tensor": [True, 1]}, "expected True or False in is_tensor, got 1; write True for an array"),
        (two, {"is_tensor": [False, False]}, "expected a parameter that is an array, got numbers only; write True"),
        (
            two,
            {"dtypes": [None] * 3},
            "expected dtypes with 2 entries, one for each of x, y, got 3; write dtypes=[None",
        ),
        (two, {"is_tensor": [True, True], "dtypes": [None, float]}, "y is an array, and dtypes are for numbers; write"),
        (two, {"promotion": [(0, "sum")]}, "unknown promotion method 'sum'; write one of 'default', 'no_opmath'"),
        (two, {"promotion": [(0, 1)]}, "unknown promotion method 1; write one of"),
        (two, {"promotion": [(0, 2, "default")]}, "expected positions from 0 to 1 in promotion, got 2; write (0, "),
        (two, {"promotion": [(-1, "default")]}, "expected positions from 0 to 1 in promotion, got -1"),
        (two, {"promotion": [("default",)]}, "expected positions and a method in promotion, got ('default',)"),
        (two, {"promotion": (0, "default")}, "expected positions and a method in promotion, got 0"),
        (two, {"promotion": [(0, "default")], "num_outputs": 2}, "expected promotion with 2 entries, one for each out"),
        (two, {"num_outputs": 0}, "expected num_outputs of at least 1, got 0; write num_outputs=1"),
        (lambda *args: args, {}, "expected parameters that go by position, got *args; write each operand as"),
        (lambda x, *, k: x, {}, "expected parameters that go by position, got k; write each operand as a parameter"),
        (lambda: 1, {}, "expected a function with parameters, got none; write def f(x)"),
        (lambda x, out0: x, {}, "out0 is the name of a target; write another parameter name"),
    ],
)
def test_declarations_that_do_not_fit_are_errors_of_the_decorator(function, options, message):
    with pytest.raises(FusionError, match=re.escape(f"pointwise: {message}")):
        ta.pointwise(**options)(function)


def test_dtypes_that_do_not_exist_and_objects_that_are_no_functions():
    with pytest.raises(DTypeError, match="pointwise: "):
        ta.pointwise(dtypes=[None, "float17"])(two)
    with pytest.raises(OperandError, match=re.escape("pointwise: expected a function, got int; write @ta.pointwise")):
        ta.pointwise(3)


NUMBERED = ta.pointwise(is_tensor=[True, False], dtypes=[None, int])(lambda x, k: x * k)
OUTSIDE = ta.ones(3)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: NUMBERED(2, 3), OperandError, "expected an array as x, got int; write ta.asarray(x)"),
        (lambda: NUMBERED(OUTSIDE, OUTSIDE), OperandError, "expected a number as k, got an array; write k.item()"),
        (lambda: NUMBERED(OUTSIDE, 2.5), OperandError, "expected int as k, got 2.5; write int(2.5)"),
        (lambda: NUMBERED([1, 2], 2), OperandError, "expected an array or a number as x, got list; write ta.asarray"),
        (lambda: NUMBERED(OUTSIDE, None), OperandError, "expected an array or a number as k, got NoneType"),
        (lambda: NUMBERED(OUTSIDE, "2"), OperandError, "expected an array or a number as k, got str"),
        (lambda: NUMBERED(OUTSIDE), OperandError, "missing a required argument: 'k'; write <lambda>(x, k, out0=None)"),
        (lambda: two_of_numbers(1, 2), OperandError, "two: expected at least one array, got none; write ta.asarray(x)"),
        (lambda: two_of_numbers(OUTSIDE, ta.ones(4)), BroadcastError, "add: expected equal sizes"),
        (
            lambda: ta.pointwise(lambda x: (x, x))(OUTSIDE),
            FusionError,
            "expected 1 results, got 2; write num_outputs=2",
        ),
        (lambda: ta.pointwise(lambda x: x + OUTSIDE)(OUTSIDE), FusionError, "that reads an array of shape (3,) from o"),
        (lambda: ta.pointwise(lambda x: x[None])(OUTSIDE), ShapeError, "expected one element for each of shape (3,), "),
        (lambda: ta.pointwise(lambda x: None)(OUTSIDE), OperandError, "expected results that are computed from the ar"),
        (lambda: ta.pointwise(lambda x: x if x > 0 else -x)(OUTSIDE), FusionError, "write ta.where(condition, x, y)"),
        (lambda: ta.pointwise(lambda x: ta.sum(x))(OUTSIDE), FusionError, "sum is not elementwise"),
    ],
)
def test_calls_that_are_errors(call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call()


two_of_numbers = ta.pointwise(two)
