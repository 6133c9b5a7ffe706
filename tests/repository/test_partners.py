"""The tables of names of torch, CuPy and JAX: both columns of torch give equal values, and all names of ours exist."""

from __future__ import annotations

import importlib.util
import re
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilearray as ta


def script(name: str) -> Any:
    """A module of scripts/."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


partners, stored = script("_partners"), script("_partner_names")

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
        for start, path in re.findall(r"\b(ta|x)\.([\w.]+)", call):
            reduce(getattr, path.split("."), {"ta": ta, "x": ta.asarray(X)}[start])


@pytest.mark.parametrize("library", stored.MODULES)
def test_other_ways_are_of_names_that_the_library_has_and_name_what_is_here(library: str) -> None:
    _, modules = stored.read(library)
    assert tuple(modules) == stored.MODULES[library]
    assert sum(map(len, modules.values())) > 700
    ours = {"ta": ta, "rng": ta.random.default_rng(0), "x": ta.asarray(X)}
    for module, names in modules.items():
        assert set(partners.OTHERWISE.get(module, {})) <= set(names), module
        assert names == sorted(set(names))
        for way in partners.OTHERWISE.get(module, {}).values():
            for start, path in re.findall(r"\b(ta|rng|x)\.([\w.]+)", way):
                reduce(getattr, path.split("."), ours[start])


@pytest.mark.parametrize("library", stored.MODULES)
def test_stored_names_are_those_of_the_library(library: str) -> None:
    module = pytest.importorskip(library)
    if module.__version__ != stored.read(library)[0]:
        pytest.skip("another version than that whose names are stored")
    assert stored.text_of(library) == (stored.FOLDER / f"{library}.txt").read_text(encoding="utf-8")


def test_other_ways_give_what_jax_gives() -> None:
    pytest.importorskip("jax")
    x = ta.asarray(X)
    for module in ("jax.nn", "jax.scipy.special"):
        theirs = importlib.import_module(module)
        for name, way in partners.OTHERWISE[module].items():
            if set(re.findall(r"(?<![\w.'])[a-z]\w*(?=[^\w(.']|$)", way)) <= {"x"}:
                expected = np.asarray(getattr(theirs, name)(X))
                np.testing.assert_allclose(
                    ta.to_numpy(eval(way, {"ta": ta, "x": x})), expected, 1e-5, 1e-6, err_msg=name
                )


def test_names_of_jax_exist() -> None:
    jax = pytest.importorskip("jax")
    from jax import numpy as jnp

    for call in partners.JAX:
        for start, path in re.findall(r"\b(jax|jnp)\.([\w.]+)", call):
            reduce(getattr, path.split("."), {"jax": jax, "jnp": jnp}[start])
