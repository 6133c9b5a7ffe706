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
    process.pool.submit(_compare, 2, 150).result()


def _compare(seed: int, count: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.quantization import check_same_bits

    check_same_bits(emulated_device().name, seed, count)


def test_quotients_by_one_divisor_are_rounded_once(interpreter):
    """Of significands at random, near 1, near 2, and of neighbours, for quotients from 2**-23 on; and special ones."""
    rng = np.random.default_rng(1)
    near_two, some = 2 - rng.integers(1, 4000, 40_000) * 2.0**-23, rng.uniform(1, 2, 40_000)
    x = np.concatenate([some, some, near_two, near_two, some]) * rng.choice([-1, 1], 200_000)
    y = np.concatenate([some[::-1], near_two, some, near_two[::-1], some * (1 + 2.0**-22)])
    x, y = (each.astype(np.float32) for each in (x * 2.0 ** rng.integers(-20, 9, x.size), y))
    powers = rng.integers(-80, 117, x.size).astype(np.int32)
    x, y = np.ldexp(x, powers), np.ldexp(y, powers)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -3e38], np.float32)
    x, y = np.concatenate([x, np.resize(special, 14)]), np.concatenate([y, [1] * 7, [np.inf] * 7]).astype(np.float32)
    source = raw_source("quotient_by(x, y, z)", ["float32"] * 3, "float32", block=2**18)
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
            values = ta.to_numpy(found.values)
            np.testing.assert_array_equal(values[~is_nan], ta.to_numpy(want)[~is_nan])
            assert not (values[is_nan] & 0x77).any()  # the sign of its zero is open


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float8_e4m3fn", "axis": -1},
        {"dtype": "float8_e4m3fn", "block": 32, "scale": "float8_e8m0fnu"},
        {"dtype": "float8_e4m3fn", "block": (128, 128)},
        {"dtype": "float8_e4m3fn", "block": (16, 32), "scale": "float8_e8m0fnu"},
        {"dtype": "float4_e2m1fn", "block": 32, "scale": "float8_e8m0fnu", "packed": True},
    ],
)
def test_one_kernel_reads_a_block_once(options):
    x = ta.zeros((256, 512), device="cpu").astype("bfloat16")
    dtype = options.pop("dtype")
    explanation = ta.explain(lambda x: ta.quantize(x, dtype, **options)[:2], x, arch=90)
    assert "1 launch" in str(explanation).splitlines()[0]
    assert ("half_of_word_1(x0)" in str(explanation)) == ("packed" in options)


def test_it_is_a_part_of_a_fused_kernel():
    x = ta.zeros((64, 4, 32), device="cpu").astype("bfloat16")
    for options in ({"dtype": "float8_e4m3fn"}, {"dtype": "float4_e2m1fn", "packed": True}):
        dtype, packed = options["dtype"], "packed" in options

        def convert(x, dtype=dtype, packed=packed):
            return ta.quantize(x * x, dtype, axis=-1, scale="float8_e8m0fnu", packed=packed)[:2]

        assert "1 launch" in str(ta.explain(ta.fuse(convert), x, arch=90)).splitlines()[0]
