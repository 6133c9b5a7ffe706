"""Selection by conditions on drawn arrays, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta
from support.oracles.indexing import bits, cast
from support.oracles.reductions import drawn_view, picks, varied_shape

DTYPES = (
    "bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
SHARES = (0.0, 0.02, 0.5, 0.5, 0.98, 1.0)


def _shape(rng: np.random.Generator, elements: int) -> tuple[int, ...]:
    """A shape of about so many elements at most, sometimes of none."""
    axes = int(rng.integers(1, 5))
    shape = [int(rng.integers(1, max(2, round(elements ** (1 / axes)) + 1))) for _ in range(axes)]
    if rng.random() < 0.06:
        shape[int(rng.integers(0, axes))] = 0
    return tuple(shape)


def _array(
    rng: np.random.Generator, device: Any, dtype: str, shape: tuple[int, ...], share: float, pick: np.random.Generator
) -> tuple[Any, Any]:
    """An array on the host and on a device in a layout that `pick` draws: values, of which a share are not 0."""
    values = rng.integers(1, 100, shape) * (rng.random(shape) < share)
    given = cast(values.astype(np.int32), dtype) if dtype != "bool" else values != 0
    state = pick.bit_generator.state
    host = drawn_view(pick, ta.asarray(given, device="cpu"))
    pick.bit_generator.state = state
    return ta.to_numpy(host), drawn_view(pick, ta.asarray(given, device=device))


def check_selections(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> None:
    """Compare ``x[mask]``, ``x[mask] = values`` and `nonzero` on a device with NumPy's, bit for bit."""
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
    """Compare one selection, its assignment, and `nonzero` with NumPy's, and return what share was selected.

    `pick` draws all that kernels depend on, and `rng` the values; with `vary` also the extents.
    """
    dtype, share, shape = str(pick.choice(DTYPES)), float(rng.choice(SHARES)), _shape(pick, elements)
    shape = varied_shape(rng, shape, least_axes=1) if vary else shape
    host, ours = _array(rng, device, dtype, shape, share, pick)
    told = f"{told} {dtype} {host.shape} {ours.strides} {share}"
    places = ta.nonzero(ours)
    for place, wanted in zip(places, np.nonzero(host), strict=True):
        assert bits(ta.to_numpy(place)) == bits(wanted), f"nonzero {told}"
    mask, condition = _mask(rng, device, host.shape, share, pick)
    told = f"{told}, a mask {mask.shape} {condition.strides}"
    selected = host[mask]
    assert bits(ta.to_numpy(ours[condition])) == bits(selected), told
    if not ours._signature.layout.overlaps_itself:
        value = cast(np.arange(selected.size, dtype=np.int32).reshape(selected.shape), dtype)
        host = host.copy()
        host[mask] = value
        ours[condition] = ta.asarray(value, device=device)
        assert bits(ta.to_numpy(ours)) == bits(host), f"assigned {told}"
    return "selecting nothing" if not mask.any() else "selecting all" if mask.all() else "selecting some"


def _mask(
    rng: np.random.Generator, device: Any, shape: tuple[int, ...], share: float, pick: np.random.Generator
) -> tuple[Any, Any]:
    """A mask over all axes of a shape or the first ones: in a layout of its own, a broadcast one, or without axes."""
    axes = len(shape) if pick.random() < 0.7 else int(pick.integers(0, len(shape) + 1))
    form = pick.choice(["dense", "transposed", "broadcast", "backwards"])
    host = rng.random(shape[:axes][::-1] if form == "transposed" else shape[:axes]) < share
    if form == "broadcast" and axes:
        host = host[(*[slice(None)] * int(pick.integers(0, axes)), slice(0, 1))]
        return np.broadcast_to(host, shape[:axes]), ta.broadcast_to(ta.asarray(host, device=device), shape[:axes])
    ours = ta.asarray(host, device=device)
    if form == "transposed":
        return host.T, ours.T
    if form == "backwards" and axes:
        return host[..., ::-1], ours[..., ::-1]
    return host, ours


def check_keys(device: Any) -> None:
    """Masks beside other parts of a key, on the host and on the device, read and written."""
    rng = np.random.default_rng(11)
    host = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    ours = ta.asarray(host, device=device)
    pair, matrix, row = rng.random(2) < 0.5, rng.random((3, 4)) < 0.5, np.array([True, False, True])
    indices = np.array([3, 0])
    for key in (
        np.s_[:, matrix], np.s_[..., matrix, 0], np.s_[0, matrix], np.s_[:, row, :, ::-2], np.s_[pair, None],
        np.s_[:, row, indices], np.s_[:, row, :, indices], np.s_[np.array(True)], np.s_[:, np.array(False)],
        np.s_[0, np.array(True), :, indices], np.s_[..., np.array(True), None], np.s_[:, row, 1],
        np.s_[np.zeros((2, 0), bool)], np.s_[np.zeros((0, 3), bool)], np.s_[0, np.zeros(0, bool)],
    ):  # fmt: skip
        parts = key if isinstance(key, tuple) else (key,)
        there = tuple([ta.asarray(part, device=device) if isinstance(part, np.ndarray) else part for part in parts])
        assert bits(ta.to_numpy(ours[there])) == bits(host[parts]), key
        assert bits(ta.to_numpy(ours[parts])) == bits(host[parts]), key
        target, wanted = ta.asarray(host.copy(), device=device), host.copy()
        target[there] = 7
        wanted[parts] = 7
        assert bits(ta.to_numpy(target)) == bits(wanted), key
    listed = ours[[True, False]]
    assert bits(ta.to_numpy(listed)) == bits(host[[True, False]])


def check_refusals(device: Any) -> None:
    """Masks of other sizes are errors that name both; nothing is written."""
    x = ta.zeros((4, 3), device=device)
    for bad in (np.ones(3, bool), np.ones((4, 2), bool), np.ones((4, 3, 1), bool)):
        for key in (bad, ta.asarray(bad, device=device), (..., ta.asarray(bad, device=device))):
            message = r"boolean|a mask (with the sizes|over the leading axes)|too many indices|at most"
            for act in (lambda key=key: x[key], lambda key=key: x.__setitem__(key, 1)):
                if isinstance(key, tuple) and bad.shape == (3,):
                    continue
                with pytest.raises((ta.IndexingError, ta.ShapeError), match=message):
                    act()
    with pytest.raises(ta.BroadcastError):
        x[x == 0] = ta.zeros(11, device=device)
    with pytest.raises((ta.BroadcastError, ta.ShapeError)):
        x[ta.zeros(0, dtype="bool", device=device)] = ta.zeros(7, device=device)
    with pytest.raises(ta.ShapeError, match=r"nonzero: expected an array with axes"):
        ta.nonzero(ta.asarray(1, device=device))
    assert not ta.to_numpy(x).any()


def check_names(device: Any) -> None:
    """Functions that are made of selections."""
    host = np.arange(24).reshape(4, 6) % 5
    x = ta.asarray(host, device=device)
    assert bits(ta.to_numpy(ta.argwhere(x))) == bits(np.argwhere(host))
    assert bits(ta.to_numpy(ta.flatnonzero(x))) == bits(np.flatnonzero(host))
    assert bits(ta.to_numpy(ta.where(x > 2)[1])) == bits(np.where(host > 2)[1])
    assert bits(ta.to_numpy(ta.extract(x > 2, x))) == bits(np.extract(host > 2, host))
    rows = ta.asarray([True, False, True, True], device=device)
    assert bits(ta.to_numpy(ta.compress(rows, x, axis=0))) == bits(host[[0, 2, 3]])
