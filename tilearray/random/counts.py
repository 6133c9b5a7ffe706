"""Counts of trials, as functions of exponential, gamma and Poisson numbers."""

from __future__ import annotations

import math
from typing import Any

from tilearray.arrays.array import Array
from tilearray.geometry.shapes import ShapeLike
from tilearray.ops.arithmetic import maximum
from tilearray.ops.elementary import log1p
from tilearray.ops.number_parts import ceil
from tilearray.random.derived import Derived, check_above_zero, check_chance


class Counts(Derived):
    """The methods of a generator that count trials."""

    __slots__ = ()

    def geometric(
        self,
        p: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return how many trials it takes until one succeeds, each with the probability `p`.

        Parameters
        ----------
        p : number or Array
            The probability of a success.
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `p` is a number that is not within (0, 1].

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).geometric(0.3, 5).dtype.name
        'int64'
        """
        target, wide, values = self._prepared("geometric", {"p": p}, size, dtype, out, device, counts=True)
        (p,) = values
        check_chance("geometric", "p", p)
        rate = -log1p(-p) if isinstance(p, Array) else -math.log1p(-p) if p < 1 else math.inf
        return target.holding(maximum(ceil(self._exponential(wide) / rate), 1))

    def negative_binomial(
        self,
        n: Any,
        p: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return how many trials fail before `n` succeed, each with the probability `p`.

        They are Poisson numbers whose means are gamma numbers.

        Parameters
        ----------
        n : number or Array
            The number of successes; it need not be an integer.
        p : number or Array
            The probability of a success. Arrays broadcast.
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `n` is a number that is not above 0, or `p` not within (0, 1].

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).negative_binomial(5, 0.4, 6).shape
        (6,)
        """
        target, wide, values = self._prepared(
            "negative_binomial", {"n": n, "p": p}, size, dtype, out, device, counts=True
        )
        n, p = values
        check_above_zero("negative_binomial", n=n)
        check_chance("negative_binomial", "p", p)
        mean = self._gamma_of(wide, n) * ((1 - p) / p)
        return target.holding(self.poisson(mean, wide.shape, device=wide.device))
