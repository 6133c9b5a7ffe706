"""What the library asks of any GPU of sm_90 without libraries such as cuBLAS; the stand-ins of a GPU share it."""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.schedules import choose


class GpuFacts:
    """A GPU without memory, which compiles nothing."""

    index, arch = 0, 90
    lists: Any = None
    index_errors: Any = None
    call_writer = indexing = sorting = None
    linear_algebra = products = matrices = factors = fourier = transforms = None
    on_host, scans_whole, approximates, holds_rows, computes_places = False, False, True, True, True
    most_members, most_bins = 64, 65_536

    loop_class = staticmethod(choose.loop_class)
    facts_of_matrix = staticmethod(choose.facts_of_matrix)

    def own_stream(self, stream: int) -> int:
        return stream

    def is_captured(self, stream: int) -> bool:
        return False

    def cuts(self, expression: Any) -> bool:
        return True
