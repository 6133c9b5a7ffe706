"""The functions of example programs on the GPU, without copies to the host, against NumPy."""

from __future__ import annotations

import pytest
from support.oracles import programs

NAMES = ["check_attention", "check_equalise", "check_kmeans", "check_layers", "check_returns"]


@pytest.mark.parametrize("name", NAMES)
def test_programs_stay_on_the_device(name):
    getattr(programs, name)("cuda:0")


@pytest.mark.parametrize("name", NAMES)
def test_programs_take_memory_of_torch(name):
    pytest.importorskip("torch")
    getattr(programs, name)("cuda:0", programs.from_torch)
