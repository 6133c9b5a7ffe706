"""Lists: one launch of an elementwise kernel over the arrays of many calls, as an optimizer step over all parameters.

The calls are the members of a list. They share an expression and the class of their loops, so every schedule serves
them: the kernel is that of one member, after lines that find the member of a program and read its arguments from
tables in device memory. Numbers are the same for all members, and stay arguments.

=============  ==========================================================================
table          has
=============  ==========================================================================
``members``    for each program the member that it belongs to
``facts``      for each member its first program, its extents, and its strides
``addresses``  for each member the address of each array
=============  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.source import Argument, Source, arguments_of, name_of, written
from tilearray_cuda.kernels.storage import ITEMSIZE

TABLES = (Argument("members", "*i32", 16), Argument("facts", "*i64", 16), Argument("addresses", "*i64", 16))

_TYPES = {"fp16": "tl.float16", "bf16": "tl.bfloat16", "fp32": "tl.float32", "fp64": "tl.float64"}
_TYPES |= {f"i{bits}": f"tl.int{bits}" for bits in (8, 16, 32, 64)}
_TYPES |= {f"u{bits}": f"tl.uint{bits}" for bits in (8, 16, 32, 64)}


def source_of_list(schedule: Schedule) -> Source:
    """Return the Triton source of a kernel over a list. The schedule is one for lists."""
    arrays, numbers, facts = _kinds(schedule)
    return written(
        schedule,
        f"{name_of(schedule)}_of_list",
        (*TABLES, *numbers),
        [*_member(arrays, facts), *schedule.setup()],
    )


def _kinds(schedule: Schedule) -> tuple[list[Argument], list[Argument], list[Argument]]:
    """Return the arguments of a member: arrays, numbers, and what its loop gives."""
    names = {operand.name for operand in schedule.spec.arrays}
    arguments = arguments_of(schedule)
    operands = len(arguments) - _count_of_facts(schedule)
    arrays = [argument for argument in arguments[:operands] if argument.name in names]
    numbers = [argument for argument in arguments[:operands] if argument.name not in names]
    return arrays, numbers, list(arguments[operands:])


def _count_of_facts(schedule: Schedule) -> int:
    return schedule.spec.rank + len(schedule.open_strides())


def _member(arrays: list[Argument], facts: list[Argument]) -> list[str]:
    """Return the lines that find the member of a program, and its arguments by their names."""
    lines = [
        "member = tl.load(members + tl.program_id(0)).to(tl.int64)",
        f"facts += member * {len(facts) + 1}",
        f"addresses += member * {len(arrays)}",
        "program_of_member = tl.program_id(0) - tl.load(facts).to(tl.int32)",
    ]
    for place, (name, type_, divisor) in enumerate(facts, 1):
        lines.append(f"{name} = {_multiple(f'tl.load(facts + {place}).to({_TYPES[type_]})', divisor)}")
    for place, (name, type_, divisor) in enumerate(arrays):
        pointer = f"tl.load(addresses + {place}).to(tl.pointer_type({_TYPES[type_[1:]]}))"
        lines.append(f"{name} = {_multiple(pointer, divisor)}")
    return lines


def _multiple(value: str, divisor: int) -> str:
    return f"tl.multiple_of({value}, {divisor})" if divisor > 1 else value


# --- tables ----------------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """What the loops of a list fix.

    Attributes
    ----------
    programs : int
        The number of programs of all members.
    memory : numpy.ndarray
        The bytes of `facts`, and of `members` after them.
    members : int
        The byte at which `members` begin.
    shifts : numpy.ndarray
        For each member and array the bytes from its first element to where the loop begins.
    """

    programs: int
    memory: np.ndarray
    members: int
    shifts: np.ndarray


def tables_of(schedule: Schedule, loops: Sequence[Any]) -> Tables:
    """Return the tables of a list from the loops of its members."""
    count = programs_of(schedule)
    programs = np.array([count(loop) for loop in loops], np.int64)
    strides = [(position, axis) for _, position, axis in schedule.open_strides()]
    facts = np.empty((len(loops), _count_of_facts(schedule) + 1), np.int64)
    facts[:, 0] = np.cumsum(programs) - programs
    facts[:, 1:] = [[*loop.shape, *[loop.strides[position][axis] for position, axis in strides]] for loop in loops]
    members = np.repeat(np.arange(len(loops), dtype=np.int32), programs)
    start = -(-facts.nbytes // 16) * 16
    memory = np.zeros(start + members.nbytes, np.uint8)
    memory[: facts.nbytes] = facts.reshape(-1).view(np.uint8)
    memory[start:] = members.view(np.uint8)
    itemsizes = [ITEMSIZE[operand.dtype] for operand in schedule.spec.arrays]
    shifts = np.array([loop.shifts for loop in loops], np.int64) * itemsizes
    return Tables(int(programs.sum()), memory, start, shifts)


def programs_of(schedule: Schedule) -> Callable[[Any], int]:
    """Return the function of a loop that counts its programs."""
    extents = ", ".join([f"n{axis}" for axis in range(schedule.spec.rank)])
    names: dict[str, Any] = {}
    exec(f"def programs({extents}):\n    return {schedule.programs()}\n", names)
    return lambda loop: names["programs"](*loop.shape)
