"""Discrete Fourier transforms by SciPy where it is installed, else by NumPy.

Both run the same code, pocketfft. SciPy's takes several axes at once, and computes several lines at once in vector
registers, so that it takes less time, above all in single precision. Neither is imported before the first transform.

SciPy's functions look at their arguments for six times as long as 64 points take. A transform of an array that needs no
padding calls the compiled functions below them, if those of this SciPy take what is expected. They transform real
numbers as such, and mirror the result, which takes a third of the time of a large complex transform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tilearray_host.casts import converted
from tilearray_host.float_errors import quiet

DType = np.dtype[Any]
Ints = tuple[int, ...]
_OTHER_DIRECTION = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The scale of a transform that is computed as the conjugate of the one in the other direction."""
_ALONG_ONE = {"fftn": "fft", "ifftn": "ifft", "rfftn": "rfft", "irfftn": "irfft"}
"""The functions for one axis: NumPy's take half the time of those for several axes in a small call."""
_REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_COMPILED = {
    ("transform", False): "fftn",
    ("transform", True): "ifftn",
    ("from_real", False): "rfftn",
    ("to_real", True): "irfftn",
}
"""The functions that are methods in a direction; their results need nothing more."""


@cache
def _library() -> Any:
    try:
        return import_module("scipy.fft")
    except ImportError:
        return import_module("numpy.fft")


_SCALES = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}
"""What the compiled functions multiply by, forwards and inversely: 0 stands for 1, 1 for the root, 2 for 1 / size."""


Transform = Callable[[np.ndarray, Ints, Ints, str], np.ndarray]
"""A function of an array, the size along each axis, the axes, and the name of a scale."""


@cache
def _compiled() -> dict[str, Transform]:
    """Return the compiled functions by SciPy's names; none if they differ."""
    if _library().__name__ != "scipy.fft":
        return {}
    try:
        found: Any = import_module("scipy.fft._pocketfft.pypocketfft")
        complexes, reals, halves = found.c2c, found.r2c, found.c2r
        functions: dict[str, Transform] = {
            "fftn": lambda x, sizes, axes, norm: _plain(complexes(x, axes, True, _SCALES[norm][0]), x),
            "ifftn": lambda x, sizes, axes, norm: _plain(complexes(x, axes, False, _SCALES[norm][1]), x),
            "rfftn": lambda x, sizes, axes, norm: reals(x, axes, True, _SCALES[norm][0]),
            "irfftn": lambda x, sizes, axes, norm: halves(x, axes, sizes[-1], False, _SCALES[norm][1]),
        }
        are_as_expected = [_is_as_expected(*each, norm) for each in functions.items() for norm in _SCALES]
        return functions if all(are_as_expected) else {}
    except (ImportError, AttributeError, TypeError, ValueError):
        return {}


def _plain(found: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return a transform with no -0.0 if its operand is real: a mirrored half has them where NumPy has 0.0.

    >>> _plain(np.array([2.0 - 0.0j]), np.array([2.0])).tolist()
    [(2+0j)]
    """
    if x.dtype.kind == "f":
        found += 0.0
    return found


def _is_as_expected(name: str, function: Transform, norm: str) -> bool:
    """Return whether a compiled function gives the results of the public one of its name, along one axis and two."""
    x = np.arange(6.0).reshape(3, 2)
    operands = [*([] if name == "rfftn" else [x + 1j]), *([] if name == "irfftn" else [x])]
    public, size = getattr(_library(), name), 4 if name == "irfftn" else 3
    words = ((size,), (0,)), ((2, size), (1, 0))
    calls = [(x, sizes, axes, norm) for x in operands for sizes, axes in words]
    return all(np.array_equal(function(*call), public(*call)) for call in calls)


def transform(x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: DType, /) -> np.ndarray:
    """Return a transform of complex numbers.

    >>> transform(np.array([1.0, 1.0]), (2,), (0,), False, "backward", np.dtype(np.complex64))
    array([2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _call("ifftn" if inverse else "fftn", x, sizes, axes, norm, dtype)


def from_real(x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: DType, /) -> np.ndarray:
    """Return the first half of a transform of real numbers along the last axis of `axes`."""
    if not inverse:
        return _call("rfftn", x, sizes, axes, norm, dtype)
    found = _call("rfftn", x, sizes, axes, _OTHER_DIRECTION[norm], dtype)
    return np.conjugate(found, out=found)


def to_real(x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: DType, /) -> np.ndarray:
    """Return the real transform of numbers of which the first half along the last axis of `axes` is given."""
    if inverse:
        return _call("irfftn", x, sizes, axes, norm, dtype)
    return _call("irfftn", np.conjugate(converted(x, dtype)), sizes, axes, _OTHER_DIRECTION[norm], dtype)


def once(
    method: str, shape: Ints, given: DType, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: DType, /
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a method for arrays of one shape and dtype: a compiled function alone, if no more is needed."""
    name = _COMPILED.get((method, inverse), "")
    function = _compiled().get(name)
    fits = _reads(name, given, dtype) and 0 not in shape and _is_whole(name, shape, sizes, axes)
    if function is not None and fits:
        return lambda x: function(x, sizes, axes, norm)
    compute = {"transform": transform, "from_real": from_real, "to_real": to_real}[method]
    return lambda x: compute(x, sizes, axes, inverse, norm, dtype)


@quiet
def _call(name: str, x: np.ndarray, sizes: Ints, axes: Ints, norm: str, dtype: DType) -> np.ndarray:
    if x.size == 0:
        x = _padded(x, axes)
    function = _compiled().get(name)
    if function is not None and _is_whole(name, x.shape, sizes, axes):
        return function(x if _reads(name, x.dtype, dtype) else converted(x, dtype), sizes, axes, norm)
    read = converted(x, dtype)
    if len(axes) == 1:
        return getattr(_library(), _ALONG_ONE[name])(read, sizes[0], axes[0], norm)
    return getattr(_library(), name)(read, sizes, axes, norm)


def _reads(name: str, given: DType, dtype: DType) -> bool:
    """Return whether a compiled function computes in a dtype what it reads: also a transform of real numbers."""
    return given == dtype or (name in ("fftn", "ifftn") and given == _REAL[dtype])


def _is_whole(name: str, shape: Ints, sizes: Ints, axes: Ints) -> bool:
    """Return whether an array of a shape is neither cut nor padded."""
    if name == "irfftn":
        sizes = (*sizes[:-1], sizes[-1] // 2 + 1)
    return sizes == tuple([shape[axis] for axis in axes])


def _padded(x: np.ndarray, axes: Ints) -> np.ndarray:
    """Return a 0 instead of no elements along the transformed axes, for NumPy 2.4 reads beyond an empty one."""
    return np.zeros([1 if axis in axes and not n else n for axis, n in enumerate(x.shape)], x.dtype)
