"""`HostDevice`: the memory of the process, with NumPy for the computation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilearray_host import fourier, indexing, matrices, products, sorting
from tilearray_host.memory import Buffer, allocate, elements, from_numpy, to_numpy

if TYPE_CHECKING:
    from tilearray_host.kernel import Kernel, Launch
    from tilearray_host.reduction_kernel import ReductionKernel
    from tilearray_host.scan_kernel import ScanKernel


class HostDevice:
    """The host's backend. NumPy reports index errors itself, and has no approximations."""

    lists = index_errors = numbers = factors = transforms = collectives = None
    indexing = indexing
    sorting = sorting
    linear_algebra, products = products, None
    matrices = matrices
    fourier = fourier
    on_host = scans_whole = True
    holds_rows = computes_places = False
    approximates = False
    most_members = most_bins = 0

    def loop_class(self, loop: Any, /) -> None:
        """Return None: one kernel runs every loop."""
        del loop

    def facts_of_matrix(self, size: int, columns: int, outer: int, inner: int, /) -> int:
        """A kernel depends on no facts of an array."""
        del size, columns, outer, inner
        return 0

    def compile(
        self, expression: Any, loop_class: None, aligned: tuple[bool, ...], /
    ) -> Kernel | ReductionKernel | ScanKernel:
        """Return the kernel of an expression."""
        from tilearray_host import kernel, reduction_kernel, scan_kernel  # not needed for arrays that go to a GPU

        del loop_class, aligned
        kinds = {node[0] for node in expression.nodes}
        if "scan" in kinds:
            return scan_kernel.ScanKernel(expression)
        return reduction_kernel.ReductionKernel(expression) if "reduce" in kinds else kernel.Kernel(expression)

    def cuts(self, expression: Any, /) -> bool:
        """Return whether the order of a reduction has an influence on its result: only then there are segments."""
        from tilearray_host import reduction

        return any(reduction.has_an_order(node) for node in expression.nodes if node[0] == "reduce")

    @property
    def call_writer(self) -> HostDevice:
        """This object: it writes whole calls."""
        return self

    def bind_call(
        self, kernel: Kernel, loop: Any, rule: Any, signature: Any, gaps: tuple[Any, ...], /
    ) -> Callable[..., Any]:
        """Return the call of a kernel over a loop."""
        return kernel.bind_call(loop, rule, signature, gaps)

    def bind_fused(self, kernel: Any, loop: Any, made: Any, constants: Any, public: Any, /) -> Any:
        """Bind a kernel to a loop: as `bind`, but the launch makes some outputs, and has the constants."""
        bind = getattr(kernel, "bind_fused", None)  # those of reductions and scans have none
        return None if bind is None else bind(loop, made, constants, public)

    def bind_steps(self, steps: Any, takes: Any, raw: bool, memory: Any, /) -> None:
        """Return None: NumPy takes far longer than what a call of several launches spends beside them."""

    def bind_new(self, kernel: Kernel, rule: Any, /) -> Callable[[Any, Any], Callable[..., Any]]:
        """Return a function that makes a call from a loop and the signature of the result."""
        return lambda loop, signature: kernel.bind_call(loop, rule, signature, ())

    def bind(self, kernel: Kernel, loop: Any, /) -> Launch:
        """Bind a kernel to a loop. The result takes a stream, then a buffer (or number) and an offset per operand."""
        return kernel.bind(loop)

    def own_stream(self, stream: Any, /) -> None:
        """Do nothing: the host has no streams."""
        del stream

    def is_captured(self, stream: Any, /) -> bool:
        """Return False: the host has no streams."""
        del stream
        return False

    allocate = staticmethod(allocate)
    to_numpy = staticmethod(to_numpy)
    from_numpy = staticmethod(from_numpy)
    elements = staticmethod(elements)
    adopt = staticmethod(Buffer)

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Any = None) -> Buffer:
        """Raise an error: there is only one host device."""
        raise NotImplementedError("there is one host device")


HOST = HostDevice()
