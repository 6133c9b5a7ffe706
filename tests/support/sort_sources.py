"""Kernels of sorts as text, without a device."""

from __future__ import annotations

from collections.abc import Iterator

from support.oracles.formats import dtype_of
from tilearray.engine.operation import FixedOperation
from tilearray.functions import ordering, sort_keys
from tilearray.geometry.loop import make_loop
from tilearray.geometry.selection import make_selection
from tilearray.geometry.sorting import has_few_blocks, make_partition, make_rows, make_runs, swept_block
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec


def rows_sources(dtype: str, rows: int, extent: int, arch: int = 90) -> Iterator[Source]:
    """Yield the sources of a sort of rows by one program each, and of their order."""
    for operation in (ordering._sorting(dtype_of(dtype)), ordering._ordering(dtype_of(dtype))):
        loop = make_rows(rows, extent, [(extent, 1)] * 2)
        yield source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True, True)), arch))


def partition_sources(dtype: str, extent: int, arch: int = 90, form: str = "") -> Iterator[Source]:
    """Yield the sources of a count of digits, and of all partitions of rows of a dtype, whose keys have a form."""
    places, by_block = ordering.end_dtype(extent), has_few_blocks(1, extent)
    given = "counts" if by_block else "sums"
    yield _of_blocks(ordering._counting(dtype_of(dtype), by_block, form), extent, 0, arch)
    for operation in _placing(dtype):
        yield _of_blocks(operation(dtype_of(dtype), places, given, form), extent, 1, arch)


def sweep_sources(dtype: str, extent: int, arch: int = 90, form: str = "") -> Iterator[Source]:
    """Yield the sources of a count of all digits, and of all partitions in one sweep."""
    given = dtype_of(dtype)
    digits = 4 if form == "linear" else given.itemsize
    yield _of_blocks(ordering._counting_all(given, digits, form), extent, 0, arch)
    for operation in _placing(dtype):
        yield _of_blocks(operation(given, ordering.end_dtype(extent), "swept", form), extent, 2, arch)


def _placing(dtype: str) -> list[ordering.Placing]:
    """What is stored in the order of a digit: all of it for integers of 64 bits, as which words are stored."""
    further = [ordering._unjoining, ordering._joining_upper] if dtype == "uint64" else []
    return [ordering._moving, ordering._numbering if dtype == "bool" else ordering._joining, *further]


def _of_blocks(operation: FixedOperation, extent: int, memories: int, arch: int) -> Source:
    """The source of an operation on a row, and on memories."""
    block = swept_block(dtype_of(operation.graph.output_dtypes[0]).itemsize) if memories == 2 else 0
    loop = make_partition(1, extent, [(0, 1), (0, 1), *[(0, 0)] * memories], block)
    return source_of(schedule_of(make_spec(operation.graph, loop_class(loop), (True,) * len(loop.strides)), arch))


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


def run_sources(dtype: str, arch: int = 90) -> Iterator[Source]:
    """Yield the sources that find where runs of integers start, and that count and store their distinct ones."""
    given = dtype_of(dtype)
    graph = sort_keys.starting_runs(given).graph
    yield source_of(schedule_of(make_spec(graph, loop_class(make_loop((1024,), [(1,), (0,)])), (True, True)), arch))
    for operation, memories in ((sort_keys.counting_distinct, 1), (sort_keys.storing_distinct, 2)):
        loop = make_runs(1 << 16, 20_000_000, [(1,), (1,), *[(0,)] * memories])
        graph, aligned = operation(given).graph, (True,) * (2 + memories)
        yield source_of(schedule_of(make_spec(graph, loop_class(loop), aligned), arch))


def sort_sources() -> Iterator[Source]:
    """Yield the sources of sorts of some dtypes, of short rows and long ones."""
    for dtype in ("int64", "uint64", "float64"):
        yield from mending_sources(dtype, 20_000_000)
    for dtype in ("int8", "uint32", "int64"):
        yield from mark_sources(dtype)
    for dtype in ("int32", "uint64"):
        yield from run_sources(dtype)
    for dtype in ("bool", "int8", "float16", "float32", "int64", "uint64"):
        yield from rows_sources(dtype, 5000, 30)
        yield from partition_sources(dtype, 300_000)
    for dtype, form in (("uint64", "base"), ("float64", "linear")):
        yield from partition_sources(dtype, 300_000, form=form)
    for dtype, form in (("int8", ""), ("float32", ""), ("uint64", "base"), ("float64", "linear")):
        yield from sweep_sources(dtype, 5_000_000, form=form)
