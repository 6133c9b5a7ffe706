"""The text of a sort within a program: rows are ordered by each digit of their keys, from the lowest.

Several rows are ordered together, and at last by their number. Elements are read again in their order, so that
meanwhile only keys and places are in registers.
"""

from __future__ import annotations

from tilearray_cuda.kernels.block_assembly import BITS, DIGITS
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.schedules.sort import Sort
from tilearray_cuda.kernels.storage import STORAGE


def sorted_rows(schedule: Sort) -> list[str]:
    """Return the lines of a kernel after its setup."""
    nodes = schedule.spec.nodes
    number, (kind, element, key, bits) = next(
        (number, node) for number, node in enumerate(nodes) if node[0] in ("sort", "argsort")
    )
    lines, values = computed(schedule, schedule.branch, [node for node in range(len(nodes)) if node != number])
    (wanted,), _ = values[bits]
    (word,), wide = values[key]
    has_several = schedule.tile.rows > 1
    steps = [f"digit = ((key >> (shift % {8 * STORAGE[wide].itemsize})) & {DIGITS - 1}).to(tl.int32)"]
    if has_several:
        steps.append("digit = tl.where(shift < bits, digit, order // COLUMNS)")
    steps += [
        "slot, source = order_of_digits(digit, index, index * 0)",
        "key = tl.gather(key, source, 0)",
        "order = tl.gather(order, source, 0)",
    ]
    lines += [
        f"key = tl.where(inside, {word}, ~({word} * 0))",
        "order = within",
        f"bits = ({wanted} + {BITS - 1}) // {BITS} * {BITS}",
        f"for shift in range(0, bits{f' + {BITS}' * has_several}, {BITS}):",
        *indented(steps),
    ]
    lines.append("place = order % COLUMNS")
    if kind == "argsort":
        known: Values = {**values, number: (("place.to(tl.int64)",), "int64")}
        return [*lines, *stored(schedule, schedule.branch, known)]
    again, found = computed(schedule, schedule.branch._replace(column="place"), [element])
    return [*lines, *again, *stored(schedule, schedule.branch, {**values, number: found[element]})]
