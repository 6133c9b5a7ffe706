"""`HostDevice`: the memory of the process, and NumPy as what computes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilearray_host import indexing
from tilearray_host.memory import Buffer, allocate, from_numpy, to_numpy

if TYPE_CHECKING:
    from tilearray_host.kernel import Kernel, Launch


class HostDevice:
    """What works on the host. NumPy writes no calls, reports index errors itself, and has no approximations."""

    call_writer = None
    index_errors = None
    indexing = indexing
    on_host = True
    approximates = False

    def loop_class(self, loop: Any, /) -> None:
        """One kernel serves every loop."""
        del loop

    def compile(self, expression: Any, loop_class: None, aligned: tuple[bool, ...], /) -> Kernel:
        """Return the kernel of an expression."""
        from tilearray_host import kernel  # arrays on their way to a GPU need none

        del loop_class, aligned
        return kernel.Kernel(expression)

    def bind(self, kernel: Kernel, loop: Any, /) -> Launch:
        """Fix the loop of a kernel: the result takes a stream, then a buffer (or number) and an offset each."""
        return kernel.bind(loop)

    def own_stream(self, stream: Any, /) -> None:
        """The host has no streams."""
        del stream

    allocate = staticmethod(allocate)
    to_numpy = staticmethod(to_numpy)
    from_numpy = staticmethod(from_numpy)

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Any = None) -> Buffer:
        """There is one host device, so nothing is copied from another."""
        raise NotImplementedError("there is one host device")


HOST = HostDevice()
