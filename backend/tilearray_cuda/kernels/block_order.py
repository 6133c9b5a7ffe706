"""Functions of a block, as PTX for its threads together: the stable order of digits, their counts, and lists.

Triton cannot reach the shared memory that a stable order needs: a counter of each digit for each warp. So one piece of
assembly takes all elements of a thread at once, and has shared memory of its own.

The order is found as in D. Merrill and A. Grimshaw, "High performance and scalable radix sorting" (2011), with the
ranks of a warp as in S. Ashkiani and others, "GPU multisplit" (2016):

1. Each warp takes a run of the block, 32 elements at a time. Votes on the bits of digits tell each thread which threads
   of its warp have its own digit. The number of those before it, and the warp's counter of the digit, are its rank in
   the warp. The first of them increases the counter. A warp whose digits are all equal needs no votes.
2. The counters are summed over warps, and then over digits. A rank and the sum before its counter is a place in the
   block.
3. The index of each element, and its digit, go to that place in shared memory. Each thread reads those of its places.

Element k of thread t has the index ``t + k * threads`` in Triton's blocks, and `place_text` gives its place in the
block: the runs of warps. Assembly cannot know how Triton distributes a block, so it stops the kernel if the indices
differ from these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

BITS = 8
"""The bits of a digit."""
DIGITS = 1 << BITS
WARP = 32
OF_A_THREAD = 16
"""The most elements of a thread."""
LEAST_WARPS = DIGITS // WARP
"""The least warps of a block: a thread sums the counters of a digit."""
LISTED = WARP * WARP
"""The elements that a list is made of: a word for each thread of a warp."""
FEW = 4
"""A list has few elements if it has less than so great a part of them."""
_COUNTER = 2
"""The bytes of a counter, or of an element of a list."""
_ALL = "0x80"
"""The table of ``lop3`` for bits that are in all of three words."""


def warps_of(size: int) -> int:
    """Return the warps of a block of so many elements, a power of two of at least 256.

    >>> warps_of(256), warps_of(8192)
    (8, 16)
    """
    return max(LEAST_WARPS, size // (WARP * OF_A_THREAD))


def items_of(size: int) -> int:
    """Return the elements of a thread of such a block."""
    return size // (WARP * warps_of(size))


def place_text(size: int) -> str:
    """Return the place in a block of so many elements that has an index, in Triton.

    >>> place_text(4096)
    'index % 32 + index // 32 % 8 * 512 + index // 256 * 32'
    """
    warps, items = warps_of(size), items_of(size)
    return f"index % {WARP} + index // {WARP} % {warps} * {WARP * items} + index // {WARP * warps} * {WARP}"


def order_function(size: int) -> str:
    """Return the text of a Triton function: the stable order of a block by its digits.

    ``order_of_digits(digit, index, start)`` takes three blocks of int32: digits below 256, the indices of elements, and
    at index d the slot of the first element of digit d. Of the element that belongs to an index's place, it returns the
    index and the slot.
    """
    items = items_of(size)
    return _function("order_of_digits(digit, index, start)", _order(items, warps_of(size)), 2, 3, items)


def count_function(size: int, parts: int = 1) -> str:
    """Return the text of a Triton function: how often each digit comes in each part of a block.

    ``count_of_digits(digit, index)`` takes two blocks of int32: ``parts * digit + part``, which does not count from
    ``parts * 256`` on, and the indices of elements. It returns how often each index below that comes, and 0 for others.
    """
    items = items_of(size)
    return _function("count_of_digits(digit, index)", _counts(items, warps_of(size), parts * DIGITS), 1, 2, items)


def list_functions() -> list[str]:
    """Return the texts of Triton functions: a list of the chosen elements of a warp, and the element at a place of it.

    ``list_of_chosen(word, lane)`` takes two blocks of 32 int32, of one warp: words whose bits say which of `LISTED`
    elements are chosen, and the indices of words. It returns how many are chosen, and where the list is. A list is
    there until the next one is made. ``chosen_at(place, listed)`` takes any places in it.
    """
    return [
        _function("list_of_chosen(word, lane)", _listed(), 2, 2, 1),
        _function("chosen_at(place, listed)", _chosen_at(), 1, 2, 1),
    ]


def _function(signature: str, lines: Iterator[str], outputs: int, inputs: int, items: int) -> str:
    """Return a Triton function that calls assembly for all elements of a thread."""
    constraints = ",".join(["=&r"] * (outputs * items) + ["r"] * (inputs * items))
    asm = "".join(f'\n        "{line} "' for line in lines)
    given = signature.partition("(")[2].removesuffix(")")
    types = ", ".join(["tl.int32"] * outputs)
    types = f"({types})" if outputs > 1 else types
    return "\n".join(
        [
            f"def {signature}:",
            f"    asm: tl.constexpr = ({asm}",
            "    )",
            f'    constraints: tl.constexpr = "{constraints}"',
            "    return tl.inline_asm_elementwise(",
            f"        asm, constraints, [{given}], {types}, is_pure=False, pack={items}",
            "    )",
        ]
    )


def _registers(items: int, count: int) -> list[list[str]]:
    """Return the names of operands: for each result and each input, those of a thread's elements."""
    return [[f"${operand * items + item}" for item in range(items)] for operand in range(count)]


# --- the order --------------------------------------------------------------------------------------------------------


def _order(items: int, warps: int) -> Iterator[str]:
    """Yield the lines that order a block."""
    source, slot, digit, index, begin = _registers(items, 5)
    yield "{"
    yield from _declared(items, warps)
    yield "mov.b32 y, 0;"
    for k in range(items):
        yield f"add.u32 x, thread, {WARP * warps * k}; xor.b32 x, x, {index[k]}; or.b32 y, y, x;"
    yield "setp.ne.u32 p, y, 0; @p trap;"
    yield "bar.sync 0;"  # others may still read the results of a call before
    yield f"mov.b32 x, 0; mad.lo.u32 y, thread, {_COUNTER * LEAST_WARPS}, counters;"
    yield "st.shared.v4.b32 [y], {x, x, x, x};"
    yield f"setp.lt.u32 p, thread, {DIGITS}; shl.b32 x, thread, 2; add.u32 x, x, starts;"
    yield f"@p st.shared.b32 [x], {begin[0]};"
    yield "bar.sync 0;"
    yield from _all_equal(digit, "RANKS")
    yield f"shl.b32 y, run, 1; add.u32 y, y, mine; mov.b32 count, {WARP * items}; setp.eq.u32 q, lane, 0;"
    yield "@q st.shared.u16 [y], count; shl.b32 x, run, 16; or.b32 x, x, lane;"
    for k in range(items):
        yield f"add.u32 rank{k}, x, {WARP * k};"
    yield "bra RANKED;"
    yield "RANKS:"
    for k in range(items):
        yield from _ranked(k, digit[k])
    yield "RANKED: bar.sync 0;"
    yield from _summed(warps)
    yield "bar.sync 0;"
    for k in range(items):
        yield from _moved(k, WARP * warps * k)
    yield "bar.sync 0;"
    yield "shl.b32 z, first, 2; add.u32 z, z, words;"
    for k in range(items):
        yield f"ld.shared.b32 found{k}, [z+{4 * WARP * k}];"
    for k in range(items):
        yield f"shr.u32 x, found{k}, 16; shl.b32 x, x, 2; add.u32 x, x, starts; ld.shared.b32 y, [x];"
        yield f"add.u32 x, first, {WARP * k}; add.u32 {slot[k]}, x, y; and.b32 {source[k]}, found{k}, 0xffff;"
    yield "}"


def _declared(items: int, warps: int) -> Iterator[str]:
    """Yield the declarations of an order."""
    sizes = {
        "words": 4 * WARP * warps * items,
        "counters": _COUNTER * DIGITS * warps,
        "starts": 4 * DIGITS,
        "sums": 4 * LEAST_WARPS,
    }
    for name, size in sizes.items():
        yield f".shared .align 16 .b8 block_{name}[{size}];"
    yield ".reg .b32 thread, lane, warp, earlier, words, counters, starts, sums, first, mine, x, y, z, count, run;"
    yield f".reg .pred p, q; .reg .b32 vote<{BITS}>, rank<{items}>, found<{items}>, counter<{warps}>;"
    yield "mov.u32 thread, %tid.x; and.b32 lane, thread, 31; shr.u32 warp, thread, 5; mov.u32 earlier, %lanemask_lt;"
    for name in sizes:
        yield f"mov.u32 {name}, block_{name};"
    yield f"mul.lo.u32 first, warp, {WARP * items}; add.u32 first, first, lane;"
    yield f"mul.lo.u32 mine, warp, {_COUNTER * DIGITS}; add.u32 mine, mine, counters;"


def _all_equal(digits: Sequence[str], otherwise: str) -> Iterator[str]:
    """Yield the lines that find the first digit of a warp, and go to a label unless all others are equal to it."""
    yield f"shfl.sync.idx.b32 run, {digits[0]}, 0, 31, -1; mov.b32 y, 0;"
    for digit in digits:
        yield f"xor.b32 x, {digit}, run; or.b32 y, y, x;"
    yield f"setp.eq.u32 p, y, 0; vote.sync.all.pred p, p, -1; @!p bra {otherwise};"


def _ranked(k: int, digit: str) -> Iterator[str]:
    """Yield the lines that find the rank of an element in its warp; the digit lies above it."""
    for bit in range(BITS):
        yield f"and.b32 x, {digit}, {1 << bit}; setp.ne.u32 p, x, 0;"
        yield f"vote.sync.ballot.b32 vote{bit}, p, -1; @!p not.b32 vote{bit}, vote{bit};"
    yield "mov.b32 run, vote0;"
    for bit in range(1, BITS - 1, 2):
        yield f"lop3.b32 run, run, vote{bit}, vote{bit + 1}, {_ALL};"
    yield f"and.b32 run, run, vote{BITS - 1};"
    yield f"popc.b32 count, run; and.b32 run, run, earlier; popc.b32 rank{k}, run; setp.eq.u32 q, rank{k}, 0;"
    yield f"shl.b32 y, {digit}, 1; add.u32 y, y, mine; ld.shared.u16 run, [y]; add.u32 count, count, run;"
    yield "bar.warp.sync -1;"
    yield f"@q st.shared.u16 [y], count; add.u32 rank{k}, rank{k}, run;"
    yield f"shl.b32 x, {digit}, 16; or.b32 rank{k}, rank{k}, x;"
    yield "bar.warp.sync -1;"


def _summed(warps: int) -> Iterator[str]:
    """Yield the lines that replace counters by the sums before them, and starts by their distance from these."""
    step = _COUNTER * DIGITS
    yield f"setp.ge.u32 p, thread, {DIGITS}; shl.b32 y, thread, 1; add.u32 y, y, counters; @p bra SUMMED;"
    for k in range(warps):
        yield f"ld.shared.u16 counter{k}, [y+{step * k}];"
    yield "mov.b32 run, 0;"
    for k in range(warps):
        yield f"mov.b32 x, run; add.u32 run, run, counter{k}; mov.b32 counter{k}, x;"
    yield "mov.b32 count, run;"
    for lanes in (1, 2, 4, 8, 16):
        yield f"shfl.sync.up.b32 x|q, run, {lanes}, 0, -1; @q add.u32 run, run, x;"
    yield "shl.b32 x, warp, 2; add.u32 x, x, sums; setp.eq.u32 q, lane, 31; @q st.shared.b32 [x], run;"
    yield "sub.u32 run, run, count;"
    yield "SUMMED: bar.sync 0; @p bra STORED;"
    for k in range(LEAST_WARPS - 1):
        yield f"ld.shared.b32 x, [sums+{4 * k}]; setp.gt.u32 q, warp, {k}; @q add.u32 run, run, x;"
    yield "shl.b32 x, thread, 2; add.u32 x, x, starts; ld.shared.b32 z, [x]; sub.u32 z, z, run; st.shared.b32 [x], z;"
    for k in range(warps):
        yield f"add.u32 x, counter{k}, run; st.shared.u16 [y+{step * k}], x;"
    yield "STORED:"


def _moved(k: int, distance: int) -> Iterator[str]:
    """Yield the lines that store an element's digit and index in its place."""
    yield f"shr.u32 y, rank{k}, 15; and.b32 y, y, {2 * DIGITS - 2}; add.u32 y, y, mine; ld.shared.u16 x, [y];"
    yield f"add.u32 x, x, rank{k}; and.b32 x, x, 0xffff; shl.b32 x, x, 2; add.u32 x, x, words;"
    yield f"and.b32 y, rank{k}, 0xffff0000; add.u32 z, thread, {distance}; or.b32 y, y, z; st.shared.b32 [x], y;"


# --- counts -----------------------------------------------------------------------------------------------------------


def _counts(items: int, warps: int, counters: int) -> Iterator[str]:
    """Yield the lines that count the digits of a block. What does not count has a counter too, which is not read."""
    found, digit, index = _registers(items, 3)
    threads = WARP * warps
    yield "{"
    yield f".shared .align 16 .b8 block_counts[{4 * counters + 4}];"
    yield f".reg .b32 thread, counts, mine, one, x, y; .reg .pred p; .reg .b32 count<{items}>;"
    yield "mov.u32 thread, %tid.x; mov.u32 counts, block_counts; mov.b32 y, 0; mov.b32 one, 1;"
    yield "shl.b32 mine, thread, 2; add.u32 mine, mine, counts;"
    for k in range(0, counters, threads):
        yield f"setp.lt.u32 p, thread, {counters - k}; @p st.shared.b32 [mine+{4 * k}], y;"
    yield "bar.sync 0;"
    for k in range(items):
        yield f"min.u32 x, {digit[k]}, {counters}; shl.b32 x, x, 2; add.u32 x, x, counts; red.shared.add.u32 [x], one;"
    yield "bar.sync 0;"
    for k in range(items):
        yield f"mov.b32 count{k}, 0; setp.lt.u32 p, {index[k]}, {counters}; shl.b32 x, {index[k]}, 2;"
        yield f"add.u32 x, x, counts; @p ld.shared.b32 count{k}, [x];"
    for k in range(items):
        yield f"mov.b32 {found[k]}, count{k};"
    yield "}"


# --- lists ------------------------------------------------------------------------------------------------------------


def _listed() -> Iterator[str]:
    """Yield the lines that make a list: each thread counts the bits of its word, and those of the words before it.

    If few elements are chosen, each thread stores those of its own word, one after the other. Else all threads take
    the words in turn, and each thread stores one element.
    """
    total, where, bits, index = "$0", "$1", "$2", "$3"
    yield "{"
    yield f".shared .align 16 .b8 block_list[{_COUNTER * LISTED}];"
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


def with_decorator(functions: Sequence[str]) -> list[str]:
    """Return the texts of functions as parts of a kernel's source."""
    return [f"@triton.jit\n{text}\n\n" for text in functions]
