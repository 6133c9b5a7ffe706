"""Kernels of cuTile take Arrays as they are: cuTile reads dtype, shape, strides and address, and compiles nothing."""

from __future__ import annotations

import numpy as np
import pytest
from exchanging import VIEWS, on_gpu

import tilearray as ta

ct = pytest.importorskip("cuda.tile")
compilation = pytest.importorskip("cuda.tile.compilation")


@ct.kernel
def shifted(source, target, columns: ct.Constant[int]):
    tile = ct.load(source, index=(ct.bid(0), 0), shape=(8, columns), padding_mode=ct.PaddingMode.ZERO)
    ct.store(target, index=(ct.bid(0), 0), tile=tile + 1)


def read(source, target):
    """What cuTile knows of both arrays."""
    convention = compilation.CallingConvention.cutile_python_v1()
    return compilation.KernelSignature.from_kernel_args(shifted, (source, target, 8), convention).parameters[:2]


@pytest.mark.parametrize("view", VIEWS)
def test_an_array_is_read_with_its_strides(device, view):
    x = VIEWS[view](on_gpu(np.arange(24, dtype=np.int16).reshape(4, 6)))
    known, _ = read(x, x)
    assert (known.dtype, known.ndim) == (ct.int16, x.ndim)
    assert all(constant in (None, stride) for constant, stride in zip(known.stride_constant, x.strides, strict=True))
    for stride, divisor in zip(x.strides, known.stride_divisible_by, strict=True):
        assert stride % divisor == 0
    assert x._address % known.base_addr_divisible_by == 0


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)
def test_dtypes_are_those_of_cutile(device, name):
    x = ta.zeros((16, 32), dtype=name, device="cuda:0")
    known, turned = read(x, x.T)
    assert known.dtype == turned.dtype == getattr(ct, name.replace("bool", "bool_"))
    assert (known.stride_constant, turned.stride_constant) == ((None, 1), (1, None))
