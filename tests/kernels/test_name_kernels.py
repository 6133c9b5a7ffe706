"""NumPy's names on an emulated GPU, against NumPy on the host."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton
from support.oracles.both_devices import KINDS

pytestmark = [needs_triton, pytest.mark.slow]

CASES = {
    "covariance": 24,
    "products": 30,
    "gradient": 12,
    "interpolation": 16,
    "angles": 12,
    "divisors": 30,
    "quantiles": 30,
    "sets": 10,
    "slices": 12,
    "neighbours": 30,
    "places": 30,
    "insertion": 40,
    "deletion": 40,
    "paddings": 40,
    "zeros": 30,
    "histograms": 5,
    "rules": 12,
}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check_repeats", (1, 40)),
        ("check_repeats", (2, 4, 40)),
        *[("check_drawn", (name, 1, cases)) for name, cases in CASES.items()],
        ("check_paddings", (1, 60)),
        ("check_windowed_sums", (1, 60)),
        ("check_windows", ()),
        ("check_deletions", ()),
        ("check_options", ()),
        ("check_refusals", ()),
        ("check_python_data", ()),
    ],
)
def test_on_the_device(process, name, arguments):
    process.pool.submit(_on_the_device, name, *arguments).result()


def _on_the_device(name: str, *arguments: int) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles import numpy_names

    getattr(numpy_names, name)(emulated_device(), *arguments)


def test_quantiles_at_places_on_the_device(process):
    process.pool.submit(_at_places).result()


def _at_places() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(4)
    values = rng.normal(size=(3, 12)).astype("float32")
    values[0, 3] = np.nan
    x = ta.asarray(values, device="cpu").to_device(device)
    for name, most in (("quantile", 1), ("nanquantile", 1), ("percentile", 100), ("nanpercentile", 100)):
        function = getattr(ta, name)
        for places, dtype in ((0.3, "float64"), ([[0.0, 1.0], [0.25, 0.75]], "float16"), ([], "float32")):
            q = ta.asarray(np.asarray(places) * most, dtype=dtype, device="cpu")
            found = ta.to_numpy(function(x, q.to_device(device), 1))
            assert found.tobytes() == ta.to_numpy(function(x, q, 1)).tobytes(), (name, places)
            exact = getattr(np, name)(values.astype(float), ta.to_numpy(q).astype(float), 1)
            assert np.allclose(found, exact, rtol=1e-5, atol=1e-6, equal_nan=True), (name, places)
        with pytest.raises(ta.errors.ShapeError, match=rf"^{name}: expected q from 0 to {most}"):
            function(x, ta.asarray([most + 0.5], device=device))
        with pytest.raises(ta.errors.DeviceError, match=rf"^{name}: the operands are on cpu and on cuda:0; move one"):
            function(ta.to_numpy(x), ta.asarray([0.5], device=device))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_call_is_the_same_on_both_devices(process, kind):
    process.pool.submit(_on_both_devices, kind).result()


def _on_both_devices(kind: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.both_devices import check_both

    check_both(emulated_device(), kind)


def test_ends_of_products_apart(process):
    process.pool.submit(_ends_of_products).result()


def _ends_of_products() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.numpy_names import check_long_products

    from tilearray.numpy_names import signals

    before, signals._AT_ONCE = signals._AT_ONCE, 0
    try:
        check_long_products(emulated_device(), 40, 7)
    finally:
        signals._AT_ONCE = before


@pytest.mark.parametrize("dtype", ["bool", "uint64", "float32", "complex64", "complex128"])
def test_the_compiler_takes_sums_over_windows(dtype):
    """One launch, whose sums stay in registers; and of few places one more, which adds parts up."""
    import tilearray as ta

    few, many = (ta.zeros(size, dtype=dtype) for size in (300, 10**6))
    (launch,) = ta.explain(ta.correlate, many, few, arch=90).launches
    code = launch.kernel.code
    assert (launch.kernel.schedule, code.spills) == ("windows", 0)
    assert code.loads[0][0] == min(4 * many.itemsize, 16)  # the longer array, by vectors
    launches = ta.explain(ta.convolve, few, few, arch=90).launches
    assert [one.kernel.schedule for one in launches] == ["windows", "reduce"]


def test_the_compiler_takes_places_of_repeats():
    from support.kernels import kernel_for

    from tilearray.functions.repeating import _placing
    from tilearray_cuda.kernels.compile import compile_source

    source = kernel_for(_placing().graph, (5000,), [(1,), (0,)]).source
    assert "ld.global" in compile_source(source, 90).ptx


@pytest.mark.parametrize(("dtype", "target"), [("float32", "float32"), ("int8", "float64"), ("float64", "float16")])
@pytest.mark.parametrize("extends", [True, False])
def test_the_compiler_takes_interpolations(dtype, target, extends):
    """A search and the line between two values, in one kernel."""
    from support.kernels import kernel_for
    from support.oracles.formats import dtype_of

    from tilearray.numpy_names.interpolation import _interpolating
    from tilearray_cuda.kernels.compile import compile_source

    graph = _interpolating(dtype_of(dtype), dtype_of(target), extends, extends).graph
    for shape, strides in (((5000,), [(1,), (0,), (0,), (1,)]), ((300, 70), [(70, 1), (0, 0), (0, 0), (1, 300)])):
        assert "div.rn.f64" in compile_source(kernel_for(graph, shape, strides).source, 90).ptx
