"""Rules that choose how many bins a histogram has, for elements on a device that counts them; NumPy's, by their names.

A rule gives the width of a bin, from a few statistics of the elements. The call waits for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.context import semantics
from tilearray.errors import ShapeError, shown
from tilearray.functions.conversion import astype, single
from tilearray.functions.reductions import max, mean, min, std, sum
from tilearray.numpy_names.statistics import percentile
from tilearray.ops.arithmetic import bitwise_and, divide, greater_equal, less_equal, multiply, pow, subtract

Count = Callable[[Array, int], Array]
"""Returns how often elements lie in so many bins of one width."""


def bins_by_rule(function: str, x: Array, rule: str, edges: np.ndarray, is_limited: bool, count: Count) -> int:
    """Return the number of bins between two edges.

    Parameters
    ----------
    function : str
        The public function, for errors.
    x : Array
        The elements, of one axis.
    rule : str
        One of ``auto doane fd rice scott sqrt stone sturges``.
    edges : numpy.ndarray
        The first and the last edge.
    is_limited : bool
        Whether elements may lie outside of the edges, which then do not count.
    count : callable
        Used by "stone", which compares histograms.

    Raises
    ------
    ShapeError
        If there is no such rule.
    """
    if rule not in _RULES:
        raise ShapeError(f"{function}: {rule!r} is not a valid estimator for `bins`; write bins='auto', or a number")
    low, high = [edge.item() for edge in edges]
    if is_limited:
        x = x[bitwise_and(greater_equal(x, low), less_equal(x, high))]
    if not x.size:
        return 1
    with semantics("numpy"):
        width = _RULES[rule](x, count)
    if not math.isfinite(width):
        raise ShapeError(f"{function}: expected finite elements, got a width of bins of {shown(width)}; drop NaN first")
    if dtypes.info(x.dtype).kind in ("int", "uint") and 0 < width < 1:
        width = 1
    return math.ceil((high - low) / width) if width else 1


def _number(x: Any) -> float:
    """A statistic; this waits."""
    return float(single(x, "histogram"))


def _extent(x: Array) -> float:
    return float(single(max(x), "histogram") - single(min(x), "histogram"))


def _square_root(x: Array, count: Count) -> float:
    return _extent(x) / math.sqrt(x.size)


def _sturges(x: Array, count: Count) -> float:
    return _extent(x) / (math.log2(x.size) + 1)


def _rice(x: Array, count: Count) -> float:
    return _extent(x) / (2 * x.size ** (1 / 3))


def _scott(x: Array, count: Count) -> float:
    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * _number(std(x))


def _freedman_diaconis(x: Array, count: Count) -> float:
    high, low = percentile(x, [75, 25])
    return 2 * _number(subtract(high, low)) * x.size ** (-1 / 3)


def _auto(x: Array, count: Count) -> float:
    """The narrower one of two rules, where the first is not far narrower than by the square root."""
    narrow = _freedman_diaconis(x, count)
    least = _square_root(x, count) / 2
    widest = _sturges(x, count)
    narrow = least if narrow < least else narrow
    return narrow if narrow < widest else widest


def _doane(x: Array, count: Count) -> float:
    """Sturges' rule with more bins for skewed elements."""
    deviation = _number(std(x)) if x.size > 2 else 0
    if not deviation > 0:
        return 0.0
    size = x.size
    skew = _number(mean(pow(divide(subtract(x, mean(x)), deviation), 3)))
    spread = math.sqrt(6 * (size - 2) / ((size + 1) * (size + 3)))
    return _extent(x) / (1 + math.log2(size) + math.log2(1 + abs(skew) / spread))


def _stone(x: Array, count: Count) -> float:
    """The number of bins with the least estimated loss by leaving one element out."""
    extent, size = _extent(x), x.size
    if size <= 1 or not extent:
        return 0.0

    def loss(bins: int) -> float:
        shares = divide(astype(count(x, bins), dtypes.float64), size)
        return (2 - (size + 1) * _number(sum(multiply(shares, shares)))) * bins / extent

    most = int(math.sqrt(size)) if size > 10_000 else 100
    losses = [loss(bins) for bins in range(1, most + 1)]
    return extent / (1 + losses.index(sorted(losses)[0]))


_RULES: Final[dict[str, Callable[[Array, Count], float]]] = {
    "auto": _auto,
    "doane": _doane,
    "fd": _freedman_diaconis,
    "rice": _rice,
    "scott": _scott,
    "sqrt": _square_root,
    "stone": _stone,
    "sturges": _sturges,
}
