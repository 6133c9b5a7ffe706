"""`tiles`: the grid of an array's tiles, its views and padded copies, and functions over the whole grid.

A tile that lies inside is a view. `Tiles.stack` is one view of all tiles, the axes of the grid before those of a tile,
so a reduction of each tile is one call on it. An elementwise function does not depend on tiles: it runs on the array.

The stack of tiles that lie partly outside is a view of a padded copy. A reduction on a GPU needs no copy: its kernel
reads the array itself, and knows where padding is (`tilearray.arrays.fusion.padded`). It combines in the order of the
stack all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import inf, nan
from typing import Any, Final, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty, full
from tilearray.arrays.fusion.fuse import Fused
from tilearray.arrays.fusion.padded import padded
from tilearray.arrays.fusion.tracing import Traced
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.signature import HostData
from tilearray.errors import FusionError, IndexingError, OperandError, ShapeError, shown
from tilearray.functions.manipulation import as_strided, permute_dims
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int, as_ints, normalize_axes
from tilearray.tile_space.elements import broadcasts_to, gathered, scattered

PADDINGS: Final = {"undetermined": None, "zero": 0, "neg_zero": -0.0, "nan": nan, "pos_inf": inf, "neg_inf": -inf}
"""The names of cuTile's ``PaddingMode`` in lower case, and their values; no value leaves memory as it is."""

_PLAIN = (bool, int, float, str, np.dtype, type, type(None))
_REDUCERS: TwoGenerations[Fused] = TwoGenerations(256)
"""Reductions of tiles that lie partly outside, as fused functions of the array."""


class Tiles:
    """The grid of an array's tiles. `tilearray.tiles` makes it.

    Attributes
    ----------
    array : Array
        The array, with its own order of axes.
    shape : tuple of int
        How many tiles there are along each axis of tile space.
    tile_shape, step : tuple of int
        The extents of a tile, and the distance between the first elements of neighbours.
    order : tuple of int
        The axis of the array for each axis of tile space.
    """

    def __init__(self, array: Array, tile_shape: Any, order: Any, padding: Any, step: Any) -> None:
        self.array = array
        self.order = _permutation(order, array.ndim)
        self._view = permute_dims(array, self.order)
        self.tile_shape = _extents(tile_shape, array.ndim, "tile_shape")
        self.step = self.tile_shape if step is None else _extents(step, array.ndim, "step")
        self._padding = _padding_value(padding)
        self.shape = tuple([-(-size // step) for size, step in zip(self._view.shape, self.step, strict=True)])

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError("tiles: expected a grid with axes, got one of shape (); write tiles[()] for its tile")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        """Yield all tiles, in C order of the grid."""
        return (self[index] for index in product(*map(range, self.shape)))

    def __getitem__(self, index: int | tuple[int, ...]) -> Array:
        """Return a tile: a view if it lies inside the array, else a padded copy."""
        part = self._view[self._inside(index)]
        if part.shape == self.tile_shape:
            return part
        tile = self._padded(self.tile_shape)
        tile[_start_of(part.shape)] = part
        return tile

    def __setitem__(self, index: int | tuple[int, ...], value: Any) -> None:
        """Write the part of a tile that lies inside the array; `value` broadcasts to the tile's shape."""
        part = self._view[self._inside(index)]
        if part.shape == self.tile_shape:
            part[...] = value
            return
        given = asarray(value, device=part.device) if not isinstance(value, Array) else value
        if not broadcasts_to(given.shape, self.tile_shape):
            raise ShapeError(
                f"tiles: expected a value that broadcasts to the tile's shape {self.tile_shape}, got shape "
                f"{given.shape}; write a value of that shape: the part inside the array is written"
            )
        if not given.ndim:
            part[...] = value
            return
        sizes = zip(given.shape, part.shape[-given.ndim :], strict=True)
        part[...] = given[tuple([slice(0, 1 if size == 1 else inside) for size, inside in sizes])]

    def __repr__(self) -> str:
        return f"Tiles(shape={self.shape}, tile_shape={self.tile_shape}, step={self.step}, array={self.array.shape})"

    def stack(self) -> Array:
        """Return all tiles as one array of shape ``shape + tile_shape``.

        It is a view if all tiles lie inside the array, else a view of a padded copy. Where tiles overlap, so does the
        view, and writing to it is an error.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.tiles(ta.arange(5), 2, padding=-1).stack().tolist()
        [[0, 1], [2, 3], [4, -1]]
        """
        source = self._view
        if 0 in self.shape:
            return empty(self.shape + self.tile_shape, dtype=source.dtype, device=source.device)
        layout = self._layout_of_copy()
        if layout is not None:
            source = self._padded(layout.shape, layout.strides)
            source[_start_of(self._view.shape)] = self._view
        return self._stacked(source)

    def _stacked(self, source: Array) -> Array:
        """Return all tiles of an array in which all of them lie."""
        apart = [step * stride for step, stride in zip(self.step, source.strides, strict=True)]
        return as_strided(source, self.shape + self.tile_shape, (*apart, *source.strides))

    def _layout_of_copy(self) -> Layout | None:
        """Return the layout of the padded copy; None if all tiles lie inside the array.

        It is in C order. If a tile is as wide as the copy, rows are one element apart, so that a reduction walks along
        its axes one by one, as along those of the array itself.
        """
        ends = zip(self.shape, self.step, self.tile_shape, strict=True)
        needed = [(count - 1) * step + tile for count, step, tile in ends]
        extents = tuple(map(max, self._view.shape, needed)) if self.shape else ()
        if extents == self._view.shape:
            return None
        pitches = [extent + (extent == tile) for extent, tile in zip(extents, self.tile_shape, strict=True)]
        return Layout(extents, Layout.of(tuple(pitches)).strides)

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return an elementwise function of the array: a new array of its shape, in one launch if it is one kernel.

        Each element is mapped once, also where tiles overlap, and padding takes no part.

        Raises
        ------
        ShapeError
            If the result has another shape.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.tiles(ta.arange(3), 2).map(lambda tile: tile * 10).tolist()
        [0, 10, 20]
        """
        result = function(self.array)
        if result.shape != self.array.shape:
            raise ShapeError(
                f"tiles: expected a result of shape {self.array.shape} from an elementwise function, got "
                f"{result.shape}; write tiles.reduce(function) for a value of each tile"
            )
        return result

    def reduce(self, function: Callable[..., Array], **options: Any) -> Array:
        """Return ``function(stack, axis=axes of a tile, **options)``: a reduction of each tile, in one call.

        Padding takes part: a maximum needs ``padding="neg_inf"``, or the least value.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.tiles(ta.arange(5), 2).reduce(ta.sum).tolist()
        [1, 5, 4]
        """
        ndim = len(self.shape)
        axes = tuple(range(ndim, 2 * ndim))
        if _is_known(function, options) and self._runs_kernels() and self._layout_of_copy() is not None:
            try:
                return self._reducer(function, axes, options)(self.array)
            except FusionError:  # it sorts, for example
                pass
        return function(self.stack(), axis=axes, **options)

    def _runs_kernels(self) -> bool:
        """Whether the array is in memory of a device whose kernels can read it up to its ends."""
        device = self.array._signature.device
        is_plain = device.functions is None and not isinstance(self.array, Traced)
        is_number = self._padding is None or isinstance(self._padding, int | float | complex)
        return is_plain and is_number and not device.backend.on_host and 0 not in self.shape

    def _reducer(self, function: Callable[..., Array], axes: tuple[int, ...], options: dict[str, Any]) -> Fused:
        """Return the fused function of an array that reduces its tiles, each found by what it depends on."""
        given = (self.tile_shape, self.order, self._padding, self.step)
        key = (function, repr(given), tuple([(name, repr(value)) for name, value in options.items()]))
        found = _REDUCERS.get(key)
        if found is None:

            def reduced(x: Array) -> Array:
                return function(Tiles(x, *given)._traced_stack(), axis=axes, **options)

            found = _REDUCERS.put(key, Fused(reduced))
        return found

    def _traced_stack(self) -> Array:
        """Return all tiles of an array without memory, of which some lie partly outside."""
        layout = self._layout_of_copy()
        assert layout is not None
        return self._stacked(padded(cast(Traced, self._view), layout, self._number()))

    def _number(self) -> Any:
        """Return the padding as a number of the dtype."""
        return None if self._padding is None else full((), self._padding, dtype=self.array.dtype, device="cpu").item()

    def gather(self, indices: Any, *, mask: Any = None) -> Array:
        """Return the elements of the array at indices, and padding for those outside: cuTile's ``gather``.

        Parameters
        ----------
        indices : tuple of Array or int
            Integers for each axis of tile space, which broadcast to a common shape; of elements, not of tiles. Negative
            ones are outside.
        mask : Array of bools, optional
            Where it is false, the result is padding as well.

        Returns
        -------
        Array
            A new array of the common shape. With ``padding="undetermined"`` elements outside are the nearest ones.

        Raises
        ------
        IndexingError
            If their number is not that of axes, an index is not an integer, or a mask has no bools.

        Examples
        --------
        >>> import tilearray as ta
        >>> grid = ta.tiles(ta.asarray([[1, 2], [3, 4]]), (2, 2), padding=-1)
        >>> grid.gather((ta.asarray([0, 1, 2]), 1)).tolist()
        [2, 4, -1]
        """
        return gathered(self._view, indices, mask, self._padding)

    def scatter(self, indices: Any, value: Any, *, mask: Any = None) -> None:
        """Write to the elements of the array at indices; those outside are not stored: cuTile's ``scatter``.

        On a GPU the host waits for the number of elements inside. Of several values for one element the host stores the
        last one in C order, and a GPU any of them.

        Parameters
        ----------
        indices : tuple of Array or int
            As for `gather`.
        value : Array or number
            Broadcasts to the common shape of the indices.
        mask : Array of bools, optional
            Where it is false, nothing is stored.

        Raises
        ------
        IndexingError, ShapeError
            As for `gather`, and if the value does not broadcast.

        Examples
        --------
        >>> import tilearray as ta
        >>> x = ta.zeros(3, dtype="int32")
        >>> ta.tiles(x, 2).scatter(ta.asarray([0, 2, 4]), ta.asarray([7, 8, 9]))
        >>> x.tolist()
        [7, 0, 8]
        """
        scattered(self._view, indices, value, mask)

    def _inside(self, index: Any) -> tuple[slice, ...]:
        """The slices of a tile's part inside the array."""
        places = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
        if len(places) != len(self.shape):
            raise IndexingError(
                f"tiles: expected {len(self.shape)} indices for a grid of shape {self.shape}, got {len(places)}; write "
                f"an int for each axis"
            )
        first = [self._first(axis, place) for axis, place in enumerate(places)]
        return tuple([slice(start, start + tile) for start, tile in zip(first, self.tile_shape, strict=True)])

    def _first(self, axis: int, place: Any) -> int:
        position, count = as_int(place, "tiles", "index"), self.shape[axis]
        if not -count <= position < count:
            raise IndexingError(
                f"tiles: expected {-count} <= index < {count} for axis {axis} of the grid, got {position}: index "
                f"{position} is out of bounds for axis {axis} with size {count}; write an index inside tiles.shape"
            )
        return position % count * self.step[axis]

    def _padded(self, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Array:
        """Return an array of padding, dense or with strides that are larger."""
        array, layout = self.array, Layout(shape, strides or Layout.of(shape).strides)
        memory = shape if strides is None else (layout.high + 1,)
        if self._padding is None:
            made = empty(memory, dtype=array.dtype, device=array.device)
        else:
            made = full(memory, self._padding, dtype=array.dtype, device=array.device)
        return made if strides is None else as_strided(made, shape, strides)


def tiles(
    x: Array | HostData, /, tile_shape: Any, *, order: Any = "C", padding: Any = "zero", step: Any = None
) -> Tiles:
    """Return the grid of an array's tiles, cuTile's tile space.

    Parameters
    ----------
    x : Array
    tile_shape : int or tuple of int
        The extents of a tile, one for each axis of tile space, each 1 or more.
    order : {"C", "F"} or tuple of int
        Axis k of tile space is axis ``order[k]`` of `x`: "C" keeps the axes, "F" reverses them.
    padding : str or number
        Elements outside the array: "undetermined", "zero", "neg_zero", "nan", "pos_inf", "neg_inf", or a number.
    step : int or tuple of int, optional
        The distance between the first elements of neighbours; default: the extents of a tile.

    Returns
    -------
    Tiles
        Of shape ``ceil(extent / step)`` along each axis: as many tiles as begin inside the array.

    Raises
    ------
    OperandError, ShapeError
        If an extent is below 1, their number is not that of axes, or a padding has an unknown name.

    Examples
    --------
    >>> import tilearray as ta
    >>> grid = ta.tiles(ta.reshape(ta.arange(6), (2, 3)), (2, 2))
    >>> grid.shape, grid[0, 0].tolist(), grid[0, 1].tolist()
    ((1, 2), [[0, 1], [3, 4]], [[2, 0], [5, 0]])
    """
    return Tiles(asarray(x), tile_shape, order, padding, step)


def _is_known(function: Any, options: dict[str, Any]) -> bool:
    """Whether a function computes from its arguments alone, and its options are plain."""
    is_ours = isinstance(function, Fused) or str(getattr(function, "__module__", "")).partition(".")[0] == "tilearray"
    return is_ours and all(isinstance(each, _PLAIN) for each in options.values())


def _start_of(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple([slice(0, size) for size in shape])


def _permutation(order: Any, ndim: int) -> tuple[int, ...]:
    if order in ("C", "F"):
        return tuple(range(ndim))[:: 1 if order == "C" else -1]
    axes = normalize_axes(order, ndim, "tiles")
    if len(axes) != ndim:
        raise ShapeError(
            f"tiles: expected 'C', 'F' or each of {ndim} axes as order, got {shown(order)}; write order='C'"
        )
    return axes


def _extents(given: Any, ndim: int, argument: str) -> tuple[int, ...]:
    sizes = (
        as_ints(given, "tiles", argument, "extents")
        if isinstance(given, tuple | list)
        else (as_int(given, "tiles", argument),)
    )
    if len(sizes) != ndim:
        raise ShapeError(
            f"tiles: expected an extent for each of {ndim} axes as {argument}, got {shown(given)}; write 1 for an axis "
            f"that is not divided"
        )
    if any(size < 1 for size in sizes):
        raise OperandError(f"tiles: expected extents of 1 or more as {argument}, got {shown(given)}; write 1 or more")
    return sizes


def _padding_value(padding: Any) -> Any:
    if not isinstance(padding, str):
        return padding
    if padding not in PADDINGS:
        raise OperandError(
            f"tiles: expected padding as a number or one of {', '.join(PADDINGS)}, got {padding!r}; write 'zero'"
        )
    return PADDINGS[padding]
