"""The text of a selection: a loop over blocks, in which chosen elements are counted, or stored one after the other.

A kernel may also count all elements by their value. Its counts are added to those of other programs by atomics, once
for each program, so few places are as fast as many.

The number of chosen elements is a sum of integers, which has one result in any order.
"""

from __future__ import annotations

from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.select import Select

AT_ONCE = 1024
"""The counts of earlier segments that are read at once."""


def selected(schedule: Select) -> list[str]:
    """Return the lines of a kernel after its setup."""
    whole, tail = schedule.arms()
    end: list[str] = []
    if schedule.spec.has_node("bins"):
        block, (_, _, size) = _binned, _bins(schedule)
        begin = [f"counted = tl.full(({size},), 0, tl.int32)"]
        addresses = f"out0 + tl.arange(0, {size})"
        end = [f'tl.atomic_add({addresses}, counted.to(tl.int64), mask=counted > 0, sem="relaxed")']
    elif schedule.counts(schedule.spec):
        block, begin = _counted, ["counted = tl.full((BLOCK,), 0, tl.int32)"]
        end = ["tl.store(out0 + program, tl.sum(counted, 0))"]
    else:
        block, begin = _placed, _before(schedule)
    return [
        *begin,
        "for block in range(first_block, whole_blocks):",
        *indented(block(schedule, whole)),
        "if whole_blocks < last_block:",
        *indented(["block = whole_blocks", *block(schedule, tail)]),
        *end,
    ]


def _node(schedule: Select) -> tuple[int, int]:
    """Return the node of a kernel that counts or finds slots, and its condition."""
    nodes = schedule.spec.nodes
    number = next(number for number, node in enumerate(nodes) if node[0] in ("count", "slot"))
    return number, nodes[number][1]


def _before(schedule: Select) -> list[str]:
    """Return the lines that add the counts of earlier segments."""
    spec = schedule.spec
    number, _ = _node(schedule)
    counts = spec.operands[spec.outputs + spec.nodes[number][2]].name
    return [
        "before = 0 * program",
        f"for part in range(0 * program, program, {AT_ONCE}):",
        *indented(
            [
                f"earlier = part + tl.arange(0, {AT_ONCE})",
                f"counts = tl.load({counts} + earlier, mask=earlier < program, other=0)",
                f"before += tl.sum(counts.to(tl.int{spec.index_bits}), 0)",
            ]
        ),
    ]


def _chosen(schedule: Select, arm: Arm) -> tuple[list[str], Values, list[int]]:
    """Return the lines that find which elements of a block are chosen, the values so far, and their nodes."""
    _, condition = _node(schedule)
    before = needed(schedule.spec.nodes, [condition])
    lines, values = computed(schedule, arm.branch, before)
    (found,), _ = values[condition]
    inside = " & inside" if arm.branch.mask else ""
    return [*arm.setup, *lines, f"chosen{arm.branch.tag} = {found}{inside}"], values, before


def _counted(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that count in a block."""
    lines, _, _ = _chosen(schedule, arm)
    return [*lines, f"counted += chosen{arm.branch.tag}.to(tl.int32)"]


def _bins(schedule: Select) -> tuple[str, int, int]:
    """Return the node of a kernel that counts values."""
    return next(node for node in schedule.spec.nodes if node[0] == "bins")


def _binned(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that count the values of a block, in shared memory."""
    _, value, size = _bins(schedule)
    lines, values = computed(schedule, arm.branch, needed(schedule.spec.nodes, [value]))
    (found,), _ = values[value]
    mask = f", {arm.branch.mask}" if arm.branch.mask else ""
    return [*arm.setup, *lines, f"counted += tl.histogram({found}.to(tl.int32), {size}{mask})"]


def _placed(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that store the chosen elements of a block."""
    tag = arm.branch.tag
    number, _ = _node(schedule)
    lines, values, before = _chosen(schedule, arm)
    values[number] = (f"slot{tag}",), "int64"
    after = [other for other in range(len(schedule.spec.nodes)) if other not in before and other != number]
    rest, values = computed(schedule, arm.branch._replace(mask=f"chosen{tag}"), after, values)
    return [
        *lines,
        f"ones{tag} = chosen{tag}.to(tl.int32)",
        f"slot{tag} = before + rank_of_chosen(ones{tag}, place)",
        f"before += tl.sum(ones{tag}, 0)",
        *rest,
        *stored(schedule, arm.branch, values),
    ]
