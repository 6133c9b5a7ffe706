"""Distributions that only NumPy has: an error says what to write."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilearray as ta
from tilearray.random.missing_distributions import BY_NUMPY, INSTEAD


@pytest.mark.parametrize("name", INSTEAD)
def test_a_missing_distribution_says_what_to_write(name):
    rng = ta.random.default_rng(0)
    with pytest.raises(AttributeError, match=f"^Generator has no attribute '{name}'; {re.escape(INSTEAD[name])}$"):
        getattr(rng, name)
    assert not hasattr(rng, name)
    assert name not in dir(rng)
    with pytest.raises(AttributeError, match=f"module 'tilearray.random' has no attribute '{name}'; write "):
        getattr(ta.random, name)


def test_every_method_of_numpys_generator_is_here_or_says_what_to_write():
    assert all(hasattr(np.random.Generator, name) for name in BY_NUMPY)
    theirs = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert not theirs - set(dir(ta.random.Generator)) - INSTEAD.keys()
