"""`ta.linalg` on a device with factors of matrices: a stand-in of cuSOLVER by LAPACK checks the arguments."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from support.oracles.factors import CHECKS, DTYPES, check_errors, check_functions, check_svd, svd_kinds

import tilearray as ta
from tilearray.errors import DeviceError, ShapeError
from tilearray.functions import device_products
from tilearray.linalg import device_matrices
from tilearray.linalg.device_matrices import cheapest_splits

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")

from support.fake_cublas import FakeGpu
from support.fake_cusolver import FakeFactors

from tilearray_cuda.errors import MissingLibraryError
from tilearray_cuda.libraries import bindings, cublas, cufft, cusolver


@pytest.fixture
def gpu(elsewhere, monkeypatch):
    """A device with factors, all of whose products go through a library."""
    monkeypatch.setattr(device_products, "LARGE", 0)
    elsewhere.backend = FakeGpu()
    elsewhere.backend.factors = FakeFactors(elsewhere.backend)
    return elsewhere


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(("small", "at_once", "inverted"), [(10, 2, 256), (256, 2, 256), (256, 32, 256), (256, 2, 8)])
def test_all_functions(gpu, monkeypatch, name, small, at_once, inverted):
    """Stacks of larger matrices are loops."""
    monkeypatch.setattr(cusolver, "SMALL", small)
    monkeypatch.setattr(cusolver, "LARGE", small)
    monkeypatch.setattr(cusolver, "AT_ONCE", at_once)
    monkeypatch.setattr(cusolver, "INVERTED", inverted)
    check_functions(gpu, name, 1, 6)
    calls = set(gpu.backend.factors.library.calls)
    assert {"xpotrf", "xgetrf", "xgetrs", "xgeqrf", "xsyevd", "xgesvd", "gesvdj_batched", "xgeev"} < calls
    assert {"getrf_batched", "matinv_batched"} < calls
    assert "getri_batched" in calls or (small, at_once, inverted) != (256, 2, 256)  # few draws have the sizes between
    assert len(CHECKS) == 10


@pytest.mark.parametrize("name", ["int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_roots(gpu, name):
    """Those of a real polynomial are real if all are; zeros at the ends of the coefficients are roots, or nothing."""
    for row in ([0, 0, 1, -6, 11, -6], [2, 0, 2, 0, 0], [1, 1], [3, 0], [5], [0, 0], []):
        host = ta.asarray(np.asarray(row, name))
        found, wanted = ta.roots(host.to_device(gpu)), ta.roots(host)
        assert (found.dtype, found.shape, found.device) == (wanted.dtype, wanted.shape, gpu)
        near = np.sort_complex(ta.to_numpy(found.to_device("cpu")).astype("complex128"))
        exact = np.sort_complex(ta.to_numpy(wanted).astype("complex128"))
        np.testing.assert_allclose(near, exact, rtol=1e-5 if name != "float16" else 2e-3, atol=1e-5)
    with pytest.raises(ShapeError, match=r"roots: expected coefficients of one axis"):
        ta.roots(ta.zeros((2, 2), device=gpu))


@pytest.fixture
def nothing_from_host(gpu, monkeypatch):
    """Calls that copy to the device fail."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a copy from the host")

    return lambda: monkeypatch.setattr(gpu.backend, "from_numpy", refuse)


def test_stacks_of_small_matrices_are_one_call(gpu, monkeypatch, nothing_from_host):
    """Each waits for what the library says of the factors, after the rest is launched."""
    monkeypatch.setattr(cusolver, "AT_ONCE", 3)
    rng = np.random.default_rng(6)
    values = rng.normal(size=(3, 2, 4, 4)) + 5 * np.eye(4)
    x = ta.asarray(values, device=gpu)
    calls = gpu.backend.factors.library.calls
    nothing_from_host()
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.inv(x)), np.linalg.inv(values))
    assert calls == ["getrf_batched", "fetch", "getri_batched", "wait"]
    calls.clear()
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.det(x)), np.linalg.det(values))
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.solve(x, x)), np.eye(4) + 0 * values, atol=1e-12)
    assert calls == ["getrf_batched", "getrf_batched", "fetch", "getrs_batched", "wait"]
    calls.clear()
    whole = x @ x.mT
    exact = ta.to_numpy(whole)
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.cholesky(whole)), np.linalg.cholesky(exact))
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.eigvalsh(whole)), np.linalg.eigvalsh(exact))
    assert calls == ["potrf_batched", "xsyev_batched"]


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 5), (6, 6), (6, 4), (4, 6), (32, 32), (33, 2), (2, 33)])
@pytest.mark.parametrize("stack", [(), (1,), (2, 5)])
def test_singular_values(gpu, monkeypatch, name, shape, stack):
    """The library gets matrices of moderate size, whatever their scale, and no zeros."""
    monkeypatch.setattr(cusolver, "JACOBI_ELEMENTS", 3 * max(shape) ** 2)  # the stack is four calls
    several = stack == (2, 5)
    kinds = svd_kinds(np.random.default_rng(8), shape, name)
    for given in [np.reshape(kinds, (2, 5, *shape))] if several else [np.reshape(x, (*stack, *shape)) for x in kinds]:
        x = ta.asarray(given, device=gpu)
        check_svd(x)
        check_svd(x[..., ::-1, :].mT)
    calls = gpu.backend.factors.library.calls
    if not several or max(shape) > 32:
        assert set(calls) == {"xgesvd"}
    else:
        assert calls == ["gesvdj_batched"] * 4 * 2 * 3


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_singular_values_of_few_columns_are_those_of_their_triangular_factors(gpu, monkeypatch, name, stack):
    monkeypatch.setattr(device_matrices, "THIN_ROWS", 30)
    for given in svd_kinds(np.random.default_rng(8), (48, 3), name):
        x = ta.asarray(np.broadcast_to(given, (*stack, 48, 3)), device=gpu)
        check_svd(x)
        check_svd(x.mT)
    assert set(gpu.backend.factors.library.calls) == {
        "xgeqrf",
        "xgesvd",
        {"float32": "sorgqr", "float64": "dorgqr", "complex64": "cungqr", "complex128": "zungqr"}[name],
    }


def test_least_squares_of_many_equations(gpu, monkeypatch):
    monkeypatch.setattr(device_matrices, "THIN_ROWS", 30)
    x = np.random.default_rng(9).normal(size=200)
    columns, values = ta.asarray(np.vander(x, 4), device=gpu), ta.asarray(3 - 2 * x + x**3, device=gpu)
    np.testing.assert_allclose(ta.to_numpy(ta.linalg.lstsq(columns, values).x), [1, 0, -2, 3], atol=1e-12)
    assert gpu.backend.factors.library.calls == ["xgeqrf", "xgesvd", "dorgqr"]


def test_singular_values_are_one_launch_and_one_wait(gpu):
    x = ta.asarray(np.random.default_rng(6).normal(size=(100, 6, 4)), device=gpu)
    for call in (ta.linalg.svdvals, ta.linalg.pinv, ta.linalg.matrix_rank, ta.linalg.cond, ta.linalg.svd):
        gpu.backend.factors.library.calls.clear()
        call(x)
        assert gpu.backend.factors.library.calls == ["gesvdj_batched"]


def test_pseudo_inverses_with_limits(gpu):
    """A share for all matrices, one for each, or more shares than matrices; also negative ones, and of nothing."""
    values = np.stack([np.diag([4.0, 2.0, 1.0, 0.5])[:, :3], np.diag([9.0, 1.0, 0.0, 0.0])[:, :3]])
    x = ta.asarray(values, device=gpu)
    for rtol in (0.4, np.array([0.2, 0.7]), np.array([[0.2, 0.7], [0.4, 0.3], [0.1, 0.9]])):
        given = rtol if isinstance(rtol, float) else ta.asarray(rtol, device=gpu)
        found = ta.to_numpy(ta.linalg.pinv(x, rtol=given))
        s = np.diagonal(values, 0, -2, -1)
        counts = s > s[..., :1] * np.expand_dims(rtol, -1)
        inverses = np.divide(1, s, where=counts, out=np.zeros(counts.shape))
        np.testing.assert_allclose(np.diagonal(found, 0, -2, -1), inverses)
        assert np.count_nonzero(found) == np.count_nonzero(inverses)
        assert ta.linalg.matrix_rank(x, rtol=given).tolist() == counts.sum(-1).tolist()
    for shape in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        nothing = ta.zeros(shape, device=gpu)
        assert ta.linalg.pinv(nothing, rtol=ta.full(shape[0], 0.1, device=gpu)).shape == (shape[0], shape[2], shape[1])
        assert ta.linalg.matrix_rank(nothing).tolist() == [0] * shape[0]


def test_rotations_that_do_not_converge_give_way_to_qr_steps(gpu):
    gpu.backend.factors.library.unconverged = 5
    rng = np.random.default_rng(6)
    for shape in ((6, 4), (4, 6)):
        gpu.backend.factors.library.calls.clear()
        check_svd(ta.asarray(rng.normal(size=(3, *shape)), device=gpu))
        assert set(gpu.backend.factors.library.calls) == {"gesvdj_batched", "xgesvd"}


def test_norms_beyond_float64(gpu):
    """The largest singular value is infinite then."""
    x = ta.asarray(np.full((2, 3, 3), 1e308), device=gpu)
    u, s, _ = ta.linalg.svd(x)
    assert s[:, 0].tolist() == [np.inf] * 2
    np.testing.assert_allclose(np.abs(ta.to_numpy(u)[..., 0]), 3**-0.5)
    for bad in (np.inf, np.nan):
        x[1, 0, 0] = bad
        with pytest.raises(ta.linalg.LinAlgError, match="does not converge"):
            ta.linalg.svd(x)


def test_a_word_for_reports_is_taken_back_after_each_error(gpu, monkeypatch):
    """Of the elements, of the library, and of the copy to the host."""
    words = gpu.backend.index_errors
    x = ta.asarray(np.eye(3) + np.zeros((2, 3, 3)), device=gpu)
    bad = ta.asarray(np.full((2, 3, 3), np.nan), device=gpu)

    def fails(*_: object, **__: object) -> None:
        assert len(words.in_use) == 1
        raise KeyboardInterrupt

    for call in (ta.linalg.eigh, ta.linalg.eigvalsh, ta.linalg.eig, ta.linalg.eigvals, ta.linalg.svd, ta.linalg.pinv):
        call(x)
        with pytest.raises(ta.linalg.LinAlgError):
            call(bad)
        for owner, name in ((gpu.backend, "to_numpy"), (gpu.backend.factors, "run")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, fails)
                with pytest.raises(KeyboardInterrupt):
                    call(x)
        assert words.in_use == []


def test_each_handle_has_options_of_rotations(gpu):
    factors = gpu.backend.factors
    assert [factors._rotation(handle) for handle in (3, 4, 3)] == [500, 501, 500]


@pytest.mark.parametrize("stack", [(), (3, 2)])
@pytest.mark.parametrize("name", ["float32", "float16", "complex64"])
def test_small_matrices_are_inverted_where_they_lie(gpu, nothing_from_host, stack, name):
    """In one call, without factors, and with a copy only of another dtype or layout."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(*stack, 5, 5)) + 5 * np.eye(5)
    x = ta.astype(ta.asarray(values, device=gpu), name)
    exact = ta.to_numpy(x).astype("complex128")
    nothing_from_host()
    calls = gpu.backend.factors.library.calls
    for each, given in ((x, exact), (x.mT, np.swapaxes(exact, -1, -2)), (x[..., ::-1], exact[..., ::-1])):
        found = ta.to_numpy(ta.linalg.inv(each))
        np.testing.assert_allclose(found, np.linalg.inv(given), atol=2e-3 if name == "float16" else 1e-6)
        np.testing.assert_array_equal(ta.to_numpy(x), exact)
    assert calls == ["matinv_batched", "fetch", "wait"] * 3


@pytest.mark.parametrize("at_once", [32, 2])
def test_memory_of_what_the_library_says_lives_until_it_is_copied(gpu, monkeypatch, at_once):
    """That of many matrices is copied when it is asked for, after results are rounded into new memory."""
    monkeypatch.setattr(cusolver, "AT_ONCE", at_once)
    made: dict[int, weakref.ref[np.ndarray]] = {}
    allocate, fetch = gpu.backend.allocate, gpu.backend.factors.fetch

    def noted(nbytes, stream=None):
        buffer = allocate(nbytes, stream)
        made[buffer.pointer] = weakref.ref(buffer.memory)
        return buffer

    def late(stream, info, count):
        def read():
            assert made[info]() is not None
            return fetch(stream, info, count)()

        return read

    monkeypatch.setattr(gpu.backend, "allocate", noted)
    monkeypatch.setattr(gpu.backend.factors, "fetch", late)
    values = np.eye(4) + np.zeros((3, 4, 4))
    x = ta.astype(ta.asarray(values, device=gpu), "float16")
    for found in (ta.linalg.inv(x), ta.linalg.inv(x.mT), ta.linalg.solve(x, x)):
        np.testing.assert_array_equal(ta.to_numpy(found), values)
    with pytest.raises(np.linalg.LinAlgError):
        ta.linalg.inv(0 * x)


@pytest.mark.parametrize(("at_once", "small"), [(32, 256), (2, 256), (2, 2)])
def test_inverses_lie_as_their_operands(gpu, monkeypatch, at_once, small):
    monkeypatch.setattr(cusolver, "AT_ONCE", at_once)
    monkeypatch.setattr(cusolver, "SMALL", small)
    x = ta.asarray(np.random.default_rng(2).normal(size=(3, 4, 4)) + 3 * np.eye(4), device=gpu)
    assert ta.linalg.inv(x).strides == x.strides == (16, 4, 1)
    assert ta.linalg.inv(x.mT).strides == x.mT.strides == (16, 1, 4)
    assert ta.linalg.inv(x[:, ::-1]).strides == (16, 4, 1)


@pytest.mark.parametrize(("count", "function"), [(3, "xgetrf"), (4, "getrf_batched")])
def test_many_large_matrices_have_factors_in_one_call(gpu, monkeypatch, count, function):
    monkeypatch.setattr(cusolver, "SMALL", 4)
    monkeypatch.setattr(cusolver, "LARGE", 6)
    monkeypatch.setattr(cusolver, "AT_ONCE", 2)
    values = np.random.default_rng(3).normal(size=(count, 6, 6)) + 3 * np.eye(6)
    x, calls = ta.asarray(values, device=gpu), gpu.backend.factors.library.calls
    for call in (ta.linalg.inv, ta.linalg.det, lambda y: ta.linalg.solve(y, y[..., :2])):
        calls.clear()
        wanted = call(ta.asarray(values))
        np.testing.assert_allclose(ta.to_numpy(call(x)), ta.to_numpy(wanted), rtol=1e-8, atol=1e-9)
        assert function in calls
        assert not {"xgetrf", "getrf_batched"} - {function} & set(calls)
    ta.linalg.cholesky(x @ x.mT)
    assert "xpotrf" in calls


def test_errors_and_empty_matrices(gpu):
    check_errors(gpu)


def test_integers_keep_their_dtype_in_powers(gpu):
    x = ta.asarray([[1, 1], [1, 0]], dtype="int32", device=gpu)
    assert ta.linalg.matrix_power(x, 0).tolist() == [[1, 0], [0, 1]]
    assert ta.linalg.matrix_power(x, 0).dtype == np.dtype("int32")


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_every_semantics_computes(gpu, semantics):
    x = ta.asarray(np.array([[2.0, 1.0], [1.0, 3.0]], "float32"), device=gpu)
    with ta.semantics(semantics):
        for call in (ta.linalg.pinv, ta.linalg.cond, ta.linalg.det, ta.linalg.qr, ta.linalg.eigh, ta.linalg.inv):
            found = call(x)
            assert all(one.dtype.name == "float32" for one in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize(
    ("call", "library"),
    [
        (lambda x: ta.linalg.cholesky(x), "linalg.cholesky: cuSOLVER"),
        (lambda x: ta.linalg.inv(x), "linalg.inv: cuBLAS"),
        (lambda x: ta.fft.rfft2(x), "fft.rfft2: cuFFT"),
    ],
)
def test_without_the_extra_an_error_names_it(gpu, monkeypatch, call, library):
    def missing(name):
        raise ModuleNotFoundError("No module named 'nvmath'")

    monkeypatch.setattr(bindings.importlib, "import_module", missing)
    bindings.bindings.cache_clear()
    gpu.backend.context = 0
    gpu.backend.factors = cusolver.Factors(gpu.backend)
    gpu.backend.transforms = cufft.Transforms(gpu.backend)
    message = f"^{library} cannot be loaded: No module named 'nvmath'; write pip install 'tilearray.linalg.', or "
    for error in (ImportError, MissingLibraryError):
        with pytest.raises(error, match=message):
            call(ta.ones((2, 2), device=gpu))
    assert not cublas.Products(gpu.backend).takes(np.dtype("float32"))


def test_recordings_end_before_a_library_reads(gpu):
    x = ta.asarray(np.diag([1.0, 3.0]), device=gpu)
    with ta.lazy():
        found = ta.linalg.inv(x + 1.0) * 2.0
        again = x * 2.0
        again[0, 0] = 6.0
        values = ta.linalg.eigvalsh(again)
        singular = ta.linalg.svdvals(again * 2.0)
    np.testing.assert_allclose(found.tolist(), 2 * np.linalg.inv([[2.0, 1.0], [1.0, 4.0]]))
    assert values.tolist() == [6, 6]
    assert singular.tolist() == [12, 12]


def test_without_factors_an_error_says_what_to_write(elsewhere):
    with pytest.raises(DeviceError, match=r"write ta.linalg.inv\(x.to_device\('cpu'\)\)"):
        ta.linalg.inv(ta.ones((2, 2), device=elsewhere))


def test_products_are_split_where_they_are_cheapest():
    """Against all ways to split."""

    def cost(sizes, splits, first, last):
        if first == last:
            return 0
        at = splits[first, last]
        own = sizes[first] * sizes[at + 1] * sizes[last + 1]
        return own + cost(sizes, splits, first, at) + cost(sizes, splits, at + 1, last)

    def least(sizes):
        if len(sizes) == 2:
            return 0
        return min(
            least(sizes[: at + 1]) + least(sizes[at:]) + sizes[0] * sizes[at] * sizes[-1]
            for at in range(1, len(sizes) - 1)
        )

    rng = np.random.default_rng(4)
    for count in (2, 3, 4, 6):
        for _ in range(10):
            sizes = rng.integers(1, 20, count + 1).tolist()
            assert cost(sizes, cheapest_splits(sizes), 0, count - 1) == least(sizes)


@pytest.mark.parametrize("p", [1, -1, np.inf, "fro", 2])
def test_gradients_of_condition_numbers(gpu, p):
    """Those of the host, also where the condition is that of an inverse."""
    host = ta.asarray(np.random.default_rng(9).normal(size=(4, 4)))
    wanted = ta.grad(lambda x: ta.linalg.cond(x, p))(host)
    found = ta.grad(lambda x: ta.linalg.cond(x, p))(host.to_device(gpu))
    np.testing.assert_allclose(ta.to_numpy(found.to_device("cpu")), ta.to_numpy(wanted), rtol=1e-9)
