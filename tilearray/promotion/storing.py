"""What an in-place operator and ``out=`` may store: the rules by which a result is cast to its target's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import PromotionError
from tilearray.promotion.operands import RANK

if TYPE_CHECKING:
    from tilearray.promotion.semantics import Semantics


def can_cast_same_kind(from_: np.dtype, to: np.dtype, /) -> bool:
    """Return whether a result of `from_` may be written into an array of `to`, by NumPy's rule "same_kind".

    A bool goes anywhere, an unsigned integer to all but bool, a signed one not to unsigned ones, and any other kind to
    its own or a higher one; the width does not matter.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> can_cast_same_kind(dtypes.float64, dtypes.float16), can_cast_same_kind(dtypes.int8, dtypes.uint8)
    (True, False)
    """
    source, target = dt.info(from_).kind, dt.info(to).kind
    return RANK[source] <= RANK[target] and (source, target) != ("int", "uint")


def _by_kind(rules: Semantics, result: np.dtype, target: np.dtype) -> bool:
    return RANK[dt.info(result).kind] <= RANK[dt.info(target).kind]


def _by_promotion(rules: Semantics, result: np.dtype, target: np.dtype) -> bool:
    try:
        return rules.promote((result, target)) == target
    except PromotionError:
        return False


def _by_numpy(rules: Semantics, result: np.dtype, target: np.dtype) -> bool:
    return _by_kind(rules, result, target) and np.can_cast(result, target, "same_kind")


CASTING: Final[dict[str, Callable[[Semantics, np.dtype, np.dtype], bool]]] = {
    "same_kind": lambda rules, result, target: can_cast_same_kind(result, target),
    "kind": _by_kind,
    "promotion": _by_promotion,
    "numpy": _by_numpy,
}
