"""Bounded caches that cost nothing on a hit: two generations, and a dictionary lookup.

A new entry goes to the young generation. When that is full it becomes the old one, and what was old is dropped; an
entry found among the old is young again. No order is kept and no hit is written down, so looking up needs no lock.
Eviction may only ever cause a miss: two threads may each make an entry, one of which is kept. Threads that are here at
once may pass a bound by an entry each.

Plans are found by walking nested dictionaries, ``plans[op][signature][signature]``, which hash by identity: half the
time of a tuple key. They are counted over all ops together, since a plan holds a kernel's launch arguments.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar, cast

V = TypeVar("V")

_ageing = threading.RLock()
"""Held while a generation ends. What is dropped then may run finalizers, and they may come here again."""


def _renew_lock() -> None:
    """In a forked child, the thread that holds the lock may not be there."""
    global _ageing
    _ageing = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


class TwoGenerations(Generic[V]):
    """A dictionary of at most ``2 * capacity`` entries; `dropped` is told of each that is forgotten.

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
        """Keep `value` under `key`, unless another thread was first; return what is kept."""
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
                if self._old.get(key) is not value:  # it was not young again
                    self._dropped(value)

    def clear(self) -> None:
        """Forget everything."""
        with _ageing:
            self._age()
            self._age()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


Nested = dict[Any, Any]


def leaves(tree: Nested) -> Iterator[Any]:
    """Yield what nested dictionaries hold, branch by branch.

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


class PlanTree:
    """Nested dictionaries with a common bound on their leaves; the roots belong to the semantics in force."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._count = 0
        self._young: dict[int, Nested] = {}
        self._old: dict[int, Nested] = {}
        self._kept: dict[int, Nested] = {}  # the roots of the old generation, so that no other gets their identity

    def find_old(self, root: Nested, path: tuple[Hashable, ...]) -> Any:
        """Return the leaf at `path` of the old generation, or None."""
        found: Any = self._old.get(id(root))
        for key in path:
            if found is None:
                return None
            found = found.get(key)
        return found

    def keep(self, root: Nested, path: tuple[Hashable, ...], leaf: Any) -> None:
        """Put `leaf` at `path`, ageing everything first where the young generation is full."""
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
        """Let the young generation be the old one. The roots stay the same objects: contexts hold them."""
        roots = list(self._young.values())  # another thread may add one meanwhile
        self._old = {id(root): dict(root) for root in roots}
        self._kept = {id(root): root for root in roots}
        for root in roots:
            root.clear()
        self._count = 0

    def forget(self, root: Nested) -> None:
        """Let go of a root that nobody will ask for again.

        The collector may call this wherever something is made, so it takes no lock. Counting is then as exact as
        elsewhere: threads at once may be wrong by a leaf each until the generation ends.
        """
        self._old.pop(id(root), None)
        self._kept.pop(id(root), None)
        if self._young.pop(id(root), None) is not None:
            self._count -= sum(1 for _ in leaves(root))

    def clear(self) -> None:
        """Forget every plan."""
        with _ageing:
            self._age()
            self._old = {}
            self._kept = {}

    def __len__(self) -> int:
        """The plans of the young generation; the old one has at most `capacity` more."""
        return self._count


PLANS = PlanTree(4096)
RECIPES: TwoGenerations[Any] = TwoGenerations(512)
KERNELS: TwoGenerations[Any] = TwoGenerations(1024)
