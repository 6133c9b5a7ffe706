"""Distributions that are ratios of gamma, chi-square and normal numbers.

They have the same bits on every device, but for `beta`, whose logarithms and exponentials are a device's own.
"""

from __future__ import annotations

from typing import Any

from tilearray.arrays.array import Array
from tilearray.functions.conversion import astype
from tilearray.geometry.shapes import ShapeLike
from tilearray.ops.elementary import exp, sqrt
from tilearray.random.derived import Derived, check_above_zero
from tilearray.random.parameters import check_at_least
from tilearray.random.targets import Target


class Ratios(Derived):
    """The methods of a generator that draw ratios."""

    __slots__ = ()

    def beta(
        self,
        a: Any,
        b: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return beta numbers, which are within [0, 1].

        Parameters
        ----------
        a, b : number or Array
            The mean is ``a / (a + b)``; arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a parameter is a number that is not above 0, or above 2**100.

        Examples
        --------
        >>> import tilearray as ta
        >>> bool(ta.all(ta.random.default_rng(7).beta(0.01, 0.02, 100) <= 1))
        True
        """
        target, wide, values = self._prepared("beta", {"a": a, "b": b}, size, dtype, out, device)
        a, b = values
        check_above_zero("beta", a=a, b=b)
        return target.holding(1 / (1 + exp(self._log_gamma_of(wide, b) - self._log_gamma_of(wide, a))))

    def chisquare(
        self,
        df: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return sums of the squares of `df` normal numbers: ``2 * standard_gamma(df / 2)``.

        Parameters
        ----------
        df : number or Array
            The degrees of freedom, also the mean.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `df` is a number that is not above 0, or above 2**100.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).chisquare([1, 10]).shape
        (2,)
        """
        target, wide, values = self._prepared("chisquare", {"df": df}, size, dtype, out, device)
        (df,) = values
        check_above_zero("chisquare", df=df)
        return target.holding(self._gamma_of(wide, df / 2) * 2)

    def noncentral_chisquare(
        self,
        df: Any,
        nonc: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return chi-square numbers of ``df + 2 * poisson(nonc / 2)`` degrees of freedom.

        Parameters
        ----------
        df, nonc : number or Array
            The degrees of freedom, and the sum of the squares of the normal numbers' means. Arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `df` is a number that is not above 0, or `nonc` is negative.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).noncentral_chisquare(3, 20, 5).shape
        (5,)
        """
        target, wide, values = self._prepared(
            "noncentral_chisquare", {"df": df, "nonc": nonc}, size, dtype, out, device
        )
        df, nonc = values
        check_above_zero("noncentral_chisquare", df=df)
        check_at_least("noncentral_chisquare", "nonc", nonc, 0)
        return target.holding(self._noncentral_chisquare(wide, df, nonc))

    def f(
        self,
        dfnum: Any,
        dfden: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return the ratios of two chi-square numbers, each divided by its degrees of freedom.

        Parameters
        ----------
        dfnum, dfden : number or Array
            The degrees of freedom of both; arrays broadcast.
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
        >>> ta.random.default_rng(7).f(4, 7, (2, 3)).shape
        (2, 3)
        """
        target, wide, values = self._prepared("f", {"dfnum": dfnum, "dfden": dfden}, size, dtype, out, device)
        dfnum, dfden = values
        check_above_zero("f", dfnum=dfnum, dfden=dfden)
        above, below = self._gamma_of(wide, dfnum / 2), self._gamma_of(wide, dfden / 2)
        return target.holding((above / dfnum) / (below / dfden))

    def noncentral_f(
        self,
        dfnum: Any,
        dfden: Any,
        nonc: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return what `f` does, with a noncentral chi-square number above the line.

        Parameters
        ----------
        dfnum, dfden, nonc : number or Array
            See `noncentral_chisquare`; arrays broadcast.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a number of degrees of freedom is not above 0, or `nonc` is negative.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).noncentral_f(4, 7, 2.0).shape
        ()
        """
        target, wide, values = self._prepared(
            "noncentral_f", {"dfnum": dfnum, "dfden": dfden, "nonc": nonc}, size, dtype, out, device
        )
        dfnum, dfden, nonc = values
        check_above_zero("noncentral_f", dfnum=dfnum, dfden=dfden)
        check_at_least("noncentral_f", "nonc", nonc, 0)
        above, below = self._noncentral_chisquare(wide, dfnum, nonc), self._gamma_of(wide, dfden / 2) * 2
        return target.holding((above / dfnum) / (below / dfden))

    def standard_t(
        self,
        df: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return Student's numbers: normal ones over the root of chi-square ones divided by their degrees of freedom.

        Parameters
        ----------
        df : number or Array
            The degrees of freedom.
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If `df` is a number that is not above 0.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).standard_t(5, 3).shape
        (3,)
        """
        target, wide, values = self._prepared("standard_t", {"df": df}, size, dtype, out, device)
        (df,) = values
        check_above_zero("standard_t", df=df)
        half = df / 2
        return target.holding(self._normal(wide) / sqrt(self._gamma_of(wide, half) / half))

    def standard_cauchy(
        self,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return Cauchy numbers: ratios of two normal ones.

        Parameters
        ----------
        size, dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).standard_cauchy(3).shape
        (3,)
        """
        target, wide, _ = self._prepared("standard_cauchy", {}, size, dtype, out, device)
        return target.holding(self._normal(wide) / self._normal(wide))

    def _noncentral_chisquare(self, wide: Target, df: Any, nonc: Any) -> Array:
        more = self.poisson(nonc / 2, wide.shape, device=wide.device)
        return self._gamma_of(wide, astype(more, wide.dtype) + df / 2) * 2
