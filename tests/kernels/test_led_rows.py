"""Long rows that begin at no vector: they are read in vectors, and their elements are combined in the same order."""

from __future__ import annotations

import re
from functools import partial

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]

SHAPES = [(3, 5000), (1, 9000), (2, 3, 2600)]
DTYPES = ("bool", "uint8", "bfloat16", "float32", "float64", "complex64")


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [("sum", DTYPES), ("argmax", ("uint8", "float64"))]
    + [(name, ("bfloat16", "float32", "float64")) for name in ("prod", "max", "var", "argmin", "count_nonzero", "any")],
)
def test_rows_have_the_bits_of_the_host(process, name, dtypes):
    assert process.pool.submit(_compare, name, dtypes).result() >= len(dtypes)


def _compare(name: str, dtypes: tuple[str, ...]) -> int:
    """Compare reductions of sliced rows; return how many kernels read led rows."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare, drawn_array

    from tilearray_cuda.kernels.schedules import led_rows

    rng, device, led = np.random.default_rng(4), emulated_device(), list[str]()
    setup = led_rows.LedRows.chunk_range
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(led_rows.LedRows, "chunk_range", lambda self: led.append(name) or setup(self))
        for dtype in dtypes:
            for shape in SHAPES:
                x = ta.asarray(drawn_array(rng, dtype, shape), device="cpu")
                for key in ((..., slice(1, None)), (..., slice(3, -1))):
                    function = partial(getattr(ta, name), axis=-1)
                    compare(function(x[key]), function(x.to_device(device)[key]), f"{name} {dtype} {shape} {key}")
    return len(led)


def test_complex_products_have_the_bits_of_the_host(process):
    process.pool.submit(_compare_complex_products).result()


def _compare_complex_products() -> None:
    """Lanes beyond the end of a row are multiplied by 1: a zero may change its sign."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare

    rng, device = np.random.default_rng(4), emulated_device()
    values = rng.integers(-1, 2, (5, 1025)) + 1j * rng.integers(-1, 2, (5, 1025))
    x = ta.asarray(values.astype(np.complex64), device="cpu")
    expected, found = (ta.prod(each[:, 1:], axis=1) for each in (x, x.to_device(device)))
    for part in ("real", "imag"):
        compare(getattr(expected, part), getattr(found, part), part)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(16384, 16384), (1, 2**28)])
def test_rows_are_read_in_vectors(dtype, shape):
    x = ta.empty(shape, dtype=dtype, device="cpu")
    first = ta.explain(lambda x: ta.sum(x[:, 1:], axis=1), x, arch=90).launches[0]
    assert "lead_of" in first.kernel.source
    loads = dict(first.kernel.code.loads)
    is_copied = dtype in ("float32", "complex64") and shape[0] == 1  # by asynchronous copies
    assert ("num_stages" in first.kernel.source) is (first.kernel.code.shared >= 16 * 1024) is is_copied
    assert is_copied or max(loads) == (8 if dtype == "bfloat16" else 16)
    assert first.kernel.code.spills == 0


@pytest.mark.parametrize(
    ("name", "dtype", "tile"),
    [
        ("sum", "bfloat16", (512, 4, 0)),
        ("sum", "float32", (2048, 4, 4)),
        ("max", "float32", (2048, 8, 3)),
        ("var", "float32", (512, 8, 0)),
        ("sum", "complex64", (1024, 4, 3)),
        ("sum", "float64", (1024, 4, 0)),
    ],
)
def test_rows_whose_bits_are_compared_have_the_warps_that_were_measured(name, dtype, tile):
    x = ta.empty((1, 9000), dtype=dtype, device="cpu")
    first = ta.explain(lambda x: getattr(ta, name)(x[:, 1:], axis=-1), x, arch=90).launches[0]
    stages = int(dict(re.findall(r"(num_stages)=(\d+)", first.kernel.source)).get("num_stages", 0))
    assert (first.kernel.tile[1], first.kernel.warps, stages) == tile
