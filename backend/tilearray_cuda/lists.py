"""Lists of arrays on one device: kernels over lists, and launches that upload their tables.

The table of addresses is uploaded when an address is new. So an optimizer step, which meets the same arrays again and
again, uploads nothing. Tables are memory of a stream: each is written once, and later tables take other memory, so no
kernel reads a table that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray_cuda.kernel import packed_as
from tilearray_cuda.kernels.compile import cubin_of
from tilearray_cuda.kernels.lists import TABLES, Tables, source_of_list, tables_of
from tilearray_cuda.kernels.schedules.choose import schedule_of
from tilearray_cuda.kernels.schedules.schedule import Schedule
from tilearray_cuda.kernels.source import Source
from tilearray_cuda.kernels.spec import make_spec
from tilearray_cuda.runtime import call_source, launch
from tilearray_cuda.runtime.driver import is_capturing, torch_captures

LaunchList = Callable[[int, Sequence[Any], list[int], Sequence[Any]], bool]


class ListKernel:
    """A kernel over lists, loaded on one device.

    Attributes
    ----------
    schedule, source, arguments
        As of `tilearray_cuda.kernel.Kernel`.
    converters : tuple of callable
        For each number, the function that turns it into the values that are packed.
    """

    __slots__ = ("arguments", "converters", "schedule", "source")

    def __init__(self, schedule: Schedule, source: Source, function: Any) -> None:
        self.schedule = schedule
        self.source = source
        numbers = [packed_as(each.dtype, True) for each in schedule.spec.operands if each.strides is None]
        formats = [part for each, _ in numbers for part in each]
        self.arguments = launch.Arguments(function, ["P"] * len(TABLES) + formats, [])
        self.converters = tuple([convert for _, convert in numbers])


class Lists:
    """Launches over lists of arrays on one device."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def compile(self, expression: Any, loop_class: Any, aligned: tuple[bool, ...], /) -> ListKernel:
        """Return the kernel of an elementwise expression for lists of loops of one class."""
        device = self._device
        schedule = schedule_of(make_spec(expression, loop_class, aligned), device.arch).for_lists()
        source = source_of_list(schedule)
        cubin = cubin_of(source, device.arch, schedule.spec.contract)
        return ListKernel(schedule, source, launch.load_function(device, cubin))

    def bind(self, kernel: ListKernel, loops: Sequence[Any], /) -> LaunchList:
        """Fix the loops of a kernel; see `tilearray.engine.backend.Lists`."""
        return Bound(self._device, kernel, tables_of(kernel.schedule, loops))


class Bound:
    """A kernel with the loops of its members: called with a stream, buffers, addresses and numbers, it launches once.

    Each member has a row of buffers and addresses: its arrays in the order of the kernel's operands.
    """

    __slots__ = ("_addresses", "_device", "_facts", "_launch", "_members", "_outputs", "_tables", "_width")

    def __init__(self, device: Any, kernel: ListKernel, tables: Tables) -> None:
        spec = kernel.schedule.spec
        self._device = device
        self._tables = tables
        self._outputs, self._width = spec.outputs, len(spec.arrays)
        self._members = tables.members
        places, converters = [0] * len(TABLES), kernel.converters
        self._launch = call_source.bind_operands(
            kernel.arguments,
            kernel.arguments.fix(tables.programs, ()),
            [*places, *[None] * len(converters)],
            [*[None] * len(places), *converters],
            0,
        )
        self._facts: Any = None  # the buffer of the tables that the loops fix
        self._addresses: tuple[list[int], Any] | None = None  # the last addresses, and their buffer

    def __call__(self, stream: int, buffers: Sequence[Any], addresses: list[int], numbers: Sequence[Any]) -> bool:
        """Launch. Return False, without a launch, if a CUDA graph captures: it cannot hold the upload of a table."""
        if is_capturing(stream) or torch_captures():
            return False
        device = self._device
        if {buffer.stream for buffer in buffers} != {stream}:
            for position, buffer in enumerate(buffers):
                if buffer.stream != stream:
                    device.join(buffer, stream, position % self._width < self._outputs)
        facts = self._facts
        if facts is None:
            facts = self._facts = self._uploaded(self._tables.memory, stream)
        known = self._addresses
        if known is None or known[0] != addresses:
            table = np.array(addresses, np.int64) + self._tables.shifts.reshape(-1)
            known = self._addresses = addresses, self._uploaded(table.view(np.uint8), stream)
        pairs = [part for number in numbers for part in (number, 0)]
        self._launch(stream, facts, self._members, facts, 0, known[1], 0, *pairs)
        return True

    def _uploaded(self, memory: np.ndarray, stream: int) -> Any:
        """Return a buffer with these bytes."""
        buffer = self._device.allocate(memory.nbytes, stream)
        self._device.staging.upload(buffer.pointer, memory, stream)
        return buffer
