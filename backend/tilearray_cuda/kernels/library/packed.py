"""Functions that generated kernels call, in Triton: small elements, read as words that hold several.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821, N803, N806
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportGeneralTypeIssues=false


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


def load_transposed(place, pitch, ROWS: tl.constexpr, COLUMNS: tl.constexpr, POLICY: tl.constexpr):
    """Bytes of a tile that are dense in its columns, from places in every fourth column on.

    They are transposed in shared memory as words, each with four of a row.
    """
    low = load_byte(place, POLICY) | (load_byte(place + pitch, POLICY) << 8)
    high = load_byte(place + 2 * pitch, POLICY) | (load_byte(place + 3 * pitch, POLICY) << 8)
    return tl.reshape(elements_of(low | (high << 16), place.dtype.scalar.element_ty), (ROWS, COLUMNS))


def load_byte(place, POLICY: tl.constexpr):
    """A byte as a word."""
    return word_of(tl.load(place, eviction_policy=POLICY))


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
    if x.numel % 4 == 0 or y.numel % 4 == 0:
        found = tl.inline_asm_elementwise(asm, "=r,r,r", [x, y], x.dtype, is_pure=True, pack=4)
    else:  # an element that others repeat
        found = x + y
    return found


def subtract_bytes(x, y):
    """Differences that wrap: of the lower 7 bits with a bit to borrow from, and the highest bit."""
    asm: tl.constexpr = (
        "{ .reg .b32 s, t; or.b32 s, $1, 0x80808080; and.b32 t, $2, 0x7F7F7F7F; sub.u32 s, s, t; "
        "lop3.b32 t, $1, $2, 0x80808080, 0x82; xor.b32 $0, s, t; }"
    )
    if x.numel % 4 == 0 or y.numel % 4 == 0:
        found = tl.inline_asm_elementwise(asm, "=r,r,r", [x, y], x.dtype, is_pure=True, pack=4)
    else:
        found = x - y
    return found


# --- rows of a tile that begin where words of the output do, or sectors, each at another column -----------------------


def lead_of(place, UNIT: tl.constexpr):
    """How many elements before an element the unit of so many bytes begins in which it lies."""
    SIZE: tl.constexpr = place.dtype.scalar.element_ty.primitive_bitwidth // 8
    return ((place.to(tl.int64) & (UNIT - 1)) // SIZE).to(tl.int32)


def load_runs(place, COUNT: tl.constexpr):
    """A run of small elements from each of some addresses on, one a row; every word that is read has a byte of it."""
    kind: tl.constexpr = place.dtype.scalar.element_ty
    SIZE: tl.constexpr = kind.primitive_bitwidth // 8
    words = words_after(place.to(tl.int64), tl.expand_dims(tl.arange(0, COUNT * SIZE // 4), 0))
    return tl.reshape(elements_of(words, kind), (place.shape[0], COUNT))


def load_in_banks(place, first, pitch, lead, ROWS: tl.constexpr, COLUMNS: tl.constexpr, POLICY: tl.constexpr):
    """Words of a tile that are dense in its columns, row by row from the column on that a sector leads; 8 columns less.

    They pass through shared memory once, column by column.
    """
    row, column = tl.expand_dims(tl.arange(0, ROWS), 1), tl.expand_dims(tl.arange(0, COLUMNS), 0)
    stored = row_in_banks(row, column, ROWS)
    words = tl.load(place + (first - 8 + column) * pitch + stored, eviction_policy=POLICY)
    column = (column + 8 - lead) & (COLUMNS - 1)
    index = column * ROWS + row_in_banks(row, column, ROWS)
    words = tl.gather(tl.reshape(tl.trans(words), (COLUMNS * ROWS,)), tl.reshape(index, (ROWS * COLUMNS,)), 0)
    return tl.reshape(words, (ROWS, COLUMNS))


def row_in_banks(row, column, ROWS: tl.constexpr):
    """Where in its column a row lies in shared memory, and which one lies where it would be.

    No two neighbours in a column are in one bank, nor every fourth ones in a row.
    """
    return row ^ (column // 4 & (ROWS - 1))


def store_sectors(place, words, COUNT: tl.constexpr):
    """Store a run of words, but for the last 8, at each of some addresses, one a row, where sectors begin."""
    run = tl.multiple_of((place.to(tl.int64) & -32).to(place.dtype.scalar), [32, 32])
    column = tl.expand_dims(tl.arange(0, COUNT), 0)
    tl.store(run + column, words, mask=column < COUNT - 8)


def store_runs(place, elements, COUNT: tl.constexpr):
    """Store a run of small elements at each of some addresses, one a row, where words begin."""
    SIZE: tl.constexpr = place.dtype.scalar.element_ty.primitive_bitwidth // 8
    if SIZE == 1:
        bytes = tl.reshape(word_of(elements), (place.shape[0], COUNT // 4, 2, 2))
        even, odd = tl.split(bytes)
        low, high = tl.split(even | (odd << 8))
        words = place.to(tl.int64).to(tl.pointer_type(tl.uint32)) + tl.expand_dims(tl.arange(0, COUNT // 4), 0)
        tl.store(words, low | (high << 16))
    else:
        run = tl.multiple_of((place.to(tl.int64) & -4).to(place.dtype.scalar), [4, 4])
        tl.store(run + tl.expand_dims(tl.arange(0, COUNT), 0), elements)


def load_skewed(place, first, pitch, target, target_pitch, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Small elements of a tile that are dense in its columns; transposed as words, each with those of a row.

    Row by row they are those from the column on where a word of the target begins. A thread reads 5 blocks of words in
    the order of memory, transposes each of them, and takes 4 words of each row out of the 5.
    """
    kind: tl.constexpr = place.dtype.element_ty
    SIZE: tl.constexpr = kind.primitive_bitwidth // 8
    EACH: tl.constexpr = 4 // SIZE
    word = tl.expand_dims(tl.arange(0, ROWS // EACH), 1)
    group = tl.expand_dims(tl.arange(0, COLUMNS // (4 * EACH)), 0)
    offset = word + group * (4 * pitch)  # columns of a block, and rows of words, lie at one phase of an aligned word
    address = place.to(tl.int64) + (first - EACH) * (pitch.to(tl.int64) * SIZE)
    a = transposed_block(address, pitch, offset, SIZE)
    b = transposed_block(address, pitch, offset + pitch, SIZE)
    c = transposed_block(address, pitch, offset + 2 * pitch, SIZE)
    d = transposed_block(address, pitch, offset + 3 * pitch, SIZE)
    e = transposed_block(address, pitch, offset + 4 * pitch, SIZE)
    even = words_of_row(a[0], b[0], c[0], d[0], e[0], 32 - 8 * SIZE * lead_of(target, 4))
    odd = words_of_row(a[1], b[1], c[1], d[1], e[1], 32 - 8 * SIZE * lead_of(target + target_pitch, 4))
    if SIZE == 1:
        third = words_of_row(a[2], b[2], c[2], d[2], e[2], 32 - 8 * lead_of(target + 2 * target_pitch, 4))
        fourth = words_of_row(a[3], b[3], c[3], d[3], e[3], 32 - 8 * lead_of(target + 3 * target_pitch, 4))
        even, odd = tl.join(even, third), tl.join(odd, fourth)
        words = tl.permute(tl.join(even, odd), (0, 4, 5, 1, 2, 3))
    else:
        words = tl.permute(tl.join(even, odd), (0, 4, 1, 2, 3))
    return tl.reshape(elements_of(tl.reshape(words, (ROWS, COLUMNS // EACH)), kind), (ROWS, COLUMNS))


def transposed_block(address, pitch, offset, SIZE: tl.constexpr):
    """Words of as many columns as a word has elements: the first elements of each, the second ones ..."""
    step = pitch.to(tl.int64) * SIZE
    a, b = words_after(address, offset), words_after(address + step, offset)
    if SIZE == 2:
        words = (a & 0xFFFF) | (b << 16), (a >> 16) | (b & 0xFFFF0000)
    else:
        c, d = words_after(address + 2 * step, offset), words_after(address + 3 * step, offset)
        words = transposed_bytes(a, b, c, d)
    return words


def transposed_bytes(a, b, c, d):
    """Four words: the first bytes of four words, the second ones ..."""
    even, odd = (a & 0x00FF00FF) | ((b & 0x00FF00FF) << 8), ((a >> 8) & 0x00FF00FF) | (b & 0xFF00FF00)
    even_too, odd_too = (c & 0x00FF00FF) | ((d & 0x00FF00FF) << 8), ((c >> 8) & 0x00FF00FF) | (d & 0xFF00FF00)
    first, second = (even & 0xFFFF) | (even_too << 16), (odd & 0xFFFF) | (odd_too << 16)
    return first, second, (even >> 16) | (even_too & 0xFFFF0000), (odd >> 16) | (odd_too & 0xFFFF0000)


def words_after(address, offset):
    """Words at offsets from any address, counted in words; each is an aligned one and what it lacks of the next."""
    place, bits = (address & -4).to(tl.pointer_type(tl.uint32)) + offset, (address & 3) * 8
    return word_between(tl.load(place), tl.load(place + 1, mask=bits != 0), bits)


def words_of_row(a, b, c, d, e, bits):
    """Four words between five, along two more axes."""
    first, second = word_between(a, b, bits), word_between(b, c, bits)
    third, fourth = word_between(c, d, bits), word_between(d, e, bits)
    return tl.join(tl.join(first, third), tl.join(second, fourth))
