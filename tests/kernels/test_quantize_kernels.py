"""`quantize` on an emulated GPU: the bits of the host; and its kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import needs_triton
from support.oracles import rounding as exact
from support.raw_kernels import interpret, raw_source

import tilearray as ta

pytestmark = needs_triton


def test_a_few_conversions_on_the_emulated_gpu(process):
    process.pool.submit(_compare, 1, 5).result()


@pytest.mark.slow
def test_the_emulated_gpu_gives_the_bits_of_the_host(process):
    process.pool.submit(_compare, 2, 60).result()


def _compare(seed: int, count: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.quantization import check_same_bits

    check_same_bits(emulated_device().name, seed, count)


def test_quotients_by_one_divisor_are_rounded_once(interpreter):
    """Of significands at random, near 1, near 2, and of neighbours, for quotients from 2**-23 on; and special ones."""
    rng = np.random.default_rng(1)
    near_two, some = 2 - rng.integers(1, 4000, 20_000) * 2.0**-23, rng.uniform(1, 2, 20_000)
    x = np.concatenate([some, some, near_two, near_two, some]) * rng.choice([-1, 1], 100_000)
    y = np.concatenate([some[::-1], near_two, some, near_two[::-1], some * (1 + 2.0**-22)])
    x, y = (each.astype(np.float32) for each in (x * 2.0 ** rng.integers(-20, 9, x.size), y))
    powers = rng.integers(-80, 117, x.size).astype(np.int32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -3e38], np.float32)
    x = np.concatenate([np.ldexp(x, powers), special])
    y = np.concatenate([np.ldexp(y, powers), [np.inf] * 7]).astype(np.float32)
    _compare_quotients(interpreter, x, y, bounded=True)
    y[-7:] = 2.0**-60
    _compare_quotients(interpreter, x, y, bounded=False)


def test_quotients_next_to_the_middles_of_narrow_formats_are_on_their_side(interpreter):
    """A middle m has 8 bits or fewer. A quotient x / y is hard to round if it nearly is m * (1 + 2**-24) or so.

    Then x is near y * m, and y * m * 2**-24 nearly a multiple of the last place: so y is near a number of few bits.
    """
    few = np.arange(2**23, 2**24 + 1, 2**15)
    y = ((few[:, None] + np.arange(-3, 4)).ravel() * 2.0**-23).astype(np.float32)[:, None, None]
    middles = (np.arange(128, 256) / 128).astype(np.float32)[:, None]
    x = (y * middles).view(np.int32) + np.arange(-1, 2, dtype=np.int32)
    x, y = np.broadcast_arrays(x.view(np.float32), y)
    assert x.size > 600_000
    _compare_quotients(interpreter, x.ravel(), y.ravel(), bounded=True)


def test_quotients_by_the_largest_values_of_formats_are_rounded_once(interpreter):
    rng = np.random.default_rng(5)
    x = np.arange(0, 0x7F80, dtype=np.uint32) << np.uint32(16)  # all bfloat16 from zero on, and floats at random
    x = np.concatenate([x, rng.integers(0, 0x7F800000, 100_000), [0x7F800000, 0x7FC00000]]).astype(np.uint32)
    for divisor in (448.0, 57344.0, 240.0, 15.5, 6.0, 127.0):
        large = x.view(np.float32)[~(x.view(np.float32) < 2.0**-79 * divisor)]
        _compare_quotients(interpreter, large, np.full_like(large, divisor), bounded=False)


def _compare_quotients(interpreter, x, y, bounded):
    source = raw_source(f"quotient_by(x, y, z, {bounded})", ["float32"] * 3, "float32", block=2**18)
    with np.errstate(all="ignore"):
        operands, want = [x, y, 1 / y], x / y
    got = interpreter.pool.submit(interpret, source, operands, want.dtype).result()
    assert exact.differences(got, want).size == 0


def test_pairs_of_bfloat16_have_the_bits_of_the_host(process):
    process.pool.submit(_compare_pairs).result()


def _compare_pairs() -> None:
    """All bfloat16, beside each other and at random; and those around ties, times powers that a scale takes away."""
    from support.interpreter.emulated_gpu import emulated_device

    device, rng = emulated_device(), np.random.default_rng(3)
    codes = np.arange(2**16, dtype=np.uint16)
    near = (np.arange(128, 256) / 128 * 2.0 ** np.arange(-4, 3)[:, None]).ravel()
    near = np.concatenate([near, -near])[:1767].reshape(57, 31)
    blocks = np.concatenate([np.full((57, 1), 6.0), near], 1)
    given = [ta.asarray(each).view("bfloat16") for each in (codes, rng.permutation(codes))]
    given += [ta.asarray(blocks * 2.0**power).astype("bfloat16") for power in (-125, -120, -7, 0, 9, 60, 110)]
    options = {"block": 32, "scale": "float8_e8m0fnu"}
    for x in given:
        want = ta.pack_float4(ta.quantize(x, "float4_e2m1fn", **options).values)
        for each in (x, x.to_device(device)):
            found = ta.quantize(each, "float4_e2m1fn", **options, packed=True)
            is_nan = np.repeat(ta.to_numpy(found.scales.view("uint8")) == 255, 16, axis=-1)
            values, others = (ta.to_numpy(packed.view("uint8")) for packed in (found.values, want))
            np.testing.assert_array_equal(values[~is_nan], others[~is_nan])
            assert not (values[is_nan] & 0x77).any()  # the sign of its zero is open


@pytest.mark.parametrize("arch", [80, 90])
def test_pairs_of_bfloat16_next_to_a_middle_are_rounded_as_their_quotients(interpreter, arch):
    """Of divisors at random, of few bits, and near such; of bfloat16 next to their products with the middles."""
    rng = np.random.default_rng(4)
    few = np.arange(2**23, 2**24, 2**20)
    y = np.concatenate([(few[:, None] + np.arange(-3, 4)).ravel() * 2.0**-23, rng.uniform(1, 2, 400)])
    y = np.concatenate([y * 2.0 ** rng.integers(-70, 120, y.size), 2.0 ** np.array([-80, -30, 0, 125])])
    y = np.concatenate([y, [np.inf, np.nan]]).astype(np.float32)[:, None, None]
    middles = np.array([[0.25], [0.75], [1.25], [1.75], [2.5], [3.5], [5.0]], np.float32)
    with np.errstate(all="ignore"):
        near = ((y * middles).view(np.int32) >> 16) + np.arange(-2, 3)
        x = np.concatenate([np.clip(near, 0, 0x7F80).reshape(len(y), -1), np.tile([0, 0x7F80, 1], (len(y), 1))], 1)
        x = np.stack([x, x ^ 0x8000]).astype(np.uint32)
        words = x | rng.permutation(x, axis=-1) << np.uint32(16)
        y = np.broadcast_to(y[:, 0], words.shape)
        quotients = [half.view(np.float32) / y for half in (words << np.uint32(16), words & np.uint32(0xFFFF0000))]
    first, second = (_codes(each, middles.ravel()) for each in quotients)
    source = raw_source(f"bfloat16_quotients_to_e2m1fn(x, y, {arch})", ["uint32", "float32"], "uint8", block=2**16)
    got = interpreter.pool.submit(interpret, source, [words.ravel(), y.ravel()], np.dtype("u1")).result()
    got, is_nan = got.reshape(words.shape), np.isnan(quotients)
    np.testing.assert_array_equal((got & 15)[~is_nan[0]], first[~is_nan[0]])
    np.testing.assert_array_equal((got >> 4)[~is_nan[1]], second[~is_nan[1]])
    assert not (got & 7)[is_nan[0]].any()
    assert not (got >> 4 & 7)[is_nan[1]].any()


def _codes(quotients, middles):
    """The codes of float4_e2m1fn: the middles below, and those that a tie leaves for an even code."""
    sizes = abs(quotients)[..., None]
    above = (sizes > middles).sum(-1) + (sizes == middles[1::2]).sum(-1)
    return above + 8 * np.signbit(quotients)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float8_e4m3fn", "axis": -1},
        {"dtype": "float8_e4m3fn", "block": 32, "scale": "float8_e8m0fnu"},
        {"dtype": "float8_e4m3fn", "block": (128, 128)},
        {"dtype": "float8_e4m3fn", "block": (16, 32), "scale": "float8_e8m0fnu"},
        {"dtype": "float4_e2m1fn", "block": 32, "scale": "float8_e8m0fnu", "packed": True},
        {"dtype": "float4_e2m1fn", "block": 16, "scale": "float8_e4m3fn", "global_scale": 1.0, "packed": True},
    ],
)
def test_one_kernel_reads_a_block_once(options):
    x = ta.zeros((256, 512), device="cpu").astype("bfloat16")
    dtype = options.pop("dtype")
    explanation = ta.explain(lambda x: ta.quantize(x, dtype, **options)[:2], x, arch=90)
    assert "1 launch" in str(explanation).splitlines()[0]
    packs = "quotients_of_pairs(x0" in str(explanation) or "scaled_pairs(x0" in str(explanation)
    assert packs == ("packed" in options)


def test_a_transposed_array_takes_no_second_pass():
    x = ta.zeros((256, 512), device="cpu").astype("bfloat16")
    for options in ({"block": (128, 128)}, {"block": 32, "axis": 0, "scale": "float8_e8m0fnu"}, {"axis": 0}):
        explanation = ta.explain(lambda x, options=options: ta.quantize(x.T, "e4m3", **options)[:2], x, arch=90)
        assert "1 launch" in str(explanation).splitlines()[0]


def test_it_is_a_part_of_a_fused_kernel():
    x = ta.zeros((64, 4, 32), device="cpu").astype("bfloat16")
    for options in ({"dtype": "float8_e4m3fn"}, {"dtype": "float4_e2m1fn", "packed": True}):
        dtype, packed = options["dtype"], "packed" in options

        def convert(x, dtype=dtype, packed=packed):
            return ta.quantize(x * x, dtype, axis=-1, scale="float8_e8m0fnu", packed=packed)[:2]

        assert "1 launch" in str(ta.explain(ta.fuse(convert), x, arch=90)).splitlines()[0]
