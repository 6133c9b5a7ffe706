"""The list of schedules, in the order in which they are asked; and the class of a loop, from which they choose.

A loop's class is asked for first, when nothing is known but geometry: each schedule that serves the loop's case gives
the facts that its code depends on, or declines. Then, with dtypes and addresses, the first one that fits is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tilearray_cuda.kernels.schedules.boxes import Boxes
from tilearray_cuda.kernels.schedules.distinct import Distinct
from tilearray_cuda.kernels.schedules.extents import LARGE, NARROW
from tilearray_cuda.kernels.schedules.flat import Flat
from tilearray_cuda.kernels.schedules.fold import Fold
from tilearray_cuda.kernels.schedules.held import Held
from tilearray_cuda.kernels.schedules.held_lanes import HeldLanes
from tilearray_cuda.kernels.schedules.led_rows import LedRows
from tilearray_cuda.kernels.schedules.lookup import Lookup
from tilearray_cuda.kernels.schedules.merged_rows import MergedRows
from tilearray_cuda.kernels.schedules.partition import Partition
from tilearray_cuda.kernels.schedules.product import Product
from tilearray_cuda.kernels.schedules.reduce import Reduce
from tilearray_cuda.kernels.schedules.rows import Rows
from tilearray_cuda.kernels.schedules.scan import Scan
from tilearray_cuda.kernels.schedules.scan_blocks import ScanBlocks
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.schedules.select import Select
from tilearray_cuda.kernels.schedules.shared_columns import SharedColumns
from tilearray_cuda.kernels.schedules.skewed_columns import SkewedColumns
from tilearray_cuda.kernels.schedules.skewed_rows import SkewedRows
from tilearray_cuda.kernels.schedules.small_planes import SmallPlanes
from tilearray_cuda.kernels.schedules.sort import Sort
from tilearray_cuda.kernels.schedules.tile import Tiles
from tilearray_cuda.kernels.schedules.walked_rows import WalkedRows
from tilearray_cuda.kernels.schedules.windows import Windows
from tilearray_cuda.kernels.spec import KernelSpec

SCHEDULES: tuple[type[Schedule], ...] = (
    Flat,
    Lookup,
    SmallPlanes,
    Rows,
    Boxes,
    SkewedColumns,
    SkewedRows,
    MergedRows,
    Tiles,
    LedRows,
    Reduce,
    SharedColumns,
    Held,
    WalkedRows,
    HeldLanes,
    Scan,
    ScanBlocks,
    Select,
    Product,
    Windows,
    Fold,
    Sort,
    Partition,
    Distinct,
)
"""The first one that fits runs a loop."""

Facts = Callable[[Any], Hashable]


def _questions(case: str) -> list[tuple[Facts, bool]]:
    """Return the `facts` of the schedules for a case, each once, and whether an answer ends the search."""
    last = {schedule.facts: schedule.serves_all for schedule in SCHEDULES if case in schedule.cases}
    return list(last.items())


def _candidates(case: str) -> list[tuple[type[Schedule], int]]:
    """Return the schedules for a case, each with the position of its facts in a class of loops."""
    questions = [facts for facts, _ in _questions(case)]
    return [(schedule, questions.index(schedule.facts)) for schedule in SCHEDULES if case in schedule.cases]


_CANDIDATES = {case: _candidates(case) for schedule in SCHEDULES for case in schedule.cases}
_Questions = tuple[str, Facts, bool, list[tuple[Facts, bool]]]
_met: dict[Any, _Questions] = {}
"""For each case that was met: its name as a plain string, the first question, and the others."""


def _meet(case: Any) -> _Questions:
    (first, serves_all), *others = _questions(case)
    return _met.setdefault(case, (str(case), first, serves_all, others))


def _facts(loop: Any, answer: Hashable, questions: list[tuple[Facts, bool]]) -> tuple[Hashable, ...]:
    """Return the first answer and those of other schedules, up to one that serves all expressions."""
    found = [answer]
    for question, serves_all in questions:
        answer = question(loop)
        found.append(answer)
        if serves_all and answer is not None:
            break
    return tuple(found)


def loop_class(loop: Any) -> tuple[Any, ...]:
    """Return the class of a loop, by which its kernel is found: a plain tuple with the fields of `LoopClass`.

    Parameters
    ----------
    loop : Loop
        With elements.

    Examples
    --------
    >>> from collections import namedtuple
    >>> Loop = namedtuple("Loop", "shape strides shifts case index_bits")
    >>> loop_class(Loop((80, 300), ((300, 1), (1, 80)), (0, 0), "tile", 32))[:5]
    ('tile', 2, (('other', 1), (1, 'other')), 32, 4)
    """
    try:
        shape, operands, _, case, index_bits = loop
    except ValueError:  # the loops of reductions, scans and selections have more fields
        shape, operands, _, case, index_bits = loop[:5]
    name, question, serves_all, others = _met.get(case) or _meet(case)
    answer = question(loop)
    facts = (answer,) if serves_all and answer is not None else _facts(loop, answer, others)
    if len(shape) == 1:
        if operands.count((1,)) == len(operands):
            strides = operands
        else:
            strides = tuple([(step if -1 <= (step := each[0]) <= 1 else "other",) for each in operands])
        return name, 1, strides, index_bits, 1, facts
    classes: list[tuple[int | str, int | str]] = []
    pitches = 0  # the bits of all: what divides their lowest one divides them all
    for each in operands:
        outer, inner = each[-2:]
        classes.append((outer if -1 <= outer <= 1 else "other", inner if -1 <= inner <= 1 else "other"))
        if inner == 1 or outer == 1:  # read in vectors, which a pitch may misalign
            pitch = outer if inner == 1 else inner
            if pitch > 1 or pitch < -1:  # 0, 1 and -1 are part of the class
                pitches |= pitch
            for stride in each[:-2]:  # further out they are arguments as well
                pitches |= stride
    return name, len(shape), tuple(classes), index_bits, 16 if not pitches % 16 else 1 if pitches % 4 else 4, facts


def facts_of_matrix(size: int, columns: int, outer: int, inner: int) -> int:
    """Return all facts of one array that `loop_class` finds in a small loop over a matrix, beside those of its case.

    They are a number below 6: whether rows are narrow, and what divides the pitch. -1 for large matrices, whose facts
    depend on the extents. `outer` and `inner` are the array's strides, not negative, and the result is in C order.

    >>> facts_of_matrix(6300, 90, 96, 1) == facts_of_matrix(1500, 50, 68, 1), facts_of_matrix(1 << 20, 512, 512, 1)
    (True, -1)
    """
    if size >= LARGE:
        return -1
    pitch = outer if inner == 1 else inner if outer == 1 else 0
    pitches = columns | pitch if pitch > 1 else columns
    return (columns < NARROW) * 3 + (0 if not pitches % 16 else 1 if pitches % 4 else 2)


def schedule_of(spec: KernelSpec, arch: int) -> Schedule:
    """Return the schedule of a kernel for an architecture such as 90: the first one of the list that fits."""
    for schedule, position in _CANDIDATES[spec.case]:
        facts = spec.facts[position] if position < len(spec.facts) else None
        found = None if facts is None else schedule.fits(spec, facts, arch)
        if found is not None:
            found.arch = arch
            return found
    raise NotImplementedError(f"no schedule serves {spec.case} loops of {spec.rank} axes; add one to SCHEDULES")
