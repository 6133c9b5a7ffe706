"""The changes of `Semantics.derive`: attributes and a lattice for your own semantics, validated when they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import numpy as np

from tilearray import dtypes as dt
from tilearray.dtypes import as_dtype
from tilearray.errors import SemanticsError, shown
from tilearray.promotion.defaults import allowed_default
from tilearray.promotion.lattice import Lattice, Pair, joined_by
from tilearray.promotion.operands import Rules

FUNCTION: Final = "Semantics.derive"


def derived(
    base: Rules,
    edges: Any,
    exceptions: Any,
    changes: Mapping[str, Any],
    options: Mapping[str, tuple[Any, ...]],
) -> dict[str, Any]:
    """Return the attributes in which derived semantics differ from `base`; see `Semantics.derive`.

    `options` lists the attributes that may change, with the strings that each accepts.
    """
    changed: dict[str, Any] = {"name": f"{base.name}-derived"}
    changed |= {name: _checked(base, name, value, options) for name, value in changes.items()}
    if edges is not None or exceptions is not None:
        changed["lattice"] = _lattice(base, _mapping("edges", edges), _mapping("exceptions", exceptions))
    return changed


def _refused(name: str, value: object, instead: str) -> SemanticsError:
    return SemanticsError(f"{FUNCTION}: {name} is {shown(value)}; write {instead}")


def _checked(base: Rules, name: str, value: Any, options: Mapping[str, tuple[Any, ...]]) -> Any:
    """Return an attribute's value, with dtypes replaced by the table's own objects."""
    if name not in options:
        raise SemanticsError(f"{FUNCTION}: cannot change {name!r}; write edges, exceptions, {', '.join(options)}")
    if name in _CHECKS:
        return _CHECKS[name](base, value)
    allowed = options[name]
    if not isinstance(value, str) or value not in allowed:
        raise _refused(name, value, f"one of {', '.join(map(repr, allowed))}")
    return value


def _name(base: Rules, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _refused("name", value, "a string")
    return value


def _flag(name: str) -> Callable[[Rules, Any], bool]:
    def check(base: Rules, value: Any) -> bool:
        if value is not True and value is not False:
            raise _refused(name, value, "True or False")
        return value

    return check


def _true_division(base: Rules, value: Any) -> np.dtype:
    return allowed_default("float", value, FUNCTION, "true_division")


def _arithmetic(base: Rules, value: Any) -> frozenset[np.dtype]:
    """Return dtypes that operations compute with. Nothing else than those of the table can be computed with."""
    found = frozenset(_dtypes("arithmetic", value))
    beyond = [dtype for dtype in found if not dt.info(dtype).arithmetic]
    if beyond or not found:
        raise _refused("arithmetic", value, f"a list of dtypes among {', '.join(one.name for one in dt.ARITHMETIC)}")
    return found


def _saturates(base: Rules, value: Any) -> frozenset[np.dtype]:
    found = frozenset(_dtypes("saturates", value))
    if any(dt.info(dtype).kind != "float" for dtype in found):
        raise _refused("saturates", value, "a list of floating-point dtypes, such as ['float8_e4m3fn']")
    return found


def _wide_numbers(base: Rules, value: Any) -> frozenset[str]:
    if not isinstance(value, _LISTS) or not all(isinstance(name, str) for name in cast("Iterable[Any]", value)):
        raise _refused("wide_numbers", value, "a list of names of operations")
    return frozenset(cast("Iterable[str]", value))


def _defaults(base: Rules, value: Any) -> dict[str, np.dtype]:
    if value is None:
        raise _refused("defaults", value, "a dictionary such as {'float': 'float64'}")
    given = _mapping("defaults", value)
    unknown = [kind for kind in given if kind not in base.defaults]
    if unknown:
        raise SemanticsError(
            f"{FUNCTION}: kind {shown(unknown[0])} has no default; write one of {', '.join(base.defaults)}"
        )
    own = {kind: dtype for kind, dtype in given.items() if kind != "bool"}
    if as_dtype(given.get("bool", dt.bool_), FUNCTION) != dt.bool_:
        raise _refused("the default of 'bool'", given["bool"], "'bool'")
    return {**base.defaults, **{kind: allowed_default(kind, dtype, FUNCTION) for kind, dtype in own.items()}}


_CHECKS: Final[Mapping[str, Callable[[Rules, Any], Any]]] = {
    "name": _name,
    "huge": _flag("huge"),
    "same_bits": _flag("same_bits"),
    "true_division": _true_division,
    "arithmetic": _arithmetic,
    "wide_numbers": _wide_numbers,
    "saturates": _saturates,
    "defaults": _defaults,
}
"""The attributes that are not one of several strings, with the function that checks each."""
_LISTS: Final[tuple[type[Any], ...]] = (list, tuple, set, frozenset)


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _refused(name, value, f"{name}={{...}}, a dictionary")
    return cast("Mapping[Any, Any]", value)


def _dtypes(name: str, value: Any) -> tuple[np.dtype, ...]:
    """Return dtypes of a list; a string is not a list of its letters."""
    if not isinstance(value, _LISTS):
        raise _refused(name, value, "a list of dtypes")
    return tuple([as_dtype(dtype, FUNCTION) for dtype in cast("Iterable[Any]", value)])


def _lattice(base: Rules, edges: Mapping[Any, Any], exceptions: Mapping[Any, Any]) -> Lattice:
    """Return the lattice of `base` with the given edges replaced, and with its exceptions that are still needed."""
    old = base.lattice
    if not isinstance(old, Lattice):
        raise SemanticsError(
            f"{FUNCTION}: semantics {base.name!r} has no edges to change, because another library decides; "
            "write another base"
        )
    changed = {as_dtype(a, FUNCTION): _dtypes("an entry of edges", above) for a, above in edges.items()}
    mine: dict[Pair, np.dtype | str] = {_pair(pair): _join(join) for pair, join in exceptions.items()}
    everything = {**old.edges, **changed}
    try:
        joined = joined_by(everything)
        kept = {pair: join for pair, join in old.exceptions.items() if pair not in joined}
        was = old.forbidden.items()
        forbidden = {pair: reason for pair, reason in was if pair in joined and not changed.keys() & pair}
        forbidden |= {pair: join for pair, join in mine.items() if pair in joined and isinstance(join, str)}
        needed = {pair: join for pair, join in mine.items() if pair not in forbidden}
        return Lattice(everything, {**kept, **needed}, forbidden)
    except SemanticsError as error:
        raise SemanticsError(f"{FUNCTION}: {error}") from None


def _pair(pair: Any) -> Pair:
    found = frozenset(_dtypes("a pair of exceptions", pair))
    if len(found) != 2:
        raise _refused("a pair of exceptions", pair, "two dtypes, such as ('int8', 'uint8')")
    return found


def _join(join: Any) -> np.dtype | str:
    """Return a dtype, or the reason why a pair has no join: a dtype name contains no space."""
    return join if isinstance(join, str) and " " in join else as_dtype(join, FUNCTION)
