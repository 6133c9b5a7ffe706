"""Kernels of every family, compiled for every generation of GPUs: the compiler takes them, and no register spills.

A part of them is compiled in each run; ``TILEARRAY_COMPILE_ALL=1`` compiles all, in some minutes.
"""

from __future__ import annotations

import os
import random

import pytest
from support.families import FAMILIES
from support.kernels import needs_triton

from tilearray_cuda.kernels.compile import compile_source
from tilearray_cuda.kernels.machine_code import read_machine_code

pytestmark = needs_triton
ARCHITECTURES = (80, 86, 89, 90, 100, 120)
ALL = bool(os.environ.get("TILEARRAY_COMPILE_ALL"))


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_of_a_family_compile_without_spills(family):
    """One kernel, for the architectures by turns; those of all families and runs are the same."""
    kernels_of = pytest.importorskip("support.family_kernels").kernels_of  # cuda-python is optional
    rng = random.Random(family)
    for arch in ARCHITECTURES if ALL else [ARCHITECTURES[list(FAMILIES).index(family) % len(ARCHITECTURES)]]:
        found = kernels_of(family, arch)
        assert len(found) > 4
        for source, contract in found if ALL else [rng.choice(found)]:
            code = compile_source(source, arch, contract)
            assert f".target sm_{arch}" in code.ptx
            assert read_machine_code(code.cubin).spills == 0, (arch, source.label, source.text)
