"""einops' plain functions on Arrays: the class that einops finds among the subclasses of its own.

The base class here has the methods of ``einops._backends.AbstractBackend`` that ours inherits. Where einops is
installed, tests/conformance/test_clients.py runs its functions.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.arrays.einops_backend import register

VALUES = np.arange(24.0).reshape(2, 3, 4)


def backend() -> Any:
    class AbstractBackend:
        def reduce(self, x: Any, operation: str, axes: tuple[int, ...]) -> Any:
            return getattr(x, operation)(axis=axes)

    module: Any = ModuleType("einops._backends")
    module.AbstractBackend = AbstractBackend
    register(module)
    gc.collect()  # a class that nothing keeps is not found
    (found,) = AbstractBackend.__subclasses__()
    return found()


@pytest.fixture(scope="module")
def ours() -> Any:
    return backend()


def test_einops_finds_the_class_by_the_name_of_the_library(ours):
    assert ours.framework_name == "tilearray" in sys.modules
    assert ours.is_appropriate_type(ta.zeros(2))
    assert not any(ours.is_appropriate_type(x) for x in (VALUES, [1.0], 1.0, None))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda b, x: b.add_axis(x, 1), VALUES[:, None]),
        (lambda b, x: b.add_axis(x, 3), VALUES[..., None]),
        (lambda b, x: b.tile(x, (1, 2, 3)), np.tile(VALUES, (1, 2, 3))),
        (lambda b, x: b.stack_on_zeroth_dimension([x, x]), np.stack([VALUES, VALUES])),
        (lambda b, x: b.concat([x, x], axis=2), np.concatenate([VALUES, VALUES], axis=2)),
        (lambda b, x: b.einsum("abc,abd->cd", x, x), np.einsum("abc,abd->cd", VALUES, VALUES)),
        (lambda b, x: b.reduce(x, "max", (0, 2)), VALUES.max((0, 2))),
        (lambda b, x: b.from_numpy(VALUES), VALUES),
        (lambda b, x: b.arange(2, 5), np.arange(2, 5)),
    ],
)
def test_the_methods_give_numpys_results_as_arrays(ours, call, expected):
    found = call(ours, ta.asarray(VALUES))
    assert isinstance(found, ta.Array)
    assert found.tolist() == expected.tolist()
    assert type(ours.to_numpy(found)) is np.ndarray


def test_means_are_of_floats_also_of_narrow_ones(ours):
    assert all(ours.is_float_type(ta.zeros(1, dtype=name)) for name in ("float16", "bfloat16", "float32", "float64"))
    assert not any(ours.is_float_type(ta.zeros(1, dtype=name)) for name in ("bool", "int32", "complex64"))


def test_another_einops_without_the_base_class_is_left_alone():
    register(ModuleType("einops._backends"))


def test_einops_is_told_before_and_after_the_import_of_tilearray(tmp_path):
    package = tmp_path / "einops"
    package.mkdir()
    (package / "__init__.py").write_text("from einops import _backends\n", encoding="utf-8")
    (package / "_backends.py").write_text("class AbstractBackend: pass\n", encoding="utf-8")
    for first, second in (("einops", "tilearray"), ("tilearray", "einops")):
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {first}, {second}\n"
            "print([one.framework_name for one in sys.modules['einops']._backends.AbstractBackend.__subclasses__()])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "['tilearray']\n", done.stderr
