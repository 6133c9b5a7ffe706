"""Layout: the geometry of a strided view, in plain Python ints.

A `Layout` gives the positions of an array's elements relative to the first element, ``x[0, ..., 0]``: a shape, and
strides counted in elements. It contains no buffer, dtype or device. So every view of an array is integer arithmetic,
equal on every device, and tests compare it with NumPy without a device. If a view moves the origin, the method returns
the new layout and the distance, in elements, by which the origin moved.

A layout never changes (its attributes are `Final`; `__slots__` without a guard keeps reads fast), so it can be shared
and can be a dictionary key. The attributes that every call reads (size, lowest and highest element, contiguity) are
computed when the layout is made.

>>> x = Layout.of((4, 6))
>>> x
Layout(shape=(4, 6), strides=(6, 1))
>>> x.index((slice(1, None), slice(None, None, -2)))
(Layout(shape=(3, 3), strides=(6, -2)), 11)
>>> x.permute((1, 0)).reshape(24) is None    # a copy is needed
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final

from tilearray.errors import BroadcastError, LayoutError, ShapeError
from tilearray.geometry.shapes import (
    as_ints,
    as_shape,
    broadcast_shapes,
    check_axes,
    normalize_axes,
    normalize_axis,
    resolve_shape,
)
from tilearray.geometry.slicing import select
from tilearray.geometry.strides import dense_strides, extent, overlaps, reshape_strides, result_strides, steps_down

__all__ = [
    "Layout",
    "as_shape",
    "broadcast_shapes",
    "normalize_axes",
    "normalize_axis",
    "resolve_shape",
    "result_layout",
]

Ints = tuple[int, ...]

_NO_PATTERN = (None, 0)


class Layout:
    """Shape and strides of a view.

    Parameters
    ----------
    shape, strides : tuple of int
        Tuples of equal length, which are not checked: `as_shape` and the methods below check a user's arguments.
    dense : int
        The size, if it is not 0 and the strides are known to be `dense_strides`. Then nothing is computed.

    Attributes
    ----------
    ndim, size : int
    low, high : int
        The lowest and the highest element offset from the origin that an index reaches; 0 and 0 if size is 0.
    contiguous : bool
        Whether the elements are in C order without gaps. Axes of size 1 do not matter; size 0 counts as contiguous.
    canonical : bool
        Whether the strides are `dense_strides` of the shape, those of axes of size 1 as well.
    pattern : (object, int)
        For which backend `tilearray.geometry.fast_path` gave it a number, and the number; None and 0 before.

    Examples
    --------
    >>> Layout((2, 3), (-3, 1)).low
    -3
    """

    shape: Final[Ints]
    strides: Final[Ints]
    ndim: Final[int]
    size: Final[int]
    low: Final[int]
    high: Final[int]
    contiguous: Final[bool]
    canonical: Final[bool]
    pattern: tuple[Any, int]

    __slots__ = ("_overlaps", "canonical", "contiguous", "high", "low", "ndim", "pattern", "shape", "size", "strides")

    def __init__(self, shape: Ints, strides: Ints, dense: int = 0) -> None:
        size, low, high, contiguous, canonical = (dense, 0, dense - 1, True, True) if dense else extent(shape, strides)
        self.shape = shape
        self.strides = strides
        self.ndim = len(shape)
        self.size = size
        self.low = low
        self.high = high
        self.contiguous = contiguous
        self.canonical = canonical
        self.pattern = _NO_PATTERN
        self._overlaps: bool | None = None

    @classmethod
    def of(cls, shape: Any) -> Layout:
        """Return the contiguous layout of `shape`, in C order.

        Examples
        --------
        >>> Layout.of((2, 3, 4)).strides
        (12, 4, 1)
        """
        sizes = as_shape(shape, "Layout.of")
        return cls(sizes, dense_strides(sizes))

    @property
    def overlaps_itself(self) -> bool:
        """Whether two different indices reach the same element; `strides.overlaps` says when the answer is exact.

        Examples
        --------
        >>> Layout.of(3).broadcast_to((2, 3)).overlaps_itself
        True
        """
        if self._overlaps is None:
            self._overlaps = not self.contiguous and overlaps(self.shape, self.strides)
        return self._overlaps

    def index(self, key: object) -> tuple[Layout, int]:
        """Return the layout that a basic index key selects, and its offset (see `slicing.select`).

        If the selection is empty, the offset is 0, so that the origin never leaves the array.

        Examples
        --------
        >>> Layout.of((4, 6)).index((-1, slice(2, None)))
        (Layout(shape=(4,), strides=(1,)), 20)
        """
        shape, strides, offset = select(self.shape, self.strides, key)
        check_axes(len(shape), "indexing")
        layout = Layout(shape, strides)
        return layout, offset if layout.size else 0

    def permute(self, axes: Iterable[int]) -> Layout:
        """Return the layout with its axes permuted to the order `axes`.

        Examples
        --------
        >>> Layout.of((2, 3, 4)).permute((-1, 0, 1))
        Layout(shape=(4, 2, 3), strides=(1, 12, 4))
        """
        order = normalize_axes(axes, self.ndim, "permute_dims")
        if len(order) != self.ndim:
            raise ShapeError(
                f"permute_dims: expected all {self.ndim} axes, got {order}; write every axis once, "
                "or use moveaxis to move some axes"
            )
        return self._select_axes(order)

    def moveaxis(self, source: int | Iterable[int], destination: int | Iterable[int]) -> Layout:
        """Return the layout with the axes `source` moved to the places `destination`. The others keep their order.

        Examples
        --------
        >>> Layout.of((2, 3, 4)).moveaxis(0, -1)
        Layout(shape=(3, 4, 2), strides=(4, 1, 12))
        """
        sources = normalize_axes(source, self.ndim, "moveaxis")
        destinations = normalize_axes(destination, self.ndim, "moveaxis")
        if len(sources) != len(destinations):
            raise ShapeError(
                f"moveaxis: expected as many destinations as sources, got {destinations} for {sources}; "
                "write one destination for each source"
            )
        order = [axis for axis in range(self.ndim) if axis not in sources]
        for place, axis in sorted(zip(destinations, sources)):
            order.insert(place, axis)
        return self._select_axes(order)

    def expand_dims(self, axis: int | Iterable[int]) -> Layout:
        """Return the layout with new axes of size 1 and stride 0. `axis` counts axes of the result.

        Examples
        --------
        >>> Layout.of((2, 3)).expand_dims((0, -1)).shape
        (1, 2, 3, 1)
        """
        axes = as_ints(axis, "expand_dims", "axis", "axes")
        shape, strides = list(self.shape), list(self.strides)
        for place in sorted(normalize_axes(axes, self.ndim + len(axes), "expand_dims")):
            shape.insert(place, 1)
            strides.insert(place, 0)
        check_axes(len(shape), "expand_dims")
        return Layout(tuple(shape), tuple(strides))

    def squeeze(self, axes: int | Iterable[int] | None = None) -> Layout:
        """Return the layout without the given axes, which must have size 1 (None: without all axes of size 1).

        Examples
        --------
        >>> Layout.of((1, 3, 1)).squeeze(0)
        Layout(shape=(3, 1), strides=(1, 1))
        """
        if axes is None:
            return self._select_axes([axis for axis, n in enumerate(self.shape) if n != 1])
        dropped = normalize_axes(axes, self.ndim, "squeeze")
        for axis in dropped:
            if self.shape[axis] != 1:
                raise ShapeError(
                    f"squeeze: expected size 1 along axis {axis}, got {self.shape[axis]} in shape {self.shape}; "
                    f"write an index such as 0 to select one element of that axis"
                )
        return self._select_axes([axis for axis in range(self.ndim) if axis not in dropped])

    def broadcast_to(self, shape: Any, function: str = "broadcast_to") -> Layout:
        """Return the layout broadcast to `shape`, with stride 0 along repeated axes.

        Raises
        ------
        BroadcastError
            If an axis would change whose size is not 1. Axes are counted from the end.

        Examples
        --------
        >>> Layout.of((4, 1)).broadcast_to((2, 4, 3)).strides
        (0, 1, 0)
        """
        sizes = as_shape(shape, function)
        if sizes == self.shape:
            return self
        if len(sizes) < self.ndim:
            raise BroadcastError(
                f"{function}: expected at least the {self.ndim} axes of shape {self.shape}, got shape {sizes}, "
                "to which it could not be broadcast; write squeeze or an index to drop axes"
            )
        strides = [0] * (len(sizes) - self.ndim)
        for axis in range(-self.ndim, 0):
            n = self.shape[axis]
            if n != sizes[axis] and n != 1:
                raise BroadcastError(
                    f"{function}: expected size {n} along axis {axis} (-1 is the last), got {sizes[axis]}: shape "
                    f"{self.shape} could not be broadcast to {sizes}; only size 1 broadcasts: write expand_dims or "
                    f"reshape to align the axes"
                )
            strides.append(self.strides[axis] if n == sizes[axis] else 0)
        return Layout(sizes, tuple(strides))

    def reshape(self, shape: Any) -> Layout | None:
        """Return the layout that gives `shape` to the same elements in C order, or None if that needs a copy.

        Parameters
        ----------
        shape : int or tuple of int
            One size may be -1: it is inferred.

        Examples
        --------
        >>> Layout((4, 6), (12, 2)).reshape((2, 2, -1))
        Layout(shape=(2, 2, 6), strides=(24, 12, 2))
        """
        sizes = resolve_shape(shape, self.size)
        strides = dense_strides(sizes) if self.contiguous else reshape_strides(self.shape, self.strides, sizes)
        return None if strides is None else Layout(sizes, strides)

    def flip(self, axes: int | Iterable[int] | None = None) -> tuple[Layout, int]:
        """Return the layout with `axes` (None: all) reversed, and the offset of its origin.

        Examples
        --------
        >>> Layout.of((2, 3)).flip(-1)
        (Layout(shape=(2, 3), strides=(3, -1)), 2)
        """
        flipped = range(self.ndim) if axes is None else normalize_axes(axes, self.ndim, "flip")
        strides, offset = list(self.strides), 0
        if self.size:
            for axis in flipped:
                offset += (self.shape[axis] - 1) * strides[axis]
                strides[axis] = -strides[axis]
        return Layout(self.shape, tuple(strides)), offset

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tuple[Layout, int]:
        """Return the diagonal ``[i, i + offset]`` of two axes as a new last axis, and the offset of its origin.

        Examples
        --------
        >>> Layout.of((3, 4)).diagonal(1)
        (Layout(shape=(3,), strides=(5,)), 1)
        """
        row, column = normalize_axes((axis1, axis2), self.ndim, "diagonal")
        (offset,) = as_ints((offset,), "diagonal", "offset", "the offset")
        down, right = max(-offset, 0), max(offset, 0)
        count = max(min(self.shape[row] - down, self.shape[column] - right), 0)
        rest = [axis for axis in range(self.ndim) if axis not in (row, column)]
        shape = *[self.shape[axis] for axis in rest], count
        strides = *[self.strides[axis] for axis in rest], self.strides[row] + self.strides[column]
        layout = Layout(shape, strides)
        return layout, down * self.strides[row] + right * self.strides[column] if layout.size else 0

    def sliding_window(self, window_shape: Any, axis: int | Iterable[int] | None = None) -> Layout:
        """Return the layout of all windows of `window_shape` along `axis` (None: all axes). Window axes are last.

        Examples
        --------
        >>> Layout.of(5).sliding_window(3)
        Layout(shape=(3, 3), strides=(1, 1))
        """
        name = "sliding_window_view"
        window = as_shape(window_shape, name)
        axes = tuple(range(self.ndim)) if axis is None else normalize_axes(axis, self.ndim, name)
        if len(window) != len(axes):
            raise ShapeError(
                f"{name}: expected a window of {len(axes)} sizes for axes {axes}, got {window}; "
                "write axis= to slide along some axes only"
            )
        shape = list(self.shape)
        for n, place in zip(window, axes):
            if n > shape[place]:
                raise ShapeError(
                    f"{name}: expected a window of at most {shape[place]} along axis {place} of shape {self.shape}, "
                    f"got {n}; write a smaller window"
                )
            shape[place] -= n - 1
        check_axes(len(shape) + len(window), name)
        return Layout((*shape, *window), self.strides + tuple([self.strides[place] for place in axes]))

    @staticmethod
    def as_strided(shape: Any, strides: Any, offset: int, available_low: int, available_high: int) -> Layout:
        """Return the given layout, if all its elements are in the available memory.

        Parameters
        ----------
        shape, strides : int or tuple of int
        offset, available_low, available_high : int
            The origin, and the first and last element that an index may reach. All three count elements from one
            common point. If the memory is empty, `available_high` is ``available_low - 1``.

        Raises
        ------
        LayoutError
            If an index would reach outside of that memory.

        Examples
        --------
        >>> Layout.as_strided((3, 2), (1, 1), 0, 0, 3)
        Layout(shape=(3, 2), strides=(1, 1))
        """
        sizes = as_shape(shape, "as_strided")
        steps = as_ints(strides, "as_strided", "strides", "strides")
        (offset,) = as_ints((offset,), "as_strided", "offset", "the offset")
        if len(sizes) != len(steps):
            raise LayoutError(
                f"as_strided: expected one stride for each of {len(sizes)} axes, got {steps} for shape {sizes}; "
                "write 0 for an axis that repeats"
            )
        layout = Layout(sizes, steps)
        first, last = offset + layout.low, offset + layout.high
        if first < available_low or last > available_high + (not layout.size):
            raise LayoutError(
                f"as_strided: expected elements {available_low} to {available_high}, got {first} to {last} from shape "
                f"{sizes}, strides {steps}, offset {offset}; write smaller numbers (strides count elements, not bytes)"
            )
        return layout

    def dense(self) -> Layout:
        """Return the layout of a copy without gaps whose axes keep their order in memory."""
        return result_layout(self.shape, [self.strides])

    def _select_axes(self, axes: Sequence[int]) -> Layout:
        shape, strides = self.shape, self.strides
        return Layout(tuple([shape[axis] for axis in axes]), tuple([strides[axis] for axis in axes]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self.shape == other.shape and self.strides == other.strides

    def __hash__(self) -> int:
        return hash((self.shape, self.strides))

    def __reduce__(self) -> tuple[type[Layout], tuple[Ints, Ints]]:
        return Layout, (self.shape, self.strides)

    def __repr__(self) -> str:
        return f"Layout(shape={self.shape}, strides={self.strides})"


def result_layout(shape: Ints, operand_strides: Sequence[Ints]) -> Layout:
    """Return the layout of the new array that results from operands with these strides.

    The layout is dense, and its axes have the operands' order in memory: NumPy's ``order='K'``, with C order if
    operands disagree. Unlike NumPy's, its strides are never negative.

    Parameters
    ----------
    shape : tuple of int
    operand_strides : sequence of tuple of int
        The strides of the operands after broadcasting to `shape`.

    Examples
    --------
    >>> result_layout((2, 3), [(1, 2), (0, 1)])
    Layout(shape=(2, 3), strides=(1, 2))
    >>> result_layout((2, 3), [(1, 2), (3, 1)])
    Layout(shape=(2, 3), strides=(3, 1))
    """
    for strides in operand_strides:
        if steps_down(strides):  # One such operand is enough: axes leave C order only if all operands agree.
            return Layout(shape, dense_strides(shape), prod(shape))
    return Layout(shape, dense_strides(shape) if 0 in shape else result_strides(shape, operand_strides))
