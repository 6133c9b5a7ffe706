"""Runs of the benchmarks: clocks are read right, and a report tells everything that happened, and nothing else."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import peers, report, run, startup, timing
from benchmarks.bar import BAR
from benchmarks.cases import CALLS, LAYOUTS, dtype_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def bench(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run the command at its small size: exit status, JSON, Markdown."""
    status = command.main(["--device", "cpu", "--size", "small", "--out", str(folder), *arguments])
    (data,), (text,) = folder.glob("*.json"), folder.glob("*.md")
    return status, json.loads(data.read_text(encoding="utf-8")), text.read_text(encoding="utf-8")


# ---------------------------------------------------------------------- clocks


class Ticking:
    """A clock whose calls take 1, 2, 3 ... milliseconds each."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.waited = 0

    def seconds(self, call: Any, count: int) -> float:
        self.asked.append(count)
        return len(self.asked) * 1e-3 * count

    def synchronize(self) -> None:
        self.waited += 1


def test_a_kernel_is_timed_in_batches_after_a_warm_up():
    clock = Ticking()
    found = timing.kernel_timing(clock, lambda: None, timing.Effort(0.06, 3, 0, 0, 0))
    assert clock.asked == [2, 1, 10, 10, 10]  # 20 ms a batch, of 2 ms calls
    assert found.as_dict() == pytest.approx({"seconds": 4e-3, "best": 3e-3, "worst": 5e-3, "batches": 3, "calls": 10})


def test_work_outside_of_streams_is_timed_to_completion():
    clock, results = Ticking(), itertools.count()
    ready: list[int] = []
    timing.kernel_timing(clock, lambda: next(results), timing.Effort(0, 3, 0, 0, 0), ready.append)
    assert clock.asked == []
    assert ready == [1, 2, 3, 4, 5]  # the last of two to warm up, one to see how long it takes, three batches
    assert clock.waited >= 2 + 3


def test_a_call_is_timed_between_waits_with_names_of_its_own():
    clock, log = Ticking(), []
    batches = ({"f": log.append, "batch": number} for number in itertools.count())
    found = timing.host_timing(clock, "f(batch)", batches, timing.Effort(0, 0, 3, 5, 0))
    assert log == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5  # the first batch is a warm-up
    assert clock.waited == 4
    assert (found.batches, found.calls) == (3, 5)
    assert 0 < found.best <= found.seconds <= found.worst < 1e-2


def test_a_statement_that_takes_long_is_measured_once_more_and_no_further(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "LONGEST", 0.0)
    log: list[int] = []
    timer = timing.HostTimer(Ticking(), "f()", itertools.repeat({"f": lambda: log.append(0)}), 5)
    assert timer.measure(3).batches == 1
    assert timer.measure(3).batches == 1
    assert len(log) == 2 * 5  # to warm up, and measured


def test_libraries_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []

    def time_call(timer: timing.HostTimer, batches: int, library: Any) -> dict[str, Any]:
        order.append(library.name)
        return real(timer, batches, library)

    real = run.time_call
    monkeypatch.setattr(run, "time_call", time_call)
    _, found, _ = bench(tmp_path, "--parts", "calls", "--only", "a < b", "--libraries", "numpy,tilearray")
    assert order == ["numpy", "tilearray"] * 2
    assert found["calls"][0]["results"]["numpy"]["batches"] == timing.EFFORTS["small"].call_batches


class FakeDriver:
    """Answers every driver call with success and what `answers` holds, and writes it down."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.log: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.log.append((name, *arguments))
            answer = self.answers.get(name, ())
            return answer if isinstance(answer, tuple) and answer else (0, *([answer] if answer != () else []))

        return call


def gpu_clock(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> tuple[timing.GpuClock, FakeDriver]:
    events = {"cuDeviceGet": 0, "cuDevicePrimaryCtxRetain": "context", "cuEventCreate": "event"}
    fake = FakeDriver(**{**events, **answers})
    monkeypatch.setattr(timing.importlib, "import_module", lambda name: fake)
    clock = timing.GpuClock()
    fake.log.clear()
    return clock, fake


def test_a_gpu_is_timed_by_events_around_the_calls(monkeypatch: pytest.MonkeyPatch):
    clock, fake = gpu_clock(monkeypatch, cuEventElapsedTime=30.0)
    assert clock.seconds(lambda: fake.log.append(("call",)), 2) == pytest.approx(0.03)
    names = ["cuEventRecord", "call", "call", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"]
    assert [entry[0] for entry in fake.log] == names


def test_the_yardsticks_of_a_gpu_are_the_drivers(monkeypatch: pytest.MonkeyPatch):
    clock, fake = gpu_clock(monkeypatch)
    x, y = (SimpleNamespace(nbytes=64, __cuda_array_interface__={"data": (place, False)}) for place in (4096, 8192))
    clock.copier(x, y)()
    clock.filler(x)()
    assert fake.log == [("cuMemcpyDtoDAsync", 4096, 8192, 64, 0), ("cuMemsetD32Async", 4096, 0, 16, 0)]


def test_the_bare_launch_has_its_arguments_packed(monkeypatch: pytest.MonkeyPatch):
    clock, fake = gpu_clock(monkeypatch, cuModuleLoadData="module", cuModuleGetFunction="function")
    names: Mapping[str, Any] = clock.launcher()
    eval(timing.LAUNCH, dict(names))
    assert fake.log[-1] == ("cuLaunchKernel", "function", 1, 1, 1, 128, 1, 1, 0, 0, names["frame"], 0)
    assert names["frame"] > 0


def test_a_driver_error_is_an_error(monkeypatch: pytest.MonkeyPatch):
    clock, _ = gpu_clock(monkeypatch, cuCtxSynchronize=(700,))
    with pytest.raises(timing.DriverError, match="700"):
        clock.synchronize()


def test_the_driver_calls_exist():
    driver = pytest.importorskip("cuda.bindings.driver")
    text = "".join((ROOT / "benchmarks" / name).read_text(encoding="utf-8") for name in ("timing.py", "report.py"))
    used = set(re.findall(r"driver\.(cu\w+|CU\w+)", text))
    assert len(used) > 12
    assert {name for name in used if not hasattr(driver, name)} == set()
    for part in ("MAJOR", "MINOR"):
        assert hasattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}")


# ---------------------------------------------------------------------- whole runs


def test_a_small_run_measures_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    status, found, text = bench(tmp_path)
    assert status == 0
    pictures = {".svg"} if importlib.util.find_spec("matplotlib") else set()
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md"} | pictures
    assert [row["name"] for row in found["layouts"]] == [case.name for case in LAYOUTS]
    assert [row["name"] for row in found["calls"]] == [call.name for call in CALLS]
    for row in (*found["layouts"], *found["calls"]):
        assert row["results"]["tilearray"]["status"] == "ok", row
        assert row["results"]["numpy"]["status"] == "ok", row
        timed = {name: one["seconds"] for name, one in row["results"].items() if one["status"] == "ok"}
        assert row["speed_of_best_peer"] == timed[row["best_peer"]] / timed["tilearray"]
        assert row["best_peer"] == min(set(timed) - {"tilearray"}, key=timed.__getitem__)
    first = found["layouts"][0]["results"]["tilearray"]
    assert first["gb_per_s"] == pytest.approx(3 * 96 * 96 * 4 / first["seconds"] / 1e9)
    assert first["of_yardstick"] == pytest.approx(first["gb_per_s"] / found["yardsticks"]["copy"]["median"])
    assert found["yardsticks"]["copy"]["measured"] == len(LAYOUTS)
    assert {step for kind in ("cold", "warm") for step in found["startup"][kind]} == set(startup.STEPS)
    assert found["versions"]["numpy"] == np.__version__
    assert found["device"]["kind"] == "cpu"
    assert "A small run" in text
    for title in ("## Layouts", "## Calls", "## Start-up"):
        assert title in text
    shown = capsys.readouterr()
    assert text in shown.out
    assert f"layouts {len(LAYOUTS)}/{len(LAYOUTS)}" in shown.err


class WrongNumPy(peers.NumPy):
    """Adds one too many to the last element of every sum."""

    @property
    def names(self) -> Mapping[str, Any]:
        def add(x: Any, y: Any, out: Any = None) -> Any:
            result = np.add(x, y, out=out)
            result[..., -1] += 1
            return result

        return {**super().names, "add": add}


def test_a_wrong_result_is_a_row_and_the_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(peers.PEERS, "numpy", WrongNumPy)  # type: ignore[arg-type]
    status, found, text = bench(
        tmp_path, "--only", "add(a, b, out=o)", "--parts", "layouts,calls", "--libraries", "numpy"
    )
    assert status == 1
    assert found["layouts"][0]["results"]["numpy"]["status"] == "mismatch"
    assert "seconds" not in found["layouts"][0]["results"]["numpy"]
    assert "96 of 9216 elements of a window differ; at (0, 95)" in found["layouts"][0]["results"]["numpy"]["why"]
    assert found["calls"][0]["results"]["numpy"]["status"] == "mismatch"
    assert "## Failures" in text
    assert re.search(r"\| `add\(a, b, out=o\)` +\| +mismatch \|", text)


def test_a_copy_is_compared_by_sectors(tmp_path: Path):
    _, found, _ = bench(tmp_path, "--only", "a[:, ::2]", "--parts", "layouts", "--libraries", "numpy")
    (row,) = found["layouts"]
    assert row["traffic"] == 96 * (2 * 384 + 192)
    assert row["ideal_bytes"] == 96 * 3 * 192
    speed = row["traffic"] / row["results"]["numpy"]["seconds"] / 1e9
    assert row["results"]["numpy"]["of_yardstick"] == pytest.approx(speed / found["yardsticks"]["copy"]["median"])


def test_the_bar_has_every_layout_at_every_itemsize(tmp_path: Path):
    sizes = [dtype_of(row.result_dtype).itemsize for row in BAR]
    assert {size: sizes.count(size) for size in sizes} == dict.fromkeys((1, 2, 4, 8, 16), 26)
    assert len({row.name for row in BAR}) == len(BAR)
    status, found, _ = bench(tmp_path, "--parts", "bar", "--only", "uint8", "--libraries", "numpy,tilearray")
    assert status == 0
    assert [row["name"] for row in found["layouts"]] == [row.name for row in BAR if row.result_dtype == "uint8"]
    assert {result["status"] for row in found["layouts"] for result in row["results"].values()} == {"ok"}


class StaleNumPy(peers.NumPy):
    """Computes once, and hands the same memory out from then on."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.memory: Any = None

    def copy(self, x: Any) -> Any:
        self.memory = x.copy() if self.memory is None else self.memory
        return self.memory


def test_stale_memory_is_not_accepted_as_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(peers.PEERS, "numpy", StaleNumPy)  # type: ignore[arg-type]
    status, found, _ = bench(tmp_path, "--only", "a.copy()", "--parts", "layouts", "--libraries", "numpy")
    assert status == 1
    assert "got 77.0" in found["layouts"][0]["results"]["numpy"]["why"]


class BrokenTorch(peers.NumPy):
    name = "torch"

    def permute(self, x: Any, axes: Any) -> Any:
        raise RuntimeError("no such thing\nand more lines")


class BrokenTileArray(BrokenTorch):
    name = "tilearray"


@pytest.mark.parametrize(("broken", "status"), [(BrokenTorch, 0), (BrokenTileArray, 1)])
def test_an_error_of_a_library_is_a_row(broken: Any, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(peers.PEERS, broken.name, broken)  # type: ignore[arg-type]
    only = ["--only", "p + q.permute", "--parts", "layouts", "--libraries", f"numpy,{broken.name}"]
    got, found, _ = bench(tmp_path, *only)
    assert got == status
    results = found["layouts"][0]["results"]
    assert results[broken.name] == {"status": "error", "why": "RuntimeError: no such thing"}
    assert results["numpy"]["status"] == "ok"


def test_a_lost_device_ends_the_run_but_not_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def lost(self: Any) -> None:
        raise timing.DriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(peers.NumPy, "release", lost)
    status, found, text = bench(tmp_path, "--parts", "layouts", "--libraries", "numpy")
    assert status == 1
    assert [row["name"] for row in found["layouts"]] == [LAYOUTS[0].name]
    assert "**The run stopped early: DriverError: CUDA_ERROR_ILLEGAL_ADDRESS**" in text


def test_a_missing_peer_keeps_its_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peers.Torch, "package", "no_such_package")
    status, found, text = bench(tmp_path, "--parts", "layouts,calls", "--only", "a < b")
    assert status == 0
    assert found["layouts"][0]["results"]["torch"] == {"status": "not installed"}
    assert text.count("not installed") == 2


def test_invalid_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = ["--out", str(tmp_path)]
    assert command.main([*out, "--only", "nonsense", "--parts", "calls"]) == 2
    assert capsys.readouterr().err == "benchmarks: no row of calls has 'nonsense' in its name\n"
    with pytest.raises(SystemExit):
        command.main(["--parts", "layouts,x"])
    assert "expected some of layouts,calls,startup,bar, got 'layouts,x'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("floor", "line"),
    [
        ({"status": "ok", "microseconds": 1.234}, "A bare launch: 1.23 microseconds.\n"),
        ({"status": "error", "why": "no compiler"}, "A bare launch: error: no compiler.\n"),
    ],
)
def test_the_bare_launch_is_below_the_table_of_calls(floor: dict[str, Any], line: str):
    assert report.call_table({"libraries": [], "calls": [], "launch_floor": floor}).endswith("\n\n" + line)


# ---------------------------------------------------------------------- start-up and files


def test_a_failed_start_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(startup.sys, "executable", "/no/such/python")
    assert list(startup.measure("cpu", 1)) == ["error"]
    monkeypatch.undo()
    assert "nonsense" in str(startup.measure("nonsense", 1)["error"])


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _, found, _ = bench(tmp_path, "--parts", "calls", "--only", "a < b", "--libraries", "numpy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        report.write({**found, "size": "full"}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_script_runs_where_everything_is_installed(tmp_path: Path):
    pytest.importorskip("torch")
    chosen = ["--device", "cpu", "--size", "small", "--only=-a", "--parts", "calls", "--out", tmp_path]
    done = subprocess.run(
        [ROOT / "scripts" / "bench", *chosen],
        env={**os.environ, "TILEARRAY_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| `-a` " in done.stdout
