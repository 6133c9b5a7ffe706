"""The text of a scan in blocks: a walk that finds totals, a wait for what is before, and a walk that stores.

Every element is combined with what is before it in its segment, then in its block, and then in the row.
`tilearray.geometry.scan` has the order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.cells import cells_of, split, whole
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import Node
from tilearray_cuda.kernels.scan import (
    Chunk,
    cells_named,
    first_of,
    full,
    inputs_of,
    joined,
    joined_cells,
    lanes,
    lanes_scanned,
    neutral,
    node_of,
    results_of,
    tagged,
)
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.scan_blocks import ScanBlocks


def scanned_blocks(schedule: ScanBlocks) -> list[str]:
    """Return the lines of a kernel after its setup."""
    node = node_of(schedule)
    block = [
        *_walk(schedule, node, stores=False),
        *_members(schedule, node),
        *_told(node, "_run", "_told", "own + member * 0", ", mask=member == 0"),
        *full(node, "_block", "1"),
        *_walk(schedule, node, stores=True),
    ]
    return [*lanes(schedule), *_words(node), "if own < 0:", *indented(_totals(node)), "else:", *indented(block)]


def _words(node: Node) -> list[str]:
    """Return the lines that find where totals are told, and what is before them."""
    names = [f"{name}_{what}" for name in tagged(node, "") for what in ("told", "before")]
    return [
        f"{name}_{word} = words + {2 * number + place} * count"
        for number, name in enumerate(names)
        for place, word in enumerate(("low", "high"))
    ]


# --- walks ------------------------------------------------------------------------------------------------------------


def _walk(schedule: ScanBlocks, node: Node, *, stores: bool) -> list[str]:
    """Return the loop over the chunks of all segments of a block, several at once."""
    inputs, last = inputs_of(schedule, node), tagged(node, "_last")
    if stores:
        schedule = copy.copy(schedule)
        schedule.policy = "evict_first"
    chunks = [Chunk(Branch(None, column=f"column{k}", tag=f"_of_{k}"), k) for k in range(schedule.unroll)]
    lines = [
        f"{chunk.branch.column} = (first_chunk + (step + {chunk.ahead})) * COLUMNS + tl.arange(0, COLUMNS)[None, :]"
        for chunk in chunks
    ]
    lines += _in_both_arms(schedule, chunks, lambda chunk: computed(schedule, chunk.branch, inputs)[0])
    scanned: list[Value] = []
    for chunk in chunks:
        _, values = computed(schedule, chunk.branch, inputs)
        text, names = lanes_scanned(schedule, node, chunk, values)
        lines += text
        first = "" if neutral(node, "(1, 1)") or chunk.ahead else "step == 0"
        cells, total = cells_named(schedule, names), tagged(node, "_total")
        lines += [f"{new} = tl.gather({name}, end, 1)" for new, name in zip(total, cells[-1], strict=True)]
        lines += joined(node, last, total, total, first, total)
        lines += joined_cells(node, last, cells, first) if stores else []
        lines += [f"{old} = {new}" for old, new in zip(last, total, strict=True)]
        scanned.append(names)
    lines += _stored(schedule, node, chunks, scanned) if stores else []
    steps = f"for step in range(0, CHUNKS, {schedule.unroll}):"
    return [*full(node, "_last", "THREADS"), steps, *indented(lines)]


def _stored(schedule: ScanBlocks, node: Node, chunks: list[Chunk], scanned: list[Value]) -> list[str]:
    """Return the lines that combine chunks with what is before them and store them: first they wait for it."""
    lines = _awaited(node)
    results: list[Values] = []
    for chunk, names in zip(chunks, scanned, strict=True):
        for tag, where in (("_member", "member == 0"), ("_block", "block == 0")):
            where = "" if neutral(node, "(1, 1)") else where
            lines += joined_cells(node, tagged(node, tag), cells_named(schedule, names), where)
        lines += [line for name in names for line in whole(name, schedule.run)]
        text, known = results_of(schedule, node, names, chunk)
        lines += text
        results.append(known)
    return [
        *lines,
        *_in_both_arms(schedule, chunks, lambda chunk: stored(schedule, chunk.branch, results[chunk.ahead])),
    ]


def _in_both_arms(schedule: ScanBlocks, chunks: list[Chunk], lines_of: Callable[[Chunk], list[str]]) -> list[str]:
    """Return lines for each chunk, without masks if the block is whole, and else with them."""
    lines: list[str] = []
    for arm in schedule.arms():
        text: list[str] = []
        for chunk in chunks:
            mask = arm.branch.mask
            text += [f"{mask} = {chunk.branch.column} < n{schedule.spec.rank - 1}"] if mask else []
            text += lines_of(chunk._replace(branch=chunk.branch._replace(mask=mask)))
        lines += [f"if {arm.condition}:" if arm.condition else "else:", *indented(text)]
    return lines


# --- totals -----------------------------------------------------------------------------------------------------------


def _members(schedule: ScanBlocks, node: Node) -> list[str]:
    """Return the lines that combine the totals of the segments of a block, one after the other."""
    last, run, member = (tagged(node, tag) for tag in ("_last", "_run", "_member"))
    rows = schedule.tile.rows
    lines = full(node, "_member", "1")
    for name, kept in zip(last, tagged(node, "_of_row"), strict=True):
        lines += [f"{kept} = {first_of(node, name)}", *split(kept, rows, ("1", "1"))]
    totals = [tuple([f"{name}{cell}" for name in tagged(node, "_of_row")]) for cell in cells_of(rows)]
    lines += [f"{name} = {total}" for name, total in zip(run, totals[0], strict=True)]
    for number, total in enumerate(totals[1:], 1):
        lines += [
            f"{name} = tl.where(member == {number}, {other}, {name})" for name, other in zip(member, run, strict=True)
        ]
        lines += joined(node, run, total, run)
    return lines


def _told(node: Node, value: str, where: str, place: str, guard: str = "") -> list[str]:
    """Return the lines that store values as words."""
    lines: list[str] = []
    for name in tagged(node, ""):
        low, high = f"{name}{value}_low", f"{name}{value}_high"
        lines.append(f"{low}, {high} = to_words({name}{value})")
        lines.append(f"tl.store({name}{where}_low + {place}, {low}{guard})")
        lines.append(f"tl.store({name}{where}_high + {place}, {high}{guard})")
    return lines


def _awaited(node: Node) -> list[str]:
    """Return the lines that wait for what is before a block, once its first chunks are read."""
    lines: list[str] = []
    for name in tagged(node, ""):
        given = f"{name}_before_low + own, {name}_before_high + own, member"
        lines.append(f"{name}_first, {name}_second = await_words({given})")
        lines.append(f"{name}_block = from_words({name}_first, {name}_second, {node.registers[0]})")
    return ["if (step == 0) & (block > 0):", *indented(lines)]


def _totals(node: Node) -> list[str]:
    """Return the lines of the program that combines totals: as many at once as there are, up to a row of threads.

    Each lane takes the totals before its own, one after the other, so all lanes take a total in the same step. The
    next totals are read meanwhile.
    """
    run, each, before, total, new = (tagged(node, tag) for tag in ("_before", "_each", "_base", "_sum", "_more"))
    words = [f"{name}_word_{word}" for name in tagged(node, "") for word in ("low", "high")]

    def read(first: str, tag: str = "") -> list[str]:
        return [
            f"{name}_word_low{tag}, {name}_word_high{tag} = "
            f"read_words({name}_told_low, {name}_told_high, {first} + lane, count)"
            for name in tagged(node, "")
        ]

    def joined_after(earlier: Value, later: Value, target: Value, turn: str) -> list[str]:
        nothing = neutral(node, "(1, 1)")
        return joined(node, earlier, later, target, "" if nothing else f"{turn} == begin", later)

    known = words[0]
    for word in words[1:]:
        known = f"tl.minimum({known}, {word})"
    nothing = neutral(node, "(1, 1)")
    step = [f"{name} = tl.gather({value}, lane * 0 + turn, 1)" for name, value in zip(each, total, strict=True)]
    step += joined_after(before, each, new, "turn")
    taken = "(turn >= begin) & (turn < lane)"
    step += [f"{name} = tl.where({taken}, {value}, {name})" for name, value in zip(before, new, strict=True)]
    last = [
        f"{name} = tl.where(found > 0, tl.gather({value}, lane * 0 + tl.maximum(found - 1, 0), 1), {name})"
        for name, value in zip(run, new, strict=True)
    ]
    body = [
        f"found = stored_so_far({known}, lane)",
        *[
            f"{name}_sum = from_words({name}_word_low, {name}_word_high, {node.registers[0]})"
            for name in tagged(node, "")
        ],
        *read("(first + found)", "_next"),
        "begin = lane - (first + lane) % blocks  # of the row",
        *[
            f"{name} = tl.where(begin < 0, {value}, {nothing or value})"
            for name, value in zip(before, run, strict=True)
        ],
        "for turn in tl.static_range(THREADS - 1):",
        *indented(step),
        *_told(node, "_base", "_before", "first + lane", ", mask=(lane < found) & (member == 0)"),
        *joined_after(before, total, new, "lane"),
        *last,
        "first += found",
        *[f"{word} = {word}_next" for word in words],
    ]
    return [
        *full(node, "_before", "THREADS"),
        "first = 0 * count",
        "last = tl.where(blocks == 1, 0, count)",
        *read("first"),
        "while first < last:",
        *indented(body),
    ]
