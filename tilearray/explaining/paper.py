"""A device without memory: functions run on it as on a real one, and each launch is noted instead of run.

An argument becomes an `Array` of the same dtype, layout and alignment, at the same address, on a `PaperDevice`. So all
of the library runs as always: promotion, broadcasting, plans, tracing of fused functions, copies of operands that share
memory. Only the backend differs: its "kernels" are requests, and its "launches" are notes.

The device can stand for a GPU on a machine without one, since a plan needs no GPU.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from tilearray.arrays.fusion import tracing
from tilearray.arrays.fusion.numbers import TracedNumber
from tilearray.engine import devices
from tilearray.engine.backend import AnyLoop
from tilearray.engine.context import STATE
from tilearray.engine.devices import CPU, Device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import Operation, TypedScalar
from tilearray.engine.plan import Key, make_plan
from tilearray.engine.signature import ArrayBase, Signature, signature_of
from tilearray.errors import OperandError
from tilearray.ops.execute import execute
from tilearray.ops.explain_promotion import PromotionExplanation, explain_promotion
from tilearray.ops.row import Row
from tilearray.promotion.semantics import Semantics


class Memory:
    """Stands for memory: an argument's at its own address, or new memory at a distant one."""

    __slots__ = ("nbytes", "pointer", "readonly", "stream")

    _addresses = itertools.count(1)

    def __init__(self, nbytes: int, pointer: int | None = None, readonly: bool = False) -> None:
        self.pointer = next(self._addresses) << 64 if pointer is None else pointer
        self.nbytes = nbytes
        self.readonly = readonly
        self.stream = None


class Request(NamedTuple):
    """The kernel of a launch: the arguments of a backend's `compile`."""

    expression: Expression
    loop_class: Any
    aligned: tuple[bool, ...]


class Note(NamedTuple):
    """A launch that did not happen: its kernel, its loop, and a buffer and an offset (or a number and 0) an operand."""

    request: Request
    loop: AnyLoop
    operands: tuple[tuple[Any, int], ...]


class Call(NamedTuple):
    """A call of an operation, or of a fused function.

    Attributes
    ----------
    operation : Operation or None
        None for a fused function.
    operands : tuple
        Signatures of arrays, and numbers.
    result : Signature or None
        The signature of the result of an operation.
    promotions : list of PromotionExplanation
        The decisions on dtypes: of the operation, or of all operations that were fused.
    notes : list of Note
        The launches.
    """

    operation: Operation | None
    operands: tuple[Any, ...]
    result: Signature | None
    promotions: list[PromotionExplanation]
    notes: list[Note]


class _Reports:
    """Words in which kernels report indices that lie outside: no index is read, so none does."""

    def take(self, count: int, stream: Any) -> list[Memory]:
        del stream
        return [Memory(16) for _ in range(count)]

    deferred = take

    def read(self, words: Sequence[Memory], stream: Any) -> list[None]:
        del stream
        return [None for _ in words]


MEMBERS, MOST_BINS = 64, 65_536
"""The most programs that may wait for each other, and the most integers that one counts, as on an H100."""
_WHAT = {
    "sorting": "sorts or searches",
    "linear_algebra": "multiplies matrices",
    "matrices": "decomposes matrices",
    "factors": "decomposes matrices",
    "fourier": "computes a Fourier transform",
    "transforms": "computes a Fourier transform",
    "collectives": "exchanges data between devices",
    "numbers": "selects by a mask",
    "to_numpy": "reads the values of an array",
    "from_device": "copies between devices",
    "indexing": "indexes with arrays through NumPy",
}
"""The parts of a backend that are not kernels, in words."""


class _PaperBackend:
    """A backend whose launches are notes."""

    call_writer = lists = None

    def __init__(self, device: PaperDevice, on_host: bool) -> None:
        self.on_host = self.scans_whole = on_host
        self.approximates = self.holds_rows = self.computes_places = not on_host
        self.most_members, self.most_bins = (0, 0) if on_host else (MEMBERS, MOST_BINS)
        self._device = device
        self.index_errors = None if on_host else _Reports()
        if not on_host:
            self.indexing = self.sorting = None
            self.linear_algebra = self.products = self.matrices = self.factors = None
            self.fourier = self.transforms = None
        choose: Any = None if on_host else importlib.import_module("tilearray_cuda.kernels.schedules.choose")
        real: Any = CPU.backend if on_host else choose
        self.loop_class, self.facts_of_matrix = real.loop_class, real.facts_of_matrix
        self.cuts: Callable[[Expression], bool] = real.cuts if on_host else lambda _: True

    def compile(self, expression: Expression, loop_class: Any, aligned: tuple[bool, ...]) -> Request:
        return Request(expression, loop_class, aligned)

    def bind(self, kernel: Request, loop: AnyLoop) -> Callable[..., None]:
        def launch(stream: Any, *operands: Any) -> None:
            del stream
            self._device.note(Note(kernel, loop, tuple(zip(operands[::2], operands[1::2], strict=True))))

        return launch

    def is_captured(self, stream: Any) -> bool:
        del stream
        return True

    def own_stream(self, stream: Any) -> Any:
        return stream

    def allocate(self, nbytes: int, stream: Any) -> Memory:
        del stream
        return Memory(nbytes)

    def from_numpy(self, array: np.ndarray, /, *, copy: bool | None, stream: Any = None) -> tuple[Memory, int]:
        del copy, stream
        return Memory(array.nbytes), 0

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _WHAT:
            raise AttributeError(name)
        raise OperandError(
            f"explain: expected a function that runs kernels, got one that {_WHAT[name]}, which is not a kernel; write "
            f"explain of its other parts"
        )


class PaperDevice(Device):
    """Stands for a device while a function is explained.

    Attributes
    ----------
    calls : list of Call
        What ran.
    """

    __slots__ = ("_memory", "_open", "calls")

    _numbers = itertools.count(1)

    def __init__(self, on_host: bool) -> None:
        super().__init__("cpu" if on_host else "cuda", 0)
        self.name = f"{self.name} (explained {next(self._numbers)})"
        self.recorder = self._call
        self.backend = cast(Any, _PaperBackend(self, on_host))
        self.calls: list[Call] = []
        self._open: Call | None = None
        self._memory: dict[int, Memory] = {}

    # ------------------------------------------------------------------ arguments

    def stand_in(self, value: Any) -> Any:
        """Return an array of this device for an array; any other value as it is."""
        if not isinstance(value, ArrayBase) or value._signature.device in (self, tracing.tracing_device(self)):
            return value
        real, signature = value._buffer, value._signature
        memory = self._memory.get(real.pointer)
        if memory is None:
            memory = self._memory[real.pointer] = Memory(real.nbytes, real.pointer, real.readonly)
        aligned = signature.aligned
        if self.wants_alignment and not signature.device.wants_alignment:  # its memory would begin aligned
            aligned = value._offset % 16 == 0
        mine = signature_of(signature.layout, signature.dtype, self, aligned)
        return ArrayBase._public._make(memory, value._offset, mine)

    # ------------------------------------------------------------------ calls

    def note(self, note: Note) -> None:
        """Add a launch to the call that runs now; outside of one, it belongs to a fused function."""
        call = self._open
        if call is None:
            call = self.calls[-1] if self.calls and self.calls[-1].operation is None else self._fused()
        call.notes.append(note)

    def _fused(self) -> Call:
        call = Call(None, (), None, [], [])
        self.calls.append(call)
        return call

    def _call(
        self, operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: Any
    ) -> Any:
        """Plan a call of an operation and run it, so that its launches are noted."""
        operands, out = [self.stand_in(operand) for operand in operands], self.stand_in(out)
        keys = [given._signature if isinstance(given, ArrayBase) else key for given, key in zip(operands, keys)]
        target = None if out is None else out._signature
        plan = make_plan(operation, semantics, keys, target, execute)
        promotions = _promotions(operation, keys, operands)
        call = Call(operation, tuple([_operand(each) for each in operands]), plan.signature, promotions, [])
        self.calls.append(call)
        before, self._open = self._open, call
        try:
            stream = STATE.get().stream
            return plan.call(stream, *operands) if out is None else plan.call(stream, out, *operands)
        finally:
            self._open = before

    def _traced(
        self, operation: Operation, semantics: Semantics, keys: Sequence[Key], operands: Sequence[Any], out: Any
    ) -> Any:
        """Record a call in the trace of a fused function, and note its dtypes."""
        if not self.calls or self.calls[-1].operation is not None or self.calls[-1].notes:
            self._fused()
        operands = [self.stand_in(operand) for operand in operands]
        self.calls[-1].promotions.extend(_promotions(operation, keys, operands))
        return tracing.record(operation, semantics, keys, operands, out)

    @contextmanager
    def open(self) -> Generator[None, None, None]:
        """Let functions of this device's arrays be traced within the block."""
        traced = tracing.tracing_device(self)
        traced.recorder = self._traced
        try:
            yield
        finally:
            tracing.forget(self)
            devices.forget(self, traced)


def _operand(value: Any) -> Any:
    return value._signature if isinstance(value, ArrayBase) else value


def _promotions(operation: Operation, keys: Sequence[Key], operands: Sequence[Any]) -> list[PromotionExplanation]:
    """Return the decision on the dtypes of an operation; moves of elements decide nothing."""
    if not isinstance(operation, Row) or operation.moves or any(isinstance(key, TypedScalar) for key in keys):
        return []
    given = [operand.number if isinstance(operand, TracedNumber) else operand for operand in operands]
    return [explain_promotion(*given, op=operation)]
