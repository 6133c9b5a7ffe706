"""The text of a scan: a loop over chunks, in which the lanes of a chunk are combined, and then the chunk with the last.

A value has one block of ``ROWS`` by ``COLUMNS`` lanes for each of its parts. `tilearray.geometry.scan` has the order.
Triton's own scans combine elements in an order that depends on the layout of a block.
"""

from __future__ import annotations

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.reduction import WIDER, Node, as_register, combined, needed, part_value
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.scan import Scan
from tilearray_cuda.kernels.storage import STORAGE


def scanned(schedule: Scan) -> list[str]:
    """Return the lines of a kernel after its setup."""
    node = _node(schedule)
    (arm,) = schedule.arms()
    whole = arm.branch
    edge = whole._replace(mask="tile" if whole.mask else "in_columns", tag="_of_tail")
    lines = [
        *_full(node, _tagged(node, "_last")),
        *_before(schedule, node, whole),
        "for chunk in range(first_chunk, whole_chunks):",
        *indented(_chunk(schedule, node, whole)),
        "if whole_chunks < last_chunk:",
        *indented(["chunk = whole_chunks", *_chunk(schedule, node, edge)]),
    ]
    if not schedule.stores_segments:
        return lines
    total = part_value([node], ("part", node.number, 0))[0]
    found = tuple([text.replace(name, f"{name}_last") for text, name in zip(total, node.names()[0], strict=True)])
    return [*lines, *stored(schedule, whole, {schedule.spec.stores[0]: (found, node.dtypes[0])})]


def _full(node: Node, names: Value) -> list[str]:
    (register,) = node.registers
    return [f"{name} = tl.full((ROWS, 1), 0, {register})" for name in names]


def _node(schedule: Scan) -> Node:
    """Return the node of a kernel that scans, or finds totals."""
    nodes = schedule.spec.nodes
    number = next(number for number, node in enumerate(nodes) if node[0] in ("scan", "total"))
    _, how, (value, *_), dtypes = nodes[number]
    registers = tuple([WIDER.get(dtype, STORAGE[dtype].register) for dtype in dtypes])
    return Node(number, how, (value,), dtypes, registers)


def _state(schedule: Scan, node: Node) -> int | None:
    """Return the node of the totals of segments, if the scan reads them."""
    _, _, (_, *states), _ = schedule.spec.nodes[node.number]
    return states[0] if states else None


def _before(schedule: Scan, node: Node, branch: Branch) -> list[str]:
    """Return the lines that combine the totals of the segments before this one, one after the other."""
    state = _state(schedule, node)
    if state is None:
        return []
    operand = schedule.spec.operands[schedule.spec.outputs + schedule.spec.nodes[state][1]]
    text, values = computed(schedule, branch, [state])
    names = _tagged(node, "_before")
    given = as_register(*values[state], node.registers[0])
    new = [f"{name}_new" for name in names]
    each = [
        *text,
        f"{', '.join(new)} = {combined(node, [names], [given])}",
        *[
            f"{name} = tl.where(earlier == 0, {one}, {other})"
            for name, one, other in zip(names, given, new, strict=True)
        ],
        f"{operand.name} += {2 if operand.dtype == 'complex128' else 1}",
    ]
    return [*_full(node, names), "for earlier in range(0 * segment, segment):", *indented(each)]


def _tagged(node: Node, tag: str) -> Value:
    return tuple([f"{name}{tag}" for name in node.names()[0]])


def _chunk(schedule: Scan, node: Node, branch: Branch) -> list[str]:
    """Return the lines of one chunk: loads, nodes before the scan, the scan, nodes after it, stores."""
    nodes, column = schedule.spec.nodes, schedule.spec.rank - 1
    before = needed(nodes, list(node.values))
    part = next(number for number, each in enumerate(nodes) if each[0] == "part")
    state = _state(schedule, node)
    after = [
        n for n, each in enumerate(nodes) if n not in (*before, state) and each[0] not in ("scan", "total", "part")
    ]
    lines = ["column = chunk * COLUMNS + tl.arange(0, COLUMNS)[None, :]"]
    if branch.mask in ("in_columns", "tile"):
        lines.append(f"in_columns = column < n{column}")
    text, values = computed(schedule, branch, before)
    given = as_register(*values[node.values[0]], node.registers[0])
    (names,) = node.names()
    blocks = [f"{name} = tl.broadcast_to({one}, (ROWS, COLUMNS))" for name, one in zip(names, given, strict=True)]
    post, known = computed(schedule, branch, after, {part: part_value([node], nodes[part])})
    lines += [*text, *blocks, *_lanes(node, schedule.tile.columns), *_chained(node, schedule.tile.columns)]
    if schedule.stores_segments:
        return lines
    lines += _joined(node, _tagged(node, "_before"), "segment == 0") if state is not None else []
    return [*lines, *post, *stored(schedule, branch, known)]


def _lanes(node: Node, lanes: int) -> list[str]:
    """Return the lines that combine the upper half of 2, 4, 8, ... lanes with the last lane of the lower half."""
    (names,) = node.names()
    lines: list[str] = []
    width = 2
    while width <= lanes:
        half, place = width // 2, f"place{width}"
        lines.append(f"{place} = tl.arange(0, {width})[None, :]")
        lines += [f"{name} = tl.reshape({name}, (ROWS * COLUMNS // {width}, {width}))" for name in names]
        lines += [_picked(node, f"{name}_low", name, f"{place} == {half - 1}") for name in names]
        lines += _joined(node, _tagged(node, "_low"), f"{place} < {half}")
        width *= 2
    return [*lines, *[f"{name} = tl.reshape({name}, (ROWS, COLUMNS))" for name in names]] if lanes > 1 else []


def _chained(node: Node, lanes: int) -> list[str]:
    """Return the lines that combine a chunk with the last element of the one before, and keep its own last one."""
    (names,) = node.names()
    lines = _joined(node, _tagged(node, "_last"), "chunk == first_chunk")
    if lanes == 1:
        return [*lines, *[f"{last} = {name}" for last, name in zip(_tagged(node, "_last"), names, strict=True)]]
    lines.append("lane = tl.arange(0, COLUMNS)[None, :]")
    is_last = "lane == COLUMNS - 1"
    return [
        *lines,
        *[_picked(node, last, name, is_last) for last, name in zip(_tagged(node, "_last"), names, strict=True)],
    ]


def _joined(node: Node, earlier: Value, kept: str) -> list[str]:
    """Return the lines that combine earlier values with the block, except where a condition is true."""
    (names,) = node.names()
    new = [f"{name}_new" for name in names]
    lines = [f"{', '.join(new)} = {combined(node, [earlier], [names])}"]
    return [*lines, *[f"{name} = tl.where({kept}, {name}, {other})" for name, other in zip(names, new, strict=True)]]


def _picked(node: Node, target: str, name: str, where: str) -> str:
    """Return the line that takes one element of each row of a block."""
    is_float = STORAGE[node.dtypes[0]].kind in ("float", "complex")
    return f"{target} = {'float_at' if is_float else 'integer_at'}({name}, {where})"
