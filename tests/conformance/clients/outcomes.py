"""A pytest plugin: adds the outcome of each test, as it ends, to the file that `TILEARRAY_OUTCOMES` names.

An outcome is "passed", "failed" or "skipped" (an expected failure is skipped), and the last line of what was raised.
A line of the file is the JSON of a test and its outcome, so a run that ends early leaves what it has. Under
pytest-xdist only the controller writes. Tests that the file of `TILEARRAY_ENDED` names are left out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clients import comparing, peers

FILE = "TILEARRAY_OUTCOMES"
ENDED = "TILEARRAY_ENDED"
_WRITES = FILE in os.environ and "PYTEST_XDIST_WORKER" not in os.environ
_running: dict[str, dict[str, str]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Let tests compare arrays on a GPU, before one imports the functions for it."""
    if peers.name() == peers.OURS:
        comparing.comparisons_copy()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of an earlier run."""
    ended = read(Path(os.environ[ENDED])) if ENDED in os.environ else {}
    left_out = [item for item in items if item.nodeid in ended]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in ended]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst phase of a test: a failed teardown fails it. One that ends its worker has no teardown."""
    known = _running.setdefault(report.nodeid, {"outcome": "passed"})
    if report.failed:
        known.update(outcome="failed", message=_message(report), place=_place(report))
    elif report.skipped and known["outcome"] == "passed":
        known["outcome"] = "skipped"
    if report.when not in ("setup", "call"):
        _add(report.nodeid, _running.pop(report.nodeid))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported is one failure."""
    if report.failed:
        _add(report.nodeid, {"outcome": "failed", "message": str(report.longrepr)[-500:], "place": ""})


def read(file: Path) -> dict[str, dict[str, str]]:
    """The outcomes in a file; of a line that was cut, nothing."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return dict(map(json.loads, lines))


def write(found: dict[str, dict[str, str]], file: Path) -> None:
    """Replace the outcomes in a file."""
    file.write_text("".join(map(_line, found.items())), encoding="utf-8")


def _line(one: tuple[str, dict[str, str]]) -> str:
    return json.dumps(one) + "\n"


def _add(test: str, outcome: dict[str, str]) -> None:
    if _WRITES:
        with open(os.environ[FILE], "a", encoding="utf-8") as file:
            file.write(_line((test, outcome)))


def _message(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)[-500:]


def _place(report: pytest.TestReport) -> str:
    """The innermost line outside of tilearray: the call that met the error."""
    entries: list[Any] = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    outside = [f"{place.path}:{place.lineno}" for place in places if "tilearray" not in str(place.path)]
    return outside[-1] if outside else ""
