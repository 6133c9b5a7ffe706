"""NumPy's functions on tilearray's arrays: ``np.add(x, y)`` and ``np.concatenate([x, y])`` return Arrays, or raise.

A ufunc runs the op of its name. Every other function of NumPy that dispatches (NEP 18) is looked up in a table of the
parameters that a function of tilearray takes. A function in neither is an OperandError that says what to write.
Otherwise NumPy would convert the arrays, and silently return its own.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilearray.errors import OperandError
from tilearray.functions.inspection import namespace
from tilearray.geometry.shapes import normalize_axes
from tilearray.ops import BY_UFUNC

# --- ufuncs ----------------------------------------------------------------------------------------------------------


def from_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the op of the same name for ``np.sin(x)``, so that the result is an Array."""
    if ufunc is np.divmod and method == "__call__" and not kwargs:
        return from_ufunc(np.floor_divide, method, inputs, {}), from_ufunc(np.remainder, method, inputs, {})
    if ufunc in (np.matmul, np.vecdot) and method == "__call__":
        return from_function(ufunc, inputs, kwargs)
    op = BY_UFUNC.get(ufunc.__name__)
    if method != "__call__" or op is None:
        raise _unknown(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
    # NumPy's scalars compare through 0-d arrays, which have the same meaning.
    inputs = tuple([x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs])
    for operand in inputs:
        if isinstance(operand, np.ndarray):
            raise OperandError(
                f"np.{ufunc.__name__}: the operands are a tilearray Array and a numpy.ndarray; "
                f"write ta.asarray(y) for the latter"
            )
    out = kwargs.pop("out", (None,))
    unknown = ", ".join(sorted(kwargs))
    if unknown:
        raise OperandError(f"np.{ufunc.__name__}: {unknown} is not taken for tilearray Arrays; leave it out")
    return op(*inputs, out=out[0])


def _unknown(name: str) -> OperandError:
    return OperandError(
        f"np.{name}: tilearray has no such function; write np.{name}(ta.to_numpy(x)) to compute it with NumPy"
    )


# --- functions -------------------------------------------------------------------------------------------------------

# NumPy's name of a function: its parameters in NumPy's order. Those before the slash are passed by position, the
# others by name, which is ``theirs:ours`` where it is another here; ``*`` is any number of arrays.
_PARAMETERS = {
    "all": "a / axis out keepdims",
    "amax": "a / axis out keepdims",
    "amin": "a / axis out keepdims",
    "any": "a / axis out keepdims",
    "argmax": "a / axis out keepdims",
    "argmin": "a / axis out keepdims",
    "argsort": "a / axis kind order",
    "astype": "x dtype / copy device",
    "broadcast_arrays": "*",
    "broadcast_to": "array shape / subok",
    "clip": "a / a_min:min a_max:max out min max",
    "concatenate": "arrays / axis out",
    "count_nonzero": "a / axis keepdims",
    "cumprod": "a / axis dtype out",
    "cumsum": "a / axis dtype out",
    "cumulative_prod": "x / axis dtype out include_initial",
    "cumulative_sum": "x / axis dtype out include_initial",
    "diagonal": "a / offset axis1 axis2",
    "diff": "a / n axis prepend append",
    "einsum": "*",
    "empty_like": "prototype / dtype order subok shape device",
    "expand_dims": "a / axis",
    "flip": "m / axis",
    "full_like": "a fill_value / dtype order subok shape device",
    "isin": "element test_elements / assume_unique invert kind",
    "matmul": "x1 x2 /",
    "matrix_transpose": "x /",
    "max": "a / axis out keepdims",
    "mean": "a / axis dtype out keepdims",
    "meshgrid": "* copy sparse indexing",
    "min": "a / axis out keepdims",
    "moveaxis": "a source destination /",
    "nonzero": "a /",
    "ones_like": "a / dtype order subok shape device",
    "prod": "a / axis dtype out keepdims",
    "repeat": "a repeats / axis",
    "reshape": "a shape / order copy",
    "result_type": "*",
    "roll": "a shift / axis",
    "searchsorted": "a v / side sorter",
    "sort": "a / axis kind order",
    "squeeze": "a / axis",
    "stack": "arrays / axis out",
    "std": "a / axis dtype out ddof:correction keepdims",
    "sum": "a / axis dtype out keepdims",
    "take": "a indices / axis out mode",
    "take_along_axis": "arr indices / axis",
    "tensordot": "a b / axes",
    "tile": "A reps /",
    "transpose": "a / axes",
    "tril": "m / k",
    "triu": "m / k",
    "unique_all": "x /",
    "unique_counts": "x /",
    "unique_inverse": "x /",
    "unique_values": "x /",
    "unstack": "x / axis",
    "var": "a / axis dtype out ddof:correction keepdims",
    "vecdot": "x1 x2 / axis",
    "zeros_like": "a / dtype order subok shape device",
}
_RENAMED = {
    "amax": "max",
    "amin": "min",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
}


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return _ours("nonzero")(condition) if x is None and y is None else _ours("where")(condition, x, y)


def _size(x: Any, axis: Any = None) -> int:
    return x.size if axis is None else math.prod([x.shape[place] for place in normalize_axes(axis, x.ndim, "np.size")])


def _copy(x: Any, order: str = "K", subok: bool = False) -> Any:
    return x.copy()


_DIRECT: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "imag": operator.attrgetter("imag"),
    "iscomplexobj": lambda x: x.dtype.kind == "c",  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
    "ndim": operator.attrgetter("ndim"),
    "real": operator.attrgetter("real"),
    "shape": operator.attrgetter("shape"),
    "size": _size,
    "where": _where,
}

# Arguments that do not change the result; and arguments whose usual values do not change it.
_HINTS = {"assume_unique", "casting", "kind", "optimize", "subok"}
_USUAL = {"mode": ("raise",), "order": ("K", "C"), "sparse": (False,), "copy": (True, None)}
_NOTHING = (None, getattr(np, "_NoValue", None))


def from_function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run our function of the same name for ``np.concatenate([x, y])``, so that the result is an Array.

    Raises
    ------
    OperandError
        If there is no such function, or it does not take an argument.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> np.sum(ta.asarray([[1, 2], [3, 4]]), 1, keepdims=True)
    Array([[3],
           [7]], dtype=int64, device='cpu')
    """
    name = _names().get(function)
    if name is None:
        raise _unknown(f"{function.__module__.partition('numpy.')[2]}.{function.__name__}".lstrip("."))
    if name in _DIRECT:
        return _DIRECT[name](*args, **kwargs)
    ours = _ours(_RENAMED.get(name, name))
    positional, by_name = _bound(name, args, kwargs)
    unknown = ", ".join(sorted(by_name.keys() - inspect.signature(ours).parameters.keys()))
    if unknown:
        raise OperandError(f"np.{name}: {unknown} is not taken for tilearray Arrays; leave it out")
    return ours(*positional, **by_name)


@functools.cache
def _names() -> dict[Callable[..., Any], str]:
    """The functions of the installed NumPy; some have two names."""
    return {getattr(np, name): name for name in (*_PARAMETERS, *_DIRECT) if hasattr(np, name)}


def _ours(name: str) -> Callable[..., Any]:
    return getattr(namespace(), name)


def _bound(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of our function, by position and by name; arguments without effect are left out."""
    before, _, after = _PARAMETERS[name].rpartition("/")
    arrays = before.split()
    if after.startswith("*"):
        return list(args), _meaningful(kwargs)
    ours = {one.partition(":")[0]: one.rpartition(":")[2] for one in (*arrays, *after.split())}
    given = dict(zip(ours, args)) | dict(kwargs)
    positional = [given.pop(one) for one in arrays]
    return positional, _meaningful({ours.get(theirs, theirs): value for theirs, value in given.items()})


def _meaningful(arguments: Mapping[str, Any]) -> dict[str, Any]:
    def says_nothing(name: str, value: Any) -> bool:
        usual = _USUAL.get(name, ())
        return (
            name in _HINTS
            or any(value is one for one in _NOTHING)
            or (isinstance(value, (str, bool)) and value in usual)
        )

    return {name: value for name, value in arguments.items() if not says_nothing(name, value)}
