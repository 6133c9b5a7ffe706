"""Distributions whose draws are repeated where they are rejected, and the series of the logarithm.

Their formulas take a device's own logarithms, exponentials and cosines, so that a draw at the edge of a rejection may
differ from that of another device. On a GPU a call waits after each attempt.
"""

from __future__ import annotations

import math
from typing import Any

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.functions.searching import where
from tilearray.geometry.shapes import ShapeLike
from tilearray.ops.arithmetic import maximum, minimum, square
from tilearray.ops.elementary import acos, cos, exp, expm1, lgamma, log, log1p, sqrt
from tilearray.ops.number_parts import floor
from tilearray.random.derived import Derived
from tilearray.random.parameters import check_everywhere, check_integers
from tilearray.random.rejection import REJECTED
from tilearray.random.targets import Target

MOST = 10**9
"""The most elements of a kind, up to which the logarithms of factorials are accurate enough."""
LARGEST = 2.0**62
"""The largest number of `zipf` and of `logseries`."""
_TWO_PI = 2 * math.pi
_HAT = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)
"""The width of the hat of a ratio of uniform numbers: its factor of the deviation, and what is added."""


class Repeated(Derived):
    """The methods of a generator that repeat draws."""

    __slots__ = ()

    def zipf(
        self,
        a: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return integers from 1 on whose probabilities fall as ``k**-a``.

        The method is that of Devroye, "Non-uniform random variate generation", 1986.

        Parameters
        ----------
        a : number or Array
            The exponent, above 1. Numbers up to 2**62 are drawn.
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If an exponent is not above 1.

        Examples
        --------
        >>> import tilearray as ta
        >>> bool(ta.min(ta.random.default_rng(7).zipf(2, 100)) >= 1)
        True
        """
        target, wide, values = self._prepared("zipf", {"a": a}, size, dtype, out, device, counts=True)
        check_everywhere("zipf", values[0] > 1, "a > 1", a, "a number above 1")
        return target.holding(self._repeated(wide, values, self._zipf))

    def logseries(
        self,
        p: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return integers from 1 on with the probabilities of the logarithm's series, ``-p**k / (k * log(1 - p))``.

        The method is that of Kemp, "Efficient generation of logarithmically distributed pseudo-random variables", 1981.

        Parameters
        ----------
        p : number or Array
            Within [0, 1).
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a parameter is not within [0, 1). To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> bool(ta.min(ta.random.default_rng(7).logseries(0.6, 100)) >= 1)
        True
        """
        target, wide, values = self._prepared("logseries", {"p": p}, size, dtype, out, device, counts=True)
        (chance,) = values
        check_everywhere("logseries", (chance >= 0) & (chance < 1), "0 <= p < 1", p, "a number below 1")
        lower = (log1p(-chance) if isinstance(chance, Array) else math.log1p(-chance)) * self._uniform(wide)
        exponent = where(lower > -0.69, log(-expm1(lower)), log1p(-exp(lower)))
        found = floor(log(1 - self._uniform(wide)) / minimum(exponent, -(2.0**-1074))) + 1
        return target.holding(minimum(found, LARGEST))

    def hypergeometric(
        self,
        ngood: Any,
        nbad: Any,
        nsample: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return how many of `nsample` elements are good ones, drawn without replacement.

        The method is the ratio of uniform numbers of Stadlober, "The ratio of uniforms approach for generating discrete
        random variates", 1990.

        Parameters
        ----------
        ngood, nbad : int or Array
            How many good and bad elements there are, at most a thousand millions each.
        nsample : int or Array
            How many are drawn. Arrays broadcast.
        size, dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a number is negative or too large. To check arrays on a GPU, the call waits for them.
        DTypeError
            If a number is a float.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).hypergeometric(10, 0, 4, 3).tolist()
        [4, 4, 4]
        """
        given = {"ngood": ngood, "nbad": nbad, "nsample": nsample}
        for name, value in given.items():
            check_integers("hypergeometric", name, value)
        target, wide, values = self._prepared("hypergeometric", given, size, dtype, out, device, counts=True)
        good, bad, sample = values
        holds = (good >= 0) & (good <= MOST) & (bad >= 0) & (bad <= MOST) & (sample >= 0) & (sample <= good + bad)
        expected = f"ngood and nbad within [0, {MOST}], and nsample within their sum"
        check_everywhere("hypergeometric", holds, expected, [*given.values()], "numbers within these bounds")
        return target.holding(self._repeated(wide, values, self._hypergeometric))

    def vonmises(
        self,
        mu: Any,
        kappa: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return angles within [-pi, pi] around `mu`, normal ones on the circle.

        The method is that of Best and Fisher, "Efficient simulation of the von Mises distribution", 1979.

        Parameters
        ----------
        mu, kappa : number or Array
            The mean in radians, and the concentration: 0 for uniform angles. Arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a concentration is negative or not finite. To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> bool(ta.max(abs(ta.random.default_rng(7).vonmises(3.0, 2.0, 100))) < 3.1416)
        True
        """
        target, wide, values = self._prepared("vonmises", {"mu": mu, "kappa": kappa}, size, dtype, out, device)
        mean, concentration = values
        holds = (concentration >= 0) & (concentration < math.inf)
        check_everywhere("vonmises", holds, "0 <= kappa < inf", kappa, "a finite number, or 0 for uniform angles")
        wide = wide._replace(dtype=dtypes.float64)  # float32 has few numbers near 1, the cosine of small angles
        angle = self._repeated(wide, [concentration], self._vonmises) - math.pi + mean
        return target.holding(angle - floor((angle + math.pi) / _TWO_PI) * _TWO_PI)

    def _zipf(self, wide: Target, a: Array) -> Array:
        exponent = minimum(a, 1000) - 1  # 2 ** 1024 is infinite, and no larger exponent gives another number than 1
        least, share = exp(exponent * -math.log(LARGEST)), self._uniform(wide)
        x = floor(exp(log(share * least + (1 - share)) / -exponent))
        t, b = exp(log1p(1 / x) * exponent), exp(exponent * math.log(2))
        accepts = (x <= LARGEST) & (self._uniform(wide) * x * (t - 1) / (b - 1) <= t / b)
        return where(accepts, x, REJECTED)

    def _hypergeometric(self, wide: Target, good: Array, bad: Array, sample: Array) -> Array:
        few, many, total = minimum(good, bad), maximum(good, bad), good + bad
        drawn = minimum(sample, total - sample)
        share = few / maximum(total, 1)
        mean = drawn * share
        variance = (total - drawn) * sample * share * (1 - share) / maximum(total - 1, 1)
        deviation = sqrt(variance + 0.5)
        mode = floor((drawn + 1) * (few + 1) / (total + 2))

        def logarithm(k: Array) -> Array:
            return lgamma(k + 1) + lgamma(few - k + 1) + lgamma(drawn - k + 1) + lgamma(many - drawn + k + 1)

        x = 1 - self._uniform(wide)
        place = mean + 0.5 + (deviation * _HAT[0] + _HAT[1]) * (self._uniform(wide) - 0.5) / x
        k = floor(place)
        inside = (place >= 0) & (k <= minimum(drawn, few))
        accepts = inside & (2 * log(x) <= logarithm(mode) - logarithm(where(inside, k, mode)))
        k = where(good > bad, drawn - k, k)
        return where(accepts, where(drawn < sample, good - k, k), REJECTED)

    def _vonmises(self, wide: Target, kappa: Array) -> Array:
        """Angles around pi."""
        k = minimum(maximum(kappa, 1e-8), 1e6)
        r = 1 + sqrt(1 + 4 * square(k))
        rho = 2 * k / (r + sqrt(2 * r))
        s = (1 + square(rho)) / (2 * rho)
        share, sign, z = self._uniform(wide), self._uniform(wide), self._uniform(wide)
        z = cos(z * math.pi)
        w = minimum(maximum((1 + s * z) / (s + z), -1), 1)
        y = k * (s - w)
        accepts = log(y / (1 - share)) + 1 - y >= 0
        angle = where(accepts, where(sign < 0.5, acos(w), -acos(w)) + math.pi, REJECTED)
        angle = where(kappa < 1e-8, share * _TWO_PI, angle)
        return where(kappa > 1e6, self._normal(wide) / sqrt(maximum(kappa, 1)) + math.pi, angle)
