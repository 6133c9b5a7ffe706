"""Functions that generated kernels call, in Triton: small elements, read as words that hold several.

Read as text like device_functions.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821, N803, N806
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def load_run(place, COUNT: tl.constexpr):
    """Elements of 1 or 2 bytes from any address on, shifted out of aligned vectors of 16 bytes.

    Every vector that is read has a byte of the run, and memory is given in units of more than 16 bytes.
    """
    VECTORS: tl.constexpr = COUNT * place.dtype.element_ty.primitive_bitwidth // 128
    address = place.to(tl.int64)
    here = tl.multiple_of((address & -16).to(tl.pointer_type(tl.uint64)), 16) + tl.arange(0, 2 * VECTORS)
    there = here + 2 * ((address & 15) != 0).to(tl.int32)
    a, b = tl.split(tl.reshape(tl.load(here), (VECTORS, 2)))
    c, d = tl.split(tl.reshape(tl.load(there), (VECTORS, 2)))
    in_second = (address & 8) != 0
    a, b, c = tl.where(in_second, b, a), tl.where(in_second, c, b), tl.where(in_second, d, c)
    bits = ((address & 7) * 8).to(tl.uint64)
    words = tl.join(joined_at(a, b, bits), joined_at(b, c, bits))
    return tl.reshape(elements_of(words, place.dtype.element_ty), (COUNT,))


def joined_at(low, high, bits):
    """The 64 bits from one of the lower word's on."""
    return (low >> bits) | (high << 1 << (63 - bits))


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
