"""Objects whose protocols lie, raise, recurse, or answer differently each time that they are asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np

import tilearray as ta


class Lie(Exception):  # noqa: N818 - it is not an error of anybody
    """What a liar raises itself: it may pass through the library unchanged."""


def raises(*_: object, **__: object) -> Any:
    raise Lie("a lie")


class Cursor:
    """An index that is another one each time it is read."""

    def __init__(self) -> None:
        self._next = itertools.cycle([0, 2**40, -1, 1]).__next__

    def __index__(self) -> int:
        return self._next()


class Shifting:
    """A sequence that is longer each time it is measured."""

    def __init__(self) -> None:
        self._lengths = itertools.count(1)

    def __len__(self) -> int:
        return min(next(self._lengths), 5)

    def __getitem__(self, place: int) -> int:
        if place > 6:
            raise IndexError(place)
        return place

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))


class LyingInt(int):
    """An int whose comparisons and sums are wrong."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7

    def __lt__(self, other: object) -> bool:
        return True

    def __add__(self, other: object) -> Any:
        return "a sum"


class LyingText(str):
    """A str that equals every other one, and has no hash."""

    def __eq__(self, other: object) -> bool:
        raise Lie("equal")

    def __hash__(self) -> int:
        raise Lie("hash")


class Recursing:
    """An object that hands out itself."""

    def __array__(self, *_: object, **__: object) -> Any:
        return np.asarray(self)

    def __iter__(self) -> Iterator[Any]:
        return iter([self])

    def __len__(self) -> int:
        return 1

    def __getitem__(self, place: object) -> Any:
        return self


class Interface:
    """A description of memory that is not there."""

    __array_interface__ = {"shape": (3,), "typestr": "<f8", "version": 3}  # noqa: RUF012


class WrongArray:
    """An object that does not become an ndarray."""

    def __array__(self, *_: object, **__: object) -> Any:
        return "no array"


class WrongCapsule:
    """A producer of no capsule."""

    def __dlpack__(self, **_: object) -> object:
        return object()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def endless() -> Any:
    return itertools.repeat(1)


def deep() -> Any:
    found: Any = 1
    for _ in range(3000):
        found = [found]
    return found


def cyclic() -> Any:
    found: list[Any] = [1]
    found.append(found)
    return found


def with_methods(*names: str, base: type = object) -> Any:
    """An object whose methods of these names raise `Lie`."""
    return type("Raising", (base,), dict.fromkeys(names, raises))()


MAKERS: tuple[Callable[[], Any], ...] = (
    *(lambda spec=spec: Mock(spec=spec) for spec in (ta.Array, int, float, np.ndarray, list, np.dtype, slice, str)),
    lambda: with_methods("__index__", "__int__", "__float__", "__complex__", "__bool__"),
    lambda: with_methods("__array__"),
    lambda: with_methods("__iter__", "__len__", "__getitem__"),
    lambda: with_methods("__hash__", "__eq__"),
    lambda: with_methods("__repr__", "__str__"),
    lambda: with_methods("__dlpack__", "__dlpack_device__"),
    lambda: with_methods("__len__", "__iter__", base=list),
    lambda: with_methods("__iter__", "__len__", base=tuple),
    lambda: with_methods("__index__", base=int),
    lambda: with_methods("__getattr__"),
    Cursor,
    Shifting,
    lambda: LyingInt(1),
    lambda: LyingText("float32"),
    Recursing,
    Interface,
    WrongArray,
    WrongCapsule,
    endless,
    deep,
    cyclic,
)
"""Each makes a new liar: some change when they are used."""
