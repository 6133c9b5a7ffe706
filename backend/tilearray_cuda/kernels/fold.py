"""The text of a fold: the first element of each run of equal places takes the op of all its elements, one by one.

Or each element of the target finds its run among sorted words. Some elements are read at once, and then taken in
order: each value waits for the one before it, and not for memory. If runs are long, no place and no value waits for the
places before: elements beyond the end of a run are read as well.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.schedules.fold import LONG, Fold
from tilearray_cuda.kernels.storage import STORAGE


def folded(schedule: Fold) -> list[str]:
    """Return the lines of a kernel after its setup."""
    number, node = schedule.node()
    if node[0] == "fold_words":
        return _folded_words(schedule, number, node)
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
