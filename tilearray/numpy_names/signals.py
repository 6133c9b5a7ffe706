"""Functions of samples along an axis: convolutions, differences, angles.

On the host NumPy computes them. On a GPU they are our operations, with NumPy's formulas and dtypes, and no call waits
for values. Sums of products there are accumulated and rounded as those of `vecdot`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.context import semantics
from tilearray.engine.devices import common_device
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions.arguments import as_array, as_array_beside, check_kind, is_differentiated
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import flip, new_like, reshape, sliding_window_view
from tilearray.functions.products import vecdot
from tilearray.functions.reductions import any, sum
from tilearray.functions.scans import diff, scan
from tilearray.geometry.shapes import normalize_axes, normalize_axis
from tilearray.numpy_names.on_device import as_read, there
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.numpy_names.windowed_sums import windowed_sums
from tilearray.ops.arithmetic import (
    abs,
    add,
    bitwise_and,
    choose,
    divide,
    equal,
    greater,
    less,
    multiply,
    remainder,
    subtract,
)
from tilearray.ops.execute import fill, store
from tilearray.ops.number_parts import conj
from tilearray.ops.row import NUMERIC, REAL

# --- sums of products ----------------------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """Return the discrete convolution of two arrays of one axis.

    Parameters
    ----------
    a, v : Array
        Of shapes (N,) and (M,).
    mode : {"full", "same", "valid"}
        All N + M - 1 places where both overlap, the max(N, M) in the middle of them, or the places where the shorter
        array lies within the longer one.

    Raises
    ------
    ShapeError
        If an array has no elements or more than one axis, or `mode` is another word.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.convolve([1, 2, 3], [0, 1])
    Array([0, 1, 2, 3], dtype=int64, device='cpu')
    """
    given = there("convolve", (a, v))
    if given is None:
        return by_numpy("convolve", (a, v), mode)
    with semantics("numpy"):
        x, y = _signals("convolve", given.arrays)
        if y.size > x.size:
            x, y = y, x
        return given.finished(_slid(x, flip(y), _overlap("convolve", mode, y.size), ""))


def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """Return the cross-correlation of two arrays of one axis: the sums of ``a[n + k] * conj(v[n])``.

    Parameters and errors are those of `convolve`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.correlate([1, 2, 3], [0, 1])
    Array([2, 3], dtype=int64, device='cpu')
    """
    given = there("correlate", (a, v))
    if given is None:
        return by_numpy("correlate", (a, v), mode)
    with semantics("numpy"):
        x, y = _signals("correlate", given.arrays)
        overlap = _overlap("correlate", mode, x.size if x.size < y.size else y.size)
        if y.size <= x.size:
            return given.finished(_slid(x, y, overlap, "short"))
        return given.finished(flip(_slid(y, x, overlap, "long")))


def _signals(function: str, arrays: list[Array]) -> list[Array]:
    """Two arrays of one axis, in their common dtype."""
    found = [x if x.ndim else reshape(x, (1,)) for x in arrays]
    for x in found:
        if x.ndim > 1 or not x.size:
            raise ShapeError(
                f"{function}: expected arrays of one axis with elements, got shape {x.shape}; write ta.reshape(x, -1)"
            )
    common = np.result_type(*[x.dtype for x in found])
    return [astype(x, common, copy=False) for x in found]


def _overlap(function: str, mode: Any, size: int) -> tuple[int, int]:
    """How many elements of the shorter array may lie before the longer one, and after it."""
    ends = {"full": (size - 1, size - 1), "same": (size // 2, size - size // 2 - 1), "valid": (0, 0)}
    if mode not in ends:
        raise ShapeError(
            f"{function}: expected mode as 'full', 'same' or 'valid', got {shown(mode)}; write one of them"
        )
    return ends[mode]


def _conjugate(x: Array) -> Array:
    return conj(x) if dtypes.info(x.dtype).kind == "complex" else x


def _slid(x: Array, y: Array, overlap: tuple[int, int], conjugated: str) -> Array:
    """The sums of products of an array and a shorter one, at every place."""
    if is_differentiated(x) or is_differentiated(y):
        x, y = (_conjugate(x) if conjugated == "long" else x), (y if conjugated == "short" else _conjugate(y))
        return _in_reductions(x, y, overlap)
    return windowed_sums(x, y, *overlap, conjugated)


def _in_reductions(x: Array, y: Array, overlap: tuple[int, int]) -> Array:
    """The sums of products of an array and the conjugates of a shorter one, by functions that have gradients."""
    before, after = overlap
    size = y.size
    if not before + after:
        return vecdot(y, sliding_window_view(x, size))
    if x.size * size <= _AT_ONCE or x.size < before + after:
        return _padded(x, y, before, after)
    inside = vecdot(y, sliding_window_view(x, size))
    parts = [_padded(x[: size - 1], y, before, 0)] if before else []
    parts.append(inside)
    return concat(parts + ([_padded(x[1 - size :], y, 0, after)] if after else []))


_AT_ONCE = 1 << 22
"""Up to so many products one launch with a mask takes less time than one for the middle and two for the ends."""


def _padded(x: Array, y: Array, before: int, after: int) -> Array:
    """The sums of products where elements beyond the ends of the first array do not count."""
    shape = (before + x.size + after,)
    longer, inside = (fill(new_like(x, shape, dtype), 0, "convolve") for dtype in (x.dtype, dtypes.bool_))
    place = slice(before, before + x.size)
    store(get(longer, place), x)
    fill(get(inside, place), True, "convolve")
    return _sums_of_products()(y, sliding_window_view(longer, y.size), sliding_window_view(inside, y.size))


@cache
def _sums_of_products() -> Any:
    """Return a fused function of values, windows of others, and masks of those windows: one launch.

    A value beside an element that the mask leaves out does not count, though it is NaN.
    """
    from tilearray.arrays.fusion.fuse import fuse  # here: few programs need it

    @fuse
    def sums(y: Any, windows: Any, inside: Any) -> Any:
        products = choose(inside, multiply(_conjugate(y), windows), False if y.dtype == dtypes.bool_ else 0)
        return any(products, -1) if y.dtype == dtypes.bool_ else sum(products, -1, y.dtype)

    return sums


# --- differences ---------------------------------------------------------------------------------------------------


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences along axes, one-sided at the ends: an array, or one for each axis.

    Parameters
    ----------
    f : Array
    *varargs : number or Array
        The distance of neighbours along all axes, or for each axis the distance or the places of the samples, 1-d.
    axis : int or tuple of int, optional
        None takes all axes.
    edge_order : {1, 2}
        The order of the differences at the ends.

    Raises
    ------
    ShapeError
        If there are too few elements along an axis, or places of another number.
    OperandError
        If there are not as many distances as axes.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.gradient([1.0, 2.0, 4.0, 7.0])
    Array([1. , 1.5, 2.5, 3. ], dtype=float32, device='cpu')
    """
    whole = as_array("gradient", f)
    check_kind("gradient", whole.dtype, NUMERIC)
    axes = tuple(range(whole.ndim)) if axis is None else normalize_axes(axis, whole.ndim, "gradient")
    if edge_order not in (1, 2):
        raise ShapeError(f"gradient: expected edge_order as 1 or 2, got {shown(edge_order)}; write edge_order=2")
    for place in axes:
        if whole.shape[place] <= edge_order:
            raise ShapeError(
                f"gradient: expected at least {edge_order + 1} elements along axis {place}, got {whole.shape[place]}; "
                f"write axis="
            )
    given = there("gradient", (f,))
    if given is None:
        spacings = [exact("gradient", one if np.ndim(one) == 0 else as_array("gradient", one)) for one in varargs]
        return by_numpy("gradient", (whole,), *spacings, axis=axis, edge_order=edge_order)
    (x,) = given.arrays
    with semantics("numpy"):
        if dtypes.info(x.dtype).kind not in ("float", "complex"):
            x = astype(x, dtypes.float64)
        steps = _steps(x, axes, varargs)
        found = [given.finished(_differences(x, place, step, edge_order)) for place, step in zip(axes, steps)]
    return found[0] if len(axes) == 1 else tuple(found)


def _steps(x: Array, axes: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """For each axis the distance of neighbours: a number, or an Array of one axis."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        given *= len(axes)
    if len(given) != len(axes):
        raise OperandError(
            f"gradient: expected a distance for each of {len(axes)} axes, got {len(given)}; write one for all, or axis="
        )
    return [_step(x, place, one) for place, one in zip(axes, given)]


def _step(x: Array, axis: int, given: Any) -> Any:
    if isinstance(given, (int, float)):
        return float(given)
    places: Array = as_read("gradient", as_array_beside("gradient", given, x))
    common_device("gradient", [x._signature, places._signature])
    if not places.ndim:
        return places
    if places.shape != (x.shape[axis],):
        raise ShapeError(
            f"gradient: expected {x.shape[axis]} places along axis {axis}, got shape {places.shape}; "
            f"write one for each element"
        )
    if dtypes.info(places.dtype).kind in ("int", "uint"):
        places = astype(places, dtypes.float64)
    return diff(places)


def _differences(x: Array, axis: int, step: Any, edge_order: int) -> Array:
    """The central differences along one axis."""
    front = (slice(None),) * axis

    def at(start: int, stop: int | None) -> Array:
        return get(x, (*front, slice(start, stop)))

    is_even = not isinstance(step, Array) or not step.ndim
    first, last = (step, step) if is_even else (step[:1], step[-1:])
    if edge_order == 1:
        ends = [divide(subtract(at(1, 2), at(0, 1)), first), divide(subtract(at(-1, None), at(-2, -1)), last)]
    else:
        second, before = (step, step) if is_even else (step[1:2], step[-2:-1])
        ends = [
            _weighted(_forward(first, second), [at(0, 1), at(1, 2), at(2, 3)]),
            _weighted(_backward(before, last), [at(-3, -2), at(-2, -1), at(-1, None)]),
        ]
    found = new_like(x, x.shape)
    store(get(found, (*front, slice(1))), ends[0])
    store(get(found, (*front, slice(-1, None))), ends[1])
    inner = get(found, (*front, slice(1, -1)))
    if is_even:
        _interior()[0](at(0, -2), at(2, None), step, inner)
    else:
        steps = [reshape(one, (-1, *[1] * (x.ndim - axis - 1))) for one in (step[:-1], step[1:])]
        _interior()[1](at(0, -2), at(1, -1), at(2, None), *steps, inner)
    return found


@cache
def _interior() -> tuple[Any, Any]:
    """Return fused functions that write central differences between the ends: for one distance, and for many."""
    from tilearray.arrays.fusion.fuse import fuse  # here: few programs need it

    @fuse
    def even(low: Any, high: Any, step: Any, out: Any) -> Any:
        return divide(high - low, 2.0 * step, out=out)

    @fuse
    def uneven(low: Any, middle: Any, high: Any, before: Any, after: Any, out: Any) -> Any:
        both = before + after
        first = low * (-after / (before * both)) + middle * ((after - before) / (before * after))
        return add(first, high * (before / (after * both)), out=out)

    return even, uneven


def _forward(first: Any, second: Any) -> list[Any]:
    """The weights of the first three elements in a difference of the second order."""
    both = first + second
    return [-(first + both) / (first * both), both / (first * second), -first / (second * both)]


def _backward(before: Any, last: Any) -> list[Any]:
    """The weights of the last three elements."""
    both = before + last
    return [last / (before * both), -both / (before * last), (last + both) / (last * both)]


def _weighted(weights: list[Any], elements: list[Array]) -> Array:
    """The sum of three elements with weights."""
    first, second, third = (multiply(element, weight) for element, weight in zip(elements, weights))
    return add(add(first, second), third)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 6.283185307179586) -> Array:
    """Return angles with multiples of a period added, so that neighbours differ by at most half of it.

    Parameters
    ----------
    p : Array
    discont : number, optional
        Smaller differences stay; half of the period if it is None.
    axis : int
    period : number

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unwrap([0, 3, 2, 5], period=4)
    Array([ 0, -1, -2, -3], dtype=int64, device='cpu')
    """
    whole = as_array("unwrap", p)
    check_kind("unwrap", whole.dtype, REAL)
    place = normalize_axis(axis, whole.ndim, "unwrap")
    given = there("unwrap", (p,))
    if given is None:
        return by_numpy("unwrap", (p,), discont, place, period=period)
    (x,) = given.arrays
    with semantics("numpy"):
        steps = diff(x, axis=place)
        wide = np.result_type(steps.dtype, period)
        front = (slice(None),) * place
        whole = astype(x, wide, copy=False)
        if not steps.size:
            return given.finished(whole.copy())
        corrections = _corrections(astype(steps, wide, copy=False), period, period / 2 if discont is None else discont)
        sums = scan("unwrap", "add", corrections, place, wide)
        later = add(get(whole, (*front, slice(1, None))), sums)
        return given.finished(concat([get(whole, (*front, slice(1))), later], place))


def _corrections(steps: Array, period: Any, discont: Any) -> Array:
    """The multiples of the period that bring differences of neighbours into its middle."""
    is_whole = steps.dtype.kind in "iu"
    half = period // 2 if is_whole else period / 2
    near = add(remainder(add(steps, half), period), -half)
    if not (is_whole and period % 2):
        near = choose(bitwise_and(equal(near, -half), greater(steps, 0)), half, near)
    return choose(less(abs(steps), discont), 0, subtract(near, steps))
