"""Arrays on a GPU that does not exist, and the keys of the kernels that calls look up in the cache."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import tilearray as ta
from support.gpu_facts import GpuFacts
from tilearray.commands.cache import warm
from tilearray.engine.devices import Device
from tilearray.engine.signature import signature_of
from tilearray.geometry.layout import Layout

_numbers = itertools.count()


class Memory(SimpleNamespace):
    """A buffer that has an address only."""


class Gpu(GpuFacts):
    """A GPU of sm_90 that finds kernels as any does, but has no memory and launches nothing."""

    def allocate(self, nbytes: int, stream: object) -> Memory:
        pointer = next(_numbers) << 40
        return Memory(pointer=pointer, nbytes=nbytes, readonly=False, stream=0, device_index=0)

    def from_numpy(self, array: np.ndarray, *, copy: bool, stream: object = None) -> tuple[Memory, int]:
        return self.allocate(array.nbytes, 0), 0

    def compile(self, *request: Any) -> Any:
        from tilearray_cuda import kernel

        return kernel.compile_kernel(self, *request)

    def bind(self, kernel: Any, loop: Any) -> Callable[..., None]:
        return lambda stream, *operands: None


class Recorder:
    """Arrays on such a GPU, and the keys of the kernels that the cache is asked for."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.device = Device("recorded", next(_numbers))  # a new name: its kernels are in no cache in memory
        self.device.backend = Gpu()  # type: ignore[assignment]

    def array(self, *shape: int, dtype: str = "float32") -> ta.Array:
        signature = signature_of(Layout.of(shape), ta.dtypes.as_dtype(dtype), self.device)
        return ta.Array._make(self.device.backend.allocate(signature.nbytes, 0), 0, signature)

    def looked_up(self, run: Callable[[], object]) -> set[str]:
        self.keys.clear()
        run()
        return set(self.keys)

    def warmed(self, selection: warm.Selection) -> set[str]:
        """The keys of the kernels that the command's processes ask for."""
        self.keys.clear()
        for job in selection.jobs:
            assert not warm.compile_one(*job).error
        assert len(self.keys) == len(selection.jobs)
        return set(self.keys)
