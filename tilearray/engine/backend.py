"""The contract between the library and a backend, complete and typed.

All that crosses it is plain: integers, strings, tuples, ndarrays, an `Expression`, a `Loop`, and the backend's own
objects. A backend imports nothing of the library. What a backend may lack is an attribute that is None: the library asks
for it, and says which function is missing on which device. It never asks which device it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from tilearray.engine.expression import Expression
from tilearray.geometry.loop import Loop

Ints = tuple[int, ...]
Stream = Any
"""The stream that orders work: on cuda the handle of a stream, an int. The host has none and ignores it."""
Launch = Callable[..., None]
"""Called with a stream, then ``buffer, byte offset`` or ``number, 0`` for the outputs and each input."""
Call = Callable[..., Any]
"""Called with a stream and the operands, the target first if there is one; returns the result."""
Kernel = Any
"""A backend's own object: an expression, ready for every loop of one class."""
Gap = tuple[int, int, bool]
"""An operand shares memory with the target if the distance of their addresses lies between two numbers of bytes; the
third says whether it is the same view if the distance is 0."""


class Buffer(Protocol):
    """Memory on one device. Every view of it keeps it alive."""

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...


class CallRule(Protocol):
    """What all calls of an expression have in common; see `tilearray.engine.call.Rule`."""

    @property
    def numbers(self) -> tuple[Callable[[Any], Any] | None, ...]: ...
    @property
    def raw(self) -> bool: ...
    @property
    def whole(self) -> Callable[[Sequence[Any], Any], Any]: ...


class CallWriter(Protocol):
    """Writes whole calls, which take less host time than a launch behind a general call.

    A written call checks Python numbers, allocates the result or checks the target, launches, and returns the result.
    """

    def bind_call(
        self, kernel: Kernel, loop: Loop, rule: CallRule, signature: Any, gaps: tuple[Gap | None, ...], /
    ) -> Call:
        """Return the call of a kernel over a loop; `signature` is that of a new result, or None beside a target."""
        ...

    def bind_new(self, kernel: Kernel, rule: CallRule, /) -> Callable[[Loop, Any], Call]:
        """Return what makes a call from a loop that starts at its operands' first elements, and a new signature."""
        ...


class IndexErrors(Protocol):
    """Words of device memory in which kernels report an index that lies outside of its axis."""

    def take(self, count: int, stream: Stream, /) -> Any:
        """Return `count` words for one launch, to be read after it."""
        ...

    def deferred(self, count: int, stream: Stream, /) -> Any:
        """Return `count` words that the next synchronizing call reads."""
        ...

    def read(self, words: Any, stream: Stream, /) -> Sequence[int | None]:
        """Wait for the launch; return the index outside for each word, or None."""
        ...


class Indexing(Protocol):
    """Indexing by integer arrays, on a backend that does not run it as an expression."""

    def get(self, x: np.ndarray, key: tuple[Any, ...], /) -> np.ndarray:
        """Return a copy of the elements that a key selects; IndexError if an index lies outside."""
        ...

    def set(self, x: np.ndarray, key: tuple[Any, ...], value: np.ndarray, /) -> None:
        """Assign to the elements that a key selects; of several writes to one element the last counts."""
        ...


class Backend(Protocol):
    """What a device can do."""

    call_writer: CallWriter | None
    index_errors: IndexErrors | None
    indexing: Indexing | None
    on_host: bool
    """Whether the memory is the process's own, so that NumPy reaches it without a copy."""
    approximates: bool
    """Whether the device has instructions for ``rounding="approx"`` and ``"full"``."""

    # ------------------------------------------------------------------ kernels

    def loop_class(self, loop: Loop, /) -> Hashable:
        """Return all facts of a loop that a kernel's code may depend on. There are finitely many."""
        ...

    def facts_of_matrix(self, size: int, columns: int, outer: int, inner: int, /) -> int:
        """Return all that `loop_class` finds in one array of a small loop over a matrix, beside the loop's case.

        A number from 0 to 63, or -1 if such loops must be planned. `outer` and `inner` are the array's strides, not
        negative; the result is in C order.
        """
        ...

    def compile(self, expression: Expression, loop_class: Any, aligned: tuple[bool, ...], /) -> Kernel:
        """Return the kernel of an expression for every loop of one class."""
        ...

    def bind(self, kernel: Kernel, loop: Loop, /) -> Launch:
        """Fix the loop of a kernel."""
        ...

    # ------------------------------------------------------------------ memory

    def own_stream(self, stream: Stream, /) -> Stream:
        """Return a stream if it is one of this device, else this device's default stream."""
        ...

    def allocate(self, nbytes: int, stream: Stream, /) -> Buffer:
        """Return uninitialised memory of `nbytes` bytes, aligned for every dtype."""
        ...

    def to_numpy(self, buffer: Any, offset: int, shape: Ints, strides: Ints, dtype: np.dtype, /) -> np.ndarray:
        """Return a strided view as an ndarray: the same memory where NumPy can reach it, else a copy."""
        ...

    def from_numpy(self, array: np.ndarray, /, *, copy: bool, stream: Stream = None) -> tuple[Buffer, int]:
        """Return a buffer that holds `array`'s elements at its strides, and the byte offset of element 0."""
        ...

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Stream = None) -> Buffer:
        """Return a copy of bytes of another device of the same backend."""
        ...
