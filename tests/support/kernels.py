"""Kernels without a GPU: their source from an op, dtypes and strides, and the PTX that the compiler makes of it."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from support.oracles.formats import Number, dtype_of
from support.oracles.rules import RULES
from tilearray import ops
from tilearray.engine.expression import Expression
from tilearray.engine.operation import expression_of
from tilearray.geometry.loop import LayoutCase, Loop, make_loop
from tilearray.ops import moves
from tilearray.promotion.scalars import classify
from tilearray.promotion.systems import SEMANTICS
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.schedules.skewed_columns import SkewedColumns
from tilearray_cuda.kernels.schedules.skewed_rows import SkewedRows
from tilearray_cuda.kernels.schedules.tiled import Tiled
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import KernelSpec, make_spec

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is made for Linux only")

Strides = tuple[int, ...]

ELEMENTWISE = {
    case.value
    for case in LayoutCase
    if not case.value.startswith(("fold", "partition", "product", "reduce", "runs", "scan", "selection", "sort"))
}
"""The cases of loops of elementwise operations: all but those of other operations, whose names begin so."""


# --- from an op to its source ---------------------------------------------------------------------------------------


class Kernel(NamedTuple):
    """A kernel, and the loop that it is run over."""

    schedule: Schedule
    source: Source
    loop: Loop

    @property
    def spec(self) -> KernelSpec:
        """The spec as its schedule sees it."""
        return self.schedule.spec

    @property
    def skewed_rows(self) -> int:
        """Bytes of the units at which the rows of tiles begin; 0 if they are not skewed."""
        return self.schedule.unit if isinstance(self.schedule, SkewedRows) else 0

    @property
    def skewed_columns(self) -> int:
        """Bytes of the units at which the columns of tiles begin; 0 if they are not skewed."""
        return self.schedule.unit if isinstance(self.schedule, SkewedColumns) else 0

    @property
    def merged(self) -> bool:
        """Whether the columns of tiles are two axes."""
        return isinstance(self.schedule, Tiled) and self.schedule.merged


def body_for(
    name: str, operands: Sequence[str | Number], out: str | None = None, semantics: str = "array-api"
) -> Expression:
    """The body of an op for operands given as the names of dtypes, or as numbers; ``astype`` is one of the ops."""
    op = moves.convert if name == "astype" else moves.assign if name == "identity" else ops.PUBLIC[name]
    types = tuple(dtype_of(given) if isinstance(given, str) else classify(given) for given in operands)
    return expression_of(op, SEMANTICS[semantics], types, None if out is None else dtype_of(out))  # type: ignore[arg-type]


def operands_of(name: str, dtype: str) -> list[str]:
    """The dtypes of a row's operands: conditions, the dtype, and integers as exponents."""
    rule = RULES[name]
    return ["bool"] * rule.masks + [dtype] * (rule.arity - rule.masks - rule.exponents) + ["int64"] * rule.exponents


def kernel_for(
    body: Expression,
    shape: Sequence[int],
    strides: Sequence[Strides],
    *,
    aligned: bool | tuple[bool, ...] = True,
    arch: int = 90,
    index_bits: int | None = None,
) -> Kernel:
    """The kernel of a body over a shape, of which every array, outputs first, has its strides in elements."""
    loop = make_loop(tuple(shape), list(strides))
    if index_bits is not None:
        loop = loop._replace(index_bits=index_bits)
    alignment = (aligned,) * len(strides) if isinstance(aligned, bool) else aligned
    schedule = schedule_of(make_spec(body, loop_class(loop), alignment), arch)
    return Kernel(schedule, source_of(schedule), loop)


def flat_kernel(name: str, *operands: str | Number, out: str | None = None, **options: Any) -> Kernel:
    """The kernel of an op on contiguous arrays."""
    body = body_for(name, operands, out, options.pop("semantics", "array-api"))
    arrays = sum(kind == "array" for kind, _ in body.inputs) + len(body.output_dtypes)
    return kernel_for(body, (100_000,), [(1,)] * arrays, **options)


# --- PTX ------------------------------------------------------------------------------------------------------------


class Code(NamedTuple):
    """What the compiler made of a kernel, and how its PTX touches memory."""

    cubin: bytes
    ptx: str
    warps: int
    shared: int

    def accesses(self, kind: str, masked: bool) -> Counter[int]:
        """How many loads (``ld``) or stores (``st``) of global memory there are, by their bytes."""
        found = re.findall(
            rf"^\s*(@!?%p\d+ )?{kind}\.global[.\w:]*?(?:\.v(\d))?\.[busf](\d+)\b", self.ptx, re.MULTILINE
        )
        return Counter(int(count or 1) * int(bits) // 8 for mask, count, bits in found if bool(mask) == masked)

    def count(self, pattern: str) -> int:
        """How many instructions match, from the first letter to the operands."""
        return len(re.findall(rf"^\s*(?:@!?%p\d+ )?(?:{pattern})\s", self.ptx, re.MULTILINE))


@cache
def compiled(kernel: Kernel, arch: int = 90) -> Code:
    """Compile, once for all tests of a process."""
    from tilearray_cuda.kernels.compile import compile_source

    found = compile_source(kernel.source, arch, kernel.spec.contract)
    return Code(found.cubin, found.ptx, found.num_warps, found.shared)
