"""Gradients of Fourier transforms: they are linear, so a cotangent goes back by the transform in the other direction.

`FollowedFourier` is what `tilearray.fft` runs on followed arrays. A transform of cut or padded axes is F P x, with P
for the padding, and its adjoint is P^H F^H g. F^H is the transform in the other direction with the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray import fft
from tilearray.arrays.asarray import asarray
from tilearray.functions.indexing.views import get
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import new_like, reshape
from tilearray.gradients.followed import FollowingDevice, lowered, place_of
from tilearray.gradients.following import recorded
from tilearray.ops.execute import fill
from tilearray.ops.number_parts import real

Ints = tuple[int, ...]

_SAME_SCALE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm with which the transform in the other direction has the same scale."""


class FollowedFourier:
    """The functions of `Fourier` on followed arrays.

    Parameters
    ----------
    device : FollowingDevice
    below : callable
        Returns what transforms an array on the device below.
    """

    def __init__(self, device: FollowingDevice, below: Callable[[Any], Any]) -> None:
        self._device = device
        self._below = below

    def run(self, method: str, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Run a transform on the array below, and record it."""
        given = lowered(x, self._device)
        found = self._below(given).run(method, given, sizes, axes, inverse, norm, dtype)
        back = {"transform": _from_complex, "from_real": _from_real, "to_real": _to_real}[method]

        def other(g: Any) -> Any:
            return (fft.fftn if inverse else fft.ifftn)(g, sizes, axes, norm=_SAME_SCALE[norm])  # pyright: ignore[reportArgumentType]

        def pull(cotangents: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
            del wanted
            return [_sized(back(other, cotangents[0], sizes[-1], axes[-1]), x.shape)]

        return recorded(self._device, found, (x,), pull)


def _from_complex(other: Callable[[Any], Any], g: Any, size: int, axis: int) -> Any:
    del size, axis
    return other(g)


def _from_real(other: Callable[[Any], Any], g: Any, size: int, axis: int) -> Any:
    """The result is the first half along an axis."""
    return real(other(_sized(g, (*g.shape[:axis], size, *g.shape[axis + 1 :]))))


def _to_real(other: Callable[[Any], Any], g: Any, size: int, axis: int) -> Any:
    """The operand is the first half along an axis: elements that are mirrored count twice."""
    half = size // 2 + 1
    found = get(other(g), (*[slice(None)] * axis, slice(half)))
    counts = np.full(half, 2)
    counts[0] = 1
    if size % 2 == 0:
        counts[-1] = 1
    return found * reshape(asarray(counts, device=place_of(found)), (half, *[1] * (found.ndim - axis - 1)))


def _sized(x: Any, shape: Ints) -> Any:
    """An array that is cut, or padded with zeros at the ends of its axes."""
    for axis, size in enumerate(shape):
        if x.shape[axis] > size:
            x = get(x, (*[slice(None)] * axis, slice(size)))
        elif x.shape[axis] < size:
            missing = (*x.shape[:axis], size - x.shape[axis], *x.shape[axis + 1 :])
            x = concat([x, fill(new_like(x, missing), 0, "vjp")], axis=axis)
    return x
