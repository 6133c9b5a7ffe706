"""``python -m benchmarks.random_words [KIND] [--seed S]``: random bytes without end, for batteries of tests.

KIND is "words", the stream as it is; "streams", the words of 64 spawned generators in turn; "random", the 24 bits of
which float32 numbers are made; or "integers", numbers below 2**32. For example::

    python -m benchmarks.random_words | RNG_test stdin32 -tlmax 64GB
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

import tilearray as ta

SIZE = 1 << 22
"""The words of a piece."""


def words(seed: int) -> Callable[[], bytes]:
    """Return a function that gives the next bytes of the stream."""
    rng = ta.random.default_rng(seed, device="cpu")
    return lambda: rng.bytes(4 * SIZE)


def streams(seed: int) -> Callable[[], bytes]:
    """Return a function that gives the next bytes of 64 spawned generators, a word of each in turn."""
    children = ta.random.default_rng(seed, device="cpu").spawn(64)

    def piece() -> bytes:
        rows = [np.frombuffer(child.bytes(4 * SIZE // 64), np.uint32) for child in children]
        return np.stack(rows, axis=1).tobytes()

    return piece


def random(seed: int) -> Callable[[], bytes]:
    """Return a function that gives the next bits of float32 numbers from 0 to 1."""
    rng = ta.random.default_rng(seed, device="cpu")

    def piece() -> bytes:
        found = (ta.to_numpy(rng.random(SIZE, dtype="float32")) * 2.0**24).astype("<u4")
        return found.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()

    return piece


def integers(seed: int) -> Callable[[], bytes]:
    """Return a function that gives the next integers below 2**32."""
    rng = ta.random.default_rng(seed, device="cpu")
    return lambda: ta.to_numpy(rng.integers(0, 2**32, SIZE, dtype="uint32")).tobytes()


KINDS = {"words": words, "streams": streams, "random": random, "integers": integers}


def main() -> None:
    """Write until nobody reads any more."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.random_words")
    parser.add_argument("kind", nargs="?", choices=KINDS, default="words")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    piece = KINDS[options.kind](options.seed)
    try:
        while True:
            sys.stdout.buffer.write(piece())
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
