"""Kernels of sorts as text, without a device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.oracles.formats import dtype_of
from tilearray.functions import ordering
from tilearray.geometry.sorting import has_few_blocks, make_partition, make_rows
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec


def rows_sources(dtype: str, rows: int, extent: int, arch: int = 90) -> Iterator[Source]:
    """Yield the sources of a sort of rows by one program each, and of their order."""
    for operation in (ordering._sorting(dtype_of(dtype)), ordering._ordering(dtype_of(dtype))):
        loop = make_rows(rows, extent, [(extent, 1)] * 2)
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True, True)), arch))


def partition_sources(dtype: str, extent: int, arch: int = 90) -> Iterator[Source]:
    """Yield the sources of a count of digits, and of all partitions of a row of a dtype."""
    given: np.dtype = dtype_of(dtype)
    places, by_block = ordering.end_dtype(extent), has_few_blocks(1, extent)
    operations = [ordering._counting(given, by_block), ordering._moving(given, places, by_block)]
    operations.append((ordering._numbering if dtype == "bool" else ordering._joining)(given, places, by_block))
    if dtype == "uint64":
        operations.append(ordering._unjoining(given, places, by_block))
    for number, operation in enumerate(operations):
        loop = make_partition(1, extent, [(0, 1), (0, 1), *[(0, 0)] * (number > 0)])
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True,) * len(loop.strides)), arch))


def sort_sources() -> Iterator[Source]:
    """Yield the sources of sorts of some dtypes, of short rows and long ones."""
    for dtype in ("bool", "int8", "float16", "float32", "int64", "uint64"):
        yield from rows_sources(dtype, 5000, 30)
        yield from partition_sources(dtype, 300_000)
