"""Kernels of sorts as text, without a device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.oracles.formats import dtype_of
from tilearray.functions import ordering, sort_keys
from tilearray.geometry.loop import make_loop
from tilearray.geometry.selection import make_selection
from tilearray.geometry.sorting import has_few_blocks, make_partition, make_rows
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec


def rows_sources(dtype: str, rows: int, extent: int, arch: int = 90) -> Iterator[Source]:
    """Yield the sources of a sort of rows by one program each, and of their order."""
    for operation in (ordering._sorting(dtype_of(dtype)), ordering._ordering(dtype_of(dtype))):
        loop = make_rows(rows, extent, [(extent, 1)] * 2)
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True, True)), arch))


def partition_sources(dtype: str, extent: int, arch: int = 90, has_base: bool = False) -> Iterator[Source]:
    """Yield the sources of a count of digits, and of all partitions of a row of a dtype, whose keys have a base."""
    given: np.dtype = dtype_of(dtype)
    places, by_block = ordering.end_dtype(extent), has_few_blocks(1, extent)
    about = places, by_block, has_base
    operations = [ordering._counting(given, by_block, has_base), ordering._moving(given, *about)]
    operations.append((ordering._numbering if dtype == "bool" else ordering._joining)(given, *about))
    if dtype == "uint64":
        operations += [ordering._unjoining(given, *about), ordering._joining_upper(given, *about)]
    for number, operation in enumerate(operations):
        loop = make_partition(1, extent, [(0, 1), (0, 1), *[(0, 0)] * (number > 0)])
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True,) * len(loop.strides)), arch))


def mending_sources(dtype: str, extent: int, arch: int = 90) -> Iterator[Source]:
    """Yield the sources of the last launches of sorts by few digits: of elements of a dtype, and of their order."""
    for operation, memories in ((sort_keys.mending(dtype_of(dtype)), 1), (sort_keys.mending_order(dtype_of(dtype)), 2)):
        loop = make_loop((1, extent), [(extent, 1)] * 2 + [(0, 0)] * (memories + 1))
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True,) * len(loop.strides)), arch))


def mark_sources(dtype: str, arch: int = 90) -> Iterator[Source]:
    """Yield the sources that mark integers of a dtype, and that read the marks."""
    nowhere = (0,)
    loop = make_selection((20_000_000,), [nowhere], [(1,)])
    graph = sort_keys.marking(dtype_of(dtype)).graph
    yield source_of(schedule_of(make_spec(graph, loop_class(loop), (True, True)), arch))
    graph = sort_keys.reading_marks().graph
    yield source_of(schedule_of(make_spec(graph, loop_class(make_loop((1024,), [(1,), nowhere])), (True, True)), arch))


def sort_sources() -> Iterator[Source]:
    """Yield the sources of sorts of some dtypes, of short rows and long ones."""
    for dtype in ("int64", "uint64", "float64"):
        yield from mending_sources(dtype, 20_000_000)
    for dtype in ("int8", "uint32", "int64"):
        yield from mark_sources(dtype)
    for dtype in ("bool", "int8", "float16", "float32", "int64", "uint64"):
        yield from rows_sources(dtype, 5000, 30)
        yield from partition_sources(dtype, 300_000)
    yield from partition_sources("uint64", 300_000, has_base=True)
