"""Semantics ``numpy`` against NumPy itself: dtype and values of every function on every pair of NumPy's dtypes.

The operands are values that hurt: extremes, zeros of both signs, infinities, NaN, halves, negative divisors. Each pair
of dtypes is one call on all combinations. `DIFFERENCES` lists what is not NumPy's, with the reason; a difference that
is not listed fails, and so does a listed reason that no call needs. docs/promotion.md has the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilearray as ta
from tilearray.ops import PUBLIC

OWN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
NUMBERS: tuple[Any, ...] = (True, 0, 3, -1, 200, 0.0, 0.5, -2.5, float("inf"), 1j)

# The functions whose names differ in NumPy, and those that are not ufuncs there.
OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "round": np.round,
    "frexp_mantissa": lambda x: np.frexp(x)[0],
    "frexp_exponent": lambda x: np.frexp(x)[1],
}
ALONE = {
    "fma",
    "rsqrt",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "gamma",
    "ndtr",
    "expit",
    "logit",
    "entr",
    "xlogy",
    "xlog1py",
}  # NumPy has no such function
CALLS = {
    name: OTHER_NAMES.get(name) or getattr(np, row.ufunc or name) for name, row in PUBLIC.items() if name not in ALONE
}


def test_numpy_has_no_function_that_is_left_out() -> None:
    assert not [name for name in ALONE if hasattr(np, name)]


def hurtful(name: str) -> np.ndarray:
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        few = [0, 1, 2, 3, 7, 8, info.max, info.max - 1, info.min, info.min + 1]
        return np.array(few + ([-1, -2, -7] if dtype.kind == "i" else [63, 64]), dtype)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        edges = [limits.max, limits.min, limits.smallest_normal, limits.smallest_subnormal, np.inf, -np.inf, np.nan]
        return np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 2.5, 3, -7, *edges]).astype(dtype)
    parts = [0.0, -0.0, 1, -1.5, np.inf, -np.inf, np.nan]
    return np.array([complex(real, imag) for real, imag in product(parts, repeat=2)]).astype(dtype)


class Difference(NamedTuple):
    """A difference that is listed: the functions, the reason, and for which operands, as a mask of their elements.

    `where` is asked with the dtype of NumPy's result first. It returns None for a call that is an error here.
    """

    names: tuple[str, ...]
    reason: str
    where: Callable[..., Any]


def held(value: int, dtype: np.dtype) -> bool:
    return dtype.kind not in "iu" or bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)


ORDERED = ("less", "less_equal", "greater", "greater_equal", "minimum", "maximum", "clip")
DIFFERENCES = [
    Difference(
        ORDERED,
        "complex numbers have no order here: errors",
        lambda dtype, *x: None if any(np.asarray(value).dtype.kind == "c" for value in x) else False,
    ),
    Difference(
        ("minimum", "maximum", "clip"),
        "zeros of both signs are equal, and either may be chosen; NumPy's loops differ among themselves",
        lambda dtype, *x: (sum(np.asarray(value) == 0 for value in x) > 1) & (dtype.kind == "f"),
    ),
    Difference(
        ("where", "clip"),
        "an integer that the dtype does not hold is an error here; numpy.where wraps it, and numpy.clip may drop it",
        lambda dtype, *x: None if any(type(value) is int and not held(value, dtype) for value in x) else False,
    ),
    Difference(
        ("pow",),
        "x ** 0.5 is a power here; for a number as exponent NumPy takes the root, which differs for -inf",
        lambda dtype, x, y: (np.asarray(x) == -np.inf) & (type(y) is float),
    ),
    Difference(
        ("sinc",),
        "sinc of integers is 0 here, NumPy multiplies by a rounded pi; and there is no sinc of complex numbers",
        lambda dtype, x: (np.trunc(x) == x) & (x != 0) if x.dtype.kind != "c" else None,
    ),
    Difference(
        ("reciprocal",),
        "the reciprocal of the integer 0 is 0 on every device here; NumPy leaves it to the processor",
        lambda dtype, x: x == 0 if dtype.kind in "iu" else False,
    ),
    Difference(
        ("isclose",),
        "tolerances are taken in the common dtype here, and in the dtype of x2 by NumPy: atol vanishes in float16",
        lambda dtype, x, y: np.asarray(y).dtype == np.float16,
    ),
    Difference(
        ("expm1",),
        "expm1 of complex infinities and NaN is as the array API standard says; NumPy has NaN in some",
        lambda dtype, x: ~np.isfinite(x.real) if dtype.kind == "c" else False,
    ),
    Difference(
        ("sign",),
        "the sign of a complex number with a NaN is NaN, as the standard says; NumPy sees the infinity alone",
        lambda dtype, x: np.isnan(x) if dtype.kind == "c" else False,
    ),
]


def called(function: Callable[..., Any], operands: list[Any]) -> Any:
    """The result of a call, or the class of its error."""
    with np.errstate(all="ignore"):
        try:
            return function(*operands)
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)


def equal(mine: np.ndarray, other: np.ndarray, exact: bool) -> np.ndarray:
    """Bit for bit, with all NaN equal; functions that are not exact may be off by 4 ulp."""
    if mine.dtype.kind not in "fc":
        return mine == other
    parts = [(mine.real, other.real), (mine.imag, other.imag)] if mine.dtype.kind == "c" else [(mine, other)]
    return np.logical_and.reduce([_equal_floats(x, y, exact) for x, y in parts])


def _equal_floats(x: np.ndarray, y: np.ndarray, exact: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        close = np.abs(x.astype(float) - y.astype(float)) <= (0 if exact else 4 * np.spacing(np.abs(y)).astype(float))
    return (np.isnan(x) & np.isnan(y)) | (x == y) & (np.signbit(x) == np.signbit(y)) | (close & (not exact))


def compare(name: str, operands: list[Any], used: set[str]) -> str:
    """What differs in a call, beyond what is listed; "" if nothing does."""
    arrays = [ta.asarray(x, device="cpu") if isinstance(x, np.ndarray) else x for x in operands]
    theirs, ours = called(CALLS[name], operands), called(getattr(ta, name, None) or PUBLIC[name], arrays)
    dtype = theirs.dtype if isinstance(theirs, np.ndarray) else np.dtype(bool)
    rows = [(row, row.where(dtype, *operands)) for row in DIFFERENCES if name in row.names]
    if isinstance(ours, type) or isinstance(theirs, type):
        refused = [row for row, where in rows if where is None]
        used |= {row.reason for row in refused} if not isinstance(theirs, type) else set()
        fine = isinstance(ours, type) and (isinstance(theirs, type) or refused)
        return "" if fine else f"{ours!r:.60} instead of {theirs!r:.60}"
    mine = ta.to_numpy(ours)
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{mine.dtype}{mine.shape} instead of {theirs.dtype}{theirs.shape}"
    wrong = ~equal(mine, theirs, PUBLIC[name].exact)
    for row, where in rows:
        if where is not None:
            used |= {row.reason} if np.any(wrong & where) else set()
            wrong = wrong & ~np.asarray(where)
    if not wrong.any():
        return ""
    place = int(np.argmax(wrong))
    example = [np.broadcast_to(x, wrong.shape)[place] for x in operands]
    return f"{int(wrong.sum())} values, such as {mine[place]!r} instead of {theirs[place]!r} for {example}"


def questions(name: str) -> list[list[Any]]:
    """Every dtype, or every pair of dtypes with all combinations of values, and every dtype with every number."""
    arity = {"isclose": 2, "nan_to_num": 1}.get(name, PUBLIC[name].arity)
    values = {dtype: hurtful(dtype) for dtype in OWN}
    if arity == 1:
        return [[x] for x in values.values()]
    found: list[list[Any]] = []
    for x, y in product(values.values(), repeat=2):
        found.append([np.repeat(x, y.size), np.tile(y, x.size)])
    found += [pair for x in values.values() for number in NUMBERS for pair in ([x, number], [number, x])]
    if name == "where":
        return [[np.arange(np.broadcast(*pair).size) % 3 == 0, *pair] for pair in found]
    return (
        [[*pair, pair[0][::-1]] if isinstance(pair[0], np.ndarray) else [pair[1], *pair] for pair in found]
        if (arity == 3)
        else found
    )


@pytest.fixture(scope="module")
def used() -> set[str]:
    return set()


@pytest.mark.parametrize("name", CALLS)
def test_every_function_on_every_pair(name: str, used: set[str]) -> None:
    with ta.semantics("numpy"):
        found = [(given, compare(name, given, used)) for given in questions(name)]
    wrong = [([x.dtype.name if isinstance(x, np.ndarray) else x for x in given], text) for given, text in found if text]
    assert not wrong, f"{len(wrong)} of {len(found)} calls are not NumPy's:\n" + "\n".join(map(str, wrong[:20]))


def test_every_listed_difference_is_one(used: set[str]) -> None:
    """Runs last in this module; alone it computes what the others compute."""
    with ta.semantics("numpy"):
        for name in {name for row in DIFFERENCES if row.reason not in used for name in row.names}:
            for given in questions(name):
                compare(name, given, used)
    assert [row.reason for row in DIFFERENCES if row.reason not in used] == []
