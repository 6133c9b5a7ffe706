"""Rounding modes, flushing and NaN against the installed cuTile: which op takes what, for which dtype.

cuTile's own operations are asked, up to where they would emit something, under semantics ``cutile``. Everything that
differs is listed here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from support.conformance import ERROR
from support.oracles.formats import FORMATS, dtype_of

import tilearray as ta

pytest.importorskip("cuda.tile", reason="cuda-tile is made for Linux only: the extra `semantics` has it")

import cuda.tile as ct
from cuda.tile import RoundingMode
from cuda.tile import _datatype as datatype
from cuda.tile._bytecode.version import BytecodeVersion
from cuda.tile._ir import arithmetic_ops as arithmetic
from cuda.tile._ir import ops_utils
from support.cutile import DTYPES, FP8, INTEGERS, answer, emit_nothing, tile_of

from tilearray.engine.operation import expression_of
from tilearray.ops import PUBLIC
from tilearray.ops.options import MODES, cast_choice
from tilearray.ops.variants import variant
from tilearray.promotion.systems import CUTILE

CHOICES = [None, *RoundingMode]


@pytest.fixture(autouse=True)
def _nothing_is_emitted(monkeypatch: pytest.MonkeyPatch) -> None:
    emit_nothing(monkeypatch)
    newest = SimpleNamespace(get_current=lambda: SimpleNamespace(ir_ctx=_Newest))
    monkeypatch.setattr(ops_utils, "Builder", newest)


class _Newest:
    tileiras_version = max(BytecodeVersion)


def binary(function: str) -> Callable[..., Any]:
    return lambda x, *options: arithmetic.binary_arithmetic_tensorlike(function, x, x, *options)


def unary(function: str) -> Callable[..., Any]:
    return lambda x, *options: arithmetic.unary(function, arithmetic.UNARY_FLOAT, x, *options)


CALLS: dict[str, Callable[..., Any]] = {
    "add": binary("add"),
    "subtract": binary("sub"),
    "multiply": binary("mul"),
    "divide": binary("truediv"),
    "fma": binary("mul"),  # has no function: it is what cuTile makes of a product and a sum of one mode
    "floor_divide": binary("floordiv"),
    "pow": binary("pow"),
    "minimum": binary("min"),
    "maximum": binary("max"),
    **{name: unary(name) for name in ("sqrt", "rsqrt", "exp", "exp2", "tanh", "sin", "log", "floor")},
}


def theirs(name: str, dtype: str, mode: Any, flush: bool) -> bool:
    return answer(lambda: CALLS[name](tile_of(dtype), mode, flush).get_type().tensor_dtype()) != ERROR


def ours(name: str, dtype: str, mode: Any, flush: bool) -> bool:
    op = PUBLIC[name]
    try:
        expression_of(variant(op, mode, flush), CUTILE, (dtype_of(dtype),) * op.arity, None)
    except ta.TileArrayError:
        return False
    return True


def test_the_modes_are_theirs() -> None:
    """But for "rs", which needs a seed."""
    assert {mode.name.lower() for mode in RoundingMode} == set(MODES) - {"rs"}


LISTED = {
    "bools are no operands of sqrt, exp and such, here under this semantics": lambda name, dtype: dtype == "bool",
}


@pytest.mark.parametrize("name", CALLS)
def test_every_op_takes_the_same_modes_and_flushing_for_every_dtype(name: str) -> None:
    asked = 0
    for dtype, mode, flush in product(DTYPES, CHOICES, (False, True)):
        if (mode is None and not flush) or any(listed(name, dtype) for listed in LISTED.values()):
            continue
        assert (dtype, mode, flush, ours(name, dtype, mode, flush)) == (
            *(dtype, mode, flush, theirs(name, dtype, mode, flush)),
        )
        asked += 1
    assert asked == 14 * 17


def test_keyword_arguments_are_those_of_their_functions() -> None:
    """Theirs is called rounding_mode; and NaN does not propagate in cuTile unless asked, as it does here."""
    names = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "minimum": "minimum"}
    names |= {name: name for name in ("maximum", "sqrt", "rsqrt", "exp", "exp2", "tanh", "sin", "log", "floor", "pow")}
    for name, word in names.items():
        keywords = [
            parameter.name.removesuffix("_mode")
            for parameter in inspect.signature(getattr(ct, word)).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        assert keywords == list(PUBLIC[name].options.names)
    assert inspect.signature(ct.minimum).parameters["propagate_nan"].default is False
    assert ta.minimum.__signature__.parameters["propagate_nan"].default is True


def test_nan_of_integers() -> None:
    """cuTile takes the choice for every dtype of minimum, floats or not, and so do we."""
    for dtype in (*INTEGERS, "float16", "float64"):
        found = arithmetic.binary_arithmetic_tensorlike("min", tile_of(dtype), tile_of(dtype), propagate_nan=False)
        assert answer(lambda found=found: found.get_type().tensor_dtype()) == dtype
        assert expression_of(variant(ta.minimum, propagate_nan=False), CUTILE, (dtype_of(dtype),) * 2, None)


# --- casts ----------------------------------------------------------------------------------------------------------

CASTS = [name for name in (*FORMATS, "float8_e8m0fnu") if hasattr(datatype, name)]

# Here every float becomes every other in rn, rz, rm, rp and ra. cuTile has not: (mode, target): sources, "all" of them
ONLY_HERE: dict[tuple[str, str], str | tuple[str, ...]] = {
    ("ra", "float32"): ("float64", "float8_e8m0fnu"),
    **{(mode, "float32"): ("float8_e8m0fnu",) for mode in ("rm", "rp")},
    **{(mode, "float16"): ("float32", "float64", "float8_e8m0fnu") for mode in ("rm", "rp", "ra")},
    **{(mode, "bfloat16"): "all" for mode in ("rm", "rp", "ra")},
    **{(mode, name): "all" for mode in ("rz", "rm", "rp", "ra") for name in (*FP8, "float4_e2m1fn")},
    **{(mode, "float8_e8m0fnu"): "all" for mode in ("rn", "rm", "ra")},
}


def cast_by_them(source: str, target: str, mode: Any) -> bool:
    try:
        ops_utils.get_ftof_rounding_min_version(getattr(datatype, source), getattr(datatype, target), mode)
    except ops_utils.TileTypeError:
        return False
    return True


def cast_by_us(source: str, target: str, mode: Any) -> bool:
    try:
        cast_choice(dtype_of(source), dtype_of(target), mode, False)
    except ta.TileArrayError:
        return False
    return True


@pytest.mark.parametrize("target", CASTS)
def test_casts_of_floats(target: str) -> None:
    assert len(CASTS) == 8
    for source, mode in product(CASTS, RoundingMode):
        if source != target:
            listed = ONLY_HERE.get((mode.name.lower(), target), ())
            more = listed == "all" or source in listed
            assert (source, mode, cast_by_us(source, target, mode)) == (
                *(source, mode, cast_by_them(source, target, mode) or more),
            )
            assert not (more and cast_by_them(source, target, mode)), "listed, and cuTile has it"


def test_a_float_that_becomes_an_integer() -> None:
    """cuTile refuses any mode outside of casts from float to float; here its names are taken."""
    for source, target in product(("float16", "float32", "int32", "bool"), INTEGERS):
        taken = {mode.name for mode in RoundingMode if cast_by_us(source, target, mode)}
        assert taken == ({"RN", "RZ", "RM", "RP", "RA", "RZI"} if "float" in source else set())
