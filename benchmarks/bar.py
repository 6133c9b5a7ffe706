"""Every layout at every itemsize, with aligned and odd extents, to find combinations that are slower than a copy.

A row of `LAYOUTS` represents many of these. Measure them after a change of the planner or the kernels:
``python -m benchmarks --parts bar --libraries tilearray,torch``.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases import Case

DTYPES = ("uint8", "float16", "float32", "float64", "complex128")
"""One dtype for each itemsize from 1 to 16."""
EXTENTS = (
    {"x": "a", "y": "b", "tall": "big", "transposed": "b"},
    {"x": "c", "y": "d", "tall": "odd_big", "transposed": "e"},
)
"""The arrays: 16384 x 16384, and odd extents."""
OF_BOTH = (
    ("{x}", "{y}"),
    ("{x}", "{y}[:1]"),
    ("{x}", "{y}[:, :1]"),
    ("{x}[:, :1]", "{y}[:1]"),
    ("{tall}[::2]", "{x}"),
    ("{x}[:, 1:]", "{y}[:, 1:]"),
    ("{x}[:, ::-1]", "{y}"),
    ("{x}", "{transposed}.T"),
)
COPIES = (("o", "a"), ("o", "b.T"), ("d", "c"), ("d", "e.T"), ("g", "f"), ("s", "permute(r, (2, 1, 0))"))
"""Targets, and the views that are copied to them."""
AS_THEY_ARE = (
    ("f", "g"),
    ("f[1:]", "g[1:]"),
    ("r", "permute(s, (2, 1, 0))"),
    ("p", "permute(q, (1, 2, 3, 0))"),
)


def rows(dtype: str) -> Iterator[Case]:
    """Yield the rows of one dtype.

    Examples
    --------
    >>> [row.name for row in rows("uint8")][:2]
    ['uint8 a + b', 'uint8 a + b[:1]']
    """
    for names in EXTENTS:
        for operands in OF_BOTH:
            yield added(dtype, *(operand.format(**names) for operand in operands))
    for operands in AS_THEY_ARE:
        yield added(dtype, *operands)
    for target, source in COPIES:
        name = f"{dtype} {target}[...] = {source}"
        yield Case(name, (source,), "assign(o, x)", dtypes=(dtype,), target=target)


def added(dtype: str, first: str, second: str) -> Case:
    """Return the row of a sum of two views."""
    without = ("torch",) if "::-1" in first else ()
    return Case(f"{dtype} {first} + {second}", (first, second), dtypes=(dtype,), without=without)


BAR = tuple(row for dtype in DTYPES for row in rows(dtype))
