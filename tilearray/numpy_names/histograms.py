"""Counts of numbers in bins, and sums of their weights.

The edges of bins are NumPy's, and an element is in the bin whose edges it lies between, by comparison; the last edge
belongs to the last bin. On a GPU a binary search finds the bins of all elements; of many equal bins, a guess that its
neighbours correct. The numbers of the bins are then counted as integers are: see `tilearray.numpy_names.counting`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty_like
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, semantics
from tilearray.engine.devices import common_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions import binary_search
from tilearray.functions.arguments import (
    all_arrays,
    as_array,
    by_expressions,
    check_kind,
    is_differentiated,
    without_derivative,
)
from tilearray.functions.binary_search import bins_of, search
from tilearray.functions.conversion import astype, single, to_device
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import flip, reshape, unstack
from tilearray.functions.reductions import any, max, min, sum
from tilearray.functions.scans import diff
from tilearray.functions.searching import searchsorted
from tilearray.geometry.layout import Layout
from tilearray.numpy_names.bin_rules import bins_by_rule
from tilearray.numpy_names.counting import counted, real_weights, weighted, weights_beside
from tilearray.numpy_names.on_device import There, there
from tilearray.numpy_names.through_numpy import by_numpy, check_given, exact, float_of, on_host, rounded
from tilearray.ops.arithmetic import add, bitwise_and, choose, divide, greater, less, less_equal, subtract
from tilearray.ops.one_launch import OneLaunch
from tilearray.ops.row import REAL
from tilearray.promotion.scalars import classify

COMPARED_BINS = 2048
"""The most bins in which elements are found without a guess."""

BLOCK = 2**18
"""The narrow numbers of which the host has a wider copy at a time."""


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array]:
    """Return a histogram of all elements and the edges of its bins.

    Parameters
    ----------
    a : Array
        On a GPU the host waits for the least and the largest element if there is neither a range nor edges.
    bins : int, str or sequence of numbers
        The number of bins, a rule of `numpy.histogram_bin_edges` such as "auto", or the edges.
    range : pair of numbers, optional
    density : bool, optional
        Whether the integral over all bins is 1.
    weights : Array, optional
        Sums of weights have a gradient by the weights. On a GPU each bin has the sum of its own weights. On the host,
        as in NumPy, a bin between given edges is a difference of running sums: an infinite weight makes others NaN.

    Examples
    --------
    >>> import tilearray as ta
    >>> counts, edges = ta.histogram([1.0, 2.0, 2.5], bins=2)
    >>> counts.tolist(), edges.tolist()
    ([1, 2], [1.0, 1.75, 2.5])
    """
    array: Array = as_array("histogram", a)
    check_kind("histogram", array.dtype, REAL)
    if not array.device.backend.computes_places:
        if is_differentiated(weights):
            return _of_weights(array, bins, range, density, weights)
        scale = None if weights is None else as_array("histogram", weights)
        weights = None if scale is None else exact("histogram", scale)
        limits = exact("histogram", bins)
        info = dtypes.info(array.dtype)
        if array.size > BLOCK and info.kind == "float" and info.bits < 32 and weights is None and not density:
            found, edges = _by_blocks(array, limits, range)
        else:
            found, edges = by_numpy(
                "histogram", (_comparable(array),), limits, range, density, weights, floats=dtypes.float64
            )
        return _in_their_dtypes(array, scale, density, found, edges, bins)
    flat = _comparable(array if array.ndim == 1 else reshape(array, -1))
    if weights is not None and isinstance(bins, str):
        raise _no_weights("histogram", bins)
    edges, equal = _edges("histogram", flat, bins, range)
    places = _bins(flat, edges, equal)
    size = edges.size
    given = None
    if weights is None:
        found: Any = counted(places, size, 1)
    else:
        given = weights_beside("histogram", weights, array)
        found = astype(_sums(places, size, weights, given), given.dtype)
    if density:
        found = _dense(astype(found, np.result_type(found.dtype, dtypes.float64), copy=False), [edges])
    return _in_their_dtypes(array, given, density, found, edges, bins)


def _no_weights(function: str, rule: str) -> OperandError:
    """The error of a rule that chooses the number of bins, beside weights."""
    return OperandError(f"{function}: expected no weights for bins={rule!r}, got some; write a number of bins")


def _sums(place: Any, size: int, weights: Any, given: Any) -> Any:
    """The sums of weights, whose values are `given`, without those of place 0."""
    if is_differentiated(weights):
        return _differentiated(place, size, weights)
    return weighted(place, size, reshape(given, -1))[1:]


def _dense(counts: Any, edges: list[Any]) -> Any:
    """Counts divided by the widths of the bins along each axis, and by their sum."""
    total = sum(counts)
    for axis, limits in enumerate(edges):
        shape = [1] * len(edges)
        shape[axis] = -1
        counts = divide(counts, reshape(astype(diff(limits), dtypes.float64), tuple(shape)))
    return divide(counts, total)


def _in_their_dtypes(
    array: Array, weights: Array | None, density: Any, counts: Any, edges: Any, bins: Any
) -> tuple[Array, Array]:
    """Return a histogram: sums of weights in the dtype of the weights, densities in `_wide`, edges as `_as_given`."""
    target = float_of("histogram", [array.dtype])
    of_counts = target if weights is None else weights.dtype
    return rounded(counts, _wide(target) if density else of_counts), _as_given(edges, bins, target)


def _as_given(edges: Any, bins: Any, target: np.dtype) -> Array:
    """Return edges of bins in the dtype of the array that was given; those without such a dtype are floats of another.

    >>> import tilearray as ta
    >>> _as_given(ta.asarray([0.0, 1.0]), ta.asarray([0, 1]), dtypes.float16).dtype
    dtype('int64')
    """
    is_given = isinstance(bins, (Array, np.ndarray)) and bins.ndim
    return astype(edges, bins.dtype, copy=False) if is_given else rounded(edges, target)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


def _wide(target: np.dtype) -> np.dtype:
    """Return a dtype of floats, or the default one if that is wider: float16 counts to 2048 only."""
    default = STATE.get().semantics.defaults["float"]
    return default if dtypes.info(target).bits < dtypes.info(default).bits else target


def _comparable(x: Any) -> Any:
    """An array in a dtype in which NumPy counts: narrow floats as float32, and truth values as integers."""
    info = dtypes.info(x.dtype)
    if info.kind == "bool":
        return astype(x, dtypes.uint8)
    return astype(x, dtypes.float32) if info.kind == "float" and info.bits < 32 else x


def _edges(function: str, flat: Any, bins: Any, range: Any) -> tuple[Any, Equal | None]:
    """The edges of bins as an Array beside `flat`: those that are given, or NumPy's; and how to guess a bin."""
    if isinstance(bins, str):
        bins, range = _by_rule(function, flat, bins, range)
    if isinstance(bins, Array) and bins.device is flat.device:
        if bins.ndim:
            return _given_edges(function, bins), None
        bins = single(bins, function)
    words = _words(flat, bins, range)
    known = None if words is None else _EDGES.get(words)
    if known is not None:
        edges, equal = known
        return to_device(edges, flat.device), equal
    found = _edges_of_numpy(function, _extremes(flat, range, function), exact(function, bins), range)
    if not found.size:
        raise ShapeError(f"{function}: expected edges of bins, got none; write a number of bins, or two edges")
    equal = Equal.of(found)
    if words is not None:
        _EDGES.put(words, (asarray(found, device="cpu"), equal))
    return asarray(found, device=flat.device), equal


def _edges_of_numpy(function: str, extremes: np.ndarray, bins: Any, range: Any) -> np.ndarray:
    """NumPy's edges between the least and the largest element."""
    try:
        return np.histogram_bin_edges(extremes, bins, range)
    except ValueError as error:
        raise ShapeError(f"{function}: {error}") from error
    except TypeError as error:
        raise OperandError(f"{function}: {error}; write an int, or edges") from error


def _by_rule(function: str, flat: Any, rule: str, range: Any) -> tuple[int, Any]:
    """The number of bins that a rule chooses, and the range of all elements if none is given."""
    outer = _edges_of_numpy(function, _extremes(flat, range, function), 1, range)

    def counts(x: Array, bins: int) -> Array:
        return histogram(x, bins, range)[0]

    found = bins_by_rule(function, flat, rule, outer, range is not None, counts)
    return found, outer.tolist() if range is None else range


_EDGES: TwoGenerations[tuple[Array, Equal | None]] = TwoGenerations(32)
"""Edges on the host, and how to guess a bin, by the words that asked for them: to find them takes NumPy longer than a
GPU to count."""
MOST_EDGES = 2**16
"""The most bins whose edges are kept: half a megabyte."""


def _words(flat: Any, bins: Any, range: Any) -> tuple[Any, ...] | None:
    """Return all that edges follow from, if these are bins of a range on a GPU, which has a copy; None if not."""
    if bins.__class__ is not int or bins > MOST_EDGES or range.__class__ is not tuple or len(range) != 2:
        return None
    if not {each.__class__ for each in range} <= {int, float} or not flat._signature.device.backend.computes_places:
        return None
    low, high = [each.hex() if each.__class__ is float else each for each in range]  # 0.0 equals -0.0 and 0
    return bins, low, high, flat._signature.dtype


def _given_edges(function: str, bins: Array) -> Any:
    """Edges that lie on the device of the elements, checked there."""
    edges = _comparable(bins)
    if edges.ndim != 1 or edges.size < 2 or single(any(greater(edges[:-1], edges[1:])), function):
        raise ShapeError(
            f"{function}: expected at least two edges of one axis that do not decrease, got shape {edges.shape}; "
            f"write ta.sort(edges)"
        )
    return edges


def _extremes(flat: Any, range: Any, function: str) -> np.ndarray:
    """The least and the largest element, which decide the edges of bins; none are read if there is a range."""
    known = [] if range is not None or not flat.size else [single(each(flat), function) for each in (min, max)]
    return np.array(known, flat.dtype)


class Equal(NamedTuple):
    """Many bins of one width: the first and the last edge, and the bins of a unit."""

    first: float
    last: float
    scale: float

    @classmethod
    def of(cls, edges: np.ndarray) -> Equal | None:
        """Return what guesses a bin of these edges, wrong by at most one; None for few bins, and unequal ones."""
        bins = edges.size - 1
        if bins <= COMPARED_BINS or edges.dtype.kind != "f":
            return None
        first, last = float(edges[0]), float(edges[-1])
        with np.errstate(all="ignore"):
            places = (edges.astype(np.float64) - first) * (bins / (last - first))
        is_equal = bool((np.abs(places - np.arange(bins + 1)) < 0.25).all())  # not if edges are rounded to one another
        return cls(first, last, bins / (last - first)) if is_equal else None


@cache
def _guessing(dtype: np.dtype) -> FixedOperation:
    """Return the operation that guesses the bins of elements, and compares them with the edges of their bins."""
    builder = ExpressionBuilder()
    edges, value = builder.memory(dtype), builder.array(dtype)
    first, last, scale = (builder.number(dtypes.float64) for _ in range(3))
    end, wide = builder.number(dtypes.int64), builder.cast(value, dtype, dtypes.float64)
    guess = "tl.minimum(tl.where({0} >= {1}, ({0} - {1}) * {2}, 0.0), {3}.to(tl.float64)).to(tl.int64)"
    bin = builder.call("guess", (wide, first, scale, end), dtypes.int64, guess)
    below = builder.node("gather", edges, bin)
    above = builder.node("gather", edges, builder.call("next", (bin,), dtypes.int64, "{x} + 1"))
    moved = "{0} + 1 + (({1} >= {3}) & ({0} < {4})).to(tl.int64) - ({1} < {2}).to(tl.int64)"
    text = f"tl.where(({{5}} >= {{6}}) & ({{5}} <= {{7}}), {moved}, 0)"
    place = builder.call("bin", (bin, value, below, above, end, wide, first, last), dtypes.int64, text)
    return FixedOperation("histogram", builder.build([place], [dtypes.int64]))


def _bins(flat: Any, edges: Any, equal: Equal | None) -> Any:
    """The number of the bin of each element, from 1 on; 0 if it is in none."""
    common = np.result_type(flat.dtype, edges.dtype)
    values, limits = astype(flat, common, copy=False), astype(edges, common, copy=False)
    if not flat.device.backend.computes_places:
        places = searchsorted(limits[:-1], values, side="right")
    elif equal is not None:
        out = empty_like(values, dtype=dtypes.int64)
        memory = limits._view(Layout(values.shape, (0,)))
        return run_fixed(_guessing(common), [memory, values, *equal, edges.size - 2], out)
    elif edges.size > 1 and values.size < binary_search.FEW_VALUES:
        return bins_of(limits, values, common)
    else:
        places = search(limits[:-1], values, common, "right")
    return choose(less_equal(values, limits[-1:]), places, 0)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """Return a histogram of pairs and the edges of its bins along both axes.

    Parameters
    ----------
    x, y : Array
        Of one axis and of one size.
    bins : int, sequence of numbers, or a pair of them
        The number of bins along both axes, their edges, or a number or edges for each axis.
    range : pair of pairs of numbers, optional
        On a GPU the host waits for the least and the largest elements if there are neither ranges nor edges.
    density, weights
        As for `histogram`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.histogram2d([0, 0, 1], [0, 1, 1], bins=2)[0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    check_given("histogram2d", (x, y))
    shapes = [as_array("histogram2d", one).shape for one in (x, y)]
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise ShapeError(
            f"histogram2d: expected two arrays of one axis and one size, got shapes {shapes[0]} and {shapes[1]}; "
            f"write ta.reshape(x, -1)"
        )
    each = [bins, bins] if _count(bins) > 2 else _along_axes(bins, 2)
    if is_differentiated(weights) and not by_expressions(as_array("histogram2d", x)):
        plain, first, second = histogram2d(x, y, bins, range, density, without_derivative(weights))  # with all checks
        columns = [as_array("histogram2d", each) for each in (x, y)]
        found = _joint_of_weights("histogram2d", columns, each, range, density, weights, plain.dtype)
        return found, first, second
    given = there("histogram2d", (x, y))
    if given is None:
        counts, edges = _joint_by_numpy("histogram2d", (x, y), bins, each, range, density, weights)
        return counts, edges[0], edges[1]
    columns = given.arrays
    counts, edges = _joint_counts("histogram2d", given, columns, each, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """Return a histogram of points, each a row of `sample`, and the edges of its bins along each axis.

    Parameters
    ----------
    sample : Array, or sequence of Array
        Of shape (points, axes), or of shape (points,) for one axis; a list or a tuple has the numbers along each axis.
    bins : int, or sequence with a number of bins or edges for each axis
    range, density, weights
        As for `histogram2d`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.histogramdd(ta.asarray([[0, 0], [0, 1], [1, 1]]), bins=2)[0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    points = _points(sample)
    each = _along_axes(bins, points.shape[1])
    if is_differentiated(weights) and not by_expressions(points):
        counts, edges = histogramdd(points, bins, range, density, without_derivative(weights))  # with all checks
        columns = list(unstack(points, 1))
        return _joint_of_weights("histogramdd", columns, each, range, density, weights, counts.dtype), edges
    given = there("histogramdd", (points,))
    if given is None:
        return _joint_by_numpy("histogramdd", (points,), bins, each, range, density, weights)
    columns = list(unstack(given.arrays[0], 1))
    return _joint_counts("histogramdd", given, columns, each, range, density, weights)


def _count(bins: Any) -> int:
    """The number of members of a sequence, or of an array with axes; 0 of anything else."""
    has_members = isinstance(bins, (list, tuple)) or (isinstance(bins, (Array, np.ndarray)) and bins.ndim)
    return len(bins) if has_members else 0  # pyright: ignore[reportUnknownArgumentType]


def _along_axes(bins: Any, axes: int) -> list[Any]:
    """The bins along each axis: the members of a sequence or an array, or the same along all."""
    return list(bins) if _count(bins) else [bins] * axes


def _points(sample: Any) -> Array:
    """The points of `histogramdd`, each a row. As for NumPy, a sequence has the numbers along each axis."""
    if isinstance(sample, (list, tuple)):
        given = all_arrays("histogramdd", cast("Sequence[Any]", sample))
        columns = [x if x.ndim else reshape(x, (1,)) for x in given]
        shapes = [x.shape for x in columns]
        if len(set(shapes)) != 1 or columns[0].ndim != 1:
            raise ShapeError(
                f"histogramdd: expected arrays of one axis and one size, got shapes {shapes}; write ta.stack(rows), "
                f"whose rows are points"
            )
        return stack(columns, 1)
    points: Array = as_array("histogramdd", sample)
    if points.ndim > 2 or points.shape[1:] == (0,):
        raise ShapeError(
            f"histogramdd: expected a row for each point, got shape {points.shape}; write ta.reshape(x, (-1, axes))"
        )
    return points if points.ndim == 2 else reshape(points, (-1, 1))


def _along(function: str, x: Any) -> Array:
    """The numbers along the first axis of points, whose dtype is checked."""
    array: Array = as_array(function, x)
    check_kind(function, array.dtype, REAL)
    return array if array.ndim < 2 else array[:, 0]


def _joint_by_numpy(function: str, arrays: Any, bins: Any, each: list[Any], *options: Any) -> tuple[Array, list[Array]]:
    """The counts and the edges of NumPy's function on the host; the last option are the weights."""
    if classify(bins) is None and not issubclass(type(bins), (list, tuple, np.ndarray, Array)):
        raise OperandError(  # NumPy would read an endless iterable to its end
            f"{function}: expected numbers of bins, or edges, got {shown(bins)} of type {type(bins).__name__}; write "
            f"an int or a list"
        )
    several: Any = [exact(function, one) for one in bins] if isinstance(bins, (list, tuple)) else exact(function, bins)  # pyright: ignore[reportUnknownVariableType]
    columns = [_along(function, one) for one in arrays]
    scale = exact(function, real_weights(function, options[-1], columns[0]))
    counts, *found = by_numpy(function, arrays, several, *options[:-1], scale, floats=dtypes.float64)
    target = float_of(function, [as_array(function, one).dtype for one in arrays])
    edges: Any = found[0] if function == "histogramdd" else found
    return rounded(counts, _wide(target)), [_as_given(one, given, target) for one, given in zip(edges, each)]


def _joint_counts(
    function: str, given: There, columns: list[Any], bins: Any, range: Any, density: bool | None, weights: Any
) -> tuple[Array, list[Array]]:
    """How many points lie in each bin of a grid, and the edges along its axes."""
    place, edges = _joint_bins(function, columns, bins, range)
    sizes = tuple([one.size - 1 for one in edges])
    cells = math.prod(sizes)
    if weights is None:
        found: Any = counted(place, cells + 1, 1)
    else:
        found = _sums(place, cells + 1, weights, real_weights(function, weights, place))
    counts = reshape(astype(found, dtypes.float64), sizes)
    counts = _dense(counts, edges) if density else counts
    return rounded(counts, _wide(given.target)), [
        _as_given(one, known, given.target) for one, known in zip(edges, bins)
    ]


def _joint_bins(function: str, columns: list[Any], bins: Any, range: Any) -> tuple[Any, list[Any]]:
    """The number of the cell of each point, from 1 on, or 0 if it is in none; and the edges along the axes."""
    ranges = [None] * len(columns) if range is None else range
    if not len(columns) == len(bins) == len(ranges):
        raise ShapeError(
            f"{function}: expected bins and ranges for {len(columns)} axes, got {len(bins)} and {len(ranges)}; "
            f"write one for each axis"
        )
    for column in columns:
        check_kind(function, column.dtype, REAL)
    common = np.result_type(*[column.dtype for column in columns])
    flat = [_comparable(astype(column, common, copy=False)) for column in columns]
    found = [_edges(function, column, one, span) for column, one, span in zip(flat, bins, ranges)]
    place: Any = 0
    is_inside: Any = True
    for column, (limits, equal) in zip(flat, found):
        number = _bins(column, limits, equal)
        place = add(place * (limits.size - 1), subtract(number, 1))
        is_inside = bitwise_and(greater(number, 0), is_inside)
    return choose(is_inside, add(place, 1), 0), [limits for limits, _ in found]


# --- gradients by weights, of elements on the host --------------------------------------------------------------------


def _of_weights(array: Any, bins: Any, range: Any, density: Any, weights: Any) -> tuple[Array, Array]:
    """A histogram by weights that are differentiated: the elements and the edges are constants."""
    plain, edges = histogram(array, bins, range, density, without_derivative(weights))  # with all checks
    place, (found,) = _joint_bins("histogram", [reshape(array, -1)], [bins], None if range is None else [range])
    counts = _differentiated(place, found.size, weights)
    return astype(_dense(counts, [found]) if density else counts, plain.dtype), edges


def _joint_of_weights(
    function: str, columns: list[Any], bins: Any, range: Any, density: Any, weights: Any, dtype: np.dtype
) -> Any:
    """The counts of a grid of bins by weights that are differentiated."""
    place, edges = _joint_bins(function, columns, bins, range)
    sizes = tuple([one.size - 1 for one in edges])
    counts = reshape(_differentiated(place, math.prod(sizes) + 1, weights), sizes)
    return astype(_dense(counts, edges) if density else counts, dtype)


def _differentiated(place: Any, size: int, weights: Any) -> Any:
    """The sums of weights that are differentiated, without those of place 0."""
    wide = dtypes.complex128 if dtypes.info(weights.dtype).kind == "complex" else dtypes.float64
    given = reshape(astype(weights, wide), -1)
    return weights._signature.device.functions.counted(place, given, size)[1:]


def _by_blocks(x: Array, bins: Any, span: Any) -> tuple[Array, Array]:
    """The histogram of narrow numbers on the host, of which NumPy takes a wider copy."""
    flat = reshape(x, -1)
    if span is None and not isinstance(bins, str) and np.ndim(bins) == 0:
        span = tuple([on_host("histogram", extreme(flat))[()] for extreme in (min, max)])
    if isinstance(bins, str) or (span is not None and not np.isfinite(span).all()):  # needs all, or is an error
        return by_numpy("histogram", (flat,), bins, span, floats=dtypes.float64)
    blocks = [flat[start : start + BLOCK] for start in range(0, flat.size, BLOCK)]
    counts, edges = by_numpy("histogram", (blocks[0],), bins, span, floats=dtypes.float64)
    for block in blocks[1:]:
        counts = add(counts, by_numpy("histogram", (block,), bins, span)[0])
    return counts, edges


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """Return the edges of the bins that `histogram` uses.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.histogram_bin_edges([1.0, 2.0, 2.5], bins=2)
    Array([1.  , 1.75, 2.5 ], dtype=float32, device='cpu')
    """
    array: Array = as_array("histogram_bin_edges", a)
    check_kind("histogram_bin_edges", array.dtype, REAL)
    if array.device.backend.computes_places:
        if weights is not None and isinstance(bins, str):
            raise _no_weights("histogram_bin_edges", bins)
        found, _ = _edges("histogram_bin_edges", _comparable(reshape(array, -1)), bins, range)
        return _as_given(found, bins, float_of("histogram_bin_edges", [array.dtype]))
    weights = None if weights is None else exact("histogram_bin_edges", as_array("histogram_bin_edges", weights))
    limits = exact("histogram_bin_edges", bins)
    found = by_numpy("histogram_bin_edges", (_comparable(array),), limits, range, weights, floats=dtypes.float64)
    return _as_given(found, bins, float_of("histogram_bin_edges", [array.dtype]))


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Return the index of the bin of each element; `bins` are sorted edges, ascending or descending.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    Array([1, 4, 3], dtype=int64, device='cpu')
    """
    array: Array = without_derivative(as_array("digitize", x))
    check_kind("digitize", array.dtype, REAL)
    bins = without_derivative(bins) if isinstance(bins, Array) else bins
    if not array.device.backend.computes_places:
        return by_numpy("digitize", (array, bins), right)
    given = bins if isinstance(bins, Array) else asarray(bins, device=array.device)
    common_device("digitize", [array._signature, given._signature])
    check_kind("digitize", given.dtype, REAL)
    values, edges = _comparable(array), _comparable(given)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: expected edges of one axis, got shape {edges.shape}; write ta.reshape(bins, -1)")
    rises, falls = _turns(edges if isinstance(bins, Array) else bins)
    if rises and falls:
        raise ShapeError("digitize: expected bins that increase or decrease monotonically; write sorted edges")
    common = np.result_type(values.dtype, edges.dtype)
    found = search(flip(edges) if falls else edges, values, common, "left" if right else "right")
    return subtract(edges.size, found) if falls else found


def _turns(edges: Any) -> tuple[bool, bool]:
    """Whether an edge is larger than the one before, and whether one is smaller. Edges on a GPU are waited for once."""
    if not isinstance(edges, Array):
        steps = np.asarray(edges)
        return bool((steps[:-1] < steps[1:]).any()), bool((steps[:-1] > steps[1:]).any())
    if edges.size < 2:
        return False, False
    with semantics("numpy"):
        falls, rises = divmod(single(_turning(edges[:-1], edges[1:]), "digitize"), 2**32)
    return rises > 0, falls > 0


@OneLaunch
def _turning(x: Array, y: Array) -> Array:
    """How many neighbours rise, and 2**32 for each pair that falls."""
    return sum(add(choose(less(x, y), 1, 0), choose(greater(x, y), 2**32, 0)))
