"""Which extents count: thresholds that several schedules share, and how far a block may reach beyond an axis."""

from __future__ import annotations

NARROW = 512
"""Rows of fewer elements are narrow: a block covers several of them."""
LARGE = 1 << 20
"""From this number of elements on, blocks are chosen by the extents; smaller loops gain nothing."""
HUGE = 1 << 26
"""From this number of elements on, an array of the smallest ones fills the L2 cache of a large GPU, which has 50 MB."""


def filled(extent: int, block: int, parts: int) -> int:
    """Halve a block until it reaches beyond the extent by at most the extent's `parts`-th part; never below 16.

    >>> filled(900, 256, 7), filled(640, 2048, 8)
    (256, 128)
    """
    while block > 16 and -extent % block * parts > extent:
        block >>= 1
    return block
