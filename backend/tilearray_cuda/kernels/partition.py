"""The text of a stable partition by digits below 256: elements are counted by their digit, or stored in its order.

The counts of blocks are added digit by digit, and within a digit block by block. So the sum before a block's count of a
digit is where its first element of the digit goes. A scan between both launches adds them, or for few blocks each
program of the second launch, which then reads the counts block by block.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_order import DIGITS
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.partition import Partition


def partitioned(schedule: Partition) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes = schedule.spec.nodes
    number, node = next((number, node) for number, node in enumerate(nodes) if node[0] in ("digits", "rank"))
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
    _, _, position, by_block = spec.nodes[number]
    ends = spec.operands[spec.outputs + position]
    rest = [node for node in range(len(spec.nodes)) if node not in values and node != number]
    text, values = computed(schedule, schedule.branch, rest, values)
    known: Values = {**values, number: (("slot",), "int64")}
    slots = _slots_of_counts(ends.name) if by_block else _slots(ends.name, ends.dtype == "int64")
    lines = [*text, f"digit = tl.where(inside, digit, {DIGITS - 1})", *slots]
    for node in spec.stores:
        (value,), dtype = values[node]
        value = f"{value}.to(tl.int8)" if dtype == "bool" else value
        lines.append(f"moved{node} = tl.gather({value}, source, 0)" + " != 0" * (dtype == "bool"))
        known[node] = ((f"moved{node}",), dtype)
    return [*lines, *stored(schedule, schedule.branch, known)]


def _slots(ends: str, is_wide: bool) -> list[str]:
    """Return the lines that find for each slot of a block its place in the row, and the element that goes there.

    Slots of the assembly have 32 bits. In longer rows it counts from the first element of a digit.
    """
    before = f"{ends} + (row * {DIGITS} * blocks + place)"
    if is_wide:
        return [
            "source, slot = order_of_digits(digit, index, index * 0)",
            "place = tl.gather(digit, source, 0).to(tl.int64) * blocks + (block - 1)",
            f"slot += tl.load({before}, mask=place >= 0, other=0)",
        ]
    return [
        "place = index * blocks + (block - 1)",
        f"start = tl.load({before}, mask=(place >= 0) & (index < {DIGITS}), other=0)",
        "source, slot = order_of_digits(digit, index, start)",
    ]


def _slots_of_counts(counts: str) -> list[str]:
    """Return the lines of `_slots` for counts of all blocks of a row: some are read at once, a digit a column."""
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
        "source, slot = order_of_digits(digit, index, start)",
    ]
