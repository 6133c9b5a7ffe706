"""scikit-learn's own tests of array API support, from the installed wheel, with tilearray for `array_api_strict`.

scikit-learn names the namespaces of its tests in generators. The plugin replaces them before a test file imports
them: float64 and float32 of tilearray, and tilearray beside NumPy where namespaces are mixed.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients import comparing, peers, suite

PACKAGE = "scikit-learn"
SEMANTICS = "array-api"
SETTINGS = ""
NAME = peers.name()


def missing(checkout: Path | None) -> str | None:
    """scikit-learn's wheels contain the tests."""
    if importlib.util.find_spec("sklearn") is None:
        return "scikit-learn: expected an installed scikit-learn; write: pip install 'scikit-learn>=1.8' pytest"
    return None


def folder(checkout: Path | None) -> Path:
    return suite.installed("sklearn")


def arguments(checkout: Path | None, rest: list[str]) -> list[str]:
    """The test files that ask for a namespace."""
    if any(argument.startswith("sklearn/") for argument in rest):
        return rest
    root = folder(checkout)
    files = sorted(
        file
        for file in (root / "sklearn").rglob("test_*.py")
        if re.search(r"yield_namespace|yield_mixed_namespace", file.read_text(encoding="utf-8"))
    )
    return [*(str(file.relative_to(root)) for file in files), *rest]


def paths(checkout: Path | None) -> list[Path]:
    return []


def part(test: str) -> str:
    found = re.search(r"sklearn/(.+?)/tests/|sklearn/tests/", test)
    return (found and found.group(1)) or "sklearn"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that got our namespace. `-k` would also read the names of folders."""
    others = [item for item in items if NAME not in item.name.partition("[")[2]]
    items[:] = [item for item in items if NAME in item.name.partition("[")[2]]
    config.hook.pytest_deselected(items=others)


def pytest_load_initial_conftests() -> None:
    """Let the tests copy our arrays by the function that has names for the other libraries."""
    if peers.name() == peers.OURS:
        from sklearn.utils import _array_api

        comparing.copied_by_name(_array_api, "_convert_to_numpy")


def pytest_configure(config: pytest.Config) -> None:
    """Replace the generators in their module."""
    from sklearn.utils import _array_api

    pair = _array_api.NamespaceAndDevice

    def namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
        yield NAME

    place = peers.device()

    def combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, str | None, str]]:
        yield NAME, place, "float64"
        yield NAME, place, "float32"

    def mixed() -> Iterator[tuple[Any, Any, str]]:
        yield pair(NAME, place), pair("numpy", None), f"{NAME} to numpy"
        yield pair("numpy", None), pair(NAME, place), f"numpy to {NAME}"

    _array_api.yield_namespaces = namespaces
    _array_api.yield_namespace_device_dtype_combinations = combinations
    _array_api.yield_mixed_namespace_input_permutations = mixed
