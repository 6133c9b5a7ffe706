"""The libraries that are compared on each device, and the ones that run on this machine."""

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
"""The default columns of a report by device. The column of a missing library says so."""
OWNERS: Mapping[str, tuple[str, ...]] = {"cpu": ("numpy",), "cuda": ("torch", "cupy")}


def open_libraries(device: str, wanted: Sequence[str]) -> tuple[dict[str, Library], dict[str, str]]:
    """Return the libraries that run on this machine, and the reasons why others do not."""
    here: dict[str, Library] = {}
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            here[name] = PEERS[name](device)
        except NotHereError as error:
            missing[name] = str(error)
    return here, missing


def open_owner(device: str) -> Any:
    """Return the first owner library of the device that runs on this machine.

    Raises
    ------
    NotHereError
        If none runs.
    """
    here, missing = open_libraries(device, OWNERS[device])
    if not here:
        reasons = ", ".join(f"{name}: {why}" for name, why in missing.items())
        raise NotHereError(
            f"no library can make arrays on {device} ({reasons}); install torch or CuPy, or write --device cpu"
        )
    return next(iter(here.values()))
