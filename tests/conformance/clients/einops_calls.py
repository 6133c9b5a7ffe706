"""einops over our arrays: its module for array API namespaces, and the plain one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.calls import part as part

PACKAGE = "einops"
SEMANTICS = "array-api"


def missing(checkout: Path | None) -> str | None:
    if importlib.util.find_spec("einops") is None:
        return "einops: expected an installed einops; write: pip install einops"
    return None


def names(array: Callable[[Any], Any]) -> dict[str, Any]:
    """Images `x` of float32, integers `i`, and einops with its module `api` for any namespace."""
    import einops
    import einops.array_api as api

    x = array(np.arange(2 * 4 * 6 * 3, dtype=np.float32).reshape(2, 4, 6, 3))
    return {"x": x, "i": array(np.arange(12).reshape(3, 4)), "einops": einops, "api": api}


_SHARED = [
    "rearrange(x, 'b h w c -> b c h w')",
    "rearrange(x, 'b h w c -> (b h) w c')",
    "rearrange(x, 'b (h1 h2) (w1 w2) c -> b h1 w1 (h2 w2 c)', h2=2, w2=2)",
    "rearrange([x, x], 'n b h w c -> b h (n w) c')",
    "reduce(x, 'b h w c -> b c', 'mean')",
    "reduce(x, 'b h w c -> h w', 'max')",
    "reduce(x, 'b (h 2) (w 2) c -> b h w c', 'min')",
    "reduce(x, 'b h w c -> b 1 1 c', 'sum')",
    "reduce(x[:, :2, :2], 'b h w c -> c', 'prod')",
    "repeat(i, 'h w -> h w c', c=3)",
    "repeat(i, 'h w -> (h 2) (w 2)')",
    "pack([x[0, 0], x[0, 1, 0]], '* c')[0]",
    "unpack(x, [[1], [3]], 'b * w c')",
]
CALLS = {
    "array_api": [f"api.{source}" for source in _SHARED],
    "plain": [
        *(f"einops.{source}" for source in _SHARED),
        "einops.einsum(x, x, 'b h w c, b h w d -> b c d')",
        "einops.parse_shape(x, 'b h w c')",
    ],
}
