"""The script that runs the standard's own tests: what it says where they are missing, and what it skips."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "conformance"
sys.path.insert(0, str(FOLDER))

import conformance_skips  # noqa: E402
import run  # noqa: E402


def test_a_missing_checkout_is_an_error_that_says_how_to_get_one(tmp_path):
    command = [sys.executable, str(FOLDER / "run.py"), "--suite", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"expected a checkout of array-api-tests at {tmp_path / 'none'}" in done.stderr
    assert "git clone --recurse-submodules https://github.com/data-apis/array-api-tests" in done.stderr
    assert "ARRAY_API_TESTS=PATH" in done.stderr


def test_the_script_looks_for_the_checkout_before_it_installs(tmp_path):
    root = FOLDER.parents[1]
    shutil.copytree(root / "scripts", tmp_path / "scripts")
    shutil.copytree(FOLDER, tmp_path / "tests" / "conformance", ignore=shutil.ignore_patterns("__pycache__"))
    command = ["bash", str(tmp_path / "scripts" / "conformance"), "--suite", str(tmp_path / "none")]
    environment = {**os.environ, "TILEARRAY_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 2
    assert f"expected a checkout of array-api-tests at {tmp_path / 'none'}" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_checkout_without_its_submodule_is_missing_something(tmp_path):
    (tmp_path / "array_api_tests").mkdir()
    assert "array-api/src/array_api_stubs/_2025_12 is not there" in str(run.missing(tmp_path))
    (tmp_path / "array-api" / "src" / "array_api_stubs" / "_2025_12").mkdir(parents=True)
    assert run.missing(tmp_path) is None


def test_arguments_go_to_pytest():
    assert "array_api_tests" in run.command([])
    assert "--max-examples=20" in run.command([])
    narrowed = run.command(["array_api_tests/test_set_functions.py", "-x"])
    assert narrowed[-2:] == ["array_api_tests/test_set_functions.py", "-x"]
    assert "array_api_tests" not in narrowed


def test_every_skip_has_its_reason():
    skips = conformance_skips.read(conformance_skips.SKIPS.read_text())
    assert all(name.startswith("array_api_tests/") and len(reason) > 15 for name, reason in skips.items())
    for line in ("array_api_tests/x.py::test", "array_api_tests/x.py::test  # ", "a  # b\na  # b"):
        with pytest.raises(pytest.UsageError, match=r"skips.txt: expected 'NAME  # REASON', each name once"):
            conformance_skips.read(line)
    assert conformance_skips.read("# a comment\n\nx[  # y") == {"x[": "y"}
