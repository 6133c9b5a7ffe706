"""Python functions applied to slices and elements: `apply_along_axis`, `vectorize`, and iteration over indices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.engine.context import STATE
from tilearray.errors import ShapeError
from tilearray.functions.arguments import as_array
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import moveaxis, reshape
from tilearray.geometry.shapes import as_ints, as_shape, normalize_axis
from tilearray.numpy_names.through_numpy import exact, float_of, wrapped

AT_ONCE = 1 << 16
"""The largest axis whose indices `ndindex` makes all at once."""


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    """Return the results of a function of every 1-d slice along an axis; the axes of a result replace the axis.

    The function is called once for each slice, with an Array.

    Parameters
    ----------
    func1d : callable
    axis : int
    arr : Array
    *args, **kwargs
        Passed to the function.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.apply_along_axis(ta.sum, 1, [[1, 2], [3, 4]])
    Array([3, 7], dtype=int64, device='cpu')
    """
    x = as_array("apply_along_axis", arr)
    place = normalize_axis(axis, x.ndim, "apply_along_axis")
    others = x.shape[:place] + x.shape[place + 1 :]
    rows = reshape(moveaxis(x, place, -1), (-1, x.shape[place])) if x.size else x
    if not x.size or not rows.shape[0]:
        raise ShapeError(f"apply_along_axis: expected at least one slice, got shape {x.shape}; write ta.empty(shape)")
    found = stack([as_array("apply_along_axis", func1d(row, *args, **kwargs)) for row in rows])
    spread = reshape(found, others + found.shape[1:])
    added = range(len(others), spread.ndim)
    return moveaxis(spread, list(added), [place + count for count in range(len(added))])


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    """Return an array after a function that takes an array and an axis was applied over several axes, one by one.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.apply_over_axes(ta.sum, ta.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    x = as_array("apply_over_axes", a)
    for axis in as_ints(axes, "apply_over_axes", "axes", "axes"):
        place = normalize_axis(axis, x.ndim, "apply_over_axes")
        found = as_array("apply_over_axes", func(x, place))
        if found.ndim == x.ndim - 1:
            found = reshape(found, (*found.shape[:place], 1, *found.shape[place:]))
        if found.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: expected a function that keeps or removes its axis, got shape {found.shape} of "
                f"{x.shape}; write ta.apply_along_axis"
            )
        x = found
    return x


class vectorize:  # noqa: N801 - NumPy's name
    """A function of numbers as a function of arrays on the host: it is called once for each element.

    Parameters
    ----------
    pyfunc : callable
    otypes : str or sequence of dtypes, optional
        The dtypes of the results. None takes those of the first results; floats become the default float.
    doc : str, optional
    excluded : set, optional
        Positions and names of arguments that are passed as they are.
    cache : bool
        Whether to keep the first result, if `otypes` is None.
    signature : str, optional
        The shapes of the function's operands and results, such as ``(n),(n)->()``.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vectorize(lambda x, y: max(x, y))([1, 5], [4, 2])
    Array([4, 5], dtype=int64, device='cpu')
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")
        self._exact = otypes is not None
        self._function: Any = np.vectorize(pyfunc, otypes=otypes, excluded=excluded, cache=cache, signature=signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [exact("vectorize(f)", one) for one in args]
        named = {name: exact("vectorize(f)", one) for name, one in kwargs.items()}
        computed: Any = self._function(*given, **named)
        if not self._exact:
            return wrapped(computed, self._float(args, kwargs))
        if isinstance(computed, tuple):
            return tuple([wrapped(one, one.dtype) for one in cast("tuple[Any, ...]", computed)])
        return wrapped(computed, computed.dtype)

    @staticmethod
    def _float(args: tuple[Any, ...], kwargs: dict[str, Any]) -> np.dtype:
        arrays = [one.dtype for one in (*args, *kwargs.values()) if isinstance(one, Array)]
        return float_of("vectorize", arrays) if arrays else STATE.get().semantics.defaults["float"]


def ndindex(*shape: Any) -> Iterator[tuple[int, ...]]:
    """Return an iterator over the indices of all places of a shape, in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> list(ta.ndindex(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return _places(as_shape(shape[0] if len(shape) == 1 else shape, "ndindex"))


def _places(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of a shape. NumPy's iterator first makes all indices of each axis, without end for a giant one."""
    if all(size <= AT_ONCE for size in sizes):
        yield from itertools.product(*map(range, sizes))
        return
    for place in range(sizes[0]):
        for others in _places(sizes[1:]):
            yield (place, *others)


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return an iterator over pairs of the index and the Python number of every element, in C order, on the host.

    Examples
    --------
    >>> import tilearray as ta
    >>> list(ta.ndenumerate([[1, 2]]))
    [((0, 0), 1), ((0, 1), 2)]
    """
    x = as_array("ndenumerate", arr)
    return zip(ndindex(x.shape), reshape(x, -1).tolist())
