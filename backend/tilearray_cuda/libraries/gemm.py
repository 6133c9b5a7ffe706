"""The arguments of a matrix product for BLAS, found from strides: pure integers, no library.

BLAS reads a matrix in column-major order, transposed if asked: one stride is 1, and the other one, the leading
dimension, is at least the size along the first. So it reads C order as the transposed matrix. A result in C order is
computed transposed: ``C.T = B.T @ A.T``. A result with one row is computed transposed as well, as one column.

Stacks are a stride for each operand, which is 0 for one that is broadcast. If all matrices of a stack have one partner,
they are one tall or wide matrix. Stacks of several axes are one call for each index of all axes but the longest.

`padded` finds the copies with which one product has only sizes, leading dimensions and addresses of whole vectors.

>>> product = product_of((), (30, 50, 8), (50, 1), (8, 1), (50, 1))
>>> product.sizes, product.pitches, product.transposed, product.swapped
((50, 30, 8), (50, 8, 50), (False, False), True)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

Ints = tuple[int, ...]
Axis = tuple[int, int, int, int]
"""A stacked axis: the strides of the result and of both operands, and the size."""


class Product(NamedTuple):
    """Calls that compute ``c = op(a) @ op(b)`` in column-major order.

    Attributes
    ----------
    transposed : tuple of bool
        Whether `a` and `b` are read transposed.
    sizes : tuple of int
        Rows and columns of `c`, and the summed size.
    pitches : tuple of int
        The leading dimensions of `a`, `b` and `c`.
    swapped : bool
        Whether `a` is the second operand of the product, and `b` the first.
    matrices : int
        The number of matrices of a call.
    steps : tuple of int
        The elements from one matrix to the next, of `a`, `b` and `c`.
    offsets : tuple of (int, int, int)
        For each call, the elements before its first matrices in the result and both operands of the product.
    """

    transposed: tuple[bool, bool]
    sizes: tuple[int, int, int]
    pitches: tuple[int, int, int]
    swapped: bool
    matrices: int
    steps: tuple[int, int, int]
    offsets: tuple[tuple[int, int, int], ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is one matrix times one vector."""
        return self.sizes[1] == 1 and self.matrices == 1

    @property
    def vector_step(self) -> int:
        """The elements from one element of the vector `b` to the next."""
        return self.pitches[1] if self.transposed[1] else 1


class Copy(NamedTuple):
    """A matrix of a product in memory of its own.

    Attributes
    ----------
    shape : tuple of int
    strides, padded : tuple of int
        The strides of the matrix where it lies, and in memory of its own.
    size : int
        The elements of that memory.
    """

    shape: tuple[int, int]
    strides: tuple[int, int]
    padded: tuple[int, int]
    size: int


Copies = tuple[Copy | None, Copy | None, Copy | None]
"""The copies of the result, from which it is stored, and of both operands; None for what is used as it lies."""


def stored(shape: tuple[int, int], strides: tuple[int, int]) -> tuple[bool, int] | None:
    """Return how BLAS reads a matrix: whether transposed, and its leading dimension. None if it cannot.

    Strides along axes of size 1 have no influence.

    >>> stored((3, 4), (10, 1)), stored((3, 4), (1, 3)), stored((3, 4), (8, 2)), stored((3, 1), (8, 2))
    ((True, 10), (False, 3), None, (True, 8))
    >>> stored((3, 4), (1, 2)), stored((3, 4), (2, 1))  # rows and columns that overlap
    (None, None)
    """
    (rows, columns), (down, across) = shape, strides
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return False, rows if columns == 1 else across
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return True, columns if rows == 1 else down
    return None


def readable(shape: Ints, strides: Ints) -> bool:
    """Return whether BLAS reads stacks of matrices, or a vector, as they lie.

    >>> readable((2, 3, 4), (12, 4, 1)), readable((3, 4), (-4, 1)), readable((4,), (3,)), readable((4,), (0,))
    (True, False, True, False)
    """
    if len(shape) == 1:
        return shape[0] == 1 or strides[0] > 0
    if any(stride < 0 for size, stride in zip(shape[:-2], strides[:-2], strict=True) if size != 1):
        return False
    return stored((shape[-2], shape[-1]), (strides[-2], strides[-1])) is not None


class _Operands(NamedTuple):
    """A product ``c = a @ b``: sizes, the strides of `c`, `a` and `b` along their two axes, and the stacked axes."""

    sizes: tuple[int, int, int]
    c: tuple[int, int]
    a: tuple[int, int]
    b: tuple[int, int]
    stacks: tuple[Axis, ...]

    def transposed(self) -> _Operands:
        """Return the transposed product, ``c.T = b.T @ a.T``."""
        rows, columns, depth = self.sizes
        stacks = tuple([(c, b, a, size) for c, a, b, size in self.stacks])
        c, a, b = [(across, down) for down, across in (self.c, self.a, self.b)]
        return _Operands((columns, rows, depth), c, b, a, stacks)

    def with_tall_matrix(self) -> _Operands | None:
        """Return the product with the last stacked axis in its rows, if all matrices of the axis share `b`."""
        if not self.stacks:
            return None
        *others, (c, a, b, size) = self.stacks
        rows, columns, depth = self.sizes
        down, along = (c, a) if rows == 1 else (self.c[0], self.a[0])
        if b or c != rows * down or a != rows * along:
            return None
        found = _Operands((rows * size, columns, depth), (down, self.c[1]), (along, self.a[1]), self.b, tuple(others))
        fits = stored((rows * size, depth), found.a) and stored((rows * size, columns), found.c)
        return found if fits else None


def product_of(stacks: Sequence[Axis], sizes: tuple[int, int, int], c: Ints, a: Ints, b: Ints) -> Product:
    """Return the calls of a product.

    Parameters
    ----------
    stacks : sequence of (int, int, int, int)
        For each stacked axis the strides of the result and of both operands, and the size.
    sizes : tuple of int
        Rows and columns of the result, and the summed size.
    c, a, b : tuple of int
        The strides of the result and of both operands along their two axes; `stored` reads all three.
    """
    given = _Operands(sizes, (c[0], c[1]), (a[0], a[1]), (b[0], b[1]), tuple(stacks))
    swapped = False
    for _ in range(2):  # all rows first, then all columns
        while folded := given.with_tall_matrix():
            given = folded
        given, swapped = given.transposed(), not swapped
    rows, columns, depth = given.sizes
    if (rows == 1 < columns) or not (columns == 1 or given.c[0] == 1):
        given, swapped = given.transposed(), not swapped
        rows, columns = columns, rows
    *others, longest = sorted(given.stacks, key=lambda axis: axis[-1]) or [(0, 0, 0, 1)]
    step, *steps, count = longest
    a_transposed, lda = stored((rows, depth), given.a) or (False, 0)
    b_transposed, ldb = stored((depth, columns), given.b) or (False, 0)
    indices = itertools.product(*[range(size) for *_, size in others])
    places = (0, 2, 1) if swapped else (0, 1, 2)
    offsets = [[sum(i * axis[place] for i, axis in zip(index, others)) for place in places] for index in indices]
    return Product(
        (a_transposed, b_transposed),
        (rows, columns, depth),
        (lda, ldb, rows if columns == 1 else given.c[1]),
        swapped,
        count,
        (steps[0], steps[1], step),
        tuple([(c, a, b) for c, a, b in offsets]),
    )


def padded(product: Product, aligned: tuple[bool, bool], unit: int, pitch: int) -> tuple[Product, Copies]:
    """Return a product of one matrix by one matrix for which the library has its fast kernels, and its copies.

    They demand multiples of a unit: the leading dimension of each matrix, its size along the axis that is dense, and
    the address of each operand. A matrix that does not meet this is copied. The rows of `c` are rounded up, and the
    columns if `b` is dense along them. The summed size stays: an operand that is dense along it is copied transposed if
    it is no multiple. So no copy needs zeros. Memory that nobody writes has influence only on rows and columns of `c`
    that the result does not have.

    Parameters
    ----------
    product : Product
    aligned : tuple of bool
        Whether the addresses of both operands of the product are multiples of a unit.
    unit, pitch : int
        What sizes and leading dimensions must be multiples of, and what leading dimensions of copies are multiples of.

    Examples
    --------
    Of 30x50 times 50x7 elements: both operands and the result have rows of odd lengths.

    >>> product, copies = padded(product_of((), (30, 7, 50), (7, 1), (50, 1), (7, 1)), (True, True), 8, 64)
    >>> product.sizes, product.pitches, product.transposed
    ((8, 32, 50), (64, 64, 64), (False, True))
    >>> copies[1]
    Copy(shape=(50, 30), strides=(1, 50), padded=(64, 1), size=3200)
    """
    (a_transposed, b_transposed), (rows, columns, depth), (lda, ldb, ldc) = product[:3]
    a_aligned, b_aligned = reversed(aligned) if product.swapped else aligned
    a_fits = a_aligned and not (lda % unit or rows % unit or (a_transposed and depth % unit))
    b_fits = b_aligned and not (ldb % unit or (columns if b_transposed else depth) % unit)
    a_turned = a_transposed and not depth % unit
    b_turned = bool(depth % unit) or (b_transposed and not columns % unit)
    height = _up(rows, unit)
    width = _up(columns, unit) if b_turned else columns
    c_fits = not (ldc % unit or rows % unit) and width == columns
    a = None if a_fits else _copy((rows, depth), (a_transposed, lda), (height, depth), a_turned, pitch)
    b = None if b_fits else _copy((depth, columns), (b_transposed, ldb), (depth, width), b_turned, pitch)
    c = None if c_fits else _copy((rows, columns), (False, ldc), (height, width), False, pitch)
    pitches = (max(a.padded) if a else lda, max(b.padded) if b else ldb, max(c.padded) if c else ldc)
    found = product._replace(transposed=(a_turned, b_turned), sizes=(height, width, depth), pitches=pitches)
    return found, (c, b, a) if product.swapped else (c, a, b)


def _copy(shape: tuple[int, int], given: tuple[bool, int], room: tuple[int, int], turned: bool, pitch: int) -> Copy:
    """Return the copy of a matrix that is given as `stored` reads it, in memory with room for a larger one."""
    transposed, old = given
    new = _up(room[1] if turned else room[0], pitch)
    strides, padded = [(one, 1) if flag else (1, one) for flag, one in ((transposed, old), (turned, new))]
    return Copy(shape, strides, padded, new * (room[0] if turned else room[1]))


def _up(size: int, unit: int) -> int:
    """Return the next multiple of a unit."""
    return -(-size // unit) * unit
