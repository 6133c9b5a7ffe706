"""Fourier transforms against their sums, term by term in float64; by NumPy's library and by SciPy's."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.formats import ARITHMETIC, kind_of
from support.oracles.matrices import check, complex_name, near, real_name, tame, wide

import tilearray as ta
from tilearray.errors import AxisError, DTypeError, OperandError, ShapeError
from tilearray.fft import transforms
from tilearray_host import fourier

LIBRARIES = ["numpy.fft", *(["scipy.fft"] if importlib.util.find_spec("scipy") else [])]
NAMES = st.sampled_from(list(ARITHMETIC))
REAL = st.sampled_from([name for name in ARITHMETIC if kind_of(name) != "complex"])
SHAPES = st.sampled_from([(1,), (4,), (5,), (7,), (2, 3), (3, 4), (2, 1, 5), (0, 4), (2, 3, 4)])
NORMS = st.sampled_from(["backward", "ortho", "forward", None])


@pytest.fixture
def looks_again() -> Iterator[None]:
    """The compiled functions are found anew in this test, and after it, and so are planned transforms."""
    fourier._compiled.cache_clear()
    transforms._KNOWN.clear()
    yield
    fourier._compiled.cache_clear()
    transforms._KNOWN.clear()


@pytest.fixture(params=LIBRARIES)
def library(request, monkeypatch, looks_again) -> None:
    module = importlib.import_module(request.param)
    monkeypatch.setattr(fourier, "_library", lambda: module)


@pytest.mark.parametrize("change", ["none", "missing", "other results"])
def test_compiled_functions_that_differ_are_not_called(change, monkeypatch, looks_again):
    library = pytest.importorskip("scipy.fft")
    inner = importlib.import_module("scipy.fft._pocketfft.pypocketfft")
    if change == "missing":
        monkeypatch.delattr(inner, "c2r")
    elif change == "other results":
        monkeypatch.setattr(inner, "c2r", lambda x, axes, size, forward, scale: x.real)
    x = np.arange(8.0) + 1j
    assert ta.fft.fft(ta.asarray(x)).tolist() == library.fft(x).tolist()
    assert len(fourier._compiled()) == (4 if change == "none" else 0)


def test_arrays_that_need_no_padding_go_to_the_compiled_functions(monkeypatch, looks_again):
    library = pytest.importorskip("scipy.fft")
    x = np.random.default_rng(0).random((3, 4))
    wanted = {name: getattr(library, name)(x) for name in ("fftn", "ifftn", "fft", "rfftn")}
    wanted |= {name: getattr(library, name)(x + 0j) for name in ("irfftn", "irfft")}
    fourier._compiled()
    for name in wanted:
        monkeypatch.delattr(library, name)
    for name, want in wanted.items():
        for _ in range(2):
            assert getattr(ta.fft, name)(ta.asarray(x)).tolist() == want.tolist()
    with pytest.raises(AttributeError, match="fftn"):
        ta.fft.fftn(ta.asarray(x), (3, 5))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_real_numbers_are_transformed_as_such(monkeypatch, looks_again, name):
    """Nothing is converted to complex numbers, whatever the strides."""
    pytest.importorskip("scipy.fft")
    monkeypatch.setattr(fourier, "converted", None)
    x = np.random.default_rng(0).random((6, 4)).astype(name)
    for transform in ("fft", "ifft", "fft2", "ifftn"):
        for host in (x, x[:, ::2], np.asfortranarray(x)):
            wanted = getattr(np.fft, transform)(host.astype("float64"))
            for _ in range(2):
                found = getattr(ta.fft, transform)(ta.asarray(host))
                assert found.dtype.name == ("complex64" if name == "float32" else "complex128")
                np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-5, atol=1e-6)
                assert not np.signbit(ta.to_numpy(found).imag.flat[0])  # the angle of a negative sum is pi, not -pi


def sized(x: np.ndarray, n: int, axis: int) -> np.ndarray:
    """Cut or padded with zeros along an axis."""
    moved = np.moveaxis(x, axis, -1)[..., :n]
    return np.moveaxis(np.concatenate([moved, np.zeros((*moved.shape[:-1], n - moved.shape[-1]))], -1), -1, axis)


def dft(x: np.ndarray, n: int, axis: int, norm: str | None, inverse: bool) -> np.ndarray:
    """The sum of x[k] exp(-2 pi i j k / n), or with the other sign, and its scale."""
    places = np.outer(np.arange(n), np.arange(n)) % n
    waves = np.exp((2j if inverse else -2j) * math.pi * places / n)
    found = np.moveaxis(np.moveaxis(sized(x, n, axis), axis, -1) @ waves, -1, axis)
    scaled = inverse if norm in ("backward", None) else not inverse
    return found / (math.sqrt(n) if norm == "ortho" else n if scaled else 1)


def extended(x: np.ndarray, n: int, axis: int) -> np.ndarray:
    """The whole of n elements of which x is the first half, the rest being the mirrored conjugate."""
    half = np.moveaxis(sized(x, n // 2 + 1, axis), axis, -1).astype(complex)
    half[..., 0] = half[..., 0].real
    if n % 2 == 0:
        half[..., -1] = half[..., -1].real
    rest = np.conj(half[..., 1 : (n + 1) // 2][..., ::-1])
    return np.moveaxis(np.concatenate([half, rest], -1), -1, axis)


def draw_one(data: Any, x: np.ndarray) -> tuple[int, int | None]:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    return axis, data.draw(st.sampled_from([None, None, 1, 2, 3, 6, 8]))


@pytest.mark.usefixtures("library")
class TestTransforms:
    @given(st.data(), NAMES, SHAPES, NORMS, st.booleans())
    def test_of_complex_numbers(self, data, name, shape, norm, inverse):
        pair = data.draw(tame(name, shape))
        axis, n = draw_one(data, pair.theirs)
        n = n if shape[axis] else 3
        found = (ta.fft.ifft if inverse else ta.fft.fft)(pair.mine, n, axis, norm)
        want = dft(wide(pair.theirs), n or shape[axis], axis, norm, inverse)
        near(check(found, want.shape, complex_name(name)), want, complex_name(name), 20)

    @given(st.data(), REAL, SHAPES, NORMS)
    def test_of_real_numbers(self, data, name, shape, norm):
        pair = data.draw(tame(name, shape))
        axis, n = draw_one(data, pair.theirs)
        n = n if shape[axis] else 3
        size = n or shape[axis]
        half = (slice(None),) * (axis % len(shape)) + (slice(size // 2 + 1),)
        for function, inverse in ((ta.fft.rfft, False), (ta.fft.ihfft, True)):
            want = dft(wide(pair.theirs), size, axis, norm, inverse)[half]
            near(
                check(function(pair.mine, n, axis, norm), want.shape, complex_name(name)), want, complex_name(name), 20
            )

    @given(st.data(), NAMES, SHAPES, NORMS)
    def test_to_real_numbers(self, data, name, shape, norm):
        pair = data.draw(tame(name, shape))
        axis, n = draw_one(data, pair.theirs)
        n = n if shape[axis] > 1 else 3
        size = n or 2 * (shape[axis] - 1)
        result = "float64" if complex_name(name) == "complex128" else "float32"
        whole = extended(wide(pair.theirs), size, axis)
        for function, inverse in ((ta.fft.irfft, True), (ta.fft.hfft, False)):
            want = dft(whole, size, axis, norm, inverse).real
            near(check(function(pair.mine, n, axis, norm), want.shape, result), want, result, 20)

    @given(st.data(), NAMES, st.sampled_from([(2, 3), (3, 4), (2, 1, 5), (2, 3, 4)]), NORMS, st.booleans())
    def test_along_several_axes(self, data, name, shape, norm, inverse):
        pair = data.draw(tame(name, shape))
        axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
        given_sizes = data.draw(st.sampled_from([None, [3] * len(axes), [-1] * len(axes)]))
        sizes = [shape[axis] if given_sizes in (None, [-1] * len(axes)) else 3 for axis in axes]
        want = wide(pair.theirs)
        for axis, n in zip(axes, sizes):
            want = dft(want, n, axis, norm, inverse)
        signed = [axis - len(shape) for axis in axes]
        found = (ta.fft.ifftn if inverse else ta.fft.fftn)(pair.mine, given_sizes, signed, norm)
        near(check(found, want.shape, complex_name(name)), want, complex_name(name), 60)
        if kind_of(name) != "complex" and not inverse:
            half = [slice(None)] * len(shape)
            half[axes[-1]] = slice(sizes[-1] // 2 + 1)
            real = ta.fft.rfftn(pair.mine, given_sizes, axes, norm)
            near(wide(real), want[tuple(half)], complex_name(name), 60)
            whole = ta.fft.irfftn(real, sizes, axes, norm)
            near(wide(whole), wide(pair.theirs) if given_sizes != [3] * len(axes) else wide(whole), real_name(name), 20)

    def test_results_are_in_the_precision_of_the_operand(self):
        rng = np.random.default_rng(5)
        x = rng.standard_normal(1 << 12)
        exact = np.fft.fft(x)
        for name, room in (("float64", 1e-13), ("float32", 1e-5)):
            found = ta.fft.fft(ta.asarray(x.astype(name)))
            assert np.abs(wide(found) - exact).max() < room * 60
        assert np.abs(wide(ta.fft.fft(ta.asarray(x.astype("float32")))) - exact).max() > 1e-9


def test_no_axes_and_no_arrays():
    x = ta.asarray([[1.0, 2.0]])
    assert ta.fft.fftn(x, axes=()).tolist() == [[1, 2]]
    assert ta.fft.fftn(ta.asarray(3.0)).tolist() == 3
    assert ta.fft.fftn(x, axes=()).dtype == ta.complex64
    assert ta.fft.fft(ta.zeros((0, 4))).shape == ta.fft.fft(ta.zeros((4, 0)), axis=0).T.shape == (0, 4)
    assert ta.fft.rfft(ta.zeros((0, 4))).shape == (0, 3)
    assert ta.fft.irfft(ta.zeros((0, 3))).shape == (0, 4)
    assert ta.fft.fft(ta.zeros(0), 4).tolist() == [0] * 4


def test_operands_are_not_written_to():
    x = ta.asarray(np.arange(8.0) + 1j)
    before = x.tolist()
    ta.fft.fft(x), ta.fft.irfft(x), ta.fft.ifftn(x), ta.fft.hfft(x)
    assert x.tolist() == before
    assert ta.fft.fft(x[::-2]).tolist() == ta.fft.fft(x[::-2].copy()).tolist()


# Each line means the same in both libraries, by NumPy's positions and names.
CALLS = """
    fft.fft(x)
    fft.fft(x, 3)
    fft.fft(x, 3, 0, "ortho")
    fft.ifft(x, n=9, axis=1, norm="forward")
    fft.fftn(x)
    fft.fftn(x, (2, 3), (0, 2))
    fft.fftn(x, axes=(2, 0), norm="ortho")
    fft.fftn(x, s=(3, -1), axes=(0, 1))
    fft.ifftn(x, (2, 3), axes=(-1, -2))
    fft.fft2(x)
    fft.fft2(x, (2, 3), (0, 1), "forward")
    fft.ifft2(x)
    fft.rfft(x.real, 4, 1)
    fft.rfft2(x.real)
    fft.rfftn(x.real, (5, 3), (0, 1))
    fft.irfft(x)
    fft.irfft(x, 5, 0, "ortho")
    fft.irfft2(x)
    fft.irfftn(x)
    fft.irfftn(x, (3, 7), axes=(1, 2))
    fft.hfft(x)
    fft.hfft(x, 7, 1, "forward")
    fft.ihfft(x.real, 6, 0, "ortho")
    fft.fftshift(x)
    fft.fftshift(x, 1)
    fft.fftshift(x, axes=(0, -1))
    fft.ifftshift(x)
    fft.ifftshift(x, (2,))
    fft.fftfreq(7)
    fft.fftfreq(8, 0.3)
    fft.rfftfreq(7, d=0.1)
    fft.rfftfreq(8)
"""


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_call_gives_numpys_result(call):
    rng = np.random.default_rng(11)
    x = (rng.standard_normal((3, 5, 4)) + 1j * rng.standard_normal((3, 5, 4)))[:, ::-1]
    with ta.semantics("array-api", float="float64"):
        ours = eval(call, {"fft": ta.fft, "x": ta.asarray(x)})
    theirs = eval(call, {"fft": np.fft, "x": x})
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ta.to_numpy(ours), theirs, rtol=1e-12, atol=1e-12)


def test_a_call_that_ran_before_is_read_anew_where_it_means_something_else():
    x = ta.asarray([1, 2, 3, 4])
    assert ta.fft.fft(x, n=1).tolist() == ta.fft.fft(x, n=1).tolist() == [1]
    for wrong in (True, 1.0):
        with pytest.raises(ShapeError):
            ta.fft.fft(x, n=wrong)
        with pytest.raises((AxisError, ShapeError)):
            ta.fft.irfft(x, axis=wrong)
    for name in ("fft", "rfft", "irfft", "ihfft"):
        function = getattr(ta.fft, name)
        narrow = [function(x).dtype for _ in range(2)][1]
        with ta.semantics("numpy"):
            wide = [function(x).dtype for _ in range(2)][1]
        assert wide.itemsize == 2 * narrow.itemsize == 2 * function(x).dtype.itemsize
    first, second = ta.fft.fft(x), ta.fft.fft(ta.asarray([1, 0, 0, 0]))
    assert (first.tolist(), second.tolist()) == ([10, -2 + 2j, -2, -2 - 2j], [1, 1, 1, 1])


def test_frequencies():
    assert [ta.fft.fftfreq(n).dtype.name for n in (1, 4)] == ["float32", "float32"]
    assert ta.fft.fftfreq(10, 0.1, dtype="float64").tolist() == np.fft.fftfreq(10, 0.1).tolist()
    assert ta.fft.rfftfreq(9, 3, dtype="float64").tolist() == np.fft.rfftfreq(9, 3).tolist()
    assert ta.fft.fftfreq(3, dtype="bfloat16").tolist() == ta.asarray([0, 1 / 3, -1 / 3], dtype="bfloat16").tolist()
    assert ta.fft.fftfreq(5, np.float32(0.5), device="cpu").device == "cpu"
    for n in range(1, 9):
        assert ta.fft.ifftshift(ta.fft.fftshift(ta.arange(n))).tolist() == list(range(n))
        assert sorted(ta.fft.fftfreq(n).tolist()) == ta.fft.fftshift(ta.fft.fftfreq(n)).tolist()


def test_only_the_first_transform_imports_a_library():
    from support.processes import in_fresh_python

    code = (
        "import sys, tilearray as ta; x = ta.asarray([1.0, 2.0], device='cpu'); before = [*sys.modules]; "
        "ta.fft.fftshift(x); ta.fft.fftfreq(3, device='cpu'); between = [*sys.modules]; ta.fft.fft(x); "
        "print([[name for name in ('tilearray.fft', 'numpy.fft', 'scipy.fft') if name in them] "
        "for them in (before, between)], any(n in sys.modules for n in ('numpy.fft', 'scipy.fft')))"
    )
    assert in_fresh_python(code).strip() == "[[], ['tilearray.fft']] True"


class EqualToAll(int):
    """A number that equals every word."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


X, Z = ta.ones((2, 3)), ta.ones((2, 3), dtype="complex64")
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: ta.fft.fft(X, 0), ShapeError, r"^fft.fft: expected at least 1 point along each axis, got sizes \(0,\); w"),
    (lambda: ta.fft.fft(X, 2.5), ShapeError, r"^fft.fft: expected n as an int, got float"),
    (lambda: ta.fft.ifft(ta.ones((2, 0))), ShapeError, r"^fft.ifft: expected at least 1 point .*write s= to pad"),
    (lambda: ta.fft.irfft(ta.ones(1)), ShapeError, r"^fft.irfft: expected at least 1 point .* got sizes \(0,\)"),
    (lambda: ta.fft.fft(X, axis=2), AxisError, r"^fft.fft: "),
    (lambda: ta.fft.fft(ta.asarray(1.0)), AxisError, r"^fft.fft: "),
    (lambda: ta.fft.fft2(ta.ones(3)), AxisError, r"^fft.fft2: "),
    (lambda: ta.fft.fft(X, norm="full"), ShapeError, r"^fft.fft: expected norm as 'backward', 'ortho' or 'forward'"),
    (lambda: ta.fft.hfft(X, norm=1), ShapeError, r"^fft.hfft: expected norm as .*got 1; write"),
    (lambda: ta.fft.irfft2(X, norm=EqualToAll(1)), ShapeError, r"^fft.irfft2: expected norm as .*got 1; write"),
    (lambda: ta.fft.fftn(X, (3,), (0, 1)), ShapeError, r"^fft.fftn: expected a size for each of 2 axes, got s=\(3,\)"),
    (lambda: ta.fft.fftn(X, (3, 0)), ShapeError, r"^fft.fftn: expected at least 1 point along each axis, got sizes"),
    (lambda: ta.fft.fftn(X, axes=(0, 0)), ShapeError, r"^fft.fftn: "),
    (lambda: ta.fft.rfftn(X, axes=()), ShapeError, r"^fft.rfftn: expected at least one axis, got none .*write"),
    (lambda: ta.fft.rfft(Z), DTypeError, r"^fft.rfft: expected a real array, got complex64; write ta.fft.fft"),
    (lambda: ta.fft.ihfft(Z), DTypeError, r"^fft.ihfft: expected a real array"),
    (lambda: ta.fft.fft(X.astype("float8_e3m4")), DTypeError, r"^fft.fft: float8_e3m4 is a storage dtype"),
    (lambda: ta.fft.fft("abc"), OperandError, r"^fft.fft: expected a tilearray Array, got str"),
    (lambda: ta.fft.fftfreq(0), ShapeError, r"^fft.fftfreq: expected n >= 1, got 0; write n=1"),
    (lambda: ta.fft.fftfreq(2.5), ShapeError, r"^fft.fftfreq: expected n as an int, got float"),
    (lambda: ta.fft.rfftfreq(3, 0), OperandError, r"^fft.rfftfreq: expected d as a real number other than 0, got 0"),
    (lambda: ta.fft.rfftfreq(3, "1"), OperandError, r"^fft.rfftfreq: expected d as .*, got str; write d=1.0"),
    (lambda: ta.fft.fftfreq(3, dtype="int8"), DTypeError, r"^fft.fftfreq: expected a float dtype, got int8; write"),
    (lambda: ta.fft.fftshift(X, 2), AxisError, r"^fft.fftshift: "),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
