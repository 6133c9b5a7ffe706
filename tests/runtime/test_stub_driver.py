"""The driver side of the CUDA backend over a stub driver in host memory. It needs a C compiler, and no GPU.

The stub is compiled once, and replaces libcuda.so.1 in a separate process, in which pytest runs the files
``tests/runtime/stub_driver/cases_*.py``. Each test function in them is a test here, under its own name. A failure shows
the case's own message. Only the files of the selected tests run. scripts/test gives each worker whole files, so that
one process serves all tests.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

HERE = Path(__file__).parent / "stub_driver"
ROOT = HERE.parents[2]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stub is a Linux library"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc, which compiles the stub driver, is not installed"),
    pytest.mark.skipif(find_spec("cuda") is None, reason="cuda-python is not installed"),
]


def cases() -> list[str]:
    """The names of the test functions, as ``file::function``."""
    return [
        f"{file.stem}::{node.name}"
        for file in sorted(HERE.glob("cases_*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


class Result(NamedTuple):
    """How one case ended: "passed", "failed", "xfailed" or "skipped", and the text that says why."""

    case: str
    outcome: str
    text: str


def read_results(report: Path) -> dict[str, list[Result]]:
    """The results of each function in a JUnit report; a function with parameters has several."""
    found: dict[str, list[Result]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "")
        function = f"{case.get('classname', '').rpartition('.')[2]}::{name.partition('[')[0]}"
        outcome, text = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, text = "failed", f"{text}{child.text}\n"
            elif child.tag == "skipped" and outcome == "passed":
                outcome = "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
                text = child.get("message", "")
        found[function].append(Result(name, outcome, text))
    return found


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stub")
    options = ["-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC"]
    names = [HERE / "stub_driver.c", "-o", folder / "libcuda.so.1", "-ldl", "-lpthread"]
    subprocess.run(["gcc", *options, *names], check=True)
    return folder


@pytest.fixture(scope="session")
def results(library: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The results of all cases in the files of the selected tests, by function."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(library), os.environ.get("LD_LIBRARY_PATH")])),
        "TILEARRAY_STUB_CUDA": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "STUB_DEVICES": "2",
        "STUB_MEMORY": str(1 << 30),
    }
    selected = [item.callspec.params["case"] for item in request.session.items if item.path == Path(__file__)]
    files = sorted({str(HERE / f"{case.partition('::')[0]}.py") for case in selected})
    report = tmp_path_factory.mktemp("results") / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=-ra", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return read_results(report)


@pytest.mark.parametrize("case", cases())
def test_over_the_stub_driver(case: str, results: dict[str, list[Result]]) -> None:
    found = results.get(case, [])
    assert found, "the case did not run"
    failed = [f"{result.case}: {result.outcome}\n{result.text}" for result in found if result.outcome == "failed"]
    if failed:
        pytest.fail("\n".join(failed), pytrace=False)
    skipped = [f"{result.case}: {result.text}" for result in found if result.outcome == "skipped"]
    assert skipped == [], "no case needs more than the stub"
    if any(result.outcome == "xfailed" for result in found):
        pytest.xfail(next(result.text for result in found if result.outcome == "xfailed"))
