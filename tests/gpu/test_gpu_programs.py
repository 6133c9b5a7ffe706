"""The functions of example programs on the GPU, without copies to the host, against NumPy."""

from __future__ import annotations

import pytest
from support.oracles import programs


@pytest.mark.parametrize("name", ["check_equalise", "check_kmeans", "check_layers", "check_returns"])
def test_programs_stay_on_the_device(name):
    getattr(programs, name)("cuda:0")
