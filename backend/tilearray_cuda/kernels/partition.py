"""The text of a stable partition by digits below 256: elements are counted by their digit, or stored in its order.

The counts of blocks are added by a scan between both launches, digit by digit, and within a digit block by block. So
the sum before a block's count of a digit is where its first element of the digit goes.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_order import DIGITS
from tilearray_cuda.kernels.expression import Values, computed, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.partition import PARTS, Partition


def partitioned(schedule: Partition) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes = schedule.spec.nodes
    number, node = next((number, node) for number, node in enumerate(nodes) if node[0] in ("digits", "rank"))
    lines, values = computed(schedule, schedule.branch, needed(nodes, [node[1]]))
    lines.append(f"digit = {values[node[1]][0][0]}.to(tl.int32)")
    return [*lines, *(_counted() if schedule.counts else _placed(schedule, number, values))]


def _counted() -> list[str]:
    """Return the lines that count the digits of some blocks."""
    last = PARTS * DIGITS
    return [
        f"digit = tl.where(inside, digit * {PARTS} + index // (SIZE // {PARTS}), {last})",
        "counted = count_of_digits(digit, index)",
        f"place = block * {PARTS} + index % {PARTS}",
        f"counts = out0 + ((row * {DIGITS} + index // {PARTS}) * blocks + place)",
        f"tl.store(counts, counted, mask=(index < {last}) & (place < blocks))",
    ]


def _placed(schedule: Partition, number: int, values: Values) -> list[str]:
    """Return the lines that store the elements of a block in the order of their digits. Those outside come last."""
    spec = schedule.spec
    ends = spec.operands[spec.outputs + spec.nodes[number][2]]
    rest = [node for node in range(len(spec.nodes)) if node not in values and node != number]
    text, values = computed(schedule, schedule.branch, rest, values)
    known: Values = {**values, number: (("slot",), "int64")}
    lines = [*text, f"digit = tl.where(inside, digit, {DIGITS - 1})", *_slots(ends.name, ends.dtype == "int64")]
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
