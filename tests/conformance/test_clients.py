"""The scripts that run client libraries: small parts of them, the counts of a record, and what a missing one gets."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from clients import array_api_extra, calls, causes, record, run, scipy_suite

SCRIPT = Path(run.__file__)


def finish(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_missing_checkout_is_an_error_that_says_how_to_get_one(tmp_path):
    done = finish("array-api-extra", "--checkout", str(tmp_path / "none"))
    assert done.returncode == 2
    assert f"expected a checkout at {tmp_path / 'none'}, but tests/main/conftest.py is not there" in done.stderr
    assert "git clone https://github.com/data-apis/array-api-extra" in done.stderr
    assert "ARRAY_API_EXTRA=PATH" in done.stderr


def test_an_unknown_client_is_an_error_that_lists_them(capsys):
    with pytest.raises(SystemExit):
        run.main(["scpiy"])
    assert (
        "expected a client, got 'scpiy'; write one of scipy, scikit-learn, array-api-extra" in capsys.readouterr().err
    )


def test_a_peer_takes_only_the_clients_that_know_it(capsys):
    with pytest.raises(SystemExit):
        run.main(["npbench", "--library", "cupy"])
    assert "--library takes the clients scipy, scikit-learn, array-api-extra, einops" in capsys.readouterr().err


@pytest.mark.slow  # a process that imports SciPy
def test_scipys_tests_get_our_namespace_and_no_other(tmp_path):
    pytest.importorskip("scipy", minversion="1.16")
    done = finish("scipy", "--json", str(tmp_path / "record.json"), "--", "scipy/constants")
    found = json.loads((tmp_path / "record.json").read_text())
    assert found["parts"] == {"constants": found["counts"]}
    assert found["counts"] == {"passed": 3, "failed": 0, "skipped": 0}, done.stdout


def test_a_record_counts_by_part_and_keeps_each_failure_with_its_cause(monkeypatch):
    rows = (causes.Cause("optimize", "not be broadcast", "another wording", "SciPy"),)
    monkeypatch.setattr(causes, "CAUSES", rows)
    outcomes = {
        "scipy/optimize/tests/test_a.py::one": {"outcome": "failed", "message": "x could\n not be broadcast"},
        "scipy/optimize/tests/test_a.py::two": {"outcome": "passed"},
        "scipy/stats/tests/test_b.py::one": {"outcome": "failed", "message": "could not be broadcast"},
        "scipy/stats/tests/test_b.py::two": {"outcome": "skipped"},
    }
    found = record.of("scipy", scipy_suite, "numpy", "cpu", outcomes)
    assert found["counts"] == {"passed": 1, "failed": 2, "skipped": 1}
    assert found["parts"]["stats"] == {"passed": 0, "failed": 1, "skipped": 1}
    assert {(one["cause"], one["whose"], one["count"]) for one in found["causes"]} == {
        ("another wording", "SciPy", 1),
        ("not judged yet", "open", 1),
    }
    assert found["failures"][0]["message"] == "x could not be broadcast"
    assert "optimize               1       1       0" in record.text(found)


def test_a_suite_is_counted_by_the_parts_of_its_library():
    assert scipy_suite.part("scipy/special/tests/test_x.py::test[tilearray]") == "special"
    assert array_api_extra.part("tests/main/test_at.py::test") == "at"
    assert record.counts(Counter(passed=2)) == {"passed": 2, "failed": 0, "skipped": 0}


@pytest.mark.parametrize("name", [*run.TABLES])
def test_no_call_fails_that_the_record_does_not_list(name):
    table = importlib.import_module(f"clients.{run.TABLES[name]}")
    if table.missing(None):
        pytest.skip(f"{name} is not installed")
    known = json.loads((SCRIPT.parent / "records" / f"{name}.json").read_text(encoding="utf-8"))
    listed = {one["test"] for one in known["failures"]}
    outcomes = calls.run(table, table.SEMANTICS)
    new = {test: one["message"] for test, one in outcomes.items() if one["outcome"] == "failed" and test not in listed}
    assert not new, "\n".join(f"{test}: {message}" for test, message in new.items())
    assert listed <= outcomes.keys()


def test_a_call_that_gives_another_result_fails():
    class Table(types.SimpleNamespace):
        CALLS: ClassVar = {
            "same": ["x * 2", "x += 1; x", "[x, {'n': x}]", "x.shape"],
            "other": ["x.dtype.itemsize * X", "x[:2] if X else x", "[x][X:]", "x.astype('int64') if X else x", "x + X"],
            "error": ["(x.nothing if X else x.copy)()"],
        }

        def names(self, array):
            return {"x": array(np.arange(3.0)), "X": int(array is not np.array)}

    outcomes = calls.run(Table(), "numpy")
    assert {test: one["outcome"] for test, one in outcomes.items()} == {
        test: "passed" if test.startswith("same") else "failed" for test in outcomes
    }
    assert outcomes["error::(x.nothing if X else x.copy)()"]["message"].startswith(
        "AttributeError: 'Array' object has no attribute"
    )
    assert "shape (2,), expected (3,)" in outcomes["other::x[:2] if X else x"]["message"]
    assert [one.get("kept") for test, one in outcomes.items() if test.startswith("same")] == [True, True, True, False]
