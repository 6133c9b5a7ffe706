"""Norms of vectors and matrices, and condition numbers.

Norms are added up in float64 and rounded once, as sums are. The Euclidean norm neither overflows nor underflows unless
the result does.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.context import State
from tilearray.engine.signature import ArrayBase, HostData
from tilearray.errors import ShapeError, shown
from tilearray.functions.arguments import as_array
from tilearray.functions.conversion import astype
from tilearray.functions.flat_at_zero import flat_at_zero
from tilearray.functions.manipulation import expand_dims, moveaxis
from tilearray.functions.reduce import Words, again, reduce
from tilearray.functions.reductions import count_nonzero, max, reduced_axes, sum
from tilearray.linalg.operands import check_matrices, check_square, computed, float_dtype, matrices
from tilearray.ops.arithmetic import abs, float_power
from tilearray.ops.options import checked_flag
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.ops.summation_order import SummationOrder, order_on
from tilearray.promotion.scalars import needed

Axes = int | tuple[int, ...]
Order = int | float | str

_MATRIX_ORDERS: Final = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
_SMALLEST_OF: Final = {-1: (-1,), -math.inf: (-2,), -2: (-2, -1)}
"""The axes that must not be empty for the smallest column, row or singular value. A column without rows has the sum 0.
"""


def vector_norm(
    x: A,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    ord: int | float = 2,
    order: SummationOrder = "fixed",
) -> A:
    """Return the norms of vectors.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The axes along which vectors lie; None is all, in one vector.
    keepdims : bool
        Whether the result keeps the axes, with size 1.
    ord : int or float
        2: the Euclidean norm. 1: the sum of the absolute values. infinity and -infinity: the largest and the smallest
        absolute value. 0: the number of elements other than 0. Any other p: ``sum(abs(x) ** p) ** (1 / p)``.
    order : {"fixed", "any"}
        The order of additions, as for `sum`. The Euclidean norm neither overflows nor underflows in any order.

    Returns
    -------
    Array
        Of the real dtype.

    Raises
    ------
    ShapeError
        If `x` has no such axis, `ord` is not a number, or -infinity is asked of no elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.vector_norm(ta.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    Array([ 5., 10.], dtype=float32, device='cpu')
    """
    is_usual = ord.__class__ is int and keepdims.__class__ is bool
    words = (f"vector_norm {ord}", axis, keepdims, order, State.changes) if is_usual else None
    known = again(words, x)
    return _vector_norm("linalg.vector_norm", x, ord, axis, keepdims, words, order) if known is None else known


def _vector_norm(
    name: str,
    x: A | HostData,
    ord: Any,
    axis: Any,
    keepdims: Any,
    words: Words | None = None,
    order: SummationOrder = "fixed",
) -> A:
    x, ord = as_array(name, x), needed(ord)
    order = order_on(x.device, name, order)
    dtype, axes = float_dtype(name, x), reduced_axes(name, x, axis)
    if isinstance(ord, str) or not isinstance(ord, (int, float)):
        raise ShapeError(
            f"{name}: expected ord as a number for vectors, got {shown(ord)}; write ord=2, or an axis of 2"
        )
    if ord == -math.inf:
        _check_elements(name, x, axes)
    keepdims = checked_flag(name, "keepdims", keepdims)
    return _computed(x, axes, keepdims, ord, REAL_PART.get(dtype, dtype), words, order)


def _computed(
    x: A,
    axes: tuple[int, ...],
    keepdims: bool,
    ord: float,
    real: np.dtype,
    words: Words | None = None,
    order: SummationOrder = "fixed",
) -> Any:
    """The norms of vectors as reductions, rounded once to a real dtype; `words` asked for them."""
    if ord in (1, 2):
        return reduce("sizes" if ord == 1 else "norm", x, axes, real, keepdims, order=order, words=words)
    if ord == 0:
        return astype(count_nonzero(x, axes, keepdims=keepdims), real)
    sizes: Any = abs(astype(x, real, copy=False) if dtypes.info(x.dtype).kind != "complex" else x)
    if math.isinf(ord):
        if ord > 0 and not all(sizes.shape[axis] for axis in axes):
            return max(sizes, axes, keepdims=keepdims, initial=0)
        return reduce("max" if ord > 0 else "min", sizes, axes, sizes.dtype, keepdims)
    total = sum(_power(sizes, float(ord)), axes, keepdims=keepdims, order=order)
    return astype(_power(total, 1 / ord), real)


def _power(x: Any, exponent: float) -> Any:
    return flat_at_zero(lambda x: float_power(x, exponent), x, 0.0 if exponent > 0 else math.inf)


def matrix_norm(x: A, /, *, keepdims: bool = False, ord: Order | None = "fro") -> A:
    """Return the norms of matrices.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    keepdims : bool
        Whether the result keeps the last two axes, with size 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        "fro": the Frobenius norm, which None also means. "nuc": the sum of the singular values. 2 and -2: the largest
        and the smallest singular value. 1 and -1: the largest and the smallest sum of the absolute values of a column;
        infinity and -infinity: of a row.

    Returns
    -------
    Array
        Of the real dtype.

    Raises
    ------
    LinAlgError
        If singular values are needed and their iteration does not converge, as for NaN.
    ShapeError
        If `x` has fewer than two axes, `ord` does not exist, or the smallest one of no columns, rows or singular values
        is asked for.
    ImportError
        If `x` is on a GPU, singular values are needed, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.matrix_norm(ta.asarray([[1.0, -7.0], [2.0, 3.0]]), ord=1)
    Array(10., dtype=float32, device='cpu')
    """
    return _matrix_norm("linalg.matrix_norm", x, ord, keepdims)


def _matrix_norm(name: str, x: A | HostData, ord: Any, keepdims: Any) -> A:
    x = as_array(name, x)
    dtype = float_dtype(name, x)
    check_matrices(name, x)
    keepdims = checked_flag(name, "keepdims", keepdims)
    ord = needed(ord)
    if ord in (None, "fro", "f"):
        return _computed(x, (x.ndim - 2, x.ndim - 1), keepdims, 2, REAL_PART.get(dtype, dtype))
    part = matrices(name, x)
    if not _known(ord):
        raise ShapeError(
            f"{name}: expected ord for matrices as 'fro', 'nuc', 1, 2 or inf of either sign, got {shown(ord)}; "
            f"write ta.linalg.vector_norm for other orders"
        )
    if ord in _SMALLEST_OF:
        _check_elements(name, x, _SMALLEST_OF[ord])
    return computed(name, part, "matrix_norm", x, ord, keepdims, dtype)


def _known(ord: Any) -> bool:
    return isinstance(ord, (str, int, float)) and ord in _MATRIX_ORDERS


def _check_elements(name: str, x: ArrayBase, axes: tuple[int, ...]) -> None:
    if not math.prod([x.shape[axis] for axis in axes]):
        raise ShapeError(
            f"{name}: expected at least one element for the smallest value, got shape {x.shape}; write a positive ord"
        )


def norm(x: A | HostData, ord: Order | None = None, axis: Axes | None = None, keepdims: bool = False) -> A:
    """Return the norm of an array, as `numpy.linalg.norm`: of vectors along one axis, of matrices along two.

    Parameters
    ----------
    x : Array
        Vectors or matrices.
    ord : int, float or str, optional
        As for `vector_norm` along one axis, and as for `matrix_norm` along two. None is the Euclidean norm.
    axis : int or tuple of two int, optional
        None: all elements in one vector if `ord` is None, else the axes of `x`, which are one or two.
    keepdims : bool
        Whether the result keeps the axes, with size 1.

    Returns
    -------
    Array
        Of the real dtype.

    Raises
    ------
    ShapeError
        If `x` has no such axes, there are more than two, or `ord` does not exist for them.
    ImportError
        If `x` is on a GPU, singular values are needed, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[3.0, 4.0], [6.0, 8.0]])
    >>> ta.linalg.norm(x[0]).item(), ta.linalg.norm(x, axis=1).tolist(), ta.linalg.norm(x, 1).item()
    (5.0, [5.0, 10.0], 12.0)
    """
    name = "linalg.norm"
    x = as_array(name, x)
    if axis is None and (ord is None or x.ndim == 1):
        return _vector_norm(name, x, 2 if ord is None else ord, None, keepdims)
    axes = reduced_axes(name, x, axis)
    if len(axes) == 1:
        return _vector_norm(name, x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        raise ShapeError(
            f"{name}: expected one axis for vectors or two for matrices, got {len(axes)} for shape {x.shape}; "
            f"write axis=..., or ta.linalg.vector_norm(x)"
        )
    found = _matrix_norm(name, moveaxis(x, axes, (-2, -1)), ord, False)
    return expand_dims(found, axis=tuple(sorted(axes))) if keepdims else found


def cond(x: A | HostData, p: Order | None = None) -> A:
    """Return the condition numbers of matrices: the norm of a matrix times that of its inverse.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N); square unless `p` is None, 2 or -2.
    p : {None, "fro", "nuc", 1, -1, 2, -2, inf, -inf}
        The norm, as for `matrix_norm`; None is 2.

    Returns
    -------
    Array
        Of shape (...), of the real dtype; infinity for singular matrices.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes or no elements, is not square, or `p` does not exist.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.cond(ta.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., dtype=float32, device='cpu')
    """
    name = "linalg.cond"
    x = as_array(name, x)
    part, dtype = matrices(name, x), float_dtype(name, x)
    check_matrices(name, x)
    if p is not None and not _known(p):
        raise ShapeError(f"{name}: expected p as 'fro', 'nuc', 1, 2 or inf of either sign, got {shown(p)}; write p=2")
    if p not in (None, 2, -2):
        check_square(name, x, instead="p=2")
    if 0 in x.shape[-2:]:
        raise ShapeError(f"{name}: expected matrices of at least one element, got shape {x.shape}; write x.size > 0")
    return computed(name, part, "cond", x, p, dtype)
