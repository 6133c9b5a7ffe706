"""Which dtype a result has: lattices of dtypes, and `Semantics`, the rules that differ from one system to another.

A lattice is declared as edges, "from here one may go up to there". The join of two dtypes is their least upper bound.
It is derived, never written down, and a lattice is checked when it is made, at import: two dtypes have exactly one
least upper bound, or the pair is listed as an exception that gives the dtype, or the reason why there is none. An
exception without need is refused too, so that what is listed is what is exceptional.

Joining many dtypes first drops those that lie below others, and goes on with the joins of all pairs that remain. So
the order of the operands cannot matter, though a join of joins can differ: ``float8_e4m3fn, float8_e5m2`` give float16
and with bfloat16 as the third operand bfloat16, which both can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final, Literal, Protocol

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import PromotionError, ScalarOverflowError, SemanticsError
from tilearray.scalars import ScalarClass

DTypes = tuple[np.dtype, ...]
Exceptions = Mapping[frozenset[np.dtype], np.dtype | str]


class Joins(Protocol):
    """What `Semantics` asks of a lattice, or of a table in its place."""

    def join(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the common dtype; the order of the dtypes must not matter."""
        ...


class Lattice:
    """Joins of dtypes, derived from edges and checked.

    Parameters
    ----------
    edges : mapping of dtype to tuple of dtypes
        The dtypes directly above each; the top has none.
    exceptions : mapping of frozenset of two dtypes to dtype or str
        The join of a pair without a unique least upper bound, or the reason why it has none.

    Raises
    ------
    SemanticsError
        If the edges have a cycle, a pair has no unique least upper bound and is not listed, or an exception is not
        needed or is no upper bound of its pair.

    Examples
    --------
    >>> from tilearray.dtypes import bool_, int8, uint8, int16
    >>> lattice = Lattice({bool_: (int8, uint8), int8: (int16,), uint8: (int16,), int16: ()}, {})
    >>> lattice.join([int8, uint8])
    dtype('int16')
    """

    def __init__(self, edges: Mapping[np.dtype, DTypes], exceptions: Exceptions) -> None:
        self._above = _reach(edges)
        self._joins: dict[frozenset[np.dtype], np.dtype | str] = {}
        for pair in map(frozenset, combinations(self._above, 2)):
            self._joins[pair] = self._derive(pair, exceptions.get(pair))
        unknown = [pair for pair in exceptions if pair not in self._joins]
        if unknown:
            raise SemanticsError(f"the exception {_names(unknown[0])} is no pair of the lattice's dtypes")

    def join(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the least upper bound of any number of dtypes, in whatever order.

        Raises
        ------
        PromotionError
            If there is none; the message says which cast to write.
        """
        found = frozenset(dtypes)
        while len(found) > 1:
            joined = self._joins.get(found)
            if isinstance(joined, str):
                raise PromotionError(f"{function}: {_names(found)} have no common dtype: {joined}")
            if joined is not None:
                return joined
            found = self._maximal(found, function)
            if len(found) > 2:
                found = frozenset([self.join(pair, function) for pair in _pairs(found)])
        (joined,) = found
        return joined

    def _maximal(self, found: frozenset[np.dtype], function: str) -> frozenset[np.dtype]:
        for dtype in sorted(found, key=_position):
            if dtype not in self._above:
                raise PromotionError(
                    f"{function}: {dtype.name} is for storage only and has no common dtype with "
                    f"{_names(found - {dtype})}; write x.astype('float32'), which holds all of its values"
                )
        return frozenset(dtype for dtype in found if self._above[dtype].isdisjoint(found))

    def _derive(self, pair: frozenset[np.dtype], exception: np.dtype | str | None) -> np.dtype | str:
        one, other = pair
        bounds = (self._above[one] | {one}) & (self._above[other] | {other})
        least = [dtype for dtype in bounds if all(dtype is b or b in self._above[dtype] for b in bounds)]
        if exception is None and not least:
            minimal = {dtype for dtype in bounds if not any(dtype in self._above[b] for b in bounds)}
            raise SemanticsError(
                f"{_names(pair)} have no unique least upper bound (candidates: {_names(minimal) or 'none'}): "
                f"add an edge or list the pair as an exception"
            )
        if exception is None:
            return least[0]
        if least:
            raise SemanticsError(f"the exception {_names(pair)} is not needed: the edges give {least[0].name}")
        if not isinstance(exception, str) and exception not in bounds:
            raise SemanticsError(f"the exception {_names(pair)} gives {exception.name}, which is not above both")
        return exception


def _reach(edges: Mapping[np.dtype, DTypes]) -> dict[np.dtype, frozenset[np.dtype]]:
    """Return everything strictly above each dtype."""
    above: dict[np.dtype, frozenset[np.dtype]] = {}

    def visit(dtype: np.dtype, path: DTypes) -> frozenset[np.dtype]:
        if dtype in path:
            cycle = (*path[path.index(dtype) :], dtype)
            raise SemanticsError(f"the edges have a cycle: {' -> '.join(step.name for step in cycle)}")
        if dtype not in above:
            direct = edges.get(dtype, ())
            above[dtype] = frozenset(direct).union(*(visit(step, (*path, dtype)) for step in direct))
        return above[dtype]

    for dtype in edges:
        visit(dtype, ())
    return above


def _pairs(dtypes: Iterable[np.dtype]) -> list[frozenset[np.dtype]]:
    """Return all pairs, in the table's order: which error is raised must not depend on hashes."""
    return [frozenset(pair) for pair in combinations(sorted(dtypes, key=_position), 2)]


_POSITIONS: Final = {dtype: position for position, dtype in enumerate(dt.ALL)}


def _position(dtype: np.dtype) -> int:
    return _POSITIONS[dtype]


def _names(dtypes: Iterable[np.dtype]) -> str:
    return " and ".join(dtype.name for dtype in sorted(dtypes, key=_position))


# --- The two lattices -----------------------------------------------------------------------------------------------

_FP8: Final = (dt.float8_e4m3fn, dt.float8_e5m2)
_INEXACT: Final[dict[np.dtype, DTypes]] = {
    dt.float8_e4m3fn: (dt.float16, dt.bfloat16),
    dt.float8_e5m2: (dt.float16, dt.bfloat16),
    dt.float16: (dt.float32,),
    dt.bfloat16: (dt.float32,),
    dt.float32: (dt.float64, dt.complex64),
    dt.float64: (dt.complex128,),
    dt.complex64: (dt.complex128,),
    dt.complex128: (),
}
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
_TWO_FP8: Final[dict[frozenset[np.dtype], np.dtype | str]] = {frozenset(_FP8): dt.float16}
_UINT64_AND_SIGNED: Final[dict[frozenset[np.dtype], np.dtype | str]] = {
    frozenset((dt.uint64, signed)): (
        f"no integer dtype holds both ranges; write x.astype('int64') for the uint64 operand, "
        f"or x.astype('uint64') for the {signed.name} one"
    )
    for signed in (dt.int8, dt.int16, dt.int32, dt.int64)
}

# --- Semantics ------------------------------------------------------------------------------------------------------

_RANK: Final[dict[str, int]] = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
_LADDER: Final[Mapping[ScalarClass, np.dtype]] = {  # and no dtype holds HUGE
    ScalarClass.BOOL: dt.bool_,
    ScalarClass.INT32: dt.int32,
    ScalarClass.UINT32: dt.uint32,
    ScalarClass.INT64: dt.int64,
    ScalarClass.UINT64: dt.uint64,
    ScalarClass.FLOAT32: dt.float32,
    ScalarClass.FLOAT64: dt.float64,
    ScalarClass.COMPLEX: dt.complex64,
}
_SCALAR_KIND: Final[dict[ScalarClass, str]] = {
    ScalarClass.BOOL: "bool",
    **dict.fromkeys(
        (ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64, ScalarClass.HUGE), "int"
    ),
    **dict.fromkeys((ScalarClass.FLOAT32, ScalarClass.FLOAT64), "float"),
    ScalarClass.COMPLEX: "complex",
}
_SCALAR_RANK: Final = {scalar: _RANK[kind] for scalar, kind in _SCALAR_KIND.items()}
_RANGE: Final = {
    rung: (limits.min, limits.max)
    for rung in _LADDER.values()
    if dt.info(rung).kind in ("int", "uint", "float")
    for limits in [dt.finfo(rung) if dt.info(rung).kind == "float" else dt.iinfo(rung)]
}


@dataclass(frozen=True, eq=False)
class Semantics:
    """One system's rules. Compared and hashed by identity; `SEMANTICS` holds those that exist.

    Attributes
    ----------
    name : str
        The name to choose it by.
    lattice : Joins
        The joins of dtypes.
    defaults : mapping of str to dtype
        The dtype of new arrays, and of Python numbers where no array takes part, for the kinds "bool", "int", "float"
        and "complex". A number that the default does not hold takes the first of its ladder that does.
    integer_division : {"floor", "trunc"}
        How ``//`` rounds integers, with ``%`` to match.
    true_division : numpy.dtype
        The result of ``/`` on integers and bools.
    inplace : {"same_kind"}
        What an in-place result may be cast to: `can_cast_same_kind`.
    """

    name: str
    lattice: Joins
    defaults: Mapping[str, np.dtype]
    integer_division: Literal["floor", "trunc"]
    true_division: np.dtype
    inplace: Literal["same_kind"] = "same_kind"

    def __str__(self) -> str:
        return self.name

    def promote(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays."""
        return self.lattice.join(dtypes, function)

    def result_type(self, operands: Iterable[np.dtype | ScalarClass], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays and Python numbers, in whatever order.

        A number takes part only if its kind is above that of all arrays, and none of a higher kind is there. Of numbers
        alone, the one on the highest rung of its ladder decides.

        Raises
        ------
        PromotionError
            If there is none; the message says which cast to write.
        ScalarOverflowError
            If an integer that needs a dtype of its own is beyond 64 bits.
        """
        dtypes: list[np.dtype] = []
        scalars: list[ScalarClass] = []
        for operand in operands:
            if isinstance(operand, ScalarClass):
                scalars.append(operand)
            else:
                dtypes.append(operand)
        if scalars:
            rank = max([_SCALAR_RANK[scalar] for scalar in scalars])
            if not dtypes or rank > max([_RANK[dt.info(dtype).kind] for dtype in dtypes]):
                alone = not dtypes
                highest = [scalar for scalar in ScalarClass if scalar in scalars and _SCALAR_RANK[scalar] == rank]
                dtypes += [self._rung(scalar, alone, function) for scalar in (highest[-1:] if alone else highest)]
        return self.lattice.join(dtypes, function)

    def _rung(self, scalar: ScalarClass, alone: bool, function: str) -> np.dtype:
        """Return the dtype that a Python number brings along, beside arrays of a lower kind or without any."""
        if scalar is ScalarClass.HUGE:
            raise ScalarOverflowError(f"{function}: no integer dtype holds {scalar.value}; write it as a float")
        rung = _LADDER[scalar]
        return _wider(self.defaults[_SCALAR_KIND[scalar]], rung) if alone else rung


def _wider(default: np.dtype, rung: np.dtype) -> np.dtype:
    """Return the default, unless only the rung holds what the rung holds."""
    if rung not in _RANGE:
        return default
    (low, high), (lowest, highest) = _RANGE[rung], _RANGE[default]
    return default if lowest <= low and high <= highest else rung


ARRAY_API: Final = Semantics(
    name="array-api",
    lattice=Lattice(_ARRAY_API_EDGES, {**_TWO_FP8, **_UINT64_AND_SIGNED}),
    defaults={"bool": dt.bool_, "int": dt.int64, "float": dt.float32, "complex": dt.complex64},
    integer_division="floor",
    true_division=dt.float32,
)
TRITON: Final = Semantics(
    name="triton",
    lattice=Lattice(_TRITON_EDGES, _TWO_FP8),
    defaults={"bool": dt.bool_, "int": dt.int32, "float": dt.float32, "complex": dt.complex64},
    integer_division="trunc",
    true_division=dt.float32,
)
SEMANTICS: Final[Mapping[str, Semantics]] = MappingProxyType({known.name: known for known in (ARRAY_API, TRITON)})


def as_semantics(spec: str | Semantics, function: str = "semantics") -> Semantics:
    """Return the `Semantics` of a name.

    Raises
    ------
    SemanticsError
        If there is none of that name.

    Examples
    --------
    >>> from tilearray.promotion import as_semantics
    >>> as_semantics("triton").integer_division
    'trunc'
    """
    if isinstance(spec, Semantics):
        return spec
    found = SEMANTICS.get(spec)
    if found is None:
        raise SemanticsError(f"{function}: {spec!r} is no semantics; write {' or '.join(map(repr, SEMANTICS))}")
    return found


def can_cast_same_kind(from_: np.dtype, to: np.dtype, /) -> bool:
    """Return whether an in-place operator may write a result of `from_` into an array of `to`, in every semantics.

    A bool goes anywhere, an unsigned integer to all but bool, a signed one not to unsigned ones, and any other kind to
    its own or a higher one; the width does not matter.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> can_cast_same_kind(dtypes.float64, dtypes.float16), can_cast_same_kind(dtypes.int8, dtypes.uint8)
    (True, False)
    """
    source, target = dt.info(from_).kind, dt.info(to).kind
    return _RANK[source] <= _RANK[target] and (source, target) != ("int", "uint")
