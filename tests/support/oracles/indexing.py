"""Integer-array indexing against NumPy, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilearray as ta
from support.drawing import Draw
from support.drawn_keys import as_ours, index_arrays, keys
from support.oracles.formats import dtype_of
from tilearray.engine.caches import TwoGenerations
from tilearray.functions.indexing import gather

DTYPES = ["int16", "float32", "bool", "complex128", "complex64", "bfloat16", "float8_e4m3fn", "int64", "float64"]
SHAPES = [(5,), (3, 4), (4, 1, 3), (2, 3, 5), (0, 3), (300,), (40, 70), (2, 3, 2, 3)]


@st.composite
def sources(draw: Draw) -> tuple[np.ndarray, str]:
    """An array of different values, dense, transposed or strided, and the dtype in which it is indexed."""
    shape = draw(st.sampled_from(SHAPES))
    host = np.arange(2 * np.prod(shape, dtype=int), dtype=np.int32)
    form = draw(st.sampled_from(["dense", "transposed", "gaps", "backwards"]))
    if form == "transposed":
        host = host[: host.size // 2].reshape(shape[::-1]).T
    elif form == "dense":
        host = host[: host.size // 2].reshape(shape)
    else:
        host = host.reshape(*shape[:-1], 2 * shape[-1])[..., ::2][..., :: -1 if form == "backwards" else 1]
    return host, draw(st.sampled_from(DTYPES))


def cast(host: np.ndarray, dtype: str) -> np.ndarray:
    """The values in a dtype, at the same strides."""
    found = (host % 3 == 0) if dtype == "bool" else (host % 200).astype(np.float32).astype(dtype_of(dtype))
    base = np.empty_like(host, dtype=found.dtype)
    base[...] = found
    return base


def bits(array: np.ndarray) -> list[Any]:
    return [array.shape, array.dtype.name, np.ascontiguousarray(array).tobytes()]


def views_of(host: np.ndarray, device: Any) -> ta.Array:
    """The array on a device, strided as on the host."""
    return ta.asarray(host, device=device, copy=True) if host.dtype.kind != "V" else ta.asarray(host, device=device)


def check_gather(data: Any, device: Any) -> None:
    """``x[key]``."""
    host, dtype = data.draw(sources())
    host = cast(host, dtype)
    key = data.draw(keys(host.shape, masks=True))
    assert bits(ta.to_numpy(views_of(host, device)[as_ours(key, device)])) == bits(host[key])


def check_scatter(data: Any, device: Any) -> None:
    """``x[key] = value``: a number, or an array that names each element by its value."""
    host, dtype = data.draw(sources())
    host = cast(host, dtype)
    key = data.draw(keys(host.shape, masks=True))
    ours, target = views_of(host, device), host[key]
    ta.set_index_check(data.draw(st.sampled_from(["raise", "deferred", "clip"])))
    if data.draw(st.booleans()):
        ours[as_ours(key, device)] = 1
        host[key] = 1
        assert bits(ta.to_numpy(ours)) == bits(host)
        return
    kept = tuple(1 if data.draw(st.integers(0, 3)) == 0 else extent for extent in target.shape)
    value = cast(np.arange(np.prod(kept, dtype=int), dtype=np.int32).reshape(kept) + 50, dtype)
    ours[as_ours(key, device)] = ta.asarray(value, device=device)
    # Where an index occurs twice any of its values may stay: write positions, and look each up.
    positions = np.full(host.shape, -1)
    positions[key] = np.arange(target.size).reshape(target.shape)
    found = ta.to_numpy(ours)
    same = positions == -1
    assert bits(found[same]) == bits(host[same])
    offered: dict[int, set[bytes]] = {}
    places = np.arange(host.size).reshape(host.shape)[key].reshape(-1)
    for place, element in zip(places.tolist(), np.broadcast_to(value, target.shape).reshape(-1), strict=True):
        offered.setdefault(place, set()).add(element.tobytes())
    assert all(found.reshape(-1)[place].tobytes() in wanted for place, wanted in offered.items())


def check_take(data: Any, device: Any) -> None:
    """``take`` and ``take_along_axis``."""
    host, dtype = data.draw(sources())
    host = cast(host, dtype)
    axis = data.draw(st.integers(-host.ndim, host.ndim - 1))
    size = host.shape[axis]
    ours = views_of(host, device)
    indices = data.draw(index_arrays(size, (3, 2) if size else (2, 0)))
    indices = indices if size else indices[..., :0]
    assert bits(ta.to_numpy(ta.take(ours, ta.asarray(indices, device=device), axis=axis))) == bits(
        np.take(host, indices.astype(np.int64), axis=axis)
    )
    shape = list(host.shape)
    shape[axis] = data.draw(st.integers(1, 4)) if size else 0
    along = np.random.default_rng(1).integers(-size, max(size, 1), shape)
    assert bits(ta.to_numpy(ta.take_along_axis(ours, ta.asarray(along, device=device), axis=axis))) == bits(
        np.take_along_axis(host, along, axis=axis)
    )


PROPERTIES: dict[str, Callable[[Any, Any], None]] = {
    "gather": check_gather,
    "scatter": check_scatter,
    "take": check_take,
}


def check_property(name: str, device: Any, settings: Any) -> None:
    """Check one of the properties on a device."""

    @settings
    @given(st.data())
    def run(data: Any) -> None:
        try:
            PROPERTIES[name](data, device)
        finally:
            ta.set_index_check("raise")

    run()


def check_repeated_and_overlapping(device: Any) -> None:
    """The value may be the array itself, and the index, too, in every mode."""
    try:
        for mode in ("raise", "deferred", "clip"):
            ta.set_index_check(mode)
            _check_repeated_and_overlapping(device)
    finally:
        ta.set_index_check("raise")


def _check_repeated_and_overlapping(device: Any) -> None:
    x = ta.arange(6, device=device)
    x[ta.asarray([5, 4, 3], device=device)] = x[:3]
    assert x.tolist() == [0, 1, 2, 2, 1, 0]
    x[x[:3]] = x[3:]
    assert x.tolist() == [2, 1, 0, 2, 1, 0]
    x[ta.asarray([0, 0, 0], device=device)] = 9
    assert x.tolist() == [9, 1, 0, 2, 1, 0]
    y = ta.zeros((2, 3), dtype="float32", device=device)
    y[:, ta.asarray([2, 0], device=device)] = ta.asarray([[1], [2]], dtype="int8", device=device)
    assert y.tolist() == [[1, 0, 1], [2, 0, 2]]
    y[0, ta.asarray([2, 0], device=device)] = ta.asarray([[[3, 4]]], dtype="int8", device=device)
    assert y.tolist() == [[4, 0, 3], [2, 0, 2]]


def check_puts(device: Any) -> None:
    """NumPy's functions that write at places and masks: numbers, arrays that repeat, and views that are no runs."""
    rng = np.random.default_rng(11)
    for dtype in ("float32", "int64", "uint8"):
        host = rng.integers(0, 100, (6, 8)).astype(dtype)
        places, mask = rng.permutation(48)[:20] - 24, rng.integers(0, 2, (6, 8)).astype(bool)
        along = rng.permuted(np.tile(np.arange(-4, 4), (6, 1)), axis=1)[:, :5].copy()
        calls: list[tuple[str, tuple[Any, ...]]] = [
            ("put", (places, 7)),
            ("put", (places, host[0])),
            ("put", (places, host[:4, :5])),
            ("put", (places[:1], host[:1, :1])),
            ("put_along_axis", (along, 3, 1)),
            ("put_along_axis", (along, host[:, :5] // 2, -1)),
            ("put_along_axis", (along[:1], host[:1, 2:3], 1)),
            ("put_along_axis", (along[:, :1] + 2, host[:1], 0)),
            ("putmask", (mask, 9)),
            ("putmask", (mask.astype("int32"), 9)),
            ("putmask", (mask, host[::-1])),
            ("place", (mask, 5)),
            ("place", (mask, host[3])),
            ("copyto", (4,)),
            ("copyto", (host[:1],)),
        ]
        for turned in (False, True):
            for name, arguments in calls:
                wide = np.repeat(host, 2, axis=1)
                wanted = np.array(host, order="F") if turned else wide[:, ::2]
                ours = ta.asarray(wanted if turned else wide, device=device, copy=True)
                ours = ours if turned else ours[:, ::2]
                given = [ta.asarray(one, device=device) if isinstance(one, np.ndarray) else one for one in arguments]
                getattr(np, name)(wanted, *arguments)
                assert getattr(ta, name)(ours, *given) is None
                assert bits(ta.to_numpy(ours)) == bits(wanted), (name, arguments, dtype, turned)
    x = ta.zeros((2, 3), device=device)
    ta.copyto(x, 2, where=ta.asarray([True, False, True], device=device))
    assert x.tolist() == [[2, 0, 2], [2, 0, 2]]
    ta.put(x, [5, 0], 1)
    assert x.tolist() == [[1, 0, 2], [2, 0, 1]]
    for call in (lambda: ta.put(x, [6], 1), lambda: ta.put_along_axis(x, [[3], [0]], 1, 1)):
        with pytest.raises(ta.IndexingError, match="out of bounds"):
            call()
    with pytest.raises(ta.IndexingError, match="put_along_axis: expected integers as indices, got bool"):
        ta.put_along_axis(x, ta.asarray([[True, False, True]] * 2, device=device), 1, 1)
    with pytest.raises(ta.DTypeError):
        ta.put_along_axis(x, ta.asarray([[0], [1]], device=device), 1j, 1)


def check_errors(device: Any) -> None:
    """Each error names what came, and nothing is written."""
    x = ta.arange(6, device=device).reshape(2, 3)
    index = ta.asarray([0, 7], device=device)
    for bad, message in [
        (index, r"index 7 is out of bounds|expected -2 <= index < 2 for axis 0 .* got 7"),
        (ta.asarray([0, -3], device=device), r"index -3 is out of bounds|got -3"),
        (ta.asarray([0, -(2**63)], device=device), f"index -{2**63} is out of bounds|got -{2**63}"),
        (ta.asarray([0, 2**63 - 1], device=device), f"index {2**63 - 1} is out of bounds|got {2**63 - 1}"),
        (ta.asarray([0, 2**64 - 1], dtype="uint64", device=device), f"index {2**63 - 1} is out|got {2**63 - 1}"),
        (ta.asarray([0.5], device=device), r"expected arrays of integers or bools as indices, got float32"),
        ((index, slice(0, 0)), r"index 7 is out of bounds|got 7"),
        ((0, 0, index), r"at most 2 indices|too many indices"),
        ((ta.asarray([0, 1], device=device), ta.asarray([0, 1, 2], device=device)), "broadcast|expected equal sizes"),
    ]:
        with pytest.raises((ta.IndexingError, ta.BroadcastError), match=message):
            x[bad]
        with pytest.raises((ta.IndexingError, ta.BroadcastError), match=message):
            x[bad] = 1
    with pytest.raises(ta.BroadcastError):
        x[ta.asarray([0, 1], device=device)] = ta.ones((4,), dtype="int64", device=device)
    with pytest.raises(ta.DTypeError, match="float"):
        x[ta.asarray([0, 1], device=device)] = ta.ones((3,), device=device)
    with pytest.raises(ta.ScalarOverflowError):
        x[ta.asarray([0, 1], device=device)] = 2**63
    with pytest.raises(ta.IndexingError):
        ta.take_along_axis(x, ta.asarray([[0, 2**64 - 1]], dtype="uint64", device=device))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def check_wide_rows(device: Any) -> None:
    """Rows that are longer than a block, so that a block reaches from one row into the next."""
    rng = np.random.default_rng(3)
    for dtype in ("float32", "bool", "complex64", "complex128", "uint8"):
        host = cast(np.arange(7 * 90, dtype=np.int32).reshape(7, 90), dtype)
        x = views_of(host, device)
        for size in (512, 601, 1500):
            columns = rng.integers(-90, 90, size)
            assert bits(ta.to_numpy(x[:, ta.asarray(columns, device=device)])) == bits(host[:, columns]), (dtype, size)
        long = cast(np.arange(9 * 700, dtype=np.int32).reshape(9, 700), dtype)
        rows = rng.integers(-9, 9, 13)
        found = views_of(long, device)[ta.asarray(rows, device=device)]
        assert bits(ta.to_numpy(found)) == bits(long[rows]), dtype
        y, wanted = views_of(long, device), long.copy()
        places = rng.permutation(700)[:650]
        y[:, ta.asarray(places, device=device)] = views_of(long[:, :650].copy(), device)
        wanted[:, places] = long[:, :650]
        assert bits(ta.to_numpy(y)) == bits(wanted), dtype


def check_rows_of_words(device: Any) -> None:
    """Rows of small elements that lie in whole words are gathered as words, and others element by element."""
    for dtype in ("int8", "bool", "bfloat16", "float16", "float32", "float8_e5m2", "int64", "complex64"):
        host = cast(np.arange(6 * 4 * 32, dtype=np.int32).reshape(6, 4, 32) % 100, dtype)
        x, word = ta.asarray(host, device=device), max(1, 8 // host.itemsize)
        odd = ta.asarray(np.concatenate([host.reshape(-1)[:1], host.reshape(-1)]), device=device)[1:]
        cases: list[tuple[Any, np.ndarray, Any, bool]] = [
            (x, host, (ROWS,), True),
            (x, host, (slice(None), ROWS), True),
            (x, host, (ROWS, ROWS), True),
            (x[:, ::-1, 2 * word :], host[:, ::-1, 2 * word :], (ROWS,), True),
            (x, host, (slice(None), slice(None), ROWS), False),
            (x[..., 1:], host[..., 1:], (ROWS,), False),
            (x[..., ::2], host[..., ::2], (ROWS,), False),
            (x.T, host.T, (ROWS,), False),
            (ta.reshape(odd, host.shape), host, (ROWS,), False),
        ]
        for view, wanted, key, is_of_words in cases:
            ours = tuple([ta.asarray(part, device=device) if part is ROWS else part for part in key])
            with mock.patch.object(gather, "_GATHERS", TwoGenerations(8)) as known:
                found = [view[ours], view[ours]]
            (plan,) = known._young.values()
            assert [bits(ta.to_numpy(each)) for each in found] == [bits(wanted[key])] * 2, (dtype, key)
            assert (plan.made.dtype == "uint64") == (is_of_words and word > 1), (dtype, key)


ROWS = np.array([[3, 0], [-1, 2]])


def check_host_values(device: Any) -> None:
    """Lists, ndarrays and NumPy scalars are copied to the device of the target, by every kind of key."""
    host = np.zeros((3, 4), np.float32)
    x = ta.asarray(host.copy(), device=device)
    rows = ta.asarray([2, 0], device=device)
    for key, ours, value in (
        (np.s_[:], np.s_[:], np.arange(12.0).reshape(3, 4)),
        (np.s_[:, 0], np.s_[:, 0], [7, 8, 9]),
        (np.s_[1], np.s_[1], np.float64(2.5)),
        (np.s_[[2, 0]], rows, np.arange(4)),
        (np.s_[[0, 1], [1, 1]], np.s_[[0, 1], [1, 1]], [-1.5, 3]),
        (np.array([True, False, False]), ta.asarray([True, False, False], device=device), [5, 6, 7, 8]),
    ):
        host[key] = value
        x[ours] = value
    assert str(x.device) == str(device)
    np.testing.assert_array_equal(ta.to_numpy(x), host)
    with pytest.raises(ta.DTypeError, match="setitem: expected a target that can store the complex128 result"):
        x[...] = np.ones(4, complex)
