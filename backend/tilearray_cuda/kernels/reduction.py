"""The text of a reduction: accumulators, a loop over chunks, halves of the lanes, and the results.

The nodes before the reduction are computed in the loop, those after it on the results. A value has one block of
``ROWS`` by ``COLUMNS`` lanes for each of its parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.quotients import with_quotients
from tilearray_cuda.kernels.schedules.addressing import Branch
from tilearray_cuda.kernels.schedules.reduce import Reduce
from tilearray_cuda.kernels.spec import KernelSpec
from tilearray_cuda.kernels.storage import STORAGE

PAIRS = {
    "add": "{x} + {y}",
    "multiply": "{x} * {y}",
    "maximum": "greater({x}, {y})",
    "minimum": "lesser({x}, {y})",
    "maximum_number": "larger_number({x}, {y})",
    "minimum_number": "smaller_number({x}, {y})",
    "maximum_of_halves": "larger_halves({x}, {y})",
    "or": "{x} | {y}",
    "and": "{x} & {y}",
    "argmax": "first_of_largest({x}, {at}, {y}, {other})",
    "argmin": "first_of_smallest({x}, {at}, {y}, {other})",
}
"""How two values become one."""
OF_FLOATS = {"maximum": "larger({x}, {y})", "minimum": "smaller({x}, {y})"}
"""How two floats become one, if that is another function."""
NOWHERE = 2**63 - 1
WIDER = {
    "bool": "tl.int32", "int8": "tl.int32", "int16": "tl.int32", "uint8": "tl.uint32", "uint16": "tl.uint32",
}  # fmt: skip
"""The accumulators of narrow integers and truth values, which give the same in 32 bits."""
NARROWER = {"int64": "tl.int32", "uint64": "tl.uint32"}
"""The accumulators of sums of bytes that fit, and of positions in arrays with 32-bit indices."""
BYTES = {"int64": ("bool", "int8", "uint8"), "uint64": ("bool", "uint8")}
"""The bytes whose sums fit into them: as uint64, -1 is 2**64 - 1."""


class Node(NamedTuple):
    """A reduce node.

    Attributes
    ----------
    number, how, values, dtypes : its number, how it combines, the nodes of its values, and their dtypes
    registers : the types of the accumulators: those of the dtypes, or others that give the same
    """

    number: int
    how: str
    values: tuple[int, ...]
    dtypes: tuple[str, ...]
    registers: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether all accumulators are integers, so that no order of combining them gives another result."""
        return all("int" in register for register in self.registers)

    def names(self) -> list[Value]:
        """Return the names of the accumulators of each value."""
        return [
            tuple([f"a{self.number}_{position}{part}" for part in parts_of(dtype)])
            for position, dtype in enumerate(self.dtypes)
        ]


def parts_of(dtype: str) -> tuple[str, ...]:
    """Return the suffixes of the parts of a value."""
    return ("_re", "_im") if STORAGE[dtype].kind == "complex" else ("",)


def reduced(schedule: Reduce) -> list[str]:
    """Return the lines of a kernel after its setup: the loop over elements is written for each arm."""
    if schedule.spec.case == "reduce_columns":
        schedule = schedule.with_spec(with_quotients(schedule.spec, of_lanes(schedule)))
    nodes = schedule.spec.nodes
    found = reductions(schedule)
    beside = list(schedule.spec.outputs_beside)
    stores = schedule.spec.stores
    before = needed(nodes, [*[value for node in found for value in node.values], *[stores[place] for place in beside]])
    lines = _groups(found) if schedule.groups > 1 else []
    arms = schedule.arms()
    for turn, arm in enumerate(arms):
        walk = [line for node in found for line in identities(node)] + _walk(schedule, arm.branch, found, before)
        walk = _each_group(schedule, found, walk) if schedule.groups > 1 else walk
        if len(arms) > 1:
            lines.append(f"{'el' * (turn > 0)}if {arm.condition}:" if arm.condition else "else:")
        lines += indented(walk) if len(arms) > 1 else walk
    if schedule.groups > 1:
        lines += [f"{name} = {name}_groups" for name, _ in _registers(found)]
    lines += schedule.ordered([name for name, _ in _registers(found)])
    lines += _lanes_combined(schedule, found, schedule.groups if schedule.groups > 1 else schedule.tile.columns)
    values = {number: part_value(found, node) for number, node in enumerate(nodes) if node[0] == "part"}
    results = [place for place in range(len(stores)) if place not in beside]
    wanted = needed(nodes, [stores[place] for place in results])
    after = [n for n in wanted if nodes[n][0] not in ("reduce", "part")]
    branch = arms[-1].branch._replace(tag="_of_results") if set(after) & set(before) else arms[-1].branch
    post, known = computed(schedule, branch, after, values)
    return [*lines, *post, *stored(schedule, branch, known, results)]


def of_lanes(schedule: Reduce) -> set[int]:
    """Return the nodes that have one value for all results of a tile, at each place along the reduced axis."""
    return constant_along(schedule.spec, 0, parts=False)


def constant_along(spec: KernelSpec, axis: int, parts: bool) -> set[int]:
    """Return the nodes that have one value along one of the last two axes. `parts`: what a reduction gives has one."""
    found = set[int]()
    for number, node in enumerate(spec.nodes):
        match node:
            case ("part", *_) if parts:
                found.add(number)
            case ("input", position) if spec.operands[spec.outputs + position].last_two[axis] == 0:
                found.add(number)
            case _:
                pass
    return following(spec, found)


def following(spec: KernelSpec, given: set[int]) -> set[int]:
    """Return some nodes, and those that are computed of them alone."""
    found = set(given)
    for number, node in enumerate(spec.nodes):
        match node:
            case ("cast", argument, *_) if argument in found:
                found.add(number)
            case ("call", _, arguments, *_) if found.issuperset(arguments):
                found.add(number)
            case _:
                pass
    return found


def _lanes_combined(schedule: Reduce, found: list[Node], lanes: int) -> list[str]:
    """Return the lines that combine lanes to one value."""
    neighbours = schedule.spec.case == "reduce_rows"
    return [halved(node, half, neighbours) for half in halves(lanes) for node in found]


def _groups(found: list[Node]) -> list[str]:
    """Return the lines that make room for what the groups of lanes give."""
    return [f"{name}_groups = tl.full((ROWS, GROUPS), 0, {register})" for name, register in _registers(found)]


def _each_group(schedule: Reduce, found: list[Node], walk: list[str]) -> list[str]:
    """Return the loop over groups of lanes. Addresses that it has in common would fill the registers."""
    at = "tl.arange(0, GROUPS)[None, :] == group"
    kept = [f"{name}_groups = tl.where({at}, {name}, {name}_groups)" for name, _ in _registers(found)]
    lines = [*walk, *_lanes_combined(schedule, found, schedule.tile.columns), *kept]
    return ["for group in tl.range(0, GROUPS, disable_licm=True):", *indented(lines)]


def _registers(found: list[Node]) -> list[tuple[str, str]]:
    """Return the names of all accumulators, and their types."""
    values = [pair for node in found for pair in zip(node.names(), node.registers, strict=True)]
    return [(name, register) for value, register in values for name in value]


def kept_apart(node: Node, place: int) -> list[str]:
    """Return the lines that keep what a group of lanes, or a segment, gave."""
    return [f"{name}_in_{place} = {name}" for value in node.names() for name in value]


def joined(node: Node, count: int) -> list[str]:
    """Return the lines that combine what groups of lanes, or segments, gave: neighbours first."""
    lines: list[str] = []
    for step in halves(1 << (count - 1).bit_length())[::-1]:
        for low in range(0, count - step, 2 * step):
            x, y = (
                [tuple([f"{name}_in_{place}" for name in value]) for value in node.names()]
                for place in (low, low + step)
            )
            names = ", ".join([name for value in x for name in value])
            lines.append(f"{names} = {combined(node, x, y)}")
    return [*lines, *[f"{name} = {name}_in_0" for value in node.names() for name in value]]


def definitions(schedule: Reduce) -> list[str]:
    """Return the functions that combine two values, one for each reduction."""
    lines: list[str] = []
    for node in reductions(schedule):
        low, high = ([tuple([f"{name}_{end}" for name in value]) for value in node.names()] for end in "xy")
        names = ", ".join(name for value in (*low, *high) for name in value)
        lines += [
            "@triton.jit",
            f"def combine{node.number}({names}):",
            f"    return {combined(node, low, high)}",
            "",
            "",
        ]
    return lines


def reductions(schedule: Reduce, kind: str = "reduce") -> list[Node]:
    """Return the nodes of a kernel that reduce, or that it carries along."""
    nodes = schedule.spec.nodes
    found: list[Node] = []
    for number, node in enumerate(nodes):
        if node[0] == kind:
            _, how, values, dtypes = node
            registers = [_register(schedule, how, values, position, dtype) for position, dtype in enumerate(dtypes)]
            found.append(Node(number, how, values, dtypes, tuple(registers)))
    return found


def _register(schedule: Reduce, how: str, values: tuple[int, ...], position: int, dtype: str) -> str:
    """Return the type of an accumulator."""
    spec = schedule.spec
    if dtype in NARROWER:
        is_position = spec.nodes[values[position]][0] == "position" and spec.index_bits == 32
        if is_position or (how == "add" and schedule.is_short and _is_of_bytes(schedule, values[position], dtype)):
            return NARROWER[dtype]
    return WIDER.get(dtype, STORAGE[dtype].register)


def _is_of_bytes(schedule: Reduce, number: int, dtype: str) -> bool:
    """Whether a value is cast from a byte that keeps its value in a dtype, or from a truth value."""
    spec = schedule.spec
    node = spec.nodes[number]
    if node[0] == "input":
        return spec.operands[spec.outputs + node[1]].dtype in BYTES[dtype]
    return node[0] == "cast" and (node[2] == "bool" or (node[2] == dtype and _is_of_bytes(schedule, node[1], dtype)))


def needed(nodes: Any, wanted: list[int]) -> list[int]:
    """Return the nodes that some nodes need, in order."""
    found: set[int] = set()
    open_nodes = list(wanted)
    while open_nodes:
        number = open_nodes.pop()
        if number not in found:
            found.add(number)
            match nodes[number]:
                case ("cast", argument, *_):
                    open_nodes.append(argument)
                case ("call", _, arguments, *_):
                    open_nodes += arguments
                case ("gather" | "guarded", _, place):
                    open_nodes.append(place)
                case _:
                    pass
    return sorted(found)


def identities(node: Node) -> list[str]:
    """Return the lines that make the accumulators."""
    lines: list[str] = []
    for position, (names, dtype) in enumerate(zip(node.names(), node.dtypes, strict=True)):
        for part, name in enumerate(names):
            lines.append(f"{name} = {_identity(node.how, dtype, node.registers[position], position, part)}")
    return lines


def _identity(how: str, dtype: str, register: str, position: int, part: int) -> str:
    storage = STORAGE[dtype]
    is_float = storage.kind in ("float", "complex")
    if position and how in ("argmax", "argmin"):
        return _full(NOWHERE if register == "tl.int64" else 2**31 - 1, register)
    if how == "add":
        return f"{_full(0, register)} * -1.0" if is_float else _full(0, register)
    if how == "multiply":
        return _full(1 - part, register)
    if how in ("maximum_number", "minimum_number"):
        return _full('float("nan")', register)
    if how in ("or", "and", "maximum_of_halves"):
        return _full(int(how == "and"), register)
    return _full(extreme(dtype, low=how in ("maximum", "argmax")), register)


def extreme(dtype: str, *, low: bool) -> str:
    """Return the lowest or the highest number of a real dtype."""
    storage = STORAGE[dtype]
    if storage.kind == "float":
        return 'float("-inf")' if low else 'float("inf")'
    bits, signed = 8 * storage.itemsize, storage.kind == "int"
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return str(lowest if low else highest)


def _full(value: object, register: str) -> str:
    return f"tl.full((ROWS, COLUMNS), {value}, {register})"


def _walk(schedule: Reduce, branch: Branch, found: list[Node], before: list[int]) -> list[str]:
    """Return the loops over the indices of slower reduced axes, and over chunks."""
    column = schedule.spec.rank - 1
    counts = any(schedule.spec.nodes[number][0] == "position" for number in before)
    position = "place" if counts else "index"

    def chunk(branch: Branch) -> list[str]:
        lines = schedule.columns_of_chunk()
        if branch.mask in ("in_columns", "tile"):
            lines.append(f"in_columns = {schedule.in_columns()}")
        if counts:
            lines.append(f"place = {f'outer * n{column} + ' * (schedule.outer > 0)}column + row * 0")
        text, values = computed(schedule, branch, before)
        updates = [line for node in found for line in update(node, values, branch)]
        return [*lines, *text, *updates, *stored(schedule, branch, values, schedule.spec.outputs_beside)]

    whole = branch._replace(position=position)
    edge = whole._replace(mask="tile" if branch.mask else "in_columns", tag="_of_tail")
    stages = schedule.tile.stages
    steps = f"first_chunk{' + 1' * schedule.has_head}, whole_chunks"
    steps = f"tl.range({steps}, num_stages={stages})" if stages else f"range({steps})"
    lines = [f"for chunk in {steps}:", *indented(chunk(whole))]
    if schedule.has_head:
        lines = ["chunk = first_chunk", *chunk(edge._replace(tag="_of_head")), *lines]
    lines += ["if whole_chunks < last_chunk:", *indented(["chunk = whole_chunks", *chunk(edge)])]
    if not schedule.outer:
        return lines
    return ["for outer in range(first_index, last_index):", *indented([*schedule.indices(), *lines])]


def update(node: Node, values: Values, branch: Branch) -> list[str]:
    """Return the lines that combine the accumulators with values."""
    names, others = node.names(), given(node, values)
    masked = branch.mask in ("in_columns", "tile")
    if masked and node.how == "multiply" and len(names[0]) > 1:  # times 1 + 0j, as on the host
        (parts,), masked = others, False
        others = [tuple([f"tl.where(in_columns, {part}, {1.0 - place})" for place, part in enumerate(parts)])]
    text = combined(node, names, others)
    flat = [name for value in names for name in value]
    if not masked:
        return [f"{', '.join(flat)} = {text}"]
    new = [f"{name}_new" for name in flat]
    return [
        f"{', '.join(new)} = {text}",
        *[f"{name} = tl.where(in_columns, {other}, {name})" for name, other in zip(flat, new, strict=True)],
    ]


def given(node: Node, values: Values) -> list[Value]:
    """Return the values that a node combines, in the types of its accumulators."""
    return [as_register(*values[value], register) for value, register in zip(node.values, node.registers, strict=True)]


def combined(node: Node, values: list[Value], others: list[Value]) -> str:
    """Return the expression of combined values; a tuple if there are several parts."""
    is_float = STORAGE[node.dtypes[0]].kind == "float"
    template = OF_FLOATS.get(node.how, PAIRS[node.how]) if is_float else PAIRS[node.how]
    if node.how in ("argmax", "argmin"):
        (x,), (at,) = values
        (y,), (other,) = others
        return template.format(x=x, at=at, y=y, other=other)
    if node.how == "multiply" and STORAGE[node.dtypes[0]].kind == "complex":
        return f"complex_multiply({', '.join([*values[0], *others[0]])})"
    pairs = [pair for value, other in zip(values, others, strict=True) for pair in zip(value, other, strict=True)]
    return ", ".join(template.format(x=x, y=y) for x, y in pairs)


def halves(lanes: int) -> list[int]:
    """Return the sizes of halves, down to 1.

    >>> halves(8)
    [4, 2, 1]
    """
    return [] if lanes == 1 else [lanes // 2, *halves(lanes // 2)]


def halved(node: Node, half: int, neighbours: bool) -> str:
    """Return the line that combines the upper half of the lanes with the lower one, or each second lane with the first.

    A half has `half` lanes.
    """
    flat = [name for value in node.names() for name in value]
    shape, axis = (f"(ROWS, {half}, 2)", 2) if neighbours else (f"(ROWS, 2, {half})", 1)
    given = ", ".join(f"tl.reshape({name}, {shape})" for name in flat)
    return f"{', '.join(flat)} = tl.reduce({f'({given})' if len(flat) > 1 else given}, {axis}, combine{node.number})"


def part_value(found: list[Node], node: Any) -> tuple[Value, str]:
    """Return the value of a part of a reduction, and its dtype."""
    reduction = next(each for each in found if each.number == node[1])
    names, dtype = reduction.names()[node[2]], reduction.dtypes[node[2]]
    own = STORAGE[dtype].register
    if dtype == "bool":
        return (f"({names[0]} != 0)",), dtype
    return ((f"{names[0]}.to({own})",) if reduction.registers[node[2]] != own else names), dtype


def part_named(node: Node, part: Any, names: Value) -> tuple[Value, str]:
    """Return the value of a part of a reduction whose accumulators have other names, and its dtype."""
    value, dtype = part_value([node], part)
    renamed = zip(value, node.names()[part[2]], names, strict=True)
    return tuple([text.replace(old, new) for text, old, new in renamed]), dtype


def as_register(value: Value, dtype: str, register: str) -> Value:
    """Return a value in the type of its accumulator."""
    return value if register == STORAGE[dtype].register else (f"{value[0]}.to({register})",)
