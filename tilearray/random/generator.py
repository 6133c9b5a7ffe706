"""`Generator`: a stream with its distributions, by the names and parameters of ``numpy.random.Generator``."""

from __future__ import annotations

from typing import Any, SupportsIndex

from tilearray import dtypes
from tilearray.engine.devices import as_device
from tilearray.errors import ParameterError
from tilearray.functions.conversion import to_numpy
from tilearray.geometry.shapes import as_int
from tilearray.random import draws
from tilearray.random.counts import Counts
from tilearray.random.old_names import OldNames
from tilearray.random.orders import Orders
from tilearray.random.philox import Philox4x32
from tilearray.random.ratios import Ratios
from tilearray.random.targets import Target
from tilearray.random.transformed import Transformed
from tilearray.random.vectors import Vectors


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


class Generator(Orders, Ratios, Transformed, Counts, Vectors, OldNames):
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

    __slots__ = ()

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
            raise ParameterError(f"bytes: expected length >= 0, got {count}; write bytes(16)")
        words = Target("bytes", (-(-count // 4),), dtypes.uint32, as_device("cpu"), None)
        return to_numpy(self._fill(words, 1, draws.raw)).astype("<u4").tobytes()[:count]


def _restored(bit_generator: Philox4x32, device: str | None) -> Generator:
    return Generator(bit_generator, device=device)
