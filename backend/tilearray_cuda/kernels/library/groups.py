"""Functions that generated kernels call, in Triton: programs of one launch that wait for each other.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def take_turn(turns):
    """Return the number of this program, in the order in which programs start.

    So a program that waits for all with the next few numbers waits for programs that run or start next.
    """
    return tl.atomic_add(turns, 1, sem="relaxed")


def meet(arrivals, members):
    """Return when all members of a group have called this; then each one may read what others stored before."""
    tl.debug_barrier()  # all threads have stored
    arrived = tl.atomic_add(arrivals, 1, sem="acq_rel") + 1
    while arrived < members:
        arrived = tl.atomic_add(arrivals, 0, sem="acquire")
    tl.debug_barrier()


def to_words(x):
    """A value as two words of 64 bits. Each one has 32 bits of it, and a bit that tells it from memory of zeros.

    Words are stored and read whole, so who reads one knows whether it was stored, and needs to wait for nothing else.
    """
    if x.dtype.primitive_bitwidth == 64:
        bits = x.to(tl.int64, bitcast=True)
    elif x.dtype.primitive_bitwidth == 32:
        bits = x.to(tl.uint32, bitcast=True).to(tl.int64)
    else:
        bits = x.to(tl.uint16, bitcast=True).to(tl.int64)
    return (bits & 0xFFFFFFFF) | 0x100000000, ((bits >> 32) & 0xFFFFFFFF) | 0x100000000


def from_words(low, high, dtype: tl.constexpr):
    """The value of two words."""
    bits = (high << 32) | (low & 0xFFFFFFFF)
    if dtype.primitive_bitwidth == 32:
        bits = bits.to(tl.uint32)
    elif dtype.primitive_bitwidth == 16:
        bits = bits.to(tl.uint16)
    return bits.to(dtype, bitcast=True)


def read_words(low, high, number, count):
    """The words of some values, as they are at the moment; 0 for those beyond a count."""
    inside = number < count
    return (
        tl.load(low + number, mask=inside, other=0, volatile=True),
        tl.load(high + number, mask=inside, other=0, volatile=True),
    )


def await_words(low, high, row):
    """The words of one value, once they are stored. Each warp reads them by itself, and waits for no other one."""
    return await_word(low + row * 0), await_word(high + row * 0)


def await_word(places):
    """The words at some places, once they are stored.

    A word is all that is read of what its program stored, so its load orders no other one.
    """
    asm: tl.constexpr = (
        "{ .reg .pred unset; again: ld.relaxed.gpu.global.u64 $0, [$1]; setp.eq.u64 unset, $0, 0; @unset bra again; }"
    )
    return tl.inline_asm_elementwise(asm, "=&l,l", [places.to(tl.int64)], tl.int64, is_pure=False, pack=1)


def stored_so_far(words, number):
    """How many of a row of words are stored before the first one that is not; all rows have the same words."""
    none: tl.constexpr = words.shape[1]
    return tl.min(tl.where(words == 0, number, none))
