"""Functions that generated kernels call, in Triton: random words.

Read as text like numeric.py, which tells how. The block of four words at a counter of 128 bits is Philox 4x32 with ten
rounds. Positions that follow each other from a multiple of four share a block: `_whole` computes it once, in a quarter
of the lanes. The compiler keeps all its words in one thread, so nothing is exchanged.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def philox_block(number, upper, key):
    """The four words of a block. `number` is the lower half of its counter, `upper` the upper half."""
    a, b = number.to(tl.uint32), (number >> 32).to(tl.uint32)
    c, d = upper.to(tl.uint32) + a * 0, (upper >> 32).to(tl.uint32) + a * 0
    low_key, high_key = key.to(tl.uint32), (key >> 32).to(tl.uint32)
    for _ in tl.static_range(10):
        left = a.to(tl.uint64) * 0xD2511F53
        right = c.to(tl.uint64) * 0xCD9E8D57
        a = (right >> 32).to(tl.uint32) ^ b ^ low_key
        c = (left >> 32).to(tl.uint32) ^ d ^ high_key
        b = right.to(tl.uint32)
        d = left.to(tl.uint32)
        low_key += 0x9E3779B9
        high_key += 0xBB67AE85
    return a, b, c, d


def philox_32(position, first, upper, key):
    """The words of 32 bits at any positions, of which a block has four."""
    a, b, c, d = philox_block((position >> 2) + first, upper, key)
    word = position.to(tl.uint32) & 3
    return tl.where(word < 2, tl.where(word == 0, a, b), tl.where(word == 2, c, d))


def philox_64(position, first, upper, key):
    """The words of 64 bits at any positions, of which a block has two: its first word is the low half."""
    a, b, c, d = philox_block((position >> 1) + first, upper, key)
    is_second = (position.to(tl.uint32) & 1) != 0
    low, high = tl.where(is_second, c, a), tl.where(is_second, d, b)
    return low.to(tl.uint64) | (high.to(tl.uint64) << 32)


def every_second(x):
    """The first element of each two."""
    found, _ = tl.split(tl.reshape(x, (x.shape[0] // 2, 2)))
    return found


def every_fourth(x):
    """The first element of each four."""
    return every_second(every_second(x))


def philox_32_whole(position, first, upper, key):
    """The words of 32 bits at positions that follow each other from a multiple of four."""
    leader = every_fourth(position)
    a, b, c, d = philox_block((leader >> 2) + first, upper, key)
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), position.shape)


def philox_64_whole(position, first, upper, key):
    """The words of 64 bits at positions that follow each other from a multiple of two."""
    leader = every_second(position)
    a, b, c, d = philox_block((leader >> 1) + first, upper, key)
    low, high = a.to(tl.uint64) | (b.to(tl.uint64) << 32), c.to(tl.uint64) | (d.to(tl.uint64) << 32)
    return tl.reshape(tl.join(low, high), position.shape)


def philox_32_first(position, first, upper, key):
    """The first word of 32 bits of the pair at any positions: an even one, and the next one."""
    a, _, c, _ = philox_block((position >> 2) + first, upper, key)
    return tl.where((position.to(tl.uint32) & 2) == 0, a, c)


def philox_32_second(position, first, upper, key):
    """The second word of 32 bits of the pair at any positions."""
    _, b, _, d = philox_block((position >> 2) + first, upper, key)
    return tl.where((position.to(tl.uint32) & 2) == 0, b, d)


def philox_64_first(position, first, upper, key):
    """The first word of 64 bits of the pair at any positions."""
    a, b, _, _ = philox_block((position >> 1) + first, upper, key)
    return a.to(tl.uint64) | (b.to(tl.uint64) << 32)


def philox_64_second(position, first, upper, key):
    """The second word of 64 bits of the pair at any positions."""
    _, _, c, d = philox_block((position >> 1) + first, upper, key)
    return c.to(tl.uint64) | (d.to(tl.uint64) << 32)


def philox_32_first_whole(position, first, upper, key):
    """The first word of 32 bits of the pair, at positions that follow each other from a multiple of four."""
    leader = every_fourth(position)
    a, _, c, _ = philox_block((leader >> 2) + first, upper, key)
    both = tl.join(a, c)
    return tl.reshape(tl.join(both, both), position.shape)


def philox_32_second_whole(position, first, upper, key):
    """The second word of 32 bits of the pair, at positions that follow each other from a multiple of four."""
    leader = every_fourth(position)
    _, b, _, d = philox_block((leader >> 2) + first, upper, key)
    both = tl.join(b, d)
    return tl.reshape(tl.join(both, both), position.shape)


def philox_64_first_whole(position, first, upper, key):
    """The first word of 64 bits of the pair, at positions that follow each other from a multiple of two."""
    leader = every_second(position)
    a, b, _, _ = philox_block((leader >> 1) + first, upper, key)
    word = a.to(tl.uint64) | (b.to(tl.uint64) << 32)
    return tl.reshape(tl.join(word, word), position.shape)


def philox_64_second_whole(position, first, upper, key):
    """The second word of 64 bits of the pair, at positions that follow each other from a multiple of two."""
    leader = every_second(position)
    _, _, c, d = philox_block((leader >> 1) + first, upper, key)
    word = c.to(tl.uint64) | (d.to(tl.uint64) << 32)
    return tl.reshape(tl.join(word, word), position.shape)
