"""The two rows that only cast and copy: assignment and astype. All functions that copy use them."""

from __future__ import annotations

from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import ANY, Row

# fmt: off
assign = Row("setitem", "The values of x in another dtype or place.", 1, ANY, Promotion.NO_OPMATH, moves=True,
            example=("ta.asarray([1, 2]).copy()", "Array([1, 2], dtype=int64, device='cpu')"))
convert = Row("astype", "The values of x in any dtype.", 1, ANY, Promotion.NO_OPMATH, casts_freely=True, moves=True,
             example=("ta.asarray([1.5]).astype('int8')", "Array([1], dtype=int8, device='cpu')"))
# fmt: on
