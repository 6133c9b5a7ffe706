"""Oracles for matrices: exact elimination with fractions, and moderate values in views of any strides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tilearray as ta
from support.drawing import views
from support.oracles.axes import Pair
from support.oracles.formats import dtype_of, kind_of

Rows = list[list[Fraction]]


@st.composite
def tame(draw: st.DrawFn, name: str, shape: tuple[int, ...]) -> Pair:
    """Any view of small numbers: integers, or multiples of 1/4, which every float format holds."""
    view = draw(views(shape))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low, unit = 0 if name.startswith(("u", "bo")) else -6, 1.0 if kind_of(name) in ("int", "bool") else 0.25
    flat = rng.integers(low, 2 if name == "bool" else 7, view.start + view.size + 1) * unit
    if kind_of(name) == "complex":
        flat = flat + 1j * rng.permutation(flat)
    flat = flat.astype(dtype_of(name))
    return Pair(view.of_tilearray(ta.asarray(flat.copy())), view.of_numpy(flat))


def strided(values: np.ndarray) -> ta.Array:
    """The same values in memory with gaps, backwards along every axis."""
    memory = np.ones([2 * n for n in values.shape], values.dtype)
    view = memory[(slice(None, None, -2),) * values.ndim]
    view[...] = values
    return ta.asarray(view, copy=False)


def wide(x: Any) -> np.ndarray:
    """Values in float64 or complex128."""
    host = ta.to_numpy(x) if isinstance(x, ta.Array) else np.asarray(x)
    return host.astype(np.complex128 if host.dtype.kind == "c" else np.float64)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def near(got: np.ndarray, want: np.ndarray, name: str, size: float = 1.0) -> None:
    """Equal up to some roundings of numbers of a size, to a dtype or to float64."""
    assert got.shape == want.shape
    room = 60 * max(float(ta.finfo(name).eps), 2.0**-52) * (1 + size)
    assert np.all(np.abs(got - want) <= room), (got, want, room)


def check(found: ta.Array, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The values of a result of a shape and a dtype."""
    assert (found.shape, found.dtype.name) == (shape, name)
    return wide(found)


# --- dtypes of results ------------------------------------------------------------------------------------------------


def float_name(name: str) -> str:
    return "float32" if kind_of(name) in ("int", "bool") else name


def real_name(name: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(float_name(name), float_name(name))


def complex_name(name: str) -> str:
    return "complex128" if float_name(name) in ("float64", "complex128") else "complex64"


# --- exact arithmetic -------------------------------------------------------------------------------------------------


def fractions(x: np.ndarray) -> Rows:
    return [[Fraction(float(value)) for value in row] for row in x]


def eliminated(matrix: Rows, right: Rows) -> tuple[Fraction, Rows | None]:
    """The determinant, and the solution of ``matrix @ x = right`` by Gauss and Jordan; None if singular."""
    rows = [left + other for left, other in zip(matrix, right, strict=True)]
    size, determinant = len(rows), Fraction(1)
    for column in range(size):
        pivot = next((row for row in range(column, size) if rows[row][column]), None)
        if pivot is None:
            return Fraction(0), None
        if pivot != column:
            rows[column], rows[pivot], determinant = rows[pivot], rows[column], -determinant
        first = rows[column][column]
        determinant *= first
        rows[column] = [value / first for value in rows[column]]
        for row in range(size):
            if row != column and (factor := rows[row][column]):
                rows[row] = [value - factor * own for value, own in zip(rows[row], rows[column])]
    return determinant, [row[size:] for row in rows]


def rank(matrix: Rows) -> int:
    """The rank, by elimination."""
    rows, found = [list(row) for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in range(found, len(rows)) if rows[row][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for row in range(found + 1, len(rows)):
            factor = rows[row][column] / rows[found][column]
            rows[row] = [value - factor * own for value, own in zip(rows[row], rows[found])]
        found += 1
    return found


def power(matrix: Sequence[Sequence[int]], n: int) -> list[list[int]]:
    """The n-th power of a matrix of Python integers, product by product."""
    size = len(matrix)
    found = [[int(i == j) for j in range(size)] for i in range(size)]
    for _ in range(n):
        found = [[sum(found[i][k] * matrix[k][j] for k in range(size)) for j in range(size)] for i in range(size)]
    return found
