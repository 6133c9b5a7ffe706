"""Which libraries are compared where, and which of them run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.compilers import CompiledJax, CompiledTorch, FlagGems, FusedCuPy, Jax
from benchmarks.libraries import CuPy, Library, NotHereError, NumPy, TileArray, Torch

PEERS: Mapping[str, type[Library]] = {
    "tilearray": TileArray,
    "numpy": NumPy,
    "torch": Torch,
    "torch.compile": CompiledTorch,
    "cupy": CuPy,
    "cupy.fuse": FusedCuPy,
    "jax": Jax,
    "jax.jit": CompiledJax,
    "flag_gems": FlagGems,
}
COMPARED: Mapping[str, tuple[str, ...]] = {
    "cpu": ("tilearray", "numpy", "torch"),
    "cuda": ("tilearray", "torch", "torch.compile", "cupy", "cupy.fuse", "jax", "jax.jit", "flag_gems"),
}
"""The columns of a report, by device, if no others are asked for; what is not installed says so in its column."""
OWNERS: Mapping[str, tuple[str, ...]] = {"cpu": ("numpy",), "cuda": ("torch", "cupy")}


def open_libraries(device: str, wanted: Sequence[str]) -> tuple[dict[str, Library], dict[str, str]]:
    """The libraries that run here, and why the others do not."""
    here: dict[str, Library] = {}
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            here[name] = PEERS[name](device)
        except NotHereError as error:
            missing[name] = str(error)
    return here, missing


def open_owner(device: str) -> Any:
    """The first of the device's owners that runs here.

    Raises
    ------
    NotHereError
        If there is none.
    """
    here, missing = open_libraries(device, OWNERS[device])
    if not here:
        reasons = ", ".join(f"{name}: {why}" for name, why in missing.items())
        raise NotHereError(
            f"nothing can make arrays on {device} ({reasons}); install torch or CuPy, or write --device cpu"
        )
    return next(iter(here.values()))
