"""Kernels of one expression over flat arrays, without the planner.

An expression reads its operands as ``x``, ``y`` and ``z``, in registers.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.oracles.formats import ARITHMETIC
from tilearray.errors import OperandError
from tilearray.ops import PUBLIC
from tilearray.ops.variants import variant
from tilearray_cuda.kernels.casts import INTEGRAL, MODES, UnsupportedCastError, cast_text
from tilearray_cuda.kernels.interpreter import type_of
from tilearray_cuda.kernels.schedules.schedule import Tile
from tilearray_cuda.kernels.source import Argument, Source, helpers_of
from tilearray_cuda.kernels.storage import STORAGE

NAMES = "xyz"


def raw_source(expression: str, inputs: Sequence[str], out: str, block: int = 1024) -> Source:
    """The kernel that computes an expression of dtype `out`; elements past the end are neither read nor written."""
    loads = [f"    {name} = {_loaded(name, dtype)}" for name, dtype in zip(NAMES, inputs, strict=False)]
    names = [f"{name}_place" for name in NAMES[: len(inputs)]]
    kernel = [
        "@triton.jit",
        f"def raw({', '.join(['out_place', *names, 'n0', 'BLOCK: tl.constexpr'])}):",
        "    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "    inside = index < n0",
        *loads,
        f"    tl.store(out_place + index, {expression}, mask=inside)",
        "",
    ]
    text = "\n".join(kernel)
    pointers = [
        (name, STORAGE[dtype].pointer) for name, dtype in zip(["out_place", *names], [out, *inputs], strict=True)
    ]
    arguments = (*(Argument(name, pointer, 16) for name, pointer in pointers), Argument("n0", "i32", 1))
    return Source(
        "raw", "\n".join([*helpers_of(text), text]), arguments, (("BLOCK", block),), Tile(1, block, 4), expression
    )


def cast_source(source: str, target: str, mode: str = "rn", saturate: bool = False, block: int = 1024) -> Source:
    """The kernel of a cast."""
    return raw_source(cast_text(("x",), source, target, mode, saturate)[0], [source], target, block)


def low_precision_sources() -> list[Source]:
    """Kernels of casts to integers in a mode, of float8 on sm_80, of stochastic rounding, scaled quotients, pairs."""
    casts = [("float8_e5m2", "rn"), ("float4_e2m1fn", "rz"), *(("int8", mode) for mode in INTEGRAL)]
    found = [cast_source("float32", target, mode) for target, mode in casts]
    for bits in (32, 64):
        dtype = f"float{bits}"
        found.append(raw_source(f"round_at_random_{bits}(x, y, 4, -9)", [dtype, "uint32"], dtype))
    for text in ("bfloat16_pairs_to_e2m1fn(x, y)", "bfloat16_quotients_to_e2m1fn(x, y, 80)"):
        found.append(raw_source(text, ["uint32", "float32"], "uint8"))
    found.append(raw_source("larger_half(larger_halves(x, y))", ["uint32", "uint32"], "float32"))
    found.append(raw_source("e4m3fn_scale(x, 80)", ["float8_e4m3fn"], "float32"))
    return [*found, raw_source("quotient_by(x, y, z, True)", ["float32"] * 3, "float32")]


def rounding_sources() -> list[Source]:
    """Kernels of all variants of float32, and of casts in every mode between dtypes that have it."""
    found = [raw_source(expression, ["float32"] * len(NAMES), "float32") for expression in sorted(_variants())]
    for source, target, mode in itertools.product(ARITHMETIC, ARITHMETIC, MODES):
        if "complex" not in source + target and source != target:
            with contextlib.suppress(UnsupportedCastError):
                found.append(cast_source(source, target, mode, saturate=True))
    return found


def _variants() -> set[str]:
    """What rows compute of float32 with options, over ``x``, ``y`` and ``z``."""
    found: set[str] = set()
    flags = (False, True)
    for op in PUBLIC.values():
        for mode, flushes, ignores in itertools.product(op.options.rounding or [None], flags, flags):
            with contextlib.suppress(OperandError):  # it has no such option
                triton = variant(op, mode, flushes, not ignores).triton
                if op.options.names:
                    expression = next(triton[kind] for kind in ("float32", "float", "any") if kind in triton)
                    found.add(expression.format(**{name: name for name in NAMES}))
    return found


def _loaded(name: str, dtype: str) -> str:
    loaded = f"tl.load({name}_place + index, mask=inside)"
    return f"({loaded} != 0)" if dtype == "bool" else loaded


def interpret(source: Source, operands: Sequence[np.ndarray], out: np.dtype[Any]) -> np.ndarray:
    """Run a kernel; in a process where Triton interprets (`interpreting.Interpreter`)."""
    import triton.language as tl
    from triton.runtime import interpreter

    from support.interpreter.mended import mend
    from tilearray_cuda.kernels.compile import jit_function

    mend(interpreter, tl)
    size, block = operands[0].size, dict(source.constants)["BLOCK"]
    result = np.zeros(size, out)
    values = [*(array.ctypes.data for array in (result, *operands)), size]
    types = [type_of(argument.type) for argument in source.arguments]
    arrays = [np.array([value], interpreter._get_np_dtype(given)) for value, given in zip(values, types, strict=True)]
    tensors = [
        tl.tensor(interpreter.TensorHandle(array, given), given) for array, given in zip(arrays, types, strict=True)
    ]
    with np.errstate(all="ignore"):
        jit_function(source)[(-(-size // block),)](*tensors, **dict(source.constants))
    return result
