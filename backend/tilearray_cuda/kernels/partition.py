"""The text of a stable partition by digits below 32: elements are counted by their digit, or stored in its order.

The counts of blocks are added by a scan between both launches, digit by digit, and within a digit block by block. So
the sum before a block's count of a digit is where its first element of the digit goes.
"""

from __future__ import annotations

from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.partition import DIGITS, Partition


def partitioned(schedule: Partition) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes = schedule.spec.nodes
    number, node = next((number, node) for number, node in enumerate(nodes) if node[0] in ("digits", "rank"))
    before = needed(nodes, [node[1]])
    lines, values = _read(schedule, [other for other, each in enumerate(nodes) if each[0] == "input"])
    text, values = computed(schedule, schedule.tail, [other for other in before if other not in values], values)
    lines += [*text, f"digit = {values[node[1]][0][0]}.to(tl.int32)", f"digits = tl.arange(0, {DIGITS})"]
    return [*lines, *(_counted() if node[0] == "digits" else _placed(schedule, number, values))]


def _read(schedule: Partition, inputs: list[int]) -> tuple[list[str], Values]:
    """Return the lines that load inputs, in a whole block without a mask, and their values."""
    whole, _ = computed(schedule, schedule.whole, inputs)
    tail, values = computed(schedule, schedule.tail, inputs)
    return [*["if (block + 1) * BLOCK <= n1:", *indented(whole)], *["else:", *indented(tail)]], values


def _counted() -> list[str]:
    """Return the lines that count the digits of a block."""
    return [
        f"counted = tl.histogram(digit, {DIGITS}, mask=inside)",
        f"tl.store(out0 + ((row * {DIGITS} + digits) * blocks + block), counted.to(out0.dtype.element_ty))",
    ]


def _placed(schedule: Partition, number: int, values: Values) -> list[str]:
    """Return the lines that store the elements of a block in the order of their digits."""
    spec = schedule.spec
    ends = spec.operands[spec.outputs + spec.nodes[number][2]].name
    lines = [
        f"digit = tl.where(inside, digit, {DIGITS - 1})",
        "place = digits * blocks + block",
        f"starts = tl.load({ends} + (row * {DIGITS} * blocks + place - 1), mask=place > 0, other=0)",
        f"starts = starts.to(tl.int{spec.index_bits})",
        "slot = slots_behind(digit, starts, RUNS)",
    ]
    known: Values = {**values, number: (("slot",), "int64")}
    rest = [other for other in range(len(spec.nodes)) if other not in known]
    text, known = computed(schedule, schedule.tail, rest, known)
    return [*lines, *text, *stored(schedule, schedule.tail, known)]
