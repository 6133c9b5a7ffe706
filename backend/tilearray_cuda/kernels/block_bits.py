"""Functions of a set of integers of 16 bits, as PTX for the threads of a block together: the set, its size, its order.

The set is a bit for each integer, in shared memory, which Triton cannot reach: see `block_assembly`. A thread counts
the bits of some neighbouring words. The sums of these counts over threads are the ranks of the first bits of threads.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilearray_cuda.kernels.block_assembly import WARP, checked, function_text, registers, summed_over_lanes, zeros

BITS = 16
"""The bits of an integer."""
LISTED = 2048
"""The integers of a list, and the values that are added at once."""
THREADS = 256
"""The threads of a block."""
_WORDS = (1 << BITS) // 32
_OWN = _WORDS // THREADS
"""The words that a thread counts."""
_VECTOR = 4
"""The words that a thread reads or writes at once."""


def set_functions() -> list[str]:
    """Return the texts of Triton functions, called in this order; all take blocks of int32.

    ``set_begun(thread)`` makes an empty set. It takes the numbers of threads, and returns nothing of use.
    ``set_joined(value)`` adds the values below 2**16, and ignores others; nor does it.
    ``set_counted(thread)`` returns the size of the set, and for each thread the rank of its first integer.
    ``set_listed(thread, rank, first)`` lists the integers from a rank on. It takes the ranks of threads, and returns
    nothing of use.
    ``listed_at(place)`` returns the integers at places of the list, which has `LISTED` places.
    """
    return [
        function_text("set_begun(thread)", _begun(), 1, 1, 1),
        function_text("set_joined(value)", _joined(), 1, 1, LISTED // THREADS),
        function_text("set_counted(thread)", _counted(), 2, 1, 1),
        function_text("set_listed(thread, rank, first)", _listed(), 1, 3, 1),
        function_text("listed_at(place)", _listed_at(), 1, 1, 1),
    ]


def _begun() -> Iterator[str]:
    """Yield the lines that make the memory of all functions, which is declared outside the braces, and zero the set."""
    areas = {"set": 4 * _WORDS, "list": 4 * LISTED, "sums": 4 * THREADS // WARP}
    for name, size in areas.items():
        yield f".shared .align 16 .b8 block_{name}[{size}];"
    yield "{"
    yield ".reg .b32 x, y, thread; .reg .pred p; mov.u32 thread, %tid.x;"
    yield from checked(["$1"], THREADS)
    yield f"shl.b32 y, thread, {2 + _VECTOR.bit_length() - 1}; mov.u32 x, block_set; add.u32 y, y, x; mov.b32 x, 0;"
    for first in range(0, 4 * _WORDS, 4 * _VECTOR * THREADS):
        yield f"st.shared.v4.b32 [y+{first}], {{x, x, x, x}};"
    yield "bar.sync 0; mov.b32 $0, 0;"
    yield "}"


def _joined() -> Iterator[str]:
    """Yield the lines that set bits. To read those that are set already first takes longer than it saves."""
    items = LISTED // THREADS
    found, value = registers(items, 2)
    yield "{"
    yield ".reg .b32 x, word, bit, bits; .reg .pred p; mov.u32 bits, block_set;"
    for k in range(items):
        yield f"setp.lt.u32 p, {value[k]}, {1 << BITS}; shr.u32 word, {value[k]}, 5; shl.b32 word, word, 2;"
        yield f"add.u32 word, word, bits; and.b32 x, {value[k]}, 31; mov.b32 bit, 1; shl.b32 bit, bit, x;"
        yield "@p red.shared.or.b32 [word], bit;"
    yield from zeros(found)
    yield "}"


def _own_words() -> Iterator[str]:
    """Yield the lines that read a thread's words."""
    yield f"shl.b32 y, thread, {(4 * _OWN).bit_length() - 1}; mov.u32 x, block_set; add.u32 y, y, x;"
    for k in range(0, _OWN, _VECTOR):
        yield f"ld.shared.v4.b32 {{{', '.join(f'word{k + n}' for n in range(_VECTOR))}}}, [y+{4 * k}];"


def _counted() -> Iterator[str]:
    """Yield the lines that count the bits of words, and add the counts of threads."""
    yield "{"
    yield ".reg .b32 x, y, thread, lane, warp, mine, run, all; .reg .pred q;"
    yield f".reg .b32 word<{_OWN}>;"
    yield "mov.u32 thread, %tid.x; and.b32 lane, thread, 31; shr.u32 warp, thread, 5; bar.sync 0;"
    yield from _own_words()
    yield from _own_bits()
    yield "mov.b32 run, mine;"
    yield from summed_over_lanes("run")
    yield "mov.u32 y, block_sums; shl.b32 x, warp, 2; add.u32 x, x, y;"
    yield "setp.eq.u32 q, lane, 31; @q st.shared.b32 [x], run; bar.sync 0;"
    yield "sub.u32 run, run, mine; mov.b32 all, 0;"
    for k in range(THREADS // WARP):
        yield f"ld.shared.b32 x, [y+{4 * k}]; add.u32 all, all, x; setp.gt.u32 q, warp, {k}; @q add.u32 run, run, x;"
    yield "mov.b32 $0, all; mov.b32 $1, run;"
    yield "}"


def _own_bits() -> Iterator[str]:
    """Yield the lines that count the bits of a thread's words."""
    yield "mov.b32 mine, 0;"
    for k in range(_OWN):
        yield f"popc.b32 x, word{k}; add.u32 mine, mine, x;"


def _listed() -> Iterator[str]:
    """Yield the lines that store the integers of each thread's words, one after the other.

    Threads whose integers all lie outside the list have nothing to do.
    """
    yield "{"
    yield f".reg .b32 x, y, thread, rank, list, first, mine; .reg .b32 word<{_OWN}>; .reg .pred p, q;"
    yield "mov.u32 thread, %tid.x; mov.u32 list, block_list; sub.u32 rank, $2, $3;"
    yield "bar.sync 0;"  # others may still read the list before
    yield from _own_words()
    yield from _own_bits()
    yield f"add.u32 mine, mine, $2; setp.ge.u32 p, $3, mine; add.u32 x, $3, {LISTED}; setp.ge.u32 q, $2, x;"
    yield "@p bra DONE; @q bra DONE;"
    yield f"shl.b32 first, thread, {(32 * _OWN).bit_length() - 1};"
    for k in range(_OWN):
        yield f"brev.b32 word{k}, word{k}; setp.eq.u32 p, word{k}, 0; @p bra LISTED{k};"
        yield f"NEXT{k}: bfind.shiftamt.u32 x, word{k}; mov.b32 y, 0x80000000; shr.u32 y, y, x;"
        yield f"xor.b32 word{k}, word{k}, y; add.u32 x, x, first; shl.b32 y, rank, 2; add.u32 y, y, list;"
        yield f"setp.lt.u32 q, rank, {LISTED}; @q st.shared.b32 [y], x; add.u32 rank, rank, 1;"
        yield f"setp.ne.u32 p, word{k}, 0; @p bra NEXT{k};"
        yield f"LISTED{k}: add.u32 first, first, 32;"
    yield "DONE: bar.sync 0; mov.b32 $0, 0;"
    yield "}"


def _listed_at() -> Iterator[str]:
    """Yield the lines that read an integer of the list."""
    yield "{ .reg .b32 at, list; mov.u32 list, block_list; shl.b32 at, $1, 2; add.u32 at, at, list;"
    yield "ld.shared.b32 $0, [at]; }"
