"""The text of a scan in blocks: a walk that finds totals, a wait for what is before, and a walk that stores.

Every element is combined with what is before it in its segment, then in its block, and then in the row.
`tilearray.geometry.scan` has the order. Integers give the same in any order, so theirs is the shortest.

A whole block has a text of its own, without masks: if it shares one with the last block of a row, the compiler computes
masks for both. The first walk needs the totals of chunks only, and threads share them: in the end a thread has a value
of one chunk. On an H100 flat sums of bfloat16 are scanned at 0.88 of a copy's rate so, and of complex64 at 0.87; at
0.73 and 0.68 if both walks are alike and have one text.
"""

from __future__ import annotations

import copy

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.cells import cells_of, split, whole
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import NARROWER, Node
from tilearray_cuda.kernels.scan import (
    Chunk,
    cells_computed,
    cells_named,
    cells_scanned,
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

SMALLER = {
    "int64": ("bool", "int8", "uint8", "int16", "uint16"),
    "uint64": ("bool", "uint8", "uint16"),
}
"""The dtypes of which `FIT` elements have a sum that 32 bits have: as uint64, -1 is 2**64 - 1."""
FIT = 2**15
AHEAD = 8
"""The totals that move to all lanes before they are needed: each takes registers."""
CAST_AT_ONCE = 8
"""The chunks that the first walk reads at once if floats are cast, as float32 to float64: registers hold them before.

On an H100 flat sums of float32, bfloat16 and complex64 are scanned at 0.94, 0.93 and 0.88 of a copy's rate so, and at
0.91, 0.90 and 0.86 with 4 chunks; of float16 at 0.935 and 0.945. Others are not faster with 8 chunks than with 4.
"""
TAIL_AT_ONCE = 2
"""The chunks of a segment of the last block that are read at once: each element has a mask, which takes registers."""


def scanned_blocks(schedule: ScanBlocks) -> list[str]:
    """Return the lines of a kernel after its setup."""
    node = node_of(schedule)
    whole, tail = (indented(_block(schedule, node, arm.branch)) for arm in schedule.arms())
    arms = ["if own < 0:", *indented(_totals(schedule, node)), "elif is_whole:", *whole, "else:", *tail]
    return [*lanes(schedule), *_words(node), *arms]


def _block(schedule: ScanBlocks, node: Node, branch: Branch) -> list[str]:
    """Return the lines that scan a block."""
    inner, (register,) = _within(schedule, node), node.registers
    return [
        *_walk(schedule, inner, branch, stores=False),
        *_members(schedule, inner),
        *[f"{name} = {name}.to({register})" for name in tagged(node, "_run") if inner is not node],
        *_told(node, "_run", "_told", "own + member * 0", ", mask=member == 0"),
        *full(node, "_block", "1"),
        *_walk(schedule, inner, branch, stores=True),
    ]


def _words(node: Node) -> list[str]:
    """Return the lines that find where totals are told, and what is before them."""
    names = [f"{name}_{what}" for name in tagged(node, "") for what in ("told", "before")]
    return [
        f"{name}_{word} = words + {2 * number + place} * count"
        for number, name in enumerate(names)
        for place, word in enumerate(("low", "high"))
    ]


def _within(schedule: ScanBlocks, node: Node) -> Node:
    """Return the node of what is combined in a block: sums of small integers fit into 32 bits there."""
    (dtype,), elements = node.dtypes, schedule.chunks * schedule.tile.rows * schedule.tile.columns
    if node.how == "add" and elements <= FIT and dtype in SMALLER and _is_cast(schedule, node.values[0], dtype):
        return node._replace(registers=(NARROWER[dtype],))
    return node


def _is_cast(schedule: ScanBlocks, number: int, dtype: str) -> bool:
    """Whether a value is cast from a small integer, whose value a dtype has."""
    spec = schedule.spec
    node = spec.nodes[number]
    if node[0] == "input":
        return spec.operands[spec.outputs + node[1]].dtype in SMALLER[dtype]
    return node[0] == "cast" and node[2] == dtype and _is_cast(schedule, node[1], dtype)


# --- walks ------------------------------------------------------------------------------------------------------------


def _walk(schedule: ScanBlocks, node: Node, branch: Branch, *, stores: bool) -> list[str]:
    """Return the loop over the chunks of all segments of a block, several at once; of the last block of a row, two."""
    unroll = TAIL_AT_ONCE if branch.mask else schedule.unroll if stores else _summed_at_once(schedule, node)
    inputs = inputs_of(schedule, node)
    if stores:
        schedule = copy.copy(schedule)
        schedule.policy = "evict_first"
    lines: list[str] = []
    chunks: list[tuple[Chunk, Values]] = []
    for k in range(unroll):
        chunk = Chunk(branch._replace(column=f"column{k}", tag=f"_of_{k}"), k)
        first, column = f"{chunk.branch.column}_first", chunk.branch.column
        lines.append(f"{first} = (first_chunk + (step + {k})) * COLUMNS")
        lines.append(f"{column} = {first} + tl.arange(0, COLUMNS)[None, :]")
        text, values = computed(schedule, chunk.branch, inputs)
        lines += [*_mask(schedule, chunk), *text]
        chunks.append((chunk, values))
    lines += _scanned(schedule, node, chunks) if stores else _summed(schedule, node, chunks)
    return [*full(node, "_last", "THREADS"), f"for step in range(0, CHUNKS, {unroll}):", *indented(lines)]


def _summed_at_once(schedule: ScanBlocks, node: Node) -> int:
    """Return the chunks that the first walk reads at once."""
    return min(CAST_AT_ONCE, schedule.chunks) if _casts(schedule, node) and not node.is_exact else schedule.unroll


def _casts(schedule: ScanBlocks, node: Node) -> bool:
    """Whether what is scanned is cast."""
    return schedule.spec.nodes[node.values[0]][0] == "cast"


def _summed(schedule: ScanBlocks, node: Node, chunks: list[tuple[Chunk, Values]]) -> list[str]:
    """Return the lines that find the totals of chunks, and combine them with the last one.

    A thread has a value of each chunk. In the first halves, it gives one of two chunks to its neighbour and combines
    the other one, so that it is left with one value of all of them.
    """
    if node.is_exact:
        return _summed_in_any_order(schedule, node, chunks)
    lines: list[str] = []
    values: list[Value] = []
    for chunk, known in chunks:
        text, names = cells_scanned(schedule, node, chunk, known)
        lines += text
        values.append(cells_named(schedule, names)[-1])
    half = 1
    while half < schedule.threads:
        if len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            lines += [line for first, second in pairs for line in _exchanged(node, first, second, half)]
            values = values[::2]
        else:
            (value,) = values
            low = tagged(node, "_low")
            lines += [f"{new} = tl.gather({name}, lane ^ {half}, 1)" for new, name in zip(low, value, strict=True)]
            lines += joined_cells(node, low, [value], f"upper{half} == 0")
        half *= 2
    last, total, apart = tagged(node, "_last"), tagged(node, "_total"), len(chunks) // len(values)
    for number in range(len(chunks)):
        first = "" if neutral(node, "(1, 1)") or number else "step == 0"
        value, lane = values[number // apart], schedule.threads - apart + number % apart
        lines += [f"{new} = tl.gather({name}, lane * 0 + {lane}, 1)" for new, name in zip(total, value, strict=True)]
        lines += joined(node, last, total, last, first, total)
    return lines


def _summed_in_any_order(schedule: ScanBlocks, node: Node, chunks: list[tuple[Chunk, Values]]) -> list[str]:
    """Return the same lines for integers: a thread combines all of its elements, and then threads are combined."""
    ((last,), (low,), (sums,)) = (tagged(node, tag) for tag in ("_last", "_low", "_sums"))
    lines: list[str] = []
    for chunk, values in chunks:
        text, names = cells_computed(schedule, node, chunk, values)
        lines += [*text, *_of_thread(schedule, node, names, f"{sums}{chunk.ahead}")]
    lines.append(f"{sums} = {sums}0")
    for chunk, _ in chunks[1:]:
        lines += joined(node, (sums,), (f"{sums}{chunk.ahead}",), (sums,))
    half = 1
    while half < schedule.threads:
        lines += [f"{low} = tl.gather({sums}, lane ^ {half}, 1)", *joined(node, (low,), (sums,), (sums,))]
        half *= 2
    return [*lines, *joined(node, (last,), (sums,), (last,))]


def _of_thread(schedule: ScanBlocks, node: Node, names: Value, target: str) -> list[str]:
    """Return the lines that combine the integers that each thread has of a chunk."""
    (first,), *others = cells_named(schedule, names)
    return [f"{target} = {first}", *[line for cell in others for line in joined(node, (target,), cell, (target,))]]


def _exchanged(node: Node, first: Value, second: Value, half: int) -> list[str]:
    """Return the lines that combine the first of two values of threads in lower ones, and the second in upper ones."""
    lines: list[str] = []
    low, high = (tuple([f"{name}_{word}" for name in first]) for word in ("low", "high"))
    for one, other, lower, upper in zip(first, second, low, high, strict=True):
        lines += [
            f"{lower} = tl.gather(tl.where(upper{half}, {one}, {other}), lane ^ {half}, 1)",
            f"{upper} = tl.where(upper{half}, {other}, {lower})",
            f"{lower} = tl.where(upper{half}, {lower}, {one})",
        ]
    return [*lines, *joined(node, low, high, first)]


def _scanned(schedule: ScanBlocks, node: Node, chunks: list[tuple[Chunk, Values]]) -> list[str]:
    """Return the lines that scan chunks, combine them with what is before them and store them."""
    if node.is_exact:
        return _scanned_in_any_order(schedule, node, chunks)
    lines: list[str] = []
    scanned: list[tuple[Chunk, Value]] = []
    last, total = tagged(node, "_last"), tagged(node, "_total")
    for chunk, values in chunks:
        text, names = lanes_scanned(schedule, node, chunk, values)
        lines += text
        first = "" if neutral(node, "(1, 1)") or chunk.ahead else "step == 0"
        cells = cells_named(schedule, names)
        lines += [f"{new} = tl.gather({name}, end, 1)" for new, name in zip(total, cells[-1], strict=True)]
        lines += joined(node, last, total, total, first, total)
        lines += joined_cells(node, last, cells, first)
        lines += [f"{old} = {new}" for old, new in zip(last, total, strict=True)]
        scanned.append((chunk, names))
    lines += _awaited(node)
    for chunk, names in scanned:
        for tag, where in (("_member", "member == 0"), ("_block", "block == 0")):
            where = "" if neutral(node, "(1, 1)") else where
            lines += joined_cells(node, tagged(node, tag), cells_named(schedule, names), where)
        lines += _stored(schedule, node, chunk, names)
    return lines


def _scanned_in_any_order(schedule: ScanBlocks, node: Node, chunks: list[tuple[Chunk, Values]]) -> list[str]:
    """Return the same lines for integers, whose results are the same in any order.

    The totals of threads are scanned, and elements are combined with what is before their thread in all.
    """
    wide = node_of(schedule)
    ((last,), (sums,), (total,)) = (tagged(node, tag) for tag in ("_last", "_sums", "_total"))
    lines: list[str] = []
    scanned: list[tuple[Chunk, Value, str]] = []
    for chunk, values in chunks:
        text, names = cells_computed(schedule, node, chunk, values)
        prior = f"{names[0]}_prior"
        lines += [*text, *_of_thread(schedule, node, names, sums), *_summed_up(schedule, node)]
        lines.append(f"{prior} = {_shifted(node, '0')}")
        lines += [*joined(node, (last,), (prior,), (prior,)), f"{total} = tl.gather({sums}, end, 1)"]
        lines += joined(node, (last,), (total,), (last,))
        scanned.append((chunk, names, prior))
    lines += _awaited(wide)
    (register,) = wide.registers
    for chunk, names, prior in scanned:
        lines += joined(node, tagged(node, "_member"), (prior,), (prior,))
        lines.append(f"{prior} = {prior}.to({register})")
        lines += joined(wide, tagged(wide, "_block"), (prior,), (prior,))
        for (cell,) in cells_named(schedule, names):
            lines += [f"{cell} = {cell}.to({register})", *joined(wide, (prior,), (cell,), (cell,)), f"{prior} = {cell}"]
        lines += _stored(schedule, wide, chunk, names)
    return lines


def _summed_up(schedule: ScanBlocks, node: Node, begin: str = "") -> list[str]:
    """Return the lines that combine the integers ``sums`` of threads with those of all threads before.

    If there is a beginning, a lane or 0, then only from it on.
    """
    (sums,), (low,), nothing = tagged(node, "_sums"), tagged(node, "_low"), neutral(node, "(1, 1)")
    lines: list[str] = []
    half = 1
    while half < schedule.threads:
        if begin:
            lines.append(
                f"{low} = tl.where(lane - {half} >= {begin}, "
                f"tl.gather({sums}, tl.maximum(lane - {half}, 0), 1), {nothing})"
            )
        else:
            lines.append(f"{low} = tl.where(upper{half}, tl.gather({sums}, below{half}, 1), {nothing})")
        lines += joined(node, (low,), (sums,), (sums,))
        half *= 2
    return lines


def _shifted(node: Node, begin: str) -> str:
    """Return the value that each thread gets from the one before it, or what changes nothing up to a beginning."""
    (sums,), nothing = tagged(node, "_sums"), neutral(node, "(1, 1)")
    return f"tl.where(lane > {begin}, tl.gather({sums}, tl.maximum(lane - 1, 0), 1), {nothing})"


def _stored(schedule: ScanBlocks, node: Node, chunk: Chunk, names: Value) -> list[str]:
    """Return the lines that store a chunk.

    Their condition always holds: it keeps the compiler from storing all chunks at the end. On an H100 flat sums of
    float32 and bfloat16 are scanned at 0.92 and 0.88 of a copy's rate so, and at 0.90 and 0.87 without it.
    """
    lines = [line for name in names for line in whole(name, schedule.run)]
    text, known = results_of(schedule, node, names, chunk)
    text += [*_mask(schedule, chunk), *stored(schedule, chunk.branch, known)]
    return [*lines, "if own >= 0:", *indented(text)]


def _mask(schedule: ScanBlocks, chunk: Chunk) -> list[str]:
    """Return the line that names which elements of a chunk of the last block are inside."""
    mask, column = chunk.branch.mask, chunk.branch.column
    return [f"{mask} = {column} < n{schedule.spec.rank - 1}"] if mask else []


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


def _totals(schedule: ScanBlocks, node: Node) -> list[str]:
    """Return the lines of the program that combines totals: as many at once as there are, up to two rows of threads.

    The next totals are read meanwhile.
    """
    rows = range(_rows_at_once(schedule, node))
    words = [f"{name}_word_{word}" for name in tagged(node, "") for word in ("low", "high")]

    def read(first: str, tag: str = "") -> list[str]:
        return [
            f"{name}_word_low{row}{tag}, {name}_word_high{row}{tag} = "
            f"read_words({name}_told_low, {name}_told_high, {first} + {row} * THREADS + lane, count)"
            for row in rows
            for name in tagged(node, "")
        ]

    known = [f"{word}{row}" for row in rows for word in words]
    body = [f"found{row} = stored_so_far({_least(words, row)}, lane)" for row in rows]
    body.append("found = found0" + "".join([f" + tl.where(found0 == THREADS, found{row}, 0)" for row in rows[1:]]))
    body += read("(first + found)", "_next")
    for row in rows:
        lines = _combined(schedule, node, row)
        body += ["if found > THREADS:", *indented(["phase = (phase + THREADS) % blocks", *lines])] if row else lines
    body += ["first += found", "phase = first % blocks", *[f"{word} = {word}_next" for word in known]]
    return [
        *full(node, "_before", "THREADS"),
        "first = 0 * count",
        "phase = first  # the place in its row",
        "last = tl.where(blocks == 1, 0, count)",
        *read("first"),
        "while first < last:",
        *indented(body),
    ]


def _rows_at_once(schedule: ScanBlocks, node: Node) -> int:
    """Return the rows of threads whose totals are combined at once: two of float64, else one.

    On an H200 flat sums of float64 are scanned at 0.88 of a copy's rate so, and at 0.82 by one row; of float32 and
    bfloat16 at 0.845 and 0.82 by two, and at 0.855 and 0.845 by one.
    """
    return 2 if node.dtypes == ("float64",) and not _casts(schedule, node) else 1


def _least(words: list[str], row: int) -> str:
    """Return the least of the words of some values, which is 0 if one of them is not there."""
    found = f"{words[0]}{row}"
    for word in words[1:]:
        found = f"tl.minimum({found}, {word}{row})"
    return found


def _combined(schedule: ScanBlocks, node: Node, row: int) -> list[str]:
    """Return the lines that combine a row of totals, and tell what is before each of them."""
    names = tagged(node, "")
    lines = [
        f"{name}_sum = from_words({name}_word_low{row}, {name}_word_high{row}, {node.registers[0]})" for name in names
    ]
    of_rows = ["begin = lane - (phase + lane) % blocks  # of the row"]
    if node.is_exact:
        lines += [*of_rows, *_combined_in_any_order(schedule, node)]
    elif len(names) > 1:  # moves between threads are what takes time
        lines += [*of_rows, *_combined_of_rows(node)]
    else:
        lines += ["if phase + THREADS <= blocks:", *indented(_combined_of_one_row(schedule, node))]
        lines += ["else:", *indented([*of_rows, *_combined_of_rows(node)])]
    lines.append(f"here = found - {row} * THREADS" if row else "here = tl.minimum(found, THREADS)")
    place = f"first + {row} * THREADS + lane"
    return [
        *lines,
        *_told(node, "_base", "_before", place, ", mask=(lane < here) & (member == 0)"),
        *[
            f"{name} = tl.where(here > 0, tl.gather({value}, lane * 0 + tl.maximum(here - 1, 0), 1), {name})"
            for name, value in zip(tagged(node, "_before"), tagged(node, "_more"), strict=True)
        ],
    ]


def _combined_of_one_row(schedule: ScanBlocks, node: Node) -> list[str]:
    """Return the lines that find what is before each total, and what is up to it, where all are of one row.

    All lanes combine all totals, one after the other, and each one keeps what is before its own. Some totals move to
    all lanes before they are needed, so that a step takes the time of one operation. On an H200 flat sums of float32,
    float64 and bfloat16 are scanned at 0.85, 0.88 and 0.845 of a copy's rate so, and at 0.835, 0.82 and 0.795 by
    `_combined_of_rows` alone; of complex64 at 0.63 so, and at 0.735 by that, since each total takes four moves.
    """
    each, run, before, total, new = (tagged(node, tag) for tag in ("_each", "_so_far", "_base", "_sum", "_more"))
    begin = tagged(node, "_before")
    lines = [f"{name} = {value}" for name, value in zip(run, begin, strict=True)]
    lines += [f"{name} = {value}" for name, value in zip(before, begin, strict=True)]
    for turn in range(schedule.threads):
        if turn % AHEAD == 0:
            lines += [
                f"{name}{number} = tl.gather({value}, lane * 0 + {turn + number}, 1)"
                for number in range(min(AHEAD, schedule.threads))
                for name, value in zip(each, total, strict=True)
            ]
        one = tuple([f"{name}{turn % AHEAD}" for name in each])
        if turn:
            kept = zip(before, run, strict=True)
            lines += [f"{name} = tl.where(lane == {turn}, {value}, {name})" for name, value in kept]
        lines += joined(node, run, one, run, "" if turn else "phase == 0", one)
    return [
        *lines,
        *[
            f"{name} = tl.where(lane == THREADS - 1, {last}, tl.gather({value}, tl.minimum(lane + 1, THREADS - 1), 1))"
            for name, value, last in zip(new, before, run, strict=True)
        ],
    ]


def _combined_of_rows(node: Node) -> list[str]:
    """Return the same lines for totals of some rows.

    Each lane takes the totals before its own, one after the other, so all lanes take a total in the same step.
    """
    run, each, before, total, new = (tagged(node, tag) for tag in ("_before", "_each", "_base", "_sum", "_more"))
    nothing = neutral(node, "(1, 1)")

    def joined_after(earlier: Value, later: Value, target: Value, turn: str) -> list[str]:
        return joined(node, earlier, later, target, "" if nothing else f"{turn} == begin", later)

    step = [f"{name} = tl.gather({value}, lane * 0 + turn, 1)" for name, value in zip(each, total, strict=True)]
    step += joined_after(before, each, new, "turn")
    taken = "(turn >= begin) & (turn < lane)"
    step += [f"{name} = tl.where({taken}, {value}, {name})" for name, value in zip(before, new, strict=True)]
    return [
        *[
            f"{name} = tl.where(begin < 0, {value}, {nothing or value})"
            for name, value in zip(before, run, strict=True)
        ],
        "for turn in tl.static_range(THREADS - 1):",
        *indented(step),
        *joined_after(before, total, new, "lane"),
    ]


def _combined_in_any_order(schedule: ScanBlocks, node: Node) -> list[str]:
    """Return the same lines for integers: the totals of lanes are combined by halves."""
    (run,), (before,), (total,), (sums,), (new,) = (
        tagged(node, tag) for tag in ("_before", "_base", "_sum", "_sums", "_more")
    )
    earlier = f"{run}_earlier"
    return [
        f"{earlier} = tl.where(begin < 0, {run}, {neutral(node, '(1, 1)')})",
        "begin = tl.maximum(begin, 0)",
        f"{sums} = {total}",
        *_summed_up(schedule, node, "begin"),
        f"{before} = {_shifted(node, 'begin')}",
        *joined(node, (earlier,), (before,), (before,)),
        *joined(node, (before,), (total,), (new,)),
    ]
