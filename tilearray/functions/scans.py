"""Functions along one axis: running sums and products by the backend, and differences on every device."""

from __future__ import annotations

from typing import Any

from tilearray.engine.signature import A, ArrayBase, check_array
from tilearray.errors import ShapeError
from tilearray.functions.arguments import check_kind, reductions_of, result
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.reductions import sum_dtype
from tilearray.geometry.shapes import as_int, normalize_axis, without_axis
from tilearray.ops.arithmetic import subtract
from tilearray.ops.row import NUMERIC


def cumulative_sum(x: A, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> A:
    """Return the sums of all elements up to each one along an axis.

    Parameters
    ----------
    x : Array
        Of any kind but the storage dtypes, on the host. Floats are accumulated in float64, and each result is
        rounded once.
    axis : int, optional
        Needed unless `x` is 1-d.
    dtype : dtype or name, optional
        The dtype of the result, as for `sum`.
    include_initial : bool
        Whether the result starts with a 0; the axis is then longer by 1.

    Raises
    ------
    ShapeError
        If `x` has no such axis, or `axis` is missing and `x` is not 1-d.
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_sum(ta.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64, device='cpu')
    """
    axis = _scanned_axis("cumulative_sum", x, axis)
    reductions, wanted = reductions_of("cumulative_sum", x), sum_dtype("cumulative_sum", x, dtype)
    return result(reductions.cumulative_sum(to_numpy(x), axis, wanted, bool(include_initial)), x)


def cumulative_prod(x: A, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> A:
    """Return the products of all elements up to each one along an axis; the initial value is 1.

    Parameters and errors are those of `cumulative_sum`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.cumulative_prod(ta.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [3, 8]]
    """
    axis = _scanned_axis("cumulative_prod", x, axis)
    reductions, wanted = reductions_of("cumulative_prod", x), sum_dtype("cumulative_prod", x, dtype)
    return result(reductions.cumulative_prod(to_numpy(x), axis, wanted, bool(include_initial)), x)


def _scanned_axis(function: str, x: ArrayBase, axis: Any) -> int:
    check_array(function, x)
    if axis is None and x.ndim != 1:
        raise ShapeError(
            f"{function}: expected axis= for an array of {x.ndim} axes, got none; "
            f"write axis=-1, or ta.reshape(x, -1) for all elements"
        )
    return normalize_axis(0 if axis is None else axis, x.ndim, function)


def diff(x: A, /, *, axis: int = -1, n: int = 1, prepend: A | None = None, append: A | None = None) -> A:
    """Return the n-th differences of neighbours along an axis: ``x[i + 1] - x[i]``, applied `n` times.

    Parameters
    ----------
    x : Array
        Of a numeric dtype, on any device.
    axis : int
    n : int
        How often, at least 0. The axis becomes shorter by `n`, down to 0.
    prepend, append : Array, optional
        Arrays to join to `x` along the axis first; they have the sizes of `x` along all other axes.

    Raises
    ------
    ShapeError
        If `x` has no such axis, `n` is negative or not an integer, or an array to join does not fit.
    DTypeError
        If the dtype is bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diff(ta.asarray([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int64, device='cpu')
    """
    check_array("diff", x)
    place = normalize_axis(axis, x.ndim, "diff")
    times = as_int(n, "diff", "n")
    if times < 0:
        raise ShapeError(f"diff: expected n >= 0, got {times}; write n=1 for the differences of neighbours")
    for name, part in (("prepend", prepend), ("append", append)):
        if part is None:
            continue
        check_array("diff", part, name)
        if part.ndim != x.ndim or without_axis(part.shape, place) != without_axis(x.shape, place):
            raise ShapeError(
                f"diff: expected prepend and append of the sizes of {x.shape} along all axes but {place}, "
                f"got {part.shape}; write ta.expand_dims or ta.broadcast_to first"
            )
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = concat(parts, axis=place) if len(parts) > 1 else x
    check_kind("diff", joined.dtype, NUMERIC)
    before = (slice(None),) * place
    for _ in range(times):
        joined: A = subtract(get(joined, (*before, slice(1, None))), get(joined, (*before, slice(-1))))
    return joined
