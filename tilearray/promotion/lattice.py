"""Lattices of dtypes: edges are declared, joins are derived and checked.

A lattice is declared as edges: from each dtype to the dtypes directly above it. The join of two dtypes is their least
upper bound. Joins are derived from the edges and never written down. A lattice is checked when it is made, at import.
Two dtypes either have exactly one least upper bound, or an exception lists the pair with its join or with the reason
why it has none. The check also rejects an exception that is not needed, so the list holds true exceptions only. A
separate table lists pairs that have a least upper bound and are forbidden nevertheless.

The join of many dtypes first drops dtypes that lie below others. It then joins all pairs of the rest, and continues
with these joins. So the order of the operands does not matter, although a join of joins can differ:
``float8_e4m3fn, float8_e5m2`` give float16; with bfloat16 as third operand they give bfloat16, which both can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final, Protocol, cast

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import PromotionError, SemanticsError

DTypes = tuple[np.dtype, ...]
Pair = frozenset[np.dtype]
Exceptions = Mapping[Pair, np.dtype | str]
_NOTHING: Final[Mapping[Pair, str]] = {}


class Joins(Protocol):
    """The interface between `Semantics` and its joins: a lattice, or another library."""

    def join(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the common dtype. The order of the dtypes does not matter."""
        ...


class Lattice:
    """Joins of dtypes, derived from edges and checked.

    Parameters
    ----------
    edges : mapping of dtype to tuple of dtypes
        The dtypes directly above each dtype; the top has none.
    exceptions : mapping of frozenset of two dtypes to dtype or str
        For a pair without a unique least upper bound: its join, or the reason why it has none.
    forbidden : mapping of frozenset of two dtypes to str
        The reason why a pair has no join although it has a least upper bound.

    Raises
    ------
    SemanticsError
        If the edges have a cycle, or a pair has no unique least upper bound and no exception lists it. Also if an
        entry is not needed, or the join of an exception is not an upper bound of its pair.

    Examples
    --------
    >>> from tilearray.dtypes import bool_, int8, uint8, int16
    >>> lattice = Lattice({bool_: (int8, uint8), int8: (int16,), uint8: (int16,), int16: ()}, {})
    >>> lattice.join([int8, uint8])
    dtype('int16')
    """

    def __init__(
        self, edges: Mapping[np.dtype, DTypes], exceptions: Exceptions, forbidden: Mapping[Pair, str] = _NOTHING
    ) -> None:
        self.edges, self.exceptions, self.forbidden = dict(edges), dict(exceptions), dict(forbidden)
        self._above = _reach(edges)
        self._joins: dict[Pair, np.dtype | str] = {}
        for pair in map(frozenset, combinations(self._above, 2)):
            self._joins[pair] = self._derive(pair, exceptions.get(pair))
        unknown = [pair for pair in (*exceptions, *forbidden) if pair not in self._joins]
        if unknown:
            raise SemanticsError(f"the exception {names(unknown[0])} is not a pair of dtypes of the lattice")
        for pair, reason in forbidden.items():
            if isinstance(self._joins[pair], str):
                raise SemanticsError(f"the forbidden pair {names(pair)} is not needed: {self._joins[pair]}")
            self._joins[pair] = reason
        self._covers = {
            dtype: frozenset(other for other in above if frozenset((dtype, other)) not in forbidden)
            for dtype, above in self._above.items()
        }

    def _declared(self) -> tuple[Mapping[np.dtype, DTypes], Exceptions, Mapping[Pair, str]]:
        return self.edges, self.exceptions, self.forbidden

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._declared() == other._declared() if isinstance(other, Lattice) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.edges))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, self._declared()

    def join(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the least upper bound of any number of dtypes. Their order does not matter.

        Raises
        ------
        PromotionError
            If they have no least upper bound; the message says which cast to write.
        """
        found = frozenset(dtypes)
        while len(found) > 1:
            joined = self._joins.get(found)
            if isinstance(joined, str):
                raise PromotionError(f"{function}: {names(found)} have no common dtype: {joined}")
            if joined is not None:
                return joined
            found = self._maximal(found, function)
            if len(found) > 2:
                found = frozenset([self.join(pair, function) for pair in _pairs(found)])
        (joined,) = found
        return joined

    def _maximal(self, found: Pair, function: str) -> Pair:
        for dtype in sorted(found, key=position):
            if dtype not in self._above:
                raise PromotionError(_outside(dtype, found - {dtype}, function))
        return frozenset(dtype for dtype in found if self._covers[dtype].isdisjoint(found))

    def _derive(self, pair: Pair, exception: np.dtype | str | None) -> np.dtype | str:
        bounds, least = _bounds(self._above, pair)
        if exception is None and least is None:
            minimal = {dtype for dtype in bounds if not any(dtype in self._above[b] for b in bounds)}
            raise SemanticsError(
                f"{names(pair)} have no unique least upper bound (candidates: {names(minimal) or 'none'}): "
                f"add an edge or list the pair as an exception"
            )
        if least is not None:
            if exception is None:
                return least
            raise SemanticsError(f"the exception {names(pair)} is not needed: the edges give {least.name}")
        if isinstance(exception, np.dtype) and exception not in bounds:
            raise SemanticsError(f"the exception {names(pair)} gives {exception.name}, which is not above both")
        assert exception is not None
        return exception


def _unpickled(*declared: Any) -> Lattice:
    """Return the lattice of a pickle. It derives its joins again."""
    return Lattice(*in_table(declared))


def in_table(value: Any) -> Any:
    """Return a value in which every dtype is the table's own object. A pickle contains equal, but other objects.

    Examples
    --------
    >>> import pickle
    >>> from tilearray.dtypes import float32
    >>> in_table(pickle.loads(pickle.dumps({"float": (float32,)})))["float"][0] is float32
    True
    """
    if isinstance(value, np.dtype):
        return dt.as_dtype(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Mapping):
        return {in_table(key): in_table(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple | frozenset):
        items = [in_table(item) for item in cast("tuple[Any, ...]", value)]
        return tuple(items) if isinstance(value, tuple) else frozenset(items)
    return value


def joined_by(edges: Mapping[np.dtype, DTypes]) -> frozenset[Pair]:
    """Return the pairs of dtypes for which edges alone give a unique least upper bound.

    Examples
    --------
    >>> from tilearray.dtypes import bool_, int8, uint8, int16
    >>> pairs = joined_by({bool_: (int8, uint8), int8: (), uint8: ()})
    >>> frozenset((bool_, int8)) in pairs, frozenset((int8, uint8)) in pairs
    (True, False)
    """
    above = _reach(edges)
    return frozenset(pair for pair in map(frozenset, combinations(above, 2)) if _bounds(above, pair)[1] is not None)


def _bounds(above: Mapping[np.dtype, Pair], pair: Pair) -> tuple[Pair, np.dtype | None]:
    """Return the upper bounds of a pair, and the least upper bound or None."""
    one, other = pair
    bounds = (above[one] | {one}) & (above[other] | {other})
    least = [dtype for dtype in bounds if bounds <= above[dtype] | {dtype}]
    return bounds, least[0] if least else None


def _outside(dtype: np.dtype, others: Iterable[np.dtype], function: str) -> str:
    """Return the message about a dtype that is not in the lattice."""
    row = dt.info(dtype)
    reason = "does not take part in promotion" if row.arithmetic else "is for storage only"
    instead = {"complex": "x.real or x.imag", "pair": "ta.unpack_float4(x).astype('float32')"}.get(
        row.kind, "x.astype('float32'), which holds all of its values"
    )
    return f"{function}: {row.name} {reason} and has no common dtype with {names(others)}; write {instead}"


def _reach(edges: Mapping[np.dtype, DTypes]) -> dict[np.dtype, Pair]:
    """Return all dtypes strictly above each dtype."""
    above: dict[np.dtype, Pair] = {}

    def visit(dtype: np.dtype, path: DTypes) -> Pair:
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


def _pairs(dtypes: Iterable[np.dtype]) -> list[Pair]:
    """Return all pairs in the table's order, so that hashes do not decide which error is raised."""
    return [frozenset(pair) for pair in combinations(sorted(dtypes, key=position), 2)]


_POSITIONS: Final = {dtype: position for position, dtype in enumerate((*dt.ALL, *dt.PACKED))}


def position(dtype: np.dtype) -> int:
    """Return the place of a dtype in the table of dtypes."""
    return _POSITIONS[dtype]


def names(dtypes: Iterable[np.dtype]) -> str:
    """Return the names of dtypes for a message, in the table's order."""
    return " and ".join(dt.info(dtype).name for dtype in sorted(dtypes, key=position))
