"""Along one axis: running sums and products, on the host through NumPy, and differences, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilearray.engine.signature import A
from tilearray.errors import ShapeError
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import _checked
from tilearray.functions.on_host import NUMERIC, accumulator, array_of, check_kind, on_host, values
from tilearray.functions.reductions import sum_dtype
from tilearray.geometry.shapes import as_int, normalize_axis


def cumulative_sum(x: A, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> A:
    """Return the sums of all elements up to each one along an axis.

    Parameters
    ----------
    x : Array
        Of any kind, on the host. Floats are accumulated in float64, and each result is rounded once.
    axis : int, optional
        May be left out where there is only one.
    dtype : dtype or name, optional
        Of the result; as for `sum`.
    include_initial : bool
        Whether a 0 comes first; the axis is longer by 1 then.

    Raises
    ------
    ShapeError
        If there is no such axis, or `axis` is left out and there is not exactly one.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_sum(ta.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64, device='cpu')
    """
    return _scanned("cumulative_sum", np.add, x, axis, dtype, include_initial)


def cumulative_prod(x: A, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> A:
    """Return the products of all elements up to each one along an axis; the initial value, if it is included, is 1.

    Parameters and errors are those of `cumulative_sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_prod(ta.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [3, 8]]
    """
    return _scanned("cumulative_prod", np.multiply, x, axis, dtype, include_initial)


def _scanned(function: str, ufunc: np.ufunc, x: A, axis: Any, dtype: Any, include_initial: bool) -> A:
    shape = on_host(function, x).shape
    if axis is None and len(shape) != 1:
        raise ShapeError(
            f"{function}: expected axis= for an array of {len(shape)} axes, got none; "
            f"write axis=-1, or ta.reshape(x, -1) for all elements"
        )
    place = normalize_axis(0 if axis is None else axis, len(shape), function)
    result = sum_dtype(function, x, dtype)
    wide = accumulator(result)
    with np.errstate(all="ignore"):
        scanned = ufunc.accumulate(values(x, result), axis=place, dtype=wide)
    if include_initial:
        first = np.full((*shape[:place], 1, *shape[place + 1 :]), ufunc.identity, wide)
        scanned = np.concatenate([first, scanned], axis=place)
    return array_of(scanned, result, x)


def diff(x: A, /, *, axis: int = -1, n: int = 1, prepend: A | None = None, append: A | None = None) -> A:
    """Return the n-th differences of neighbours along an axis: ``x[i + 1] - x[i]``, `n` times over.

    Parameters
    ----------
    x : Array
        Of a numeric dtype, on any device.
    axis : int
    n : int
        How often, at least 0. The axis becomes shorter by `n`, but not than 0.
    prepend, append : Array, optional
        What is joined to `x` along the axis first; of equal sizes along all others.

    Raises
    ------
    ShapeError
        If there is no such axis, `n` is negative or no integer, or what is to be joined does not fit.
    DTypeError
        If the dtype is bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diff(ta.asarray([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int64, device='cpu')
    """
    place = normalize_axis(axis, _checked(x, "diff").ndim, "diff")
    times = as_int(n, "diff", "n")
    if times < 0:
        raise ShapeError(f"diff: expected n >= 0, got {times}; write n=1 for the differences of neighbours")
    parts = [_checked(part, "diff") for part in (prepend, x, append) if part is not None]
    for part in parts:
        if part.ndim != x.ndim or _others(part.shape, place) != _others(x.shape, place):
            raise ShapeError(
                f"diff: expected prepend and append of the sizes of {x.shape} along all axes but {place}, "
                f"got {part.shape}; write ta.expand_dims or ta.broadcast_to first"
            )
    joined = concat(parts, axis=place) if len(parts) > 1 else x
    check_kind("diff", joined.dtype, NUMERIC)
    before = (slice(None),) * place
    for _ in range(times):
        joined = joined[(*before, slice(1, None))] - joined[(*before, slice(-1))]
    return joined


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]
