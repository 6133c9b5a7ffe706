"""Fingerprints of every kernel that the library can generate, to show that a change of the generator changes no kernel.

    python -m benchmarks.kernel_sources --write before.txt      # in the old tree
    python -m benchmarks.kernel_sources --compare before.txt    # in the new one

The kernels are those of the rows of the op table with every dtype and every layout of `tilearray cache warm`, with
their options, and under each semantics; and those of gathers, scatters and ranges. A fingerprint covers the Triton
source, its arguments and constants, the warps, and the number of programs of a launch. ``--renamed new=old`` restores
the old name of a device function before the fingerprint is made. The command needs no GPU, and takes a few minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tilearray as ta
from tilearray import dtypes
from tilearray.arrays import ranges
from tilearray.commands.cache import warm
from tilearray.errors import TileArrayError
from tilearray.functions.indexing.gather import gathering, placing
from tilearray.functions.indexing.scatter import scattering
from tilearray.geometry.loop import make_loop
from tilearray.ops import OPS
from tilearray.ops.variants import variant
from tilearray.promotion.systems import SEMANTICS
from tilearray_cuda.kernel import fixed_by_loop
from tilearray_cuda.kernels.casts import UnsupportedCastError
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.source import source_of
from tilearray_cuda.kernels.spec import make_spec

ARCHITECTURES = (80, 90, 120)
EXTENTS = (3, 5, 1009, 1013)
SIZES = (ta.int8, ta.int16, ta.float32, ta.float64)


def requests(sample: bool) -> Iterator[tuple[Any, Any, tuple[bool, ...]]]:
    """Yield the inputs of kernels: an expression, the layout class of a loop, and the alignment of each operand."""
    semantics = ta.get_semantics()
    for op in OPS[:5] if sample else OPS:
        chosen = dtypes.ALL if op.moves else dtypes.ARITHMETIC
        print(f"\r{op.name:24}", end="", file=sys.stderr, flush=True)
        for row in warm.rows_of(op, chosen, False):
            yield from of_row(row, list(warm.LAYOUTS), semantics)
        for derived in variants(op):
            for row in warm.rows_of(derived, dtypes.ARITHMETIC[9:13], False):
                yield from of_row(row, ["contiguous", "scalar", "row", "transposed", "shifted"], semantics)
    for op, system in itertools.product((ta.add, ta.divide, ta.floor_divide, ta.sqrt, ta.less), SEMANTICS.values()):
        for row in warm.rows_of(op, dtypes.ARITHMETIC[::2], True):
            yield from of_row(row, ["contiguous", "scalar", "transposed", "sliced"], system)
    yield from moving()


def variants(op: Any) -> Iterator[Any]:
    """Yield the rows derived from a row, one for each option."""
    options = op.options
    yield from (variant(op, rounding=mode) for mode in options.rounding)
    if options.flush_to_zero:
        yield variant(op, flush_to_zero=True)
    if options.ignoring_nan:
        yield variant(op, propagate_nan=False)


def of_row(row: Any, layouts: list[str], semantics: Any) -> Iterator[tuple[Any, Any, tuple[bool, ...]]]:
    seen: set[Any] = set()
    for call in itertools.chain.from_iterable(warm.calls_of(row, layout) for layout in layouts):
        try:
            found = warm.request_of(call, semantics)
        except (TileArrayError, NotImplementedError):
            continue
        if found not in seen:
            seen.add(found)
            yield found


def moving() -> Iterator[tuple[Any, Any, tuple[bool, ...]]]:
    """Yield the kernels of gathers, scatters and ranges over a few loops."""
    made = []
    for dtype, index, checked in itertools.product(SIZES, ((ta.int64,), (ta.uint64, ta.int32)), (False, True)):
        made += [gathering(dtype, index, checked), placing(index, checked)]
        made += [scattering(dtype, is_number, "", *at) for is_number in (False, True) for at in ((), (index, checked))]
    made += [ranges.stepping(carrier, dtype) for carrier in (ta.int64, ta.uint64, ta.float64) for dtype in SIZES]
    made += [ranges.spacing(dtype, down) for dtype in SIZES for down in (False, True)]
    shapes = (((1000,), (1,)), ((96, 640), (640, 1)), ((640, 96), (1, 640)), ((4, 30, 40), (1200, 1, 30)))
    for operation, (shape, strides), aligned in itertools.product(dict.fromkeys(made), shapes, (True, False)):
        body = operation.graph
        arrays = len(body.outputs) + sum(kind == "array" for kind, _ in body.inputs)
        others = [(0,) * (len(shape) - 1) + (1,)] * (arrays - 1)
        yield body, loop_class(make_loop(shape, [strides, *others])), (aligned,) * arrays


def fingerprint(spec: Any, arch: int, renamed: dict[str, str]) -> tuple[str, str]:
    """Return the fingerprint of a kernel, and its label."""
    schedule = schedule_of(spec, arch)
    source = source_of(schedule)
    arguments = SimpleNamespace(pack_fixed=lambda *values: values, block=(), fix=lambda *values: values)
    strides = tuple(tuple(range(7 + k, 7 + k + spec.rank)) for k in range(len(spec.arrays)))
    launch = fixed_by_loop(schedule, arguments)((EXTENTS[4 - spec.rank :], strides, (), None, 32))
    text = source.text
    for new, old in renamed.items():
        text = text.replace(new, old)
    parts = (source.name, text, *map(tuple, source.arguments), *source.constants, source.tile.warps, launch)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:20], f"{source.label} sm_{arch}"


def fingerprints(sample: bool, renamed: dict[str, str]) -> list[str]:
    """Return a line for each different kernel, sorted."""
    found: set[str] = set()
    specs: set[Any] = set()
    for body, known, aligned in requests(sample):
        try:
            spec = make_spec(body, known, aligned)
            if spec in specs or spec.rank > len(EXTENTS):
                continue
            specs.add(spec)
            found.update(" ".join(fingerprint(spec, arch, renamed)) for arch in ARCHITECTURES)
        except (UnsupportedCastError, NotImplementedError):
            continue
    return sorted(found, key=lambda line: line.split(" ", 1)[::-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the fingerprints")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with written ones; exit 1 if any differs")
    parser.add_argument("--sample", action="store_true", help="five rows of the table only")
    parser.add_argument("--renamed", action="append", default=[], metavar="NEW=OLD", help="a renamed device function")
    arguments = parser.parse_args()
    lines = fingerprints(arguments.sample, dict(pair.split("=") for pair in arguments.renamed))
    print(f"\r{len(lines)} kernels         ", file=sys.stderr)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not arguments.compare:
        return 0
    before = set(arguments.compare.read_text(encoding="utf-8").splitlines())
    gone, new = sorted(before - set(lines)), sorted(set(lines) - before)
    for sign, changed in (("-", gone), ("+", new)):
        print(*(f"{sign} {line}" for line in changed[:40]), sep="\n", end="\n" if changed else "")
    print(f"{len(before & set(lines))} kernels are equal, {len(gone)} are gone, {len(new)} are new")
    return 1 if gone or new else 0


if __name__ == "__main__":
    sys.exit(main())
