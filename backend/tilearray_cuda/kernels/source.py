"""A schedule and its spec -> Triton source: pure text, made to be read.

A kernel's first lines tell what it computes and for which loops. Its arguments are pointers and numbers by name, then
the extents ``n0, n1, ...`` of the collapsed loop, then the strides that the class of the loop leaves open (``x0_s1`` is
the stride of ``x0`` along axis 1). A block inside the loop takes a branch without masks, so that its loads and stores
are whole vectors; only the last ones are masked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tilearray_cuda.kernels.distinct import distinct
from tilearray_cuda.kernels.expression import computed, indented, stored
from tilearray_cuda.kernels.fold import folded
from tilearray_cuda.kernels.held import held
from tilearray_cuda.kernels.jit_functions import TEXTS
from tilearray_cuda.kernels.narrow import with_narrow_functions
from tilearray_cuda.kernels.partition import partitioned
from tilearray_cuda.kernels.product import product
from tilearray_cuda.kernels.reduction import definitions, reduced
from tilearray_cuda.kernels.scan import scanned
from tilearray_cuda.kernels.scan_blocks import scanned_blocks
from tilearray_cuda.kernels.schedules.addressing import Arm
from tilearray_cuda.kernels.schedules.choose import schedule_of
from tilearray_cuda.kernels.schedules.distinct import Distinct
from tilearray_cuda.kernels.schedules.fold import Fold
from tilearray_cuda.kernels.schedules.held import Held
from tilearray_cuda.kernels.schedules.partition import Partition
from tilearray_cuda.kernels.schedules.product import Product
from tilearray_cuda.kernels.schedules.reduce import Reduce
from tilearray_cuda.kernels.schedules.scan import Scan
from tilearray_cuda.kernels.schedules.scan_blocks import ScanBlocks
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile
from tilearray_cuda.kernels.schedules.select import Select
from tilearray_cuda.kernels.schedules.shared_columns import SharedColumns
from tilearray_cuda.kernels.schedules.sort import Sort
from tilearray_cuda.kernels.schedules.walked_rows import WalkedRows
from tilearray_cuda.kernels.schedules.windows import Windows
from tilearray_cuda.kernels.selection import selected
from tilearray_cuda.kernels.shared_columns import shared_columns
from tilearray_cuda.kernels.sort import sorted_rows
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.storage import STORAGE
from tilearray_cuda.kernels.walked_rows import walked_rows
from tilearray_cuda.kernels.windows import windowed

DEVICE_FILES = (
    "numeric.py",
    "narrow.py",
    "bits.py",
    "rounding.py",
    "complex.py",
    "complex_functions.py",
    "packed.py",
    "philox.py",
    "reductions.py",
    "shuffles.py",
    "atomics.py",
    "searching.py",
    "radix.py",
    "groups.py",
)

BODIES: tuple[tuple[type[Schedule], Callable[[Any], list[str]]], ...] = (
    (ScanBlocks, scanned_blocks),
    (Scan, scanned),
    (WalkedRows, walked_rows),
    (Held, held),
    (SharedColumns, shared_columns),
    (Reduce, reduced),
    (Windows, windowed),
    (Fold, folded),
    (Sort, sorted_rows),
    (Partition, partitioned),
    (Distinct, distinct),
    (Select, selected),
    (Product, product),
)
"""The lines after a schedule's setup; a subclass stands before its base. Other schedules are an ``if`` of arms."""


class Argument(NamedTuple):
    """One argument of a kernel: its name, its Triton type, and a number that its value is known to be a multiple of."""

    name: str
    type: str
    divisor: int


class Source(NamedTuple):
    """A kernel's text, the facts that the compiler and the launcher need, and a label for people.

    `memory` is that of a schedule.
    """

    name: str
    text: str
    arguments: tuple[Argument, ...]
    constants: tuple[tuple[str, int], ...]
    tile: Tile
    label: str
    memory: int = 0


def generate(spec: KernelSpec, arch: int) -> Source:
    """Return the Triton source of a kernel for an architecture such as 90."""
    return source_of(schedule_of(spec, arch))


def source_of(schedule: Schedule) -> Source:
    """Return the Triton source of a kernel whose schedule is chosen."""
    return written(schedule, name_of(schedule), arguments_of(schedule), schedule.setup())


def written(schedule: Schedule, name: str, arguments: tuple[Argument, ...], setup: list[str]) -> Source:
    """Return the Triton source of a kernel with these arguments, whose first lines find the block of a program."""
    schedule = schedule.with_spec(with_narrow_functions(schedule.spec))
    constants = schedule.constants()
    parameters = [argument.name for argument in arguments] + [f"{name}: tl.constexpr" for name, _ in constants]
    lines = [*_distances(schedule), *setup, *_body(schedule)]
    kernel = ["@triton.jit", f"def {name}({', '.join(parameters)}):", *indented(lines)]
    sizes = ", ".join(f"{name} = {size}" for name, size in constants)
    heading = [*_heading(schedule), f"# {sizes}, {schedule.tile.warps} warps"]
    defined = definitions(schedule) if isinstance(schedule, Reduce) else schedule.functions()
    text = "\n".join([*heading, "", *helpers_of("\n".join([*defined, *kernel[2:]])), *defined, *kernel, ""])
    return Source(name, text, arguments, constants, schedule.tile, _label(schedule, name), schedule.memory)


def name_of(schedule: Schedule) -> str:
    """Return the kernel's name: its operations and the case of its loops."""
    spec = schedule.spec
    calls = [str(node[1]) for node in spec.nodes if node[0] in ("call", "reduce", "carry", "scan", "total")]
    moved = ["scatter"] if spec.places else ["gather"] if spec.has_node("gather") else []
    moved = ["matmul"] if spec.has_node("product") else moved
    moved += [spec.combines] * bool(spec.combines)
    calls += ["search"] * spec.has_node("search", "bucketed", "start", "rule")
    moved = ["store"] if spec.has_node("slot") else ["count"] if spec.has_node("count") else moved
    if spec.has_node("fold", "fold_words", "fold_places"):
        moved = calls[:4]
    last = ("bins", "digits", "histograms", "rank", "sort", "argsort", "mended", "mended_order", "marks", "starts")
    for node in (*last, "sizes", "distinct", "windows"):
        moved = [node] if spec.has_node(node) else moved
    return "_".join([*(moved or calls[:4] or ["copy"]), schedule.case])


def _label(schedule: Schedule, name: str) -> str:
    """Return the kernel's name and its dtypes: ``add_flat float16 float32 -> float32``."""
    spec = schedule.spec
    dtypes = [operand.dtype for operand in spec.operands]
    return " ".join([name, *dtypes[spec.outputs :], "->", *dtypes[: spec.outputs]])


def _heading(schedule: Schedule) -> list[str]:
    """Return comments on the loops and the operands. With the sizes they complete the text: it is the cache's key."""
    spec = schedule.spec
    loops = [f"{schedule.case}, {spec.rank} axes, int{spec.index_bits} indices"]
    operands = [
        f"# {o.name}: {o.dtype}" + (", a number" if o.strides is None else f", strides {_shown(o)}")
        for o in spec.operands
    ]
    return [f"# layout case: {', '.join([*loops, *schedule.known_strides(), *schedule.known_extents()])}", *operands]


def _shown(operand: Operand) -> str:
    return f"{' '.join(map(str, operand.strides or ()))}{'' if operand.aligned else ', address not a multiple of 16'}"


def arguments_of(schedule: Schedule) -> tuple[Argument, ...]:
    """Return the arguments of a kernel: operands, extents, strides."""
    spec = schedule.spec
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
    arguments += [Argument("scratch", "*i8", 16)] * schedule.has_scratch
    arguments += [Argument(f"n{axis}", integer, schedule.extent_divisor(axis)) for axis in range(spec.rank)]
    divisors = [schedule.stride_divisor(operand) for operand in spec.arrays]
    arguments += [Argument(name, integer, divisors[position]) for name, position, _ in schedule.open_strides()]
    return (*arguments, *[Argument(name, integer, 1) for name, _ in schedule.loop_arguments()])


def _distances(schedule: Schedule) -> list[str]:
    """Return the lines that make numbers of the operands of which only distances count: they move like pointers."""
    inputs = schedule.spec.operands[schedule.spec.outputs :]
    pairs = sorted({node[1:] for node in schedule.spec.nodes if node[0] == "distance"})
    lines = [f"origin{origin} = {inputs[origin].name}.to(tl.int64)" for origin in sorted({pair[1] for pair in pairs})]
    for place, origin in pairs:
        operand = inputs[place]
        lines.append(f"{operand.name} = ({operand.name}.to(tl.int64) - origin{origin}) // {operand.itemsize}")
    return lines


def _body(schedule: Schedule) -> list[str]:
    """Return the lines after the setup."""
    for kind, body in BODIES:
        if isinstance(schedule, kind):
            return body(schedule)
    return _if(schedule, schedule.arms())


def _if(schedule: Schedule, arms: list[Arm]) -> list[str]:
    """Return the lines of a kernel's ``if``; none is needed for a single arm."""
    if len(arms) == 1:
        return _arm(schedule, arms[0])
    lines: list[str] = []
    for arm in arms:
        word = "elif" if lines else "if"
        lines.append(f"{word} {arm.condition}:" if arm.condition else "else:")
        lines += indented(_arm(schedule, arm))
    return lines


def _arm(schedule: Schedule, arm: Arm) -> list[str]:
    """Return the lines of one arm: names of the elements, values, stores."""
    lines, values = computed(schedule, arm.branch)
    lines += [] if arm.between is None else _arm(schedule, arm.between)
    lines += stored(schedule, arm.branch, values)
    if arm.pieces is None:
        return [*arm.setup, *lines]
    return [*arm.setup, arm.pieces, *indented([*arm.each, *lines])]


# --- helper functions -----------------------------------------------------------------------------------------------


def _called(text: str) -> set[str]:
    """Return the names that are called, without those of a module or a value."""
    return set(re.findall(r"(?<![\w.])\w+(?=\()", text))


@cache
def _device_functions() -> dict[str, str]:
    """Return the text of every device function, by name."""
    import pkgutil

    texts = [(pkgutil.get_data("tilearray_cuda.kernels.library", name) or b"").decode() for name in DEVICE_FILES]
    function = re.compile(r"^def (\w+)\(.*\n(?:[ \t)].*\n|\n)*", re.MULTILINE)
    return {found[1]: found[0].rstrip() for text in texts for found in function.finditer(text)}


def helpers_of(body: str) -> list[str]:
    """Return the device functions that a kernel calls, directly or not, in the order of their files."""
    if _called(body) <= {"range"}:  # most kernels call none, and the files need not be read
        return []
    functions = {**_device_functions(), **TEXTS}
    needed: set[str] = set()
    open_texts = [body]
    while open_texts:
        for name in _called(open_texts.pop()) & functions.keys() - needed:
            needed.add(name)
            open_texts.append(functions[name].partition(":\n")[2])
    return [f"@triton.jit\n{text}\n\n" for name, text in functions.items() if name in needed]
