"""The five semantics: edges, exceptions and rules of each system.

``array-api`` and ``triton`` follow the rules in their documents. ``cutile`` and ``torch`` follow the systems
themselves. All four are lattices, so the same check at import applies to them. ``numpy`` asks NumPy.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tilearray import dtypes as dt
from tilearray.promotion.lattice import DTypes, Exceptions, Lattice, Pair, in_table
from tilearray.promotion.operands import numpy_result_type
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import NAMED, Semantics, as_semantics, is_named

_SIGNED: Final = (dt.int8, dt.int16, dt.int32, dt.int64)
_UNSIGNED: Final = (dt.uint8, dt.uint16, dt.uint32, dt.uint64)
_FP8: Final = (dt.float8_e4m3fn, dt.float8_e5m2)
_HALVES: Final = (dt.float16, dt.bfloat16)
_COMPLEX: Final = (dt.complex64, dt.complex128)
_WIDE_FLOATS: Final[dict[np.dtype, DTypes]] = {
    dt.float16: (dt.float32,),
    dt.bfloat16: (dt.float32,),
    dt.float32: (dt.float64, dt.complex64),
    dt.float64: (dt.complex128,),
    dt.complex64: (dt.complex128,),
    dt.complex128: (),
}
_INEXACT: Final = {**dict.fromkeys(_FP8, _HALVES), **_WIDE_FLOATS}
_TWO_FP8: Final[Exceptions] = {frozenset(_FP8): dt.float16}


def _refused(pairs: Iterable[tuple[np.dtype, np.dtype]], reason: str) -> dict[Pair, np.dtype | str]:
    """Return pairs without a join, with the reason. The reason may name both dtypes."""
    return {frozenset((a, b)): reason.format(a=a.name, b=b.name) for a, b in pairs}


# --- array-api ------------------------------------------------------------------------------------------------------

_ARRAY_API_EDGES: Final[dict[np.dtype, DTypes]] = {
    dt.bool_: (dt.uint8, dt.int8),
    dt.uint8: (dt.uint16, dt.int16),
    dt.uint16: (dt.uint32, dt.int32),
    dt.uint32: (dt.uint64, dt.int64),
    dt.uint64: _FP8,
    dt.int8: (dt.int16,),
    dt.int16: (dt.int32,),
    dt.int32: (dt.int64,),
    dt.int64: _FP8,
    **_INEXACT,
}
_UINT64_AND_SIGNED: Final = _refused(
    product((dt.uint64,), _SIGNED),
    "no integer dtype holds both ranges; write x.astype('int64') for the {a} operand, or x.astype('{a}') for the {b} "
    "one",
)
_LADDER: Final[Mapping[ScalarClass, np.dtype]] = {  # no dtype holds HUGE
    ScalarClass.BOOL: dt.bool_,
    ScalarClass.INT32: dt.int32,
    ScalarClass.UINT32: dt.uint32,
    ScalarClass.INT64: dt.int64,
    ScalarClass.UINT64: dt.uint64,
    ScalarClass.FLOAT32: dt.float32,
    ScalarClass.FLOAT64: dt.float64,
    ScalarClass.COMPLEX: dt.complex64,
}
_LONG: Final = {"bool": dt.bool_, "int": dt.int64, "float": dt.float32, "complex": dt.complex64}
_SHORT: Final = {**_LONG, "int": dt.int32}
ARRAY_API: Final = Semantics(
    name="array-api",
    lattice=Lattice(_ARRAY_API_EDGES, {**_TWO_FP8, **_UINT64_AND_SIGNED}),
    defaults=_LONG,
    ladder=_LADDER,
)

# --- triton ---------------------------------------------------------------------------------------------------------

_TRITON_EDGES: Final[dict[np.dtype, DTypes]] = {
    dt.bool_: (dt.int8,),
    dt.int8: (dt.uint8,),
    dt.uint8: (dt.int16,),
    dt.int16: (dt.uint16,),
    dt.uint16: (dt.int32,),
    dt.int32: (dt.uint32,),
    dt.uint32: (dt.int64,),
    dt.int64: (dt.uint64,),
    dt.uint64: _FP8,
    **_INEXACT,
}
TRITON: Final = Semantics(
    name="triton",
    lattice=Lattice(_TRITON_EDGES, _TWO_FP8),
    defaults=_SHORT,
    ladder=_LADDER,
    integer_division="trunc",
    saturates=frozenset(_FP8),
)

# --- cutile ---------------------------------------------------------------------------------------------------------

_CUTILE_EDGES: Final[dict[np.dtype, DTypes]] = {
    dt.bool_: (dt.uint8, dt.int8),
    dt.uint8: (dt.uint16,),
    dt.uint16: (dt.uint32,),
    dt.uint32: (dt.uint64,),
    dt.uint64: _HALVES,
    dt.int8: (dt.int16,),
    dt.int16: (dt.int32,),
    dt.int32: (dt.int64,),
    dt.int64: _HALVES,
    dt.float16: (dt.float32,),
    dt.bfloat16: (dt.float32,),
    dt.float32: (dt.float64,),
    dt.float64: (),
}
CUTILE: Final = Semantics(
    name="cutile",
    lattice=Lattice(
        _CUTILE_EDGES,
        _refused(
            product(_UNSIGNED, _SIGNED),
            "cuTile does not mix signed and unsigned integers; write x.astype('{a}') or x.astype('{b}')",
        ),
        {frozenset(_HALVES): "cuTile does not promote one to the other; write x.astype('float32')"},
    ),
    defaults=_SHORT,
    ladder={
        ScalarClass.BOOL: dt.bool_,
        ScalarClass.INT32: dt.int32,
        ScalarClass.UINT32: dt.int64,
        ScalarClass.INT64: dt.int64,
        ScalarClass.UINT64: dt.uint64,
        ScalarClass.FLOAT32: dt.float32,
        ScalarClass.FLOAT64: dt.float32,
    },
    inplace="promotion",
    huge=False,
    arithmetic=frozenset(dt.ARITHMETIC) - {dt.bool_, *_FP8, *_COMPLEX},
    same_bits=True,
)

# --- torch ----------------------------------------------------------------------------------------------------------

_BARE: Final = (dt.uint16, dt.uint32, dt.uint64)
_TORCH_EDGES: Final[dict[np.dtype, DTypes]] = {
    dt.bool_: (dt.uint8, dt.int8),
    dt.uint8: (dt.int16,),
    dt.int8: (dt.int16,),
    dt.int16: (dt.int32,),
    dt.int32: (dt.int64,),
    dt.int64: _HALVES,
    **dict.fromkeys(_BARE, _HALVES),
    **_WIDE_FLOATS,
}
_BARE_WITH = "torch promotes {a} with floats only; write x.astype('int64') for the {a} operand"
TORCH: Final = Semantics(
    name="torch",
    lattice=Lattice(
        _TORCH_EDGES,
        _refused([*product(_BARE, (dt.bool_, dt.uint8, *_SIGNED)), *combinations(_BARE, 2)], _BARE_WITH),
        {pair: str(reason) for pair, reason in _refused(product(_BARE, _COMPLEX), _BARE_WITH).items()},
    ),
    defaults=_LONG,
    ladder={
        ScalarClass.BOOL: dt.bool_,
        **dict.fromkeys((ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64), dt.int64),
        **dict.fromkeys((ScalarClass.FLOAT32, ScalarClass.FLOAT64), dt.float32),
        ScalarClass.COMPLEX: dt.complex64,
    },
    inplace="kind",
    rule="categories",
    huge=False,
    arithmetic=frozenset(dt.ARITHMETIC) - {*_FP8},
    wide_numbers=frozenset({"add", "subtract", "multiply", "divide", "floor_divide"}),
    saturates=frozenset({dt.float8_e4m3fn}),
)

# --- numpy ----------------------------------------------------------------------------------------------------------


class NumPyJoins:
    """The joins of NumPy. Every call asks NumPy."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumPyJoins)

    def __hash__(self) -> int:
        return hash(NumPyJoins)

    def join(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return ``numpy.result_type`` of the dtypes. Their order does not matter."""
        return numpy_result_type(dtypes, (), function)


def _of_integers(ufunc: np.ufunc) -> dict[np.dtype, np.dtype]:
    """Return the dtype to which a real function of NumPy converts each integer dtype and bool."""
    return {dtype: ufunc.resolve_dtypes((dtype, None))[-1] for dtype in (dt.bool_, *_SIGNED, *_UNSIGNED)}


NUMPY: Final = Semantics(
    name="numpy",
    lattice=NumPyJoins(),
    defaults={"bool": dt.bool_, "int": dt.int64, "float": dt.float64, "complex": dt.complex128},
    ladder={},
    true_division=dt.float64,
    integer_functions=_of_integers(np.sqrt),
    inplace="numpy",
    rule="numpy",
)
SEMANTICS: Final[Mapping[str, Semantics]] = MappingProxyType(
    {system.name: system for system in (ARRAY_API, TRITON, CUTILE, TORCH, NUMPY)}
)
NAMED.update(SEMANTICS)


def _reduced(semantics: Semantics) -> tuple[Any, ...]:
    """Return the contents of a pickle: a name, also with defaults behind it, or the rules of any other semantics."""
    if is_named(semantics):
        return as_semantics, (semantics.name,)
    return _unpickled, (semantics.rules(),)


def _unpickled(rules: dict[str, Any]) -> Semantics:
    """Return the semantics of a pickle, with the table's own dtypes: NumPy's pickles make equal, but other objects."""
    return Semantics(**{name: in_table(value) for name, value in rules.items()})


copyreg.pickle(Semantics, _reduced)  # pyright: ignore[reportUnknownMemberType]
