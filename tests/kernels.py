"""Kernels without a GPU: their source from an op, dtypes and strides; their PTX; and a run in Triton's interpreter.

The interpreter lives in a process of its own, because ``TRITON_INTERPRET`` changes what importing Triton means. It
calls a kernel as a launcher would, one program after the other, on NumPy memory. What it is known to get wrong is
replaced by what the hardware does: the functions of libdevice that IEEE 754 or C defines exactly, the conversions of
bfloat16, and ``~`` of unsigned integers. And it is stricter than hardware: a kernel may read the elements of its inputs and nothing else,
and must write each element of its outputs once.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from formats import Number, dtype_of
from tilearray_cuda.codegen import Source, generate, open_strides
from tilearray_cuda.dtypes import STORAGE
from tilearray_cuda.spec import KernelSpec, make_spec
from tilearray_host.casts import scalar

from tilearray import ops
from tilearray.body import Body, body_of
from tilearray.layout import Layout, result_layout
from tilearray.loop import Loop, layout_class, make_loop
from tilearray.promotion import SEMANTICS
from tilearray.scalars import classify

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is made for Linux only")

Strides = tuple[int, ...]


# --- from an op to its source ---------------------------------------------------------------------------------------


class Kernel(NamedTuple):
    """A kernel, and the loop that it is run over."""

    spec: KernelSpec
    source: Source
    loop: Loop


def body_for(name: str, operands: Sequence[str | Number], out: str | None = None, semantics: str = "array-api") -> Body:
    """The body of an op for operands given as the names of dtypes, or as numbers; ``astype`` is one of the ops."""
    op = ops.convert if name == "astype" else ops.assign if name == "identity" else ops.PUBLIC[name]
    types = tuple(dtype_of(given) if isinstance(given, str) else classify(given) for given in operands)
    return body_of(op, SEMANTICS[semantics], types, None if out is None else dtype_of(out))  # type: ignore[arg-type]


def kernel_for(
    body: Body,
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
    spec = make_spec(body, layout_class(loop), alignment)
    return Kernel(spec, generate(spec, arch), loop)


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

    def accesses(self, kind: str) -> list[int]:
        """The bytes of each load (``ld``) or store (``st``) of global memory, in the order of the text."""
        found = re.findall(rf"\b{kind}\.global[.\w:]*?(?:\.v(\d))?\.[busf](\d+)\b", self.ptx)
        return [int(count or 1) * int(bits) // 8 for count, bits in found]

    def count(self, pattern: str) -> int:
        """How many instructions match."""
        return len(re.findall(rf"^\s*(?:@!?%p\d+ )?{pattern}\b", self.ptx, re.MULTILINE))


@cache
def compiled(kernel: Kernel, arch: int = 90) -> Code:
    """Compile, once for all tests of a process."""
    from tilearray_cuda.compile import compile_source

    found = compile_source(kernel.source, arch)
    return Code(found.cubin, found.ptx, found.num_warps, found.shared)


# --- memory ---------------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """An array as the interpreter's process makes it: values that are there once, and their strides in elements."""

    values: np.ndarray
    strides: Strides

    @classmethod
    def of(cls, array: np.ndarray) -> Memory:
        """The memory behind a view; axes that only repeat keep one element."""
        strides = tuple(stride // array.itemsize for stride in array.strides)
        once = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
        return cls(np.ascontiguousarray(once).reshape(once.shape), strides)

    def offsets(self) -> np.ndarray:
        """Where each element lies, in elements from the first."""
        axes = [np.arange(n, dtype=np.int64) * stride for n, stride in zip(self.values.shape, self.strides, strict=True)]
        return reduce(np.add.outer, axes, np.zeros((), np.int64)).reshape(self.values.shape)


def view(array: np.ndarray, strides: Strides, shape: Sequence[int], start: int = 0) -> np.ndarray:
    """A view of a flat array, its strides in elements."""
    return np.ndarray(
        tuple(shape), array.dtype, array, start * array.itemsize, tuple(s * array.itemsize for s in strides)
    )


def result_strides(arrays: Sequence[np.ndarray], shape: Sequence[int]) -> Strides:
    """The strides that the library gives a result, in elements."""
    layouts = [
        Layout(array.shape, tuple(stride // array.itemsize for stride in array.strides)).broadcast_to(tuple(shape))
        for array in arrays
    ]
    return result_layout(tuple(shape), layouts).strides


# --- the interpreter's side -----------------------------------------------------------------------------------------


class Fault(Exception):
    """A kernel read or wrote what it should not have, or left something unwritten."""


class Interpreter:
    """Runs kernels in a process where Triton interprets."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, spawn, initializer=_start_interpreting)

    def run(self, kernel: Kernel, operands: Sequence[Memory | Number], out: Memory, tile: Strides | None = None) -> Any:
        """Run a kernel with one output; `tile` replaces the sizes of its block. Returns the output's values."""
        source = kernel.source
        if tile is not None:
            names = [name for name, _ in source.constants]
            source = source._replace(constants=tuple(zip(names, tile[-len(names) :], strict=True)))
        return self.pool.submit(_interpret, kernel._replace(source=source), tuple(operands), out).result()

    def call(
        self,
        name: str,
        *operands: np.ndarray | Number,
        out: str | np.ndarray | None = None,
        semantics: str = "array-api",
        index_bits: int | None = None,
        aligned: bool = True,
        tile: Strides | None = None,
    ) -> np.ndarray:
        """Plan and run one op on arrays and numbers, as the library does; `out` is a dtype or an array to fill."""
        arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
        types = [operand.dtype.name if isinstance(operand, np.ndarray) else operand for operand in operands]
        target = out.dtype.name if isinstance(out, np.ndarray) else out
        body = body_for(name, types, target, semantics)
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        if not isinstance(out, np.ndarray):
            strides = result_strides(arrays, shape)
            out = view(np.empty(math.prod(shape), dtype_of(body.output_dtypes[0])), strides, shape)
        memories = [
            Memory.of(np.broadcast_to(operand, shape)) if isinstance(operand, np.ndarray) else operand
            for operand in operands
        ]
        memory = Memory.of(out)
        strides = [memory.strides, *(given.strides for given in memories if isinstance(given, Memory))]
        kernel = kernel_for(body, shape, strides, index_bits=index_bits, aligned=aligned)
        return self.run(kernel, memories, memory, tile)

    def close(self) -> None:
        self.pool.shutdown()


@contextmanager
def interpreting() -> Iterator[Interpreter]:
    """An interpreter, for the length of a fixture."""
    interpreter = Interpreter()
    try:
        yield interpreter
    finally:
        interpreter.close()


def _start_interpreting() -> None:
    os.environ["TRITON_INTERPRET"] = "1"


class _Watch:
    """Stands for Triton's module of memory accesses: checks every address, and counts the stores."""

    def __init__(self, module: Any, readable: np.ndarray, writable: np.ndarray) -> None:
        self.module, self.readable, self.writable = module, readable, np.sort(writable)
        self.stored: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        self._check(pointers, mask, self.readable, "reads")
        return self.module.load(pointers, mask, other, dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        self.stored.append(self._check(pointers, mask, self.writable, "writes"))
        self.module.store(pointers, value, mask)

    def _check(self, pointers: np.ndarray, mask: np.ndarray, allowed: np.ndarray, verb: str) -> np.ndarray:
        touched = pointers[np.broadcast_to(mask, pointers.shape)].ravel()
        if touched.size and not np.isin(touched, allowed).all():
            raise Fault(f"the kernel {verb} where no element is")
        return touched

    def finish(self) -> None:
        if not np.array_equal(np.sort(np.concatenate(self.stored)), self.writable):
            raise Fault("the kernel does not write each element once")


def _interpret(kernel: Kernel, operands: tuple[Any, ...], out: Memory) -> np.ndarray:
    import triton.language as tl
    from triton.runtime import interpreter
    from tilearray_cuda.compile import jit_function

    _mend(interpreter, tl)
    spec, loop = kernel.spec, kernel.loop
    numbers = {argument.name: argument.type for argument in kernel.source.arguments}
    arguments: list[Any] = []

    def pass_number(name: str, value: Any) -> None:
        kind = tl.str_to_ty(numbers[name], None)
        data = np.array([value], interpreter._get_np_dtype(kind))
        arguments.append(tl.tensor(interpreter.TensorHandle(data, kind), kind))

    shifts, kept, addresses = iter(loop.shifts), [], []
    for operand, given in zip(spec.operands, (out, *operands), strict=True):
        if isinstance(given, Memory):
            buffer, places = _allocate(given)
            kept.append(buffer)
            addresses.append(places)
            kind = tl.str_to_ty(numbers[operand.name], None)
            origin = int(places.flat[0]) + next(shifts) * given.values.itemsize
            arguments.append(tl.tensor(interpreter.TensorHandle(np.array([origin], np.uint64), kind), kind))
        else:
            _pass_scalar(operand, given, pass_number)
    for axis, extent in enumerate(loop.shape):
        pass_number(f"n{axis}", extent)
    for name, position, axis in open_strides(spec):
        pass_number(name, loop.strides[position][axis])
    written = _accessed(out, addresses[0])
    read = [_accessed(given, places) for given, places in zip(_arrays(operands), addresses[1:], strict=True)]
    module = interpreter._interpreter
    watch = interpreter._interpreter = _Watch(module, np.concatenate([np.empty(0, np.uint64), *read]), written)
    try:
        with np.errstate(all="ignore"):
            jit_function(kernel.source)[(_programs(kernel),)](*arguments, **dict(kernel.source.constants))
        watch.finish()
    finally:
        interpreter._interpreter = module
    start = (addresses[0] - kept[0].ctypes.data).astype(np.int64)
    flat, size = kept[0], out.values.itemsize
    raw = np.stack([flat[start + byte] for byte in range(size)], -1)
    return np.ascontiguousarray(raw).view(out.values.dtype).reshape(out.values.shape)


def _arrays(operands: tuple[Any, ...]) -> list[Memory]:
    return [operand for operand in operands if isinstance(operand, Memory)]


def _allocate(memory: Memory) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that hold an array, and the address of each of its elements. Untouched pages of a large one cost nothing."""
    size = memory.values.itemsize
    offsets = memory.offsets()
    low, high = int(offsets.min()), int(offsets.max())
    buffer = np.zeros((high - low + 1) * size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    places = start + (offsets - low) * size
    raw = memory.values.reshape(-1, 1).view(np.uint8).reshape(*memory.values.shape, size)
    for byte in range(size):
        buffer[places + byte] = raw[..., byte]
    return buffer, (places + buffer.ctypes.data).astype(np.uint64)


def _accessed(memory: Memory, places: np.ndarray) -> np.ndarray:
    """The addresses that may be accessed: of each element, and of the imaginary part of a complex128."""
    flat = np.unique(places)
    return np.concatenate([flat, flat + np.uint64(8)]) if memory.values.dtype.name == "complex128" else flat


def _pass_scalar(operand: Any, value: Number, pass_number: Any) -> None:
    """A Python number as the launcher packs it: rounded once to its dtype, then as the argument's type."""
    exact, storage = scalar(value, dtype_of(operand.dtype)), STORAGE[operand.dtype]
    if storage.kind == "complex":
        pass_number(f"{operand.name}_re", exact.real)
        pass_number(f"{operand.name}_im", exact.imag)
    else:
        pass_number(operand.name, exact.view(np.uint8) if storage.kind == "bits" else exact.astype(storage.argument[1]))


def _programs(kernel: Kernel) -> int:
    """How many programs cover the loop."""
    shape, tile = kernel.loop.shape, dict(kernel.source.constants)
    if "BLOCK" in tile:
        return -(-math.prod(shape) // tile["BLOCK"])
    return -(-shape[-2] // tile["ROWS"]) * -(-shape[-1] // tile["COLUMNS"]) * math.prod(shape[:-2])


_EXACT_FUNCTIONS = {"fmod": np.fmod, "copysign": np.copysign, "floor": np.floor, "div_rn": np.divide, "hypot": np.hypot}


def _mend(interpreter: Any, tl: Any) -> None:
    """Put right what the interpreter does not do as the hardware does."""
    from triton.language.extra import libdevice

    if hasattr(libdevice, "mended"):
        return
    libdevice.mended = True
    for name, function in _EXACT_FUNCTIONS.items():
        setattr(libdevice, name, _on_tensors(function, interpreter, tl))
    original, to_tensor = interpreter.InterpreterBuilder.cast_impl, interpreter.interpreter_semantic.to_tensor

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        pair = src.dtype.scalar, dst_type.scalar
        if pair == (tl.float32, tl.bfloat16):
            return interpreter.TensorHandle(src.data.astype(ml_dtypes.bfloat16).view(np.uint16), tl.bfloat16)
        if pair == (tl.bfloat16, tl.float32):
            return interpreter.TensorHandle(src.data.view(ml_dtypes.bfloat16).astype(np.float32), tl.float32)
        return original(self, src, dst_type)

    def get_all_ones_value(self: Any, kind: Any) -> Any:
        return interpreter.TensorHandle(~np.zeros(1, interpreter._get_np_dtype(kind)), kind.scalar)

    def of_any(value: Any, check_type: bool = True) -> Any:
        """An assignment of several values makes tensors of each, as the compiler does."""
        return tuple(map(to_tensor, value)) if isinstance(value, tuple) else to_tensor(value, check_type)

    interpreter.InterpreterBuilder.cast_impl = cast_impl
    interpreter.InterpreterBuilder.get_all_ones_value = get_all_ones_value
    interpreter.interpreter_semantic.to_tensor = of_any


def _on_tensors(function: Any, interpreter: Any, tl: Any) -> Any:
    def apply(*tensors: Any) -> Any:
        found = function(*[tensor.handle.data for tensor in tensors])
        return tl.tensor(interpreter.TensorHandle(found, tensors[0].dtype), tensors[0].type)

    return apply
