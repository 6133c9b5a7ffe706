"""The two rows that only cast and copy: assignment and astype. All functions that copy use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import OperandType
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import MOVED, CallTyping, Row
from tilearray.promotion.scalars import Number
from tilearray.promotion.semantics import Semantics

# fmt: off
assign = Row("setitem", "The values of x in another dtype or place.", 1, MOVED, Promotion.NO_OPMATH, moves=True,
            derivative=("g",),
            example=("ta.asarray([1, 2]).copy()", "Array([1, 2], dtype=int64, device='cpu')"))
convert = Row("astype", "The values of x in any dtype.", 1, MOVED, Promotion.NO_OPMATH, casts_freely=True, moves=True,
             derivative=("g",),
             example=("ta.asarray([1.5]).astype('int8')", "Array([1], dtype=int8, device='cpu')"))
# fmt: on


@dataclass(frozen=True, eq=False)
class Storing:
    """An operation: a row that casts, with a dtype for its new result. `storing` makes it; its plans need no target."""

    row: Row
    dtype: np.dtype
    into: object = field(default_factory=object, repr=False)
    passes_numbers = True
    reduced = scanned = None
    selects = False

    @property
    def name(self) -> str:
        """The name of the row."""
        return self.row.name

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> CallTyping:
        """Return the dtypes of the row."""
        return self.row.typing(semantics, types)

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the row's expression for a target of the dtype."""
        return self.row.expression(semantics, types, out or self.dtype)

    def check_device(self, device: Device, /) -> None:
        """Raise DeviceError if the row does."""
        self.row.check_device(device)

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number as `dtype`, as the row does."""
        return self.row.number(position, number, dtype)


@cache
def storing(row: Row, dtype: np.dtype) -> Storing:
    """Return the operation that casts by a row into new arrays of a dtype.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> storing(convert, dtypes.int8) is storing(convert, dtypes.int8)
    True
    """
    return Storing(row, dtype)
