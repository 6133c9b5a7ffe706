"""Choosing and changing elements by NumPy's names. Functions that change an array write to it, and return None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fills import full, zeros_like
from tilearray.engine.common_dtype import common_dtype_of
from tilearray.engine.context import STATE, operand_of
from tilearray.errors import DTypeError, OperandError, ShapeError, shown
from tilearray.functions.arguments import all_arrays, as_array, as_array_beside, deepest, listed
from tilearray.functions.conversion import astype
from tilearray.functions.indexing.assign import set_selected
from tilearray.functions.indexing.take import AlongAxis, integers_of, take, take_along_axis
from tilearray.functions.joining import stack
from tilearray.functions.manipulation import (
    as_strided,
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    new_like,
    reshape,
)
from tilearray.functions.reduction_options import finished
from tilearray.functions.reductions import any
from tilearray.functions.searching import nonzero
from tilearray.geometry.shapes import normalize_axis
from tilearray.numpy_names.on_device import number_beside
from tilearray.numpy_names.stacking import resize
from tilearray.numpy_names.through_numpy import exact
from tilearray.ops.arithmetic import choose as choose_elements
from tilearray.ops.arithmetic import remainder
from tilearray.ops.composed import clip
from tilearray.ops.execute import check_target, execute, fill
from tilearray.ops.moves import assign
from tilearray.ops.one_launch import OneLaunch
from tilearray.promotion.operands import RANK, SCALAR_KIND
from tilearray.promotion.scalars import as_number, classify
from tilearray.promotion.storing import Casting, allows_cast

# --- choosing ------------------------------------------------------------------------------------------------------


def extract(condition: Any, arr: Any) -> Array:
    """Return the elements where a condition holds, in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.extract([True, False, True], [1, 2, 3])
    Array([1, 3], dtype=int64, device='cpu')
    """
    holds, x = all_arrays("extract", [condition, arr])
    return take(reshape(x, -1), nonzero(reshape(holds, -1))[0])


def compress(condition: Any, a: Any, axis: int | None = None, out: Array | None = None) -> Array:
    """Return the slices along an axis where a 1-d condition holds; without an axis the elements.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.compress([False, True], [[1, 2], [3, 4]], 1).tolist()
    [[2], [4]]
    """
    holds, x = all_arrays("compress", [condition, a])
    if holds.ndim != 1:
        raise ShapeError(f"compress: expected a 1-d condition, got shape {holds.shape}; write ta.extract(condition, x)")
    x, place = (reshape(x, -1), 0) if axis is None else (x, normalize_axis(axis, x.ndim, "compress"))
    return finished("compress", take(x, nonzero(holds)[0], place), out)


def choose(a: Any, choices: Any, out: Array | None = None, mode: str = "raise") -> Array:
    """Return for each element of an index array the element of the choice with that number.

    Parameters
    ----------
    a : Array
        Of integers, from 0 to the number of choices less 1.
    choices : sequence of Array
        They broadcast against each other and against `a`.
    out : Array, optional
    mode : {"raise", "wrap", "clip"}
        What happens to other numbers.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    Array([ 1, 20,  3], dtype=int64, device='cpu')
    """
    if mode not in ("raise", "wrap", "clip"):
        raise OperandError(f"choose: expected mode as 'raise', 'wrap' or 'clip', got {shown(mode)}; write one of them")
    members = listed("choose", choices)
    number, *values = all_arrays("choose", [a, *members])
    count = len(values)
    if mode == "wrap":
        number = remainder(number.astype(dtypes.int64), count)
    elif mode == "clip":
        number = clip(number.astype(dtypes.int64), 0, count - 1)
    elif number.size and dtypes.info(number.dtype).kind == "int" and bool(any(number < 0)):
        raise OperandError(f"choose: expected numbers from 0 to {count - 1}, got a negative one; write mode='wrap'")
    number, *values = broadcast_arrays(number, *_in_one_dtype(members, values))
    found = take_along_axis(stack(values), expand_dims(number, 0), 0)[0]
    return finished("choose", found, out)


def _in_one_dtype(members: list[Any], values: list[Array]) -> list[Array]:
    """Choices, whose arrays are `values`, in the common dtype if Python numbers are among arrays: those are weak."""
    kinds = [classify(one) for one in members]
    if None not in kinds or kinds.count(None) == len(kinds):
        return values
    operands = [kind or operand_of(value, "choose") for kind, value in zip(kinds, values)]
    common = common_dtype_of(tuple(operands), "choose")
    return [
        astype(value, common, copy=False) if kind is None else full((), one, dtype=common, device=value.device)
        for one, kind, value in zip(members, kinds, values)
    ]


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Return elements of the first choice whose condition holds, or a default.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(5)
    >>> ta.select([x < 2, x > 3], [x, x * 10], -1)
    Array([ 0,  1, -1, -1, 40], dtype=int64, device='cpu')
    """
    condlist, choicelist = listed("select", condlist), listed("select", choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(
            f"select: expected as many choices as conditions and at least one, got {len(condlist)} conditions and "
            f"{len(choicelist)} choices; write one choice for each condition"
        )
    conditions = all_arrays("select", condlist)
    for condition in conditions:
        if condition.dtype != dtypes.bool_:
            raise DTypeError(f"select: expected bool conditions, got {condition.dtype.name}; write condition != 0")
    found = _in_common_dtype(default, choicelist, conditions[0])
    for condition, choice in zip(reversed(conditions), reversed(choicelist)):
        found = choose_elements(condition, choice, found)
    return found


def _in_common_dtype(default: Any, choices: list[Any], beside: Array) -> Any:
    """The default of `select` in the common dtype of all choices, which thus does not depend on their order."""
    dtypes_of_all = {getattr(one, "dtype", None) for one in choices}
    if len(dtypes_of_all) == 1 and None not in dtypes_of_all:  # in any order the common dtype is that with the default
        return default
    given = [one if classify(one) is not None else as_array_beside("select", one, beside) for one in choices]
    kinds = [classify(one) for one in (*given, default)]
    if None not in kinds[:-1]:
        return default
    last: Array = (
        number_beside(default, beside) if kinds[-1] is not None else as_array_beside("select", default, beside)
    )
    typed = [one.dtype if kind is None else kind for one, kind in zip((*given, last), kinds)]
    common = STATE.get().semantics.result_type(typed, "select")
    if kinds[-1] is not None:
        return full((), as_number(default, common, "select"), dtype=common, device=beside.device)
    return astype(last, common, copy=False)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Array:
    """Return an array of the dtype of `x` that functions compute, each of the elements where its condition holds.

    Parameters
    ----------
    x : Array
    condlist : sequence of bool Array, or one that is 1-d
    funclist : sequence of callable or number
        One for each condition; one more is for all elements without a condition that holds.
    *args, **kwargs
        Passed to the functions.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([-2.0, 3.0])
    >>> ta.piecewise(x, [x < 0, x >= 0], [lambda part: -part, 7])
    Array([2., 7.], dtype=float32, device='cpu')
    """
    values = as_array("piecewise", x)
    is_list = isinstance(condlist, (list, tuple))
    given = cast(Any, condlist) if is_list else as_array_beside("piecewise", condlist, values)
    alone = isinstance(given, Array) and given.ndim < 2
    conditions: list[Any] = [given] if alone else list(cast("Sequence[Any]", given))
    if not conditions:
        raise ShapeError("piecewise: expected a condition at least, got none; write [x < 0], [f, g]")
    holds = [astype(as_array_beside("piecewise", one, values), dtypes.bool_, copy=False) for one in conditions]
    funclist = listed("piecewise", funclist)
    if len(funclist) - len(holds) not in (0, 1):
        raise ShapeError(
            f"piecewise: expected {len(holds)} functions or {len(holds) + 1}, got {len(funclist)}; "
            f"write one for each condition"
        )
    if _are_of_floats(values, holds, funclist):
        return _numbers_where(len(holds))(values, *holds, *funclist)
    if len(funclist) > len(holds):
        holds.append(_none_of(holds))
    beside = deepest([values, *[each for each in funclist if isinstance(each, Array)]])
    found = fill(new_like(beside, values.shape, values.dtype), 0, "piecewise")
    for condition, function in zip(holds, funclist):
        places = broadcast_to(condition, values.shape)
        found[places] = function(values[places], *args, **kwargs) if callable(function) else function
    return found


def _none_of(conditions: Sequence[Any]) -> Any:
    """Where no condition holds."""
    found = ~conditions[0]
    for one in conditions[1:]:
        found = found & ~one
    return found


def _are_of_floats(values: Array, holds: Sequence[Array], numbers: Sequence[Any]) -> bool:
    """Return whether all functions are numbers that dense floats hold, and each element has a condition of its own."""
    layout = values._signature.layout
    return (
        layout.contiguous
        and values.dtype in (dtypes.float32, dtypes.float64)
        and all(one._signature.layout == layout for one in holds)
        and _NUMBERS.issuperset(map(type, numbers))
    )


_NUMBERS = frozenset((int, float))


@cache
def _numbers_where(count: int) -> OneLaunch:
    """Return the function of an array, so many conditions, and a number for each or one more."""

    def numbers_where(values: Array, *given: Any) -> Array:
        holds, numbers = [*given[:count]], given[count:]
        if len(numbers) > count:
            holds.append(_none_of(holds))
        found = zeros_like(values)
        for condition, number in zip(holds, numbers, strict=True):
            found = choose_elements(condition, number, found)
        return found

    return OneLaunch(numbers_where)


# --- changing ------------------------------------------------------------------------------------------------------


def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Write to the main diagonal of an array with at least two axes.

    Parameters
    ----------
    a : Array
        With more than two axes, all of one size.
    val : number or Array
        An array is repeated along the diagonal.
    wrap : bool
        Whether the diagonal of a tall matrix begins anew after each block, with one row between.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros((2, 3))
    >>> ta.fill_diagonal(x, 5)
    >>> x.tolist()
    [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]
    """
    check_target("fill_diagonal", a)
    shape = a.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) != 1):
        raise ShapeError(
            f"fill_diagonal: expected two axes, or more of one size, got shape {shape}; "
            f"write ta.diagonal(x)[...] = value"
        )
    _fill(as_strided(a, (min(shape),), (sum(a.strides),)), val)
    if wrap and len(shape) == 2:
        for start in range(shape[1] + 1, shape[0], shape[1] + 1):
            fill_diagonal(a[start:], val)


def _fill(diagonal: Array, val: Any) -> None:
    value = exact("fill_diagonal", val) if isinstance(val, (list, tuple, np.ndarray)) else val
    if np.ndim(value) if not isinstance(value, Array) else value.ndim:
        value = resize(as_array_beside("fill_diagonal", value, diagonal), diagonal.shape)
    diagonal[...] = value


def putmask(a: Array, mask: Any, values: Any) -> None:
    """Write values where a mask holds; values of another size are repeated in C order.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(4)
    >>> ta.putmask(x, x > 1, -1)
    >>> x.tolist()
    [0, 1, -1, -1]
    """
    holds, given = _mask_and_values("putmask", a, mask, values)
    if not isinstance(given, Array):
        a[_true(holds, a.shape)] = given
        return
    if not given.size:
        return
    spread = given if given.shape == a.shape or given.size == 1 else resize(given, a.shape)
    _write(a, reshape(holds, a.shape), reshape(spread, a.shape if spread.size == a.size else ()))


def copyto(dst: Array, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    """Write `src` to `dst`, broadcast; only where `where` holds.

    Parameters
    ----------
    dst : Array
    src : number or Array
    casting : {"same_kind", "unsafe", "no", "equiv", "safe"}
        Which casts are allowed: "same_kind" allows none of floats to integers. A Python number is of its own kind.
    where : bool or bool Array

    Raises
    ------
    DTypeError
        If `casting` does not allow the dtype of `src` to become that of `dst`.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros(3)
    >>> ta.copyto(x, [1, 2, 3], where=[True, False, True])
    >>> x.tolist()
    [1.0, 0.0, 3.0]
    """
    check_target("copyto", dst)
    value = _written("copyto", src, dst)
    _check_casting(value, dst, casting)
    if casting == "unsafe" and not isinstance(value, int):  # an integer that does not fit is an error for NumPy as well
        value = (value if classify(value) is None else number_beside(value, dst)).astype(dst.dtype)
    if where is True:
        dst[...] = value
        return
    mask = as_array_beside("copyto", where, dst)
    if isinstance(value, Array):
        _write(dst, mask, value)
    else:
        dst[_true(broadcast_to(mask, dst.shape), dst.shape)] = value


def _check_casting(value: Any, target: Array, casting: Casting) -> None:
    """Raise DTypeError if NumPy's rule `casting` does not allow `copyto` to write a value."""
    number, after = classify(value), target.dtype
    allowed = allows_cast(casting, after if number is not None else value.dtype, after, "copyto")
    if number is not None:
        allowed = casting == "unsafe" or RANK[SCALAR_KIND[number]] <= RANK[dtypes.info(after).kind]
    if not allowed:
        before = shown(value) if number is not None else value.dtype.name
        raise DTypeError(
            f"copyto: casting={casting!r} does not allow {before} to become {after.name}; write casting='unsafe'"
        )


def _written(function: str, values: Any, target: Array) -> Any:
    """The values that a function writes, as an Array; a number takes the dtype of the target."""
    return values if classify(values) is not None else as_array_beside(function, values, target)


def _mask_and_values(function: str, target: Array, mask: Any, values: Any) -> tuple[Array, Any]:
    """The mask and the values of a function that writes to a target where the mask holds."""
    check_target(function, target)
    holds, given = as_array_beside(function, mask, target), _written(function, values, target)
    if holds.size != target.size:
        raise ShapeError(
            f"{function}: expected a mask of shape {target.shape}, got {holds.shape}; write ta.broadcast_to"
        )
    return holds, given


def _true(condition: Array, shape: tuple[int, ...]) -> Array:
    """The mask of a shape that holds where a condition of as many elements does."""
    found = condition if condition.shape == shape else reshape(condition, shape)
    return found if found.dtype == dtypes.bool_ else found.astype(dtypes.bool_)


def _repeated(values: Any, shape: tuple[int, ...]) -> Any:
    """Values that fill a shape in C order: repeated if there are too few. One value broadcasts by itself."""
    if not isinstance(values, Array):
        return values
    if values.size == 1:
        return reshape(values, ())
    return reshape(values, -1) if values.size == math.prod(shape) else resize(values, shape)


def _write(target: Array, mask: Array, value: Array) -> None:
    cast = execute(assign, (value,), new_like(target, value.shape))
    execute(choose_elements, (mask, cast, target), target)


def place(arr: Array, mask: Any, vals: Any) -> None:
    """Write values one after the other to the places where a mask holds, and begin anew when they are used up.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(4)
    >>> ta.place(x, x > 0, [7, 8])
    >>> x.tolist()
    [0, 7, 8, 7]
    """
    holds, given = _mask_and_values("place", arr, mask, vals)
    if not isinstance(given, Array):
        arr[_true(holds, arr.shape)] = given
        return
    places = nonzero(reshape(holds, -1))[0]
    if not places.size:
        return
    if not given.size:
        raise ShapeError("place: expected at least one value, got none; write a number")
    flat = reshape(arr, -1)
    flat[places] = _repeated(given, places.shape)
    if not _shares(flat, arr):
        arr[...] = reshape(flat, arr.shape)


def _shares(view: Array, x: Array) -> bool:
    return view._buffer is x._buffer


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places among all elements in C order; values that are too few are repeated.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.arange(4)
    >>> ta.put(x, [0, 3], [7, 8])
    >>> x.tolist()
    [7, 1, 2, 8]
    """
    check_target("put", a)
    places, given = reshape(integers_of(ind, a, "put"), -1), _written("put", v, a)
    if mode == "wrap":
        places = remainder(places, a.size)
    elif mode == "clip":
        places = clip(places, 0, a.size - 1)
    if not places.size or (isinstance(given, Array) and not given.size):
        return
    flat = reshape(a, -1)
    flat[places] = _repeated(given, places.shape)
    if not _shares(flat, a):
        a[...] = reshape(flat, a.shape)


def put_along_axis(arr: Array, indices: Any, values: Any, axis: int | None) -> None:
    """Write values to the places that `take_along_axis` reads.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[3, 1, 2], [4, 6, 5]])
    >>> ta.put_along_axis(x, ta.asarray([[1], [1]]), 0, 1)
    >>> x.tolist()
    [[3, 0, 2], [4, 0, 5]]
    """
    check_target("put_along_axis", arr)
    places = integers_of(indices, arr, "put_along_axis")
    if axis is None:
        put(arr, reshape(places, -1), values)
        return
    along = normalize_axis(axis, arr.ndim, "put_along_axis")
    if places.ndim != arr.ndim:
        raise ShapeError(
            f"put_along_axis: expected indices of {arr.ndim} axes, got shape {places.shape}; write ta.expand_dims"
        )
    whole = tuple([places.shape[along] if place == along else size for place, size in enumerate(arr.shape)])
    found = places if places.shape == whole else broadcast_to(places, whole)
    set_selected(AlongAxis(arr, (along,), (found,), whole, 0), values)
