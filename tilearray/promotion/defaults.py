"""Other defaults for semantics: ``int=``, ``float=`` and ``complex=``, which move every rule that reads a default.

A default decides more than the dtype of new arrays. Under semantics whose default float is float32, integers divide to
float32, and a Python float beside an integer array takes part as float32. Results have one precision only if all of
these move together: `moved` moves them. The default complex dtype follows the default float unless it is given.

Defaults can also be written behind the name of semantics, as in an environment variable: ``array-api,float=float64``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import DTypeError, SemanticsError, shown
from tilearray.promotion.operands import SCALAR_KIND, Rules
from tilearray.promotion.scalars import ScalarClass

ALLOWED: Final[dict[str, tuple[np.dtype, ...]]] = {
    "int": (dt.int32, dt.int64),
    "float": (dt.float16, dt.bfloat16, dt.float32, dt.float64),
    "complex": (dt.complex64, dt.complex128),
}
"""The dtypes that each kind may have as its default."""
_COMPLEX_OF: Final = dict.fromkeys(ALLOWED["float"], dt.complex64) | {dt.float64: dt.complex128}


def split(text: str, function: str) -> tuple[str, dict[str, str]]:
    """Return the name of semantics and the defaults behind it.

    Raises
    ------
    SemanticsError
        If a part behind the name is not of the form ``kind=dtype``.

    Examples
    --------
    >>> split("array-api, float=float64", "semantics")
    ('array-api', {'float': 'float64'})
    """
    name, *parts = (part.strip() for part in text.split(","))
    given: dict[str, str] = {}
    for part in parts:
        kind, equals, dtype = part.partition("=")
        if not equals:
            raise SemanticsError(
                f"{function}: expected defaults as kind=dtype behind {name!r}, got {part!r}; write {name},float=float64"
            )
        given[kind.strip()] = dtype.strip()
    return name, given


def chosen(base: Rules, given: Mapping[str, Any], function: str) -> dict[str, np.dtype]:
    """Return the defaults that differ from those of `base`, in the order of `ALLOWED`. None means "not given".

    A complex dtype that does not follow a new float is among them, also if it is that of `base`.

    Raises
    ------
    SemanticsError
        If a kind has no default, or cannot have this dtype as its default.

    Examples
    --------
    >>> import tilearray as ta
    >>> chosen(ta.get_semantics(), {"float": "float64", "int": "int64"}, "semantics")
    {'float': dtype('float64'), 'complex': dtype('complex128')}
    """
    checked = {kind: allowed_default(kind, dtype, function) for kind, dtype in given.items() if dtype is not None}
    if "float" in checked:
        checked.setdefault("complex", _COMPLEX_OF[checked["float"]])
    new = [kind for kind in checked if checked[kind] != base.defaults[kind]]
    if "float" in new and checked["complex"] != _COMPLEX_OF[checked["float"]]:
        new.append("complex")
    found = {kind: checked[kind] for kind in ALLOWED if kind in new}
    if found and base.rule == "numpy":
        kind, dtype = next(iter(found.items()))
        raise SemanticsError(
            f"{function}: semantics {base.name!r} leave Python numbers to NumPy, whose default {kind} is "
            f"{base.defaults[kind].name}, got {kind}={dtype.name!r}; write 'array-api' with {kind}={dtype.name!r}"
        )
    return found


def moved(base: Rules, found: Mapping[str, np.dtype]) -> dict[str, Any]:
    """Return the attributes in which semantics with the defaults of `found` differ from `base`.

    A rung of the ladder moves if it was the default of its kind, and the new default holds its integers.

    Examples
    --------
    >>> import tilearray as ta
    >>> changed = moved(ta.get_semantics(), {"float": ta.float64})
    >>> changed["true_division"], changed["ladder"][ScalarClass.FLOAT32], changed["ladder"][ScalarClass.INT32]
    (dtype('float64'), dtype('float64'), dtype('int32'))
    """
    ladder = {number: _rung(base, found, number, dtype) for number, dtype in base.ladder.items()}
    division = {"true_division": found["float"]} if "float" in found else {}
    return {"defaults": {**base.defaults, **found}, "ladder": ladder, **division}


def name_of(base: str, found: Mapping[str, np.dtype]) -> str:
    """Return the name of semantics with these defaults, without a complex dtype that follows the float.

    Examples
    --------
    >>> import tilearray as ta
    >>> name_of("array-api", {"float": ta.float64, "complex": ta.complex128})
    'array-api,float=float64'
    """
    follows = "float" in found and found.get("complex") == _COMPLEX_OF[found["float"]]
    shown = (f"{kind}={dtype.name}" for kind, dtype in found.items() if not (kind == "complex" and follows))
    return ",".join([base, *shown])


def _rung(base: Rules, found: Mapping[str, np.dtype], number: ScalarClass, rung: np.dtype) -> np.dtype:
    kind = SCALAR_KIND[number]
    new = found.get(kind)
    if new is None or rung != base.defaults[kind]:
        return rung
    return new if kind != "int" or _holds(new, number) else rung


def _holds(dtype: np.dtype, number: ScalarClass) -> bool:
    mine, needed = dt.iinfo(dtype), dt.iinfo(number.value)
    return mine.min <= needed.min and needed.max <= mine.max


def allowed_default(kind: str, dtype: Any, function: str, name: str = "") -> np.dtype:
    """Return the dtype that a kind may have as its default; `name` is for the error message.

    Raises
    ------
    SemanticsError
        If the kind has no default, or cannot have this dtype as its default.

    Examples
    --------
    >>> allowed_default("float", "f8", "semantics")
    dtype('float64')
    """
    if kind not in ALLOWED:
        raise SemanticsError(f"{function}: kind {kind!r} has no default; write one of {', '.join(ALLOWED)}")
    try:
        found = dt.as_dtype(dtype, function)
    except DTypeError:
        found = None
    if found is None or found not in ALLOWED[kind]:
        allowed = " or ".join(repr(one.name) for one in ALLOWED[kind])
        raise SemanticsError(f"{function}: {name or kind} is {shown(dtype)}; write {allowed}")
    return found
