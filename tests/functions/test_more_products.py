"""NumPy's products against NumPy over Python numbers: exact integers, then wrapped; floats against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import flat, pairs, python, same, wrapped

import tilearray as ta
from tilearray.errors import (
    AxisError,
    BroadcastError,
    DTypeError,
    PromotionError,
    ShapeError,
    WriteError,
)

N, M, K = 2, 3, 4
Shapes = list[tuple[tuple[int, ...], tuple[int, ...]]]


def matvec(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a, b[..., None])[..., 0]


def vecmat(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(a.conj()[..., None, :], b)[..., 0, :]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))], -1)


# Our function, NumPy's over Python numbers, and shapes that fit.
PRODUCTS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "dot": (np.dot, [((M,), (M,)), ((N, M), (M,)), ((M,), (M, K)), ((N, M), (M, K)), ((N, K, M), (2, M, N)),
                     ((), (M,)), ((N, M), ()), ((0,), (0,)), ((N, 0), (0, K)), ((2, N, M), (M,)), ((M,), (2, M, N))]),
    "inner": (np.inner, [((M,), (M,)), ((N, M), (M,)), ((M,), (K, M)), ((N, M), (K, M)), ((2, N, M), (K, M)),
                         ((), (N, M)), ((N, 0), (0,))]),
    "vdot": (lambda a, b: np.dot(a.ravel().conj(), b.ravel()),
             [((M,), (M,)), ((N, M), (M, N)), ((), ()), ((2, 3, 4), (24,)), ((0, 3), (0,))]),
    "matvec": (matvec, [((N, M), (M,)), ((K, N, M), (M,)), ((N, M), (K, M)), ((0, M), (M,)), ((N, 0), (0,))]),
    "vecmat": (vecmat, [((N,), (N, M)), ((K, N), (N, M)), ((N,), (K, N, M)), ((0,), (0, M))]),
    "outer": (np.outer, [((M,), (K,)), ((N, M), (K,)), ((), (M,)), ((0,), (M,)), ((), ())]),
    "kron": (np.kron, [((M,), (K,)), ((N, M), (K, N)), ((N, M), (K,)), ((M,), (2, 1, K)), ((), (M,)), ((0,), (M,))]),
    "cross": (cross, [((3,), (3,)), ((K, 3), (3,)), ((K, 3), (2, 1, 3)), ((0, 3), (3,))]),
}  # fmt: skip
CASES = [(name, *shapes) for name, (_, given_shapes) in PRODUCTS.items() for shapes in given_shapes]


@given(st.sampled_from(CASES), st.data(), st.sampled_from(["int8", "uint8", "int64", "uint64", "int32"]))
def test_products_of_integers_are_exact_and_wrap(case, data, name):
    function, one, other = case
    left, right = data.draw(pairs(st.just(name), one)), data.draw(pairs(st.just(name), other))
    found = getattr(ta, function)(left.mine, right.mine)
    want = np.asarray(PRODUCTS[function][0](python(left.theirs), python(right.theirs)))
    assert (found.shape, found.dtype.name) == (want.shape, name)
    assert flat(found) == [wrapped(int(value), name) for value in want.ravel()]


@given(st.sampled_from(CASES), st.integers(0, 2**32 - 1), st.data())
def test_products_of_floats_are_near(case, seed, data):
    function, *shapes = case
    names = ["bfloat16", "float16", "float32", "float64", "complex64", "complex128", "float8_e5m2"]
    name = data.draw(st.sampled_from(names))
    values = [sample(shape, name, seed + place) for place, shape in enumerate(shapes)]
    found = getattr(ta, function)(*[ta.asarray(x) for x in values])
    wide = "complex128" if name.startswith("complex") else "float64"
    want = np.asarray(PRODUCTS[function][0](*[x.astype(wide) for x in values]))
    assert (found.shape, found.dtype.name) == (want.shape, name)
    size = np.asarray(PRODUCTS[function][0](*[np.abs(x.astype(wide)) for x in values])) if function != "cross" else 40
    room = 4 * float(ta.finfo(name).eps) * (np.abs(size) + 1)
    assert (np.abs(ta.to_numpy(found).astype(wide) - want) <= room).all()


def sample(shape: tuple[int, ...], name: str, seed: int) -> np.ndarray:
    """Numbers from -2 to 2 that a dtype holds."""
    rng = np.random.default_rng(seed)
    real, imag = (rng.integers(-8, 9, shape) / 4 for _ in range(2))
    return np.asarray(real + 1j * imag if name.startswith("complex") else real).astype(ta.asarray([], dtype=name).dtype)


def test_products_of_bools_are_and_and_or():
    x = ta.asarray([True, False, True])
    for function in (ta.dot, ta.inner, ta.vdot):
        assert function(x, x).item() is True
        assert function(x, ~x).item() is False
    assert ta.outer(x, x).tolist() == np.outer(ta.to_numpy(x), ta.to_numpy(x)).tolist()
    assert ta.kron(x, x).dtype == ta.bool


def test_vdot_and_vecmat_conjugate_their_first_operand_and_dot_and_inner_do_not():
    x, y = ta.asarray([1 + 2j, 3 - 1j]), ta.asarray([2 - 1j, -1 + 4j])
    plain = (1 + 2j) * (2 - 1j) + (3 - 1j) * (-1 + 4j)
    assert ta.dot(x, y).item() == ta.inner(x, y).item() == plain
    conjugated = (1 - 2j) * (2 - 1j) + (3 + 1j) * (-1 + 4j)
    assert ta.vdot(x, y).item() == ta.vecmat(x, y[:, None]).item() == conjugated


def test_narrow_floats_are_computed_wide_and_rounded_once():
    x = ta.ones(4096, dtype="bfloat16")
    assert ta.dot(x, x).item() == ta.vdot(x, x).item() == ta.inner(x, x).item() == 4096
    a, b = ta.asarray([1.0, 257.0, 0.0], dtype="float16"), ta.asarray([0.0, 256.0, 257.0], dtype="float16")
    a[2], b[1] = 256.0, 256.0
    assert ta.cross(a, b)[0].item() == 257 * 257 - 256 * 256  # both products overflow float16


@pytest.mark.parametrize(
    ("options", "shapes"),
    [
        ({"axis": 0}, ((3, 4), (3, 4))),
        ({"axis": -2}, ((2, 3, 4), (2, 3, 1))),
        ({"axisa": 0, "axisb": 1}, ((3, 4), (4, 3))),
        ({"axisa": 0, "axisb": -1, "axisc": 0}, ((3, 4), (4, 3))),
    ],
)
def test_cross_takes_axes_as_numpy_does(options, shapes):
    a, b = (np.arange(np.prod(shape)).reshape(shape) ** 2 % 11 for shape in shapes)
    assert ta.cross(ta.asarray(a), ta.asarray(b), **options).tolist() == np.cross(a, b, **options).tolist()


@given(st.data(), st.sampled_from(["int8", "uint16", "int64"]), st.integers(-6, 6))
def test_trace_is_the_sum_of_a_diagonal(data, name, offset):
    shape = data.draw(st.sampled_from([(3, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0), (2, 3, 2, 2)]))
    pair = data.draw(pairs(st.just(name), shape))
    one, other = data.draw(st.permutations(range(-len(shape), 0)))[:2]
    found = ta.trace(pair.mine, offset, axis1=one, axis2=other)
    want = np.asarray(np.trace(python(pair.theirs), offset, one, other))
    assert found.shape == want.shape
    assert found.dtype == (ta.uint64 if name.startswith("u") else ta.int64)
    assert flat(found) == [wrapped(int(value), found.dtype.name) for value in want.ravel()]
    assert ta.trace(pair.mine, offset, one, other, dtype="float64").dtype == ta.float64


@given(st.data(), st.sampled_from(["bool", "int8", "bfloat16", "complex64", "float8_e5m2"]), st.integers(-4, 4))
def test_diag_writes_and_reads_a_diagonal(data, name, k):
    pair = data.draw(pairs(st.just(name), data.draw(st.sampled_from([(3,), (0,), (1,), (3, 4), (4, 2), (0, 2)]))))
    found, values = ta.diag(pair.mine, k), python(pair.theirs)
    want = np.diag(values, k) if values.ndim == 2 else np.zeros([values.size + abs(k)] * 2, object)
    if values.ndim == 1:
        for place, value in enumerate(values):
            want[place + max(-k, 0), place + max(k, 0)] = value
    assert (found.shape, found.dtype.name) == (want.shape, name)
    assert all(same(got, type(got)(value)) for got, value in zip(flat(found), want.ravel(), strict=True))


def test_diag_of_a_matrix_is_a_view():
    x = ta.zeros((2, 2), dtype="int8")
    ta.diag(x)[...] = 7
    assert x.tolist() == [[7, 0], [0, 7]]


def test_targets():
    a = ta.asarray([[1, 2], [3, 4]])
    out = ta.empty((2, 2), dtype="float64")
    assert ta.dot(a, a, out) is out
    assert out.tolist() == [[7, 10], [15, 22]]
    assert ta.outer(a[0], a[1], out=out) is out
    assert out.tolist() == [[3, 4], [6, 8]]
    assert ta.matmul(a, a, out) is out
    assert out.tolist() == [[7, 10], [15, 22]]
    ta.matmul(a, a[::-1], out=a)  # the target is an operand
    assert a.tolist() == [[5, 8], [13, 20]]
    assert ta.einsum("ij,kj->ki", a, a, out=out.mT, optimize="greedy").tolist() == [[89, 225], [225, 569]]
    assert out.tolist() == [[89, 225], [225, 569]]
    total = ta.empty((), dtype="int64")
    a = ta.asarray([[1, 2], [3, 4]])
    assert ta.trace(a, out=total) is total
    assert total.item() == 5


X, V = ta.ones((2, 3)), ta.ones(3)
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: ta.dot(X, X), ShapeError, r"^dot: expected the last axis of a and axis -2 of b .* \(2, 3\) and \(2, 3\)"),
    (lambda: ta.inner(X, ta.ones(2)), ShapeError, r"^inner: expected the last axis of a and axis -1 .*; write b.mT"),
    (lambda: ta.vdot(X, V), ShapeError, r"^vdot: expected arrays of equally many elements, .*write ta.vecdot"),
    (lambda: ta.matvec(V, V), ShapeError, r"^matvec: expected at least 2 axes for x1, got shape \(3,\); write"),
    (lambda: ta.matvec(X, ta.ones(2)), ShapeError, r"^matvec: expected the last axis"),
    (lambda: ta.matvec(ta.ones((2, 2, 3)), ta.ones((3, 3))), BroadcastError, r"^matvec: "),
    (lambda: ta.vecmat(V, V), ShapeError, r"^vecmat: expected at least 2 axes for x2"),
    (lambda: ta.vecmat(V, X), ShapeError, r"^vecmat: expected the last axis"),
    (lambda: ta.cross(X, X[:, :2]), ShapeError, r"^cross: expected vectors of 3 elements along axis -1, .*ta.concat"),
    (lambda: ta.cross(X, ta.ones((4, 3))), BroadcastError, r"^cross: expected equal sizes"),
    (lambda: ta.cross(X, X, axis=2), AxisError, r"^cross: expected -2 <= axis < 2"),
    (lambda: ta.cross(V == 1, V == 1), DTypeError, r"^cross: expected dtypes of kind .*got bool; write"),
    (lambda: ta.cross(V, V.astype("float8_e3m4")), PromotionError, r"^cross: "),
    (lambda: ta.diag(ta.ones(())), ShapeError, r"^diag: expected a vector or a matrix, got shape \(\)"),
    (lambda: ta.diag(V, 1.5), ShapeError, r"^diag: expected k as an int, got float"),
    (lambda: ta.dot(X, V, ta.ones(3)), ShapeError, r"^dot: expected out of shape \(2,\), got \(3,\)"),
    (lambda: ta.dot(X, V, ta.broadcast_to(ta.ones(1), (2,))), WriteError, r"^dot: the target has several"),
    (lambda: ta.dot(X, V, ta.ones(2, dtype="int8")), DTypeError, r"expected out of a dtype that can store"),
    (lambda: ta.matmul(X, V, ta.ones(3)), ShapeError, r"^matmul: expected out of shape \(2,\), got \(3,\)"),
    (lambda: ta.einsum("ij->i", X, out=V), ShapeError, r"^einsum: expected out of shape \(2,\), got \(3,\)"),
    (lambda: ta.outer(V.astype("uint64"), V.astype("int8")), PromotionError, r"int8 and uint64 have no common dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
