"""Triton's interpreter, in a process of its own: a kernel, run on NumPy memory.

``TRITON_INTERPRET`` changes what importing Triton means, hence the process. A kernel is called there as a launcher
would, one program after the other. What the interpreter is known to get wrong is replaced by what the hardware does:
the functions of libdevice that IEEE 754 or C defines exactly, the conversions of bfloat16, and ``~`` of unsigned
integers. And it is stricter than hardware: a kernel may read the elements of its inputs and nothing else, must write
each element of its output once, may not shift, divide or convert where LLVM leaves the result undefined, and must be
right in what it says a value is a multiple of.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import interpreted_rounding
import ml_dtypes
import numpy as np
from formats import Number, dtype_of
from kernels import Kernel, Strides, body_for, kernel_for

from tilearray.body import Body
from tilearray.layout import Layout, result_layout
from tilearray_cuda.codegen import open_strides
from tilearray_cuda.dtypes import STORAGE
from tilearray_host.casts import scalar

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
        axes = [
            np.arange(n, dtype=np.int64) * stride for n, stride in zip(self.values.shape, self.strides, strict=True)
        ]
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


class Call(NamedTuple):
    """A kernel with its operands and the memory of its one output."""

    kernel: Kernel
    operands: tuple[Memory | Number, ...]
    out: Memory


def planned(
    name: str | Body,
    *operands: np.ndarray | Number,
    out: str | np.ndarray | None = None,
    semantics: str = "array-api",
    index_bits: int | None = None,
) -> Call:
    """Plan one op, or a body, on arrays and numbers, as the library does; `out` is a dtype or an array to fill."""
    types = [operand.dtype.name if isinstance(operand, np.ndarray) else operand for operand in operands]
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    body = name
    if not isinstance(body, Body):
        body = body_for(body, types, out.dtype.name if isinstance(out, np.ndarray) else out, semantics)
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if not isinstance(out, np.ndarray):
        strides = result_strides(arrays, shape)
        out = view(np.empty(math.prod(shape), dtype_of(body.output_dtypes[0])), strides, shape)
    memories = tuple(
        Memory.of(np.broadcast_to(operand, shape)) if isinstance(operand, np.ndarray) else operand
        for operand in operands
    )
    memory = Memory.of(out)
    strides = [memory.strides, *(given.strides for given in memories if isinstance(given, Memory))]
    return Call(kernel_for(body, shape, strides, index_bits=index_bits), memories, memory)


# --- the interpreter's side -----------------------------------------------------------------------------------------


class FaultError(Exception):
    """A kernel read or wrote what it should not have, left something unwritten, or computed what is undefined."""


class Interpreter:
    """Runs kernels in a process where Triton interprets."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, spawn, initializer=_start_interpreting)

    def run(self, call: Call, tile: dict[str, int] | None = None) -> np.ndarray:
        """Make a call; `tile` replaces the sizes of the kernel's block. Returns the output's values."""
        source = call.kernel.source
        if tile is not None:
            source = source._replace(constants=tuple((name, tile[name]) for name, _ in source.constants))
        return self.pool.submit(_interpret, call._replace(kernel=call.kernel._replace(source=source))).result()

    def call(
        self, name: str | Body, *operands: np.ndarray | Number, tile: dict[str, int] | None = None, **options: Any
    ) -> np.ndarray:
        """Plan an op as `planned` does, and run it."""
        return self.run(planned(name, *operands, **options), tile)

    def trace(self, kernel: Kernel, programs: Sequence[int]) -> list[list[int]]:
        """The elements of each array that some programs access, without any memory behind them."""
        return self.pool.submit(_trace, kernel, programs).result()

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

    module: Any

    def __init__(self, readable: np.ndarray, writable: np.ndarray, runs: bool) -> None:
        self.readable, self.writable = np.sort(readable), np.sort(writable)
        vectors = np.unique(self.readable // 16 * 16)
        self.words = np.union1d(np.add.outer(vectors, np.array([0, 8], np.uint64)), readable) if runs else self.readable
        self.stored: list[np.ndarray] = []

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        self._check(pointers, mask, self.words if dtype == np.uint64 else self.readable, "reads")
        return self.module.load(pointers, mask, other, dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        self.stored.append(self._check(pointers, mask, self.writable, "writes"))
        self.module.store(pointers, value, mask)

    def _check(self, pointers: np.ndarray, mask: np.ndarray, allowed: np.ndarray, verb: str) -> np.ndarray:
        touched = pointers[np.broadcast_to(mask, pointers.shape)].ravel()
        places = np.minimum(np.searchsorted(allowed, touched), allowed.size - 1)
        if touched.size and not (allowed.size and np.array_equal(allowed[places], touched)):
            raise FaultError(f"the kernel {verb} where no element is")
        return touched

    def finish(self) -> None:
        if not np.array_equal(np.sort(np.concatenate(self.stored)), self.writable):
            raise FaultError("the kernel does not write each element once")


class _Trace:
    """Notes the addresses; loads give zeros, and stores go nowhere."""

    module: Any

    def __init__(self) -> None:
        self.touched: list[np.ndarray] = []

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        self.store(pointers, other, mask)
        return np.zeros(pointers.shape, dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        self.touched.append(pointers[np.broadcast_to(mask, pointers.shape)].ravel())


def _interpret(call: Call) -> np.ndarray:
    kernel, operands, out = call
    arrays = [given for given in (out, *operands) if isinstance(given, Memory)]
    buffers = [_allocate(memory) for memory in arrays]
    origins = [int(places.flat[0]) for _, places in buffers]
    accessed = [_accessed(memory, places) for memory, (_, places) in zip(arrays, buffers, strict=True)]
    readable = np.concatenate([np.empty(0, np.uint64), *accessed[1:]])
    watch = _Watch(readable, accessed[0], "load_run(" in kernel.source.text)
    numbers = [given for given in operands if not isinstance(given, Memory)]
    _launch(kernel, _arguments(kernel, origins, numbers), range(programs_of(kernel)), watch)
    watch.finish()
    buffer, places = buffers[0]
    size = out.values.itemsize
    raw = buffer[(places - buffer.ctypes.data).astype(np.int64)[..., None] + np.arange(size)]
    return raw.reshape(-1).view(out.values.dtype).reshape(out.values.shape)


def _trace(kernel: Kernel, programs: Sequence[int]) -> list[list[int]]:
    """The elements of each array that some programs access, by their distance from the array's first; no memory."""
    arrays = kernel.spec.arrays
    origins = [(position + 1) << 56 for position in range(len(arrays))]
    trace = _Trace()
    numbers = [0 for operand in kernel.spec.operands if operand.strides is None]
    _launch(kernel, _arguments(kernel, origins, numbers), programs, trace)
    touched = np.concatenate(trace.touched).astype(np.int64)
    found: list[list[int]] = []
    for operand, origin, shift in zip(arrays, origins, kernel.loop.shifts, strict=True):
        bytes_from = touched[abs(touched - origin) < 1 << 55] - origin
        size = STORAGE[operand.dtype].itemsize
        found.append(sorted({int(place) // size - shift for place in bytes_from}))
    return found


def _arguments(kernel: Kernel, origins: Sequence[int], numbers: Sequence[Number]) -> list[Any]:
    """The arguments of a launch, as tensors of the types that the compiled kernel has."""
    import triton.language as tl
    from triton.runtime import interpreter

    spec, loop = kernel.spec, kernel.loop
    types = {argument.name: tl.str_to_ty(argument.type, None) for argument in kernel.source.arguments}
    values: dict[str, Any] = {}
    addresses, given = iter(zip(origins, loop.shifts, strict=True)), iter(numbers)
    for operand in spec.operands:
        if operand.strides is None:
            values |= _number(operand, next(given))
        else:
            origin, shift = next(addresses)
            values[operand.name] = origin + shift * STORAGE[operand.dtype].itemsize
    values |= {f"n{axis}": extent for axis, extent in enumerate(loop.shape)}
    values |= {name: loop.strides[position][axis] for name, position, axis in open_strides(spec)}
    assert list(values) == list(types), "the arguments are not in the order of the kernel"
    arrays = {name: np.array([value], interpreter._get_np_dtype(types[name])) for name, value in values.items()}
    return [tl.tensor(interpreter.TensorHandle(array, types[name]), types[name]) for name, array in arrays.items()]


def _launch(kernel: Kernel, arguments: Sequence[Any], programs: Sequence[int], watch: Any) -> None:
    """Run some programs of a kernel, while something watches its memory accesses."""
    import triton.language as tl
    from triton.runtime import interpreter

    from tilearray_cuda.compile import jit_function

    _mend(interpreter, tl)
    builder, module = interpreter.interpreter_builder, interpreter._interpreter
    watch.module, interpreter._interpreter = module, watch
    index_type = interpreter.InterpreterBuilder.create_get_program_id
    try:
        with np.errstate(all="ignore"):
            function = jit_function(kernel.source)
            for program in [programs] if programs == range(len(programs)) else [[one] for one in programs]:
                first = program[0]
                builder.create_get_program_id = lambda axis, first=first: interpreter.TensorHandle(
                    index_type(builder, axis).data + np.int32(first), tl.int32
                )
                function[(len(program),)](*arguments, **dict(kernel.source.constants))
    except interpreter.InterpreterError as error:
        raise error.__cause__ if isinstance(error.__cause__, FaultError) else error from None
    finally:
        interpreter._interpreter = module
        del builder.create_get_program_id


def _allocate(memory: Memory) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that hold an array, and the address of each of its elements."""
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


def _number(operand: Any, value: Number) -> dict[str, Any]:
    """A Python number as the launcher packs it: rounded once to its dtype, then as the argument's type."""
    exact, storage = scalar(value, dtype_of(operand.dtype)), STORAGE[operand.dtype]
    if storage.kind == "complex":
        return {f"{operand.name}_re": exact.real, f"{operand.name}_im": exact.imag}
    return {operand.name: exact.view(np.uint8) if storage.kind == "bits" else exact.astype(storage.argument[1])}


def programs_of(kernel: Kernel) -> int:
    """How many programs cover the loop."""
    shape, tile = kernel.loop.shape, dict(kernel.source.constants)
    if "BLOCK" in tile:
        return -(-(math.prod(shape) + kernel.spec.lead) // tile["BLOCK"])
    merged = shape[-3] if kernel.spec.merged else 1
    return -(-shape[-2] // tile["ROWS"]) * -(-shape[-1] * merged // tile["COLUMNS"]) * math.prod(shape[:-2]) // merged


def of_the_host(name: str) -> Any:
    """A function of the host backend."""
    from tilearray_host.functions import FUNCTIONS

    def apply(*operands: np.ndarray) -> np.ndarray:
        out = np.empty(np.broadcast_shapes(*[operand.shape for operand in operands]), operands[0].dtype)
        FUNCTIONS[name](*operands, out=out)
        return out

    return apply


def _sine_of_pi(x: np.ndarray) -> np.ndarray:
    """``sin(pi x)``, at integers a zero of the sign of x."""
    whole = np.rint(x)
    sine = np.sin(np.pi * (x - whole)) * np.where(np.fmod(whole, 2), -1, 1).astype(x.dtype)
    return np.where(x == whole, np.copysign(sine, x), sine)


_SAME_NAME = "fmod copysign floor trunc rint exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt"
_FUNCTIONS: dict[str, Any] = {
    **{name: getattr(np, name) for name in _SAME_NAME.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    **{name: of_the_host(name) for name in ("hypot", "erf", "erfc", "erfinv", "lgamma", "fma")},
    "div_rn": np.divide,
    "rcp_rn": np.reciprocal,
    "pow": np.power,
    "ldexp": np.ldexp,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ilogb": lambda x: np.frexp(x)[1] - np.int32(1),
    "sinpi": _sine_of_pi,
}
"""What libdevice has, from NumPy and the host backend: exact where IEEE 754 or C defines it, else good enough to see
that a kernel calls the right function on the right operands."""


def _mend(interpreter: Any, tl: Any) -> None:
    """Put right what the interpreter does not do as the hardware does."""
    from triton.language.extra import libdevice

    if hasattr(libdevice, "mended"):
        return
    libdevice.mended = True
    for name, function in _FUNCTIONS.items():
        setattr(libdevice, name, _on_tensors(function, interpreter, tl))
    interpreted_rounding.mend(interpreter, tl, libdevice)
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

    def call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Without preparing Triton's whole language again, which the launch has done."""
        return self.rewrite()(*args, **kwargs)

    def set_attr(self: Any, key: str, values: Any) -> None:
        if key == "tt.divisibility" and (self.data % np.array(values, self.data.dtype)).any():
            raise FaultError("the kernel says of a value that it is a multiple of what it is no multiple of")

    for name, undefined in _UNDEFINED.items():
        setattr(
            interpreter.InterpreterBuilder, name, _defined(getattr(interpreter.InterpreterBuilder, name), undefined)
        )
    for name in ("create_fp_to_si", "create_fp_to_ui"):
        setattr(interpreter.InterpreterBuilder, name, _truncated(cast_impl, interpreter))
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)  # an assertion that is never made
    interpreter.InterpretedFunction.__call__ = call_device_function
    interpreter.TensorHandle.set_attr = set_attr
    interpreter.InterpreterBuilder.cast_impl = cast_impl
    interpreter.InterpreterBuilder.get_all_ones_value = get_all_ones_value
    interpreter.interpreter_semantic.to_tensor = of_any


def _shifts_out(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(((y < 0) | (y >= 8 * x.itemsize)).any())


def _divides_badly(x: np.ndarray, y: np.ndarray) -> bool:
    smallest = np.iinfo(x.dtype).min
    return bool(((y == 0) | ((x == smallest) & (y == -1) & (smallest < 0))).any())


_UNDEFINED = {
    **dict.fromkeys(("create_shl", "create_lshr", "create_ashr"), _shifts_out),
    **dict.fromkeys(("create_sdiv", "create_udiv", "create_srem", "create_urem"), _divides_badly),
}
"""Integer operations, and for which operands LLVM leaves them undefined; NumPy has some value for all."""


def _defined(operation: Any, undefined: Any) -> Any:
    def apply(self: Any, lhs: Any, rhs: Any) -> Any:
        if undefined(lhs.data, rhs.data):
            raise FaultError("the kernel shifts or divides where the result is undefined")
        return operation(self, lhs, rhs)

    return apply


def _truncated(cast_impl: Any, interpreter: Any) -> Any:
    def apply(self: Any, src: Any, dst_type: Any) -> Any:
        limits, whole = np.iinfo(interpreter._get_np_dtype(dst_type)), np.trunc(src.data.astype(np.float64))
        if not ((whole >= float(limits.min)) & (whole < float(limits.max + 1))).all():
            raise FaultError("the kernel makes an integer of a float beyond its range")
        return cast_impl(self, src, dst_type)

    return apply


def _on_tensors(function: Any, interpreter: Any, tl: Any) -> Any:
    def apply(*tensors: Any) -> Any:
        found = function(*[tensor.handle.data for tensor in tensors])
        like = max(tensors, key=lambda tensor: tensor.handle.data.size).type
        scalar = tensors[0].dtype if found.dtype == tensors[0].handle.data.dtype else tl.int32
        kind = tl.block_type(scalar, like.shape) if like.is_block() else scalar
        return tl.tensor(interpreter.TensorHandle(found, scalar), kind)

    return apply
