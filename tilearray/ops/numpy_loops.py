"""The dtype in which NumPy runs a function on given operands, for semantics ``numpy``.

A function of NumPy is a ufunc with loops, each for one list of dtypes. The operands select a loop; it is not always the
loop of their common dtype: ``arctan2`` of uint8 and int8 runs in float16, which holds both, although their common dtype
is int16. This module asks the ufunc itself, so it has no table of dtypes.

NumPy has no loops of its own for the dtypes of ml_dtypes. Calls with them follow the common dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.promotion.operands import SCALAR_KIND, Operand, ZeroDim
from tilearray.promotion.scalars import ScalarClass

_NUMBERS: Final[dict[str, Any]] = {"bool": dtypes.bool_, "int": int, "float": float, "complex": complex}
_BY_DIVISION: Final = ("divide", "sinc")  # the dtype of true division is a rule of the semantics


def loop_dtype(name: str, ufunc: str, operands: Sequence[Operand]) -> np.dtype | None:
    """Return the dtype to which NumPy casts the operands of a function, or None if the common dtype decides.

    Parameters
    ----------
    name : str
        The name of the function here.
    ufunc : str
        The name of its ufunc in NumPy; a name that NumPy does not have gives None.
    operands : sequence of operand
        Dtypes of arrays, and classes of Python numbers; of `ldexp` also the exponent.

    Examples
    --------
    >>> loop_dtype("atan2", "arctan2", [dtypes.uint8, dtypes.int8])
    dtype('float16')
    >>> loop_dtype("add", "add", [dtypes.uint8, dtypes.bfloat16]) is None
    True
    """
    given = tuple(_as_numpy_has_it(operand) for operand in operands)
    if None in given or name in _BY_DIVISION:
        return None
    if name == "round":  # numpy.round, which is not the ufunc rint: integers stay integers
        return dtypes.float16 if given == (dtypes.bool_,) else None
    if name == "angle" and given[0] not in (complex, dtypes.complex64, dtypes.complex128):
        return _resolved("arctan2", (int, *given))  # numpy.angle is arctan2(0, x)
    return _resolved(ufunc, given)


def _as_numpy_has_it(operand: Operand) -> Any:
    """Return a dtype of NumPy, or the type of a Python number; None for a dtype of ml_dtypes."""
    if isinstance(operand, ScalarClass):
        return _NUMBERS[SCALAR_KIND[operand]]
    dtype = operand.dtype if isinstance(operand, ZeroDim) else operand
    return dtype if dtype.isbuiltin == 1 else None


@cache
def _resolved(name: str, given: tuple[Any, ...]) -> np.dtype | None:
    """Return the dtype of the first operand in the loop that a ufunc selects."""
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nin != len(given):
        return None
    try:
        found = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))[0]
    except TypeError:  # there is no such loop
        return None
    return dtypes.as_dtype(found) if found.isbuiltin == 1 else None
