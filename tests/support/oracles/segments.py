"""`op.reduceat` of drawn arrays at drawn indices, against folds of NumPy in the accumulators of the documentation."""

from __future__ import annotations

import functools
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import tilearray as ta
from support.oracles.formats import dtype_of
from support.oracles.indexing import bits
from tilearray.functions import ufunc_reduceat
from tilearray.functions.indexing import fold

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn")
COMPLEX = ("complex64", "complex128")
WIDE = {
    **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn"), "float32"),
    **dict.fromkeys(("float32", "float64"), "float64"),
    **dict.fromkeys(COMPLEX, "complex128"),
}
NAMES = {
    "b": ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "bitwise_xor"),
    "i": (
        "add",
        "multiply",
        "maximum",
        "minimum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "subtract",
        "logical_or",
    ),
    "f": ("add", "multiply", "maximum", "minimum", "subtract", "divide", "logical_xor", "add", "multiply", "maximum"),
    "c": ("add", "multiply", "subtract", "logical_and"),
}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 0.0, -0.0)


def drawn(rng: np.random.Generator, elements: int) -> tuple[np.ndarray, int, np.ndarray]:
    """An array of one to three axes in any dtype, one of its axes, and indices: of all kinds, not seldom increasing."""
    dtype = str(rng.choice(("bool", *INTEGERS, *FLOATS * 2, *COMPLEX)))
    axis = int(rng.integers(0, ndim := int(rng.integers(1, 4))))
    shape = [int(rng.integers(1, 4)) for _ in range(ndim)]
    shape[axis] = int(rng.integers(1, elements + 1))
    if ndim > 1 and rng.random() < 0.05:
        shape[axis - 1] = 0
    count = int(rng.integers(0, 1 + min(elements, 2 * shape[axis])))
    indices = rng.integers(0, shape[axis], count)
    how = rng.random()
    if how < 0.3:
        indices = np.unique(indices)
    elif how < 0.5:
        indices = np.sort(indices)
    elif how < 0.7:
        length = int(rng.integers(1, shape[axis] + 1))
        indices = np.arange(shape[axis] % length, shape[axis], length)
    return values(rng, dtype, tuple(shape)), axis, indices


def values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a dtype: integers of all bits; floats whose sums are inexact, some of them special."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found: Any = rng.standard_normal(shape)
    if dtype in COMPLEX:
        return (found + 1j * rng.standard_normal(shape)).astype(dtype)
    share = float(rng.choice([0, 0, 0.05, 0.7]))
    found = np.where(rng.random(shape) < share, rng.choice(SPECIAL, shape), found)
    return found.astype(np.float32).astype(dtype_of(dtype)) if dtype != "float64" else found


def laid_out(rng: np.random.Generator, host: np.ndarray, device: Any) -> Any:
    """The same elements on a device: permuted, with gaps or reversed, or repeated along an axis if they are equal."""
    order = tuple(int(axis) for axis in rng.permutation(host.ndim))
    step = int(rng.choice([1, 1, 2, -1]))
    wide = np.repeat(host.transpose(order), abs(step), axis=-1)[..., :: -1 if step < 0 else 1]
    whole = ta.asarray(np.ascontiguousarray(wide), device=device)
    return ta.permute_dims(whole, tuple(np.argsort(order)))[
        tuple(slice(None, None, step if axis == order[-1] else 1) for axis in range(host.ndim))
    ]


def segments(x: np.ndarray, indices: np.ndarray, axis: int) -> list[np.ndarray]:
    """The elements of each segment, along the first axis, by NumPy's definition."""
    lines, stops = np.moveaxis(x, axis, 0), [*indices[1:], x.shape[axis]]
    return [lines[start : max(start + 1, stop)] for start, stop in zip(indices, stops)]


def expected(name: str, x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """The results: sums and products in their accumulators, of zeros the right one, all else by rows on the host."""
    parts = segments(x, indices, axis)
    with np.errstate(all="ignore"):
        found = [_of_segment(name, part) for part in parts]
    if not found:
        lines = np.moveaxis(x, axis, 0)[:1]
        return np.moveaxis(_of_segment(name, lines)[None][:0], 0, axis)
    return np.moveaxis(np.stack(found), 0, axis)


def _of_segment(name: str, part: np.ndarray) -> np.ndarray:
    if name.startswith("logical"):
        return functools.reduce(getattr(np, name), part.astype(bool))
    if part.dtype.kind in "biu" and name in ("add", "multiply", "maximum", "minimum"):
        return getattr(np, name).reduce(part, axis=0)  # integers become int64 or uint64
    if name in ("maximum", "minimum"):
        return _extreme(name, part.astype(np.float64)).astype(part.dtype)
    if name in ("add", "multiply"):
        wide = [row.astype(WIDE[part.dtype.name]) for row in part]
        step = _product if name == "multiply" and part.dtype.kind == "c" else getattr(np, name)
        return np.asarray(functools.reduce(step, wide)).astype(part.dtype)
    rows = [ta.asarray(row.copy(), device="cpu") for row in part]
    dtype = getattr(ta, name)(rows[0], rows[0]).dtype
    return ta.to_numpy(functools.reduce(getattr(ta, name), [row.astype(dtype) for row in rows]))


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = np.empty_like(x)
    found.real = x.real * y.real - x.imag * y.imag
    found.imag = x.real * y.imag + x.imag * y.real
    return found


def _extreme(name: str, part: np.ndarray) -> np.ndarray:
    found = getattr(np, name).reduce(part, axis=0)
    negative = np.all(np.signbit(part), axis=0) if name == "maximum" else np.any(np.signbit(part), axis=0)
    return np.where(found == 0, np.where(negative, -0.0, 0.0), found)


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether dtypes, shapes and all bits are the same, but those of NaN."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    if ours.dtype.kind in "biu":
        return bits(ours) == bits(theirs)
    kind = np.complex128 if ours.dtype.kind == "c" else np.float64
    one, other = (np.ascontiguousarray(x.astype(kind)).view(np.float64) for x in (ours, theirs))
    one, other = (np.where(np.isnan(x), np.nan, x) for x in (one, other))
    return bits(one) == bits(other)


def check_reduceat(device: Any, seed: int, count: int, elements: int) -> None:
    """Compare drawn calls, bit for bit."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        host, axis, indices = drawn(rng, elements)
        kind = {"u": "i", "V": "f"}.get(host.dtype.kind, host.dtype.kind)
        name = str(rng.choice(NAMES[kind]))
        x = laid_out(rng, host, device)
        given: Any = indices.astype(rng.choice(INTEGERS)) if indices.size and indices.max() < 128 else indices
        way = int(rng.integers(0, 4))
        given = (
            given.tolist()
            if way == 0
            else given
            if way == 1
            else ta.asarray(given, device=device if way == 2 else "cpu")
        )
        told = f"#{number} {name}.reduceat {host.dtype} {host.shape} axis {axis} at {indices.tolist()}"
        want = expected(name, host, indices, axis)
        found = getattr(ta, name).reduceat(x, given, axis - host.ndim * int(rng.integers(0, 2)))
        assert found.device == x.device, told
        assert ta.to_numpy(found).flags.c_contiguous, f"{told}: {found.strides}"
        assert same(ta.to_numpy(found), want), f"{told}: {ta.to_numpy(found)} {want}"
        assert same(ta.to_numpy(x), host), told
        if rng.random() < 0.2:
            out = ta.zeros(want.shape, dtype=want.dtype, device=device)
            assert getattr(ta, name).reduceat(x, given, axis, None, out) is out, told
            assert same(ta.to_numpy(out), want), told


def check_waits(device: Any) -> None:
    """The host reads indices that are on the device, once; and neither reads nor sorts anything else."""
    backend = ta.zeros(1, device=device).device.backend
    readings, reads, checks = [], type(backend).to_numpy, type(backend.index_errors).read

    def reading(self: Any, *args: Any, **options: Any) -> Any:
        readings.append("elements")
        return reads(self, *args, **options)

    def checking(self: Any, *args: Any, **options: Any) -> Any:
        readings.append("check")
        return checks(self, *args, **options)

    with (
        patch.object(type(backend), "to_numpy", reading),
        patch.object(type(backend.index_errors), "read", checking),
        patch.object(fold, "order_of_rows", None),
        patch.object(fold, "words_in_order", None),
    ):
        for x in (np.arange(40.0), np.arange(40), np.arange(40, dtype=np.int8), np.arange(40.0).reshape(20, 2)):
            there = ta.asarray(x, device=device)
            for indices in ([0, 7, 9], [5, 2, 11], [0, 5, 10, 15], []):
                for name in ("add", "maximum", "subtract"):
                    getattr(ta, name).reduceat(there, indices)
                    assert readings == [], (x.dtype, indices, name)
                    getattr(ta, name).reduceat(there, ta.asarray(indices, dtype="int64", device=device))
                    assert readings == ["elements"], (x.dtype, indices, name)
                    readings.clear()


def check_overlaps(device: Any) -> None:
    """Segments that overlap are gathered in parts, so that memory does not grow as their sum."""
    rng = np.random.default_rng(8)
    with patch.object(ufunc_reduceat, "LEAST_AT_ONCE", 1):
        for name in ("add", "subtract", "maximum", "multiply"):
            for shape, axis in (((50,), 0), ((2, 31), 1)):
                host, indices = rng.standard_normal(shape), rng.integers(0, shape[axis], 60)
                found = getattr(ta, name).reduceat(ta.asarray(host, device=device), indices, axis)
                assert same(ta.to_numpy(found), expected(name, host, indices, axis)), (name, shape)


def check_refusals(device: Any) -> None:
    """Indices outside the axis raise whatever `set_index_check` says, and nothing is written."""
    x, out = ta.asarray([1.0, 2.0, 4.0], device=device), ta.zeros(2, device=device)
    for mode in ("raise", "deferred", "clip"):
        ta.set_index_check(mode)
        try:
            for bad in ([0, 3], [-1, 0], np.array([0, 2**64 - 1], np.uint64)):
                for indices in (bad, ta.asarray(bad, device=device)):
                    with pytest.raises(ta.IndexingError, match=r"^add.reduceat: .* in 0 <= i < 3, .* got"):
                        ta.add.reduceat(x, indices, out=out)
        finally:
            ta.set_index_check("raise")
    assert out.tolist() == [0, 0]
