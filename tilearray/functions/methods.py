"""NumPy's methods of arrays beyond the array API standard: reductions, sorting, rearranging, and access to memory.

A method is the function of its name with the array as its first operand. Its parameters have NumPy's names, order and
defaults, and they pass by position or by name as in NumPy. Only what NumPy has as a method alone is written here:
`fill`, `flatten`, `sort` in place, `swapaxes`, and access to memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tilearray import dtypes
from tilearray.dtypes import DTypeLike
from tilearray.engine.signature import ArrayBase, Operand
from tilearray.errors import DTypeError, OperandError, shown
from tilearray.functions import conversion, diagonals, manipulation, memory, products, reductions, scans, searching
from tilearray.functions.flags import Flags
from tilearray.functions.flat import Flat
from tilearray.functions.indexing import assign
from tilearray.functions.indexing.take import take
from tilearray.functions.orders import Order
from tilearray.functions.repeating import repeat
from tilearray.geometry.shapes import Axes, Axis, ShapeLike, normalize_axis
from tilearray.interchange import array_interface
from tilearray.ops import composed, number_parts
from tilearray.ops.summation_order import SummationOrder
from tilearray.promotion.storing import Casting, allows_cast

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array


class NumPyMethods(ArrayBase):
    """The methods and attributes of ``numpy.ndarray`` that the array API standard does not have."""

    __slots__ = ()

    # ------------------------------------------------------------------ reductions

    def sum(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        *,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the sum of elements; see `tilearray.sum`."""
        return reductions.sum(self, axis, dtype, out, keepdims, initial, where, order=order)

    def prod(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        *,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the product of elements; see `tilearray.prod`."""
        return reductions.prod(self, axis, dtype, out, keepdims, initial, where, order=order)

    def mean(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        *,
        where: Any = None,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the arithmetic mean; see `tilearray.mean`."""
        return reductions.mean(self, axis, dtype, out, keepdims, where=where, order=order)

    def var(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: float | None = None,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the variance; `ddof` and `correction` mean the same. See `tilearray.var`."""
        return reductions.var(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction, order=order
        )

    def std(
        self,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: float | None = None,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the standard deviation; `ddof` and `correction` mean the same. See `tilearray.std`."""
        return reductions.std(
            self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction, order=order
        )

    def max(
        self, axis: Axes = None, out: Self | None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Self:
        """Return the largest element; see `tilearray.max`."""
        return reductions.max(self, axis, out, keepdims, initial, where)

    def min(
        self, axis: Axes = None, out: Self | None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Self:
        """Return the smallest element; see `tilearray.min`."""
        return reductions.min(self, axis, out, keepdims, initial, where)

    def all(self, axis: Axes = None, out: Self | None = None, keepdims: bool = False, *, where: Any = None) -> Self:
        """Return whether all elements are other than 0; see `tilearray.all`."""
        return reductions.all(self, axis, out, keepdims, where=where)

    def any(self, axis: Axes = None, out: Self | None = None, keepdims: bool = False, *, where: Any = None) -> Self:
        """Return whether any element is other than 0; see `tilearray.any`."""
        return reductions.any(self, axis, out, keepdims, where=where)

    def argmax(self, axis: Axis = None, out: Self | None = None, *, keepdims: bool = False) -> Self:
        """Return the index of the largest element; see `tilearray.argmax`."""
        return searching.argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Axis = None, out: Self | None = None, *, keepdims: bool = False) -> Self:
        """Return the index of the smallest element; see `tilearray.argmin`."""
        return searching.argmin(self, axis, out, keepdims=keepdims)

    def cumsum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        *,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the sums of all elements up to each one; without an axis, of all elements in C order."""
        x, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return scans.cumulative_sum(x, axis, dtype, out, order=order)

    def cumprod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Self | None = None,
        *,
        order: SummationOrder = "fixed",
    ) -> Self:
        """Return the products of all elements up to each one; without an axis, of all elements in C order."""
        x, axis = (self.ravel(), 0) if axis is None else (self, axis)
        return scans.cumulative_prod(x, axis, dtype, out, order=order)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: Self | None = None
    ) -> Self:
        """Return the sum of a diagonal of two axes; see `tilearray.trace`."""
        return diagonals.trace(self, offset, axis1, axis2, dtype, out)

    # ------------------------------------------------------------------ searching and sorting

    def sort(
        self,
        axis: int = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = None,
        descending: bool = False,
    ) -> None:
        """Sort this array in place. `tilearray.sort` returns a sorted copy.

        Parameters
        ----------
        axis : int
            The axis to sort along.
        kind, stable
            Ignored: sorting is always stable.
        order : None
            NumPy's fields of structured dtypes, which arrays here do not have.
        descending : bool
            Whether the largest element comes first.

        Raises
        ------
        OperandError
            If `order` or ``axis=None`` is given.
        WriteError
            If the array is read-only.

        Examples
        --------
        >>> import tilearray as ta
        >>> x = ta.asarray([3, 1, 2])
        >>> x.sort()
        >>> x
        Array([1, 2, 3], dtype=int64, device='cpu')
        """
        _check_no_fields("sort", order)
        if axis is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise OperandError("sort: expected an axis to sort in place, got None; write ta.sort(x, axis=None)")
        assign.set(self, ..., searching.sort(self, axis, kind, descending=descending, stable=stable))

    def argsort(
        self,
        axis: Axis = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = None,
        descending: bool = False,
    ) -> Self:
        """Return the indices that sort this array; see `tilearray.argsort`."""
        _check_no_fields("argsort", order)
        return searching.argsort(self, axis, kind, descending=descending, stable=stable)

    def nonzero(self) -> tuple[Self, ...]:
        """Return the indices of the elements other than 0, an array for each axis; see `tilearray.nonzero`."""
        return searching.nonzero(self)

    def searchsorted(self, v: Operand, side: Literal["left", "right"] = "left", sorter: Self | None = None) -> Self:
        """Return the indices at which elements of `v` keep this array in order; see `tilearray.searchsorted`."""
        return searching.searchsorted(self, v, side, sorter)

    # ------------------------------------------------------------------ elements

    def take(
        self,
        indices: Any,
        axis: Axis = None,
        out: Self | None = None,
        mode: Literal["raise", "wrap", "clip"] = "raise",
    ) -> Self:
        """Return the elements at indices along an axis; without one, of all in C order. See `tilearray.take`."""
        return take(self, indices, axis, out, mode)

    def repeat(self, repeats: Any, axis: Axis = None) -> Self:
        """Return each element several times; see `tilearray.repeat`."""
        return repeat(self, repeats, axis)

    def clip(self, min: Operand | None = None, max: Operand | None = None, out: Self | None = None) -> Array:
        """Return for each element the nearest value within ``[min, max]``; see `tilearray.clip`."""
        return composed.clip(self, min, max, out=out)

    def round(self, decimals: int = 0, out: Self | None = None) -> Array:
        """Return each element rounded to a number of decimals, ties to even; see `tilearray.round`."""
        return composed.round(self, decimals, out=out)

    def conj(self) -> Self:
        """Return the complex conjugate; an array that is not complex returns itself."""
        if dtypes.info(self.dtype).kind != "complex":
            return self
        return number_parts.conj(self)  # type: ignore[return-value]

    def conjugate(self) -> Self:
        """Return the complex conjugate; an array that is not complex returns itself."""
        return self.conj()

    def fill(self, value: Any) -> None:
        """Write a number, or the value of a 0-d array, to every element."""
        assign.set(self, ..., value)

    def dot(self, b: Operand, out: Self | None = None) -> Self:
        """Return the dot product as NumPy's `dot`; see `tilearray.dot`."""
        return products.dot(self, b, out)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ shapes

    def ravel(self, order: Order = "C") -> Self:
        """Return the elements along one axis: a view if strides allow it, else a copy.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}
            "C" reads the last axis fastest, "F" the first. "A" is "F" for an array in that order, else "C". "K" reads
            in the order of memory.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.asarray([[1, 2], [3, 4]]).ravel("F").tolist()
        [1, 3, 2, 4]
        """
        return _in_one_axis(self, order, None)

    def flatten(self, order: Order = "C") -> Self:
        """Return a copy of the elements along one axis; `order` is that of `ravel`."""
        return _in_one_axis(self, order, True)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Return the view of a diagonal of two axes; see `tilearray.diagonal`."""
        return manipulation.diagonal(self, offset, axis1, axis2)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Return the view with two axes exchanged.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.zeros((2, 3, 4)).swapaxes(0, -1).shape
        (4, 3, 2)
        """
        axes = list(range(self.ndim))
        one, other = normalize_axis(axis1, self.ndim, "swapaxes"), normalize_axis(axis2, self.ndim, "swapaxes")
        axes[one], axes[other] = axes[other], axes[one]
        return manipulation.permute_dims(self, axes)

    # ------------------------------------------------------------------ memory

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis. An assignment gives the array another shape, if its strides allow it."""
        return self._signature.layout.shape

    @shape.setter
    def shape(self, shape: ShapeLike) -> None:
        memory.set_shape(self, shape)

    @property
    def flat(self) -> Flat[Self]:
        """All elements in C order: ``x.flat[3]``, ``x.flat[::2] = 0``, ``for element in x.flat``."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    @property
    def flags(self) -> Flags:
        """Facts about the memory: ``x.flags.c_contiguous``, ``x.flags["WRITEABLE"]``."""
        return Flags(self)

    @property
    def base(self) -> Self | None:
        """All memory of a view as a 1-d array; None for an array that fills its memory in C order."""
        return memory.base_of(self)  # type: ignore[return-value]

    @property
    def data(self) -> memoryview:
        """The memory of an array on the host, as a memoryview of its shape and strides."""
        return memory.view_of(self)

    def tobytes(self, order: Order = "C") -> bytes:
        """Return the bytes of the elements in C order, or in Fortran order.

        The bytes of an array on a GPU are copied to the host.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.asarray([[1, 2], [3, 4]], dtype="uint8").tobytes("F")
        b'\\x01\\x03\\x02\\x04'
        """
        return memory.host_bytes(self, order)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements in C order to a file: their bytes, or their text with a separator.

        The elements of an array on a GPU are copied to the host.
        """
        memory.to_file(self, fid, sep, format)

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """Set ``x.flags.writeable``; the other flags do not change."""
        del align, uic
        if write is not None:
            memory.set_writeable(self, write)

    @property
    def ctypes(self) -> Any:
        """NumPy's object for `ctypes`, of an array on the host: ``x.ctypes.data`` is the address of element 0."""
        return memory.ctypes_of(self)

    def __bytes__(self) -> bytes:
        return memory.host_bytes(self, "C")

    def __buffer__(self, flags: int, /) -> memoryview:
        return memory.buffer_of(self, flags)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface.describe(self)

    def __round__(self, ndigits: int | None = None, /) -> Any:
        """The integer nearest to a 0-d array, as for a number; with a number of digits, `round`."""
        return round(conversion.item(self)) if ndigits is None and not self.ndim else self.round(ndigits or 0)


def check_casting(before: np.dtype, after: np.dtype, casting: Casting) -> None:
    """Raise DTypeError if NumPy's rule `casting` does not allow a cast.

    Examples
    --------
    >>> check_casting(np.dtype("float64"), np.dtype("int8"), "same_kind")
    Traceback (most recent call last):
    tilearray.errors.DTypeError: astype: casting='same_kind' does not allow float64 to int8; leave casting out
    """
    if not allows_cast(casting, before, after, "astype"):
        raise DTypeError(f"astype: casting={casting!r} does not allow {before.name} to {after.name}; leave casting out")


def _check_no_fields(function: str, order: object) -> None:
    if order is not None:
        raise OperandError(f"{function}: order names fields of a structured dtype, got {shown(order)}; leave it out")


def _in_one_axis(x: Any, order: Order, copy: bool | None) -> Any:
    """All elements along one axis, in an order."""
    if order == "K":
        strides = x.strides
        x = manipulation.permute_dims(x, sorted(range(x.ndim), key=lambda axis: -abs(strides[axis])))
        order = "C"
    return manipulation.reshape(x, (-1,) if x.size else (0,), order, copy=copy)
