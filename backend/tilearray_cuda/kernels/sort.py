"""The text of a sort within a program: rows are partitioned by each digit of their keys, from the lowest.

Elements, or their positions, are exchanged between threads through the memory of the result.
"""

from __future__ import annotations

from tilearray_cuda.kernels.expression import Values, computed, indented
from tilearray_cuda.kernels.reduction import needed
from tilearray_cuda.kernels.schedules.partition import DIGIT, DIGITS
from tilearray_cuda.kernels.schedules.sort import Sort


def sorted_rows(schedule: Sort) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes = schedule.spec.nodes
    kind, element, digit, bits = next(node for node in nodes if node[0] in ("sort", "argsort"))
    orders = kind == "argsort"
    branch = schedule.branch._replace(column="place") if orders else schedule.branch
    numbers = [other for other in needed(nodes, [digit, bits]) if nodes[other][0] == "input" and other != element]
    lines, values = computed(schedule, schedule.branch, numbers)
    reads, found = computed(schedule, branch, [element])
    shift = next(number for number, node in enumerate(nodes) if node[0] == "shift")
    known: Values = {**values, **found, shift: (("shift",), "int32")}
    text, known = computed(schedule, branch, [other for other in needed(nodes, [digit]) if other not in known], known)
    moved = "place" if orders else found[element][0][0]
    begin = ["place = tl.broadcast_to(column, (ROWS, COLUMNS))"] if orders else reads
    steps = [
        *(reads if orders else []),
        *text,
        f"digit = tl.where(inside, {known[digit][0][0]}.to(tl.int32), {DIGITS - 1})",
        "slot = slots_in_rows(tl.broadcast_to(digit, (ROWS, COLUMNS)), ROWS, RUNS)",
        *_exchanged(schedule, moved),
    ]
    return [*lines, *begin, f"for shift in range(0, {values[bits][0][0]}, {DIGIT}):", *indented(steps)]


def _exchanged(schedule: Sort, moved: str) -> list[str]:
    """Return the lines that store values in their slots, and load what other threads have stored."""
    out, branch = schedule.spec.operands[0], schedule.branch
    is_bool = out.dtype == "bool"
    value = f"{moved}.to(tl.int8)" if is_bool else f"{moved}.to(out0.dtype.element_ty)"
    back = schedule.load(out, branch)
    back = f"{back} != 0" if is_bool else f"{back}.to({moved}.dtype)"
    return [
        schedule.store(out, value, branch._replace(column="slot")),
        "tl.debug_barrier()",
        f"{moved} = {back}",
        "tl.debug_barrier()",
    ]
