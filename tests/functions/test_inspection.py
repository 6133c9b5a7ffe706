"""The array API standard's namespace: what it says about itself, its devices, and NumPy's functions that come to it."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.devices import CPU
from tilearray.errors import DeviceError, DTypeError, OperandError

# --- the namespace -------------------------------

X = ta.asarray([[1.0, 2.0], [3.0, 4.0]])


def test_an_array_names_its_namespace():
    assert X.__array_namespace__() is ta
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert X.__array_namespace__(api_version=version) is ta
    assert (ta.__array_api_version__, ta.__name__) == ("2025.12", "tilearray")
    with pytest.raises(OperandError, match=r"__array_namespace__: expected a version .*, got '2020\.01'; write"):
        X.__array_namespace__(api_version="2020.01")
    with pytest.raises(TypeError):
        X.__array_namespace__("2025.12")


def test_constants():
    assert (ta.e, ta.pi, ta.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(ta.nan)
    assert ta.newaxis is None


def test_the_namespace_reports_capabilities_and_devices():
    info = ta.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.devices() == ta.devices()
    assert info.devices() + [None] == [*ta.devices(), None]  # noqa: RUF005 (SciPy's tests write it)
    assert info.devices() + (None,) == (*ta.devices(), None)  # noqa: RUF005
    assert info.default_device() is CPU
    for device in info.devices():
        assert ta.zeros(1, device=device).device is device
    assert ta.ones((1,) * 64).ndim == 64


def test_default_dtypes_are_those_in_force():
    info = ta.__array_namespace_info__()
    want = {"real floating": "float32", "complex floating": "complex64", "integral": "int64", "indexing": "int64"}
    assert {kind: dtype.name for kind, dtype in info.default_dtypes().items()} == want
    assert info.default_dtypes(device="cpu") == info.default_dtypes()
    assert ta.asarray(1).dtype == info.default_dtypes()["integral"]
    assert ta.asarray(1.0).dtype == info.default_dtypes()["real floating"]
    assert ta.asarray(1j).dtype == info.default_dtypes()["complex floating"]
    assert ta.argmax(X).dtype == info.default_dtypes()["indexing"]
    with ta.semantics("triton"):
        assert info.default_dtypes()["integral"] == ta.asarray(1).dtype == ta.int32


KINDS = {
    "bool": {"bool"},
    "signed integer": {"int8", "int16", "int32", "int64"},
    "unsigned integer": {"uint8", "uint16", "uint32", "uint64"},
    "real floating": {"float32", "float64"},
    "complex floating": {"complex64", "complex128"},
}
KINDS["integral"] = KINDS["signed integer"] | KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] | KINDS["real floating"] | KINDS["complex floating"]


def test_dtypes_by_kind():
    info = ta.__array_namespace_info__()
    for kind, names in KINDS.items():
        found = info.dtypes(kind=kind, device="cpu")
        assert set(found) == names
        assert all(dtype is getattr(ta, name) for name, dtype in found.items())
    assert set(info.dtypes()) == KINDS["numeric"] | {"bool"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.dtypes(kind=()) == {}
    with pytest.raises(DTypeError, match=r"dtypes: expected a kind, got 'float'; write one of bool, signed integer"):
        info.dtypes(kind="float")
    with pytest.raises(DeviceError, match=r"dtypes: 'tpu' is not a device"):
        info.dtypes(device="tpu")
    with pytest.raises(DeviceError, match=r"default_dtypes: 'tpu' is not a device"):
        info.default_dtypes(device="tpu")


def test_array_api_compat_knows_it():
    compat = pytest.importorskip("array_api_compat")
    assert compat.array_namespace(X, ta.ones(3)) is ta
    assert compat.is_array_api_obj(X)
    assert not compat.is_numpy_array(X)
    assert compat.device(X) is CPU
    assert compat.to_device(X, "cpu") is X
    assert compat.size(X) == 4


def test_operands_and_options_are_where_the_standard_has_them():
    kinds = inspect.Parameter
    for function in (ta.add, ta.where, ta.sin, ta.sum, ta.matmul, ta.take):
        parameters = list(inspect.signature(function).parameters.values())
        assert parameters[0].kind == kinds.POSITIONAL_ONLY, function.__name__
    kinds_of_where = [one.kind for one in inspect.signature(ta.where).parameters.values()]
    assert kinds_of_where == [kinds.POSITIONAL_ONLY] * 3 + [kinds.KEYWORD_ONLY]
    assert str(inspect.signature(ta.maximum)).startswith("(x1: Operand, x2: Operand, /, out: Array | None = None, *,")
    with pytest.raises(TypeError):
        ta.add(x1=X, x2=X)


# --- what has no kernel yet -------------------------------

HOST_ONLY = {
    "searchsorted": lambda x: ta.searchsorted(x, 1),
    "sort": lambda x: ta.sort(x),
    "argsort": lambda x: ta.argsort(x),
    "unique_all": lambda x: ta.unique_all(x),
    "unique_counts": lambda x: ta.unique_counts(x),
    "unique_inverse": lambda x: ta.unique_inverse(x),
    "unique_values": lambda x: ta.unique_values(x),
    "isin": lambda x: ta.isin(x, x),
}


@pytest.mark.parametrize("name", HOST_ONLY)
def test_nothing_moves_to_the_host_by_itself(name, elsewhere):
    x = ta.full((3,), 2, device=elsewhere)
    message = (
        rf"{name}: expected an array on the host, got one on cuda:7654321, .* write ta.{name}\(x.to_device\('cpu'\)\)"
    )
    with pytest.raises(DeviceError, match=message):
        HOST_ONLY[name](x)


PRODUCTS = {
    "matmul": lambda x: x @ x,
    "tensordot": lambda x: ta.tensordot(x, x, axes=1),
    "einsum": lambda x: ta.einsum("i,i->", x, x),
    "dot": lambda x: ta.dot(x, x),
    "inner": lambda x: ta.inner(x, x),
    "matvec": lambda x: ta.matvec(x[None], x)[0],
    "vecmat": lambda x: ta.vecmat(x, x[:, None])[0],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_run_where_the_array_is(name, elsewhere, monkeypatch):
    x = ta.full((3,), 2, device=elsewhere)
    copied = []
    monkeypatch.setattr(type(elsewhere.backend), "to_numpy", lambda *_: copied.append(name))
    found = PRODUCTS[name](x)
    assert (found.device, found.shape, copied) == (elsewhere, (), [])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "all", "any", "count_nonzero", "argmax"])
def test_reductions_run_where_the_array_is(name, elsewhere, monkeypatch):
    x = ta.reshape(ta.arange(6, device=elsewhere), (2, 3))
    copied = []
    monkeypatch.setattr(type(elsewhere.backend), "to_numpy", lambda *_: copied.append(name))
    found = getattr(ta, name)(x, axis=1)
    assert (found.device, found.shape, copied) == (elsewhere, (2,), [])


def test_views_and_differences_are_made_where_the_array_is(elsewhere):
    x = ta.full((2, 3), 2, device=elsewhere)
    made = (*ta.unstack(x), ta.matrix_transpose(x), ta.diff(x), ta.diag(x[0]), ta.diag(x))
    made = (*made, ta.outer(x, x), ta.kron(x, x), ta.cross(x, x))
    assert {one.device for one in made} == {elsewhere}


def test_capabilities_are_those_of_all_devices(elsewhere):
    ta.set_default_device(elsewhere)
    try:
        info = ta.__array_namespace_info__()
        assert info.default_device() is elsewhere
        assert info.capabilities()["data-dependent shapes"] is True
    finally:
        ta.set_default_device(None)


# --- NumPy's functions -------------------------------

A = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], np.float32)
CALLS = {
    "all": lambda f, x: f(x, 0),
    "amax": lambda f, x: f(x, axis=1, keepdims=True),
    "amin": lambda f, x: f(x, 1),
    "any": lambda f, x: f(x, axis=(0, 1)),
    "argmax": lambda f, x: f(x, 1),
    "argmin": lambda f, x: f(x),
    "argsort": lambda f, x: f(x, 0, kind="stable"),
    "astype": lambda f, x: f(x, "int16"),
    "broadcast_to": lambda f, x: f(x, (2, 2, 3)),
    "clip": lambda f, x: f(x, 1, 3),
    "concatenate": lambda f, x: f([x, x], 1),
    "copy": lambda f, x: f(x),
    "count_nonzero": lambda f, x: f(x, axis=1),
    "cumprod": lambda f, x: f(x, 1),
    "cumsum": lambda f, x: f(x, axis=0, dtype="float64"),
    "cumulative_prod": lambda f, x: f(x, axis=1),
    "cumulative_sum": lambda f, x: f(x, axis=1, include_initial=True),
    "diagonal": lambda f, x: f(x, 1),
    "diff": lambda f, x: f(x, 1, 0),
    "einsum": lambda f, x: f("ij,ij->i", x, x, optimize=True),
    "expand_dims": lambda f, x: f(x, (0, 2)),
    "flip": lambda f, x: f(x, 1),
    "full_like": lambda f, x: f(x, 7, "int8"),
    "imag": lambda f, x: f(x * 1j),
    "iscomplexobj": lambda f, x: f(x),
    "isin": lambda f, x: f(x, x[0], invert=True),
    "matmul": lambda f, x: f(x, x.T),
    "matrix_transpose": lambda f, x: f(x),
    "max": lambda f, x: f(x),
    "mean": lambda f, x: f(x, 0),
    "min": lambda f, x: f(x, axis=0),
    "moveaxis": lambda f, x: f(x, 0, -1),
    "ndim": lambda f, x: f(x),
    "ones_like": lambda f, x: f(x),
    "permute_dims": lambda f, x: f(x, (1, 0)),
    "prod": lambda f, x: f(x, 0, None, None, True),
    "real": lambda f, x: f(x),
    "repeat": lambda f, x: f(x, 2, 1),
    "reshape": lambda f, x: f(x, (3, -1)),
    "roll": lambda f, x: f(x, 1, 0),
    "searchsorted": lambda f, x: f(x[0, 1:], x[1], "right"),
    "shape": lambda f, x: f(x),
    "size": lambda f, x: f(x, 1),
    "sort": lambda f, x: f(x),
    "squeeze": lambda f, x: f(x[None], 0),
    "stack": lambda f, x: f((x, x), axis=1),
    "std": lambda f, x: f(x, 1, ddof=1),
    "sum": lambda f, x: f(x, (0, 1), "float64", keepdims=True),
    "take": lambda f, x: f(x, [2, 0], 1),
    "tensordot": lambda f, x: f(x, x.T, 1),
    "tile": lambda f, x: f(x, (2, 1)),
    "transpose": lambda f, x: f(x),
    "tril": lambda f, x: f(x, 1),
    "triu": lambda f, x: f(x),
    "unique_values": lambda f, x: f(x),
    "var": lambda f, x: f(x, axis=0, correction=1),
    "vecdot": lambda f, x: f(x, x),
    "where": lambda f, x: f(x > 1, x, 0),
    "zeros_like": lambda f, x: f(x, dtype="bool"),
}


@pytest.mark.parametrize("name", [name for name in CALLS if hasattr(np, name)])
def test_numpys_functions_give_arrays_like_numpys(name):
    function = getattr(np, name)
    want, found = CALLS[name](function, A), CALLS[name](function, ta.asarray(A))
    if isinstance(want, (int, tuple)):
        assert found == want
        return
    assert isinstance(found, ta.Array)
    assert found.shape == np.shape(want)
    assert np.allclose(ta.to_numpy(found), want, rtol=1e-6)


def test_numpys_functions_of_several_results():
    x = ta.asarray([3, 1, 3])
    assert np.unique_counts(x).counts.tolist() == [1, 2]
    assert [one.tolist() for one in np.nonzero(x > 1)] == [one.tolist() for one in np.where(x > 1)] == [[0, 2]]
    assert [one.shape for one in np.broadcast_arrays(x, x[:, None])] == [(3, 3)] * 2
    assert [one.tolist() for one in np.meshgrid(x[:2], x[:1], indexing="ij")] == [[[3], [1]], [[3], [3]]]
    assert np.result_type(x, x) == np.int64
    assert np.empty_like(x, dtype="int8").dtype == ta.int8
    assert np.take_along_axis(x, np.argsort(x), 0).tolist() == [1, 3, 3]


def test_every_row_is_a_function_of_numpy_and_of_ours():
    from tilearray.functions.numpy_dispatch import _PARAMETERS, _RENAMED

    for name, parameters in _PARAMETERS.items():
        ours = inspect.signature(getattr(ta, _RENAMED.get(name, name)))
        assert list(ours.parameters), name
        if hasattr(np, name) and "*" not in parameters and not isinstance(getattr(np, name), np.ufunc):
            theirs = list(inspect.signature(getattr(np, name)).parameters)
            listed = [one.partition(":")[0] for one in parameters.replace("/", "").split()]
            assert listed == theirs[: len(listed)] or set(listed) <= set(theirs), name
