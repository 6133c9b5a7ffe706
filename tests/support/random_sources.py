"""Kernels of draws, without a device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from support.kernels import Kernel, kernel_for
from tilearray import dtypes
from tilearray.engine.operation import FixedOperation
from tilearray.random import draws, rejection
from tilearray.random.shuffles import shuffled

FLOATS = (dtypes.bfloat16, dtypes.float32, dtypes.float64)


def draw_kernel(operation: FixedOperation, arch: int = 90) -> Kernel:
    """The kernel of a draw over aligned arrays."""
    arrays = 1 + sum(kind == "array" for kind, _ in operation.graph.inputs)
    return kernel_for(operation.graph, (4096,), [(1,)] * arrays, arch=arch)


def operations() -> Iterator[FixedOperation]:
    """Yield draws of all distributions: at the start of a block and within one."""
    for shifted in (False, True):
        for dtype, make, scaled in product(FLOATS, (draws.unit, draws.normal, draws.exponential), (False, True)):
            yield make(dtype, shifted, scaled)
        yield draws.raw(dtypes.uint32, shifted)
        for dtype, wide, arrays in product((dtypes.int8, dtypes.uint64), (False, True), (False, True)):
            yield draws.bounded(dtype, shifted, wide, arrays)
    for places, arrays in product((False, True), repeat=2):
        yield rejection.gamma(dtypes.float32, places, arrays)
        yield rejection.gamma(dtypes.float64, places, arrays)
        yield rejection.poisson(places, arrays, "both")
        yield rejection.binomial(places, arrays, "both")
    yield from (shuffled(arrays) for arrays in (False, True))


def all_sources() -> Iterator[Any]:
    """Yield the sources of all draws."""
    for operation in operations():
        yield draw_kernel(operation).source
