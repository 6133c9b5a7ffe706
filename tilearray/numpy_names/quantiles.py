"""Medians and quantiles on a device that sorts by expressions: the elements beside a place in sorted rows.

Places and weights are NumPy's. A place follows from the number of elements on the host, or where NaNs do not count,
from the number of others in each row. Elements are interpolated in float64 if `q` is a sequence or elements are
integers, else in their own dtype, float32 at least. Then they are rounded to the dtype of the result.

float16 is computed here on the host as well: NumPy would interpolate in float16, or take a copy in float32. Its
`partition` needs less time than a sort; it takes the places that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor, nan, prod
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import arange, empty, full
from tilearray.engine.devices import common_device
from tilearray.engine.signature import from_host
from tilearray.errors import DeviceError, DTypeError, GradientError, ShapeError, shown
from tilearray.functions.arguments import as_array, by_expressions, check_kind, is_differentiated
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.distinct import taken
from tilearray.functions.indexing.take import take, take_along_axis
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import moveaxis, reshape
from tilearray.functions.ordering import sorted_along
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import max as largest
from tilearray.functions.reductions import sum
from tilearray.functions.searching import sort
from tilearray.geometry.shapes import normalize_axes, reduced_shape
from tilearray.numpy_names.distinct import lexsort
from tilearray.numpy_names.through_numpy import by_numpy, exact, float_of
from tilearray.ops.arithmetic import choose, logical_not, maximum, minimum
from tilearray.ops.number_parts import floor as floors
from tilearray.ops.number_parts import isnan
from tilearray.ops.row import REAL, C

Place = Callable[[int, float], tuple[int, float | None]]


def _at(virtual: float, size: int) -> tuple[int, float | None]:
    """The element before a place between 0 and the last one, and the weight of the next element."""
    inside = min(max(virtual, 0.0), size - 1.0)
    return floor(inside), inside - floor(inside)


def _between(alpha: float, beta: float) -> Place:
    """The place of Hyndman and Fan for two parameters (Sample Quantiles in Statistical Packages, 1996)."""
    return lambda size, part: _at(size * part + (alpha + part * (1 - alpha - beta)) - 1, size)


def _closest(size: int, part: float) -> tuple[int, float | None]:
    place = size * part - 1.5
    is_tie = place == floor(place) and floor(place) % 2 == 1
    return max(floor(place) + (not is_tie), 0), None


def _averaged(size: int, part: float) -> tuple[int, float | None]:
    before, weight = _at(size * part - 1, size)
    return before, 0.0 if size * part < 1 else 1.0 if weight else 0.5


def _middle(size: int, part: float) -> tuple[int, float | None]:
    before, weight = _at((size - 1) * part, size)
    return before, 0.5 if weight else 0.0


METHODS: Final[dict[str, Place]] = {
    "linear": lambda size, part: _at((size - 1) * part, size),
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
    "midpoint": _middle,
    "averaged_inverted_cdf": _averaged,
    "lower": lambda size, part: (floor((size - 1) * part), None),
    "higher": lambda size, part: (ceil((size - 1) * part), None),
    "nearest": lambda size, part: (round((size - 1) * part), None),
    "inverted_cdf": lambda size, part: (max(ceil(size * part - 1), 0), None),
    "closest_observation": _closest,
}
"""For each of NumPy's methods the element before the place of a quantile, and the weight of the next element.

Methods that take one element have no weight.
"""


def runs_there(
    function: str, a: Array, method: str = "linear", weights: Any = None, *, skips_nan: bool = False
) -> bool:
    """Whether the quantiles of an array are computed on its device, and not by NumPy.

    Raises
    ------
    DeviceError
        If the array is on a device where the method is not known, or where weights are not.
    GradientError
        If there are weights, and a derivative is asked for.

    Examples
    --------
    >>> import tilearray as ta
    >>> runs_there("median", ta.asarray([1, 2], device="cpu"))
    False
    """
    check_kind(function, a.dtype, _kinds(function))
    known = ["linear"] if skips_nan else list(METHODS)
    if by_expressions(a) and method not in known:
        raise DeviceError(
            f"{function}: expected method as {', '.join(map(repr, known))} for an array on {a.device}, got "
            f"{shown(method)}; write method='linear', or x.to_device('cpu')"
        )
    if weights is not None:
        if is_differentiated(a) or is_differentiated(weights):
            raise GradientError(f"{function}: quantiles with weights have no derivative; leave the weights out")
        if by_expressions(a):
            raise DeviceError(
                f"{function}: expected no weights for an array on {a.device}; leave them out, or write "
                f"x.to_device('cpu')"
            )
        return False
    is_ours = by_expressions(a) or (a.device.backend.on_host and (a.dtype == dtypes.float16 or not a.size))
    return is_ours and method in known


def _kinds(function: str) -> frozenset[str]:
    """Return the kinds of dtypes that have a quantile. NumPy orders complex numbers for a median alone."""
    return REAL | C if function.endswith("median") else REAL


def quantile_by_numpy(
    function: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: bool, weights: Any
) -> Array:
    """Return quantiles by NumPy, with weights if there are any."""
    options: dict[str, Any] = {} if weights is None else {"weights": np.asarray(exact(function, weights))}
    return by_numpy(
        function,
        (a,),
        parts_of(function, as_array(function, a), q),
        axis=axis,
        method=method,
        keepdims=keepdims,
        out=out,
        **options,
    )


def parts_of(function: str, x: Array, q: Any) -> Any:
    """Return `q` as a number or data of the host. If it is an Array on the GPU of `x`, the call waits for it.

    Raises
    ------
    DeviceError
        If it is on a GPU where `x` is not.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros(3, device="cpu")
    >>> parts_of("quantile", x, 0.5), parts_of("quantile", x, ta.asarray([0.25], device="cpu"))
    (0.5, array([0.25], dtype=float32))
    """
    if not isinstance(q, Array) or q.device.backend.on_host:
        return exact(function, q)
    common_device(function, [x._signature, q._signature])
    return to_numpy(q)


def hundredths(q: Any) -> Any:
    """Return percentiles as parts of one.

    >>> hundredths(25), hundredths([50, 75])
    (0.25, array([0.5 , 0.75]))
    """
    return q / 100 if isinstance(q, (int, float)) else np.asarray(q, np.float64) / 100


class _Rows:
    """The sorted rows of a reduction.

    Attributes
    ----------
    elements : Array
        All rows in one axis, each sorted; NaN is last.
    count, extent : int
        The number of rows, and their size.
    dtype, result : numpy.dtype
        In which elements are interpolated, and the dtype of the result.
    shape : tuple of int
        The shape of the result.
    numbers : Array or None
        How many elements of each row are not NaN, if only these count.
    """

    def __init__(
        self,
        function: str,
        a: Array,
        axis: Any,
        keepdims: bool,
        weak: bool,
        skips_nan: bool,
        places: Callable[[int], Iterable[int]],
    ) -> None:
        info = dtypes.info(a.dtype)
        axes = tuple(range(a.ndim)) if axis is None else normalize_axes(axis, a.ndim, function)
        self.shape = reduced_shape(a.shape, axes, keepdims)
        self.extent = prod([a.shape[place] for place in axes])
        self.count = a.size // self.extent
        moved = reshape(moveaxis(a, axes, tuple(range(-len(axes), 0))), (self.count, self.extent))
        self.is_float = info.kind in ("float", "complex")
        skips = skips_nan and self.is_float and (by_expressions(a) or bool(isnan(largest(a))))
        rows = _ordered(moved, None if skips else {*places(self.extent), self.extent - 1})
        self.elements = reshape(rows, -1)
        self.dtype = (a.dtype if info.bits > 16 else dtypes.float32) if self.is_float and weak else dtypes.float64
        self.result = float_of(function, [a.dtype])
        self.numbers = sum(logical_not(isnan(rows)), axis=1, dtype=dtypes.int64) if skips else None

    def elements_at(self, place: int) -> Array:
        """Return the elements at a place of each row."""
        return self.elements[place :: self.extent]

    def at(self, place: Any) -> Array:
        """Return the elements at a place of each row, or at places; in the dtype of computation."""
        if isinstance(place, int):
            found = self.elements_at(place)
        else:
            inside = minimum(maximum(place, 0), self.extent - 1)
            first = arange(0, self.count * self.extent, self.extent, dtype=dtypes.int64, device=inside.device)
            found = (taken if by_expressions(inside) else take)(self.elements, first + inside)
        return astype(found, self.dtype, copy=False)

    def finished(self, found: Array) -> Array:
        """Return results of all rows in their shape and dtype; NaN of rows in which it counts."""
        if self.is_float and self.numbers is None:
            last = self.at(self.extent - 1)
            found = choose(isnan(last), last, astype(found, last.dtype, copy=False))
        target = self.result if self.is_float or dtypes.info(found.dtype).kind == "float" else found.dtype
        return astype(reshape(found, self.shape), target, copy=False)


def _ordered(rows: Array, places: set[int] | None) -> Array:
    """Return rows that are sorted at some places; None are all."""
    if dtypes.info(rows.dtype).kind == "complex" and by_expressions(rows):
        return take_along_axis(rows, lexsort((rows,), 1), 1)
    if by_expressions(rows):
        return sorted_along(rows, 1, False)
    if places is None:
        return sort(rows)
    return from_host(np.partition(to_numpy(rows), sorted(places), 1), Array)


def _of_nothing(
    function: str, a: Array, axis: Any, keepdims: bool, parts: tuple[int, ...] = (), method: str = "linear"
) -> Array:
    """No quantiles, or those of an array of size 0: NaN for each row without elements, in which `quantile` finds none.

    `parts` are the axes of the quantiles that are asked for.
    """
    axes = tuple(range(a.ndim)) if axis is None else normalize_axes(axis, a.ndim, function)
    shape = reduced_shape(a.shape, axes, keepdims)
    if not a.size and function in ("quantile", "percentile") and prod(shape):
        raise ShapeError(
            f"{function}: expected at least one element to choose from, got shape {a.shape}; "
            f"write ta.{function}(x, ...) only if x.size > 0"
        )
    shape = (*parts, *shape)
    if not prod(shape) and METHODS[method](1, 0.0)[1] is None:  # elements, in their dtype
        return empty(shape, a.dtype, device=a.device)
    return full(shape, nan, float_of(function, [a.dtype]), device=a.device)


def median_there(function: str, a: Array, axis: Any, out: Any, keepdims: bool, *, skips_nan: bool = False) -> Array:
    """Return the median of an array for which `runs_there`."""
    if not a.size:
        return finished(function, _of_nothing(function, a, axis, keepdims), out)
    rows = _Rows(function, a, axis, keepdims, True, skips_nan, lambda size: ((size - 1) // 2, size // 2))
    size: Any = rows.extent if rows.numbers is None else rows.numbers
    low, high = rows.at((size - 1) // 2), rows.at(size // 2)
    middle = (low + high) / 2
    if rows.numbers is not None:
        middle = choose(rows.numbers % 2 == 0, middle, low)
    elif size % 2:
        middle = low
    return finished(function, rows.finished(middle), out)


def quantile_there(
    function: str,
    a: Array,
    q: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    *,
    skips_nan: bool = False,
    method: str = "linear",
) -> Array:
    """Return quantiles of an array for which `runs_there`; `q` is a number, or Python data of one or no axis."""
    parts = np.asarray(q, np.float64)
    if not ((parts >= 0) & (parts <= 1)).all():
        limit = 100 if function.endswith("percentile") else 1
        raise ShapeError(f"{function}: expected q from 0 to {limit}; write a part of the elements")
    if method == "linear" and np.asarray(q).dtype.kind in "bui":
        method = "lower"  # of 0 and 1, which are elements, as NumPy takes them
    if a.dtype == dtypes.bool_ and METHODS[method](1, 0.5)[1] is not None:
        raise DTypeError(f"{function}: expected numbers to interpolate between, got bool; write x.astype('uint8')")
    if not a.size or not parts.size:
        return finished(function, _of_nothing(function, a, axis, keepdims, parts.shape, method), out)
    several = parts.ravel().tolist()
    weak = isinstance(q, (int, float))
    rows = _Rows(function, a, axis, keepdims, weak, skips_nan, lambda size: _places(size, several, method))
    found = [rows.finished(_interpolated(rows, part, method)) for part in several]
    if parts.ndim:
        return finished(function, reshape(stack(found), (*parts.shape, *rows.shape)), out)
    return finished(function, found[0], out)


def _places(size: int, parts: list[float], method: str) -> Iterator[int]:
    """Yield the places beside parts of a row of a size."""
    for part in parts:
        before, _ = METHODS[method](size, part)
        yield from (before, min(before + 1, size - 1))


def _interpolated(rows: _Rows, part: float, method: str) -> Array:
    """Return what lies at a part of each row, between the elements beside the place."""
    if rows.numbers is None:
        before, weight = METHODS[method](rows.extent, part)
        if weight is None:
            return rows.elements_at(before)
        low, high = rows.at(before), rows.at(min(before + 1, rows.extent - 1))
        return low + (high - low) * weight if weight < 0.5 else high - (high - low) * (1 - weight)
    places = astype(rows.numbers - 1, dtypes.float64) * part
    whole = floors(places)
    before = astype(whole, dtypes.int64)
    low, high = rows.at(before), rows.at(minimum(before + 1, rows.numbers - 1))
    weights = astype(places - whole, rows.dtype, copy=False)
    return choose(weights < 0.5, low + (high - low) * weights, high - (high - low) * (1 - weights))
