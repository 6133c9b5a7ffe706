"""Gradients of fused functions: the same as of the function itself, in fused kernels."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tilearray as ta

RNG = np.random.default_rng(11)
X, Y = (ta.asarray(RNG.standard_normal((5, 4))) for _ in range(2))
B, C = ta.asarray(RNG.standard_normal(4)), ta.asarray(RNG.standard_normal((5, 1)))


def normalised(x: Any, y: Any, b: Any, c: Any) -> Any:
    distance = x - ta.mean(x, axis=-1, keepdims=True)
    return distance * ta.rsqrt(ta.var(x, axis=-1, keepdims=True) + 1e-5) * b + c * y


FUNCTIONS: dict[str, Any] = {
    "elementwise": lambda x, y, b, c: ta.tanh(x * c + b) * y,
    "gated": lambda x, y, b, c: x / (1 + ta.exp(-x)) * (y + b),
    "piecewise": lambda x, y, b, c: ta.where(x > y, x * b, ta.maximum(y, c)) + ta.clip(x, -0.5, b),
    "number": lambda x, y, b, c: x * 2 + ta.square(c),
    "views": lambda x, y, b, c: (x.T * c[:, 0]).T[::-1] * b[None] + y,
    "slices": lambda x, y, b, c: x[1:] * y[:-1] * b * c[1:],
    "normalised": normalised,
    "softmax": lambda x, y, b, c: ta.softmax(x * b, axis=-1) * y + ta.logsumexp(y, axis=1, keepdims=True) * c,
    "several": lambda x, y, b, c: (x * b, {"sum": ta.sum(x * y * c), "flags": x > 0}),
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
    assert backward._fused.traces <= 3


def test_an_array_from_outside_must_be_an_argument():
    def function(x: Any) -> Any:
        return ta.sum(ta.fuse(lambda y: y * x)(Y))

    with pytest.raises(ta.GradientError, match="a fused function reads a differentiated array from outside of it"):
        ta.grad(function)(X)


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
