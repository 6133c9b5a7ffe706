"""Inverses by SciPy's LAPACK and by NumPy's: both agree with exact inverses, and report singular matrices alike."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.oracles.matrices import eliminated

import tilearray as ta
from tilearray.errors import LinAlgError
from tilearray_host import matrices

EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}


@pytest.fixture(params=["scipy", "numpy"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library that inverts, for matrices of any size."""
    if request.param == "scipy":
        pytest.importorskip("scipy.linalg")
    monkeypatch.setattr(matrices, "INVERTED", 1 if request.param == "scipy" else 10**9)
    return request.param


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Small integers with a heavy diagonal in another order of rows, so that factors must exchange rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape).astype(dtype)
    if np.iscomplexobj(x):
        x = x + 1j * rng.integers(-3, 4, shape)
    heavy = x + 9 * np.sqrt(shape[-1]) * np.eye(shape[-1])
    return heavy[..., rng.permutation(shape[-1]), :].astype(dtype)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_real_inverses_are_those_of_fractions(route, m):
    x = np.round(drawn((3, m, m), "float64", m))
    found = ta.to_numpy(ta.linalg.inv(ta.asarray(x)))
    for matrix, inverse in zip(x, found):
        rows = [[Fraction(int(value)) for value in row] for row in matrix]
        identity = [[Fraction(int(i == j)) for j in range(m)] for i in range(m)]
        exact = [[float(value) for value in row] for row in eliminated(rows, identity)[1]]
        np.testing.assert_allclose(inverse, exact, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(40, 40), (2, 3, 33, 33), (0, 40, 40), (2, 0, 0)])
def test_inverses_times_their_matrices_are_the_identity(route, dtype, shape):
    x = drawn(shape, dtype)
    for given in (
        ta.asarray(x),
        ta.asarray(np.swapaxes(x, -1, -2).copy()).mT,
        ta.asarray(x[..., ::-1].copy())[..., ::-1],
    ):
        found = ta.linalg.inv(given)
        assert (found.shape, found.dtype, found.flags.c_contiguous) == (shape, x.dtype, True)
        wide = np.complex128 if np.iscomplexobj(x) else np.float64
        product = x.astype(wide) @ ta.to_numpy(found).astype(wide)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(shape[-1]), shape), rtol=0, atol=200 * EPS[dtype])


@pytest.mark.parametrize("stack", [(), (3,)])
def test_singular_matrices_are_an_error(route, stack):
    x = np.broadcast_to(np.eye(36), (*stack, 36, 36)).copy()
    x[..., 7, 7] = 0
    with pytest.raises(LinAlgError, match=r"expected invertible matrices, got a singular one; write ta.linalg.pinv"):
        ta.linalg.inv(ta.asarray(x))


def test_nan_gives_nan(route):
    x = np.eye(34)
    x[3, 4] = np.nan
    assert np.isnan(ta.to_numpy(ta.linalg.inv(ta.asarray(x)))).any()


def test_the_operand_is_not_written(route):
    x = ta.asarray(drawn((40, 40), "float64"))
    before = x.tolist()
    ta.linalg.inv(x)
    ta.linalg.inv(x.mT)
    assert x.tolist() == before


def test_large_matrices_go_to_scipy_and_small_ones_to_numpy(monkeypatch):
    pytest.importorskip("scipy.linalg")
    sizes: list[int] = []
    inverse = matrices._inverse
    monkeypatch.setattr(matrices, "_inverse", lambda x, *rest: sizes.append(len(x)) or inverse(x, *rest))
    for m in (2, 31, 32, 33):
        ta.linalg.inv(ta.eye(m))
    assert sizes == [32, 33]
