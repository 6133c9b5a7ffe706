"""The command `tilearray`: what it prints, its exit status, and what it says when something is in its way."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.processes import command_in_fresh_python

import tilearray as ta
from tilearray.commands.demo import command, pipeline
from tilearray.commands.main import facts, main

Output = pytest.CaptureFixture[str]


def test_version(capsys: Output):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"tilearray {ta.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: {info,demo,eval,cache}"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["info", "more"], "unrecognized arguments: more"),
        (["demo", "--output"], "argument --output: expected one argument"),
    ],
)
def test_arguments_that_are_not_understood(arguments: list[str], message: str, capsys: Output):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------------- info


def test_info_prints_every_fact(capsys: Output):
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    lines = dict(re.findall(r"^(.{10}\S*) +(.*)", re.sub(r"\n {12}", " ", printed), re.MULTILINE))
    found = {name.strip(): fact for name, fact in lines.items()}
    assert found["tilearray"] == ta.__version__
    assert "cpu (default)" in found["devices"].split(", ")
    assert found["python"] == f"{platform.python_version()}, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"
    assert found["semantics"] == "array-api (in force), triton, cutile, torch, numpy"
    assert found["dtypes"] == (
        "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float8_e4m3fn, float8_e5m2, "
        "float16, bfloat16, float32, float64, complex64, complex128"
    )
    assert "float4_e2m1fn" in found["storage"]
    assert list(found) == ["tilearray", "devices", "dtypes", "storage", "semantics", "defaults", "caches", "python"]


def test_info_names_the_semantics_in_force():
    with ta.semantics("triton"):
        assert facts()["semantics"] == "array-api, triton (in force), cutile, torch, numpy"
    with ta.semantics("torch", float="float64"):
        assert facts()["semantics"].endswith("torch, numpy, torch,float=float64 (in force)")
        assert facts()["  defaults"] == "int64, float64, complex128"


def cached() -> dict[str, tuple[int, int]]:
    found = re.findall(r"(\w+) (\d+) of (\d+)", facts()["caches"])
    return {name: (int(entries), int(bound)) for name, entries, bound in found}


def test_info_counts_the_entries_of_the_caches():
    ta.zeros(3) + ta.zeros(3)
    before = cached()
    assert list(before) == ["plans", "recipes", "signatures", "expressions", "kernels"]
    x = ta.zeros((1, 4999))  # a shape that nothing else uses
    x * x
    after = cached()
    for name in ("plans", "signatures"):
        assert after[name][0] > before[name][0]
    assert all(0 < entries <= bound for entries, bound in after.values())
    assert {name: bound for name, (_, bound) in after.items()} == {name: bound for name, (_, bound) in before.items()}


def test_info_needs_neither_rich_nor_matplotlib():
    done = command_in_fresh_python("info", without=("rich", "matplotlib"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"tilearray   {ta.__version__}\ndevices     ")


def test_an_unknown_device_is_an_error_of_one_line():
    done = command_in_fresh_python("info", TILEARRAY_DEVICE="tpu")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "tilearray info: TILEARRAY_DEVICE: 'tpu' is not a device; write 'cpu', 'cuda' or 'cuda:N' with N = 0, 1, ...\n"
    )


# ---------------------------------------------------------------------- demo


@pytest.fixture
def extra():
    """The packages of the extra `demo`."""
    for package in ("matplotlib", "rich"):
        pytest.importorskip(package)


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize("package", ["matplotlib", "rich"])
def test_demo_names_the_extra_of_a_missing_package(package: str, tmp_path: Path):
    done = command_in_fresh_python(
        "demo", "--output", str(tmp_path / "pictures"), without=(package, f"{package}.console")
    )
    assert done.returncode == 1
    assert re.fullmatch(
        rf"tilearray demo: cannot import {package} \(.*{package}.*\); write: pip install matplotlib rich\n",
        done.stderr,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("mine")
    return path


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize(("below", "reason"), [("", "File exists"), ("pictures", "Not a directory")])
def test_demo_names_a_path_that_is_not_a_folder(a_file: Path, below: str, reason: str, capsys: Output):
    folder = a_file / below if below else a_file
    assert main(["demo", "--output", str(folder)]) == 1
    printed = capsys.readouterr()
    assert printed.err == (
        f"tilearray demo: cannot write to the folder {str(folder)!r}: {reason}; "
        f"write --output DIR with a writable folder\n"
    )
    assert printed.out == ""  # found out before anything was computed
    assert a_file.read_text() == "mine"


@pytest.mark.usefixtures("extra")
def test_demo_names_a_folder_that_cannot_be_written_to(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    def refuse(path: Path, content: bytes) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"tilearray demo: cannot write to the folder {str(tmp_path)!r}: Permission denied; "
        f"write --output DIR with a writable folder\n"
    )


@pytest.mark.usefixtures("extra")
def test_demo_says_that_the_photograph_is_missing(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "PHOTOGRAPH", "no_such_picture.jpg")
    assert main(["demo", "--output", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tilearray demo: matplotlib's sample data lacks no_such_picture.jpg (")
    assert error.endswith("); write: pip install --force-reinstall matplotlib\n")


def with_step(name: str, ours: Callable[..., object]) -> tuple[pipeline.Step, ...]:
    return tuple(replace(step, ours=ours) if step.name == name else step for step in pipeline.STEPS)


@pytest.mark.usefixtures("extra")
def test_demo_names_a_step_that_differs_from_numpy_and_writes_nothing(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
):
    def off_by_a_bit(luma: ta.Array) -> ta.Array:
        wrong = pipeline.levels(luma)
        wrong[3, 5] = 0.25
        return wrong

    monkeypatch.setattr(command, "STEPS", with_step("levels", off_by_a_bit))
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert re.fullmatch(
        r"tilearray demo: step 'levels': 1 of 276480 elements differ from NumPy by more than 0 ulp; "
        r"at \(3, 5\) expected 0\.\d+, got 0\.25\n",
        capsys.readouterr().err,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("extra")
def test_demo_ends_with_the_pictures(tmp_path: Path, capsys: Output):
    folder = tmp_path / "made" / "here"
    assert main(["demo", "--output", str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert {path.name for path in folder.iterdir()} == {"before.png", "after.png", "steps.png"}
    for name in ("before.png", "after.png", "steps.png"):
        assert f"wrote {folder / name}\n" in printed.out
    for step in pipeline.STEPS:
        assert re.search(
            rf"^{step.name} .*\d\.\d\d ms +\d+\.\d\d ms  (exact|\d of {step.ulps} ulp)$", printed.out, re.M
        )
    assert f"All {len(pipeline.STEPS)} steps equal NumPy." in printed.out


def test_the_package_is_the_command():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tilearray", "info"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tilearray")
