"""Functions that generated kernels call, in Triton: small elements, read as words that hold several.

Read as text like device_functions.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821, N803, N806
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def load_run(place, STEP: tl.constexpr, COUNT: tl.constexpr):
    """Elements of 1 or 2 bytes from any address on, or from there back with a STEP of -1."""
    kind: tl.constexpr = place.dtype.element_ty
    vector = tl.arange(0, COUNT * kind.primitive_bitwidth // 128)
    return load_vectors(place, vector * STEP, kind, STEP, COUNT)


def load_rows(first, second, column, extent, STEP: tl.constexpr, COUNT: tl.constexpr):
    """A run in one row, from a column to the row's end, and on in a second row from its beginning.

    A vector that would have elements of both has others, of the second.
    """
    kind: tl.constexpr = first.dtype.element_ty
    EACH: tl.constexpr = 128 // kind.primitive_bitwidth
    vector = tl.arange(0, COUNT // EACH)
    column = column + EACH * vector
    wraps = column > extent - EACH
    column = tl.where(wraps, tl.maximum(column - extent, 0), column)
    return load_vectors(tl.where(wraps, second, first) + STEP * column, vector * 0, kind, STEP, COUNT)


def load_vectors(place, vector, kind: tl.constexpr, STEP: tl.constexpr, COUNT: tl.constexpr):
    """Runs of 16 bytes, some vectors after a place or before it, shifted out of aligned vectors.

    Every vector that is read has a byte of a run, and memory is given in units of more than 16 bytes.
    """
    address = place.to(tl.int64) if STEP == 1 else place.to(tl.int64) - (16 - kind.primitive_bitwidth // 8)
    here = tl.multiple_of((address & -16).to(tl.pointer_type(tl.uint32)), 16)
    there = tl.multiple_of(((address + 15) & -16).to(tl.pointer_type(tl.uint32)), 16)
    a, b, c, d = four_words(here + 4 * vector)
    e, f, g, h = four_words(there + 4 * vector)
    far = (address & 8) != 0
    a, b, c, d = tl.where(far, c, a), tl.where(far, d, b), tl.where(far, e, c), tl.where(far, f, d)
    e, f = tl.where(far, g, e), tl.where(far, h, f)
    far = (address & 4) != 0
    a, b, c = tl.where(far, b, a), tl.where(far, c, b), tl.where(far, d, c)
    d, e = tl.where(far, e, d), tl.where(far, f, e)
    bits = (address & 3) * 8
    a, b, c, d = word_between(a, b, bits), word_between(b, c, bits), word_between(c, d, bits), word_between(d, e, bits)
    if STEP == -1:
        a, b, c, d = backwards(d, kind), backwards(c, kind), backwards(b, kind), backwards(a, kind)
    return tl.reshape(elements_of(tl.join(tl.join(a, c), tl.join(b, d)), kind), (COUNT,))


def backwards(word, kind: tl.constexpr):
    """A word with its elements from the last to the first."""
    word = (word >> 16) | (word << 16)
    return ((word >> 8) & 0x00FF00FF) | ((word & 0x00FF00FF) << 8) if kind.primitive_bitwidth == 8 else word


def four_words(place):
    """The words of vectors."""
    words = tl.load(tl.expand_dims(place, 1) + tl.expand_dims(tl.arange(0, 4), 0))
    even, odd = tl.split(tl.reshape(words, (words.shape[0], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


def word_between(low, high, bits):
    """The 32 bits of two words from one of the lower's on, or the higher word. Their bytes stay together."""
    asm: tl.constexpr = "shf.r.clamp.b32 $0, $1, $2, $3;"
    return tl.inline_asm_elementwise(asm, "=r,r,r,r", [low, high, bits.to(tl.uint32)], tl.uint32, is_pure=True, pack=1)


def load_turned(place, row, first, pitch, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Bytes of a tile that are dense in its columns; turned in shared memory as words, each with four of a row."""
    column = first + 4 * tl.expand_dims(tl.arange(0, COLUMNS // 4), 0)
    at = place + row + column * pitch
    low = word_of(tl.load(at)) | (word_of(tl.load(at + pitch)) << 8)
    high = word_of(tl.load(at + 2 * pitch)) | (word_of(tl.load(at + 3 * pitch)) << 8)
    return tl.reshape(elements_of(low | (high << 16), place.dtype.element_ty), (ROWS, COLUMNS))


def word_of(element):
    """A byte as a word."""
    return element.to(tl.uint8, bitcast=True).to(tl.uint32)


def elements_of(words, kind: tl.constexpr):
    """The elements of words, along one more axis."""
    BITS: tl.constexpr = kind.primitive_bitwidth
    shifts = (BITS * tl.arange(0, words.dtype.primitive_bitwidth // BITS)).to(words.dtype)
    elements = (tl.expand_dims(words, -1) >> shifts).to(tl.uint8 if BITS == 8 else tl.uint16)
    return elements.to(kind, bitcast=True)


# --- four bytes at once: elementwise, whatever four a thread has together -------------------------------------------


def add_bytes(x, y):
    """Sums that wrap: of the lower 7 bits, and the highest bit without a carry."""
    asm: tl.constexpr = (
        "{ .reg .b32 s, t; and.b32 s, $1, 0x7F7F7F7F; and.b32 t, $2, 0x7F7F7F7F; add.u32 s, s, t; "
        "lop3.b32 t, $1, $2, 0x80808080, 0x28; xor.b32 $0, s, t; }"
    )
    return tl.inline_asm_elementwise(asm, "=r,r,r", [x, y], x.dtype, is_pure=True, pack=4)


def subtract_bytes(x, y):
    """Differences that wrap: of the lower 7 bits with a bit to borrow from, and the highest bit."""
    asm: tl.constexpr = (
        "{ .reg .b32 s, t; or.b32 s, $1, 0x80808080; and.b32 t, $2, 0x7F7F7F7F; sub.u32 s, s, t; "
        "lop3.b32 t, $1, $2, 0x80808080, 0x82; xor.b32 $0, s, t; }"
    )
    return tl.inline_asm_elementwise(asm, "=r,r,r", [x, y], x.dtype, is_pure=True, pack=4)
