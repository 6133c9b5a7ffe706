"""NumPy scalars as operands: they promote like 0-d arrays, and kernels take them as arguments."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import tilearray as ta
from tilearray import errors
from tilearray.ops import numbers

DTYPES = ("bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64")
VALUES = {"b": (True, False), "i": (-3, 100), "u": (3, 255), "f": (-0.0, 2.5, np.inf), "c": (1 - 2j,)}
OPS = (ta.add, ta.multiply, ta.subtract, ta.maximum, ta.divide, ta.floor_divide, ta.less, ta.equal, ta.bitwise_and)


def _said(op: Any, *operands: Any) -> Any:
    """The dtype and the bits of a result, or the error."""
    with np.errstate(all="ignore"):
        try:
            found = op(*operands)
        except (errors.TileArrayError, ValueError) as error:
            return type(error)
    return found.dtype, ta.to_numpy(found).tobytes()


@pytest.mark.parametrize("semantics", ["array-api", "numpy", "torch", "triton", "cutile"])
def test_numpy_scalars_promote_like_arrays_without_axes(semantics: Any) -> None:
    with ta.semantics(semantics):
        for dtype in DTYPES:
            x: Any = ta.asarray(np.array([0, 1, 5]).astype(dtype))
            for other in DTYPES:
                for value in VALUES[np.dtype(other).kind]:
                    scalar: Any = np.dtype(other).type(value)
                    whole = ta.asarray(np.asarray(scalar))
                    for op in OPS:
                        told = f"{op.name} {dtype} {scalar!r}"
                        assert _said(op, x, scalar) == _said(op, x, whole), told
                        assert _said(op, scalar, x) == _said(op, whole, x), told


def test_kernels_take_numpy_scalars_as_arguments():
    x: Any = ta.asarray([1.5, 2.5])
    with mock.patch.object(numbers, "scalar_array", side_effect=AssertionError("an array was made")):
        assert (x * np.float64(2)).tolist() == [3.0, 5.0]
        assert (np.float32(2) * x).tolist() == [3.0, 5.0]
        assert ta.where(np.bool_(True), x, np.float64(1)).tolist() == [1.5, 2.5]
        with pytest.raises(AssertionError, match="an array was made"):
            ta.add(np.float64(1), 2)


def test_a_target_is_written_in_the_dtype_of_the_scalar():
    x = ta.asarray([1, 2], dtype="int32")
    y = ta.empty((2,), dtype="float64")
    assert ta.divide(x, np.float64(4), out=y) is y
    assert y.tolist() == [0.25, 0.5]
    y *= np.float64(4)
    assert y.tolist() == [1.0, 2.0]
