"""Inverses, solutions, determinants, ranks and powers against exact fractions and Python integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.axes import wrapped
from support.oracles.formats import ARITHMETIC, kind_of
from support.oracles.matrices import (
    adjoint,
    check,
    eliminated,
    float_name,
    fractions,
    near,
    power,
    rank,
    real_name,
    strided,
    tame,
    wide,
)

import tilearray as ta
from tilearray.errors import LinAlgError

REAL = st.sampled_from([name for name in ARITHMETIC if kind_of(name) not in ("complex", "bool")])
ALL = st.sampled_from([name for name in ARITHMETIC if name != "bool"])
STACKS = st.sampled_from([(), (), (2,), (0,), (1, 2)])
SIZES = st.integers(0, 4)


def well_conditioned(data: Any, name: str, stack: tuple[int, ...], m: int) -> np.ndarray:
    """Matrices in which the diagonal dominates, in a dtype."""
    heavy = 30 if kind_of(name) == "int" else 12
    x = wide(data.draw(tame(name, (*stack, m, m))).theirs) + heavy * np.eye(m)
    return ta.to_numpy(ta.asarray(x).astype(name))


def exact(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solutions for stacks of real matrices, from fractions."""
    found = np.empty(np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2]) + right.shape[-2:])
    matrices, right = (np.broadcast_to(x, found.shape[:-2] + x.shape[-2:]) for x in (matrices, right))
    for place in np.ndindex(found.shape[:-2]):
        solved = eliminated(fractions(matrices[place]), fractions(right[place]))[1]
        found[place] = np.array([[float(value) for value in row] for row in solved or []]).reshape(found.shape[-2:])
    return found


@given(st.data(), REAL, STACKS, SIZES, st.integers(0, 3))
def test_inverses_and_solutions_of_real_matrices(data, name, stack, m, columns):
    x, result = well_conditioned(data, name, stack, m), float_name(name)
    right = data.draw(tame(name, data.draw(st.sampled_from([(m, columns), (*stack, m, columns)]))))
    inverse = check(ta.linalg.inv(strided(x)), x.shape, result)
    near(inverse, exact(wide(x), np.eye(m)), result)
    want = exact(wide(x), wide(right.theirs))
    near(check(ta.linalg.solve(strided(x), right.mine), (*stack, m, columns), result), want, result)
    near(check(ta.linalg.pinv(strided(x)), x.shape, result), inverse, result)
    if columns and right.mine.ndim == 2:
        near(check(ta.linalg.solve(strided(x), right.mine[:, 0]), (*stack, m), result), want[..., 0], result)


@given(st.data(), ALL, STACKS, SIZES)
def test_inverses_multiply_to_the_identity(data, name, stack, m):
    x, result = well_conditioned(data, name, stack, m), float_name(name)
    inverse = check(ta.linalg.inv(strided(x)), x.shape, result)
    near(wide(x) @ inverse, np.broadcast_to(np.eye(m), x.shape), result, 40)
    near(check(ta.linalg.solve(strided(x), strided(x)), x.shape, result), np.broadcast_to(np.eye(m), x.shape), result)


@given(st.data(), REAL, STACKS, SIZES)
def test_determinants(data, name, stack, m):
    x, result = well_conditioned(data, name, stack, m), float_name(name)
    sign, logarithm = ta.linalg.slogdet(strided(x))
    want = np.empty(stack)
    for place in np.ndindex(stack):
        want[place] = eliminated(fractions(wide(x)[place]), [[] for _ in range(m)])[0]
    found = check(ta.linalg.det(strided(x)), stack, result)
    largest, eps = float(ta.finfo(result).max), max(float(ta.finfo(result).eps), 2.0**-50)
    assert np.all((np.abs(found - want) <= 40 * eps * np.abs(want)) | (np.abs(want) > largest * 0.9))
    assert np.array_equal(check(sign, stack, result), np.sign(want))
    near(check(logarithm, stack, result), np.log(np.abs(want)), result, 12)


def test_determinants_of_other_matrices():
    assert ta.linalg.det(ta.asarray([[0.0, 1.0], [1.0, 0.0]])).item() == -1
    assert ta.linalg.det(ta.ones((2, 3, 3))).tolist() == [0, 0]
    assert ta.linalg.slogdet(ta.zeros((2, 2))).logabsdet.item() == -math.inf
    assert ta.linalg.slogdet(ta.zeros((2, 2))).sign.item() == 0
    found = ta.linalg.slogdet(ta.eye(400, dtype="float64") * 1e-3)
    assert abs(found.logabsdet.item() - 400 * math.log(1e-3)) < 1e-9
    x = ta.asarray([[1j, 0], [0, 2j]])
    assert ta.linalg.det(x).item() == -2
    assert ta.linalg.slogdet(x).sign.item() == -1
    assert ta.linalg.det(ta.asarray([[True, True], [False, True]])).dtype == ta.float32


@given(st.data(), REAL, STACKS, SIZES, SIZES, st.integers(0, 3))
def test_ranks(data, name, stack, m, n, inner):
    """Of products of matrices with few columns: integers, so that the fractions have the same rank."""
    one, other = (wide(data.draw(tame("int8", (*stack, *shape))).theirs) for shape in ((m, inner), (inner, n)))
    x = np.clip(one, 0, 2) @ np.clip(other, 0, 2)
    found = ta.linalg.matrix_rank(strided(ta.to_numpy(ta.asarray(x).astype(name))))
    assert (found.shape, found.dtype) == (stack, ta.int64)
    for place in np.ndindex(stack):
        assert ta.to_numpy(found)[place] == rank(fractions(x[place]))


def test_tolerances_of_ranks_and_pseudo_inverses():
    x = ta.asarray(np.diag([1.0, 1e-3, 1e-9]))
    assert [ta.linalg.matrix_rank(x, rtol=limit).item() for limit in (None, 1e-6, 0.5, np.float32(1e-12))] == [
        3,
        2,
        1,
        3,
    ]
    assert ta.linalg.matrix_rank(x, 1e-4).item() == ta.linalg.matrix_rank(x, tol=ta.asarray(1e-4)).item() == 2
    stack = ta.stack([x, x * 10])
    assert ta.linalg.matrix_rank(stack, rtol=ta.asarray([1e-6, 0.5])).tolist() == [2, 1]
    assert ta.linalg.matrix_rank(stack, tol=ta.asarray([1e-4, 1e-1])).tolist() == [2, 1]
    assert ta.linalg.matrix_rank(ta.asarray([0.0, 3.0])).item() == ta.linalg.matrix_rank(ta.asarray(2)).item() == 1
    assert ta.linalg.matrix_rank(ta.zeros(3)).item() == ta.linalg.matrix_rank(ta.zeros((0, 3))).item() == 0
    for found in (ta.linalg.pinv(x, 1e-6), ta.linalg.pinv(x, rtol=1e-6), ta.linalg.pinv(x, rcond=ta.asarray(1e-6))):
        np.testing.assert_allclose(ta.to_numpy(found), np.diag([1, 1e3, 0]), rtol=1e-12)
    both = ta.linalg.pinv(stack, rtol=ta.asarray([1e-6, 0.5]))
    np.testing.assert_allclose(ta.to_numpy(both), [np.diag([1, 1e3, 0]), np.diag([0.1, 0, 0])], rtol=1e-12)
    several = ta.asarray([1e-6, 0.5])
    assert ta.linalg.matrix_rank(x, tol=several).tolist() == ta.linalg.matrix_rank(x, rtol=several).tolist() == [2, 1]
    for matrix in (x, ta.stack([x])):
        found = ta.to_numpy(ta.linalg.pinv(matrix, rtol=several))
        np.testing.assert_allclose(found, [np.diag([1, 1e3, 0]), np.diag([1, 0, 0])], rtol=1e-12)
    nearly = ta.asarray([[1.0, 1.0], [1.0, 1.0 + 2.0**-23]])
    assert ta.linalg.matrix_rank(nearly).item() == 1  # within 2 eps of float32
    assert ta.linalg.matrix_rank(nearly.astype("float64")).item() == 2
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.pinv(nearly)), np.full((2, 2), 0.25), rtol=1e-5)
    assert ta.linalg.pinv(nearly.astype("float64"))[0, 0].item() > 1e6


@given(st.data(), ALL, STACKS, SIZES, SIZES)
def test_pseudo_inverses_obey_penrose(data, name, stack, m, n):
    pair, result = data.draw(tame(name, (*stack, m, n))), float_name(name)
    found = check(ta.linalg.pinv(pair.mine), (*stack, n, m), result)
    if ta.finfo(result).bits < 32:
        return
    x, size = wide(pair.theirs), 200 * float(np.abs(found).max(initial=1)) ** 2
    near(x @ found @ x, x, result, size)
    near(found @ x @ found, found, result, size * float(np.abs(found).max(initial=1)))
    near(adjoint(x @ found), x @ found, result, size)
    near(adjoint(found @ x), found @ x, result, size)


@given(st.data(), st.sampled_from(["int8", "uint8", "int64", "uint64", "bool"]), SIZES, st.integers(0, 9))
def test_powers_of_integers_wrap(data, name, m, n):
    pair = data.draw(tame(name, (2, m, m)))
    found = ta.linalg.matrix_power(pair.mine, n)
    assert (found.shape, found.dtype.name) == ((2, m, m), name)
    for place in range(2):
        want = power([[int(value) for value in row] for row in pair.theirs[place]], n)
        got = ta.to_numpy(found)[place].tolist()
        assert got == [[bool(v) if name == "bool" else wrapped(v, name) for v in row] for row in want]


@given(st.data(), REAL, SIZES, st.integers(-3, -1))
def test_negative_powers_are_those_of_the_inverse(data, name, m, n):
    x, result = well_conditioned(data, name, (), m), float_name(name)
    found = check(ta.linalg.matrix_power(strided(x), n), (m, m), result)
    near(found, np.linalg.matrix_power(exact(wide(x), np.eye(m)), -n), result)


def test_powers_of_narrow_floats_are_rounded_once():
    x = ta.asarray([[1.0, 2.0**-7], [0.0, 1.0]], dtype="bfloat16")
    assert ta.linalg.matrix_power(x, 3).tolist() == [[1.0, 3 * 2.0**-7], [0.0, 1.0]]
    big = ta.asarray([[300.0, 0.0], [0.0, 2.0**-7]], dtype="float16")
    assert ta.linalg.matrix_power(big, 2).tolist() == [[math.inf, 0.0], [0.0, 2.0**-14]]


@given(st.data(), ALL, st.integers(0, 5), st.integers(0, 3), st.sampled_from([None, 0, 2]))
def test_least_squares(data, name, m, n, columns):
    a = data.draw(tame(name, (m, n)))
    b = data.draw(tame(name, (m,) if columns is None else (m, columns)))
    found, result = ta.linalg.lstsq(a.mine, b.mine), float_name(name)
    want = np.linalg.lstsq(wide(a.theirs), wide(b.theirs), rcond=2.0**-23 * max(m, n))
    x = check(found.x, want[0].shape, result)
    values, residuals = check(found.s, want[3].shape, real_name(name)), found.residuals
    near(values, want[3], real_name(name), 30)
    assert (found.rank.shape, found.rank.dtype, found.rank.item()) == ((), ta.int64, want[2])
    assert (residuals.shape, residuals.dtype.name) == (want[1].shape, real_name(name))
    if ta.finfo(result).bits >= 32:
        size = 200 * (1 + 1 / min(values[values > 1e-4], default=1)) ** 2
        near(x, want[0], result, size)
        near(wide(residuals), want[1], real_name(name), size * 100)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "complex64"])
def test_singular_and_indefinite_matrices_are_errors(name):
    x = ta.zeros((2, 2, 2), dtype=name)
    message = "expected invertible matrices, got a singular one; write ta.linalg.pinv"
    for function, call in (
        ("inv", ta.linalg.inv),
        ("solve", lambda x: ta.linalg.solve(x, x)),
        ("matrix_power", lambda x: ta.linalg.matrix_power(x, -1)),
        ("tensorinv", lambda x: ta.linalg.tensorinv(x[0], 1)),
        ("tensorsolve", lambda x: ta.linalg.tensorsolve(x[0], x[0, 0])),
    ):
        with pytest.raises(LinAlgError, match=rf"^linalg.{function}: {message}"):
            call(x)
    with pytest.raises(
        LinAlgError, match=r"^linalg.cholesky: expected positive-definite matrices, .*write ta.linalg.eigh"
    ):
        ta.linalg.cholesky(x)
    with pytest.raises(np.linalg.LinAlgError):
        ta.linalg.inv(x)
