"""How float8 overflows in other systems, and under their semantics here; each difference is listed."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import needs_triton
from support.oracles import rounding as exact
from support.oracles.formats import dtype_of

import tilearray as ta

torch = pytest.importorskip("torch")
TORCH = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("target", TORCH)
def test_torch_casts_alike(source: str, target: str) -> None:
    bits = np.arange(65536, dtype=np.uint32)
    codes = bits << 16 if source == "float32" else bits.astype(np.uint16)
    x = codes.view(dtype_of(source))
    with ta.semantics("torch"):
        got = ta.asarray(x).astype(target)
    given = torch.from_numpy(codes.view(f"i{codes.itemsize}")).view(getattr(torch, source))
    want = given.to(getattr(torch, target)).view(torch.uint8).numpy().view(dtype_of(target))
    assert exact.differences(ta.to_numpy(got), want).size == 0


def test_scales_differ_from_torch() -> None:
    """torch takes the magnitude of a negative number, and the smallest scale for 0; both are NaN here."""
    x = np.array([-4.0, 0.0, -0.0, 1.5, 3.0, 2.0**127 * 1.9, np.inf], np.float32)
    want = torch.from_numpy(x).to(torch.float8_e8m0fnu).float().numpy()
    with ta.semantics("torch"):
        got = ta.to_numpy(ta.asarray(x).astype("float8_e8m0fnu").astype("float32"))
    assert np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want)))).tolist() == [0, 1, 2]
    assert want[:3].tolist() == [4.0, 2.0**-127, 2.0**-127]


@needs_triton
@pytest.mark.parametrize("source", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(("target", "name"), [("fp8e4nv", "e4m3"), ("fp8e5", "e5m2")])
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_triton_saturates(source: str, target: str, name: str) -> None:
    """Its casts are the instruction that gives the largest value for larger ones and for infinities."""
    import triton
    from support.float8_kernel import cast_kernel
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    made = ASTSource(cast_kernel, {"x": f"*{source}", "y": f"*{target}"}, {})
    text = triton.compile(made, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    assert f"cvt.rn.satfinite.{name}x2" in text


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_overflow_under_each_semantics(semantics: str) -> None:
    saturated = {"triton": TORCH[:2], "torch": TORCH[:1]}.get(semantics, ())
    x = ta.asarray([1e6, -np.inf, np.nan, 1.0], dtype="float32")
    with ta.semantics(semantics):
        for target in TORCH:
            plain = x.astype(target, saturate=False).tolist()
            expected = x.astype(target, saturate=True).tolist() if target in saturated else plain
            assert repr(x.astype(target).tolist()) == repr(expected)
            filled = ta.zeros(4, dtype="float32").astype(target)
            filled[...] = x
            assert repr(filled.tolist()) == repr(expected)
    assert repr(x.astype("float8_e4m3fn").tolist()) == "[nan, nan, nan, 1.0]"
