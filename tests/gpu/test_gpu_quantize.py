"""`quantize` and `dequantize` on the GPU: the bits of the host, for every format, block, layout and source."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.quantization import check_same_bits

import tilearray as ta


@pytest.mark.parametrize("seed", range(4))
def test_the_gpu_gives_the_bits_of_the_host(seed):
    check_same_bits("cuda", 10 + seed, 15)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "e4m3", "axis": -1},
        {"dtype": "e4m3", "block": 128},
        {"dtype": "e4m3", "block": (128, 128)},
        {"dtype": "e5m2", "block": 32, "scale": "float8_e8m0fnu"},
        {"dtype": "e2m1", "block": 32, "scale": "float8_e8m0fnu", "packed": True},
        {"dtype": "e2m1", "block": 16, "scale": "e4m3", "packed": True, "layout": "128x4"},
        {"dtype": "int8", "axis": 0, "rounding": "rs", "seed": 3},
    ],
)
def test_large_matrices(options):
    x = (np.random.default_rng(0).standard_normal((1024, 4096)) * 3).astype(np.float32)
    dtype, *_ = (options.pop("dtype"),)
    here, there = (
        ta.quantize(ta.asarray(x, device=each).astype("bfloat16"), dtype, **options) for each in ("cpu", "cuda")
    )
    for want, got in zip(here, there, strict=True):
        if want is not None:
            assert ta.to_numpy(got).tobytes() == ta.to_numpy(want).tobytes()
