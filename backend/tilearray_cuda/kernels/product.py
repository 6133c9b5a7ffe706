"""The text of matrix products: the loop along the summed axis, then the results."""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.schedules.product import Product
from tilearray_cuda.kernels.storage import STORAGE


def product(schedule: Product) -> list[str]:
    """Return the lines of a kernel after its setup. float32 is multiplied as it is, not rounded for tensor cores."""
    nodes: tuple[Any, ...] = schedule.spec.nodes
    place = next(position for position, node in enumerate(nodes) if node[0] == "product")
    _, left, right, dtype = nodes[place]
    (arm,) = schedule.arms()
    lines, values = computed(schedule, arm.branch, range(place))
    kind = STORAGE[dtype].register
    (x,), (y,) = values[left][0], values[right][0]
    added = f'tl.dot({x}, {y}, total, input_precision="ieee", out_dtype={kind})'
    if not schedule.has_units:
        added = f"total + tl.sum({x}[:, :, None] * {y}[None, :, :], 1)"
    rest, results = computed(schedule, arm.branch, range(place + 1, len(nodes)), {place: (("total",), dtype)})
    return [
        f"total = tl.full((ROWS, COLUMNS), 0, {kind})",
        f"for step in range(0, {schedule.extents[-1]}, DEPTH):",
        *indented(
            [
                "depth = step + tl.arange(0, DEPTH)",
                *lines,
                f"total = {added}",
            ]
        ),
        *rest,
        *stored(schedule, arm.branch, results),
    ]
