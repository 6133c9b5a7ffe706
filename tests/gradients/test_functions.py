"""`vjp`, `grad`, `value_and_grad` and `jvp` over functions of arrays, against differences of their results."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.oracles.derivatives import checked

import tilearray as ta

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4))
W = RNG.standard_normal((4, 2))
ROWS = np.array([2, 0, 0, -1])
ALONG = np.array([[0, 0, 3], [1, 2, 1], [3, 3, 3]])
Z = X + 1j * RNG.standard_normal((3, 4))


def stored(x: Any) -> Any:
    out = ta.zeros_like(x)
    out[1:, ::2] = x[:-1, 1::2] * 3
    out[0] = x[2] ** 2
    out[0, 1] = 5.0
    return out


def written(x: Any) -> Any:
    y = x * 2
    y *= x
    z = y.T
    y += 1
    y[0] = y[1] * y[2]
    return z * x.T


def parts(x: Any) -> Any:
    y = x * 1j + 1
    return y.real * 2 + ta.sin(y.imag)


def assigned(x: Any) -> Any:
    out = x * 3
    out[[0, 2, 0]] = x[1] * x[[2, 1, 0]]
    out[x > 0] = x[x > 0] ** 2
    out[1, [0, -1]] = 7.0
    ta.put_along_axis(out, ta.asarray(ALONG[:, :1]), x[:, :1] ** 2, axis=1)
    return out * out


def added_at(x: Any) -> Any:
    """Repeated places, rows, views, a mask, a number, and values that broadcast."""
    out = x * x
    ta.add.at(out, ([0, 0, -1], [1, 1, 2]), x[0, :3] * 2)
    ta.subtract.at(out[:, ::2], [1, 1], x[2, :2] ** 2)
    ta.add.at(out, x > 0.5, x[x > 0.5] * x[1, 1])
    ta.add.at(out, slice(1, 3), x[0])
    ta.add.at(out, [2, 2], 1.5)
    made = ta.zeros_like(x)
    ta.add.at(made, ROWS, x[ROWS] ** 2)
    return out * out + made


def decided(x: Any) -> Any:
    return x * 2 if float(ta.sum(x)) > -1e9 else x


FUNCTIONS: dict[str, Any] = {
    "index": lambda x: x[1] * x[-1, 2],
    "slices": lambda x: x[::2, ::-1] * x[0::2, 1:2],
    "newaxis": lambda x: x[:, None] * x[None],
    "transposes": lambda x: x.T @ x + ta.permute_dims(x, (1, 0)) @ x,
    "reshape": lambda x: ta.reshape(x.T, (2, 6)) * ta.reshape(x, (2, 6)),
    "broadcast": lambda x: ta.broadcast_to(x[0], (5, 4)) ** 2,
    "flip": lambda x: ta.flip(x, axis=1) * x,
    "diagonal": lambda x: ta.diagonal(x) ** 2,
    "windows": lambda x: ta.sliding_window_view(x[0], 2) ** 2,
    "squares of views": lambda x: ta.moveaxis(ta.expand_dims(x, axis=0), 0, 2)[..., 0] * x,
    "cast": lambda x: x.astype("float32").astype("float64") * x,
    "where": lambda x: ta.where(x > 0, x * x, ta.exp(x)),
    "mask": lambda x: x[x > 0] ** 2,
    "rows": lambda x: x[ROWS] * 2,
    "pairs": lambda x: x[ROWS, [0, 1, 1, 3]] ** 2,
    "take": lambda x: ta.take(x, [3, 3, 0], axis=1) ** 2,
    "along": lambda x: ta.take_along_axis(x, ta.asarray(ALONG), axis=1) ** 2,
    "largest": lambda x: ta.take_along_axis(x, ta.asarray(X.argmax(1)[:, None]), axis=1) ** 2,
    "concat": lambda x: ta.concat([x, x[:1] * 2, ta.ones((1, 4), dtype="float64")]) ** 2,
    "stack": lambda x: ta.stack([x, ta.sin(x), x], axis=1) ** 2,
    "roll": lambda x: ta.roll(x, 1, axis=1) * x,
    "tile": lambda x: ta.tile(x, (2, 2)) ** 2,
    "repeat": lambda x: ta.repeat(x, 2, axis=0) ** 2,
    "unstack": lambda x: ta.unstack(x)[1] * x,
    "tril": lambda x: ta.tril(x) ** 2,
    "sum": lambda x: ta.sum(x, axis=0) * ta.sum(x) + ta.sum(x, axis=(0, 1), keepdims=True),
    "mean": lambda x: ta.mean(x, axis=1) ** 2,
    "prod": lambda x: ta.prod(x, axis=1) + ta.prod(x),
    "prod of zeros": lambda x: ta.prod(x * ta.asarray([[1.0], [0.0], [1.0]], dtype="float64"), axis=0),
    "sum from": lambda x: ta.sum(x, axis=1, initial=2.0) ** 2,
    "max": lambda x: ta.max(x, axis=1) * ta.min(x),
    "var": lambda x: ta.var(x, axis=0) + ta.var(x, correction=1) ** 2,
    "std": lambda x: ta.std(x, axis=1, correction=0.5, keepdims=True) * x,
    "var about a mean": lambda x: ta.var(x, axis=0, mean=x[:1] * 0.5) + ta.std(x, mean=ta.mean(x[0])),
    "var of some": lambda x: ta.var(x, axis=0, where=x > -0.5) + ta.nanstd(ta.where(x > 1, x, ta.nan)) ** 2,
    "nanmax": lambda x: ta.nanmax(ta.where(x < 1, x, ta.nan), axis=0) * ta.nanmin(x),
    "logsumexp": lambda x: ta.logsumexp(x, axis=1) ** 2 + ta.logsumexp(x),
    "softmax": lambda x: ta.softmax(x, axis=0) * x,
    "log_softmax": lambda x: ta.log_softmax(x) * x,
    "norms": lambda x: ta.linalg.vector_norm(x, axis=1) * ta.linalg.vector_norm(x, ord=1) * ta.linalg.vector_norm(x),
    "cumulative_sum": lambda x: ta.cumulative_sum(x, axis=1, include_initial=True) ** 2,
    "cumulative_prod": lambda x: ta.cumulative_prod(x, axis=1) * ta.cumulative_prod(x, axis=0)[-1],
    "scan of zeros": lambda x: ta.cumulative_prod(x * ta.asarray([1, 0, 1, 0]), axis=1) ** 2 + x,
    "diff": lambda x: ta.diff(x, axis=1) ** 2,
    "segments": lambda x: ta.add.reduceat(x, [0, 2, 1], 1) ** 2 * ta.subtract.reduceat(x, [0, 2], 0)[:1, :3],
    "matmul": lambda x: x @ ta.asarray(W) @ ta.asarray(W).T + x @ x.T @ x,
    "matvec": lambda x: x @ x[0] + x[:, 0] @ x @ x[1],
    "batches": lambda x: ta.matmul(x[:, None, :] * ta.ones((1, 2, 1), dtype="float64"), ta.asarray(W)),
    "tensordot": lambda x: ta.tensordot(x, x, axes=((0,), (0,))),
    "einsum": lambda x: ta.einsum("ij,kj,jl->il", x, x, ta.asarray(W)),
    "vecdot": lambda x: ta.vecdot(x, x * 2) + ta.inner(x, x)[0],
    "outer": lambda x: ta.outer(x[0], x[1]),
    "stored": stored,
    "written": written,
    "assigned": assigned,
    "added at": added_at,
    "parts": parts,
    "decided": decided,
    "clip": lambda x: ta.clip(x, -0.5, 0.5) * x + ta.clip(x, None, 1.0),
    "numbers": lambda x: 2 ** (x * 0.5) + 3 / (x * x + 1) - x // 0.7 + ta.atan2(x, 2.0) + ta.hypot(3.0, x),
    "integers": lambda x: x * ta.arange(4) + ta.asarray([2, 3, 1, 2]) ** x * ta.abs(x) ** ta.asarray([2, 0, 1, 3]),
    "constants": lambda x: ta.sum(ta.ones_like(x)) * x + ta.full_like(x, 2.0),
    "broadcasts": lambda x: x[:, :1] * x[:1] + x[1],
    "round": lambda x: ta.round(x) * x + ta.floor(x),
    "nans": lambda x: ta.nan_to_num(x) * x,
    "sort of": lambda x: ta.take_along_axis(x, ta.asarray(np.argsort(X, axis=1)), axis=1) * ta.arange(4),
    "softplus": lambda x: ta.logaddexp(x, 0.0),
    "cube": lambda x: x**3 * x**0 + x**1,
    "trace": lambda x: ta.trace(x[:, :3]) * x,
}  # fmt: skip
COMPLEX = ("index", "slices", "transposes", "reshape", "windows", "rows", "concat", "stored", "written", "sum", "mean",
           "prod", "matmul", "matvec", "einsum", "cumulative_sum", "cumulative_prod", "scan of zeros", "vecdot",
           "tensordot", "segments")  # fmt: skip
OF_COMPLEX: dict[str, Any] = {
    "parts": lambda z: z.real * z.imag + ta.abs(z) * ta.angle(z),
    "var": lambda z: ta.var(z, axis=1),
    "var of some": lambda z: ta.var(z, axis=1, where=z.real > -1),
    "norm": lambda z: ta.linalg.vector_norm(z, axis=0) * ta.linalg.vector_norm(z, ord=1),
    "conj": lambda z: ta.conj(z) * z**2,
    "sign": lambda z: ta.sign(z) * z,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_differences_of_results(name: str):
    if name == "cast":  # float32 has no differences this small
        x = ta.asarray(X)
        assert ta.to_numpy(ta.grad(lambda x: ta.sum(FUNCTIONS[name](x)))(x)) == pytest.approx(2 * X, rel=1e-6)
        return
    checked(FUNCTIONS[name], X)


@pytest.mark.parametrize("name", [*COMPLEX, *[f"{name}, complex" for name in OF_COMPLEX]])
def test_gradients_of_complex_arrays_are_those_of_real_and_imaginary_parts(name: str):
    checked(OF_COMPLEX.get(name.removesuffix(", complex")) or FUNCTIONS[name], Z)


SECOND = ("slices", "windows", "rows", "along", "concat", "prod", "max", "std", "softmax", "logsumexp", "norms",
          "cumulative_prod", "scan of zeros", "matmul", "matvec", "einsum", "stored", "written", "numbers", "clip",
          "diagonal", "segments")  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients_are_the_differences_of_gradients(name: str):
    def gradient(x: Any) -> Any:
        return ta.grad(lambda x: ta.sum(ta.sin(FUNCTIONS[name](x))))(x)

    checked(gradient, X)


def test_the_gradient_of_a_broadcast_sum():
    a, b = ta.asarray([[1.0, 2.0, 3.0]]), ta.asarray([[10.0], [20.0]])
    total, pull = ta.vjp(ta.add, a, b)
    assert total.shape == (2, 3)
    first, second = pull(ta.ones((2, 3)))
    assert first.tolist() == [[2.0, 2.0, 2.0]]
    assert second.tolist() == [[3.0], [3.0]]
    assert ta.unbroadcast_axes((1, 3), (2, 3)) == (0,)
    assert ta.unbroadcast_axes((2, 1), (2, 3)) == (1,)
    assert ta.unbroadcast_axes((3,), (4, 2, 3)) == (0, 1)
    assert ta.unbroadcast_axes((), (2,)) == (0,)
    assert ta.unbroadcast_axes((1, 1), (1, 1)) == ()
    with pytest.raises(ta.ShapeError, match=r"unbroadcast_axes: expected a shape that broadcasts to \(2, 3\), got \(2"):
        ta.unbroadcast_axes((2,), (2, 3))


def test_gradients_come_in_the_dtype_of_the_operand():
    x, y = ta.asarray([1.0, 2.0], dtype="float16"), ta.asarray([3.0, 4.0], dtype="float64")
    n, flags = ta.asarray([2, 3]), ta.asarray([True, False])
    result, pull = ta.vjp(lambda x, y, n, flags: x * y * n + ta.where(flags, x, y), x, y, n, flags)
    assert result.dtype == ta.float64
    first, second, third, fourth = pull(ta.ones(2, dtype="float64"))
    assert first.dtype == ta.float16
    assert first.tolist() == [7.0, 12.0]
    assert second.dtype == ta.float64
    assert second.tolist() == [2.0, 7.0]
    assert third is None
    assert fourth is None


def test_arguments_and_results_in_containers():
    params = {"w": ta.asarray([1.0, 2.0]), "b": ta.asarray(0.5)}

    def model(params: Any, x: Any, power: int = 1) -> Any:
        return ta.sum((params["w"] * x + params["b"]) ** power)

    value, gradient = ta.value_and_grad(model)(params, ta.asarray([3.0, 4.0]), power=2)
    assert value.item() == 84.5
    assert gradient["w"].tolist() == [21.0, 68.0]
    assert gradient["b"].item() == 24.0
    both = ta.grad(model, argnums=(1, 0))(params, ta.asarray([3.0, 4.0]))
    assert both[0].tolist() == [1.0, 2.0]
    assert both[1]["b"].item() == 2.0
    assert ta.grad(model, argnums=-1)(params, ta.asarray([3.0, 4.0])).tolist() == [1.0, 2.0]
    (first, rest), pull = ta.vjp(lambda x: (x * 2, [x[0], 3]), ta.asarray([1.0, 2.0]))
    assert first.tolist() == [2.0, 4.0]
    assert rest[1] == 3
    assert pull((ta.asarray([1.0, 1.0]), [10.0, None]))[0].tolist() == [12.0, 2.0]
    assert pull((ta.asarray([1.0, 1.0]), [None, None]))[0].tolist() == [2.0, 2.0]


def test_numbers_and_other_libraries():
    assert ta.grad(lambda x: x**3)(2.0).item() == 12.0
    assert ta.grad(lambda x: ta.grad(lambda y: x * y**2)(3.0) * x)(2.0).item() == 24.0
    gradient = ta.grad(lambda x: ta.sum(x * x))(np.array([1.0, 2.0]))
    assert type(gradient) is np.ndarray
    assert gradient.tolist() == [2.0, 4.0]
    assert ta.grad(lambda x: 3.0)(ta.asarray([1.0])).tolist() == [0.0]
    assert ta.grad(lambda x, y: ta.sum(y))(ta.ones(2), ta.ones(2)).tolist() == [0.0, 0.0]


def test_memory_is_not_shared_with_arguments():
    x = ta.asarray([1.0, 2.0, 3.0])
    wide = ta.broadcast_to(x, (2, 3))
    assert ta.grad(lambda x: ta.sum(x * x))(wide).tolist() == [[2.0, 4.0, 6.0]] * 2
    result, pull = ta.vjp(lambda x: x * x, x)
    x += 1  # what the rules read is the memory of the argument, as in torch without its check
    assert result.tolist() == [1.0, 4.0, 9.0]
    del pull
    same, pull = ta.vjp(lambda x: x, x)
    assert pull(ta.ones(3))[0].tolist() == [1.0, 1.0, 1.0]
    assert same.tolist() == x.tolist()


def test_sums_at_places_have_second_derivatives():
    """The inner level writes to an array that the outer one does not follow."""

    def cubes(x: Any) -> Any:
        out = ta.zeros_like(x)
        ta.add.at(out, [0, 0, 1], x**3)
        return ta.sum(out)

    x = ta.asarray([1.0, 2.0, 3.0])
    assert ta.grad(cubes)(x).tolist() == [3.0, 12.0, 27.0]
    assert ta.grad(lambda x: ta.sum(ta.grad(cubes)(x)))(x).tolist() == [6.0, 12.0, 18.0]


def test_cotangents_are_arrays_lists_or_numbers():
    x = ta.asarray([1.0, 2.0])
    _, pull = ta.vjp(lambda x: x * x, x)
    for g in (ta.asarray([1.0, 1.0]), np.ones(2), [1.0, 1.0], 1.0, 1, ta.ones(2, dtype="float64")):
        assert pull(g)[0].tolist() == [2.0, 4.0]
    second = ta.grad(lambda x: ta.sum(ta.vjp(lambda y: y**3, x)[1](1.0)[0]))(x)
    assert second.tolist() == [6.0, 12.0]


def test_gradients_can_be_written():
    x = ta.ones((2, 3))
    found = ta.grad(ta.sum)(x)
    found += x
    assert found.tolist() == [[2.0] * 3] * 2


def test_a_call_that_is_not_differentiated_keeps_nothing():
    import weakref

    from tilearray.gradients import steps
    from tilearray.gradients.followed import memory_of

    x = ta.asarray([1.0, 2.0])
    ta.grad(lambda x: ta.sum(ta.exp(x)))(x)
    y = x * x
    assert type(y) is ta.Array
    assert y.device == "cpu"
    assert y.device is x.device
    assert steps._OPEN.get() == ()
    kept: list[Any] = []

    def function(x: Any) -> Any:
        unused = x + 1
        kept.append(weakref.ref(memory_of(unused).real))
        kept.append(weakref.ref(memory_of(y := ta.exp(unused)).real))
        return y * 2

    result, pull = ta.vjp(function, x)
    assert kept[0]() is None
    assert kept[1]() is not None  # exp reads its result again, and nobody the sum
    del pull, result
    assert kept[1]() is None


ERRORS: list[tuple[Any, str]] = [
    (
        lambda x: ta.grad(lambda n: n)(ta.asarray([1])),
        r"grad: expected argument 0 of a float or complex dtype, got int64, which has no gradient; write x.astype",
    ),
    (lambda x: ta.grad(lambda n: n)(3), r"got int, which has no gradient; write float\(x\)"),
    (lambda x: ta.grad(lambda x: x * 2)(x), r"expected a result of one element, got shape \(2,\); write ta.sum"),
    (lambda x: ta.grad(lambda x: ta.sum(x) * 1j)(x), r"expected a real result, got complex64; write ta.real"),
    (lambda x: ta.grad(lambda x: (x, x))(x), r"grad: expected one array as the result, got tuple; write ta.vjp"),
    (lambda x: ta.grad(lambda x: ta.sum(ta.nextafter(x, 0.0)))(x), r"vjp: nextafter has no derivative; write it"),
    (lambda x: ta.vjp(lambda x: ta.histogram(x)[0], x), r"expected a function with derivatives, got one that counts"),
    (lambda x: ta.vjp(ta.unique_values, x), r"vjp: distinct elements have no derivative; write ta.take\(x, indices"),
    (
        lambda x: ta.vjp(lambda x: ta.multiply.at(x * 2, [0], x[:1]), x),
        r"multiply.at has no derivative; write x\[i\] = ta.multiply\(x\[i\], y\) for indices that differ, or ta.add.at",
    ),
    (lambda x: ta.vjp(lambda x: np.asarray(x), x), r"vjp: __array_struct__ needs the values of an array that is"),
    (lambda x: ta.grad(ta.sum, argnums=1)(x), r"grad: expected argnums below 1, the number of arguments, got 1"),
    (lambda x: ta.grad(ta.sum, argnums="x"), r"grad: expected argnums as an int or a tuple of them, got 'x'"),
    (lambda x: ta.grad(3), r"grad: expected a function, got int; write ta.grad\(lambda x: ...\)"),
    (lambda x: ta.jvp(ta.exp, (x,), ()), r"jvp: expected as many tangents as arguments, 1, got 0"),
    (lambda x: ta.vjp(ta.exp, x)[1](ta.ones(3)), r"vjp: expected a cotangent of shape \(2,\), got \(3,\); write"),
    (
        lambda x: ta.vjp(lambda x: (x, {"a": [x]}), x)[1](x),
        r"vjp: expected cotangents in the structure of the result, \(array, {'a': \[array\]}\), got array; write",
    ),
    (lambda x: ta.vjp(ta.exp, x)[1](x * 1j), r"vjp: expected a real cotangent, got complex64; write ta.real\(g\)"),
    (lambda x: ta.jvp(ta.exp, (x,), (x[:1],)), r"jvp: expected a tangent of shape \(2,\), got \(1,\); write"),
    (lambda x: ta.jvp(ta.exp, (x,), (x * 1j,)), r"jvp: expected a real tangent, got complex64; write ta.real\(g\)"),
    (
        lambda x: ta.jvp(lambda d: d["a"], ({"a": x},), (x,)),
        r"jvp: expected a tangent in the structure of the argument, {'a': array}, got array; write one for each",
    ),
    (lambda x: ta.grad(ta.sum)(x=x), r"grad: expected arguments by position, got none; write f\(x\)"),
    (lambda x: ta.grad(lambda x: ta.sum(ta.add(x, x, out=ta.zeros(2))))(x), r"vjp: add writes a differentiated"),
    (lambda x: ta.grad(lambda x: ta.sum(ta.multiply(x, 2, out=x)))(x), r"multiply: the target is read-only"),
]


def written(x: Any, w: Any) -> Any:
    y = x * 2
    z = y * y  # keeps the values of y, so the next line writes to other memory
    y[0] = w[0]
    y[1:] *= w[1:]
    return y * z


NESTED: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: x * x * w * w,
    "matmul": lambda x, w: ta.outer(x, w) @ w,
    "concat": lambda x, w: ta.concat([x, w]) ** 3 * ta.concat([w, x]),
    "where": lambda x, w: ta.where(w > 0, x * x * w, x),
    "reduction": lambda x, w: ta.std(ta.stack([x, w]), axis=0) * x,
    "solve": lambda x, w: ta.linalg.solve(ta.outer(x, x) + ta.eye(3, dtype="float64"), w * w),
    "determinant": lambda x, w: ta.linalg.det(ta.outer(x, w) + ta.eye(3, dtype="float64")),
    "transform": lambda x, w: ta.abs(ta.fft.fft(x) * ta.fft.fft(w)) ** 2,
    "index": lambda x, w: x[ta.asarray([0, 0, 2])] ** 2 * w[ta.asarray([1, 2, 2])],
    "written": written,
    "fused": ta.fuse(lambda x, w: ta.exp(x * w) * w),
}


@pytest.mark.parametrize("name", NESTED)
def test_constants_of_an_outer_gradient_are_arguments_of_an_inner_one(name: str):
    x, w, c = (ta.asarray([0.5, -1.5, 2.0], dtype="float64") * size for size in (1, 0.7, 3))

    def loss(x: Any, w: Any) -> Any:
        return ta.sum(NESTED[name](x, w))

    _, wanted = ta.grad(lambda x, w: ta.sum(c * ta.grad(loss)(x, w)), (0, 1))(x, w)
    inner: list[Callable[[Any], Any]] = [
        lambda w: ta.grad(loss)(x, w),
        lambda w: ta.grad(lambda y: loss(y, w))(x),
        lambda w: ta.vjp(loss, x, w)[1](1.0)[0],
        lambda w: ta.vjp(lambda w, x: loss(x, w), w, x)[1](1.0)[1],
        lambda w: ta.grad(loss, (0, 1))(x, w)[0],
    ]
    for function in inner:
        found = ta.grad(lambda w, function=function: ta.sum(c * function(w)))(w)
        np.testing.assert_allclose(ta.to_numpy(found), ta.to_numpy(wanted), rtol=1e-12)
    tangent = ta.jvp(lambda w: ta.grad(loss)(x, w), (w,), (c,))[1]
    np.testing.assert_allclose(ta.sum(c * tangent).item(), ta.sum(c * wanted).item(), rtol=1e-12)
    third = ta.grad(lambda w: ta.sum(ta.grad(lambda v: ta.sum(c * ta.grad(loss)(x, v)))(w) * w))(w)
    again = ta.grad(lambda x, w: ta.sum(ta.grad(lambda v: ta.sum(c * ta.grad(loss)(x, v)))(w) * w), (0, 1))(x, w)[1]
    np.testing.assert_allclose(ta.to_numpy(third), ta.to_numpy(again), rtol=1e-10)


@pytest.mark.parametrize("name", ["product", "where", "fused"])
def test_a_fused_function_differentiates_by_constants_from_outside(name: str):
    x, w, c = (ta.asarray([0.5, -1.5, 2.0], dtype="float64") * size for size in (1, 0.7, 3))

    def mixed(w: Any) -> Any:
        return ta.sum(c * ta.grad(lambda x, w: ta.sum(NESTED[name](x, w)))(x, w))

    wanted = ta.grad(mixed)(w)
    np.testing.assert_allclose(ta.to_numpy(ta.fuse(ta.grad(mixed))(w)), ta.to_numpy(wanted), rtol=1e-12)


def test_numbers_are_arrays_without_axes():
    for one, dtype in ((3.0, "float32"), (np.float64(3), "float64"), (np.float32(3), "float32")):
        value, tangent = ta.jvp(lambda x: x * x, (one,), (2.0,))
        assert (value.item(), tangent.item(), tangent.dtype) == (9, 12, dtype)
        found = ta.grad(lambda x: x * x)(one)
        assert (found.item(), found.shape, found.dtype) == (6, (), dtype)
    assert ta.jvp(lambda n, x: n * x, (3.0, ta.ones(2)), (None, 1.0))[1].tolist() == [3, 3]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors_say_what_to_write(call: Any, message: str):
    errors = ta.GradientError, ta.OperandError, ta.ShapeError, ta.DTypeError, ta.WriteError
    with pytest.raises(errors, match=message):
        call(ta.asarray([1.0, 2.0]))


def test_an_array_of_a_differentiated_function_is_not_used_after_it():
    kept: list[Any] = []
    ta.vjp(lambda x: kept.append(x * 2) or x, ta.asarray([1.0]))
    with pytest.raises(ta.GradientError, match="is used after it; return it from the function"):
        kept[0] + 1


OF_NUMBERS: dict[str, Any] = {
    "float": lambda x: float(ta.sum(x)) * 2,
    "complex": lambda x: complex(x[0]).real,
    "item": lambda x: ta.asarray(ta.sum(x).item()) * 2,
    "tolist": lambda x: ta.sum(ta.asarray(x.tolist())),
    "math": lambda x: math.sin(x[0]),
    "written": lambda x: ta.sum(ta.full_like(x, float(x[0]))),
    "not of the inner argument": lambda x: ta.sum(ta.grad(lambda y: ta.sum(y) * float(x[0]))(ta.ones(2))),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_result_that_is_made_of_numbers_warns(name: str):
    function, x = OF_NUMBERS[name], ta.asarray([1.0, 2.0])
    for differentiate in (ta.grad, lambda f: partial(ta.vjp, f)):
        derivative = differentiate(function)
        with pytest.warns(RuntimeWarning, match="the gradient is 0, since derivatives end at Python") as found:
            derivative(x)
        assert [each.filename for each in found] == [__file__]


def test_numbers_beside_a_gradient_do_not_warn(capsys: pytest.CaptureFixture[str]):
    def search(x: Any) -> Any:
        step = 1.0
        while float(ta.sum((x - step) ** 2)) > 1.0:
            step /= 2
        print(x[0].item(), x.tolist(), f"{x[0]:.1f}", x)
        return ta.sum(x) * step

    x = ta.asarray([0.25, 0.5])
    assert ta.grad(search)(x).tolist() == [1.0, 1.0]
    assert capsys.readouterr().out.startswith("0.25 [0.25, 0.5] 0.2 [0.25 0.5")
    assert ta.grad(lambda x: ta.sum(x) if x[0] > 1 else ta.asarray(0.0))(x).tolist() == [0.0, 0.0]
    assert ta.grad(lambda x: 3.0)(x).tolist() == [0.0, 0.0]
    assert ta.vjp(lambda x: (float(x[0]), ta.sum(x)), x)[1]((1.0, 1.0))[0].tolist() == [1.0, 1.0]
    assert ta.vjp(lambda x: int(x[0].item()), x)[0] == 0
    outer = ta.grad(lambda x: ta.sum(ta.grad(lambda y: ta.sum(y * y * x) * float(x[0]))(x) * x))
    assert outer(x).tolist() == [0.09375, 0.375]


def test_constants_take_no_differentiated_value_and_stay_after_the_function():
    kept: list[Any] = []

    def function(x: Any, constant: Any) -> Any:
        kept.append(constant(x))
        kept[-1][0] = x[0]
        return ta.sum(kept[-1])

    for constant in (lambda x: ta.zeros(2), lambda x: ta.ones_like(x) * 2):
        with pytest.raises(ta.GradientError, match=r"or to a constant of the function; write to ta.zeros_like\(x\)"):
            ta.grad(function)(ta.ones(2), constant)
        assert (kept[-1] + 1).shape == (2,)
    assert ta.grad(function)(ta.ones(2), ta.zeros_like).tolist() == [1.0, 0.0]
