"""`HostDevice`: the memory of the process, with NumPy for the computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilearray_host import indexing, linalg, reductions, sorting
from tilearray_host.memory import Buffer, allocate, from_numpy, to_numpy

if TYPE_CHECKING:
    from tilearray_host.kernel import Kernel, Launch


class HostDevice:
    """The host's backend. NumPy needs no written calls, reports index errors itself, and has no approximations."""

    call_writer = None
    index_errors = None
    indexing = indexing
    reductions = reductions
    sorting = sorting
    linear_algebra = linalg
    on_host = True
    approximates = False

    def loop_class(self, loop: Any, /) -> None:
        """Return None: one kernel runs every loop."""
        del loop

    def facts_of_matrix(self, size: int, columns: int, outer: int, inner: int, /) -> int:
        """A kernel depends on no facts of an array."""
        del size, columns, outer, inner
        return 0

    def compile(self, expression: Any, loop_class: None, aligned: tuple[bool, ...], /) -> Kernel:
        """Return the kernel of an expression."""
        from tilearray_host import kernel  # not needed for arrays that are moved to a GPU

        del loop_class, aligned
        return kernel.Kernel(expression)

    def bind(self, kernel: Kernel, loop: Any, /) -> Launch:
        """Bind a kernel to a loop. The result takes a stream, then a buffer (or number) and an offset per operand."""
        return kernel.bind(loop)

    def own_stream(self, stream: Any, /) -> None:
        """Do nothing: the host has no streams."""
        del stream

    allocate = staticmethod(allocate)
    to_numpy = staticmethod(to_numpy)
    from_numpy = staticmethod(from_numpy)

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Any = None) -> Buffer:
        """Raise an error: there is only one host device."""
        raise NotImplementedError("there is one host device")


HOST = HostDevice()
