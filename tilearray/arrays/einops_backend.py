"""Arrays in einops' plain functions: ``einops.rearrange(x, "a b -> b a")``.

einops asks each subclass of its class of backends whether an array is one of its own, if the library is imported.
`tilearray.interchange.waiting` calls `register` after einops has imported that class, so that neither library imports
the other. `einops.array_api` needs no backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import arange
from tilearray.functions.conversion import to_numpy
from tilearray.functions.joining import concat, stack
from tilearray.functions.manipulation import expand_dims
from tilearray.functions.products import einsum
from tilearray.functions.repeating import tile

_REGISTERED: Final[list[type]] = []
"""The class: einops finds it among the subclasses of its own, which Python does not keep."""


def register(module: ModuleType) -> None:
    """Add a backend for Arrays to those of ``einops._backends``."""
    base: Any = getattr(module, "AbstractBackend", None)
    if base is not None:
        _REGISTERED.append(type("TileArrayBackend", (_Functions, base), {}))


class _Functions:
    """What einops asks of a backend and its base class lacks."""

    framework_name = "tilearray"

    def is_appropriate_type(self, tensor: object) -> bool:
        return isinstance(tensor, Array)

    def from_numpy(self, x: np.ndarray) -> Array:
        return asarray(x)

    def to_numpy(self, x: Array) -> np.ndarray:
        return to_numpy(x)

    def arange(self, start: int, stop: int) -> Array:
        return arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: Sequence[Array]) -> Array:
        return stack(tensors)

    def concat(self, tensors: Sequence[Array], axis: int) -> Array:
        return concat(tensors, axis=axis)

    def tile(self, x: Array, repeats: tuple[int, ...]) -> Array:
        return tile(x, repeats)

    def add_axis(self, x: Array, new_position: int) -> Array:
        return expand_dims(x, axis=new_position)

    def is_float_type(self, x: Array) -> bool:
        return dtypes.info(x.dtype).kind == "float"

    def einsum(self, pattern: str, *x: Array) -> Array:
        return einsum(pattern, *x)
