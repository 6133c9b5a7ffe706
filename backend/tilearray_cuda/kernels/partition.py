"""The text of a stable partition by digits below 256: elements are counted by their digit, or stored in its order.

The counts of blocks are added digit by digit, and within a digit block by block. So the sum before a block's count of a
digit is where its first element of the digit goes. There are three ways to it:

- A scan between two launches adds the counts.
- Of few blocks each program of the second launch adds them, and reads the counts block by block.
- In one sweep a launch takes the sums of the counts of all blocks, which an earlier one has counted for all digits at
  once. Programs take their blocks by turn, tell the counts of theirs, order its elements, and then look back: they add
  the counts of earlier blocks up to one that knows the sum of all before it, as in A. Adinets and D. Merrill,
  "Onesweep" (2022). Programs of earlier turns run already, so none waits for one that cannot start.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray_cuda.kernels.block_assembly import DIGITS
from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.partition import STEPS, Partition
from tilearray_cuda.kernels.storage import STORAGE

AT_ONCE = 8
"""The blocks whose counts a program of one sweep reads at once. Of 10**8 int32 on an H100, a launch took 605 us with 8,
641 us with 16, and 912 us with 32.
"""
_OF_BLOCK, _OF_ALL = 1 << 30, -(1 << 31)
"""The bits that tell the count of a block, and that of all blocks up to it, from memory of zeros."""


def partitioned(schedule: Partition) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes, kinds = schedule.spec.nodes, ("digits", "histograms", "rank")
    number, node = next((number, node) for number, node in enumerate(nodes) if node[0] in kinds)
    if schedule.histograms:
        return _histograms(schedule, node[1], *schedule.histograms)
    lines, values = computed(schedule, schedule.branch, needed(nodes, [node[1]]))
    lines.append(f"digit = {values[node[1]][0][0]}.to(tl.int32)")
    return [*lines, *(_counted(schedule.parts, node[2]) if schedule.counts else _placed(schedule, number, values))]


def _counted(parts: int, by_block: bool) -> list[str]:
    """Return the lines that count the digits of some blocks."""
    last = parts * DIGITS
    digit = f"index // {parts}"
    by_digit = f"(row * {DIGITS} + {digit}) * blocks + place"
    place = f"(row * blocks + place) * {DIGITS} + {digit}" if by_block else by_digit
    return [
        f"digit = tl.where(inside, digit * {parts} + index // (SIZE // {parts}), {last})",
        "counted = count_of_digits(digit, index)",
        f"place = block * {parts} + index % {parts}",
        f"counts = out0 + ({place})",
        f"tl.store(counts, counted, mask=(index < {last}) & (place < blocks))",
    ]


def _placed(schedule: Partition, number: int, values: Values) -> list[str]:
    """Return the lines that store the elements of a block in the order of their digits. Those outside come last."""
    spec = schedule.spec
    _, _, position, given, *counts = spec.nodes[number]
    ends = spec.operands[spec.outputs + position]
    others = [node for node in range(len(spec.nodes)) if node not in values and node != number]
    text, values = computed(schedule, schedule.branch, others, values)
    is_wide = ends.dtype == "int64"
    moved, names, words = _moved([values[node] for node in spec.stores], is_wide)
    steps = [f"slot, {names} = moved_by_digits(digit, index, start, {', '.join(words)})"]
    if given == "starts":
        start = [*_told(f"{schedule.turns} + {counts[1]}", words), *_looked_back(ends.name)]
        steps = [f"slot, {names} = moved_from(start)"]
    elif given == "counts":
        start = _start_of_counts(ends.name)
    else:
        start = ["start = index * 0"] if is_wide else _start(ends.name)
    rest = _slots_of_wide(ends.name) if is_wide else []
    known: Values = {**values, number: (("slot",), "int64")}
    for node, value in zip(spec.stores, moved, strict=True):
        known[node] = (value,), values[node][1]
    return [
        *text, f"digit = tl.where(inside, digit, {DIGITS - 1})", *start, *steps, *rest,
        *stored(schedule, schedule.branch, known),
    ]  # fmt: skip


def _moved(values: Sequence[tuple[Value, str]], is_wide: bool) -> tuple[list[str], str, list[str]]:
    """Return values in the order of digits, the names of their words there, and the words."""
    words: list[str] = []
    moved: list[str] = []
    for (value,), dtype in values:
        storage, first = STORAGE[dtype], len(words)
        bits = f"tl.int{8 * storage.itemsize}"
        code = f"{value}.to({bits})" if dtype == "bool" else f"{value}.to({bits}, bitcast=True)"
        words.append(f"{code}.to(tl.int32)")
        found = f"moved{first}.to({bits})"
        if storage.itemsize == 8:
            words.append(f"({code} >> 32).to(tl.int32)")
            lower, upper = (f"moved{word}.to(tl.uint32, bitcast=True).to(tl.int64)" for word in (first, first + 1))
            found = f"({lower} | ({upper} << 32))"
        moved.append(f"({found} != 0)" if dtype == "bool" else f"{found}.to({storage.register}, bitcast=True)")
    names = ", ".join([*[f"moved{word}" for word in range(len(words))], *["moved_digit"] * is_wide])
    words += ["digit"] * is_wide
    return moved, names, words


def _before(ends: str) -> str:
    """Return where the number of elements stands that come before a place's digit and block."""
    return f"{ends} + (row * {DIGITS} * blocks + place)"


def _start(ends: str) -> list[str]:
    """Return the lines that find the slots of the first elements of digits."""
    return [
        "place = index * blocks + (block - 1)",
        f"start = tl.load({_before(ends)}, mask=(place >= 0) & (index < {DIGITS}), other=0)",
    ]


def _slots_of_wide(ends: str) -> list[str]:
    """Return the lines that add these slots where they have 64 bits: those of the assembly have 32."""
    return [
        "place = moved_digit.to(tl.int64) * blocks + (block - 1)",
        f"slot += tl.load({_before(ends)}, mask=place >= 0, other=0)",
    ]


def _start_of_counts(counts: str) -> list[str]:
    """Return the lines of `_start` for counts of all blocks of a row: some are read at once, a digit a column."""
    at_once = f"(SIZE // {DIGITS}, {DIGITS})"
    return [
        f"counts = {counts} + row * blocks * {DIGITS}",
        "of_all = index * 0",
        "of_earlier = index * 0",
        f"for first in range(0 * blocks, blocks, SIZE // {DIGITS}):",
        *indented(
            [
                f"other = first + index // {DIGITS}",
                f"place = tl.max_contiguous(first * {DIGITS} + index, 1)",
                "count = tl.load(counts + place, mask=other < blocks, other=0)",
                "of_all += count",
                "of_earlier += tl.where(other < block, count, 0)",
            ]
        ),
        f"of_digit = tl.sum(tl.reshape(of_all, {at_once}), 0)",
        f"start = tl.cumsum(of_digit, 0) - of_digit + tl.sum(tl.reshape(of_earlier, {at_once}), 0)",
        f"start = tl.reshape(tl.broadcast_to(start[None, :], {at_once}), (SIZE,))",
    ]


# --- one sweep --------------------------------------------------------------------------------------------------------


def _told(counts: str, words: Sequence[str]) -> list[str]:
    """Return the lines that tell the counts of a block as soon as they are known, and then order its elements."""
    return [
        "counted = counted_of_block(digit, index)",
        f"count = tl.sum(tl.reshape(counted, (SIZE // {DIGITS}, {DIGITS})), 0)",
        f"of_digit = tl.arange(0, {DIGITS})",
        f"told = {counts} + of_digit",
        f"tl.store(told + block * {DIGITS}, count | {_OF_BLOCK})",
        f"ranked_in_block(digit, {', '.join(words)})",
    ]


def _looked_back(starts: str) -> list[str]:
    """Return the lines that add the counts of earlier blocks, from the nearest to one that knows the sum of all."""
    body: list[str] = []
    for k in range(AT_ONCE):
        guard = f"mask=(at >= {k}) & ~is_done, other={_OF_ALL}, volatile=True"
        body.append(f"word{k} = tl.load(told + (at - {k}) * {DIGITS}, {guard})")
    body.append("is_stopped = is_done")
    for k in range(AT_ONCE):
        body += [
            f"is_known = ~is_stopped & (word{k} != 0)",
            f"before += tl.where(is_known, word{k} & {_OF_BLOCK - 1}, 0)",
            f"is_done |= is_known & (word{k} < 0)",
            f"further += (is_known & (word{k} > 0)).to(tl.int32)",
            f"is_stopped |= word{k} <= 0",
        ]
    by_digit = f"(SIZE // {DIGITS}, {DIGITS})"
    return [
        f"first = tl.load({starts} + (of_digit - 1), mask=of_digit > 0, other=0)",
        "at = of_digit * 0 + (block - 1)",
        "before = of_digit * 0",
        "is_done = at < 0",
        "while tl.max((~is_done).to(tl.int32), 0) > 0:",
        *indented(["further = of_digit * 0", *body, "at -= further"]),
        f"tl.store(told + block * {DIGITS}, (before + count) | {_OF_ALL})",
        f"start = tl.reshape(tl.broadcast_to((before + first)[None, :], {by_digit}), (SIZE,))",
    ]


def _histograms(schedule: Partition, key: int, digits: int, words: int) -> list[str]:
    """Return the lines that count digits of keys."""
    lines, values = computed(schedule, schedule.branch, needed(schedule.spec.nodes, [key]))
    (word,), _ = values[key]
    given = [f"({word}).to(tl.int32)", f"({word} >> 32).to(tl.int32)"][:words]
    return [
        "counts_begun(index)",
        f"for step in range({STEPS}):",
        *indented(
            [
                f"column = tl.max_contiguous((program * {STEPS} + step) * SIZE + index, 1)",
                "inside = column < n1",
                "i1 = column",
                *lines,
                f"counts_added(inside.to(tl.int32), {', '.join(given)})",
            ]
        ),
        "counted = counts_found(index)",
        f'tl.atomic_add(out0 + index, counted, mask=index < {DIGITS * digits}, sem="relaxed")',
    ]
