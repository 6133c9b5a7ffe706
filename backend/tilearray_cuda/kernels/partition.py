"""The text of a stable partition by digits below 16: elements are counted by their digit, or stored in its order.

A program keeps where its next element of each digit goes. Within a block it counts all digits in four scans: an element
adds 1 to one of four fields of 16 bits of an integer, so a scan has the counts of four digits at once.
"""

from __future__ import annotations

from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.select import Select

DIGITS = 16
FIELDS = 4
"""The digits that a scan counts at once."""
WIDTH = 16
"""The bits of a count of one digit: those of a block, which has fewer than 2**16 elements."""
BINS = 32
"""Bins of a histogram: Triton wants one for each thread of a warp."""


def partitioned(schedule: Select) -> list[str]:
    """Return the lines of a kernel after its setup."""
    whole, tail = schedule.arms()
    if schedule.spec.has_node("digits"):
        block, begin = _counted, [f"counted = tl.full(({BINS},), 0, tl.int32)"]
        digits = f"tl.arange(0, {BINS})"
        address = f"out0 + {digits} * tl.num_programs(0) + program"
        end = [f"tl.store({address}, counted.to(tl.int64), mask={digits} < {DIGITS})"]
    else:
        block, begin, end = _placed, _starts(schedule), []
    return [
        *begin,
        "for block in range(first_block, whole_blocks):",
        *indented(block(schedule, whole)),
        "if whole_blocks < last_block:",
        *indented(["block = whole_blocks", *block(schedule, tail)]),
        *end,
    ]


def _node(schedule: Select) -> tuple[int, int]:
    """Return the node of a kernel that counts or ranks, and its digit."""
    nodes = schedule.spec.nodes
    number = next(number for number, node in enumerate(nodes) if node[0] in ("digits", "rank"))
    return number, nodes[number][1]


def _digits(schedule: Select, arm: Arm) -> tuple[list[str], Values]:
    """Return the lines that find the digits of a block, and the values so far."""
    _, digit = _node(schedule)
    lines, values = computed(schedule, arm.branch, needed(schedule.spec.nodes, [digit]))
    return [*arm.setup, *lines, f"digit = {values[digit][0][0]}.to(tl.int32)"], values


def _counted(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that count the digits of a block."""
    lines, _ = _digits(schedule, arm)
    mask = f", {arm.branch.mask}" if arm.branch.mask else ""
    return [*lines, f"counted += tl.histogram(digit, {BINS}{mask})"]


def _starts(schedule: Select) -> list[str]:
    """Return the lines that find where the first element of each digit goes."""
    spec = schedule.spec
    number, _ = _node(schedule)
    counts, ends = [spec.operands[spec.outputs + position].name for position in spec.nodes[number][2:]]
    lines: list[str] = []
    for digit in range(DIGITS):
        place = f"{digit} * tl.num_programs(0) + program"
        lines.append(f"start{digit} = tl.load({ends} + {place}) - tl.load({counts} + {place})")
    return lines


def _placed(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that store the elements of a block in the order of their digits."""
    tag, mask = arm.branch.tag, arm.branch.mask or "True"
    number, _ = _node(schedule)
    lines, values = _digits(schedule, arm)
    lines += [
        f"chosen{tag} = (digit >= 0) & {mask}",
        f"field = (digit % {FIELDS}).to(tl.int64) * {WIDTH}",
        "one = tl.full((BLOCK,), 1, tl.int64) << field",
        "slot = tl.full((BLOCK,), 0, tl.int64)",
    ]
    for group in range(DIGITS // FIELDS):
        first = FIELDS * group
        lines += [
            f"of_group = chosen{tag} & (digit // {FIELDS} == {group})",
            "ones = tl.where(of_group, one, 0)",
            f"earlier = ((tl.cumsum(ones, 0) - ones) >> field) & {2**WIDTH - 1}",
            f"start = tl.where(digit == {first}, start{first}, start{first + 1})",
            *[f"start = tl.where(digit == {first + more}, start{first + more}, start)" for more in (2, 3)],
            "slot = tl.where(of_group, start + earlier, slot)",
            "total = tl.sum(ones, 0)",
            *[f"start{first + more} += (total >> {WIDTH * more}) & {2**WIDTH - 1}" for more in range(FIELDS)],
        ]
    lines.append(f"slot{tag} = slot")
    values[number] = (f"slot{tag}",), "int64"
    return [*lines, *stored(schedule, arm.branch, values)]
