"""The text of a selection: a loop over blocks, in which chosen elements are found, or stored one after the other.

The first launch reads the condition. It stores a bit for each element, and behind all bits how many are 1 in each
segment, and in the segment before each of its blocks. The second launch stores how many are 1 before each segment, and
reports how many are 1 in all. The third launch reads these only. So the condition is read once, and from then on it has
an eighth of a byte.

A kernel may also count all elements by their value in shared memory. Its counts are added to those of other programs by
atomics, so few places are as fast as many, and the largest value is found meanwhile. On an H100 2**25 int64 below 256
are counted in 0.18 ms so, and by Triton's histogram in 0.27 ms; below 2048 in 0.17 and in 1.02 ms. Counters of many
places have 16 bits, and are emptied into memory before they are full. Or it marks the values that occur: each has a bit
in memory, which is read first, since most elements find theirs set.

The number of chosen elements is a sum of integers, which has one result in any order.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_assembly import WARP
from tilearray_cuda.kernels.block_counts import EMPTIED, PAIRED_BITS
from tilearray_cuda.kernels.block_lists import packed_at_once
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.hardware import VECTOR, WORD
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.select import PACKED, PLACED, Select
from tilearray_cuda.kernels.spec import Operand
from tilearray_cuda.kernels.storage import STORAGE

WORD_BITS = 32
STAYS = 'eviction_policy="evict_last"'
"""The policy of bits in the L2 cache: they are read again between stores of results, which leave it first. On an H100
2**28 elements, half of them true, are stored as int64 indices in 373 us so, and in 390 without policies."""
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
        end = ["tl.store(counts + program, counted)"]
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


def _memory(schedule: Select, memory: str) -> list[str]:
    """Return the lines that find the parts of the memory between launches.

    Behind the bits of whole chunks are ``starts`` and ``counts``, one for each segment, and ``before_blocks``: one for
    each block, and for the end of each segment, before the next one.
    """
    return [
        f"chunks = (size - 1) // {schedule.lanes} + 1",
        "segments = (chunks - 1) // segments_chunks + 1",
        f"starts = ({memory} + chunks * {schedule.lanes // WORD_BITS}).to(tl.pointer_type(tl.int64), bitcast=True)",
        "counts = (starts + segments).to(tl.pointer_type(tl.int32), bitcast=True)",
        "before_blocks = counts + segments",
    ]


# --- bits -------------------------------------------------------------------------------------------------------------


def _bits_begin(schedule: Select) -> list[str]:
    """Return the lines before the blocks that are counted."""
    return [
        *_memory(schedule, "out0"),
        "before_blocks += program",
        "tl.store(before_blocks + first_block, 0)",
        "bits = out0.to(tl.pointer_type(tl.uint8), bitcast=True)",
        "eighth = tl.arange(0, BLOCK // 8)",
        "counted = tl.full([], 0, tl.int32)",
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
        f"tl.store(bits + (block * (BLOCK // 8) + eighth), (eight{tag} & {COUNT - 1}).to(tl.uint8), {STAYS})",
        f"counted += tl.sum(eight{tag} >> 8, 0)",
        "tl.store(before_blocks + block + 1, counted)",
    ]


# --- elements ---------------------------------------------------------------------------------------------------------


def _added_up(schedule: Select) -> list[str]:
    """Return the lines that add the counts of segments, as rows: those of a row, of which a thread has some, are int32.

    A row has a 256th of all elements, so they are fewer than 2**31 if all are fewer than 2**39.
    """
    return [
        *_memory(schedule, _read(schedule)[1]),
        "places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
        "before = tl.full([], 0, tl.int64)",
        "for part in range(0, segments, ROWS * COLUMNS):",
        *indented(
            [
                "segment = part + places",
                "count = tl.load(counts + segment, mask=segment < segments, other=0)",
                "of_row = tl.sum(count, 1).to(tl.int64)",
                "before_row = before + tl.cumsum(of_row, 0) - of_row",
                "start = before_row[:, None] + (tl.cumsum(count, 1) - count)",
                "tl.store(starts + segment, start, mask=segment < segments)",
                "before += tl.sum(of_row, 0)",
            ]
        ),
        "tl.store(out0, before)",
    ]


def _placed(schedule: Select) -> list[str]:
    """Return the lines that store the chosen elements of a block. No bit is 1 beyond the last element."""
    number, memory = _read(schedule)
    begin = [
        f"thread = tl.arange(0, BLOCK // {WORD_BITS})",
        f"word = tl.load({memory} + block * (BLOCK // {WORD_BITS}) + thread)",
        *_memory(schedule, memory),
        "segment = block // segments_chunks",
        "before_blocks += block + segment",
        "earlier = tl.load(before_blocks)",
        "count = tl.load(before_blocks + 1) - earlier",
        f"before = (tl.load(starts + segment) + earlier).to(tl.int{schedule.spec.index_bits})",
        f"place = tl.arange(0, {PLACED})",
        "list_memory(thread)",
    ]
    packed = schedule.packed
    if packed is None:
        return [*begin, *_from_list(schedule, number)]
    return [
        *begin,
        f"if (block < size // BLOCK) & (count >= BLOCK // 16 * {PACKED[packed.itemsize]}):",
        *indented(_packed(schedule, packed)),
        "else:",
        *indented(_from_list(schedule, number)),
    ]


def _from_list(schedule: Select, number: int) -> list[str]:
    """Return the lines that read and store the elements of a list."""
    (arm,) = schedule.arms()
    rest = [other for other in range(len(schedule.spec.nodes)) if other != number]
    lines, values = computed(schedule, arm.branch, rest, {number: (("slot",), "int64")})
    body = [*arm.each, *lines, *stored(schedule, arm.branch, values)]
    return ["begin_of_words(word, thread)", "list_of_chosen(thread)", *arm.setup, str(arm.pieces), *indented(body)]


def _packed(schedule: Select, operand: Operand) -> list[str]:
    """Return the lines that read all elements of a block, some at once, as integers, and store the chosen ones."""
    type_ = f"tl.int{8 * operand.itemsize}"
    value, found, read = ["value.to(tl.int32)"], f"found.to({type_})", "found"
    if operand.itemsize > WORD:
        value, read = [*value, f"(value >> {8 * WORD}).to(tl.int32)"], "found, upper"
        found = f"({found} & 0xFFFFFFFF) | (upper.to({type_}) << {8 * WORD})"
    at_once = packed_at_once(schedule.tile.warps, operand.itemsize)
    return [
        "begin_of_words(word, thread)",
        f"given = {operand.name}.to(tl.pointer_type({type_}), bitcast=True) + block * BLOCK",
        f"result = out0.to(tl.pointer_type({type_}), bitcast=True) + before",
        f"for piece in range(0, BLOCK, {at_once}):",
        *indented(
            [
                f"within = piece + tl.arange(0, {at_once})",
                "value = tl.load(given + within)",
                "threads_wait(thread)",
                f"pack_chosen({', '.join(value)}, within)",
                "threads_wait(thread)",
                f"first = begin_at(place * 0 + piece // {WORD_BITS})",
                f"last = begin_at((place * 0 + (piece + {at_once}) // {WORD_BITS}) % (BLOCK // {WORD_BITS}))",
                f"last = tl.where(piece + {at_once} < BLOCK, last, count)",
                f"lead = (before + first) % {schedule.of_a_line}",
                f"for start in range(0, tl.minimum(count, {at_once}) + {schedule.of_a_line}, {PLACED}):",
                "    rank = first - lead + start + place",
                "    chosen = (rank >= first) & (rank < last)",
                f"    {read} = packed_at(rank)",
                f"    tl.store(result + rank, {found}, mask=chosen)",
            ]
        ),
    ]


# --- bins -------------------------------------------------------------------------------------------------------------


def _bins(schedule: Select) -> tuple[int, str, int]:
    """Return the node whose values a kernel counts, their dtype, and the number of bins."""
    value = next(node[1] for node in schedule.spec.nodes if node[0] == "bins")
    return value, schedule.spec.operands[-1].dtype, schedule.bins[0]


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
        *_added(schedule),
        f"largest = tl.maximum(largest, tl.max({of_threads}, 1))",
    ]


def _added(schedule: Select) -> list[str]:
    """Return the lines that count places, with a barrier before counters of 16 bits may be full."""
    if schedule.bins[1] != PAIRED_BITS:
        return ["places_added(place)"]
    return [
        f"if block % {EMPTIED // schedule.tile.columns} == 0:",
        "    tl.debug_barrier()  # all counters are below half of what they hold",
        "places_added(place, out0 + place * 0)",
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
