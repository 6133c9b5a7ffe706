"""Kernels of reductions as text, without a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilearray.engine.stages import split, values_of
from tilearray.geometry.reduction import make_reduction
from tilearray.geometry.strides import dense_strides
from tilearray.ops.reduction import reduction_of
from tilearray.promotion.systems import ARRAY_API
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.source import source_of
from tilearray_cuda.kernels.spec import make_spec

RESULTS = {"argmax": "int64", "argmin": "int64", "all": "bool", "any": "bool", "count_nonzero": "int64"}
SPREADS = ("var", "std")
DTYPES = ("bool", "uint8", "int64", "bfloat16", "float32", "float64", "complex64", "complex128")
SHAPES = (
    ((1000, 300), (1,)),
    ((1000, 65), (1,)),
    ((1000, 300), (0,)),
    ((3_000_000,), (0,)),
    ((40, 30, 20, 1000), (1, 3)),
)


def sources(
    name: str, dtype: str, shape: Sequence[int], axes: Sequence[int], strides: Sequence[int] = (), arch: int = 90
) -> list[Any]:
    """Return the sources of one reduction of an aligned array: one, or two if the loop has segments."""
    given = np.dtype(getattr(ml_dtypes, dtype, dtype))
    result = np.dtype(RESULTS.get(name, "uint64" if (name, dtype) == ("sum", "uint8") else given))
    result = np.dtype(np.float32) if result.kind in "biu" and name in ("mean", *SPREADS, "norm") else result
    result = np.zeros(0, result).real.dtype if result.kind == "c" and name in (*SPREADS, "norm") else result
    operation = reduction_of(name, result, tuple(axes), False)
    count = 2 if name in (*SPREADS, "vecdot") else 1
    expression = operation.expression(ARRAY_API, (given,) * count, None)
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    steps = tuple(strides) or dense_strides(tuple(shape))
    inputs = [steps] * sum(kind == "array" for kind, _ in expression.inputs)
    options: Any = {"ordered": operation.reduced.ordered, "values": values_of(expression)}
    loop = make_reduction(tuple(shape), axes, [dense_strides(kept)], inputs, given.itemsize, **options)
    total = loop.segments.total
    if total == 1:
        return [_source(expression, loop, arch)]
    halves = split(expression)
    outputs = [tuple(step * total for step in dense_strides(kept))] * len(halves.first.outputs)
    first = make_reduction(tuple(shape), axes, outputs, inputs, given.itemsize, **options)
    partial = dense_strides((*kept, total))
    second = make_reduction(
        (*kept, total), (len(kept),), [dense_strides(kept)], [partial] * len(outputs), 8, whole=True
    )
    return [_source(halves.first, first, arch), _source(halves.second, second, arch)]


def _source(expression: Any, loop: Any, arch: int) -> Any:
    aligned = (True,) * len(loop.strides)
    return source_of(choose.schedule_of(make_spec(expression, choose.loop_class(loop), aligned), arch))


def all_sources() -> Iterator[Any]:
    """Yield the sources of every reduction in several dtypes and layouts."""
    names = ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero", "argmax", "argmin")
    for name in (*names, "vecdot", "norm", "sum_from", "max_from", "min_from", "nanmax", "nanmin"):
        for dtype in [dtype for dtype in DTYPES if "float" in dtype] if name.startswith("nan") else DTYPES:
            if not (dtype.startswith("complex") and name.startswith(("max", "min", "arg"))):
                for shape, axes in SHAPES:
                    yield from sources(name, dtype, shape, axes)
