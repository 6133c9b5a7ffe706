"""Distributions that reject: gamma, Poisson and binomial numbers.

A draw attempts all elements at once, then those that were rejected, until none is left. To find them, a draw on a GPU
waits after each attempt; there are about as many as the logarithm of the number of elements has digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.execute import run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import dense_signature, new_array
from tilearray.functions.indexing.take import take
from tilearray.functions.manipulation import reshape
from tilearray.functions.searching import nonzero
from tilearray.geometry.shapes import ShapeLike
from tilearray.random import draws, rejection
from tilearray.random.discrete import INTEGERS
from tilearray.random.parameters import (
    affine,
    check_at_least,
    check_everywhere,
    check_integers,
    dense,
    parameters_of,
)
from tilearray.random.source import Source
from tilearray.random.targets import Target, target_of

LARGEST_MEAN = 2.0**62
"""The largest mean of Poisson numbers, so that int64 holds them."""
LARGEST_SHAPE = 2.0**100
"""The largest shape of gamma numbers, so that float32 can compute them."""
MOST_TRIALS = 2**53
"""The largest number of trials, up to which float64 has all integers."""
COUNTS = INTEGERS - {dtypes.bool_}


class Attempts(Source):
    """The distributions of a generator that reject."""

    __slots__ = ()

    def standard_gamma(
        self,
        shape: Any,
        size: ShapeLike | None = None,
        dtype: Any = None,
        out: Array | None = None,
        *,
        device: Any = None,
    ) -> Array:
        """Return gamma numbers of scale 1.

        They have the same bits on every device.

        Parameters
        ----------
        shape : number or Array
            The shape of the distribution, also its mean; arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a shape is negative, NaN or above 2**100. To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).standard_gamma([0.5, 2, 100])
        Array([5.7623185e-02, 1.0245663e+00, 1.0063777e+02],
              dtype=float32, device='cpu')
        """
        return self._gamma("standard_gamma", shape, None, size, dtype, out, device)

    def gamma(
        self,
        shape: Any,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return gamma numbers: ``scale * standard_gamma(shape)``.

        Parameters
        ----------
        shape, scale : number or Array
            The mean is their product; arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a shape is negative, NaN or above 2**100, or the scale is a negative number.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).gamma(2.0, [1, 1000]).shape
        (2,)
        """
        return self._gamma("gamma", shape, scale, size, dtype, out, device)

    def poisson(
        self,
        lam: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return Poisson numbers.

        They are the same on every device.

        Parameters
        ----------
        lam : number or Array
            The mean, at most 2**62; arrays broadcast.
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            An integer dtype, which saturates; None is that of `out`, or int64.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a mean is negative, NaN or too large. To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).poisson([0.5, 5, 500]).tolist()
        [0, 5, 519]
        """
        given = parameters_of("poisson", {"lam": lam}, device or self._device, out)
        target = target_of("poisson", size, dtype, given.device, out, COUNTS, dtypes.int64, given.shape)
        (mean,) = given.values
        _check_within("poisson", "lam", mean, LARGEST_MEAN)
        branches = "both" if given.arrays else "small" if mean < rejection.SMALL else "large"
        return self._counts(target, lambda *how: rejection.poisson(*how, branches), given.values, given.arrays)

    def binomial(
        self,
        n: Any,
        p: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return binomial numbers: how many of `n` trials succeed, each with the probability `p`.

        They are the same on every device.

        Parameters
        ----------
        n : int or Array
            At most 2**53.
        p : number or Array
            Arrays broadcast.
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a number of trials is negative or too large, or a probability is not within [0, 1]. To check arrays on a
            GPU, the call waits for them.
        DTypeError
            If the numbers of trials are floats.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).binomial([10, 1000], 0.3).tolist()
        [1, 305]
        """
        given = parameters_of("binomial", {"n": n, "p": p}, device or self._device, out)
        target = target_of("binomial", size, dtype, given.device, out, COUNTS, dtypes.int64, given.shape)
        trials, chance = given.values
        check_integers("binomial", "n", trials)
        _check_within("binomial", "n", trials, MOST_TRIALS)
        _check_within("binomial", "p", chance, 1)
        branches = "both"
        if not given.arrays:
            branches = "small" if float(trials) * _rarer(chance) < rejection.SMALL else "large"
        return self._counts(target, lambda *how: rejection.binomial(*how, branches), given.values, given.arrays)

    def _gamma(self, function: str, shape: Any, scale: Any, size: Any, dtype: Any, out: Any, device: Any) -> Array:
        names = {"shape": shape} if scale is None else {"shape": shape, "scale": scale}
        given = parameters_of(function, names, device or self._device, out)
        target = target_of(function, size, dtype, given.device, out, parameters=given.shape)
        shapes, factor = given.values[0], given.values[1] if len(names) > 1 else 1.0
        _check_within(function, "shape", shapes, LARGEST_SHAPE)
        check_at_least(function, "scale", factor, 0)
        wide = target.as_computed()
        has_arrays = isinstance(shapes, Array)
        words = wide.dtype.itemsize  # four random numbers, of 32 or of 64 bits
        found = self._accepted(
            wide, words, lambda places, arrays: rejection.gamma(wide.dtype, places, arrays), [shapes], has_arrays
        )
        return affine(found, None, factor, target)

    def _counts(
        self, target: Target, make: Callable[..., FixedOperation], values: Sequence[Any], arrays: bool
    ) -> Array:
        """Draw integers in float64, and store them in the target."""
        wide = Target(target.function, target.shape, dtypes.float64, target.device, None)
        return target.holding(self._accepted(wide, 4, make, values, arrays))

    def _accepted(
        self,
        target: Target,
        words: int,
        make: Callable[[bool, bool], FixedOperation],
        values: Sequence[Any],
        arrays: bool,
    ) -> Array:
        """Attempt all elements, then again those that were rejected.

        ``make(places, arrays)`` gives the operation: of all elements, or of those at places.
        """
        stream = self._bit_generator.take(target.size, words)
        _, (block, upper, key) = draws.numbers(*stream, words)
        dtype, device, count = target.dtype, target.device, target.size
        parameters: list[Any] = [float(value) for value in values] if not arrays else []
        if arrays:
            parameters = [reshape(dense(value, dtype, target.shape, device), (-1,)) for value in values]

        def attempt(number: int, size: int, *operands: Any) -> Array:
            new = new_array(Array, dense_signature((size,), dtype, device, target.function))
            return run_fixed(make(bool(number), arrays), [block, upper | number, key, *operands], new)

        found = attempt(0, count, *parameters)
        again(found, parameters, lambda number, places, chosen: attempt(number, places.size, places, *chosen))
        return reshape(found, target.shape)


def again(found: Array, values: Sequence[Any], attempt: Callable[[int, Array, list[Any]], Array]) -> None:
    """Attempt elements of a row that were rejected, which are negative, until none is left.

    ``attempt(number, places, values)`` gives those at places from the parameters there, at the attempt of a number.
    """
    for number in itertools.count(1):
        (places,) = nonzero(found < 0)
        if not places.size:
            return
        chosen = [take(x, places, axis=0) if isinstance(x, Array) and x.ndim else x for x in values]
        found[places] = attempt(number, places, chosen)


def _check_within(function: str, name: str, value: Any, most: float) -> None:
    """Raise ParameterError if a parameter is negative, NaN or above a bound."""
    expected, instead = f"0 <= {name} <= {most}", f"ta.clip({name}, 0, {most})"
    check_everywhere(function, (value >= 0) & (value <= most), expected, value, instead)


def _rarer(chance: float) -> float:
    """Return the probability of the less probable outcome, as kernels compute it."""
    return float(np.float64(1) - np.float64(chance)) if chance > 0.5 else float(chance)
