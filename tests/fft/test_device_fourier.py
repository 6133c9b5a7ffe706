"""`ta.fft` on a device with transforms: a stand-in of cuFFT in NumPy checks the arguments and the layouts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.transforms import check_transforms

import tilearray as ta
from tilearray.fft import device_fourier
from tilearray.geometry.layout import Layout

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from support.fake_cublas import FakeGpu
from support.fake_cufft import FakeTransforms

from tilearray_cuda.errors import OutOfMemoryError
from tilearray_cuda.libraries import cufft, strides


@pytest.fixture
def gpu(elsewhere):
    elsewhere.backend = FakeGpu()
    elsewhere.backend.transforms = FakeTransforms(elsewhere.backend)
    return elsewhere


@pytest.mark.parametrize("seed", range(4))
def test_all_transforms(gpu, seed, monkeypatch):
    """With one seed, axes of real numbers are apart, as those of large arrays are; with two, all axes are long."""
    monkeypatch.setattr(cufft, "call", lambda *arguments: None)
    monkeypatch.setattr(device_fourier, "ALONE", 1 if seed == 1 else device_fourier.ALONE)
    if seed > 1:
        _make_axes_long(monkeypatch, 1, real_bytes=0 if seed == 2 else device_fourier.REAL_BYTES)
    check_transforms(gpu, seed, 200)
    library = gpu.backend.transforms.library
    assert library.runs > 200
    assert len(library.plans) <= cufft.PLANS_KEPT < library.made


def _make_axes_long(monkeypatch, size, real_bytes):
    """All axes of more elements are long, of real numbers those of which the first half has more bytes."""
    monkeypatch.setattr(device_fourier, "STEPPED", dict.fromkeys(device_fourier.STEPPED, (size, size)))
    monkeypatch.setattr(device_fourier, "REAL_BYTES", real_bytes)
    monkeypatch.setattr(device_fourier, "COPIED", range(size // 2 + 1, 2**13 + 1))


def test_dense_operands_are_not_copied(gpu):
    """One transform and nothing else, along any axes of one or two neighbours."""
    x = ta.asarray(np.ones((4, 6, 8), "complex64"), device=gpu)
    y = ta.asarray(np.ones((4, 6, 8), "float32"), device=gpu)
    library, launches = gpu.backend.transforms.library, []
    bound = gpu.backend.bind

    def bind(*given):
        launches.append(given)
        return bound(*given)

    gpu.backend.bind = bind
    for call in (
        lambda: ta.fft.fft(x),
        lambda: ta.fft.fft(x, axis=0),
        lambda: ta.fft.fft(x, axis=1),
        lambda: ta.fft.fft2(x),
        lambda: ta.fft.fftn(x),
        lambda: ta.fft.fftn(x, axes=(0, 1)),
        lambda: ta.fft.fft2(ta.permute_dims(x, (2, 1, 0))),
        lambda: ta.fft.rfft(y),
        lambda: ta.fft.rfftn(y),
        lambda: ta.fft.fft(x[:, ::2]),
    ):
        call()
    assert launches == []
    assert library.runs == 10 + 3  # along axis 1 a call for each of the four planes


LONG = {
    "first axis": ((12, 5), lambda x: x, 0),
    "first axis of three": ((12, 3, 5), lambda x: x, 0),
    "permuted axes": ((12, 3, 5), lambda x: ta.permute_dims(x, (2, 0, 1)), 1),
    "every second column": ((12, 10), lambda x: x[:, ::2], 0),
    "every second row": ((24, 4), lambda x: x[::2], 0),
    "some columns": ((12, 10), lambda x: x[:, 2:6], 0),
}
"""Arrays with a long axis, all others of which are one: a shape, a view, the axis."""
APART = {
    "middle axis": ((3, 12, 5), lambda x: x, 1),
    "backwards": ((12, 5), lambda x: x[::-1], 0),
    "planes apart": ((12, 6, 5), lambda x: x[:, ::2], 0),
}
"""The same, which a call of the library cannot read as they lie."""
SHORT = {
    "last axis": ((5, 12), lambda x: x, 1),
    "Fortran order": ((5, 12), lambda x: x.T, 0),
    "one column": ((12, 1), lambda x: x, 0),
    "every second element": ((24,), lambda x: x[::2], 0),
    "few rows": ((8, 5), lambda x: x, 0),
}
"""Arrays whose axis is the fastest, or not long."""


@pytest.fixture
def counted(gpu, monkeypatch):
    """Counts of library calls, copies and other operations, bytes of new arrays, and plans that were asked for."""
    _make_axes_long(monkeypatch, 8, real_bytes=8 * 16)
    counts = SimpleNamespace(launches=[], nbytes=[], asked=[])
    planned, allocate, bound = cufft.Transforms.planned, gpu.backend.allocate, gpu.backend.bind

    def bind(*given):
        call = bound(*given)
        return lambda *words: counts.launches.append(words) or call(*words)

    monkeypatch.setattr(cufft.Transforms, "planned", lambda *given: counts.asked.append(given) or planned(*given))
    gpu.backend.bind = bind
    gpu.backend.allocate = lambda nbytes, stream=None: counts.nbytes.append(nbytes) or allocate(nbytes, stream)
    return counts


def _values(shape, dtype):
    rng = np.random.default_rng(6)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return (values if np.dtype(dtype).kind == "c" else values.real).astype(dtype)


@pytest.mark.parametrize("case", [*LONG, *APART, *SHORT])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
@pytest.mark.parametrize("double", [False, True])
def test_long_axes_are_the_fastest_of_the_result(gpu, counted, case, name, double):
    """One call of the library, and nothing else but a scale or one copy, which also scales. Later calls plan nothing.

    With these bounds all long axes of real numbers and of complex64 are copied.
    """
    shape, view, axis = (LONG | APART | SHORT)[case]
    host = _values(shape, ("float32", "float64")[double] if name == "rfft" else ("complex64", "complex128")[double])
    x, library = view(ta.asarray(host, device=gpu)), gpu.backend.transforms.library
    exact = ta.to_numpy(x)
    is_copied = case in APART or (case in LONG and (name == "rfft" or not double))
    for norm in ("backward", "ortho"):
        scales = norm == "ortho" or name == "ifft"
        wanted = getattr(np.fft, name)(exact, axis=axis, norm=norm)
        for again in range(3):
            runs = library.runs
            for each in (counted.launches, counted.nbytes, counted.asked):
                each.clear()
            found = getattr(ta.fft, name)(x, axis=axis, norm=norm)
            assert library.runs - runs == 1
            assert len(counted.launches) == is_copied + (scales and not (is_copied and name != "rfft"))
            results = [nbytes for nbytes in counted.nbytes if nbytes != 128]  # the workspace
            assert results == [x.nbytes] * (is_copied and name == "rfft") + [found.nbytes]
            assert len(counted.asked) == (not again)
            np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-5, atol=1e-5)
            assert found._signature.layout.strides[axis] == 1 or case == "few rows"
        np.testing.assert_array_equal(ta.to_numpy(x), exact)
        ordered = device_fourier._ordered(x._signature.layout, found.shape)
        fastest = device_fourier._with_fastest(ordered, (axis,))
        assert found._signature.layout == (ordered if case in SHORT else fastest)


@pytest.mark.parametrize("case", [*LONG, *APART, *SHORT])
def test_long_axes_of_other_transforms(gpu, counted, case):
    """Of those that are not planned: to real numbers, and of operands that are cut or padded."""
    shape, view, axis = (LONG | APART | SHORT)[case]
    x, library = view(ta.asarray(_values(shape, "complex64"), device=gpu)), gpu.backend.transforms.library
    exact, size = ta.to_numpy(x), x.shape[axis]
    for name, n in (("irfft", size), ("irfft", size + 1), ("hfft", size), ("fft", size + 3), ("fft", size - 1)):
        runs = library.runs
        found = getattr(ta.fft, name)(x, n, axis)
        wanted = getattr(np.fft, name)(exact, n, axis)
        assert library.runs - runs == 1
        is_fastest = case not in ("few rows", "one column") or n > 8
        assert found._signature.layout.strides[axis] == 1 or not is_fastest
        np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(ta.to_numpy(x), exact)


def test_a_short_axis_between_many_others_is_copied_and_planned_once(gpu, counted):
    host = _values((20, 4, 18), "complex64")
    x, library = ta.asarray(host, device=gpu), gpu.backend.transforms.library
    for again in range(3):
        counted.asked.clear()
        counted.launches.clear()
        runs = library.runs
        found = ta.fft.ifft(x, axis=1)
        assert (library.runs - runs, len(counted.launches)) == (1, 1)
        assert len(counted.asked) == (0 if again else 2)
        np.testing.assert_allclose(ta.to_numpy(found), np.fft.ifft(host, axis=1), rtol=1e-5, atol=1e-6)


def test_how_an_axis_is_transformed():
    """The sizes at which the way changes."""
    single, double = np.dtype("complex64"), np.dtype("complex128")

    def way(kind, size, wide, shape=(9,)):
        return device_fourier._way(kind, Layout.of((size, *shape)), (0,), size, wide).name

    for kind, sizes, of_single, of_double in (
        ("c2c", (1, 128, 129, 1000, 1024, 2048), "STEPPED STEPPED TURNED TURNED STEPPED STEPPED", None),
        ("c2c", (1025, 3000, 8191), "COPIED COPIED COPIED", "TURNED TURNED TURNED"),
        ("c2c", (4096, 2**16, 8193, 10**5), "TURNED TURNED TURNED TURNED", None),
        ("r2c", (128, 129, 512), "STEPPED TURNED STEPPED", None),
        ("r2c", (513, 1000, 1024), "TURNED TURNED STEPPED", "COPIED COPIED COPIED"),
        ("r2c", (1025, 2048, 10**5), "COPIED COPIED COPIED", None),
        ("c2r", (1, 3, 128, 256, 2048, 10**5), "STEPPED COPIED STEPPED COPIED COPIED COPIED", None),
    ):
        assert [way(kind, size, single) for size in sizes] == of_single.split(), (kind, sizes)
        assert [way(kind, size, double) for size in sizes] == (of_double or of_single).split(), (kind, sizes)
    assert device_fourier._way("c2c", Layout.of((5, 3000)), (1,), 3000, single) is device_fourier.Way.STEPPED
    assert device_fourier._way("c2c", Layout.of((3, 4096, 2)), (1,), 4096, double) is device_fourier.Way.COPIED
    assert device_fourier._way("c2c", Layout.of((1, 4096, 2)), (1,), 4096, double) is device_fourier.Way.TURNED


def test_long_axes_in_recordings_and_of_several_axes(gpu, counted):
    """What a recording has not computed yet is read; several axes are one plan and no copy."""
    host = _values((12, 5), "complex64")
    x, library = ta.asarray(host, device=gpu), gpu.backend.transforms.library
    with ta.lazy():
        found = ta.fft.ifft(x * 2.0, axis=0) + 1.0
    np.testing.assert_allclose(ta.to_numpy(found), np.fft.ifft(host * 2, axis=0) + 1, rtol=1e-5, atol=1e-5)
    counted.launches.clear()
    runs = library.runs
    np.testing.assert_allclose(ta.to_numpy(ta.fft.fftn(x)), np.fft.fftn(host), rtol=1e-5, atol=1e-4)
    assert (library.runs - runs, counted.launches) == (1, [])


def test_the_first_axis_of_large_real_arrays_is_the_fastest_of_the_result(gpu, monkeypatch):
    """The second transform stores it so; a result that lies so already is transformed in place."""
    monkeypatch.setattr(device_fourier, "ALONE", 100)
    rng = np.random.default_rng(3)
    host = rng.normal(size=(10, 12)).astype("float32")
    x, turned = ta.asarray(host, device=gpu), ta.asarray(np.ascontiguousarray(host.T), device=gpu).T
    library = gpu.backend.transforms.library
    for operand, words, wanted in (
        (x, {}, (1, 10)),
        (x, {"s": (9, 12)}, (1, 9)),
        (turned, {}, (1, 10)),
        (x[:, 1:11], {"norm": "ortho"}, (1, 10)),
        (x[:, :8], {}, (5, 1)),
    ):
        before = library.runs
        for _ in range(3):
            found = ta.fft.rfft2(operand, **words)
            assert found._signature.layout.strides == wanted
            np.testing.assert_allclose(ta.to_numpy(found), np.fft.rfft2(ta.to_numpy(operand), **words), atol=1e-4)
        assert library.runs - before == (3 if operand.size < 100 else 6)
    assert ta.fft.rfftn(ta.zeros((2, 4, 6), device=gpu, dtype="float32"))._signature.layout.contiguous


def test_the_operand_of_an_inverse_real_transform_is_copied_by_the_first_pass(gpu):
    """Along several axes no kernel copies it; one clears the imaginary parts that do not count, one scales."""
    rng = np.random.default_rng(5)
    launches, bound = [], gpu.backend.bind

    def bind(*given):
        call = bound(*given)
        return lambda *words: launches.append(words) or call(*words)

    gpu.backend.bind = bind
    host = (rng.normal(size=(6, 5)) + 1j * rng.normal(size=(6, 5))).astype("complex64")
    library = gpu.backend.transforms.library
    for x in (ta.asarray(host, device=gpu), ta.asarray(np.ascontiguousarray(host.T), device=gpu).T):
        for last in (7, 8):
            own, runs = x[:, : last // 2 + 1], library.runs
            launches.clear()
            found = ta.fft.irfft2(own, s=(6, last))
            assert (len(launches), library.runs - runs) == (2, 2)
            assert found._signature.layout.contiguous
            np.testing.assert_allclose(
                ta.to_numpy(found), np.fft.irfft2(host[:, : last // 2 + 1], s=(6, last)), atol=1e-6
            )
            np.testing.assert_array_equal(ta.to_numpy(x), host)


def test_recordings_end_before_a_library_reads(gpu):
    x = ta.asarray(np.ones(4, "complex64"), device=gpu)
    with ta.lazy():
        found = ta.fft.fft(x * 2.0) + 1.0
        copied = ta.fft.fft((x * 2.0)[::-1])  # which the library does not read as it lies
    assert found.tolist() == [9, 1, 1, 1]
    assert copied.tolist() == [8, 0, 0, 0]


def test_a_call_in_the_same_words_is_planned_once(gpu, monkeypatch):
    """Arrays of one signature share a plan; other words, dtypes and semantics have their own."""
    planned, asked = cufft.Transforms.planned, []

    def counted(self, *given):
        asked.append(given)
        return planned(self, *given)

    monkeypatch.setattr(cufft.Transforms, "planned", counted)
    rng = np.random.default_rng(1)
    for name, dtype, words, passes in (
        ("fft", "complex64", {}, 1),
        ("ifft", "complex64", {"norm": "ortho"}, 1),
        ("fft", "float32", {"axis": 0}, 1),
        ("rfft", "float64", {}, 1),
        ("rfft2", "float32", {}, 1),
        ("fftn", "int16", {"axes": (1, 0)}, 1),
        ("ifftn", "bfloat16", {"s": (6, 8), "axes": (0, 1)}, 1),
    ):
        asked.clear()
        for _ in range(3):
            x = ta.astype(ta.asarray(rng.normal(size=(6, 8)), device=gpu), dtype)
            found = getattr(ta.fft, name)(x, **words)
            exact = ta.to_numpy(ta.astype(x, "float64" if name.startswith("r") else "complex128"))
            wanted = getattr(np.fft, name)(exact, **words)
            np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-4, atol=1e-4)
        assert len(asked) == passes, (name, dtype, words)


def test_plans_depend_on_semantics_and_on_addresses(gpu):
    x = ta.asarray(np.arange(9, dtype="float32"), device=gpu)
    assert [ta.fft.rfft(part).shape for part in (x[:8], x[1:], x[:8])] == [(5,)] * 3
    np.testing.assert_allclose(ta.to_numpy(ta.fft.rfft(x[1:])), np.fft.rfft(np.arange(1, 9)), rtol=1e-5)
    whole = ta.asarray([1, 2, 3, 4], device=gpu)
    dtypes = {}
    for name in ("array-api", "numpy", "array-api"):
        with ta.semantics(name):
            dtypes[name] = ta.fft.fft(whole).dtype.name
    assert dtypes == {"array-api": "complex64", "numpy": "complex128"}
    assert ta.fft.fft(whole, 1).shape == (1,)
    with pytest.raises(ta.errors.TileArrayError):
        ta.fft.fft(whole, True)


def test_plans_are_kept(gpu):
    x = ta.asarray(np.ones((4, 8), "complex64"), device=gpu)
    for _ in range(3):
        ta.fft.fft(x)
        ta.fft.ifft(x)
    assert gpu.backend.transforms.library.made == 1


def test_empty_operands(gpu):
    x = ta.zeros((0, 4), dtype="complex64", device=gpu)
    assert ta.fft.fft(x).shape == (0, 4)
    assert ta.fft.irfft(x).shape == (0, 6)
    assert ta.fft.fft(x, n=3, axis=0).tolist() == [[0] * 4] * 3
    assert gpu.backend.transforms.library.runs == 1


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_every_semantics_computes(gpu, semantics):
    x = ta.asarray(np.ones((4, 4), "float32"), device=gpu)
    with ta.semantics(semantics):
        assert ta.fft.irfft(ta.fft.rfft(x, norm="ortho"), norm="ortho").dtype.name == "float32"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.lists(st.integers(-3, 9), min_size=3, max_size=3))
def test_boxes_describe_strides(sizes, factors):
    """Each index of a box is at the place that the strides say, for strides that nest; others are refused."""
    steps = []
    for factor in reversed(factors[: len(sizes)]):
        steps.append(factor * (steps[-1] if steps else 1))
    steps = tuple(reversed(steps))
    found = strides.box(tuple(sizes), steps)
    nests = all(
        outer >= size * inner
        for size, outer, inner, wide in zip(sizes[1:], steps, steps[1:], sizes)
        if size > 1 and wide > 1
    )
    if found is None:
        assert not nests or any(step <= 0 for step, size in zip(steps, sizes) if size > 1) or 1 in sizes
        return
    embed, step = found
    for index in np.ndindex(*sizes):
        place = 0
        for at, size in zip(index, (1, *embed[1:])):
            place = place * size + at
        assert place * step == sum(i * s for i, s in zip(index, steps))


def test_a_plan_that_cannot_be_made_is_destroyed(gpu, monkeypatch):
    def fails(*arguments):
        raise RuntimeError("ALLOC_FAILED (2): no memory")

    x, library = ta.asarray(np.ones(8, "complex64"), device=gpu), gpu.backend.transforms.library
    monkeypatch.setattr(library, "xt_make_plan_many", fails)
    with pytest.raises(OutOfMemoryError, match="cuFFT: ALLOC_FAILED"):
        ta.fft.fft(x)
    assert (library.made, library.plans) == (1, {})


@pytest.mark.parametrize(("alone", "launches", "runs"), [(100, 1, 2), (1000, 0, 2)])
def test_real_planes_whose_first_axis_is_the_fastest_are_planned_once(gpu, monkeypatch, alone, launches, runs):
    """A large one is copied, and a small one transformed along each axis as it lies."""
    monkeypatch.setattr(device_fourier, "ALONE", alone)
    planned, asked = cufft.Transforms.planned, []

    def counted(self, *given):
        asked.append(given)
        return planned(self, *given)

    monkeypatch.setattr(cufft.Transforms, "planned", counted)
    host = np.random.default_rng(3).normal(size=(10, 12)).astype("float32")
    x, library = ta.asarray(np.ascontiguousarray(host.T), device=gpu).T, gpu.backend.transforms.library
    ta.fft.rfft2(x)
    asked.clear()
    ran, bound = library.runs, []
    monkeypatch.setattr(device_fourier, "run_fixed", _noting(device_fourier.run_fixed, bound))
    found = ta.fft.rfft2(x)
    assert (len(asked), len(bound), library.runs - ran) == (0, launches, runs)
    assert found._signature.layout.strides == (1, 10)
    np.testing.assert_allclose(ta.to_numpy(found), np.fft.rfft2(host), atol=1e-4)
    np.testing.assert_array_equal(ta.to_numpy(x), host)


def _noting(function, noted):
    def run(*arguments):
        noted.append(arguments)
        return function(*arguments)

    return run


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_frequencies_are_those_of_the_host(gpu, name):
    for n in (1, 2, 5, 8, 1001):
        for step in (1.0, 0.3, -7, 1e-30):
            for function in (ta.fft.fftfreq, ta.fft.rfftfreq):
                mine, host = (function(n, step, dtype=name, device=device) for device in (gpu, "cpu"))
                assert mine.device is gpu
                np.testing.assert_array_equal(ta.to_numpy(mine), ta.to_numpy(host))
