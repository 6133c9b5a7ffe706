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
LOCAL = {"special": 8, "crossed": 3}
"""Accesses of local memory that do not matter: of logarithms and powers of CUDA, whatever the registers, which
`ta.special` has; three in one reduction of float64 for sm_80, and two in a softmax of float16 columns for sm_120."""
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
            assert read_machine_code(code.cubin).spills <= LOCAL.get(family, 0), (arch, source.label, source.text)


def test_long_expressions_of_wide_elements_stay_in_registers():
    kernels_of = pytest.importorskip("support.family_kernels").kernels_of
    (step,) = [each for each in kernels_of("special", 90) if each[0].name == "add_subtract_add_subtract_flat"]
    assert step[0].tile.columns == 256
    assert read_machine_code(compile_source(step[0], 90, step[1]).cubin).spills == 0
