"""Values that are assigned: lists, ndarrays, scalars and tensors beside Arrays and numbers, against NumPy."""

from __future__ import annotations

import array
import itertools
import math
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.oracles.indexing import check_host_values

import tilearray as ta
from tilearray.engine.signature import overlap

TARGETS = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "bfloat16", "float8_e4m3fn")
RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
KEYS: list[Any] = [..., np.s_[1], np.s_[:, 2], np.s_[::-1, ::2], np.s_[[0, 2]], np.s_[:, [3, 1]], "mask", "rows"]


def keys_of(key: Any) -> tuple[Any, Any]:
    """A key for NumPy and the same for Arrays."""
    if key == "mask":
        mask = np.arange(12).reshape(3, 4) % 3 == 0
        return mask, ta.asarray(mask, device="cpu")
    if key == "rows":
        return np.array([True, False, True]), ta.asarray([True, False, True], device="cpu")
    return key, key


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("dtype", TARGETS)
def test_data_of_every_kind_by_every_key(dtype: str) -> None:
    """Within a kind the values are NumPy's; of a higher kind they are refused, and nothing is written."""
    for key, source in itertools.product(KEYS, ("bool", "uint16", "int32", "float64", "complex64", "bfloat16")):
        theirs, mine = keys_of(key)
        host = np.zeros((3, 4), dtype_of(dtype))
        part = host[theirs]
        value = (np.arange(part.size).reshape(part.shape) % 2).astype(dtype_of(source))
        x = ta.asarray(host.copy(), device="cpu")
        ours = RANK[host.dtype.kind] if dtype != "float8_e4m3fn" else 2
        refused = RANK[value.dtype.kind] > ours or (host.dtype.kind == "u" and value.dtype.kind == "i")
        if refused:
            with pytest.raises(ta.DTypeError, match=f"setitem: expected a target that can store the {source}"):
                x[mine] = value
        else:
            host[theirs] = value
            x[mine] = value
        assert np.array_equal(np.asarray(x), host)
        lists = value.astype(np.complex64 if source == "complex64" else np.float64).astype(object).tolist()
        if source in ("bool", "uint16", "int32"):
            lists = value.tolist()
        x[...] = 0
        host[...] = 0
        if RANK[value.dtype.kind] > ours and host.dtype.kind != "b":
            with pytest.raises(ta.DTypeError):
                x[mine] = lists
        else:
            with np.errstate(all="ignore"):
                host[theirs] = value.astype(bool) if host.dtype.kind == "b" else value
            x[mine] = lists
        assert np.array_equal(np.asarray(x), host)


def test_shapes_broadcast_as_in_numpy() -> None:
    for value in (
        [[1], [2], [3]],
        [[4, 5, 6, 7]],
        np.ones((1, 1, 3, 4)),
        np.array(5),
        np.ones(0),
        [1, 2],
        [[1, 2]] * 3,
    ):
        host = np.zeros((3, 4))
        x = ta.asarray(host.copy(), device="cpu")
        try:
            host[...] = value
        except ValueError:
            with pytest.raises(ta.BroadcastError):
                x[...] = value
        else:
            x[...] = value
        assert np.array_equal(np.asarray(x), host)
    x = ta.zeros((0, 3), device="cpu")
    x[...] = [1, 2, 3]
    with pytest.raises(ta.ShapeError, match="setitem: nested lists must be rectangular"):
        x[...] = [[1], [2, 3]]


def test_numbers_in_lists_are_weak_and_must_fit() -> None:
    x = ta.zeros(2, dtype="uint8", device="cpu")
    x[:] = [0, 255]
    for wrong in ([0, 256], [-1, 0], (2**70, 0), range(255, 257)):
        with pytest.raises(ta.ScalarOverflowError, match=r"setitem: .* does not fit uint8"):
            x[:] = wrong
    assert x.tolist() == [0, 255]
    y = ta.zeros(2, dtype="bfloat16", device="cpu")
    y[:] = [2**70 + 2**62, 1.0 + 2**-8 + 2**-40]  # each is rounded once
    assert y.astype("float64").tolist() == [float(2**70), 1.0 + 2**-7]
    z = ta.zeros(2, dtype="int16", device="cpu")
    z[:] = [np.int16(3), True]
    with pytest.raises(ta.DTypeError, match="setitem: expected a target that can store the float64 result, got int16"):
        z[:] = [np.float64(1), 2]
    assert z.tolist() == [3, 1]


def test_a_flat_list_is_rounded_once() -> None:
    """2**60 + 2**36 + 1 is above the middle of two float32; as a float64 it is the middle itself."""
    numbers = [2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**24 + 1]
    for dtype, want in (("float32", [2**60 + 2**37, -(2**60) - 2**37, 2**24]), ("int64", numbers)):
        x = ta.zeros((3, 2), dtype=dtype, device="cpu")
        x[:, 1] = numbers
        x[1] = numbers[:2]
        assert [int(value) for value in x[:, 1].tolist()] == [want[0], want[1], want[2]]
        assert [int(value) for value in x[1].tolist()] == want[:2]
    for wrong in ([1e300, 1.0], [2**70, 1]):
        y = ta.zeros(2, device="cpu")
        y[:] = wrong
        assert y.tolist() == [math.inf if wrong[0] == 1e300 else 2.0**70, 1]


def test_a_protected_target_takes_no_host_data() -> None:
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    targets = ta.asarray(frozen, device="cpu"), ta.broadcast_to(ta.zeros(1, device="cpu"), (3,))
    for target, message in zip(targets, ("the target is read-only", "several elements in one place")):
        for value in ([1, 2, 3], np.ones(3, np.float32)):
            with pytest.raises(ta.WriteError, match=f"setitem: .*{message}"):
                target[:] = value
        assert target.tolist() == [0, 0, 0]


def test_other_objects() -> None:
    x = ta.zeros(3, dtype="int64", device="cpu")
    for value in (
        array.array("h", [1, 2, 3]),
        memoryview(b"\1\2\3"),
        range(1, 4),
        (1, 2, 3),
        np.arange(1, 4, dtype=">i8"),
    ):
        if isinstance(value, np.ndarray):
            with pytest.raises(ta.DTypeError, match="setitem"):
                x[...] = value
            continue
        x[...] = 0
        x[...] = value
        assert x.tolist() == [1, 2, 3]
    x[0] = np.uint8(200)
    x[1] = np.array(7)
    x[2] = ta.asarray(9, device="cpu")
    assert x.tolist() == [200, 7, 9]
    for wrong in ("a", None, object(), {1: 2}, {1, 2}):
        with pytest.raises(
            ta.OperandError, match=r"setitem: expected an Array, a number, or data .*; write x\[\.\.\.\]"
        ):
            x[...] = wrong
    with pytest.raises(ta.OperandError, match="setitem: expected numbers or arrays in nested lists, got str"):
        x[...] = ["a", "b", "c"]
    assert x.tolist() == [200, 7, 9]


def test_memory_that_the_value_shares() -> None:
    """The ndarray is over the memory of the target, and runs the other way."""
    for dtype in ("int32", "bfloat16"):
        memory = np.arange(6).astype(dtype_of(dtype))
        x, want = ta.asarray(memory, device="cpu"), memory[::-1].copy()
        x[...] = memory[::-1]
        assert np.array_equal(memory, want)
        x[[0, 1, 2]] = memory[2::-1]
        want[[0, 1, 2]] = want[2::-1].copy()
        assert np.array_equal(memory, want)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = ta.zeros((2, 3), device="cpu")
    x[...] = torch.arange(3)
    x[1, :2] = torch.tensor([7.5, 8.5], dtype=torch.bfloat16)
    assert x.tolist() == [[0, 1, 2], [7.5, 8.5, 2]]
    with pytest.raises(ta.InterchangeError, match="detach"):
        x[...] = torch.ones(3, requires_grad=True)


def test_the_default_semantics_refuse_what_numpys_truncate() -> None:
    numbers: list[Any] = [
        1.5,
        -2.75,
        np.float32(3.5),
        [4.5, -1.5],
        np.array([1e3, -0.5]),
        ta.asarray(2.5, device="cpu"),
    ]
    for dtype, value in itertools.product(("int8", "int64"), numbers):
        for key in (slice(0, 2), [0, 1]):
            x = ta.zeros(3, dtype=dtype, device="cpu")
            with pytest.raises(ta.DTypeError, match="setitem: "):
                x[key] = value
            assert x.tolist() == [0, 0, 0]
            with ta.semantics("numpy"):
                if dtype == "int8" and isinstance(value, np.ndarray):
                    continue  # 1000: NumPy leaves open what it becomes
                x[key] = value
            host = np.zeros(3, dtype)
            host[key] = np.asarray(value)
            assert x.tolist() == host.tolist()


def test_what_numpys_semantics_still_refuse() -> None:
    x = ta.ones(2, dtype="int16", device="cpu")
    wrong: list[tuple[Any, Any, str]] = [
        (float("nan"), ta.DTypeError, "setitem: int16 cannot hold nan"),
        (float("-inf"), ta.DTypeError, "setitem: int16 cannot hold -inf"),
        (1e10, ta.ScalarOverflowError, "setitem: 10000000000 does not fit int16"),
        (1 + 2j, ta.DTypeError, "setitem: int16 cannot hold"),
        ([1j, 2], ta.DTypeError, "setitem: int16 cannot hold complex128: the imaginary part would be lost"),
        (np.array([1j, 2]), ta.DTypeError, "setitem: int16 cannot hold complex128"),
    ]
    for (value, error, message), key in itertools.product(wrong, (..., [0, 1])):
        with ta.semantics("numpy"), pytest.raises(error, match=message):
            x[key] = value
    assert x.tolist() == [1, 1]
    with ta.semantics("numpy"):
        x[...] = np.array([np.nan, 1e10])  # an array saturates, as astype does
    assert x.tolist() == [0, 32767]
    flags = ta.zeros(2, dtype="bool", device="cpu")
    with ta.semantics("numpy"):
        flags[...] = [0.0, 0.5]
    assert flags.tolist() == [False, True]


def test_host_values_are_taken_to_the_device_of_the_target() -> None:
    check_host_values("cpu")


def test_an_array_of_another_device_does_not_move() -> None:
    class Elsewhere:
        """A producer of GPU memory, as a tensor of torch on a GPU is."""

        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None,
        }  # fmt: skip

    x = ta.zeros(2, device="cpu")
    with pytest.raises(ta.TileArrayError):
        operator.setitem(x, ..., Elsewhere())
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("shared", [True, False])
def test_a_value_in_the_memory_of_the_target_is_read_before_it_is_written(shared: bool) -> None:
    """Two imports of one ndarray have two buffers over the same memory."""
    memory = np.arange(6.0)
    source = memory if shared else memory * 10
    x, y = (ta.asarray(each, device="cpu") for each in (memory, source))
    assert x._buffer is not y._buffer
    assert overlap(x, y) is shared
    assert not overlap(x[:2], y[2:])
    assert not overlap(x[:2], x[2:])
    values = source[:-1].tolist()
    x[ta.asarray([1, 2, 3, 4, 5], device="cpu")] = y[:-1]
    assert x.tolist() == [0.0, *values]
