"""Reductions of drawn arrays: the same bits on every device, and close to exact sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import TileArrayError

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
FUNCTIONS = (
    *("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero", "argmax", "argmin"),
    *("vecdot", "vector_norm", "sum_from", "nanmax", "nanmin"),
)
ORDERED = ("max", "min", "argmax", "argmin", "nanmax", "nanmin")
HARD = (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1.0, 65504.0, 1.0)


def dtype_of(name: str) -> np.dtype:
    """Return the dtype of a name, ml_dtypes' included."""
    return np.dtype(getattr(ml_dtypes, name, name))


def drawn_shape(pick: np.random.Generator, elements: int) -> tuple[int, ...]:
    """Return a shape of one to four axes and about `elements` elements."""
    ndim = int(pick.integers(1, 5))
    sizes = np.exp(pick.dirichlet(np.ones(ndim)) * math.log(elements))
    return tuple(int(size) for size in np.maximum(1, np.round(sizes)))


def varied_shape(rng: np.random.Generator, shape: tuple[int, ...], least_axes: int = 0) -> tuple[int, ...]:
    """Return a shape whose extents lie between the same powers of two, so that most kernels are the same.

    One of 25 is empty, and one of 25 has no axes if `least_axes` is 0.
    """
    kind = rng.random()
    if kind < 0.04 and not least_axes:
        return ()
    powers = [1 << (size - 1).bit_length() for size in shape]
    found = [int(rng.integers(power // 2 + 1, power + 1)) if power > 1 else power for power in powers]
    if kind > 0.96:
        found[int(rng.integers(0, len(found)))] = 0
    return tuple(found)


def drawn_array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array; some have hard values."""
    numbers = rng.normal(size=shape) * 10.0 ** rng.integers(-1, 3) + rng.integers(-2, 3)
    if dtype == "bool":
        return rng.random(shape) < rng.choice([0.001, 0.5, 0.999])
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        if rng.random() < 0.3:
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.clip(numbers, info.min, info.max).astype(dtype)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * rng.normal(size=shape)
    with np.errstate(all="ignore"):
        found = numbers.astype(dtype_of(dtype))
        if rng.random() < 0.3 and found.size:
            places = rng.integers(0, found.size, 1 + found.size // 50)
            found.flat[places] = rng.choice(HARD[: rng.integers(1, 10)], places.size).astype(found.dtype)
    return found


def drawn_view(rng: np.random.Generator, x: Any) -> Any:
    """Return a view with permuted, reversed, strided, shifted or repeated axes."""
    x = ta.permute_dims(x, tuple(int(axis) for axis in rng.permutation(x.ndim)))
    key: list[slice] = []
    for size in x.shape:
        kind = rng.integers(0, 6)
        step = {0: -1, 1: 2, 2: -3}.get(int(kind), 1)
        start = 1 if kind == 3 and size > 1 else None
        key.append(slice(start, None, step))
    x = x[tuple(key)]
    if rng.random() < 0.1:
        x = ta.broadcast_to(ta.expand_dims(x, axis=0), (3, *x.shape))
    return x


def drawn_axis(rng: np.random.Generator, ndim: int, *, single: bool) -> Any:
    """Return None, an axis, or several axes."""
    if rng.random() < 0.25:
        return None
    if single or rng.random() < 0.4:
        return int(rng.integers(0, ndim))
    count = int(rng.integers(1, ndim + 1))
    return tuple(int(axis) for axis in rng.permutation(ndim)[:count])


CALLS: dict[str, Any] = {
    "vecdot": lambda x, axis: ta.vecdot(x, ta.flip(x), axis=axis),
    "vector_norm": ta.linalg.vector_norm,
    "sum_from": lambda x, **options: ta.sum(x, initial=1, **options),
}


def picks(rng: np.random.Generator, seed: int, count: int, kinds: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Yield the number of each case, and the generator that draws its kind: dtype, function, shape and view.

    There are `kinds` of them, or each case has its own if it is 0. Cases of a kind have other values, and the same
    kernels, so many cases need little of a compiler.
    """
    for number in range(count):
        yield number, np.random.default_rng([seed, number % kinds]) if kinds else rng


def check_same_bits(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> None:
    """Compare reductions on a device with those on the host: dtype, shape and every bit, except those of NaN."""
    rng = np.random.default_rng(seed)
    for number, pick in picks(rng, seed, count, kinds):
        check_one(device, rng, pick, elements, f"#{number}")


def check_one(
    device: Any,
    rng: np.random.Generator,
    pick: np.random.Generator,
    elements: int,
    told: str,
    vary: bool = False,
) -> str:
    """Compare one reduction on a device with that on the host, and return how it ended.

    `pick` draws all that kernels depend on, and `rng` the values; with `vary` also the extents.
    """
    dtype = str(pick.choice(DTYPES))
    is_complex = dtype.startswith("complex")
    name = str(pick.choice([each for each in FUNCTIONS if not (is_complex and each in ORDERED)]))
    shape = drawn_shape(pick, elements)
    shape = varied_shape(rng, shape, int(name == "vecdot")) if vary else shape
    mine, other = drawn_on_both(device, pick, drawn_array(rng, dtype, shape))
    axis = drawn_axis(pick, mine.ndim, single=name.startswith("arg")) if mine.ndim else None
    if name == "vecdot":
        axis = int(pick.integers(-mine.ndim, 0))
    options: dict[str, Any] = {"keepdims": bool(pick.integers(0, 2))} if name != "vecdot" else {}
    if name in ("var", "std"):
        options["correction"] = int(pick.integers(0, 3))
    function = CALLS.get(name) or getattr(ta, name)
    told = f"{told} {name} {dtype} {mine.shape} {mine.strides} axis={axis} {options}"
    return same_end(lambda x: function(x, axis=axis, **options), mine, other, told)


def drawn_on_both(device: Any, pick: np.random.Generator, values: np.ndarray) -> tuple[Any, Any]:
    """Return the same view of an array on the host and on a device."""
    state = pick.bit_generator.state
    mine = drawn_view(pick, ta.asarray(values, device="cpu"))
    pick.bit_generator.state = state
    return mine, drawn_view(pick, ta.asarray(values, device=device))


def same_end(call: Any, mine: Any, other: Any, told: str) -> str:
    """Make a call on the host and on a device: both return the same bits, or raise an error of the same class."""
    try:
        expected = call(mine)
    except TileArrayError as error:
        with pytest.raises(type(error)):
            call(other)
        return "refused by both"
    compare(expected, call(other), told)
    return "with the bits of the host"


def compare(expected: Any, found: Any, told: str) -> None:
    """Raise AssertionError unless two arrays have the same dtype, shape and bits. NaN equals NaN."""
    one, other = ta.to_numpy(expected), ta.to_numpy(found)
    assert (one.dtype, one.shape) == (other.dtype, other.shape), told
    assert "cuda" in str(found.device), told
    word = np.dtype(f"u{min(one.itemsize, 8)}")
    ours, theirs = (np.ascontiguousarray(array).reshape(-1).view(word) for array in (one, other))
    same = (ours == theirs).reshape(one.size, -(-one.itemsize // 8)).all(-1)
    nan = (np.ravel(one) != np.ravel(one)) & (np.ravel(other) != np.ravel(other))
    assert (same | nan).all(), f"{told}: expected {np.ravel(one)[~same][:4]}, got {np.ravel(other)[~same][:4]}"


def compare_nearly(name: str, x: Any, expected: Any, found: Any, told: str) -> None:
    """Raise AssertionError unless two results of a function differ by roundings alone, in sums of all elements of `x`.

    An infinity or a NaN is the same in both.
    """
    one, other = (np.atleast_1d(ta.to_numpy(ta.astype(each, "complex128"))) for each in (expected, found))
    values = np.nan_to_num(np.abs(ta.to_numpy(ta.astype(x, "complex128"))), nan=0, posinf=0, neginf=0)
    size, count = max(1.0, float(values.max(initial=0))), max(1, x.size)
    narrow = ta.finfo(expected.dtype).eps
    wide = ta.finfo("float64" if expected.dtype in (ta.float64, ta.complex128) else "float32").eps
    scale = {"sum": size * count, "cumulative_sum": size * count, "norm_of_sizes": size * count}.get(name, size)
    if name in ("var", "vecdot"):
        scale = size**2 * (count if name == "vecdot" else 1)
    for mine, theirs in ((one.real, other.real), (one.imag, other.imag)):
        finite = np.isfinite(mine) & np.isfinite(theirs)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        bound = 4 * narrow * np.abs(mine) + wide * count**0.5 * 8 * (scale + np.abs(mine))
        with np.errstate(invalid="ignore"):
            assert (same | (finite & (np.abs(mine - theirs) <= bound))).all(), told
