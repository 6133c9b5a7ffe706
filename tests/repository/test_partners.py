"""The tables of names of torch, CuPy and JAX: both columns of torch give equal values, and all names of ours exist."""

from __future__ import annotations

import importlib.util
import re
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import tilearray as ta

FILE = Path(__file__).parents[2] / "scripts" / "_partners.py"
spec = importlib.util.spec_from_file_location("_partners", FILE)
assert spec is not None
assert spec.loader is not None
partners = importlib.util.module_from_spec(spec)
spec.loader.exec_module(partners)

X = np.array([[3.0, -1.0, 0.5], [1.0, 2.0, -4.0]], dtype=np.float32)
I = np.array([[2, 0, 1], [1, 1, 0]])  # noqa: E741


def test_calls_of_torch_and_ours_give_equal_values() -> None:
    torch = pytest.importorskip("torch")
    theirs = {"torch": torch, "x": torch.from_numpy(X), "i": torch.from_numpy(I)}
    ours = {"ta": ta, "x": ta.asarray(X), "i": ta.asarray(I)}
    for call, same in partners.TORCH.items():
        expected, got = eval(call, theirs).numpy(), ta.to_numpy(eval(same, ours))
        assert got.dtype == expected.dtype, call
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=call)


@pytest.mark.parametrize("partner", partners.PARTNERS)
def test_names_of_ours_exist(partner: str) -> None:
    for call in partners.PARTNERS[partner].values():
        for path in re.findall(r"\bta\.([\w.]+)", call):
            reduce(getattr, path.split("."), ta)


def test_names_of_jax_exist() -> None:
    jax = pytest.importorskip("jax")
    from jax import numpy as jnp

    for call in partners.JAX:
        for start, path in re.findall(r"\b(jax|jnp)\.([\w.]+)", call):
            reduce(getattr, path.split("."), {"jax": jax, "jnp": jnp}[start])
