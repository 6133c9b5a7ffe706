"""Bodies and loops -> kernels and launches on one device: where code generation, compiler and launcher meet.

A kernel is found or compiled once for a body, a layout class and the operands' alignment. Binding it to a loop works
out the grid and the constant arguments; what is left of a launch are addresses and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from tilearray_cuda import launch
from tilearray_cuda.codegen import FLAT_CASES, Source, generate, open_strides
from tilearray_cuda.compile import cubin_of
from tilearray_cuda.dtypes import ITEMSIZE, STORAGE
from tilearray_cuda.spec import KernelSpec, make_spec

Launch = Callable[..., None]


class Kernel(NamedTuple):
    """A kernel, loaded on one device."""

    spec: KernelSpec
    source: Source
    function: Any


def compile_kernel(device: Any, body: Any, layout_class: Any, aligned: tuple[bool, ...]) -> Kernel:
    """Return the kernel of a body for a layout class, loaded on a device."""
    spec = make_spec(body, layout_class, aligned)
    source = generate(spec, device.arch)
    return Kernel(spec, source, launch.load_function(device, cubin_of(source, device.arch)))


def bind(device: Any, kernel: Kernel, loop: Any) -> Launch:
    """Fix the loop: the result is called with a stream and ``buffer, byte offset`` or ``number, 0`` an operand."""
    spec = kernel.spec
    strides = [loop.strides[position][axis] for _, position, axis in open_strides(spec)]
    integer = "i4x" if spec.index_bits == 32 else "q"
    operands = [_operand(operand.dtype, operand.strides is None) for operand in spec.operands]
    formats = [part for format, _ in operands for part in format]
    constants = (*loop.shape, *strides)
    launcher = launch.make_launcher(
        kernel.function, grid_of(kernel, loop.shape), formats, [integer] * len(constants), constants
    )
    shifts = iter(shift * ITEMSIZE[operand.dtype] for operand, shift in zip(spec.arrays, loop.shifts, strict=True))
    parts = [None if operand.strides is None else next(shifts) for operand in spec.operands]
    return launch.bind_operands(launcher, parts, [convert for _, convert in operands], spec.outputs)


def grid_of(kernel: Kernel, shape: tuple[int, ...]) -> int:
    """Return the number of programs that cover a loop."""
    tile = kernel.source.tile
    if kernel.spec.case in FLAT_CASES:
        return -(-prod(shape) // tile.columns)
    return prod(shape[:-2]) * -(-shape[-2] // tile.rows) * -(-shape[-1] // tile.columns)


def _operand(dtype: str, is_number: bool) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]] | None]:
    """The `struct` formats of an operand in slots of 8 bytes, and how a number becomes their values."""
    if not is_number:
        return ("Q",), None
    storage = STORAGE[dtype]
    letter = storage.argument[1]
    slot = letter + {1: "7x", 2: "6x", 4: "4x", 8: ""}[_SIZES[letter]]
    if storage.kind == "complex":
        return (slot, slot), _parts(dtype)
    return (slot,), _rounded(dtype)


_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "f": 4, "d": 8}


def _rounded(dtype: str) -> Callable[[Any], tuple[Any, ...]]:
    """What a number of a dtype is passed as: itself, or the value or the bits of the narrow float it is rounded to."""
    storage = STORAGE[dtype]
    if storage.kind in ("bool", "int", "uint") or dtype == "float64":
        return lambda number: (number,)
    from tilearray_host.casts import dtype_named, scalar

    rounded_to = dtype_named(dtype)
    if storage.kind == "bits":
        return lambda number: (scalar(number, rounded_to).view("u1").item(),)
    return lambda number: (float(scalar(number, rounded_to)),)


def _parts(dtype: str) -> Callable[[Any], tuple[Any, ...]]:
    from tilearray_host.casts import dtype_named, scalar

    rounded_to = dtype_named(dtype)

    def parts(number: Any) -> tuple[float, float]:
        rounded = complex(scalar(number, rounded_to))
        return rounded.real, rounded.imag

    return parts
