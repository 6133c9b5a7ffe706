"""NumPy's functions on tilearray's arrays: ``np.add(x, y)`` and ``np.concatenate([x, y])`` return Arrays.

A ufunc runs the op of its name. Every other function of NumPy that dispatches (NEP 18) is looked up in a table of the
parameters that a function of tilearray takes. Where tilearray has no such function, or refuses an argument that NumPy
takes, NumPy computes over the same memory: see `tilearray.functions.numpy_memory`. Operands without a common dtype stay
errors, because one lattice decides every result dtype. A call with an operand of an unknown class returns
NotImplemented, so that its class takes its turn.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

from tilearray.engine.signature import ArrayBase, from_host
from tilearray.errors import DeviceError, DTypeError, OperandError, PromotionError, ScalarOverflowError, ShapeError
from tilearray.functions.arguments import is_tensor
from tilearray.functions.conversion import to_device, transfers_allowed
from tilearray.functions.inspection import namespace
from tilearray.functions.numpy_memory import found_in, run_with_numpy
from tilearray.functions.ufunc_methods import METHODS
from tilearray.geometry.shapes import normalize_axes
from tilearray.interchange.numpy import from_host_object
from tilearray.ops import BY_UFUNC, composed
from tilearray.ops.execute import execute
from tilearray.ops.moves import assign
from tilearray.ops.numbers import OF_NUMPY
from tilearray.ops.op import Op
from tilearray.promotion.scalars import StandIn

_NDARRAY: Any = np.ndarray  # Any: else a type checker takes dtypes to be unknown

# --- ufuncs ----------------------------------------------------------------------------------------------------------

_OPS: dict[np.ufunc, Op] = {}
"""The ops of the ufuncs that were called."""

_COMPOSED: dict[np.ufunc, Callable[..., Any]] = {np.divmod: composed.divmod, np.frexp: composed.frexp}

# Keywords of ufuncs, and the values that do not change a result.
_UFUNC_USUAL = {"casting": "same_kind", "order": "K", "subok": True, "where": True, "dtype": None}


def from_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run the op of the same name for ``np.sin(x)``, so that the result is an Array.

    Returns
    -------
    Array or tuple of Array
        Or the ndarrays that were given as ``out``; NotImplemented if an operand's class must take its turn.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> np.add(np.array([1, 2]), ta.asarray([3, 4]))
    Array([4, 6], dtype=int64, device='cpu')
    """
    if not kwargs and method == "__call__":
        found = _of_scalar(ufunc, inputs)
        if found is not None:
            return found
    if not _all_known((*inputs, *(kwargs.get("out") or ())), "__array_ufunc__"):
        return NotImplemented
    if method == "reduceat":  # NumPy passes indices= by position as well
        kwargs = {name: value for name, value in kwargs.items() if name != "indices"}
    options = {name: value for name, value in kwargs.items() if value is not _UFUNC_USUAL.get(name, ufunc)}
    targets, op = options.pop("out", (None,) * ufunc.nout), _OPS.get(ufunc) or _op_of(ufunc)
    # NumPy's scalars come as 0-d ndarrays, which have the same meaning.
    operands = [x[()] if isinstance(x, _NDARRAY) and x.ndim == 0 else x for x in inputs]
    strict = options.get("casting") in ("no", "equiv")
    if op is not None and method == "__call__" and options.keys() <= {"where", "dtype", "casting"} and not strict:
        return _written(targets[0], functools.partial(_run_op, op, operands, options))
    if op is not None and method in METHODS and options.keys() <= METHODS[method]:
        return _run_method(op, ufunc, method, operands, kwargs, options | {"out": targets[0]})
    if ufunc in _COMPOSED and method == "__call__" and not options:
        found = _COMPOSED[ufunc](*operands)
        return tuple([_written(target, functools.partial(_stored, x)) for target, x in zip(targets, found)])
    if method == "__call__" and not options and all(target is None for target in targets):
        return _ours_or_numpys(ufunc, tuple(operands), {})
    return run_with_numpy(_shown(ufunc, method), getattr(ufunc, method), inputs, kwargs)


def _of_scalar(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Run the operator of a NumPy scalar and an Array, which NumPy asks first; None if it is another call."""
    op = _OPS.get(ufunc)
    if op is None or len(inputs) != 2 or not issubclass(type(inputs[1]), ArrayBase):
        return None
    scalar, x = inputs
    if type(scalar) is np.ndarray and not scalar.ndim:  # NumPy makes this of its scalars
        scalar = scalar[()]
    return execute(op, (scalar, x)) if type(scalar) in OF_NUMPY else None


def _op_of(ufunc: np.ufunc) -> Op | None:
    """Return the op of one of NumPy's or SciPy's ufuncs. numba's have the names that users gave them."""
    name = ufunc.__name__
    op = BY_UFUNC.get(name)
    if op is None or not any(getattr(sys.modules.get(of), name, None) is ufunc for of in _OWNERS):
        return None
    return _OPS.setdefault(ufunc, op)


# With SCIPY_ARRAY_API=1 the names of `scipy.special` are functions around the ufuncs.
_OWNERS = ("numpy", "scipy.special", "scipy.special._ufuncs")


def _run_op(op: Op, operands: list[Any], options: dict[str, Any], out: Any) -> Any:
    return op(*operands, out=out, **options)


def _run_method(
    op: Op, ufunc: np.ufunc, method: str, operands: list[Any], kwargs: Mapping[str, Any], options: dict[str, Any]
) -> Any:
    """Run a method of an op; NumPy's where ours refuses on the host, or where the target of ``at`` is an ndarray."""
    theirs = functools.partial(run_with_numpy, _shown(ufunc, method), getattr(ufunc, method), tuple(operands), kwargs)
    if method == "at":
        return op.at(*operands) if isinstance(operands[0], ArrayBase) else theirs()
    if options.get("initial", _NO_VALUE) is _NO_VALUE:
        options.pop("initial", None)

    def ours() -> Any:
        return _written(options.pop("out"), lambda out: getattr(op, method)(*operands, out=out, **options))

    return _or_numpys(ours, theirs, [operands, dict(kwargs)])


def _stored(x: Any, out: Any) -> Any:
    return x if out is None else execute(assign, (x,), out)


def _written(target: Any, compute: Callable[[Any], Any]) -> Any:
    """Compute into a target, which may be an ndarray, and return the target; a new Array if it is None."""
    if not isinstance(target, _NDARRAY):
        return compute(target)
    memory = from_host_object(target, copy=False, function="out")
    assert memory is not None  # an ndarray is a host object
    compute(from_host(memory, ArrayBase._public))
    return target


def _all_known(operands: Iterable[Any], protocol: str) -> bool:
    """Whether no operand has another library's class of arrays: only ours and ndarrays implement the protocol."""
    return all(_is_known(x.__class__, protocol) for x in operands)


def _is_known(kind: Any, protocol: str) -> bool:
    method = getattr(kind, protocol, None)
    return method is None or method is getattr(_NDARRAY, protocol) or issubclass(kind, (ArrayBase, StandIn))


# --- functions -------------------------------------------------------------------------------------------------------

# NumPy's name of a function: its parameters in NumPy's order. Those before the slash are passed by position, the
# others by name, which is ``theirs:ours`` where it is another here; ``*`` is any number of arrays.
_PARAMETERS = {
    "all": "a / axis out keepdims",
    "amax": "a / axis out keepdims",
    "amin": "a / axis out keepdims",
    "angle": "z / deg",
    "any": "a / axis out keepdims",
    "argmax": "a / axis out keepdims",
    "argmin": "a / axis out keepdims",
    "argsort": "a / axis kind order",
    "around": "a / decimals out",
    "astype": "x dtype / copy device",
    "broadcast_arrays": "*",
    "broadcast_to": "array shape / subok",
    "can_cast": "from_ to / casting",
    "clip": "a / a_min:min a_max:max out min max",
    "concatenate": "arrays / axis out",
    "count_nonzero": "a / axis keepdims",
    "cross": "a b / axisa axisb axisc axis",
    "cumprod": "a / axis dtype out",
    "cumsum": "a / axis dtype out",
    "cumulative_prod": "x / axis dtype out include_initial",
    "cumulative_sum": "x / axis dtype out include_initial",
    "diag": "v / k",
    "diagonal": "a / offset axis1 axis2",
    "diff": "a / n axis prepend append",
    "dot": "a b / out",
    "einsum": "*",
    "empty_like": "prototype / dtype order subok shape device",
    "expand_dims": "a / axis",
    "flip": "m / axis",
    "full_like": "a fill_value / dtype order subok shape device",
    "inner": "a b /",
    "isclose": "a b / rtol atol equal_nan",
    "isin": "element test_elements / assume_unique invert kind",
    "kron": "a b /",
    "matmul": "x1 x2 /",
    "matrix_transpose": "x /",
    "matvec": "x1 x2 /",
    "max": "a / axis out keepdims",
    "mean": "a / axis dtype out keepdims",
    "meshgrid": "* copy sparse indexing",
    "min": "a / axis out keepdims",
    "moveaxis": "a source destination /",
    "nan_to_num": "x / copy nan posinf neginf",
    "nonzero": "a /",
    "ones_like": "a / dtype order subok shape device",
    "outer": "a b / out",
    "prod": "a / axis dtype out keepdims",
    "repeat": "a repeats / axis",
    "reshape": "a shape / order copy",
    "result_type": "*",
    "roll": "a shift / axis",
    "round": "a / decimals out",
    "searchsorted": "a v / side sorter",
    "sinc": "x /",
    "sort": "a / axis kind order",
    "squeeze": "a / axis",
    "stack": "arrays / axis out",
    "std": "a / axis dtype out ddof:correction keepdims",
    "sum": "a / axis dtype out keepdims",
    "take": "a indices / axis out mode",
    "take_along_axis": "arr indices / axis",
    "tensordot": "a b / axes",
    "tile": "A reps /",
    "trace": "a / offset axis1 axis2 dtype out",
    "transpose": "a / axes",
    "tril": "m / k",
    "triu": "m / k",
    "unique_all": "x /",
    "unique_counts": "x /",
    "unique_inverse": "x /",
    "unique_values": "x /",
    "unstack": "x / axis",
    "var": "a / axis dtype out ddof:correction keepdims",
    "vdot": "a b /",
    "vecdot": "x1 x2 / axis",
    "vecmat": "x1 x2 /",
    "zeros_like": "a / dtype order subok shape device",
}
_RENAMED = {
    "amax": "max",
    "amin": "min",
    "around": "round",
    "concatenate": "concat",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
}


class _NotTakenError(OperandError):
    """An argument that the function of tilearray does not take; NumPy does."""


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return _ours("nonzero")(condition)
    if isinstance(condition, ArrayBase):
        condition = _ours("astype")(condition, "bool", copy=False)  # NumPy's condition may have any dtype
    return _ours("where")(condition, x, y)


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, *options: Any, **by_name: Any) -> Any:
    if options or by_name.keys() - {"dtype", "device"} or np.ndim(start) or np.ndim(stop):
        raise _NotTakenError("np.linspace: arrays and retstep= are not taken; write numbers, or ta.to_numpy(start)")
    return _ours("linspace")(start, stop, num, endpoint=endpoint, **by_name)


def _size(x: Any, axis: Any = None) -> int:
    return x.size if axis is None else math.prod([x.shape[place] for place in normalize_axes(axis, x.ndim, "np.size")])


def _copy(x: Any, order: str = "K", subok: bool = False) -> Any:
    return x.copy(order)


_DIRECT: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "imag": operator.attrgetter("imag"),
    "iscomplexobj": lambda x: x.dtype.kind == "c",  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
    "linspace": _linspace,
    "ndim": operator.attrgetter("ndim"),
    "real": operator.attrgetter("real"),
    "shape": operator.attrgetter("shape"),
    "size": _size,
    "where": _where,
}

# Arguments that do not change the result; and arguments whose usual values do not change it.
_HINTS = {"assume_unique", "kind", "optimize", "subok"}
_USUAL = {
    "casting": ("same_kind",),
    "copy": (True, None),
    "deg": (False,),
    "mode": ("raise",),
    "order": ("K", "C"),
    "sparse": (False,),
}
_NO_VALUE = getattr(np, "_NoValue", None)


def from_function(
    x: ArrayBase, function: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Run our function of the same name for ``np.concatenate([x, y])``, so that the result is an Array.

    `x` is the Array whose protocol NumPy called; in ``np.zeros(3, like=x)`` it is the only one.

    Returns
    -------
    Any
        NotImplemented if the class of an argument must take its turn.

    Raises
    ------
    ImplicitTransferError
        If tilearray has no such function, and an Array is on a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> import tilearray as ta
    >>> np.sum(ta.asarray([[1, 2], [3, 4]]), 1, keepdims=True)
    Array([[3],
           [7]], dtype=int64, device='cpu')
    >>> np.median(ta.asarray([1.0, 5.0, 2.0]))
    Array(2., dtype=float32, device='cpu')
    """
    if not all(_is_known(kind, "__array_function__") for kind in types):
        return NotImplemented
    if function in _CREATION:
        return _made_like(x, function, args, kwargs)
    return _ours_or_numpys(function, args, kwargs)


def _ours_or_numpys(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run our function of the same name, or NumPy's where we have none or ours refuses on the host."""
    name, theirs = _names().get(function), functools.partial(run_with_numpy, _shown(function), function, args, kwargs)
    if name is not None:
        ours = functools.partial(_run, name, args, kwargs)
        made = kwargs.get("dtype") if name in _LIKE else None
        if isinstance(made, list) or getattr(made, "names", None):
            return ours()  # its TypeError tells dask to keep fields in a dict
        return _or_numpys(ours, theirs, [args, dict(kwargs)])
    same = _of_same_name(function)
    running = _RUNNING.get()
    if same is None or function in running or not _takes(same, args, kwargs):
        return theirs()
    try:  # an interrupt may arrive behind each call: so the function is added within
        _RUNNING.set(running | {function})
        return _or_numpys(functools.partial(same, *args, **kwargs), theirs, [args, dict(kwargs)])
    finally:
        _RUNNING.set(running)


_RUNNING: ContextVar[frozenset[Any]] = ContextVar("functions of NumPy that ours is computing", default=frozenset())
"""A function of ours may call NumPy's of its own name with Arrays; that call is NumPy's, and does not come back."""


# The public modules that have functions by NumPy's names and with NumPy's parameters, by NumPy's modules.
_MODULES = {"numpy": "", "numpy.linalg": "linalg", "numpy.fft": "fft", "numpy.lib.stride_tricks": ""}
_LIKE = {"empty_like", "full_like", "ones_like", "zeros_like"}
# Ours give other dtypes: complex from any matrix, as the array API standard has it.
_OTHERWISE = {"eig", "eigvals"}


@functools.cache
def _of_same_name(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Our function of the same name and parameters, or None."""
    folder, name = _MODULES.get(getattr(function, "__module__", "")), function.__name__
    if folder is None or name in _OTHERWISE:
        return None
    module = namespace() if not folder else getattr(namespace(), folder)
    return getattr(module, name) if name in module.__all__ else None


_signature = functools.cache(inspect.signature)  # it takes 10 us


def _takes(ours: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        _signature(ours).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _or_numpys(ours: Callable[[], Any], theirs: Callable[[], Any], given: list[Any]) -> Any:
    """Call `theirs` if `ours` refuses, unless it is for want of a common dtype, or NumPy would read or move tensors."""
    try:
        return ours()
    except (OperandError, DTypeError, DeviceError, ShapeError, ScalarOverflowError) as refusal:
        devices = {x.device for x in found_in(given, ArrayBase)}
        moves = not all(device.backend.on_host for device in devices)
        if isinstance(refusal, PromotionError) or len(devices) > 1 or (moves and not transfers_allowed()):
            raise
        if any(is_tensor(part) for part in found_in(given, object)):
            raise
        try:
            return theirs()
        except Exception:
            raise refusal from None


def _shown(function: Callable[..., Any], method: str = "__call__") -> str:
    """The name of a function of NumPy, or of a method of a ufunc, in messages."""
    module = getattr(function, "__module__", None) or ""
    name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
    return f"np.{module.partition('numpy.')[2]}.{name}".replace("..", ".")


# The functions with the parameter ``like=``, which names an array of the class to create.
_CREATION = {
    getattr(np, name)
    for name in (
        *("arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "eye"),
        *("frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full", "genfromtxt", "identity"),
        *("loadtxt", "ones", "require", "tri", "zeros"),
    )
}


def _made_like(x: ArrayBase, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Create an Array on the device of `x`, with NumPy's values and dtypes."""
    on_gpu = [given for given in found_in(args, ArrayBase) if not given.device.backend.on_host]
    if on_gpu and function in (np.array, np.asarray, np.asanyarray):
        copies = kwargs.get("copy", True if function is np.array else None)
        return _ours("asarray")(args[0], dtype=kwargs.get("dtype", (*args, None)[1]), copy=copies, device=x.device)
    made = run_with_numpy(_shown(function), function, args, kwargs)
    return to_device(made, x.device) if isinstance(made, ArrayBase) else made


def _run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call our function for one of NumPy's with its arguments."""
    if name in _DIRECT:
        return _DIRECT[name](*args, **kwargs)
    ours = _ours(_RENAMED.get(name, name))
    taken = _signature(ours).parameters.keys()
    positional, by_name = _bound(name, args, kwargs, taken)
    unknown = ", ".join(sorted(by_name.keys() - taken))
    if unknown:
        raise _NotTakenError(
            f"np.{name}: {unknown} is not taken for tilearray Arrays on a GPU; leave it out, or write ta.to_numpy(x)"
        )
    return ours(*positional, **by_name)


@functools.cache
def _names() -> dict[Callable[..., Any], str]:
    """The functions of the installed NumPy; some have two names."""
    return {getattr(np, name): name for name in (*_PARAMETERS, *_DIRECT) if hasattr(np, name)}


def _ours(name: str) -> Callable[..., Any]:
    return getattr(namespace(), name)


def _bound(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], taken: Collection[str]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of our function, by position and by name; arguments without effect are left out."""
    before, _, after = _PARAMETERS[name].rpartition("/")
    arrays = before.split()
    if after.startswith("*"):
        if any(x is None for x in args):  # to NumPy an object, which matplotlib's `bar` broadcasts
            raise _NotTakenError(f"np.{name}: expected arrays, got None; leave it out")
        return list(args), _meaningful(kwargs, taken)
    ours = {one.partition(":")[0]: one.rpartition(":")[2] for one in (*arrays, *after.split())}
    given = dict(zip(ours, args)) | dict(kwargs)
    positional = [given.pop(one) for one in arrays]
    return positional, _meaningful({ours.get(theirs, theirs): value for theirs, value in given.items()}, taken)


def _meaningful(arguments: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """The arguments that say something: not NumPy's placeholder, nor usual values of what our function lacks."""

    def says_nothing(name: str, value: Any) -> bool:
        usual = () if name in taken else _USUAL.get(name, ())
        return (
            name in _HINTS
            or value is _NO_VALUE
            or (value is None and name != "axis")
            or (isinstance(value, (str, bool)) and value in usual)
        )

    return {name: value for name, value in arguments.items() if not says_nothing(name, value)}
