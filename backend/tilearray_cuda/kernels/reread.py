"""The text of rows that are read again: a walk for the reductions of each turn, and one for the results.

A reduction that needs the result of another one comes a turn after it. Each walk computes what it needs from the
inputs; what a row has once is computed between walks.
"""

from __future__ import annotations

from collections.abc import Callable

from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.held import computed_for, of_rows, spread_and_single
from tilearray_cuda.kernels.reduction import Node, halved, halves, identities, needed, part_value, reductions, update
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.reread import Reread


def reread(schedule: Reread) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes, found = schedule.spec.nodes, reductions(schedule)
    alone, once = Branch(None), of_rows(schedule)
    rows: Values = {}  # values that a whole row has
    lines = schedule.row_setup()

    def compute_once(wanted: list[int]) -> None:
        text, known = computed(schedule, alone, [n for n in wanted if n in once and n not in rows], rows)
        rows.update(known)
        lines.extend(text)

    for turn, members in enumerate(_turns(schedule, found)):
        wanted = needed(nodes, [value for node in members for value in node.values])
        compute_once(_computed(schedule, wanted))
        lines += [line for node in members for line in identities(node)]
        lines += _walk(schedule, f"_of_{turn}", _computed(schedule, wanted), members, rows)
        lines += [line for node in members for line in _halves(schedule, node)]
        numbers = {node.number for node in members}
        parts = [n for n, each in enumerate(nodes) if each[0] == "part" and each[1] in numbers]
        rows.update({n: part_value(found, nodes[n]) for n in parts})
    spread, single = spread_and_single(schedule)
    compute_once(computed_for(schedule, list(range(schedule.spec.outputs))))
    lines += _stores(schedule, spread, rows) if spread else []
    if single:  # a result for each row
        text, values = computed(schedule, alone, [n for n in computed_for(schedule, single) if n not in rows], rows)
        block = alone._replace(row="rows") if schedule.has_scalars else alone
        lines += [*text, *stored(schedule, block, values, single)]
    return [schedule.rows_loop(), *indented(lines)]


def _computed(schedule: Reread, wanted: list[int]) -> list[int]:
    return [n for n in wanted if schedule.spec.nodes[n][0] not in ("part", "reduce")]


def _turns(schedule: Reread, found: list[Node]) -> list[list[Node]]:
    """Return the reductions of each turn: they need the results of earlier turns alone."""
    nodes = schedule.spec.nodes
    turns: dict[int, int] = {}
    for node in found:
        parts = [nodes[n][1] for n in needed(nodes, list(node.values)) if nodes[n][0] == "part"]
        turns[node.number] = max([turns[part] + 1 for part in parts], default=0)
    return [[node for node in found if turns[node.number] == turn] for turn in range(max(turns.values()) + 1)]


def _walk(schedule: Reread, tag: str, wanted: list[int], members: list[Node], rows: Values) -> list[str]:
    """Return the loops over whole chunks, and over those that reach beyond a segment or the row."""

    def step(branch: Branch) -> list[str]:
        text, values = computed(schedule, branch, [n for n in wanted if n not in rows], rows)
        return [*text, *[line for node in members for line in update(node, values, branch)]]

    whole = f"tl.range(0, whole_chunks, loop_unroll_factor={schedule.unrolled})"
    column = "column = first_column + chunk * LANES"
    return _both(schedule, step, tag, column, whole, "range(whole_chunks, segments_chunks)")


def _stores(schedule: Reread, spread: list[int], rows: Values) -> list[str]:
    """Return the loops that store results for each element, in wide steps."""

    def step(branch: Branch) -> list[str]:
        wanted = [n for n in computed_for(schedule, spread) if n not in rows]
        text, values = computed(schedule, branch, wanted, rows)
        return [*text, *stored(schedule, branch, values, spread)]

    extent = f"n{schedule.spec.rank - 1}"
    column = "column = chunk * WIDE + tl.arange(0, WIDE)[None, :]"
    ends = f"range(0, {extent} // WIDE)", f"range({extent} // WIDE, ({extent} - 1) // WIDE + 1)"
    return _both(schedule, step, "_of_results", column, *ends)


def _both(
    schedule: Reread, step: Callable[[Branch], list[str]], tag: str, column: str, whole: str, rest: str
) -> list[str]:
    """Return a loop over whole steps, and one with a mask."""
    name = f"column{tag}"
    branch = Branch(None, column=name, tag=tag)
    edge = branch._replace(mask="in_columns", column=f"{name}_of_tail", tag=f"{tag}_of_tail")
    lines: list[str] = []
    for each, chunks in ((branch, whole), (edge, rest)):
        named = column.replace("column =", f"{each.column} =", 1)
        mask = [f"in_columns = {each.column} < n{schedule.spec.rank - 1}"] * (each is edge)
        lines += [f"for chunk in {chunks}:", *indented([named, *mask, *step(each)])]
    return lines


def _halves(schedule: Reread, node: Node) -> list[str]:
    """Return the lines that combine the lanes of each segment, and then the segments, to a scalar if it may be one."""
    lines = [halved(node, half, neighbours=False, rows="SEGMENTS") for half in halves(schedule.lanes)]
    lines += [halved(node, half, neighbours=False) for half in halves(schedule.segments)]
    if schedule.has_scalars:
        names = [name for value in node.names() for name in value]
        pairs = ", ".join(f"tl.reshape({name}, (2,))" for name in names)
        pairs = f"({pairs})" if len(names) > 1 else pairs
        lines[-1] = f"{', '.join(names)} = tl.reduce({pairs}, 0, combine{node.number})"
    else:
        lines += [f"{name} = tl.reshape({name}, (ROWS, 1))" for value in node.names() for name in value]
    return lines
