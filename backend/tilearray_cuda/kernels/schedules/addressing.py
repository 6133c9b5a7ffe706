"""How the text of a kernel names elements: branches, and terms of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilearray_cuda.kernels.spec import Operand


class Branch(NamedTuple):
    """The names that hold in one branch of a kernel; every branch computes the same expression.

    Attributes
    ----------
    mask : the name of the mask; "tile" for the two masks of a tile; None if all elements are inside
    row, column, position : the names of an element's indices; a linear kernel counts positions
    tag : the suffix of the names of values; two branches with equal names must agree in type
    two_rows : whether the block reaches from one row into the next
    condition : the name of the condition under which a guarded element is read; "" for all others
    inside : whether all guarded elements of the block are read
    """

    mask: str | None
    row: str = "row"
    column: str = "column"
    position: str = "index"
    tag: str = ""
    two_rows: bool = False
    condition: str = ""
    inside: bool = False

    @property
    def everywhere(self) -> str | None:
        """The mask of a whole block, or None."""
        return "(in_rows & in_columns)" if self.mask == "tile" else self.mask


class Arm(NamedTuple):
    """One arm of a kernel's ``if``: lines that name the elements, and a branch.

    Attributes
    ----------
    condition : when it is taken; None for the last arm
    branch : the names that hold in it
    setup : the lines before the expression
    pieces : the line of a loop over parts of the block, or None
    each : in such a loop, the lines before the expression
    between : an arm that runs after the values are computed and before they are stored, or None
    """

    condition: str | None
    branch: Branch
    setup: tuple[str, ...] = ()
    pieces: str | None = None
    each: tuple[str, ...] = ()
    between: Arm | None = None


def term(index: str, stride: int | str, name: str) -> str:
    """Return ``index * stride``, or "" if that is 0.

    >>> term("row", "other", "x0_s0"), term("row", 1, "x0_s0"), term("row", -1, "x0_s0"), term("row", 0, "x0_s0")
    ('row * x0_s0', 'row', '(0 - row)', '')
    """
    if stride == 0:
        return ""
    if stride == 1:
        return index
    return f"(0 - {index})" if stride == -1 else f"{index} * {name}"


def added(*terms: str) -> str:
    """Return the sum of the terms that are not empty."""
    return " + ".join(part for part in terms if part)


def divided_out(number: str, axes: Sequence[int]) -> list[str]:
    """Return the lines that divide the indices along some axes out of a number, that of the last axis first.

    >>> divided_out("program", [0, 1])
    ['i1 = program % n1', 'program = program // n1', 'i0 = program']
    """
    lines: list[str] = []
    for axis in axes[:0:-1]:
        lines += [f"i{axis} = {number} % n{axis}", f"{number} = {number} // n{axis}"]
    return [*lines, *[f"i{axis} = {number}" for axis in axes[:1]]]


def moved(operand: Operand, terms: Sequence[str]) -> str:
    """Return the line that moves an array by a sum of elements; a complex128 is two float64, whose pointers it has."""
    offset = f"({' + '.join(terms)})"
    return f"{operand.name} += {f'2 * {offset}.to(tl.int64)' if operand.dtype == 'complex128' else offset}"


def moved_along(arrays: Sequence[Operand], axes: Sequence[int]) -> list[str]:
    """Return the lines that move arrays by the indices along some axes."""
    return [moved(each, [f"i{axis} * {each.name}_s{axis}" for axis in axes]) for each in arrays if axes]


def in_eighths(size: str) -> str:
    """Return the line of a loop over the eighths of a block.

    Where each element has a mask and an address of its own, a whole block would fill the registers.
    """
    return f"for piece in range(0, {size}, {size} // 8):"
