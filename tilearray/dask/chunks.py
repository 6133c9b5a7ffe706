"""What dask looks up by the type of a chunk: functions of arrays, the size in memory, the way to NumPy and back.

dask would call NumPy's function for a type that it does not know. Our functions skip that detour, and
`percentile_lookup` has no function for unknown types.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from tilearray.arrays.array import Array
from tilearray.arrays.fills import empty, full
from tilearray.functions import products
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.take import take
from tilearray.functions.joining import concat
from tilearray.functions.manipulation import broadcast_to


def size(module: Any) -> None:
    """Enter the Array into ``dask.sizeof``."""
    module.sizeof.register(Array, size_in_memory)


def size_in_memory(x: Array) -> int:
    """Return the bytes that an array occupies; a broadcast axis has one element.

    Examples
    --------
    >>> import tilearray as ta
    >>> size_in_memory(ta.broadcast_to(ta.zeros(3, dtype="float64"), (1000, 3)))
    24
    """
    layout = x._signature.layout
    return x.dtype.itemsize * math.prod([n for n, stride in zip(layout.shape, layout.strides) if stride or not n])


def lookups(module: Any) -> None:
    """Enter the Array into the tables of ``dask.array``, and the backend into its list."""
    tables: Any = importlib.import_module("dask.array.dispatch")
    functions = {
        tables.concatenate_lookup: concat,
        tables.take_lookup: take,
        tables.tensordot_lookup: products.tensordot,
        tables.einsum_lookup: einsum,
        tables.empty_lookup: empty,
        tables.percentile_lookup: module.percentile,
        tables.numel_lookup: numel,
        tables.to_numpy_dispatch: on_host,
    }
    for table, function in functions.items():
        table.register(Array, function)
    importlib.import_module("dask.array.chunk_types").register_chunk_type(Array)
    importlib.import_module("tilearray.dask.backend")  # it registers itself, also if its import led here


def on_host(x: Array, **options: Any) -> Any:
    """Return the elements as an ndarray: dask passes options of other libraries."""
    return to_numpy(x)


def einsum(*operands: Any, dtype: Any = None, order: str = "K", casting: str = "safe", **options: Any) -> Array:
    """Call `tilearray.einsum`; `casting` needs no check, because dask has chosen the dtype."""
    result = products.einsum(*operands, **options)
    return result if dtype is None else result.astype(dtype, copy=False)


def numel(
    x: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, dtype: Any = "float64", **options: Any
) -> Array:
    """Return the number of elements along axes for each result, on the device of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> numel(ta.zeros((2, 3)), axis=1).tolist()
    [3.0, 3.0]
    """
    axes = range(x.ndim) if axis is None else [one % x.ndim for one in ((axis,) if isinstance(axis, int) else axis)]
    shape = [1 if place in axes else n for place, n in enumerate(x.shape) if keepdims or place not in axes]
    count = full((1,) * len(shape), math.prod([x.shape[place] for place in axes]), dtype=dtype, device=x.device)
    return broadcast_to(count, tuple(shape))
