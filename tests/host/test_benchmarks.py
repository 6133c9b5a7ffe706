"""The benchmarks: bytes are counted right, wrong results are caught, clocks are read right, and reports tell it all."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import cases, check, peers, report, run, startup, timing
from benchmarks.cases import CALLS, LAYOUTS, Case

ROOT = Path(__file__).parents[2]
HOST_DTYPES = sorted({dtype for case in LAYOUTS for dtype in case.arrays.values()})


def bench(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run the command at its small size: exit status, JSON, Markdown."""
    status = command.main(["--device", "cpu", "--size", "small", "--out", str(folder), *arguments])
    (data,), (text,) = folder.glob("*.json"), folder.glob("*.md")
    return status, json.loads(data.read_text(encoding="utf-8")), text.read_text(encoding="utf-8")


# ---------------------------------------------------------------------- the tables


def test_rows_have_names_of_their_own():
    for rows in (LAYOUTS, CALLS):
        assert len({row.name for row in rows}) == len(rows)
    assert {call.name for call in CALLS if call.fresh} == set(cases.FRESH)


@pytest.mark.parametrize("size", cases.SIZES)
@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_every_case_has_a_geometry_at_every_size(case: Case, size: str):
    operands, shape = case.geometry(size)
    assert len(operands) == len(case.operands)
    assert math.prod(shape) > 0
    assert case.ideal_bytes(size) <= case.traffic(size) < 2.3 * case.ideal_bytes(size) + 128


def test_the_full_size_is_far_beyond_the_cache():
    assert min(case.ideal_bytes("full") for case in LAYOUTS) > 8 * 60e6


MATRIX = np.empty((64, 64), np.float32)
DOUBLES = np.empty((16, 48), np.float64)


@pytest.mark.parametrize(
    "view",
    [
        MATRIX,
        MATRIX.T,
        MATRIX[::2],
        MATRIX[:, ::2],
        MATRIX[::-1, ::-4].T,
        MATRIX[:, ::9],
        MATRIX[8:40, 16:32],
        np.broadcast_to(MATRIX[:1], (64, 64)),
        MATRIX[:, :1],
        DOUBLES[:, ::3],
        DOUBLES[:, ::5],
        np.empty((4, 6, 5, 8), np.float32).transpose(1, 2, 3, 0)[::2],
        MATRIX.view(np.uint8)[:, ::3],
    ],
    ids=lambda view: f"{view.dtype}-{view.shape}-{view.strides}",
)
def test_bytes_are_those_of_the_addresses_reached(view: np.ndarray):
    """Every address, one by one; memory is taken to begin at the first of them that is lowest."""
    grid = np.ogrid[tuple(slice(0, extent) for extent in view.shape)]
    offsets = sum((abs(stride) * axis for stride, axis in zip(view.strides, grid)), np.zeros((), int)).ravel()
    octets = np.unique(offsets[:, None] + np.arange(view.itemsize))
    assert cases.reached(view) == (octets.size, np.unique(octets // cases.SECTOR).size * cases.SECTOR)


def test_every_second_column_moves_twice_its_bytes():
    (case,) = (case for case in LAYOUTS if case.name == "a[:, ::2] + b[:, ::2]")
    n = 16384
    assert case.ideal_bytes("full") == 3 * n * n // 2 * 4
    assert case.traffic("full") == 2 * n * n * 4 + n * n // 2 * 4


@pytest.mark.parametrize("name", cases.FRESH)
def test_never_seen_shapes_are_never_repeated(name: str):
    effort = timing.EFFORTS["full"]
    seen: set[tuple[Any, ...]] = set()
    for batch in range(effort.call_batches + 2):
        xs, ys = cases.FRESH[name](np.empty, batch * effort.calls, effort.calls)
        assert all(x.shape[-1:] == y.shape for x, y in zip(xs, ys, strict=True))
        seen.update(x.shape for x in xs)
    assert len(seen) == (effort.call_batches + 2) * effort.calls


# ---------------------------------------------------------------------- the check


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_the_oracle_is_numpy_over_numpys_views(case: Case):
    owner = peers.NumPy("cpu")
    known = cases.shapes("small")
    arrays = {name: owner.random(known[name], dtype, 5) for name, dtype in case.arrays.items()}
    operands, target = case.views(arrays, owner.names)
    wide = [check.widened(x) for x in operands]
    whole = case.call(check.REFERENCE)(*wide, target)
    (((window, values),)) = check.expected(case, "small", owner, arrays)
    np.testing.assert_array_equal(values, np.broadcast_to(whole, case.geometry("small")[1])[window])


@pytest.mark.parametrize("shape", [(1 << 17,), (300, 700), (40, 50, 60), (9, 30, 40, 50), (2, 1 << 16)])
def test_windows_hold_both_corners_and_stay_inside(shape: tuple[int, ...]):
    found = list(check.windows(shape))
    assert {tuple(part.start for part in window) for window in found} >= {(0,) * len(shape)}
    assert {tuple(part.stop for part in window) for window in found} >= {shape}
    for window in found:
        assert all(0 <= part.start < part.stop <= extent for part, extent in zip(window, shape))
    assert len({str(window) for window in found}) > 10


def test_windows_of_large_results_are_fetched_right(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "WHOLE", 10)
    monkeypatch.setattr(check, "WINDOW", 300)
    case = Case("", ("a[:, ::-1]", "permute(b, (1, 0))[:, :1]"), "x - y")
    owner = peers.NumPy("cpu")
    arrays = {name: owner.random((96, 96), "float32", seed) for seed, name in enumerate("ab")}
    whole = arrays["a"][:, ::-1].astype(float) - arrays["b"].T[:, :1]
    found = check.expected(case, "small", owner, arrays)
    assert len(found) == check.WINDOWS + 2
    for window, values in found:
        np.testing.assert_array_equal(values, whole[window])


ADD = Case("a + b", ("a", "b"))


def checked(result: np.ndarray) -> None:
    owner = peers.NumPy("cpu")
    arrays = {name: np.full((96, 96), 1.5, np.float32) for name in "ab"}
    check.compare(ADD, owner, result, check.expected(ADD, "small", owner, arrays), (96, 96))


def test_a_right_result_passes():
    checked(np.full((96, 96), 3, np.float32))
    checked(np.full((96, 96), np.nextafter(np.float32(3), 4), np.float32))


@pytest.mark.parametrize("value", [3.00001, 77, np.nan, np.inf, -3])
def test_one_wrong_element_is_named(value: float):
    result = np.full((96, 96), 3, np.float32)
    result[95, 94] = value
    with pytest.raises(check.MismatchError) as error:
        checked(result)
    assert str(error.value) == (
        f"1 of 9216 elements of a window differ; at (95, 94) expected 3.0, got {np.float32(value)}"
    )


def test_another_shape_or_dtype_is_named():
    with pytest.raises(check.MismatchError, match=r"expected shape \(96, 96\), got \(96, 95\)"):
        checked(np.full((96, 95), 3, np.float32))
    with pytest.raises(check.MismatchError, match="expected float32, got float64"):
        checked(np.full((96, 96), 3.0))


def test_integers_and_bools_are_exact():
    assert check.differs(np.array([2**24 + 1]), np.array([2**24])).all()
    assert check.differs(np.array([True]), np.array([False])).all()


# ---------------------------------------------------------------------- the libraries


def owners() -> Iterator[Any]:
    yield pytest.param(peers.NumPy, id="numpy")
    yield pytest.param(peers.Torch, id="torch")


@pytest.fixture(params=owners())
def owner(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param.package)
    return request.param("cpu")


@pytest.mark.parametrize("dtype", HOST_DTYPES)
def test_data_are_of_the_dtype_and_well_conditioned(owner: Any, dtype: str):
    x = owner.random((50, 40), dtype, 7)
    values = owner.to_numpy(x)
    assert (values.dtype, values.shape) == (cases.dtype_of(dtype), (50, 40))
    assert np.unique(values).size >= (2 if dtype == "bool" else 100)
    if values.dtype.kind in "fcV":
        parts = check.widened(values).view(np.float64)
        assert parts.min() >= 1
        assert parts.max() <= 2
    np.testing.assert_array_equal(values, owner.to_numpy(owner.random((50, 40), dtype, 7)))
    assert (values != owner.to_numpy(owner.random((50, 40), dtype, 8))).any()
    np.testing.assert_array_equal(owner.take(x, np.array([[3, 1999]])), values.ravel()[[[3, 1999]]])


@pytest.mark.parametrize("dtype", HOST_DTYPES)
@pytest.mark.parametrize("library", ["tilearray", "torch"])
def test_memory_is_shared(library: str, dtype: str):
    pytest.importorskip(library)
    x = peers.NumPy("cpu").random((6, 5), dtype, 1)
    adapter = peers.PEERS[library]("cpu")
    theirs = adapter.adopt(x)
    np.testing.assert_array_equal(adapter.to_numpy(theirs), x)
    adapter.spoil(theirs)
    assert (x == (True if dtype == "bool" else 77)).all()
    assert adapter.copied == ""


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_arrays_may_be_torchs(case: Case):
    pytest.importorskip("torch")
    libraries, missing = peers.open_libraries("cpu", ("tilearray", "torch"))
    session = run.Session(
        "small", libraries, missing, peers.Torch("cpu"), timing.HostClock(), timing.Effort(0, 1, 1, 1, 1)
    )
    statuses = {name: found["status"] for name, found in run.run_case(session, case)["results"].items()}
    assert statuses == {"tilearray": "ok", "torch": "not supported" if "torch" in case.without else "ok"}


def test_what_is_missing_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peers.Torch, "package", "no_such_package")
    here, missing = peers.open_libraries("cpu", ("numpy", "torch", "cupy"))
    assert list(here) == ["numpy"]
    assert missing == {"torch": "not installed", "cupy": "on a GPU only"}


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


def test_what_no_stream_orders_is_timed_to_its_end():
    clock = Ticking()
    timing.kernel_timing(clock, lambda: None, timing.Effort(0, 3, 0, 0, 0), ordered=False)
    assert clock.asked == []
    assert clock.waited >= 2 + 3


def test_a_call_is_timed_between_waits_with_names_of_its_own():
    clock, log = Ticking(), []
    batches = ({"f": log.append, "batch": number} for number in itertools.count())
    found = timing.host_timing(clock, "f(batch)", batches, timing.Effort(0, 0, 3, 5, 0))
    assert log == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5  # the first batch is a warm-up
    assert clock.waited == 4
    assert (found.batches, found.calls) == (3, 5)
    assert 0 < found.best <= found.seconds <= found.worst < 1e-2


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
    timing.host_timing(Ticking(), timing.LAUNCH, iter([clock.launcher()]), timing.Effort(0, 0, 0, 2, 0)) if False else 0
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
    assert len(list(tmp_path.iterdir())) == 2
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
    assert found["calls"] == [] or found["calls"][0]["results"]["numpy"]["status"] == "mismatch"
    assert "## What failed" in text
    assert re.search(r"\| `add\(a, b, out=o\)` +\| +mismatch \|", text)


class BrokenTorch(peers.NumPy):
    name = "torch"

    def permute(self, x: Any, axes: Any) -> Any:
        raise RuntimeError("no such thing\nand more lines")


class BrokenTileArray(BrokenTorch):
    name = "tilearray"


@pytest.mark.parametrize(("broken", "status"), [(BrokenTorch, 0), (BrokenTileArray, 1)])
def test_what_raises_is_a_row(broken: Any, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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


def test_arguments_that_make_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = ["--out", str(tmp_path)]
    assert command.main([*out, "--only", "nonsense", "--parts", "calls"]) == 2
    assert capsys.readouterr().err == "benchmarks: no row of calls has 'nonsense' in its name\n"
    with pytest.raises(SystemExit):
        command.main(["--parts", "layouts,x"])
    assert "expected some of layouts,calls,startup, got 'layouts,x'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- start-up and files


def test_a_start_that_fails_is_no_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(startup.sys, "executable", "/no/such/python")
    assert list(startup.measure("cpu", 1)) == ["error"]
    monkeypatch.undo()
    assert "nonsense" in str(startup.measure("nonsense", 1)["error"])


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _, found, _ = bench(tmp_path, "--parts", "calls", "--only", "-a", "--libraries", "numpy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        report.write({**found, "size": "full"}, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_script_runs_where_everything_is_installed(tmp_path: Path):
    pytest.importorskip("torch")
    done = subprocess.run(
        [ROOT / "scripts" / "bench", "--device", "cpu", "--size", "small", "--only", "-a", "--parts", "calls"]
        + ["--out", tmp_path],
        env={**os.environ, "TILEARRAY_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "| `-a` " in done.stdout
