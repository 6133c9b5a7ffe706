"""Kernels of scans as text, without a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tilearray.engine.stages import split_scan
from tilearray.geometry.scan import make_scan
from tilearray.geometry.strides import dense_strides
from tilearray.ops.scan import scan_of
from tilearray.promotion.systems import ARRAY_API
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.source import source_of
from tilearray_cuda.kernels.spec import make_spec

DTYPES = ("bool", "int8", "uint64", "bfloat16", "float32", "float64", "complex64", "complex128")
SHAPES = (((1000, 300), 1), ((1000, 300), 0), ((3_000_000,), 0), ((7, 5), 1))


def sources(how: str, dtype: str, shape: tuple[int, ...], axis: int, arch: int = 90) -> list[Any]:
    """Return the sources of a scan of an aligned array in C order: one, or two if the loop has segments."""
    given = np.dtype(getattr(ml_dtypes, dtype, dtype))
    expression = scan_of(how, how, given, axis, False).expression(ARRAY_API, (given,), None)
    strides = dense_strides(shape)
    loop = make_scan(shape, axis, [strides], [strides], given.itemsize)
    if loop.segments.total == 1 or loop.case.value == "scan_rows":
        return [_source(expression, loop, arch)]
    halves = split_scan(expression)
    kept = dense_strides((*shape[:axis], 1, *shape[axis + 1 :]))
    totals = tuple([0 if place == axis else step * loop.segments.total for place, step in enumerate(kept)])
    first = make_scan(shape, axis, [totals], [strides], given.itemsize)
    second = make_scan(shape, axis, [strides], [totals, strides], given.itemsize, leading=1)
    return [_source(halves.first, first, arch), _source(halves.second, second, arch)]


def _source(expression: Any, loop: Any, arch: int) -> Any:
    aligned = (True,) * len(loop.strides)
    return source_of(choose.schedule_of(make_spec(expression, choose.loop_class(loop), aligned), arch))


def all_sources() -> Iterator[Any]:
    """Yield the sources of every scan in several dtypes and layouts."""
    for how in ("add", "multiply", "maximum", "minimum"):
        for dtype in DTYPES:
            if not (dtype.startswith("complex") and how in ("maximum", "minimum")):
                for shape, axis in SHAPES:
                    yield from sources(how, dtype, shape, axis)
