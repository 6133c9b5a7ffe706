"""Sizes of the hardware that kernels are written for, in bytes."""

VECTOR = 16
"""The most that a thread reads or writes at once."""
WORD = 4
"""What a thread reads or writes at once if the elements form no vectors."""
SECTOR = 32
"""The unit in which memory is read and written."""
LINE = 128
"""A line of the caches."""
BURST = 256
"""Memory is fastest in aligned pieces of this size. Transposed rows of 3600 bytes were copied at 0.91 of a copy's rate
in pieces of 256 bytes that began at multiples of 16, at 0.925 at multiples of 128, and at 0.95 at multiples of 256."""
SMALL = 2
"""Elements up to this size are costly one by one; of larger ones a warp has enough in flight."""
