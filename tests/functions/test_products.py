"""Matrix and tensor products against Python numbers, summed up one by one; any views, shapes and dtypes."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.oracles.axes import Pair, check_close, flat, pairs, python, wrapped
from support.oracles.formats import ARITHMETIC, kind_of
from support.oracles.rules import join

import tilearray as ta
from tilearray.errors import (
    AxisError,
    BroadcastError,
    DTypeError,
    OperandError,
    PromotionError,
    ShapeError,
    WriteError,
)

NAMES = st.sampled_from([name for name in ARITHMETIC if kind_of(name) != "bool"])
SIZES = st.integers(0, 4)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Pair, Pair]:
    """Operands whose axes fit: vectors, matrices and stacks that broadcast."""
    m, k, n = draw(SIZES), draw(SIZES), draw(SIZES)
    left = draw(st.sampled_from([(k,), (m, k), (2, m, k), (1, 3, m, k)]))
    right = draw(st.sampled_from([(k,), (k, n), (1, k, n), (2, 1, k, n)]))
    assume(len(left) < 4 or len(right) < 3 or left[-3] in (1, right[-3]) or right[-3] == 1)
    return draw(pairs(NAMES, left)), draw(pairs(NAMES, right))


def common(*operands: Pair) -> str | None:
    try:
        return join({pair.theirs.dtype.name for pair in operands}, "array-api")
    except PromotionError:
        return None


def exact(pair: Pair, name: str) -> np.ndarray:
    """Python numbers of the values in a dtype. Casts have their own tests."""
    return python(ta.to_numpy(ta.asarray(np.ascontiguousarray(pair.theirs)).astype(name)).reshape(pair.theirs.shape))


def check(found: ta.Array, want: np.ndarray, terms: np.ndarray, name: str) -> None:
    """Integers exactly, floats to the accuracy of a sum in float32 or float64; `terms` sums the absolute values."""
    assert (found.shape, found.dtype.name) == (want.shape, name)
    for got, value, size in zip(flat(found), want.ravel(), terms.ravel(), strict=True):
        if kind_of(name) == "int":
            assert got == wrapped(value, name)
            continue
        part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
        slack = 64 * float(size) * (2.0**-52 if part == "float64" else 2.0**-23)
        for one, other in ((got.real, value.real), (got.imag, value.imag)):
            check_close(one, other, part, slack)


def tame(*operands: np.ndarray) -> bool:
    """Whether no product or sum of these overflows or is NaN."""
    return all(modulus(value) < 1e4 for x in operands for value in x.ravel())


@given(matrices())
def test_matmul_is_the_sum_of_products(operands):
    name = common(*operands)
    if name is None:
        with pytest.raises(PromotionError, match="matmul: "):
            ta.matmul(operands[0].mine, operands[1].mine)
        return
    left, right = (exact(pair, name) for pair in operands)
    found = ta.matmul(operands[0].mine, operands[1].mine)
    rows = left if left.ndim > 1 else left[None]
    columns = right if right.ndim > 1 else right[:, None]
    shape = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows, columns = (np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (rows, columns))
    want = np.empty((*shape, rows.shape[-2], columns.shape[-1]), object)
    terms = np.empty_like(want)
    for *stack, i, j in np.ndindex(want.shape):
        products = list(zip(rows[(*stack, i)], columns[(*stack, slice(None), j)]))
        want[(*stack, i, j)] = sum([a * b for a, b in products])
        terms[(*stack, i, j)] = sum([modulus(a) * modulus(b) for a, b in products])
    dropped = tuple([axis for axis, x in ((-2, left), (-1, right)) if x.ndim == 1])
    want, terms = (np.asarray(x, object).reshape(drop(x.shape, dropped)) for x in (want, terms))
    if kind_of(name) == "int" or tame(left, right):
        check(found, want, terms, name)
    assert (found.shape, found.dtype.name) == (want.shape, name)


def modulus(x: Any) -> Any:
    """The absolute value: infinity where Python's of a complex number raises OverflowError."""
    return math.hypot(x.real, x.imag) if isinstance(x, complex) else abs(x)


def test_the_modulus_of_the_largest_complex_numbers_is_infinite():
    assert modulus(complex(1.7e308, 1.7e308)) == math.inf
    assert modulus(-3) == 3


def drop(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for place, n in enumerate(shape) if place - len(shape) not in axes])


@given(st.data(), NAMES)
def test_vecdot_conjugates_its_first_operand(data, name):
    shape = data.draw(st.sampled_from([(3,), (2, 3), (4, 2, 3), (0, 3), (2, 0)]))
    one, other = data.draw(pairs(st.just(name), shape)), data.draw(pairs(st.just(name), shape))
    axis = data.draw(st.integers(-len(shape), -1))
    a, b = (np.moveaxis(python(pair.theirs), axis, -1) for pair in (one, other))
    want, terms = np.empty(a.shape[:-1], object), np.empty(a.shape[:-1], object)
    for place in np.ndindex(want.shape):
        want[place] = sum([x.conjugate() * y for x, y in zip(a[place], b[place])])
        terms[place] = sum([modulus(x) * modulus(y) for x, y in zip(a[place], b[place])])
    found = ta.vecdot(one.mine, other.mine, axis=axis)
    assert (found.shape, found.dtype.name) == (want.shape, name)
    if kind_of(name) == "int" or tame(a, b):
        check(found, want, terms, name)


def test_vecdot_of_complex_numbers():
    x, y = [1 + 2j, 3 - 1j], [2 - 1j, -1 + 4j]
    want = sum([a.conjugate() * b for a, b in zip(x, y)])
    assert ta.vecdot(ta.asarray(x), ta.asarray(y)).item() == want
    assert ta.vecdot(ta.asarray([1.0, 2.0]), ta.asarray(y)).item() == 2 - 1j + 2 * (-1 + 4j)
    assert ta.matmul(ta.asarray(x), ta.asarray(y)).item() == sum([a * b for a, b in zip(x, y)])


@given(st.data(), st.integers(-2, -1))
def test_vecdot_broadcasts_and_rounds_to_the_common_dtype(data, axis):
    one, other = data.draw(pairs(st.just("int8"), (2, 1, 3))), data.draw(pairs(st.just("float32"), (4, 1, 3)[-axis:]))
    if axis == -2:
        other = data.draw(pairs(st.just("float32"), (1, 3)))
    found = ta.vecdot(one.mine, other.mine, axis=axis)
    with np.errstate(invalid="ignore"):  # signaling NaN
        x, y = one.theirs.astype(float), other.theirs.astype(float)
    shape = np.broadcast_shapes(x.shape, y.shape)
    assert (found.shape, found.dtype) == ((*shape[:axis], *shape[axis:][1:]), ta.float32)
    if tame(x, y):
        slack = np.sum(np.abs(x * y), axis=axis) * 1e-7
        assert (np.abs(ta.to_numpy(found) - np.sum(x * y, axis=axis)) <= slack + 1e-44).all()


def test_vdot_is_the_dot_product_of_all_elements():
    x, y = ta.asarray([[1 + 2j, 3], [0, 1j]]), ta.asarray([[1, 1j], [5, 2]])
    assert ta.vdot(x.T, y.T).item() == ta.vdot(x, y).item() == (1 - 2j) + 3j - 2j
    infinite = ta.asarray([complex(math.inf, 0)])
    assert ta.linalg.vector_norm(infinite).item() == math.inf


@given(st.data(), st.sampled_from(["int8", "uint64", "int64"]))
def test_tensordot_and_einsum_are_sums_over_named_axes(data, name):
    sizes = dict(zip("abcd", data.draw(st.tuples(*[st.integers(0, 3)] * 4)), strict=True))
    left, right = ("".join(data.draw(st.permutations(list("abcd")))[: data.draw(st.integers(1, 4))]) for _ in range(2))
    one, other = (data.draw(pairs(st.just(name), tuple(sizes[letter] for letter in word))) for word in (left, right))
    summed = [letter for letter in left if letter in right]
    kept = [letter for letter in left if letter not in summed] + [letter for letter in right if letter not in summed]
    a, b = python(one.theirs), python(other.theirs)
    want = np.zeros([sizes[letter] for letter in kept], object)
    letters = kept + summed
    for place in itertools.product(*[range(sizes[letter]) for letter in letters]):
        at = dict(zip(letters, place, strict=True))
        product = a[tuple([at[letter] for letter in left])] * b[tuple([at[letter] for letter in right])]
        want[tuple([at[letter] for letter in kept])] += product
    axes = tuple([tuple([word.index(letter) - len(word) for letter in summed]) for word in (left, right)])
    for found in (
        ta.tensordot(one.mine, other.mine, axes=axes),
        ta.einsum(f"{left},{right}->{''.join(kept)}", one.mine, other.mine),
    ):
        assert (found.shape, found.dtype.name) == (want.shape, name)
        assert flat(found) == [wrapped(value, name) for value in want.ravel()]


def test_axes_by_their_number():
    x, y = ta.reshape(ta.arange(24), (2, 3, 4)), ta.reshape(ta.arange(12), (3, 4))
    assert ta.tensordot(x, y).tolist() == np.tensordot(ta.to_numpy(x), ta.to_numpy(y), 2).tolist()
    assert ta.tensordot(x, y, axes=0).shape == (2, 3, 4, 3, 4)
    assert ta.tensordot(y, x, axes=((0, 1), (1, 2))).shape == (2,)


def test_narrow_floats_are_summed_wide_and_rounded_once():
    x = ta.ones((1, 4096), dtype="bfloat16")
    assert (x @ x.mT).item() == 4096  # added one by one in bfloat16 it would stop at 256
    x = ta.full((64,), 30000.0, dtype="float16")
    signs = ta.asarray([1.0, -1.0] * 32, dtype="float16")
    assert ta.matmul(x, signs).item() == 0
    assert ta.vecdot(x, signs).item() == 0
    big = ta.asarray([448.0, 448.0, -448.0], dtype="float8_e4m3fn")
    assert ta.matmul(big, ta.ones(3, dtype="float8_e4m3fn")).item() == 448


def test_bools_are_and_and_or():
    x = ta.asarray([[True, False], [True, True]])
    assert (x @ x).tolist() == [[True, False], [True, True]]
    assert (x @ x).dtype == ta.bool


def test_the_operators():
    x, y = ta.reshape(ta.arange(6), (2, 3)), ta.reshape(ta.arange(9, dtype="int8"), (3, 3))
    want = (np.arange(6).reshape(2, 3) @ np.arange(9).reshape(3, 3)).tolist()
    assert (x @ y).tolist() == want
    assert x.__rmatmul__(x.mT).tolist() == (x.mT @ x).tolist()
    memory = x
    x @= y
    assert x is memory
    assert x.tolist() == want
    assert np.matmul(y, y).tolist() == (y @ y).tolist()


def test_in_place_keeps_shape_dtype_and_read_only_memory():
    x, y = ta.ones((2, 2)), ta.ones((2, 3))
    with pytest.raises(ShapeError, match=r"matmul: expected a product of shape \(2, 2\) to write in place"):
        x @= y
    whole = ta.ones((2, 2), dtype="int32")
    with pytest.raises(DTypeError, match="setitem: expected a target that can store the float32 result, got int32"):
        whole @= x
    fixed = ta.broadcast_to(ta.ones(2), (2, 2))
    with pytest.raises(WriteError):
        fixed @= x
    assert x.tolist() == whole.tolist() == [[1, 1], [1, 1]]


def test_einsum_returns_memory_of_its_own():
    x = ta.ones((2, 2))
    ta.einsum("ij->ji", x)[0, 0] = 5
    ta.einsum("ii->i", x)[0] = 5
    ta.einsum("ij->ij", x)[0, 0] = 5
    assert x.tolist() == [[1, 1], [1, 1]]


def test_matrix_transpose_is_a_view_on_any_device():
    x = ta.reshape(ta.arange(24), (2, 3, 4))
    found = ta.matrix_transpose(x)
    assert found._buffer is x._buffer
    assert found.tolist() == x.mT.tolist() == ta.to_numpy(x).swapaxes(1, 2).tolist()


M = ta.ones((2, 3))
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: M @ M, ShapeError, r"matmul: expected the last axis .* got shapes \(2, 3\) and \(2, 3\); write x2.mT"),
    (lambda: M @ 2, OperandError, r"matmul: expected an Array beside '@', got int; write x \* y"),
    (lambda: np.float32(2) @ M, OperandError, r"matmul: expected an Array beside '@', got numpy.float32"),
    (lambda: operator.matmul(2, M), OperandError, r"matmul: expected an Array beside '@', got int"),
    (lambda: ta.matmul(M, ta.asarray(1)), ShapeError, r"matmul: expected arrays with axes, .* write x1 \* x2"),
    (lambda: ta.matmul(ta.ones((2, 1, 1)), ta.ones((3, 1, 1))), BroadcastError, r"matmul: expected equal sizes"),
    (lambda: ta.matmul(M, M.mT.astype("float8_e3m4")), PromotionError, r"matmul: float8_e3m4 is for storage only"),
    (lambda: ta.matrix_transpose(M[0]), ShapeError, r"matrix_transpose: expected at least 2 axes, got shape \(3,\)"),
    (lambda: ta.vecdot(M, M, axis=0), ShapeError, r"vecdot: expected -2 <= axis < 0 .* got 0"),
    (lambda: ta.vecdot(M, M[:, :1]), ShapeError, r"vecdot: expected equal sizes along axis -1"),
    (lambda: ta.vecdot(M, ta.ones((4, 3))), BroadcastError, r"vecdot: expected equal sizes, or 1"),
    (lambda: ta.tensordot(M, M, axes=3), ShapeError, r"tensordot: expected 0 <= axes <= 2 .* got 3; write axes=0"),
    (lambda: ta.tensordot(M, M, axes=((0,), (0, 1))), ShapeError, r"tensordot: expected as many axes of x1 as of x2"),
    (lambda: ta.tensordot(M, M, axes=((2,), (0,))), AxisError, r"tensordot: expected -2 <= axis < 2, got axis 2"),
    (lambda: ta.tensordot(M, M, axes=((0,), (1,))), ShapeError, r"tensordot: expected equal sizes along axes \(0,\)"),
    (lambda: ta.tensordot(M, M, axes=1.5), ShapeError, r"tensordot: expected axes as an int, got float"),
    (
        lambda: ta.einsum("ij,jk", M, M),
        ShapeError,
        r"einsum: 'ij,jk' does not fit shapes \(2, 3\) and .*write a",
    ),
    (lambda: ta.einsum("i1", M), ShapeError, r"einsum: 'i1' does not fit"),
    (lambda: ta.einsum("ij"), ShapeError, r"einsum: expected at least one array .*, got none"),
    (lambda: ta.einsum("i", {1}), OperandError, r"einsum: expected a tilearray Array, got set"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


def test_nothing_warns():
    x = ta.asarray([[math.inf, math.nan], [1e38, 1e38]])
    assert math.isnan((x @ x)[0, 0].item())
    assert (x @ ta.asarray([10.0, 10.0]))[1].item() == math.inf


def test_vecdot_checks_its_arguments_after_a_call_of_the_same_arrays():
    x, y = ta.asarray([[1.0, 2.0], [3.0, 4.0]]), ta.asarray([[1.0, 1.0], [2.0, 2.0]])
    for _ in range(2):
        assert ta.vecdot(x, y).tolist() == [3.0, 14.0]
        assert ta.vecdot(x, y, axis=-2).tolist() == [7.0, 10.0]
        assert ta.vecdot(x, y, order="any").tolist() == [3.0, 14.0]
        assert ta.vecdot(x, y[0]).tolist() == [3.0, 7.0]
        assert ta.vecdot(x, [1.0, 1.0]).tolist() == [3.0, 7.0]
        assert ta.vecdot(x.T, y).tolist() == [4.0, 12.0]
        assert ta.vecdot(x.astype("int32"), y.astype("int32")).dtype == ta.int32
        assert ta.fuse(lambda a, b: ta.vecdot(a, b) + 1)(x, y).tolist() == [4.0, 15.0]
        for wrong in ({"axis": -1.0}, {"axis": 1}, {"axis": [-1]}, {"order": "none"}, {"order": ["any"]}):
            with pytest.raises(ta.errors.TileArrayError):
                ta.vecdot(x, y, **wrong)
