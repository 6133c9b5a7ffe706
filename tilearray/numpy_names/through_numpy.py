"""How a function of this folder asks NumPy: for what no part of tilearray computes, such as quantiles and histograms.

`by_numpy` hands NumPy ndarrays over the memory of arrays on the host, and wraps what comes back:

- An array on a GPU is a DeviceError that names the transfer. Nothing moves by itself.
- Python data and ndarrays become Arrays by the rules of `tilearray.functions.arguments`.
- 8- and 16-bit floats are computed in float32 and rounded once. A function that only `compares` takes float16 as
  integers of the same order, since NumPy 2.4.6 sorts many float16 wrongly where it has AVX-512.
- Integers and bools come back as NumPy gives them. Floats come back in the common dtype of the arrays, or in the float
  of its true division; complex numbers in the complex dtype of that float.
- Each ndarray that comes back is a new Array, also within a tuple or a list; NumPy's scalars are 0-d Arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, cast

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.common_dtype import common_dtype_of
from tilearray.engine.context import STATE
from tilearray.engine.signature import from_host
from tilearray.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    GradientError,
    IndexingError,
    LinAlgError,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    ShapeError,
)
from tilearray.functions.arguments import all_arrays, as_array, is_differentiated
from tilearray.functions.conversion import astype, to_numpy
from tilearray.functions.reduction_options import finished
from tilearray.geometry.shapes import MOST_AXES
from tilearray.ops.promotion_methods import REAL_PART
from tilearray.promotion.scalars import classify

_NDARRAY: Any = np.ndarray  # Any: else a type checker takes dtypes to be unknown
OPTIONAL = {"bincount", "corrcoef", "cov"}
"""The functions whose second array may be None."""
_COMPLEX_OF = {dtypes.float64: dtypes.complex128}


def on_host(function: str, x: Any) -> np.ndarray:
    """Return the memory of an argument on the host; floats of 8 and 16 bits as float32.

    Raises
    ------
    DeviceError
        If it is an Array on a GPU.

    Examples
    --------
    >>> import tilearray as ta
    >>> on_host("median", ta.asarray([0.5], dtype="bfloat16"))
    array([0.5], dtype=float32)
    """
    array = _host_array(function, x)
    info = dtypes.info(array.dtype)
    stays = info.kind != "float" or info.bits >= 32
    return to_numpy(array if stays else astype(array, dtypes.float32))


def _host_array(function: str, x: Any) -> Array:
    array: Array = as_array(function, x)
    dtypes.check_arithmetic(function, array.dtype)
    return _there(function, array)


def _there(function: str, array: Array) -> Array:
    if not array.device.backend.on_host:
        raise DeviceError(
            f"{function}: expected arrays on the host, got one on {array.device}, where tilearray has no {function} "
            f"yet; write ta.{function}(x.to_device('cpu'))"
        )
    return array


def check_given(function: str, arrays: Sequence[Any]) -> None:
    """Raise OperandError if an array is None that is not optional: NumPy takes None as an object."""
    for place, x in enumerate(arrays):
        if x is None and not (place and function in OPTIONAL):
            raise OperandError(f"{function}: expected an array, got None; write ta.asarray(...)")


_CURES: Final = (
    ("range [0, 1]", "write fractions from 0 to 1, or ta.percentile"),
    ("range [0, 100]", "write percentages from 0 to 100"),
    ("valid method", "write method='linear'"),
    ("estimator for `bins`", "write bins='auto', or a number of bins"),
    ("`bins` must be positive", "write bins=10, or an array of edges"),
    ("monotonically", "write ta.sort(bins)"),
    ("max must be larger than min", "write range=(low, high) with low < high"),
    ("autodetected range", "write x[ta.isfinite(x)], or range=(low, high)"),
    ("weights should have the same shape", "write a weight for each element"),
    ("dimension of bins", "write a number of bins, or an array of edges, for each column"),
    ("negative elements", "write x[x >= 0] to leave them out"),
    ("'minlength'", "write minlength=0"),
    ("weights cannot be negative", "write ta.abs(weights)"),
    ("Weights must be non-negative", "write ta.abs(weights)"),
    ("were all zero", "write finite weights, not all 0"),
    ("Shape of weights", "write a weight for each element, or for each place along axis"),
    ("shapes of a and weights differ", "write axis="),
    ("supports weights", "write method='inverted_cdf'"),
    ("too deep", "write ta.ravel(x) for an array of one axis"),
    ("rank-1 array", "write ta.ravel(x) for an array of one axis"),
    ("square 2d array", "write ta.ravel(x) for the roots of a polynomial"),
    ("mode '", "write mode='constant', 'edge', 'reflect', 'symmetric' or 'wrap'"),
    ("convolve/correlate mode", "write mode='full'"),
    ("empty", "write at least one element"),
    ("distances must match", "write a coordinate for each element"),
    ("at least one dimensional", "write ta.atleast_1d(x)"),
    ("more than 2 dimensions", "write ta.reshape(x, (len(x), -1)) for a variable in each row"),
    ("must match exactly", "write arrays of equal sizes along the other axes"),
    ("same shape", "write arrays of one shape"),
    ("same length", "write arrays of one length"),
    ("out of bounds", "write indices within the shape"),
    ("1D vector", "write ta.ravel(x) for an array of one axis"),
    ("deg >= 0", "write deg=1 for a line"),
    ("int indices", "write indices.astype('int64')"),
    ("to dtype('int64')", "write x.astype('int64')"),
    ("to dtype('float64')", "write ta.real(x)"),
)
"""A part of NumPy's message, and what to write."""


def _cured(error: Exception, otherwise: str = "") -> str:
    """NumPy's message, and what to write instead."""
    text = str(error).rstrip(".")
    return text + next((f"; {cure}" for part, cure in _CURES if part in text), otherwise)


def by_numpy(
    function: str,
    arrays: Sequence[Any],
    /,
    *args: Any,
    out: Any = None,
    compares: bool = False,
    floats: np.dtype | None = None,
    **options: Any,
) -> Any:
    """Return what NumPy's function of a name computes of arrays on the host.

    Parameters
    ----------
    function : str
        NumPy's name.
    arrays : sequence of Array or Python data
        The leading arguments; None stays None, and a list of arrays stays one.
    *args, **options
        The other arguments, as they are.
    out : Array, optional
        Takes the result.
    compares : bool
        Whether the function compares and returns elements, and computes none: then float16 is compared as integers.
    floats : dtype, optional
        That of floats that come back, instead of that of `float_of`.

    Raises
    ------
    ShapeError
        If NumPy's function raises ValueError; the message begins with the function's name.
    AxisError, IndexingError, LinAlgError
        If it raises its AxisError, an IndexError or its LinAlgError.
    OperandError
        If it raises another error of what it is given.

    Examples
    --------
    >>> import tilearray as ta
    >>> by_numpy("median", (ta.asarray([1, 2]),))
    Array(1.5, dtype=float32, device='cpu')
    """
    if True in map(is_differentiated, (*args, *options.values())):
        raise GradientError(f"vjp: {function} has no derivative by its options; write float(x), where derivatives end")
    axis: Any = options.get("axis")
    if isinstance(axis, Iterable):  # NumPy would read an endless one to its end
        options["axis"] = tuple(islice(cast("Iterable[Any]", axis), MOST_AXES + 1))
    check_given(function, arrays)
    there = all_arrays(function, [x for x in arrays if x is not None])
    waiting = iter(there)
    given = [None if x is None else _host_array(function, next(waiting)) for x in arrays]
    coded = _codes_of([x for x in given if x is not None]) if compares else None
    hosts = coded or [None if x is None else on_host(function, x) for x in given]
    try:
        with np.errstate(all="ignore"):
            computed = getattr(np, function)(*hosts, *args, **options)
    except np.exceptions.AxisError as error:
        raise AxisError(f"{function}: {error}; write an axis from -x.ndim to x.ndim - 1") from error
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{function}: {_cured(error)}") from error
    except ValueError as error:
        if type(error) is not ValueError:  # a class of NumPy, or of a function that was passed, says more
            raise
        raise ShapeError(f"{function}: {_cured(error)}") from error
    except IndexError as error:
        raise IndexingError(f"{function}: {_cured(error)}") from error
    except (TypeError, AttributeError, OverflowError, ZeroDivisionError) as error:
        if "out of bounds for" in str(error):
            raise ScalarOverflowError(f"{function}: {error}; write numbers that the dtype of x holds") from error
        if "numpy boolean" in str(error):
            raise DTypeError(f"{function}: {error}; write x.astype('uint8')") from error
        cured = _cured(error, "; write numbers, or sequences of them, as options")
        raise OperandError(f"{function}: {cured}") from error
    if coded:
        computed = _from_codes(computed)
    typed = [x.dtype for x, first in zip(given, arrays) if x is not None and classify(first) is None]
    found = wrapped(computed, floats or float_of(function, typed))  # a Python number has no dtype to add
    return found if out is None else finished(function, found, out)


def _codes_of(arrays: Sequence[Array]) -> list[np.ndarray] | None:
    """Return float16 as integers of the same order; None for other dtypes, and if equals may have other bits."""
    from tilearray_host.sorting import codes_of

    if any(x.dtype != dtypes.float16 for x in arrays):
        return None
    found = [codes for x in arrays if (codes := codes_of(to_numpy(x))) is not None]
    return found if len(found) == len(arrays) else None


def _from_codes(computed: Any) -> Any:
    """Return float16 for their codes, and other results, such as places and counts, as they are."""
    from tilearray_host.sorting import from_codes

    if isinstance(computed, tuple):
        return tuple([_from_codes(each) for each in cast("tuple[Any, ...]", computed)])
    return from_codes(computed, dtypes.float16) if computed.dtype == dtypes.int16 else computed


def float_of(function: str, given: Iterable[np.dtype]) -> np.dtype:
    """Return the dtype of floats that come back from operands: their common dtype, or the float of true division.

    Examples
    --------
    >>> float_of("interp", [dtypes.int8, dtypes.float16]), float_of("median", [dtypes.int8])
    (dtype('float16'), dtype('float32'))
    """
    semantics, found = STATE.get().semantics, set(given)
    if not found:
        return semantics.defaults["float"]
    try:
        common = common_dtype_of(tuple(found), function)
    except PromotionError:  # of integers, which have floats in common
        floats = [dtype for dtype in found if dtypes.info(dtype).kind in ("float", "complex")]
        if len(floats) > 1:
            raise
        common = floats[0] if floats else dtypes.bool_
    return common if dtypes.info(common).kind in ("float", "complex") else semantics.true_division


def wrapped(computed: Any, target: np.dtype) -> Any:
    """Return the results of NumPy as Arrays; floats in a dtype, complex numbers in its complex dtype.

    Examples
    --------
    >>> wrapped((np.float64(2), np.arange(2)), dtypes.float32)
    (Array(2., dtype=float32, device='cpu'), Array([0, 1], dtype=int64, device='cpu'))
    """
    if isinstance(computed, (_NDARRAY, np.generic)):
        return rounded(from_host(np.asarray(computed), Array), target)
    if isinstance(computed, tuple):
        given = cast("tuple[Any, ...]", computed)
        parts = [wrapped(part, target) for part in given]
        return cast(Any, type(given))(*parts) if hasattr(given, "_fields") else tuple(parts)
    if isinstance(computed, list):
        return [wrapped(part, target) for part in cast("list[Any]", computed)]
    return computed


def rounded(x: Array, target: np.dtype) -> Array:
    """Return an Array of floats in a dtype, and of complex numbers in its complex dtype; others as they are.

    Examples
    --------
    >>> import tilearray as ta
    >>> rounded(ta.asarray([1j], dtype="complex128"), dtypes.float16).dtype
    dtype('complex64')
    """
    kind = x.dtype.kind
    if kind not in "fc":
        return x
    real = REAL_PART.get(target, target)
    return astype(x, real if kind == "f" else _COMPLEX_OF.get(real, dtypes.complex64), copy=False)


def exact(function: str, x: Any) -> Any:
    """Return a number or Python data as it is, and the memory of an Array: for arguments whose dtype does not count.

    Examples
    --------
    >>> import tilearray as ta
    >>> exact("quantile", 0.1), exact("quantile", ta.asarray([1, 2]))
    (0.1, array([1, 2]))
    """
    return on_host(function, x) if isinstance(x, Array) else x
