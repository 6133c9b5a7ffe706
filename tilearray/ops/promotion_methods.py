"""Promotion methods: how the dtypes of a call follow from the common dtype of its operands.

Operands are first rounded to the promoted dtype, and then widened to the compute dtype (float32 for 8- and 16-bit
floats). The result is rounded once. The methods follow FlagGems and torch's type promotion.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from tilearray import dtypes
from tilearray.errors import DTypeError
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics


class Promotion(enum.Enum):
    """How a result dtype follows from the common dtype of the operands."""

    DEFAULT = "the common dtype; 8- and 16-bit floats compute in float32"
    NO_OPMATH = "the common dtype, without a wider compute dtype"
    BITWISE = "the common dtype; some semantics require equal dtypes"
    INT_TO_FLOAT = "the common dtype; integers become a float"
    TRUE_DIVISION = "the common dtype; integers become the float of true division"
    ALWAYS_BOOL = "bool; computed in the common dtype, but integers compare exactly"
    COMPLEX_TO_FLOAT = "the common dtype; complex becomes the float of its parts"
    BOOL_TO_LONG = "the common dtype; bool becomes the default integer"
    ALWAYS_FLOAT = "a float; integers become the default float, complex becomes the float of its parts"
    FLOAT_TO_BOOL = "bool; computed in the common dtype; integers become the float of true division"
    FLOAT64 = "float64; complex becomes complex128"
    ALWAYS_INT32 = "int32"
    TRUTH = "bool; each operand is true if it is not 0"


NEVER_WIDER = {Promotion.NO_OPMATH, Promotion.BITWISE}
_BY_DIVISION = {Promotion.TRUE_DIVISION, Promotion.FLOAT_TO_BOOL}
_BY_FUNCTION = {Promotion.INT_TO_FLOAT, Promotion.ALWAYS_FLOAT, Promotion.ALWAYS_INT32}
REAL_PART = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
COMPLEX_OF = {real: both for both, real in REAL_PART.items()}
_INTEGER_SCALARS = {ScalarClass.BOOL, ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64}


def opmath(dtype: np.dtype) -> np.dtype:
    """Return the compute dtype of `dtype`: float32 for narrower floats, else `dtype`.

    Examples
    --------
    >>> import tilearray as ta
    >>> opmath(ta.bfloat16), opmath(ta.int8)
    (dtype('float32'), dtype('int8'))
    """
    row = dtypes.info(dtype)
    return dtypes.float32 if row.kind == "float" and row.bits < 32 else dtype


def computed_as(promotion: Promotion, semantics: Semantics, common: np.dtype) -> np.dtype:
    """Return the dtype to which operands are rounded: the common dtype, or the dtype that the method uses instead.

    Examples
    --------
    >>> import tilearray as ta
    >>> computed_as(Promotion.INT_TO_FLOAT, ta.get_semantics(), ta.int8)
    dtype('float32')
    """
    kind = dtypes.info(common).kind
    if kind in ("bool", "int", "uint"):
        if promotion in _BY_DIVISION:
            return semantics.true_division
        if promotion in _BY_FUNCTION:
            return semantics.integer_functions.get(common, semantics.true_division)
    if kind == "bool" and promotion is Promotion.BOOL_TO_LONG:
        return semantics.defaults["int"]
    if promotion is Promotion.FLOAT64 and dtypes.info(common).arithmetic:
        return dtypes.complex128 if kind == "complex" else dtypes.float64
    return common


def returned_as(promotion: Promotion, common: np.dtype) -> np.dtype:
    """Return the result dtype of operands that are rounded to `common`."""
    if promotion in (Promotion.ALWAYS_BOOL, Promotion.FLOAT_TO_BOOL):
        return dtypes.bool_
    if promotion in (Promotion.COMPLEX_TO_FLOAT, Promotion.ALWAYS_FLOAT):
        return REAL_PART.get(common, common)
    return dtypes.int32 if promotion is Promotion.ALWAYS_INT32 else common


def check_exponent(function: str, given: np.dtype | ScalarClass) -> np.dtype:
    """Return int64, the dtype of an exponent. Raise DTypeError if the dtype of the operand does not fit int64."""
    if isinstance(given, np.dtype):
        fits = dtypes.info(given).kind in ("bool", "int", "uint") and given != dtypes.uint64
    else:
        fits = given in _INTEGER_SCALARS or given is ScalarClass.HUGE  # its value is checked later
    if not fits:
        name = given.name if isinstance(given, np.dtype) else "a Python float or complex"
        raise DTypeError(f"{function}: the exponent must be an int64 integer, got {name}; write n.astype('int64')")
    return dtypes.int64


def all_integers(types: Sequence[np.dtype | ScalarClass]) -> bool:
    """Return whether each operand is an integer or a bool."""
    return all(
        given in _INTEGER_SCALARS
        if isinstance(given, ScalarClass)
        else dtypes.info(given).kind in ("bool", "int", "uint")
        for given in types
    )
