"""Lists, tuples, named tuples and dicts of arrays: the arguments and the results of a fused function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast


def members(value: object) -> list[Any] | None:
    """Return the members of a container, or None for any other value.

    Examples
    --------
    >>> members({"a": 1, "b": 2}), members(3)
    ([1, 2], None)
    """
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).values())
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else None


def names(value: object) -> tuple[Any, ...]:
    """Return all that says how a container is built: its type, and the keys of a dict or the number of members."""
    if isinstance(value, dict):
        return type(cast(object, value)), *cast("dict[Any, Any]", value)
    return type(value), len(cast("list[Any]", value))


def rebuilt(like: Any, parts: Iterable[Any]) -> Any:
    """Return a container of the type of another one, with these members.

    Examples
    --------
    >>> rebuilt({"a": 1, "b": 2}, [3, 4])
    {'a': 3, 'b': 4}
    """
    if isinstance(like, dict):
        return dict(zip(cast("dict[Any, Any]", like), parts))
    kind = cast(Any, type(cast(object, like)))
    return getattr(kind, "_make", kind)(parts)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with all that is not a container changed.

    Examples
    --------
    >>> mapped((1, [2, {"a": 3}]), lambda leaf: leaf + 1)
    (2, [3, {'a': 4}])
    """
    parts = members(value)
    return change(value) if parts is None else rebuilt(value, [mapped(part, change) for part in parts])


def leaves(value: Any) -> Iterator[Any]:
    """Yield all that is not a container, in order."""
    parts = members(value)
    if parts is None:
        yield value
    else:
        for part in parts:
            yield from leaves(part)


def member_of(given: Any, place: int) -> Any:
    """Return the argument of a call from a list of arguments, or from an argument of all calls.

    >>> member_of([2, 3], 1), member_of(2, 1)
    (3, 2)
    """
    return cast("list[Any]", given)[place] if isinstance(given, list | tuple) else given
