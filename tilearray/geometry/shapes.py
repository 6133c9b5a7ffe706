"""Sizes and axes: every shape and axis that a caller writes is checked here, once.

A shape is a tuple of Python ints >= 0 and an axis an int from ``-ndim`` to ``ndim - 1``; past this module nobody
checks them again, and nobody asks the caller's objects again: an ``__index__`` may say something else the next time.
The functions take the name of the public function that was called, so that an error names it. They sit apart from
`layout` because functions without any layout (``zeros(shape)``) need them too. What is right already (a tuple of plain
ints) passes through untouched: these functions are on the path of every call.

>>> as_shape([2, 3], "zeros")
(2, 3)
>>> broadcast_shapes((4, 1), (3,))
(4, 3)
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any, cast

from tilearray.errors import AxisError, BroadcastError, ShapeError

Shape = tuple[int, ...]


def as_shape(obj: Any, function: str) -> Shape:
    """Return `obj` as a shape: a tuple of Python ints, none of them negative.

    Parameters
    ----------
    obj : int or iterable of int
        An int stands for a shape of one axis. NumPy integers are accepted, bools are not.
    function : str
        The function that an error names.

    Raises
    ------
    ShapeError
        If a size is negative or no integer.

    Examples
    --------
    >>> as_shape(5, "zeros")
    (5,)
    """
    given: Any = obj
    if type(obj) is tuple:
        for n in given:
            if type(n) is not int or n < 0:
                break
        else:
            return given
    shape = as_ints(obj, function, "shape", "sizes")
    for n in shape:
        if n < 0:
            raise ShapeError(
                f"{function}: expected sizes >= 0 in the shape, got {shape}; "
                "write each size out (only reshape infers a -1)"
            )
    return shape


def as_ints(obj: Any, function: str, what: str, items: str) -> tuple[int, ...]:
    """Return an int, or an iterable of ints, as a tuple of Python ints; `what` and `items` word the error.

    Examples
    --------
    >>> as_ints([1, -2], "as_strided", "strides", "strides")
    (1, -2)
    """
    members: list[Any] = list(cast("Iterable[Any]", obj)) if isinstance(obj, Iterable) else [obj]
    try:
        if any(isinstance(n, bool) for n in members):
            raise TypeError
        return tuple([index(n) for n in members])
    except TypeError:
        raise ShapeError(
            f"{function}: expected {what} as an int or a tuple of ints, got {obj!r}; "
            f"write {items} as ints, int(n) where they are not"
        ) from None


def as_int(value: Any, function: str, what: str) -> int:
    """Return a Python int of what is one; a bool is none.

    Examples
    --------
    >>> as_int(2.5, "roll", "shift")
    Traceback (most recent call last):
    tilearray.errors.ShapeError: roll: expected shift as an int, got float; write int(shift)
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)
    except TypeError:
        given = type(value).__name__
        raise ShapeError(f"{function}: expected {what} as an int, got {given}; write int({what})") from None


def resolve_shape(shape: Any, size: int, function: str = "reshape") -> Shape:
    """Return `shape` with its one -1, if there is one, replaced by what makes `size` elements.

    Raises
    ------
    ShapeError
        If the sizes do not multiply to `size`, or a -1 is not determined.

    Examples
    --------
    >>> resolve_shape((2, -1), 6)
    (2, 3)
    """
    sizes = as_ints(shape, function, "shape", "sizes")
    known = prod([n for n in sizes if n != -1])
    unknown = sizes.count(-1)
    if min(sizes, default=0) >= -1:
        if not unknown and known == size:
            return sizes
        if unknown == 1 and known and size % known == 0:
            return tuple([size // known if n == -1 else n for n in sizes])
    advice = "write its sizes out" if unknown else "write -1 for one size to have it inferred"
    raise ShapeError(f"{function}: expected a shape of {size} elements, got {sizes}; {advice}")


def normalize_axis(axis: Any, ndim: int, function: str) -> int:
    """Return `axis` counted from the front, 0 to ``ndim - 1``.

    Raises
    ------
    AxisError
        If there is no such axis.
    ShapeError
        If `axis` is no integer.

    Examples
    --------
    >>> normalize_axis(-1, 3, "flip")
    2
    """
    if type(axis) is not int:
        (axis,) = as_ints((axis,), function, "axis", "axes")
    if not -ndim <= axis < ndim:
        expected = f"{-ndim} <= axis < {ndim}" if ndim else "no axis (the array is 0-d)"
        raise AxisError(
            f"{function}: expected {expected}, got axis {axis}; write expand_dims first if the array needs more axes"
        )
    return axis + ndim if axis < 0 else axis


def normalize_axes(axes: Any, ndim: int, function: str) -> tuple[int, ...]:
    """Return one axis or several, in the order given, counted from the front, each at most once.

    Raises
    ------
    ShapeError
        If an axis does not exist or comes twice.

    Examples
    --------
    >>> normalize_axes((-1, 0), 3, "flip")
    (2, 0)
    """
    if type(axes) is int:
        return (normalize_axis(axes, ndim, function),)
    members: Iterable[Any] = cast("Iterable[Any]", axes) if isinstance(axes, Iterable) else (axes,)
    result = tuple([normalize_axis(axis, ndim, function) for axis in members])
    if len(set(result)) != len(result):
        raise ShapeError(f"{function}: expected different axes, got {axes} of {ndim} axes; write each axis once")
    return result


def broadcast_shapes(*shapes: Any, function: str | None = None) -> Shape:
    """Return the shape that all `shapes` broadcast to, by the rules of NumPy and the array API standard.

    Parameters
    ----------
    *shapes : int or tuple of int
        They are aligned at their last axes; a missing axis counts as size 1.
    function : str, optional
        The function that an error names. Given one, the shapes are known to be those of arrays: tuples, not checked.

    Raises
    ------
    ShapeError
        If a size is negative or no integer.
    BroadcastError
        If an axis has two different sizes other than 1. Axes are counted from the end: -1 is the last.

    Examples
    --------
    >>> broadcast_shapes((5, 1, 3), (4, 1), ())
    (5, 4, 3)
    """
    if function is None:
        function = "broadcast_shapes"
        shapes = tuple([as_shape(shape, function) for shape in shapes])
    result: Shape = shapes[0] if shapes else ()
    for shape in shapes:
        if shape != result:
            result = _broadcast_two(result, shape, function, shapes)
    return result


def _broadcast_two(a: Shape, b: Shape, function: str, shapes: tuple[Shape, ...]) -> Shape:
    if len(a) < len(b):
        a, b = b, a
    axis = len(a) - len(b)
    if a[axis:] == b:
        return a
    result = list(a)
    for n in b:
        m = result[axis]
        if m == 1:
            result[axis] = n
        elif n != m and n != 1:
            raise BroadcastError(
                f"{function}: expected equal sizes, or 1, along axis {axis - len(a)} (-1 is the last), got {m} and {n} "
                f"in shapes {', '.join(map(str, shapes))}; write expand_dims or reshape to line the axes up"
            )
        axis += 1
    return tuple(result)
