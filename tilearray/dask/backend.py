"""The backend "tilearray" of dask.array: what creates chunks.

A chunk is created on the default device of the process that runs the task, so a worker's chunks are on its GPU. Chunks
of one value occupy one element: they are broadcast, and cannot be written.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.fills import empty, full
from tilearray.functions.manipulation import broadcast_to
from tilearray.random.generator import Generator, default_rng
from tilearray.random.philox import Philox4x32

_backends: Any = importlib.import_module("dask.array.backends")


class TileArrayBackend(_backends.ArrayBackendEntrypoint):
    """The creation functions of dask.array whose chunks are Arrays. dask documents their parameters.

    Examples
    --------
    >>> import dask, dask.array as da
    >>> with dask.config.set({"array.backend": "tilearray"}):
    ...     x = da.ones((4, 6), chunks=(2, 3))
    >>> x.sum(axis=0).compute()
    Array([4., 4., 4., 4., 4., 4.], dtype=float64, device='cpu')
    """

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """Return the function that makes an Array of a chunk of another library."""
        return asarray

    @classmethod
    def to_backend(cls, data: Any, **options: Any) -> Any:
        """Return a dask array with the same values whose chunks are Arrays."""
        if isinstance(data._meta, Array):
            return data
        return data.map_blocks(asarray, dtype=data.dtype, meta=meta_of(data.ndim, data.dtype), **options)

    @property
    def RandomState(self) -> type[RandomState]:  # noqa: N802 - dask's name
        """The class of the older generators of chunks."""
        return RandomState

    @property
    def default_bit_generator(self) -> type[Philox4x32]:
        """The class of the streams of chunks."""
        return Philox4x32

    @staticmethod
    def ones(shape: Any, dtype: Any = "float64", **options: Any) -> Any:
        """Return ones."""
        return _uniform("ones", shape, 1, dtype, options)

    @staticmethod
    def zeros(shape: Any, dtype: Any = "float64", **options: Any) -> Any:
        """Return zeros."""
        return _uniform("zeros", shape, 0, dtype, options)

    @staticmethod
    def empty(shape: Any, dtype: Any = "float64", **options: Any) -> Any:
        """Return an array whose values do not matter: zeros, of one element of memory a chunk."""
        return _uniform("empty", shape, 0, dtype, options)

    @staticmethod
    def full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
        """Return an array of one value."""
        return _uniform("full", shape, fill_value, dtype, options)

    @staticmethod
    def arange(*args: Any, like: Any = None, **options: Any) -> Any:
        """Return evenly spaced values."""
        with _with_numpy():
            x = _array().arange(*args, like=like, **options)
        return x if like is not None else TileArrayBackend.to_backend(x)


class RandomState:
    """A `Generator` with the older names of ``numpy.random.RandomState``, seeded by the words that dask gives.

    Examples
    --------
    >>> RandomState(np.arange(624, dtype="uint32")).randint(10, size=3).shape
    (3,)
    """

    _RENAMED = {"random_sample": "random", "randint": "integers", "tomaxint": "integers"}  # noqa: RUF012

    def __init__(self, seed: Any = None) -> None:
        self._generator: Generator = default_rng(seed if seed is None else np.atleast_1d(seed)[:8].tolist())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, self._RENAMED.get(name, name))


def meta_of(ndim: int, dtype: Any) -> Array:
    """Return an array without elements: by it dask knows the type of chunks and their dtype."""
    return empty((0,) * ndim, dtype=dtype)


def uniform_chunk(shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
    """Return a chunk of one value, on the default device."""
    return broadcast_to(full((1,) * len(shape), value, dtype=dtype), shape)


def _uniform(name: str, shape: Any, value: Any, dtype: Any, options: dict[str, Any]) -> Any:
    """Return a dask array of one value; `options` are `chunks`, `name`, `meta`, and `order`, which has no meaning."""
    array, meta = _array(), options.pop("meta", None)
    options.pop("order", None)
    if meta is not None and not isinstance(meta, Array):
        with _with_numpy():
            values = {"fill_value": value} if name == "full" else {}
            return getattr(array, name)(shape, dtype=dtype, meta=meta, **values, **options)
    wrap: Any = importlib.import_module("dask.array.wrap").wrap_func_shape_as_first_arg
    x = wrap(uniform_chunk, shape, value=value, dtype=dtype or "float64", **options)
    return array.Array(x.dask, x.name, x.chunks, meta=meta_of(x.ndim, x.dtype))


def _array() -> Any:
    return importlib.import_module("dask.array")


def _with_numpy() -> Any:
    return importlib.import_module("dask.config").set({"array.backend": "numpy"})


_backends.array_creation_dispatch.register_backend("tilearray", TileArrayBackend())
