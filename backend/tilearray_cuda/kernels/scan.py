"""The text of a scan: a loop over chunks, in which the lanes of a chunk are combined, and then the chunk with the last.

A value has one block of ``ROWS`` by ``COLUMNS`` lanes for each of its parts. `tilearray.geometry.scan` has the order.
A block is split into its cells: block ``i`` of ``ROWS`` by ``THREADS`` has the elements ``i`` of runs of a few
neighbours, which a thread reads as a vector. So the first halves are combined within threads, and for the others one
value moves from thread to thread. Triton's own scans combine elements in an order that depends on a block's layout.
"""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.cells import cells_of, split, whole
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.reduction import WIDER, Node, as_register, combined, extreme, needed, part_named
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.scan import Scan
from tilearray_cuda.kernels.storage import STORAGE

TOTALS = 32
"""The totals of earlier segments that are read at once."""


class Chunk(NamedTuple):
    """One of the chunks that are read at once: the names of its elements and values, and how far from the first."""

    branch: Branch
    ahead: int


def scanned(schedule: Scan) -> list[str]:
    """Return the lines of a kernel after its setup."""
    node = node_of(schedule)
    (arm,) = schedule.arms()
    whole = arm.branch
    edge = whole._replace(mask="tile" if whole.mask else "in_columns", tag="_of_tail")
    lines = [*lanes(schedule), *full(node, "_last", "THREADS"), *_before(schedule, node, whole)]
    lines += [
        f"at_once = first_chunk + (whole_chunks - first_chunk) // {schedule.unroll} * {schedule.unroll}",
        "if first_chunk < at_once:",
        *indented(_many(schedule, node, whole)),
        "for chunk in range(at_once, whole_chunks):",
        *indented(_one(schedule, node, whole)),
        "if whole_chunks < last_chunk:",
        *indented(["chunk = whole_chunks", *_one(schedule, node, edge)]),
    ]
    if not schedule.stores_segments:
        return lines
    total = part_named(node, ("part", node.number, 0), tagged(node, "_last"))
    return [*lines, *stored(schedule, whole, {schedule.spec.stores[0]: total})]


def node_of(schedule: Scan) -> Node:
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


def tagged(node: Node, tag: str) -> Value:
    return tuple([f"{name}{tag}" for name in node.names()[0]])


def neutral(node: Node, shape: str) -> str | None:
    """Return a block of the number that changes no bit of a value it is combined with; None for complex products."""
    (register,) = node.registers
    storage = STORAGE[node.dtypes[0]]
    is_float = storage.kind in ("float", "complex")
    if node.how in ("maximum", "minimum"):
        return f"tl.full({shape}, {extreme(node.dtypes[0], low=node.how == 'maximum')}, {register})"
    if node.how == "multiply" and storage.kind == "complex":
        return None
    if node.how == "add" and is_float:
        return f"(tl.full({shape}, 0, {register}) * -1.0)"  # a constant -0.0 is 0.0 in Triton 3.6
    numbers = {"add": "0", "multiply": "1.0" if is_float else "1", "or": "0", "and": "1"}
    return f"tl.full({shape}, {numbers[node.how]}, {register})"


def full(node: Node, tag: str, columns: str) -> list[str]:
    """Return the lines of values that are known later; of a chain that has not begun."""
    shape = f"(ROWS, {columns})"
    nothing = neutral(node, shape) or f"tl.full({shape}, 0, {node.registers[0]})"
    return [f"{name} = {nothing}" for name in tagged(node, tag)]


def lanes(schedule: Scan) -> list[str]:
    """Return the lines that name, for each half of the threads, those of the upper one, and the last of the lower."""
    threads = schedule.threads
    if threads == 1:
        return []
    lines = ["lane = tl.broadcast_to(tl.arange(0, THREADS)[None, :], (ROWS, THREADS))"]
    half = 1
    while half < threads:
        lines += [f"upper{half} = (lane & {half}) != 0", f"below{half} = lane // {2 * half} * {2 * half} + {half - 1}"]
        half *= 2
    return [*lines, "end = lane * 0 + (THREADS - 1)"]


def first_of(node: Node, name: str) -> str:
    """Return the first value of each row of a block."""
    is_float = STORAGE[node.dtypes[0]].kind in ("float", "complex")
    return f"{'float_at' if is_float else 'integer_at'}({name}, lane == 0)"


# --- earlier segments -------------------------------------------------------------------------------------------------


def _before(schedule: Scan, node: Node, branch: Branch) -> list[str]:
    """Return the lines that combine the totals of the segments before this one, one after the other."""
    if _state(schedule, node) is None:
        return []
    return [
        *full(node, "_before", "1"),
        f"earlier_at_once = segment // {TOTALS} * {TOTALS}",
        f"for earlier in range(0 * segment, earlier_at_once, {TOTALS}):",
        *indented(_totals(schedule, node, branch, TOTALS)),
        "for earlier in range(earlier_at_once, segment):",
        *indented(_totals(schedule, node, branch, 1)),
    ]


def _totals(schedule: Scan, node: Node, branch: Branch, count: int) -> list[str]:
    """Return the lines that read some totals, and combine them."""
    state = _state(schedule, node)
    assert state is not None
    operand = schedule.spec.operands[schedule.spec.outputs + schedule.spec.nodes[state][1]]
    reads: list[str] = []
    combine: list[str] = []
    before = tagged(node, "_before")
    for number in range(count):
        text, values = computed(schedule, branch._replace(tag=f"_total{number}"), [state])
        total = tuple([f"{name}_of_{number}" for name in before])
        given = as_register(*values[state], node.registers[0])
        reads += [*text, *[f"{name} = {one}" for name, one in zip(total, given, strict=True)]]
        reads.append(f"{operand.name} += {2 if operand.dtype == 'complex128' else 1}")
        first = "" if number else "earlier == 0"
        combine += joined(node, before, total, before, first, total)
    return [*reads, *combine]


# --- chunks -----------------------------------------------------------------------------------------------------------


def _many(schedule: Scan, node: Node, branch: Branch) -> list[str]:
    """Return a loop over several chunks at once, which reads the next ones before it scans what it has read."""
    chunks = [
        Chunk(branch._replace(column=f"column{ahead}", tag=f"_of_{ahead}"), ahead) for ahead in range(schedule.unroll)
    ]
    return _in_stages(schedule, node, chunks) if schedule.stages else _in_registers(schedule, node, chunks)


def _in_stages(schedule: Scan, node: Node, chunks: list[Chunk]) -> list[str]:
    """Return the loop whose next steps the compiler reads by asynchronous copies."""
    body: list[str] = []
    values: list[Values] = []
    for chunk in chunks:
        text, found = _read(schedule, chunk, inputs_of(schedule, node), "chunk")
        body += text
        values.append(found)
    for chunk, known in zip(chunks, values, strict=True):
        body += _chunk(schedule, node, chunk, known)
    steps = f"first_chunk, at_once, {schedule.unroll}, num_stages={schedule.stages}"
    return [f"for chunk in tl.range({steps}):", *indented(body)]


def _in_registers(schedule: Scan, node: Node, chunks: list[Chunk]) -> list[str]:
    """Return the loop that keeps the next chunks in registers.

    The last ones are read twice, in place of chunks beyond them.
    """
    inputs = inputs_of(schedule, node)
    reads, following, moves = [], [], []
    for chunk in chunks:
        text, values = _read(schedule, chunk, inputs, "first_chunk")
        reads += text
        next_one = chunk._replace(branch=chunk.branch._replace(tag=f"_next{chunk.ahead}"))
        text, next_values = _read(schedule, next_one, inputs, "following")
        following += text
        moves += [
            f"{old} = {new}"
            for place in inputs
            for old, new in zip(values[place][0], next_values[place][0], strict=True)
        ]
    body = [f"following = tl.minimum(chunk + {schedule.unroll}, at_once - {schedule.unroll})", *following]
    for chunk in chunks:
        _, values = computed(schedule, chunk.branch, inputs)
        body += [_columns(chunk, "chunk"), *_chunk(schedule, node, chunk, values)]
    return [*reads, f"for chunk in range(first_chunk, at_once, {schedule.unroll}):", *indented([*body, *moves])]


def _one(schedule: Scan, node: Node, branch: Branch) -> list[str]:
    """Return the lines that read and scan one chunk."""
    chunk = Chunk(branch, 0)
    text, values = _read(schedule, chunk, inputs_of(schedule, node), "chunk")
    return [*text, *_chunk(schedule, node, chunk, values)]


def inputs_of(schedule: Scan, node: Node) -> list[int]:
    """Return the nodes of the arrays that are scanned."""
    nodes = schedule.spec.nodes
    return [number for number in needed(nodes, list(node.values)) if nodes[number][0] == "input"]


def _columns(chunk: Chunk, first: str) -> str:
    """Return the line that names the elements of a chunk."""
    start = f"({first} + {chunk.ahead})" if chunk.ahead else first
    return f"{chunk.branch.column} = {start} * COLUMNS + tl.arange(0, COLUMNS)[None, :]"


def _read(schedule: Scan, chunk: Chunk, inputs: list[int], first: str) -> tuple[list[str], Values]:
    """Return the lines that name the elements of a chunk and load them, and the values."""
    lines = [_columns(chunk, first)]
    if chunk.branch.mask in ("in_columns", "tile"):
        lines.append(f"in_columns = {chunk.branch.column} < n{schedule.spec.rank - 1}")
    text, values = computed(schedule, chunk.branch, inputs)
    return [*lines, *text], values


def _chunk(schedule: Scan, node: Node, chunk: Chunk, values: Values) -> list[str]:
    """Return the lines that compute what is scanned, scan it, compute the nodes after that, and store the results."""
    lines, names = lanes_scanned(schedule, node, chunk, values)
    cells = cells_named(schedule, names)
    lines += joined_cells(
        node, tagged(node, "_last"), cells, "" if neutral(node, "(1, 1)") or chunk.ahead else "chunk == first_chunk"
    )
    for kept, name in zip(tagged(node, "_last"), cells[-1], strict=True):
        lines.append(f"{kept} = {name if schedule.threads == 1 else f'tl.gather({name}, end, 1)'}")
    if _state(schedule, node) is not None and not schedule.stores_segments:
        lines += joined_cells(node, tagged(node, "_before"), cells, "" if neutral(node, "(1, 1)") else "segment == 0")
    lines += [line for name in names for line in whole(name, schedule.run)]
    if schedule.stores_segments:
        return lines
    text, known = results_of(schedule, node, names, chunk)
    return [*lines, *text, *stored(schedule, chunk.branch, known)]


def results_of(schedule: Scan, node: Node, names: Value, chunk: Chunk) -> tuple[list[str], Values]:
    """Return the lines that compute the nodes after the scan, and the values."""
    nodes = schedule.spec.nodes
    part = next(number for number, each in enumerate(nodes) if each[0] == "part")
    skipped = (*needed(nodes, list(node.values)), _state(schedule, node))
    after = [n for n, each in enumerate(nodes) if n not in skipped and each[0] not in ("scan", "total", "part")]
    return computed(schedule, chunk.branch, after, {part: part_named(node, nodes[part], names)})


def lanes_scanned(schedule: Scan, node: Node, chunk: Chunk, values: Values) -> tuple[list[str], Value]:
    """Return the lines that compute what is scanned and combine the lanes of a chunk, and the names of its cells."""
    lines, names = cells_scanned(schedule, node, chunk, values)
    cells, half = cells_named(schedule, names), 1
    while half < schedule.threads:
        low = tuple([f"{name}_low" for name in names])
        lines += [f"{new} = tl.gather({name}, below{half}, 1)" for new, name in zip(low, cells[-1], strict=True)]
        lines += joined_cells(node, low, cells, f"upper{half} == 0")
        half *= 2
    return lines, names


def cells_scanned(schedule: Scan, node: Node, chunk: Chunk, values: Values) -> tuple[list[str], Value]:
    """Return the lines that compute what is scanned and combine the elements of threads, and the names of cells."""
    lines, names = cells_computed(schedule, node, chunk, values)
    cells = cells_named(schedule, names)
    half = 1
    while half < schedule.run:
        for upper in range(schedule.run):
            if upper & half:
                lower = upper // (2 * half) * (2 * half) + half - 1
                lines += joined(node, cells[lower], cells[upper], cells[upper])
        half *= 2
    return lines, names


def cells_computed(schedule: Scan, node: Node, chunk: Chunk, values: Values) -> tuple[list[str], Value]:
    """Return the lines that compute what is scanned, and the names of cells."""
    before = [number for number in needed(schedule.spec.nodes, list(node.values)) if number not in values]
    lines, values = computed(schedule, chunk.branch, before, values)
    value = as_register(*values[node.values[0]], node.registers[0])
    names = tagged(node, chunk.branch.tag)
    lines += [f"{name} = tl.broadcast_to({one}, (ROWS, COLUMNS))" for name, one in zip(names, value, strict=True)]
    lines += [line for name in names for line in split(name, schedule.run)]
    return lines, names


def cells_named(schedule: Scan, names: Value) -> list[Value]:
    """Return the names of the cells of a chunk."""
    return [tuple([f"{name}{cell}" for name in names]) for cell in cells_of(schedule.run)]


def joined_cells(node: Node, earlier: Value, cells: list[Value], first: str) -> list[str]:
    """Return the lines that combine a value with each cell, except where the condition `first` holds.

    There the value becomes one that changes nothing, if there is one: then no cell needs the condition.
    """
    nothing, lines = neutral(node, "(1, 1)"), list[str]()
    if first and nothing is not None:
        lines += [f"{name} = tl.where({first}, {nothing}, {name})" for name in earlier]
        first = ""
    return [*lines, *[line for cell in cells for line in joined(node, earlier, cell, cell, first, cell)]]


def joined(
    node: Node, earlier: Value, later: Value, target: Value, kept_if: str = "", kept: Value | None = None
) -> list[str]:
    """Return the lines that combine two values to a third; where a condition is true, it is another one."""
    new = [f"{name}_new" for name in target]
    lines = [f"{', '.join(new)} = {combined(node, [earlier], [later])}"]
    if not kept_if or kept is None:
        return [*lines, *[f"{name} = {other}" for name, other in zip(target, new, strict=True)]]
    return [
        *lines,
        *[f"{name} = tl.where({kept_if}, {old}, {other})" for name, old, other in zip(target, kept, new, strict=True)],
    ]
