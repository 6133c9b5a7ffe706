"""The casting rules of in-place operators and ``out=``: which results a target's dtype may store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import OperandError, PromotionError, shown
from tilearray.promotion.lattice import Joins
from tilearray.promotion.operands import RANK


def can_cast_same_kind(from_: np.dtype, to: np.dtype, /) -> bool:
    """Return whether an array of `to` may store a result of `from_`, by NumPy's rule "same_kind".

    Every dtype may store a bool. Every dtype except bool may store an unsigned integer. An unsigned dtype may not
    store a signed integer. Otherwise the target must be of the same kind or a higher one. The width does not matter.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> can_cast_same_kind(dtypes.float64, dtypes.float16), can_cast_same_kind(dtypes.int8, dtypes.uint8)
    (True, False)
    """
    source, target = dt.info(from_).kind, dt.info(to).kind
    return _by_rank(source, target) and (source, target) != ("int", "uint")


Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
"""NumPy's rules of casts."""


def allows_cast(casting: Casting, from_: np.dtype, to: np.dtype, function: str) -> bool:
    """Return whether one of NumPy's rules allows a cast.

    Raises
    ------
    OperandError
        If there is no such rule.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> allows_cast("safe", dtypes.int8, dtypes.int16, "astype"), allows_cast("no", dtypes.int8, dtypes.int16, "astype")
    (True, False)
    """
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise OperandError(
            f"{function}: expected casting as 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', got {shown(casting)}; "
            f"write casting='unsafe' to allow all casts"
        )
    if casting == "same_kind":
        return can_cast_same_kind(from_, to)
    return np.can_cast(from_, to, cast(Any, casting))


def _by_rank(source: str, target: str) -> bool:
    """Return whether the kind of a target holds numbers of the kind of a source; pairs are not numbers."""
    return RANK[source] <= RANK[target] and (source == "pair") == (target == "pair")


def _by_kind(joins: Joins, result: np.dtype, target: np.dtype) -> bool:
    return _by_rank(dt.info(result).kind, dt.info(target).kind)


def _by_promotion(joins: Joins, result: np.dtype, target: np.dtype) -> bool:
    try:
        return joins.join((result, target)) == target
    except PromotionError:
        return False


def _by_numpy(joins: Joins, result: np.dtype, target: np.dtype) -> bool:
    return _by_kind(joins, result, target) and np.can_cast(result, target, "same_kind")


CASTING: Final[dict[str, Callable[[Joins, np.dtype, np.dtype], bool]]] = {
    "same_kind": lambda joins, result, target: can_cast_same_kind(result, target),
    "kind": _by_kind,
    "promotion": _by_promotion,
    "numpy": _by_numpy,
}
