"""Bounded caches of two generations. A hit costs one dictionary lookup.

A new entry goes to the young generation. When the young generation is full, it becomes the old one, and the previous
old one is dropped. A lookup that finds an entry in the old generation moves it to the young one. The caches keep no
order and record no hits, so a lookup needs no lock. An eviction may only cause a miss: if two threads make the same
entry, one of the two is kept. Concurrent threads may exceed a bound by one entry each.

Plans are in nested dictionaries, ``plans[op][signature][signature]``, whose keys hash by identity. This takes half the
time of a tuple key. One bound holds for all ops together, because each plan holds the launch arguments of a kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar, cast

from tilearray.engine.locks import Lock

V = TypeVar("V")

_ageing = Lock()
"""Held while a generation ends. Dropped entries may run finalizers, and these may use a cache, so it is reentrant."""


def _renew_lock() -> None:
    """Make a new lock after a fork: a thread that no longer exists may hold the old one."""
    global _ageing
    _ageing = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


class TwoGenerations(Generic[V]):
    """A dictionary of at most ``2 * capacity`` entries. It calls `dropped` with each entry that it drops.

    Examples
    --------
    >>> cache = TwoGenerations(2)
    >>> for number in range(5):
    ...     _ = cache.put(number, str(number))
    >>> len(cache), cache.get(4), cache.get(0)
    (3, '4', None)
    """

    __slots__ = ("_dropped", "_old", "_young", "capacity")

    def __init__(self, capacity: int, dropped: Callable[[V], None] | None = None) -> None:
        self.capacity = capacity
        self._dropped = dropped
        self._young: dict[Hashable, V] = {}
        self._old: dict[Hashable, V] = {}

    def get(self, key: Hashable) -> V | None:
        """Return the entry of `key`, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Hashable, value: V) -> V:
        """Add `value` under `key`. Return it, or the entry that another thread has added first."""
        young = self._young
        if len(young) >= self.capacity:
            with _ageing:
                if len(self._young) >= self.capacity:
                    self._age()
            young = self._young
        return young.setdefault(key, value)

    def _age(self) -> None:
        last = self._old
        self._old = self._young
        self._young = {}
        if self._dropped is not None:
            for key, value in list(last.items()):
                if self._old.get(key) is not value:  # no lookup has moved it to the young generation
                    self._dropped(value)

    def clear(self) -> None:
        """Drop all entries."""
        with _ageing:
            self._age()
            self._age()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


Nested = dict[Any, Any]


def leaves(tree: Nested) -> Iterator[Any]:
    """Yield the values of nested dictionaries, branch by branch.

    Examples
    --------
    >>> list(leaves({"a": {"b": 1, "c": {}}, "d": 2}))
    [1, 2]
    """
    for branch in tree.values():
        if isinstance(branch, dict):
            yield from leaves(cast(Nested, branch))
        else:
            yield branch


def leaf_at(tree: Nested, path: tuple[Hashable, ...]) -> Any:
    """Return the value at the end of a path through nested dictionaries, or None.

    Examples
    --------
    >>> leaf_at({"a": {"b": 1}}, ("a", "b")), leaf_at({}, ("a", "b"))
    (1, None)
    """
    found: Any = tree
    for key in path:
        found = found.get(key)
        if found is None:
            return None
    return found


class PlanTree:
    """Nested dictionaries with a common bound on their leaves. Each semantics owns one root.

    `epoch` counts the calls of `clear`: code that keeps a leaf elsewhere drops it when the epoch changes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.epoch = 0
        self._count = 0
        self._young: dict[int, Nested] = {}
        self._old: dict[int, Nested] = {}
        self._kept: dict[int, Nested] = {}  # roots of the old generation: no other may get their id

    def find_old(self, root: Nested, path: tuple[Hashable, ...]) -> Any:
        """Return the leaf at `path` of the old generation, or None."""
        old = self._old.get(id(root))
        return None if old is None else leaf_at(old, path)

    def keep(self, root: Nested, path: tuple[Hashable, ...], leaf: Any) -> None:
        """Put `leaf` at `path`. If the young generation is full, age it first."""
        if self._count >= self.capacity:
            with _ageing:
                if self._count >= self.capacity:
                    self._age()
        if not root:
            self._young[id(root)] = root
        node = root
        for key in path[:-1]:
            branch: Nested | None = node.get(key)
            node = node.setdefault(key, {}) if branch is None else branch
        last = path[-1]
        self._count += last not in node
        node[last] = leaf

    def _age(self) -> None:
        """Make the young generation the old one. The roots stay the same objects, because states hold them."""
        roots = list(self._young.values())  # another thread may add one now
        self._old = {id(root): dict(root) for root in roots}
        self._kept = {id(root): root for root in roots}
        for root in roots:
            root.clear()
        self._count = 0

    def forget(self, root: Nested) -> None:
        """Drop a root whose semantics no longer exist.

        The garbage collector may call this during any allocation, so it takes no lock. As elsewhere, the count of
        concurrent threads may be wrong by one leaf each until the generation ends.
        """
        self._old.pop(id(root), None)
        self._kept.pop(id(root), None)
        if self._young.pop(id(root), None) is not None:
            self._count -= sum(1 for _ in leaves(root))

    def clear(self) -> None:
        """Drop all plans."""
        with _ageing:
            self._age()
            self._old = {}
            self._kept = {}
            self.epoch += 1

    def __len__(self) -> int:
        """Return the number of plans of the young generation. The old one has at most `capacity` more."""
        return self._count


PLANS = PlanTree(4096)
RECIPES: TwoGenerations[Any] = TwoGenerations(512)
KERNELS: TwoGenerations[Any] = TwoGenerations(1024)
