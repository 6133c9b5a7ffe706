"""NumPy's `order=`: how a new array lies in memory, as one of four words.

A layout in Fortran order is the transpose of one in C order, so it costs nothing to make. "K" keeps the order of
strides of the operand, and "A" means Fortran order for an operand in Fortran order, else C order.
"""

from __future__ import annotations

from typing import Any, Literal

from tilearray.engine.array_type import A
from tilearray.engine.signature import HostData, dense_signature, new_array, signature_of
from tilearray.errors import LayoutError, shown
from tilearray.functions.arguments import as_array
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import store

Order = Literal["C", "F", "A", "K"]


def check_order(function: str, order: Any, words: str = "CFAK") -> str:
    """Return one of the words of an order; None is "C".

    Examples
    --------
    >>> check_order("zeros", "F"), check_order("zeros", None)
    ('F', 'C')
    """
    if order is None:
        return "C"
    if not isinstance(order, str) or order not in tuple(words):
        raise LayoutError(
            f"{function}: expected order as one of {', '.join(words)}, got {shown(order)}; write order='C'"
        )
    return order


def layout_in(function: str, order: Any, shape: tuple[int, ...]) -> Layout:
    """Return the layout of a new array in an order; it keeps the order of no other array.

    Examples
    --------
    >>> layout_in("zeros", "F", (2, 3)).strides
    (1, 2)
    """
    if check_order(function, order) == "F":
        return Layout.of(shape[::-1]).permute(range(len(shape))[::-1])
    return Layout.of(shape)


def layout_like(function: str, order: Any, like: Layout, shape: tuple[int, ...] | None = None) -> Layout:
    """Return the layout of a new array like another one, of its shape or of another.

    Examples
    --------
    >>> layout_like("zeros_like", "K", Layout((2, 3), (1, 2))).strides
    (1, 2)
    """
    word = check_order(function, order)
    if word == "K" and (shape is None or shape == like.shape):
        return like.dense()
    if word == "A":
        word = "F" if is_fortran(like) else "C"
    return layout_in(function, word, like.shape if shape is None else shape)


def is_fortran(layout: Layout) -> bool:
    """Whether the elements are in Fortran order without gaps, and not in C order.

    Examples
    --------
    >>> is_fortran(Layout((2, 3), (1, 2))), is_fortran(Layout((3,), (1,)))
    (True, False)
    """
    return not layout.contiguous and layout.permute(range(layout.ndim)[::-1]).contiguous


def in_order(function: str, x: A, order: Any) -> A:
    """Return `x` if it is in an order already, else a copy in that order; "K" is every order.

    Examples
    --------
    >>> import tilearray as ta
    >>> in_order("asarray", ta.zeros((2, 3)), "F").strides
    (1, 2)
    """
    word = check_order(function, order, "CFAK")
    layout = x._signature.layout
    if word == "K" or (word == "C" and layout.contiguous) or _lies_as(layout, layout_like(function, word, layout)):
        return x
    return copied(function, x, order)


def copied(function: str, x: A | HostData, order: Any) -> A:
    """Return a copy in an order.

    Examples
    --------
    >>> import tilearray as ta
    >>> copied("copy", ta.zeros((2, 3)), "F").strides
    (1, 2)
    """
    x = as_array(function, x)
    signature = x._signature
    layout, dtype, device = signature.layout, signature.dtype, signature.device
    if check_order(function, order) == "C":
        made = dense_signature(layout.shape, dtype, device)
    else:
        made = signature_of(layout_like(function, order, layout), dtype, device)
    new = new_array(x.__class__, made)
    store(new, x)
    return new


def _lies_as(layout: Layout, wanted: Layout) -> bool:
    """Whether two layouts of one shape have the same strides along all axes that matter."""
    pairs = zip(layout.shape, layout.strides, wanted.strides)
    return not layout.size or all(size == 1 or mine == other for size, mine, other in pairs)
