"""What reductions have in common beside their axes: `where=`, `initial=` and `out=`.

Elements that `where` leaves out are replaced by the value that changes nothing, so that every reduction is one of a
whole array. `initial` becomes a 0-d array of the dtype of the result. `out` takes the result by the rules of an
assignment, and has its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Call
from tilearray.engine.devices import common_device
from tilearray.engine.remembered import Words, remember
from tilearray.engine.signature import ArrayBase, from_host
from tilearray.errors import DTypeError, OperandError, ShapeError, type_name
from tilearray.functions.arguments import number_of
from tilearray.functions.manipulation import broadcast_to, new_like
from tilearray.functions.reduce import WHERE
from tilearray.geometry.layout import broadcast_shapes
from tilearray.ops.arithmetic import bitwise_invert, choose, logical_and
from tilearray.ops.execute import check_target, execute, fill
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import isnan
from tilearray.ops.one_launch import in_one_launch
from tilearray.promotion.scalars import Number, as_number, classify
from tilearray.promotion.storing import can_cast_same_kind

_TYPED: tuple[type[Any], ...] = (ArrayBase, np.ndarray, np.generic)
_FLAGS: tuple[type[Any], ...] = (bool, np.bool_)


class Numbers(NamedTuple):
    """`where=` of a reduction that leaves out NaN, and what a mask in the shape of the array leaves out, if given.

    `of_some` computes it with the reduction.
    """

    mask: Any = None


def mask_of(function: str, x: A, where: Any) -> A | None:
    """Return the bool mask of a reduction in the shape of `x`; None if it leaves out nothing.

    Examples
    --------
    >>> import tilearray as ta
    >>> mask_of("sum", ta.zeros((2, 3)), ta.asarray([True, False, True])).shape
    (2, 3)
    """
    if where is None or where is True:
        return None
    if where.__class__ is Numbers:
        return where
    mask: Any = where
    if isinstance(where, _FLAGS):
        mask = fill(new_like(x, (), dtypes.bool_), bool(where), function)
    elif not issubclass(type(where), ArrayBase):
        mask = from_host(np.asarray(where), x.__class__)
    if mask._signature.device is not x._signature.device:
        common_device(function, [x._signature, mask._signature])
    if mask.dtype != dtypes.bool_:
        raise DTypeError(f"{function}: expected where as a bool array, got {mask.dtype.name}; write where=mask != 0")
    if mask.ndim > x.ndim or broadcast_shapes(mask.shape, x.shape, function=function) != x.shape:
        raise ShapeError(
            f"{function}: expected where of a shape that broadcasts to {x.shape}, got {mask.shape}; "
            f"write ta.broadcast_to(x, {mask.shape}) for x"
        )
    return broadcast_to(mask, x.shape)


def of_some(
    function: Callable[..., Any],
    options: tuple[Hashable, ...],
    words: Words | None,
    x: Any,
    where: Any,
    mask: Any,
    *others: Any,
) -> Any:
    """Return ``function(x, mask, *others, *options)``, in one launch on a GPU, as `in_one_launch` does.

    Parameters
    ----------
    function : callable
    options : tuple
    words : Words or None
        `again` or `again_where` finds the call under these words, if there are no others.
    x : Array
    where : bool Array, or other data
        As it was given.
    mask : bool Array or Numbers or None
        What `mask_of` made of it; the function takes an Array or None.
    others : Array, number or None

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([1.0, ta.nan])
    >>> of_some(lambda x, mask: ta.sum(masked(x, mask, 0)), (), None, x, None, Numbers())
    Array(1., dtype=float32, device='cpu')
    """
    if mask.__class__ is not Numbers:
        keep = None if words is None else partial(_remember, words, x, where, mask)
        return in_one_launch(function, options, (x, mask, *others), keep)
    keep = None if words is None or mask.mask is not None else partial(remember, words, (x,))
    return in_one_launch(_of_numbers, (*options, function), (x, mask.mask, *others), keep)


def _of_numbers(x: Any, mask: Any, *others: Any) -> Any:
    *given, function = others
    return function(x, numbers_in(x, mask), *given)


def numbers_in(x: Any, mask: Any = None) -> Any:
    """Return where an array has numbers, and a mask is true.

    Examples
    --------
    >>> import tilearray as ta
    >>> numbers_in(ta.asarray([1.0, ta.nan])).tolist()
    [True, False]
    """
    numbers = bitwise_invert(isnan(x))
    return numbers if mask is None else logical_and(numbers, mask)


def _remember(words: Words, x: ArrayBase, where: Any, mask: ArrayBase, call: Call) -> None:
    """Keep the call of an array and a mask, which it gives the shape of the array."""
    if not isinstance(where, ArrayBase):
        return
    signature = mask._signature
    if where._signature is signature:
        remember((*words, WHERE), (x, where), call)
        return

    def broadcasting(stream: Any, x: Any, where: Any) -> Any:
        return call(stream, x, where._make(where._buffer, where._offset, signature))

    remember((*words, WHERE), (x, where), broadcasting)


def masked(x: ArrayBase, mask: ArrayBase | None, neutral: Any) -> Any:
    """Return `x` with a value in the places that a mask leaves out.

    Examples
    --------
    >>> import tilearray as ta
    >>> masked(ta.asarray([1, 2]), ta.asarray([True, False]), 0).tolist()
    [1, 0]
    """
    if mask is None:
        return x
    return choose(mask, x, neutral if classify(neutral) is None else as_number(neutral, x.dtype, "where"))


def typed(like: A, number: Any, function: str) -> A:
    """Return a number as a 0-d array of the dtype of another array.

    Examples
    --------
    >>> import tilearray as ta
    >>> typed(ta.zeros(3, dtype="int8"), 7, "sum")
    Array(7, dtype=int8, device='cpu')
    """
    return fill(new_like(like, ()), initial_number(function, number, like.dtype), function)


def initial_number(function: str, number: Any, dtype: np.dtype) -> Number:
    """Return `initial` as a Python number of the kind of a dtype.

    Raises
    ------
    OperandError
        If it is not a number.
    DTypeError, ScalarOverflowError
        If the dtype does not hold it.

    Examples
    --------
    >>> import tilearray as ta
    >>> initial_number("sum", 7, ta.float32)
    7.0
    """
    value: Any = number_of(function, number) if isinstance(number, _TYPED) and number.shape == () else number
    if classify(value) is None:
        raise OperandError(f"{function}: expected initial as a number, got {type_name(number)}; write initial=0")
    return as_number(value, dtype, function)


def finished(function: str, found: Any, out: ArrayBase | None) -> Any:
    """Return a result, written to `out` if that is given.

    Raises
    ------
    ShapeError, DTypeError, DeviceError
        If `out` has another shape, a dtype of a lower kind, or another device.
    OperandError, WriteError
        If `out` is not an Array, or is read-only.

    Examples
    --------
    >>> import tilearray as ta
    >>> out = ta.zeros(2)
    >>> finished("sum", ta.asarray([1, 2]), out) is out, out.tolist()
    (True, [1.0, 2.0])
    """
    if out is None:
        return found
    check_target(function, out)
    if found._signature.device is not out._signature.device:
        common_device(function, [found._signature, out._signature])
    if out.shape != found.shape:
        raise ShapeError(
            f"{function}: expected out of shape {found.shape}, got {out.shape}; write out=ta.empty({found.shape})"
        )
    if not can_cast_same_kind(found.dtype, out.dtype):
        raise DTypeError(
            f"{function}: expected out of a dtype that can store {found.dtype.name}, got {out.dtype.name}; "
            f"write out=ta.empty({found.shape}, dtype={found.dtype.name!r})"
        )
    return execute(assign, (found,), out)
