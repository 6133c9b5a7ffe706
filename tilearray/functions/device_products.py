"""Matrix products and tensor products on a device that runs them as kernels.

A product of matrices is one launch. Of vectors, and of dtypes without a kernel for products, it is a reduction of
products of broadcast views. Tensor products are matrix products of transposed views.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.execute import run
from tilearray.functions.manipulation import expand_dims, permute_dims, reshape, squeeze
from tilearray.functions.reduce import reduce_arrays, refuse
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import broadcast_strides
from tilearray.ops.number_parts import conj
from tilearray.ops.product import MULTIPLIED, product_of

Ints = tuple[int, ...]


def matmul(function: str, x1: A, x2: A, dtype: np.dtype) -> A:
    """Return the matrix product of arrays that fit, of a dtype to which elements are rounded first.

    1-d operands are one row and one column, and the result lacks that axis.
    """
    alone = x1.ndim == 1, x2.ndim == 1
    if alone[0]:
        x1 = expand_dims(x1, axis=0)
    if alone[1]:
        x2 = expand_dims(x2, axis=1)
    found = multiplied(function, x1, x2, dtype)
    axes = tuple([axis for axis, squeezed in ((-2, alone[0]), (-1, alone[1])) if squeezed])
    return squeeze(found, axis=axes) if axes else found


def multiplied(function: str, x1: A, x2: A, dtype: np.dtype) -> A:
    """Return the product of stacks of matrices that fit."""
    stacks = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, depth, columns = *x1.shape[-2:], x2.shape[-1]
    if dtype in MULTIPLIED and rows > 1 and columns > 1 and prod(stacks) and depth:
        product = product_of(function, dtype)
        return cast("A", run(product, [x1._signature, x2._signature], (x1, x2), None, refuse))
    first: Any = _repeated(x1, (*stacks, rows, columns, depth), (-2, None, -1))
    second = _repeated(x2, (*stacks, rows, columns, depth), (None, -1, -2))
    if rows < columns:  # the order of a reduction is that of its first array
        first, second = second, first
    if dtypes.info(dtype).kind == "complex" and dtypes.info(first.dtype).kind == "complex":
        first = conj(first)  # which the reduction does once more
    return reduce_arrays("vecdot", (first, second), (len(stacks) + 2,), dtype, False)


def _repeated(x: A, shape: Ints, axes: tuple[int | None, ...]) -> A:
    """Return the view of a shape, repeated along the stacks, and along those of the last axes that are None."""
    layout = x._signature.layout
    stacks = broadcast_strides(layout.shape[:-2], layout.strides[:-2], shape[:-3])
    return x._view(Layout(shape, (*stacks, *[0 if axis is None else layout.strides[axis] for axis in axes])))


def tensordot(function: str, x1: A, x2: A, axes: tuple[Ints, Ints], dtype: np.dtype) -> A:
    """Return the sum of products over pairs of axes that fit."""
    first, second = axes
    kept = [axis for axis in range(x1.ndim) if axis not in first], [a for a in range(x2.ndim) if a not in second]
    summed = prod([x1.shape[axis] for axis in first])
    left = reshape(permute_dims(x1, (*kept[0], *first)), (prod([x1.shape[axis] for axis in kept[0]]), summed))
    right = reshape(permute_dims(x2, (*second, *kept[1])), (summed, prod([x2.shape[axis] for axis in kept[1]])))
    shape = (*[x1.shape[axis] for axis in kept[0]], *[x2.shape[axis] for axis in kept[1]])
    return reshape(multiplied(function, left, right, dtype), shape)
