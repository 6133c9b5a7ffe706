"""Options that an op, a dtype, a cast or the host does not have: errors that say what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta

INTEGER, FLOAT, DOUBLE = ta.asarray([1, 2]), ta.asarray([1.0, 2.0]), ta.asarray([1.0], dtype="float64")
ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "no such mode": (
        lambda: ta.add(FLOAT, 1, rounding="up"),
        ta.errors.OperandError,
        "add: expected a rounding mode, one of 'rn', 'rz', 'rm', 'rp', got 'up'; leave it out for the default rounding",
    ),
    "not of this op": (
        lambda: ta.sqrt(FLOAT, rounding="full"),
        ta.errors.OperandError,
        "sqrt: expected a rounding mode, one of 'rn', 'rz', 'rm', 'rp', 'approx', got 'full'",
    ),
    "not a name": (
        lambda: ta.add(FLOAT, 1, rounding=3),
        ta.errors.OperandError,
        "add: expected a rounding mode, .* got 3;",
    ),
    "no options": (
        lambda: ta.sin(FLOAT, rounding="rz"),
        ta.errors.OperandError,
        r"sin\(\) has no option rounding \(options: out\); leave it out",
    ),
    "another option": (
        lambda: ta.add(FLOAT, 1, propagate_nan=False),
        ta.errors.OperandError,
        r"add\(\) has no option propagate_nan \(options: out, rounding, flush_to_zero\); leave it out",
    ),
    "flush": (
        lambda: ta.exp(FLOAT, flush_to_zero=True),
        ta.errors.OperandError,
        r"exp\(\) has no option flush_to_zero \(options: out, rounding\); leave it out",
    ),
    "integers": (
        lambda: ta.add(INTEGER, 1, rounding="rz"),
        ta.errors.DTypeError,
        r"add: rounding='rz' applies to float results, got int64; leave it out, or write x.astype\(...\)",
    ),
    "integers, to nearest": (
        lambda: ta.multiply(INTEGER, 2, rounding="rn"),
        ta.errors.DTypeError,
        "multiply: rounding='rn' applies to float results, got int64",
    ),
    "complex": (
        lambda: ta.sqrt(FLOAT + 1j, rounding="rp"),
        ta.errors.DTypeError,
        "sqrt: rounding='rp' applies to float results, got complex64; leave it out, or write x.real, x.imag",
    ),
    "flushed float64": (
        lambda: ta.add(DOUBLE, 1, flush_to_zero=True),
        ta.errors.DTypeError,
        "add: flush_to_zero=True applies only to float32, got float64; leave it out, or write x.astype",
    ),
    "flushed float16": (
        lambda: ta.minimum(FLOAT.astype("float16"), 1, flush_to_zero=True),
        ta.errors.DTypeError,
        "minimum: flush_to_zero=True applies only to float32, got float16",
    ),
    "approximate float64": (
        lambda: ta.divide(DOUBLE, 3, rounding="approx"),
        ta.errors.DTypeError,
        "divide: rounding='approx' applies only to float32, got float64",
    ),
    "approximate on the host": (
        lambda: ta.divide(FLOAT, 3, rounding="approx"),
        ta.errors.DeviceError,
        r"divide: rounding='approx' needs a GPU instruction \(2 ulp .*\), which cpu does not have; "
        r"write rounding='rn' for a result that is at least as accurate, or x.to_device\('cuda'\)",
    ),
    "full on the host": (
        lambda: ta.exp(FLOAT, rounding="full"),
        ta.errors.DeviceError,
        r"exp: rounding='full' needs a GPU instruction \(.*\), .*; write no rounding= for",
    ),
    "a cast of integers": (
        lambda: INTEGER.astype("float32", rounding="rz"),
        ta.errors.DTypeError,
        "astype: rounding='rz' applies only to casts from float to float or integer, got int64 to float32; leave it",
    ),
    "random without a seed": (
        lambda: FLOAT.astype("int32", rounding="rs"),
        ta.errors.OperandError,
        "astype: rounding='rs' needs a seed, got None; write seed=0 or another int$",
    ),
    "a seed without need": (
        lambda: FLOAT.astype("int32", rounding="rp", seed=1),
        ta.errors.OperandError,
        "astype: seed= applies only to rounding='rs'; leave it out, or write rounding='rs'$",
    ),
    "a negative seed": (
        lambda: FLOAT.astype("int32", rounding="rs", seed=-1),
        ta.errors.ParameterError,
        "astype: expected seed >= 0, got -1; write an int >= 0$",
    ),
    "a cast to complex": (
        lambda: FLOAT.astype("complex64", rounding="rz"),
        ta.errors.DTypeError,
        "astype: rounding='rz' applies only to casts from float to float or integer, got float32 to complex64; leave",
    ),
    "rzi": (
        lambda: FLOAT.astype("float16", rounding="rzi"),
        ta.errors.DTypeError,
        "astype: rounding='rzi' applies only to casts from float to integer, got float32 to float16; leave it out",
    ),
    "no mode of casts": (
        lambda: FLOAT.astype("float16", rounding="approx"),
        ta.errors.OperandError,
        "astype: expected a rounding mode, one of 'rn', 'rz', 'rm', 'rp', 'ra', 'rs', 'rzi', got 'approx'",
    ),
    "saturating integers to a float": (
        lambda: INTEGER.astype("float16", saturate=True),
        ta.errors.DTypeError,
        "astype: saturate=True applies only to casts to integer and from float to float, got int64 to float16",
    ),
    "complex to real": (
        lambda: (FLOAT + 1j).astype("int32", saturate=True),
        ta.errors.DTypeError,
        "astype: saturate=True applies .* got complex64 to int32; leave it out$",
    ),
    "flushed complex": (
        lambda: ta.add(FLOAT + 1j, 1, flush_to_zero=True),
        ta.errors.DTypeError,
        "add: flush_to_zero=True applies only to float32, got complex64; leave it out, or write x.real, x.imag",
    ),
    "neither true nor false": (
        lambda: ta.add(FLOAT, 1, flush_to_zero="no"),
        ta.errors.OperandError,
        "add: expected True or False as flush_to_zero, got 'no'; write flush_to_zero=True or flush_to_zero=False",
    ),
    "none": (
        lambda: ta.minimum(FLOAT, 1, propagate_nan=None),
        ta.errors.OperandError,
        "minimum: expected True or False as propagate_nan, got None",
    ),
    "an array": (
        lambda: FLOAT.astype("int8", saturate=FLOAT),
        ta.errors.OperandError,
        "astype: expected True or False as saturate, got Array",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=f"^{message}"):
        call()


def test_a_numpy_bool_is_true_or_false() -> None:
    assert ta.minimum(FLOAT, ta.nan, propagate_nan=np.False_).tolist() == FLOAT.tolist()
    assert ta.add(FLOAT, 1e-40, flush_to_zero=np.False_).tolist() == FLOAT.tolist()
    assert FLOAT.astype("int8", saturate=np.True_).tolist() == [1, 2]


def test_a_mode_may_be_an_enumerations_member() -> None:
    """As cuTile's RoundingMode, whose names these are."""

    class Mode:
        name = "RP"

    assert ta.divide(FLOAT, 3, rounding=Mode()).tolist() == ta.divide(FLOAT, 3, rounding="rp").tolist()
    with pytest.raises(TypeError, match=r"^add: expected 2 operands, got 1; write ta\.add\(x1, x2\)$"):
        ta.add(FLOAT, rounding="rz")
