"""Functions of a block's digits, as PTX for its threads together: how often each comes in it, or in many blocks.

Counters lie in shared memory, which Triton cannot reach: see `block_assembly`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilearray_cuda.kernels.block_assembly import (
    BITS,
    DIGITS,
    WARP,
    function_text,
    items_of,
    names_of_words,
    registers,
    warps_of,
    zeros,
)

PAIRED_BITS = 16
"""The bits of a counter that shares its word with another one."""
EMPTIED = 2**15
"""At this number a counter of 16 bits is emptied into memory."""


def count_function(size: int, parts: int = 1) -> str:
    """Return the text of a Triton function: how often each digit comes in each part of a block.

    ``count_of_digits(digit, index)`` takes two blocks of int32: ``parts * digit + part``, which does not count from
    ``parts * 256`` on, and the indices of elements. It returns how often each index below that comes, and 0 for others.
    """
    items = items_of(size)
    lines = _counts(items, warps_of(size), parts * DIGITS)
    return function_text("count_of_digits(digit, index)", lines, 1, 2, items)


def histogram_functions(size: int, warps: int, digits: int, words: int) -> list[str]:
    """Return the texts of three Triton functions that count digits of words of many blocks, called in this order.

    ``counts_begun(index)`` returns nothing of use, nor ``counts_added(inside, word0, ...)``, which counts a block's
    elements that are inside: 1, or 0 for others. ``counts_found(bin)`` returns how often digit i is d for the bin
    ``256 * i + d``, of a block of `bins_of` the digits. Counters hold less than 2**16: see `copies_of`.
    """
    items, copies = items_of(size, warps), copies_of(digits)
    names = ", ".join(names_of_words(words))
    found = max(1, bins_of(digits) // (WARP * warps))
    return [
        function_text("counts_begun(index)", _begun(items, warps, DIGITS // 2 * digits * copies), 1, 1, items),
        function_text(f"counts_added(inside, {names})", _added(items, digits, words, copies), 1, 1 + words, items),
        function_text("counts_found(bin)", _found(found, digits, copies), 1, 1, found),
    ]


def place_functions(places: int, warps: int) -> list[str]:
    """Return the texts of three Triton functions that count places of many blocks, called in this order.

    ``places_begun(thread)`` takes an index for each thread; ``places_added(place)`` counts a block's elements, of which
    those of the place `places` and beyond count as one. ``places_found(place)`` returns how often places occurred, once
    all threads have counted.
    """
    return [
        function_text("places_begun(thread)", _begun(1, warps, places + 1), 1, 1, 1),
        function_text("places_added(place)", _placed(places), 1, 1, 1),
        function_text("places_found(place)", _read_placed(places), 1, 1, 1),
    ]


def paired_functions(places: int, warps: int, items: int) -> list[str]:
    """Return the texts of the functions of `place_functions` for an even number of places, with counters of 16 bits.

    The counters are the last `bytes_of_pairs` of the shared memory that the launch asks for, since assembly may declare
    48 KiB at most. ``places_added(place, counts)`` takes `items` elements of a thread, none above the place `places`,
    which is not counted. The thread that brings a counter to EMPTIED takes this number from it, and adds it to the
    place's int64 at the address `counts`. Threads meet at a barrier before every EMPTIED elements: a counter is below
    EMPTIED there, so it is below ``2 * EMPTIED`` up to the next one.
    """
    return [
        function_text("places_begun(thread)", _begun_at_end(warps, places), 1, 1, 1),
        function_text("places_added(place, counts)", _added_to_pairs(items, places), 1, 1, items, 1),
        function_text("places_found(place)", _read_of_pair(places), 1, 1, 1),
    ]


def bytes_of_pairs(places: int) -> int:
    """Return the bytes of the counters of an even number of places, and of a word for the place behind them.

    >>> bytes_of_pairs(65_536)
    131088
    """
    return 2 * places + 16


def bins_of(digits: int) -> int:
    """Return the size of a block that has the counters of some digits: the next power of two.

    >>> bins_of(1), bins_of(3), bins_of(8)
    (256, 1024, 2048)
    """
    return DIGITS << (digits - 1).bit_length()


def copies_of(digits: int) -> int:
    """Return how many counters there are of each value: so many lanes of a warp that are neighbours have their own.

    So the lanes of a warp seldom wait for each other. Two counters share a word of 32 bits, those of digits that differ
    in the lowest bit.
    """
    return 16 if digits <= 4 else 8


def _counts(items: int, warps: int, counters: int) -> Iterator[str]:
    """Yield the lines that count the digits of a block. What does not count has a counter too, which is not read."""
    found, digit, index = registers(items, 3)
    yield "{"
    yield f".shared .align 16 .b8 block_counts[{4 * counters + 4}];"
    yield f".reg .b32 thread, counts, mine, one, x, y; .reg .pred p; .reg .b32 count<{items}>;"
    yield "mov.b32 one, 1;"
    yield from _zeroed(counters, WARP * warps)
    for k in range(items):
        yield f"min.u32 x, {digit[k]}, {counters}; shl.b32 x, x, 2; add.u32 x, x, counts; red.shared.add.u32 [x], one;"
    yield "bar.sync 0;"
    for k in range(items):
        yield from _read(f"count{k}", index[k], counters)
    for k in range(items):
        yield f"mov.b32 {found[k]}, count{k};"
    yield "}"


def _zeroed(counters: int, threads: int) -> Iterator[str]:
    """Yield the lines that zero the counters."""
    yield "mov.u32 thread, %tid.x; mov.u32 counts, block_counts; mov.b32 y, 0;"
    yield "shl.b32 mine, thread, 2; add.u32 mine, mine, counts;"
    for k in range(0, counters, threads):
        yield f"setp.lt.u32 p, thread, {counters - k}; @p st.shared.b32 [mine+{4 * k}], y;"
    yield "bar.sync 0;"


def _read(register: str, index: str, counters: int) -> Iterator[str]:
    """Yield the lines that read the counter of an index, or 0 if it has none."""
    yield f"mov.b32 {register}, 0; setp.lt.u32 p, {index}, {counters}; shl.b32 x, {index}, 2;"
    yield f"add.u32 x, x, counts; @p ld.shared.b32 {register}, [x];"


# --- many blocks ------------------------------------------------------------------------------------------------------


def _begun(items: int, warps: int, words: int) -> Iterator[str]:
    """Yield the lines that make words of counters, which stay: they are declared outside the braces."""
    found, _ = registers(items, 2)
    size = -(-words // 4) * 16
    yield f".shared .align 16 .b8 block_counts[{size}];"
    yield "{"
    yield ".reg .b32 y, thread, mine; .reg .pred p; mov.u32 mine, block_counts;"
    yield from _vectors_zeroed(size, warps)
    yield from zeros(found)
    yield "}"


def _vectors_zeroed(size: int, warps: int) -> Iterator[str]:
    """Yield the lines that zero bytes from the address `mine` on, a multiple of 16."""
    yield "mov.b32 y, 0; mov.u32 thread, %tid.x; shl.b32 thread, thread, 4; add.u32 mine, mine, thread;"
    for first in range(0, size, 16 * WARP * warps):
        yield f"setp.lt.u32 p, thread, {size - first}; @p st.shared.v4.b32 [mine+{first}], {{y, y, y, y}};"
    yield "bar.sync 0;"


def _added(items: int, digits: int, words: int, copies: int) -> Iterator[str]:
    """Yield the lines that count the digits of elements."""
    found, inside, *given = registers(items, 2 + words)
    pair = 4 * copies  # the bytes of the counters of two digits
    yield "{"
    yield ".reg .b32 x, y, counts, lane, odd; .reg .pred p; mov.u32 counts, block_counts;"
    yield f"mov.u32 lane, %tid.x; and.b32 lane, lane, {copies - 1}; shl.b32 lane, lane, 2; add.u32 lane, lane, counts;"
    for k in range(items):
        yield f"shl.b32 odd, {inside[k]}, 16;"
        for digit in range(digits):
            word, shift = given[digit * BITS // 32][k], digit * BITS % 32
            down = shift + 1 - (pair.bit_length() - 1)
            yield f"shr.u32 x, {word}, {down};" if down >= 0 else f"shl.b32 x, {word}, {-down};"
            yield f"and.b32 x, x, {(DIGITS // 2 - 1) * pair}; add.u32 x, x, lane;"
            yield f"and.b32 y, {word}, {1 << shift}; setp.ne.u32 p, y, 0; selp.b32 y, odd, {inside[k]}, p;"
            yield f"red.shared.add.u32 [x+{DIGITS // 2 * pair * digit}], y;"
    yield from zeros(found)
    yield "}"


def _found(items: int, digits: int, copies: int) -> Iterator[str]:
    """Yield the lines that add the copies of counters. Neighbours begin with others, which lie in other banks."""
    found, bins = registers(items, 2)
    yield "{"
    yield ".reg .b32 x, y, z, bits, sum, counts; .reg .pred p; mov.u32 counts, block_counts; bar.sync 0;"
    for k in range(items):
        yield f"mov.b32 sum, 0; mov.b32 z, 0; setp.lt.u32 p, {bins[k]}, {DIGITS * digits};"
        yield f"and.b32 bits, {bins[k]}, 1; shl.b32 bits, bits, 4; shr.u32 y, {bins[k]}, 1;"
        yield f"mul.lo.u32 x, y, {4 * copies}; add.u32 x, x, counts; shl.b32 y, y, 2;"
        for copy in range(copies):
            yield f"add.u32 z, y, {4 * copy}; and.b32 z, z, {4 * copies - 4}; add.u32 z, z, x;"
            yield "@p ld.shared.b32 z, [z]; shr.u32 z, z, bits; and.b32 z, z, 0xffff; @p add.u32 sum, sum, z;"
        yield f"mov.b32 {found[k]}, sum;"
    yield "}"


# --- places -----------------------------------------------------------------------------------------------------------


def _placed(places: int) -> Iterator[str]:
    """Yield the lines that count an element by its place. All that is added is 1, which hardware adds up in a warp."""
    yield "{"
    yield ".reg .b32 x, counts, one; mov.u32 counts, block_counts; mov.b32 one, 1;"
    yield f"min.u32 x, $1, {places}; shl.b32 x, x, 2; add.u32 x, x, counts; red.shared.add.u32 [x], one;"
    yield from zeros(["$0"])
    yield "}"


def _read_placed(places: int) -> Iterator[str]:
    """Yield the lines that read the counter of a place."""
    yield "{"
    yield ".reg .b32 x, y, counts; .reg .pred p; mov.u32 counts, block_counts;"
    yield from _read("y", "$1", places)
    yield "mov.b32 $0, y;"
    yield "}"


# --- places with counters of 16 bits ----------------------------------------------------------------------------------


def _at_end(register: str, places: int) -> str:
    """Return the line that finds the counters: the end of the memory that Triton names, of which it has the start."""
    return (
        f"mov.u32 {register}, %dynamic_smem_size; sub.u32 {register}, {register}, {bytes_of_pairs(places)}; "
        f"mov.u32 y, global_smem; add.u32 {register}, {register}, y;"
    )


def _begun_at_end(warps: int, places: int) -> Iterator[str]:
    """Yield the lines that zero the counters."""
    yield "{"
    yield ".reg .b32 y, thread, mine; .reg .pred p;"
    yield _at_end("mine", places)
    yield from _vectors_zeroed(bytes_of_pairs(places), warps)
    yield from zeros(["$0"])
    yield "}"


def _added_to_pairs(items: int, places: int) -> Iterator[str]:
    """Yield the lines that count elements, and then empty the counters that have reached EMPTIED.

    Two places that differ in the lowest bit share a word. All atomics of a thread begin before one of them is awaited.
    """
    old, place, counts = registers(items, 3)
    yield "{"
    yield ".reg .b32 x, y, start, some, one; .reg .b64 where; .reg .pred p;"
    yield _at_end("start", places)
    yield "mov.b32 one, 1;"
    for k in range(items):
        yield f"{_shift(place[k])} shl.b32 y, one, x; {_word(place[k])} atom.shared.add.u32 {old[k]}, [x], y;"
    yield "mov.b32 some, 0;"
    for k in range(items):
        yield f"{_shift(place[k])} {_is_full(old[k])} @p mov.b32 some, 1;"
    yield "setp.eq.u32 p, some, 0; @p bra done;"
    for k in range(items):
        yield f"{_shift(place[k])} {_is_full(old[k])} @p setp.lt.u32 p, {place[k]}, {places};"
        yield f"mov.b32 y, {-EMPTIED}; shl.b32 y, y, x; {_word(place[k])} @p red.shared.add.u32 [x], y;"
        yield f"mul.wide.u32 where, {place[k]}, 8; add.s64 where, where, {counts[k]};"
        yield f"@p red.global.add.u64 [where], {EMPTIED};"
    yield "done: mov.b32 some, 0;"
    yield from zeros(old)
    yield "}"


def _shift(place: str) -> str:
    """Return the line that finds where in its word the counter of a place begins."""
    return f"and.b32 x, {place}, 1; shl.b32 x, x, 4;"


def _word(place: str) -> str:
    """Return the line that finds the address of this word."""
    return f"shl.b32 x, {place}, 1; and.b32 x, x, -4; add.u32 x, x, start;"


def _is_full(word: str) -> str:
    """Return the line that tells whether a counter was one below EMPTIED."""
    return f"shr.u32 y, {word}, x; and.b32 y, y, 0xffff; setp.eq.u32 p, y, {EMPTIED - 1};"


def _read_of_pair(places: int) -> Iterator[str]:
    """Yield the lines that read the counter of a place."""
    yield "{"
    yield ".reg .b32 x, y, start;"
    yield _at_end("start", places)
    yield f"{_word('$1')} ld.shared.b32 y, [x]; {_shift('$1')} shr.u32 y, y, x; and.b32 $0, y, 0xffff;"
    yield "}"
