"""What all tests share: Hypothesis' settings, and an environment that does not depend on who runs them."""

from __future__ import annotations

import gc
import hashlib
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Read when tilearray is imported. Examples print their device: on a machine with a GPU they stay on the host, too.
os.environ["TILEARRAY_DEVICE"] = "cpu"
os.environ.pop("TILEARRAY_SEMANTICS", None)
# Tests import the modules of support/. `--doctest-modules` would import each by itself, and some of them need a package
# that is not installed everywhere.
collect_ignore_glob = ["support/*"]


def kernel_folder() -> str:
    """Where kernels that tests compile are kept, and not in the user's cache: one folder per checkout, nobody else's.

    The runs of a checkout share it, and so do a run's workers.
    """
    checkout = hashlib.sha256(f"{os.path.expanduser('~')}:{Path(__file__).resolve().parents[1]}".encode())
    folder = Path(tempfile.gettempdir()) / f"tilearray-tests-{checkout.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)  # which fails where somebody else made it
    return str(folder)


if "TILEARRAY_CACHE_DIR" not in os.environ:
    os.environ["TILEARRAY_CACHE_DIR"] = kernel_folder()

# No deadline: a busy machine is not a failure. The blob reproduces a case found on another one.
# Every run draws the same cases, so a failure is that of a change. `--hypothesis-profile explore` draws new ones.
settings.register_profile("explore", deadline=None, print_blob=True)
settings.register_profile("tilearray", settings.get_profile("explore"), derandomize=True)
settings.load_profile("tilearray")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the files with the most slow tests first: a long one at the end would keep one worker busy alone."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from walking over tens of thousands of tests at each of its full collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _garbage_of_earlier_files() -> None:
    """Keep full collections from walking over what earlier files left: caches, compiled kernels, imported modules."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let all objects be collected when the process ends: Triton reports those that are not."""
    gc.unfreeze()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device that is not the host, although its memory is: ``cuda:7654321``."""
    from support.elsewhere import ELSEWHERE, Elsewhere  # which imports tilearray, and that reads the environment

    from tilearray.engine import caches
    from tilearray.engine.devices import _DEVICES
    from tilearray.fft.transforms import _KNOWN as TRANSFORMS
    from tilearray.functions.planned_products import _KNOWN as PRODUCTS

    kept: Any = caches.PLANS, caches.RECIPES, caches.KERNELS, TRANSFORMS, PRODUCTS
    for cache in kept:  # those of the backend that another test gave it
        cache.clear()
    ELSEWHERE.backend = Elsewhere()  # type: ignore[assignment]
    monkeypatch.setitem(_DEVICES, ELSEWHERE.name, ELSEWHERE)
    return ELSEWHERE


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The expressions that the host compiles in a test."""
    from tilearray.engine.caches import KERNELS  # here: it reads the environment
    from tilearray_host.device import HostDevice

    KERNELS.clear()
    found: list[Any] = []
    compile_kernel = HostDevice.compile

    def noted(self: HostDevice, expression: Any, *others: Any) -> Any:
        found.append(expression)
        return compile_kernel(self, expression, *others)

    monkeypatch.setattr(HostDevice, "compile", noted)
    return found
