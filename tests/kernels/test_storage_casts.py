"""Casts of the floats that are for storage only, in Triton's interpreter: every code, and values hard to round."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.interpreter.run import Interpreter
from support.kernels import needs_triton
from support.oracles.formats import ARITHMETIC, STORAGE, dtype_of
from support.oracles.storage_casts import SOURCES, assert_same, codes, hard, on_host, others, wide
from support.raw_kernels import cast_source, interpret

from tilearray_host.rounded_casts import rounded_caster

pytestmark = [needs_triton, pytest.mark.slow]

MODES = ("rn", "rz", "rm", "rp", "ra")


@pytest.mark.parametrize("source", STORAGE)
def test_every_code_becomes_every_dtype(source: str, interpreter: Interpreter) -> None:
    x = codes(source)
    for target in (*ARITHMETIC, *STORAGE):
        if target != source:
            assert_same(interpreter.call("astype", x, out=target), on_host(x, target), x)


@pytest.mark.parametrize("target", STORAGE)
def test_values_become_codes(target: str, interpreter: Interpreter) -> None:
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    for x in (halves, hard(target), wide(target), *map(others, SOURCES)):
        assert_same(interpreter.call("astype", x, out=target), on_host(x, target), x)


@pytest.mark.parametrize("target", STORAGE)
def test_values_become_codes_in_every_mode(target: str, interpreter: Interpreter) -> None:
    x = hard(target)[:9000]
    for mode, saturate in itertools.product(MODES, (False, True)):
        with np.errstate(all="ignore"):
            expected = rounded_caster(x.dtype, dtype_of(target), mode, saturate)(x, dtype_of(target), None)
        source = cast_source("float32", target, mode, saturate)._replace(constants=(("BLOCK", 16384),))
        got = interpreter.pool.submit(interpret, source, [x], dtype_of(target)).result()
        assert_same(got, expected, x)
