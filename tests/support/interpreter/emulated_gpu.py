"""A CUDA device of NumPy memory: the whole library above the driver, its kernels run by Triton's interpreter.

It serves in a process where Triton interprets (`interpreting.Interpreter`), as ``cuda:0``. Every address that a kernel
reads or writes must lie in allocated memory, or in a word for index errors; a read may extend to the end of the last
vector of 16 bytes that has an allocated byte. Arguments must be multiples of their declared divisors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from support.gpu_facts import GpuFacts
from support.interpreter.mended import FaultError
from support.interpreter.run import _arguments, _launch, list_arguments, programs_of
from support.kernels import Kernel
from tilearray.engine.devices import _DEVICES, Device
from tilearray_cuda.errors import DeferredIndexError
from tilearray_cuda.kernels.lists import source_of_list, tables_of
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.source import source_of
from tilearray_cuda.kernels.spec import make_spec
from tilearray_cuda.runtime.index_errors import NOTHING, IndexErrors, Numbers, Word


class Memory:
    """Bytes at an address that is a multiple of 16."""

    readonly = False
    stream = 0

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.zeros(nbytes + 16, np.uint8)
        self.nbytes = nbytes
        self.pointer = -(-self._bytes.ctypes.data // 16) * 16


class Words(IndexErrors):
    """Words for reports, in host memory that no driver pinned."""

    def __init__(self, device: Any) -> None:
        super().__init__(None)
        self._device = device
        self._memory: list[Memory] = []

    def take(self, count: int, stream: int, refusal: str = "") -> list[Word]:
        """Untouched words."""
        words = [self._word() for _ in range(count)]
        for word in words:
            word.cell.value = NOTHING
        return words

    def read(self, words: list[Word], stream: int) -> list[int | None]:
        """What was left in words."""
        found = [None if word.cell.value == NOTHING else word.cell.value for word in words]
        self._unused += words
        return found

    def _word(self) -> Word:
        if self._unused:
            return self._unused.pop()
        self._memory.append(self._device.allocate(16, 0))
        return Word(self._memory[-1].pointer)


class _Watch:
    """Refuses addresses outside of what was allocated."""

    module: Any

    def __init__(self, memory: Iterable[Memory]) -> None:
        spans = sorted((each.pointer, each.pointer + each.nbytes) for each in memory if each.nbytes)
        self.starts, self.ends = (np.array(column, np.uint64) for column in zip(*spans, strict=True))
        self.readable = (self.ends + np.uint64(15)) // np.uint64(16) * np.uint64(16)

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        self._check(pointers, mask, dtype.itemsize, self.readable)
        return self.module.load(pointers, mask, other, dtype)

    def store(self, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray) -> None:
        self._check(pointers, mask, value.dtype.itemsize, self.ends)
        self.module.store(pointers, value, mask)

    def atomic_rmw(self, how: Any, pointers: np.ndarray, value: np.ndarray, mask: np.ndarray, order: Any) -> np.ndarray:
        self._check(pointers, mask, value.dtype.itemsize, self.ends)
        return self.module.atomic_rmw(how, pointers, value, mask, order)

    def _check(self, pointers: np.ndarray, mask: np.ndarray, size: int, ends: np.ndarray) -> None:
        touched = pointers[np.broadcast_to(mask, pointers.shape)]
        place = np.maximum(np.searchsorted(self.starts, touched, "right"), 1) - 1
        if not ((touched >= self.starts[place]) & (touched + np.uint64(size) <= ends[place])).all():
            raise FaultError("the kernel accesses memory that was not allocated")


class Lists:
    """Launches over lists of arrays; their tables are memory of the device."""

    def __init__(self, device: Emulated) -> None:
        self._device = device

    def compile(self, body: Any, loop_class: Any, aligned: tuple[bool, ...]) -> Any:
        """The schedule and its source."""
        schedule = choose.schedule_of(make_spec(body, loop_class, aligned), self._device.arch).for_lists()
        return schedule, source_of_list(schedule)

    def bind(self, compiled: Any, loops: Sequence[Any]) -> Callable[..., bool]:
        """What interprets the kernel over the loops."""
        schedule, source = compiled
        tables = tables_of(schedule, loops)

        def launch(stream: int, buffers: Sequence[Any], addresses: list[int], numbers: Sequence[Any]) -> bool:
            table = (np.array(addresses, np.int64) + tables.shifts.reshape(-1)).view(np.uint8)
            uploaded = [self._uploaded(each) for each in (tables.memory, table)]
            facts, places = (memory.pointer for memory in uploaded)
            arguments = list_arguments(schedule, source, [facts + tables.members, facts, places], numbers)
            divisors = [each.aligned and 16 for each in schedule.spec.arrays] * len(loops)
            for address, divisor in zip(table.view(np.int64), divisors, strict=True):
                if divisor and address % divisor:
                    raise FaultError(f"an address is said to be a multiple of {divisor}")
            self._device.launches += 1
            _launch(Kernel(schedule, source, loops[0]), arguments, range(tables.programs), _Watch(self._device.memory))
            return True

        return launch

    def _uploaded(self, table: np.ndarray) -> Memory:
        memory = self._device.allocate(table.nbytes, 0)
        ctypes.memmove(memory.pointer, table.ctypes.data, table.nbytes)
        return memory


class Emulated(GpuFacts):
    """What the library asks of a GPU."""

    def __init__(self) -> None:
        self.memory: WeakSet[Memory] = WeakSet()
        self.launches = 0
        self.lists = Lists(self)
        self.index_errors = Words(self)
        self.numbers = Numbers(self.index_errors)

    def allocate(self, nbytes: int, stream: int) -> Memory:
        """Memory that is allocated for as long as somebody holds it."""
        memory = Memory(nbytes)
        self.memory.add(memory)
        return memory

    def join(self, *use: Any) -> None:
        """Nothing to wait for."""

    def compile(self, body: Any, loop_class: Any, aligned: tuple[bool, ...]) -> Any:
        """The schedule and its source."""
        schedule = choose.schedule_of(make_spec(body, loop_class, aligned), self.arch)
        if schedule.tile.warps.bit_count() != 1:
            raise FaultError(f"{schedule.tile} has {schedule.tile.warps} warps, which no compiler takes")
        return schedule, source_of(schedule)

    def bind(self, compiled: Any, loop: Any) -> Callable[..., None]:
        """What interprets the kernel over the loop, or calls a library."""
        if hasattr(compiled, "bind"):
            return compiled.bind(loop)
        kernel = Kernel(*compiled, loop)

        def launch(stream: int, *operands: Any) -> None:
            pairs = list(zip(operands[::2], operands[1::2], strict=True))
            kinds = [operand.strides is None for operand in kernel.spec.operands]
            origins = [at.pointer + offset for (at, offset), number in zip(pairs, kinds, strict=True) if not number]
            numbers = [given for (given, _), number in zip(pairs, kinds, strict=True) if number]
            scratch = self._scratch(kernel)
            arguments = _arguments(kernel, origins, numbers, scratch.pointer if scratch else 0)
            for (name, _, divisor), given in zip(kernel.source.arguments, arguments, strict=True):
                if divisor > 1 and int(given.handle.data[0]) % divisor:
                    raise FaultError(f"{name} is said to be a multiple of {divisor}")
            self.launches += 1
            _launch(kernel, arguments, range(programs_of(kernel)), _Watch(self.memory))

        return launch

    def _scratch(self, kernel: Kernel) -> Memory | None:
        """The memory that a launch needs beside its operands; what need not be 0 is not."""
        if not kernel.schedule.has_scratch:
            return None
        size, zeroed = kernel.schedule.scratch(kernel.loop)
        memory = self.allocate(size, 0)
        ctypes.memset(memory.pointer + zeroed, 0xAB, size - zeroed)
        return memory

    def to_numpy(
        self, buffer: Memory, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray:
        """A copy of a view."""
        self.index_errors.check()
        if 0 in shape:
            return np.empty(shape, dtype)
        raw = np.ctypeslib.as_array((ctypes.c_ubyte * buffer.nbytes).from_address(buffer.pointer))
        return np.ndarray(shape, dtype, raw, offset, [stride * dtype.itemsize for stride in strides]).copy(order="K")

    def from_numpy(self, array: np.ndarray, *, copy: bool, **options: Any) -> tuple[Memory, int]:
        """A dense copy at the array's strides."""
        strides = [abs(stride) for stride in array.strides]
        low = sum(min(0, (size - 1) * step) for size, step in zip(array.shape, array.strides, strict=True))
        span = sum((size - 1) * step for size, step in zip(array.shape, strides, strict=True)) + array.itemsize
        buffer = self.allocate(span if array.size else 0, 0)
        if array.size:
            ctypes.memmove(buffer.pointer, array.ctypes.data + low, span)
        return buffer, -low


def emulated_device() -> Device:
    """The device, made at the first call in a process."""
    found = _DEVICES.get("cuda:0")
    if found is None:
        found = Device("cuda", 0)
        found.backend = Emulated()  # type: ignore[assignment]
        _DEVICES["cuda:0"] = _DEVICES["cuda"] = found
    return found


__all__ = ["DeferredIndexError", "Emulated", "emulated_device"]
