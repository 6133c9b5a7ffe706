"""`KernelSpec` -> Triton source: pure text, made to be read.

A kernel says in its first lines what it computes and for which layout case. Arguments are pointers and numbers by
name, then the extents ``n0, n1, ...`` of the collapsed loop, then the strides that the layout class leaves open
(``x0_s1`` is the stride of ``x0`` along axis 1). A block that lies inside the loop takes a branch without masks, so
that its loads and stores are whole vectors; only the last ones are masked.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tilearray_cuda.casting import Value, cast_text
from tilearray_cuda.dtypes import STORAGE
from tilearray_cuda.spec import KernelSpec, Operand
from tilearray_cuda.tiles import Tile, tile_of

FLAT_CASES = ("flat", "strided", "lookup")


class Argument(NamedTuple):
    """One argument of a kernel: its name, its Triton type, and whether its value is known to be a multiple of 16."""

    name: str
    type: str
    divisible: bool


class Source(NamedTuple):
    """A kernel's text, what the compiler and the launcher have to know of it, and a label for people."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    constants: tuple[tuple[str, int], ...]
    tile: Tile
    label: str


def generate(spec: KernelSpec, arch: int) -> Source:
    """Return the Triton source of a kernel for an architecture such as 90."""
    tile = tile_of(spec, arch)
    flat = spec.case in FLAT_CASES
    lines = _flat_kernel(spec) if flat else _tile_kernel(spec)
    arguments = _arguments(spec)
    constants = (("BLOCK", tile.columns),) if flat else (("ROWS", tile.rows), ("COLUMNS", tile.columns))
    parameters = [argument.name for argument in arguments] + [f"{name}: tl.constexpr" for name, _ in constants]
    kernel = [
        "@triton.jit",
        f"def {spec.name}({', '.join(parameters)}):",
        *(f"    {line}" if line else "" for line in lines),
    ]
    sizes = ", ".join(f"{name} = {size}" for name, size in constants)
    heading = [*_heading(spec), f"# {sizes}, {tile.warps} warps"]
    text = "\n".join([*heading, "", *_helpers("\n".join(kernel)), *kernel, ""])
    return Source(spec.name, text, arguments, constants, tile, spec.label)


def _heading(spec: KernelSpec) -> list[str]:
    """What the kernel computes on. With the sizes this makes the text complete: it is the cache's key."""
    pitches = ", strides that are arguments are multiples of 16" if spec.divisible else ""
    operands = [
        f"# {o.name}: {o.dtype}" + (", a number" if o.strides is None else f", strides {_shown(o)}")
        for o in spec.operands
    ]
    return [f"# layout case: {spec.case}, {spec.rank} axes, int{spec.index_bits} indices{pitches}", *operands]


def _shown(operand: Operand) -> str:
    return f"{' '.join(map(str, operand.strides or ()))}{'' if operand.aligned else ', address not a multiple of 16'}"


def _arguments(spec: KernelSpec) -> tuple[Argument, ...]:
    integer = f"i{spec.index_bits}"
    arguments: list[Argument] = []
    for operand in spec.operands:
        storage = STORAGE[operand.dtype]
        if operand.strides is not None:
            arguments.append(Argument(operand.name, storage.pointer, operand.aligned))
        elif storage.kind == "complex":
            arguments += [Argument(f"{operand.name}_{part}", storage.argument[0], False) for part in ("re", "im")]
        else:
            arguments.append(Argument(operand.name, storage.argument[0], False))
    arguments += [Argument(f"n{axis}", integer, False) for axis in range(spec.rank)]
    dense = [1 in (operand.strides or ()) for operand in spec.arrays]
    arguments += [Argument(name, integer, spec.divisible and dense[k]) for name, k, _ in open_strides(spec)]
    return tuple(arguments)


def open_strides(spec: KernelSpec) -> list[tuple[str, int, int]]:
    """The strides that are arguments: their name, the operand's position among those in memory, and the axis."""
    found: list[tuple[str, int, int]] = []
    for position, operand in enumerate(spec.arrays):
        known = operand.strides or ()
        for axis in range(spec.rank):
            from_end = axis - spec.rank
            if -from_end > len(known) or known[from_end] == "other":
                found.append((f"{operand.name}_s{axis}", position, axis))
    return found


# --- one axis, or a flat output -------------------------------------------------------------------------------------


def _flat_kernel(spec: KernelSpec) -> list[str]:
    size = "n0" if spec.rank == 1 else "size"
    lines = [
        f"start = {_program(spec)} * BLOCK",
        "index = start + tl.arange(0, BLOCK)",
    ]
    if spec.case == "lookup":
        lines.insert(0, "size = n0 * n1")
        lines += _row_and_column(spec)
    return [
        *lines,
        f"if start <= {size} - BLOCK:",  # start + BLOCK may be 2**31, which no int32 holds
        *_indented(_body(spec, mask=None)),
        "else:",
        f"    inside = index < {size}",
        *_indented(_body(spec, mask="inside")),
    ]


def _row_and_column(spec: KernelSpec) -> list[str]:
    if spec.narrow:
        return ["row = index // n1", "column = index - row * n1"]
    return [
        "first_row = start // n1",
        "column = start - first_row * n1 + tl.arange(0, BLOCK)",
        "wraps = column >= n1  # a block is no longer than a row, so it reaches into the next one at most",
        "row = first_row + wraps",
        "column = tl.where(wraps, column - n1, column)",
    ]


def _flat_index(spec: KernelSpec, operand: Operand) -> str:
    strides: tuple[int | str, ...] = operand.strides or (0, 0)
    if spec.case != "lookup":
        return _term("index", strides[0], f"{operand.name}_s0")
    if strides[0] == 0:
        return _term("column", strides[1], f"{operand.name}_s1")
    return _term("row", strides[0], f"{operand.name}_s0") if strides[1] == 0 else "index"


# --- tiles over the last two axes -----------------------------------------------------------------------------------


def _tile_kernel(spec: KernelSpec) -> list[str]:
    row, column = spec.rank - 2, spec.rank - 1
    lines = [
        f"column_tiles = tl.cdiv(n{column}, COLUMNS)",
        f"row_tiles = tl.cdiv(n{row}, ROWS)",
        f"program = {_program(spec)}",
        "first_column = (program % column_tiles) * COLUMNS",
        "program = program // column_tiles",
        "first_row = (program % row_tiles) * ROWS",
        "program = program // row_tiles" if spec.rank > 2 else "",
    ]
    for axis in range(spec.rank - 3, 0, -1):
        lines += [f"i{axis} = program % n{axis}", f"program = program // n{axis}"]
    lines += ["i0 = program"] if spec.rank > 2 else []
    lines += [
        "row = (first_row + tl.arange(0, ROWS))[:, None]",
        "column = (first_column + tl.arange(0, COLUMNS))[None, :]",
    ]
    for operand in spec.arrays:
        outer = [f"i{axis} * {operand.name}_s{axis}" for axis in range(spec.rank - 2)]
        if outer:
            offset = f"({' + '.join(outer)})"
            lines.append(f"{operand.name} += {_pairs(offset) if operand.dtype == 'complex128' else offset}")
    return [
        *[line for line in lines if line],
        f"if (first_row + ROWS <= n{row}) & (first_column + COLUMNS <= n{column}):",
        *_indented(_body(spec, mask=None)),
        "else:",
        f"    in_rows = row < n{row}",
        f"    in_columns = column < n{column}",
        *_indented(_body(spec, mask="tile")),
    ]


def _tile_index(spec: KernelSpec, operand: Operand) -> str:
    row, column = _last_two(operand)
    axis = spec.rank - 2
    terms = [_term("row", row, f"{operand.name}_s{axis}"), _term("column", column, f"{operand.name}_s{axis + 1}")]
    return " + ".join(term for term in terms if term)


def _last_two(operand: Operand) -> tuple[int | str, int | str]:
    row, column = operand.strides or (0, 0)
    return row, column


def _tile_mask(operand: Operand) -> str | None:
    row, column = _last_two(operand)
    parts = (["in_rows"] if row != 0 else []) + (["in_columns"] if column != 0 else [])
    return " & ".join(parts) or None


# --- the body -------------------------------------------------------------------------------------------------------


def _body(spec: KernelSpec, mask: str | None) -> list[str]:
    """Loads, the expression graph, stores; the same text in both branches but for the masks."""
    lines: list[str] = []
    values: list[Value] = []
    dtypes: list[str] = []
    for position, node in enumerate(spec.nodes):
        value, dtype = _evaluate(spec, node, values, dtypes, mask, lines)
        values.append(_named(f"v{position}", value, dtype, lines) if value else value)
        dtypes.append(dtype)
    places = [values[place][0] for place in spec.places] or [""] * spec.outputs
    for operand, stored, place in zip(spec.operands, spec.stores, places, strict=False):
        lines += _store(spec, operand, values[stored], mask, place)
    return lines


def _evaluate(
    spec: KernelSpec, node: Any, values: list[Value], dtypes: list[str], mask: str | None, lines: list[str]
) -> tuple[Value, str]:
    """What a node computes, and its dtype; nothing for a node that only reports."""
    inputs = spec.operands[spec.outputs :]
    match node:
        case ("input", position):
            return _load(spec, inputs[position], mask, lines), inputs[position].dtype
        case ("cast", argument, dtype):
            return cast_text(values[argument], dtypes[argument], dtype), dtype
        case ("call", called, arguments, dtype, template):
            operand_dtypes = [dtypes[argument] for argument in arguments]
            return (call_text(called, template, [values[argument] for argument in arguments], operand_dtypes),), dtype
        case ("index",):
            return ("index.to(tl.int64)",), "int64"
        case ("gather", position, place):
            return _load(spec, inputs[position], mask, lines, values[place][0]), inputs[position].dtype
        case ("report", condition, value, position):
            inside = _everywhere(spec, mask)
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


def _load(spec: KernelSpec, operand: Operand, mask: str | None, lines: list[str], place: str = "") -> Value:
    if operand.strides is None:
        return _number(operand)
    addresses, guard = _addresses(spec, operand, place), _guard(spec, operand, mask, place)
    loads = tuple(f"tl.load({address}{guard})" for address in addresses)
    if operand.dtype == "complex64":
        word = f"{operand.name}_word"
        lines.append(f"{word} = {loads[0]}")
        halves = (word, f"({word} >> 32)")
        return tuple(f"{half}.to(tl.uint32).to(tl.float32, bitcast=True)" for half in halves)
    return (f"{loads[0]} != 0",) if operand.dtype == "bool" else loads


def _number(operand: Operand) -> Value:
    storage = STORAGE[operand.dtype]
    if storage.kind == "complex":
        return f"{operand.name}_re", f"{operand.name}_im"
    if storage.kind == "bool":
        return (f"{operand.name} != 0",)
    return (
        f"{operand.name}.to({storage.register})" if storage.itemsize == 2 and storage.kind == "float" else operand.name,
    )


def _store(spec: KernelSpec, operand: Operand, value: Value, mask: str | None, place: str) -> list[str]:
    addresses, guard = _addresses(spec, operand, place), _guard(spec, operand, mask, place)
    if operand.dtype == "complex64":
        low, high = (f"{part}.to(tl.float32).to(tl.uint32, bitcast=True).to(tl.uint64)" for part in value)
        value = (f"{low} | ({high} << 32)",)
    elif operand.dtype == "bool":
        value = (f"{value[0]}.to(tl.int8)",)
    return [f"tl.store({address}, {part}{guard})" for address, part in zip(addresses, value, strict=True)]


def _addresses(spec: KernelSpec, operand: Operand, place: str = "") -> list[str]:
    """The addresses of an operand's elements; two for a complex128, which is two float64 in memory.

    Where a value says how far from its place an element lies, there is one for each element of the block.
    """
    index = _flat_index(spec, operand) if spec.case in FLAT_CASES else _tile_index(spec, operand)
    if place:
        block = "index * 0" if spec.case in FLAT_CASES else "row * 0 + column * 0"
        index = " + ".join(part for part in (index, place, block) if part)
    if operand.dtype == "complex128":
        real = f"{operand.name} + {_pairs(f'({index})')}" if index else operand.name
        return [real, f"{real} + 1"]
    return [f"{operand.name} + {index}" if index else operand.name]


def _pairs(index: str) -> str:
    """The place of a complex128 in units of float64: an int32 index may have no room for twice its value."""
    return f"2 * {index}.to(tl.int64)"


def _guard(spec: KernelSpec, operand: Operand, mask: str | None, place: str = "") -> str:
    if place:
        mask = _everywhere(spec, mask)
    elif mask == "tile":
        mask = _tile_mask(operand)
    elif all(stride == 0 for stride in operand.strides or ()):
        mask = None
    return f", mask={mask}" if mask else ""


def _everywhere(spec: KernelSpec, mask: str | None) -> str | None:
    """The mask of a whole block, or None."""
    return "(in_rows & in_columns)" if mask == "tile" else mask


def call_text(called: str, template: str | None, arguments: list[Value], dtypes: list[str]) -> str:
    """The expression of a call. Integers of mixed signedness are compared by their order, ``order < 0``."""
    if template is None:
        raise NotImplementedError(f"{called}: not on cuda for {dtypes[0]} yet; compute on the host, x.to_device('cpu')")
    if len(set(dtypes)) > 1 and set(dtypes) == {"int64", "uint64"}:
        (x,), (y,) = arguments
        signed_first = dtypes[0] == "int64"
        order = f"order_signed_unsigned({x}, {y})" if signed_first else f"(0 - order_signed_unsigned({y}, {x}))"
        arguments = [(order,), ("0",)]
    names = dict(zip("xyz", (", ".join(argument) for argument in arguments), strict=False))
    return template.format(**names, width=8 * STORAGE[dtypes[0]].itemsize)


def _term(index: str, stride: int | str, name: str) -> str:
    """``index * stride``, or nothing."""
    return {0: "", 1: index, -1: f"(0 - {index})"}.get(stride, f"{index} * {name}")  # type: ignore[arg-type]


def _program(spec: KernelSpec) -> str:
    return "tl.program_id(0)" if spec.index_bits == 32 else "tl.program_id(0).to(tl.int64)"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# --- helper functions -----------------------------------------------------------------------------------------------


@cache
def _device_functions() -> dict[str, str]:
    """The text of every device function, by name."""
    text = (files("tilearray_cuda") / "device_functions.py").read_text()
    tree = ast.parse(text)
    return {
        node.name: ast.get_source_segment(text, node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)
    }


def _helpers(kernel: str) -> list[str]:
    """The device functions that a kernel calls, directly or not, in the order of their file."""
    functions = _device_functions()
    needed: set[str] = set()
    open_texts = [kernel]
    while open_texts:
        words = set(re.findall(r"\w+(?=\()", open_texts.pop()))
        for name in words & functions.keys() - needed:
            needed.add(name)
            open_texts.append(functions[name].partition(":\n")[2])
    return [f"@triton.jit\n{text}\n\n" for name, text in functions.items() if name in needed]
