"""Join, repeat, roll, triangles and grids on the GPU, which use the kernels of assignment through views."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

DEVICE = "cuda"
NAMES = [
    *("bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"),
]
VIEWS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "sliced": lambda x: x[1::3, ::2],
    "flipped": lambda x: x[::-1, ::-1],
    "row": lambda x: x[2:3],
    "column": lambda x: x[:, 5:6],
    "empty": lambda x: x[:0],
}


def data(shape: tuple[int, ...], name: str, seed: int = 0) -> np.ndarray:
    """Return numbers of a dtype from 1 on, which float8_e8m0fnu can hold."""
    values = np.random.default_rng(seed).integers(1, 60, shape)
    if name == "bool":
        return values % 2 == 0
    return ta.to_numpy(ta.asarray(values.astype(np.float64), device="cpu").astype(name))


def both(host: np.ndarray) -> tuple[np.ndarray, ta.Array]:
    return host, ta.asarray(host, device=DEVICE, copy=True)


def check(found: ta.Array, wanted: np.ndarray, what: str = "") -> None:
    assert found.device == ta.empty(0, device=DEVICE).device
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    assert found._signature.layout.contiguous, what
    assert ta.to_numpy(found).tobytes() == wanted.tobytes(), what


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_one_array(name: str, view) -> None:
    x, y = map(view, both(data((40, 33), name)))
    for axis in (None, 0, 1):
        check(ta.repeat(y, 3, axis=axis), np.repeat(x, 3, axis), f"repeat {axis}")
        check(ta.roll(y, 7, axis=axis), np.roll(x, 7, axis), f"roll {axis}")
    check(ta.roll(y, (3, -2), axis=(0, 1)), np.roll(x, (3, -2), (0, 1)), "roll both")
    for counts in [(3,), (2, 3), (2, 1, 3), (2, 0), ()]:
        check(ta.tile(y, counts), np.tile(x, counts), f"tile {counts}")
    zero = np.array(0, np.float32).astype(x.dtype)
    for k in (-3, 0, 5, 99):
        check(ta.tril(y, k=k), np.where(np.tri(*x.shape, k, dtype=bool), x, zero), f"tril {k}")
        check(ta.triu(y, k=k), np.where(np.tri(*x.shape, k - 1, dtype=bool), zero, x), f"triu {k}")


@pytest.mark.parametrize("first", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_two_arrays(name: str, first) -> None:
    x, y = map(first, both(data((40, 33), name)))
    u, v = both(data(x.shape, name, 1))
    for axis in (None, 0, 1):
        check(ta.concat([y, v, y], axis=axis), np.concatenate([x, u, x], axis), f"concat {axis}")
    for axis in (0, 1, -1):
        check(ta.stack([y, v], axis=axis), np.stack([x, u], axis), f"stack {axis}")


@pytest.mark.parametrize("semantics", ["array-api", "triton"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("int8", "uint8"), ("bool", "int32"), ("int16", "bfloat16"), ("float16", "bfloat16"), ("float64", "complex64")],
)
def test_two_dtypes(first: str, second: str, semantics: str) -> None:
    (x, y), (u, v) = both(data((5, 7), first)), both(data((3, 7), second, 1))
    with ta.semantics(semantics):
        common = ta.promote_types(first, second)
        wanted = [ta.to_numpy(ta.asarray(host, device="cpu").astype(common)) for host in (x, u)]
        check(ta.concat([y, v]), np.concatenate(wanted))


def test_four_dimensions() -> None:
    x, y = both(data((3, 4, 5, 6), "float32"))
    x, y = x.transpose(2, 0, 3, 1)[::-1], ta.permute_dims(y, (2, 0, 3, 1))[::-1]
    check(ta.tile(y, (2, 2, 2, 2)), np.tile(x, (2, 2, 2, 2)))
    check(ta.repeat(y, 2, axis=2), np.repeat(x, 2, 2))
    check(ta.repeat(y, [2, 0, 1, 3, 1], axis=0), np.repeat(x, [2, 0, 1, 3, 1], 0))
    np.testing.assert_array_equal(ta.to_numpy(ta.diff(y, n=2, axis=1)), np.diff(x, n=2, axis=1))
    check(ta.roll(y, (1, 2, 3, 1), axis=(0, 1, 2, 3)), np.roll(x, (1, 2, 3, 1), (0, 1, 2, 3)))
    check(ta.tril(y, k=1), np.tril(x, 1))
    check(ta.concat([y, y], axis=2), np.concatenate([x, x], 2))
    check(ta.stack([y, y], axis=2), np.stack([x, x], 2))


@pytest.mark.parametrize("name", NAMES)
def test_eye(name: str) -> None:
    one, zero = (np.array(value, np.float32).astype(ta.empty(0, dtype=name, device="cpu").dtype) for value in (1, 0))
    for rows, columns, k in [(5, 5, 0), (300, 70, -100), (70, 300, 33), (3, 4, 9), (0, 3, 0), (1000, 1000, 1)]:
        wanted = np.where(np.eye(rows, columns, k, dtype=bool), one, zero)
        check(ta.eye(rows, columns, k=k, dtype=name, device=DEVICE), wanted)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing: str) -> None:
    pairs = [both(data((size,), name)) for size, name in ((200, "float32"), (33, "int8"), (5, "complex64"))]
    for count in range(4):
        found = ta.meshgrid(*[y[::-1] for _, y in pairs[:count]], indexing=indexing)
        wanted = np.meshgrid(*[x[::-1] for x, _ in pairs[:count]], indexing=indexing)
        for mine, theirs in zip(found, wanted, strict=True):
            check(mine, theirs)


def test_devices_do_not_mix() -> None:
    x, y = both(data((2, 2), "int8"))
    for join in (ta.concat, ta.stack):
        with pytest.raises(ta.DeviceError, match=r"(concat|stack): .*on cuda:0 and on cpu; move one"):
            join([y, ta.asarray(x, device="cpu")])
