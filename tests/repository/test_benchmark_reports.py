"""What is made of stored reports: what moved between two of them, and their pictures."""

from __future__ import annotations

import copy
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import compare, plot

ROOT = Path(__file__).parents[2]
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


def test_only_changes_above_noise_are_shown():
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
    assert "Different" not in text


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


def test_differences_of_the_setup_are_reported():
    new = stored(size="small", libraries=["tilearray", "jax"], device={"name": "Another"})
    text = compare.moved(stored(), new)
    assert "**Different sizes: full before, small now.**" in text
    assert "**Different peers: tilearray, torch before, tilearray, jax now.**" in text
    assert "**Different devices.**" in text


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
    text = capsys.readouterr().out.partition("# Changes")[2]
    assert figures(text, "a < b")[2] == "-100.0%"
    assert figures(text, "-a")[1] == "no such row"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "has no layouts and calls; expected the JSON that python -m benchmarks writes"),
        ('{"layouts": [], "schema": 1}', "has no layouts and calls"),
        ('{"layouts": [], "calls": [], "launch_floor": null, "schema": 0}', "has schema 0, expected 1"),
    ],
)
@pytest.mark.parametrize("option", ["--compare", "--plot"])
def test_a_file_that_is_not_a_report_is_an_error_at_once(
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


# ---------------------------------------------------------------------- pictures


@pytest.fixture
def figure() -> Any:
    return pytest.importorskip("matplotlib.figure").Figure


def bars(panel: Any) -> list[float]:
    return [bar.get_width() for bar in panel.patches]


def marks(panel: Any, label: str) -> list[tuple[float, float]]:
    """Where the marks of a label are: value and row."""
    lines = [line for line in panel.get_lines() if line.get_label() == label]
    return [point for line in lines for point in zip(*line.get_data(), strict=True)]


def test_a_picture_shows_every_figure_in_its_row(figure: Any):
    report = stored()
    report["layouts"][1].update(ideal_bytes=600)  # two thirds of its sectors
    (panel,) = plot.layouts(figure, report).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a + b", "a + b.T"]
    assert bars(panel) == [4000, 3920]
    assert marks(panel, "torch") == [(4000, 0), (1600, 1)]
    limits = marks(panel, "a copy (a fill: memset) in this run")
    assert limits[::2] == [(4000, -0.45), (pytest.approx(4000 * 2 / 3), 0.55)]


def test_a_picture_is_empty_where_nothing_was_measured(figure: Any):
    report = stored(libraries=["tilearray", "torch", "cupy"], launch_floor=None)
    report["calls"][0]["results"].update(tilearray={"status": "error", "why": "x"}, cupy={"status": "not installed"})
    (panel,) = plot.calls(figure, report).axes
    assert bars(panel) == [4.8]
    assert [bar.get_y() + bar.get_height() / 2 for bar in panel.patches] == [pytest.approx(1)]
    assert marks(panel, "torch") == [(5.5, 0), (6.8, 1)]
    assert marks(panel, "cupy") == []
    assert marks(panel, "a bare launch in this run") == []


def test_a_view_is_not_held_against_a_launch(figure: Any):
    (panel,) = plot.calls(figure, stored(calls=[call("a + b", 5, 6), call("view m.T", 0.1, 1)])).axes
    assert marks(panel, "a bare launch in this run") == [(3, -0.45), (3, 0.45)]


def test_many_rows_are_two_columns_of_one_scale(figure: Any):
    rows = [layout(f"row {number}", 0.1 * (number + 1), 0.1) for number in range(41)]
    left, right = plot.layouts(figure, stored(layouts=rows)).axes
    assert (len(bars(left)), len(bars(right))) == (21, 20)
    assert left.get_xlim() == right.get_xlim()
    assert left.get_xlim()[0] == 0
    assert left.get_xlim()[1] > max(bars(right))


def test_a_stored_report_is_drawn_again_identically(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("matplotlib")
    path = written(tmp_path / "old.json", stored())
    texts = []
    for folder in (tmp_path / "once", tmp_path / "twice"):
        assert command.main(["--plot", path, "--out", str(folder)]) == 0
        names = ["2026-11-21T1000-device-calls.svg", "2026-11-21T1000-device-layouts.svg"]
        assert sorted(drawn.name for drawn in folder.iterdir()) == names
        texts.append([(folder / name).read_text(encoding="utf-8") for name in names])
    assert texts[0] == texts[1]
    assert all(len(text) < 100_000 for text in texts[0])
    assert capsys.readouterr().out.count("wrote ") == 4


def test_the_pictures_of_a_result_are_those_of_its_json(tmp_path: Path):
    pytest.importorskip("matplotlib")
    folder = ROOT / "benchmarks" / "results"
    pictures = sorted(folder.glob("*-layouts.svg"))
    assert pictures
    for path in pictures:
        report = json.loads(path.with_name(path.name.replace("-layouts.svg", ".json")).read_text(encoding="utf-8"))
        names = set(re.findall("<!-- (.*?) -->", path.read_text(encoding="utf-8")))
        assert {html.escape(row["name"], quote=False) for row in report["layouts"]} <= names


def test_an_empty_report_has_no_pictures(tmp_path: Path):
    pytest.importorskip("matplotlib")
    drawn = plot.draw(stored(layouts=[]), tmp_path)
    assert [path.name for path in drawn] == ["2026-11-21T1000-device-calls.svg"]


def test_without_matplotlib_there_is_a_report_and_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    chosen = ["--only", "a < b", "--parts", "calls", "--libraries", "numpy", "--out", str(tmp_path)]
    assert command.main(["--device", "cpu", "--size", "small", *chosen]) == 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".md"]
    assert "pictures need matplotlib; write pip install matplotlib" in capsys.readouterr().err
    assert command.main(["--plot", written(tmp_path / "old.json", stored()), "--out", str(tmp_path)]) == 2


# ---------------------------------------------------------------------- the page that shows them


COLUMNS = {"CuPy": "cupy", "JAX (jit)": "jax.jit"}  # the page's heading -> the report's library, if it has another


def test_the_figures_of_the_page_are_those_of_the_records_beside_its_pictures():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\((\.\./benchmarks/results/([^)]*)-(layouts|calls)\.svg)\)", text)
    assert [part for *_, part in pictures] == ["layouts", "calls"]
    for (_, stem, part), shown in zip(pictures, text.split("![")[1:], strict=True):
        report = json.loads((ROOT / "benchmarks" / "results" / f"{stem}.json").read_text(encoding="utf-8"))
        results = {row["name"]: row["results"] for row in report[part]}
        (_, *libraries), *rows = table_of(shown.split("\n## ")[0])
        assert len(rows) > 7
        for name, *cells in rows:
            found = results[name.strip("`")]
            assert cells == [cell_of(found, library) for library in libraries], name
        assert report["date"][:10] in text
        if part == "layouts":
            assert f"({report['yardsticks']['copy']['median']:.0f} GB/s)" in shown
        else:
            assert f"through the driver took {report['launch_floor']['microseconds']:.2f}." in shown


def test_the_reductions_of_the_page_are_those_of_their_record():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = text.partition("## Reductions")[2].partition("\n## ")[0]
    (stem,) = re.findall(r"results/([^)]*-reductions)\.md", section)
    report = json.loads((ROOT / "benchmarks" / "results" / f"{stem}.json").read_text(encoding="utf-8"))
    results = {row["name"]: row["results"] for row in report["rows"]}
    (_, *libraries, _), *rows = table_of(section)
    assert len(rows) > 10
    for name, *cells in rows:
        found = results[name.strip("`")]
        rates = [f"{found[library]['gb_per_s']:.0f}" for library in libraries]
        assert cells == [*rates, f"{found['tilearray']['of_copy']:.3f}"], name


def table_of(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def cell_of(found: dict[str, Any], column: str) -> str:
    """A cell of the page, from the results of a row."""
    if column == "of a copy":
        return f"{found['tilearray']['of_yardstick']:.3f}"
    result = found[COLUMNS.get(column, column)]
    if result["status"] != "ok":
        return "-"
    return f"{result['gb_per_s']:.0f}" if "gb_per_s" in result else f"{result['microseconds']:.2f}"
