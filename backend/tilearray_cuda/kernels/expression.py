"""The body of a kernel as text: loads, the expression graph, stores; and where each element lies.

The text is the same in every branch of a kernel but for the masks. What surrounds it has given names to the place of a
block: ``index`` in a flat kernel, with ``row`` and ``column`` where an operand is looked up by them; ``row`` and
``column`` in a tile.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.casts import Value, cast_text
from tilearray_cuda.kernels.schedules.addressing import (
    Branch,
    address_of,
    arguments_of_parts,
    column_term,
    guard_of,
    is_turned,
    last_two,
    pair_of,
    term,
)
from tilearray_cuda.kernels.spec import FLAT_CASES, SECTOR, SMALL, TILE_CASES, VECTOR, KernelSpec, Operand
from tilearray_cuda.kernels.storage import ITEMSIZE, STORAGE

STRADDLED = "in_one_row"
"""The mask of what is stored of a block of two rows: all but the vector with elements of both."""


def body_text(spec: KernelSpec, branch: Branch) -> list[str]:
    """Loads, the expression graph, stores; the same text in every branch but for masks and names."""
    lines: list[str] = []
    values: list[Value] = []
    dtypes: list[str] = []
    loaded = {position: _read(spec, position, branch, lines) for position in _reading_order(spec)}
    for position, node in enumerate(spec.nodes):
        if position in loaded:
            value, dtype = loaded[position]
        else:
            value, dtype = _evaluate(spec, node, values, dtypes, branch, lines)
            value = _named(f"v{position}{branch.tag}", value, dtype, lines) if value else value
        values.append(value)
        dtypes.append(dtype)
    places = [values[place][0] for place in spec.places] or [""] * spec.outputs
    for operand, stored, place in zip(spec.operands, spec.stores, places, strict=False):
        lines += _store(spec, operand, values[stored], branch, place)
    return lines


def _reading_order(spec: KernelSpec) -> list[int]:
    """The nodes of inputs; those that are dense along the other axis of a tile first.

    Triton computes in the layout of what is loaded last, and changes the layout of all else in shared memory.
    """
    inputs = spec.operands[spec.outputs :]
    nodes = [position for position, node in enumerate(spec.nodes) if node[0] == "input"]
    return sorted(nodes, key=lambda position: (inputs[spec.nodes[position][1]].strides or ())[:-1] != (1,))


def _read(spec: KernelSpec, position: int, branch: Branch, lines: list[str]) -> tuple[Value, str]:
    """The value of an input's node, by name."""
    operand = spec.operands[spec.outputs + spec.nodes[position][1]]
    return _named(f"v{position}{branch.tag}", _load(spec, operand, branch, lines), operand.dtype, lines), operand.dtype


def _evaluate(
    spec: KernelSpec, node: Any, values: list[Value], dtypes: list[str], branch: Branch, lines: list[str]
) -> tuple[Value, str]:
    """What a node computes, and its dtype; nothing for a node that only reports."""
    inputs = spec.operands[spec.outputs :]
    match node:
        case ("cast", argument, dtype, *how):
            return cast_text(values[argument], dtypes[argument], dtype, *how), dtype
        case ("call", called, arguments, dtype, template):
            operand_dtypes = [dtypes[argument] for argument in arguments]
            return (call_text(called, template, [values[argument] for argument in arguments], operand_dtypes),), dtype
        case ("index",):
            return (f"{branch.position}.to(tl.int64)",), "int64"
        case ("gather", position, place):
            return _load(spec, inputs[position], branch, lines, values[place][0]), inputs[position].dtype
        case ("report", condition, value, position):
            inside = branch.everywhere
            found = f"{values[condition][0]} & {inside}" if inside else values[condition][0]
            lines.append(f"report({inputs[position].name}, {found}, {values[value][0]})")
            return (), "bool"
        case _:
            raise NotImplementedError(f"{node[0]}: cuda knows no such node")


def _named(name: str, value: Value, dtype: str, lines: list[str]) -> Value:
    """Bind a value to a name; a complex one to two."""
    if STORAGE[dtype].kind != "complex":
        lines.append(f"{name} = {value[0]}")
        return (name,)
    parts = (f"{name}_re", f"{name}_im")
    lines.append(f"{parts[0]}, {parts[1]} = {', '.join(value)}")
    return parts


def _load(spec: KernelSpec, operand: Operand, branch: Branch, lines: list[str], place: str = "") -> Value:
    if operand.strides is None:
        return _number(operand)
    guard = guard_of(spec, operand, branch, place)
    if operand.dtype == "complex128":
        return _load_pair(spec, operand, branch, lines, place, guard)
    is_column = operand.strides[1:] == (0,) and operand.strides[0] != 0
    if branch.two_rows and is_column and not place:
        load = _column(operand, branch)
    elif not place and (run := _run(spec, operand, branch)):
        load = run
    elif not place and branch.mask is None and (words := _words(spec, operand)):
        load = words
    elif not place and branch.mask is None and is_turned(spec, operand):
        at = f"{operand.name} + row + {column_term(spec, operand, branch._replace(column='four'))}"
        load = f"load_turned({at}, {operand.name}_s{spec.rank - 1}, ROWS, COLUMNS, {_policy(spec)})"
    else:
        stays = spec.stays or (spec.hanging and operand is spec.hung)
        policy = ', eviction_policy="evict_last"' if stays else ""
        load = f"tl.load({address_of(spec, operand, branch, place)}{guard}{policy})"
    if operand.dtype == "complex64":
        word = f"{operand.name}_word{branch.tag}"
        lines.append(f"{word} = {load}")
        halves = (word, f"({word} >> 32)")
        return tuple(f"{half}.to(tl.uint32).to(tl.float32, bitcast=True)" for half in halves)
    return (f"{load} != 0",) if operand.dtype == "bool" else (load,)


def _run(spec: KernelSpec, operand: Operand, branch: Branch) -> str | None:
    """What reads the elements of a block if they lie in a run, small, and at no address that vectors may have.

    A run goes on in the next row where only what lies in one row is stored. Elements may lie backwards, too.
    """
    strides, name = operand.strides or (0,), operand.name
    known = branch.mask in (None, STRADDLED) and spec.case in FLAT_CASES and spec.fits != (1,)
    if not known or strides[-1] not in (1, -1) or ITEMSIZE[operand.dtype] > SMALL:
        return None
    step, sign = strides[-1], "+" if strides[-1] == 1 else "-"
    if len(strides) == 1 or strides[0] == "extent":
        in_vectors = operand.aligned and not spec.lead and step == 1
        return None if in_vectors else f"load_run({name} {sign} start, {step}, BLOCK)"
    if (operand.aligned and spec.divisible > 1 and step == 1) or (branch.two_rows and branch.mask is None):
        return None
    offsets = [term(row, strides[0], f"{name}_s0") for row in ("first_row", "(first_row + 1)")]
    first, second = (f"{name} + {offset}" if offset else name for offset in offsets)
    if branch.two_rows:
        return f"load_rows({first}, {second}, first_column, n1, {step}, BLOCK)"
    return f"load_run({first} {sign} first_column, {step}, BLOCK)"


def _words(spec: KernelSpec, operand: Operand) -> str | None:
    """What reads the elements of a slanted tile, in words: runs of a row, or of a column, which are turned."""
    out = spec.operands[0]
    turned = f"{operand.name} + first_row, first_column, {operand.name}_s{spec.rank - 1}"
    if spec.slanted == SECTOR:
        return f"load_in_banks({turned}, lead, ROWS, COLUMNS, {_policy(spec)})"
    if not spec.slanted or ITEMSIZE[operand.dtype] > SMALL:
        return None
    row, column = last_two(operand)
    if column == 1:
        rows = term("row", row, f"{operand.name}_s{spec.rank - 2}")
        return f"load_runs({operand.name} + {f'{rows} + ' if rows else ''}(first_column - lead), COLUMNS)"
    if row != 1 or column != "other":
        return None
    pitch = f"{out.name}_s{spec.rank - 2}"
    return f"load_slanted({turned}, {out.name} + first_row * {pitch} + first_column, {pitch}, ROWS, COLUMNS)"


def _load_pair(
    spec: KernelSpec, operand: Operand, branch: Branch, lines: list[str], place: str, guard: str
) -> tuple[str, str]:
    """The parts of a complex128, by name. In a tile they are read along the axis in which they are dense."""
    parts = (f"{operand.name}_real{branch.tag}", f"{operand.name}_imag{branch.tag}")
    axis = None if place else _dense_axis(spec, operand)
    if axis is None:
        pair = pair_of(spec, operand, branch, place)
        lines.append(f"{', '.join(parts)} = load_pair{_masked(guard)}({operand.name}, {pair}{guard})")
        return parts
    policy = "" if guard else f", {_policy(spec)}"
    arguments = _dense_pairs(spec, operand, branch, axis) + policy
    lines.append(f"{', '.join(parts)} = load_pairs{_masked(guard)}({arguments})")
    return parts if axis else (f"tl.trans({parts[0]})", f"tl.trans({parts[1]})")


def _dense_axis(spec: KernelSpec, operand: Operand) -> int | None:
    """The axis of a tile in which an operand's elements are neighbours, if it has two axes of its own."""
    strides = last_two(operand) if spec.case in TILE_CASES and not spec.slanted else (0, 0)
    if 0 in strides or 1 not in strides:
        return None
    return 1 if strides[1] == 1 else 0


def _dense_pairs(spec: KernelSpec, operand: Operand, branch: Branch, axis: int) -> str:
    """Arguments of the functions on pairs that are neighbours: rows, or columns turned into rows."""
    name = f"{operand.name}_s{spec.rank - 1 - axis}"
    offset = term("row", last_two(operand)[0], name) if axis else column_term(spec, operand, branch)
    rows, mask = (offset, "in_rows") if axis else (f"tl.trans({offset})", "tl.trans(in_columns)")
    first, count = (("first_row", "ROWS"), ("first_column", "COLUMNS"))[axis]
    if spec.hanging and not axis:
        first = "(first_row - tl.trans(rise))" if spec.merged else "(first_row - rise)"
    masks = f", {mask}, {spec.columns if axis else f'n{spec.rank - 2}'}" if branch.mask else ""
    return f"{operand.name}, {rows}, {first}, {count}{masks}"


def _column(operand: Operand, branch: Branch) -> str:
    """An element for each of the two rows that a block reaches, where there is a second."""
    first, second = (
        term(row, (operand.strides or (0,))[0], f"{operand.name}_s0") for row in ("first_row", "(first_row + 1)")
    )
    other = f"tl.load({operand.name} + {second}, mask=first_row + 1 < n0)"
    return f"tl.where(wraps{branch.tag}, {other}, tl.load({operand.name} + {first}))"


def _number(operand: Operand) -> Value:
    storage = STORAGE[operand.dtype]
    if storage.kind == "complex":
        return f"{operand.name}_re", f"{operand.name}_im"
    if storage.kind == "bool":
        return (f"{operand.name} != 0",)
    return (
        f"{operand.name}.to({storage.register})" if storage.itemsize == 2 and storage.kind == "float" else operand.name,
    )


def _store(spec: KernelSpec, operand: Operand, value: Value, branch: Branch, place: str) -> list[str]:
    guard = guard_of(spec, operand, branch, place)
    if operand.dtype == "complex128":
        if spec.hanging and spec.merged:
            arguments = arguments_of_parts(spec, operand, branch)
            return [f"store_parts{_masked(guard)}({operand.name}, {arguments}, {', '.join(value)})"]
        if not place and _dense_axis(spec, operand) == 1:
            arguments = _dense_pairs(spec, operand, branch, 1)
            return [f"store_pairs{_masked(guard)}({arguments}, {', '.join(value)})"]
        pair = pair_of(spec, operand, branch, place)
        return [f"store_pair{_masked(guard)}({operand.name}, {pair}, {', '.join(value)}{guard})"]
    if operand.dtype == "complex64":
        low, high = (f"{part}.to(tl.float32).to(tl.uint32, bitcast=True).to(tl.uint64)" for part in value)
        value = (f"{low} | ({high} << 32)",)
    elif operand.dtype == "bool":
        value = (f"{value[0]}.to(tl.int8)",)
    if spec.slanted and branch.mask is None:
        place = f"{operand.name} + row * {operand.name}_s{spec.rank - 2} + (first_column - lead)"
        return [f"store_{'sectors' if spec.overlap else 'runs'}({place}, {value[0]}, COLUMNS)"]
    address = address_of(spec, operand, branch, place)
    if spec.lead and branch.mask is None:
        address = f"tl.multiple_of({operand.name} + start, {VECTOR}) + tl.arange(0, BLOCK)"
    passes = ', cache_modifier=".cs"' if spec.passes else ""
    return [f"tl.store({address}, {value[0]}{guard}{passes})"]


def _policy(spec: KernelSpec) -> str:
    """Which lines of the L2 cache go last."""
    return '"evict_last"' if spec.stays else '""'


def _masked(guard: str) -> str:
    return "_masked" if guard else ""


def call_text(called: str, template: str | None, arguments: list[Value], dtypes: list[str]) -> str:
    """The expression of a call. Integers of mixed signedness are compared by their order, ``order < 0``."""
    if template is None:
        raise NotImplementedError(f"{called}: not on cuda for {dtypes[0]} yet; compute on the host, x.to_device('cpu')")
    if len(set(dtypes)) > 1 and set(dtypes) == {"int64", "uint64"}:
        (x,), (y,) = arguments
        signed_first = dtypes[0] == "int64"
        order = f"order_signed_unsigned({x}, {y})" if signed_first else f"(0 - order_signed_unsigned({y}, {x}))"
        arguments = [(order,), ("0",)]
    names = dict(zip("xyzw", (", ".join(argument) for argument in arguments), strict=False))
    return template.format(**names, width=8 * STORAGE[dtypes[0]].itemsize)
