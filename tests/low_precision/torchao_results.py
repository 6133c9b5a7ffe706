"""Write the results of torchao with which `test_torchao.py` compares.

Run ``python tests/low_precision/torchao_results.py``.
It needs torch and torchao; the file was written with torchao 0.18.0. The file has the inputs, too.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np

FILE = Path(__file__).with_name("torchao_results.npz")
MX = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float4_e2m1fn": "e2m1"}
MODES = {"rz": "FLOOR", "rp": "RCEIL"}


def inputs() -> dict[str, np.ndarray]:
    """Arrays of float32 or bfloat16, which all have blocks of 32 along the last axis."""
    rng = np.random.default_rng(21)
    normal = rng.standard_normal((8, 128)).astype(np.float32)
    wide = np.ldexp(normal, rng.integers(-20, 20, normal.shape)).astype(np.float32)
    sparse = np.where(rng.random((8, 128)) < 0.97, 0, normal).astype(np.float32)
    exact = np.ldexp(rng.integers(-16, 17, (8, 128)), rng.integers(-9, 3, (8, 1))).astype(np.float32)
    infinite = normal.copy()
    infinite[np.arange(4), 32 * np.arange(4)] = [np.inf, -np.inf, np.nan, np.float32(3e38)]
    tiny = np.ldexp(normal, np.array([-105, -114, -118, -121, -124, -127, -131, -140])[:, None])
    arrays = {"normal": normal, "wide": wide, "sparse": sparse, "exact": exact, "infinite": infinite, "tiny": tiny}
    narrow = {f"{name}_bfloat16": arrays[name].astype(ml_dtypes.bfloat16) for name in ("normal", "wide", "exact")}
    return arrays | narrow


def results() -> dict[str, np.ndarray]:
    """For each input and format the bytes of scales and of values; float4 is packed."""
    import torch
    from torchao.prototype.mx_formats import nvfp4_tensor
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
    from torchao.quantization import quant_primitives as affine

    found: dict[str, np.ndarray] = {}

    def keep(name: str, scales: torch.Tensor, values: torch.Tensor) -> None:
        for part, x in (("scales", scales), ("values", values)):
            found[f"{name}/{part}"] = x.contiguous().view(torch.uint8).numpy()

    for name, array in inputs().items():
        narrow = array.dtype == ml_dtypes.bfloat16
        x = torch.from_numpy(array.view(np.int16) if narrow else array)
        x = x.view(torch.bfloat16) if narrow else x
        for dtype, short in MX.items():
            for mode, theirs in MODES.items():
                element = torch.float4_e2m1fn_x2 if short == "e2m1" else getattr(torch, dtype)
                keep(f"{name}/mx/{short}/{mode}", *to_mx(x, element, 32, ScaleCalculationMode[theirs]))
        total = torch.tensor(0.001)
        keep(f"{name}/nv", *nvfp4_tensor.nvfp4_quantize(x, 16, total))
        if narrow:
            continue
        for label, block in (("rows", (1, 128)), ("blocks", (1, 64)), ("tiles", (4, 64))):
            scale = affine._choose_scale_float8(x, block)
            keep(f"{name}/float8/{label}", scale, affine._quantize_affine_float8(x, scale, torch.float8_e4m3fn))
    return found


if __name__ == "__main__":
    arrays = {f"{name}/input": array.view(f"u{array.itemsize}") for name, array in inputs().items()}
    np.savez_compressed(FILE, **arrays, **results())
    print(f"wrote {FILE.name}, {FILE.stat().st_size} bytes")
