"""The text of shared columns: a walk for each reduction, after which the group meets, and a walk that stores.

All lanes of a tile get the result of a reduction through memory. Otherwise Triton would compute all elements in the
layout of the few that were exchanged. Pointers walk from chunk to chunk: if each chunk had an address of its own, the
compiler would keep all addresses from the loads to the stores.

Two elements of 2 bytes lie in one register. A copy of that register before each walk hides from the compiler that it
has computed what follows from them before, so that it does not keep the results, which take a register each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.held import computed_for, of_rows, spread_and_single
from tilearray_cuda.kernels.quotients import with_quotients
from tilearray_cuda.kernels.reduction import Node, identities, needed, part_value, reductions, update
from tilearray_cuda.kernels.schedules.addressing import Branch, moved
from tilearray_cuda.kernels.schedules.shared_columns import SLOT, SharedColumns
from tilearray_cuda.kernels.spec import Operand
from tilearray_cuda.kernels.storage import STORAGE

Body = Callable[[Branch, Values], list[str]]
"""The lines for a chunk whose values are known."""


def shared_columns(schedule: SharedColumns) -> list[str]:
    """Return the lines of a kernel after its setup."""
    once = of_rows(schedule)
    schedule = schedule.with_spec(with_quotients(schedule.spec, once))
    nodes, found = schedule.spec.nodes, reductions(schedule)
    alone = schedule.arms()[-1].branch
    walk = HeldChunks(schedule) if schedule.chunks else ReadChunks(schedule)
    rows: Values = {}  # values that a whole column has
    single_rows: Values = {}  # what reductions gave, as one element of each column
    lines: list[str] = []

    def compute(wanted: list[int]) -> list[int]:
        """Compute what a whole column has, and return the other nodes."""
        text, known = computed(schedule, alone, [node for node in wanted if node in once and node not in rows], rows)
        rows.update(known)
        lines.extend(text)
        return [node for node in wanted if node not in once]

    for phase, node in enumerate(found):
        wanted = compute([n for n in needed(nodes, list(node.values)) if nodes[n][0] != "part"])
        lines += identities(node)
        lines += walk(wanted, rows, lambda branch, values, node=node: update(node, values, branch))
        lines += _met(schedule, node, phase, exchanged(found[:phase]))
        for n, each in enumerate(nodes):
            if each[0] == "part" and each[1] == node.number:
                rows[n] = part_value(found, each)
                single_rows[n] = _of_first(node, rows[n])
    spread, single = spread_and_single(schedule)
    if spread:
        wanted = compute(computed_for(schedule, spread))
        lines += walk(wanted, rows, lambda branch, values: stored(schedule, branch, values, spread), spread)
    if single:
        branch = alone._replace(tag="_once")
        text, values = computed(schedule, branch, computed_for(schedule, single), single_rows)
        text += stored(schedule, branch, values, single)
        lines += ["if segment == 0:", *indented(text)] if schedule.is_cut else text
    return lines


def exchanged(nodes: list[Node]) -> int:
    """Return the number of values that reductions exchange for each column."""
    return sum(len(value) for node in nodes for value in node.names())


def _of_first(node: Node, value: tuple[Value, str]) -> tuple[Value, str]:
    """Return what a reduction gave, as one element of each column."""
    parts, dtype = value
    for name in [name for each in node.names() for name in each]:
        parts = tuple([part.replace(name, f"{name}_once") for part in parts])
    return parts, dtype


# --- walks -----------------------------------------------------------------------------------------------------------


class HeldChunks:
    """Walks over the chunks of a segment that a program reads once, and holds."""

    def __init__(self, schedule: SharedColumns) -> None:
        self._schedule = schedule
        self._values: list[Values] = [{} for _ in range(schedule.chunks)]
        self._walks = 0
        mask = schedule.arms()[-1].branch.mask
        if not schedule.is_whole:
            mask = "tile" if mask else "in_columns"
        self._branches = [Branch(mask, column="lane", tag=f"_of_{chunk}") for chunk in range(schedule.chunks)]

    def __call__(self, wanted: list[int], known: Values, body: Body, outputs: list[int] | None = None) -> list[str]:
        """Return the lines of a walk that computes some nodes; it stores these outputs, if any."""
        schedule, nodes = self._schedule, self._schedule.spec.nodes
        copied = schedule.halves and self._walks > 0
        self._walks += 1
        new = [node for node in wanted if nodes[node][0] == "input" and node not in self._values[0]]
        read = [schedule.spec.operands[schedule.spec.outputs + nodes[node][1]] for node in new]
        lines = self._over_chunks([each for each in read if each.last_two[1]], self._computed, new, known)
        written = [schedule.spec.operands[output] for output in outputs or ()]

        def each_chunk(chunk: int, wanted: list[int], known: Values) -> list[str]:
            text = self._copied(chunk) if copied else []
            text += self._computed(chunk, wanted, known)
            return [*text, *body(self._branches[chunk], {**known, **self._values[chunk]})]

        return [*lines, *self._over_chunks(written, each_chunk, wanted, known)]

    def _over_chunks(
        self, moving: list[Operand], lines_of: Callable[..., list[str]], wanted: list[int], known: Values
    ) -> list[str]:
        """Return the lines for all chunks, while the pointers of some arrays move along."""
        steps = {each: _column_stride(self._schedule, each) for each in moving}
        lines = [moved(each, [f"first_chunk * COLUMNS * {step}"]) for each, step in steps.items()]
        for chunk in range(self._schedule.chunks):
            if not self._schedule.is_whole:
                lines.append(f"in_columns = (first_chunk + {chunk}) * COLUMNS + lane < end")
            text = lines_of(chunk, wanted, known)
            lines += text
            if chunk < self._schedule.chunks - 1:
                lines += [moved(each, [f"COLUMNS * {step}"]) for each, step in steps.items()]
        return lines

    def _copied(self, chunk: int) -> list[str]:
        """Return the lines that copy the elements of a chunk, and forget what was computed from them.

        What repeats along an axis is not copied: it may have other dtypes, and one element for a row.
        """
        spec = self._schedule.spec
        inputs = [node for node in self._values[chunk] if spec.nodes[node][0] == "input"]
        self._values[chunk] = {node: self._values[chunk][node] for node in inputs}
        return [
            f'{name} = tl.inline_asm_elementwise("mov.b32 $0, $1; // walk {self._walks}", "=r,r", [{name}], '
            f"{STORAGE[dtype].register}, is_pure=True, pack=2)"
            for node, ((name,), dtype) in self._values[chunk].items()
            if 0 not in spec.operands[spec.outputs + spec.nodes[node][1]].last_two
        ]

    def _computed(self, chunk: int, wanted: list[int], known: Values) -> list[str]:
        values = {**known, **self._values[chunk]}
        new = [node for node in wanted if node not in values]
        text, found = computed(self._schedule, self._branches[chunk], new, values)
        self._values[chunk] |= {node: found[node] for node in new}
        return text


class ReadChunks:
    """Walks over the chunks of a segment that a program reads for each walk: they are too many to hold."""

    def __init__(self, schedule: SharedColumns) -> None:
        self._schedule = schedule

    def __call__(self, wanted: list[int], known: Values, body: Body, outputs: list[int] | None = None) -> list[str]:
        """Return the loops over chunks, for each arm."""
        schedule = self._schedule
        if outputs is not None:
            schedule = copy.copy(schedule)
            schedule.policy = "evict_first"
        arms = schedule.arms()
        lines: list[str] = []
        for arm in arms:
            walk = _loops(schedule, arm.branch, wanted, known, body)
            if len(arms) > 1:
                lines.append(f"if {arm.condition}:" if arm.condition else "else:")
            lines += indented(walk) if len(arms) > 1 else walk
        return lines


def _loops(schedule: SharedColumns, branch: Branch, wanted: list[int], known: Values, body: Body) -> list[str]:
    """Return a loop over several chunks at once, one over single ones, and the tail."""
    count, column = schedule.unroll, schedule.spec.rank - 1
    loads = [node for node in wanted if schedule.spec.nodes[node][0] == "input"]
    others = [node for node in wanted if node not in loads]

    def some(branches: list[Branch]) -> list[str]:
        lines = [
            f"{each.column} = (chunk + {turn}) * COLUMNS + tl.arange(0, COLUMNS)[None, :]"
            for turn, each in enumerate(branches)
        ]
        if branches[0].mask in ("in_columns", "tile"):
            lines.append(f"in_columns = {branches[0].column} < n{column}")
        values: list[Values] = []
        for each in branches:
            text, read = computed(schedule, each, loads, known)
            values.append(read)
            lines += text
        for each, read in zip(branches, values, strict=True):
            text, found = computed(schedule, each, others, read)
            lines += [*text, *body(each, found)]
        return lines

    several = [branch._replace(column=f"column{turn}", tag=f"_of_{turn}") for turn in range(count)]
    one = branch._replace(tag="_of_one")
    edge = branch._replace(mask="tile" if branch.mask else "in_columns", tag="_of_tail")
    return [
        f"for chunk in range(first_chunk, whole_blocks, {count}):",
        *indented(some(several)),
        "for chunk in range(whole_blocks, whole_chunks):",
        *indented(some([one])),
        "if whole_chunks < last_chunk:",
        *indented(["chunk = whole_chunks", *some([edge])]),
    ]


def _column_stride(schedule: SharedColumns, operand: Operand) -> str:
    stride = operand.last_two[1]
    return f"{operand.name}_s{schedule.spec.rank - 1}" if stride == "other" else f"({stride})"


# --- meetings --------------------------------------------------------------------------------------------------------


def _met(schedule: SharedColumns, node: Node, phase: int, before: int) -> list[str]:
    """Return the lines that combine lanes, then what all members of the group give: neighbours first."""
    values = zip(node.names(), node.registers, strict=True)
    names = {name: register for value, register in values for name in value}
    lines: list[str] = []
    half = schedule.lanes // 2
    while half:
        lines += _combined_with(node, list(names), f"lane ^ {half}")
        half //= 2
    column = "tl.arange(0, ROWS)[:, None]"
    for place, (name, register) in enumerate(names.items(), before):
        # The slots of 2**27 columns have 2**31 bytes, which no int32 holds.
        start = f"slots + {2 * SLOT * place} * (strips * {schedule.total} * ROWS).to(tl.int64)" if place else "slots"
        lines.append(f"{name}_slots = (scratch + {start}).to(tl.pointer_type({register}), bitcast=True)")
    lines.append(f"own = (program + strips * {schedule.total}) * ROWS + {column}")
    if schedule.is_cut:
        lines += _met_members(schedule, node, phase, list(names), column)
    else:
        lines += [f"tl.store({name}_slots + own + lane * 0, {name}, mask=lane == 0)" for name in names]
    lines.append("tl.debug_barrier()")
    for name in names:
        lines += [f"{name} = tl.load({name}_slots + own + lane * 0)", f"{name}_once = tl.load({name}_slots + own)"]
    return lines


def _met_members(schedule: SharedColumns, node: Node, phase: int, names: list[str], column: str) -> list[str]:
    """Return the lines that store what a program gives, wait for the group, and store what the group gives."""
    mine, inside = f"program * ROWS + {column} + lane * 0", "member < segments_total"
    lines = [f"tl.store({name}_slots + {mine}, {name}, mask=lane == 0)" for name in names]
    lines.append(f"meet(counters + 1 + strip * {schedule.phases} + {phase}, segments_total)")
    place = f"(strip * segments_total + member) * ROWS + {column}"
    whole = [f"{name}_of_group" for name in names]
    lines += [
        f'{of_group} = tl.load({name}_slots + {place}, mask={inside}, cache_modifier=".cg")'
        for name, of_group in zip(names, whole, strict=True)
    ]
    for of_group, line in zip(whole, identities(node), strict=True):
        nothing = line.partition(" = ")[2].replace("(ROWS, COLUMNS)", "(ROWS, MEMBERS)")
        lines.append(f"{of_group} = tl.where({inside}, {of_group}, {nothing})")
    step = 1
    while step < schedule.members:
        lines += _combined_with(node, whole, f"member ^ {step}")
        step *= 2
    return [
        *lines,
        *[
            f"tl.store({name}_slots + own + member * 0, {of_group}, mask=member == 0)"
            for name, of_group in zip(names, whole, strict=True)
        ],
    ]


def _combined_with(node: Node, names: list[str], places: str) -> list[str]:
    """Return the lines that combine each value with the one in another place, in which both get the same."""
    others = [f"{name}_other = tl.gather({name}, {places}, 1)" for name in names]
    given = ", ".join([*names, *[f"{name}_other" for name in names]])
    return [*others, f"{', '.join(names)} = combine{node.number}({given})"]
