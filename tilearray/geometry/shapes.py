"""Sizes and axes: this module checks every shape and axis that a caller writes, once.

A shape is a tuple of Python ints >= 0. An axis is an int from ``-ndim`` to ``ndim - 1``. No other module checks them
again, or reads the caller's objects again: an ``__index__`` can return another value the next time. The functions take
the name of the called public function, so that an error can name it. The module is separate from `layout` because
functions without a layout (``zeros(shape)``) also need it. A valid shape (a tuple of plain ints) passes through
unchanged and fast, because these functions are on the path of every call.

The messages contain the words of NumPy's, because the tests of other libraries match them: "could not be broadcast
together with shapes", "is out of bounds for array of dimension".

>>> as_shape([2, 3], "zeros")
(2, 3)
>>> broadcast_shapes((4, 1), (3,))
(4, 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import prod
from operator import index
from typing import Any, SupportsIndex, TypeAlias, cast

from tilearray.errors import AxisError, BroadcastError, ShapeError, shown

Shape = tuple[int, ...]

MOST_AXES = 64
"""The number of axes that an array can have, on every device: NumPy's limit."""
LARGEST = 2**63 - 1
"""The largest size, and the largest number of bytes of an array: addresses and strides are 64-bit integers."""

ShapeLike: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
"""The extents of the axes; an int is the extent of one axis."""

Axis: TypeAlias = "int | None"
"""One axis; None means all elements."""

Axes: TypeAlias = "int | Sequence[int] | None"
"""One axis or several; None means all."""


def as_shape(obj: Any, function: str) -> Shape:
    """Return `obj` as a shape: a tuple of Python ints >= 0.

    Parameters
    ----------
    obj : int or iterable of int
        An int gives a shape of one axis. NumPy integers are accepted, bools are not.
    function : str
        The function that an error names.

    Raises
    ------
    ShapeError
        If a size is negative or not an integer.

    Examples
    --------
    >>> as_shape(5, "zeros")
    (5,)
    """
    given: Any = obj
    if type(obj) is int and obj >= 0:
        return (obj,)
    if type(obj) is tuple and len(given) <= MOST_AXES:
        for n in given:
            if type(n) is not int or n < 0:
                break
        else:
            return given
    shape = as_ints(given if getattr(given, "shape", None) != () else (given,), function, "shape", "sizes")
    if min(shape, default=0) < 0:
        raise ShapeError(
            f"{function}: expected sizes >= 0 in the shape, got {shown(shape)}: negative dimensions are not allowed; "
            "write every size as a number (only reshape infers a -1)"
        )
    return shape


def check_axes(ndim: int, function: str = "array") -> None:
    """Raise ShapeError if no array can have this number of axes.

    Examples
    --------
    >>> check_axes(65, "expand_dims")
    Traceback (most recent call last):
    tilearray.errors.ShapeError: expand_dims: expected at most 64 axes, got 65: maximum supported dimension for an\
 ndarray is currently 64, found 65; write reshape to join axes first
    """
    if ndim > MOST_AXES:
        raise ShapeError(
            f"{function}: expected at most {MOST_AXES} axes, got {ndim}: maximum supported dimension for an "
            f"ndarray is currently {MOST_AXES}, found {ndim}; write reshape to join axes first"
        )


def check_extent(shape: Shape, itemsize: int, function: str = "array") -> None:
    """Raise ShapeError if no array can have a shape: NumPy's limits, on every device and for every view.

    Sizes of 0 do not count, as in NumPy: the strides of the other axes must fit as well.

    Examples
    --------
    >>> check_extent((2**62, 0), 8, "empty")
    Traceback (most recent call last):
    tilearray.errors.ShapeError: empty: expected at most 2**63 - 1 bytes, got shape (4611686018427387904, 0) of 8 bytes\
 per element: array is too big; write a smaller shape, and compute in parts
    """
    check_axes(len(shape), function)
    if prod([n for n in shape if n]) * itemsize > LARGEST:
        raise ShapeError(
            f"{function}: expected at most 2**63 - 1 bytes, got shape {shown(shape)} of {itemsize} bytes per "
            f"element: array is too big; write a smaller shape, and compute in parts"
        )


def as_ints(obj: Any, function: str, argument: str, items: str) -> tuple[int, ...]:
    """Return an int or an iterable of ints as a tuple of Python ints. An error names the `argument` and its `items`.

    Examples
    --------
    >>> as_ints([1, -2], "as_strided", "strides", "strides")
    (1, -2)
    """
    if type(obj) is int:
        return (obj,)
    is_one = getattr(obj, "ndim", 1) == 0 or not issubclass(type(obj), Iterable)
    given: Iterable[Any] = [obj] if is_one else cast("Iterable[Any]", obj)
    members = list(islice(given, MOST_AXES + 1))  # an iterable may be endless
    if len(members) > MOST_AXES:
        raise ShapeError(
            f"{function}: expected at most {MOST_AXES} {items} as {argument}, got more: maximum supported dimension "
            f"for an ndarray is currently {MOST_AXES}; write one for each axis"
        )
    try:
        if any(isinstance(n, bool) for n in members):
            raise TypeError
        return tuple([index(n) for n in members])
    except TypeError:
        raise ShapeError(
            f"{function}: expected {argument} as an int or a tuple of ints, got {shown(obj)}; "
            f"write {items} as ints, with int(n) to convert"
        ) from None


def as_int(value: Any, function: str, argument: str) -> int:
    """Return an integer as a Python int; a bool is an error.

    Examples
    --------
    >>> as_int(2.5, "roll", "shift")
    Traceback (most recent call last):
    tilearray.errors.ShapeError: roll: expected shift as an int, got float; write int(shift)
    """
    if type(value) is int:
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)
    except TypeError:
        given = type(value).__name__
        raise ShapeError(f"{function}: expected {argument} as an int, got {given}; write int({argument})") from None


def resolve_shape(shape: Any, size: int, function: str = "reshape") -> Shape:
    """Return `shape` with its -1, if any, replaced by the size that gives `size` elements in total.

    Raises
    ------
    ShapeError
        If the sizes do not multiply to `size`, or if a -1 is ambiguous.

    Examples
    --------
    >>> resolve_shape((2, -1), 6)
    (2, 3)
    """
    if type(shape) is tuple and _is_shape_of(given := cast(Shape, shape), size):
        return given
    sizes = as_ints(shape, function, "shape", "sizes")
    unknown = sizes.count(-1)
    if min(sizes, default=0) >= -1 and max(sizes, default=0) <= LARGEST:
        known = prod([n for n in sizes if n != -1])
        if not unknown and known == size:
            return sizes
        if unknown == 1 and known and size % known == 0:
            return tuple([size // known if n == -1 else n for n in sizes])
    advice = "write every size as a number" if unknown else "write -1 for one size that is to be inferred"
    raise ShapeError(
        f"{function}: expected a shape of {size} elements, got {shown(sizes)}: cannot reshape array of size {size} "
        f"into shape {shown(sizes)}; {advice}"
    )


def _is_shape_of(shape: Shape, size: int) -> bool:
    """Whether a tuple has Python ints >= 0 with a known product."""
    if len(shape) > MOST_AXES:
        return False
    known = 1
    for n in shape:
        if type(n) is not int or n < 0:
            return False
        known *= n
    return known == size


def normalize_axis(axis: Any, ndim: int, function: str) -> int:
    """Return `axis` counted from the front, 0 to ``ndim - 1``.

    Raises
    ------
    AxisError
        If the axis does not exist.
    ShapeError
        If `axis` is not an integer.

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
            f"{function}: expected {expected}, got axis {axis}: axis {axis} is out of bounds for array of dimension "
            f"{ndim}; write an axis in this range, or expand_dims first if the array needs more axes"
        )
    return axis + ndim if axis < 0 else axis


def normalize_axes(axes: Any, ndim: int, function: str) -> tuple[int, ...]:
    """Return one or more axes in the given order, counted from the front.

    Raises
    ------
    ShapeError
        If an axis does not exist or occurs twice.

    Examples
    --------
    >>> normalize_axes((-1, 0), 3, "flip")
    (2, 0)
    """
    if type(axes) is int:
        return (normalize_axis(axes, ndim, function),)
    members: Iterable[Any] = cast("Iterable[Any]", axes) if issubclass(type(axes), Iterable) else (axes,)
    result = tuple([normalize_axis(axis, ndim, function) for axis in islice(members, ndim + 1)])  # may be endless
    if len(set(result)) != len(result):
        raise ShapeError(
            f"{function}: expected distinct axes, got {shown(axes)} for {ndim} axes: repeated axis; write each axis "
            "once"
        )
    return result


def without_axis(shape: Shape, axis: int) -> Shape:
    """Return the sizes of all other axes.

    >>> without_axis((2, 3, 4), 1)
    (2, 4)
    """
    return shape[:axis] + shape[axis + 1 :]


def broadcast_shapes(*shapes: Any, function: str | None = None) -> Shape:
    """Return the shape that all `shapes` broadcast to, by the rules of NumPy and the array API standard.

    Parameters
    ----------
    *shapes : int or tuple of int
        They are aligned at their last axes; a missing axis counts as size 1.
    function : str, optional
        The function that an error names. If it is given, the shapes must be valid tuples, such as those of arrays, and
        are not checked.

    Raises
    ------
    ShapeError
        If a size is negative or not an integer.
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
            place = f"axis {axis - len(a)} (-1 is the last)"
            raise BroadcastError(
                f"{function}: expected equal sizes, or 1, along {place}, got {m} and {n}: the operands could not be "
                f"broadcast together with shapes {' '.join(map(str, shapes))}; write expand_dims or reshape to "
                f"align the axes"
            )
        axis += 1
    return tuple(result)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return the shape of a reduction.

    Examples
    --------
    >>> reduced_shape((2, 3, 4), (1,), False), reduced_shape((2, 3, 4), (1,), True)
    ((2, 4), (2, 1, 4))
    """
    if keepdims:
        return tuple([1 if place in axes else size for place, size in enumerate(shape)])
    return tuple([size for place, size in enumerate(shape) if place not in axes])
