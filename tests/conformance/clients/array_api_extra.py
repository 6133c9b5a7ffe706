"""array-api-extra's own tests, from a checkout beside the project, with tilearray for the libraries that it knows.

The wheel has no tests. The plugin gives the fixture `library` one other parameter: a library that is like none of
those that the tests have exceptions for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clients import comparing, peers

PACKAGE = "array-api-extra"
SEMANTICS = "array-api,float=float64"  # the expected values of nan_to_num are those of float64
SETTINGS = "filterwarnings = error"
CHECKOUT = "array-api-extra"
VARIABLE = "ARRAY_API_EXTRA"


class Library:
    """The part of `array_api_extra`'s enumeration of backends that its fixtures read."""

    name = "TILEARRAY"
    value = modname = "tilearray"

    def like(self, *others: object) -> bool:
        return False


def library() -> object:
    """Ours, or the member of the enumeration for a peer on a GPU."""
    if peers.name() == peers.OURS:
        return Library()
    from array_api_extra._lib._backends import Backend

    return {"cupy": Backend.CUPY, "torch": Backend.TORCH_GPU}[peers.name()]


def missing(checkout: Path | None) -> str | None:
    if checkout is None or not (checkout / "tests" / "main" / "conftest.py").is_file():
        return (
            f"array-api-extra: expected a checkout at {checkout}, but tests/main/conftest.py is not there; write\n"
            f"    git clone https://github.com/data-apis/array-api-extra {checkout}\n"
            f"    pip install array-api-compat pytest hypothesis\n"
            f"or name one that you have: --checkout PATH, or {VARIABLE}=PATH"
        )
    return None


def folder(checkout: Path | None) -> Path:
    assert checkout is not None
    return checkout


def arguments(checkout: Path | None, rest: list[str]) -> list[str]:
    chosen = [] if any(argument.startswith("tests/") for argument in rest) else ["tests/main"]
    return ["-k", peers.name(), *chosen, *rest]


def paths(checkout: Path | None) -> list[Path]:
    """The source of the checkout, so that the tests and the library are of one version."""
    return [folder(checkout) / "src"]


def part(test: str) -> str:
    found = re.search(r"test_(\w+)\.py", test)
    return found.group(1) if found else "other"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Let the tests copy our arrays by the function that has names for the other libraries."""
    if peers.name() == peers.OURS:
        from array_api_extra.testing import _testing

        comparing.copied_by_name(_testing, "_as_numpy_array")


def pytest_configure(config: pytest.Config) -> None:
    """Know the marks that the checkout's own settings, which are not read, would declare."""
    for name in ("skip_xp_backend", "xfail_xp_backend"):
        config.addinivalue_line("markers", f"{name}: of array-api-extra")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a GPU, skip the tests of copies to NumPy, as the tests' own marks skip them for CuPy."""
    if peers.name() == peers.OURS and not peers.on_the_host():
        for item in items:
            for mark in item.iter_markers("skip_xp_backend"):
                if mark.args[0].name == "CUPY" and mark.kwargs.get("reason") in _COPIES:
                    item.add_marker(pytest.mark.skip(reason=mark.kwargs["reason"]))


_COPIES = ("device->host copy", "converts to NumPy")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let the fixture yield our library, and only ours."""
    for definition in metafunc._arg2fixturedefs.get("library", ()):
        if definition.params:
            one = pytest.param(library(), id=peers.name())
            definition.params = (one,)  # pyright: ignore[reportAttributeAccessIssue]
