"""`Flat`: the elements of an array in C order, for reading, writing and iteration. ``x.flat`` makes it.

A selection of `Flat` is a new array, as in NumPy. Where the strides allow it, elements are read and written through a
view of one axis; else each position becomes an index of all axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.signature import from_host
from tilearray.errors import IndexingError, LayoutError
from tilearray.functions.conversion import to_device
from tilearray.functions.indexing import assign, keys, views
from tilearray.functions.manipulation import reshape
from tilearray.ops.execute import copy_of


class Flat(Generic[A]):
    """The elements of an array in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[1, 2], [3, 4]])
    >>> x.T.flat[1:3].tolist(), [int(element) for element in x.flat]
    ([3, 2], [1, 2, 3, 4])
    >>> x.flat[::3] = 0
    >>> x.tolist()
    [[0, 2], [3, 0]]
    """

    __slots__ = ("_next", "base")

    def __init__(self, x: A) -> None:
        self.base = x
        self._next = 0

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[A]:
        return self

    def __next__(self) -> A:
        if self._next >= len(self):
            raise StopIteration
        self._next += 1
        return self[self._next - 1]

    def __getitem__(self, key: Any) -> A:
        line = self._as_view()
        found = views.get(self.base, self._places(key)) if line is None else views.get(line, key)
        return found if line is None else copy_of(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        line = self._as_view()
        if line is None:
            assign.set(self.base, self._places(key), value)
        else:
            assign.set(line, key, value)

    def copy(self) -> A:
        """Return the elements as a new array of one axis."""
        return self[:]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype)

    def __repr__(self) -> str:
        return f"<the elements of an array of shape {self.base.shape} in C order>"

    def _as_view(self) -> A | None:
        """All elements along one axis, if that is a view."""
        try:
            return reshape(self.base, (self.base.size,), copy=False)
        except LayoutError:
            return None

    def _places(self, key: Any) -> tuple[Any, ...]:
        """An index array for each axis, for the positions that a key selects."""
        parts = keys.parts_of(key)
        host = tuple([np.asarray(part) if keys.is_array(part) else part for part in parts])
        try:
            positions = np.arange(self.base.size)[host]
        except IndexError as error:
            raise IndexingError(f"flat: {error}; write indices from 0 to x.size - 1") from error
        places = np.unravel_index(positions, self.base.shape)
        if not positions.ndim:
            return tuple([int(place) for place in places])
        made = [from_host(np.ascontiguousarray(place), self.base.__class__) for place in places]
        return tuple([to_device(place, self.base.device) for place in made])
