"""The body of a kernel as text: loads, the expression graph, stores; and where each element lies.

The text is the same in every branch of a kernel but for the masks. What surrounds it has given names to the place of a
block: ``index`` in a flat kernel, with ``row`` and ``column`` where an operand is looked up by them; ``row`` and
``column`` in a tile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray_cuda.casting import Value, cast_text
from tilearray_cuda.dtypes import ITEMSIZE, STORAGE
from tilearray_cuda.spec import FLAT_CASES, SECTOR, SMALL, TILE_CASES, VECTOR, WORD, KernelSpec, Operand

STRADDLED = "in_one_row"
"""The mask of what is stored of a block of two rows: all but the vector with elements of both."""


class Branch(NamedTuple):
    """One of the branches of a kernel, each of which has the body.

    Attributes
    ----------
    mask : what is inside, by name; "tile" for the masks of a tile; None where all is
    row, column, position : the names of the place; a flat kernel counts positions
    tag : what the names of values end in; two branches of one name must agree in type
    two_rows : whether the block reaches from one row into the next
    """

    mask: str | None
    row: str = "row"
    column: str = "column"
    position: str = "index"
    tag: str = ""
    two_rows: bool = False

    @property
    def everywhere(self) -> str | None:
        """The mask of a whole block, or None."""
        return "(in_rows & in_columns)" if self.mask == "tile" else self.mask


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
    guard = _guard(spec, operand, branch, place)
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
        at = f"{operand.name} + row + {_column_term(spec, operand, branch._replace(column='four'))}"
        load = f"load_turned({at}, {operand.name}_s{spec.rank - 1}, ROWS, COLUMNS, {_policy(spec)})"
    else:
        policy = f", eviction_policy={_policy(spec)}" if spec.stays else ""
        load = f"tl.load({_address(spec, operand, branch, place)}{guard}{policy})"
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
    terms = [_term(row, strides[0], f"{name}_s0") for row in ("first_row", "(first_row + 1)")]
    first, second = (f"{name} + {term}" if term else name for term in terms)
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
    row, column = _last_two(operand)
    if column == 1:
        rows = _term("row", row, f"{operand.name}_s{spec.rank - 2}")
        return f"load_runs({operand.name} + {f'{rows} + ' if rows else ''}(first_column - lead), COLUMNS)"
    if row != 1 or column != "other":
        return None
    pitch = f"{out.name}_s{spec.rank - 2}"
    return f"load_slanted({turned}, {out.name} + first_row * {pitch} + first_column, {pitch}, ROWS, COLUMNS)"


def columns_of(spec: KernelSpec, tag: str = "") -> list[str]:
    """Lines that name the columns of a tile. Those of a slanted one are the rows' own."""
    out, merged, last = spec.operands[0].name, spec.rank - 3, spec.rank - 1
    if spec.slanted:
        return [
            f"lead{tag} = lead_of({out} + row{tag} * {out}_s{spec.rank - 2} + first_column, {spec.slanted})",
            f"column{tag} = first_column - lead{tag} + tl.arange(0, COLUMNS)[None, :]",
        ]
    lines = ["column = (first_column + tl.arange(0, COLUMNS))[None, :]"]
    if any(is_turned(spec, operand) for operand in spec.arrays):
        lines.append("four = (first_column + 4 * tl.arange(0, COLUMNS // 4))[None, :]  # the first of 4 columns each")
    for name in ("column", "four")[: len(lines)] if spec.merged else ():
        lines += [f"{name}_i{merged} = {name} // n{last}", f"{name}_inner = {name} - {name}_i{merged} * n{last}"]
    return lines


def is_turned(spec: KernelSpec, operand: Operand) -> bool:
    """Whether an operand is bytes that lie along the other axis of a tile, and are read in words or vectors."""
    in_words = operand.aligned and spec.divisible % WORD == 0 and not spec.slanted
    return spec.case in TILE_CASES and operand.strides == (1, "other") and ITEMSIZE[operand.dtype] == 1 and in_words


def _load_pair(
    spec: KernelSpec, operand: Operand, branch: Branch, lines: list[str], place: str, guard: str
) -> tuple[str, str]:
    """The parts of a complex128, by name. In a tile they are read along the axis in which they are dense."""
    parts = (f"{operand.name}_real{branch.tag}", f"{operand.name}_imag{branch.tag}")
    axis = None if place else _dense_axis(spec, operand)
    if axis is None:
        pair = _pair(spec, operand, branch, place)
        lines.append(f"{', '.join(parts)} = load_pair{_masked(guard)}({operand.name}, {pair}{guard})")
        return parts
    policy = "" if guard else f", {_policy(spec)}"
    arguments = _dense_pairs(spec, operand, branch, axis) + policy
    lines.append(f"{', '.join(parts)} = load_pairs{_masked(guard)}({arguments})")
    return parts if axis else (f"tl.trans({parts[0]})", f"tl.trans({parts[1]})")


def _dense_axis(spec: KernelSpec, operand: Operand) -> int | None:
    """The axis of a tile in which an operand's elements are neighbours, if it has two axes of its own."""
    strides = _last_two(operand) if spec.case in TILE_CASES and not spec.slanted else (0, 0)
    if 0 in strides or 1 not in strides:
        return None
    return 1 if strides[1] == 1 else 0


def _dense_pairs(spec: KernelSpec, operand: Operand, branch: Branch, axis: int) -> str:
    """Arguments of the functions on pairs that are neighbours: rows, or columns turned into rows."""
    name = f"{operand.name}_s{spec.rank - 1 - axis}"
    term = _term("row", _last_two(operand)[0], name) if axis else _column_term(spec, operand, branch)
    rows, mask = (term, "in_rows") if axis else (f"tl.trans({term})", "tl.trans(in_columns)")
    first, count = (("first_row", "ROWS"), ("first_column", "COLUMNS"))[axis]
    masks = f", {mask}, {spec.columns if axis else f'n{spec.rank - 2}'}" if branch.mask else ""
    return f"{operand.name}, {rows}, {first}, {count}{masks}"


def _column(operand: Operand, branch: Branch) -> str:
    """An element for each of the two rows that a block reaches, where there is a second."""
    first, second = (
        _term(row, (operand.strides or (0,))[0], f"{operand.name}_s0") for row in ("first_row", "(first_row + 1)")
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
    guard = _guard(spec, operand, branch, place)
    if operand.dtype == "complex128":
        if not place and _dense_axis(spec, operand) == 1:
            arguments = _dense_pairs(spec, operand, branch, 1)
            return [f"store_pairs{_masked(guard)}({arguments}, {', '.join(value)})"]
        pair = _pair(spec, operand, branch, place)
        return [f"store_pair{_masked(guard)}({operand.name}, {pair}, {', '.join(value)}{guard})"]
    if operand.dtype == "complex64":
        low, high = (f"{part}.to(tl.float32).to(tl.uint32, bitcast=True).to(tl.uint64)" for part in value)
        value = (f"{low} | ({high} << 32)",)
    elif operand.dtype == "bool":
        value = (f"{value[0]}.to(tl.int8)",)
    if spec.slanted and branch.mask is None:
        place = f"{operand.name} + row * {operand.name}_s{spec.rank - 2} + (first_column - lead)"
        return [f"store_{'sectors' if spec.overlap else 'runs'}({place}, {value[0]}, COLUMNS)"]
    address = _address(spec, operand, branch, place)
    if spec.lead and branch.mask is None:
        address = f"tl.multiple_of({operand.name} + start, {VECTOR}) + tl.arange(0, BLOCK)"
    passes = ', cache_modifier=".cs"' if spec.passes else ""
    return [f"tl.store({address}, {value[0]}{guard}{passes})"]


def _policy(spec: KernelSpec) -> str:
    """Which lines of the L2 cache go last."""
    return '"evict_last"' if spec.stays else '""'


def _masked(guard: str) -> str:
    return "_masked" if guard else ""


def _index(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    """How many elements further than its first one an operand's elements lie; nothing where all lie there.

    Where a value says how far from its place an element lies, there is one index for each element of the block.
    """
    index = _flat_index(spec, operand, branch) if spec.case in FLAT_CASES else _tile_index(spec, operand, branch)
    return " + ".join(part for part in (index, place, _block(spec, branch)) if part) if place else index


def _block(spec: KernelSpec, branch: Branch) -> str:
    """A zero for each element of a block."""
    return f"{branch.position} * 0" if spec.case in FLAT_CASES else f"{branch.row} * 0 + {branch.column} * 0"


def _address(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    index = _index(spec, operand, branch, place)
    return f"{operand.name} + {index}" if index else operand.name


def _pair(spec: KernelSpec, operand: Operand, branch: Branch, place: str) -> str:
    """The index of a complex128, of a block in every case: two float64 in memory, read and written as one vector."""
    index = _index(spec, operand, branch, place)
    scalar = spec.case == "lookup" and "index" not in index and branch.column not in index
    return f"{index} + {_block(spec, branch)}" if index and scalar else index or _block(spec, branch)


def _guard(spec: KernelSpec, operand: Operand, branch: Branch, place: str = "") -> str:
    if place:
        mask = branch.everywhere
    elif branch.mask == "tile":
        mask = _tile_mask(spec, operand)
    else:
        mask = branch.mask if any(operand.strides or ()) else None
    return f", mask={mask}" if mask else ""


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


# --- places -----------------------------------------------------------------------------------------------------------


def _flat_index(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    strides: tuple[int | str, ...] = operand.strides or (0, 0)
    if spec.case != "lookup":
        return _term(branch.position, strides[0], f"{operand.name}_s0")
    if strides[0] == "extent":
        return branch.position
    row = _term(branch.row, strides[0], f"{operand.name}_s0")
    return " + ".join(part for part in (row, _term(branch.column, strides[1], f"{operand.name}_s1")) if part)


def _tile_index(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    terms = [
        _term(branch.row, _last_two(operand)[0], f"{operand.name}_s{spec.rank - 2}"),
        _column_term(spec, operand, branch),
    ]
    return " + ".join(term for term in terms if term)


def _column_term(spec: KernelSpec, operand: Operand, branch: Branch) -> str:
    """How far a column of a tile lies from the first."""
    column, name, axis = _last_two(operand)[1], operand.name, spec.rank - 1
    if not spec.merged or column == 1:
        return _term(branch.column, column, f"{name}_s{axis}")
    inner = _term(f"{branch.column}_inner", column, f"{name}_s{axis}")
    return f"({branch.column}_i{axis - 2} * {name}_s{axis - 2}{f' + {inner}' if inner else ''})"


def _last_two(operand: Operand) -> tuple[int | str, int | str]:
    row, column = operand.strides or (0, 0)
    return row, column


def _tile_mask(spec: KernelSpec, operand: Operand) -> str | None:
    row, column = _last_two(operand)
    parts = (["in_rows"] if row != 0 else []) + (["in_columns"] if column != 0 or spec.merged else [])
    return " & ".join(parts) or None


def _term(index: str, stride: int | str, name: str) -> str:
    """``index * stride``, or nothing."""
    return {0: "", 1: index, -1: f"(0 - {index})"}.get(stride, f"{index} * {name}")  # type: ignore[arg-type]
