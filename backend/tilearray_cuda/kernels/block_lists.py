"""Functions of the chosen elements of a block, as PTX for its threads together: a list of them, or the elements packed.

A word has a bit for each of 32 elements, and each thread has a word. `begin_of_words` counts the chosen elements before
each word. Then a block either lists which elements are chosen, to read these only, or has read all of them, and packs
the chosen ones. Both lie in shared memory, which Triton cannot reach: see `block_assembly`. It is declared outside of
braces, so all functions know it by its names.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilearray_cuda.kernels.block_assembly import WARP, function_text, summed_over_lanes

LISTED = WARP * WARP
"""The elements of a warp: a word for each thread."""
FEW = 4
"""A warp has few elements to list if fewer than one in so many are chosen."""
_PLACE = 2
"""The bytes of an element of a list."""
_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32"}
"""How elements of so many bytes are moved."""


def list_functions(warps: int, itemsize: int = 0) -> list[str]:
    """Return the texts of Triton functions: of a list, and of packed elements if an itemsize is given.

    ``list_memory(thread)`` takes the indices of threads, a block of int32, and comes first, once in a kernel.
    ``begin_of_words(word, thread)`` takes the words of threads as well, whose bits say which of the elements are
    chosen, `LISTED` for each warp. ``list_of_chosen(thread)`` makes a list then. None of them returns anything of use.
    ``chosen_at(place)`` returns the index of the element at any places in the list.
    """
    return [
        function_text("list_memory(thread)", _memory(warps), 1, 1, 1),
        function_text("begin_of_words(word, thread)", _begin(warps), 1, 2, 1),
        function_text("list_of_chosen(thread)", _listed(), 1, 1, 1),
        function_text("chosen_at(place)", _read(_PLACE, LISTED * warps), 1, 1, 1),
        *(pack_functions(itemsize, packed_at_once(warps, itemsize)) if itemsize else []),
    ]


def packed_at_once(warps: int, itemsize: int) -> int:
    """Return the elements of a block that are packed at once: they need no more memory than a list.

    >>> [packed_at_once(4, itemsize) for itemsize in (1, 2, 4, 8)]
    [4096, 4096, 2048, 1024]
    """
    return LISTED * warps * _PLACE // max(_PLACE, itemsize)


def pack_functions(itemsize: int, at_once: int) -> list[str]:
    """Return the texts of Triton functions of packed elements, which have a word or less, or two words.

    ``pack_chosen(word0, ..., index)`` takes the words and the indices of elements, in any distribution: `at_once` of
    them, from a multiple of it on. It is called after `begin_of_words`, and between two ``threads_wait(thread)``.
    Neither returns anything of use. ``packed_at(place)`` returns the words of the chosen elements at any places, those
    of the whole block, as far as they are among the last `at_once` that were packed. ``begin_at(word)`` returns how
    many elements are chosen before words.
    """
    words = max(1, itemsize // 4)
    names = ", ".join(f"word{word}" for word in range(words))
    return [
        function_text(f"pack_chosen({names}, index)", _packed(itemsize, at_once, words), 1, words + 1, 1),
        function_text("threads_wait(thread)", iter(["{ mov.b32 $0, %tid.x; bar.sync 0; }"]), 1, 1, 1),
        function_text("packed_at(place)", _read(itemsize, at_once), words, 1, 1),
        function_text("begin_at(word)", _begin_at(), 1, 1, 1),
    ]


def _memory(warps: int) -> Iterator[str]:
    """Yield the lines that declare the list, or packed elements; and for each word it and its begin."""
    yield f".shared .align 16 .b8 block_list[{LISTED * warps * _PLACE}];"
    yield f".shared .align 16 .b8 block_words[{8 * WARP * warps}];"
    yield f".shared .align 16 .b8 block_totals[{4 * warps}];"
    yield "mov.b32 $0, 0;"


def _begin(warps: int) -> Iterator[str]:
    """Yield the lines that count the bits of words, and add those of the words before, of a warp and of all warps."""
    bits, index = "$1", "$2"
    yield "{"
    yield ".reg .b32 thread, warp, begin, count, total, x, y; .reg .pred p, q;"
    yield f"mov.u32 thread, %tid.x; setp.ne.u32 p, thread, {index}; @p trap; shr.u32 warp, thread, 5;"
    yield f"popc.b32 count, {bits}; mov.b32 begin, count;"
    yield from summed_over_lanes("begin")
    yield "shfl.sync.idx.b32 total, begin, 31, 31, -1; sub.u32 begin, begin, count;"
    yield "mov.u32 y, block_totals; shl.b32 x, warp, 2; add.u32 y, y, x; and.b32 x, thread, 31; setp.eq.u32 p, x, 31;"
    yield "@p st.shared.u32 [y], total; bar.sync 0;"
    for k in range(warps - 1):
        yield f"ld.shared.u32 x, [block_totals+{4 * k}]; setp.gt.u32 p, warp, {k}; @p add.u32 begin, begin, x;"
    yield "mov.u32 y, block_words; shl.b32 x, thread, 3; add.u32 y, y, x;"
    yield f"st.shared.v2.u32 [y], {{{bits}, begin}}; bar.sync 0; mov.b32 $0, 0;"
    yield "}"


def _listed() -> Iterator[str]:
    """Yield the lines that make a list.

    If few elements of a warp are chosen, each thread stores those of its own word, one after the other. Else all
    threads take the words in turn, two at once, and each thread stores one element.
    """
    yield "{"
    yield ".reg .b32 thread, lane, words, list, word, begin, next, end, first, x, y; .reg .pred p;"
    yield "mov.u32 thread, %tid.x; setp.ne.u32 p, thread, $1; @p trap;"
    yield "and.b32 lane, thread, 31; mov.u32 words, block_words; mov.u32 list, block_list;"
    yield "shl.b32 x, thread, 3; add.u32 x, x, words; ld.shared.v2.u32 {word, begin}, [x];"
    yield "popc.b32 x, word; add.u32 x, x, begin; shfl.sync.idx.b32 end, x, 31, 31, -1;"
    yield "shfl.sync.idx.b32 x, begin, 0, 31, -1; sub.u32 end, end, x;"
    yield f"setp.ge.u32 p, end, {LISTED // FEW}; @p bra DENSE;"
    yield "shl.b32 begin, begin, 1; add.u32 begin, begin, list;"
    yield "brev.b32 word, word; shl.b32 first, thread, 5; setp.eq.u32 p, word, 0; @p bra STORED;"
    yield "NEXT: bfind.shiftamt.u32 x, word; mov.b32 y, 0x80000000; shr.u32 y, y, x; xor.b32 word, word, y;"
    yield f"add.u32 x, x, first; st.shared.u16 [begin], x; add.u32 begin, begin, {_PLACE};"
    yield "setp.ne.u32 p, word, 0; @p bra NEXT; bra STORED;"
    yield "DENSE: .reg .b32 earlier; mov.u32 earlier, %lanemask_lt; sub.u32 first, thread, lane;"
    yield "shl.b32 x, first, 3; add.u32 words, words, x; shl.b32 first, first, 5; add.u32 first, first, lane;"
    for k in range(0, WARP, 2):
        yield f"ld.shared.v4.u32 {{word, begin, next, end}}, [words+{8 * k}];"
        for add, bits, start in ((0, "word", "begin"), (1, "next", "end")):
            yield f"and.b32 x, {bits}, earlier; popc.b32 x, x; add.u32 x, x, {start}; shl.b32 x, x, 1;"
            yield f"shr.u32 y, {bits}, lane; and.b32 y, y, 1; setp.ne.u32 p, y, 0;"
            yield f"add.u32 y, first, {WARP * (k + add)}; add.u32 x, x, list; @p st.shared.u16 [x], y;"
    yield "STORED: bar.sync 0; mov.b32 $0, 0;"
    yield "}"


def _packed(itemsize: int, at_once: int, words: int) -> Iterator[str]:
    """Yield the lines that store an element behind the chosen ones before it, if it is chosen.

    Its place is taken modulo the number of places: neighbours that are packed at once have places of their own.
    """
    index = f"${words + 1}"
    value = ", ".join(f"${word}" for word in range(1, words + 1))
    yield "{"
    yield ".reg .b32 word, begin, x, y; .reg .pred p;"
    yield f"mov.u32 y, block_words; shr.u32 x, {index}, 5; shl.b32 x, x, 3; add.u32 x, x, y;"
    yield "ld.shared.v2.u32 {word, begin}, [x];"
    yield f"and.b32 x, {index}, 31; mov.b32 y, 1; shl.b32 y, y, x; and.b32 x, word, y; setp.ne.u32 p, x, 0;"
    yield "sub.u32 y, y, 1; and.b32 y, y, word; popc.b32 y, y; add.u32 begin, begin, y;"
    yield from _address("begin", "begin", itemsize, at_once)
    yield f"@p st.shared.{_TYPES[itemsize]} [begin], {f'{{{value}}}' if words > 1 else value}; mov.b32 $0, 0;"
    yield "}"


def _read(itemsize: int, places: int) -> Iterator[str]:
    """Yield the lines that read an element of the list, or a packed one."""
    found, place = ("{$0, $1}", "$2") if itemsize > 4 else ("$0", "$1")
    yield "{"
    yield ".reg .b32 at, y;"
    yield from _address("at", place, itemsize, places)
    yield f"ld.shared.{_TYPES[itemsize]} {found}, [at];"
    yield "}"


def _address(at: str, place: str, itemsize: int, places: int) -> Iterator[str]:
    """Yield the lines that find the address of a place in the list."""
    yield f"mov.u32 y, block_list; and.b32 {at}, {place}, {places - 1};"
    yield f"shl.b32 {at}, {at}, {itemsize.bit_length() - 1}; add.u32 {at}, {at}, y;"


def _begin_at() -> Iterator[str]:
    """Yield the lines that read how many elements are chosen before a word."""
    yield "{ .reg .b32 at, y; mov.u32 y, block_words; shl.b32 at, $1, 3; add.u32 at, at, y; ld.shared.u32 $0, [at+4]; }"
