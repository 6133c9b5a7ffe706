"""Layers of a neural network in bfloat16: softmax, layer norm, RMS norm and SiLU, computed in float32 and stored."""

from ml_dtypes import bfloat16
from numpy.random import default_rng

import tilearray as np  # edit


def softmax(x):
    """Along the last axis; the largest element is subtracted first."""
    x = x.astype(np.float32)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(bfloat16)


def layer_norm(x, weight, bias):
    """Mean 0 and variance 1 along the last axis, then an affine map."""
    x = x.astype(np.float32)
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return (centred / scale * weight + bias).astype(bfloat16)


def rms_norm(x, weight):
    """Mean square 1 along the last axis."""
    x = x.astype(np.float32)
    return (x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-6) * weight).astype(bfloat16)


def silu(x):
    """x times its sigmoid."""
    x = x.astype(np.float32)
    return (x / (1.0 + np.exp(-x))).astype(bfloat16)


def main():
    rng = default_rng(0)
    x = rng.normal(size=(4, 64)).astype(bfloat16)
    x = np.asarray(x)  # edit
    weight = np.linspace(0.5, 1.5, 64, dtype=np.float32)
    results = {
        "softmax": softmax(x),
        "layer norm": layer_norm(x, weight, np.zeros_like(weight)),
        "RMS norm": rms_norm(x, weight),
        "SiLU": silu(x),
    }
    for name, y in results.items():
        wide = y.astype(np.float32)
        print(f"{name:10} {y.dtype} sum {wide.sum():8.3f} largest {wide.max():7.4f}")
    return np.stack(list(results.values())).astype(np.float32)


if __name__ == "__main__":
    main()
