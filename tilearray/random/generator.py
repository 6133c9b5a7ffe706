"""`Generator`: the distributions, with the names and the parameters of ``numpy.random.Generator``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.engine.devices import as_device
from tilearray.engine.execute import run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.errors import OperandError, ParameterError, shown
from tilearray.functions.conversion import to_numpy
from tilearray.geometry.shapes import ShapeLike, as_int
from tilearray.random import draws
from tilearray.random.integers import bounds_of
from tilearray.random.parameters import affine, parameters_of
from tilearray.random.philox import Philox4x32
from tilearray.random.targets import Target, target_of

INTEGERS = frozenset(
    getattr(dtypes, name)
    for name in ("bool_", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
)


def default_rng(seed: Any = None, *, device: Any = None) -> Generator:
    """Return a generator.

    Parameters
    ----------
    seed : int, sequence of int, numpy.random.SeedSequence, Philox4x32, Generator or None
        Equal seeds give equal numbers. None takes a seed from the operating system. A Philox4x32 is shared, and a
        Generator returned as it is.
    device : Device or str, optional
        The device of new arrays; None is the default device at the time of each call.

    Returns
    -------
    Generator

    Raises
    ------
    OperandError
        If the seed has another type.
    ParameterError
        If it is negative.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.random.default_rng(7).integers(10, size=6).tolist()
    [1, 1, 6, 8, 7, 8]
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, Philox4x32) else Philox4x32(seed), device=device)


class Generator:
    """Draws arrays from a stream of random words.

    The numbers depend on the stream's key and position and on the logical index of an element, not on the device, the
    layout or the shape: ``random(6)`` gives the numbers of two calls of ``random(3)``.

    Parameters
    ----------
    bit_generator : Philox4x32
    device : Device or str, optional
        The device of new arrays; None is the default device at the time of each call.

    Examples
    --------
    >>> import tilearray as ta
    >>> rng = ta.random.Generator(ta.random.Philox4x32(7))
    >>> state = rng.bit_generator.state
    >>> x = rng.random((2, 3), dtype="bfloat16")
    >>> rng.bit_generator.state = state
    >>> x.ravel().tolist() == rng.random(6, dtype="bfloat16").tolist()
    True
    """

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

    def spawn(self, n_children: SupportsIndex) -> list[Generator]:
        """Return new generators whose streams are independent; see `Philox4x32.spawn`.

        Examples
        --------
        >>> import tilearray as ta
        >>> [child.integers(100).item() for child in ta.random.default_rng(7).spawn(3)]
        [62, 24, 1]
        """
        return [Generator(child, device=self._device) for child in self._bit_generator.spawn(n_children)]

    def __repr__(self) -> str:
        return f"Generator({self._bit_generator!r})"

    def __reduce__(self) -> Any:
        device = None if self._device is None else str(self._device)
        return _restored, (self._bit_generator, device)

    def random(
        self, size: ShapeLike | None = None, dtype: Any = None, out: Array | None = None, *, device: Any = None
    ) -> Array:
        """Return floats that are uniform in ``[0, 1)``.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape. None is the shape of `out`, or a 0-d array.
        dtype : dtype or name, optional
            bfloat16, float16, float32 or float64; None is that of `out`, or the default float. The numbers are all
            multiples of 2**-8, 2**-11, 2**-24 or 2**-53.
        out : Array, optional
            The target, of any layout.
        device : Device or str, optional
            None is the device of `out`, or of the generator.

        Returns
        -------
        Array

        Raises
        ------
        DTypeError
            If the dtype is another one, or not that of `out`.
        ShapeError
            If the size is not that of `out`.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).random(3)
        Array([0.86044395, 0.12475938, 0.24304909], dtype=float32, device='cpu')
        """
        target = target_of("random", size, dtype, device or self._device, out)
        return self._unit(target, None)

    def uniform(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        size: ShapeLike | None = None,
        *,
        dtype: Any = None,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return floats that are uniform in ``[low, high)``: ``low + (high - low) * random()``.

        The product and the sum are rounded, so `high` is a possible result.

        Parameters
        ----------
        low, high : number or Array
            Arrays broadcast.
        size, dtype, out, device
            See `random`.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a bound is not finite, or ``high < low``. Arrays are not checked.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).uniform(-1, 1, 3)
        Array([ 0.7208879 , -0.75048125, -0.5139018 ], dtype=float32, device='cpu')
        """
        given = parameters_of("uniform", {"low": low, "high": high}, device or self._device, out)
        target = target_of("uniform", size, dtype, given.device, out, parameters=given.shape)
        wide = draws.computed_in(target.dtype)
        if given.arrays:
            unit = self._unit(Target("uniform", target.shape, wide, target.device, None), None)
            first, last = given.values
            return affine(unit, first, last - first, target)
        with np.errstate(over="ignore"):
            first, last = (float(wide.type(number)) for number in given.values)
            span = float(wide.type(last - first))
        if not (0 <= span < float("inf")):
            raise ParameterError(
                f"uniform: expected finite bounds with low <= high, got low={shown(low)} and high={shown(high)}; "
                f"write bounds whose difference {wide.name} holds"
            )
        return self._unit(target, (span, first))

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: ShapeLike | None = None,
        dtype: Any = None,
        endpoint: bool = False,
        *,
        out: Array | None = None,
        device: Any = None,
    ) -> Array:
        """Return integers that are uniform in ``[low, high)``, or in ``[0, low)`` if there is no `high`.

        An element is ``low + (word * (high - low) >> 64)`` with a random word of 64 bits; for ranges above 2**32, and
        for arrays of bounds for 64-bit dtypes, with one of 128 bits. The probability of each number differs from the
        uniform one by less than 2**-32 of it, and not at all if the range is a power of two.

        Parameters
        ----------
        low, high : int or Array
            Arrays of integers broadcast.
        size, out, device
            See `random`.
        dtype : dtype or name, optional
            bool or an integer dtype; None is that of `out`, or int64.
        endpoint : bool
            Whether `high` is a possible result.

        Returns
        -------
        Array

        Raises
        ------
        ParameterError
            If a range is empty, or the dtype does not hold it. To check arrays on a GPU, the call waits for them.

        Examples
        --------
        >>> import tilearray as ta
        >>> rng = ta.random.default_rng(7)
        >>> rng.integers(1, 6, size=5, endpoint=True).tolist()
        [1, 2, 4, 6, 5]
        >>> rng.integers([10, 100, 1000]).shape
        (3,)
        """
        given = bounds_of(low, high, endpoint, device or self._device, out)
        target = target_of(
            "integers",
            size,
            dtype,
            given.device,
            out,
            kinds=INTEGERS,
            default=dtypes.int64,
            parameters=given.shape,
        )
        first, count, wide = given.ranges(target)
        operands = (count, first)
        return self._fill(target, 4 if wide else 2, draws.bounded, (wide, given.arrays), operands)

    def bytes(self, length: SupportsIndex) -> bytes:
        """Return random bytes: the words of the stream in little-endian order.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.random.default_rng(7).bytes(4).hex()
        'aa0e46dc'
        """
        count = as_int(length, "bytes", "length")
        if count < 0:
            raise ParameterError(f"bytes: expected length >= 0, got {count}")
        words = Target("bytes", (-(-count // 4),), dtypes.uint32, as_device("cpu"), None)
        return to_numpy(self._fill(words, 1, draws.raw, (), ())).astype("<u4").tobytes()[:count]

    def _unit(self, target: Target, scale: Sequence[float] | None) -> Array:
        """Draw floats in [0, 1), times a number plus another one."""
        dtype = target.dtype
        return self._fill(target, draws.UNIT[dtype][0], draws.unit, (scale is not None,), scale or ())

    def _fill(self, target: Target, words: int, make: Any, facts: tuple[Any, ...], operands: Sequence[Any]) -> Array:
        """Draw all elements of a target with the operation that `make` gives for its dtype and some facts."""
        stream = self._bit_generator.take(target.size, words)
        shifted, numbers = draws.numbers(*stream, words)
        operation: FixedOperation = make(target.dtype, shifted, *facts)
        return target.filled(lambda out: run_fixed(operation, [*numbers, *operands], out))


def _restored(bit_generator: Philox4x32, device: str | None) -> Generator:
    return Generator(bit_generator, device=device)
