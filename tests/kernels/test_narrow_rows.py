"""Narrow rows, of which a program has several: at vectors, and between them, where threads have runs of neighbours."""

from __future__ import annotations

from functools import partial

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]

COLUMNS = (2, 3, 5, 20, 33, 65, 100, 129, 200, 333, 513)
DTYPES = ("bool", "uint8", "int16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [("sum", DTYPES), ("argmax", ("uint8", "float32")), ("cumulative_sum", ("bfloat16", "float32", "complex128"))]
    + [(name, ("bfloat16", "float32", "float64")) for name in ("prod", "max", "min", "var", "any")],
)
def test_rows_have_the_bits_of_the_host(process, name, dtypes):
    assert process.pool.submit(_compare, name, dtypes).result() >= (name != "cumulative_sum")


def _compare(name: str, dtypes: tuple[str, ...]) -> int:
    """Compare functions of whole and sliced rows; return how many kernels have runs of neighbours."""
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.reductions import compare, drawn_array

    from tilearray_cuda.kernels.schedules import reduce

    rng, device, read = np.random.default_rng(5), emulated_device(), list[bool]()
    between = reduce.Reduce._begins_between
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            reduce.Reduce, "_begins_between", lambda self, operand: read.append(between(self, operand)) or read[-1]
        )
        for dtype in dtypes:
            for columns in COLUMNS:
                for rows in (9, 17):
                    x = ta.asarray(drawn_array(rng, dtype, (rows, columns)), device="cpu")
                    for key in ((), (slice(None), slice(1, None)), (slice(None, None, -1), slice(1, columns // 2 + 1))):
                        function = partial(getattr(ta, name), axis=1)
                        compare(function(x[key]), function(x.to_device(device)[key]), f"{name} {dtype} {x.shape} {key}")
    return sum(read)


@pytest.mark.parametrize(
    ("dtype", "columns", "rows", "largest"),
    [
        ("uint8", 512, 4, 16), ("bfloat16", 256, 8, 16), ("float32", 100, 8, 16), ("float32", 65, 8, 4),
        ("float64", 41, 8, 8), ("complex64", 40, 8, 16), ("complex64", 33, 8, 8), ("bfloat16", 129, 8, 2),
        ("bfloat16", 200, 8, 8), ("complex128", 30, 4, 16),
    ],
)  # fmt: skip
def test_programs_have_several_rows(dtype, columns, rows, largest):
    """Threads read vectors where rows begin at them; where not, they exchange as little between lanes."""
    x = ta.empty((10**6, columns), dtype=dtype, device="cpu")
    kernel = ta.explain(partial(ta.sum, axis=1), x, arch=90).launches[0].kernel
    assert (kernel.schedule, kernel.tile[0], kernel.warps) == ("reduce", rows, 4)
    assert max(dict(kernel.code.loads)) == largest
    assert ("load_neighbours" in kernel.source) is (largest == x.itemsize < 16)
    assert kernel.code.spills == 0


def test_few_and_long_rows_have_a_program_each():
    for function, shape, rows in (
        (partial(ta.sum, axis=1), (4, 100), [1]),
        (partial(ta.sum, axis=1), (10**4, 1000), [1]),
        (partial(ta.sum, axis=1), (10**4, 3000), [1]),
        (partial(ta.max, axis=0), (10**6, 10), [16, 1]),
    ):
        launches = ta.explain(function, ta.empty(shape, dtype="float32", device="cpu"), arch=90).launches
        assert [launch.kernel.tile[0] for launch in launches] == rows, shape
