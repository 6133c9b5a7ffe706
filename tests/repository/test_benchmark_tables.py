"""The command that the tables on a GPU share, over stand-ins of the GPU and of torch."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import (
    copies,
    everyday,
    low_precision,
    numpy_functions,
    products,
    programs,
    random,
    reductions,
    report,
    scatter,
    selection,
    sorting,
    tables,
    tiles,
    timing,
    transforms,
)

ALL = (
    *(copies, everyday, low_precision, numpy_functions, products, random, reductions, scatter, selection, sorting),
    *(tiles, transforms),
)
ENVIRONMENT = {
    "date": "2026-01-01T00:00:00+00:00", "commit": "abc", "command": ["x"],
    "device": {"name": "G", "driver": "1"}, "versions": {"python": "3"},
}  # fmt: skip


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A torch that counts its calls, on a machine with a clock."""
    emptied: list[int] = []
    matmul = SimpleNamespace(allow_tf32=True)
    fake = SimpleNamespace(
        cuda=SimpleNamespace(empty_cache=lambda: emptied.append(1)),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
        rand=lambda shape, device: SimpleNamespace(nbytes=4 * shape),
        emptied=emptied,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr(timing, "GpuClock", lambda: SimpleNamespace(copier=lambda target, source: None))
    monkeypatch.setattr(timing, "kernel_timing", lambda *_: SimpleNamespace(seconds=1e-6))
    monkeypatch.setattr(report, "environment", lambda *_: dict(ENVIRONMENT))
    return fake


def made(status: str, copied: Any = None, seen: list[Any] | None = None) -> tables.Benchmark:
    """A benchmark of two rows."""

    def measured(torch: Any, clock: Any, row: Any, found: Any, size: str, *copy: Any) -> dict[str, Any]:
        if seen is not None:
            seen.append((row.name, list(found), size, [each() for each in copy]))
        return {"name": row.name, "results": {"tilearray": {"status": status, "seconds": 2e-3, "rate": 3.0}}}

    def host_times(torch: Any, clock: Any, found: Any, size: str) -> list[dict[str, Any]]:
        return [{"name": "call", "microseconds": {"tilearray": 1.234}}]

    rows = [SimpleNamespace(name="first"), SimpleNamespace(name="second")]
    return tables.Benchmark(
        "tables", "Tables", ("full", "small"), rows, lambda torch, names: names, measured, host_times,
        lambda found: tables.markdown_of_milliseconds(found, "T: ", "rate", "r/s", 1),
        copied=copied,
    )  # fmt: skip


def test_a_command_measures_and_records_the_rows_that_are_named(torch, tmp_path, capsys):
    seen: list[Any] = []
    benchmark = made("ok", lambda size: 1000, seen)
    given = ["--out", str(tmp_path), "--only", "sec", "--size", "small", "--libraries", "tilearray,cupy"]
    assert tables.run(benchmark, given) == 0
    assert seen == [("second", ["tilearray", "cupy"], "small", [pytest.approx(8.0)])]  # 2 * 4000 bytes in 1 us
    assert torch.emptied == [1]
    assert torch.backends.cuda.matmul.allow_tf32 is False
    printed = capsys.readouterr().out
    assert printed.startswith("second: tilearray 2.0000 ms\ncall {'tilearray': 1.23}\nwrote ")
    (record,) = tmp_path.glob("*-tables.json")
    assert [row["name"] for row in json.loads(record.read_text())["rows"]] == ["second"]
    text = record.with_suffix(".md").read_text()
    assert [cell.strip() for cell in text.split("| second")[1].split("\n")[0].split("|")] == [
        "", "2.0000", "", "", "3.0", "", "",
    ]  # fmt: skip
    assert "| call" in text
    assert "1.23" in text


def test_a_run_that_is_ended_keeps_the_rows_that_it_has(torch, tmp_path):
    benchmark = made("ok")

    def measured(torch: Any, clock: Any, row: Any, *rest: Any) -> dict[str, Any]:
        if row.name == "second":
            raise KeyboardInterrupt
        return benchmark.measured(torch, clock, row, *rest)

    with pytest.raises(KeyboardInterrupt):
        tables.run(benchmark._replace(measured=measured), ["--out", str(tmp_path)])
    (record,) = tmp_path.glob("*-tables.json")
    found = json.loads(record.read_text())
    assert [row["name"] for row in found["rows"]] == ["first"]
    assert found["unfinished"] is True
    assert record.with_suffix(".md").read_text().startswith("**Unfinished")
    assert tables.run(benchmark, ["--out", str(tmp_path)]) == 0
    assert "unfinished" not in json.loads(record.read_text())


@pytest.mark.parametrize("status", ["ok", "mismatch"])
def test_programs_on_the_host_are_measured_and_recorded(tmp_path, capsys, status):
    def measured(clock: Any, row: Any, found: Any, size: str) -> dict[str, Any]:
        assert size == "host"
        result = {"status": status, "seconds": 1e-3, "gb_per_s": 2.0}
        return {"name": row.name, "results": {each.name: result for each in found}}

    def host_times(clock: Any, row: Any, found: Any) -> dict[str, float]:
        return {"tilearray fused": 5.0}

    rows = [SimpleNamespace(name=name) for name in ("first", "second", "third")]
    libraries = [SimpleNamespace(name=name) for name in ("tilearray fused", "numpy", "torch")]
    benchmark = programs.Programs(
        "programs", "P", {"host": 2, "small": 1}, rows, lambda device: libraries, measured, str,
        lambda *_: {"copy_gb_per_s": 9.0}, host_times,
    )  # fmt: skip
    given = ["--out", str(tmp_path), "--only", "s", "--libraries", "torch"]
    assert programs.run(benchmark, given) == (status != "ok")
    printed = capsys.readouterr().out
    assert ("first\n  tilearray fused  " + ("1.000 ms, 2 GB/s" if status == "ok" else status)) in printed
    (record,) = tmp_path.glob("*-programs.json")
    found = json.loads(record.read_text())
    assert [row["name"] for row in found["rows"]] == ["first", "second"]
    assert list(found["rows"][0]["results"]) == ["tilearray fused", "torch"]
    assert found["calls"] == {"first": {"tilearray fused": 5.0}, "third": {"tilearray fused": 5.0}}
    assert found["copy_gb_per_s"] == 9.0
    assert "unfinished" not in found
    assert programs.run(benchmark, ["--device", "cuda:77"]) == 2
    assert capsys.readouterr().err == "benchmarks.programs: there is no device cuda:77\n"


def test_libraries_are_timed_if_their_results_are_right(monkeypatch):
    timed: list[Any] = []

    def kernel_timing(clock: Any, call: Any, effort: timing.Effort, wait: Any) -> timing.Timing:
        timed.append((clock, call(), effort, wait))
        return timing.Timing.of([0.5], 3)

    def checked(library: Any) -> Any:
        if library.name == "raises":
            raise ValueError("no\nmore")
        known = {"right": lambda: 7, "wrong": tables.MISMATCH, "lacks it": {"status": "not there"}}
        return known[library.name]

    monkeypatch.setattr(timing, "kernel_timing", kernel_timing)
    found = [SimpleNamespace(name=name) for name in ("wrong", "raises", "lacks it", "right")]
    found[-1].wait = "wait"
    row = tables.rated_row("clock", SimpleNamespace(name="row"), found, checked, "small", 1e9, 4.0)
    assert timed == [("clock", 7, timing.EFFORTS["small"], "wait")]
    assert (row["name"], row["bytes"], row["copy_gb_per_s"]) == ("row", 1e9, 4.0)
    assert row["results"] == {
        "wrong": {"status": "mismatch"},
        "raises": {"status": "error", "why": "ValueError: no"},
        "lacks it": {"status": "not there"},
        "right": {
            "status": "ok", "seconds": 0.5, "best": 0.5, "worst": 0.5, "batches": 1, "calls": 3,
            "gb_per_s": 2.0, "of_copy": 0.5,
        },
    }  # fmt: skip


def test_a_line_has_each_librarys_rate_and_fraction_of_a_copy_or_its_milliseconds():
    rate = {"status": "ok", "seconds": 0.002, "gb_per_s": 4000.0, "of_copy": 0.95}
    results = {"tilearray": rate, "torch": tables.MISMATCH, "cupy": {"status": "absent", "why": "no such call"}}
    assert tables.line({"name": "MXFP8", "results": results}) == (
        "MXFP8: tilearray 4000 GB/s (0.950), torch mismatch, cupy absent no such call"
    )
    assert tables.line({"name": "sort", "results": {"torch": {"status": "ok", "seconds": 0.001}}}) == (
        "sort: torch 1.0000 ms"
    )


def test_a_report_of_rates_compares_them_with_a_copy_and_the_best_peer():
    results = {
        "tilearray": {"status": "ok", "seconds": 0.002, "gb_per_s": 4000.0, "of_copy": 0.95},
        "torch": {"status": "ok", "seconds": 0.004, "gb_per_s": 2000.0, "of_copy": 0.475},
        "cupy": tables.MISMATCH,
    }
    found = {**ENVIRONMENT, "size": "full", "rows": [{"name": "MXFP8", "results": results}], "calls": []}
    text = tables.markdown_of_rates(found, "T: ")
    assert [cell.strip() for cell in text.split("| MXFP8")[1].split("\n")[0].split("|")] == [
        "", "4000", "2000", "mismatch", "0.950", "2.000", "2.00", "",
    ]  # fmt: skip


@pytest.mark.parametrize("status", ["mismatch", "error"])
def test_a_wrong_result_is_status_1(torch, tmp_path, status):
    assert tables.run(made(status), ["--out", str(tmp_path)]) == 1


def test_a_machine_without_a_gpu_is_status_2(monkeypatch, capsys, tmp_path):
    def absent() -> None:
        raise timing.DriverError("no GPU")

    monkeypatch.setattr(timing, "GpuClock", absent)
    for module in ALL:
        name = module.__name__
        assert module.main(["--out", str(tmp_path)]) == 2
        assert capsys.readouterr().err == f"{name}: no GPU\n"
        assert module.BENCHMARK.name == name.rpartition(".")[2]
        assert "full" in module.BENCHMARK.sizes
    assert not list(tmp_path.iterdir())


def test_rows_of_copies_reductions_and_counts_have_names_of_their_own():
    for module in (copies, reductions, scatter):
        names = [row.name for row in module.ROWS]
        assert len(set(names)) == len(names)
    assert all(sorted(row.axes) == list(range(len(row.shape))) for row in copies.ROWS)
