"""The text of rows that are held: loads of all chunks, then each reduction over them, then the results.

What a reduction gives is a value for each row, and the nodes after it may combine it with the row's elements.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.cells import cells_of, split, whole
from tilearray_cuda.kernels.expression import Values, computed, stored
from tilearray_cuda.kernels.quotients import with_quotients
from tilearray_cuda.kernels.reduction import (
    Node,
    combined,
    constant_along,
    following,
    given,
    halved,
    halves,
    identities,
    joined,
    kept_apart,
    needed,
    part_named,
    part_value,
    reductions,
    update,
)
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.held import Held
from tilearray_cuda.kernels.schedules.held_lanes import IN_ANY_ORDER, HeldLanes
from tilearray_cuda.kernels.schedules.reduce import WARP
from tilearray_cuda.kernels.schedules.schedule import Schedule


def held(schedule: Held) -> list[str]:
    """Return the lines of a kernel after its setup."""
    return held_and_chunks(schedule, (), ())[0]


def held_and_chunks(
    schedule: Held, first: Collection[int], last: Collection[int]
) -> tuple[list[str], list[tuple[Branch, Values]]]:
    """Return the lines that go over rows, and the branch and the values of each chunk.

    Some nodes are computed `first`, and those that are needed `last` after the reductions.
    """
    once = of_rows(schedule) if isinstance(schedule, HeldLanes) else set[int]()
    schedule = schedule.with_spec(with_quotients(schedule.spec, once))
    nodes, found = schedule.spec.nodes, reductions(schedule)
    branches = _chunks(schedule)
    alone = branches[0]._replace(mask=_rows_mask(branches[0]), tag="")
    rows: Values = {}  # values that a whole row has
    of_threads = _of_threads(schedule)
    cells: Values = {}  # the same as each thread has them once
    spread: Values = {}  # and what is computed of them, for all elements of a row
    chunks: list[Values] = [{} for _ in branches]
    lines: list[str] = []

    def compute(wanted: list[int]) -> None:
        text, known = computed(schedule, alone, [node for node in wanted if node in once and node not in rows], rows)
        rows.update(known)
        lines.extend(text)
        new = [node for node in wanted if node in of_threads and node not in spread]
        text, known = computed(schedule, alone, new, cells)
        cells.update(known)
        lines.extend(text)
        for node in new:
            text, spread[node] = _in_all_lanes(schedule, node, *known[node])
            lines.extend(text)
        for place, branch in enumerate(branches):
            known = {**rows, **spread, **chunks[place]}
            text, chunks[place] = computed(schedule, branch, [node for node in wanted if node not in known], known)
            lines.extend(text)

    compute(list(first))
    for node in found:
        compute([n for n in needed(nodes, list(node.values)) if nodes[n][0] != "part"])
        lines += _over_chunks(schedule, node, branches, chunks)
        parts = [n for n, each in enumerate(nodes) if each[0] == "part" and each[1] == node.number]
        rows.update({n: part_value(found, nodes[n]) for n in parts})
        cells.update({n: _of_first_cell(schedule, node, nodes[n]) for n in parts if of_threads})
    outputs, single = spread_and_single(schedule)
    compute(sorted({*computed_for(schedule, outputs), *last}))
    for branch, values in zip(branches, chunks, strict=True):
        lines += stored(schedule, branch, values, outputs)
    if single:  # a result for each row
        firsts = {number: (_first(schedule, value), dtype) for number, (value, dtype) in rows.items()}
        wanted = [node for node in computed_for(schedule, single) if node not in firsts]
        text, values = computed(schedule, alone, wanted, firsts)
        block = alone._replace(row="rows") if isinstance(schedule, HeldLanes) and schedule.has_scalars else alone
        lines += [*text, *stored(schedule, block, values, single)]
    return lines, list(zip(branches, chunks, strict=True))


def spread_and_single(schedule: Schedule) -> tuple[list[int], list[int]]:
    """Return the outputs that have an element for each one of a row, and those that have one for each row."""
    spec = schedule.spec
    outputs = [place for place in range(spec.outputs) if place not in spec.carried]
    spread = [place for place in outputs if spec.operands[place].last_two[1] != 0]
    return spread, [place for place in outputs if place not in spread]


def computed_for(schedule: Schedule, outputs: list[int]) -> list[int]:
    """Return the nodes that some outputs need, without reductions."""
    spec = schedule.spec
    return [n for n in needed(spec.nodes, [spec.stores[place] for place in outputs]) if spec.nodes[n][0] != "part"]


def of_rows(schedule: Schedule) -> set[int]:
    """Return the nodes that have one value for a whole row."""
    return constant_along(schedule.spec, 1, parts=True)


def _of_threads(schedule: Held) -> set[int]:
    """Return the nodes that each thread computes once for a row: what follows from reductions alone.

    Such as the logarithm of a sum: on all elements of a vector, the compiler would compute it four times.
    """
    if isinstance(schedule, HeldLanes) or schedule.threads > WARP:
        return set()
    parts = {number for number, node in enumerate(schedule.spec.nodes) if node[0] == "part"}
    return following(schedule.spec, parts) - parts


def _of_first_cell(schedule: Held, node: Node, part: Any) -> tuple[Value, str]:
    """Return what a reduction gives as the first cell of a row has it."""
    cell = cells_of(schedule.run)[0]
    return part_named(node, part, tuple([f"{name}{cell}" for name in node.names()[part[2]]]))


def _in_all_lanes(schedule: Held, node: int, value: Value, dtype: str) -> tuple[list[str], tuple[Value, str]]:
    """Return the lines that give a value of each thread to all of its elements of a row, and the new value."""
    lines: list[str] = []
    names = tuple([f"row{node}_{part}" for part in range(len(value))])
    for name, text in zip(names, value, strict=True):
        lines += [f"{name}{cell} = {text}" for cell in cells_of(schedule.run)]
        lines += whole(name, schedule.run)
    return lines, (names, dtype)


def _over_chunks(schedule: Held, node: Node, branches: list[Branch], chunks: list[Values]) -> list[str]:
    """Return the lines that reduce a row: all chunks at once, or each segment of them, and then the segments."""
    if not isinstance(schedule, HeldLanes):
        return [*_lanes(node, branches, chunks), *_reduced(schedule, node)]
    starts = range(0, len(branches), schedule.segment)
    lines: list[str] = []
    for segment, start in enumerate(starts):
        some = slice(start, start + schedule.segment)
        lines += _lanes(node, branches[some], chunks[some])
        lines += _neighbours(schedule, node)
        lines += kept_apart(node, segment) if len(starts) > 1 else []
    return [*lines, *joined(node, len(starts))] if len(starts) > 1 else lines


def _neighbours(schedule: HeldLanes, node: Node) -> list[str]:
    """Return the lines that combine all lanes, to a scalar if there is one row.

    Triton would carry the layout of one element over to all elements of the row, each of which a thread then has alone:
    a softmax of 4096 bfloat16 took 288 s to compile, and 45,000 accesses of spilled registers.
    """
    if node.how in IN_ANY_ORDER and not schedule.has_scalars:
        ((name,),) = node.names()
        return [f"{name} = tl.expand_dims(tl.reduce({name}, 1, combine{node.number}), 1)"]
    lines = [halved(node, half, neighbours=True) for half in halves(schedule.tile.columns)]
    if schedule.has_scalars:
        names = [name for value in node.names() for name in value]
        pairs = ", ".join(f"tl.reshape({name}, (2,))" for name in names)
        pairs = f"({pairs})" if len(names) > 1 else pairs
        lines[-1] = f"{', '.join(names)} = tl.reduce({pairs}, 0, combine{node.number})"
    return lines


def _lanes(node: Node, branches: list[Branch], chunks: list[Values]) -> list[str]:
    """Return the lines that combine chunks lane by lane, in any order from the first chunk on, if all lanes have it."""
    lines, rest = identities(node), list(zip(branches, chunks, strict=True))
    branch, values = rest[0]
    ((first, *_), *_) = given(node, values)
    if node.how in IN_ANY_ORDER and branch.mask not in ("in_columns", "tile") and first.endswith(branch.tag):
        lines, rest = [f"a{node.number}_0 = {first}"], rest[1:]
    for branch, values in rest:
        lines += update(node, values, branch)
    return lines


def _chunks(schedule: Held) -> list[Branch]:
    """Return the names of each chunk; only the last one may reach beyond the row."""
    (arm,) = schedule.arms()
    found = [arm.branch._replace(column=f"column{chunk}", tag=f"_of_{chunk}") for chunk in range(schedule.chunks)]
    if not schedule.is_whole:
        found[-1] = found[-1]._replace(mask="tile" if arm.branch.mask else "in_columns")
    return found


def _first(schedule: Held, value: Value) -> Value:
    """Return the value of each row as a block of one column."""
    if isinstance(schedule, HeldLanes):
        return value
    if schedule.threads > WARP:
        return tuple([f"{name} + row * 0" for name in value])
    return tuple([f"float_at({name}, column0 == 0)" for name in value])


def _rows_mask(branch: Branch) -> str | None:
    return "in_rows" if branch.mask in ("in_rows", "tile") else None


def _reduced(schedule: Held, node: Node) -> list[str]:
    """Return the lines that combine all lanes: neighbours first within threads, then within warps, then across them.

    Within a warp, two threads take each other's value, and so both have the same: the ways in which values combine are
    commutative. A row of several warps has one row of cells for each of them.
    """
    names = [name for value in node.names() for name in value]
    cells = [[f"{name}{cell}" for name in names] for cell in cells_of(schedule.run)]
    lines = [line for name in names for line in split(name, schedule.run, schedule.cells)]
    step = 1
    while step < schedule.run:
        lines += [_combine(node, cells[place], cells[place + step]) for place in range(0, schedule.run, 2 * step)]
        step *= 2
    first, *others = cells
    step = 1
    while step < min(WARP, schedule.threads):
        lines += [f"{name}_other = tl.gather({name}, lane ^ {step}, 1)" for name in first]
        lines.append(_combine(node, first, [f"{name}_other" for name in first]))
        step *= 2
    if schedule.threads > WARP:
        return [*lines, *_across_warps(schedule, node, names, first)]
    lines += [f"{name} = {one}" for cell in others for name, one in zip(cell, first, strict=True)]
    return [*lines, *[line for name in names for line in whole(name, schedule.run)]]


def _across_warps(schedule: Held, node: Node, names: list[str], cell: list[str]) -> list[str]:
    """Return the lines that combine the values of warps to a scalar, which has no layout.

    Triton would carry a layout of few elements over to all elements of the row.
    """
    lines = [
        f"{name} = tl.reshape(float_at({one}, lane == 0), (WARPS,))" for name, one in zip(names, cell, strict=True)
    ]
    count = schedule.threads // WARP // 2
    while count:
        shape = f"({count}, 2)" if count > 1 else "(2,)"
        given = ", ".join(f"tl.reshape({name}, {shape})" for name in names)
        given = f"({given})" if len(names) > 1 else given
        lines.append(f"{', '.join(names)} = tl.reduce({given}, {int(count > 1)}, combine{node.number})")
        count //= 2
    return lines


def _combine(node: Node, names: list[str], others: list[str]) -> str:
    """Return the line that combines the values of a cell with others."""
    parts = len(names) // len(node.dtypes)
    x, y = ([tuple(each[first : first + parts]) for first in range(0, len(each), parts)] for each in (names, others))
    return f"{', '.join(names)} = {combined(node, x, y)}"
