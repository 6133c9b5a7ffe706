"""Seeds: NumPy's `SeedSequence` makes of each one the key of a stream of random words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilearray.errors import OperandError, ParameterError, shown

Seed: TypeAlias = "int | Sequence[int] | np.random.SeedSequence | None"

MOST_LEVELS = 64
"""The most levels of nested sequences of a seed."""
_NDARRAY: Any = np.ndarray
_SEQUENCES: Any = (list, tuple, np.ndarray)


def seed_sequence(seed: Any, function: str) -> np.random.SeedSequence:
    """Return NumPy's `SeedSequence` of a seed.

    Raises
    ------
    OperandError
        If the seed is not an int, a sequence of ints, a SeedSequence or None.
    ParameterError
        If it is negative.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    try:
        return np.random.SeedSequence(_read(seed, ()))
    except (TypeError, OverflowError):
        raise OperandError(
            f"{function}: expected seed as an int, a sequence of ints, a SeedSequence or None, got {shown(seed)}; "
            "write an int >= 0"
        ) from None
    except ValueError:
        raise ParameterError(f"{function}: expected seed >= 0, got {shown(seed)}; write an int >= 0") from None


def _read(seed: Any, within: tuple[int, ...]) -> Any:
    """Return a seed with lists as its sequences. NumPy follows a list that contains itself until the stack ends."""
    if isinstance(seed, _NDARRAY) and not seed.dtype.hasobject:
        return seed
    if not isinstance(seed, _SEQUENCES) and (not within or not hasattr(seed, "__len__")):
        return seed
    if id(seed) in within or len(within) == MOST_LEVELS:
        raise TypeError("a sequence that contains itself, or is nested too deeply")
    return [_read(part, (*within, id(seed))) for part in seed]


def key_of(sequence: np.random.SeedSequence) -> int:
    """Return the key of 64 bits of a stream.

    Examples
    --------
    >>> key_of(seed_sequence(7, "Philox4x32"))
    16920295385781661272
    """
    return int(sequence.generate_state(1, np.uint64)[0])
