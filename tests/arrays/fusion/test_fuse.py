"""Fused functions: what they take and return, when they are traced, in-place updates, targets, and errors."""

from __future__ import annotations

import itertools
import re
from collections import namedtuple

import numpy as np
import pytest
from support.changing_semantics import dtypes_after_changes
from support.elsewhere import Elsewhere
from support.joined_graphs import check_joined, written_arguments
from support.threads import in_threads
from support.trees import bits

import tilearray as ta
from tilearray.arrays.fusion.tracing import MOST_PARTS
from tilearray.engine.caches import KERNELS
from tilearray.engine.devices import _DEVICES, Device
from tilearray.errors import FusionError, OperandError, WriteError


def counted(function):
    """The fused function, and a list with an entry for each time that it is traced."""
    traces = []

    def run(*args, **kwargs):
        traces.append(args)
        return function(*args, **kwargs)

    return ta.fuse(run), traces


def floats(*shape, seed=0):
    return ta.asarray(np.random.default_rng(seed).normal(size=shape).astype("f4"))


def same(x, y):
    assert bits(x) == bits(y)
    assert x.strides == y.strides


# --- results -------------------------------------------------------------------------------------------------------


def test_a_fused_function_gives_what_the_function_gives():
    def f(a, b):
        return a * b + a * 2 - b

    a, b = floats(3, 5), floats(3, 5, seed=1)
    same(ta.fuse(f)(a, b), f(a, b))
    same(ta.fuse(f)(a.T, b.T), f(a.T, b.T))


def test_one_kernel_reads_each_operand_once_and_computes_common_subexpressions_once(compiled):
    @ta.fuse
    def f(a, b):
        ta.exp(a)  # nobody reads it
        return (a + b) * (a + b) - ta.sqrt(a + b) * 3.25

    f(floats(7), floats(7))
    (expression,) = compiled
    assert expression.inputs == (("array", "float32"), ("array", "float32"), ("scalar", "float32"))
    assert [node[1] for node in expression.nodes if node[0] == "call"] == [
        "add",
        "multiply",
        "sqrt",
        "multiply",
        "subtract",
    ]


def test_results_of_several_shapes_and_dtypes_in_containers():
    Pair = namedtuple("Pair", "low high")

    def f(x, row):
        return {"sum": x + row, "row": [row * 2, row > 0], "pair": Pair(ta.floor(x), x.astype("int8")), "none": None}

    x, row = floats(4, 3), floats(3, seed=2)
    found, expected = ta.fuse(f)(x, row), f(x, row)
    same(found["sum"], expected["sum"])
    same(found["row"][0], expected["row"][0])
    same(found["row"][1], expected["row"][1])
    assert type(found["pair"]) is Pair
    same(found["pair"].low, expected["pair"].low)
    same(found["pair"].high, expected["pair"].high)
    assert found["none"] is None


def test_arguments_in_containers_and_by_name():
    @ta.fuse
    def f(arrays, *, scale, by):
        return arrays["a"] * scale + by[0], arrays["b"] - by[1]

    a, b = floats(4), floats(4, seed=1)
    found = f({"a": a, "b": b}, scale=3.0, by=(a, 2))
    same(found[0], a * 3.0 + a)
    same(found[1], b - 2)


def test_an_argument_that_is_returned_is_the_argument_and_a_view_of_it_shares_its_memory():
    x = floats(4, 3)
    same_x, view, twice = ta.fuse(lambda x: (x, x.T[1:], x * 2))(x)
    assert same_x is x
    view[...] = 7
    assert (x.T[1:] == 7).all()
    assert not (twice == 14).any()


def test_a_result_that_is_returned_twice_is_one_array():
    def f(x):
        y = x + 1
        return y, y

    first, second = ta.fuse(f)(floats(3))
    assert first is second


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1, 1), (2, 3, 4)])
def test_every_shape(shape):
    x = floats(*shape)
    same(ta.fuse(lambda x: ta.exp(x) * x - 1)(x), ta.exp(x) * x - 1)


@pytest.mark.parametrize("name", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_the_semantics_of_the_call_count(name):
    def f(x, y):
        return x * 2.5 + y, x // 2

    x, y = ta.asarray([1, -2, 3], dtype="int32"), ta.asarray([1.5, 2.5, -1], dtype="float32")
    fused, traces = counted(f)
    with ta.semantics(name):
        for found, expected in zip(fused(x, y), f(x, y), strict=True):
            same(found, expected)
    fused(x, y)
    assert len(traces) == (1 if name == "array-api" else 2)


def test_no_call_is_remembered_while_another_thread_changes_the_semantics():
    sizes = itertools.count(3)

    def operands():
        size = next(sizes)
        return ta.ones(size, dtype="int8", device="cpu"), ta.ones(size, dtype="uint8", device="cpu")

    assert dtypes_after_changes(ta.fuse(lambda x, y: x + y), operands) == {("int16", "uint8")}


def test_contraction_is_allowed_by_name_and_changes_nothing_on_the_host(compiled):
    a, b = floats(100), floats(100, seed=1)
    calls = {
        "fuse": lambda options: ta.fuse(**options)(lambda a, b: a * b + a)(a, b),
        "pointwise": lambda options: ta.pointwise(**options)(lambda a, b: a * b + a)(a, b),
        "evaluate": lambda options: ta.evaluate("a * b + a", a=a, b=b, **options),
    }
    for call in calls.values():
        found = {}
        for contract in (True, False):
            KERNELS.clear()
            compiled.clear()
            found[contract] = call({"contract": contract})
            assert [expression.contract for expression in compiled] == [contract]
        same(found[True], found[False])
    for call in (ta.fuse, ta.pointwise, lambda contract: ta.evaluate("a", a=a, contract=contract)):
        with pytest.raises(OperandError, match=r"(fuse|pointwise|evaluate): expected contract True or False, got 1; "):
            call(contract=1)


def test_narrow_intermediates_are_rounded_unless_asked_otherwise():
    x = ta.asarray([1.001, 3.003], dtype="float16")

    def f(x):
        return (x * x) * x - x

    same(ta.fuse(f)(x), f(x))
    wide = x.astype("float32")
    same(ta.fuse(intermediates="compute")(f)(x), f(wide).astype("float16"))
    assert not (f(wide).astype("float16") == f(x)).all()


@pytest.mark.parametrize(
    "moved",
    [
        lambda x: ta.to_device(x, "cpu"),
        lambda x: x.to_device("cpu"),
        lambda x: ta.asarray(x, device="cpu"),
        lambda x: x.astype("float32", device="cpu"),
    ],
)
def test_a_copy_to_the_device_of_the_arguments_is_none(moved):
    x = ta.asarray([1.0, 2.0], dtype="float32", device="cpu")
    same(ta.fuse(lambda x: moved(x) * 2)(x), x * 2)


@pytest.mark.parametrize(
    "constant",
    [
        lambda y, device: ta.asarray([3.0, 4.0], device=device),
        lambda y, device: ta.asarray(3.0, device=device),
        lambda y, device: ta.asarray(np.array([3.0, 4.0], "float32"), device=device),
        lambda y, device: ta.asarray(y, device=device),
        lambda y, device: ta.asarray(y, device=device, copy=False),
        lambda y, device: ta.to_device(y, device),
    ],
)
def test_constants_are_made_on_the_device_of_an_argument(constant):
    x, y = ta.asarray([1.0, 2.0], device="cpu"), ta.asarray([5.0, 6.0], device="cpu")

    def f(x):
        return x * constant(y, x.device)

    same(ta.fuse(f)(x), f(x))
    same(ta.grad(lambda x: ta.sum(f(x)))(x), f(ta.ones_like(x)))
    same(ta.grad(lambda x: ta.sum(ta.grad(lambda z: ta.sum(f(z) * z))(x)))(x), 2 * f(ta.ones_like(x)))
    copied = []
    ta.grad(lambda x: copied.append(ta.asarray(y, device=x.device, copy=True)) or ta.sum(x))(x)
    assert not ta.shares_memory(copied[0], y)


@pytest.mark.parametrize(
    "made",
    [
        lambda x: ta.arange(3, device=x.device),
        lambda x: ta.arange(0.5, 2, 0.5, device=x.device),
        lambda x: ta.arange(x.shape[0], device=x.device)[:, None],
        lambda x: ta.linspace(0, 1, 3, device=x.device),
        lambda x: ta.eye(3, k=1, device=x.device),
    ],
)
def test_ranges_are_made_on_the_device_of_an_argument(elsewhere, made):
    x = ta.asarray(np.arange(9.0, dtype="f4").reshape(3, 3), device=elsewhere)

    def f(x):
        return x * made(x)

    same(ta.fuse(f)(x), f(x))
    gradient = ta.grad(lambda x: ta.sum(f(x) * x))
    same(ta.fuse(gradient)(x), gradient(x))
    same(ta.fuse(f)(x[:, ::-1]), f(x[:, ::-1]))


def test_a_method():
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @ta.fuse
        def forward(self, x):
            return x * self.scale + 1

    x = floats(3)
    same(Layer(2).forward(x), x * 2 + 1)
    same(Layer(3).forward(x), x * 3 + 1)


def test_a_nested_fused_function_becomes_a_part():
    inner, traces = counted(lambda x: x * 2)
    outer = ta.fuse(lambda x: inner(x) + inner(x))
    x = floats(3)
    same(outer(x), x * 2 + x * 2)
    assert len(traces) == 1 + 1
    assert inner.traces == 0


def test_arrays_that_the_function_makes():
    def f(x):
        made = ta.empty_like(x)
        ta.exp(x, out=made)
        return made, ta.zeros_like(x) + x, ta.full_like(x, 2.5, dtype="float64")

    fused, traces = counted(f)
    for n in (3, 5):
        for found, expected in zip(fused(floats(n)), f(floats(n)), strict=True):
            same(found, expected)
    assert len(traces) == 2  # the arrays have the shape of the argument


def test_assignment_where_a_mask_is_true():
    def f(x):
        y = x * 2
        y[y > 1] = -1
        x[x < 0] = 0
        return y

    x, plain = floats(4, 5), floats(4, 5)
    same(ta.fuse(f)(x), f(plain))
    same(x, plain)


# --- traces --------------------------------------------------------------------------------------------------------


def test_a_thousand_shapes_are_one_trace_and_one_kernel(compiled):
    fused, traces = counted(lambda x, y: ta.where(x > y, x * y, y) + 1.625)
    for n in range(1, 1001):
        fused(ta.zeros(n), ta.ones(n))
    assert len(traces) == len([expression for expression in compiled if len(expression.inputs) > 1]) == 1  # not fills


def test_a_stencil_of_a_thousand_shapes_is_one_trace_and_one_kernel(compiled):
    def f(x):
        inner = x[1:-1, 1:-1]
        return inner + 0.6875 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:].T.T + x[1:-1, :-2] - 4 * inner)

    fused, traces = counted(f)
    for n in range(4, 36):
        for m in range(4, 36):
            x = floats(n, m)
            found = fused(x)
    same(found, f(x))
    assert len(traces) == 1
    assert [len(expression.nodes) for expression in compiled if len(expression.nodes) > 9] == [
        14
    ]  # 5 loads, 2 numbers, 7 calls


def test_a_function_that_looks_at_a_shape_is_traced_for_each_shape():
    fused, traces = counted(lambda x: x / x.shape[0])
    for n in (2, 3, 2, 3):
        x = ta.ones(n, dtype="float32")
        same(fused(x), x / n)
    assert len(traces) == 2


def test_other_ranks_dtypes_and_broadcasts_are_right():
    fused, traces = counted(lambda x, y: x * y + x)
    for x, y in [((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 1), (1, 3)), ((), (3,)), ((3,), ())]:
        a, b = floats(*x), floats(*y, seed=3)
        same(fused(a, b), a * b + a)
    a, b = floats(3).astype("int8"), floats(3)
    same(fused(a, b), a * b + a)
    assert len(traces) == 5


def test_numbers_are_not_compiled_in(compiled):
    fused, traces = counted(lambda x, beta, n: x * (1 - beta) + x * beta**n)
    x = floats(5)
    for beta, n in [(0.5, 1), (0.25, 2), (0.125, 3), (-1.5, 4)]:
        found = fused(x, beta, n)
        del compiled[1:]
        same(found, x * (1 - beta) + x * beta**n)
    assert len(traces) == 1
    assert len(compiled) == 1


def test_numbers_of_another_class_are_traced_again():
    fused, traces = counted(lambda x, k: x + k)
    x = ta.asarray([1, 2], dtype="int32")
    same(fused(x, 1), x + 1)
    same(fused(x, 0.5), x + 0.5)
    same(fused(x, 1e300), x + 1e300)
    assert len(traces) == 3


def test_a_computed_number_of_another_class():
    fused, _ = counted(lambda x, k: x + k * k)
    x = ta.asarray([1, 2], dtype="int32")
    same(fused(x, 1e3), x + 1e6)
    same(fused(x, 1e30), x + 1e30 * 1e30)  # float64


def test_a_number_of_another_class_stops_a_call_before_anything_is_written():
    def f(x, y, k):
        x += 1
        return x * 2, y + k * k

    fused, _ = counted(f)
    y = ta.asarray([[1], [2]], dtype="int32")
    for k in (1e3, 1e30, 1e3):
        x, plain = floats(3), floats(3)
        for found, expected in zip(fused(x, y, k), f(plain, y, k), strict=True):
            same(found, expected)
        same(x, plain)
    fused = ta.fuse(lambda x, y, z, k: (x.__iadd__(1), y + x, z + k * k))
    for k in (1e3, 1e30):
        x = floats(3)
        same(fused(x, x, y, k)[2], y + k * k)
        same(x, floats(3) + 1)
    x = floats(3)
    fused = ta.fuse(lambda x, y, k: (x.__iadd__(1) * 2, y + k * 3))
    fused(floats(3), y, 5)
    with pytest.raises(ta.ScalarOverflowError):
        fused(x, y, 2**30)
    same(x, floats(3))


def test_a_float_that_numpy_semantics_assign_to_integers_is_truncated_at_each_call():
    @counted
    def assign(x, value):
        x[...] = value

    fused, traces = assign
    with ta.semantics("numpy"):
        for value in (2.5, -2.5, 7.0, 2.0**40):
            x = ta.zeros(2, dtype="int64")
            fused(x, value)
            assert x.tolist() == [int(value)] * 2
        assert len(traces) == 2  # the last number is of another class
        with pytest.raises(ta.errors.DTypeError, match="int64 cannot hold inf"):
            fused(x, float("inf"))
        with pytest.raises(ta.errors.ScalarOverflowError, match="setitem: 300 does not fit int8"):
            fused(x.astype("int8"), 300.5)
        with pytest.raises(ta.errors.DTypeError, match="int64 cannot hold 1j"):
            fused(x, 1j)
    with pytest.raises(ta.errors.DTypeError, match=r"int64 cannot hold 2\.5; write int"):
        fused(x, 2.5)


def test_a_number_that_python_needs_is_traced_for_each_value():
    def f(x, n, flag):
        for _ in range(n):
            x = x * 2 if n > 1 else -x
        return x if flag else x[n:]

    fused, traces = counted(f)
    x = floats(5)
    for n, flag in [(1, True), (2, True), (1, True), (2, False), (2, False)]:
        same(fused(x, n, flag), f(x, n, flag))
    assert len(traces) == 3


BESIDE_ARRAYS = {
    "multiply": lambda a, x: np.multiply(a, x),
    "subtract": lambda a, x: np.subtract(x, a),
    "a computed number": lambda a, x: np.maximum(a, 1 - x * 2),
    "dtype": lambda a, x: np.multiply(a, x, dtype="float64"),
    "out": lambda a, x: np.multiply(a, x, out=ta.zeros_like(a)),
    "where": lambda a, x: np.add(a, x, out=ta.zeros_like(a), where=a > 1),
    "divmod": lambda a, x: np.divmod(a, x)[1],
    "outer": lambda a, x: np.multiply.outer(a, x),
    "float_power": lambda a, x: np.float_power(a, x),
}
NEEDED = {
    "sqrt": lambda a, x: a * np.sqrt(x),
    "a ufunc of numbers": lambda a, x: a * np.add(x, 1),
    "a NumPy scalar": lambda a, x: a * (x * np.float64(2)),
    "a NumPy scalar first": lambda a, x: a * (np.float64(2) - x),
    "an ndarray": lambda a, x: a * (np.arange(3.0) * x),
    "np.linspace": lambda a, x: a + np.linspace(0, x, 3),
    "np.array": lambda a, x: a * np.array([x, 1, 2.0]),
    "linspace": lambda a, x: a * ta.linspace(0, x, 3),
    "arange": lambda a, x: a * ta.arange(x, x + 3),
    "asarray": lambda a, x: a + ta.asarray(x),
    "asarray in a dtype": lambda a, x: a + ta.asarray(x, dtype="float16"),
    "full": lambda a, x: a + ta.full(3, x),
    "a list": lambda a, x: a * [x, 1, x],
    "a list with dtypes": lambda a, x: a * ta.asarray([x, np.float32(2), x]),
    "a correction": lambda a, x: a - ta.var(a, correction=x),
    "an order": lambda a, x: a / ta.linalg.norm(a, x),
    "an assigned list": lambda a, x: a.__setitem__(slice(2), [x, 4]) or a * 2,
}


@pytest.mark.parametrize("function", BESIDE_ARRAYS.values(), ids=BESIDE_ARRAYS)
def test_ufuncs_of_an_array_and_a_number(function):
    fused, traces = counted(function)
    a = ta.asarray([1.0, 2.0, 3.0])
    for x in (2, 3, 2.5, -1.5, 1e300):
        same(fused(a, x), function(a, x))
    assert len(traces) == 3  # one for each class of numbers


@pytest.mark.parametrize("function", NEEDED.values(), ids=NEEDED)
def test_a_number_that_numpy_or_a_new_array_needs_is_traced_for_each_value(function):
    fused = ta.fuse(function)
    a = ta.asarray([1.0, 2.0, 3.0])
    for x in (2, 3, 0.5, 2.5, 2):
        same(fused(a.copy(), x), function(a.copy(), x))


@pytest.mark.parametrize(
    ("numbers", "traces"),
    [([2, 300, 2**20], 1), ([-2, -(2**40), -(2**41)], 2), ([2**63, 2**64 - 1], 1), ([0.5, 1e300, -1e300], 2)],
)
def test_a_new_array_of_a_number_has_the_dtype_of_its_class(numbers, traces):
    fused, traced = counted(lambda a, x: a + ta.full(3, x, device=a.device))
    a = ta.asarray([1.0, 2.0, 3.0], dtype="float64")
    for x in numbers:
        same(fused(a, x), a + ta.full(3, x))
    assert len(traced) == traces
    complex_numbers = ta.fuse(lambda a, x: ta.full(3, x, device=a.device) * a)
    for x in (1j, 1e300j, 2 + 1j):
        same(complex_numbers(a.astype("float32"), x), ta.full(3, x) * a.astype("float32"))


def test_ufuncs_of_a_number_that_has_another_librarys_array_are_left_to_it():
    class Quantity:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return 4.0

    same(ta.fuse(lambda a, x: a * np.multiply(x, Quantity()))(ta.ones(2), 3), ta.ones(2) * 4.0)


def test_arrays_from_outside_are_read_at_each_call():
    weight = ta.asarray([1.0, 2.0])
    fused, traces = counted(lambda x: x * weight)
    x = ta.asarray([3.0, 4.0])
    assert fused(x).tolist() == [3, 8]
    weight[...] = 10
    assert fused(x).tolist() == [30, 40]
    assert len(traces) == 1


def test_numpy_scalars_are_typed():
    fused = ta.fuse(lambda x, k: x * k)
    x = ta.asarray([1.5], dtype="float32")
    same(fused(x, np.float64(2)), x * np.float64(2))
    same(ta.fuse(lambda x: x * np.float64(2))(x), x * np.float64(2))


# --- in place and out= ---------------------------------------------------------------------------------------------


def adam(p, g, m, v, lr, beta1, beta2, eps, t):
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    p -= lr * (m / (1 - beta1**t)) / (ta.sqrt(v / (1 - beta2**t)) + eps)


def test_an_adam_step_updates_its_arguments_in_one_kernel():
    ours, plain = [[ta.abs(floats(9, seed=k)) for k in range(4)] for _ in range(2)]
    fused, traces = counted(adam)
    for t in range(1, 6):
        fused(*ours, 1e-3, 0.9, 0.999, 1e-8, t)
        adam(*plain, 1e-3, 0.9, 0.999, 1e-8, t)
    for x, y in zip(ours, plain, strict=True):
        same(x, y)
    assert len(traces) == 1
    ((plan,),) = [versions.values() for versions in fused._plans._young.values()]
    assert len(plan.program.launches) == 1


def test_targets_that_the_launch_reads_elsewhere():
    def shifted(x):
        x[1:] += x[:-1]

    def swapped(x, y):
        old = x * 1
        x[...] = y
        y[...] = old

    def turned(x):
        x[...] = x[::-1]

    def moved_on(x, y):
        old = x.copy()
        x[...] = y * 2
        y[...] = old

    for f, count in [(shifted, 1), (swapped, 2), (turned, 1), (moved_on, 2)]:
        ours, plain = [[floats(100_000, seed=k) for k in range(count)] for _ in range(2)]
        ta.fuse(f)(*ours)
        f(*plain)
        for x, y in zip(ours, plain, strict=True):
            same(x, y)


def test_arguments_that_are_exchanged():
    def f(x, y):
        old = x * 1
        x *= 0
        x += y
        y *= 0
        y += old

    x, y = floats(5), floats(5, seed=1)
    expected = y * 1, x * 1
    ta.fuse(f)(x, y)
    same(x, expected[0])
    same(y, expected[1])


def test_other_shapes_of_an_operand_that_shares_the_targets_memory():
    fused, traces = counted(lambda x: x.__iadd__(x.T))
    for n in (1, 3, 5):  # one element is not copied
        x, plain = floats(n, n), floats(n, n)
        fused(x)
        plain += plain.T
        same(x, plain)
    assert len(traces) == 1


def test_one_array_as_two_arguments():
    def f(x, y):
        x += 1
        return y * 2

    x, plain = floats(5), floats(5)
    fused = ta.fuse(f)
    fused(floats(5), floats(5, seed=1))
    same(fused(x, x), f(plain, plain))
    same(x, plain)
    view, other = floats(6), floats(6)
    same(fused(view[:5], view[:5]), f(other[:5], other[:5]))


def test_arguments_that_share_a_part_of_memory_are_an_error_if_one_is_written():
    def f(x, y):
        x += 1
        return y * 2

    x = floats(6)
    before = x.copy()
    message = "fuse: arguments 1 and 2 share a part of their memory, and the function writes to it; write x.copy() for"
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.fuse(f)(x[1:], x[:-1])
    same(x, before)
    same(ta.fuse(lambda x, y: x + y)(x[1:], x[:-1]), x[1:] + x[:-1])


def test_out():
    fused = ta.fuse(lambda x, y: (x + y, {"product": x * y}))
    x, y, total = floats(4), floats(4, seed=1), ta.zeros(4)
    first, rest = fused(x, y, out=(total, None))
    assert first is total
    same(total, x + y)
    same(rest["product"], x * y)
    narrow = ta.zeros((2, 4), dtype="float16")
    assert ta.fuse(lambda x: x * 2)(x, out=narrow) is narrow
    same(narrow, ta.broadcast_to((x * 2).astype("float16"), (2, 4)).copy())


def test_out_that_shares_memory_with_an_argument():
    fused = ta.fuse(lambda x, y: x - y)
    x = floats(9)
    expected = x[1:] - x[:-1]
    assert fused(x[1:], x[:-1], out=x[1:]).shape == (8,)
    same(x[1:], expected)


def test_out_of_another_structure():
    x = floats(3)
    message = (
        "fuse: expected out with the structure of the results, tuple of 2, got an array; write None for a result "
        "without a target"
    )
    with pytest.raises(OperandError, match=re.escape(message)):
        ta.fuse(lambda x: (x, x + 1))(x, out=x)


def test_a_read_only_argument_is_not_written():
    data = np.ones(3)
    data.flags.writeable = False
    x = ta.asarray(data)
    fused = ta.fuse(lambda x: x.__iadd__(1))
    with pytest.raises(WriteError, match=r"the target is read-only; write to x\.copy"):
        fused(x)
    fused(ta.ones(3, dtype="float64"))
    with pytest.raises(WriteError, match=r"fuse: an argument that the function writes is read-only; write x\.copy"):
        fused(x)


# --- other libraries -----------------------------------------------------------------------------------------------


def test_numpy_arrays():
    x, y = np.arange(4.0), np.ones(4)
    found = ta.fuse(lambda x, y: x * y + 1)(x, y)
    assert type(found) is np.ndarray
    assert found.tolist() == [1, 2, 3, 4]
    ta.fuse(lambda x: x.__imul__(2))(x)
    assert x.tolist() == [0, 2, 4, 6]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    found = ta.fuse(lambda x: x * 2 + 1)(torch.arange(3.0))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [1, 3, 5]


def test_threads():
    fused = ta.fuse(lambda x, k: x * k + x)

    def work(number):
        x = ta.full(100 + number % 7, float(number))
        return [(fused(x, k) == x * k + x).all().item() for k in range(30)]

    assert all(all(found) for found in in_threads(8, work))


# --- errors --------------------------------------------------------------------------------------------------------

NO_VALUES = "needs the values of an array, and an array has none while the function is traced; write"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x > 0 else -x, f"fuse: `if`, `and`, `or` or bool(x) {NO_VALUES} ta.where(condition, x, y)"),
        (lambda x: x * float(x[0]), f"fuse: float(x) {NO_VALUES} the expression with x"),
        (lambda x: x * int(x[0]), f"fuse: int(x) {NO_VALUES} x.astype('int64')"),
        (lambda x: x * x[0].item(), f"fuse: x.item() {NO_VALUES} the expression with x"),
        (lambda x: x * np.asarray(x), f"fuse: numpy.asarray(x) {NO_VALUES} ta.add(x, y)"),
        (lambda x: x.tolist(), f"fuse: x.tolist() {NO_VALUES}"),
        (lambda x: f"{x:.1f}", f"fuse: format {NO_VALUES}"),
        (lambda x: 1.0 in x, f"fuse: `in` {NO_VALUES} x == value"),
        (
            lambda x: ta.sort(x),
            "fuse: sorting, searching or a set is not elementwise, and not a reduction that fuses; write two fused "
            "functions, and call it between them",
        ),
        (lambda x: ta.cumulative_sum(x), "fuse: cumulative_sum is not elementwise"),
        (lambda x: x @ x, "fuse: a product of matrices is not elementwise"),
        (lambda x: x[ta.asarray([0, 1])], "fuse: an index that is an array is not elementwise, and not a reduction"),
        (lambda x: x.__setitem__([0, 1], 2), "fuse: an index that is an array is not elementwise"),
        (lambda x: ta.take(x, ta.asarray([0])), "fuse: elements at an index that is an array are not elementwise"),
        (lambda x: ta.add.at(x + 1, [0], 2), "fuse: a sum or a count at places is not elementwise"),
        (lambda x: ta.put(x + 1, ta.asarray([0]), 2), "fuse: elements at an index that is an array are not elem"),
        (lambda x: x + ta.empty_like(x), "fuse: add reads an array before it is written; write ta.zeros_like(x)"),
        (lambda x: OUTSIDE.__iadd__(x), "fuse: add writes to an array that is not an argument; write it as an arg"),
        (lambda x: OUTSIDE, "expected results that are computed from the arguments, got another array"),
        (lambda x: (x + 1).view("int32"), "fuse: return reads the bytes of a computed array as int32; write x.view"),
    ],
)  # fmt: skip
def test_functions_that_cannot_be_fused(function, message):
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.fuse(function)(floats(4))


OUTSIDE = ta.zeros(4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: ta.take(x, n),
        lambda x, n: ta.take_along_axis(x, n, 0),
        lambda x, n: ta.put_along_axis(x, n, 1.0, 0),
        lambda x, n: x[n],
        lambda x, n: x.__setitem__(n, 1.0),
        lambda x, n: ta.take(x, 1),
    ],
)
def test_indices_among_the_arguments_do_not_fuse(function):
    with pytest.raises(FusionError, match="an index that is an array"):
        ta.fuse(function)(ta.ones(3), ta.asarray([0, 2]))
    with pytest.raises(FusionError, match="an index that is an array"):
        ta.fuse(lambda x, k: ta.take(x, k))(ta.ones(3), 1)


def test_products_of_scaled_integers_do_not_fuse():
    with pytest.raises(FusionError, match="fuse: a product of matrices is not elementwise"):
        ta.fuse(lambda x: ta.scaled_matmul(x, x, 1.0, 1.0))(ta.ones((2, 2), dtype="int8"))


def test_a_run_over_the_end_of_a_part_is_not_written():
    @ta.fuse
    def f(x):
        y = x * 2
        y[1:, 1:] = 0
        y.reshape(-1)[3:9] = 1
        return y

    message = (
        "fuse: setitem writes a part of an array of which the function computes another part; write ta.where, or write "
        "the parts in two fused functions"
    )
    with pytest.raises(FusionError, match=re.escape(message)):
        f(floats(3, 4))


def test_an_argument_is_written_in_any_number_of_parts():
    """The limit of parts is for those of new arrays, and for writes that split earlier ones."""

    def f(x):
        for row in range(2 * MOST_PARTS):
            x[row] *= row
            x[row] += 1

    fused, plain = floats(2 * MOST_PARTS, 3), floats(2 * MOST_PARTS, 3)
    ta.fuse(f)(fused)
    f(plain)
    same(fused, plain)


def test_arrays_that_are_joined_of_parts_are_those_of_the_function():
    check_joined("cpu")


def test_arguments_with_gaps_are_read_after_a_part_is_written():
    given, plain = [[floats(3, 9)[:, ::2], floats(6, 5)[::-2]] for _ in "xy"]
    for found, wanted in zip(ta.fuse(written_arguments)(*given), written_arguments(*plain), strict=True):
        same(found, wanted)
    for found, wanted in zip(given, plain, strict=True):
        same(found, wanted)


def test_parts_of_one_shape_are_one_launch():
    x = floats(3, 4)
    assert len(ta.explain(ta.fuse(lambda x: ta.stack([x * 2, x + 1], axis=1)), x).launches) == 1


def test_joins_have_gradients():
    x = floats(3, 4)

    def joined(x):
        return ta.concat([x * x, ta.sin(x)], axis=1)

    same(*[ta.grad(lambda x, f=f: ta.sum(f(x) ** 2))(x) for f in (ta.fuse(joined), joined)])


def test_a_joined_array_that_is_read_is_stored_first():
    x = floats(3, 4)
    found = ta.explain(ta.fuse(lambda x: ta.concat([x[:, 2:], x[:, :2]], axis=1) * x), x)
    assert len(found.launches) == 2


def test_a_new_array_is_read_when_all_of_it_is_written():
    def f(x):
        found = ta.empty_like(x)
        found[:1] = x[:1]
        found[1:2] = x[1:2]
        return found * 2

    message = (
        "fuse: multiply reads an array of which the function writes a part; write to ta.zeros_like(x), or all parts in "
        "one dtype"
    )
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.fuse(f)(floats(4))


def test_a_reshape_of_what_is_computed_from_broadcast_operands():
    """The array is stored first, unless its operands can be reshaped instead."""
    x = floats(3, 4)
    for function, launches in [
        (lambda x: (x + 1).reshape(-1) * 2, 1),
        (lambda x: (x + x[0]).reshape(-1) * 2, 2),
        (lambda x: ta.reshape(ta.sum(x[:, None] * x[:, :, None], axis=0), -1), 2),
        (lambda x: ta.reshape(ta.concat([x, x * 2], axis=1).astype("complex64"), (2, -1)).imag[:, 1:], 3),
    ]:
        fused = ta.fuse(function)
        assert bits(fused(x)) == bits(function(x))
        assert len(ta.explain(fused, x).launches) == launches


COPIES = [
    lambda x, y, device: x.to_device(device),
    lambda x, y, device: (x * 2)[::2].to_device(device, stream=1),
    lambda x, y, device: ta.asarray(x, device=device),
    lambda x, y, device: ta.asarray(x * 2, dtype="float64", device=device),
    lambda x, y, device: ta.astype(x, "float64", device=device),
    lambda x, y, device: x * y.to_device(x.device),
]


@pytest.fixture
def other(elsewhere, monkeypatch):
    """A second device that is not the host."""
    device = Device("cuda", elsewhere.index + 1)
    device.backend = Elsewhere()
    monkeypatch.setitem(_DEVICES, device.name, device)
    return device


@pytest.mark.parametrize("of_gradient", [False, True])
@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_to_another_device_does_not_fuse(elsewhere, other, copy, of_gradient):
    x, y = ta.asarray([1.0, 2.0], device=elsewhere), ta.asarray([1.0, 2.0], device=other)

    def f(x):
        return copy(x, y, other)

    message = (
        f"fuse: expected a function of arrays on {elsewhere.name}, got a copy between devices in it; write "
        f"x.to_device(...) before or after the function"
    )
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.fuse(ta.grad(lambda x: ta.sum(f(x))) if of_gradient else f)(x)


def test_a_gradient_takes_constants_of_another_device(elsewhere, other):
    x, y = ta.asarray([1.0, 2.0], device=elsewhere), ta.asarray([3.0, 4.0], device=other)
    for place in (lambda x: y.to_device(x.device), lambda x: ta.asarray(y, device=x.device)):
        found = ta.grad(lambda x, place=place: ta.sum(x * place(x)))(x)
        assert (found.device, found.tolist()) == (elsewhere, [3, 4])


def test_an_array_has_the_name_of_its_device():
    names = []

    def f(x):
        names.append(str(x.device))
        return ta.sum(x * ta.ones(2, device=str(x.device)))

    x = ta.ones(2, device="cpu")
    for of_x in (ta.fuse(f), ta.grad(f), ta.fuse(ta.grad(f))):
        of_x(x)
    assert names == ["cpu"] * 3


def test_errors_of_operations_come_at_their_line():
    @ta.fuse
    def f(x, y):
        z = x * 2
        return z + y

    with pytest.raises(ta.BroadcastError, match="add: ") as caught:
        f(floats(3), floats(4))
    assert any(entry.name == "f" for entry in caught.traceback)
    f(floats(3), floats(3))
    with pytest.raises(ta.BroadcastError, match="add: ") as caught:  # another shape of what is recorded
        f(floats(5), floats(6))
    assert any(entry.name == "f" for entry in caught.traceback)


def test_an_array_of_a_trace_is_not_kept():
    kept = []
    ta.fuse(lambda x: kept.append(x + 1) or x * 2)(floats(3))
    with pytest.raises(FusionError, match="an array of a trace is used after it; return it from the function instead"):
        kept[0] + 1
    with pytest.raises(FusionError, match="add got an array of another trace; return it instead of keeping it"):
        ta.fuse(lambda x: x + kept[0])(floats(3))


def test_arguments_that_are_no_arrays():
    with pytest.raises(OperandError, match=r"expected at least one array, got none; write ta\.asarray"):
        ta.fuse(lambda x: x + 1)(3)
    with pytest.raises(OperandError, match="expected arrays, numbers, or arguments with a hash, got set"):
        ta.fuse(lambda x, s: x + 1)(floats(3), {1})
    with pytest.raises(OperandError, match=r"fuse: expected a function, got int; write @ta\.fuse before a function"):
        ta.fuse(3)
    with pytest.raises(OperandError, match="fuse: expected intermediates 'each' or 'compute', got 'none'"):
        ta.fuse(intermediates="none")


def test_operands_of_any_strides_that_share_a_part_of_the_targets_memory():
    """They are copied, and a copy has other strides than the operand."""
    fused = ta.fuse(lambda x, y: x - 0.25 * y)
    plain = np.arange(64.0)
    for target in (slice(0, 8), slice(8, 0, -1), slice(3, 11), slice(0, 24, 3)):
        for read in (slice(7, None, -1), slice(0, 16, 2), slice(22, 6, -2), slice(2, 10), slice(8, 0, -1)):
            ours = ta.asarray(plain.copy())
            expected = plain.copy()
            expected[target] = plain[target] - 0.25 * plain[read]
            fused(ours[target], ours[read], out=ours[target])
            assert ours.tolist() == expected.tolist()
    matrix, row = ta.asarray(plain.copy()).reshape((8, 8)), ta.asarray(plain.copy())
    expected = plain.reshape(8, 8) - 0.25 * plain.reshape(8, 8).T
    assert fused(matrix, matrix.T, out=matrix).tolist() == expected.tolist()
    assert (
        fused(row.reshape((8, 8)), row[7::-1], out=row.reshape((8, 8))).tolist()
        == (plain.reshape(8, 8) - 0.25 * plain[7::-1]).tolist()
    )


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_what_is_computed_are_views_in_semantics_without_complex_numbers(part):
    x = ta.asarray([1.5, -2.0], device="cpu")
    with ta.semantics("cutile"):
        found = ta.fuse(lambda x: getattr(x.astype("complex64"), part))(x)
    assert found.tolist() == {"real": [1.5, -2.0], "imag": [0.0, 0.0]}[part]
