"""Sets: the distinct elements of an array, and membership, on the host through NumPy.

Elements are the same where `equal` says so: every NaN is distinct, and -0.0 is 0.0. Distinct elements come in
ascending order, as `sort` has it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.signature import A, ArrayBase
from tilearray.errors import OperandError, type_name
from tilearray.functions.on_host import ANY, INDEX, array_of, check_kind, common_dtype, on_host, values
from tilearray.ops.arithmetic import bitwise_invert, equal
from tilearray.promotion.scalars import classify


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: ArrayBase
    indices: ArrayBase
    inverse_indices: ArrayBase
    counts: ArrayBase


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: ArrayBase
    counts: ArrayBase


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: ArrayBase
    inverse_indices: ArrayBase


def unique_all(x: ArrayBase, /) -> UniqueAll:
    """Return the distinct elements and, about each, where it comes first, where it comes at all, and how often.

    Parameters
    ----------
    x : Array
        Of any shape, read in C order; on the host.

    Returns
    -------
    values : Array
        The distinct elements, 1-d, in the dtype of `x`.
    indices : Array
        Where each comes first, int64.
    inverse_indices : Array
        Which of `values` each element of `x` is: of the shape of `x`, int64.
    counts : Array
        How often each comes, int64.

    Raises
    ------
    DeviceError
        If `x` is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> found = ta.unique_all(ta.asarray([5, 3, 5]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([3, 5], [1, 0], [1, 0, 1], [1, 2])
    """
    return _unique("unique_all", x)


def unique_counts(x: ArrayBase, /) -> UniqueCounts:
    """Return the distinct elements, and how often each comes. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_counts(ta.asarray([5, 3, 5])).counts.tolist()
    [1, 2]
    """
    found = _unique("unique_counts", x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ArrayBase, /) -> UniqueInverse:
    """Return the distinct elements, and which of them each element of `x` is. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_inverse(ta.asarray([[5, 3], [5, 5]])).inverse_indices.tolist()
    [[1, 0], [1, 1]]
    """
    found = _unique("unique_inverse", x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: A, /) -> A:
    """Return the distinct elements. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_values(ta.asarray([5, 3, 5]))
    Array([3, 5], dtype=int64, device='cpu')
    """
    return _unique("unique_values", x).values


def _unique(function: str, x: Any) -> UniqueAll:
    check_kind(function, on_host(function, x).dtype, ANY)
    with np.errstate(all="ignore"):  # NumPy warns of NaN among complex numbers, sometimes
        found, indices, inverse, counts = np.unique(
            values(x).ravel(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
    return UniqueAll(
        array_of(found, x.dtype, x),
        array_of(indices, INDEX, x),
        array_of(inverse.reshape(x.shape), INDEX, x),
        array_of(counts, INDEX, x),
    )


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> ArrayBase:
    """Return, for each element of `x1`, whether it is in `x2`.

    Parameters
    ----------
    x1, x2 : Array or number
        At least one is an Array; on the host. Integers are compared exactly, whatever their dtypes, all else in the
        common dtype. NaN is in nothing.
    invert : bool
        Whether to return where it is not.

    Returns
    -------
    Array
        Of the shape of `x1`, bool.

    Raises
    ------
    OperandError
        If neither is an Array.
    PromotionError
        If the dtypes have no common one.
    DeviceError
        If an array is on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isin(ta.asarray([1, 2, 3]), ta.asarray([3, 1]))
    Array([ True, False,  True], dtype=bool, device='cpu')
    """
    if not isinstance(x1, ArrayBase) and not isinstance(x2, ArrayBase):
        raise OperandError(
            f"isin: expected an Array and a number or two Arrays, got {type_name(x1)} and {type_name(x2)}; "
            f"write ta.asarray(x2)"
        )
    if classify(x2) is not None:
        found: Any = equal(on_host("isin", x1), x2)
        return bitwise_invert(found) if invert else found
    if classify(x1) is not None:
        found = equal(on_host("isin", x2), x1)
        return array_of(np.any(values(found)) != bool(invert), dtypes.bool_, found)
    first, second = on_host("isin", x1), on_host("isin", x2)
    elements, others = _comparable(first, second)
    with np.errstate(all="ignore"):
        found = np.isin(elements, others, invert=bool(invert))
    return array_of(found, dtypes.bool_, first)


def _comparable(x1: A, x2: A) -> tuple[np.ndarray, np.ndarray]:
    """The elements of both in one dtype, those of `x2` that no element of `x1` can equal left out."""
    kinds = {dtypes.info(x1.dtype).kind, dtypes.info(x2.dtype).kind}
    if kinds <= {"int", "uint"}:
        others, limits = values(x2), np.iinfo(x1.dtype)
        fitting = others[(others >= limits.min) & (others <= limits.max)]  # NumPy compares integers as numbers
        return values(x1), fitting.astype(x1.dtype)
    dtype = common_dtype("isin", [x1.dtype, x2.dtype], ANY)
    return values(x1, dtype), values(x2, dtype)
