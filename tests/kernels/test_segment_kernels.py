"""Ops along segments on an emulated GPU: the bits of folds on the host, and one wait for indices that lie there."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_reduceat", (11, 150, 12)),
        ("check_reduceat", (12, 15, 100)),
        ("check_waits", ()),
        ("check_overlaps", ()),
        ("check_refusals", ()),
    ],
)
def test_on_the_device(process, name, arguments):
    process.pool.submit(_on_the_device, name, *arguments).result()


def _on_the_device(name: str, *arguments: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import segments

    getattr(segments, name)(emulated_device(), *arguments)


@pytest.mark.parametrize("arch", [80, 90])
def test_the_compiler_takes_the_positions_of_segments(arch):
    from support.kernels import kernel_for

    from tilearray.functions.ufunc_reduceat import _shifting
    from tilearray_cuda.kernels.compile import cubin_of

    source = kernel_for(_shifting().graph, (5000,), [(1,), (0,), (1,)], arch=arch).source
    assert cubin_of(source, arch).code
