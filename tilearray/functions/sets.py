"""Sets: the distinct elements of an array, and membership.

Elements are equal if `equal` says so: every NaN is distinct, and -0.0 equals 0.0. Distinct elements come in the
ascending order of `sort`.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, overload

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.devices import common_device
from tilearray.engine.signature import ArrayBase, HostData
from tilearray.functions.arguments import (
    all_arrays,
    as_array,
    as_arrays,
    check_kind,
    common_dtype,
    result,
    sorting_of,
    without_derivative,
)
from tilearray.functions.conversion import to_numpy
from tilearray.functions.reductions import any
from tilearray.ops.arithmetic import bitwise_invert, equal
from tilearray.ops.options import checked_flag
from tilearray.ops.row import ANY
from tilearray.promotion.scalars import Number, classify


class UniqueAll(NamedTuple, Generic[A]):
    """The result of `unique_all`."""

    values: A
    indices: A
    inverse_indices: A
    counts: A


class UniqueCounts(NamedTuple, Generic[A]):
    """The result of `unique_counts`."""

    values: A
    counts: A


class UniqueInverse(NamedTuple, Generic[A]):
    """The result of `unique_inverse`."""

    values: A
    inverse_indices: A


def unique_all(x: A | HostData, /) -> UniqueAll[A]:
    """Return the distinct elements, and for each its first place, its places and its count.

    Parameters
    ----------
    x : Array
        Of any shape, read in C order.

    Returns
    -------
    values : Array
        The distinct elements, 1-d, in the dtype of `x`.
    indices : Array
        The first place of each, int64.
    inverse_indices : Array
        For each element of `x` its index in `values`: of the shape of `x`, int64.
    counts : Array
        How often each occurs, int64.

    Notes
    -----
    On a GPU the call waits once for the number of distinct elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> found = ta.unique_all(ta.asarray([5, 3, 5]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([3, 5], [1, 0], [1, 0, 1], [1, 2])
    """
    x = as_array("unique_all", x)
    return UniqueAll(*_unique("unique_all", x, indices=True, inverse=True, counts=True))


def unique_counts(x: A | HostData, /) -> UniqueCounts[A]:
    """Return the distinct elements, and how often each occurs. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_counts(ta.asarray([5, 3, 5])).counts.tolist()
    [1, 2]
    """
    x = as_array("unique_counts", x)
    return UniqueCounts(*_unique("unique_counts", x, counts=True))


def unique_inverse(x: A | HostData, /) -> UniqueInverse[A]:
    """Return the distinct elements, and for each element of `x` its index among them. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_inverse(ta.asarray([[5, 3], [5, 5]])).inverse_indices.tolist()
    [[1, 0], [1, 1]]
    """
    x = as_array("unique_inverse", x)
    return UniqueInverse(*_unique("unique_inverse", x, inverse=True))


def unique_values(x: A | HostData, /) -> A:
    """Return the distinct elements. See `unique_all`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unique_values(ta.asarray([5, 3, 5]))
    Array([3, 5], dtype=int64, device='cpu')
    """
    x = as_array("unique_values", x)
    (values,) = _unique("unique_values", x)
    return values


def _unique(function: str, x: A, indices: bool = False, inverse: bool = False, counts: bool = False) -> list[A]:
    """Return the distinct elements, and all that is asked for about them."""
    check_kind(function, x.dtype, ANY)
    sorting = sorting_of(function, x)
    if sorting is None:
        from tilearray.functions.distinct import distinct  # here: few programs need it

        return [part for part in distinct(x, indices, inverse, counts) if part is not None]
    found = sorting.unique(to_numpy(x), indices, inverse, counts)
    parts = (found.values, found.indices, found.inverse, found.counts)
    return [result(part, x) for part in parts if part is not None]


@overload
def isin(
    x1: A, /, test_elements: A | Number, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> A: ...
@overload
def isin(
    x1: Number, /, test_elements: A, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> A: ...
def isin(
    x1: Any, /, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """Return, for each element of `x1`, whether it is in `test_elements`.

    Parameters
    ----------
    x1, test_elements : Array or number
        Integers of any dtypes are compared exactly, all else in the common dtype. NaN is never found.
    assume_unique : bool
        Ignored: it makes no difference to the result.
    invert : bool
        Whether to return the opposite.
    kind : str, optional
        Ignored: NumPy's names of algorithms.

    Returns
    -------
    Array
        Of the shape of `x1`, bool.

    Raises
    ------
    OperandError
        If one is an array of another library.
    PromotionError
        If the dtypes have no common dtype.
    DeviceError
        If the arrays are on several devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isin(ta.asarray([1, 2, 3]), ta.asarray([3, 1]))
    Array([ True, False,  True], dtype=bool, device='cpu')
    """
    del assume_unique, kind
    invert = checked_flag("isin", "invert", invert)
    x1, x2 = as_arrays("isin", (x1, test_elements))
    if classify(x1) is not None and classify(x2) is not None:
        x1 = as_array("isin", x1)
    if classify(x2) is not None:
        found: Any = equal(x1, x2)
    elif classify(x1) is not None:
        found = any(equal(x2, x1))
    else:
        x1, x2 = all_arrays("isin", (x1, x2))
        common_device("isin", [x1._signature, x2._signature])
        x1, x2 = without_derivative(x1), without_derivative(x2)
        sorting = sorting_of("isin", x1)
        if sorting is None:
            from tilearray.functions.distinct import members  # here: few programs need it

            found = members(x1, x2, _compared_in(x1, x2))
            return bitwise_invert(found) if invert else found
        return result(sorting.isin(to_numpy(x1), to_numpy(x2), _compared_in(x1, x2), invert), x1)
    return bitwise_invert(found) if invert else found


def _compared_in(x1: ArrayBase, x2: ArrayBase) -> np.dtype | None:
    """The dtype in which elements are compared; None for integers, which are compared as numbers."""
    if {dtypes.info(x1.dtype).kind, dtypes.info(x2.dtype).kind} <= {"int", "uint"}:
        return None
    return common_dtype("isin", [x1.dtype, x2.dtype], ANY)
