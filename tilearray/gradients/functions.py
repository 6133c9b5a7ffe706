"""`vjp`, `grad`, `value_and_grad` and `jvp`: derivatives of functions of arrays.

A function runs once on followed arrays (`tilearray.gradients.followed`), which records the operations that its
arguments reach. Then the steps run backward, each with its rule (`tilearray.gradients.pullbacks`), in functions of the
library. So a derivative of a derivative needs nothing more, and neither does the derivative along a direction: the
cotangents of a vjp are linear, so `jvp` is the vjp of a vjp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import full
from tilearray.arrays.frameworks import called, is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped, members, names
from tilearray.engine.devices import Device
from tilearray.engine.signature import ArrayBase
from tilearray.errors import DTypeError, GradientError, OperandError, ShapeError, shown, type_name
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import new_like
from tilearray.gradients import parts as parts  # followed arrays run whole functions by it
from tilearray.gradients.runs import Run, followed_run
from tilearray.gradients.steps import FLOATS
from tilearray.gradients.views import View
from tilearray.ops.execute import fill
from tilearray.ops.signatures import show
from tilearray.promotion.scalars import StandIn, classify, needed

# --- vjp -------------------------------------------------------------------------------------------------------------


def vjp(function: Callable[..., Any], /, *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return the result of a function, and the function from cotangents of the result to gradients of the arguments.

    Parameters
    ----------
    function : callable
        It takes and returns arrays, and tuples, lists and dicts of them. It may call the functions of ta on them, and
        decide by their values. It must not write to its arguments.
    *args
        Its arguments. Gradients of broadcast operands are summed to their shape, and come in their dtype.

    Returns
    -------
    tuple of (result, pull)
        ``pull(cotangents)`` takes arrays of the structure and shapes of the result, or a number for all elements of
        one, and returns one gradient for each argument: None for integers, bools and all that is not an array. It may
        be called again.

    Raises
    ------
    GradientError
        If an operation has no derivative.

    Examples
    --------
    >>> import tilearray as ta
    >>> a, b = ta.asarray([[0.0, 1.0, 2.0]]), ta.asarray([[10.0], [20.0]])
    >>> total, pull = ta.vjp(ta.add, a, b)
    >>> pull(ta.ones_like(total))
    (Array([[2., 2., 2.]], dtype=float32, device='cpu'), Array([[3.],
           [3.]], dtype=float32, device='cpu'))
    """
    _check_callable("vjp", function)
    if any(is_foreign(leaf) for leaf in leaves(args)):
        args = mapped(args, _as_ours)
    run = followed_run(function, args, {}, None)

    def pull(cotangents: Any, /) -> tuple[Any, ...]:
        found = iter(run.pulled(_checked("vjp", cotangents, run)))
        return tuple([mapped(each, lambda _: next(found)) for each in args])

    return run.results, pull


def _as_ours(value: Any) -> Any:
    return asarray(value) if is_foreign(value) else value


def _check_callable(name: str, function: Any) -> None:
    if not callable(function):
        raise OperandError(f"{name}: expected a function, got {type_name(function)}; write ta.{name}(lambda x: ...)")


def _checked(function: str, cotangents: Any, run: Run) -> list[Any]:
    """Return the cotangents of all results, as arrays of their shapes and dtypes."""
    if members(run.results) is not None and _structure(cotangents) != _structure(run.results):
        raise OperandError(
            f"{function}: expected cotangents in the structure of the result, {_outline(run.results)}, got "
            f"{_outline(cotangents)}; write one for each array of the result"
        )
    given = list(leaves(cotangents)) if members(run.results) is not None else [cotangents]
    return [_fit(function, g, view, real) for g, (view, real) in zip(given, run.views, strict=True)]


def _structure(value: Any) -> Any:
    parts = members(value)
    return None if parts is None else (names(value), *[_structure(part) for part in parts])


def _outline(value: Any) -> str:
    """The structure of a value as text, such as ``(array, {'a': array})``."""
    parts = members(value)
    if parts is None:
        return "array"
    inside = [_outline(part) for part in parts]
    if isinstance(value, dict):
        named = zip(cast("dict[Any, Any]", value), inside, strict=True)
        return "{" + ", ".join(f"{shown(name)}: {part}" for name, part in named) + "}"
    start, end = "[]" if isinstance(value, list) else "()"
    return start + ", ".join(inside) + end


def _fit(function: str, g: Any, view: View | None, real: Any) -> Any:
    """Return a cotangent of a result, as an array of its shape and dtype."""
    if view is None or g is None:
        return None
    return _like(function, "cotangent", g, view.layout.shape, view.dtype, real)


def _like(function: str, kind: str, g: Any, shape: tuple[int, ...], dtype: np.dtype, real: Any) -> Any:
    """Return a cotangent or a tangent as an array of a shape and a dtype on the device of `real`."""
    if not isinstance(g, ArrayBase):
        if classify(g) is None:
            g = asarray(g) if is_foreign(g) else asarray(g, dtype=dtype, device=real.device)
        else:  # the same for all elements
            g = fill(new_like(real, shape, dtype), g, function)
    if g.shape != shape:
        raise ShapeError(
            f"{function}: expected a {kind} of shape {shape}, got {g.shape}; write ta.broadcast_to(g, {shape})"
        )
    if dtypes.info(g.dtype).kind == "complex" and dtypes.info(dtype).kind != "complex":
        raise DTypeError(f"{function}: expected a real {kind}, got {g.dtype.name}; write ta.real(g)")
    return g if g.dtype == dtype else astype(g, dtype)


# --- grad ------------------------------------------------------------------------------------------------------------


def grad(function: Callable[..., Any], /, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that computes the gradient of a function whose result is one real number.

    Parameters
    ----------
    function : callable
        As for `vjp`. It returns an array of one element, of a float dtype.
    argnums : int or tuple of int
        The arguments that are differentiated: arrays of float or complex dtypes, Python floats, which become 0-d arrays
        on the device of the first array, or lists, tuples and dicts of them.

    Returns
    -------
    callable
        It takes the arguments of the function, also arrays of other libraries, and returns the gradient; a tuple of
        them if `argnums` is one. Complex gradients are ``dL/d(real) + 1j * dL/d(imag)``, as torch's.

    Raises
    ------
    GradientError
        At the call, if an argument is an integer, the result is not one real number, or an operation has no derivative.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.grad(lambda x: ta.sum(x**2))(ta.asarray([1.0, 2.0]))
    Array([2., 4.], dtype=float32, device='cpu')
    """
    both = _differentiated("grad", function, argnums)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def value_and_grad(function: Callable[..., Any], /, argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return the function that computes the result of a function, and its gradient as `grad` does.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.value_and_grad(lambda x: ta.sum(x**2))(ta.asarray([1.0, 2.0]))
    (Array(5., dtype=float32, device='cpu'), Array([2., 4.], dtype=float32, device='cpu'))
    """
    return _differentiated("value_and_grad", function, argnums)


def _differentiated(name: str, function: Callable[..., Any], argnums: Any) -> Callable[..., Any]:
    _check_callable(name, function)
    alone = not isinstance(argnums, tuple | list)
    wanted: list[Any] = [argnums] if alone else [*cast("Sequence[Any]", argnums)]
    if not wanted or not all(type(place) is int for place in wanted):
        raise OperandError(
            f"{name}: expected argnums as an int or a tuple of them, got {shown(argnums)}; write argnums=0"
        )

    def run(*args: Any, **kwargs: Any) -> Any:
        if any(is_foreign(leaf) for leaf in leaves((args, kwargs))):
            return called(run, args, kwargs)
        places = [_place(name, place, len(args)) for place in wanted]
        given, device = list(args), _device_of(args)
        for place in places:
            given[place] = mapped(given[place], functools.partial(_differentiable, name, place, device))
        found = followed_run(function, given, kwargs, set(places))
        view, real = _one_number(name, found)
        gradients = iter(found.pulled([_one(view, real)]))
        by_place = {place: mapped(given[place], lambda _: next(gradients)) for place in sorted(set(places))}
        result = tuple([by_place[place] for place in places])
        return found.results, result[0] if alone else result

    return run


def _place(name: str, place: int, count: int) -> int:
    if not count:
        raise OperandError(f"{name}: expected arguments by position, got none; write f(x), and not f(x=x)")
    if not -count <= place < count:
        raise OperandError(
            f"{name}: expected argnums below {count}, the number of arguments, got {place}; write argnums=0"
        )
    return place % count


def _differentiable(name: str, place: int, device: Device | None, value: Any) -> Any:
    """Return an argument that has a gradient; a float as a 0-d array on a device."""
    value = _as_array(device, value)
    if isinstance(value, ArrayBase):
        if dtypes.info(value.dtype).kind in FLOATS:
            return value
        kind, instead = value.dtype.name, "x.astype('float32')"
    else:
        value = needed(value)
        kind, instead = type_name(value), "float(x)" if isinstance(value, int) else "ta.asarray(x)"
    raise GradientError(
        f"{name}: expected argument {place} of a float or complex dtype, got {kind}, which has no gradient; write "
        f"{instead}"
    )


def _device_of(args: Sequence[Any]) -> Device | None:
    """The device of the first array among arguments, on which their numbers become arrays; None without one."""
    return next((leaf._signature.device for leaf in leaves(args) if isinstance(leaf, ArrayBase)), None)


def _as_array(device: Device | None, value: Any) -> Any:
    """Return a float or complex number as a 0-d array on a device; any other object as it is."""
    if isinstance(value, StandIn) and isinstance(value.number, float | complex):
        return full((), value, device=device)
    return asarray(value, device=device) if isinstance(value, float | complex | np.inexact) else value


def _one_number(name: str, run: Run) -> tuple[View | None, Any]:
    result = run.results
    if not isinstance(result, ArrayBase) and not isinstance(result, int | float):
        raise GradientError(f"{name}: expected one array as the result, got {type_name(result)}; write ta.vjp")
    if isinstance(result, ArrayBase):
        if result.size != 1:
            raise GradientError(
                f"{name}: expected a result of one element, got shape {result.shape}; write ta.sum of it, or ta.vjp"
            )
        if dtypes.info(result.dtype).kind == "complex":
            raise GradientError(
                f"{name}: expected a real result, got {result.dtype.name}; write ta.real or ta.abs of it"
            )
    return run.views[0]


def _one(view: View | None, real: Any) -> Any:
    if view is None:
        return None
    return fill(new_like(real, view.layout.shape, view.dtype), 1, "grad")


# --- jvp -------------------------------------------------------------------------------------------------------------


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], /) -> tuple[Any, Any]:
    """Return the result of a function, and its derivative along a direction.

    It is the vjp of a vjp, and costs about three times a gradient.

    Parameters
    ----------
    function : callable
        As for `vjp`; it returns one array.
    primals : sequence
        The arguments. A float that moves becomes a 0-d array.
    tangents : sequence of Array
        For each argument a direction of its shape; None for one that does not move.

    Returns
    -------
    tuple of (result, tangent)

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([1.0, 2.0])
    >>> ta.jvp(lambda x: x * x, (x,), (ta.asarray([1.0, 10.0]),))
    (Array([1., 4.], dtype=float32, device='cpu'), Array([ 2., 40.], dtype=float32, device='cpu'))
    """
    _check_callable("jvp", function)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not issubclass(type(given), (list, tuple)):  # an endless iterable would fill the memory
            raise OperandError(f"jvp: expected {name} as a tuple or a list, got {type_name(given)}; write (x,)")
    primals, tangents = mapped((tuple(primals), tuple(tangents)), _as_ours)
    if len(primals) != len(tangents):
        raise OperandError(
            f"jvp: expected as many tangents as arguments, {len(primals)}, got {len(tangents)}; write None for an "
            f"argument that does not move"
        )
    as_primal = functools.partial(_as_array, _device_of(primals))
    primals = tuple([each if tangent is None else mapped(each, as_primal) for each, tangent in zip(primals, tangents)])
    tangents = [None if tangent is None else _tangent(each, tangent) for each, tangent in zip(primals, tangents)]
    result, pull = vjp(function, *primals)
    if not isinstance(result, ArrayBase):
        raise GradientError(f"jvp: expected one array as the result, got {type_name(result)}; write ta.vjp")
    moving = [place for place, tangent in enumerate(tangents) if tangent is not None]

    def pulled(g: Any) -> tuple[Any, ...]:
        gradients = pull(g)
        return tuple([gradients[place] for place in moving])

    _, push = vjp(pulled, fill(new_like(result, result.shape), 0, "jvp"))
    return result, push(tuple([tangents[place] for place in moving]))[0]


def _tangent(primal: Any, tangent: Any) -> Any:
    """Return the tangent of an argument, of which each array has the shape and the dtype of the argument's."""
    if _structure(primal) != _structure(tangent):
        raise OperandError(
            f"jvp: expected a tangent in the structure of the argument, {_outline(primal)}, got {_outline(tangent)}; "
            f"write one for each array of the argument"
        )
    pairs = zip(leaves(primal), leaves(tangent), strict=True)
    found = iter(
        [t if t is None or not _moves(x) else _like("jvp", "tangent", t, x.shape, x.dtype, x) for x, t in pairs]
    )
    return mapped(tangent, lambda _: next(found))


def _moves(x: Any) -> bool:
    return isinstance(x, ArrayBase) and dtypes.info(x.dtype).kind in FLOATS


show([vjp, grad, value_and_grad, jvp])
