"""Discrete distributions: integers."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.devices import as_device
from tilearray.geometry.shapes import ShapeLike
from tilearray.random import draws
from tilearray.random.integers import bounds_of, words_of
from tilearray.random.source import Source
from tilearray.random.targets import Target, target_of

INTEGERS = frozenset(
    getattr(dtypes, name)
    for name in ("bool_", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
)


class Discrete(Source):
    """The discrete distributions of a generator."""

    __slots__ = ()

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: ShapeLike | None = None,
        dtype: Any = None,
        endpoint: bool = False,
        *,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return integers that are uniform in ``[low, high)``, or in ``[0, low)`` if there is no `high`.

        An element is ``low + (word * (high - low) >> 64)`` with a random word of 64 bits; for ranges above 2**32, and
        for arrays of bounds for 64-bit dtypes, with one of 128 bits. The probability of each number differs from the
        uniform one by less than 2**-32 of it, and not at all if the range is a power of two.

        Parameters
        ----------
        low, high : int or Array
            Arrays of integers broadcast.
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            bool or an integer dtype; None is that of `out`, or int64.
        endpoint : bool
            Whether `high` is a possible result.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a range is empty, or the dtype does not hold it. To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> rng = ta.random.default_rng(7)
        >>> rng.integers(1, 6, size=5, endpoint=True).tolist()
        [1, 2, 4, 6, 5]
        >>> rng.integers([10, 100, 1000]).shape
        (3,)
        """
        device = device or self._device
        words = words_of(low, high, size, dtype, endpoint) if out is None else None
        key = None if words is None else (as_device(device, "integers"), *words)
        known = None if key is None else _RANGES.get(key)
        if known is not None:
            return self._between(*known)
        given = bounds_of(low, high, endpoint, device, out)
        target = target_of(
            "integers",
            size,
            dtype,
            given.device,
            out,
            kinds=INTEGERS,
            default=dtypes.int64,
            parameters=given.shape,
        )
        first, count, wide = given.ranges(target)
        if key is not None and not given.arrays:
            _RANGES.put(key, _Range(target, first, count, wide))
        return self._between(target, first, count, wide, given.arrays)

    def _between(self, target: Target, first: Any, count: Any, wide: bool, arrays: bool = False) -> Array:
        """Draw integers of ranges: numbers, or arrays of the shape of the target."""
        return self._fill(target, 4 if wide else 2, draws.bounded, (wide, arrays), (count, first), arrays)


class _Range(NamedTuple):
    """All parts of a draw between two numbers that follow from the device and the words of the call, checked.

    Attributes
    ----------
    target : Target
        A new array.
    first, extent : int
        The first integer of the range, and how many there are, modulo 2**64.
    wide : bool
        Whether words of 128 bits are needed.
    """

    target: Target
    first: int
    extent: int
    wide: bool


_RANGES: TwoGenerations[_Range] = TwoGenerations(512)
