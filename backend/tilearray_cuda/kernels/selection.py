"""The text of a selection: a loop over blocks, in which chosen elements are counted, or stored one after the other.

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
    counts = schedule.counts(schedule.spec)
    block = _counted if counts else _placed
    begin = ["counted = tl.full((BLOCK,), 0, tl.int32)"] if counts else _before(schedule)
    return [
        *begin,
        "for block in range(first_block, whole_blocks):",
        *indented(block(schedule, whole)),
        "if whole_blocks < last_block:",
        *indented(["block = whole_blocks", *block(schedule, tail)]),
        *["tl.store(out0 + program, tl.sum(counted, 0))"] * counts,
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


def _placed(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that store the chosen elements of a block."""
    tag = arm.branch.tag
    number, _ = _node(schedule)
    lines, values, before = _chosen(schedule, arm)
    values[number] = (f"slot{tag}",), "int64"
    after = [other for other in range(len(schedule.spec.nodes)) if other not in before and other != number]
    rest, values = computed(schedule, arm.branch, after, values)
    return [
        *lines,
        f"ones{tag} = chosen{tag}.to(tl.int32)",
        f"slot{tag} = before + (tl.cumsum(ones{tag}, 0) - ones{tag})",
        f"before += tl.sum(ones{tag}, 0)",
        *rest,
        *stored(schedule, arm.branch, values),
    ]
