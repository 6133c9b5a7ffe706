"""`Source`: a stream, the device of new arrays, and how a draw runs; the distributions are subclasses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilearray.arrays.array import Array
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.execute import FixedCall, run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.errors import OperandError, shown
from tilearray.random import draws
from tilearray.random.philox import Philox4x32
from tilearray.random.targets import Target


class Source:
    """A stream of random words, and the device of new arrays."""

    __slots__ = ("_bit_generator", "_device")

    def __init__(self, bit_generator: Philox4x32, *, device: Any = None) -> None:
        if not isinstance(bit_generator, Philox4x32):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"Generator: expected a Philox4x32, got {shown(bit_generator)}; write ta.random.default_rng(seed)"
            )
        self._bit_generator = bit_generator
        self._device = device

    @property
    def bit_generator(self) -> Philox4x32:
        """The stream from which it draws."""
        return self._bit_generator

    def _fill(
        self,
        target: Target,
        words: int,
        make: Callable[..., FixedOperation],
        facts: tuple[Any, ...] = (),
        operands: Sequence[Any] = (),
        arrays: bool = False,
    ) -> Array:
        """Draw all elements of a target with the operation that `make` gives for its dtype and some facts.

        `arrays` says that some operands are arrays, of any signatures, and not numbers.
        """
        stream = self._bit_generator.take(target.size, words)
        shifted, numbers = draws.numbers(*stream, words)
        operation = make(target.dtype, shifted, *facts)
        run = run_fixed if arrays else _run_again
        return target.filled(lambda out: run(operation, [*numbers, *operands], out))


_CALLS: TwoGenerations[FixedCall] = TwoGenerations(512)


def _run_again(operation: FixedOperation, numbers: list[Any], out: Array) -> None:
    """Run an operation of numbers as `run_fixed` does. Its call is found by the signature of the target."""
    key = operation, out._signature
    known = _CALLS.get(key) or _CALLS.put(key, FixedCall(operation))
    known.run(numbers, out)
