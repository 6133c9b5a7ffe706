"""The changes of `Semantics.derive`: attributes and a lattice for your own semantics, validated when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from tilearray.dtypes import as_dtype
from tilearray.errors import SemanticsError
from tilearray.promotion.lattice import Lattice, Pair, joined_by
from tilearray.promotion.operands import Rules

FUNCTION: Final = "Semantics.derive"


def derived(
    base: Rules,
    edges: Mapping[Any, Iterable[Any]] | None,
    exceptions: Mapping[tuple[Any, Any], Any] | None,
    changes: Mapping[str, Any],
    options: Mapping[str, tuple[Any, ...]],
) -> dict[str, Any]:
    """Return the attributes in which derived semantics differ from `base`; see `Semantics.derive`.

    `options` lists the attributes that may change, with the strings that each accepts.
    """
    changed: dict[str, Any] = {"name": f"{base.name}-derived"}
    changed |= {name: _checked(name, value, options) for name, value in changes.items()}
    if "defaults" in changed:
        changed["defaults"] = {**base.defaults, **_defaults(base, changed["defaults"])}
    if edges or exceptions:
        changed["lattice"] = _lattice(base, edges or {}, exceptions or {})
    return changed


def _checked(name: str, value: Any, options: Mapping[str, tuple[Any, ...]]) -> Any:
    """Return an attribute's value, with dtypes replaced by the table's own objects."""
    if name not in options:
        raise SemanticsError(f"{FUNCTION}: cannot change {name!r}; write edges, exceptions, {', '.join(options)}")
    if name == "true_division":
        return as_dtype(value, FUNCTION)
    if name == "arithmetic":
        return frozenset(as_dtype(dtype, FUNCTION) for dtype in value)
    allowed = options[name] if isinstance(value, str) and name != "name" else (value,)
    if value not in allowed:
        raise SemanticsError(f"{FUNCTION}: {name} is {value!r}; write one of {', '.join(map(repr, allowed))}")
    return value


def _defaults(base: Rules, given: Mapping[str, Any]) -> dict[str, np.dtype]:
    unknown = [kind for kind in given if kind not in base.defaults]
    if unknown:
        raise SemanticsError(f"{FUNCTION}: kind {unknown[0]!r} has no default; write one of {', '.join(base.defaults)}")
    return {kind: as_dtype(dtype, FUNCTION) for kind, dtype in given.items()}


def _lattice(base: Rules, edges: Mapping[Any, Iterable[Any]], exceptions: Mapping[tuple[Any, Any], Any]) -> Lattice:
    """Return the lattice of `base` with the given edges replaced, and with its exceptions that are still needed."""
    old = base.lattice
    if not isinstance(old, Lattice):
        raise SemanticsError(
            f"{FUNCTION}: semantics {base.name!r} has no edges to change, because another library decides; "
            "write another base"
        )
    changed = {as_dtype(a, FUNCTION): tuple(as_dtype(b, FUNCTION) for b in above) for a, above in edges.items()}
    mine: dict[Pair, np.dtype | str] = {_pair(pair): _join(join) for pair, join in exceptions.items()}
    everything = {**old.edges, **changed}
    joined = joined_by(everything)
    kept = {pair: join for pair, join in old.exceptions.items() if pair not in joined}
    forbidden = {pair: reason for pair, reason in old.forbidden.items() if pair in joined and not changed.keys() & pair}
    forbidden |= {pair: join for pair, join in mine.items() if pair in joined and isinstance(join, str)}
    needed = {pair: join for pair, join in mine.items() if pair not in forbidden}
    return Lattice(everything, {**kept, **needed}, forbidden)


def _pair(pair: tuple[Any, Any]) -> Pair:
    return frozenset(as_dtype(dtype, FUNCTION) for dtype in pair)


def _join(join: Any) -> np.dtype | str:
    """Return a dtype, or the reason why a pair has no join: a dtype name contains no space."""
    return join if isinstance(join, str) and " " in join else as_dtype(join, FUNCTION)
