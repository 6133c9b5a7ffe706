"""`Op`: a callable row of the table. The row *is* the public function.

The key of a plan is ``(op, key, key, ...)``. The key of an array is its interned signature: dtype, shape, strides and
device. The key of a Python number is its Python class if the plan depends only on the class, else its value class.
Therefore a key contains all facts that its plan depends on. This module finds plans under signatures and Python
classes. `tilearray.ops.execute` runs all other calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilearray.engine.context import STATE
from tilearray.engine.signature import ArrayBase
from tilearray.errors import ScalarOverflowError
from tilearray.ops.execute import execute
from tilearray.ops.row import Row
from tilearray.ops.variants import variant


@dataclass(frozen=True, eq=False, repr=False)
class Op(Row):
    """One elementwise operation: a row of the table in `tilearray.ops`, and the public function of its name."""

    __module__ = "tilearray"

    def __call__(
        self,
        *operands: Any,
        out: Any = None,
        rounding: Any = None,
        flush_to_zero: bool = False,
        propagate_nan: bool = True,
    ) -> Any:
        if rounding is not None or flush_to_zero is not False or propagate_nan is not True:
            return variant(self, rounding, flush_to_zero, propagate_nan)(*operands, out=out)
        state = STATE.get()
        try:
            plan = state.plans[self] if out is None else state.plans[self.into][out._signature]
            for operand in operands:
                plan = plan[operand._signature if isinstance(operand, ArrayBase) else operand.__class__]
            call = plan.call
        except (KeyError, AttributeError, TypeError):  # no such plan yet, or a wrong number of operands
            call = None
        if call is not None:
            try:
                if self.arity == 2:  # unrolled: a call with * costs more than the options
                    x, y = operands
                    return call(state.stream, x, y) if out is None else call(state.stream, out, x, y)
                if out is not None:
                    return call(state.stream, out, *operands)
                return call(state.stream, operands[0]) if self.arity == 1 else call(state.stream, *operands)
            except ScalarOverflowError:  # the number needs another dtype, or is an error
                pass
        return execute(self, operands, out)
