"""The text of a fold: the first element of each run of equal places takes the op of all its elements, one by one.

Or each element of the target finds its run among sorted words. Some elements are read at once, and then taken in
order: each value waits for the one before it, and not for memory. If runs are long, no place and no value waits for the
places before: elements beyond the end of a run are read as well. If the elements of the target are few, each of them
finds both ends of its run among sorted places; while some values are taken, the next ones are on their way.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.schedules.fold import LONG, Fold
from tilearray_cuda.kernels.storage import STORAGE


def folded(schedule: Fold) -> list[str]:
    """Return the lines of a kernel after its setup."""
    number, node = schedule.node()
    if node[0] == "fold_words":
        return _folded_words(schedule, number, node)
    if node[0] == "fold_places":
        return _folded_places(schedule, number, node)
    _, held, _, places, _ = node
    (arm,) = schedule.arms()
    earlier = arm.branch._replace(row="(i0 - 1)", mask="(inside & (i0 > 0))", tag="_earlier")
    loads, values = computed(schedule, arm.branch._replace(mask="inside"), [places])
    before, others = computed(schedule, earlier, [places])
    (place,), (other,) = values[places][0], others[places][0]
    reads, known = computed(schedule, arm.branch, [held], values)
    value, dtype = known[held]
    names = tuple([f"held{part}" for part in range(len(value))])
    kept = {number: (names, dtype), places: values[places]}
    return [
        *loads,
        *before,
        f"first = inside & ((i0 == 0) | ({other} != {place}))",
        *reads,
        *[f"{name} = {one}" for name, one in zip(names, value, strict=True)],
        "row = i0",
        "walks = first",
        "while tl.max(walks.to(tl.int32), 0) > 0:",
        *indented(_steps(schedule, node, (place, *names))),
        *stored(schedule, arm.branch, kept),
    ]


def _folded_words(schedule: Fold, number: int, node: Any) -> list[str]:
    """Return the lines of a kernel whose elements walk their runs of sorted words."""
    spec = schedule.spec
    _, held, result, position, words, size, at_once = node
    (arm,) = schedule.arms()
    branch = arm.branch._replace(mask="inside")
    loads, values = computed(schedule, branch, [held, size])
    (value, dtype), ((count,), _) = values[held], values[size]
    memory, register = spec.operands[spec.outputs + words].name, STORAGE[dtype].register
    names = tuple([f"held{part}" for part in range(len(value))])
    reads: list[str] = []
    takes: list[str] = []
    given = [
        other
        for other, (kind, *_) in enumerate(spec.nodes)
        if kind in ("input", "gather") and other not in (held, size)
    ]
    rest = [other for other, (kind, *_) in enumerate(spec.nodes) if kind in ("cast", "call")]
    walks = "walks"
    for step in range(at_once):
        reads += [
            f"inside{step} = walks & (row + {step} < {count})",
            f"word{step} = tl.load({memory} + (row + {step}), mask=inside{step}, other=0)",
            f"walks{step} = {walks} & inside{step} & ((word{step} >> 32) == i0.to(tl.uint64))",
        ]
        walks = f"walks{step}"
        branch = arm.branch._replace(mask=f"inside{step}", tag=f"_step{step}")
        place = {position: ((f"word{step}.to(tl.uint32).to(tl.int64)",), "int64")}
        text, known = computed(schedule, branch, given, place)
        reads += text
        text, known = computed(schedule, branch, rest, {**known, held: (names, dtype)})
        takes += text
        for name, new in zip(names, known[result][0], strict=True):
            takes.append(f"{name} = tl.where({walks}, ({new}).to({register}), {name})")
    return [
        *loads,
        *[f"{name} = {one}" for name, one in zip(names, value, strict=True)],
        f"row = search_left({memory}, {count}, i0.to(tl.uint64) << 32, i0.to(tl.int64) * 0)",
        f"walks = inside & (row < {count})",
        "while tl.max(walks.to(tl.int32), 0) > 0:",
        *indented([*reads, *takes, f"row += {at_once}", f"walks = {walks}"]),
        *stored(schedule, arm.branch._replace(mask="inside"), {number: (names, dtype)}),
    ]


def _folded_places(schedule: Fold, number: int, node: Any) -> list[str]:
    """Return the lines of a kernel whose programs each walk the run of one element among sorted places.

    A block of values is taken while the next one is read. The last values of a run are less than a block.
    """
    spec = schedule.spec
    _, held, result, position, places, size, ahead = node
    (arm,) = schedule.arms()
    branch = arm.branch._replace(mask="inside")
    loads, values = computed(schedule, branch, [held, size])
    (value, dtype), ((count,), _) = values[held], values[size]
    register = STORAGE[dtype].register
    names = tuple([f"held{part}" for part in range(len(value))])
    kinds = [(other, kind) for other, (kind, *_) in enumerate(spec.nodes) if other not in (held, size)]
    given = [other for other, kind in kinds if kind == "gather"]
    numbers, known = computed(schedule, branch, [other for other, kind in kinds if kind == "input"])
    rest = [other for other, kind in kinds if kind in ("cast", "call")]

    def read(place: str, mask: str | None, tag: str) -> tuple[list[str], Values]:
        """The lines that read the values at a place, and these."""
        at: Values = {position: ((place,), "int64")}
        lines, found = computed(schedule, branch._replace(mask=mask, tag=tag), given, at)
        return lines, {other: found[other] for other in given}

    def taken(found: Values, tag: str, mask: str = "") -> list[str]:
        """The lines that take values, where a mask is true."""
        known_now = {**known, **found, held: (names, dtype)}
        lines, computed_now = computed(schedule, branch._replace(tag=tag), rest, known_now)
        for name, new in zip(names, computed_now[result][0], strict=True):
            new = f"({new}).to({register})"
            lines.append(f"{name} = tl.where({mask}, {new}, {name})" if mask else f"{name} = {new}")
        return lines

    def block(start: str, mask: str | None, tag: str) -> tuple[list[str], list[str]]:
        """The lines that read as many values as are read ahead, and those that take them."""
        reads: list[str] = []
        takes: list[str] = []
        for step in range(ahead):
            lines, found = read(f"({start} + {step})", mask, f"_{tag}{step}")
            reads += lines
            takes += taken(found, f"_{tag}{step}")
        return reads, takes

    (first, _), (odd, takes_odd), (even, takes_even) = (
        block("row", f"(left >= {2 * ahead})", "even"),
        block("odd", None, "odd"),
        block("even", None, "even"),
    )
    last: list[str] = []
    takes_last: list[str] = []
    for step in range(LONG):
        lines, found = read(f"(row + {step})", f"(left > {step})", f"_last{step}")
        last += lines
        takes_last += taken(found, f"_last{step}", f"left > {step}")
    memory, program = spec.operands[spec.outputs + places].name, "tl.program_id(0).to(tl.int64)"
    return [
        *loads,
        *numbers,
        *[f"{name} = {one}" for name, one in zip(names, value, strict=True)],
        f"row = search_left({memory}, {count}, {program}, tl.full([], 0, tl.int64))",
        f"left = search_right({memory}, {count}, {program}, tl.full([], 0, tl.int64)) - row",
        *first,
        f"while left >= {2 * ahead}:",
        *indented(
            [
                f"odd = row + {ahead}",
                *odd,
                *takes_even,
                f"even = tl.minimum(row + {2 * ahead}, {count} - {ahead})",
                *even,
                *takes_odd,
                f"row += {2 * ahead}",
                f"left -= {2 * ahead}",
            ]
        ),
        "while left > 0:",
        *indented([*last, *takes_last, f"row += {LONG}", f"left -= {LONG}"]),
        *stored(schedule, branch, {number: (names, dtype)}),
    ]


def _steps(schedule: Fold, node: Any, names: Value) -> list[str]:
    """Return the lines that read some elements of each run, and take them one after the other."""
    spec, (place, *kept) = schedule.spec, names
    _, held, result, places, at_once = node
    (arm,) = schedule.arms()
    inputs = [number for number, node in enumerate(spec.nodes) if node[0] == "input" and number != places]
    rest = [number for number, node in enumerate(spec.nodes) if node[0] in ("cast", "call")]
    dtype = spec.operands[spec.outputs + spec.nodes[held][1]].dtype
    register = STORAGE[dtype].register
    reads: list[str] = []
    takes: list[str] = []
    walks = "walks"
    is_long = at_once >= LONG
    for step in range(at_once):
        inside = arm.branch._replace(row=f"row{step}", mask=f"inside{step}", tag=f"_step{step}")
        text, found = computed(schedule, inside, [places])
        reach = "walks" if is_long else walks
        reads += [f"row{step} = row + {step}", f"inside{step} = {reach} & (row < n0 - {step})", *text]
        reads.append(f"walks{step} = {walks} & inside{step} & ({found[places][0][0]} == {place})")
        walks = f"walks{step}"
        branch = inside._replace(mask=walks)
        text, values = computed(schedule, inside if is_long else branch, inputs)
        reads += text
        text, values = computed(schedule, branch, rest, {**values, held: (tuple(kept), dtype)})
        takes += text
        for name, new in zip(kept, values[result][0], strict=True):
            takes.append(f"{name} = tl.where({walks}, ({new}).to({register}), {name})")
    return [*reads, *takes, f"row += {at_once}", f"walks = {walks}"]
