"""Inverses, and the solutions of linear equations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

from tilearray.arrays.fills import full
from tilearray.engine.array_type import A
from tilearray.engine.context import STATE
from tilearray.engine.signature import HostData
from tilearray.errors import OperandError, ShapeError
from tilearray.functions.arguments import all_arrays, as_array
from tilearray.functions.manipulation import broadcast_to, moveaxis, reshape
from tilearray.geometry.shapes import as_int, broadcast_shapes, normalize_axes
from tilearray.linalg.operands import (
    check_matrices,
    check_square,
    computed,
    computed_of_square,
    float_dtype,
    matrices,
    tolerances,
)
from tilearray.ops.options import checked_flag


class LstsqResult(NamedTuple, Generic[A]):
    """The result of `lstsq`."""

    x: A
    residuals: A
    rank: A
    s: A


def inv(x: A | HostData, /) -> A:
    """Return the inverses of square matrices.

    Parameters
    ----------
    x : Array
        Of shape (..., M, M). ``ta.linalg.solve(x, y)`` is faster and more accurate than ``inv(x) @ y``.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    ShapeError
        If the matrices are not square.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.inv(ta.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return computed_of_square("inv", x, instead="ta.linalg.pinv(x)")


def solve(x1: A | HostData, x2: A | HostData, /) -> A:
    """Return the solution x of ``x1 @ x = x2``.

    Parameters
    ----------
    x1 : Array
        Of shape (..., M, M).
    x2 : Array
        Of shape (M,), one vector for all matrices, or (..., M, K). The axes before the matrices broadcast.

    Returns
    -------
    Array
        Of shape (..., M) for a vector, else (..., M, K); of the common dtype.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    ShapeError
        If the matrices `x1` are not square, or the sizes M differ.
    BroadcastError
        If the other axes do not broadcast.
    PromotionError
        If the dtypes have no common dtype.
    ImportError
        If an array is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.solve(ta.asarray([[2.0, 0.0], [0.0, 4.0]]), ta.asarray([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32, device='cpu')
    """
    name = "linalg.solve"
    x1, x2 = all_arrays(name, (x1, x2))
    part = matrices(name, x1, x2)
    check_square(name, x1, "x1", instead="ta.linalg.lstsq(x1, x2)")
    rows = x2.shape[-2:-1] or x2.shape
    if rows != x1.shape[-1:]:
        raise ShapeError(
            f"{name}: expected x2 of shape ({x1.shape[-1]},) or (..., {x1.shape[-1]}, K) for x1 of shape {x1.shape}, "
            f"got {x2.shape}; write x2[..., None] for a stack of vectors"
        )
    if x1.ndim > 2 and x2.ndim > 2:
        broadcast_shapes(x1.shape[:-2], x2.shape[:-2], function=name)
    return computed(name, part, "solve", x1, x2, float_dtype(name, x1, x2))


def lstsq(a: A | HostData, b: A | HostData, rcond: float | None = None) -> LstsqResult[A]:
    """Return the x with the smallest ``norm(b - a @ x)``, and of several the one with the smallest norm.

    Parameters
    ----------
    a : Array
        Of shape (M, N).
    b : Array
        Of shape (M,) or (M, K).
    rcond : float, optional
        Singular values of `a` up to `rcond` times the largest one count as 0. The default is ``max(M, N) * eps``.

    Returns
    -------
    x : Array
        Of shape (N,) or (N, K).
    residuals : Array
        The sums of squares ``norm(b - a @ x) ** 2``, of shape (1,) or (K,), or (0,) unless M > N = rank.
    rank : Array
        The rank of `a`: 0-d, of the default integer dtype.
    s : Array
        The singular values of `a`, of the real dtype.

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for NaN.
    ShapeError
        If `a` is not a matrix, or `b` does not fit.
    ImportError
        If an array is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    The line through three points.

    >>> import tilearray as ta
    >>> a = ta.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], dtype="float64")
    >>> found = ta.linalg.lstsq(a, ta.asarray([1.0, 3.0, 5.0], dtype="float64")).x
    >>> bool(ta.all(ta.isclose(found, ta.asarray([2.0, 1.0], dtype="float64"))))
    True
    """
    name = "linalg.lstsq"
    a, b = all_arrays(name, (a, b))
    part = matrices(name, a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(
            f"{name}: expected a of shape (M, N) and b of shape (M,) or (M, K), got {a.shape} and {b.shape}; "
            f"write ta.linalg.pinv(a) @ b for stacks of matrices"
        )
    limit = tolerances(name, "rcond", rcond, a)
    if limit is not None and limit.size != 1:
        raise ShapeError(f"{name}: expected one rcond for one matrix, got shape {limit.shape}; write rcond=1e-6")
    limit = None if limit is None else limit.item()
    x, residuals, rank, s = computed(name, part, "lstsq", a, b, limit, float_dtype(name, a, b))
    counted: Any = full((), rank, dtype=STATE.get().semantics.defaults["int"], device=a.device)
    return LstsqResult(x, residuals, counted, s)


def pinv(x: A | HostData, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> A:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).
    rcond, rtol : float or Array, optional
        Singular values up to this times the largest one count as 0; an Array has one for each matrix. Both names mean
        the same. The default is ``max(M, N) * eps``, with eps of the dtype that computes: that of float32 for narrower
        floats.
    hermitian : bool
        Whether the matrices are Hermitian, which allows a faster method.

    Returns
    -------
    Array
        Of shape (..., N, M).

    Raises
    ------
    LinAlgError
        If the iteration does not converge, as for NaN.
    ShapeError
        If `x` has fewer than two axes.
    OperandError
        If `rcond` and `rtol` are both given, or are not real.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.pinv(ta.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    name = "linalg.pinv"
    x = as_array(name, x)
    part = matrices(name, x)
    check_matrices(name, x)
    hermitian = checked_flag(name, "hermitian", hermitian)
    if hermitian:
        check_square(name, x, instead="hermitian=False")
    if rcond is not None and rtol is not None:
        raise OperandError(f"{name}: expected rcond or rtol, got both; write rtol=1e-6 alone")
    limit = tolerances(name, "rtol", rtol if rcond is None else rcond, x)
    if limit is not None and (stack := broadcast_shapes(limit.shape, x.shape[:-2])) != x.shape[:-2]:
        x = broadcast_to(x, (*stack, *x.shape[-2:]))  # several tolerances for one matrix
    return computed(name, part, "pinv", x, limit, hermitian, float_dtype(name, x))


def tensorinv(a: A | HostData, /, ind: int = 2) -> A:
    """Return the inverse of an array for `tensordot`: of the linear map from its last axes to its first.

    Parameters
    ----------
    a : Array
        The product of the first `ind` sizes is that of the others.
    ind : int
        How many axes the map has as its results.

    Raises
    ------
    LinAlgError
        If the map is singular.
    ShapeError
        If the products of the sizes differ, or `ind` is not a positive int.
    ImportError
        If `a` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.tensorinv(ta.reshape(ta.eye(6), (6, 2, 3)), ind=1).shape
    (2, 3, 6)
    """
    name = "linalg.tensorinv"
    a = as_array(name, a)
    part = matrices(name, a)
    count = as_int(ind, name, "ind")
    first, last = a.shape[: max(count, 0)], a.shape[max(count, 0) :]
    if count < 1 or math.prod(first) != math.prod(last):
        raise ShapeError(
            f"{name}: expected equal products of the first ind sizes and of the others, got ind={count} for shape "
            f"{a.shape}; write another ind"
        )
    matrix = reshape(a, (math.prod(first), math.prod(last)))
    return reshape(computed(name, part, "inv", matrix, float_dtype(name, a)), (*last, *first))


def tensorsolve(a: A | HostData, b: A | HostData, /, axes: Sequence[int] | None = None) -> A:
    """Return the solution x of ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a : Array
        Of shape ``b.shape + x.shape``.
    b : Array
    axes : tuple of int, optional
        The axes of `a` to move to its end first.

    Raises
    ------
    LinAlgError
        If the equations are singular.
    ShapeError
        If the shapes do not fit.
    ImportError
        If an array is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.linalg.tensorsolve(ta.reshape(ta.eye(6), (6, 2, 3)), ta.arange(6)).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    name = "linalg.tensorsolve"
    a, b = all_arrays(name, (a, b))
    part = matrices(name, a, b)
    if axes is not None:
        moved = normalize_axes(axes, a.ndim, name)
        a = moveaxis(a, moved, tuple(range(a.ndim - len(moved), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise ShapeError(
            f"{name}: expected a of shape b.shape + x.shape, with as many elements in x as in b, got shapes {a.shape} "
            f"and {b.shape}; write axes=(...) to move axes of a to its end"
        )
    matrix, right = reshape(a, (b.size, b.size)), reshape(b, (b.size, 1))
    return reshape(computed(name, part, "solve", matrix, right, float_dtype(name, a, b)), shape)
