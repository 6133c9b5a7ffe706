"""The text of a selection: a loop over blocks, in which chosen elements are found, or stored one after the other.

The first launch reads the condition. It stores a bit for each element, and behind all bits how many are 1 in each
segment. The second launch puts in the place of each count how many are 1 before its segment, and reports how many are 1
in all. The third launch reads these only. So the condition is read once, and from then on it has an eighth of a byte.

A kernel may also count all elements by their value in shared memory. Its counts are added to those of other programs by
atomics, so few places are as fast as many, and the largest value is found meanwhile. On an H100 2**25 int64 below 256
are counted in 0.18 ms so, and by Triton's histogram in 0.27 ms; below 2048 in 0.17 and in 1.02 ms. Or it marks the
values that occur: each has a bit in memory, which is read first, since most elements find theirs set.

The number of chosen elements is a sum of integers, which has one result in any order.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_assembly import WARP
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.hardware import VECTOR
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.select import PLACED, Select
from tilearray_cuda.kernels.storage import STORAGE

WORD_BITS = 32
COUNT = 256
"""What a chosen element adds to a byte of bits, so that it counts above them."""


def selected(schedule: Select) -> list[str]:
    """Return the lines of a kernel after its setup."""
    if schedule.adds:
        return _added_up(schedule)
    end: list[str] = []
    if schedule.spec.has_node("bins"):
        block, begin, end = _binned, _bins_begun(schedule), _bins_added(schedule)
    elif schedule.spec.has_node("marks"):
        block, begin = _marked, []
    elif schedule.counts(schedule.spec):
        block, begin = _counted, _bits_begin(schedule)
        end = ["tl.store(counts + program, tl.sum(counted, 0))"]
    else:
        return _placed(schedule)
    whole, tail = schedule.arms()
    return [
        *begin,
        "for block in range(first_block, whole_blocks):",
        *indented(block(schedule, whole)),
        "if whole_blocks < last_block:",
        *indented(["block = whole_blocks", *block(schedule, tail)]),
        *end,
    ]


def _node(schedule: Select) -> tuple[int, int]:
    """Return the node of a kernel that counts, adds counts or finds slots, and its last part."""
    nodes = schedule.spec.nodes
    number = next(number for number, node in enumerate(nodes) if node[0] in ("count", "starts", "slot"))
    return number, nodes[number][-1]


def _read(schedule: Select) -> tuple[int, str]:
    """Return the node of a kernel that reads what others have stored, and the name of this memory."""
    number, position = _node(schedule)
    return number, schedule.spec.operands[schedule.spec.outputs + position].name


def _counts(schedule: Select, memory: str) -> str:
    """Return the line that finds the counts, behind the bits of whole chunks."""
    words = f"((size - 1) // {schedule.lanes} + 1) * {schedule.lanes // WORD_BITS}"
    return f"counts = ({memory} + {words}).to(tl.pointer_type(tl.int64), bitcast=True)"


# --- bits -------------------------------------------------------------------------------------------------------------


def _bits_begin(schedule: Select) -> list[str]:
    """Return the lines before the blocks that are counted."""
    return [
        _counts(schedule, "out0"),
        "bits = out0.to(tl.pointer_type(tl.uint8), bitcast=True)",
        "eighth = tl.arange(0, BLOCK // 8)",
        "counted = eighth * 0",
    ]


def _counted(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that count in a block, and store its bits: eight elements are added to a byte and a count."""
    tag, (_, condition) = arm.branch.tag, _node(schedule)
    lines, values = computed(schedule, arm.branch, needed(schedule.spec.nodes, [condition]))
    (found,), _ = values[condition]
    inside = " & inside" if arm.branch.mask else ""
    return [
        *arm.setup,
        *lines,
        f"one{tag} = tl.where({found}{inside}, (1 << tl.arange(0, BLOCK) % 8) + {COUNT}, 0)",
        f"eight{tag} = tl.sum(tl.reshape(one{tag}, (BLOCK // 8, 8)), 1)",
        f"tl.store(bits + (block * (BLOCK // 8) + eighth), (eight{tag} & {COUNT - 1}).to(tl.uint8))",
        f"counted += eight{tag} >> 8",
    ]


# --- elements ---------------------------------------------------------------------------------------------------------


def _added_up(schedule: Select) -> list[str]:
    """Return the lines that add the counts of segments."""
    return [
        _counts(schedule, _read(schedule)[1]),
        "before = tl.full([], 0, tl.int64)",
        "for part in range(0, segments, BLOCK):",
        *indented(
            [
                "segment = part + tl.arange(0, BLOCK)",
                "count = tl.load(counts + segment, mask=segment < segments, other=0)",
                "tl.store(counts + segment, before + tl.cumsum(count, 0) - count, mask=segment < segments)",
                "before += tl.sum(count, 0)",
            ]
        ),
        "tl.store(out0, before)",
    ]


def _placed(schedule: Select) -> list[str]:
    """Return the lines that store the chosen elements of all blocks. No bit is 1 beyond the last element."""
    (arm,), (number, memory) = schedule.arms(), _read(schedule)
    rest = [other for other in range(len(schedule.spec.nodes)) if other != number]
    lines, values = computed(schedule, arm.branch, rest, {number: (("slot",), "int64")})
    return [
        f"words = {memory}",
        _counts(schedule, memory),
        f"before = tl.load(counts + program).to(tl.int{schedule.spec.index_bits})",
        f"lane = tl.arange(0, {WORD_BITS})",
        f"place = tl.arange(0, {PLACED})",
        f"word = tl.load(words + first_block * {WORD_BITS} + lane)",
        "for block in range(first_block, last_block):",
        *indented(
            [
                *arm.setup,
                str(arm.pieces),
                *indented([*arm.each, *lines, *stored(schedule, arm.branch, values)]),
                "before += count",
            ]
        ),
    ]


# --- bins -------------------------------------------------------------------------------------------------------------


def _bins(schedule: Select) -> tuple[int, str, int]:
    """Return the node whose values a kernel counts, their dtype, and the number of bins."""
    _, value, size = next(node for node in schedule.spec.nodes if node[0] == "bins")
    inputs = schedule.spec.operands[schedule.spec.outputs :]
    return value, inputs[schedule.spec.nodes[value][1]].dtype, size


def _bins_begun(schedule: Select) -> list[str]:
    """Return the lines before the blocks: counters in shared memory, and the largest value of some elements."""
    _, dtype, _ = _bins(schedule)
    return [
        f"places_begun(tl.arange(0, {WARP * schedule.tile.warps}))",
        f"largest = tl.full((BLOCK // {_at_once(dtype)},), 0, {_register(dtype)})",
    ]


def _binned(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that count the values of a block, of which those from the number of bins on are one."""
    node, dtype, size = _bins(schedule)
    tag, mask = arm.branch.tag, arm.branch.mask
    lines, values = computed(schedule, arm.branch, needed(schedule.spec.nodes, [node]))
    (found,), _ = values[node]
    value, at_once = f"value{tag}", _at_once(dtype)
    of_threads = f"tl.reshape({value}, (BLOCK // {at_once}, {at_once}))"
    return [
        *arm.setup,
        *lines,
        f"{value} = {found}.to({_register(dtype)})",
        f"place = tl.minimum({value}, {size}).to(tl.int32)",
        *([f"place = tl.where({mask}, place, {size})", f"{value} = tl.where({mask}, {value}, 0)"] if mask else []),
        "places_added(place)",
        f"largest = tl.maximum(largest, tl.max({of_threads}, 1))",
    ]


def _bins_added(schedule: Select) -> list[str]:
    """Return the lines that add a program's counts to those of all, behind which the largest value stands."""
    (_, _, size), threads = _bins(schedule), WARP * schedule.tile.warps
    return [
        "tl.debug_barrier()  # all threads have counted",
        f"for first in range(0, {size}, {threads}):",
        *indented(
            [
                f"place = first + tl.arange(0, {threads})",
                "counted = places_found(place).to(tl.int64)",
                'tl.atomic_add(out0 + place, counted, mask=counted > 0, sem="relaxed")',
            ]
        ),
        f"largest_of_all = out0.to(tl.pointer_type(tl.uint64), bitcast=True) + {size}",
        'tl.atomic_max(largest_of_all, tl.max(largest, 0).to(tl.uint64), sem="relaxed")',
    ]


def _at_once(dtype: str) -> int:
    """Return the elements that a thread reads at once."""
    return VECTOR // STORAGE[dtype].itemsize


def _register(dtype: str) -> str:
    """Return the type of values in registers."""
    return "tl.uint64" if STORAGE[dtype].itemsize == 8 else "tl.uint32"


def _marked(schedule: Select, arm: Arm) -> list[str]:
    """Return the lines that mark the values of a block."""
    value = next(node[1] for node in schedule.spec.nodes if node[0] == "marks")
    lines, values = computed(schedule, arm.branch, needed(schedule.spec.nodes, [value]))
    (found,), _ = values[value]
    return [*arm.setup, *lines, f"mark(out0, {found}, {arm.branch.mask or found + ' >= 0'})"]
