"""`pad`: an array with elements around it. On a GPU one launch finds the element of each place, by its coordinates.

The modes that compute elements are in `tilearray.numpy_names.padding_by_axes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.execute import is_recorded, run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, again, is_plain, remember_launch
from tilearray.engine.signature import from_host
from tilearray.errors import OperandError, ShapeError, shown
from tilearray.functions.arguments import as_array, by_expressions
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.take import take
from tilearray.functions.manipulation import dense, new_like
from tilearray.geometry.layout import Layout
from tilearray.geometry.shapes import as_int, normalize_axis
from tilearray.numpy_names.padding_by_axes import COMPUTED, padded
from tilearray.numpy_names.through_numpy import by_numpy, exact
from tilearray.ops.arithmetic import choose
from tilearray.ops.reduction import call_row
from tilearray.ops.row import ANY
from tilearray.promotion.scalars import Number, as_number

Widths = list[tuple[int, int]]
Constants = list[tuple[Number, Number]]

_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
MOST = 2**30
"""The most elements that are found by their coordinates: 32 bits hold a place and twice the size of an axis."""


def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """Return an array with elements added before and after along each axis.

    Parameters
    ----------
    array : Array
    pad_width : int, pair of int, or a pair for each axis
        How many elements before and after.
    mode : str
        "constant", "empty", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "median" and
        "minimum". Functions that write the padding run on the host.
    **kwargs
        ``constant_values``, ``reflect_type``, ``end_values`` and ``stat_length``, as of NumPy.

    Raises
    ------
    ShapeError
        If the widths do not fit.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.pad([1, 2], (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int64, device='cpu')
    >>> ta.pad([1, 2, 3], 2, "reflect")
    Array([3, 2, 1, 2, 3, 2, 1], dtype=int64, device='cpu')
    """
    words = ("pad", pad_width, mode) if not kwargs and is_plain(pad_width) and type(mode) is str else None
    known = again(words, array)
    if known is not None:
        return known
    x = as_array("pad", array)
    widths = _pairs("pad", pad_width, x.ndim)
    if mode in ("constant", "empty"):
        constants = _constants(kwargs.pop("constant_values", 0), x)
        _check_no_options(mode, kwargs)
        found = _in_one_launch(x, widths, "constant", words, constants)
        return _framed(x, widths, constants) if found is None else found
    if mode in _BY_INDEX and kwargs.get("reflect_type", "even") == "even":
        _check_no_options(mode, {name: value for name, value in kwargs.items() if name != "reflect_type"})
        found = _in_one_launch(x, widths, cast(str, mode), words)
        return _by_index(x, widths, mode) if found is None else found
    if by_expressions(x) and (
        mode in COMPUTED or (mode in ("reflect", "symmetric") and kwargs["reflect_type"] == "odd")
    ):
        return padded(x, widths, cast(str, mode), kwargs)
    return by_numpy("pad", (x,), [tuple(pair) for pair in widths], mode, **kwargs).astype(x.dtype, copy=False)


def _check_no_options(mode: Any, options: dict[str, Any]) -> None:
    """Raise OperandError if a mode is given options that it does not have."""
    if options:
        raise OperandError(f"pad: expected no {', '.join(options)} for mode={mode!r}, got it; leave it out")


def _pairs(function: str, given: Any, ndim: int) -> Widths:
    """A pair of widths for each axis."""
    if isinstance(given, dict):
        named = cast("dict[int, Any]", given)
        chosen: dict[int, Any] = {normalize_axis(axis, ndim, function): pair for axis, pair in named.items()}
        pairs = [chosen.get(axis, 0) for axis in range(ndim)]
        given = [(pair, pair) if isinstance(pair, int) else pair for pair in pairs]
    try:
        widths = np.broadcast_to(np.asarray(exact(function, given)), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"{function}: expected an int, a pair, or a pair for each of {ndim} axes as pad_width, got {shown(given)}; "
            f"write [(before, after), ...]"
        ) from None
    pairs = [(as_int(before, function, "pad_width"), as_int(after, function, "pad_width")) for before, after in widths]
    if min([0, *[width for pair in pairs for width in pair]]) < 0:
        raise ShapeError(f"{function}: expected pad_width >= 0, got {shown(given)}; write x[1:-1] to shorten an array")
    return pairs


def _padded_shape(x: Array, widths: Widths) -> tuple[int, ...]:
    return tuple([before + size + after for size, (before, after) in zip(x.shape, widths)])


def _constants(given: Any, x: Array) -> Constants:
    """The numbers before and after along each axis, as the dtype of an array has them."""
    try:
        pairs = np.broadcast_to(np.asarray(exact("pad", given)), (x.ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: expected constant_values as a number, a pair, or a pair for each of {x.ndim} axes, got "
            f"{shown(given)}; write [(before, after), ...]"
        ) from None
    values: list[Any] = list(pairs.flat)
    numbers: list[Any] = [each.item() if isinstance(each, np.generic) else each for each in values]
    if not all(isinstance(number, (bool, int, float, complex)) for number in numbers):
        raise OperandError(f"pad: expected constant_values as numbers, got {shown(given)}; write constant_values=0")
    numbers = [as_number(number, x.dtype, "pad") for number in numbers]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


# --- one launch ------------------------------------------------------------------------------------------------------


def _in_one_launch(
    x: Array, widths: Widths, mode: str, words: Words | None, constants: Constants | None = None
) -> Array | None:
    """Return the padded array, found by the coordinates of its elements; None where no launch does that.

    One launch writes one constant.
    """
    shape = _padded_shape(x, widths)
    if not (sum(map(sum, widths)) and x.size and prod(shape) <= MOST and _finds_places(x)):
        return None
    numbers = [] if constants is None else [number for pair in constants for number in pair]
    if len(set(map(repr, numbers))) > 1:  # equal zeros have two signs
        return None
    source, result = dense(x), new_like(x, shape)
    groups = _groups(x.shape, widths, mode)
    operation = _padding(x.dtype, mode, tuple([how is not None for _, _, how in groups]))
    memory = source._view(Layout(shape, (0,) * len(shape)))
    operands: list[Any] = [memory, *numbers[:1]]
    for extent, stride, how in groups:
        operands += [extent, stride, *(how or ())]
    run_fixed(operation, operands, result)
    if source is x:
        remember_launch(words, x, operation, operands, result, result)
    return result


def _finds_places(x: Array) -> bool:
    """Return whether launches on the device of an array find elements by coordinates, and none is recorded."""
    device = x._signature.device
    return not is_recorded(device) and device.backend.computes_places and dtypes.info(x.dtype).kind in ANY


def _groups(shape: tuple[int, ...], widths: Widths, mode: str) -> list[tuple[int, int, tuple[int, ...] | None]]:
    """Return the axes from the last one on: of each, its new extent, its stride, and the numbers of `_coordinate`.

    Neighbouring axes without padding are one, and have no such numbers.

    >>> _groups((4, 2, 3), [(1, 2), (0, 0), (0, 0)], "edge")
    [(6, 1, None), (7, 6, (1, 4))]
    """
    groups, stride = list[tuple[int, int, tuple[int, ...] | None]](), 1
    for size, (before, after) in reversed(list(zip(shape, widths))):
        if before or after:
            groups.append((before + size + after, stride, _numbers(mode, size, before)))
        elif groups and groups[-1][2] is None:
            extent, step, _ = groups.pop()
            groups.append((extent * size, step, None))
        else:
            groups.append((size, stride, None))
        stride *= size
    return groups


def _numbers(mode: str, size: int, before: int) -> tuple[int, ...]:
    """Return the numbers of an axis that `_coordinate` takes."""
    if mode in ("constant", "edge"):
        return before, size
    period = {"wrap": size, "symmetric": 2 * size, "reflect": max(2 * size - 2, 1)}[mode]
    return -before % period, period


@lru_cache(256)
def _padding(dtype: np.dtype, mode: str, pads: tuple[bool, ...]) -> FixedOperation:
    """Return the operation that pads dense memory along some of its axes, given from the last one on.

    It gets the memory, the constant of that mode, and for each axis what `_groups` has. Unsigned division is faster.
    """
    builder, uint32 = ExpressionBuilder(), dtypes.uint32
    memory = builder.memory(dtype)
    constant = builder.number(dtype) if mode == "constant" else -1
    rest, source, inside = builder.cast(builder.node("index"), dtypes.int64, uint32), -1, -1
    for axis, is_padded in enumerate(pads):
        extent, stride = builder.number(uint32), builder.number(uint32)
        place = rest
        if axis < len(pads) - 1:
            place = builder.call("remainder", (rest, extent), uint32, "{x} % {y}")
            rest = builder.call("floor_divide", (rest, extent), uint32, "{x} // {y}")
        if is_padded:
            first, second = builder.number(uint32), builder.number(uint32)
            place = _coordinate(builder, mode, place, first, second)
            if mode == "constant":
                holds = builder.call("less", (place, second), dtypes.bool_, "{x} < {y}")
                both = (inside, holds)
                inside = holds if inside < 0 else builder.call("bitwise_and", both, dtypes.bool_, "{x} & {y}")
        if source < 0:
            source = builder.call("multiply", (place, stride), uint32, "{x} * {y}")
        else:
            source = builder.call("source", (source, place, stride), uint32, "{x} + {y} * {z}")
    if mode == "constant":
        zero = builder.constant(0, uint32)
        source = builder.call("where", (inside, source, zero), uint32, "tl.where({x}, {y}, {z})")
    found = builder.node("gather", memory, builder.cast(source, uint32, dtypes.int64))
    if mode == "constant":
        found = call_row(builder, choose, inside, found, constant, dtype=dtype)
    return FixedOperation("pad", builder.build([found], [dtype]))


def _coordinate(builder: ExpressionBuilder, mode: str, place: int, first: int, second: int) -> int:
    """Return the coordinate of an element of the array, for a place along a padded axis.

    The numbers are how many elements are before, and the size: a constant has coordinates that are not below the size.
    For the others they are a distance to the place where a period begins, and the period.
    """
    template = {
        "constant": "{x} - {y}",
        "edge": "tl.minimum(tl.maximum({x}, {y}) - {y}, {z} - 1)",
        "wrap": "({x} + {y}) % {z}",
        "reflect": "tl.minimum(({x} + {y}) % {z}, {z} - ({x} + {y}) % {z})",
        "symmetric": "tl.minimum(({x} + {y}) % {z}, {z} - 1 - ({x} + {y}) % {z})",
    }[mode]
    return builder.call(f"{mode} coordinate", (place, first, second), dtypes.uint32, template)


# --- several launches ------------------------------------------------------------------------------------------------


def _by_index(x: Array, widths: Widths, mode: Any) -> Array:
    """The array with elements of its own around it."""
    if not sum(map(sum, widths)):
        return x.copy()
    try:
        if not by_expressions(x):
            return from_host(np.ascontiguousarray(np.pad(to_numpy(x), widths, mode)), Array)
        for axis, (before, after) in enumerate(widths):
            if before or after:
                x = take(x, np.pad(np.arange(x.shape[axis]), (before, after), mode), axis)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise ShapeError(f"pad: {error}; write mode='constant' for an axis without elements") from error
    return x


def _framed(x: Array, widths: Widths, constants: Constants) -> Array:
    """The array in a larger one, with constants around it; the last axis writes the corners."""
    found = new_like(x, _padded_shape(x, widths))
    for axis, (size, (before, _)) in enumerate(zip(x.shape, widths)):
        front = (slice(None),) * axis
        found[(*front, slice(0, before))] = constants[axis][0]
        found[(*front, slice(before + size, None))] = constants[axis][1]
    found[tuple([slice(before, before + size) for size, (before, _) in zip(x.shape, widths)])] = x
    return found
