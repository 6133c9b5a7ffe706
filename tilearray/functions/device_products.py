"""Matrix products and tensor products on a device that runs them as kernels, or through a library of its own.

If the device has a library for the dtype, and it reads the operands as they lie, a product is one call of it. Operands
are copied for it if the product is large, or complex. A library may also ask for aligned copies of operands that it
reads; the plan of the product makes them. All else are kernels: a product of matrices is one launch, of complex
matrices one for each product of parts; with vectors it is a reduction of products of broadcast views. Tensor products
are matrix products of transposed views.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Products
from tilearray.engine.context import decided
from tilearray.engine.devices import common_device
from tilearray.engine.execute import run
from tilearray.engine.plan import library_of
from tilearray.engine.signature import new_array, signature_of
from tilearray.functions.conversion import astype
from tilearray.functions.manipulation import expand_dims, permute_dims, reshape, squeeze
from tilearray.functions.planned_products import Made, Words, again, remember
from tilearray.functions.reduce import reduce_arrays, refuse
from tilearray.geometry.layout import Layout
from tilearray.geometry.strides import broadcast_strides
from tilearray.ops.arithmetic import add, multiply, subtract
from tilearray.ops.execute import execute
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import conj
from tilearray.ops.product import MULTIPLIED, Product, product_of
from tilearray.ops.reduction import Reduction, reduction_of

Ints = tuple[int, ...]

LARGE = 2**27
"""Multiplications from which a copy of an operand is worth it."""
LARGE_INTEGERS = 2**28
"""Multiplications from which integers of more than a byte are multiplied as digits of a byte.

On an H100, 1024x1024 int32 took 0.35 ms, and 2.5 ms as integers; 512x512 took 0.36 ms, of the host, and 0.31 ms.
"""
VECTOR = 16
"""Bytes that a kernel reads at once."""


def matmul(function: str, x1: A, x2: A, dtype: np.dtype) -> A:
    """Return the matrix product of arrays that fit, of a dtype to which elements are rounded first.

    1-d operands are one row and one column, and the result lacks that axis.
    """
    if x1.ndim == x2.ndim == 1:
        return reduce_arrays("vecdot", (_conjugate(x1), x2), (0,), dtype, False)
    words = function, dtype  # the semantics decide no more
    known = again(words, (x1, x2))
    if known is not None:
        return known
    found = _by_library(function, x1, x2, dtype)
    if found is not None:
        return found
    alone = x1.ndim == 1, x2.ndim == 1
    left = expand_dims(x1, axis=0) if alone[0] else x1
    right = expand_dims(x2, axis=1) if alone[1] else x2
    product = multiplied(function, left, right, dtype)
    axes = tuple([axis for axis, squeezed in ((-2, alone[0]), (-1, alone[1])) if squeezed])
    found = squeeze(product, axis=axes) if axes else product
    remember(words, (x1, x2), in_one(function, left, right, dtype), product, found)
    return found


def whole(function: str, x1: A, x2: A, dtype: np.dtype) -> Product | Reduction | None:
    """Return the product as an operation if a library or a kernel of the device takes both operands as they lie."""
    if x1.ndim == x2.ndim == 1 and x1.size and dtypes.info(x1.dtype).kind != "complex":  # its conjugate is a copy
        return reduction_of("vecdot", dtype, (0,), False)
    if x1.ndim > 1 < x2.ndim and x1.dtype == x2.dtype == dtype and dtypes.info(dtype).kind != "complex":
        (*stacks, rows, depth), (*others, _, columns) = x1.shape, x2.shape
        work = prod(np.broadcast_shapes(tuple(stacks), tuple(others))) * rows * depth * columns
        work = work if rows > 1 and columns > 1 else 0
        if work and not _in_digits(dtype, work) and (work < LARGE or _are_read(function, x1, x2, dtype)):
            return product_of(function, dtype)
    return _of_library(function, x1, x2, dtype)


def _in_digits(dtype: np.dtype, work: int) -> bool:
    """Return whether so many multiplications of a dtype are products of digits."""
    return work >= LARGE_INTEGERS and dtypes.info(dtype).kind in ("int", "uint") and dtype.itemsize > 1


def _are_read(function: str, x1: A, x2: A, dtype: np.dtype) -> bool:
    """Return whether a library of the device reads both operands as they lie; the plan decides whether it does."""
    products = common_device(function, [x1._signature, x2._signature]).backend.products
    if products is None or not products.takes(dtype):
        return False
    return all(products.readable(x.shape, x._signature.layout.strides) for x in (x1, x2))


def _of_library(function: str, x1: A, x2: A, dtype: np.dtype) -> Product | None:
    """Return the product as an operation if a library of the device takes both operands as they lie.

    Products of rows with columns are sums along both, without a library.
    """
    rows, columns = prod(x1.shape[-2:-1]), prod(x2.shape[-1:]) if x2.ndim > 1 else 1
    if rows == columns == 1 or not x1.size or not x2.size:
        return None
    return product_of(function, dtype) if library_of([x1._signature, x2._signature], dtype) else None


def _by_library(function: str, x1: A, x2: A, dtype: np.dtype) -> A | None:
    """Return the product through a library of the device, after copies of operands if they are worth it."""
    products = common_device(function, [x1._signature, x2._signature]).backend.products
    if products is None or not products.takes(dtype):
        return None
    stacks = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    work = prod(stacks) * prod(x1.shape[-2:]) * prod(x2.shape[-1:] if x2.ndim > 1 else ())
    if work >= LARGE or dtypes.info(dtype).kind == "complex":
        x1, x2 = _given_to(products, x1, dtype), _given_to(products, x2, dtype)
    operation = _of_library(function, x1, x2, dtype)
    if operation is None:
        return None
    return cast("A", run(operation, [x1._signature, x2._signature], (x1, x2), None, refuse))


def _given_to(products: Products, x: A, dtype: np.dtype) -> A:
    """Return an array that a library reads: cast if it has another dtype, and copied if it lies otherwise."""
    if products.readable(x.shape, x._signature.layout.strides):
        return astype(x, dtype, copy=False)
    return execute(assign, (x,), new_array(x.__class__, signature_of(Layout.of(x.shape), dtype, x.device)))


def multiplied(function: str, x1: A, x2: A, dtype: np.dtype) -> A:
    """Return the product of stacks of matrices that fit."""
    found = _by_library(function, x1, x2, dtype)
    if found is not None:
        return found
    stacks = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, depth, columns = *x1.shape[-2:], x2.shape[-1]
    if rows > 1 and columns > 1 and prod(stacks) and depth:
        if dtypes.info(dtype).kind == "complex":
            return _in_parts(function, x1, x2, dtype)
        if _in_digits(dtype, prod(stacks) * rows * columns * depth):
            from tilearray.functions import integer_products  # here: few programs need it

            return integer_products.multiplied(function, x1, x2, dtype)
        if dtype == dtypes.float64:
            x1, x2 = astype(x1, dtype, copy=False), astype(x2, dtype, copy=False)
        return sums(function, x1, x2, dtype, dtype)
    arrays, _ = _in_rows(x1, x2)
    return reduce_arrays("vecdot", arrays, (len(stacks) + 2,), dtype, False)


def _in_rows(x1: A, x2: A) -> tuple[tuple[A, A], Ints]:
    """Return the arrays whose rows are multiplied and summed up, and which operand each one is."""
    stacks = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, depth, columns = *x1.shape[-2:], x2.shape[-1]
    if rows >= columns:  # the reduction takes the conjugate of its first array
        x1 = _conjugate(x1)
    else:
        x2 = _conjugate(x2)
    first = _repeated(x1, (*stacks, rows, columns, depth), (-2, None, -1))
    second = _repeated(x2, (*stacks, rows, columns, depth), (None, -1, -2))
    if rows < columns:  # the order of a reduction is that of its first array
        return (second, first), (1, 0)
    return (first, second), (0, 1)


def in_one(function: str, x1: A, x2: A, dtype: np.dtype) -> Made | None:
    """Return how `multiplied` makes a product of few elements by one operation; None if it runs several."""
    operation = whole(function, x1, x2, dtype)
    if operation is not None:
        return Made(operation, (x1, x2), (0, 1))
    stacks = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, depth, columns = *x1.shape[-2:], x2.shape[-1]
    if min(rows, columns) > 1 or not 0 < prod(stacks) * rows * depth * columns < LARGE:
        return None
    if dtypes.info((x1 if rows >= columns else x2).dtype).kind == "complex":  # its conjugate is a copy
        return None
    return Made(reduction_of("vecdot", dtype, (len(stacks) + 2,), False), *_in_rows(x1, x2))


def sums(function: str, x1: A, x2: A, common: np.dtype, result: np.dtype) -> A:
    """Return the product by a kernel, of elements that are rounded to a dtype, and stored as another one.

    Operands of large products are copied if that makes them faster to read.
    """
    if prod(x1.shape) * x2.shape[-1] >= LARGE:
        x1, x2 = _readable(x1, common, False), _readable(x2, common, True)
    product = product_of(function, result, common)
    return cast("A", run(product, [x1._signature, x2._signature], (x1, x2), None, refuse))


def _in_parts(function: str, x1: A, x2: A, dtype: np.dtype) -> A:
    """Return the product of complex matrices: of their real and imaginary parts, without a copy of them."""
    part = dtypes.float64 if dtype == dtypes.complex128 else dtypes.float32
    parts: list[tuple[Any, Any]] = []
    given: tuple[Any, Any] = x1, x2
    for x in given:
        is_complex = dtypes.info(x.dtype).kind == "complex"
        parts.append((x.real, x.imag) if is_complex else (astype(x, part, copy=False), None))
    (a, b), (c, d) = parts
    re = multiplied(function, a, c, part)
    if b is not None and d is not None:
        subtract(re, multiplied(function, b, d, part), out=re)
    crossed = [multiplied(function, x, y, part) for x, y in ((a, d), (b, c)) if x is not None and y is not None]
    im = crossed[0] if len(crossed) == 1 else add(crossed[0], crossed[1], out=crossed[0])
    out: Any = new_array(x1.__class__, signature_of(re._signature.layout, dtype, x1.device))
    execute(assign, (re,), out.real)
    execute(assign, (im,), out.imag)
    return out


def _readable(x: A, dtype: np.dtype, second: bool, only: int = 0) -> A:
    """Return an array, or a copy of it if a kernel cannot read its rows or columns in vectors.

    float32 has no tensor cores of its own precision: there x2 must be dense along its rows. Tensor cores for bytes read
    x2 along its columns.
    """
    if second and x.ndim > 1 and MULTIPLIED[dtype][0] == dtypes.int8:
        back = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
        return permute_dims(_readable(permute_dims(x, back), dtype, False, -1), back)
    layout, itemsize = x._signature.layout, x.itemsize
    along = only or (-1 if layout.strides[-1] == 1 else -2)
    others = [stride for axis, stride in enumerate(layout.strides) if axis != x.ndim + along]
    in_vectors = layout.strides[along] == 1 and not any(stride * itemsize % VECTOR for stride in others)
    turned = second and along == -2 and dtype == dtypes.float32
    if in_vectors and x._signature.aligned and not turned:
        return x
    *stacks, rows, columns = x.shape
    pitch = -(-columns // VECTOR) * VECTOR
    whole = new_array(x.__class__, signature_of(Layout.of((*stacks, rows, pitch)), x.dtype, x.device))
    out = whole._view(Layout((*stacks, rows, columns), whole._signature.layout.strides))
    return execute(assign, (x,), out)


def _conjugate(x: A) -> A:
    """Return the conjugate, also in semantics that do not compute with complex numbers."""
    return cast("A", decided(conj, x)) if dtypes.info(x.dtype).kind == "complex" else x


def _repeated(x: A, shape: Ints, axes: tuple[int | None, ...]) -> A:
    """Return the view of a shape, repeated along the stacks, and along those of the last axes that are None."""
    layout = x._signature.layout
    stacks = broadcast_strides(layout.shape[:-2], layout.strides[:-2], shape[:-3])
    return x._view(Layout(shape, (*stacks, *[0 if axis is None else layout.strides[axis] for axis in axes])))


def tensordot(function: str, x1: A, x2: A, axes: tuple[Ints, Ints], dtype: np.dtype, words: Words | None = None) -> A:
    """Return the sum of products over pairs of axes that fit; it is remembered under `words`."""
    first, second = axes
    kept = [axis for axis in range(x1.ndim) if axis not in first], [a for a in range(x2.ndim) if a not in second]
    summed = prod([x1.shape[axis] for axis in first])
    left = reshape(permute_dims(x1, (*kept[0], *first)), (prod([x1.shape[axis] for axis in kept[0]]), summed))
    right = reshape(permute_dims(x2, (*second, *kept[1])), (summed, prod([x2.shape[axis] for axis in kept[1]])))
    shape = (*[x1.shape[axis] for axis in kept[0]], *[x2.shape[axis] for axis in kept[1]])
    if first or dtype == dtypes.bool_:
        product = multiplied(function, left, right, dtype)
        made = None if words is None else in_one(function, left, right, dtype)
    else:
        left, right = astype(left, dtype, copy=False), astype(right, dtype, copy=False)
        product, made = cast("A", multiply(left, right)), Made(multiply, (left, right), (0, 1))
    found = reshape(product, shape)
    if words is not None:
        remember(words, (x1, x2), made, product, found)
    return found
