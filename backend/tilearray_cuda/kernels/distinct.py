"""The text of distinct elements: a program makes a set of the lowest bits of its run's keys, and counts or stores it.

The keys of a run differ in these bits only, so the set and the number of the run are its distinct elements. They are
listed part by part, so that neighbouring threads store neighbours; most runs have one part. From a run of too many
elements on, no set is stored.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_bits import BITS
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.distinct import Distinct


def distinct(schedule: Distinct) -> list[str]:
    """Return the lines of a kernel after its setup."""
    kind, _, _, last, overfull = schedule.node[1]
    is_long = [f"is_long = end - start > {last}"]
    if kind == "distinct":
        is_long = [f"last = tl.load({schedule.pointer(last)} + program)", f"is_long = last >= {overfull}"]
    return [
        *is_long,
        "end = tl.where(is_long, start, end)",
        *_read(schedule, "", "start"),
        "set_begun(thread)",
        "set_joined(value)",
        "for further in range(start + SIZE, end, SIZE):",
        *indented([*_read(schedule, "_further", "further"), "set_joined(value_further)"]),
        "counted, earlier = set_counted(thread)",
        "count = tl.max(counted, 0)",
        *(_placed(schedule) if kind == "distinct" else _sized(overfull)),
    ]


def _sized(overfull: int) -> list[str]:
    """Return the line that stores the size of a set."""
    return [f"tl.store(out0 + program, tl.where(is_long, {overfull}, count.to(tl.int64)))"]


def _placed(schedule: Distinct) -> list[str]:
    """Return the lines that store a set."""
    return [
        "before = (last - count).to(tl.int32)",
        "for part in range(0, count, SIZE):",
        *indented(["set_listed(thread, earlier, thread * 0 + part)", *_stored(schedule)]),
    ]


def _read(schedule: Distinct, tag: str, first: str) -> list[str]:
    """Return the lines that read elements of a run."""
    nodes = schedule.spec.nodes
    key = schedule.node[1][1]
    branch = Branch(f"inside{tag}", position=f"place{tag}", tag=tag)
    lines, values = computed(schedule, branch, needed(nodes, [key]))
    return [
        f"place{tag} = {first} + index",
        f"inside{tag} = place{tag} < end",
        *lines,
        f"value{tag} = tl.where(inside{tag}, {values[key][0][0]}.to(tl.int32) & {(1 << BITS) - 1}, -1)",
    ]


def _stored(schedule: Distinct) -> list[str]:
    """Return the lines that store the elements of a list."""
    nodes, number, branch = schedule.spec.nodes, schedule.node[0], Branch("chosen", position="slot")
    rest = [other for other in needed(nodes, list(schedule.spec.stores)) if other != number]
    lines, values = computed(schedule, branch, rest, {number: (("found",), "int64")})
    return [
        "chosen = part + index < count",
        "slot = before + part + index",
        f"found = (program.to(tl.int64) << {BITS}) + listed_at(index)",
        *lines,
        *stored(schedule, branch, values),
    ]
