"""The kernels that the calls of `families` ask for on a GPU of some architecture, found without a GPU.

The calls run on a device whose memory is that of the host, and which launches nothing. Sizes that depend on values are
those of zeros.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from support.families import FAMILIES, Inputs
from support.interpreter.emulated_gpu import Emulated, Lists
from tilearray.engine.devices import Device
from tilearray_cuda.kernels.lists import source_of_list
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec

_numbers = itertools.count()


class _Recording(Emulated):
    """A GPU that notes the kernels that it is asked for."""

    def __init__(self, arch: int) -> None:
        super().__init__()
        self.arch = arch
        self.found: dict[Source, bool] = {}
        self.lists = _RecordingLists(self)

    def compile(self, body: Any, loop_class: Any, aligned: tuple[bool, ...]) -> Any:
        schedule = choose.schedule_of(make_spec(body, loop_class, aligned), self.arch)
        self.found[source_of(schedule)] = schedule.spec.contract
        return schedule

    def bind(self, compiled: Any, loop: Any) -> Callable[..., None]:
        return lambda stream, *operands: None


class _RecordingLists(Lists):
    """Launches over lists of arrays of such a GPU."""

    _device: _Recording

    def compile(self, body: Any, loop_class: Any, aligned: tuple[bool, ...]) -> Any:
        schedule = choose.schedule_of(make_spec(body, loop_class, aligned), self._device.arch).for_lists()
        self._device.found[source_of_list(schedule)] = schedule.spec.contract
        return schedule

    def bind(self, compiled: Any, loops: Sequence[Any]) -> Callable[..., bool]:
        return lambda *launch: True


def kernels_of(family: str, arch: int) -> list[tuple[Source, bool]]:
    """Return the kernels of a family's calls, and for each whether a product and a sum may be one fma."""
    backend = _Recording(arch)
    device = Device("recorded kernels", next(_numbers))  # a new name: no plan is known
    device.backend = backend  # type: ignore[assignment]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        FAMILIES[family](Inputs(device))  # type: ignore[arg-type]
    return list(backend.found.items())
