"""`Source`: a stream, the device of new arrays, and how a draw runs; the distributions are subclasses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray.arrays.array import Array
from tilearray.engine.backend import Call
from tilearray.engine.caches import PLANS, TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.devices import Device, default_device, named_device
from tilearray.engine.execute import FixedCall, is_recorded, run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import INT_OR_NONE, Words, is_plain, launch_making
from tilearray.errors import OperandError, shown
from tilearray.random import draws
from tilearray.random.philox import Philox4x32
from tilearray.random.targets import Target

_DTYPE: Any = np.dtype  # Any: else a type checker takes the dtypes to be unknown


class Draw(NamedTuple):
    """A draw of a new array that is remembered: all but the place in a stream.

    Attributes
    ----------
    size, words : int
        The number of elements, and of words of 32 bits for each.
    arguments : tuple
        Those of `Source._fill`.
    launches : dict
        The launches of the draws that begin with a block of words and of those that begin within one. Each makes the
        array, and takes the numbers of the stream.
    """

    size: int
    words: int
    arguments: tuple[Any, ...]
    launches: dict[bool, Call | None]


class Source:
    """A stream of random words, and the device of new arrays."""

    __slots__ = ("_bit_generator", "_device")

    def __init__(self, bit_generator: Philox4x32, *, device: Any = None) -> None:
        if not isinstance(bit_generator, Philox4x32):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OperandError(
                f"Generator: expected a Philox4x32, got {shown(bit_generator)}; write ta.random.default_rng(seed)"
            )
        self._bit_generator = bit_generator
        self._device = named_device(device) or device

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
        known_as: Words | None = None,
        taken: tuple[bool, list[Any]] | None = None,
    ) -> Array:
        """Draw all elements of a target with the operation that `make` gives for its dtype and some facts.

        `arrays` says that some operands are arrays, of any signatures, and not numbers. `_again` finds the draw of a
        new array under the words `known_as`. `taken` is what `draws.numbers` gave, if words are taken already.
        """
        shifted, numbers = taken or draws.numbers(*self._bit_generator.take(target.size, words), words)
        operation, given = make(target.dtype, shifted, *facts), [*numbers, *operands]
        run = run_fixed if arrays or known_as is not None else _run_again
        found = target.filled(lambda out: run(operation, given, out))
        if known_as is not None and not is_recorded(target.device):
            root = STATE.get().plans
            draw: Draw | None = root.get(known_as)
            if draw is None:
                draw = Draw(found.size, words, (target, words, make, facts, operands, arrays, known_as), {})
                PLANS.keep(root, (known_as,), draw)
            draw.launches[shifted] = launch_making(operation, given, found, found, range(len(numbers)))
        return found

    def _words(self, function: str, size: Any, dtype: Any, device: Any, *parameters: Any) -> Words | None:
        """Return the words of a draw of a new array; None if arguments may equal others and be read differently."""
        place = device or self._device or default_device()
        place = place if place.__class__ is Device else named_device(place)
        if place is None or not is_plain(size) or not (dtype is None or issubclass(type(dtype), (str, _DTYPE))):
            return None
        found: list[Any] = [function, size, dtype, place, State.changes]
        for number in parameters:
            if number.__class__ is float:
                found.append(number.hex())  # -0.0 equals 0.0
            elif number.__class__ in INT_OR_NONE:
                found.append(number)
            else:
                return None
        return tuple(found)

    def _again(self, known_as: Words | None) -> Array | None:
        """Draw a new array as a call in the same words did; None if there was none."""
        state = STATE.get()
        draw: Draw | None = state.plans.get(known_as)
        if draw is None:
            return None
        taken = draws.numbers(*self._bit_generator.take(draw.size, draw.words), draw.words)
        shifted, numbers = taken
        launch = draw.launches.get(shifted)
        if launch is None:
            return self._fill(*draw.arguments, taken=taken)
        parts = [0] * (2 * len(numbers))
        parts[::2] = numbers
        found: Array = launch(state.stream, *parts)
        return found


_CALLS: TwoGenerations[FixedCall] = TwoGenerations(512)


def _run_again(operation: FixedOperation, numbers: list[Any], out: Array) -> None:
    """Run an operation of numbers as `run_fixed` does. Its call is found by the signature of the target."""
    key = operation, out._signature
    known = _CALLS.get(key) or _CALLS.put(key, FixedCall(operation))
    known.run(numbers, out)
