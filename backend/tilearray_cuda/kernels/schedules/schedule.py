"""`Schedule`: one strategy to run a loop on a GPU.

A schedule knows when it applies, which facts of a loop its code depends on, its block sizes and number of programs, and
how an operand is read and written. It is text only: values are computed by `tilearray_cuda.kernels.expression`, which
asks a schedule to load and to store; `tilearray_cuda.kernels.source` joins both to a kernel. Each strategy is a file of
this folder; `choose` has the list of all.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from tilearray_cuda.kernels import tuned_tiles
from tilearray_cuda.kernels.schedules.addressing import Arm, Branch, added
from tilearray_cuda.kernels.spec import KernelSpec, Operand

PIECE = 8
"""Elements that a thread takes at once if each has a mask and an address of its own."""

ATOMICS = {
    "add": "tl.atomic_add", "maximum": "tl.atomic_max", "minimum": "tl.atomic_min",
    "and": "tl.atomic_and", "or": "tl.atomic_or", "xor": "tl.atomic_xor",
}  # fmt: skip
"""How a result is combined with the element in its place."""
FLOAT_ATOMICS = {"maximum": "keep_larger", "minimum": "keep_smaller"}
"""The functions of the library that combine floats, where hardware has atomics of integers only."""


class Tile(NamedTuple):
    """The elements of a program along the last two axes, and its warps; a linear block has one row.

    `stages` is how many steps of a loop are in flight, and `registers` the most registers of a thread; 0 leaves that to
    the compiler.
    """

    rows: int
    columns: int
    warps: int
    stages: int = 0
    registers: int = 0

    @property
    def of_a_thread(self) -> int:
        """Elements that a thread computes."""
        return self.rows * self.columns // (32 * self.warps)


Sizes = Mapping[int, Tile]
"""A tile for each itemsize of the widest array."""


class Schedule:
    """A strategy that was chosen for a spec, with its block sizes.

    A strategy subclasses it, and gives `cases`, `facts`, `fits`, `programs`, `constants`, `setup`, `arms` and `index`.
    The other methods have defaults: elements that are read and written one address each.

    Attributes
    ----------
    cases : the loops that it may serve, by the name of their case
    serves_all : whether it serves every expression on the loops that it has facts of
    spec : the kernel's spec, as the schedule names its strides
    tile : the block sizes
    in_list : whether programs are counted within a member of a list of arrays; see `tilearray_cuda.kernels.lists`
    has_scratch : whether a launch needs memory beside its operands, of which `scratch` tells the size
    memory : the bytes of shared memory that assembly has behind the compiler's
    arch : the architecture, such as 90
    """

    cases: ClassVar[tuple[str, ...]]
    serves_all: ClassVar[bool] = False
    in_list = False
    has_scratch = False
    memory = 0
    arch = 80

    def __init__(self, spec: KernelSpec, tile: Tile) -> None:
        self.spec = spec
        self.tile = tile

    # ------------------------------------------------------------------ choice

    @staticmethod
    def facts(loop: Any) -> Hashable:
        """Return the facts of a loop that the code depends on beside those of every `LoopClass`; None to decline.

        They take few values, since each combination is a kernel. A subclass that inherits `facts` shares them.

        Most small loops are never asked: `tilearray.geometry.fast_path` finds their kernel. So contiguous loops have no
        facts, and facts of small loops over a matrix follow from those of `choose.facts_of_matrix`, or are added there.
        """
        raise NotImplementedError

    @classmethod
    def fits(cls, spec: KernelSpec, facts: Any, arch: int) -> Schedule | None:
        """Return the schedule for a spec, with block sizes for an architecture such as 90; None to decline."""
        raise NotImplementedError

    def resized(self, tile: Tile) -> Schedule:
        """Return the same schedule with another tile, which `benchmarks.tune` measures."""
        other = copy.copy(self)
        other.tile = tile
        return other

    def with_spec(self, spec: KernelSpec) -> Self:
        """Return the same schedule for a spec that has other nodes in the places of some."""
        other = copy.copy(self)
        other.spec = spec
        return other

    def for_lists(self) -> Schedule:
        """Return the same schedule for the arrays of a list."""
        other = copy.copy(self)
        other.in_list = True
        return other

    # ------------------------------------------------------------------ the kernel

    @property
    def waits(self) -> bool:
        """Whether programs wait for others: those that have memory for it, unless a schedule says so."""
        return self.has_scratch

    @property
    def case(self) -> str:
        """The case that the kernel's name and heading tell."""
        return self.spec.case

    def programs(self) -> str:
        """Return the number of programs, as an expression of the extents ``n0, n1, ...``."""
        raise NotImplementedError

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the block sizes by their names in the kernel."""
        raise NotImplementedError

    def setup(self) -> list[str]:
        """Return the lines that find a program's block."""
        raise NotImplementedError

    def arms(self) -> list[Arm]:
        """Return the arms of the kernel's ``if``: whole blocks first, masked ones last; or one arm for all blocks."""
        raise NotImplementedError

    def extent_divisor(self, axis: int) -> int:
        """Return what an extent is known to be a multiple of."""
        return 1

    def stride_divisor(self, operand: Operand) -> int:
        """Return what the stride arguments of an array are known to be multiples of."""
        return self.spec.divisible if 1 in (operand.strides or ()) else 1

    def known_strides(self) -> list[str]:
        """Return the heading's words on `stride_divisor`: the text is the key of the cubin cache, so it is complete."""
        divisible = self.spec.divisible
        return [f"strides that are arguments are multiples of {divisible}"] if divisible > 1 else []

    def known_extents(self) -> list[str]:
        """Return the heading's words on `extent_divisor`."""
        return []

    def open_strides(self) -> list[tuple[str, int, int]]:
        """Return the strides that are arguments: name, the array's position among the arrays, and axis."""
        found: list[tuple[str, int, int]] = []
        rank = self.spec.rank
        for position, operand in enumerate(self.spec.arrays):
            known = operand.strides or ()
            for axis in range(rank):
                from_end = axis - rank
                if -from_end > len(known) or known[from_end] == "other":
                    found.append((f"{operand.name}_s{axis}", position, axis))
        return found

    def loop_arguments(self) -> tuple[tuple[str, str], ...]:
        """Return the other arguments that a loop gives: their names, and the loop's attributes."""
        return ()

    def scratch(self, loop: Any) -> tuple[int, int]:
        """Return the bytes that a launch needs beside its operands, and how many of them must be 0 before it."""
        raise NotImplementedError

    def functions(self) -> list[str]:
        """Return the texts of the functions that the kernel has of its own."""
        return []

    def program(self) -> str:
        """Return the number of the program, in the type of indices."""
        number = "program_of_member" if self.in_list else "tl.program_id(0)"
        return number if self.spec.index_bits == 32 else f"{number}.to(tl.int64)"

    # ------------------------------------------------------------------ where elements lie

    def index(self, operand: Operand, branch: Branch) -> str:
        """Return the distance of an array's elements from its first one; "" if all are the first one."""
        raise NotImplementedError

    def zeros(self, branch: Branch) -> str:
        """Return a zero for each element of a block."""
        raise NotImplementedError

    def guard(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the mask of an access as an argument, or ""."""
        raise NotImplementedError

    def placed_index(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the index of elements, each moved by `place` if that is a value: then each has an index."""
        index = self.index(operand, branch)
        return added(index, place, self.zeros(branch)) if place else index

    def address(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the addresses of an array's elements."""
        index = self.placed_index(operand, branch, place)
        return f"{operand.name} + {index}" if index else operand.name

    def pair(self, operand: Operand, branch: Branch, place: str) -> str:
        """Return the index of a complex128, always of a block: two float64 that are one vector in memory."""
        return self.placed_index(operand, branch, place) or self.zeros(branch)

    # ------------------------------------------------------------------ loads and stores

    def load(self, operand: Operand, branch: Branch, place: str = "") -> str:
        """Return the expression of an array's elements as they are in memory; not for complex128."""
        return f"tl.load({self.address(operand, branch, place)}{self.guard(operand, branch, place)})"

    def load_pair(self, operand: Operand, branch: Branch, place: str = "") -> tuple[str, bool]:
        """Return the expression of the parts of complex128 elements, and whether both must be transposed."""
        guard = self.guard(operand, branch, place)
        return f"load_pair{masked(guard)}({operand.name}, {self.pair(operand, branch, place)}{guard})", False

    def load_guarded(self, operand: Operand, branch: Branch) -> str:
        """Return the expression of elements that are read where the branch's condition holds; not for complex128."""
        place = self.zeros(branch) if 0 in (operand.strides or (0,)) else ""
        return f"tl.load({self.address(operand, branch, place)}{self._guarded(operand, branch, place)})"

    def load_pair_guarded(self, operand: Operand, branch: Branch) -> str:
        """Return the same of the parts of complex128 elements."""
        place = self.zeros(branch) if 0 in (operand.strides or (0,)) else ""
        index = self.pair(operand, branch, place)
        return f"load_pair_masked({operand.name}, {index}{self._guarded(operand, branch, place)})"

    def _guarded(self, operand: Operand, branch: Branch, place: str) -> str:
        guard = self.guard(operand, branch, place)
        return f"{guard or ', mask='}{' & ' if guard else ''}{branch.condition}"

    def store(self, operand: Operand, value: str, branch: Branch, place: str = "") -> str:
        """Return the statement that stores elements as they are in memory; not for complex128."""
        return f"tl.store({self.address(operand, branch, place)}, {value}{self.guard(operand, branch, place)})"

    def combine(self, operand: Operand, value: str, branch: Branch, place: str) -> str:
        """Return the statement that combines values with the elements in memory, each by one atomic."""
        address, guard = self.address(operand, branch, place), self.guard(operand, branch, place)
        if self.spec.combines == "count":
            return f"count_places({address}{guard})"
        is_float = operand.dtype in ("float32", "float64")
        called = FLOAT_ATOMICS.get(self.spec.combines, "") if is_float else ""
        if called:
            return f"{called}({address}, {value}{guard})"
        return f'{ATOMICS[self.spec.combines]}({address}, {value}{guard}, sem="relaxed")'

    def store_pair(self, operand: Operand, parts: tuple[str, ...], branch: Branch, place: str = "") -> str:
        """Return the statement that stores the parts of complex128 elements."""
        guard = self.guard(operand, branch, place)
        pair = self.pair(operand, branch, place)
        return f"store_pair{masked(guard)}({operand.name}, {pair}, {', '.join(parts)}{guard})"


def masked(guard: str) -> str:
    """Return the suffix of the device functions that take a mask."""
    return "_masked" if guard else ""


Tables = Mapping[int, Mapping[str, Sizes]]
"""The first architecture, the kind of kernels, and their tiles. No two schedules have a kind of the same name."""


def tile_for(tables: Tables, arch: int, kind: str, itemsize: int) -> Tile:
    """Return the tile of a kind of kernels, whose widest array has this itemsize.

    It is the one that was measured on this machine's GPU, if there is one that fits; else that of the newest
    architecture that is not newer.

    >>> tile_for({80: {"a kind": {4: Tile(1, 512, 4)}}, 100: {}}, 90, "a kind", 4)
    Tile(rows=1, columns=512, warps=4, stages=0, registers=0)
    """
    sizes = tables[max(first for first in tables if first <= arch)]
    measured = tuned_tiles.find(arch, (kind, itemsize))
    if measured is not None and is_bounded(Tile(*measured), tables, kind, itemsize):
        return Tile(*measured)
    return sizes[kind][itemsize]


def is_bounded(tile: Tile, tables: Tables, kind: str, itemsize: int) -> bool:
    """Whether a tile is between the tables' smallest and largest ones, in rows, columns, memory and registers.

    >>> tables = {80: {"a kind": {4: Tile(1, 512, 4)}, "other": {4: Tile(1, 2048, 8)}}}
    >>> [is_bounded(Tile(*tile), tables, "a kind", 4) for tile in ((1, 2048, 8), (1, 4096, 8), (1, 2048, 4))]
    [True, False, False]
    """
    kinds = [sizes for of_arch in tables.values() for sizes in of_arch.values()]
    every = [each for sizes in kinds for each in sizes.values()]
    alike = [sizes[itemsize] for sizes in kinds if itemsize in sizes]
    own = [sizes[kind][itemsize] for sizes in tables.values() if itemsize in sizes.get(kind, ())]
    return (
        bool(own)
        and all((each.rows == 1) == (tile.rows == 1) for each in own)
        and min(each.rows for each in every) <= tile.rows
        and min(each.columns for each in every) <= tile.columns
        and tile.rows * tile.columns <= max(each.rows * each.columns for each in alike)
        and tile.of_a_thread <= max(each.of_a_thread for each in alike)
    )
