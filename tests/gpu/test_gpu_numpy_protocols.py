"""NumPy's protocols and the methods of rows on a GPU: what runs stays there, and the rest names the transfer."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import ImplicitTransferError, OperandError

VALUES = np.arange(1, 13, dtype=np.int32).reshape(3, 4)


def both(dtype: str = "int32") -> tuple[np.ndarray, ta.Array]:
    host = VALUES.astype(dtype)
    return host, ta.asarray(host, device="cuda")


def test_numpys_functions_run_where_the_arrays_are() -> None:
    host, x = both()
    for call in (
        lambda y: np.add(y, 3),
        lambda y: np.float32(2) * y,
        lambda y: np.where(y > 4, y, 0),
        lambda y: np.fmax(y, 4),
        lambda y: np.vstack([y, y]),
        lambda y: np.swapaxes(y, 0, 1),
        lambda y: np.subtract.outer(y[0], y[:, 0]),
        lambda y: np.bitwise_or.reduce(y, axis=1),
        lambda y: np.subtract.reduce(y, axis=0),
        lambda y: np.bitwise_xor.accumulate(y, axis=1),
        lambda y: np.add.reduceat(y, [0, 2, 1]),
        lambda y: np.maximum.reduceat(y, [0, 2], axis=1),
    ):
        found = call(x)
        assert found.device == "cuda:0"
        assert np.array_equal(ta.to_numpy(found), call(host))


def test_where_dtype_and_targets_by_position() -> None:
    host, x = both("float32")
    out = ta.zeros_like(x)
    assert ta.multiply(x, 2, out) is out
    assert np.array_equal(ta.to_numpy(out), host * 2)
    ta.sqrt(x, out, where=x > 4)
    assert np.allclose(ta.to_numpy(out), np.where(host > 4, np.sqrt(host), host * 2))
    assert ta.add(x, 1, dtype="float64").dtype == ta.float64
    assert ta.to_numpy(ta.add(x, 1, where=x > 4)).tolist() == np.where(host > 4, host + 1, 0).tolist()


def test_nothing_goes_to_the_host_unasked() -> None:
    host, x = both()
    for call in (lambda: x + host, lambda: host + x, lambda: ta.add([1, 2, 3, 4], x), lambda: ta.concat([x, host])):
        with pytest.raises(OperandError, match=r"write ta.asarray\(y, device='cuda:0'\)"):
            call()
    for call in (
        lambda: np.bitwise_count(x),
        lambda: np.i0(x),
        lambda: np.array2string(x),
    ):
        with pytest.raises(ImplicitTransferError, match=r"write np.[\w.]+\(ta.to_numpy\(x\)\)"):
            call()
