"""`KernelSpec`: everything that code generation may see. Frozen and hashable; no shape, no address, no device.

A spec joins an expression (what is computed for one element), the class of its loop (how memory is walked), and the
facts about the operands' addresses. Two calls with equal specs run the same kernel. A spec holds plain facts only; a
schedule decides what to make of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from tilearray_cuda.kernels.hardware import VECTOR
from tilearray_cuda.kernels.storage import ITEMSIZE

Strides = tuple[int | str, ...]

HEAVY = 3
"""Functions of libdevice that take as long as memory does."""
LONG = ("complex_pow(",)
"""Functions of the library that take longer each."""


class LoopClass(NamedTuple):
    """The facts of a loop that code depends on. They are finitely many for a rank; all else is an argument.

    Attributes
    ----------
    case : the name of the loop's case, as `tilearray.geometry.loop.LayoutCase` has it
    rank : number of axes of the collapsed loop
    strides : for each operand along the last two axes (or the only one) 0, 1, -1 or "other"
    index_bits : 32 or 64
    divisible : 16, 4 or 1: what divides all stride arguments of operands that also have a stride of 1
    facts : the facts of the schedules that may serve the loop; see `tilearray_cuda.kernels.schedules.choose`
    """

    case: str
    rank: int
    strides: tuple[Strides, ...]
    index_bits: int
    divisible: int
    facts: tuple[Hashable, ...]


class Operand(NamedTuple):
    """One operand of a kernel.

    Attributes
    ----------
    name : its name in the source: ``out0``, ``x0``, ``x1``, ...
    dtype : the name of its dtype
    strides : along the last two axes (or the only one) 0, 1, -1 or "other", or "extent" (the rows of a dense output);
        None for a number, which is an argument
    aligned : whether its address is a multiple of 16
    """

    name: str
    dtype: str
    strides: Strides | None
    aligned: bool

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return ITEMSIZE[self.dtype]

    @property
    def last_two(self) -> tuple[int | str, int | str]:
        """The strides along the last two axes; 0 for a number."""
        row, column = self.strides or (0, 0)
        return row, column

    @property
    def is_transposed(self) -> bool:
        """Whether it is dense along the rows' axis of a tile."""
        return self.strides == (1, "other")


class KernelSpec(NamedTuple):
    """What a kernel computes, and the kind of loop it computes it in.

    Attributes
    ----------
    operands : outputs first, then the inputs in the expression's order
    outputs : the number of outputs
    nodes, stores : the expression graph, and the node that each output stores
    places : for each output the node that gives the distance of an element from its own place; () for none
    case, rank, index_bits, facts : as in `LoopClass`
    divisible : what divides every stride argument of an operand that also has a stride of 1: as far as vectors need it,
        or as far as sectors need it for the largest elements
    contract : whether the compiler may compute a product and a sum in one rounding
    combines : how a result is combined with the element in its place, by an atomic, or "count"; "" to replace it
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
    facts: tuple[Hashable, ...]
    contract: bool = False
    combines: str = ""

    @property
    def arrays(self) -> tuple[Operand, ...]:
        """The operands that are in memory."""
        return tuple(operand for operand in self.operands if operand.strides is not None)

    @property
    def widest(self) -> int:
        """The itemsize of the array with the largest elements."""
        return max(operand.itemsize for operand in self.arrays)

    @property
    def narrowest(self) -> int:
        """The itemsize of the array with the smallest elements."""
        return min(operand.itemsize for operand in self.arrays)

    @property
    def has_one_result(self) -> bool:
        """Whether there is one output, and its elements are stored at their own places."""
        return self.outputs == 1 and not self.places

    @property
    def copies(self) -> bool:
        """Whether there is one array to write and one to read."""
        return len(self.arrays) == 2 and self.has_one_result

    @property
    def unaligned(self) -> bool:
        """Whether a row of some array may begin between two vectors."""
        pitches = self.rank == 1 or self.divisible * self.narrowest >= VECTOR
        return not (pitches and all(operand.aligned for operand in self.arrays))

    @property
    def runs(self) -> int:
        """The number of arrays that are read along runs which begin between two vectors."""
        pitches = self.rank == 1 or self.divisible * self.narrowest >= VECTOR
        read = [operand for operand in self.arrays[self.outputs :] if (operand.strides or ())[-1:] == (1,)]
        return sum(not (operand.aligned and (pitches or operand.strides == ("extent", 1))) for operand in read)

    @property
    def is_heavy(self) -> bool:
        """Whether an element takes longer to compute than to move: it calls several functions, or a long one."""
        is_long = any(name in template for template in self._templates for name in LONG)
        return is_long or sum("libdevice." in template for template in self._templates) >= HEAVY

    @property
    def draws(self) -> bool:
        """Whether elements are made from random words of 32 bits."""
        return any(template.startswith("philox_32") for template in self._templates)

    @property
    def _templates(self) -> list[str]:
        """The text of each call in the nodes."""
        return [str(node[4]) for node in self.nodes if node[0] == "call"]

    def by_words(self) -> KernelSpec:
        """Return the spec without what is known of addresses, so that the threads of a warp take elements in turn."""
        operands = [operand._replace(aligned=False) if operand.strides else operand for operand in self.operands]
        return self._replace(operands=tuple(operands))

    @property
    def outputs_beside(self) -> tuple[int, ...]:
        """The outputs of a reduction that no reduction reaches: they have an element for each one that is reduced."""
        if not self.has_node("reduce"):
            return ()
        reached: list[bool] = []
        for node in self.nodes:
            match node:
                case ("cast", argument, *_) | ("gather", _, argument):
                    reached.append(reached[argument])
                case ("call", _, arguments, *_):
                    reached.append(any(reached[argument] for argument in arguments))
                case _:
                    reached.append(node[0] == "part")
        return tuple(place for place, node in enumerate(self.stores) if not reached[node])

    @property
    def carried(self) -> tuple[int, ...]:
        """The outputs that store what a program carried along."""
        parts = [node[0] == "part" and self.nodes[node[1]][0] == "carry" for node in self.nodes]
        return tuple(place for place, node in enumerate(self.stores) if parts[node])

    def has_node(self, *kinds: str) -> bool:
        """Whether the expression has a node of one of these kinds."""
        return any(node[0] in kinds for node in self.nodes)


def make_spec(expression: Any, loop_class: Any, aligned: tuple[bool, ...]) -> KernelSpec:
    """Join an expression, the class of a loop and the alignment of the operands in memory."""
    loop_class = LoopClass(*loop_class)
    strides, alignments = iter(loop_class.strides), iter(aligned)
    operands = [
        Operand(f"out{position}", dtype, next(strides), next(alignments))
        for position, dtype in enumerate(expression.output_dtypes)
    ]
    for position, (kind, dtype) in enumerate(expression.inputs):
        name = f"x{position}"
        if kind == "scalar":
            operands.append(Operand(name, dtype, None, False))
        else:
            operands.append(Operand(name, dtype, next(strides), next(alignments)))
    least = min(operand.itemsize for operand in operands)
    return KernelSpec(
        tuple(operands),
        len(expression.output_dtypes),
        expression.nodes,
        expression.outputs,
        expression.places,
        loop_class.case,
        loop_class.rank,
        loop_class.index_bits,
        min(loop_class.divisible, max(VECTOR // least, 2)),
        loop_class.facts,
        expression.contract,
        expression.combines,
    )
