"""Digits of blocks as tests draw them, and the assembly of Triton functions."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import strategies as st

SIZES = (256, 512, 2048, 4096, 8192)


def assembly(text: str) -> tuple[str, int]:
    """The assembly of a Triton function, and the elements of a thread."""
    return "".join(re.findall(r'^        "(.*)"$', text, re.MULTILINE)), int(re.search(r"pack=(\d+)", text)[1])  # type: ignore[index]


@st.composite
def digits(draw: st.DrawFn, most: int) -> np.ndarray:
    """Digits of a block: random, few different ones, sorted, or with long runs."""
    size, seed = draw(st.sampled_from(SIZES)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    found = rng.choice(rng.integers(0, most, draw(st.sampled_from([1, 2, 3, 32, 1000]))), size).astype(np.int32)
    kind = draw(st.sampled_from(["random", "sorted", "runs"]))
    return np.sort(found) if kind == "sorted" else np.repeat(found, 40)[:size] if kind == "runs" else found
