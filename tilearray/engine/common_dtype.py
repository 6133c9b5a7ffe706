"""The common dtype of operands under the active semantics, cached: a decision takes microseconds, a lookup 0.3.

Calls with a plan have their dtypes in the plan. This module serves the functions that make arrays without one: creation
from Python data, ranges, and joining.
"""

from __future__ import annotations

import numpy as np

from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.promotion.operands import Operand

_FOUND: TwoGenerations[np.dtype] = TwoGenerations(1024)


def common_dtype_of(operands: tuple[Operand, ...], function: str) -> np.dtype:
    """Return the common dtype of dtypes and classes of numbers; see `Semantics.result_type`.

    Examples
    --------
    >>> common_dtype_of((np.dtype("int8"), np.dtype("uint8")), "concat")
    dtype('int16')
    """
    semantics = STATE.get().semantics
    key = (semantics.key, operands)
    return _FOUND.get(key) or _FOUND.put(key, semantics.result_type(operands, function))
