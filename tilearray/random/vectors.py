"""Vectors of numbers that depend on each other."""

from __future__ import annotations

import warnings
from typing import Any

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.devices import as_device, using_device
from tilearray.errors import ParameterError, ShapeError, shown
from tilearray.functions.arguments import as_array, is_host_data
from tilearray.functions.conversion import astype
from tilearray.functions.joining import stack
from tilearray.functions.products import matmul
from tilearray.functions.reductions import all as all_true
from tilearray.functions.reductions import sum
from tilearray.functions.scans import cumulative_sum
from tilearray.functions.searching import where
from tilearray.functions.softmax import softmax
from tilearray.geometry.shapes import Shape, ShapeLike, as_shape, broadcast_shapes
from tilearray.linalg.decompositions import cholesky, eigh, svd
from tilearray.ops.arithmetic import maximum, minimum
from tilearray.ops.elementary import sqrt
from tilearray.random.attempts import COUNTS
from tilearray.random.parameters import check_everywhere, check_integers
from tilearray.random.repeated import Repeated
from tilearray.random.targets import target_of

METHODS = ("svd", "eigh", "cholesky")
CHECKS = ("warn", "raise", "ignore")


class Vectors(Repeated):
    """The methods of a generator that draw vectors, along the last axis of the result."""

    __slots__ = ()

    def dirichlet(
        self,
        alpha: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return vectors of numbers within [0, 1] whose sum is 1: gamma numbers, divided by their sum.

        They are computed as the softmax of logarithms, so that small parameters give no 0 / 0.

        Parameters
        ----------
        alpha : Array
            The parameters, of shape (k,).
        size : int or tuple of int, optional
            The shape without the last axis of k elements.
        dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ShapeError
            If `alpha` has not one axis.
        ParameterError
            If a parameter is negative or NaN. To check it on a GPU, the call waits for it.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).dirichlet([0.01, 2.0, 1.0], 4).shape
        (4, 3)
        """
        parameters = self._vector("dirichlet", "alpha", alpha, device)
        if parameters.ndim != 1:
            raise ShapeError(f"dirichlet: expected alpha of one axis, got shape {parameters.shape}; draw for each row")
        check_everywhere("dirichlet", parameters >= 0, "alpha >= 0", alpha, "numbers above 0")
        shape = _shape_of("dirichlet", size, (), parameters.shape[0], out)
        prepared = self._prepared("dirichlet", {"alpha": parameters}, shape, dtype, out, parameters.device)
        logarithms = self._log_gamma_of(prepared.wide, prepared.values[0])
        return prepared.target.holding(softmax(logarithms, axis=-1))

    def multinomial(
        self,
        n: Any,
        pvals: Any,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return how many of `n` trials have each of k outcomes: a draw of binomial numbers for each but the last.

        Parameters
        ----------
        n : int or Array
            The number of trials.
        pvals : Array
            The probabilities of the outcomes, of shape (..., k). The last one is what is left.
        size : int or tuple of int, optional
            The shape without the last axis; None is the common shape of `n` and of `pvals` without its last axis.
        dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ShapeError
            If `pvals` has no axis, or no element along the last one.
        ParameterError
            If a probability is negative, or the sum of all but the last is above 1. On a GPU the call waits for this.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.sum(ta.random.default_rng(7).multinomial(20, [0.2, 0.3, 0.5], 4), axis=1).tolist()
        [20, 20, 20, 20]
        """
        chances = astype(self._vector("multinomial", "pvals", pvals, device), dtypes.float64)
        if not chances.ndim or not chances.shape[-1]:
            raise ShapeError(f"multinomial: expected pvals of shape (..., k), got {chances.shape}; write a list of k")
        before = cumulative_sum(chances, axis=-1) - chances
        holds = (chances >= 0) & (before <= 1 + 1e-12)
        check_everywhere("multinomial", holds, "pvals >= 0 with a sum of at most 1", pvals, "pvals / ta.sum(pvals)")
        trials = as_array("multinomial", n) if isinstance(n, Array) or is_host_data(n) else n
        extents = trials.shape if isinstance(trials, Array) else ()
        natural = broadcast_shapes(extents, chances.shape[:-1], function="multinomial")
        *shape, last = _shape_of("multinomial", size, natural, chances.shape[-1], out)
        target = target_of("multinomial", (*shape, last), dtype, chances.device, out, COUNTS, dtypes.int64)
        rest = 1 - before
        shares = minimum(where(rest > 0, chances / where(rest > 0, rest, 1), 0), 1)
        counts: list[Any] = []
        for place in range(last - 1):
            counts.append(self.binomial(trials, shares[..., place], tuple(shape), device=target.device))
            trials = trials - counts[-1]
        counts.append(trials if last > 1 else self.binomial(trials, 1.0, tuple(shape), device=target.device))
        return target.holding(stack(counts, axis=-1))

    def multivariate_hypergeometric(
        self,
        colors: Any,
        nsample: Any,
        size: ShapeLike | None = None,
        method: str = "marginals",
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return how many of `nsample` elements have each of k colors, drawn without replacement.

        It is a draw of hypergeometric numbers for each color but the last.

        Parameters
        ----------
        colors : Array
            How many elements of each color there are, of shape (k,).
        nsample : int
            How many are drawn.
        size : int or tuple of int, optional
            The shape without the last axis of k elements.
        method : {"marginals", "count"}
            NumPy's argument; the numbers are the same for both.
        dtype, out, device
            See `poisson`.

        Returns
        -------
        Array

        Raises
        ------
        ShapeError
            If `colors` has not one axis, or no element.
        ParameterError
            If a number is negative or too large, or the method is another word. On a GPU the call waits for this.
        DTypeError
            If a number is a float.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.sum(ta.random.default_rng(7).multivariate_hypergeometric([5, 0, 9], 6, 4), axis=1).tolist()
        [6, 6, 6, 6]
        """
        function = "multivariate_hypergeometric"
        if method not in ("marginals", "count"):
            raise ParameterError(
                f"{function}: expected method 'marginals' or 'count', got {shown(method)}; write method='marginals'"
            )
        given = self._vector(function, "colors", colors, device)
        if given.ndim != 1 or not given.shape[0]:
            raise ShapeError(f"{function}: expected colors of shape (k,), got {given.shape}; write a list of integers")
        check_integers(function, "colors", given)
        check_integers(function, "nsample", nsample)
        total = sum(given)
        holds = all_true(given >= 0) & (nsample >= 0) & (nsample <= total)
        expected = "colors >= 0, and nsample from 0 to their sum"
        check_everywhere(function, holds, expected, (colors, nsample), "numbers within these bounds")
        *shape, last = _shape_of(function, size, (), given.shape[0], out)
        target = target_of(function, (*shape, last), dtype, given.device, out, COUNTS, dtypes.int64)
        counts: list[Any] = []
        rest, left = total - cumulative_sum(given), nsample
        for place in range(last):
            one, others = given[place], rest[place]
            counts.append(self.hypergeometric(one, others, left, tuple(shape), device=target.device))
            left = left - counts[-1]
        return target.holding(stack(counts, axis=-1))

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: ShapeLike | None = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return vectors of normal numbers that have a covariance matrix.

        Parameters
        ----------
        mean : Array
            Of shape (k,).
        cov : Array
            The covariances, symmetric and without a negative eigenvalue, of shape (k, k).
        size : int or tuple of int, optional
            The shape without the last axis of k elements.
        check_valid : {"warn", "raise", "ignore"}
            What happens if `cov` has a negative eigenvalue. To check it on a GPU, the call waits for it.
        tol : float
            The difference up to which `cov` and the product of its factors are equal.
        method : {"svd", "eigh", "cholesky"}
            The decomposition that gives the factor; "cholesky" takes the least time, and needs positive eigenvalues.
        dtype, out, device
            See `standard_normal`.

        Returns
        -------
        Array

        Raises
        ------
        ShapeError
            If the shapes are others.
        ParameterError
            If a word is another one, or `cov` is not valid under "raise".

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).multivariate_normal([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]], 5).shape
        (5, 2)
        """
        for name, given, known in (("method", method, METHODS), ("check_valid", check_valid, CHECKS)):
            if given not in known:
                raise ParameterError(
                    f"multivariate_normal: expected {name} in {known}, got {shown(given)}; write {name}={known[0]!r}"
                )
        center = self._vector("multivariate_normal", "mean", mean, device)
        matrix = astype(self._vector("multivariate_normal", "cov", cov, center.device), dtypes.float64)
        if center.ndim != 1 or matrix.shape != center.shape * 2:
            raise ShapeError(
                f"multivariate_normal: expected mean of shape (k,) and cov of shape (k, k), got {center.shape} and "
                f"{matrix.shape}; write one mean for each row of cov"
            )
        factor = _factor(matrix, method)
        if check_valid != "ignore" and not all_true(abs(matmul(factor.T, factor) - matrix) <= tol + tol * abs(matrix)):
            message = "multivariate_normal: expected cov to be symmetric without a negative eigenvalue"
            if check_valid == "raise":
                raise ParameterError(f"{message}, got {shown(cov)}; write (cov + cov.T) / 2, or check_valid='ignore'")
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        shape = _shape_of("multivariate_normal", size, (), center.shape[0], out)
        prepared = self._prepared("multivariate_normal", {"mean": center}, shape, dtype, out, center.device)
        drawn = matmul(self._normal(prepared.wide), astype(factor, prepared.wide.dtype))
        return prepared.target.holding(drawn + prepared.values[0])

    def _vector(self, function: str, name: str, values: Any, device: Any) -> Array:
        """Return a parameter as an array: an Array where it is, and others on the device of new arrays."""
        where_to = device or self._device
        if isinstance(values, Array) or where_to is None:
            return as_array(function, values, name)
        with using_device(as_device(where_to, function)):
            return as_array(function, values, name)


def _shape_of(function: str, size: Any, natural: Shape, length: int, out: Array | None) -> Shape:
    """Return the shape of vectors of a length: of a size, else of `out`, else of the parameters."""
    if size is not None:
        return (*as_shape(size, function), length)
    is_fit = isinstance(out, Array) and out.shape[-1:] == (length,)  # pyright: ignore[reportUnnecessaryIsInstance]
    return out.shape if out is not None and is_fit else (*natural, length)


def _factor(cov: Array, method: str) -> Array:
    """Return a matrix whose product with its own transpose, ``f.T @ f``, is a covariance matrix."""
    if method == "cholesky":
        return cholesky(cov, upper=True)
    if method == "eigh":
        values, vectors = eigh(cov)
        return (vectors * sqrt(maximum(values, 0))).T
    _, values, rows = svd(cov)
    return sqrt(values)[:, None] * rows
