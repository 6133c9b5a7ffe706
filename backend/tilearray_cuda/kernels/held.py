"""The text of rows that are held: loads of all chunks, then each reduction over them, then the results.

What a reduction gives is a value for each row, and the nodes after it may combine it with the row's elements.
"""

from __future__ import annotations

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.cells import cells_of, split, whole
from tilearray_cuda.kernels.expression import Values, computed, stored
from tilearray_cuda.kernels.reduction import Node, combined, identities, needed, part_value, reductions, update
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.held import WARP, Held


def held(schedule: Held) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes, found = schedule.spec.nodes, reductions(schedule)
    branches = _chunks(schedule)
    rows: Values = {}  # values that a whole row has
    chunks: list[Values] = [{} for _ in branches]
    lines: list[str] = []

    def compute(wanted: list[int]) -> None:
        for place, branch in enumerate(branches):
            known = {**rows, **chunks[place]}
            text, chunks[place] = computed(schedule, branch, [node for node in wanted if node not in known], known)
            lines.extend(text)

    for node in found:
        compute([n for n in needed(nodes, list(node.values)) if nodes[n][0] != "part"])
        lines += identities(node)
        for branch, values in zip(branches, chunks, strict=True):
            lines += update(node, values, branch)
        lines += _reduced(schedule, node)
        parts = [n for n, each in enumerate(nodes) if each[0] == "part" and each[1] == node.number]
        rows.update({n: part_value(found, nodes[n]) for n in parts})
    rest = [n for n in needed(nodes, list(schedule.spec.stores)) if nodes[n][0] != "part"]
    if schedule.spec.operands[0].last_two[1] == 0:  # a result for each row
        alone = branches[0]._replace(mask=_rows_mask(branches[0]), tag="")
        firsts = {number: (_first(schedule, value), dtype) for number, (value, dtype) in rows.items()}
        text, values = computed(schedule, alone, rest, firsts)
        return [*lines, *text, *stored(schedule, alone, values)]
    compute(rest)
    for branch, values in zip(branches, chunks, strict=True):
        lines += stored(schedule, branch, values)
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
