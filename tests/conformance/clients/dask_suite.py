"""dask.array's own tests of chunks that are not NumPy's, from the installed wheel: tilearray under CuPy's name.

dask tests other chunks with CuPy. The plugin puts a module named `cupy` before the tests, which is our namespace with
CuPy's words `asnumpy` and `get`, and registers our backend by that name.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clients import suite

PACKAGE = "dask"
SEMANTICS = "numpy"
SETTINGS = "markers =\n    gpu: of dask\n    slow: of dask\n    network: of dask"


def missing(checkout: Path | None) -> str | None:
    """dask's wheel contains the tests."""
    if importlib.util.find_spec("dask") is None:
        return "dask-tests: expected an installed dask; write: pip install 'dask[array]' pytest"
    return None


def folder(checkout: Path | None) -> Path:
    return suite.installed("dask")


def arguments(checkout: Path | None, rest: list[str]) -> list[str]:
    """The tests for CuPy; those of its sparse matrices have nothing of ours in them."""
    if any(argument.startswith("dask/") for argument in rest):
        return rest
    files = sorted((folder(checkout) / "dask" / "array" / "tests").glob("test_cupy_*.py"))
    return [*(f"dask/array/tests/{file.name}" for file in files if file.stem != "test_cupy_sparse"), *rest]


def paths(checkout: Path | None) -> list[Path]:
    return []


def part(test: str) -> str:
    found = re.search(r"test_cupy_(\w+)\.py", test)
    return found.group(1) if found else "other"


class Random(ModuleType):
    """The names of `tilearray.random`, and those that dask asks CuPy for."""

    def __getattr__(self, name: str) -> Any:
        import tilearray as ta
        from tilearray.dask.backend import RandomState

        own = {"RandomState": RandomState, "XORWOW": ta.random.Philox4x32}
        return own[name] if name in own else getattr(ta.random, name)


class Namespace(ModuleType):
    """tilearray's names, and CuPy's for the way to NumPy."""

    __version__ = "14.0.0"
    random = Random("cupy.random")

    def __getattr__(self, name: str) -> Any:
        import tilearray as ta

        return getattr(ta, name)

    @staticmethod
    def asnumpy(x: Any, **options: Any) -> Any:
        import tilearray as ta

        return ta.to_numpy(x) if isinstance(x, ta.Array) else x


def pytest_configure(config: pytest.Config) -> None:
    """Put the namespace in, before a test file imports it."""
    from dask.array import backends

    import tilearray as ta
    from tilearray.dask.backend import TileArrayBackend

    sys.modules["cupy"] = Namespace("cupy")
    ta.Array.get = Namespace.asnumpy  # type: ignore[attr-defined]
    backends.array_creation_dispatch.register_backend("cupy", TileArrayBackend())
    backends.register_cupy = lambda: None  # a test calls it; it would replace our functions by type
