"""Pointwise functions of drawn dtypes, shapes and layouts. torch's own promotion says which dtypes they compute in.

`torch._prims_common.elementwise_dtypes` is the function from which FlagGems takes its promotion methods.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.oracles.formats import dtype_of

import tilearray as ta

torch = pytest.importorskip("torch")
prims = pytest.importorskip("torch._prims_common")

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
METHODS = ["default", "no_opmath", "int_to_float", "always_bool", "complex_to_float", "bool_to_long"]
SPECIAL = [float("nan"), float("inf"), -float("inf"), -0.0]
FUNCTIONS = {
    "sum": lambda where, x, y: x * y + x,
    "differs": lambda where, x, y: x != y,
    "where": lambda where, x, y: where(x == y, x, y),
    "distance": lambda where, x, y: abs(x + y),
    "first": lambda where, x, y: x,
}


@st.composite
def operands(draw):
    """A NumPy array of any layout, from a shape that broadcasts with those of the other operands."""
    full = draw(st.sampled_from([(), (1,), (0,), (5,), (3, 4), (2, 0), (2, 3, 4)]))
    found = []
    for _ in range(2):
        shape = tuple([1 if draw(st.integers(0, 4)) == 0 else n for n in full])
        shape = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
        name = draw(st.sampled_from(DTYPES))
        values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 9, shape)
        x = np.asarray(values if name in ("bool", "uint8") else values - 4).astype(dtype_of(name))
        if "float" in name and x.size:
            x.reshape(-1)[0] = draw(st.sampled_from(SPECIAL))
        layout = draw(st.sampled_from(["dense", "transposed", "back", "gaps", "repeated"]))
        found.append(LAYOUTS[layout](x) if x.ndim else x)
    return found


LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "back": lambda x: x[..., ::-1],
    "gaps": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}


def torchs(arrays, method):
    """The dtypes in which torch computes and stores. "complex32" has no dtype here."""
    kind = getattr(prims.ELEMENTWISE_TYPE_PROMOTION_KIND, method.upper())
    metas = [torch.empty(x.shape, dtype=getattr(torch, x.dtype.name), device="meta") for x in arrays]
    return [str(each).removeprefix("torch.") for each in prims.elementwise_dtypes(*metas, type_promotion_kind=kind)]


def cast(x, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.astype(dtype)


def same(ours, expected):
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    ours, expected = [each.astype("complex128") if each.dtype.kind != "b" else each for each in (ours, expected)]
    np.testing.assert_array_equal(ours, expected)
    if expected.dtype.kind == "c":
        known = ~np.isnan(expected)
        assert (np.signbit(ours.real) == np.signbit(expected.real))[known].all()  # -0.0 stays


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(operands(), st.sampled_from(METHODS), st.sampled_from(list(FUNCTIONS)), st.booleans(), st.booleans())
def test_results_are_numpys_in_the_dtypes_of_torch(arrays, method, name, with_target, is_bound):
    if method == "complex_to_float" and name not in ("differs", "distance"):
        return  # a complex result is an error
    function = FUNCTIONS[name]
    f = ta.pointwise(promotion=[(0, 1, method)])(lambda x, y: function(ta.where, x, y))
    ours = [ta.asarray(x) for x in arrays]
    if "complex32" in torchs(arrays, "no_opmath"):
        with ta.semantics("torch"), pytest.raises(ta.PromotionError, match="a complex dtype of half the width"):
            f(*ours)
        return
    compute, result = map(dtype_of, torchs(arrays, method))
    if name == "distance" and compute.kind == "b":
        return  # abs of bools is an error
    common = np.broadcast_shapes(*[x.shape for x in arrays])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = np.asarray(function(np.where, *[cast(x, compute) for x in arrays]))
        expected = np.broadcast_to(cast(expected, result), common)
    with ta.semantics("torch"):
        targets = {"out0": ta.empty(common, dtype=result)} if with_target else {}
        call = f.instantiate(len(common)) if is_bound else f
        for _ in range(2):
            found = call(*ours, **targets)
            same(ta.to_numpy(found), expected)
    assert not targets or found is targets["out0"]
