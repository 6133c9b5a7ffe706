"""Grids, triangles and their indices by NumPy's names: `mgrid[0:3, 0:4]`, `r_[1:4, x]`, `ix_(rows, columns)`."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import arange, full, linspace, ones, ones_like, zeros
from tilearray.arrays.triangular import tril
from tilearray.arrays.uninitialised import dtype_or_default
from tilearray.dtypes import DTypeLike
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.joining import concat, stack
from tilearray.functions.manipulation import broadcast_arrays, diagonal, new_like, reshape
from tilearray.functions.searching import nonzero
from tilearray.geometry.shapes import MOST_AXES, as_int, as_shape, check_extent
from tilearray.ops.execute import fill
from tilearray.ops.numbers import class_of
from tilearray.ops.one_launch import OneLaunch
from tilearray.promotion.scalars import classify


def _span(part: Any, function: str, device: Any = None) -> Array:
    """The numbers of a slice: an imaginary step counts them, and includes the end."""
    if not isinstance(part, slice) or cast(Any, part).stop is None:
        raise OperandError(f"{function}: expected slices with a stop, got {shown(part)}; write ta.{function}[0:3, 0:4]")
    given: Any = cast(Any, part)
    start, stop, step = given.start or 0, given.stop, given.step or 1
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)), device=device)
    return arange(start, stop, step, device=device)


class _Grid:
    """The object behind `mgrid` and `ogrid`."""

    def __init__(self, name: str, sparse: bool, doc: str) -> None:
        self.__name__, self.__doc__ = name, doc
        self._sparse = sparse

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<tilearray.{self.__name__}>"

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _span(key, self.__name__)
        spans = [_span(part, self.__name__) for part in key]  # pyright: ignore[reportUnknownVariableType]
        if len({span.dtype for span in spans}) > 1:
            common = STATE.get().semantics.result_type([span.dtype for span in spans], self.__name__)
            spans = [span.astype(common) for span in spans]
        if not spans:
            return zeros((0,), dtypes.float64)
        open_grid = tuple([_along(span, axis, len(spans)) for axis, span in enumerate(spans)])
        return open_grid if self._sparse else stack(broadcast_arrays(*open_grid))


def _along(x: Array, axis: int, ndim: int) -> Array:
    return reshape(x, tuple([x.size if place == axis else 1 for place in range(ndim)]))


mgrid = _Grid(
    "mgrid",
    False,
    """The coordinates of every point of a grid: ``mgrid[0:3, 0:4]`` has shape (2, 3, 4).

    An imaginary step is a number of points, and includes the end.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.mgrid[0:2, 0:2].tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    >>> ta.mgrid[0:1:3j]
    Array([0. , 0.5, 1. ], dtype=float32, device='cpu')
    """,
)
ogrid = _Grid(
    "ogrid",
    True,
    """The coordinates along each axis of a grid, to be broadcast: ``ogrid[0:3, 0:4]`` has shapes (3, 1) and (1, 4).

    Examples
    --------
    >>> import tilearray as ta
    >>> [x.shape for x in ta.ogrid[0:3, 0:4]]
    [(3, 1), (1, 4)]
    """,
)


def indices(dimensions: Any, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Return the index along each axis of every place of a shape, as one array; `sparse` gives a tuple to broadcast.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes = as_shape(dimensions, "indices")
    chosen = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype, "indices")
    parts = [_along(arange(size, dtype=chosen), axis, len(sizes)) for axis, size in enumerate(sizes)]
    if sparse:
        return tuple(parts)
    return stack(broadcast_arrays(*parts)) if parts else zeros((0,), chosen)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return index arrays that select the cross product of 1-d indices: ``x[ta.ix_(rows, columns)]``.

    A bool array stands for the places where it is true.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.asarray([[1, 2, 3], [4, 5, 6]])[ta.ix_([0, 1], [2, 0])].tolist()
    [[3, 1], [6, 4]]
    """
    parts: list[Array] = []
    for given in args:
        x = as_array("ix_", given)
        if x.ndim != 1:
            raise ShapeError(f"ix_: expected 1-d indices, got shape {x.shape}; write ta.reshape(x, -1)")
        if not x.size:
            x = x.astype(dtypes.int64)
        parts.append(nonzero(x)[0] if x.dtype == dtypes.bool_ else x)
    return tuple([_along(x, axis, len(parts)) for axis, x in enumerate(parts)])


class _Joiner:
    """The object behind `r_` and `c_`: its key is joined along an axis."""

    def __init__(self, name: str, doc: str) -> None:
        self.__name__, self.__doc__ = name, doc

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<tilearray.{self.__name__}>"

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if any(isinstance(part, str) for part in parts):  # pyright: ignore[reportUnknownVariableType]
            raise OperandError(
                f"{self.__name__}: expected slices, numbers and arrays, got a string of directions; "
                f"write ta.concat or ta.stack with axis="
            )
        device = next((part.device for part in parts if isinstance(part, Array)), None)  # pyright: ignore[reportUnknownVariableType]
        given: list[Any] = [_span(part, self.__name__, device) if isinstance(part, slice) else part for part in parts]  # pyright: ignore[reportUnknownVariableType]
        arrays = _beside_each_other(self.__name__, given)
        if self.__name__ == "r_":
            return concat([x if x.ndim else reshape(x, 1) for x in arrays])
        return concat([_column(x) for x in arrays], -1)


def _beside_each_other(function: str, given: list[Any]) -> list[Array]:
    """All parts as Arrays. A Python number takes the dtype that it would have as an operand beside the arrays."""
    known = all_arrays(function, [part for part in given if classify(part) is None])
    if not known:
        return all_arrays(function, given)
    operands = [class_of(part) for part in given if classify(part) is not None]
    common = STATE.get().semantics.result_type([*[x.dtype for x in known], *operands], function)
    waiting = iter(known)
    return [
        next(waiting) if classify(part) is None else full((), part, common, device=known[0].device) for part in given
    ]


def _column(x: Array) -> Array:
    return x if x.ndim > 1 else reshape(x, (-1, 1))


r_ = _Joiner(
    "r_",
    """The key joined along the first axis: slices become ranges, as in `mgrid`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.r_[0:3, 7, [9, 9]]
    Array([0, 1, 2, 7, 9, 9], dtype=int64, device='cpu')
    """,
)
c_ = _Joiner(
    "c_",
    """The key joined along the last axis, 1-d arrays as columns.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.c_[[1, 2], [3, 4]].tolist()
    [[1, 3], [2, 4]]
    """,
)

# --- triangles and diagonals ---------------------------------------------------------------------------------------


def tri(
    N: int,  # noqa: N803 - NumPy's names
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Return ones on and below a diagonal, and zeros above.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.tri(2, 3, 1, "int8").tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return tril(ones((N, N if M is None else M), dtype_or_default(dtype, "tri"), device=device), k)


def tril_indices(n: int, k: int = 0, m: int | None = None, *, device: Any = None) -> tuple[Array, ...]:
    """Return the indices of the lower triangle of a matrix.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _places(tri(n, m, k, dtypes.bool_, device=device))


def triu_indices(n: int, k: int = 0, m: int | None = None, *, device: Any = None) -> tuple[Array, ...]:
    """Return the indices of the upper triangle of a matrix.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _places(~tri(n, m, k - 1, dtypes.bool_, device=device))


def _places(triangle: Array) -> tuple[Array, ...]:
    """Return the indices of the elements of a triangle. NumPy selects them sooner than it finds them by `nonzero`."""
    if triangle.device is not CPU:
        return nonzero(triangle)
    rows, columns = (arange(size, dtype=dtypes.int64, device=triangle.device) for size in triangle.shape)
    return tuple([part[triangle] for part in broadcast_arrays(rows[:, None], columns)])


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Return the indices of the lower triangle of an array of two axes, on its device.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.tril_indices_from(ta.zeros((2, 2)), -1)]
    [[1], [0]]
    """
    x = _matrix("tril_indices_from", arr)
    return tril_indices(x.shape[0], k, x.shape[1], device=x.device)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, ...]:
    """Return the indices of the upper triangle of an array of two axes, on its device.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.triu_indices_from(ta.zeros((2, 2)), 1)]
    [[0], [1]]
    """
    x = _matrix("triu_indices_from", arr)
    return triu_indices(x.shape[0], k, x.shape[1], device=x.device)


def _matrix(function: str, arr: Any) -> Array:
    x: Array = as_array(function, arr)
    if x.ndim != 2:
        raise ShapeError(f"{function}: expected an array of two axes, got shape {x.shape}; write x[0] or ta.reshape")
    return x


def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array with `ndim` axes of size `n`.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    count = as_int(ndim, "diag_indices", "ndim")
    if not 0 <= count <= MOST_AXES:
        raise ShapeError(f"diag_indices: expected 0 to {MOST_AXES} axes as ndim, got {shown(ndim)}; write ndim=2")
    return (arange(as_int(n, "diag_indices", "n"), dtype=dtypes.int64, device=device),) * count


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array whose axes are all of one size, on its device.

    Examples
    --------
    >>> import tilearray as ta
    >>> [part.tolist() for part in ta.diag_indices_from(ta.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    x: Array = as_array("diag_indices_from", arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(
            f"diag_indices_from: expected at least two axes of one size, got shape {x.shape}; write ta.diag_indices(n)"
        )
    return diag_indices(x.shape[0], x.ndim, device=x.device)


def diagflat(v: Any, k: int = 0) -> Array:
    """Return the matrix with all elements of an array on a diagonal, and zeros elsewhere.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.diagflat([[1, 2]]).tolist()
    [[1, 0], [0, 2]]
    """
    x = reshape(as_array("diagflat", v), -1)
    size = x.size + abs(as_int(k, "diagflat", "k"))
    found = fill(new_like(x, (size, size)), 0, "diagflat")
    diagonal(found, k)[...] = x
    return found


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803 - NumPy's name
    """Return the matrix whose columns are powers of a 1-d array, the highest first unless `increasing`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.vander([1, 2, 3], 3).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    values = as_array("vander", x)
    if values.ndim != 1:
        raise ShapeError(f"vander: expected a 1-d array, got shape {values.shape}; write ta.reshape(x, -1)")
    count = values.size if N is None else as_int(N, "vander", "N")
    if count < 0:
        raise ShapeError(f"vander: expected N >= 0, got {count}; write N=None for as many columns as elements")
    if dtypes.info(values.dtype).kind in ("bool", "int", "uint") and values.dtype != dtypes.uint64:
        values = values.astype(dtypes.int64, copy=False)
    check_extent((values.size, count), values.dtype.itemsize, "vander")
    if not count:
        return zeros((values.size, 0), values.dtype, device=values.device)
    if count > _MOST_COLUMNS:
        return _powers(values, count, bool(increasing))
    return _in_one_launch(count, bool(increasing))(values)


_MOST_COLUMNS = 16
"""The most columns that one launch writes."""


@cache
def _in_one_launch(count: int, increasing: bool) -> OneLaunch:
    def powers(x: Array) -> Array:
        return _powers(x, count, increasing)

    return OneLaunch(powers)


def _powers(x: Array, count: int, increasing: bool) -> Array:
    """The first powers of an array as columns, each a product with the one before."""
    columns = [ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], 1)
