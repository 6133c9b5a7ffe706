"""Functions that generated kernels call, in Triton: atomics that hardware lacks.

Read as text like numeric.py, which tells how.

The bits of floats that are not negative have the order of the floats as signed integers, and those of negative floats
the reverse order as unsigned ones. A positive NaN is above all of the first, and a negative one above all of the
second. So one atomic of integers keeps the larger or the smaller float.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def keep_larger(pointer, value, mask=True):
    """Store the larger of an element and a value; NaN where either is NaN; 0.0 is larger than -0.0.

    The first program that changes a negative NaN has read it, so it stores a positive one, which stays.
    """
    signed: tl.constexpr = tl.int64 if pointer.dtype.element_ty == tl.float64 else tl.int32
    unsigned: tl.constexpr = tl.uint64 if pointer.dtype.element_ty == tl.float64 else tl.uint32
    old = tl.load(pointer, mask=mask)
    nan: tl.constexpr = 0x7FF8000000000000 if signed == tl.int64 else 0x7FC00000
    bits = tl.where((old != old) | (value != value), nan, value.to(signed, bitcast=True))
    tl.atomic_max(pointer.to(tl.pointer_type(signed), bitcast=True), bits, mask=(bits >= 0) & mask, sem="relaxed")
    others = bits.to(unsigned, bitcast=True)
    tl.atomic_min(pointer.to(tl.pointer_type(unsigned), bitcast=True), others, mask=(bits < 0) & mask, sem="relaxed")


def keep_smaller(pointer, value, mask=True):
    """Store the smaller of an element and a value; NaN where either is NaN; -0.0 is smaller than 0.0.

    The first program that changes a positive NaN has read it, so it stores a negative one, which stays.
    """
    signed: tl.constexpr = tl.int64 if pointer.dtype.element_ty == tl.float64 else tl.int32
    unsigned: tl.constexpr = tl.uint64 if pointer.dtype.element_ty == tl.float64 else tl.uint32
    old = tl.load(pointer, mask=mask)
    nan: tl.constexpr = -(2**51) if signed == tl.int64 else -(2**22)
    bits = tl.where((old != old) | (value != value), nan, value.to(signed, bitcast=True))
    tl.atomic_min(pointer.to(tl.pointer_type(signed), bitcast=True), bits, mask=(bits >= 0) & mask, sem="relaxed")
    others = bits.to(unsigned, bitcast=True)
    tl.atomic_max(pointer.to(tl.pointer_type(unsigned), bitcast=True), others, mask=(bits < 0) & mask, sem="relaxed")


def count_places(pointer, mask=True):
    """Add 1 to the elements at some places. What a warp has of one place is counted, and added at once.

    The warp's lanes ask which of them have the same place, and the first one of those adds their number.
    """
    asm: tl.constexpr = (
        "{ .reg .b32 lanes, lower; .reg .pred first; match.any.sync.b64 lanes, $1, 0xffffffff; "
        "mov.u32 lower, %lanemask_lt; and.b32 lower, lower, lanes; setp.eq.u32 first, lower, 0; "
        "popc.b32 lanes, lanes; selp.b32 $0, lanes, 0, first; }"
    )
    place = tl.where(mask, pointer.to(tl.int64), 0)
    count = tl.inline_asm_elementwise(asm, "=r,l", [place], tl.int32, is_pure=False, pack=1)
    tl.atomic_add(pointer, count.to(pointer.dtype.element_ty), mask=(count > 0) & mask, sem="relaxed")
