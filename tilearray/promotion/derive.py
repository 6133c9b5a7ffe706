"""`Semantics.derive`: semantics of your own, from those that exist, validated when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np

from tilearray.dtypes import as_dtype
from tilearray.errors import SemanticsError
from tilearray.promotion.lattice import Lattice, Pair, joined_by
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.systems import as_semantics

_FUNCTION = "Semantics.derive"


def derive(
    base: str | Semantics,
    edges: Mapping[Any, Iterable[Any]] | None,
    exceptions: Mapping[tuple[Any, Any], Any] | None,
    changes: dict[str, Any],
) -> Semantics:
    """Return `base` with other edges and exceptions, and with other attributes; see `Semantics.derive`."""
    rules = as_semantics(base, _FUNCTION)
    changed: dict[str, Any] = {"name": f"{rules.name}-derived"}
    changed |= {name: _checked(name, value) for name, value in changes.items()}
    if "defaults" in changed:
        changed["defaults"] = {**rules.defaults, **_defaults(rules, changed["defaults"])}
    if edges or exceptions:
        changed["lattice"] = _lattice(rules, edges or {}, exceptions or {})
    return replace(rules, **changed)


_HINTS = get_type_hints(Semantics)
_CHANGEABLE = tuple(
    row.name
    for row in fields(Semantics)
    if row.init and row.name not in ("lattice", "ladder", "rule", "integer_functions")
)


def _checked(name: str, value: Any) -> Any:
    """An attribute's value, dtypes as the table's own objects."""
    if name not in _CHANGEABLE:
        raise SemanticsError(
            f"{_FUNCTION}: {name!r} is nothing to change; write edges, exceptions, {', '.join(_CHANGEABLE)}"
        )
    if name == "true_division":
        return as_dtype(value, _FUNCTION)
    if name == "arithmetic":
        return frozenset(as_dtype(dtype, _FUNCTION) for dtype in value)
    allowed = get_args(_HINTS[name]) if isinstance(value, str) and name != "name" else (value,)
    if value not in allowed:
        raise SemanticsError(f"{_FUNCTION}: {name} is {value!r}; write one of {', '.join(map(repr, allowed))}")
    return value


def _defaults(rules: Semantics, given: Mapping[str, Any]) -> dict[str, np.dtype]:
    unknown = [kind for kind in given if kind not in rules.defaults]
    if unknown:
        raise SemanticsError(
            f"{_FUNCTION}: {unknown[0]!r} is no kind with a default; write one of {', '.join(rules.defaults)}"
        )
    return {kind: as_dtype(dtype, _FUNCTION) for kind, dtype in given.items()}


def _lattice(
    rules: Semantics, edges: Mapping[Any, Iterable[Any]], exceptions: Mapping[tuple[Any, Any], Any]
) -> Lattice:
    """The lattice of `rules` with some edges in place of its own, and its exceptions where they are still needed."""
    old = rules.lattice
    if not isinstance(old, Lattice):
        raise SemanticsError(f"{_FUNCTION}: {rules.name!r} asks another library and has no edges to change")
    changed = {as_dtype(a, _FUNCTION): tuple(as_dtype(b, _FUNCTION) for b in above) for a, above in edges.items()}
    mine: dict[Pair, np.dtype | str] = {_pair(pair): _join(join) for pair, join in exceptions.items()}
    everything = {**old.edges, **changed}
    joined = joined_by(everything)
    kept = {pair: join for pair, join in old.exceptions.items() if pair not in joined}
    forbidden = {pair: reason for pair, reason in old.forbidden.items() if pair in joined and not changed.keys() & pair}
    forbidden |= {pair: join for pair, join in mine.items() if pair in joined and isinstance(join, str)}
    needed = {pair: join for pair, join in mine.items() if pair not in forbidden}
    return Lattice(everything, {**kept, **needed}, forbidden)


def _pair(pair: tuple[Any, Any]) -> Pair:
    return frozenset(as_dtype(dtype, _FUNCTION) for dtype in pair)


def _join(join: Any) -> np.dtype | str:
    """A dtype, or a sentence: what has a blank in it is none of the names of dtypes."""
    return join if isinstance(join, str) and " " in join else as_dtype(join, _FUNCTION)
