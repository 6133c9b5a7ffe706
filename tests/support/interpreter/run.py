"""Triton's interpreter, in a process of its own: a kernel, run on NumPy memory.

``TRITON_INTERPRET`` changes the import of Triton, hence the process. A kernel is called there as by a launcher, one
program after the other, by the interpreter that tests/support/interpreter/mended.py has corrected. Memory is stricter
than that of hardware: a kernel may read only the elements of its inputs, and must write each element of its output
once.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from support.interpreter.mended import FaultError, mend
from support.interpreter.together import Together
from support.kernels import Kernel, Strides, body_for, kernel_for
from support.oracles.formats import Number, dtype_of
from tilearray.engine.expression import Expression
from tilearray.explaining import kernels
from tilearray.geometry.layout import Layout, result_layout
from tilearray_cuda.kernels.interpreter import type_of
from tilearray_cuda.kernels.schedules.boxes import Boxes
from tilearray_cuda.kernels.schedules.distinct import Distinct
from tilearray_cuda.kernels.schedules.linear import Linear
from tilearray_cuda.kernels.schedules.merged_rows import MergedRows
from tilearray_cuda.kernels.schedules.partition import Partition
from tilearray_cuda.kernels.schedules.product import Product
from tilearray_cuda.kernels.schedules.reduce import Reduce
from tilearray_cuda.kernels.schedules.scan_blocks import ScanBlocks
from tilearray_cuda.kernels.schedules.select import Select
from tilearray_cuda.kernels.schedules.sort import Sort
from tilearray_cuda.kernels.schedules.tiled import Tiled
from tilearray_cuda.kernels.schedules.walked_rows import WalkedRows
from tilearray_cuda.kernels.schedules.windows import Windows
from tilearray_cuda.kernels.storage import STORAGE
from tilearray_host.casts import scalar

SWEPT, LATE = 3, 3
"""The programs of a sweep that run at once, and how often every other one waits after it has taken its turn.

The others wait as often where assembly reads or writes what programs tell each other.
"""

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
    return result_layout(tuple(shape), [layout.strides for layout in layouts]).strides


class Call(NamedTuple):
    """A kernel with its operands and the memory of its one output."""

    kernel: Kernel
    operands: tuple[Memory | Number, ...]
    out: Memory


def planned(
    name: str | Expression,
    *operands: np.ndarray | Number,
    out: str | np.ndarray | None = None,
    semantics: str = "array-api",
    index_bits: int | None = None,
) -> Call:
    """Plan one op, or a body, on arrays and numbers, as the library does; `out` is a dtype or an array to fill."""
    types = [operand.dtype.name if isinstance(operand, np.ndarray) else operand for operand in operands]
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    body = name
    if not isinstance(body, Expression):
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
        self, name: str | Expression, *operands: np.ndarray | Number, tile: dict[str, int] | None = None, **options: Any
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
    """Stands for Triton's module of memory accesses: checks every address, and counts the stores.

    A word of a tile has a byte of an array; one of a run lies in a vector that has one.
    """

    module: Any

    def __init__(self, source: str, readable: np.ndarray, writable: np.ndarray, size: int) -> None:
        self.readable, self.writable = np.sort(readable), np.sort(writable)
        vectors = _distinct(self.readable // 16 * 16)
        words = self.readable // 4 * 4 if "words_after(" in source else self.readable
        words = np.add.outer(vectors, np.arange(0, 16, 4, np.uint64)) if "load_vectors(" in source else words
        self.words = _distinct(np.concatenate([words.ravel(), readable]))
        self.stored: list[np.ndarray] = []
        self.parts = np.arange(0, 4 if "store_runs(" in source else 1, size, np.uint64)

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        self._check(pointers, mask, self.words if dtype == np.uint32 else self.readable, "reads")
        return self.module.load(pointers, mask, other, dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        if value.dtype == np.uint32:
            pointers, every = np.add.outer(pointers, self.parts), np.broadcast_to(mask, pointers.shape)
            self.stored.append(self._check(pointers, every[..., None], self.writable, "writes"))
            pointers = pointers[..., 0]
        else:
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
    watch = _Watch(kernel.source.text, readable, accessed[0], out.values.itemsize)
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


def _arguments(kernel: Kernel, origins: Sequence[int], numbers: Sequence[Number], scratch: int = 0) -> list[Any]:
    """The arguments of a launch, as tensors of the types that the compiled kernel has.

    `scratch` is the address of the memory that a schedule asks for beside the operands.
    """
    spec, loop = kernel.spec, kernel.loop
    values: dict[str, Any] = {}
    addresses, given = iter(zip(origins, loop.shifts, strict=True)), iter(numbers)
    for operand in spec.operands:
        if operand.strides is None:
            values |= _number(operand, next(given))
        else:
            origin, shift = next(addresses)
            values[operand.name] = origin + shift * STORAGE[operand.dtype].itemsize
    values |= {"scratch": scratch} if kernel.schedule.has_scratch else {}
    values |= {f"n{axis}": extent for axis, extent in enumerate(loop.shape)}
    values |= {name: loop.strides[position][axis] for name, position, axis in kernel.schedule.open_strides()}
    values |= {name: attrgetter(attribute)(loop) for name, attribute in kernel.schedule.loop_arguments()}
    return _tensors(kernel.source, values)


def list_arguments(schedule: Any, source: Any, tables: Sequence[int], numbers: Sequence[Number]) -> list[Any]:
    """The arguments of a launch over a list: the addresses of its tables, and numbers."""
    values: dict[str, Any] = dict(zip(("members", "facts", "addresses"), tables, strict=True))
    given = iter(numbers)
    for operand in schedule.spec.operands:
        if operand.strides is None:
            values |= _number(operand, next(given))
    return _tensors(source, values)


def _tensors(source: Any, values: dict[str, Any]) -> list[Any]:
    """The arguments of a kernel as tensors of their types."""
    import triton.language as tl
    from triton.runtime import interpreter

    types = {argument.name: type_of(argument.type) for argument in source.arguments}
    assert list(values) == list(types), "the arguments are not in the order of the kernel"
    arrays = {name: np.array([value], interpreter._get_np_dtype(types[name])) for name, value in values.items()}
    return [tl.tensor(interpreter.TensorHandle(array, types[name]), types[name]) for name, array in arrays.items()]


def _launch(kernel: Kernel, arguments: Sequence[Any], programs: Sequence[int], watch: Any) -> None:
    """Run some programs of a kernel, while something watches its memory accesses."""
    import triton.language as tl
    from triton.runtime import interpreter

    mend(interpreter, tl)
    builder, module = interpreter.interpreter_builder, interpreter._interpreter
    watch.module, interpreter._interpreter = module, watch
    index_type = interpreter.InterpreterBuilder.create_get_program_id
    try:
        with np.errstate(all="ignore"):
            function = _function(kernel.source)
            if kernel.schedule.waits:
                _launch_together(kernel, function, arguments, len(programs), interpreter, tl)
                return
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
        vars(builder).pop("create_get_program_id", None)


@cache
def _function(source: Any) -> Any:
    """The function of a source, once for all launches, since the interpreter first rewrites it."""
    from tilearray_cuda.kernels.compile import jit_function

    return jit_function(source)


def _launch_together(
    kernel: Kernel, function: Any, arguments: Sequence[Any], programs: int, interpreter: Any, tl: Any
) -> None:
    """Run programs that wait for each other. As few run at once as a group has members, or `SWEPT`."""
    builder = interpreter.interpreter_builder
    atomic, load = builder.create_atomic_rmw, builder.create_masked_load
    constants = dict(kernel.source.constants)

    def grid(given: dict[str, Any]) -> tuple[int]:
        sweeps = isinstance(kernel.schedule, Partition)
        residents = SWEPT if sweeps else kernel.loop.segments.total
        launch = Together(lambda: run(**given), programs, residents)
        builder.create_get_program_id = lambda axis: builder.get_int32(launch.program)

        def paused(*operands: Any) -> Any:
            found = atomic(*operands)
            for _ in range(LATE if sweeps and launch.program % 2 else 1):
                launch.pause()
            return found

        def read_after_others(pointers: Any, mask: Any, other: Any, cache_policy: Any, is_volatile: bool) -> Any:
            if is_volatile:
                launch.pause()
            return load(pointers, mask, other, cache_policy, is_volatile)

        def pause() -> None:
            for _ in range(LATE if launch.program % 2 == 0 else 1):
                launch.pause()

        builder.create_atomic_rmw, builder.create_masked_load = paused, read_after_others
        interpreter._interpreter.pause = pause
        try:
            launch.launch()
        finally:
            del builder.create_atomic_rmw, builder.create_masked_load, interpreter._interpreter.pause
        return (0,)

    run = function.rewrite()
    interpreter.GridExecutor(run, function.arg_names, grid, [])(*arguments, **constants)


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
    flat = _distinct(places)
    return np.concatenate([flat, flat + np.uint64(8)]) if memory.values.dtype.name == "complex128" else flat


def _distinct(addresses: np.ndarray) -> np.ndarray:
    """As np.unique, in a tenth of its time; no address is 0."""
    ordered = np.sort(addresses, axis=None)
    return ordered[np.diff(ordered, prepend=np.uint64(0)) != 0]


def _number(operand: Any, value: Number) -> dict[str, Any]:
    """A Python number as the launcher packs it: rounded once to its dtype, then as the argument's type."""
    exact, storage = scalar(value, dtype_of(operand.dtype)), STORAGE[operand.dtype]
    if storage.kind == "complex":
        return {f"{operand.name}_re": exact.real, f"{operand.name}_im": exact.imag}
    return {operand.name: exact.view(np.uint8) if storage.kind == "bits" else exact.astype(storage.argument[1])}


def programs_of(kernel: Kernel) -> int:
    """The number of programs that cover the loop."""
    schedule, shape, tile = kernel.schedule, kernel.loop.shape, dict(kernel.source.constants)
    if isinstance(schedule, Windows):
        return -(-shape[0] // tile["BLOCK"]) * math.prod(shape[1:])
    if isinstance(schedule, Linear):
        return -(-(math.prod(shape) + schedule.lead) // tile["BLOCK"])
    if isinstance(schedule, Select):
        if schedule.spec.has_node("slot"):
            return -(-math.prod(shape) // tile["BLOCK"])
        return 1 if schedule.adds else kernel.loop.segments.total
    if isinstance(schedule, (Partition, Distinct)):
        return kernels.programs_of(schedule, kernel.loop)
    if isinstance(schedule, Sort):
        return -(-shape[0] // tile["ROWS"])
    if isinstance(schedule, Product):
        return -(-shape[-3] // tile["ROWS"]) * -(-shape[-2] // tile["COLUMNS"]) * math.prod(shape[:-3])
    if isinstance(schedule, Boxes):
        sizes = (tile["DEPTH"], tile["ROWS"], tile["COLUMNS"])
        return math.prod(shape[:-3]) * math.prod([-(-n // size) for n, size in zip(shape[-3:], sizes, strict=True)])
    assert isinstance(schedule, Tiled)
    if isinstance(schedule, ScanBlocks):
        return math.prod(shape[:-1]) * -(-kernel.loop.segments.total // tile["ROWS"]) + 1
    if isinstance(schedule, WalkedRows):
        return kernel.loop.walked.programs
    if isinstance(schedule, Reduce):
        tiles = -(-shape[-2] // tile["ROWS"]) * math.prod(shape[: schedule.kept])
        return tiles * (kernel.loop.segments.total if schedule.is_cut else 1)
    merged = shape[-3] if schedule.merged else 1
    if isinstance(schedule, MergedRows):
        rows = shape[schedule.slow] * shape[-2]
        tiles = -(-rows // tile["ROWS"]) * -(-shape[-1] * merged // tile["COLUMNS"])
        return tiles * math.prod(shape) // (rows * shape[-1] * merged)
    columns, step = shape[-1] * merged + schedule.lead, tile["COLUMNS"] - schedule.overlap
    return -(-(shape[-2] + schedule.rise) // tile["ROWS"]) * -(-columns // step) * math.prod(shape[:-2]) // merged
