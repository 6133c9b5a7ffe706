"""SciPy's own tests of array API support, from the installed wheel; the plugin puts tilearray in SciPy's `xp` fixture.

SciPy's ``conftest.py`` lists the libraries that it knows. The plugin gives the fixture one other parameter, and adds
the name to the known ones, so that the marks "NumPy only" skip it, and on a GPU "CPU only". SciPy excepts libraries
from that mark by name: ours are excepted where torch is, which runs SciPy's own code there, and for functions that
`ta.special` has or makes possible. Everything else runs as SciPy wrote it.

Two thirds of the tests in these folders are not for arrays of other libraries, and the ``conftest.py`` imports each
library that is installed. Both would take longer in every process than its share of the tests, so the plugin leaves out
files without such a test, and hides the other libraries.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from clients import comparing, peers, suite

PACKAGE = "scipy"
SEMANTICS = "array-api,float=float64"  # SciPy expects float64 of every library that it does not know
SETTINGS = ""
ENVIRONMENT = {} if peers.name() == peers.OURS else {"SCIPY_ARRAY_API": json.dumps([peers.name()])}
"""SciPy's tests take one of the libraries that SciPy knows."""
PARTS = (
    *("constants", "special", "stats", "optimize", "integrate", "differentiate", "fft", "cluster", "signal", "ndimage"),
    *("interpolate", "spatial", "linalg", "_lib"),
)


def missing(checkout: Path | None) -> str | None:
    """SciPy's wheels contain the tests."""
    if importlib.util.find_spec("scipy") is None:
        return "scipy: expected an installed SciPy; write: pip install 'scipy>=1.16' pytest hypothesis mpmath pooch"
    return None


def folder(checkout: Path | None) -> Path:
    return suite.installed("scipy")


def arguments(checkout: Path | None, rest: list[str]) -> list[str]:
    chosen = [] if any(argument.startswith("scipy/") for argument in rest) else [f"scipy/{part}" for part in PARTS]
    return ["-m", "array_api_backends and not slow", *chosen, *rest]


def paths(checkout: Path | None) -> list[Path]:
    return []


def part(test: str) -> str:
    found = re.search(r"scipy/([^/]+)/", test)
    return found.group(1) if found else "other"


class Hidden:
    """A finder of modules for which the other libraries that SciPy's tests know are not installed."""

    libraries = frozenset({"torch", "cupy", "jax", "dask", "array_api_strict"} - {peers.name()})

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> None:
        if name in cls.libraries:
            raise ModuleNotFoundError(f"hidden from SciPy's tests: {name}", name=name)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Hide other libraries, and let SciPy's tests copy our arrays by the function that has names for those."""
    sys.meta_path.insert(0, Hidden)
    if peers.name() == peers.OURS:
        from scipy._lib import _array_api

        comparing.copied_by_name(_array_api, "_xp_copy_to_numpy")
        _except_functions(_array_api.xp_capabilities_table)


_OF_SPECIAL = (
    *("combine_pvalues", "f_oneway", "levene", "pearsonr", "stdtrit"),
    *("ttest_1samp", "ttest_ind", "ttest_ind_from_stats", "ttest_rel"),
)
"""Functions of SciPy that run on a GPU with a library that has `special.betainc`, `stdtr` and `fdtrc`."""


def _except_functions(capabilities: dict[Any, dict[str, Any]]) -> None:
    """Let the functions run on a GPU that need no more than `ta.special`."""
    importlib.import_module("scipy.stats")
    import tilearray as ta

    for function, capability in capabilities.items():
        if function.__name__ in (*ta.special.__all__, *_OF_SPECIAL):
            capability["exceptions"] = [*capability["exceptions"], ta.__name__]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test of any other function run on a GPU where torch does: SciPy has no code for torch alone."""
    if peers.name() == peers.OURS:
        for mark in item.iter_markers("skip_xp_backends"):
            excepted = mark.kwargs.get("exceptions", ())
            if "torch" in excepted and not _is_special(item) and peers.OURS not in excepted:
                mark.kwargs["exceptions"] = [*excepted, peers.OURS]  # pyright: ignore[reportIndexIssue]


def _is_special(item: pytest.Item) -> bool:
    """Whether a test is of `scipy.special`, for which torch has functions of its own."""
    return part(item.nodeid) == "special"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that have neither SciPy's fixture nor its mark."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    used = re.search(r"\bxp\b|\barray_api_backends\b", collection_path.read_text(encoding="utf-8"))
    return None if used else True


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let SciPy's fixture yield our namespace, and only ours."""
    if "xp" not in metafunc.fixturenames or peers.name() != peers.OURS:  # SciPy knows the peers
        return
    import tilearray as ta

    for definition in metafunc._arg2fixturedefs["xp"]:
        if definition.params:
            scipys = definition.func.__globals__
            if "xp_known_backends" in scipys:
                scipys["xp_known_backends"].add(ta.__name__)
                if not peers.on_the_host():
                    scipys["xp_skip_cpu_only_backends"].add(ta.__name__)
                ours = pytest.param(ta, id="tilearray", marks=pytest.mark.array_api_backends)
                definition.params = (ours,)  # pyright: ignore[reportAttributeAccessIssue]
