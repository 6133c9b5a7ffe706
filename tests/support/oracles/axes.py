"""Oracles for functions of whole axes: Python numbers, gathered one result element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import tilearray as ta
from support.drawing import pool, shapes, views
from support.oracles.formats import ARITHMETIC, kind_of

NAMES = st.sampled_from(list(ARITHMETIC))
REAL_NAMES = st.sampled_from([name for name in ARITHMETIC if kind_of(name) != "complex"])
INTEGER_NAMES = st.sampled_from([name for name in ARITHMETIC if kind_of(name) == "int"])


class Pair(NamedTuple):
    """The same view of the same values, by both libraries."""

    mine: ta.Array
    theirs: np.ndarray


@st.composite
def pairs(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES, shape: tuple[int, ...] | None = None) -> Pair:
    """Any view of any values of a dtype."""
    view = draw(views(draw(shapes()) if shape is None else shape))
    flat = np.roll(pool(draw(names)), -draw(st.integers(0, 65535)))
    return Pair(view.of_tilearray(ta.asarray(flat.copy())), view.of_numpy(flat))


@st.composite
def axes_of(draw: st.DrawFn, ndim: int) -> Any:
    """None, one axis or several, of either sign."""
    kind = draw(st.integers(0, 2))
    if kind == 0 or not ndim:
        return None
    if kind == 1:
        return draw(st.integers(-ndim, ndim - 1))
    chosen = draw(st.lists(st.integers(0, ndim - 1), unique=True))
    return tuple([axis - ndim * draw(st.integers(0, 1)) for axis in chosen])


def python(x: np.ndarray) -> np.ndarray:
    """An array of Python numbers: exact."""
    kind = kind_of(x.dtype.name)
    convert = {"bool": bool, "int": int, "float": float, "complex": complex}[kind]
    found = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        found[place] = convert(x[place])
    return found


def groups(x: np.ndarray, axis: Any, keepdims: bool) -> tuple[tuple[int, ...], list[list[Any]]]:
    """The shape of a reduction of `x`, and what each element of it is made from, in C order."""
    chosen = range(x.ndim) if axis is None else [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
    kept = [a for a in range(x.ndim) if a not in chosen]
    shape = tuple(1 if a in chosen else n for a, n in enumerate(x.shape) if keepdims or a not in chosen)
    numbers, found = python(x), []
    for place in np.ndindex(*[x.shape[a] for a in kept]):
        index: list[Any] = [slice(None)] * x.ndim
        for a, position in zip(kept, place):
            index[a] = position
        found.append(list(np.asarray(numbers[tuple(index)], object).ravel()))
    return shape, found


def flat(x: ta.Array) -> list[Any]:
    return list(python(ta.to_numpy(x)).ravel())


def wrapped(value: int, name: str) -> int:
    """An integer as the dtype holds it, modulo 2**bits."""
    info = np.iinfo(name)
    return (value - int(info.min)) % 2**info.bits + int(info.min)


def special(values: Sequence[float]) -> float | None:
    """What a sum of floats is that are not all finite, else None."""
    if all(math.isfinite(value) for value in values):
        return None
    infinities = {value for value in values if math.isinf(value)}
    return infinities.pop() if len(infinities) == 1 and not any(map(math.isnan, values)) else math.nan


def unit(name: str) -> float:
    """Half the distance from 1 to the next number."""
    return float(ta.finfo(name).eps) / 2


def accumulator(name: str) -> str:
    """The dtype in which a reduction adds up or multiplies floats: narrow ones in float32."""
    return "float64" if name in ("float32", "float64") else "float32"


def accumulated(values: Sequence[float], dtype: str) -> float | None:
    """How far a sum in a dtype may be from the exact one; None if it may overflow on the way."""
    size = math.fsum(map(abs, values))
    return len(values) * 2 * float(ta.finfo(dtype).eps) * size if size <= ta.finfo(dtype).max else None


def check_sum(got: float, values: Sequence[float], name: str, wide: str) -> None:
    """`got` is the sum of `values`, accumulated in the dtype `wide` and then rounded once."""
    known = special(values)
    slack = 0.0 if known is not None else accumulated(values, wide)
    if slack is not None:
        check_close(got, math.fsum(values) if known is None else known, name, slack)


def check_close(got: float, want: Fraction | float, name: str, slack: float) -> None:
    """`got` is `want`, rounded once to the dtype, when `want` itself is known up to `slack`."""
    info = ta.finfo(name)
    if isinstance(want, float) and not math.isfinite(want):
        assert got == want or (math.isnan(got) and math.isnan(want))
        return
    if not math.isfinite(got):
        assert abs(want) + slack >= info.max * (1 - info.eps)
        return
    smallest = float(info.smallest_normal) * float(info.eps)
    room = abs(want) * Fraction(unit(name)) * Fraction(1.0000001) + Fraction(slack) + Fraction(smallest)
    assert abs(Fraction(got) - Fraction(want)) <= room


def bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def expand(function: Callable[..., Any], x: np.ndarray, axis: int) -> np.ndarray:
    """A function of one list of numbers to a list, along one axis of an array of Python numbers."""
    moved = np.moveaxis(python(x), axis, -1)
    rows = [function(list(moved[place])) for place in np.ndindex(moved.shape[:-1])]
    length = len(function(list(moved[tuple([0] * (x.ndim - 1))]))) if rows else 0
    found = np.empty((*moved.shape[:-1], length), object)
    for place, row in zip(np.ndindex(moved.shape[:-1]), rows):
        for position, value in enumerate(row):
            found[(*place, position)] = value
    return np.moveaxis(found, -1, axis)


def same(got: Any, want: Any) -> bool:
    """Whether two numbers are the same, NaN included, -0.0 and 0.0 too."""
    return got == want or (got != got and want != want)
