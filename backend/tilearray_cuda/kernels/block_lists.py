"""Functions of the elements of a warp that are chosen, as PTX for its threads together: a list of them.

The list lies in shared memory, which Triton cannot reach: see `block_assembly`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilearray_cuda.kernels.block_assembly import WARP, function_text

LISTED = WARP * WARP
"""The elements that a list is made of: a word for each thread of a warp."""
FEW = 4
"""A list has few elements if it has less than so great a part of them."""
_PLACE = 2
"""The bytes of an element of a list."""


def list_functions() -> list[str]:
    """Return the texts of Triton functions: a list of the chosen elements of a warp, and the element at a place of it.

    ``list_of_chosen(word, lane)`` takes two blocks of 32 int32, of one warp: words whose bits say which of `LISTED`
    elements are chosen, and the indices of words. It returns how many are chosen, and where the list is. A list is
    there until the next one is made. ``chosen_at(place, listed)`` takes any places in it.
    """
    return [
        function_text("list_of_chosen(word, lane)", _listed(), 2, 2, 1),
        function_text("chosen_at(place, listed)", _chosen_at(), 1, 2, 1),
    ]


def _listed() -> Iterator[str]:
    """Yield the lines that make a list: each thread counts the bits of its word, and those of the words before it.

    If few elements are chosen, each thread stores those of its own word, one after the other. Else all threads take
    the words in turn, and each thread stores one element.
    """
    total, where, bits, index = "$0", "$1", "$2", "$3"
    yield "{"
    yield f".shared .align 16 .b8 block_list[{_PLACE * LISTED}];"
    yield ".reg .b32 lane, earlier, begin, count, word, first, x, y; .reg .pred p, q;"
    yield f"mov.u32 lane, %tid.x; mov.u32 earlier, %lanemask_lt; setp.ne.u32 p, lane, {index}; @p trap;"
    yield f"popc.b32 count, {bits}; mov.b32 begin, count;"
    for lanes in (1, 2, 4, 8, 16):
        yield f"shfl.sync.up.b32 x|q, begin, {lanes}, 0, -1; @q add.u32 begin, begin, x;"
    yield f"shfl.sync.idx.b32 {total}, begin, 31, 31, -1; mov.u32 {where}, block_list;"
    yield f"sub.u32 begin, begin, count; shl.b32 begin, begin, 1; add.u32 begin, begin, {where};"
    yield "bar.warp.sync -1;"  # others may still read the list before
    yield f"setp.ge.u32 p, {total}, {LISTED // FEW}; @p bra DENSE;"
    yield f"brev.b32 word, {bits}; shl.b32 first, lane, 5; setp.eq.u32 p, word, 0; @p bra STORED;"
    yield "NEXT: bfind.shiftamt.u32 x, word; mov.b32 y, 0x80000000; shr.u32 y, y, x; xor.b32 word, word, y;"
    yield "add.u32 x, x, first; st.shared.u16 [begin], x; add.u32 begin, begin, 2; setp.ne.u32 p, word, 0;"
    yield "@p bra NEXT;"
    yield "bra STORED;"
    yield "DENSE:"
    for k in range(WARP):
        yield f"shfl.sync.idx.b32 word, {bits}, {k}, 31, -1; shfl.sync.idx.b32 first, begin, {k}, 31, -1;"
        yield "and.b32 x, word, earlier; popc.b32 x, x; shl.b32 x, x, 1; add.u32 first, first, x;"
        yield "shr.u32 y, word, lane; and.b32 y, y, 1; setp.ne.u32 p, y, 0;"
        yield f"add.u32 x, lane, {WARP * k}; @p st.shared.u16 [first], x;"
    yield "STORED: bar.warp.sync -1;"
    yield "}"


def _chosen_at() -> Iterator[str]:
    """Yield the lines that read an element of a list."""
    yield "{ .reg .b32 at; shl.b32 at, $1, 1; add.u32 at, at, $2; ld.shared.u16 $0, [at]; }"
