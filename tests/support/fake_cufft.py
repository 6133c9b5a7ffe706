"""cuFFT in NumPy: plans and transforms on memory of the process, with the library's checks of arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.fake_cublas import _DTYPES, _view
from tilearray_cuda.libraries import cufft


class FakeFourier:
    """The functions that `tilearray_cuda.libraries.cufft` calls.

    Attributes
    ----------
    plans : dict
        The arguments of each plan, None before they are given.
    made, runs : int
        The plans that were made, and the transforms that ran.
    """

    def __init__(self) -> None:
        self.plans: dict[int, Any] = {}
        self.work: dict[int, int] = {}
        self.made = self.runs = 0

    def create(self) -> int:
        self.made += 1
        self.plans[self.made] = None
        return self.made

    def set_auto_allocation(self, plan: int, on: int) -> None:
        assert on == 0

    def xt_make_plan_many(
        self, plan, rank, sizes, inembed, istride, idist, itype, onembed, ostride, odist, otype, batch, computed
    ):
        assert 1 <= rank == len(sizes) == len(inembed) == len(onembed) <= 3
        assert min(*sizes, istride, idist, ostride, odist, batch) > 0
        assert computed in (4, 5)
        assert {itype, otype} <= ({0, 4} if computed == 4 else {1, 5})
        self.plans[plan] = sizes, (inembed, istride, idist, itype), (onembed, ostride, odist, otype), batch
        return 128

    def set_stream(self, plan: int, stream: int) -> None:
        assert plan in self.plans

    def set_work_area(self, plan: int, address: int) -> None:
        self.work[plan] = address

    def destroy(self, plan: int) -> None:
        del self.plans[plan]

    def xt_exec(self, plan: int, source: int, target: int, direction: int) -> None:
        self.runs += 1
        sizes, first, second, batch = self.plans[plan]
        assert self.work.pop(plan), "the workspace is given for each call"
        self.work[plan] = 1
        to_real = second[3] in (0, 1)
        half = (*sizes[:-1], sizes[-1] // 2 + 1)
        if first[3] in (0, 1):
            assert source % (8 if first[3] == 0 else 16) == 0, "cuFFT reads pairs of real numbers"
        x = _elements(source, first, half if to_real else sizes, batch).copy()
        out = _elements(target, second, half if first[3] in (0, 1) else sizes, batch)
        axes = tuple(range(1, len(sizes) + 1))
        if first[3] in (0, 1):
            found = np.fft.rfftn(x, axes=axes)
        elif to_real:
            for place in {0, sizes[-1] // 2} if sizes[-1] % 2 == 0 else {0}:
                edge = np.fft.ifftn(x[..., place], axes=axes[:-1], norm="forward") if len(sizes) > 1 else x[..., place]
                most = 1e-5 * np.abs(edge).max() if len(sizes) > 1 else 0
                assert np.abs(edge.imag).max() <= most, "a transform to real numbers ignores these in NumPy only"
            found = np.fft.irfftn(x, sizes, axes, norm="forward")
            _elements(source, first, half, batch)[...] = 7  # the library overwrites its operand
        elif direction == -1:
            found = np.fft.fftn(x, axes=axes)
        else:
            assert direction == 1
            found = np.fft.ifftn(x, axes=axes, norm="forward")
        out[...] = found


def _elements(address: int, where: tuple[Any, int, int, int], sizes: tuple[int, ...], batch: int) -> np.ndarray:
    """The transforms of a call, with an axis for them in front."""
    embed, step, distance, code = where
    strides = [step]
    for size in reversed(embed[1:]):
        strides.append(strides[-1] * size)
    return _view(address, _DTYPES[code], (batch, *sizes), (distance, *reversed(strides)))


class FakeTransforms(cufft.Transforms):
    """The transforms of a device in host memory."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self.library = FakeFourier()

    @property
    def _library(self) -> Any:
        return self.library

    def _in_context(self, stream: int, function: Any, *arguments: Any) -> None:
        function(False, *arguments)
