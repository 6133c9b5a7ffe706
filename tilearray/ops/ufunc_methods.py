"""What a row has in common with a ufunc of NumPy: its methods, and the options `where` and `dtype` of a call.

A call without options does not come here. The work is done by `tilearray.functions.ufunc_methods`, which has the
reductions and the indexing that the methods need; the row finds it in the hooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tilearray.dtypes import DTypeLike
from tilearray.engine.signature import ArrayBase, Operand
from tilearray.geometry.shapes import Axes
from tilearray.ops.hooks import HOOKS
from tilearray.ops.signatures import show

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array


class UfuncMethods:
    """The methods of a row."""

    __slots__ = ()

    def reduce(
        self,
        x: Operand,
        /,
        axis: Axes = 0,
        dtype: DTypeLike | None = None,
        out: ArrayBase | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Operand = True,
    ) -> Array:
        """Return the op applied to all elements along axes, one after the other.

        Parameters
        ----------
        x : Array
        axis : int, tuple of int or None
            The axes to reduce; None reduces all. Only ops of which the order does not matter reduce several axes.
        dtype : dtype or name, optional
            `x` is cast to it first.
        out : Array, optional
            The target of the result.
        keepdims : bool
            Whether the result keeps the axes, with size 1.
        initial : number, optional
            The first operand, before all elements.
        where : bool Array
            Which elements count.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.add.reduce(ta.asarray([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int64, device='cpu')
        """
        return HOOKS.reduce(self, x, axis, dtype, out, keepdims, initial, where)

    def accumulate(
        self, x: Operand, /, axis: int = 0, dtype: DTypeLike | None = None, out: ArrayBase | None = None
    ) -> Array:
        """Return the op applied to all elements up to each one along an axis.

        Parameters
        ----------
        x : Array
        axis : int
        dtype : dtype or name, optional
            `x` is cast to it first.
        out : Array, optional
            The target of the result.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.maximum.accumulate(ta.asarray([1, 3, 2]))
        Array([1, 3, 3], dtype=int64, device='cpu')
        """
        return HOOKS.accumulate(self, x, axis, dtype, out)

    def outer(self, x1: Operand, x2: Operand, /, **options: Any) -> Array:
        """Return the op of every element of `x1` with every element of `x2`; the axes of `x1` come first.

        Parameters
        ----------
        x1, x2 : Array or number
        **options
            Those of a call.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.multiply.outer(ta.asarray([1, 2]), ta.asarray([3, 4])).tolist()
        [[3, 4], [6, 8]]
        """
        return HOOKS.outer(self, x1, x2, options)

    def at(
        self,
        x: ArrayBase,
        indices: Any,
        values: Operand | None = None,
        /,
        *,
        mode: Literal["ordered", "atomic"] = "ordered",
    ) -> None:
        """Apply the op to the elements at indices, in place, and once more for every repetition of an index.

        Parameters
        ----------
        x : Array
            The target.
        indices : index
            Any key of ``x[indices]``.
        values : Array or number, optional
            The second operand; it broadcasts to the shape of ``x[indices]``. Ops with one operand have none.
        mode : str
            ``"ordered"`` (the default): steps are in the order of the indices, so that results have the same bits on
            every run. ``"atomic"``: a GPU adds floats in any order, with atomics. Sums differ in their last bits from
            run to run, and floats of 8 and 16 bits are added in float32. The host ignores the mode.

        Examples
        --------
        >>> import tilearray as ta
        >>> counts = ta.zeros(3, dtype="int64")
        >>> ta.add.at(counts, [0, 2, 0], 1)
        >>> counts
        Array([2, 0, 1], dtype=int64, device='cpu')
        """
        HOOKS.at(self, x, indices, values, mode)

    def reduceat(
        self,
        x: Operand,
        /,
        indices: Any,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: ArrayBase | None = None,
    ) -> Array:
        """Return the op applied to each segment of an axis, from one index to the next one.

        If ``indices[i] < indices[i + 1]``, result ``i`` is that of ``x[indices[i]:indices[i + 1]]``, and else it is
        ``x[indices[i]]``. The last segment ends where the axis does.

        Parameters
        ----------
        x : Array
        indices : Array, ndarray or list of integers
            Of one axis, not negative. Those on a GPU are read by the host, which waits once for them; it waits for
            nothing else.
        axis : int
        dtype : dtype or name, optional
            `x` is cast to it first.
        out : Array, optional
            The target of the result.

        Returns
        -------
        Array
            Of the shape of `x`, with as many elements along the axis as there are indices. The dtype is that of
            `reduce`: `add` and `multiply` make int64 of narrower integers and of bool.

        Raises
        ------
        IndexingError
            If an index is outside the axis, on every device.
        ShapeError
            If `x` has no such axis, or the indices have another number of axes than one.
        DTypeError
            If the indices are not integers, or the op does not return the dtype of its operands.
        OperandError
            If the op does not have two operands of one kind.

        Notes
        -----
        The elements of a segment are combined in their order: the result so far is the first operand, the next element
        the second one. Sums and products have the accumulators of `sum` and `prod`: float32 and float64 are added in
        float64, narrower floats in float32, and the result is rounded once. All other ops round each step. So every
        device gives the same bits. The last ones may differ from those of `reduce`, which has another order.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.add.reduceat(ta.asarray([1, 2, 4, 8]), [0, 1, 3])
        Array([1, 6, 8], dtype=int64, device='cpu')
        >>> ta.maximum.reduceat(ta.asarray([[1, 5, 3], [7, 0, 2]]), [2, 0], axis=1).tolist()
        [[3, 5], [2, 7]]
        """
        return HOOKS.reduceat(self, x, indices, axis, dtype, out)


show(vars(UfuncMethods).values())
