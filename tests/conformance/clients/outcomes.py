"""A pytest plugin: writes the outcome of every test as JSON to the file that `TILEARRAY_OUTCOMES` names.

An outcome is "passed", "failed" or "skipped" (an expected failure is skipped), and the last line of what was raised.
Under pytest-xdist only the controller writes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clients import peers

FILE = "TILEARRAY_OUTCOMES"
_outcomes: dict[str, dict[str, str]] = {}


def pytest_configure() -> None:
    """Let NumPy copy from a GPU, because tests compare there; CuPy's arrays and torch's are copied by name."""
    if peers.name() == peers.OURS:
        import tilearray as ta

        ta.set_transfer_guard("allow")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst phase of a test: a failed teardown fails it."""
    known = _outcomes.setdefault(report.nodeid, {"outcome": "passed"})
    if report.failed:
        known.update(outcome="failed", message=_message(report), place=_place(report))
    elif report.skipped and known["outcome"] == "passed":
        known["outcome"] = "skipped"


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported is one failure."""
    if report.failed:
        _outcomes[report.nodeid] = {"outcome": "failed", "message": str(report.longrepr)[-500:], "place": ""}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and FILE in os.environ:
        Path(os.environ[FILE]).write_text(json.dumps(_outcomes), encoding="utf-8")


def _message(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)[-500:]


def _place(report: pytest.TestReport) -> str:
    """The innermost line outside of tilearray: the call that met the error."""
    entries: list[Any] = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    outside = [f"{place.path}:{place.lineno}" for place in places if "tilearray" not in str(place.path)]
    return outside[-1] if outside else ""
