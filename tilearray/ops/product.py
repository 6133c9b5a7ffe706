"""The matrix product as an operation: its dtypes and its expression, for devices that run it as a kernel.

Elements are rounded to the common dtype first. Products of narrow floats are exact in float32, where they are added up;
8-bit floats become float16 before, which holds them exactly. Integers are added up as int32 or int64, and wrap. Bools
are bytes, and a result is whether any product was true. A product and a sum may be one rounding (fma).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

import numpy as np

from tilearray import dtypes
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedResult, OperandType, Reduced
from tilearray.ops.row import plain_dtype
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics

_BYTES = (dtypes.int8, dtypes.int32)
_WORDS = (dtypes.int32, dtypes.int32)
_HALVES = (dtypes.float16, dtypes.float32)
MULTIPLIED: dict[np.dtype, tuple[np.dtype, np.dtype]] = {
    dtypes.bool_: _BYTES,
    dtypes.int8: _BYTES,
    dtypes.uint8: _BYTES,
    dtypes.int16: _WORDS,
    dtypes.uint16: _WORDS,
    dtypes.int32: _WORDS,
    dtypes.uint32: _WORDS,
    dtypes.int64: (dtypes.int64, dtypes.int64),
    dtypes.uint64: (dtypes.int64, dtypes.int64),
    dtypes.float8_e4m3fn: _HALVES,
    dtypes.float8_e5m2: _HALVES,
    dtypes.float16: _HALVES,
    dtypes.bfloat16: (dtypes.bfloat16, dtypes.float32),
    dtypes.float32: (dtypes.float32, dtypes.float32),
    dtypes.float64: (dtypes.float64, dtypes.float64),
    dtypes.complex64: (dtypes.complex64, dtypes.complex64),
    dtypes.complex128: (dtypes.complex128, dtypes.complex128),
}
"""For a common dtype the dtypes of the elements that are multiplied, and of the sums.

A library multiplies complex numbers; kernels multiply their parts.
"""


@dataclass(frozen=True, eq=False)
class Product(FixedResult):
    """A matrix product. `product_of` keeps it, so that plans are found by its identity.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    result : numpy.dtype
        The dtype of the result.
    common : numpy.dtype
        The dtype to which elements are rounded first: that of the result, or one whose sums it holds.
    """

    name: str
    result: np.dtype
    common: np.dtype
    into: object = field(default_factory=object, repr=False)
    reduced = Reduced((), False, multiplies=True)
    scanned = None
    selects = False

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression, the same for all shapes."""
        del semantics, out
        given = [plain_dtype(one) for one in types if not isinstance(one, ScalarClass)]
        return _expression(*given, self.common, self.result)


@functools.lru_cache(256)
def product_of(name: str, result: np.dtype, common: np.dtype | None = None) -> Product:
    """Return the matrix product of a dtype, of elements of that dtype or of another one.

    >>> product_of("matmul", dtypes.float32) is product_of("matmul", dtypes.float32)
    True
    """
    return Product(name, result, common or result)


@functools.lru_cache(256)
def _expression(x1: np.dtype, x2: np.dtype, common: np.dtype, result: np.dtype) -> Expression:
    builder = ExpressionBuilder()
    multiplied, added = MULTIPLIED[common]
    elements = [
        builder.cast(builder.cast(builder.array(dtype), dtype, common), common, multiplied) for dtype in (x1, x2)
    ]
    total = builder.node("product", *elements, added.name)
    return replace(builder.build([builder.cast(total, added, result)], [result]), contract=True)
