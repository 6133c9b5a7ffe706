"""`quantize` and `dequantize` on the host, against the definition in Fractions, and against torch's usual formulas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.oracles import rounding as exact
from support.oracles.quantization import CASES, MX, SHAPES, Case, drawn, quantized

import tilearray as ta
from tilearray.errors import DTypeError, OperandError, ShapeError


def same(got: ta.Array, want: np.ndarray) -> bool:
    return exact.differences(ta.to_numpy(got).copy().ravel(), want.ravel()).size == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_by_the_definition(case: Case) -> None:
    rng = np.random.default_rng(5)
    for shape, options, sizes in SHAPES:
        for source in ("float32", "bfloat16"):
            x = drawn(rng, shape, source)
            if case.scale == "float8_e4m3fn":
                x = np.where(np.isfinite(x), x, x.dtype.type(1))
            mode = str(rng.choice(["rn", "rn", "rz", "rp", "ra"]))
            values, scales, total = quantized(x, sizes, case, mode)
            found = ta.quantize(
                ta.asarray(x),
                case.dtype,
                scale=case.scale,
                scale_rounding=case.scale_rounding,
                rounding=mode,
                **options,
            )
            assert same(found.scales, scales), (shape, source)
            assert same(found.values, values), (shape, source, mode)
            assert (found.global_scale is None) == (total is None)
            if found.global_scale is not None:
                assert found.global_scale.item() == float(total)  # type: ignore[arg-type]


def test_layouts() -> None:
    x = np.random.default_rng(1).standard_normal((64, 96)).astype(np.float32)
    want = ta.quantize(ta.asarray(x), "float4_e2m1fn", block=32, scale=MX)
    wide = ta.zeros((192, 64))
    wide[::-2] = ta.asarray(x).T
    for view in (ta.asarray(np.asfortranarray(x)), wide[::-2].T):
        found = ta.quantize(view, "float4_e2m1fn", block=32, scale=MX)
        assert (found.values.tolist(), found.scales.tolist()) == (want.values.tolist(), want.scales.tolist())
        packed = ta.quantize(view, "float4_e2m1fn", block=32, scale=MX, packed=True)
        assert ta.unpack_float4(packed.values).tolist() == want.values.tolist()
    columns = ta.quantize(ta.asarray(x).T, "float4_e2m1fn", block=32, axis=0, scale=MX)
    assert columns.values.T.tolist() == want.values.tolist()


@pytest.mark.parametrize("case", CASES[:9], ids=str)
def test_large_blocks_take_two_functions_of_the_same_results(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ta.asarray(np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32))
    options: dict[str, Any] = {"scale": case.scale, "scale_rounding": case.scale_rounding, "block": 32}
    options["packed"] = case.dtype == "float4_e2m1fn"
    want = ta.quantize(x, case.dtype, **options)
    monkeypatch.setattr("tilearray.low_precision.quantize.HELD", 8)
    found = ta.quantize(x, case.dtype, **options)
    assert (found.values.tolist(), found.scales.tolist()) == (want.values.tolist(), want.scales.tolist())


def test_a_part_of_a_fused_function() -> None:
    x = ta.asarray(np.random.default_rng(3).standard_normal((8, 4, 32))).astype("bfloat16")
    for dtype, more in (("float8_e4m3fn", {}), ("float4_e2m1fn", {"packed": True})):

        def convert(x: ta.Array, dtype: str = dtype, more: Any = more) -> Any:
            return ta.quantize(x * x, dtype, axis=-1, scale=MX, **more)[:2]  # type: ignore[arg-type]

        fused = ta.fuse(convert)
        assert [each.tolist() for each in fused(x)] == [each.tolist() for each in convert(x)]


def test_values_have_the_order_of_the_array() -> None:
    x = ta.asarray(np.random.default_rng(8).standard_normal((64, 96)).astype(np.float32))
    for block, axis in (((32, 32), None), (32, 0), (None, 0), (16, 1)):
        options: Any = {"block": block, "axis": axis}
        want = ta.quantize(x.T.copy(), "float8_e4m3fn", **options)
        for view in (x.T, ta.flip(x.T, axis=0)[::-1]):
            found = ta.quantize(view, "float8_e4m3fn", **options)
            assert found.values.strides == (1, 96)
            assert [each.tolist() for each in found[:2]] == [each.tolist() for each in want[:2]]


def test_packed_values_of_every_source() -> None:
    for source in ("float16", "bfloat16", "float32", "float64"):
        for shape in ((8, 64), (3, 32)):
            x = ta.asarray(np.random.default_rng(2).standard_normal(shape)).astype(source)
            for view in (x, x[:, 1:-1], x[::-1], x[0]):
                options: Any = {"block": 2, "scale": MX}
                plain = ta.quantize(view, "float4_e2m1fn", **options)
                found = ta.quantize(view, "float4_e2m1fn", packed=True, **options)
                assert found.values.dtype == ta.float4_e2m1fn_x2
                assert found.values.tolist() == ta.pack_float4(plain.values).tolist()


@pytest.mark.parametrize(("shape", "block"), [((6, 10), (2, 3)), ((4, 6), 5), ((5, 8), (2, 7)), ((2, 12), 3)])
def test_packed_pairs_may_have_two_scales(shape: Any, block: Any) -> None:
    x = ta.asarray(np.random.default_rng(3).standard_normal(shape).astype(np.float32))
    for scale in ("float32", MX, "float8_e4m3fn"):
        plain = ta.quantize(x, "float4_e2m1fn", block=block, scale=scale)
        found = ta.quantize(x, "float4_e2m1fn", block=block, scale=scale, packed=True)
        assert found.values.tolist() == ta.pack_float4(plain.values).tolist()
        assert found.scales.tolist() == plain.scales.tolist()
        assert ta.dequantize(*found, block=block).tolist() == ta.dequantize(*plain, block=block).tolist()


def test_stochastic_rounding_takes_the_words_of_logical_indices() -> None:
    x = ta.asarray(np.random.default_rng(3).standard_normal((32, 64)).astype(np.float32))
    options: Any = {"block": 32, "scale": MX, "rounding": "rs", "seed": 9}
    found = ta.quantize(x, "float8_e4m3fn", **options)
    scales = ta.to_numpy(found.scales.astype("float32")).repeat(32, axis=1)
    want = ta.asarray(ta.to_numpy(x) / scales).astype("float8_e4m3fn", rounding="rs", seed=9, saturate=True)
    assert found.values.tolist() == want.tolist()
    assert ta.quantize(x.T.copy().T, "float8_e4m3fn", **options).values.tolist() == want.tolist()


def test_scales_in_tiles_of_128_by_4() -> None:
    x = ta.asarray(np.random.default_rng(4).standard_normal((200, 5 * 32)).astype(np.float32))
    plain = ta.quantize(x, "float8_e4m3fn", block=32, scale=MX)
    found = ta.quantize(x, "float8_e4m3fn", block=32, scale=MX, layout="128x4")
    assert found.scales.shape == (256, 8)
    flat, codes = found.scales.view("uint8").ravel().tolist(), plain.scales.view("uint8").tolist()
    filled = set()
    for row in range(200):
        for column in range(5):
            tile = row // 128 * 2 + column // 4
            place = tile * 512 + row % 128 % 32 * 16 + row % 128 // 32 * 4 + column % 4
            assert flat[place] == codes[row][column]
            filled.add(place)
    assert {flat[place] for place in range(2048) if place not in filled} == {0}
    back = ta.dequantize(*found, block=32, layout="128x4")
    assert back.tolist() == ta.dequantize(*plain).tolist()


def test_dequantize_is_the_product() -> None:
    x = ta.asarray(np.random.default_rng(6).standard_normal((6, 70)).astype(np.float32))
    q = ta.quantize(x, "float4_e2m1fn", block=(4, 32), scale="float8_e4m3fn")
    factor = ta.to_numpy(q.scales.astype("float32")) * np.float32(q.global_scale.item())  # type: ignore[union-attr]
    wanted = ta.to_numpy(q.values.astype("float32")) * factor.repeat(4, 0)[:6].repeat(32, 1)[:, :70]
    assert ta.dequantize(*q, block=(4, 32)).tolist() == wanted.tolist()
    half = ta.dequantize(*q, block=(4, 32), dtype="bfloat16")
    assert half.tolist() == ta.asarray(wanted).astype("bfloat16").tolist()
    assert ta.dequantize(*ta.quantize(ta.zeros((0, 4)), "int8", axis=-1)).shape == (0, 4)


def test_ml_dtypes_rounds_alike() -> None:
    x = np.random.default_rng(7).standard_normal((16, 64)).astype(np.float32)
    for name, largest, top in (("float8_e4m3fn", 448, 8), ("float4_e2m1fn", 6, 2), ("float8_e5m2", 57344, 15)):
        blocks = x.reshape(16, 2, 32)
        scales = np.exp2(np.floor(np.log2(np.abs(blocks).max(-1, keepdims=True))) - top).astype(np.float32)
        want = np.clip(blocks / scales, -largest, largest).astype(getattr(ml_dtypes, name)).reshape(16, 64)
        found = ta.quantize(ta.asarray(x), name, block=32, scale=MX)
        assert same(found.values, want)
        assert found.scales.astype("float32").tolist() == scales[..., 0].tolist()


def test_torchs_usual_formulas() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(256, 384, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    wide = x.float()
    for options, view, dims in (
        ({"axis": -1}, wide, (-1,)),
        ({"block": 128}, wide.view(256, 3, 128), (-1,)),
        ({"block": (128, 128)}, wide.view(2, 128, 3, 128), (1, 3)),
        ({}, wide, (0, 1)),
    ):
        scales = view.abs().amax(dims, keepdim=True) / 448.0
        values = (view / scales).clamp(-448, 448).to(torch.float8_e4m3fn).view(256, 384)
        found = ta.quantize(ta.asarray(x), "float8_e4m3fn", **options)
        assert found.values.view("uint8").tolist() == values.view(torch.uint8).tolist()
        assert found.scales.ravel().tolist() == scales.flatten().tolist()


def test_a_given_global_scale() -> None:
    x = ta.asarray(np.random.default_rng(8).standard_normal((4, 32)).astype(np.float32))
    first = ta.quantize(x, "float4_e2m1fn", block=16, scale="float8_e4m3fn")
    for given in (first.global_scale, first.global_scale.item(), first.global_scale.reshape(1)):  # type: ignore[union-attr]
        again = ta.quantize(x, "float4_e2m1fn", block=16, scale="float8_e4m3fn", global_scale=given)
        assert again.values.tolist() == first.values.tolist()
        assert again.global_scale.shape == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_semantics_do_not_change_it(semantics: str) -> None:
    x = ta.asarray(np.random.default_rng(9).standard_normal((4, 32)).astype(np.float32)) * 1e3
    want = ta.quantize(x, "float4_e2m1fn", block=16, scale="float8_e4m3fn")
    plain = ta.quantize(x, "float8_e4m3fn", block=16, scale=MX, saturate=False)
    with ta.semantics(semantics):
        found = ta.quantize(x, "float4_e2m1fn", block=16, scale="float8_e4m3fn")
        other = ta.quantize(x, "float8_e4m3fn", block=16, scale=MX, saturate=False)
    assert found.values.tolist() == want.values.tolist()
    assert found.scales.tolist() == want.scales.tolist()
    assert repr(other.values.tolist()) == repr(plain.values.tolist())


X = ta.asarray(np.ones((4, 30), np.float32))
ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "dtype": (lambda: ta.quantize(X, "float16"), DTypeError, "quantize: expected a signed float of 8 bits or fewer"),
    "scales as values": (lambda: ta.quantize(X, MX), DTypeError, "quantize: expected a signed float of 8 bits"),
    "scale": (
        lambda: ta.quantize(X, "int8", scale="float16"),
        DTypeError,
        "quantize: expected scale as one of 'float32'",
    ),
    "complex": (
        lambda: ta.quantize(X + 1j, "int8"),
        DTypeError,
        "quantize: expected an array of real numbers, got complex64; write x.real",
    ),
    "bool": (lambda: ta.quantize(X > 0, "int8"), DTypeError, r"^quantize: .*got bool; write x.astype\('float32'\)"),
    "global scales": (
        lambda: ta.dequantize(X.astype("int8"), X[:, :1], ta.ones(3)),
        ShapeError,
        r"^dequantize: expected one global scale, got shape \(3,\); write a number",
    ),
    "scale_rounding": (
        lambda: ta.quantize(X, "int8", scale=MX, scale_rounding="rn"),
        OperandError,
        "quantize: scale_rounding: expected a rounding mode, one of 'rz', 'rp', got 'rn'",
    ),
    "block": (
        lambda: ta.quantize(X, "int8", block=0),
        OperandError,
        "quantize: expected a block of 1 or more elements, got 0",
    ),
    "blocks": (
        lambda: ta.quantize(X, "int8", block=(2, 2), axis=1),
        ShapeError,
        r"quantize: expected as many blocks as axes, got block=\(2, 2\) and axis=1; write one size for each axis",
    ),
    "axes": (lambda: ta.quantize(X, "int8", axis=(1, -1)), ShapeError, "quantize: expected each axis once"),
    "axis": (lambda: ta.quantize(X, "int8", axis=2), ta.AxisError, "quantize: "),
    "seed": (lambda: ta.quantize(X, "int8", seed=1), OperandError, "quantize: expected both rounding='rs' and a seed"),
    "packed": (
        lambda: ta.quantize(X, "int8", packed=True),
        DTypeError,
        "quantize: packed=True takes float4_e2m1fn, got int8",
    ),
    "odd": (
        lambda: ta.quantize(X[:, 1:], "float4_e2m1fn", packed=True),
        ShapeError,
        r"quantize: expected an even extent along the last axis, .*, got shape \(4, 29\)",
    ),
    "global": (
        lambda: ta.quantize(X, "int8", global_scale=1.0),
        OperandError,
        "quantize: global_scale= applies only to scale='float8_e4m3fn', got scale='float32'",
    ),
    "globals": (
        lambda: ta.quantize(X, "int8", scale="float8_e4m3fn", global_scale=X),
        ShapeError,
        r"quantize: expected one global scale, got shape \(4, 30\)",
    ),
    "layout": (
        lambda: ta.quantize(X, "int8", layout="4x128"),
        OperandError,
        "quantize: expected layout 'linear' or '128x4'",
    ),
    "tiles of float32": (
        lambda: ta.quantize(X, "int8", block=10, layout="128x4"),
        DTypeError,
        "quantize: layout='128x4' takes scales of 8 bits, got float32",
    ),
    "tiles of a vector": (
        lambda: ta.quantize(X[0], "int8", block=10, scale=MX, layout="128x4"),
        ShapeError,
        r"quantize: layout='128x4' takes the scales of a matrix, got scales of shape \(3,\)",
    ),
    "shapes": (
        lambda: ta.dequantize(X, ta.ones((4, 7))),
        ShapeError,
        r"dequantize: expected scales whose extents divide those of values of shape \(4, 30\), got shape \(4, 7\)",
    ),
    "scales": (
        lambda: ta.dequantize(X, ta.ones((4, 2)), block=10),
        ShapeError,
        r"dequantize: expected scales of shape \(4, 3\) for these blocks, got \(4, 2\)",
    ),
    "result": (
        lambda: ta.dequantize(X, ta.ones((4, 3)), dtype="int8"),
        DTypeError,
        "dequantize: expected a float dtype, got int8",
    ),
    "tiles": (
        lambda: ta.dequantize(X, ta.ones((4, 3)), block=10, layout="128x4"),
        ShapeError,
        r"dequantize: expected \(128, 4\) scales in layout '128x4' for \(4, 3\) blocks, got shape \(4, 3\)",
    ),
    "pack": (lambda: ta.pack_float4(X), DTypeError, "pack_float4: expected float4_e2m1fn, got float32"),
    "pack odd": (
        lambda: ta.pack_float4(X.astype("float4_e2m1fn")[:, 1:]),
        ShapeError,
        r"pack_float4: expected an even extent",
    ),
    "unpack": (
        lambda: ta.unpack_float4(X),
        DTypeError,
        "unpack_float4: expected float4_e2m1fn_x2, got float32; write",
    ),
    "unpack a number": (
        lambda: ta.unpack_float4(ta.asarray(3, dtype="uint8")),
        ShapeError,
        r"unpack_float4: expected one axis or more, got shape \(\)",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=f"^{message}"):
        call()


def test_packing_of_every_pair() -> None:
    codes = np.arange(256, dtype=np.uint8)
    values = ta.unpack_float4(ta.asarray(codes))
    table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert values.tolist()[::2] == [(-1.0 if code & 8 else 1.0) * table[code & 7] for code in codes]
    assert values.tolist()[1::2] == [(-1.0 if code & 128 else 1.0) * table[code >> 4 & 7] for code in codes]
    assert ta.pack_float4(values).view("uint8").tolist() == codes.tolist()
    assert ta.pack_float4(values.reshape(32, 16)[:, ::-1]).shape == (32, 8)
