"""The values of an expression as text: loads, then one line for each node; stores stand apart.

The text is the same in every branch of a kernel but for names and masks. A schedule says how an operand is loaded and
stored; here its elements become values in registers: a bool is a byte in memory and a bit in registers, a complex64 is
a 64-bit word in memory, and complex values are pairs of floats.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tilearray_cuda.kernels.casts import Value, cast_text
from tilearray_cuda.kernels.schedules.addressing import Branch, added
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.spec import Operand
from tilearray_cuda.kernels.storage import STORAGE

Values = dict[int, tuple[Value, str]]
"""For each node its value, by name, and its dtype."""


def computed(
    schedule: Schedule, branch: Branch, nodes: Collection[int] | None = None, known: Values | None = None
) -> tuple[list[str], Values]:
    """Return the lines that load the inputs and compute all nodes, or some in their order, and the values of nodes.

    `known` has the values of nodes that are computed already.
    """
    spec = schedule.spec
    lines: list[str] = []
    wanted = range(len(spec.nodes)) if nodes is None else nodes
    values: Values = dict(known or {})
    loaded = {
        position: _read(schedule, position, branch, lines)
        for position in _reading_order(schedule)
        if position in wanted
    }
    for position in wanted:
        if position in loaded:
            values[position] = loaded[position]
        else:
            value, dtype = _evaluate(schedule, spec.nodes[position], values, branch, lines)
            values[position] = (_named(f"v{position}{branch.tag}", value, dtype, lines) if value else value), dtype
    return lines, values


def stored(schedule: Schedule, branch: Branch, values: Values, outputs: Collection[int] | None = None) -> list[str]:
    """Return the lines that store the outputs, or some of them."""
    spec = schedule.spec
    places = [values[place][0][0] for place in spec.places] or [""] * spec.outputs
    return [
        _store(schedule, spec.operands[output], values[spec.stores[output]][0], branch, places[output])
        for output in (range(spec.outputs) if outputs is None else outputs)
    ]


def indented(lines: list[str]) -> list[str]:
    """Return the lines of a block."""
    return [f"    {line}" for line in lines]


def _reading_order(schedule: Schedule) -> list[int]:
    """Return the nodes of inputs; those that are dense along the rows' axis of a tile first.

    Triton computes in the layout of the last load, and changes the layout of all others in shared memory.
    """
    spec = schedule.spec
    inputs = spec.operands[spec.outputs :]
    nodes = [position for position, node in enumerate(spec.nodes) if node[0] == "input"]
    return sorted(nodes, key=lambda position: (inputs[spec.nodes[position][1]].strides or ())[:-1] != (1,))


def _read(schedule: Schedule, position: int, branch: Branch, lines: list[str]) -> tuple[Value, str]:
    """Return the value of an input's node, by name, and its dtype."""
    spec = schedule.spec
    operand = spec.operands[spec.outputs + spec.nodes[position][1]]
    value = _load(schedule, operand, branch, lines)
    return _named(f"v{position}{branch.tag}", value, operand.dtype, lines), operand.dtype


def _evaluate(schedule: Schedule, node: Any, values: Values, branch: Branch, lines: list[str]) -> tuple[Value, str]:
    """Return the value of a node, and its dtype; no value for a node that only reports."""
    inputs = schedule.spec.operands[schedule.spec.outputs :]
    match node:
        case ("cast", argument, dtype, *how):
            mode, saturate = how or ("rn", False)
            return cast_text(*values[argument], dtype, mode, saturate, schedule.arch), dtype
        case ("call", called, arguments, dtype, template):
            given, operand_dtypes = zip(*[values[argument] for argument in arguments])
            return (call_text(called, template, list(given), list(operand_dtypes), schedule.arch),), dtype
        case ("constant", number, dtype):
            return (f"tl.full([], {number!r}, {STORAGE[dtype].register})",), dtype
        case ("index" | "position",):
            return (f"{branch.position}.to(tl.int64)",), "int64"
        case ("coordinate", axis):
            return (f"i{axis}{branch.tag}.to(tl.int64)",), "int64"
        case ("gather", position, place):
            return _load(schedule, inputs[position], branch, lines, values[place][0][0]), inputs[position].dtype
        case ("distance", *_) if branch.inside:
            return ("tl.full([], 0, tl.int64)",), "int64"
        case ("distance", position, _):
            operand = inputs[position]
            return (f"({added(operand.name, schedule.index(operand, branch))}).to(tl.int64)",), "int64"
        case ("guarded", position, condition):
            guarded = branch if branch.inside else branch._replace(condition=values[condition][0][0])
            return _load(schedule, inputs[position], guarded, lines), inputs[position].dtype
        case ("search", position, count, value, side):
            zeros = f"({schedule.zeros(branch)}).to(tl.int64)"
            size, wanted = values[count][0][0], values[value][0][0]
            return (f"search_{side}({inputs[position].name}, {size}, {wanted}, {zeros})",), "int64"
        case ("bucketed", position, count, value, side, starts, rule, of_floats):
            keys, size, key = inputs[position].name, values[count][0][0], values[value][0][0]
            known = f"{inputs[starts].name}, {inputs[rule].name}"
            return (f"search_in_buckets({keys}, {size}, {key}, {known}, {side == 'left'}, {of_floats})",), "int64"
        case ("start", position, count, bucket, rule, of_floats):
            keys, size, number = inputs[position].name, values[count][0][0], values[bucket][0][0]
            return (f"start_of_bucket({keys}, {size}, {number}, {inputs[rule].name}, {of_floats})",), "int64"
        case ("rule", position, count, buckets, of_floats):
            keys, size, most = inputs[position].name, values[count][0][0], values[buckets][0][0]
            return (f"rule_of_buckets({keys}, {size}, {most}, {of_floats})",), "float64"
        case ("mended", position, count, key, run, flip, base, start, center, scale, *constants):
            place = f"{branch.position}.to(tl.int64)"
            given = [values[each][0][0] for each in (count, key, run, flip, base, start, center, scale)]
            names = [inputs[position].name, place, *given, *map(str, constants)]
            return (f"place_in_run({', '.join(names)})",), "int64"
        case ("mended_order", position, count, word, rows, flip, base, start, *constants):
            place = f"{branch.position}.to(tl.int64)"
            numbers = [values[each][0][0] for each in (flip, base, start)]
            given = [values[count][0][0], values[word][0][0], inputs[rows].name, *numbers]
            names = [inputs[position].name, place, *given, *map(str, constants)]
            return (f"place_of_word_in_run({', '.join(names)})",), "int64"
        case ("report", condition, value, position):
            inside, ((found,), _) = branch.everywhere, values[condition]
            found = f"{found} & {inside}" if inside else found
            lines.append(f"report({inputs[position].name}, {found}, {values[value][0][0]})")
            return (), "bool"
        case _:
            raise NotImplementedError(f"unknown expression node: {node[0]}")


def _named(name: str, value: Value, dtype: str, lines: list[str]) -> Value:
    """Bind a value to a name; a complex one to two."""
    if STORAGE[dtype].kind != "complex":
        lines.append(f"{name} = {value[0]}")
        return (name,)
    parts = (f"{name}_re", f"{name}_im")
    lines.append(f"{parts[0]}, {parts[1]} = {', '.join(value)}")
    return parts


def _load(schedule: Schedule, operand: Operand, branch: Branch, lines: list[str], place: str = "") -> Value:
    """Return the value of an operand's elements."""
    if operand.strides is None:
        return _number(operand)
    if operand.dtype == "complex128":
        pair = schedule.load_pair_guarded(operand, branch), False
        load, transposed = pair if branch.condition else schedule.load_pair(operand, branch, place)
        parts = (f"{operand.name}_real{branch.tag}", f"{operand.name}_imag{branch.tag}")
        lines.append(f"{', '.join(parts)} = {load}")
        return tuple(f"tl.trans({part})" for part in parts) if transposed else parts
    load = schedule.load_guarded(operand, branch) if branch.condition else schedule.load(operand, branch, place)
    if operand.dtype == "complex64":
        word = f"{operand.name}_word{branch.tag}"
        lines.append(f"{word} = {load}")
        halves = (word, f"({word} >> 32)")
        return tuple(f"{half}.to(tl.uint32).to(tl.float32, bitcast=True)" for half in halves)
    return (f"{load} != 0",) if operand.dtype == "bool" else (load,)


def _number(operand: Operand) -> Value:
    storage = STORAGE[operand.dtype]
    if storage.kind == "complex":
        return f"{operand.name}_re", f"{operand.name}_im"
    if storage.kind == "bool":
        return (f"{operand.name} != 0",)
    is_half = storage.itemsize == 2 and storage.kind == "float"
    return (f"{operand.name}.to({storage.register})" if is_half else operand.name,)


def _store(schedule: Schedule, operand: Operand, value: Value, branch: Branch, place: str) -> str:
    """Return the statement that stores a value, or combines it with what is stored."""
    if schedule.spec.combines:
        return schedule.combine(operand, value[0], branch, place)
    if operand.dtype == "complex128":
        return schedule.store_pair(operand, value, branch, place)
    if operand.dtype == "complex64":
        low, high = (f"{part}.to(tl.float32).to(tl.uint32, bitcast=True).to(tl.uint64)" for part in value)
        return schedule.store(operand, f"{low} | ({high} << 32)", branch, place)
    return schedule.store(operand, f"{value[0]}.to(tl.int8)" if operand.dtype == "bool" else value[0], branch, place)


def call_text(called: str, template: str | None, arguments: list[Value], dtypes: list[str], arch: int) -> str:
    """Return the expression of a call. Integers of mixed signedness are compared by their order, ``order < 0``."""
    if template is None:
        raise NotImplementedError(f"{called}: not on cuda for {dtypes[0]} yet; compute on the host, x.to_device('cpu')")
    if len(dtypes) == 2 and set(dtypes) == {"int64", "uint64"} and "{x}" in template:
        (x,), (y,) = arguments
        signed_first = dtypes[0] == "int64"
        order = f"order_signed_unsigned({x}, {y})" if signed_first else f"(0 - order_signed_unsigned({y}, {x}))"
        arguments = [(order,), ("0",)]
    texts = [", ".join(argument) for argument in arguments]
    names = dict(zip("xyzw", texts, strict=False))
    return template.format(*texts, **names, width=8 * STORAGE[dtypes[0]].itemsize, arch=arch)
