"""Discrete Fourier transforms by SciPy where it is installed, else by NumPy.

Both run the same code, pocketfft. SciPy's takes several axes at once, and computes several lines at once in vector
registers, so that it takes less time, above all in single precision. Neither is imported before the first transform.
"""

from __future__ import annotations

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


@cache
def _library() -> Any:
    try:
        return import_module("scipy.fft")
    except ImportError:
        return import_module("numpy.fft")


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


@quiet
def _call(name: str, x: np.ndarray, sizes: Ints, axes: Ints, norm: str, dtype: DType) -> np.ndarray:
    if x.size == 0:
        x = _padded(x, axes)
    if len(axes) == 1:  # the same transform, in half the time of a small call
        return getattr(_library(), _ALONG_ONE[name])(converted(x, dtype), sizes[0], axes[0], norm)
    return getattr(_library(), name)(converted(x, dtype), sizes, axes, norm)


def _padded(x: np.ndarray, axes: Ints) -> np.ndarray:
    """Return a 0 instead of no elements along the transformed axes, for NumPy 2.4 reads beyond an empty one."""
    return np.zeros([1 if axis in axes and not n else n for axis, n in enumerate(x.shape)], x.dtype)
