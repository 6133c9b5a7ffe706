"""`KernelSpec`: all that code generation may see. Frozen and hashable; no shape, no address, no device.

A spec is a body (what is computed for one element), the class of its loop (how memory is walked), and what is known of
the operands' addresses. Two calls with equal specs run the same kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilearray_cuda.kernels.storage import ITEMSIZE

VECTOR = 16
"""Bytes that a thread reads or writes at once."""
WORD = 4
"""Bytes that a thread reads or writes at once where no vectors are."""
SECTOR = 32
"""Bytes that memory is read and written in."""
BURST = 256
"""Bytes that memory gives best, from a multiple of them on. Turned rows of 3600 bytes were copied at 0.91 of a copy's
rate in pieces of 256 that began at multiples of 16, at 0.925 from those of 128, and at 0.95 from those of 256."""
LINE = 128
"""Bytes of a line of the caches."""
SMALL = 2
"""Bytes of the elements that are costly one by one; of larger ones a warp has enough in flight."""
RUN_CASES = ("flat", "strided")
"""Layout cases of one axis."""
FLAT_CASES = (*RUN_CASES, "lookup")
"""Those whose programs have a run of elements, whatever their axes."""
TILE_CASES = ("tile", "mixed")
Strides = tuple[int | str, ...]


class Operand(NamedTuple):
    """One operand of a kernel.

    Attributes
    ----------
    name : its name in the source: ``out0``, ``x0``, ``x1``, ...
    dtype : the name of its dtype
    strides : along the last two axes (or the only one) 0, 1, -1, "other" or "extent" (the rows of a dense output);
        None for a number, which is an argument
    aligned : whether its address is a multiple of 16
    """

    name: str
    dtype: str
    strides: Strides | None
    aligned: bool


class KernelSpec(NamedTuple):
    """What a kernel computes, and the kind of loop it computes it in.

    Attributes
    ----------
    operands : outputs first, then the inputs in the body's order
    outputs : how many of the operands are outputs
    nodes, stores : the expression graph, and which node each output stores; see `tilearray.ops.typing.Body`
    places : for each output the node that says how far from its place an element is stored; () for none
    case : the name of the layout case
    rank : number of axes of the collapsed loop
    index_bits : 32 or 64
    divisible : what divides every stride argument of an operand that also has a stride of 1, as far as vectors need it,
        of the largest elements as far as sectors do
    fits : block sizes that the last axes fill well
    merged : whether the columns of tiles are the last axis and the last but two, which are one for what is dense there
    fours : whether the last two extents are multiples of 4, so that masks are alike in vectors
    huge : whether one operand is turned into another, and no cache has room for either
    steady : (), or of a huge loop that turns one array: elements that divide its pitch along the columns, and fewer
        that divide its pitches further out; and the rows of a block that fill well if it begins too early
    """

    operands: tuple[Operand, ...]
    outputs: int
    nodes: tuple[Any, ...]
    stores: tuple[int, ...]
    places: tuple[int, ...]
    case: str
    rank: int
    index_bits: int
    divisible: int
    fits: tuple[int, ...]
    merged: bool = False
    fours: bool = False
    huge: bool = False
    steady: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The kernel's name: its operations and the layout case."""
        calls = [str(node[1]) for node in self.nodes if node[0] == "call"]
        moved = ["scatter"] if self.places else ["gather"] if any(node[0] == "gather" for node in self.nodes) else []
        return "_".join([*(moved or calls[:4] or ["copy"]), self.case])

    @property
    def label(self) -> str:
        """The kernel's name and its dtypes: ``add_flat float16 float32 -> float32``."""
        dtypes = [operand.dtype for operand in self.operands]
        return " ".join([self.name, *dtypes[self.outputs :], "->", *dtypes[: self.outputs]])

    @property
    def arrays(self) -> tuple[Operand, ...]:
        """The operands that are in memory."""
        return tuple(operand for operand in self.operands if operand.strides is not None)

    @property
    def columns(self) -> str:
        """The extent of a tile's columns, by name."""
        return "columns" if self.merged else f"n{self.rank - 1}"

    @property
    def lead(self) -> int:
        """By how many elements the first block, or each row of the first tile, may begin too early.

        So that the stores of a flat kernel are vectors, and those of a slanted one words or sectors.
        """
        out = self.operands[0]
        small = self._has_one_result and ITEMSIZE[out.dtype] <= SMALL
        is_run = self.case in RUN_CASES and out.strides == (1,) and small and not out.aligned
        unit = VECTOR if is_run else self.slanted
        return unit // ITEMSIZE[out.dtype] - 1 if unit else 0

    @property
    def slanted(self) -> int:
        """Bytes of the units of the output where the rows of a tile begin, each at another column; 0 if all at one.

        Rows that may begin anywhere do so: of small elements at words, which are read and written as such, and of one
        turned array of words at sectors, which are written whole. The first tile and the last of a row are masked, so
        tiles are large; and elements that are turned are no larger than the output's.
        """
        out = self.operands[0]
        size, dense = ITEMSIZE[out.dtype], out.strides == ("other", 1) and self._has_one_result
        if not dense or self.case not in TILE_CASES or not min(self.fits) >= 64 < max(self.fits):
            return 0
        if self.merged or self.hanging:
            return 0
        anywhere = not all(operand.aligned for operand in self.arrays)
        turned = [ITEMSIZE[operand.dtype] for operand in self.arrays if operand.strides == (1, "other")]
        if self.alone and [size, *turned] == [WORD, WORD]:
            return SECTOR if anywhere or self.divisible * WORD < VECTOR else 0
        return WORD if (anywhere or self.divisible == 1) and max([*turned, 1]) <= size <= SMALL else 0

    @property
    def overlap(self) -> int:
        """The columns that a tile reads and the next one stores, as rows begin up to a sector earlier than the tile."""
        return SECTOR // WORD if self.slanted == SECTOR else 0

    @property
    def hanging(self) -> int:
        """Bytes of the units of a turned array where the columns of a tile begin, each at another row; 0 if all at one.

        In each column of the last axis they lie alike, so what a vector reads and stores of the others is of one row.
        Where all of its rows begin at such units, nothing is to be gained.
        """
        if not (self.steady and self._has_one_result and all(operand.aligned for operand in self.arrays)):
            return 0
        if any(node[0] in ("gather", "report") for node in self.nodes) or self._has_parts_to_read:
            return 0
        size = ITEMSIZE[self.hung.dtype]
        unit = min(self.steady[0] * size, BURST)
        return unit if unit >= LINE and unit > self.steady[1] * size else 0

    @property
    def _has_parts_to_read(self) -> bool:
        """Whether complex128 lie beside the turned array, in columns of two axes: parts have rows in stores alone."""
        return self.merged and not self.alone and any(operand.dtype == "complex128" for operand in self.arrays)

    @property
    def hung(self) -> Operand:
        """The array that is turned, of a steady loop."""
        return next(operand for operand in self.arrays if operand.strides == (1, "other"))

    @property
    def rise(self) -> int:
        """By how many elements a column of the first tile may begin too early."""
        return self.hanging // ITEMSIZE[self.hung.dtype] - self.rise_by if self.hanging else 0

    @property
    def rise_by(self) -> int:
        """What divides the elements by which columns begin too early."""
        return min(self.divisible, VECTOR // ITEMSIZE[self.hung.dtype])

    @property
    def alone(self) -> bool:
        """Whether there is one array to write and one to read."""
        return len(self.arrays) == 2 and self._has_one_result

    @property
    def _has_one_result(self) -> bool:
        """Whether there is one output, of elements that are stored where they belong."""
        return self.outputs == 1 and not self.places

    @property
    def stays(self) -> bool:
        """Whether what is read stays in the L2 cache longer than what is written, which memory gets more steadily then.

        Of smaller arrays the result would have been found there by what comes next.
        """
        return self.huge and self.alone

    @property
    def repeats(self) -> bool:
        """Whether a lookup reads nothing but rows, columns and elements that are repeated: it writes much more."""
        moves = self.places or any(node[0] == "gather" for node in self.nodes)
        repeated = all(0 in (operand.strides or ()) for operand in self.arrays[self.outputs :])
        return self.case == "lookup" and repeated and not moves

    @property
    def passes(self) -> bool:
        """Whether what is stored need not stay in the L2 cache: small elements that are written and hardly read."""
        return self.repeats and ITEMSIZE[self.operands[0].dtype] <= SMALL

    @property
    def ragged(self) -> bool:
        """Whether a row of some operand in memory may begin where no vector does."""
        least = min(ITEMSIZE[operand.dtype] for operand in self.arrays)
        pitches = self.rank == 1 or self.divisible * least >= VECTOR
        return not (pitches and all(operand.aligned for operand in self.arrays))


def make_spec(body: Any, layout_class: Any, aligned: tuple[bool, ...]) -> KernelSpec:
    """Join a body, a layout class and the alignment of the operands in memory."""
    strides, alignments = iter(layout_class.strides), iter(aligned)
    operands = [
        Operand(f"out{position}", dtype, next(strides), next(alignments))
        for position, dtype in enumerate(body.output_dtypes)
    ]
    for position, (kind, dtype) in enumerate(body.inputs):
        name = f"x{position}"
        if kind == "scalar":
            operands.append(Operand(name, dtype, None, False))
        else:
            operands.append(Operand(name, dtype, next(strides), next(alignments)))
    least = min(ITEMSIZE[operand.dtype] for operand in operands)
    return KernelSpec(
        tuple(operands),
        len(body.output_dtypes),
        body.nodes,
        body.outputs,
        body.places,
        layout_class.case.value,
        layout_class.rank,
        layout_class.index_bits,
        min(layout_class.divisible, max(VECTOR // least, 2)),
        layout_class.fits,
        layout_class.merges and (least > 1 or layout_class.fours),  # bytes are turned by fours
        layout_class.fours,
        layout_class.huge,
        layout_class.steady,
    )
