"""Scans as operations: the dtypes and the expression of running sums, products and extremes.

Elements are rounded to the dtype of the result, combined in the accumulator of a reduction (`tilearray.ops.reduction`),
and each result is rounded once. `tilearray.geometry.scan` has the fixed order.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import Expression
from tilearray.engine.operation import FixedResult, OperandType, Scanned
from tilearray.ops.row import plain_dtype
from tilearray.ops.summation_order import SumBuilder, SummationOrder
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics

OF_TRUTHS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}


@dataclass(frozen=True, eq=False)
class Scan(FixedResult):
    """A scan along an axis. `scan_of` keeps it, so that plans are found by its identity.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    how : str
        "add", "multiply", "maximum" or "minimum".
    result : numpy.dtype
        The dtype of the result.
    scanned : Scanned
    order : {"fixed", "any"}
        The order in which elements are combined: see `tilearray.ops.summation_order`.
    """

    name: str
    how: str
    result: np.dtype
    scanned: Scanned
    order: SummationOrder = "fixed"
    into: object = field(default_factory=object, repr=False)
    reduced = None
    selects = False

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression; the same object for all axes."""
        del semantics, out
        (given,) = types
        assert not isinstance(given, ScalarClass)
        return _expression(self.how, plain_dtype(given), self.result, self.order)


@functools.lru_cache(1024)
def scan_of(name: str, how: str, result: np.dtype, axis: int, initial: bool, order: SummationOrder = "fixed") -> Scan:
    """Return the scan of a function along an axis, in an order.

    Examples
    --------
    >>> import tilearray as ta
    >>> scan_of("cumsum", "add", ta.float32, 0, False) is scan_of("cumsum", "add", ta.float32, 0, False)
    True
    """
    return Scan(name, how, result, Scanned(axis, initial), order)


@functools.lru_cache(512)
def _expression(how: str, dtype: np.dtype, result: np.dtype, order: SummationOrder) -> Expression:
    builder = SumBuilder(order)
    widens = how in ("add", "multiply") or dtypes.info(result).bits < 32
    wide = builder.accumulator(result) if widens else result
    element = builder.cast(builder.cast(builder.array(dtype), dtype, result), result, wide)
    found = builder.scan(OF_TRUTHS[how] if result == dtypes.bool_ else how, element, wide)
    return builder.build([builder.cast(found, wide, result)], [result])
