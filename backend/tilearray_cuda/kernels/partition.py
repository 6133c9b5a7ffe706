"""The text of a stable partition by digits below 256: elements are counted by their digit, or stored in its order.

The counts of blocks are added digit by digit, and within a digit block by block. So the sum before a block's count of a
digit is where its first element of the digit goes. There are three ways to it:

- A scan between two launches adds the counts.
- Of few blocks each program of the second launch adds them, and reads the counts block by block.
- In one sweep a launch takes the counts of the row, which an earlier one has counted for all digits at once. Programs
  take their blocks by turn, tell the counts of theirs, order its elements, and then look back: they add the counts of
  earlier blocks up to one that tells the sum of all before it, as in A. Adinets and D. Merrill, "Onesweep" (2022).
  Programs of earlier turns run already, so none waits for one that cannot start.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilearray_cuda.kernels.block_assembly import DIGITS
from tilearray_cuda.kernels.block_counts import bins_of
from tilearray_cuda.kernels.block_order import AT_ONCE, OF_ALL
from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.partition import Partition
from tilearray_cuda.kernels.storage import STORAGE


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
    _, key, position, given, *counts = spec.nodes[number]
    ends = spec.operands[spec.outputs + position]
    others = [node for node in range(len(spec.nodes)) if node not in values and node != number]
    text, values = computed(schedule, schedule.branch, others, values)
    is_wide = ends.dtype == "int64"
    moved, names, words = _moved([values[node] for node in spec.stores], is_wide)
    steps = [f"slot, {names} = moved_by_digits(digit, index, start, {', '.join(words)})"]
    if given == "swept":
        assert counts[1] >= DIGITS * (AT_ONCE + 1)
        start = _swept(ends.name, f"{schedule.turns} + {counts[1]}", words)
        steps = _slots_of_moved(schedule, key, values, moved, names)
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


def _swept(of_row: str, counts: str, words: Sequence[str]) -> list[str]:
    """Return the lines that tell the counts of a block as soon as they are known, and then order its elements.

    The program of the first block tells how many elements of the row have smaller digits, as a block before it.
    """
    return [
        f"told = {counts} + block * {DIGITS}",
        "if block == 0:",
        *indented(
            [
                f"of_digit = tl.arange(0, {DIGITS})",
                f"of_row = tl.load({of_row} + of_digit)",
                f"tl.store(told - {DIGITS} + of_digit, (tl.cumsum(of_row, 0) - of_row) | {OF_ALL})",
            ]
        ),
        "told = told.to(tl.int64)",
        "counted = counted_of_block(digit, index, told)",
        f"ranked_in_block(digit, {', '.join(words)})",
    ]


def _slots_of_moved(schedule: Partition, key: int, values: Values, moved: Sequence[str], names: str) -> list[str]:
    """Return the lines that read moved words and find their slots: from digits that are kept, or computed again."""
    if schedule.keeps_digits:
        return [f"{names}, digit = moved_from(counted, told)", "slot = slots_of(digit)"]
    nodes, (element,) = schedule.spec.nodes, schedule.spec.stores
    known: Values = {**values, element: ((f"({moved[0]})",), values[element][1])}
    again = [node for node in needed(nodes, [key]) if nodes[node][0] != "input"]
    text, known = computed(schedule, schedule.branch, again, known)
    return [f"{names} = moved_from(counted, told)", *text, f"slot = slots_of({known[key][0][0]}.to(tl.int32))"]


def _histograms(schedule: Partition, key: int, digits: int, words: int) -> list[str]:
    """Return the lines that count digits of keys: of whole blocks, which are read as vectors, and of the last one."""

    def added(branch: Branch, inside: str) -> list[str]:
        lines, values = computed(schedule, branch, needed(schedule.spec.nodes, [key]))
        (word,), _ = values[key]
        given = [f"({word}).to(tl.int32)", f"({word} >> 32).to(tl.int32)"][:words]
        return [*lines, f"counts_added({inside}, {', '.join(given)})"]

    column = ["column = block * SIZE + index", "i1 = column"]
    return [
        "counts_begun(index)",
        "blocks_whole = n1 // SIZE",
        "for block in range(program, blocks_whole, tl.num_programs(0)):",
        *indented([*column, *added(schedule.branch._replace(mask=None), "index * 0 + 1")]),
        "if program == blocks_whole % tl.num_programs(0):",
        *indented(
            ["block = blocks_whole", *column, "inside = column < n1", *added(schedule.branch, "inside.to(tl.int32)")]
        ),
        f"bin = tl.arange(0, {bins_of(digits)})",
        f'tl.atomic_add(out0 + bin, counts_found(bin), mask=bin < {DIGITS * digits}, sem="relaxed")',
    ]
