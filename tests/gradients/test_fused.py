"""Gradients of fused functions: the same as of the function itself, in fused kernels."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilearray as ta
from tilearray.gradients.kept import cut

RNG = np.random.default_rng(11)
X, Y = (ta.asarray(RNG.standard_normal((5, 4))) for _ in range(2))
B, C = ta.asarray(RNG.standard_normal(4)), ta.asarray(RNG.standard_normal((5, 1)))


def normalised(x: Any, y: Any, b: Any, c: Any) -> Any:
    distance = x - ta.mean(x, axis=-1, keepdims=True)
    return distance * ta.rsqrt(ta.var(x, axis=-1, keepdims=True) + 1e-5) * b + c * y


def changed_later(x: Any, y: Any, b: Any, c: Any) -> Any:
    """The value of tanh is worth keeping, and the function writes to it."""
    t = ta.tanh(x + y + b)
    first = t * c
    t *= 3
    return first + t * t


FUNCTIONS: dict[str, Any] = {
    "elementwise": lambda x, y, b, c: ta.tanh(x * c + b) * y,
    "gated": lambda x, y, b, c: x / (1 + ta.exp(-x)) * (y + b),
    "piecewise": lambda x, y, b, c: ta.where(x > y, x * b, ta.maximum(y, c)) + ta.clip(x, -0.5, b),
    "number": lambda x, y, b, c: x * 2 + ta.square(c),
    "views": lambda x, y, b, c: (x.T * c[:, 0]).T[::-1] * b[None] + y,
    "slices": lambda x, y, b, c: x[1:] * y[:-1] * b * c[1:],
    "normalised": normalised,
    "softmax": lambda x, y, b, c: ta.softmax(x * b, axis=-1) * y + ta.logsumexp(y, axis=1, keepdims=True) * c,
    "repeated": lambda x, y, b, c: (ta.broadcast_to(b, (5, 4)), x * y * c),
    "several": lambda x, y, b, c: (x * b, {"sum": ta.sum(x * y * c), "flags": x > 0}),
    "kept value": lambda x, y, b, c: ta.tanh(x + y + b + c) * y,
    "kept result": lambda x, y, b, c: ta.exp(-ta.square(x + y + b + c)),
    "kept and changed": changed_later,
    "kept for several": lambda x, y, b, c: (ta.tanh(x + y * 2 + b), {"product": ta.sin(x + y + b) * c}),
    "nested": lambda x, y, b, c: ta.fuse(lambda t: t * ta.exp(-t * t))(x + b) * y * c,
}


def total(result: Any) -> Any:
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else None
    if parts is None:
        return 0.0 if result.dtype == ta.bool else ta.sum(ta.sin(result))
    return sum(total(part) for part in parts)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_function(name: str):
    function, fused = FUNCTIONS[name], ta.fuse(FUNCTIONS[name])
    for second in (False, True):

        def loss(f: Any, *args: Any, second: bool = second) -> Any:
            if not second:
                return total(f(*args))
            return sum(ta.sum(g * g) for g in ta.grad(lambda *a: total(f(*a)), (0, 1, 2, 3))(*args))

        mine, found = ta.value_and_grad(lambda *a, f=fused: loss(f, *a), (0, 1, 2, 3))(X, Y, B, C)
        other, expected = ta.value_and_grad(lambda *a, f=function: loss(f, *a), (0, 1, 2, 3))(X, Y, B, C)
        np.testing.assert_allclose(ta.to_numpy(mine), ta.to_numpy(other), rtol=1e-12)
        for one, another, x in zip(found, expected, (X, Y, B, C), strict=True):
            assert one.shape == x.shape
            np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(another), rtol=1e-10, atol=1e-12)


def test_elementwise_gradients_have_the_bits_of_the_steps():
    for name in ("elementwise", "gated", "piecewise", "number"):
        for dtype in ("float32", "float16", "bfloat16"):
            args = [x.astype(dtype) for x in (X, Y, B, C)]
            results = [ta.vjp(f, *args) for f in (FUNCTIONS[name], ta.fuse(FUNCTIONS[name]))]
            g = ta.ones_like(results[0][0])
            for one, other in zip(results[0][1](g)[:2], results[1][1](g)[:2], strict=True):
                np.testing.assert_array_equal(ta.to_numpy(one).view("u1"), ta.to_numpy(other).view("u1"))


def test_the_backward_of_an_elementwise_function_is_one_fused_call():
    fused = ta.fuse(FUNCTIONS["elementwise"])

    def backward(x: Any, y: Any, b: Any, c: Any, g: Any) -> Any:
        return ta.vjp(fused, x, y, b, c)[1](g)

    found = ta.explain(backward, X, Y, B, C, ta.ones_like(X), arch=90)
    assert [step.name for step in found.steps] == ["fused", "fused"]
    forward, gradients = found.steps
    assert len(forward.launches) == 1
    kinds = [launch.loop_class.partition(",")[0] for launch in gradients.launches]
    assert set(kinds) <= {"flat", "broadcast", "reduce_rows", "reduce_columns"}
    assert len(kinds) <= 3  # the elementwise gradients, and sums over rows and over columns
    shown = str(ta.explain(ta.grad(lambda *args: ta.sum(fused(*args))), X, Y, B, C))
    assert "tanh" in shown
    assert "fused" in shown


def test_a_fused_function_keeps_its_arguments_and_computes_the_rest_again():
    def function(x: Any) -> Any:
        return ta.sin(ta.exp(x) * x)

    def kept(f: Any) -> float:
        """The memory from forward to backward beside argument and result, in arrays."""
        x = ta.ones(1 << 16, dtype="float64")
        ta.vjp(f, x)
        gc.collect()
        tracemalloc.start()
        result, pull = ta.vjp(f, x)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert pull(result)[0].shape == result.shape
        return size / x.nbytes - 1

    assert round(kept(function)) == 2
    assert round(kept(ta.fuse(function))) == 0


# --- recompute or keep -----------------------------------------------------------------------------------------------


def traffic(function: Any, *args: Any, **options: Any) -> list[tuple[float, float]]:
    """What forward and backward read and write, in arrays of the size of the first argument; each is one launch."""
    fused = ta.fuse(**options)(function)

    def backward(*given: Any) -> Any:
        return ta.vjp(fused, *given[:-1])[1](given[-1])

    found = ta.explain(backward, *args, ta.ones_like(function(*args)))
    assert [len(step.launches) for step in found.steps] == [1, 1]
    launches = [step.launches[0] for step in found.steps]
    return [(each.bytes_read / args[0].nbytes, each.bytes_written / args[0].nbytes) for each in launches]


D, E = (ta.asarray(RNG.standard_normal((5, 4))) for _ in range(2))


def gate(a: Any, b: Any, c: Any, d: Any) -> Any:
    return ta.tanh(a + b * 2 + c * 3) * d


def test_a_value_is_kept_where_that_moves_fewer_bytes():
    (forward, backward), (plain, again) = traffic(gate, X, Y, D, E), traffic(gate, X, Y, D, E, keep=[])
    assert (plain, forward) == ((4, 1), (4, 2))  # tanh is stored
    assert (again[0], backward[0]) == (5, 3)  # the cotangent, `d`, and tanh in place of `a`, `b` and `c`
    assert again[1] == backward[1] == 4


def test_equal_bytes_are_computed_again():
    """To store a value and to read it is as much as to read two arrays."""
    tied = (lambda a, b, c: ta.tanh(a + b * 2) * c, (X, Y, D)), (lambda x: ta.sin(ta.exp(x) * x), (X,))
    for function, args in tied:
        assert traffic(function, *args) == traffic(function, *args, keep=[])


def test_a_result_is_read_in_place_of_several_arguments():
    def function(a: Any, b: Any, c: Any) -> Any:
        return ta.exp(a + b + c)

    forward, backward = traffic(function, X, Y, D)
    assert (forward, backward[0]) == ((3, 1), 2)
    assert traffic(function, X, Y, D, keep=[])[1][0] == 4


def test_small_arguments_are_read_again():
    """A row and a column beside an array are few bytes: neither is worth storing an array."""
    wide, row, column = ta.ones((40, 50)), ta.ones(50), ta.ones((40, 1))
    fused = ta.fuse(lambda x, b, c: ta.tanh(x * 2 + b + c) * c)
    found = ta.explain(lambda *args: ta.vjp(fused, *args)[1](1.0), wide, row, column)
    assert found.steps[0].launches[0].bytes_written == wide.nbytes


def test_parts_of_arguments_cost_what_is_read_of_them():
    """Rows of `b`, `c` and `d` are few bytes; all of them are worth storing the value of tanh."""

    def function(a: Any, b: Any, c: Any, d: Any) -> Any:
        return ta.tanh(a + b[0] + c[0] + d[0]) * a

    def other(a: Any, b: Any, c: Any, d: Any) -> Any:
        return ta.tanh(a + b + c + d) * a

    for f, stored in ((function, 1), (other, 2)):
        fused = ta.fuse(f)
        found = ta.explain(lambda a, *args, f=fused: ta.vjp(lambda a: f(a, *args), a)[1](args[0]), X, Y, D, E)
        assert [len(step.launches) for step in found.steps] == [1, 1]
        assert found.steps[0].launches[0].bytes_written == stored * X.nbytes


def test_a_mask_is_kept_in_place_of_an_argument():
    """It has a byte for an element, and the argument has eight."""

    def function(x: Any, bias: Any, residual: Any) -> Any:
        h = x + bias
        return ta.where(h > 0, h, 0) + residual

    fused = ta.fuse(function)
    found = ta.explain(lambda *args: ta.vjp(fused, *args)[1](args[2]), X, B, Y)
    assert found.steps[0].launches[0].bytes_written == X.nbytes + X.size


def test_values_of_other_shapes_are_not_stored():
    """They would be a launch of their own."""
    fused = ta.fuse(lambda *args: ta.sum(gate(*args)))
    found = ta.explain(lambda *args: ta.vjp(fused, *args)[1](1.0), X, Y, D, E)
    assert sum(launch.bytes_written for launch in found.steps[0].launches) == 8


@pytest.mark.parametrize(("columns", "kept"), [(64, 2), (16, 0)])
def test_results_of_reductions_are_kept_if_they_are_small(columns: int, kept: int):
    """To compute the mean and the variance of rows again is two more passes over the rows."""

    def norm(x: Any) -> Any:
        distance = x - ta.mean(x, axis=1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=1, keepdims=True) + 1)

    x = ta.asarray(RNG.standard_normal((5, columns)))
    found: list[int] = []
    bits: list[list[bytes]] = []
    for options in ({}, {"keep": []}):
        fused = ta.fuse(**options)(norm)

        def both(x: Any, g: Any, fused: Any = fused) -> list[Any]:
            result, pull = ta.vjp(fused, x)
            return [result, *pull(g)]

        _, backward = ta.explain(both, x, x).steps
        found.append(sum(line.count("add over") for launch in backward.launches for line in launch.graph))
        bits.append([ta.to_numpy(each).tobytes() for each in both(x, x)])
    assert found[1] - found[0] == kept
    assert bits[0] == bits[1]


def test_operations_are_kept_by_name():
    def function(x: Any) -> Any:
        return ta.sin(ta.exp(x) * x)

    by_bytes, kept = traffic(function, X), traffic(function, X, keep=["exp"])
    assert (by_bytes[0], kept[0]) == ((1, 1), (1, 2))
    assert (by_bytes[1][0], kept[1][0]) == (2, 3)
    shown = ta.explain(lambda x, g: ta.vjp(ta.fuse(keep=("exp",))(function), x)[1](g), X, Y)
    forward, backward = (step.launches[0].graph for step in shown.steps)
    assert "exp" in " ".join(forward)
    assert "exp" not in " ".join(backward)
    unread = traffic(lambda x: ta.square(x) + 1, X, keep=["add"])  # no rule reads the sum
    assert unread[0] == (1, 1)


@pytest.mark.parametrize("keep", [["tanh"], ["add", "tanh"], ["multiply"], []])
def test_gradients_do_not_depend_on_what_is_kept(keep: list[str]):
    args = (X, Y, B, C)
    for name in ("kept and changed", "kept value"):
        function = FUNCTIONS[name]
        expected = ta.grad(lambda *a, f=function: total(f(*a)), (0, 1, 2, 3))(*args)
        fused = ta.fuse(keep=keep)(function)
        found = ta.grad(lambda *a, f=fused: total(f(*a)), (0, 1, 2, 3))(*args)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(other), rtol=1e-12)


def test_a_kept_value_may_be_changed_in_the_function():
    def function(x: Any, y: Any, c: Any) -> Any:
        s = x + y * 2
        p = ta.exp(s)
        s *= 3  # no rule reads it again, so nothing else prevents this
        return p * c + s

    args, g = (X, Y, D), ta.ones_like(X)
    result, pull = ta.vjp(ta.fuse(keep=["add"])(function), *args)
    expected, other = ta.vjp(function, *args)
    np.testing.assert_allclose(ta.to_numpy(result), ta.to_numpy(expected), rtol=1e-12)
    for _ in range(2):
        for one, another in zip(pull(g), other(g), strict=True):
            np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(another), rtol=1e-12)


def test_a_kept_result_may_be_changed():
    fused = ta.fuse(lambda a, b, c: ta.exp(a + b + c))

    def changing(f: Any, a: Any) -> Any:
        result = f(a, Y, D)
        result *= 2
        return ta.sum(result)

    found = ta.grad(lambda a: changing(fused, a))(X)
    np.testing.assert_allclose(ta.to_numpy(found), 2 * ta.to_numpy(fused(X, Y, D)), rtol=1e-12)


@pytest.mark.parametrize("choices", [(True, False), (False, True), (1, 0), ("yes", ""), (ta.exp, ta.negative)], ids=str)
def test_what_is_kept_depends_on_arguments_that_are_no_arrays(choices: tuple[Any, ...]):
    """They decide which operations there are, and so what the number of an operation means."""

    def function(a: Any, b: Any, c: Any, flag: Any) -> Any:
        t = flag(a + b + c) if callable(flag) else ta.exp(a + b + c)
        if flag is ta.negative or not flag:
            return t * c + ta.tanh(a * b + c)
        return t

    fused = ta.fuse(function)
    for flag in choices * 2:
        found, expected = (
            ta.grad(lambda a, b, c, f=f, flag=flag: ta.sum(f(a, b, c, flag)), (0, 1, 2))(X, Y, D)
            for f in (fused, function)
        )
        for one, another in zip(found, expected, strict=True):
            np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(another), rtol=1e-12, atol=1e-14)


def test_names_that_no_operation_has_are_errors():
    fused = ta.fuse(keep=["tan"])(lambda x, y: ta.tanh(x) * y)
    assert fused(X, Y).shape == X.shape
    with pytest.raises(
        ta.GradientError, match=r"names of operations on differentiated values, got 'tan'; write one of 'tanh', 'mult"
    ):
        ta.grad(lambda x: ta.sum(fused(x, Y)))(X)
    for bad in ("tanh", {"tanh"}, [1], None, 3):
        with pytest.raises(ta.OperandError, match=r"fuse: expected keep as 'bytes' or a list of names .*write keep=\["):
            ta.fuse(keep=bad)


def test_intermediates_that_are_not_rounded_are_not_stored():
    args = [x.astype("bfloat16") for x in (X, Y, D, E)]
    assert traffic(gate, *args) != traffic(gate, *args, keep=[])
    assert traffic(gate, *args, intermediates="compute") == traffic(gate, *args, keep=[])


@given(st.data())
@settings(max_examples=60)
def test_the_cut_has_the_least_cost(data: Any):
    """Beside all sets of values that may be kept, of random graphs."""
    sources, values = [0, 1, 2], [object() for _ in range(data.draw(st.integers(1, 6)))]
    nodes, edges = [*sources], []
    for value in values:
        reads = data.draw(st.lists(st.sampled_from(range(len(nodes))), min_size=1, max_size=3, unique=True))
        edges += [(nodes[read], value) for read in reads]
        nodes.append(value)
    costs = {node: data.draw(st.integers(1, 9)) for node in nodes}
    needed = {nodes[place] for place in data.draw(st.sets(st.sampled_from(range(len(nodes))), min_size=1))}

    def is_cut(chosen: set[Any]) -> bool:
        """Whether all that is needed is chosen, or computed from what is."""
        waiting = [node for node in needed if node not in chosen]
        while waiting:
            node = waiting.pop()
            if node in sources:
                return False
            waiting += [one for one, other in edges if other is node and one not in chosen]
        return True

    subsets = [set(each) for size in range(len(nodes) + 1) for each in itertools.combinations(nodes, size)]
    least = min(sum(costs[node] for node in chosen) for chosen in subsets if is_cut(chosen))
    found = cut(edges, needed, costs.__getitem__)
    assert is_cut(found)
    assert sum(costs[node] for node in found) == least


def test_fuse_of_grad_is_the_gradient_in_one_program():
    def loss(x: Any, y: Any, b: Any, c: Any) -> Any:
        return ta.sum(FUNCTIONS["elementwise"](x, y, b, c) ** 2)

    gradient = ta.grad(loss, (0, 2))
    fused = ta.fuse(gradient)
    for one, other in zip(fused(X, Y, B, C), gradient(X, Y, B, C), strict=True):
        np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(other), rtol=1e-12)
    calls = [step.name for step in ta.explain(fused, X, Y, B, C).steps]
    assert calls == ["fused"]


def test_numbers_are_arguments_of_the_backward_kernels():
    fused = ta.fuse(lambda x, k, n: ta.sum(x**n * k))
    for k, n in ((2.0, 3), (5.0, 3), (-1.0, 2)):
        np.testing.assert_allclose(ta.to_numpy(ta.grad(fused)(X, k, n)), n * ta.to_numpy(X) ** (n - 1) * k, rtol=1e-12)
    (backward,) = fused.gradients.values()
    (gradient,) = backward._fused.values()
    assert gradient.traces <= 3


@pytest.mark.parametrize("number", [2.0, 0.5 + 1j])
def test_numbers_that_are_differentiated_are_arguments_of_the_program(number: Any):
    def gradient(x: Any, numbers: Any) -> Any:
        return ta.grad(lambda x, numbers: ta.sum(ta.real(x * numbers["k"] ** 2)), (0, 1))(x, numbers)

    fused = ta.fuse(gradient)
    for k in (number, number * 3, -number):
        by_x, by_numbers = fused(X, {"k": k})
        np.testing.assert_allclose(ta.to_numpy(by_x), np.full(X.shape, (k**2).real), rtol=1e-6)
        np.testing.assert_allclose(ta.to_numpy(by_numbers["k"]), 2 * np.conj(k) * ta.to_numpy(X).sum(), rtol=1e-6)
    assert fused.traces == (3 if isinstance(number, complex) else 1)  # parts of a complex number decide its dtype
    with pytest.raises(
        ta.GradientError, match=r"grad: expected argument 1 of a float .*, got int, .*; write float\(x\)"
    ):
        fused(X, {"k": 2})


def test_numbers_that_are_differentiated_are_on_the_device_of_an_array(elsewhere: Any):
    x = ta.asarray([1.0, 2.0], device=elsewhere)
    by_x, by_k = ta.grad(lambda x, k: ta.sum(x * k * k), (0, 1))(x, 3.0)
    assert (by_x.tolist(), by_k.item(), by_k.device) == ([9, 9], 18, elsewhere)
    result, tangent = ta.jvp(lambda x, k: x * k, (x, 2.0), (None, 1.0))
    assert (result.tolist(), tangent.tolist(), tangent.device) == ([2, 4], [1, 2], elsewhere)


def test_an_array_from_outside_must_be_an_argument():
    def function(x: Any) -> Any:
        return ta.sum(ta.fuse(lambda y: y * x)(Y))

    with pytest.raises(ta.GradientError, match="a fused function reads a differentiated array from outside of it"):
        ta.grad(function)(X)


def test_a_gradient_by_an_array_from_outside_reads_it_at_each_call():
    outside, x = ta.asarray([1.0, 2.0]), ta.asarray([3.0, 4.0])
    slopes = ta.fuse(lambda x: ta.grad(lambda k: ta.sum(k * k))(outside) + x)
    assert slopes(x).tolist() == [5.0, 8.0]
    outside[0] = 10.0
    assert slopes(x).tolist() == [23.0, 8.0]


@pytest.mark.parametrize("join", [ta.concat, ta.stack])
def test_an_array_from_outside_joins_as_arguments_do(join: Any):
    outside, x = ta.asarray([1.0, 2.0]), ta.asarray([3.0, 4.0])
    for function in (
        lambda x: join([outside, x]),
        lambda x: ta.grad(lambda k: ta.sum(join([k, x]) ** 2))(outside),
        lambda x: ta.grad(lambda k: ta.sum(join([x, k]) ** 2))(outside),
    ):
        assert ta.fuse(function)(x).tolist() == function(x).tolist()
    product = ta.fuse(lambda x: ta.grad(lambda k: k @ x)(outside))
    assert product(x).tolist() == x.tolist()


def test_gradients_of_slices_are_fused():
    for function in (lambda x: ta.sum(x[1:] ** 2), lambda x: ta.sum(x[1:] ** 2) + ta.sum(x[:1] ** 3)):
        slopes = ta.grad(function)
        assert ta.fuse(slopes)(X).tolist() == slopes(X).tolist()


def laplacian(x: Any) -> Any:
    return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]


def smoothed(x: Any) -> Any:
    """Writes of several parts, which are read again."""
    out = x * x
    out[1:-1, ::2] = (out[2:, ::2] + out[:-2, ::2]) / 2
    out[:, 1:] += out[:, :-1]
    out[0], out[-1] = 0, x[0]
    return out


STENCILS: dict[str, Any] = {
    "differences": lambda x: x[1:] * x[:-1] - x[:-1].T[::-1].T,
    "laplacian": laplacian,
    "diff": lambda x: ta.diff(x, n=2, axis=1),
    "every second": lambda x: x[::2, 1::2] * x[1::2, ::2] + x[::-2, ::3][:, :1],
    "windows": lambda x: ta.max(ta.sliding_window_view(x, 3, axis=1), axis=-1),
    "blocks of windows": lambda x: ta.mean(ta.sliding_window_view(x * x, (2, 3)), axis=(-2, -1)),
    "windows and a slice": lambda x: ta.sum(ta.sliding_window_view(x, 2, axis=0) ** 2, axis=-1) * x[1:],
    "repeated rows": lambda x: ta.broadcast_to(x[1:, None], (5, 3, 6)) * x[:-1, None],
    "joined": lambda x: ta.concat([x[:, 3:], ta.stack([x[:, 0], x[:, 1]], axis=1) ** 2], axis=1)[1:] * x[1:, :5],
    "smoothed": smoothed,
}


@pytest.mark.parametrize("function", STENCILS.values(), ids=STENCILS)
def test_gradients_of_overlapping_slices_are_fused(function: Any):
    x = ta.asarray(np.random.default_rng(3).normal(size=(6, 6)))
    weights = ta.asarray(np.random.default_rng(4).normal(size=function(x).shape))

    def loss(x: Any) -> Any:
        return ta.sum(ta.sin(function(x)) * weights)

    slopes = ta.to_numpy(ta.grad(loss)(x))
    for place in np.ndindex(x.shape):
        moved = [loss(x + step * ta.asarray(_unit(place))) for step in (1e-6, -1e-6)]
        assert float(moved[0] - moved[1]) / 2e-6 == pytest.approx(slopes[place], rel=1e-5, abs=1e-7)
    for fused in (ta.fuse(ta.grad(loss)), ta.grad(ta.fuse(loss))):
        np.testing.assert_allclose(ta.to_numpy(fused(x)), slopes, rtol=1e-12, atol=1e-13)


def _unit(place: tuple[int, ...]) -> np.ndarray:
    found = np.zeros((6, 6))
    found[place] = 1
    return found


def test_a_stencil_of_two_axes_has_a_gradient_of_few_kernels():
    """One for each shape of the blocks that the same slices have: 25 of them in 9 shapes."""
    cotangent = ta.ones((18, 18))
    found = ta.explain(ta.fuse(lambda x, g: ta.vjp(laplacian, x)[1](g)), ta.ones((20, 20)), cotangent)
    assert len(found.launches) <= 9


def test_windows_of_many_elements_have_gradients():
    x = ta.asarray(np.random.default_rng(3).normal(size=90))
    slopes = ta.grad(lambda x: ta.sum(ta.sliding_window_view(x, 70) ** 2))(x)
    times = ta.asarray([min(place + 1, 21, 90 - place) for place in range(90)])
    np.testing.assert_allclose(ta.to_numpy(slopes), ta.to_numpy(2 * x * times), rtol=1e-12)


def test_pointwise_functions_and_lazy_blocks():
    blend = ta.pointwise(lambda x, y, k: x + k * (y - x), promotion=[(0, 1, "int_to_float")])
    x, n = ta.asarray([1.0, 2.0]), ta.asarray([[1], [2]])
    found = ta.grad(lambda x: ta.sum(blend(x, n, 0.25) ** 2))(x)
    expected = ta.grad(lambda x: ta.sum((x + 0.25 * (n - x)) ** 2))(x)
    assert found.tolist() == expected.tolist()
    with ta.lazy():
        lazily = ta.grad(lambda x: ta.sum(ta.exp(x * 2)))(x)
    assert lazily.tolist() == ta.grad(lambda x: ta.sum(ta.exp(x * 2)))(x).tolist()


def stored_by(write: Any) -> Any:
    """A function that stores differences in the middle of an array."""

    def function(x: Any) -> Any:
        out = x * 3
        write(x[:-2], x[2:], out[1:-1])
        return ta.sum(out * ta.asarray(WEIGHTS))

    return function


WEIGHTS = np.array([2.0, 10.0, 1410.0, 5.0])
OF_STORED = [2 * 3 - 5, -705, 5, 5 * 3 + 705]
WRITES: dict[str, Any] = {
    "positional": ta.fuse(lambda lo, hi, out: ta.divide(hi - lo, 2.0, out=out)),
    "by name": lambda lo, hi, out: ta.fuse(lambda lo, hi, out: ta.divide(hi - lo, 2.0, out=out))(lo, hi, out=out),
    "target": lambda lo, hi, out: ta.fuse(lambda lo, hi: (hi - lo) / 2.0)(lo, hi, out=out),
    "other name": ta.fuse(lambda lo, hi, middle: ta.copyto(middle, (hi - lo) / 2) or lo * hi),
    "set": lambda lo, hi, out: ta.fuse(lambda lo, hi, x: x["o"].__setitem__(..., (hi - lo) / 2))(lo, hi, {"o": out}),
    "pointwise": lambda lo, hi, out: ta.pointwise(lambda lo, hi: (hi - lo) / 2)(lo, hi, out0=out),
    "foreach": lambda lo, hi, out: ta.foreach(lambda lo, hi, out: ta.divide(hi - lo, 2.0, out=out), [lo], [hi], [out]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_arguments_have_gradients(name: str):
    function, x = stored_by(WRITES[name]), ta.asarray([1.0, 4.0, 9.0, 16.0], dtype="float64")
    value, gradient = ta.value_and_grad(function)(x)
    assert value.item() == function(x).item()
    assert gradient.tolist() == OF_STORED
    twice = ta.grad(lambda x: ta.sum(ta.grad(function)(x) * x))(x)
    assert twice.tolist() == OF_STORED


def test_an_argument_of_the_differentiated_function_is_not_written():
    with pytest.raises(ta.WriteError, match="divide: the target is read-only"):
        ta.grad(lambda x: WRITES["positional"](x[:-2], x[2:], x[1:-1]))(ta.ones(4))
    with pytest.raises(ta.GradientError, match="divide writes a differentiated value to an array from outside"):
        ta.grad(lambda x: WRITES["positional"](x[:-2], x[2:], ta.ones(2)))(ta.ones(4))


@pytest.mark.parametrize("order", [0, 1])
def test_a_constant_of_another_library_is_an_array(order: int):
    scale = ta.fuse(lambda x, k: x * k)
    for constant in (np.array([2.0, 3.0]), np.float64(2.0)):
        gradient = ta.grad(lambda x, k=constant: ta.sum(scale(*(x, k) if order else (k, x))))(ta.ones(2))
        assert gradient.tolist() == np.broadcast_to(constant, 2).tolist()
