"""Quantise weights to int8 by channel, to float8 by tensor, and to float8 with a power of two for each block."""

from ml_dtypes import float8_e4m3fn
from numpy.random import default_rng

import tilearray as np  # edit

FLOAT8_MAX = 448.0


def to_int8(x):
    """Integers from -127 to 127, and one scale for each row."""
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return np.clip(np.round(x / scale), -127, 127).astype(np.int8), scale


def to_float8(x):
    """float8 of four exponent bits, and one scale."""
    scale = np.max(np.abs(x)) / FLOAT8_MAX
    return (x / scale).astype(float8_e4m3fn), scale


def to_blocks(x, size=32):
    """float8, and one power of two for each block of `size` elements: the format MX."""
    blocks = x.reshape(x.shape[0], -1, size)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    scale = np.exp2(np.floor(np.log2(largest)) - 8)
    return np.clip(blocks / scale, -FLOAT8_MAX, FLOAT8_MAX).astype(float8_e4m3fn), scale


def restored(q, scale):
    return q.astype(np.float32) * scale


def main():
    rng = default_rng(0)
    x = rng.normal(size=(16, 128)).astype(np.float32)
    x = np.asarray(x)  # edit
    x[3] *= 100.0
    results = []
    for name, quantise in (("int8", to_int8), ("float8", to_float8), ("blocks", to_blocks)):
        q, scale = quantise(x)
        y = restored(q, scale).reshape(x.shape)
        error = np.sqrt(np.mean((x - y) ** 2) / np.mean(x**2))
        print(f"{name:7} {q.nbytes} bytes, {scale.size:3} scales, relative error {error:.5f}")
        results.append(y)
    return np.stack(results)


if __name__ == "__main__":
    main()
