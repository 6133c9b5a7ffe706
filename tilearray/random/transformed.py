"""Distributions that are functions of exponential, normal and uniform numbers.

`laplace`, `rayleigh`, `triangular` and `wald` have the same bits on every device. The others take a device's own
logarithms and exponentials, so their last bits may differ.
"""

from __future__ import annotations

from typing import Any

from tilearray.arrays.array import Array
from tilearray.errors import ParameterError, shown
from tilearray.functions.searching import where
from tilearray.geometry.shapes import ShapeLike
from tilearray.ops.arithmetic import maximum, square
from tilearray.ops.elementary import exp, expm1, log, sqrt
from tilearray.random.derived import Derived, check_above_zero
from tilearray.random.parameters import affine, check_at_least
from tilearray.random.targets import Target


class Transformed(Derived):
    """The methods of a generator that transform exponential, normal and uniform numbers."""

    __slots__ = ()

    def laplace(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return numbers of both signs around `loc`: ``loc + scale * (e1 - e2)``, with two exponential numbers.

        Parameters
        ----------
        loc, scale : number or Array
            Arrays broadcast.
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
        >>> ta.random.default_rng(7).laplace(10, 2, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("laplace", {"loc": loc, "scale": scale}, size, dtype, out, device)
        loc, scale = values
        check_at_least("laplace", "scale", scale, 0)
        return affine(self._exponential(wide) - self._exponential(wide), loc, scale, target)

    def logistic(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return logistic numbers: ``loc + scale * log(e1 / e2)``, with two exponential numbers.

        Parameters
        ----------
        loc, scale : number or Array
            Arrays broadcast.
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
        >>> ta.random.default_rng(7).logistic(size=4).shape
        (4,)
        """
        target, wide, values = self._prepared("logistic", {"loc": loc, "scale": scale}, size, dtype, out, device)
        loc, scale = values
        check_at_least("logistic", "scale", scale, 0)
        return affine(self._log_exponential(wide) - self._log_exponential(wide), loc, scale, target)

    def gumbel(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return extreme values: ``loc - scale * log(e)``, with an exponential number.

        Parameters
        ----------
        loc, scale : number or Array
            Arrays broadcast.
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
        >>> ta.random.default_rng(7).gumbel(size=4).shape
        (4,)
        """
        target, wide, values = self._prepared("gumbel", {"loc": loc, "scale": scale}, size, dtype, out, device)
        loc, scale = values
        check_at_least("gumbel", "scale", scale, 0)
        return affine(-self._log_exponential(wide), loc, scale, target)

    def lognormal(
        self,
        mean: Any = 0.0,
        sigma: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return numbers whose logarithms are normal: ``exp(normal(mean, sigma))``.

        Parameters
        ----------
        mean, sigma : number or Array
            The mean and the standard deviation of the logarithms; arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `sigma` is a number below 0. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).lognormal(0, [0.5, 1]).shape
        (2,)
        """
        target, wide, values = self._prepared("lognormal", {"mean": mean, "sigma": sigma}, size, dtype, out, device)
        mean, sigma = values
        check_at_least("lognormal", "sigma", sigma, 0)
        return target.holding(exp(affine(self._normal(wide), mean, sigma, wide)))

    def pareto(
        self,
        a: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return Pareto numbers of the second kind, which begin at 0: ``expm1(e / a)``, with an exponential number.

        Parameters
        ----------
        a : number or Array
            The shape.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `a` is a number that is not above 0.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).pareto(3, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("pareto", {"a": a}, size, dtype, out, device)
        (a,) = values
        check_above_zero("pareto", a=a)
        return target.holding(expm1(self._exponential(wide) / a))

    def power(
        self,
        a: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return numbers within [0, 1] of density ``a * x**(a - 1)``.

        Parameters
        ----------
        a : number or Array
            The shape.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `a` is a number that is not above 0.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).power(3, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("power", {"a": a}, size, dtype, out, device)
        (a,) = values
        check_above_zero("power", a=a)
        return target.holding(exp(-self._exponential(wide) / a))

    def rayleigh(
        self,
        scale: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return the lengths of points in the plane whose coordinates are normal: ``scale * sqrt(2 * e)``.

        Parameters
        ----------
        scale : number or Array
            The standard deviation of the coordinates.
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
        >>> ta.random.default_rng(7).rayleigh(2, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("rayleigh", {"scale": scale}, size, dtype, out, device)
        (scale,) = values
        check_at_least("rayleigh", "scale", scale, 0)
        return affine(sqrt(self._exponential(wide) * 2), None, scale, target)

    def weibull(
        self,
        a: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return Weibull numbers of scale 1: ``e**(1 / a)``, with an exponential number.

        Parameters
        ----------
        a : number or Array
            The shape.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `a` is a number that is not above 0.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).weibull(1.5, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("weibull", {"a": a}, size, dtype, out, device)
        (a,) = values
        check_above_zero("weibull", a=a)
        return target.holding(exp(self._log_exponential(wide) / a))

    def wald(
        self,
        mean: Any,
        scale: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return inverse Gaussian numbers.

        A squared normal number gives two roots, of which one is chosen (Michael, Schucany and Haas, "Generating random
        variates using transformations with multiple roots", 1976).

        Parameters
        ----------
        mean, scale : number or Array
            Arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a parameter is a number that is not above 0.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).wald(3, 2, 4).shape
        (4,)
        """
        target, wide, values = self._prepared("wald", {"mean": mean, "scale": scale}, size, dtype, out, device)
        mean, scale = values
        check_above_zero("wald", mean=mean, scale=scale)
        t = square(self._normal(wide)) * mean / scale
        root = 1 + t / 2 + sqrt(t + square(t) / 4)
        is_small = self._uniform(wide) * (root + 1) <= root
        return affine(where(is_small, 1 / root, root), None, mean, target)

    def triangular(
        self,
        left: Any,
        mode: Any,
        right: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return numbers of a density that rises from `left` to `mode` and falls to `right`.

        Parameters
        ----------
        left, mode, right : number or Array
            Arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If they are numbers that are not in order, or all are equal. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).triangular(-1, 0, 3, 4).shape
        (4,)
        """
        target, wide, values = self._prepared(
            "triangular", {"left": left, "mode": mode, "right": right}, size, dtype, out, device
        )
        left, mode, right = values
        _check_triangle(left, mode, right)
        rise, fall, width = mode - left, right - mode, right - left
        u = self._uniform(wide)
        falling = right - sqrt((1 - u) * width * fall)
        return target.holding(where(u * width <= rise, left + sqrt(u * width * rise), falling))

    def _log_exponential(self, wide: Target) -> Array:
        """Logarithms of exponential numbers. Those that are 0, since u is rounded to 1, count as half an ulp of 1."""
        return log(maximum(self._exponential(wide), 2.0 ** (-25 if wide.dtype.itemsize == 4 else -54)))


def _check_triangle(left: Any, mode: Any, right: Any) -> None:
    """Raise ParameterError if numbers are no triangle."""
    if not any(isinstance(value, Array) for value in (left, mode, right)) and not left <= mode <= right > left:
        raise ParameterError(
            f"triangular: expected left <= mode <= right and left < right, got {shown((left, mode, right))}; "
            "write them in order"
        )
