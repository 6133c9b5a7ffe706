"""The namespace: its names, NumPy's positions, dtypes, lists, devices, imports, and what bad input raises."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.engine.backend import Fourier, LinearAlgebra, Matrices
from tilearray.errors import (
    AxisError,
    BroadcastError,
    DeviceError,
    DTypeError,
    LinAlgError,
    OperandError,
    PromotionError,
    ShapeError,
    TileArrayError,
    WriteError,
)
from tilearray_host import fourier, matrices, products

STANDARD = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
FFT = [
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]


def test_both_extensions_are_whole_and_there():
    assert len(STANDARD) == 25
    assert set(STANDARD) | {"norm", "lstsq", "cond", "multi_dot", "LinAlgError"} <= set(ta.linalg.__all__)
    assert {*FFT, "fft2", "ifft2", "rfft2", "irfft2"} == set(ta.fft.__all__)
    for module in (ta.linalg, ta.fft):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert sorted(module.__all__) == module.__all__
    assert ta.zeros(1).__array_namespace__().linalg is ta.linalg


def test_namespaces_are_modules_that_are_imported_at_first_use():
    code = (
        "import sys, tilearray as ta; there = ['tilearray.' + n in sys.modules for n in ('linalg', 'fft')]; "
        "assert hasattr(ta, 'fft'); import tilearray.linalg; from tilearray.fft import fft; "
        "from tilearray import linalg; "
        "print(there, linalg is tilearray.linalg, tilearray.linalg.norm([3.0, 4.0]).item())"
    )
    assert in_fresh_python(code).strip() == "[False, False] True 5.0"


def test_signatures_are_those_that_a_reader_expects():
    assert str(inspect.signature(ta.linalg.inv)) == "(x: Operand, /) -> Array"
    assert str(inspect.signature(ta.fft.fftfreq)).startswith("(n: int, /, d: float = 1.0, *, dtype: DTypeLike")
    assert str(inspect.signature(ta.linalg.norm)).startswith("(x: Operand, ord: ")


def test_the_error_is_also_numpys():
    assert ta.LinAlgError is ta.linalg.LinAlgError is LinAlgError
    assert issubclass(LinAlgError, (TileArrayError, np.linalg.LinAlgError))
    assert issubclass(LinAlgError, ValueError)


# Each line means the same in both libraries: functions of all names, by NumPy's positions and names.
CALLS = """
    linalg.cholesky(p)
    linalg.cholesky(p, upper=True)
    linalg.cond(s, 1)
    linalg.cond(s[0])
    linalg.cond(x, -2)
    linalg.cross(c, c[::-1])
    linalg.cross(c.T, c.T[:, ::-1], axis=0)
    linalg.det(s)
    linalg.diagonal(s)
    linalg.diagonal(x, offset=-1)
    linalg.eigh(p).eigenvalues
    linalg.eigh(p, "U")[0]
    linalg.eigvalsh(p, UPLO="U")
    linalg.inv(s)
    linalg.lstsq(x[1], c[:, 0])[0]
    linalg.lstsq(x[1], c[:, :2], rcond=1e-3)[0]
    linalg.lstsq(x[1].T, c[:, :2])[3]
    linalg.matmul(s, x.mT)
    linalg.matrix_norm(x, ord="nuc")
    linalg.matrix_norm(s, keepdims=True)
    linalg.matrix_power(s, 3)
    linalg.matrix_power(s, -2)
    linalg.matrix_rank(x)
    linalg.matrix_rank(s, 1e-3)
    linalg.matrix_rank(p, None, True)
    linalg.matrix_rank(s, rtol=1e-3)
    linalg.matrix_transpose(x)
    linalg.multi_dot([x[1], c, x[0].T, x[1]])
    linalg.multi_dot([c[0], x[1].T, x[0], c[:, 0]])
    linalg.norm(c)
    linalg.norm(c[0], 3)
    linalg.norm(c, 1)
    linalg.norm(s, "nuc", (0, 2))
    linalg.norm(s, None, (2, 0), True)
    linalg.norm(s, axis=1)
    linalg.norm(x=c, ord=2, axis=0, keepdims=True)
    linalg.outer(c[0], c[:, 1])
    linalg.pinv(x, rtol=1e-15)
    linalg.pinv(x, 1e-10)
    linalg.pinv(p, hermitian=True)
    abs(linalg.qr(x)[0])
    abs(linalg.qr(x, mode="complete").R)
    abs(linalg.qr(x, "r"))
    linalg.slogdet(s).logabsdet
    linalg.slogdet(s)[0]
    linalg.solve(s, c)
    linalg.solve(s, c[0])
    linalg.solve(s[0], s)
    linalg.svd(x).S
    abs(linalg.svd(x, False)[0])
    linalg.svd(x, compute_uv=False)
    linalg.svd(p, True, True, True)[1]
    linalg.svdvals(x)
    linalg.tensordot(s, c, axes=1)
    linalg.tensorinv(t)
    linalg.tensorinv(t.reshape(6, 3, 2), ind=1)
    linalg.tensorsolve(t, c[:2])
    linalg.tensorsolve(np.moveaxis(t, (0, 2), (2, 3)), t[0, :, 0, :2].T, axes=(2, 0))
    linalg.trace(s)
    linalg.trace(x, offset=1, dtype="float32")
    linalg.vecdot(s, c)
    linalg.vecdot(s, c, axis=-2)
    linalg.vector_norm(s)
    linalg.vector_norm(s, axis=(0, 2), ord=1, keepdims=True)
"""
RNG = np.random.default_rng(17)
DATA = {
    "c": RNG.standard_normal((3, 3)),
    "s": RNG.standard_normal((2, 3, 3))[:, ::-1],
    "x": RNG.standard_normal((2, 3, 3)).swapaxes(0, 1)[::-1].swapaxes(0, 1),
    "t": RNG.standard_normal((2, 3, 3, 2)),
}
DATA["p"] = DATA["s"] @ np.swapaxes(DATA["s"], -1, -2) + np.eye(3)


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_call_gives_numpys_result(call):
    ours = eval(call, {"linalg": ta.linalg, "np": ta, **{name: ta.asarray(value) for name, value in DATA.items()}})
    theirs = eval(call, {"linalg": np.linalg, "np": np, **DATA})
    assert (ours.shape, ours.dtype) == (np.shape(theirs), theirs.dtype)
    np.testing.assert_allclose(ta.to_numpy(ours), theirs, rtol=1e-8, atol=1e-10)


def test_the_calls_name_every_function():
    functions = {name for name in ta.linalg.__all__ if not name[0].isupper()}
    assert {name for name in functions if f"linalg.{name}(" not in CALLS} == {"eig", "eigvals"}  # see the other tests


# --- lists, dtypes, devices -------------------------------------------------------------------------------------------

ONE = {  # every function of one array, and then those of two
    **{
        name: getattr(ta.linalg, name)
        for name in ["cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv"]
    },
    **{name: getattr(ta.linalg, name) for name in ["matrix_rank", "pinv", "qr", "slogdet", "svd", "svdvals"]},
    "matrix_norm": lambda x: ta.linalg.matrix_norm(x, ord=2),
    "norm": lambda x: ta.linalg.norm(x, "nuc"),
    "matrix_power": lambda x: ta.linalg.matrix_power(x, 2),
    "tensorinv": lambda x: ta.linalg.tensorinv(x, 1),
    "lstsq": lambda x: ta.linalg.lstsq(x, x),
    "multi_dot": lambda x: ta.linalg.multi_dot([x, x]),
    "solve": lambda x: ta.linalg.solve(x, x),
    "tensorsolve": lambda x: ta.linalg.tensorsolve(x, x[0]),
}
ANYWHERE = {
    "diagonal": ta.linalg.diagonal,
    "matrix_transpose": ta.linalg.matrix_transpose,
    "trace": ta.linalg.trace,
    "outer": lambda x: ta.linalg.outer(x[0], x[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_nothing_moves_to_the_host_by_itself(name, elsewhere):
    x = ta.eye(2, device=elsewhere)
    message = (
        rf"^linalg.{name}: expected an array on the host, got one on cuda:7654321, .*write ta.linalg.{name}\(x.to_"
    )
    with pytest.raises(DeviceError, match=message):
        ONE[name](x)


@pytest.mark.parametrize("name", ANYWHERE)
def test_views_and_products_stay_where_they_are(name, elsewhere):
    assert ANYWHERE[name](ta.eye(2, device=elsewhere)).device is elsewhere
    assert ta.linalg.cross(*ta.ones((2, 3), device=elsewhere)).device is elsewhere


def test_transforms_elsewhere_are_errors(elsewhere):
    x = ta.ones((2, 2), device=elsewhere)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "fft2", "irfftn"):
        with pytest.raises(
            DeviceError, match=rf"^fft.{name}: expected an array on the host, .*write ta.fft.{name}\(x.to"
        ):
            getattr(ta.fft, name)(x)
    assert ta.fft.fftshift(x).device is ta.fft.fftfreq(3, device=elsewhere).device is elsewhere


def test_operands_of_two_devices_are_errors(elsewhere):
    x, y = ta.eye(2), ta.eye(2, device=elsewhere)
    for call in (ta.linalg.solve, ta.linalg.lstsq, lambda x, y: ta.linalg.multi_dot([x, y])):
        with pytest.raises(DeviceError):
            call(x, y)
    with pytest.raises(DeviceError):
        ta.linalg.pinv(x, rtol=ta.asarray(1e-3, device=elsewhere))


@pytest.mark.parametrize("name", [*ONE, *ANYWHERE])
def test_lists_and_ndarrays_are_operands(name):
    call, rows = {**ONE, **ANYWHERE}[name], [[2.0, 1.0], [1.0, 3.0]]
    found, of_ndarray = call(rows), call(np.array(rows))
    assert ta.linalg.cross([1, 0, 0], np.array([[0, 1, 0]])).tolist() == [[0, 0, 1]]
    for one, other in zip(found, of_ndarray) if isinstance(found, tuple) else [(found, of_ndarray)]:
        assert type(one) is type(other) is ta.Array
        np.testing.assert_allclose(ta.to_numpy(one), ta.to_numpy(other), rtol=1e-5, atol=1e-6)


def parts(found: Any) -> list[str]:
    return [one.dtype.name for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("semantics", ["array-api", "torch", "numpy"])
def test_integers_become_the_dtype_of_their_true_division(semantics):
    with ta.semantics(semantics):
        want = ta.get_semantics().true_division.name
        for name in ("int8", "uint16", "int64", "bool"):
            x = ta.asarray([[1, 0], [0, 1]], dtype=name)
            for function in ("inv", "det", "cholesky", "qr", "svd", "eigh", "norm", "pinv", "vector_norm", "cond"):
                assert set(parts(getattr(ta.linalg, function)(x))) == {want}, (function, name)
            assert ta.linalg.matrix_power(x, 3).dtype.name == name
            assert ta.linalg.matrix_power(x, -1).dtype.name == want
            assert ta.linalg.matrix_rank(x).dtype == ta.get_semantics().defaults["int"]


def test_mixed_operands_have_their_common_dtype():
    x = ta.eye(2, dtype="float32")
    assert ta.linalg.solve(x, ta.eye(2, dtype="float64")).dtype == ta.float64
    assert ta.linalg.solve(x.astype("bfloat16"), ta.eye(2, dtype="float16")).dtype == ta.float32
    assert ta.linalg.solve(x, ta.eye(2, dtype="complex64")).dtype == ta.complex64
    assert ta.linalg.multi_dot([x, ta.eye(2, dtype="int8"), x.astype("float64")]).dtype == ta.float64
    assert ta.linalg.lstsq(x, ta.ones(2, dtype="int64")).x.dtype == ta.float32


def test_read_only_operands_are_operands_and_stay_as_they_are():
    host = np.eye(3) * 2
    host.flags.writeable = False
    x = ta.asarray(host, copy=False)
    for call in ONE.values():
        call(x)
    assert np.array_equal(host, np.eye(3) * 2)


def test_products_are_written_to_a_target():
    out = ta.empty((2, 2), dtype="float64")
    assert ta.linalg.multi_dot([ta.eye(2), ta.ones((2, 2)), ta.eye(2)], out=out) is out
    assert out.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(WriteError):
        ta.linalg.multi_dot([ta.eye(2), ta.eye(2)], out=ta.broadcast_to(ta.ones(1), (2, 2)))


# --- errors -----------------------------------------------------------------------------------------------------------

M, S, V = ta.ones((2, 3)), ta.eye(2), ta.ones(3)
SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
ERRORS: list[tuple[Any, type[Exception], str]] = [
    *[(lambda name=name: getattr(ta.linalg, name)(M), ShapeError,
       rf"^linalg.{name}: expected square matrices of shape \(..., M, M\) for x, got shape \(2, 3\); write ")
      for name in SQUARE],
    *[(lambda name=name: getattr(ta.linalg, name)(V), ShapeError,
       rf"^linalg.{name}: expected square matrices of .* \(..., M, M\) for x, got shape \(3,\); write ta.reshape\(x, ")
      for name in SQUARE],
    *[(lambda name=name: getattr(ta.linalg, name)(V), ShapeError,
       rf"^linalg.{name}: expected matrices of shape \(..., M, N\) for x, got shape \(3,\); write x\[None, :\]")
      for name in ["pinv", "qr", "svd", "svdvals", "matrix_norm", "cond", "diagonal", "trace"]],
    *[(lambda name=name: getattr(ta.linalg, name)(S.astype("float8_e3m4")), DTypeError,
       rf"^linalg.{name}: float8_e3m4 is a storage dtype") for name in [*SQUARE, "pinv", "norm", "qr"]],
    *[(lambda name=name: getattr(ta.linalg, name)(S * ta.nan), LinAlgError,
       rf"^linalg.{name}: expected finite elements, got inf or NaN; write ta.nan") for name in ("eig", "eigvals")],
    *[(lambda name=name: getattr(ta.linalg, name)(S * ta.nan), LinAlgError,
       rf"^linalg.{name}: the iteration does not converge; write") for name in ("svd", "svdvals", "matrix_rank")],
    (lambda: ta.linalg.inv("abc"), OperandError, r"^linalg.inv: expected a tilearray Array, got str; write float"),
    (lambda: ta.linalg.solve(S, None), OperandError, r"^linalg.solve: expected a tilearray Array, got NoneType"),
    (lambda: ta.linalg.solve(M, M), ShapeError, r"^linalg.solve: expected square .*for x1.*write ta.linalg.lstsq"),
    (lambda: ta.linalg.solve(S, V), ShapeError, r"^linalg.solve: expected x2 of shape \(2,\) or \(..., 2, K\)"),
    (lambda: ta.linalg.solve(S, ta.asarray(1.0)), ShapeError, r"^linalg.solve: expected x2 of shape .*got \(\); write"),
    (lambda: ta.linalg.solve(ta.ones((2, 1, 1)), ta.ones((3, 1, 1))), BroadcastError, r"^linalg.solve: "),
    (lambda: ta.linalg.solve(S.astype("uint64"), S.astype("int8")), PromotionError, r"^linalg.solve: "),
    (lambda: ta.linalg.lstsq(S, V), ShapeError, r"^linalg.lstsq: expected a of shape \(M, N\) and b of .*\(2, 2\) and"),
    (lambda: ta.linalg.lstsq(S, S, rcond="x"), OperandError, r"^linalg.lstsq: expected rcond as a real number"),
    (lambda: ta.linalg.pinv(S, 1j), OperandError, r"^linalg.pinv: expected rtol as a real number or .*, got complex"),
    (lambda: ta.linalg.pinv(S, 1, rtol=1), OperandError, r"^linalg.pinv: expected rcond or rtol, got both; write"),
    (lambda: ta.linalg.pinv(S, ta.asarray(1j)), OperandError, r"^linalg.pinv: expected rtol as a real number or a"),
    (lambda: ta.linalg.matrix_rank(S, 1, rtol=1), OperandError, r"^linalg.matrix_rank: expected tol or rtol, got both"),
    (lambda: ta.linalg.lstsq(S, S, ta.ones(2)), ShapeError, r"^linalg.lstsq: expected one rcond .* shape \(2,\)"),
    *[(lambda name=name: getattr(ta.linalg, name)(ta.ones((2, 3, 3)), rtol=ta.ones(3)), BroadcastError,
       rf"^linalg.{name}: rtol: expected equal sizes, or 1, .*got 3 and 2") for name in ("pinv", "matrix_rank")],
    (lambda: ta.linalg.svd(M, hermitian=True), ShapeError, r"^linalg.svd: expected square .*write hermitian=False"),
    (lambda: ta.linalg.qr(M, "raw"), ShapeError, r"^linalg.qr: expected mode as 'reduced', 'complete' or 'r', got"),
    (lambda: ta.linalg.eigh(S, "X"), ShapeError, r"^linalg.eigh: expected UPLO as 'L' or 'U', got 'X'; write"),
    (lambda: ta.linalg.norm(ta.ones((2, 2, 2)), 2), ShapeError, r"^linalg.norm: expected one axis .* got 3 for shape"),
    (lambda: ta.linalg.norm(S, "fro", 0), ShapeError, r"^linalg.norm: expected ord as a number for vectors, got 'fro'"),
    (lambda: ta.linalg.norm(S, 3), ShapeError, r"^linalg.norm: expected ord for matrices as 'fro', .* got 3; write"),
    (lambda: ta.linalg.norm(S, axis=2), AxisError, r"^linalg.norm: "),
    (lambda: ta.linalg.norm(S, 2, (0, 0)), ShapeError, r"^linalg.norm: "),
    (lambda: ta.linalg.norm(ta.ones(0), -math.inf), ShapeError, r"^linalg.norm: expected at least one element for"),
    (lambda: ta.linalg.matrix_norm(ta.ones((0, 2)), ord=-2), ShapeError, r"^linalg.matrix_norm: expected at least"),
    (lambda: ta.linalg.vector_norm(V, ord="fro"), ShapeError, r"^linalg.vector_norm: expected ord as a number"),
    (lambda: ta.linalg.cond(ta.ones((0, 2))), ShapeError, r"^linalg.cond: expected matrices of at least one element"),
    (lambda: ta.linalg.cond(M, 1), ShapeError, r"^linalg.cond: expected square .*write p=2"),
    (lambda: ta.linalg.cond(M, 7), ShapeError, r"^linalg.cond: expected p as 'fro', .* got 7; write p=2"),
    (lambda: ta.linalg.matrix_power(S, 1.5), ShapeError, r"^linalg.matrix_power: expected n as an int, got float"),
    (lambda: ta.linalg.matrix_power(M, 2), ShapeError, r"^linalg.matrix_power: expected square matrices"),
    (lambda: ta.linalg.multi_dot([S]), ShapeError, r"^linalg.multi_dot: expected at least two arrays, got 1; write"),
    (lambda: ta.linalg.multi_dot([S, V]), ShapeError, r"^linalg.multi_dot: expected matrices whose rows fit .* \(2, 2"),
    (lambda: ta.linalg.multi_dot([S, ta.ones(2), S]), ShapeError, r"^linalg.multi_dot: expected matrices .*write ta"),
    (lambda: ta.linalg.outer(S, V), ShapeError, r"^linalg.outer: expected 1-d x1, got shape \(2, 2\); write"),
    (lambda: ta.linalg.cross(S, S), ShapeError, r"^linalg.cross: expected vectors of 3 elements along axis -1"),
    (lambda: ta.linalg.tensorinv(M), ShapeError, r"^linalg.tensorinv: expected equal products of .* got ind=2 for"),
    (lambda: ta.linalg.tensorinv(S, 0), ShapeError, r"^linalg.tensorinv: expected equal products of .* got ind=0"),
    (lambda: ta.linalg.tensorsolve(M, V), ShapeError, r"^linalg.tensorsolve: expected a of shape b.shape \+ x.shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error
    assert caught.value.__cause__ is None


# --- the place for a GPU ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "part"), [(Matrices, matrices), (Fourier, fourier), (LinearAlgebra, products)])
def test_the_host_has_every_function_of_the_protocol(protocol, part):
    wanted = {name: value for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"}
    assert len(wanted) >= 3
    for name, method in wanted.items():
        parameters = list(inspect.signature(method).parameters)
        assert parameters[1:] == list(inspect.signature(getattr(part, name)).parameters), name


@pytest.mark.parametrize("semantics", ["array-api", "triton", "cutile", "torch", "numpy"])
def test_every_semantics_computes(semantics):
    with ta.semantics(semantics):
        x = ta.asarray([[2.0, 1.0], [1.0, 3.0]], dtype="float32")
        for call in ONE.values():
            call(x)
        for name in {*FFT} - {"fftfreq", "rfftfreq"}:
            getattr(ta.fft, name)(x)
        assert ta.fft.fftfreq(4).dtype == ta.get_semantics().defaults["float"]
