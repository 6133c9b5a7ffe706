"""Kernels of small matrices that count the places of elements, on an emulated GPU whose cuSOLVER is LAPACK."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]


def _with_lapack() -> Any:
    """Return an emulated GPU whose cuSOLVER is LAPACK."""
    pytest.importorskip("scipy", reason="SciPy is not installed")
    from support.fake_cusolver import FakeFactors
    from support.interpreter.emulated_gpu import emulated_device

    device = emulated_device()
    device.backend.factors = FakeFactors(device.backend)
    return device


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "complex64"])
def test_triangles(process, name):
    process.pool.submit(_triangles, name).result()


def _triangles(name: str) -> None:
    """Of dense matrices in one launch; of others, and of followed ones, as on the host."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    rng = np.random.default_rng(2)
    for shape in ((5, 7), (7, 5), (3, 4, 6), (2, 3, 1, 1)):
        host = 2.0 ** rng.integers(0, 1 if name == "bool" else 4, shape).astype("float32")
        wide = ta.asarray(host, device=device)
        x = (wide > 0) if name == "bool" else wide.astype(name)
        views = [(x, host, 1), (x.mT, np.swapaxes(host, -1, -2), 3), (x[..., ::2], host[..., ::2], 3)]
        for given, exact, most in views:
            for k in (0, 1, -1, 3, -9, 10**12):
                for function in ("tril", "triu"):
                    launches = device.backend.launches
                    found = getattr(ta, function)(given, k)
                    assert device.backend.launches - launches <= most
                    assert found.dtype == x.dtype
                    wanted = ta.to_numpy(getattr(ta, function)(ta.asarray(exact, device="cpu").astype(name), k))
                    np.testing.assert_array_equal(ta.to_numpy(found).astype("complex64"), wanted.astype("complex64"))


@pytest.mark.parametrize("name", ["float32", "complex128"])
@pytest.mark.parametrize("at_once", [0, 32])
def test_inverses_and_solutions(process, name, at_once):
    process.pool.submit(_inverses, name, at_once).result()


def _inverses(name: str, at_once: int) -> None:
    """The addresses of matrices and of right sides are written by one launch; inverses lie as their operands."""
    device = _with_lapack()
    from unittest import mock

    import tilearray as ta
    from tilearray_cuda.libraries import cusolver

    rng = np.random.default_rng(3)
    near = 1e-4 if name == "float32" else 1e-12
    for shape in ((4, 4), (1, 1), (7, 3, 3), (2, 3, 2, 2)):
        host = (rng.normal(size=shape) + 3 * np.eye(shape[-1]) + (0.5j if name.startswith("c") else 0)).astype(name)
        x, right = ta.asarray(host, device=device), rng.normal(size=(*shape[:-1], 2)).astype(name)
        b = ta.asarray(right, device=device)
        with mock.patch.object(cusolver, "AT_ONCE", at_once):
            launches = device.backend.launches
            found = ta.linalg.inv(x)
            assert device.backend.launches - launches == (1 if at_once else 2)
            assert found.strides == x.strides
            np.testing.assert_allclose(ta.to_numpy(found), np.linalg.inv(host), rtol=near, atol=near)
            np.testing.assert_allclose(
                ta.to_numpy(ta.linalg.inv(x.mT)), np.linalg.inv(np.swapaxes(host, -1, -2)), rtol=near, atol=near
            )
        launches = device.backend.launches
        found = ta.linalg.solve(x, b)
        assert device.backend.launches - launches == (3 if len(shape) > 2 else 2)
        np.testing.assert_allclose(ta.to_numpy(found), np.linalg.solve(host, right), rtol=near, atol=near)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_singular_values(process, name):
    process.pool.submit(_singular_values, name).result()


def _singular_values(name: str) -> None:
    """Three launches, for norms, multiples and values; U times S is exact where the library is, of all scales."""
    device = _with_lapack()
    import tilearray as ta

    rng = np.random.default_rng(3)
    limits = np.finfo(name)
    scales = np.array([1, limits.tiny, limits.max / 64, 0, -(2.0**-9)])
    x = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]], name)
    wanted = np.array([[0.5, 0.0, 0.0], [0.0, 0.0, 0.25]], name)
    np.testing.assert_array_equal(ta.to_numpy(ta.linalg.pinv(ta.asarray(x, device=device))), wanted)
    for shape in ((3, 3), (5, 3), (3, 5), (5, 2, 2), (5, 1, 4)):
        values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if name[0] == "c" else 0)
        for scale in scales if len(shape) == 2 else [scales[:, None, None]]:
            host = (values * scale).astype(name)
            x = ta.asarray(host, device=device)
            exact = host.astype("complex128" if name[0] == "c" else "float64")
            for given, right in ((x, exact), (x.mT, exact.swapaxes(-1, -2)), (x[..., ::-1], exact[..., ::-1])):
                launches = device.backend.launches
                found = ta.linalg.svdvals(given)
                assert device.backend.launches - launches <= 3 + (name == "float16")
                wanted = np.linalg.svd(right, compute_uv=False)
                near = 1e2 * limits.eps * (wanted[..., :1] + limits.tiny)
                assert (np.abs(ta.to_numpy(found) - wanted) <= near).all()
                u, s, vh = ta.linalg.svd(given, full_matrices=False)
                product = (ta.to_numpy(u).astype(exact.dtype) * ta.to_numpy(s)[..., None, :]) @ ta.to_numpy(vh)
                assert (np.abs(product - right) <= near[..., None]).all()


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128", "int32"])
def test_eigenvalues(process, name):
    process.pool.submit(_eigenvalues, name).result()


def _eigenvalues(name: str) -> None:
    """One launch, which reads one triangle and reports inf and NaN in it, in matrices of any layout."""
    device = _with_lapack()
    import tilearray as ta

    rng = np.random.default_rng(3)
    near = {"float16": 1e-2, "float64": 1e-12, "complex128": 1e-12}.get(name, 1e-4)
    more = {"float16": 2, "int32": 1}.get(name, 0)  # casts of results, or of the operand
    for shape in ((1, 1), (3, 3), (5, 4, 4), (2, 3, 2, 2), (70, 70), (2, 40, 40), (0, 3, 3)):
        values = 4 * rng.normal(size=shape) + (1j * rng.normal(size=shape) if name[0] == "c" else 0)
        host = values.astype(name)
        for view in (lambda x: x, lambda x: x.swapaxes(-1, -2), lambda x: x[..., ::-1, :]):
            x, exact = view(ta.asarray(host, device=device)), view(host)
            for side, kept in (("L", np.tril), ("U", np.triu)):
                half = kept(exact, -1 if side == "L" else 1)
                whole = half + np.conj(half.swapaxes(-1, -2)) + np.eye(shape[-1]) * exact.real
                launches = device.backend.launches
                w, v = ta.linalg.eigh(x, UPLO=side)
                assert device.backend.launches - launches <= 1 + (len(shape) > 3) + more
                scale = np.abs(whole).max(initial=1) * shape[-1]
                np.testing.assert_allclose(ta.to_numpy(w), np.linalg.eigvalsh(whole), atol=near * scale)
                w, v = ta.to_numpy(w).astype("float64"), ta.to_numpy(v).astype("complex128")
                np.testing.assert_allclose(whole @ v, v * w[..., None, :], atol=near * scale)
            launches = device.backend.launches
            found = ta.linalg.eigvals(x)
            assert device.backend.launches - launches <= 1 + (len(shape) > 3) + (name == "int32")
            wanted = np.trace(exact.astype("complex128"), axis1=-2, axis2=-1)
            np.testing.assert_allclose(ta.to_numpy(found).sum(-1), wanted, atol=near * 4 * shape[-1])


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_reports_of_inf_and_nan(process, name):
    process.pool.submit(_reports, name).result()


def _reports(name: str) -> None:
    """Wherever they are in what is read, also in the imaginary part; words for reports are taken back."""
    device = _with_lapack()
    import tilearray as ta

    bads = [np.inf, -np.inf, np.nan] + [complex(1, np.nan), complex(1, -np.inf)] * (name[0] == "c")
    for shape in ((3, 3), (4, 2, 2), (33, 33)):
        places = [(0, 0), (shape[-1] - 1, 0), (0, shape[-1] - 1), (1, 1)]
        for bad, (row, column) in itertools.product(bads, places):
            host = (np.zeros(shape) + np.eye(shape[-1])).astype(name)
            np.reshape(host, (-1, *shape[-2:]))[-1, row, column] = bad
            x = ta.asarray(host, device=device)
            for side, is_read in (("L", row >= column), ("U", row <= column)):
                for call in (ta.linalg.eigh, ta.linalg.eigvalsh):
                    for given, part in ((x, side), (x.mT, "LU"[side == "L"])):
                        if is_read:
                            with pytest.raises(ta.linalg.LinAlgError, match="iteration does not converge"):
                                call(given, UPLO=part)
                        else:
                            found = call(given, UPLO=part)
                            values = found if call is ta.linalg.eigvalsh else found[0]
                            np.testing.assert_allclose(ta.to_numpy(values), np.ones(shape[:-1]))
            for call in (ta.linalg.eig, ta.linalg.eigvals):
                with pytest.raises(ta.linalg.LinAlgError, match="got inf or NaN"):
                    call(x)
            for call in (ta.linalg.svd, ta.linalg.svdvals, ta.linalg.pinv):
                with pytest.raises(ta.linalg.LinAlgError, match="does not converge"):
                    call(x)
    assert len(device.backend.index_errors._memory) == 1


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_determinants(process, name):
    process.pool.submit(_determinants, name).result()


def _determinants(name: str) -> None:
    """Rows that were exchanged change the sign, in stacks with pivots of 32 bits and in matrices with 64."""
    device = _with_lapack()
    import tilearray as ta

    rng = np.random.default_rng(3)
    for shape in ((4, 4), (1, 1), (5, 3, 3), (2, 3, 2, 2)):
        host = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if name.startswith("c") else 0)).astype(name)
        x = ta.asarray(host, device=device)
        near = 1e-4 if name in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(ta.to_numpy(ta.linalg.det(x)), np.linalg.det(host), rtol=near)
        for found, wanted in zip(ta.linalg.slogdet(x), np.linalg.slogdet(host)):
            np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=near, atol=near)
        positive = host @ np.conj(np.swapaxes(host, -1, -2)) + 3 * np.eye(shape[-1], dtype=name)
        for upper in (False, True):
            found = ta.to_numpy(ta.linalg.cholesky(ta.asarray(positive, device=device), upper=upper))
            wanted = np.linalg.cholesky(positive)
            wanted = np.conj(np.swapaxes(wanted, -1, -2)) if upper else wanted
            np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "complex64", "int32"])
def test_cross_products(process, name):
    process.pool.submit(_cross_products, name).result()


def _cross_products(name: str) -> None:
    """Of dense arrays of floats in one launch; the bits of real numbers are those of the host."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    rng = np.random.default_rng(4)
    for shape in ((1, 3), (7, 3), (2, 5, 3), (0, 3)):
        hosts = [rng.normal(size=shape) + (1j * rng.normal(size=shape) if name == "complex64" else 0) for _ in range(2)]
        x, y = (ta.asarray(each * 9, device="cpu").astype(name) for each in hosts)
        a, b = x.to_device(device), y.to_device(device)
        for mine, theirs, most in (
            ((a, b), (x, y), 20 if name == "int32" else 1),
            ((a[::-1], b), (x[::-1], y), 20),
            ((a, b[:1]), (x, y[:1]), 20),
        ):
            launches = device.backend.launches
            found, wanted = ta.cross(*mine), ta.cross(*theirs)
            assert device.backend.launches - launches <= most
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            near = 1e-5 if name == "complex64" else 0
            found, wanted = (ta.to_numpy(each).astype("complex128") for each in (found, wanted))
            np.testing.assert_allclose(found, wanted, rtol=near, atol=near * 100)


@pytest.mark.parametrize("name", ["bool", "uint8", "bfloat16", "float64", "complex64"])
def test_rolls(process, name):
    process.pool.submit(_rolls, name).result()


def _rolls(name: str) -> None:
    """Of dense arrays in one launch, along any number of axes."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    rng = np.random.default_rng(4)
    for shape in ((7,), (1, 5), (3, 4), (2, 3, 5), (0, 3)):
        x = ta.asarray(rng.integers(0, 2 if name == "bool" else 90, shape), device="cpu").astype(name)
        y = x.to_device(device)
        axes = tuple(range(len(shape)))
        for shift, axis in ((1, None), (-3, 0), (10**12, -1), (tuple(2 + a for a in axes), axes), (1, axes[::-1])):
            for given, exact, most in ((y, x, 1), (y[..., ::-1], x[..., ::-1], 8)):
                launches = device.backend.launches
                found, wanted = ta.roll(given, shift, axis), ta.roll(exact, shift, axis)
                assert device.backend.launches - launches <= most + (axis is None and most > 1)
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
                assert found.tolist() == wanted.tolist()
        assert ta.fft.fftshift(y).tolist() == ta.fft.fftshift(x).tolist()
        assert ta.fft.ifftshift(y).tolist() == ta.fft.ifftshift(x).tolist()


@pytest.mark.parametrize("name", ["bool", "float8_e5m2", "bfloat16", "float32", "complex64", "complex128"])
def test_joins(process, name):
    process.pool.submit(_joins, name).result()


def _joins(name: str) -> None:
    """Of few dense arrays of at most 8 bytes an element in one launch, of all others in one for each array."""
    from unittest import mock

    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.functions import joining

    device = emulated_device()
    rng = np.random.default_rng(6)

    def arrays(*shapes: tuple[int, ...]) -> list[Any]:
        found = [rng.integers(0, 2 if name == "bool" else 50, shape) for shape in shapes]
        return [ta.asarray(each, device="cpu").astype(name) for each in found]

    in_one = name != "complex128"
    cases = [
        (ta.concat, arrays((7,), (1,), (5,)), 0, in_one),
        (ta.concat, arrays((3, 4), (2, 4)), 0, in_one),
        (ta.concat, arrays((3, 4), (3, 1), (3, 6)), 1, in_one),
        (ta.concat, arrays((2, 2, 3), (2, 4, 3)), -2, in_one),
        (ta.concat, arrays((3, 1), (3, 4), (3, 2), (3, 1), (3, 5)), 1, in_one),
        (ta.concat, arrays(*[(3,)] * 8), 0, in_one),
        (ta.concat, arrays(*[(3,)] * 9), 0, False),
        (ta.concat, arrays((70000,), (2,)), 0, False),
        (ta.concat, arrays((4,), (0,), (4,)), 0, False),
        (ta.concat, [each.T for each in arrays((3, 4), (3, 5))], 0, False),
        (ta.stack, arrays((4,), (4,)), 0, in_one),
        (ta.stack, arrays((4,), (4,), (4,)), 1, in_one),
        (ta.stack, arrays(*[(2, 3)] * 4), -2, in_one),
        (ta.stack, arrays((), (), ()), 0, in_one),
        (ta.stack, [each[::2] for each in arrays((8,), (8,))], 0, False),
    ]
    for function, exact, axis, one in cases:
        wanted = function(exact, axis=axis)
        for shift in (0, 1, 0):  # the second time elsewhere in memory, where no vectors begin
            given = [_elsewhere(each, device, shift) for each in exact]
            launches = device.backend.launches
            with mock.patch.object(joining, "FEW_JOINED", 2**16):
                found = function(given, axis=axis)
            count = sum(each.size > 0 for each in exact)
            launches = device.backend.launches - launches
            assert launches == (1 if one else count), (function.__name__, [each.shape for each in given], launches)
            assert (found.dtype, found.shape, found.device) == (wanted.dtype, wanted.shape, device)
            assert found.tolist() == wanted.tolist()


def _elsewhere(x: Any, device: Any, shift: int) -> Any:
    """Return an array on a device with the elements and the strides of another one, that begins after some elements."""
    import tilearray as ta

    memory = ta.empty(shift + x._signature.layout.high + 1, dtype=x.dtype, device=device)
    found = ta.as_strided(memory[shift:], x.shape, x.strides)
    found[...] = x.to_device(device)
    return found


@pytest.mark.parametrize("name", ["bool", "int8", "bfloat16", "float8_e8m0fnu", "float64", "complex64"])
def test_ones_on_a_diagonal(process, name):
    process.pool.submit(_ones, name).result()


def _ones(name: str) -> None:
    """In one launch, if they lie in C order."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    for sizes in ((4, None), (3, 5), (5, 2), (1, 1), (0, 3)):
        for k in (0, 1, -2, 9, -(10**12)):
            for order, most in (("C", 1), ("F", 2)):
                launches = device.backend.launches
                found = ta.eye(*sizes, k=k, dtype=name, order=order, device=device)
                assert device.backend.launches - launches <= most
                wanted = ta.to_numpy(ta.eye(*sizes, k=k, dtype=name, device="cpu")).astype("complex64")
                np.testing.assert_array_equal(ta.to_numpy(found).astype("complex64"), wanted)
