"""Matrix products, tensor products and Einstein sums against exact ones, for any device."""

from __future__ import annotations

import random

import numpy as np

import tilearray as ta
from support.oracles.formats import dtype_of
from tilearray import dtypes

NARROW = ("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")
OTHERS = ("int16", "int32", "uint64", "int64", "complex64", "complex128")
EINSUMS = (
    "ij,jk->ik", "ij,jk,kl", "...ij,...jk->...ik", "bij,bjk->bik", "ii->i", "iij->j", "ij->", "i,j->ij", "ij,ij->",
    "ijk->kij", "bhqd,bhkd->bhqk", "i,i,i->i", "ij,kj->ki", "a...,b...->ab...", "ij->ji",
    "bi,bj->bij", "ij,ji->ij", "abi,bcj->cjiab", "ii,j->ji", "bi,bj,bk->kbij", ",ij->ji",
)  # fmt: skip


def operand(rng: random.Random, name: str, shape: tuple[int, ...], device: object) -> tuple[np.ndarray, ta.Array]:
    """Small integers as float64 or complex128, in an array of a dtype and of some layout."""
    low, high = (0, 2) if name == "bool" else (0, 4) if name.startswith("u") else (-2, 4)
    given = np.random.default_rng(rng.randrange(2**31))
    wide = [rng.choice((1, 1, 1, 2)) * size + 3 for size in shape]
    order = list(range(len(shape)))
    rng.shuffle(order)
    values = given.integers(low, high, [wide[axis] for axis in order]).astype("float64")
    if name.startswith("complex"):
        values = values + 1j * given.integers(low, high, values.shape)
    x = ta.astype(ta.asarray(values.astype("complex128" if "complex" in name else "float64"), device=device), name)
    back = tuple(order.index(axis) for axis in range(len(shape)))
    keys: list[slice] = []
    for axis, size in enumerate(shape):
        start, step = rng.choice((0, 1, 3)), rng.choice((1, 1, 2, -1))
        if step == 2 and wide[axis] < start + 2 * size:
            step = 1
        end = start + step * size
        keys.append(slice(start, end, step) if step > 0 else slice(start + size - 1, None, -1))
        if step < 0:
            keys[-1] = slice(start + size - 1, start - 1 if start else None, -1)
        if not size:
            keys[-1] = slice(0, 0)
    view, exact = ta.permute_dims(x, back), np.transpose(values, back)
    if rng.random() < 0.4:  # dense, so that whole blocks are read without masks
        return exact[tuple(keys)], ta.asarray(view[tuple(keys)], copy=True)
    return exact[tuple(keys)], view[tuple(keys)]


def rounded(exact: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Exact integers in a dtype: integers wrap, bools are truths, floats are rounded once."""
    kind = dtypes.info(dtype).kind
    if kind in ("int", "uint"):
        return np.asarray(exact).astype("int64").astype(dtype)
    return np.asarray(exact) != 0 if kind == "bool" else np.asarray(exact).astype(dtype)


def check(found: ta.Array, exact: np.ndarray, told: object) -> None:
    """The exact result, rounded once."""
    wanted = rounded(exact, found.dtype)
    assert found.shape == wanted.shape, told
    given = ta.to_numpy(found)
    wrong = (given != wanted) & ((given == given) | (wanted == wanted))  # beyond the largest float8_e4m3fn is NaN
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{told}: {wrong.sum()} of {wrong.size} wrong, at {place} {given[place]} instead of {wanted[place]}"
        )


def check_products(device: object, seed: int, count: int, most: int) -> None:
    """Matrix products of drawn shapes, dtypes and layouts."""
    rng = random.Random(seed)
    for case in range(count):
        name = rng.choice(NARROW if case % 4 else OTHERS)
        second = name if rng.random() < 0.7 else rng.choice(("int8", "float16", "float32", "bool"))
        sizes = [rng.choice((0, 1, 2, 5, 16, 17, 33, 64, 65, 130, most)) for _ in range(3)]
        sizes = [min(size, most) for size in sizes]
        stack = [rng.choice((1, 2, 3)) for _ in range(rng.choice((0, 0, 1, 2)))]
        ones = [size if rng.random() < 0.7 else 1 for size in stack]
        first = (*stack, sizes[0], sizes[1])
        last = (*ones[rng.randrange(len(stack) + 1) :], sizes[1], sizes[2])
        if rng.random() < 0.15:
            first, last = rng.choice((((sizes[1],), last), (first, (sizes[1],)), ((sizes[1],), (sizes[1],))))
        exact1, x1 = operand(rng, name, first, device)
        exact2, x2 = operand(rng, second, last, device)
        told = case, name, second, first, last
        try:
            found = ta.matmul(x1, x2)
        except ta.PromotionError:
            continue
        check(found, exact1 @ exact2, told)
        if case % 5 == 0 and len(first) > 1 and "float8" not in name:  # which cannot hold large sums
            flipped = ta.tensordot(x1, x1, axes=((0, 1), (0, 1)))
            check(flipped, np.tensordot(exact1, exact1, axes=((0, 1), (0, 1))), told)


def check_integers(device: object, seed: int, count: int, most: int) -> None:
    """Matrix products of integers of all sizes and layouts: those of Python's integers, which wrap."""
    rng = random.Random(seed)
    names = ("int16", "uint16", "int32", "uint32", "int64", "uint64")
    for case in range(count):
        name = names[case % len(names)]
        rows, depth, columns = (rng.choice((2, 3, 16, 17, 33, most)) for _ in range(3))
        stack = rng.choice(((), (2,), (2, 1)))
        shapes = (*stack, rows, depth), rng.choice(((depth, columns), (*stack[1:], 2, depth, columns)))
        given = np.random.default_rng(rng.randrange(2**31))
        info = np.iinfo(name)
        first, second = (given.integers(info.min, info.max, shape, name, endpoint=True) for shape in shapes)
        x1, x2 = (ta.asarray(each, device=device) for each in (first, second))
        if case % 3 == 0:  # another layout
            x2 = ta.asarray(x2.mT, copy=True).mT
            x1 = ta.flip(ta.flip(x1, axis=-1).copy(), axis=-1)
        wanted = (first.astype(object) @ second.astype(object)) % (1 << info.bits)
        found = ta.matmul(x1, x2)
        assert found.dtype == name
        assert (ta.to_numpy(found).astype(object) % (1 << info.bits) == wanted).all(), (case, name, shapes)


def check_scaled(device: object, seed: int, count: int, most: int, unit: float = 2.0**-24) -> None:
    """Products of quantized matrices: within the bound of sums that are rounded to a unit, of float64's products."""
    rng, given = random.Random(seed), np.random.default_rng(seed)
    axes = ((None, None), (-1, 0), (-1, None), (None, 0))
    kinds = ("float8_e4m3fn", "float8_e5m2", "int8")
    for case in range(count):
        rows, depth, columns = (rng.choice((1, 16, 17, 48, most, most)) for _ in range(3))
        kind = kinds[case % 3]
        other = kind if kind == "int8" else rng.choice(kinds[:2])
        wide1, wide2 = given.normal(size=(rows, depth)) * 3, given.normal(size=(depth, columns)) * 0.1
        x1, x2 = (ta.asarray(x.astype("float32"), device=device) for x in (wide1, wide2))
        first, second = axes[case % 4]
        block = {"block": 16} if case % 8 == 5 and depth % 16 == 0 else {}
        q1 = ta.quantize(x1, kind, axis=1 if block else first, **block)
        q2 = ta.quantize(x2.T if case % 2 else x2, other, axis=second if second is None or not case % 2 else -1)
        values2, scales2 = (q2.values.T, q2.scales.T) if case % 2 else (q2.values, q2.scales)
        name = rng.choice(("float16", "bfloat16", "float32", "float64"))
        found = ta.scaled_matmul(q1.values, values2, q1.scales, scales2, dtype=name)
        left = ta.to_numpy(q1.values).astype("float64")
        left *= np.repeat(ta.to_numpy(q1.scales).astype("float64"), 16 if block else 1, axis=1)
        right = ta.to_numpy(values2).astype("float64") * ta.to_numpy(scales2).astype("float64")
        exact, size = left @ right, np.abs(left) @ np.abs(right)
        result = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(name, 2.0**-23)
        bound = ((depth + 4) * 2.0**-24 + unit) * size + result * np.abs(exact) + 2.0**-25
        assert found.dtype.name == name
        off = np.abs(ta.to_numpy(found).astype("float64") - exact) - bound
        assert (off <= 0).all(), (case, kind, other, name, (rows, depth, columns), block, off.max())


def check_einsums(
    device: object, seed: int, count: int, names: tuple[str, ...] = ("float32", "float64", "int64", "complex64")
) -> None:
    """Einstein sums of drawn sizes."""
    rng = random.Random(seed)
    for case in range(count):
        text = EINSUMS[case % len(EINSUMS)]
        name = rng.choice(names)
        size = {letter: rng.choice((1, 2, 3, 5)) for letter in "abcdefghijklmnopqrstuvwxyz"}
        dots = tuple(rng.choice((1, 2, 4)) for _ in range(2))
        given = []
        for letters in text.partition("->")[0].split(","):
            shape = tuple(size[letter] for letter in letters if letter != ".")
            place = letters.find("...")
            given.append(operand(rng, name, shape if place < 0 else (*shape[:place], *dots, *shape[place:]), device))
        found = ta.einsum(text, *[x for _, x in given])
        check(found, np.einsum(text, *[exact for exact, _ in given]), (case, text, [x.shape for _, x in given]))


def check_rounding(device: object, seed: int) -> None:
    """Products of floats that are not exact: within the bound of a sum in any order."""
    rng = np.random.default_rng(seed)
    for name in ("float16", "bfloat16", "float32", "float64"):
        for shape in ((65, 1000, 70), (128, 4096, 256), (3, 257, 1), (1, 300, 90)):
            x1, x2 = (
                rng.normal(size=shape[:2]).astype(dtype_of(name)),
                rng.normal(size=shape[1:]).astype(dtype_of(name)),
            )
            found = ta.to_numpy(ta.asarray(x1, device=device) @ ta.asarray(x2, device=device)).astype("float64")
            wide1, wide2 = x1.astype("float64"), x2.astype("float64")
            precise, results = (2.0**-53, 2.0**-53) if name == "float64" else (2.0**-24, 2.0**-24)
            results = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(name, results)
            exact = wide1 @ wide2
            bound = (
                shape[1] * precise * (np.abs(wide1) @ np.abs(wide2)) * 1.01 + results * np.abs(exact) + 1e-7 * precise
            )
            assert (np.abs(found - exact) <= bound).all(), (name, shape, np.max(np.abs(found - exact) / bound))
