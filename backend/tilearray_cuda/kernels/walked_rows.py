"""The text of rows that programs walk: what is carried, a loop over held rows, and stores of what was carried.

All arrays of a row are read before its first reduction, so that a program waits for memory once for each row.
"""

from __future__ import annotations

from tilearray_cuda.kernels.expression import Values, indented, stored
from tilearray_cuda.kernels.held import held_and_chunks
from tilearray_cuda.kernels.reduction import Node, combined, given, identities, needed, part_value, reductions
from tilearray_cuda.kernels.schedules.walked_rows import WalkedRows


def walked_rows(schedule: WalkedRows) -> list[str]:
    """Return the lines of a kernel after its setup."""
    spec = schedule.spec
    nodes, found = spec.nodes, reductions(schedule, "carry")
    read = [
        number
        for number, node in enumerate(nodes)
        if node[0] == "input" and 0 not in spec.operands[spec.outputs + node[1]].last_two
    ]
    values = needed(nodes, [value for node in found for value in node.values])
    lines, chunks = held_and_chunks(schedule, read, [n for n in values if nodes[n][0] != "part"])
    starts = [line for node in found for line in _starts(node, len(chunks))]
    lines += [_carried(node, place, values) for place, (_, values) in enumerate(chunks) for node in found]
    walk = ["for first_row in range(first, last, walked_lanes):", *indented([*schedule.rows(), *lines])]
    results = {number: part_value(found, nodes[number]) for number in {spec.stores[place] for place in spec.carried}}
    stores: list[str] = []
    for place, (branch, _) in enumerate(chunks):
        stores += [f"{name} = {name}{_tag(place)}" for node in found for name in _names(node)]
        stores += stored(schedule, branch, results, spec.carried)
    return [*starts, *walk, *stores]


def _names(node: Node) -> list[str]:
    return [name for value in node.names() for name in value]


def _tag(chunk: int) -> str:
    return f"_of_{chunk}"


def _starts(node: Node, chunks: int) -> list[str]:
    """Return the lines that make what is carried for each chunk."""
    return [*identities(node), *[f"{name}{_tag(chunk)} = {name}" for chunk in range(chunks) for name in _names(node)]]


def _carried(node: Node, chunk: int, values: Values) -> str:
    """Return the line that combines what is carried with the values of a row. Beyond the row it is not stored."""
    names = [tuple([f"{name}{_tag(chunk)}" for name in value]) for value in node.names()]
    return f"{', '.join([name for value in names for name in value])} = {combined(node, names, given(node, values))}"
