"""`order=`: the order in which a sum or a product combines elements, as one of two words.

=========  ============================================================================================================
"fixed"    follows from shape, strides and dtype alone (`tilearray.geometry.reduction`, `tilearray.geometry.scan`), and
           is that of all devices: so are the bits of the result. float32 and float64 are accumulated in float64
"any"      the fastest one of the device. The host adds as NumPy does, in the dtype of the result; 8- and 16-bit floats
           in float32. The last bits may depend on the version of NumPy, the processor, and the function that
           `tilearray.fuse` makes one kernel of
=========  ============================================================================================================

Integers give the same in every order. A GPU reads memory as fast in the fixed order, so "any" is "fixed" there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.engine.expression import ExpressionBuilder, Ints
from tilearray.errors import OperandError, shown

SummationOrder = Literal["fixed", "any"]
IN_ANY_ORDER = "_in_any_order"
"""What follows "add" and "multiply" in the nodes of an expression that combines in any order."""


def order_on(device: Device, function: str, order: Any) -> SummationOrder:
    """Return the order in which a device combines elements that are to be combined in an order.

    Raises
    ------
    OperandError
        If the order is not one of the words.

    Examples
    --------
    >>> import tilearray as ta
    >>> order_on(ta.zeros(3, device="cpu").device, "sum", "any")
    'any'
    """
    if isinstance(order, str) and order in ("fixed", "any"):
        return "any" if order == "any" and device.type == "cpu" else "fixed"
    raise OperandError(f"{function}: expected order as 'fixed' or 'any', got {shown(order)}; write order='any'")


def accumulator(dtype: np.dtype, order: SummationOrder = "fixed") -> np.dtype:
    """Return the dtype in which numbers of a dtype are added up.

    Examples
    --------
    >>> import tilearray as ta
    >>> [accumulator(dtype).name for dtype in (ta.int8, ta.bfloat16, ta.float32, ta.complex64)]
    ['int8', 'float32', 'float64', 'complex128']
    >>> [accumulator(dtype, "any").name for dtype in (ta.int8, ta.bfloat16, ta.float32, ta.complex64)]
    ['int8', 'float32', 'float32', 'complex64']
    """
    row = dtypes.info(dtype)
    if row.kind == "float" and row.bits < 32:
        return dtypes.float32
    if row.kind not in ("float", "complex") or order == "any":
        return dtype
    return dtypes.float64 if row.kind == "float" else dtypes.complex128


class SumBuilder(ExpressionBuilder):
    """Builds an expression whose sums and products of floats have an order."""

    def __init__(self, order: SummationOrder) -> None:
        super().__init__()
        self.order: SummationOrder = order

    def accumulator(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype in which numbers of a dtype are added up."""
        return accumulator(dtype, self.order)

    def reduce(self, how: str, nodes: Ints, dtypes: Sequence[np.dtype]) -> list[int]:
        """Add a reduction of values of some dtypes, and return the nodes of its results."""
        return super().reduce(_in_order(how, dtypes[0], self.order), nodes, dtypes)

    def scan(self, how: str, node: int, dtype: np.dtype) -> int:
        """Add a scan of values of a dtype, and return the node of its results."""
        return super().scan(_in_order(how, dtype, self.order), node, dtype)


def _in_order(how: str, dtype: np.dtype, order: SummationOrder) -> str:
    """Return the name of how an expression combines values of a dtype in an order."""
    has_an_order = how in ("add", "multiply") and dtypes.info(dtype).kind in ("float", "complex")
    return how + IN_ANY_ORDER if has_an_order and order == "any" else how
