"""Calls of a fused function that run together: one launch for all calls that compute the same in loops of one class.

A list of parameters has thousands of arrays, most of them small, and a launch for each would take longer than the work.
The launches of all calls are sorted by their turn within a call, and within a turn by expression, loop class and
alignment. Those that agree are one launch over a list, whatever the shapes; each other one runs by itself.

Calls may run together only if none writes what another one reads or writes. Otherwise, and where a number differs
between calls, they run one after the other, as they do on the host. The bits are the same both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tilearray.arrays.array import Array
from tilearray.arrays.fusion.containers import member_of
from tilearray.arrays.fusion.launches import Fixed, Launch
from tilearray.arrays.fusion.numbers import ChangedNumber
from tilearray.engine.backend import LaunchList
from tilearray.engine.context import RECORDINGS, STATE, State
from tilearray.engine.devices import Device
from tilearray.engine.plan import kernel_of, list_launch_of
from tilearray.engine.signature import ArrayBase
from tilearray.engine.watch import WATCH
from tilearray.geometry.loop import Loop
from tilearray.promotion.scalars import classify

if TYPE_CHECKING:
    from tilearray.arrays.fusion.fuse import CallPlan, Fused

_NUMBERS = frozenset((int, float, complex))
_CONSTANTS = frozenset((bool, str, type(None)))
_ALONE = cast("Together", object())
"""Stands for calls that must run one after the other."""


def run_together(fused: Fused, count: int, lists: Sequence[Any]) -> list[Any] | None:
    """Run the calls of a list, and return their results; None if they must run one after the other."""
    if not count or RECORDINGS:
        return None
    changes, state, given = State.changes, STATE.get(), _given(count, lists)
    if given is None or given.device.backend.lists is None:
        return None
    key = (changes, state.semantics.key, given.key)
    together = fused.together.get(key) or fused.together.put(key, _planned(fused, count, lists, given))
    return None if together is _ALONE else together.run(state.stream, list(zip(*given.columns)))


class _Given(NamedTuple):
    """The arguments of several calls.

    Attributes
    ----------
    key : tuple
        All that decides their plans.
    columns : list
        For each parameter that takes arrays or numbers, those of the calls.
    device : Device
        That of the first array.
    vary : bool
        Whether a parameter has a list of numbers.
    """

    key: tuple[Any, ...]
    columns: list[Sequence[Any]]
    device: Device
    vary: bool


def _given(count: int, lists: Sequence[Any]) -> _Given | None:
    """Return the arguments of all calls; None if one is not an array, a number or a constant, or none is an array."""
    keys: list[Any] = []
    columns: list[Sequence[Any]] = []
    device: Device | None = None
    vary = False
    for each in lists:
        is_list = isinstance(each, list | tuple)
        members = cast("Sequence[Any]", each) if is_list else [each] * count
        kinds = {*map(type, members)}
        if kinds == {Array}:
            key: tuple[Any, ...] = tuple([x._signature for x in members])
            device = device or key[0].device
        elif kinds <= _NUMBERS:
            key = tuple([classify(x) for x in (members if is_list else members[:1])])
            vary = vary or is_list
        elif not is_list and kinds <= _CONSTANTS:
            keys.append((type(each), each))
            continue
        else:
            return None
        keys.append((is_list, key))
        columns.append(members)
    return None if device is None else _Given(tuple(keys), columns, device, vary)


def _planned(fused: Fused, count: int, lists: Sequence[Any], given: _Given) -> Together:
    """Plan all calls. Errors of a call come here, before anything runs."""
    plans: list[CallPlan] = []
    for place in range(count):
        plan = fused.plan_of(*[member_of(each, place) for each in lists])
        if plan is None:
            return _ALONE
        plans.append(plan)
    return Together(plans, given.device, given.vary)


class Together:
    """The plan of several calls.

    Parameters
    ----------
    plans : list of CallPlan
        The plan of each call.
    device : Device
    vary : bool
        Whether a number is different in each call.
    """

    def __init__(self, plans: Sequence[CallPlan], device: Device, vary: bool) -> None:
        self._plans = plans
        self._outside = [plan.program.outside for plan in plans]
        self._spans = _Spans(plans)
        self._separate: list[int] = []  # the last addresses that were found to be separate
        groups: dict[Any, list[_Member]] = {}
        for call, plan in enumerate(plans):
            for turn, launch in enumerate(plan.program.launches):
                expression, loop, aligned, _ = launch.work
                kind: Any = (expression, device.backend.loop_class(loop), aligned) if type(loop) is Loop else call
                groups.setdefault((turn, kind), []).append(_Member(call, launch))
        self._groups = [_Group(groups[key], key[1], device, vary) for key in sorted(groups, key=lambda key: key[0])]

    def run(self, stream: Any, arguments: Sequence[Sequence[Any]]) -> list[Any] | None:
        """Run all calls, and return their results; None, without a launch, if they must run one after the other."""
        plans = self._plans
        arrays = [[given[place] for place in plan.positions] for plan, given in zip(plans, arguments)]
        for plan, mine in zip(plans, arrays):
            plan.program.check_targets(mine)
        known = zip(arrays, self._outside)
        addresses = [x._buffer.pointer + x._offset for mine, others in known for x in (*mine, *others)]
        if addresses != self._separate:
            if self._spans.clash(addresses):
                return None
            self._separate = addresses
        try:
            numbers = [group.numbers(arguments) for group in self._groups]
        except ChangedNumber:
            return None
        memory = [plan.program.memory(stream, mine) for plan, mine in zip(plans, arrays)]
        for group, values in zip(self._groups, numbers):
            group.launch(stream, memory, values)
        return [plan.program.finish(given, mine) for plan, given, mine in zip(plans, arguments, memory)]


class _Member(NamedTuple):
    """A launch of a call."""

    call: int
    launch: Launch


class _Group:
    """Launches that may be one.

    Parameters
    ----------
    members : list of _Member
    kind : tuple
        Their expression, loop class and alignment, if there are several.
    device : Device
    vary : bool
        Whether a number is different in each call.
    """

    def __init__(self, members: Sequence[_Member], kind: Any, device: Device, vary: bool) -> None:
        self._members = members
        self._arrays = [
            [(place, offset) for place, offset, take in launch.operands if take is None] for _, launch in members
        ]
        self._loops = [cast(Loop, launch.work.loop) for _, launch in members]
        self._kind, self._device = kind, device
        self._launch: LaunchList | None = None
        variants = {(launch.work.numbers, call if vary else None): (call, launch) for call, launch in members}
        self._numbers = [_Member(*each) for each in variants.values()]

    def numbers(self, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the numbers of a launch of all members, or of each member if they differ."""
        found = [_numbers(each, arguments) for each in self._numbers]
        if len(self._members) == 1 or not all(_same(each, found[0]) for each in found[1:]):
            return [_numbers(each, arguments) for each in self._members]
        if self._launch is None:
            expression, loop_class, aligned = self._kind
            self._launch = list_launch_of(expression, loop_class, aligned, self._loops, self._device)
            if WATCH.lists is not None:
                kernel = kernel_of(expression, self._loops[0], aligned, self._device)
                self._launch = WATCH.lists(expression, self._loops, kernel, self._device, self._launch)
        return found[:1]

    def launch(self, stream: Any, memory: Sequence[list[ArrayBase]], numbers: list[list[Any]]) -> None:
        """Launch all members at once, or one after the other if their numbers differ, or a graph is captured."""
        if self._launch is not None and len(numbers) == 1:
            buffers: list[Any] = []
            addresses: list[int] = []
            for (call, _), places in zip(self._members, self._arrays):
                mine = memory[call]
                for place, offset in places:
                    x = mine[place]
                    buffer = x._buffer
                    buffers.append(buffer)
                    addresses.append(buffer.pointer + x._offset + offset)
            if self._launch(stream, buffers, addresses, numbers[0]):
                return
        for position, (call, launch) in enumerate(self._members):
            _run(launch, stream, memory[call], numbers[min(position, len(numbers) - 1)])


def _numbers(member: _Member, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the numbers of a launch."""
    given = arguments[member.call]
    return [take(given) for _, _, take in member.launch.operands if take is not None]


def _same(first: list[Any], second: list[Any]) -> bool:
    """Whether numbers are the same, with the sign of zero."""
    return [*map(repr, first)] == [*map(repr, second)]


def _run(launch: Launch, stream: Any, memory: list[ArrayBase], numbers: list[Any]) -> None:
    """Run one launch. Arrays that it makes replace those in memory."""
    waiting = iter(numbers)
    parts: list[Any] = []
    for place, offset, take in launch.operands:
        number = None if take is None else next(waiting)
        if launch.made is not None and (isinstance(take, Fixed) or (take is None and place in launch.made)):
            continue
        parts += (memory[place]._buffer, memory[place]._offset + offset) if take is None else (number, 0)
    found = launch.launch(stream, *parts)
    if launch.made:
        for place, array in zip(launch.made, found if len(launch.made) > 1 else [found], strict=True):
            memory[place] = array


class _Spans:
    """The bytes that calls read and write, from the addresses of their arrays."""

    def __init__(self, plans: Sequence[CallPlan]) -> None:
        rows: list[tuple[int, int, bool]] = []
        for plan in plans:
            program = plan.program
            signatures = [*plan.signatures, *[x._signature for x in program.outside]]
            for place, signature in enumerate(signatures):
                low, high = signature.layout.low, signature.layout.high + 1
                size = signature.itemsize if signature.layout.size else 0
                rows.append((low * size, high * size, place in program.written))
        self._lows, self._highs, written = [np.array(column, np.int64) for column in zip(*rows)]
        some = self._lows < self._highs
        self._written, self._read = some & (written > 0), some & (written == 0)

    def clash(self, addresses: list[int]) -> bool:
        """Whether an array that is written shares memory with another one."""
        at = np.array(addresses, np.int64)
        starts, ends = at + self._lows, at + self._highs
        order = np.argsort(starts[self._written])
        first, last = starts[self._written][order], ends[self._written][order]
        if not first.size:
            return False
        if (first[1:] < last[:-1]).any():
            return True
        before = np.searchsorted(first, ends[self._read]) - 1  # the last target that begins before the end
        return bool(((before >= 0) & (last[before] > starts[self._read])).any())
