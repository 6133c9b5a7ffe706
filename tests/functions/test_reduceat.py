"""`op.reduceat`: NumPy's ufuncs are the oracle of values, and folds in the documented accumulators that of bits."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import segments

import tilearray as ta
from tilearray.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    FusionError,
    GradientError,
    IndexingError,
    OperandError,
    ShapeError,
    WriteError,
)
from tilearray.ops import PUBLIC

INDICES = [[0], [0, 3], [0, 1, 2, 3, 4], [4, 0, 2], [1, 1, 1], [0, 2, 4], [1, 3], [2, 0, 4, 3, 3], []]


@pytest.mark.parametrize(("seed", "count", "elements"), [(1, 600, 20), (2, 60, 300), (3, 10, 5000)])
def test_drawn_calls_have_the_bits_of_folds(seed, count, elements):
    segments.check_reduceat("cpu", seed, count, elements)


def test_overlapping_segments_and_refusals():
    segments.check_overlaps("cpu")
    segments.check_refusals("cpu")


@pytest.mark.parametrize(
    "name",
    [
        *("add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and"),
        *("logical_or", "logical_xor", "subtract", "fmax", "fmin", "gcd", "hypot", "logaddexp", "divide", "remainder"),
        *("floor_divide", "bitwise_left_shift", "copysign", "nextafter"),
    ],
)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_results_are_numpys(name, axis):
    """Of integers, whose sums are exact in float64 as well."""
    theirs = np.random.default_rng(4).integers(1, 5, (5, 5))
    ufunc = getattr(np, name)
    with ta.semantics("numpy"):
        if name in ("hypot", "logaddexp", "divide", "copysign", "nextafter"):
            theirs = theirs.astype(np.float64)
        calls = [ufunc.reduceat, *([getattr(ta, name).reduceat] if name in PUBLIC else [])]
        for indices in INDICES:
            want = ufunc.reduceat(theirs, np.array(indices, np.int64), axis)
            for x in (theirs, theirs[::-1, ::-1].copy()[::-1, ::-1], theirs.T.copy().T):
                for call in calls:
                    found = call(ta.asarray(x), indices, axis)
                    assert isinstance(found, ta.Array)
                    assert (found.dtype, found.shape) == (want.dtype, want.shape)
                    np.testing.assert_allclose(ta.to_numpy(found), want, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "complex64"])
def test_dtypes_are_those_of_reduce(dtype):
    x = ta.asarray([1, 0, 1, 1]).astype(dtype)
    for name in ("add", "multiply", "maximum", "logical_xor", "bitwise_or", "subtract", "divide", "less", "hypot"):
        op = getattr(ta, name)
        for chosen in (None, "float32", "int16"):
            try:
                want = op.reduce(x, 0, chosen).dtype
            except DTypeError:
                with pytest.raises(DTypeError):
                    op.reduceat(x, [0, 2], 0, chosen)
            else:
                assert op.reduceat(x, [0, 2], 0, chosen).dtype == want
                assert op.reduceat(x, [], 0, chosen).dtype == want


def test_sums_are_rounded_once():
    """One after the other in float64: 1 is lost beside 2**25 in float32, and 2**53 takes no further 1 in float64."""
    x = np.array([2**25, 1, -(2**25), 1, 2**25, 2**25], np.float32)
    assert ta.add.reduceat(x, [0, 4]).tolist() == [2, 2**26]
    y = np.array([2.0**53, 1, 1, -(2.0**53), 0.5, 0.5], np.float64)
    assert ta.add.reduceat(y, [0, 1, 4]).tolist() == [2**53, 2 - 2.0**53, 1]
    assert ta.add.reduceat(y, [0]).tolist() == [1]
    assert ta.multiply.reduceat(np.array([1e30, 1e30, 1e-30, 1e-30], np.float32), [0]).tolist() == [np.float32(1.0)]
    assert np.signbit(ta.to_numpy(ta.add.reduceat(np.array([-0.0, -0.0, -0.0, 0.0]), [0, 2]))).tolist() == [True, False]


def test_targets():
    x = ta.asarray([[1, 2, 3], [4, 5, 6]])
    out, theirs = ta.zeros((2, 2)), np.zeros((2, 2), np.float32)
    assert ta.add.reduceat(x, [0, 2], 1, None, out) is out
    assert out.tolist() == [[3, 3], [9, 6]]
    assert ta.maximum.reduceat(x, indices=(2, 0), axis=1, out=out) is out
    assert out.tolist() == [[3, 3], [6, 6]]
    assert np.add.reduceat(x, indices=[0, 2], axis=1, out=theirs) is theirs
    assert theirs.tolist() == [[3, 3], [9, 6]]
    y = ta.asarray([1.0, 2.0, 3.0, 4.0])
    assert ta.subtract.reduceat(y, [0, 2, 3, 1], out=y).tolist() == [-1, 3, 4, -5]  # read before it is written
    assert y.tolist() == [-1, 3, 4, -5]


def test_operands_of_numpy():
    host = np.array([1.0, 2.0, 4.0])
    assert np.add.reduceat(host, ta.asarray([0, 2])).tolist() == [3, 4]
    assert ta.add.reduceat([1, 2, 4], np.array([0, 2], np.uint8)).tolist() == [3, 4]
    assert np.add.reduceat(ta.asarray(host), [True]).tolist() == [6]  # which NumPy takes
    assert np.maximum.reduceat(ta.asarray([1j, 2.0]), [0]).tolist() == [2]
    with pytest.raises(IndexError, match=r"add.reduceat: expected indices in 0 <= i < 3, the size of axis 0, got 3"):
        np.add.reduceat(ta.asarray(host), [3])


def test_gradients_and_fused_functions():
    x, weights = ta.asarray([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 10.0, 100.0])
    gradient = ta.grad(lambda x: ta.sum(ta.add.reduceat(x, [0, 2, 1]) * weights))(x)
    assert gradient.tolist() == [1, 101, 110, 100]
    assert ta.grad(lambda x: ta.sum(x * ta.bitwise_or.reduceat(x > 2, [0, 1, 2, 3])))(x).tolist() == [0, 0, 1, 1]
    assert ta.grad(lambda x: ta.sum(x * ta.add.reduceat(x > 2, [0, 1, 2, 3])))(x).tolist() == [0, 0, 1, 1]
    with pytest.raises(GradientError, match=r"maximum.reduceat has no derivative; write ta.maximum.reduce\(x\[start"):
        ta.grad(lambda x: ta.sum(ta.maximum.reduceat(x, [0, 2])))(x)
    for name in ("add", "maximum", "hypot"):
        with pytest.raises(FusionError, match=r"fuse: a sum or a count at places is not elementwise"):
            ta.fuse(lambda x, name=name: getattr(ta, name).reduceat(x, [0, 2]))(x)


X = ta.asarray([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ta.sin.reduceat(X, [0]), OperandError, r"sin.reduceat: expected an op of two operands of one dtype"),
        (lambda: ta.ldexp.reduceat(X, [0]), OperandError, r"ldexp.reduceat: expected an op of two operands of one dt"),
        (lambda: ta.less.reduceat(X, [0]), DTypeError, r"less.reduceat: expected an op that returns float32, less ret"),
        (lambda: ta.maximum.reduceat(X * 1j, [0]), DTypeError, r"maximum.reduceat: expected .* got complex64; write x"),
        (lambda: ta.add.reduceat({1}, [0]), OperandError, r"add.reduceat: expected a tilearray Array, got set"),
        (lambda: ta.add.reduceat(X, {1}), OperandError, r"add.reduceat: expected integers .* as indices, got set; wri"),
        (lambda: ta.add.reduceat(X, [0.5]), DTypeError, r"add.reduceat: expected integers as indices, got float32; wr"),
        (lambda: ta.add.reduceat(X, [True]), DTypeError, r"add.reduceat: expected integers as indices, got bool; writ"),
        (lambda: ta.add.reduceat(X, 0), ShapeError, r"add.reduceat: expected indices of one axis, got shape \(\); wri"),
        (lambda: ta.add.reduceat(X, [[0]]), ShapeError, r"add.reduceat: expected indices of one axis, got shape \(1, "),
        (lambda: ta.add.reduceat(X, [0], 2), AxisError, r"add.reduceat: expected -2 <= axis < 2, got axis 2"),
        (lambda: ta.add.reduceat(ta.asarray(1.0), [0]), AxisError, r"add.reduceat: expected no axis .*0-d"),
        (lambda: ta.add.reduceat(X, [2]), IndexingError, r"add.reduceat: expected indices in 0 <= i < 2, .* got 2; wr"),
        (lambda: ta.add.reduceat(X, [0, -1]), IndexingError, r"add.reduceat: expected indices in 0 <= i < 2, .* got -"),
        (lambda: ta.add.reduceat(X[:0], [0]), IndexingError, r"add.reduceat: expected indices in 0 <= i < 0, the size"),
        (lambda: ta.add.reduceat(X, [0], out=1), OperandError, r"add.reduceat: expected a tilearray Array as out, got"),
        (lambda: ta.add.reduceat(X, [0], out=X), ShapeError, r"add.reduceat: expected out of shape \(1, 2\), got \(2,"),
        (
            lambda: ta.add.reduceat(X, [0, 1], out=ta.zeros((2, 2), dtype="int8")),
            DTypeError,
            r"add.reduceat: expected out of a dtype that can store float32, got int8; write out=ta.empty",
        ),
        (
            lambda: ta.add.reduceat(X, [0, 1], out=ta.broadcast_to(ta.zeros(2), (2, 2))),
            WriteError,
            r"add.reduceat: the target has several elements",
        ),
    ],
)
def test_bad_calls_are_named(call, error, message):
    with pytest.raises(error, match="^" + message):
        call()


def test_devices_are_named(elsewhere):
    there = ta.asarray([0, 1], device=elsewhere)
    with pytest.raises(DeviceError, match=r"^add.reduceat: .*cpu.*cuda:7654321"):
        ta.add.reduceat(X, there)
    with pytest.raises(OperandError, match=r"^add.reduceat: .* which is on the host; write ta.asarray"):
        ta.add.reduceat([1.0, 2.0], there)
    with pytest.raises(DeviceError, match=r"^add.reduceat: expected an array on the host, got one on cuda:7654321"):
        ta.add.reduceat(ta.asarray([1.0, 2.0], device=elsewhere), [0])
