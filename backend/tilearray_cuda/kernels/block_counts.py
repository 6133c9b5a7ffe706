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


def count_function(size: int, parts: int = 1) -> str:
    """Return the text of a Triton function: how often each digit comes in each part of a block.

    ``count_of_digits(digit, index)`` takes two blocks of int32: ``parts * digit + part``, which does not count from
    ``parts * 256`` on, and the indices of elements. It returns how often each index below that comes, and 0 for others.
    """
    items = items_of(size)
    lines = _counts(items, warps_of(size), parts * DIGITS)
    return function_text("count_of_digits(digit, index)", lines, 1, 2, items)


def histogram_functions(size: int, digits: int, words: int) -> list[str]:
    """Return the texts of three Triton functions that count digits of words of many blocks, called in this order.

    ``counts_begun(index)`` returns nothing of use, nor ``counts_added(inside, word0, ...)``, which counts a block's
    elements that are inside. ``counts_found(index)`` returns at ``256 * i + d`` how often digit i is d.
    """
    items, warps = items_of(size), warps_of(size)
    names = ", ".join(names_of_words(words))
    return [
        function_text("counts_begun(index)", _begun(items, warps, DIGITS * digits), 1, 1, items),
        function_text(f"counts_added(inside, {names})", _added(items, digits, words), 1, 1 + words, items),
        function_text("counts_found(index)", _found(items, DIGITS * digits), 1, 1, items),
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


def _begun(items: int, warps: int, counters: int) -> Iterator[str]:
    """Yield the lines that make counters, which stay: they are declared outside the braces."""
    found, _ = registers(items, 2)
    yield f".shared .align 16 .b8 block_counts[{4 * counters}];"
    yield "{"
    yield ".reg .b32 y, thread, counts, mine; .reg .pred p;"
    yield from _zeroed(counters, WARP * warps)
    yield from zeros(found)
    yield "}"


def _added(items: int, digits: int, words: int) -> Iterator[str]:
    """Yield the lines that count the digits of elements."""
    found, inside, *given = registers(items, 2 + words)
    yield "{"
    yield ".reg .b32 x, counts, one; .reg .pred p; mov.u32 counts, block_counts; mov.b32 one, 1;"
    for k in range(items):
        yield f"setp.ne.u32 p, {inside[k]}, 0;"
        for digit in range(digits):
            word, shift = given[digit * BITS // 32][k], digit * BITS % 32
            yield f"shr.u32 x, {word}, {shift - 2};" if shift else f"shl.b32 x, {word}, 2;"
            yield f"and.b32 x, x, {4 * DIGITS - 4}; add.u32 x, x, counts;"
            yield f"@p red.shared.add.u32 [x+{4 * DIGITS * digit}], one;"
    yield from zeros(found)
    yield "}"


def _found(items: int, counters: int) -> Iterator[str]:
    """Yield the lines that read the counters."""
    found, index = registers(items, 2)
    yield "{"
    yield ".reg .b32 x, y, counts; .reg .pred p; mov.u32 counts, block_counts; bar.sync 0;"
    for k in range(items):
        yield from _read("y", index[k], counters)
        yield f"mov.b32 {found[k]}, y;"
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
