"""Continuous distributions: uniform, normal, exponential."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilearray.arrays.array import Array
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words
from tilearray.errors import ParameterError, shown
from tilearray.geometry.shapes import ShapeLike
from tilearray.random import draws
from tilearray.random.parameters import affine, check_at_least, parameters_of, rounded
from tilearray.random.source import Source
from tilearray.random.targets import Target, target_of


class Continuous(Source):
    """The continuous distributions of a generator."""

    __slots__ = ()

    def random(
        self, size: ShapeLike | None = None, dtype: Any = None, out: Array | None = None, *, device: Any = None
    ) -> Array:
        """Return floats that are uniform in ``[0, 1)``.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape. None is the shape of `out`, or a 0-d array.
        dtype : dtype or name, optional
            bfloat16, float16, float32 or float64; None is that of `out`, or the default float. The numbers are all
            multiples of 2**-8, 2**-11, 2**-24 or 2**-53.
        out : Array, optional
            The target, of any layout.
        device : Device or str, optional
            None is the device of `out`, or of the generator.

        Returns
        -------
        Array

        Raises
        ------
        DTypeError
            If the dtype is another one, or not that of `out`.
        ShapeError
            If the size is not that of `out`.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).random(3)
        Array([0.86044395, 0.12475938, 0.24304909], dtype=float32, device='cpu')
        """
        words = self._words("random", size, dtype, device) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        target = target_of("random", size, dtype, device or self._device, out)
        return self._floats(target, draws.unit, known_as=words)

    def uniform(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return floats that are uniform in ``[low, high)``: ``low + (high - low) * random()``.

        The product and the sum are rounded, so `high` is a possible result.

        Parameters
        ----------
        low, high : number or Array
            Arrays broadcast.
        size, dtype, out, device
            See `random`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a bound is not finite, or ``high < low``. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).uniform(-1, 1, 3)
        Array([ 0.7208879 , -0.75048125, -0.5139018 ], dtype=float32, device='cpu')
        """
        words = self._words("uniform", size, dtype, device, low, high) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        given = parameters_of("uniform", {"low": low, "high": high}, device or self._device, out)
        target = target_of("uniform", size, dtype, given.device, out, parameters=given.shape)
        wide = draws.computed_in(target.dtype)
        if given.arrays:
            unit = self._floats(target.as_computed(), draws.unit)
            first, last = given.values
            return affine(unit, first, last - first, target)
        first, last = (rounded(number, wide) for number in given.values)
        span = rounded(last - first, wide)
        if not (0 <= span < float("inf")):
            raise ParameterError(
                f"uniform: expected finite bounds with low <= high, got low={shown(low)} and high={shown(high)}; "
                f"write bounds whose difference {wide.name} holds"
            )
        return self._floats(target, draws.unit, (span, first), words)

    def standard_normal(
        self, size: ShapeLike | None = None, dtype: Any = None, out: Array | None = None, *, device: Any = None
    ) -> Array:
        """Return normal numbers of mean 0 and standard deviation 1, by the method of Box and Muller.

        They have the same bits on every device. None of float32 is beyond 6.8, and none of float64 beyond 9.5.

        Parameters
        ----------
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            bfloat16, float16, float32 or float64; None is that of `out`, or the default float. Narrow floats are
            computed in float32 and rounded once.

        Returns
        -------
        Array

        Raises
        ------
        DTypeError, ShapeError
            See `random`.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).standard_normal(3)
        Array([0.38827977, 0.38710758, 0.643243  ], dtype=float32, device='cpu')
        """
        words = self._words("standard_normal", size, dtype, device) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        target = target_of("standard_normal", size, dtype, device or self._device, out)
        return self._floats(target, draws.normal, known_as=words)

    def normal(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return normal numbers: ``loc + scale * standard_normal()``.

        Parameters
        ----------
        loc, scale : number or Array
            The mean and the standard deviation. Arrays broadcast.
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If the scale is a number below 0. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).normal(10, [1, 100]).shape
        (2,)
        """
        words = self._words("normal", size, dtype, device, loc, scale) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        given = parameters_of("normal", {"loc": loc, "scale": scale}, device or self._device, out)
        target = target_of("normal", size, dtype, given.device, out, parameters=given.shape)
        mean, deviation = given.values
        check_at_least("normal", "scale", deviation, 0)
        if given.arrays:
            return affine(self._floats(target.as_computed(), draws.normal), mean, deviation, target)
        return self._floats(target, draws.normal, (deviation, mean), words)

    def standard_exponential(
        self,
        size: ShapeLike | None = None,
        dtype: Any = None,
        method: str = "inv",
        out: Array | None = None,
        *,
        device: Any = None,
    ) -> Array:
        """Return exponential numbers of mean 1: ``-log(u)``.

        They have the same bits on every device. None of float32 is beyond 22.9, and none of float64 beyond 45.1.

        Parameters
        ----------
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            See `standard_normal`.
        method : {"inv", "zig"}
            NumPy's argument; the numbers are the same for both.

        Returns
        -------
        Array

        Raises
        ------
        DTypeError, ShapeError
            See `random`.
        ParameterError
            If the method is another word.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).standard_exponential(3)
        Array([0.15030673, 2.0813682 , 1.4144917 ], dtype=float32, device='cpu')
        """
        if method not in ("inv", "zig"):
            raise ParameterError(
                f"standard_exponential: expected method 'inv' or 'zig', got {shown(method)}; write method='inv'"
            )
        words = self._words("standard_exponential", size, dtype, device) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        target = target_of("standard_exponential", size, dtype, device or self._device, out)
        return self._floats(target, draws.exponential, known_as=words)

    def exponential(
        self,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return exponential numbers: ``scale * standard_exponential()``.

        Parameters
        ----------
        scale : number or Array
            The mean.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If the scale is a number below 0. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).exponential(2.5, (2, 3)).shape
        (2, 3)
        """
        words = self._words("exponential", size, dtype, device, scale) if out is None else None
        known = self._again(words)
        if known is not None:
            return known
        given = parameters_of("exponential", {"scale": scale}, device or self._device, out)
        target = target_of("exponential", size, dtype, given.device, out, parameters=given.shape)
        (mean,) = given.values
        check_at_least("exponential", "scale", mean, 0)
        if given.arrays:
            return affine(self._floats(target.as_computed(), draws.exponential), None, mean, target)
        return self._floats(target, draws.exponential, (mean,), words)

    def _floats(
        self,
        target: Target,
        make: Callable[..., FixedOperation],
        scale: Sequence[float] = (),
        known_as: Words | None = None,
    ) -> Array:
        """Draw floats, scaled by numbers if there are some."""
        wide = draws.computed_in(target.dtype)
        numbers = [rounded(number, wide) for number in scale]
        words = draws.words_of(target.dtype)
        return self._fill(target, words, make, (bool(numbers),), numbers, known_as=known_as)
