"""The demo on the real photograph: every step equals NumPy, a wrong one is found, and no picture is half-written."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernels import needs_triton
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.commands.demo import command
from tilearray.commands.demo.beside import Beside, beside
from tilearray.commands.demo.pipeline import STEPS, DemoError, Report, Step, load, np_load, run, summary, ulps_apart
from tilearray.engine.devices import as_device

image = pytest.importorskip("matplotlib.image")
rich_console = pytest.importorskip("rich.console")


@cache
def reports() -> tuple[Report, ...]:
    return tuple(run(command.photograph(), repeats=1))


def by_name() -> dict[str, Report]:
    return {report.step.name: report for report in reports()}


# ---------------------------------------------------------------------- the pipeline


def test_the_photograph_is_the_one_that_matplotlib_ships():
    photo = command.photograph()
    assert (photo.shape, photo.dtype) == ((600, 512, 3), np.uint8)
    assert photo.std() > 50  # a picture, not a blank


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_within_its_tolerance(step: Step):
    report = by_name()[step.name]
    assert report.step is step
    assert report.ulps <= step.ulps
    assert report.seconds > 0
    assert report.numpy_seconds > 0


def test_the_pictures_are_numpys_from_the_photograph_alone():
    """The chain of NumPy functions by itself: the few ulps that functions may be off are at most one grey level."""
    known: dict[str, Any] = {"photograph": command.photograph()}
    for step in STEPS:
        known[step.name] = step.numpy(*(known[name] for name in step.inputs))
    for report in reports():
        expected, found = known[report.step.name], ta.to_numpy(report.result)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=0.01, atol=1)


def test_the_steps_cover_the_features_of_the_demo():
    found = [report.result.dtype.name for report in reports()]
    assert set(found) == {"uint8", "float16", "float32"}
    assert sum(step.view for step in STEPS) >= 3
    assert any(stride < 0 for report in reports() for stride in report.result.strides)
    cases = {case for report in reports() for case in report.loops}
    assert cases == {"flat", "strided", "broadcast", "rows", "tile"}
    assert any(step.ulps for step in STEPS)
    assert by_name()["frame"].result.shape > by_name()["bytes"].result.shape


def test_views_launch_nothing_and_share_the_photographs_memory():
    for step in STEPS[:3]:
        report = by_name()[step.name]
        assert report.loops == ()
        assert np.shares_memory(ta.to_numpy(report.result), ta.to_numpy(by_name()["photo"].result))
    photo = by_name()["photo"].result
    with pytest.raises(ta.WriteError, match="read-only"):
        photo[0, 0] = 1


def test_the_pipeline_does_not_depend_on_the_semantics_in_force():
    found: list[Any] = []
    with ta.semantics("triton"):
        for report in run(command.photograph(), repeats=1):
            assert ta.get_semantics().name == "triton"  # between two steps it is the caller's again
            found.append(report.result)
    for report, other in zip(reports(), found, strict=True):
        np.testing.assert_array_equal(ta.to_numpy(report.result), ta.to_numpy(other))


# ---------------------------------------------------------------------- what is wrong is found


def two_steps(ours: Callable[..., Any], reference: Callable[..., Any], **more: Any) -> list[Report]:
    """Run the first step, and after it one that may be wrong, on a picture of 2 by 4."""
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    second = Step("next", "", ("photo",), ours, reference, **more)
    return list(run(picture, (STEPS[0], second), repeats=1))


def np_half(x: np.ndarray) -> np.ndarray:
    return x / np.float32(2)


def nudged(ulps: int) -> Callable[[ta.Array], Any]:
    """A step that is `ulps` off in one element: (1, 2, 1), whose half is 9.5."""

    def half(x: ta.Array) -> Any:
        found = x / 2
        found[1, 2, 1] = float(np.float32(9.5) + ulps * np.spacing(np.float32(9.5)))
        return found

    return half


def test_a_right_step_passes():
    assert [report.ulps for report in two_steps(lambda x: x / 2, np_half)] == [0, 0]


def test_a_value_that_differs_is_named():
    with pytest.raises(DemoError) as error:
        two_steps(nudged(1), np_half)
    assert str(error.value) == (
        "step 'next': 1 of 24 elements differ from NumPy by more than 0 ulp; at (1, 2, 1) expected 9.5, got 9.500001"
    )


@pytest.mark.parametrize("ulps", [-3, 3])
def test_a_tolerance_is_kept(ulps: int):
    assert two_steps(nudged(ulps), np_half, ulps=3)[-1].ulps == 3
    with pytest.raises(DemoError, match=r"step 'next': 1 of 24 elements differ from NumPy by more than 2 ulp"):
        two_steps(nudged(ulps), np_half, ulps=2)


def test_numpy_continues_from_a_result_within_tolerance():
    half = Step("half", "", ("photo",), nudged(2), np_half, ulps=2)
    copied = Step("copied", "", ("half",), lambda x: x.copy(), np.copy)
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    done = list(run(picture, (STEPS[0], half, copied), repeats=1))
    assert [report.ulps for report in done] == [0, 2, 0]


@pytest.mark.parametrize(
    ("ours", "got"),
    [
        (lambda x: (x / 2).astype("float16"), "got float16 of shape (2, 4, 3)"),
        (lambda x: x[:, :3] / 2, "got float32 of shape (2, 3, 3)"),
    ],
    ids=["dtype", "shape"],
)
def test_another_dtype_or_shape_is_named(ours: Callable[..., Any], got: str):
    with pytest.raises(DemoError) as error:
        two_steps(ours, np_half)
    assert str(error.value) == f"step 'next': expected float32 of shape (2, 4, 3) as in NumPy, {got}"


def test_a_view_that_is_a_copy_is_named():
    with pytest.raises(DemoError) as error:
        two_steps(lambda x: x.copy(), lambda x: x, view=True)
    assert str(error.value) == (
        "step 'next': expected NumPy's view of the photograph with strides (12, 3, 1), "
        "got strides (12, 3, 1) and another first element"
    )


def test_a_view_with_other_strides_is_named():
    with pytest.raises(DemoError) as error:
        two_steps(lambda x: x[..., :2], lambda x: x[..., ::2], view=True)
    assert str(error.value) == (
        "step 'next': expected NumPy's view of the photograph with strides (12, 3, 2), "
        "got strides (12, 3, 1) and the same first element"
    )


@pytest.mark.parametrize(
    ("found", "expected", "apart"),
    [
        (np.uint8([0, 255]), np.uint8([255, 0]), [255, 255]),
        (np.float16([1, 1, -1]), np.float16([1, 1 + 2**-10, -1 - 2**-10]), [0, 1, 1]),
        (np.float32([0.0, -0.0]), np.float32([-0.0, -0.0]), [1, 0]),
        (np.float32([2**-149]), np.float32([-(2**-149)]), [3]),
        (np.float32([np.nan]), np.float32([np.nan]), [0]),
        (np.float32([np.inf]), np.float32([np.finfo(np.float32).max]), [1]),
        (np.float64([1.0]), np.float64([np.nextafter(1.0, 2)]), [1]),
    ],
)
def test_ulps_are_counted(found: np.ndarray, expected: np.ndarray, apart: list[int]):
    assert ulps_apart(found, expected).tolist() == apart
    assert ulps_apart(expected, found).tolist() == apart


def test_nan_is_far_from_every_number():
    assert ulps_apart(np.float32([np.nan]), np.float32([np.inf]))[0] > 1000


# ---------------------------------------------------------------------- beside a GPU


def beside_of(reports: list[Report], **changed: Callable[..., Any]) -> list[Beside]:
    """The steps again, on the host for want of a GPU, where some steps compute something else."""
    others = [
        replace(report, step=replace(report.step, ours=changed.get(report.step.name, report.step.ours)))
        for report in reports
    ]
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    return list(beside(picture, others, as_device("cpu"), 2))


def test_a_gpu_that_differs_is_named():
    done = two_steps(lambda x: x / 2, np_half)
    assert [other.ulps for other in beside_of(done)] == [0, 0]
    with pytest.raises(DemoError) as error:
        beside_of(done, next=nudged(1))
    assert str(error.value) == (
        "step 'next': 1 of 24 elements differ from the host by more than 0 ulp; at (1, 2, 1) expected 9.5, got 9.500001"
    )
    with pytest.raises(DemoError, match=r"expected float32 of shape \(2, 4, 3\) as in the host, got float16"):
        beside_of(done, next=lambda x: (x / 2).astype("float16"))


def test_a_gpu_continues_from_the_hosts_result_within_tolerance():
    half = Step("half", "", ("photo",), lambda x: x / 2, np_half, ulps=2)
    copied = Step("copied", "", ("half",), lambda x: x.copy(), np.copy)
    done = list(run(np.arange(24, dtype=np.uint8).reshape(2, 4, 3), (STEPS[0], half, copied), repeats=1))
    others = beside_of(done, half=nudged(2))
    assert [other.ulps for other in others] == [0, 2, 0]
    assert command.beside_text(as_device("cpu"), others) == (
        "On cpu, 2 steps have the bits of the host, 1 within the ulps that the table shows."
    )


def test_times_of_a_gpu_include_its_work(monkeypatch: pytest.MonkeyPatch):
    waits: list[object] = []
    monkeypatch.setattr(type(as_device("cpu").backend), "synchronize", lambda self: waits.append(self), raising=False)
    assert len(beside_of(two_steps(lambda x: x / 2, np_half))) == 2
    assert len(waits) == 4  # two runs of each step


@needs_triton
def test_the_pipeline_has_the_same_bits_on_an_emulated_gpu():
    code = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import numpy as np
from support.interpreter.emulated_gpu import emulated_device
from tilearray.commands.demo.beside import beside
from tilearray.commands.demo.pipeline import run
photo = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)
for other in beside(photo, list(run(photo, repeats=1)), emulated_device(), 1):
    print(other.step.name, other.ulps, other.result.device)
"""
    found = [line.split() for line in in_fresh_python(code).splitlines()]
    assert [name for name, _, _ in found] == [step.name for step in STEPS]
    assert {device for _, _, device in found} == {"cuda:0"}
    assert all(int(ulps) <= step.ulps for (_, ulps, _), step in zip(found, STEPS, strict=True))


def test_the_table_has_columns_for_a_gpu():
    others = [Beside(report.step, report.result, 3 * (report.step.ulps > 0), 0.00125) for report in reports()]
    text = io.StringIO()
    command.print_table(rich_console.Console(file=text, force_terminal=True, width=180), reports(), others)
    assert all(name in text.getvalue() for name in (*command.COLUMNS, *command.GPU_COLUMNS))
    row = command.row_of(reports()[0], others[0])
    assert row[-2:] == ("1.25 ms", "same bits")
    assert command.row_of(reports()[8], others[8])[-1] == "3 ulp of the host"
    assert len(row) == len(command.COLUMNS) + len(command.GPU_COLUMNS)


def test_the_demo_runs_on_a_gpu_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command, "pictures", lambda *arguments: {})
    monkeypatch.setattr(command, "run", lambda *arguments: iter(reports()))
    monkeypatch.setattr(command, "gpu", lambda: as_device("cpu"))
    command.demo(tmp_path, repeats=1)
    assert "On cpu, 14 steps have the bits of the host.\n" in capsys.readouterr().out
    monkeypatch.setattr(command, "gpu", lambda: None)
    command.demo(tmp_path, repeats=1)
    assert "the bits of the host" not in capsys.readouterr().out


# ---------------------------------------------------------------------- pictures


def pixels(path: Path) -> np.ndarray:
    """A picture as uint8, without its alpha channel."""
    return np.rint(image.imread(path) * 255).astype(np.uint8)[..., :3]


@pytest.mark.slow
def test_the_pictures_show_the_photograph_and_the_last_step(tmp_path: Path):
    done = command.demo(tmp_path, repeats=1)
    np.testing.assert_array_equal(pixels(tmp_path / "before.png"), command.photograph())
    np.testing.assert_array_equal(pixels(tmp_path / "after.png"), ta.to_numpy(done[-1].result))
    sheet = pixels(tmp_path / "steps.png")
    assert sheet.shape[0] > 500
    assert sheet.shape[1] > 1500
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after.png", "before.png", "steps.png"]


def test_a_picture_shows_brightness():
    step = Step("", "", (), load, np_load, white=2.0)
    grey = command.visible(step, ta.asarray([[0.0, 1.0], [2.0, 3.0]]))
    assert grey.tolist() == [[[0] * 3, [127] * 3], [[255] * 3, [255] * 3]]


def test_planes_are_shown_as_bands_in_their_colours():
    planes = np.full((3, 9, 2), 7, np.uint8) + np.arange(3, dtype=np.uint8)[:, None, None]
    bands = command.visible(STEPS[0], ta.asarray(planes))
    assert bands.shape == (9, 2, 3)
    assert bands[[0, 3, 6], 0].tolist() == [[0, 0, 7], [0, 8, 0], [9, 0, 0]]


def test_a_failed_write_leaves_the_old_picture_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    picture = tmp_path / "after.png"
    command.write_whole(picture, b"old")

    def fail(source: Any, target: Any) -> None:
        assert Path(source).parent == tmp_path  # the same folder, so that the move is atomic
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(DemoError, match=r"cannot write to the folder .*: No space left on device; write --output DIR"):
        command.write_whole(picture, b"new")
    assert picture.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [picture]


def test_the_demo_is_on_the_host_and_puts_the_default_device_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    devices = importlib.import_module("tilearray.engine.devices")  # `ta.devices` is the function
    elsewhere, seen = devices.Device("elsewhere", 0), []

    def wrong(*arguments: object) -> None:
        seen.append(ta.default_device())
        raise DemoError("also where a step is wrong")

    monkeypatch.setattr(command, "run", wrong)
    monkeypatch.setattr(devices, "_default", elsewhere)
    with pytest.raises(DemoError, match="also where"):
        command.demo(tmp_path)
    assert seen == [devices.CPU]
    assert ta.default_device() is elsewhere


# ---------------------------------------------------------------------- the table


def test_loops_are_summed_up():
    assert summary(()) == "view, no launch"
    assert summary(("tile", "flat", "flat")) == "flat 2, tile 1"


@pytest.mark.parametrize(("width", "missing"), [(160, set()), (120, {"shows"}), (80, {"shows", "shape", "strides"})])
def test_a_terminal_gets_the_columns_that_fit(width: int, missing: set[str]):
    text = io.StringIO()
    command.print_table(rich_console.Console(file=text, force_terminal=True, width=width, color_system=None), reports())
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    header = next(line for line in lines if "step" in line)
    assert {name for name in command.COLUMNS if name not in header} == missing
    for step in STEPS:
        assert any(line.split()[:1] == [step.name] for line in lines)


def test_progress_passes_every_report_on():
    for terminal in (True, False):
        text = io.StringIO()
        console = rich_console.Console(file=text, force_terminal=terminal, width=80)
        assert list(command.with_progress(console, iter(reports()), len(STEPS))) == list(reports())
        assert ("checking every step" in text.getvalue()) is terminal
