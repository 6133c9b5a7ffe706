"""Reductions in fused functions: their bits are those of the function, and what they compute is not stored before."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from support.reduced_trees import LAYOUTS, check_reduced
from support.trees import bits

import tilearray as ta
from tilearray.errors import FusionError, ShapeError

VIEWS = {
    "back": lambda x: x[..., ::-1],
    "turned": lambda x: x[::-1],
    "both": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "crossed": lambda x: x[:, ::-1].T,
}


def floats(*shape, seed=0, dtype="f4"):
    return ta.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def same(function, *arrays):
    """Compare a function and its fused form, and return the results."""
    found, expected = ta.fuse(function)(*arrays), function(*arrays)
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert bits(one) == bits(other)
        assert one.strides == other.strides
    return found


def kinds(expressions):
    """For each kernel, what it calls and reduces."""
    return [[node[1] for node in each.nodes if node[0] in ("call", "reduce")] for each in expressions]


# --- one kernel --------------------------------------------------------------------------------------------------


def test_a_product_is_summed_in_one_kernel_that_reads_each_operand_once(compiled):
    a, b = floats(40, 30), floats(30, 40, seed=1)
    found = ta.fuse(lambda a, b: ta.sum(a * b.T, axis=1))(a, b)
    (expression,) = compiled
    assert kinds(compiled) == [["multiply", "add"]]
    assert expression.inputs == (("array", "float32"), ("array", "float32"))
    products = ta.to_numpy(a) * ta.to_numpy(b).T  # rounded to float32, and then added up exactly enough
    assert ta.to_numpy(found).tolist() == products.astype("f8").sum(axis=1).astype("f4").tolist()


def test_the_product_is_rounded_before_it_is_summed():
    x = ta.asarray([0.1, 0.1, 0.1], dtype="bfloat16")
    rounded = np.float32(ta.to_numpy(x * x)[0])
    assert rounded != np.float32(ta.to_numpy(x)[0]) ** 2
    assert ta.fuse(lambda x: ta.sum(x * x, dtype="float32"))(x).item() == 3 * rounded


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero", "var", "std"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (-1, -3), ()])
def test_every_reduction_over_any_axes(name, axis):
    a, b = floats(3, 20, 7), floats(7, 20, 3, seed=1)
    same(lambda a, b: getattr(ta, name)(a + b.T, axis=axis), a, b)
    same(lambda a, b: getattr(ta, name)((a * b.T)[:, ::-1].T, axis=axis, keepdims=True), a, b)


@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3), (1, 40_000), (300, 300)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_order_is_that_of_the_array_that_is_not_stored(shape, axis):
    a, b = floats(*shape), floats(*shape[::-1], seed=1)
    same(lambda a, b: ta.sum(a * b.T, axis=axis), a, b)
    same(lambda a, b: ta.sum(a.T * b, axis=axis), a, b)
    same(lambda a, b: ta.sum(a * a[:1] + b.T[:, :1], axis=axis), a, b)


def test_other_functions_of_reductions():
    a, b = floats(30, 50), floats(30, 50, seed=1)
    same(lambda a, b: ta.vecdot(a + b, b), a, b)
    same(lambda a, b: ta.argmax(a * b, axis=1), a, b)
    same(lambda a, b: ta.sum(a, where=b > 0, initial=2.5), a, b)
    same(lambda a, b: ta.logsumexp(a * b, axis=0), a, b)
    same(lambda a, b: ta.linalg.vector_norm(a - b, axis=1), a, b)
    same(lambda a, b: (a * 2).sum(axis=0) + (b + 1).max(), a, b)


@pytest.mark.parametrize("shape", [(300, 100), (3, 70_000), (70_000, 3), (40_000,), (20, 3, 700)])
def test_what_has_no_order_is_computed_block_by_block(shape):
    """Blocks have whole rows, or parts of rows whose results are combined; -0.0 is less than 0.0, and NaN remains."""
    values = np.random.default_rng(1).integers(-3, 4, shape).astype("f4")
    values.flat[1::1000] = np.nan
    x, first, last = ta.asarray(values, device="cpu"), 0, len(shape) - 1
    found = ta.fuse(
        lambda x: (
            ta.max(-x, axis=last),
            ta.min(ta.abs(x) - 1, axis=first),
            ta.any(x > 2, axis=last),
            ta.sum(ta.where(x == x, x, 0).astype("int32") * 2),
        )
    )(x)
    expected = (-values).max(last), (abs(values) - 1).min(first), (values > 2).any(last), 2 * np.nansum(values)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ta.to_numpy(one), other)
    zeros = ta.asarray(np.where(np.arange(40_000) % 20_000, -0.0, 0.0).reshape(2, -1), device="cpu")
    signs = ta.fuse(lambda x: (ta.max(-x, axis=1), ta.min(-x)))(zeros)
    assert [np.signbit(ta.to_numpy(one)).any() for one in signs] == [False, True]


# --- several parts -----------------------------------------------------------------------------------------------

NORMS = {
    "layer norm": lambda x: (
        (x - ta.mean(x, axis=-1, keepdims=True)) / ta.sqrt(ta.var(x, axis=-1, keepdims=True) + 1e-5)
    ),
    "rms norm": lambda x: x / ta.sqrt(ta.mean(x * x, axis=-1, keepdims=True) + 1e-6),
    "softmax": lambda x: ta.softmax(x * 0.125, axis=-1),
    "softmax of columns": lambda x: ta.softmax(x * 0.125, axis=0),
    "log softmax": lambda x: ta.log_softmax(x + 1),
    "quantised": lambda x: ta.astype(ta.round(x / ta.max(ta.abs(x), axis=-1, keepdims=True) * 127), "int8"),
    "centred": lambda x: x - ta.mean(x),
    "centred columns": lambda x: x - ta.mean(x, axis=0),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (70, 128), (5, 3000), (2, 3, 40), (1, 20_000)])
def test_norms(name, shape):
    same(NORMS[name], floats(*shape))
    same(NORMS[name], floats(*shape[::-1], dtype="f8").T)


def test_a_result_is_in_memory_once(compiled):
    def f(x):
        total = ta.sum(x * 2, axis=1)
        return total, total + 1, total

    x = floats(4, 6)
    first, _, last = ta.fuse(f)(x)
    assert first is last
    assert kinds(compiled) == [["multiply", "add"], ["add"]]


def test_results_of_several_shapes_in_place_operations_and_targets():
    def f(x, y):
        y += ta.sum(x, axis=0)
        x -= y
        return ta.max(x, axis=1), x * 2, ta.sum(x)

    given, expected = [(floats(5, 7), floats(7, seed=1)) for _ in range(2)]
    for one, other in zip((*ta.fuse(f)(*given), *given), (*f(*expected), *expected), strict=True):
        assert bits(one) == bits(other)
    out = ta.zeros(5)
    assert ta.fuse(lambda x: ta.sum(x * x, axis=1))(given[0], out=out) is out
    assert bits(out) == bits(ta.sum(given[0] * given[0], axis=1))


def test_a_reduction_of_a_number_and_of_a_part():
    x = floats(5, 7)
    same(lambda x: ta.sum(ta.zeros_like(x) + 0.1), x)
    same(lambda x: ta.sum((x + 1)[1:, ::-2], axis=0), x)
    same(lambda x: ta.sum(ta.broadcast_to(ta.sum(x, axis=0), (3, 7)), axis=0), x)


@pytest.mark.parametrize(
    "key", [slice(0), slice(1), slice(-1), slice(1, None), slice(None, None, 2), slice(1, None, -1)]
)
def test_a_part_of_a_reduction_is_only_that_part(key):
    x = floats(3, 4, 5)
    for axis in (0, 1, (0, 1), (1, 2)):
        found, double = ta.fuse(lambda x, axis=axis: (ta.min(x, axis)[key], ta.sum(x, axis)[key] * 2))(x)
        assert ta.to_numpy(found).tolist() == np.min(ta.to_numpy(x), axis)[key].tolist()
        assert bits(double) == bits(ta.sum(x, axis)[key] * 2)
    whole, part, again = ta.fuse(lambda x: (ta.max(x, axis=2), ta.max(x, axis=2)[:, key], ta.max(x, axis=2)[:3]))(x)
    assert [each.shape for each in (whole, part, again)] == [(3, 4), (3, len(range(4)[key])), (3, 4)]
    assert bits(whole) == bits(again) == bits(ta.max(x, axis=2))
    assert ta.to_numpy(part).tolist() == np.max(ta.to_numpy(x), 2)[:, key].tolist()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_was_written_through_another_view_is_combined_in_the_order_of_the_array(view, layout):
    """The order of the array merges its axes; those of the computed value, walked back, do not merge."""

    def f(x, y):
        view(x)[...] = view(x) * 3 - 1
        part = view(x + y)
        return (
            *(ta.sum(x), ta.std(x, axis=(0, -1)), ta.max(x, axis=0), ta.argmax(x)),
            *(ta.sum(part), ta.prod(part, axis=-1), ta.argmin(part), ta.sum(part, axis=(-1, 0), keepdims=True)),
        )

    given, expected = [(layout(floats(6, 8)), floats(8, seed=1)) for _ in range(2)]
    for one, other in zip((*ta.fuse(f)(*given), *given), (*f(*expected), *expected), strict=True):
        assert bits(one) == bits(other)


# --- shapes ------------------------------------------------------------------------------------------------------


def test_new_shapes_need_no_new_kernel_and_no_new_trace(compiled):
    traces = []

    @ta.fuse
    def f(x, y):
        traces.append(x)
        return ta.sum(x * y, axis=-1), ta.max(x + y, axis=0)

    for rows in range(2, 40):
        for columns in (3, 40, 500):
            f(floats(rows, columns), floats(rows, columns, seed=1))
    assert len(traces) == 1
    assert len({expression.content for expression in compiled}) == 2


def test_empty_arrays():
    def f(x):
        return ta.sum(x * 2, axis=1), ta.prod(x + 1, axis=0)

    fused = ta.fuse(f)
    for shape in ((3, 4), (0, 4), (3, 0), (0, 0), (5, 6)):
        for one, other in zip(fused(floats(*shape)), f(floats(*shape)), strict=True):
            assert bits(one) == bits(other)
    assert ta.fuse(lambda x: ta.softmax(x, axis=1) * 2)(floats(0, 4)).shape == (0, 4)
    largest = ta.fuse(lambda x: ta.max(x * 2, axis=1))
    assert largest(floats(3, 4)).shape == (3,)
    with pytest.raises(ShapeError, match="max: expected at least one element to choose from"):
        largest(floats(3, 0))
    assert largest(floats(0, 3)).shape == (0,)


def test_random_reductions():
    assert Counter(map(check_reduced, range(120)))["equal"] > 100


@pytest.mark.slow
def test_many_random_reductions():
    assert Counter(map(check_reduced, range(1000, 1600)))["equal"] > 480


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: ta.cumulative_sum(x),
            "cumulative_sum is not elementwise, and not a reduction that fuses; write two fused functions, and call it "
            "between them",
        ),
        (lambda x: x @ x, "fuse: a product of matrices is not elementwise, and not a reduction that fuses"),
    ],
)
def test_what_is_not_fused(function, message):
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.fuse(function)(floats(4))


def test_a_function_of_scalars_does_not_reduce():
    message = "fuse: sum is not elementwise, and a function of scalars is; write it in a function of ta.fuse"
    with pytest.raises(FusionError, match=re.escape(message)):
        ta.pointwise(lambda x: x - ta.sum(x))(floats(4))

    @ta.fuse
    def outer(x):
        return ta.sum(ta.pointwise(lambda x: x + 1)(x))

    assert outer(floats(4)).shape == ()
