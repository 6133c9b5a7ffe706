"""What is made of stored reports: what moved between two of them, and their pictures."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import compare

YARDSTICK = {"median": 4000.0, "lowest": 3990.0, "highest": 4010.0, "measured": 2}


def outcome(**figures: float) -> dict[str, Any]:
    return {"status": "ok", **figures}


def layout(name: str, ours: float, peer: float) -> dict[str, Any]:
    """A row of which tilearray reaches `ours` of a copy, and torch `peer`."""
    results = {
        library: outcome(gb_per_s=4000 * speed, of_yardstick=speed)
        for library, speed in (("tilearray", ours), ("torch", peer))
    }
    ranks = {"best_peer": "torch", "speed_of_best_peer": ours / peer}
    return {"name": name, "against": "copy", "ideal_bytes": 900, "traffic": 900, "results": results, **ranks}


def call(name: str, ours: float, peer: float) -> dict[str, Any]:
    """A row in which tilearray takes `ours` microseconds, and torch `peer`."""
    results = {"tilearray": outcome(microseconds=ours), "torch": outcome(microseconds=peer)}
    return {"name": name, "results": results, "best_peer": "torch", "speed_of_best_peer": peer / ours}


def stored(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "date": "2026-11-21T10:00:00+00:00",
        "command": ["python", "-m", "benchmarks"],
        "commit": "c0ffee",
        "device": {"kind": "cuda", "name": "Device", "driver": "1"},
        "versions": {"python": "3", "tilearray": "0"},
        "size": "full",
        "libraries": ["tilearray", "torch"],
        "copied": {},
        "stopped": "",
        "yardsticks": {
            name: {"median": 4000.0, "lowest": 1, "highest": 1, "measured": 1} for name in ("copy", "memset")
        },
        "layouts": [layout("a + b", 1.0, 1.0), layout("a + b.T", 0.98, 0.4)],
        "calls": [call("-a", 5.0, 5.5), call("a * 2.0", 4.8, 6.8)],
        "launch_floor": outcome(microseconds=3.0),
        "startup": {},
        **changes,
    }


# ---------------------------------------------------------------------- what moved


def figures(text: str, name: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` "))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_what_moved_is_shown_and_nothing_else():
    layouts = [layout("a + b", 1.015, 1.0), layout("a + b.T", 0.49, 0.4)]
    new = stored(layouts=layouts, calls=[call("-a", 5.4, 5.5), call("a * 2.0", 6.0, 6.8)], commit="beef")
    text = compare.moved(stored(), new)
    assert figures(text, "a + b.T") == ["0.980", "0.490", "-50.0%", "2.450", "1.225", "-50.0%"]
    assert figures(text, "a * 2.0") == ["4.800", "6.000", "+25.0%", "1.417", "1.133", "-20.0%"]
    assert "`a + b` " not in text
    assert "`-a` " not in text
    assert text.count("1 of 2 rows moved by") == 2
    assert "commit c0ffee" in text
    assert "commit beef" in text
    assert "a bare launch 3.00 and then 3.00" in text
    assert "Not the same" not in text


def test_a_peer_that_moved_is_shown():
    text = compare.moved(stored(), stored(layouts=[layout("a + b", 1.0, 1.25), layout("a + b.T", 0.98, 0.4)]))
    assert figures(text, "a + b") == ["1.000", "1.000", "+0.0%", "1.000", "0.800", "-20.0%"]


def test_the_same_report_did_not_move():
    text = compare.moved(stored(), stored())
    assert text.count("2 of 2 rows moved by") == 2
    assert "| before" not in text


def test_rows_that_came_went_and_broke_are_named():
    new = stored(layouts=[layout("a + b", 1.0, 1.0), layout("exp(a)", 0.9, 0.9)], launch_floor=None)
    new["calls"] = copy.deepcopy(new["calls"])
    new["calls"][0]["results"]["tilearray"] = {"status": "mismatch", "why": "wrong"}
    text = compare.moved(stored(), new)
    assert figures(text, "a + b.T")[:3] == ["0.980", "no such row", ""]
    assert figures(text, "exp(a)")[:3] == ["no such row", "0.900", ""]
    assert figures(text, "-a")[:3] == ["5.000", "mismatch", ""]
    assert "bare launch" not in text


def test_what_cannot_be_compared_says_so():
    new = stored(size="small", libraries=["tilearray", "jax"], device={"name": "Another"})
    text = compare.moved(stored(), new)
    assert "**Not the same sizes: full before, small now.**" in text
    assert "**Not the same peers: tilearray, torch before, tilearray, jax now.**" in text
    assert "**Not the same device.**" in text


def written(path: Path, report: Any) -> str:
    path.write_text(json.dumps(report), encoding="utf-8")
    return str(path)


def test_two_stored_reports_are_compared_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = written(tmp_path / "old.json", stored())
    new = written(tmp_path / "new.json", stored(calls=[call("-a", 9.0, 5.5), call("a * 2.0", 4.8, 6.8)]))
    assert command.main(["--compare", old, new, "--out", str(tmp_path / "none")]) == 0
    assert figures(capsys.readouterr().out, "-a")[:3] == ["5.000", "9.000", "+80.0%"]
    assert not (tmp_path / "none").exists()


def test_a_run_is_compared_with_a_stored_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = written(tmp_path / "old.json", stored(calls=[call("a < b", 1e6, 1e6), call("-a", 5.0, 5.0)], layouts=[]))
    chosen = ["--only", "a < b", "--parts", "calls", "--libraries", "numpy,tilearray", "--out", str(tmp_path / "new")]
    assert command.main(["--device", "cpu", "--size", "small", *chosen, "--compare", old]) == 0
    text = capsys.readouterr().out.partition("# What moved")[2]
    assert figures(text, "a < b")[2] == "-100.0%"
    assert figures(text, "-a")[1] == "no such row"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "holds no layouts and calls; expected the JSON that python -m benchmarks writes"),
        ('{"layouts": [], "schema": 1}', "holds no layouts and calls"),
        ('{"layouts": [], "calls": [], "launch_floor": null, "schema": 0}', "is of schema 0, expected 1"),
    ],
)
@pytest.mark.parametrize("option", ["--compare"])
def test_a_file_that_is_no_report_is_refused_at_once(
    option: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    assert command.main([option, str(tmp_path / "x.json"), "--out", str(tmp_path / "none")]) == 2
    assert message in capsys.readouterr().err
    assert command.main([option, str(tmp_path / "none.json"), "--out", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_third_file_to_compare_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        command.main(["--compare", "x", "y", "z"])
    assert "expected OLD.json and at most a NEW.json, got 3 files" in capsys.readouterr().err
