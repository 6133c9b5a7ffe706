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
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from clients import outcomes, peers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def run(
    suite: ModuleType,
    checkout: Path | None,
    semantics: str,
    rest: list[str],
    processes: int = 0,
    minutes: float | None = None,
    kept: Path | None = None,
) -> tuple[dict[str, dict[str, str]], bool]:
    """Run a suite, or the part that pytest's options in `rest` choose.

    Parameters
    ----------
    kept : Path, optional
        A file for the outcomes that outlives the run. Tests whose outcome it has do not run again.

    Returns
    -------
    outcomes : dict
        The outcome of each test that ended, now or before.
    whole : bool
        Whether all of them ran: pytest came to its end, within `minutes` if they are given.
    """
    with tempfile.TemporaryDirectory() as scratch:
        # A configuration of its own: without one pytest would find the project's above a virtual environment in it.
        settings = Path(scratch, "pytest.ini")
        settings.write_text(f"[pytest]\n{suite.SETTINGS}\n", encoding="utf-8")
        file = kept.resolve() if kept else Path(scratch, "outcomes")
        ended = Path(scratch, "ended")  # a copy: a worker that starts late must collect the tests of the others
        for each in (ended, file):  # without a line that was cut
            outcomes.write(outcomes.read(file), each)
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-c", str(settings), "--rootdir", str(suite.folder(checkout))),
            *("-p", "no:cacheprovider", "--disable-warnings", "--tb=short", "--show-capture=no"),
            *("-p", "clients.outcomes", "-p", suite.__name__),
            *(("-n", str(processes), "--dist", "worksteal") if processes else ()),
            *suite.arguments(checkout, rest),
        ]
        paths = [*suite.paths(checkout), ROOT, ROOT / "backend", HERE.parent]
        given = environment(paths, semantics, file, ended) | getattr(suite, "ENVIRONMENT", {})
        given |= dict.fromkeys(THREADS, "1") if processes else {}
        with subprocess.Popen(command, cwd=suite.folder(checkout), env=given) as pytest:
            status = _ended(pytest, minutes)
        done = status in (PASSED, FAILED) or (status == NO_TESTS and bool(outcomes.read(ended)))
        return outcomes.read(file), done


PASSED, FAILED, NO_TESTS = 0, 1, 5
"""The exit statuses of pytest after a run of all tests, and where there were none to run."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables for the threads of a process; several processes with as many threads as the machine has cores are slow."""


def _ended(process: subprocess.Popen[bytes], minutes: float | None) -> int:
    """The exit status of a process, which is interrupted when its time is over, and killed if that does not end it."""
    try:
        return process.wait(None if minutes is None else minutes * 60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
    return -signal.SIGINT


GRACE = 20
"""Seconds for the end of an interrupted run."""


def installed(package: str) -> Path:
    """The folder that an installed package lies in, as pytest names it: without links."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).resolve().parents[1]


def environment(paths: list[Path], semantics: str, file: Path, ended: Path) -> dict[str, str]:
    """The tree as it is, installed or not, on the device that `run.py` was given.

    It is not the environment of a worker, even where an outer pytest-xdist runs this.
    """
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")},
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SCIPY_ARRAY_API": "1",
        "SCIPY_DEVICE": peers.device() or "cpu",
        "TILEARRAY_SEMANTICS": semantics,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # a test process that imports JAX must leave memory to the others
        outcomes.FILE: str(file),
        outcomes.ENDED: str(ended),
    }
