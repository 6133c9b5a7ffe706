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
from clients import array_api_extra, calls, causes, outcomes, peers, record, run, scipy_suite, suite

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


def small_suite(
    folder: Path, source: str, processes: int = 0, kept: Path | None = None
) -> tuple[dict[str, dict[str, str]], bool]:
    (folder / "test_few.py").write_text("import os\n" + source)
    client = types.SimpleNamespace(
        __name__="clients.outcomes",
        SETTINGS="",
        ENVIRONMENT={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # each of the processes would import all plugins
        folder=lambda checkout: folder,
        arguments=lambda checkout, rest: ["-p", "xdist", *rest],
        paths=lambda checkout: [],
    )
    return suite.run(client, None, "numpy", ["test_few.py"], processes, kept=kept)  # type: ignore[arg-type]


FEW = "def test_a(): pass\ndef test_b(): assert 0\n"
EXPECTED = {"test_few.py::test_a": "passed", "test_few.py::test_b": "failed"}


@pytest.mark.slow  # processes that import the library
@pytest.mark.parametrize("processes", [0, 2])
def test_a_suite_has_the_same_outcomes_in_several_processes(tmp_path, processes):
    found, whole = small_suite(tmp_path, FEW, processes)
    assert whole
    assert {test: one["outcome"] for test, one in found.items()} == EXPECTED


@pytest.mark.slow
def test_a_suite_that_ends_early_keeps_what_it_has_and_says_so(tmp_path):
    found, whole = small_suite(tmp_path, FEW + "def test_c(): os._exit(9)\ndef test_d(): pass\n")
    assert not whole
    assert {test: one["outcome"] for test, one in found.items()} == EXPECTED
    cut = record.of("scipy", scipy_suite, "numpy", "cpu", found, whole)
    assert cut["whole"] is False
    assert "; the run ended before its tests did\n" in record.text(cut)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 2])
def test_a_suite_goes_on_from_the_outcomes_of_an_earlier_run(tmp_path, processes):
    kept = tmp_path / "outcomes"
    first, whole = small_suite(tmp_path, FEW + "def test_c(): os._exit(9)\n", kept=kept)
    assert not whole
    with kept.open("a") as file:
        file.write('["test_few.py::test_c", {"outc')  # a line that was cut
    fails_again = FEW.replace("pass", "assert 0")  # test_a, which passed and must not run
    found, whole = small_suite(tmp_path, fails_again + "def test_c(): pass\n", processes, kept)
    assert whole
    assert found == first | {"test_few.py::test_c": {"outcome": "passed"}}
    assert small_suite(tmp_path, FEW + "def test_c(): pass\n", processes, kept) == (found, True)


def test_only_one_suite_resumes(capsys):
    for names in ([], ["einops"], ["scipy", "scikit-learn"]):
        with pytest.raises(SystemExit):
            run.main([*names, "--resume", "outcomes"])
        assert "--resume takes one suite; name one of scipy, scikit-learn" in capsys.readouterr().err


def test_files_of_scipy_without_its_fixture_are_left_out(tmp_path):
    sources = {
        "test_fixture.py": "def test(xp): ...",
        "test_mark.py": "mark.array_api_backends",
        "test_no.py": "exp, xp_",
    }
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
    left_out = {name for name in sources if scipy_suite.pytest_ignore_collect(tmp_path / name)}
    assert left_out == {"test_no.py"}
    assert scipy_suite.pytest_ignore_collect(tmp_path / "__init__.py") is None


def test_scipys_tests_see_no_other_library():
    with pytest.raises(ModuleNotFoundError, match="hidden from SciPy's tests: torch"):
        scipy_suite.Hidden.find_spec("torch")
    scipy_suite.Hidden.find_spec("numpy")


class Marked:
    """A test of pytest with one mark of SciPy's."""

    def __init__(self, nodeid: str, *exceptions: str) -> None:
        self.nodeid = nodeid
        self.mark = types.SimpleNamespace(kwargs={"cpu_only": True, "exceptions": [*exceptions]})

    def iter_markers(self, name: str) -> list[types.SimpleNamespace]:
        assert name == "skip_xp_backends"
        return [self.mark]


def test_a_test_that_torch_runs_on_a_gpu_runs_with_ours(monkeypatch):
    def excepted(*given: str) -> list[str]:
        item = Marked(*given)
        scipy_suite.pytest_itemcollected(item)  # type: ignore[arg-type]
        return item.mark.kwargs["exceptions"]

    assert excepted("scipy/signal/tests/test_x.py::test_a", "cupy", "torch") == ["cupy", "torch", "tilearray"]
    assert excepted("scipy/signal/tests/test_x.py::test_a", "cupy") == ["cupy"]
    assert excepted("scipy/special/tests/test_x.py::test_a", "torch") == ["torch"]
    monkeypatch.setenv(peers.VARIABLE, "torch")
    assert excepted("scipy/signal/tests/test_x.py::test_a", "torch") == ["torch"]


def test_functions_that_need_only_ours_run_on_a_gpu():
    special = pytest.importorskip("scipy.special")
    stats = importlib.import_module("scipy.stats")
    table = {each: {"exceptions": ["cupy"]} for each in (special.betainc, special.jv, stats.ttest_rel, stats.lmoment)}
    scipy_suite._except_functions(table)
    assert [peers.OURS in one["exceptions"] for one in table.values()] == [True, False, True, False]


def test_a_process_ends_when_its_time_is_over():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        assert suite._ended(process, 0.001) not in (suite.PASSED, suite.FAILED)
        assert process.returncode != 0


def test_a_line_of_outcomes_that_was_cut_counts_for_nothing(tmp_path):
    file = tmp_path / "outcomes"
    assert outcomes.read(file) == {}
    file.write_text('["a", {"outcome": "passed"}]\n["b", {"outc')
    assert outcomes.read(file) == {"a": {"outcome": "passed"}}


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
