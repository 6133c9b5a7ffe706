"""`Philox4x32`: a key, and a place in the key's stream of random words.

The stream is a function: block n of four words of 32 bits is Philox 4x32-10 of the key and of a counter of 128 bits.
The counter's lower half is n, its third word numbers the attempts of distributions that reject, and its fourth word
numbers the jumps. A draw takes the next words of the stream: one, two, four or eight for each element, in C order. So a
number depends on the seed and on its logical index alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np

from tilearray.engine.locks import Lock
from tilearray.errors import OperandError, ParameterError, shown
from tilearray.geometry.shapes import as_int
from tilearray.ops.seeds import Seed, key_of, seed_sequence

MOST_CHILDREN = 1 << 24
"""The most streams of one call of `spawn`: a giant number would never end."""
NAME = "Philox4x32"
WORDS = 2**66
"""The words of one stream, four for each of 2**64 blocks; another one begins after a jump."""


class Philox4x32:
    """A stream of random words, and the place of the next one.

    Parameters
    ----------
    seed : int, sequence of int, numpy.random.SeedSequence or None
        NumPy's SeedSequence makes the key from it. None takes it from the operating system.

    Attributes
    ----------
    seed_seq : numpy.random.SeedSequence
        From which `spawn` makes further streams.

    Examples
    --------
    >>> from tilearray.random import Philox4x32
    >>> Philox4x32(7).state
    {'bit_generator': 'Philox4x32', 'key': 16920295385781661272, 'jumps': 0, 'position': 0}
    """

    __slots__ = ("_lock", "jumps", "key", "position", "seed_seq")

    def __init__(self, seed: Seed = None) -> None:
        self.seed_seq = seed_sequence(seed, NAME)
        self.key = key_of(self.seed_seq)
        self.position = self.jumps = 0
        self._lock = Lock()

    @property
    def _seed_seq(self) -> np.random.SeedSequence:
        """`seed_seq` by the name that NumPy's bit generators have for dask."""
        return self.seed_seq

    @property
    def state(self) -> dict[str, Any]:
        """The state as a dict of ints: the key, the number of jumps, and the position of the next word of 32 bits.

        Assign a state to continue at its place.
        """
        with self._lock:
            return {"bit_generator": NAME, "key": self.key, "jumps": self.jumps, "position": self.position}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        try:
            name, *numbers = (value[field] for field in ("bit_generator", "key", "jumps", "position"))
        except (TypeError, KeyError, IndexError):
            raise OperandError(
                f"{NAME}.state: expected a dict with 'bit_generator', 'key', 'jumps' and 'position', "
                f"got {shown(value)}; "
                "write a state that was read from bit_generator.state"
            ) from None
        if name != NAME:
            raise ParameterError(
                f"{NAME}.state: expected the state of a {NAME}, got that of {shown(name)}; "
                "write a state that was read from bit_generator.state"
            )
        limits = {"key": 2**64, "jumps": 2**32, "position": WORDS}
        found: list[int] = []
        for number, (field, limit) in zip(numbers, limits.items(), strict=True):
            found.append(as_int(number, f"{NAME}.state", field))
            if not 0 <= found[-1] < limit:
                raise ParameterError(
                    f"{NAME}.state: expected 0 <= {field} < {limit}, got {found[-1]}; "
                    "write a state that was read from bit_generator.state"
                )
        with self._lock:
            self.key, self.jumps, self.position = found

    def take(self, count: int, words: int) -> tuple[int, int, int]:
        """Reserve words for `count` elements, and return ``key, jumps, position``: the place of the first element.

        An element takes 1, 2, 4 or 8 words, and begins at a multiple of that. The position wraps after 2**66 words.
        """
        with self._lock:
            start = -(-self.position // words) * words
            self.position = (start + count * words) % WORDS
            return self.key, self.jumps, start % WORDS

    def jumped(self, jumps: SupportsIndex = 1) -> Philox4x32:
        """Return a new stream with the same key, at position 0 of a part of 2**66 words that is `jumps` further.

        There are 2**32 such parts.

        Examples
        --------
        >>> from tilearray.random import Philox4x32
        >>> Philox4x32(7).jumped(2).state["jumps"]
        2
        """
        by = as_int(jumps, f"{NAME}.jumped", "jumps")
        new = Philox4x32(self.seed_seq)
        new.key, new.jumps = self.key, (self.jumps + by) % 2**32
        return new

    def advance(self, delta: SupportsIndex) -> Philox4x32:
        """Move the position by a number of words of 32 bits, also backwards, and return this stream.

        Examples
        --------
        >>> from tilearray.random import Philox4x32
        >>> Philox4x32(7).advance(10).state["position"]
        10
        """
        by = as_int(delta, f"{NAME}.advance", "delta")
        with self._lock:
            self.position = (self.position + by) % WORDS
        return self

    def spawn(self, n_children: SupportsIndex) -> list[Philox4x32]:
        """Return new streams whose keys follow from the seed; each call gives others.

        Examples
        --------
        >>> from tilearray.random import Philox4x32
        >>> len({child.key for child in Philox4x32(7).spawn(3)})
        3
        """
        count = as_int(n_children, f"{NAME}.spawn", "n_children")
        if count < 0:
            raise ParameterError(f"{NAME}.spawn: expected n_children >= 0, got {count}; write spawn(1)")
        if count > MOST_CHILDREN:
            raise ParameterError(
                f"{NAME}.spawn: expected n_children <= {MOST_CHILDREN}, got {count}; write several calls"
            )
        return [Philox4x32(child) for child in self.seed_seq.spawn(count)]

    def __repr__(self) -> str:
        return f"{NAME}(key={self.key:#018x}, jumps={self.jumps}, position={self.position})"

    def __getstate__(self) -> tuple[dict[str, Any], np.random.SeedSequence]:
        return self.state, self.seed_seq

    def __setstate__(self, state: tuple[dict[str, Any], np.random.SeedSequence]) -> None:
        self._lock = Lock()
        kept, self.seed_seq = state
        self.state = kept
