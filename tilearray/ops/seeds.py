"""Seeds: NumPy's `SeedSequence` makes of each one the key of a stream of random words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilearray.errors import OperandError, ParameterError, shown

Seed: TypeAlias = "int | Sequence[int] | np.random.SeedSequence | None"


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
        return np.random.SeedSequence(seed)
    except (TypeError, OverflowError):
        raise OperandError(
            f"{function}: expected seed as an int, a sequence of ints, a SeedSequence or None, got {shown(seed)}; "
            "write an int >= 0"
        ) from None
    except ValueError:
        raise ParameterError(f"{function}: expected seed >= 0, got {shown(seed)}; write an int >= 0") from None


def key_of(sequence: np.random.SeedSequence) -> int:
    """Return the key of 64 bits of a stream.

    Examples
    --------
    >>> key_of(seed_sequence(7, "Philox4x32"))
    16920295385781661272
    """
    return int(sequence.generate_state(1, np.uint64)[0])
