"""Which values go in which launch of a program.

1. **Elementwise.** All stores of one shape are one launch. What they read of each other is computed in it.
2. **Reductions.** A reduction is a launch, with all elementwise operations before it. Its result is stored, and later
   launches load it.
3. **Families.** On a GPU, reductions of one shape along the same axes are a family. They are one launch, together with
   the stores of that shape or of the shape of their results that depend on them. If the launch goes back over rows, a
   program holds them: it reads the elements once, and goes over them as often as needed. The conditions are

   - geometry: all reductions combine elements in the same order, and rows that are held are short enough;
   - positions: a search is a member only if no member's order matters, and the launch does not go back;
   - each element depends on the results of its own row alone;
   - nothing between: a value of another launch that depends on the family, and on which a member depends, keeps that
     member out of the family.

4. **Beside.** The launch of a family also makes the stores of the shape of its elements that read an array which it
   reads, as the result of a function beside the gradient of its bias. So the array is read once.

5. **Walked rows.** A family of sums of columns is made by the launch of a family with held rows that reads an array
   which it reads, as the gradients of a scale and a shift beside that of a norm.
   `tilearray.geometry.reduction.walking` says where that is faster.

Launches come in an order in which each finds in memory what it loads. Two families that each need the other one are
taken apart into single reductions. A family that does not meet a condition is taken apart into families of reductions
that do not need each other, as means and then squares of distances from them; and these, if need be, into single ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilearray.arrays.fusion.launches import Leaf, Store
from tilearray.arrays.fusion.values import Load, Use, Value
from tilearray.engine.reducing import Reducing
from tilearray.engine.stages import can_be_held, has_an_order
from tilearray.geometry.shapes import reduced_shape
from tilearray.geometry.walk import Walk

Ints = tuple[int, ...]
Values = frozenset[Value]


class NotHeldError(Exception):
    """An element depends on the result of another row."""


@dataclass(eq=False)
class Unit:
    """Values that are stored apart in one launch, and stores that belong to it.

    Attributes
    ----------
    members : list of Value
        One value, or a family of reductions.
    stores : list of Store
        With walks and strides along the axes of the loop.
    given : list of (shape, Store)
        The same stores as they were given.
    beside : list of Store
        Stores of elements that read the same arrays, and do not depend on it.
    needs : set of Value
        The values of other units that it depends on.
    goes_back : bool
        Whether the launch goes over rows again, after a reduction of them.
    """

    members: list[Value]
    stores: list[Store] = field(default_factory=list[Store])
    given: list[tuple[Ints, Store]] = field(default_factory=list[tuple[Ints, Store]])
    beside: list[Store] = field(default_factory=list[Store])
    needs: set[Value] = field(default_factory=set[Value])
    goes_back: bool = False

    @property
    def reducing(self) -> Reducing:
        """The axes and the shape of a family."""
        found = self.members[0].reducing
        assert found is not None
        return found


class Splitter:
    """Finds the units of a program.

    Parameters
    ----------
    apart : sequence of Value
        All values that are stored apart, operands first.
    """

    def __init__(self, apart: Sequence[Value]) -> None:
        self._apart = frozenset(apart)
        self.direct: dict[Value, Values] = {}
        """For each value the ones apart that it uses, through elementwise operations alone."""
        self._reach: dict[Value, Values] = {}
        self._order = list(apart)
        self._families: list[Unit] = []
        for value in apart:
            direct = self.uses_of(value)
            self._reach[value] = direct.union(*[self._reach[used] for used in direct])

    def uses_of(self, value: Value) -> Values:
        """Return the values apart that a value uses through elementwise operations alone."""
        found = self.direct.get(value)
        if found is not None:
            return found
        waiting, seen, uses = [value], {value}, set[Value]()
        while waiting:
            for read in waiting.pop().operands:
                if not isinstance(read, Use) or read.value in seen:
                    continue
                seen.add(read.value)
                if read.value in self._apart:
                    uses.add(read.value)
                else:
                    waiting.append(read.value)
        return self.direct.setdefault(value, frozenset(uses))

    def _needs_of(self, value: Value) -> Values:
        """Return all values apart that a stored value depends on."""
        if value in self._apart:
            return self._reach[value] | {value}
        direct = self.uses_of(value)
        return direct.union(*[self._reach[used] for used in direct])

    def _is_between(self, needs: Iterable[Value], members: set[Value]) -> bool:
        """Whether something that is needed depends on a family, but does not belong to it."""
        return any(needed not in members and self._reach[needed] & members for needed in needs)

    def families(self, stores: dict[Ints, list[Store]]) -> list[Unit]:
        """Return the families with their stores, which are taken from `stores`."""
        found: dict[tuple[Ints, Ints], list[Value]] = {}
        for value in self._order:
            if value.reducing is not None and (can_be_held(value.expression) or value.reducing.axes.ordered):
                found.setdefault((value.reducing.shape, value.reducing.axes.axes), []).append(value)
        units: list[Unit] = []
        for values in found.values():
            unit = self._family(values, stores)
            if _searches(unit) and (unit.goes_back or any(has_an_order(value.expression) for value in values)):
                self._give_back(unit, stores)
                values = [value for value in values if can_be_held(value.expression)]
                unit = self._family(values, stores) if values else None
            if unit is not None:
                units.append(unit)
        for unit in units:
            self._take_beside(unit, stores)
        self._families = units
        return list(units)

    def _family(self, values: Sequence[Value], stores: Mapping[Ints, list[Store]]) -> Unit:
        """Return the family of some reductions with its stores."""
        unit = Unit([])
        for value in values:
            if not self._is_between(self._reach[value], set(unit.members)):
                unit.members.append(value)
        self._take_stores(unit, stores)
        unit.goes_back = self._goes_back(unit)
        return unit

    def _goes_back(self, unit: Unit) -> bool:
        """Whether a launch goes over rows again, after a reduction of them."""
        members = set(unit.members)
        again = any(self._reach[value] & members for value in unit.members)
        return again or any(shape == unit.reducing.shape for shape, _ in unit.given)

    def _take_stores(self, unit: Unit, stores: Mapping[Ints, list[Store]], *, of_results: bool = False) -> None:
        members, reducing = set(unit.members), unit.reducing
        shapes = [_result_shape(reducing, keeps) for keeps in (True, False)]
        for shape in dict.fromkeys(shapes if of_results else (reducing.shape, *shapes)):
            for store in list(stores.get(shape, ())):
                needs = self._needs_of(store.value)
                if needs & members and not self._is_between(needs, members):
                    stores[shape].remove(store)
                    unit.stores.append(_along_rows(store, shape, reducing))
                    unit.given.append((shape, store))

    def _take_beside(self, unit: Unit, stores: Mapping[Ints, list[Store]]) -> None:
        """Take the stores of the shape of a family's elements that read an array which it reads."""
        members, shape, read = set(unit.members), unit.reducing.shape, self._loads_of_unit(unit)
        for store in list(stores.get(shape, ())):
            if read & self._loads_of(store.value) and not self._is_between(self._needs_of(store.value), members):
                stores[shape].remove(store)
                unit.beside.append(store)

    def _loads_of_unit(self, unit: Unit) -> set[Load]:
        values = [*unit.members, *[store.value for store in unit.stores]]
        return set[Load]().union(*[self._loads_of(value) for value in values])

    def _loads_of(self, value: Value) -> set[Load]:
        """Return the loads of as many elements as a value has that it computes with, through elementwise operations."""
        waiting, seen, found = [value], {value}, set[Load]()
        while waiting:
            for read in waiting.pop().operands:
                if isinstance(read, Load) and read.shape == value.space:
                    found.add(read)
                elif isinstance(read, Use) and read.value not in seen and read.value not in self._apart:
                    seen.add(read.value)
                    waiting.append(read.value)
        return found

    def without_beside(self, unit: Unit, stores: Mapping[Ints, list[Store]]) -> None:
        """Give back the stores beside a family."""
        if unit.beside:
            stores[unit.reducing.shape].extend(unit.beside)
            unit.beside = []
            unit.needs = self._needs(unit)

    def in_order(self, families: list[Unit], stores: dict[Ints, list[Store]]) -> list[Unit]:
        """Return all units in an order in which each needs only units before it. Families may be taken apart."""
        held = {value for unit in families for value in unit.members}
        waiting = [*families, *[Unit([value]) for value in self._order if value not in held]]
        for unit in waiting:
            unit.needs = self._needs(unit)
        done: set[Value] = set()
        found: list[Unit] = []
        while waiting:
            ready = next((unit for unit in waiting if unit.needs <= done), None)
            if ready is None and any(unit.beside for unit in waiting):
                self.without_beside(next(unit for unit in waiting if unit.beside), stores)
                continue
            if ready is None:  # families that need each other
                apart = next(unit for unit in waiting if len(unit.members) > 1 or unit.stores)
                waiting.remove(apart)
                waiting += self.taken_apart(apart, stores)
                continue
            waiting.remove(ready)
            found.append(ready)
            done.update(ready.members)
        return found

    def taken_apart(self, unit: Unit, stores: dict[Ints, list[Store]]) -> list[Unit]:
        """Return the members of a family as units, and give its stores back."""
        self._give_back(unit, stores)
        self.without_beside(unit, stores)
        units = [Unit([value]) for value in unit.members]
        for each in units:
            each.needs = self._needs(each)
        return units

    def _give_back(self, unit: Unit, stores: Mapping[Ints, list[Store]]) -> None:
        for shape, store in unit.given:
            stores[shape].append(store)

    def levels(self, units: Sequence[Unit], stores: Mapping[Ints, list[Store]]) -> Iterator[Unit]:
        """Yield the members of a family that was taken apart, as families whose members do not need each other.

        A member comes as late as the others allow. So the last family has all that only stores need, and takes these
        stores of results.
        """
        members = [value for unit in units for value in unit.members]
        steps = dict.fromkeys(members, 0)  # from a member to the last one that needs it
        for value in reversed(members):
            for used in self._reach[value] & steps.keys():
                steps[used] = max(steps[used], steps[value] + 1)
        found = [Unit([value for value in members if steps[value] == each]) for each in sorted({*steps.values()})]
        found.reverse()
        self._families = [unit for unit in self._families if unit.members[0] not in steps] + found
        for unit in found:
            self._take_stores(unit, stores, of_results=True)
            yield unit

    def families_beside(self, unit: Unit, waiting: Sequence[Unit]) -> list[Unit]:
        """Return the families of sums that a launch which goes over rows may make as well.

        They have the shape of its elements, read an array that it reads, and need no other launch that waits.
        """
        if not unit.goes_back:
            return []
        read = self._loads_of_unit(unit)
        found: list[Unit] = []
        for each in waiting:
            if each not in self._families or each.goes_back or each.stores or each.beside:
                continue
            others = {value for other in waiting if other is not each for value in other.members}
            is_alike = each.reducing.shape == unit.reducing.shape
            if is_alike and read & self._loads_of_unit(each) and not each.needs & others:
                found.append(each)
        return found

    def used_outside(self, unit: Unit, stores: Mapping[Ints, list[Store]]) -> set[Value]:
        """Return the members of a family that other launches load. `stores` has the stores that no family took."""
        outside = [value for value in self._order if value not in unit.members]
        stored = [store.value for each in stores.values() for store in each]
        others = [other for other in self._families if other.members[0] not in unit.members]
        stored += [store.value for other in others for store in (*other.stores, *other.beside)]
        found = set(stored).union(*[self.uses_of(value) for value in (*outside, *stored)])
        return found & set(unit.members)

    def _needs(self, unit: Unit) -> set[Value]:
        values = [*unit.members, *[store.value for store in (*unit.stores, *unit.beside)]]
        return set[Value]().union(*[self._needs_of(value) for value in values]) - set(unit.members)


def _searches(unit: Unit) -> bool:
    """Whether a member of a family counts positions."""
    return any(not can_be_held(value.expression) for value in unit.members)


def _result_shape(reducing: Reducing, keeps: bool) -> Ints:
    return reduced_shape(reducing.shape, reducing.axes.axes, keeps)


def _along_rows(store: Store, shape: Ints, reducing: Reducing) -> Store:
    """Return a store of the shape of results as one of the loop over rows, which repeats it along reduced axes."""
    if shape == reducing.shape:
        return store
    value, walk, target = store
    places = kept_places(reducing, len(shape) == len(reducing.shape))
    still = (0,) * len(walk.start)
    steps = tuple([still if place is None else walk.steps[place] for place in places])
    strides = tuple([0 if place is None else target.strides[place] for place in places])
    return Store(value, Walk(walk.start, steps), target._replace(strides=strides))


def kept_places(reducing: Reducing, keepdims: bool) -> list[int | None]:
    """Return for each axis of the loop its place among the axes of the result; None for reduced axes."""
    found: list[int | None] = []
    place = 0
    for axis in range(len(reducing.shape)):
        is_reduced = axis in reducing.axes.axes
        found.append(None if is_reduced else place)
        place += not is_reduced or keepdims
    return found


def row_walk(value: Value) -> Walk:
    """Return the walk over the result of a reduction of a loop over its rows: each row visits its own result."""
    reducing = value.reducing
    assert reducing is not None
    rank = len(value.shape)
    places = kept_places(reducing, reducing.axes.keepdims)
    steps = [tuple([int(place == axis) for axis in range(rank)]) for place in places]
    return Walk((0,) * rank, tuple(steps))


def check_row(value: Value, walk: Walk) -> None:
    """Raise NotHeldError if a walk of a loop over rows does not visit the result of the loop's own row."""
    assert value.reducing is not None
    own = row_walk(value)
    moves = [size != 1 for size in value.reducing.shape]
    same = all(step == mine for step, mine, moved in zip(walk.steps, own.steps, moves, strict=True) if moved)
    if any(walk.start) or not same:
        raise NotHeldError


def store_of_rows(value: Value, home: Leaf) -> Store:
    """Return the store of a reduction's results in a loop over its rows."""
    assert value.reducing is not None
    places = kept_places(value.reducing, value.reducing.axes.keepdims)
    strides = tuple([0 if place is None else home.strides[place] for place in places])
    return Store(value, row_walk(value), home._replace(strides=strides))
