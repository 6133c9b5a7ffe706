"""Runs the tests that a library ships, in a process of their own, with the library's plugin of this folder.

A suite is a module of this folder with

- ``PACKAGE``: the distribution whose version is recorded,
- ``SEMANTICS``: the value of `TILEARRAY_SEMANTICS`,
- ``SETTINGS``: lines of pytest's configuration, where the tests rely on the library's own,
- ``missing(checkout)``: why it cannot run and how to get it, or None,
- ``folder(checkout)``: where pytest starts, and ``arguments(checkout)``: the tests,
- ``paths(checkout)``: what goes on the path before the installed packages,
- ``ENVIRONMENT``: variables of that process, if it needs some,
- ``part(test)``: the part of the record that a test counts in,

and the hooks of pytest that put our namespace in. The module is loaded in that process as a plugin.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from clients import outcomes, peers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def run(suite: ModuleType, checkout: Path | None, semantics: str, rest: list[str]) -> dict[str, dict[str, str]]:
    """Run a suite, or the part that pytest's options in `rest` choose, and return the outcome of each test."""
    with tempfile.TemporaryDirectory() as scratch:
        # A configuration of its own: without one pytest would find the project's above a virtual environment in it.
        settings = Path(scratch, "pytest.ini")
        settings.write_text(f"[pytest]\n{suite.SETTINGS}\n", encoding="utf-8")
        file = Path(scratch, "outcomes.json")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-c", str(settings), "--rootdir", str(suite.folder(checkout))),
            *("-p", "no:cacheprovider", "--disable-warnings", "--tb=short", "--show-capture=no"),
            *("-p", "clients.outcomes", "-p", suite.__name__),
            *suite.arguments(checkout, rest),
        ]
        paths = [*suite.paths(checkout), ROOT, ROOT / "backend", HERE.parent]
        given = environment(paths, semantics, file) | getattr(suite, "ENVIRONMENT", {})
        subprocess.run(command, cwd=suite.folder(checkout), env=given, check=False)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def installed(package: str) -> Path:
    """The folder that an installed package lies in."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parents[1]


def environment(paths: list[Path], semantics: str, file: Path) -> dict[str, str]:
    """The tree as it is, installed or not, on the device that `run.py` was given."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SCIPY_ARRAY_API": "1",
        "SCIPY_DEVICE": peers.device() or "cpu",
        "TILEARRAY_SEMANTICS": semantics,
        outcomes.FILE: str(file),
    }
