"""Functions of ``numpy.random`` by other names: an error says which method to write."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.random.old_names import OLD_NAMES


@pytest.mark.parametrize("name", OLD_NAMES)
def test_an_old_name_says_what_to_write(name):
    rng = ta.random.default_rng(0)
    with pytest.raises(AttributeError, match=f"^Generator has no attribute '{name}'; write rng.{OLD_NAMES[name]}$"):
        getattr(rng, name)
    assert not hasattr(rng, name)
    assert name not in dir(rng)
    with pytest.raises(AttributeError, match=f"module 'tilearray.random' has no attribute '{name}'; write "):
        getattr(ta.random, name)


def test_every_method_of_numpys_generator_is_here():
    assert {name for name in dir(np.random.Generator) if not name.startswith("_")} <= set(dir(ta.random.Generator))
