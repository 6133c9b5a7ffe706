"""Orders and choices: permutations, shuffles, and elements that are chosen with or without replacement.

A permutation is a function of a key of 64 bits, which is the next element of the stream, and of the index: see
`tilearray.random.shuffles`. It needs no sort. Choices with probabilities and without replacement do, and a device may
lack it.
"""

from __future__ import annotations

from math import prod
from typing import Any, SupportsIndex

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.devices import Device, as_device, using_device
from tilearray.errors import DeviceError, DTypeError, OperandError, ParameterError, type_name
from tilearray.functions.arguments import as_array, is_host_data
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.take import take, take_along_axis
from tilearray.functions.manipulation import moveaxis, reshape
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import all as all_true
from tilearray.functions.reductions import sum
from tilearray.functions.scans import cumulative_sum
from tilearray.functions.searching import argsort, searchsorted
from tilearray.geometry.shapes import Shape, ShapeLike, as_int, as_shape, normalize_axis
from tilearray.ops.execute import check_target
from tilearray.random import draws
from tilearray.random.continuous import Continuous
from tilearray.random.discrete import Discrete
from tilearray.random.shuffles import first_of_permutation, orders_of_rows, reached
from tilearray.random.targets import Target


class Orders(Continuous, Discrete):
    """The methods of a generator that reorder or choose elements."""

    __slots__ = ()

    def permutation(self, x: Any, axis: SupportsIndex = 0, *, device: Any = None) -> Array:
        """Return the elements of an array in a random order along an axis, or the integers below `x` if it is an int.

        Parameters
        ----------
        x : int or Array
        axis : int
            Slices along the axis keep their elements.
        device : Device or str, optional
            Where the integers go; an array stays where it is.

        Returns
        -------
        Array
            A new array; int64 if `x` is an int.

        Raises
        ------
        ShapeError, AxisError
            If `x` is negative or has no such axis.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).permutation(6).tolist()
        [0, 2, 1, 4, 5, 3]
        """
        if isinstance(x, Array) or is_host_data(x):
            given = as_array("permutation", x)
            place = normalize_axis(axis, given.ndim, "permutation")
            return take(given, self._order(given.shape[place], given.device), axis=place)
        (count,) = as_shape(as_int(x, "permutation", "x"), "permutation")
        return self._order(count, as_device(device or self._device, "permutation"))

    def shuffle(self, x: Array, axis: SupportsIndex = 0) -> None:
        """Put the elements of an array into a random order along an axis, in place.

        Parameters
        ----------
        x : Array
            Of any layout.
        axis : int
            Slices along the axis keep their elements.

        Raises
        ------
        OperandError, WriteError, AxisError
            If `x` is not a writable Array with that axis.

        Examples
        --------
        >>> import tilearray as ta
        >>> x = ta.arange(6)
        >>> ta.random.default_rng(7).shuffle(x)
        >>> x.tolist()
        [0, 2, 1, 4, 5, 3]
        """
        if not isinstance(x, Array):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(f"shuffle: expected a tilearray Array, got {type_name(x)}; write x = rng.permutation(x)")
        normalize_axis(axis, x.ndim, "shuffle")
        check_target("shuffle", x)
        x[...] = self.permutation(x, axis)

    def permuted(self, x: Any, axis: SupportsIndex | None = None, out: Array | None = None) -> Array:
        """Return an array in which each slice along an axis has a random order of its own.

        Parameters
        ----------
        x : Array
        axis : int, optional
            None permutes all elements.
        out : Array, optional
            The target; it may be `x`.

        Returns
        -------
        Array

        Raises
        ------
        AxisError
            If `x` has no such axis.
        ShapeError, DTypeError
            If `out` has another shape, or a dtype that cannot store the elements.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).permuted([[1, 2, 3], [4, 5, 6]], axis=1).tolist()
        [[1, 3, 2], [5, 4, 6]]
        """
        given = as_array("permuted", x)
        if axis is None:
            flat = reshape(given, (-1,))
            found = reshape(take(flat, self._order(flat.size, flat.device), axis=0), given.shape)
        else:
            place = normalize_axis(axis, given.ndim, "permuted")
            found = moveaxis(self._rows_in_orders(moveaxis(given, place, -1)), -1, place)
        return finished("permuted", found, out)

    def choice(
        self,
        a: Any,
        size: ShapeLike | None = None,
        replace: bool = True,
        p: Any = None,
        axis: SupportsIndex = 0,
        shuffle: bool = True,
        *,
        device: Any = None,
    ) -> Array:
        """Return elements of an array that are chosen at random, or integers below `a` if it is an int.

        Parameters
        ----------
        a : int or Array
        size : int or tuple of int, optional
            The shape of the choice; None chooses one element.
        replace : bool
            Whether an element may be chosen again.
        p : Array, optional
            The probabilities of the elements; their sum is 1. None means equal ones. Without replacement, elements are
            chosen one after the other, each with the probabilities of those that are left.
        axis : int
            The axis of `a` along which elements are chosen.
        shuffle : bool
            NumPy's argument; the order is random for both values.
        device : Device or str, optional
            Where the integers go; elements of an array stay where it is.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If there are too few elements, or `p` does not have a probability for each element and the sum 1.
        DTypeError
            If `p` is complex.

        Examples
        --------
        >>> import tilearray as ta
        >>> rng = ta.random.default_rng(7)
        >>> rng.choice([10, 20, 30], 5).tolist()
        [10, 10, 20, 30, 30]
        >>> rng.choice(5, 3, replace=False).tolist()
        [2, 3, 0]
        """
        del shuffle
        values = as_array("choice", a) if isinstance(a, Array) or is_host_data(a) else None
        if values is None:
            count, place = as_int(a, "choice", "a"), 0
            target = as_device(device or self._device, "choice")
        else:
            place, target = normalize_axis(axis, values.ndim, "choice"), values.device
            count = values.shape[place]
        shape = () if size is None else as_shape(size, "choice")
        weights = None if p is None else _probabilities(p, count, target)
        wanted = prod(shape)
        if wanted and count < 1:
            raise ParameterError(f"choice: expected at least one element to choose from, got {count}; write size=0")
        if wanted > count and not replace:
            raise ParameterError(
                f"choice: expected a size of at most {count} without replacement, got {shape}; write replace=True"
            )
        chosen = self._chosen(shape, wanted, count, bool(replace), weights, target)
        return chosen if values is None else _elements(values, chosen, place)

    def _chosen(
        self, shape: Shape, wanted: int, count: int, replace: bool, weights: Array | None, device: Device
    ) -> Array:
        """Return the positions of elements."""
        if weights is None:
            if replace:
                return self.integers(max(count, 1), size=shape, device=device)
            return reshape(self._order(count, device, wanted), shape)
        if replace:
            sums = cumulative_sum(weights)
            sums = sums / sums[-1]
            unit = self.random(shape, dtype=dtypes.float64, device=device)
            sorts = device.backend.sorting is not None
            return searchsorted(sums, unit, side="right") if sorts else reached(sums, unit)
        if int(sum(weights > 0)) < wanted:
            raise ParameterError(f"choice: expected {wanted} probabilities above 0, got fewer; write replace=True")
        waits = self.standard_exponential(count, dtypes.float64, device=device) / weights
        return reshape(argsort(waits, stable=True)[:wanted], shape)

    def _order(self, count: int, device: Device, size: int | None = None) -> Array:
        """Return a random order of the positions below `count`, or the first ones of it."""
        key = self._fill(Target("permutation", (1,), dtypes.uint64, as_device("cpu"), None), 2, draws.raw).item()
        return first_of_permutation(key, count, count if size is None else size, device)

    def _rows_in_orders(self, x: Array) -> Array:
        """Return the elements of each row, which is along the last axis, in a random order of its own."""
        shape = (*x.shape[:-1], 1)
        keys = self._fill(Target("permuted", shape, dtypes.uint64, x.device, None), 2, draws.raw)
        return take_along_axis(x, orders_of_rows(keys, x.shape))


def _probabilities(p: Any, count: int, device: Device) -> Array:
    """Return probabilities as float64, after a check of their number, signs and sum."""
    with using_device(device):
        given = as_array("choice", p)
    if given.shape != (count,):
        raise ParameterError(
            f"choice: expected p of the shape {(count,)}, got {given.shape}; write one for each element"
        )
    if given.device is not device:
        raise DeviceError(
            f"choice: p is on {given.device}, and the choice on {device}; write p.to_device({str(device)!r})"
        )
    if dtypes.info(given.dtype).kind == "complex":
        raise DTypeError(f"choice: expected real probabilities, got {given.dtype.name}; write p.real")
    found = astype(given, dtypes.float64)
    total = float(sum(found))
    if not (bool(all_true(found >= 0)) and abs(total - 1) < 1e-6):
        raise ParameterError(
            f"choice: expected probabilities >= 0 with the sum 1, got the sum {total}; write p / p.sum()"
        )
    return found


def _elements(values: Array, chosen: Array, axis: int) -> Array:
    """Return the elements at positions along an axis; the axes of the positions take its place."""
    shape = (*values.shape[:axis], *chosen.shape, *values.shape[axis + 1 :])
    return reshape(take(values, reshape(chosen, (-1,)), axis=axis), shape)
