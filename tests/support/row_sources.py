"""Kernels of functions that go over rows several times as text, without a device."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilearray.geometry.reduction import make_reduction
from tilearray.geometry.strides import dense_strides
from tilearray.ops.softmax import row_function_of
from tilearray.promotion.systems import ARRAY_API
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.source import source_of
from tilearray_cuda.kernels.spec import make_spec


def source(name: str, dtype: str, shape: tuple[int, int], arch: int = 90, axis: int = 1) -> Any:
    """Return the source of a function along the rows of an aligned matrix, or along its columns."""
    given = np.dtype(getattr(ml_dtypes, dtype, dtype))
    operation = row_function_of(name, given, (axis,), False)
    strides = dense_strides(shape)
    outputs = [strides if operation.reduced.spread else (1,)]
    loop = make_reduction(
        shape, (axis,), outputs, [strides], given.itemsize, held=True, spread=operation.reduced.spread
    )._replace(held=True)
    spec = make_spec(operation.expression(ARRAY_API, (given,), None), choose.loop_class(loop), (True, True))
    return source_of(choose.schedule_of(spec, arch))
