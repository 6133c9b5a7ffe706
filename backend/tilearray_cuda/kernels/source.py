"""`KernelSpec` -> Triton source: pure text, made to be read.

A kernel says in its first lines what it computes and for which layout case. Arguments are pointers and numbers by
name, then the extents ``n0, n1, ...`` of the collapsed loop, then the strides that the layout class leaves open
(``x0_s1`` is the stride of ``x0`` along axis 1). A block that lies inside the loop takes a branch without masks, so
that its loads and stores are whole vectors; only the last ones are masked.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from tilearray_cuda.kernels.expression import STRADDLED, body_text
from tilearray_cuda.kernels.schedules.addressing import Branch, columns_of, is_turned
from tilearray_cuda.kernels.schedules.tile_sizes import Tile, parts_of, tile_of
from tilearray_cuda.kernels.spec import FLAT_CASES, SMALL, VECTOR, KernelSpec, Operand
from tilearray_cuda.kernels.storage import ITEMSIZE, STORAGE

PIECE = 8
"""Elements that a thread takes at once where each has a mask and an address of its own."""
DEVICE_FILES = ("numeric.py", "bits.py", "rounding.py", "complex.py", "packed.py")


class Argument(NamedTuple):
    """One argument of a kernel: its name, its Triton type, and what its value is known to be a multiple of."""

    name: str
    type: str
    divisor: int


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
    lines = _flat_kernel(spec, tile) if flat else _tile_kernel(spec)
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
    text = "\n".join([*heading, "", *_helpers("\n".join(kernel[2:])), *kernel, ""])
    return Source(spec.name, text, arguments, constants, tile, spec.label)


def _heading(spec: KernelSpec) -> list[str]:
    """What the kernel computes on. With the sizes this makes the text complete: it is the cache's key."""
    pitches = f", strides that are arguments are multiples of {spec.divisible}" if spec.divisible > 1 else ""
    pitches += f", all but those of {spec.hung.name} of {VECTOR}" if spec.hanging else ""
    pitches += ", the last extents are multiples of 4" if spec.fours else ""
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
            arguments.append(Argument(operand.name, storage.pointer, 16 if operand.aligned else 1))
        elif storage.kind == "complex":
            arguments += [Argument(f"{operand.name}_{part}", storage.argument[0], 1) for part in ("re", "im")]
        else:
            arguments.append(Argument(operand.name, storage.argument[0], 1))
    arguments += [Argument(f"n{axis}", integer, _pitch(spec, axis)) for axis in range(spec.rank)]
    divisors = [spec.divisible if 1 in (operand.strides or ()) else 1 for operand in spec.arrays]
    if spec.hanging:
        divisors = [spec.divisible if operand is spec.hung else VECTOR for operand in spec.arrays]
    arguments += [Argument(name, integer, divisors[position]) for name, position, _ in open_strides(spec)]
    return tuple(arguments)


def _pitch(spec: KernelSpec, axis: int) -> int:
    """What an extent is known to be a multiple of: that of the rows of a dense output is its pitch.

    Or that of its columns, where these go on in another axis; pitches of hanging tiles are multiples of 16.
    """
    if spec.case == "lookup":
        return spec.divisible if axis == 1 else 1
    if spec.hanging and spec.merged and axis == spec.rank - 1:
        return VECTOR
    return 4 if spec.fours and axis >= spec.rank - 2 else 1


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


def _flat_kernel(spec: KernelSpec, tile: Tile) -> list[str]:
    if spec.case == "lookup":
        return _lookup_kernel(spec, tile)
    inside = "({0} >= 0) & ({0} < n0)" if spec.lead else "{0} < n0"
    end = [f"inside = {inside.format('index')}", *body_text(spec, Branch("inside"))]
    if spec.ragged and tile.of_a_thread > PIECE:
        end = [
            "for piece in range(0, BLOCK, BLOCK // 8):",
            "    index_of_piece = start + piece + tl.arange(0, BLOCK // 8)",
            f"    inside = {inside.format('index_of_piece')}",
            *_indented(body_text(spec, Branch("inside", position="index_of_piece", tag="_of_piece"))),
        ]
    whole = "start <= n0 - BLOCK"  # start + BLOCK may be 2**31, which no int32 holds
    whole = f"(start >= 0) & ({whole})" if spec.lead else whole
    return [
        *_start(spec),
        "index = start + tl.arange(0, BLOCK)",
        f"if {whole}:",
        *_indented(body_text(spec, Branch(None))),
        "else:",
        *_indented(end),
    ]


def _start(spec: KernelSpec) -> list[str]:
    if not spec.lead:
        return [f"start = {_program(spec)} * BLOCK"]
    out, size = spec.operands[0], ITEMSIZE[spec.operands[0].dtype]
    return [
        f"lead = (({out.name}.to(tl.int64) & {VECTOR - 1}) // {size}).to(tl.int32)",
        f"start = {_program(spec)} * BLOCK - lead  # where a vector of {out.name} begins",
    ]


def _lookup_kernel(spec: KernelSpec, tile: Tile) -> list[str]:
    """Flat over a dense output; a block that lies in one row reads its column once, and its row in vectors.

    Loads wait for the division, so it is the faster one, of unsigned integers.
    """
    lines = ["size = n0 * n1", f"start = {_program(spec)} * BLOCK", "index = start + tl.arange(0, BLOCK)"]
    if spec.fits == (1,):
        return [
            *lines,
            "row = index // n1",
            "column = index - row * n1",
            "if start <= size - BLOCK:",
            *_indented(body_text(spec, Branch(None))),
            "else:",
            "    inside = index < size",
            *_indented(body_text(spec, Branch("inside"))),
        ]
    in_pieces, unsigned = spec.ragged and tile.of_a_thread > PIECE, f"tl.uint{spec.index_bits}"
    return [
        *lines,
        f"first_row = (start.to({unsigned}) // n1.to({unsigned})).to(tl.int{spec.index_bits})",
        "first_column = start - first_row * n1",
        "if first_column <= n1 - BLOCK:",
        "    in_row = first_column + tl.arange(0, BLOCK)",
        *_indented(body_text(spec, Branch(None, "first_row", "in_row", tag="_of_row"))),
        "elif start <= size - BLOCK:",
        *_indented(_over_rows(spec)),
        "else:",
        *_indented(_end(spec, in_pieces)),
    ]


def _over_rows(spec: KernelSpec) -> list[str]:
    """The branch of a block that reaches into the next row.

    Vectors of small elements that lie in one row are read and stored as such, and the one that does not in a piece.
    """
    if not spec.ragged or ITEMSIZE[spec.operands[0].dtype] > SMALL:
        return [*_two_rows(), *body_text(spec, Branch(None, two_rows=True))]
    lines = body_text(spec, Branch(STRADDLED, two_rows=True))
    return [
        f"vector = first_column + tl.arange(0, BLOCK) // {VECTOR} * {VECTOR}",
        f"wraps = vector > n1 - {VECTOR}",
        f"{STRADDLED} = (vector >= n1) | (vector <= n1 - {VECTOR})",
        "row = first_row + wraps",
        "column = first_column + tl.arange(0, BLOCK)",
        "column = tl.where(wraps, tl.maximum(column - n1, 0), column)",
        *lines[: -spec.outputs],
        f"straddling = (n1 - first_column) // {VECTOR} * {VECTOR}",
        *_piece(spec, "straddling", str(VECTOR), "first_column + straddling < n1"),
        *lines[-spec.outputs :],
    ]


def _end(spec: KernelSpec, in_pieces: bool) -> list[str]:
    """The masked branch. Each element has an address and a mask of its own: of many they would fill the registers."""
    if not in_pieces:
        return ["inside = index < size", *_two_rows(), *body_text(spec, Branch("inside", two_rows=True))]
    return [
        "for piece in range(0, BLOCK, BLOCK // 8):",
        *_indented(_piece(spec, "piece", "BLOCK // 8", "index_of_piece < size")),
    ]


def _piece(spec: KernelSpec, first: str, count: str, inside: str) -> list[str]:
    """So many elements of a block from the first on, by whose name all is named, each with a mask."""
    mask, tag = f"in_{first}", f"_of_{first}"
    branch = Branch(mask, f"row{tag}", f"column{tag}", f"index{tag}", tag, two_rows=True)
    return [
        f"index{tag} = start + {first} + tl.arange(0, {count})",
        f"{mask} = {inside}",
        *_two_rows(tag, f"{first} + tl.arange(0, {count})"),
        *body_text(spec, branch),
    ]


def _two_rows(tag: str = "", elements: str = "tl.arange(0, BLOCK)") -> list[str]:
    row, column, wraps = f"row{tag}", f"column{tag}", f"wraps{tag}"
    return [
        f"{column} = first_column + {elements}",
        f"{wraps} = {column} >= n1  # a block is no longer than a row, so it reaches into the next one at most",
        f"{row} = first_row + {wraps}",
        f"{column} = tl.where({wraps}, {column} - n1, {column})",
    ]


# --- tiles over the last two axes -----------------------------------------------------------------------------------


def _tile_kernel(spec: KernelSpec) -> list[str]:
    """Programs go along the output's rows; along the columns of what is turned, where those are two axes in one."""
    row, column, merged = spec.rank - 2, spec.rank - 1, spec.rank - 3
    outer = list(range(merged if spec.merged else row))
    tiles = [
        ("column", f"{spec.columns} + {spec.lead}" if spec.lead else spec.columns, _step(spec)),
        ("row", f"n{row} + {spec.rise}" if spec.hanging else f"n{row}", "ROWS"),
    ]
    lines = [f"columns = n{merged} * n{column}  # as one axis"] if spec.merged else []
    lines += [f"{name}_tiles = tl.cdiv({extent}, {step})" for name, extent, step in tiles]
    lines += [f"program = {_program(spec)}"]
    for name, _, step in reversed(tiles) if spec.merged else tiles:
        tile = f"program % {name}_tiles"
        parts = parts_of(spec) if name == "row" else 1
        tile = f"tile_in_turn({tile}, {name}_tiles, {parts})" if parts > 1 else f"({tile})"
        lines += [f"first_{name} = {tile} * {step}", f"program = program // {name}_tiles"]
    for axis in outer[:0:-1]:
        lines += [f"i{axis} = program % n{axis}", f"program = program // n{axis}"]
    lines += ["i0 = program"] if outer else []
    lines = lines if outer else lines[:-1]
    for operand in spec.arrays if outer else ():
        offset = f"({' + '.join(f'i{axis} * {operand.name}_s{axis}' for axis in outer)})"
        lines.append(f"{operand.name} += {f'2 * {offset}.to(tl.int64)' if operand.dtype == 'complex128' else offset}")
    lines += [f"{'slot' if spec.hanging else 'row'} = (first_row + tl.arange(0, ROWS))[:, None]", *columns_of(spec)]
    inside = f"(first_row + ROWS <= n{row}) & (first_column + COLUMNS <= {spec.columns})"
    inside = f"(first_row >= {spec.rise}) & {inside}" if spec.hanging else inside
    return [
        *lines,
        f"if (first_column > 0) & {inside}:" if spec.slanted else f"if {inside}:",
        *_indented(body_text(spec, Branch(None))),
        "else:",
        *_indented(_edge(spec)),
    ]


def _step(spec: KernelSpec) -> str:
    """How many columns the next tile lies further."""
    return f"(COLUMNS - {spec.overlap})" if spec.overlap else "COLUMNS"


def _edge(spec: KernelSpec) -> list[str]:
    """The masked branch, in pieces as in `_end` where words are turned; pairs of complex128 are of a whole tile."""
    rows, columns = f"n{spec.rank - 2}", spec.columns
    if spec.slanted:
        own = f" & (column_of_piece < first_column - lead_of_piece + {_step(spec)})" if spec.overlap else ""
        return [
            "for piece in range(0, ROWS, ROWS // 8):",
            "    row_of_piece = (first_row + piece + tl.arange(0, ROWS // 8))[:, None]",
            *_indented(columns_of(spec, "_of_piece")),
            f"    in_rows = row_of_piece < {rows}",
            f"    in_columns = (column_of_piece >= 0) & (column_of_piece < {columns}){own}",
            *_indented(body_text(spec, Branch("tile", "row_of_piece", "column_of_piece", tag="_of_piece"))),
        ]
    turned = any(is_turned(spec, operand) for operand in spec.arrays)
    if not turned or any(operand.dtype == "complex128" for operand in spec.arrays):
        in_rows = f"(row >= 0) & (row < {rows})" if spec.hanging else f"row < {rows}"
        return [f"in_rows = {in_rows}", f"in_columns = column < {columns}", *body_text(spec, Branch("tile"))]
    return [
        f"in_columns = column < {columns}",
        "for piece in range(0, ROWS, ROWS // 8):",
        "    row_of_piece = (first_row + piece + tl.arange(0, ROWS // 8))[:, None]",
        f"    in_rows = row_of_piece < {rows}",
        *_indented(body_text(spec, Branch("tile", "row_of_piece", tag="_of_piece"))),
    ]


# --- parts of both ---------------------------------------------------------------------------------------------------


def _program(spec: KernelSpec) -> str:
    return "tl.program_id(0)" if spec.index_bits == 32 else "tl.program_id(0).to(tl.int64)"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# --- helper functions -----------------------------------------------------------------------------------------------


def _called(text: str) -> set[str]:
    """The names that are called, but for those of a module or a value."""
    return set(re.findall(r"(?<![\w.])\w+(?=\()", text))


@cache
def _device_functions() -> dict[str, str]:
    """The text of every device function, by name."""
    import pkgutil

    texts = [(pkgutil.get_data("tilearray_cuda.kernels.library", name) or b"").decode() for name in DEVICE_FILES]
    function = re.compile(r"^def (\w+)\(.*\n(?:[ \t)].*\n|\n)*", re.MULTILINE)
    return {found[1]: found[0].rstrip() for text in texts for found in function.finditer(text)}


def _helpers(body: str) -> list[str]:
    """The device functions that a kernel's body calls, directly or not, in the order of their files."""
    if _called(body) <= {"range"}:  # as most bodies do: the files need not be read
        return []
    functions = _device_functions()
    needed: set[str] = set()
    open_texts = [body]
    while open_texts:
        for name in _called(open_texts.pop()) & functions.keys() - needed:
            needed.add(name)
            open_texts.append(functions[name].partition(":\n")[2])
    return [f"@triton.jit\n{text}\n\n" for name, text in functions.items() if name in needed]
