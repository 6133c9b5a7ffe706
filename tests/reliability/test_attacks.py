"""A few cases of each attack; `scripts/reliability` runs them at length."""

from __future__ import annotations

import math
import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.attacks import __main__ as command
from support.attacks import (
    api,
    caches,
    children,
    differential,
    files,
    interrupts,
    liars,
    parts,
    programs,
    texts,
    threads,
    tiles,
    walks,
)
from support.attacks.outcome import Outcome

import tilearray as ta

SEED = 1


def held(outcome: Outcome, cases: int) -> None:
    """Nothing went wrong, and all cases were tried."""
    assert outcome.wrong == []
    assert outcome.tried >= cases


def test_calls_of_the_interface():
    outcome = api.run(5000, SEED)
    held(outcome, 5000)
    assert min(outcome.ends["returned"], outcome.ends["errors of the library"]) > 500


def test_calls_beside_numpys():
    outcome = differential.run(4000, SEED)
    held(outcome, 4000)
    assert outcome.ends["equal"] > 3500


@pytest.mark.parametrize(("run", "cases"), [(threads.run, 1000), (threads.run_tasks, 300), (texts.run, 3000)])
def test_threads_tasks_and_texts(run, cases):
    held(run(cases, SEED), cases)


def test_files_and_command_lines():
    outcome = files.run(600, SEED)
    held(outcome, 600)
    assert min(outcome.ends[end] for end in ("read", "refused", "commands")) > 50


def test_code_in_files_and_other_errors_of_them_are_seen(monkeypatch):
    monkeypatch.setattr(ta, "load", lambda path, **options: np.load(path, allow_pickle=True))
    found = " ".join(files.run(400, SEED).wrong)
    assert "a pickle was read" in found
    assert "ValueError" in found


def test_tiles_beside_numpys():
    outcome = tiles.run(150, SEED)
    held(outcome, 150)
    assert len(outcome.ends) == 3  # tiles that overlap, touch, and lie apart


def test_other_elements_of_tiles_are_seen(monkeypatch):
    monkeypatch.setattr(ta.Array, "tiles", lambda x, *given, **options: ta.tiles(x, *given, **options | {"padding": 1}))
    assert len(tiles.run(100, SEED).wrong) > 40


def test_selections_beside_numpys():
    outcome = walks.run_selections(200, SEED)
    held(outcome, 200)
    assert len(outcome.ends) == 3  # some, all, none


def test_other_selections_are_seen(monkeypatch):
    monkeypatch.setattr(walks.selection, "bits", lambda x: object())
    assert len(walks.run_selections(20, SEED).wrong) == 20


def test_fused_programs():
    outcome = programs.run(60, SEED)
    held(outcome, 60)
    assert sum(count for end, count in outcome.ends.items() if end.endswith("equal")) > 45


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_interrupts():
    outcome = interrupts.run(300, SEED)
    held(outcome, 300)
    assert outcome.ends["interrupted"] > 50


@pytest.mark.skipif(os.name != "posix", reason="the programs use alarms")
@pytest.mark.parametrize(("run", "cases"), [(children.run, 3), (children.run_exits, 2), (caches.run, 1000)])
def test_processes(run, cases):
    held(run(cases, SEED), cases)


# --- attacks see what is wrong ----------------------------------------------------------------------------------------


def test_wrong_results_are_seen(monkeypatch):
    row = differential.CALLS["sum"]
    wrong = (lambda case, xp, arrays: row[0](case, xp, arrays) + (xp is ta), *row[1:])
    monkeypatch.setattr(differential, "CALLS", {"sum": wrong})
    assert len(differential.run(100, SEED).wrong) > 40


def test_other_dtypes_are_seen(monkeypatch):
    as_wide = (
        lambda case, xp, arrays: xp.astype(arrays[0], "float64" if xp is ta else "float32"),
        ("float32",),
        1,
        True,
    )
    monkeypatch.setattr(differential, "CALLS", {"astype": as_wide})
    assert len(differential.run(100, SEED).wrong) == 50  # under `numpy`


def test_internal_errors_and_changed_settings_are_seen(monkeypatch):
    functions: dict[str, Any] = {"broken": lambda x: {}["key"], "changing": lambda x: ta.set_semantics("torch")}
    monkeypatch.setattr(api, "callables", lambda: functions)
    found = " ".join(api.run(300, SEED).wrong)
    assert "broken: KeyError" in found
    assert "changing: settings changed" in found
    assert ta.get_semantics().name == "array-api"


def test_errors_of_functions_that_are_transformed_are_their_own():
    first = api.TRANSFORMED[1]  # it reads x[0]
    assert api.ended(lambda: ta.grad(first)({}, ta.ones(3))) == ("errors of the argument itself", "")
    assert api.ended(lambda: {}["key"])[1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_endless_calls_and_half_written_targets_are_seen(monkeypatch):
    def endless(x: Any) -> None:
        while True:
            pass

    def half(x: Any, *, out: Any = None) -> None:
        if type(out) is ta.Array and out.size and out.ndim:
            out[:1] = 7
            raise ta.ShapeError("half: stopped")

    monkeypatch.setattr(api, "PATIENCE", 0.02)
    monkeypatch.setattr(api, "callables", lambda: {"endless": endless, "half": half})
    found = " ".join(api.run(250, SEED).wrong)
    assert "endless: no end within" in found
    assert "half: an error, and half of the target is written" in found


def test_other_results_of_threads_are_seen(monkeypatch):
    monkeypatch.setattr(threads.Work, "run", lambda self, arrays: object())
    assert len(threads.run(16, SEED).wrong) >= 16


def test_programs_that_fail_are_seen():
    assert children.program("import sys; sys.exit(3)") == (3, "")
    status, told = children.program("raise ValueError(7)")
    assert (status, told.splitlines()[-1]) == (1, "ValueError: 7")


@pytest.mark.parametrize("make", liars.MAKERS)
def test_a_liar_is_new_each_time(make):
    assert make() is not make()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_figures_of_an_attack_replace_its_row_only():
    page = "before\n<!-- figures -->\n<!-- end of figures -->\nafter\n"
    first, second = Outcome("one", "cpu", place="Python 3"), Outcome("two", "cpu", wrong=["a line"])
    first.count("ended", 1)
    page = command.with_figures(command.with_figures(page, [first]), [second])
    first.count("ended", 1)
    page = command.with_figures(page, [first])
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| one | cpu | 2 | 2 ended | 0 | Python 3 |", "| two | cpu | 0 |  | 1 |  |"]
    assert page.startswith("before\n<!-- figures -->\n")
    assert page.endswith("<!-- end of figures -->\nafter\n")


def test_parts_share_the_cases_of_an_attack():
    assert parts.parts("api", 2500, 7, "cpu", 2) == [
        *(("api", 1000, 7, "cpu"), ("api", 1000, 8, "cpu"), ("api", 500, 9, "cpu")),
    ]
    assert [cases for _, cases, _, _ in parts.parts("texts", 2500, 7, "cpu", 2)] == [200, 200, 100]
    assert parts.parts("children", 2500, 7, "cpu", 2) == [("children", 1, 7, "cpu")]


def test_each_process_on_a_gpu_has_one_part():
    assert parts.parts("api", 28_000, 0, "cuda", 14) == [("api", 2000, seed, "cuda") for seed in range(14)]
    assert parts.parts("memory", 3000, 5, "cuda", 14) == [("memory", 50, seed, "cuda") for seed in (5, 6, 7)]


def test_attacks_share_the_time_that_is_left(monkeypatch):
    begun, now = [], 1000.0

    def one(name, cases, seed, device, deadline):
        nonlocal now
        begun.append((name, deadline - now))
        now += min(deadline - now, 10.0)
        return Outcome(name, device)

    monkeypatch.setattr(parts, "one", one)
    monkeypatch.setattr(parts, "time", SimpleNamespace(time=lambda: now))
    list(parts.outcomes(["api", "texts", "programs"], 10, 0, "cuda", seconds=210.0))
    assert [name for name, _ in begun] == ["api", "texts", "programs"]
    assert [seconds for _, seconds in begun] == pytest.approx([80.0, 200 / 13, 190.0])
    list(parts.outcomes(["api"], 10, 0, "cuda"))
    assert begun[-1] == ("api", math.inf)


@pytest.mark.slow
def test_jobs_keep_counts_in_a_file_that_becomes_the_table(tmp_path, monkeypatch, capsys):
    first, second, page = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "page.md"
    page.write_text("<!-- figures -->\n<!-- end of figures -->\n")
    monkeypatch.setattr(command, "PAGE", page)
    assert command.main(["texts", "--cases", "2500", "--jobs", "2", "--json", str(first)]) == 0
    assert command.main(["texts", "--cases", "500", "--seed", "5", "--json", str(second)]) == 0
    assert "texts of expressions on cpu, seed 2: 100 cases in " in capsys.readouterr().out
    assert command.main(["--write-from", str(first), str(second), str(second)]) == 0
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| texts")]
    assert [row[1:3] for row in rows] == [["cpu", "600"]]
    assert f"NumPy {np.__version__} |" in rows[0][-1]


@pytest.mark.parametrize("name", parts.ATTACKS)
def test_no_case_begins_after_the_deadline(monkeypatch, name):
    monkeypatch.setattr(Outcome, "deadline", math.inf)  # which is put back at the end
    found = parts.one(name, 5, SEED, "cpu", deadline=0.0)
    assert (found.tried, found.wrong) == (0, [])


def dies(*_: object) -> None:
    os._exit(3)


def sleeps(*_: object) -> None:
    time.sleep(1000)


@pytest.mark.slow
def test_a_process_that_never_ends_is_wrong(monkeypatch):
    monkeypatch.setattr(parts, "one", sleeps)
    monkeypatch.setattr(parts, "PATIENCE", 1)
    (found,) = parts.outcomes(["texts"], 1, 4, "cpu", jobs=2, seconds=1)
    assert found.wrong == ["the part of seed 4 never ended"]


@pytest.mark.slow
def test_a_process_that_dies_is_wrong(monkeypatch):
    monkeypatch.setattr(parts, "one", dies)
    (found,) = parts.outcomes(["texts"], 1, 0, "cpu", jobs=2)
    assert "ended: BrokenProcessPool" in found.wrong[0]


def test_the_command_names_unknown_attacks_and_fails_if_something_is_wrong(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "expected an attack, got 'nothing'; write one of api, differential" in capsys.readouterr().err
    assert command.main(["texts", "--cases", "100"]) == 0
    assert "texts of expressions on cpu: 20 cases in " in capsys.readouterr().out
    bad = Outcome("bad", "cpu", wrong=["a line"])
    monkeypatch.setitem(parts.ATTACKS, "texts", parts.Attack(lambda *_: bad, 1.0))
    assert command.main(["texts"]) == 1
    assert "1 wrong" in capsys.readouterr().out
