"""Functions of a block's digits, as PTX for its threads together: their stable order.

Triton cannot reach the shared memory that a stable order needs: a counter of each digit for each warp. So assembly
takes all elements of a thread at once, and has shared memory of its own: see `block_assembly`.

The order is found as in D. Merrill and A. Grimshaw, "High performance and scalable radix sorting" (2011), with the
ranks of a warp as in S. Ashkiani and others, "GPU multisplit" (2016):

1. Each warp takes a run of the block, and counts its digits.
2. The counters are summed over warps, and then over digits. The sum before a counter is the place in the block of the
   warp's first element of the digit.
3. The warp goes over its run again, 32 elements at a time. Votes on the bits of digits tell each thread which threads
   of its warp have its own digit. The number of those before it and the warp's counter are its place. The first of them
   increases the counter. A warp whose digits are all equal needs no votes.
4. Words of each element, and its digit, go to that place in shared memory. Each thread reads those of its places.

Assembly cannot know how Triton distributes a block, so it stops the kernel if the indices differ from those of
`block_assembly`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilearray_cuda.kernels.block_assembly import (
    BITS,
    DIGITS,
    LEAST_WARPS,
    WARP,
    checked,
    function_text,
    items_of,
    names_of_words,
    registers,
    summed_over_lanes,
    warps_of,
    zeros,
)

AT_ONCE = 2
"""The blocks whose counts a thread of a sweep reads at once."""
OF_BLOCK, OF_ALL = 1 << 30, -(1 << 31)
"""The bits that tell the count of a block, and that of all blocks up to it, from memory of zeros."""
_COUNTER = 4
"""The bytes of a counter."""
_SHARED = 48 << 10
"""The most bytes of shared memory that assembly may have."""
_ALL = "0x80"
"""The table of ``lop3`` for bits that are in all of three words."""


def order_function(size: int) -> str:
    """Return the text of a Triton function: the stable order of a block by its digits.

    ``order_of_digits(digit, index, start)`` takes three blocks of int32: digits below 256, the indices of elements, and
    at index d the slot of the first element of digit d. Of the element that belongs to an index's place, it returns the
    slot and the index.
    """
    return _ordering("order_of_digits(digit, index, start)", size, 0)


def move_function(size: int, words: int) -> str:
    """Return the text of a Triton function: words of a block's elements, in the stable order of their digits.

    ``moved_by_digits(digit, index, start, word0, ...)`` is that of `order_function`, but returns words of the element
    instead of its index.
    """
    return _ordering(f"moved_by_digits(digit, index, start, {', '.join(names_of_words(words))})", size, words)


def _ordering(signature: str, size: int, words: int) -> str:
    """Return the text of such a function."""
    items = items_of(size)
    lines = _order(items, warps_of(size), words)
    return function_text(signature, lines, 1 + max(words, 1), 3 + words, items)


def sweep_functions(size: int, warps: int, words: int, keeps_digits: bool) -> list[str]:
    """Return the texts of four Triton functions: `move_function` in steps that share memory, called in this order.

    ``counted_of_block(digit, index, told)`` returns how often each index below 256 is a digit of the block, and 0 for
    others. It tells these counts: ``told`` is the address of the block's own 256 words.
    ``ranked_in_block(digit, word0, ...)`` orders the elements. It returns nothing of use.
    ``moved_from(counted, told)`` looks back, for which `AT_ONCE` blocks of words lie before the first one that is told.
    It returns the words of `move_function`, and their digits if these are kept beside them.
    ``slots_of(digit)`` returns the slots of these digits.
    """
    items = items_of(size, warps)
    areas = _areas_of_sweep(items, warps, words, keeps_digits)
    ranked = f"ranked_in_block(digit, {', '.join(names_of_words(words))})"
    return [
        function_text("counted_of_block(digit, index, told)", _first_step(items, warps, areas), 1, 2, items, 1),
        function_text(ranked, _second_step(items, warps, words, areas), 1, 1 + words, items),
        function_text(
            "moved_from(counted, told)", _third_step(items, warps, words, areas), words + keeps_digits, 1, items, 1
        ),
        function_text("slots_of(digit)", _fourth_step(items, warps, areas), 1, 1, items),
    ]


# --- the order --------------------------------------------------------------------------------------------------------


def _order(items: int, warps: int, words: int) -> Iterator[str]:
    """Yield the lines that order a block, and move the words of its elements, or their indices if there are none."""
    results = 1 + max(words, 1)
    operands = registers(items, results + 3 + words)
    slot, *found = operands[:results]
    digit, index, begin, *given = operands[results:]
    areas, at_once = _areas(items, warps, len(found))
    yield "{"
    yield from _shared(areas)
    yield from _declared(items, warps, areas)
    yield from checked(index, WARP * warps)
    yield "bar.sync 0;"  # others may still read the results of a call before
    yield from _counted_by_warps(digit, warps, begin[0])
    if "words" in areas:
        yield from _ranked_and_put(digit, given or [index], 4 * WARP * warps * items, True)
        yield "bar.sync 0;"
        yield from _taken(found, 4 * WARP * warps * items)
    else:
        yield from _placed(digit)
        yield "bar.sync 0;"
        for k in range(items):
            yield f"add.u32 x, place{k}, digits; st.shared.u8 [x], {digit[k]};"
        yield from _moved(given or [index], found, at_once, 4 * WARP * warps * items)
    yield from _digits_read(slot)
    yield from _slots(slot, slot)
    yield "}"


def _counted_by_warps(digit: Sequence[str], warps: int, begin: str, told: str = "") -> Iterator[str]:
    """Yield the lines that count the digits of each warp, and find the place of each warp's first element of each."""
    yield "mov.b32 x, 0; shl.b32 y, thread, 4; add.u32 y, y, counters;"
    for first in range(0, _COUNTER * DIGITS * warps, 16 * WARP * warps):
        yield f"st.shared.v4.b32 [y+{first}], {{x, x, x, x}};"
    yield f"setp.lt.u32 p, thread, {DIGITS}; shl.b32 x, thread, 2; add.u32 x, x, starts;"
    yield f"mov.b32 y, {begin}; @p st.shared.b32 [x], y;"
    yield "bar.sync 0; mov.b32 x, 1;"
    for one in digit:
        yield f"shl.b32 y, {one}, 2; add.u32 y, y, mine; red.shared.add.u32 [y], x;"
    yield "bar.sync 0;"
    yield from _summed(warps, told)
    yield "bar.sync 0;"


def _digits_read(digit: Sequence[str]) -> Iterator[str]:
    """Yield the lines that read the digits of a thread's places."""
    yield "add.u32 z, first, digits;"
    for k, one in enumerate(digit):
        yield f"ld.shared.u8 {one}, [z+{WARP * k}];"


def _slots(slot: Sequence[str], digit: Sequence[str]) -> Iterator[str]:
    """Yield the lines that find the slots of the elements of a thread's places, from their digits."""
    for k in range(len(slot)):
        yield f"shl.b32 x, {digit[k]}, 2; add.u32 x, x, starts; ld.shared.b32 y, [x];"
        yield f"add.u32 x, first, {WARP * k}; add.u32 {slot[k]}, x, y;"


def _areas(items: int, warps: int, words: int) -> tuple[dict[str, int], int]:
    """Return the bytes of areas of shared memory, and how many words of an element are moved at once.

    Words that do not fit are moved one by one, through the memory of the counters.
    """
    size = WARP * warps * items
    areas = {"digits": size, "counters": _COUNTER * DIGITS * warps, "starts": 4 * DIGITS, "sums": 4 * LEAST_WARPS}
    if sum(areas.values()) + 4 * size * words <= _SHARED:
        return {"words": 4 * size * words, **areas}, words
    return {**areas, "counters": max(areas["counters"], 4 * size)}, 1


def _areas_of_sweep(items: int, warps: int, words: int, keeps_digits: bool) -> dict[str, int]:
    """Return the bytes of areas of shared memory of a sweep."""
    size = WARP * warps * items
    areas = {"words": 4 * size * words, "counters": _COUNTER * DIGITS * warps, "starts": 4 * DIGITS}
    areas |= {"sums": 4 * LEAST_WARPS, **({"digits": size} if keeps_digits else {})}
    assert sum(areas.values()) <= _SHARED
    return areas


def _shared(areas: dict[str, int]) -> Iterator[str]:
    """Yield the declarations of shared memory."""
    for name, size in areas.items():
        yield f".shared .align 16 .b8 block_{name}[{size}];"


def _declared(items: int, warps: int, areas: dict[str, int]) -> Iterator[str]:
    """Yield the declarations of an order."""
    yield ".reg .b32 thread, lane, warp, earlier, words, digits, counters, starts, sums, first, mine;"
    yield ".reg .b32 x, y, z, count, run, place;"
    yield f".reg .pred p, q; .reg .b32 vote<{BITS}>, place<{items}>, counter<{warps}>;"
    yield "mov.u32 thread, %tid.x; and.b32 lane, thread, 31; shr.u32 warp, thread, 5; mov.u32 earlier, %lanemask_lt;"
    for name in areas:
        yield f"mov.u32 {name}, block_{name};"
    if "words" not in areas:
        yield "mov.u32 words, block_counters;"
    yield f"mul.lo.u32 first, warp, {WARP * items}; add.u32 first, first, lane;"
    yield f"mul.lo.u32 mine, warp, {_COUNTER * DIGITS}; add.u32 mine, mine, counters;"


def _ranked_and_put(
    digits: Sequence[str], given: Sequence[Sequence[str]], area: int, keeps_digits: bool
) -> Iterator[str]:
    """Yield the lines that find the places of elements, and store their words there, and digits if they are kept."""

    def put(k: int) -> Iterator[str]:
        """Yield the lines that store the words and the digit of an element."""
        if keeps_digits:
            yield f"add.u32 x, place, digits; st.shared.u8 [x], {digits[k]};"
        yield "shl.b32 y, place, 2; add.u32 y, y, words;"
        for number, words in enumerate(given):
            yield f"st.shared.b32 [y+{area * number}], {words[k]};"

    yield from _all_equal(digits, "RANKS")
    yield "shl.b32 y, run, 2; add.u32 y, y, mine; ld.shared.b32 count, [y]; add.u32 count, count, lane;"
    for k in range(len(digits)):
        yield f"add.u32 place, count, {WARP * k};"
        yield from put(k)
    yield "bra RANKED;"
    yield "RANKS:"
    for k, digit in enumerate(digits):
        for line in _ranked(k, digit):
            yield line.replace(f"place{k},", "place,")
        yield from put(k)
    yield "RANKED:"


def _taken(found: Sequence[Sequence[str]], area: int) -> Iterator[str]:
    """Yield the lines that read the words of a thread's own places."""
    yield "shl.b32 z, first, 2; add.u32 z, z, words;"
    for number, words in enumerate(found):
        for k, word in enumerate(words):
            yield f"ld.shared.b32 {word}, [z+{area * number + 4 * WARP * k}];"


def _placed(digits: Sequence[str]) -> Iterator[str]:
    """Yield the lines that find the places of elements in the block."""
    yield from _all_equal(digits, "RANKS")
    yield "shl.b32 y, run, 2; add.u32 y, y, mine; ld.shared.b32 x, [y]; add.u32 x, x, lane;"
    for k in range(len(digits)):
        yield f"add.u32 place{k}, x, {WARP * k};"
    yield "bra RANKED;"
    yield "RANKS:"
    for k, digit in enumerate(digits):
        yield from _ranked(k, digit)
    yield "RANKED:"


def _all_equal(digits: Sequence[str], otherwise: str) -> Iterator[str]:
    """Yield the lines that find the first digit of a warp, and go to a label unless all others are equal to it."""
    yield f"shfl.sync.idx.b32 run, {digits[0]}, 0, 31, -1; mov.b32 y, 0;"
    for digit in digits:
        yield f"xor.b32 x, {digit}, run; or.b32 y, y, x;"
    yield f"setp.eq.u32 p, y, 0; vote.sync.all.pred p, p, -1; @!p bra {otherwise};"


def _ranked(k: int, digit: str) -> Iterator[str]:
    """Yield the lines that find the place of an element."""
    for bit in range(BITS):
        yield f"and.b32 x, {digit}, {1 << bit}; setp.ne.u32 p, x, 0;"
        yield f"vote.sync.ballot.b32 vote{bit}, p, -1; @!p not.b32 vote{bit}, vote{bit};"
    yield "mov.b32 run, vote0;"
    for bit in range(1, BITS - 1, 2):
        yield f"lop3.b32 run, run, vote{bit}, vote{bit + 1}, {_ALL};"
    yield f"and.b32 run, run, vote{BITS - 1};"
    yield "popc.b32 count, run; and.b32 run, run, earlier; popc.b32 x, run; setp.eq.u32 q, x, 0;"
    yield f"shl.b32 y, {digit}, 2; add.u32 y, y, mine; ld.shared.b32 run, [y];"
    yield f"add.u32 place{k}, x, run; add.u32 count, count, run; bar.warp.sync -1;"
    yield "@q st.shared.b32 [y], count; bar.warp.sync -1;"


def _summed(warps: int, told: str = "") -> Iterator[str]:
    """Yield the lines that replace counters by the sums before them, and starts by their distance from these.

    The counts of all warps are told, if an address is given.
    """
    step = _COUNTER * DIGITS
    yield f"setp.ge.u32 p, thread, {DIGITS}; shl.b32 y, thread, 2; add.u32 y, y, counters; @p bra SUMMED;"
    for k in range(warps):
        yield f"ld.shared.b32 counter{k}, [y+{step * k}];"
    yield "mov.b32 run, 0;"
    for k in range(warps):
        yield f"mov.b32 x, run; add.u32 run, run, counter{k}; mov.b32 counter{k}, x;"
    yield "mov.b32 count, run;"
    if told:
        yield f"mul.wide.u32 own, thread, 4; add.s64 own, own, {told}; or.b32 x, count, {OF_BLOCK};"
        yield "st.relaxed.gpu.global.b32 [own], x;"
    yield from summed_over_lanes("run")
    yield "shl.b32 x, warp, 2; add.u32 x, x, sums; setp.eq.u32 q, lane, 31; @q st.shared.b32 [x], run;"
    yield "sub.u32 run, run, count;"
    yield "SUMMED: bar.sync 0; @p bra STORED;"
    for k in range(LEAST_WARPS - 1):
        yield f"ld.shared.b32 x, [sums+{4 * k}]; setp.gt.u32 q, warp, {k}; @q add.u32 run, run, x;"
    yield "shl.b32 x, thread, 2; add.u32 x, x, starts; ld.shared.b32 z, [x]; sub.u32 z, z, run; st.shared.b32 [x], z;"
    for k in range(warps):
        yield f"add.u32 x, counter{k}, run; st.shared.b32 [y+{step * k}], x;"
    yield "STORED:"


def _moved(given: Sequence[Sequence[str]], found: Sequence[Sequence[str]], at_once: int, area: int) -> Iterator[str]:
    """Yield the lines that store words of elements in their places, and read those of a thread's own places."""
    items = len(given[0])
    yield "shl.b32 z, first, 2; add.u32 z, z, words;"
    for first in range(0, len(given), at_once):
        if first:
            yield "bar.sync 0;"
        words = list(enumerate(range(first, first + at_once)))
        for k in range(items):
            yield f"shl.b32 y, place{k}, 2; add.u32 y, y, words;"
            for number, word in words:
                yield f"st.shared.b32 [y+{area * number}], {given[word][k]};"
        yield "bar.sync 0;"
        for number, word in words:
            for k in range(items):
                yield f"ld.shared.b32 {found[word][k]}, [z+{area * number + 4 * WARP * k}];"


# --- the order in steps -----------------------------------------------------------------------------------------------


def _first_step(items: int, warps: int, areas: dict[str, int]) -> Iterator[str]:
    """Yield the lines that count and tell. The shared memory of all steps is declared outside the braces."""
    found, digit, index, told = registers(items, 4)
    yield from _shared(areas)
    yield "{"
    yield from _declared(items, warps, areas)
    yield ".reg .b64 own;"
    yield from checked(index, WARP * warps)
    yield "mov.b32 count, 0; bar.sync 0;"
    yield from _counted_by_warps(digit, warps, "0", told[0])
    yield f"mov.b32 {found[0]}, count;"
    yield from zeros(found[1:])
    yield "}"


def _second_step(items: int, warps: int, words: int, areas: dict[str, int]) -> Iterator[str]:
    """Yield the lines that store words, and digits that are kept, in their places."""
    found, digit, *given = registers(items, 2 + words)
    yield "{"
    yield from _declared(items, warps, areas)
    yield from _ranked_and_put(digit, given, 4 * WARP * warps * items, "digits" in areas)
    yield from zeros(found)
    yield "}"


def _third_step(items: int, warps: int, words: int, areas: dict[str, int]) -> Iterator[str]:
    """Yield the lines that look back, add the starts, and read the words and digits of a thread's own places."""
    keeps_digits = "digits" in areas
    *found, counted, told = registers(items, words + keeps_digits + 2)
    yield "{"
    yield from _declared(items, warps, areas)
    yield from _looked_back(counted[0], told[0])
    yield "shl.b32 x, thread, 2; add.u32 x, x, starts; ld.shared.b32 y, [x]; add.u32 y, y, run; st.shared.b32 [x], y;"
    yield "LOOKED: bar.warp.sync -1; bar.sync 0;"
    yield from _taken(found[:words], 4 * WARP * warps * items)
    if keeps_digits:
        yield from _digits_read(found[words])
    yield "}"


def _looked_back(counted: str, told: str) -> Iterator[str]:
    """Yield the lines that sum the counts of earlier blocks, from the nearest to one that tells the sum of all.

    Each of the first threads sums those of a digit, tells the sum with its own count, and goes on alone: the others go
    to a label. It reads the words of some blocks at once, and adds those before the first one that is not told yet. The
    last word that it adds is 0, or has the sign.
    """
    yield f".reg .b64 own, at; .reg .b32 word<{AT_ONCE}>;"
    yield f"setp.ge.u32 p, thread, {DIGITS}; @p bra LOOKED;"
    yield f"mul.wide.u32 own, thread, 4; add.s64 own, own, {told}; add.s64 at, own, -{4 * DIGITS}; mov.b32 run, 0;"
    yield "LOOK:"
    for k in range(AT_ONCE):
        yield f"ld.relaxed.gpu.global.b32 word{k}, [at+-{4 * DIGITS * k}];"
    for k in range(AT_ONCE):
        goes_on = "@p " * (k > 0)
        yield f"{goes_on}mov.b32 y, word{k}; {goes_on}and.b32 x, y, {OF_BLOCK - 1}; {goes_on}add.u32 run, run, x;"
        yield f"{goes_on}setp.gt.s32 p, y, 0; @p add.s64 at, at, -{4 * DIGITS};"
    yield "setp.ge.s32 p, y, 0; @p bra LOOK;"
    yield f"add.u32 x, run, {counted}; or.b32 x, x, {OF_ALL}; st.relaxed.gpu.global.b32 [own], x;"


def _fourth_step(items: int, warps: int, areas: dict[str, int]) -> Iterator[str]:
    """Yield the lines that find slots."""
    slot, digit = registers(items, 2)
    yield "{"
    yield from _declared(items, warps, areas)
    yield from _slots(slot, digit)
    yield "}"
