"""Ops that are applied at indices, on drawn arrays, against NumPy's ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta
from support.oracles.formats import dtype_of
from support.oracles.indexing import bits

INTEGERS = ("bool", "int8", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn")
INDICES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
IN_ANY_ORDER = ("add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
OF_BOOLS = ("add", "multiply", "logical_or", "logical_and", "logical_xor", "bitwise_xor", "maximum")
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0)


def _shape(rng: np.random.Generator, elements: int) -> tuple[int, ...]:
    axes = int(rng.integers(1, 4))
    return tuple([int(rng.integers(1, max(2, round(elements ** (1 / axes)) + 1))) for _ in range(axes)])


def _values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values in a dtype: of all bits for integers, with infinities and NaN of both signs for floats."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found = rng.integers(-60, 60, shape) / 4
    special = rng.random(shape) < 0.1
    found = np.where(special, rng.choice(SPECIAL, shape), found)
    return found.astype(np.float32).astype(dtype_of(dtype))


def _layout(rng: np.random.Generator, host: np.ndarray, device: Any) -> tuple[np.ndarray, Any, Any]:
    """A view of a copy of values on the host and on a device, and all memory of the latter: permuted, with gaps."""
    order = tuple(rng.permutation(host.ndim))
    step = int(rng.choice([1, 2, -1]))
    wide = np.zeros([size * abs(step) for size in host.shape], host.dtype).transpose(order)
    whole = ta.asarray(np.ascontiguousarray(wide), device=device)
    back = tuple(np.argsort(order))
    view = np.ascontiguousarray(wide).transpose(back)[(slice(None, None, step),) * host.ndim]
    ours = ta.permute_dims(whole, back)[(slice(None, None, step),) * host.ndim]
    view[...] = host
    ours[...] = ta.asarray(host, device=device)
    return view, ours, whole


def _key(rng: np.random.Generator, shape: tuple[int, ...], device: Any) -> tuple[Any, Any]:
    """A key with one or several index arrays that repeat and count from the end, which broadcast; or a mask."""
    if rng.random() < 0.1:
        mask = rng.random(shape) < 0.5
        return mask, ta.asarray(mask, device=device)
    count = int(rng.integers(1, len(shape) + 1))
    common = tuple(int(size) for size in rng.integers(1, 12, int(rng.integers(1, 3))))
    theirs: list[Any] = []
    ours: list[Any] = []
    for axis in range(count):
        name = str(rng.choice(INDICES))
        extent = min(shape[axis], 120)
        low = 0 if name.startswith("u") else -extent
        size = tuple(1 if rng.random() < 0.2 else each for each in common)
        index = rng.integers(low, extent, size).astype(name)
        if rng.random() < 0.3:
            index = index.transpose()
            given = ta.asarray(np.ascontiguousarray(index.T), device=device).T
        else:
            given = ta.asarray(index, device=device)
        theirs.append(index.astype(np.int64))
        ours.append(given)
    try:
        np.broadcast_shapes(*[each.shape for each in theirs])
    except ValueError:
        return theirs[0], ours[0]
    if count < len(shape) and rng.random() < 0.3:
        theirs.insert(0, slice(None, None, -1))
        ours.insert(0, slice(None, None, -1))
        theirs[1] %= shape[1]
        for place in range(1, len(theirs)):
            theirs[place] = theirs[place] % min(shape[place], 120)
            ours[place] = ta.asarray(theirs[place], device=device)
    return tuple(theirs), tuple(ours)


def _in_numpy(name: str, host: np.ndarray, key: Any, values: Any) -> None:
    """Apply NumPy's ufunc; floats that NumPy does not have are compared in float32."""
    if (host.dtype.kind in "biuf" and host.dtype.itemsize > 1) or host.dtype.kind in "biu":
        getattr(np, name).at(host, key, values)
        return
    wide = host.astype(np.float32)
    getattr(np, name).at(wide, key, np.asarray(values, np.float32))
    host[...] = wide.astype(host.dtype)


def _same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether all bits are the same, but those of NaN."""
    if ours.dtype.kind in "biu":
        return bits(ours) == bits(theirs)
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    return np.array_equal(ours, theirs, equal_nan=True)


def check_at(device: Any, seed: int, count: int, elements: int) -> None:
    """Compare ops of which the order does not matter, applied at indices, with NumPy's."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        dtype = str(rng.choice(INTEGERS + FLOATS))
        names = OF_BOOLS if dtype == "bool" else IN_ANY_ORDER if dtype in INTEGERS else ("maximum", "minimum")
        name, shape = str(rng.choice(names)), _shape(rng, elements)
        host, ours, whole = _layout(rng, _values(rng, dtype, shape), device)
        key, there = _key(rng, shape, device)
        selected = np.empty(shape)[key].shape
        if rng.random() < 0.2:
            value: Any = _values(rng, dtype, (1,))[0]
            value = value.astype(np.float32).item() if dtype in FLOATS else value.item()
            given = value
        else:
            size = tuple(1 if rng.random() < 0.2 else each for each in selected)
            value = _values(rng, dtype, size)
            given = ta.asarray(value, device=device)
        before = ta.to_numpy(whole).size
        with np.errstate(all="ignore"):
            _in_numpy(name, host, key, np.asarray(value, dtype_of(dtype)))
        getattr(ta, name).at(ours, there, given)
        told = f"#{number} {name}.at {dtype} {shape} {ours.strides} {selected}"
        assert _same(ta.to_numpy(ours), host), told
        gaps = before - host.size
        if gaps:
            assert not np.any(ta.to_numpy(whole).astype(np.float32) != 0) or _same(ta.to_numpy(ours), host), told


def check_wraps_and_kinds(device: Any) -> None:
    """Integers wrap; wider operands are wrapped first; numbers take the dtype of the target; views keep their gaps."""
    counts = ta.zeros(3, dtype="int8", device=device)
    index = ta.asarray([0, 0, -1], device=device)
    ta.add.at(counts, index, 100)
    assert counts.tolist() == [-56, 0, 100]
    ta.add.at(counts, index, ta.asarray([2**40 + 1, 1, 3], device=device))
    assert counts.tolist() == [-54, 0, 103]
    ta.add.at(counts, [1, 1], 4)
    ta.add.at(counts, slice(1, None), 1)
    ta.add.at(counts, 0, 1)
    assert counts.tolist() == [-53, 9, 104]
    ta.add.at(counts, ta.asarray([], dtype="int64", device=device), 1)
    ta.negative.at(counts, slice(None))
    assert counts.tolist() == [53, -9, -104]
    x = ta.arange(6, device=device)
    ta.add.at(x, x[:3], x[3:])  # the target is the index, and the values as well
    assert x.tolist() == [3, 5, 7, 3, 4, 5]
    matrix = ta.zeros((3, 4), dtype="int32", device=device)
    ta.add.at(
        matrix[:, ::2], (slice(None), ta.asarray([1, 1], device=device)), ta.asarray([[1], [2], [3]], device=device)
    )
    assert matrix.tolist() == [[0, 0, 2, 0], [0, 0, 4, 0], [0, 0, 6, 0]]


def check_errors_of_at(device: Any) -> None:
    """Indices outside, operands that do not fit, and ops of which the order matters; nothing is written."""
    x = ta.zeros(4, dtype="int32", device=device)
    index = ta.asarray([0, 4], device=device)
    for act, error, message in (
        (lambda: ta.add.at(x, index, 1), ta.IndexingError, r"index 4 is out of bounds|got 4"),
        (lambda: ta.add.at(x, [0, -5], 1), ta.IndexingError, r"got -5"),
        (lambda: ta.add.at(x, [0, 1], [1, 2, 3]), ta.BroadcastError, "broadcast"),
        (lambda: ta.add.at(x, [0, 1], 2**40), ta.ScalarOverflowError, "int32"),
        (lambda: ta.add.at(x, [0, 1], 1, mode="fast"), ta.OperandError, r"add.at: expected a mode, got 'fast'"),
        (lambda: ta.add.at(x, [0, 1], ta.ones(2, device="cpu")), ta.DeviceError, "cpu"),
    ):
        with pytest.raises(error, match=message):
            act()
    assert x.tolist() == [0, 0, 0, 0]


def check_atomic(device: Any, size: int) -> None:
    """Floats and complex numbers that are added in any order: their sums are close to exact ones."""
    rng = np.random.default_rng(size)
    places = rng.integers(-7, 7, size)
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128"):
        values = rng.integers(-8, 8, size) / 8 + (1j if dtype.startswith("complex") else 0)
        exact = np.zeros(7, np.complex128)
        np.add.at(exact, places, values)
        x = ta.zeros((7, 2), dtype=dtype, device=device)[:, 1]
        given = ta.asarray(values, device=device).astype(dtype)
        ta.add.at(x, ta.asarray(places, device=device), given, mode="atomic")
        found = ta.to_numpy(x).astype(np.complex128)
        eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 2.0**-20)
        np.testing.assert_allclose(found, exact, atol=eps * np.abs(values).sum())


def check_wide_rows_at(device: Any) -> None:
    """Blocks of every schedule count each element once: rows, columns and planes that repeat, in all orders."""
    rng = np.random.default_rng(4)
    for dtype in ("int32", "int64", "float16"):
        for shape, order in (((700, 40), (0, 1)), ((700, 40), (1, 0)), ((5, 60, 33), (2, 0, 1)), ((1100, 601), (1, 0))):
            values = rng.integers(0, 3, shape).astype(dtype)
            dense = ta.asarray(np.ascontiguousarray(values.transpose(order)), device=device)
            given = ta.permute_dims(dense, tuple(np.argsort(order).tolist()))
            for axis in range(len(shape)):
                index = rng.integers(0, 4, shape[axis])
                size = (*shape[:axis], 4, *shape[axis + 1 :])
                host, ours = np.zeros(size, dtype), ta.zeros(size, dtype=dtype, device=device)
                key = (*[slice(None)] * axis, index)
                np.add.at(host, key, values)
                ta.add.at(ours, (*key[:-1], ta.asarray(index, device=device)), given, mode="atomic")
                assert bits(ta.to_numpy(ours)) == bits(host), (dtype, shape, order, axis)


ORDERED = {
    "float": ("add", "subtract", "multiply", "divide", "copysign", "negative", "logical_or"),
    "int": ("multiply", "subtract", "floor_divide", "bitwise_left_shift", "logical_and", "negative", "bitwise_invert"),
    "bool": ("logical_not", "logical_xor", "bitwise_invert"),
    "complex": ("add", "multiply", "subtract", "negative"),
}
BY_NUMPY = ("add", "subtract", "multiply", "negative", "floor_divide", "bitwise_invert", "logical_not", "logical_xor")


def check_ordered(device: Any, seed: int, count: int, elements: int) -> None:
    """Compare ops of which the order matters with the host's, bit for bit, and the host's with NumPy's."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        dtype = str(rng.choice(("bool", "int8", "uint16", "int64", "complex64", "complex128", *FLOATS * 2)))
        kind = next(
            (each for each in ("bool", "complex") if dtype.startswith(each)), "int" if dtype in INTEGERS else "float"
        )
        name, shape = str(rng.choice(ORDERED[kind])), _shape(rng, elements)
        start = _plain(rng, dtype, shape)
        host, ours, _ = _layout(rng, start, device)
        theirs = ta.asarray(host, device="cpu", copy=True)
        key, there = _key(rng, shape, device)
        selected = np.empty(shape)[key].shape
        value: Any = _plain(rng, dtype, tuple(1 if rng.random() < 0.2 else each for each in selected))
        given = [value] if name not in ("negative", "bitwise_invert", "logical_not") else []
        if given and kind == "float" and rng.random() < 0.2:
            given = [float(rng.integers(1, 9)) / 4]
        getattr(ta, name).at(theirs, key, *given)
        moved = [ta.asarray(each, device=device) if each is value else each for each in given]
        getattr(ta, name).at(ours, there, *moved)
        told = f"#{number} {name}.at {dtype} {shape} {ours.strides} {selected}"
        assert bits(ta.to_numpy(ours)) == bits(ta.to_numpy(theirs)), told
        if name in BY_NUMPY and dtype in ("float32", "float64", "int64", "complex128"):
            numpys = np.invert if name == "bitwise_invert" else getattr(np, name)
            numpys.at(host, key, *given)
            assert bits(ta.to_numpy(ours)) == bits(host), told


def _plain(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values without 0, infinities or NaN, whose sums are inexact in the narrower floats."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    found = rng.integers(1, 8, shape) + (0 if dtype in INTEGERS else rng.random(shape))
    if dtype.startswith("complex"):
        return (found - 1j * rng.random(shape)).astype(dtype)
    return found.astype(np.float32).astype(dtype_of(dtype))


def check_order(device: Any) -> None:
    """Sums are those of the order of indices: of one place, of wider values, of columns, and in every run of a size."""
    rng = np.random.default_rng(6)
    for size in (1, 2, 7, 8, 9, 130, 1000):
        values = rng.standard_normal(size).astype(np.float32)
        for places in (np.zeros(size, np.int64), rng.integers(0, 3, size), np.arange(size)[::-1] // 8 - 3):
            host = np.ones(4 + size, np.float32)
            np.add.at(host, places, values)
            x = ta.ones(4 + size, dtype="float32", device=device)
            ta.add.at(x, ta.asarray(places, device=device), ta.asarray(values, device=device))
            assert bits(ta.to_numpy(x)) == bits(host), (size, places[:3])
    for size, bins in ((96, 3), (97, 3), (3000, 7), (5000, 40_000), (20_000, 9_000)):  # long runs; several digits
        values, places = rng.standard_normal(size).astype(np.float32), rng.integers(-bins, bins, size)
        host = np.zeros(bins, np.float32)
        np.add.at(host, places, values)
        x = ta.zeros(bins, dtype="float32", device=device)
        ta.add.at(x, ta.asarray(places, device=device), ta.asarray(values, device=device))
        assert bits(ta.to_numpy(x)) == bits(host), (size, bins)
    rows, given = rng.integers(0, 4, 200), rng.standard_normal((200, 300))
    for dtype in ("float32", "bfloat16"):
        host = ta.zeros((4, 300), dtype=dtype, device="cpu")
        x = ta.zeros((4, 300), dtype=dtype, device=device)
        ta.add.at(host, rows, ta.asarray(given, device="cpu"))  # each step is computed in float64
        ta.add.at(x, ta.asarray(rows, device=device), ta.asarray(given, device=device))
        assert bits(ta.to_numpy(x)) == bits(ta.to_numpy(host))
    with pytest.raises(ta.DTypeError, match="can store the float32 result"):
        ta.add.at(ta.zeros(3, dtype="int8", device=device), [0, 0], 1.5)
    with pytest.raises(ta.IndexingError):
        ta.add.at(ta.zeros(3, device=device), [0, 3], 1.5)
    empty = ta.zeros((3, 0), device=device)
    ta.add.at(empty, [0, 1], 1.5)
    ta.multiply.at(ta.zeros(3, device=device), [], 1.5)


def check_known_calls(device: Any) -> None:
    """A call that is known follows its elements, its checks, the mode of the checks, and the semantics."""
    rng = np.random.default_rng(11)
    for name, dtype, options in (
        ("add", "float32", {"mode": "atomic"}),
        ("maximum", "float16", {}),
        ("add", "complex64", {"mode": "atomic"}),
        ("subtract", "float32", {}),
        ("multiply", "int8", {}),
    ):
        for shape, part in (((9,), 9), ((9, 3), (9, 3)), ((9, 3), 3)):
            for _ in range(3):
                start, index = _plain(rng, dtype, shape), rng.integers(-9, 9, 9)
                values = np.round(_plain(rng, dtype, (9,) if part == 9 else (9, 3) if part != 3 else (3,)))
                host, ours = (ta.asarray(start, device=place, copy=True) for place in ("cpu", device))
                getattr(ta, name).at(host, index, ta.asarray(values, dtype=dtype, device="cpu"))
                there = ta.asarray(index, device=device)
                getattr(ta, name).at(ours, there, ta.asarray(values, dtype=dtype, device=device), **options)
                found, exact = (ta.to_numpy(x).astype(np.complex128) for x in (ours, host))
                np.testing.assert_allclose(found, exact, rtol=1e-6)
            wrong = ta.asarray(np.where(np.arange(9) == 4, 9, index), device=device)
            for _ in range(2):
                with pytest.raises(ta.IndexingError, match="for axis 0 of the selected view, got 9"):
                    getattr(ta, name).at(ours, wrong, ta.asarray(values, dtype=dtype, device=device), **options)
            assert bits(ta.to_numpy(ours).astype(np.complex128)) == bits(found), "nothing is written"
    places = ta.asarray([0, 5, 0], device=device)
    for name in ("maximum", "copysign"):
        x = ta.zeros(3, device=device)
        for _ in range(2):
            with pytest.raises(ta.IndexingError, match="got 5"):
                getattr(ta, name).at(x, places, 1.0)
            ta.set_index_check("clip")
            try:
                getattr(ta, name).at(x, places, 1.0)
            finally:
                ta.set_index_check("raise")
    x, places = ta.zeros(3, dtype="int32", device=device), ta.asarray([0, 2, 0], device=device)
    for _ in range(2):
        ta.floor_divide.at(x, places, -2)
        x[...] = 7
        ta.floor_divide.at(x, places, -2)
        assert x.tolist() == [2, 7, -4]
        with ta.semantics("triton"):
            x[...] = 7
            ta.floor_divide.at(x, places, -2)
            assert x.tolist() == [1, 7, -3]
        unsigned = ta.asarray([9, 2**32 - 1, 5], dtype="uint32", device=device)
        x[...] = 7
        ta.maximum.at(x, places, 8)
        ta.maximum.at(x, places, unsigned)  # compared as int64, in their order
        assert x.tolist() == [9, 7, -1]
        ta.add.at(x, places, unsigned)
        assert x.tolist() == [23, 7, -2]
        with ta.semantics("torch"), pytest.raises(ta.PromotionError):
            ta.add.at(x, places, unsigned)
        with pytest.raises(ta.DTypeError):
            ta.maximum.at(x, places, 1.5)
        with pytest.raises(ta.ScalarOverflowError, match="int32"):
            ta.multiply.at(x, places, 2**40)
        with pytest.raises(ta.DTypeError):
            ta.multiply.at(x, places, 1.5)


def check_many_at_few(device: Any) -> None:
    """Many more indices than elements of a target of one axis: the host's bits, whose order is that of the indices."""
    from tilearray.functions.indexing import fold

    least, fold.LEAST_PLACES = fold.LEAST_PLACES, 1
    fold._FOLDS.clear()
    try:
        _compare_many_at_few(device)
    finally:
        fold.LEAST_PLACES = least
        fold._FOLDS.clear()


def check_long_runs(device: Any) -> None:
    """The same where elements of few find long runs of places that are sorted with the values."""
    from tilearray.functions.indexing import fold

    whole, fold.WHOLE_RUNS = fold.WHOLE_RUNS, 16
    fold._FOLDS.clear()
    try:
        _compare_many_at_few(device, 3, 900)
        _compare_lengths(device)
    finally:
        fold.WHOLE_RUNS = whole
        fold._FOLDS.clear()


def _compare_lengths(device: Any) -> None:
    """Runs of every number of blocks and of a rest, also of places that are in order."""
    rng = np.random.default_rng(11)
    for longest in (1, 17, 95, 96, 97, 193):  # values are read 48 ahead, 16 at the end
        index = np.concatenate([np.full(longest, 2), np.repeat([0, 4], 40)])
        rng.shuffle(index)
        weights = rng.standard_normal(index.size) * 10.0 ** rng.integers(-9, 9, index.size)
        places, given = (ta.asarray(each, device=device) for each in (index, weights))
        assert bits(ta.to_numpy(ta.bincount(places, given, 5))) == bits(np.bincount(index, weights, 5)), longest
        host, ours = (ta.zeros(5, dtype="float64", device=where) for where in ("cpu", device))
        for x, at, values in ((host, np.sort(index), weights), (ours, ta.sort(places), given)):
            ta.add.at(x[::-1], at, values)
            ta.multiply.at(x, at, 1.0625)
        assert bits(ta.to_numpy(ours)) == bits(ta.to_numpy(host)), longest


def _compare_many_at_few(device: Any, most: int = 300, least: int = 4200) -> None:
    rng = np.random.default_rng(9)
    for dtype, name, places in (
        ("float32", "add", 33), ("float64", "subtract", 300), ("bfloat16", "multiply", 131), ("float16", "add", 257),
        ("complex64", "add", 32), ("complex128", "multiply", 99), ("int8", "multiply", 99), ("bool", "logical_xor", 90),
        ("float32", "negative", 260), ("float64", "divide", 64), ("float8_e4m3fn", "add", 128),
    ):  # fmt: skip
        places = min(places, most)
        size = max(least, 17 * places)
        index = rng.integers(-places, places, (2, size // 2))
        start, values = _plain(rng, dtype, (2 * places,)), _plain(rng, dtype, (size // 2, 2))
        number = True if dtype == "bool" else 3
        forms: list[Any] = [()] if name == "negative" else [(values.T,), (values[:, :1].T,), (number,)]
        for given in forms:
            host, ours = (ta.asarray(start, device=place, copy=True)[::-2] for place in ("cpu", device))
            there = [ta.asarray(each, device=device) if isinstance(each, np.ndarray) else each for each in given]
            getattr(ta, name).at(host, index, *given)
            getattr(ta, name).at(ours, ta.asarray(index, device=device), *there)
            assert bits(ta.to_numpy(ours)) == bits(ta.to_numpy(host)), (dtype, name, places)
    with pytest.raises(ta.IndexingError):
        ta.add.at(ta.zeros(3, device=device), ta.asarray(np.arange(5000) % 4, device=device), 1.5)
    index, weights = rng.integers(0, 99, 5000), rng.standard_normal(5000)
    for dtype in ("int64", "int16", "uint64"):
        found = ta.bincount(ta.asarray(index.astype(dtype), device=device), ta.asarray(weights, device=device))
        assert bits(ta.to_numpy(found)) == bits(np.bincount(index, weights)), dtype
    with pytest.raises(ta.ShapeError, match="no negative integers, got -4"):
        ta.bincount(ta.asarray(np.array([3, -4, -1], np.int8), device=device))


def check_atomic_weights(device: Any) -> None:
    """Weights of any dtype that are added to copies of few places, and to many places, are those that NumPy adds."""
    from tilearray.numpy_names import counting

    rng, before = np.random.default_rng(10), (counting.SPREAD, counting.LEAST_COPIES)
    counting.LEAST_COPIES = 2
    try:
        for bins, counting.SPREAD in ((1, 1000), (7, 1000), (300, 4000), (5000, 4000), (100, 10**6)):
            places, weights = rng.integers(0, bins, 4200), rng.integers(-9, 9, 4200)
            for dtype, kind in (("int64", "float64"), ("uint16", "float32"), ("int32", "int16"), ("uint64", "bool")):
                given = weights.astype(kind)
                x, w = (ta.asarray(each, device=device) for each in (places.astype(dtype)[::-1], given[::-1]))
                found = ta.bincount(x, w, bins, mode="atomic")
                np.testing.assert_array_equal(ta.to_numpy(found), np.bincount(places, given, bins))
    finally:
        counting.SPREAD, counting.LEAST_COPIES = before
