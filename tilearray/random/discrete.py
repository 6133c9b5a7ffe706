"""Discrete distributions: integers."""

from __future__ import annotations

from typing import Any

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.remembered import INT_OR_NONE
from tilearray.geometry.shapes import ShapeLike
from tilearray.random import draws
from tilearray.random.integers import bounds_of
from tilearray.random.source import Source
from tilearray.random.targets import target_of

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
        words = None
        if out is None and endpoint.__class__ is bool and low.__class__ is int and high.__class__ in INT_OR_NONE:
            words = self._words("integers" if endpoint else "below", size, dtype, device, low, high)
            known = self._again(words)
            if known is not None:
                return known
        given = bounds_of(low, high, endpoint, device or self._device, out)
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
        size_of_word = 4 if wide else 2
        facts = wide, given.arrays
        return self._fill(target, size_of_word, draws.bounded, facts, (count, first), given.arrays, words)
