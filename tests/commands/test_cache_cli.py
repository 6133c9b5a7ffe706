"""The command `tilearray cache`: what it is asked for, what it prints and removes, and its exit status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest
from support.cubins import empty_cache, kernel_of
from support.processes import command_in_fresh_python

import tilearray as ta
from tilearray.commands import main as command
from tilearray.commands.main import main
from tilearray_cuda.kernels import disk_cache

Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of compiled kernels, of this process and of those that it starts."""
    return empty_cache(tmp_path / "kernels", monkeypatch)


def keep(source: str, arch: int, label: str, size: int, unused_for: float = 0.0) -> None:
    """Put an invented kernel into the cache."""
    disk_cache.load_or_compile(source, arch, (), label, lambda: kernel_of(source, size))
    then = time.time() - unused_for
    os.utime(disk_cache.directory() / f"{disk_cache.key_of(source, arch, ())}.cubin", (then, then))


# --- list and clear -------------------------------------------------------------------------------------------------


def test_list_of_an_empty_cache(folder: Path, capsys: Output):
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == f"0 kernels, 0 B, in {folder}\n"
    assert not folder.exists()


def test_list_shows_every_kernel_the_last_used_one_first(folder: Path, capsys: Output):
    keep("a", 90, "add_flat", 2000, unused_for=3 * 86400 + 60)
    keep("b", 100, "multiply_tile", 70_000, unused_for=7200)
    keep("c", 80, "sin_rows", 100)
    (folder / "notes.txt").write_text("not a kernel")
    assert main(["cache", "list"]) == 0
    table, totals = capsys.readouterr().out.split("\n\n")
    header, rule, *rows = table.splitlines()
    assert header.split() == ["kernel", "arch", "size", "age", "last", "used"]
    assert set(rule) == {"-", " "}
    cells = [re.split("  +", row) for row in rows]
    assert [row[:4] for row in cells] == [
        ["sin_rows", "sm_80", f"{sizes()[0]} B", "0 s"],
        ["multiply_tile", "sm_100", "68.6 KiB", "2 h"],
        ["add_flat", "sm_90", "2.2 KiB", "3 d"],
    ]
    for row, entry in zip(cells, disk_cache.entries(), strict=True):
        assert time.mktime(time.strptime(row[4], "%Y-%m-%d %H:%M:%S")) == int(entry.last_used)
    assert totals == f"3 kernels, {sum(sizes()) / 1024:.1f} KiB, in {folder}\n"


def sizes() -> list[int]:
    return [entry.size for entry in disk_cache.entries()]


def test_clear_prints_the_removed_files(folder: Path, capsys: Output):
    keep("a", 90, "add_flat", 100)
    keep("b", 90, "add_flat", 5000)
    (folder / "notes.txt").write_text("not a kernel")
    size = sum(sizes())
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 files, {size / 1024:.1f} KiB, from {folder}\n"
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 0 files, 0 B, from {folder}\n"


def test_clear_reports_kernels_that_it_cannot_remove(folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    keep("a", 90, "add_flat", 100)

    def refuse(path: str) -> NoReturn:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "unlink", refuse)
    assert main(["cache", "clear"]) == 1
    printed = capsys.readouterr()
    assert printed.out == f"removed 0 files, 0 B, from {folder}\n"
    assert printed.err == (
        f"tilearray cache clear: cannot remove 1 kernel from {folder}; check the owner of that directory\n"
    )


def test_list_and_clear_need_neither_cuda_nor_triton(folder: Path):
    keep("a", 90, "add_flat", 100)
    missing = ("cuda", "triton", "rich")
    listed = command_in_fresh_python("cache", "list", without=missing)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "\nadd_flat  sm_90 " in listed.stdout
    cleared = command_in_fresh_python("cache", "clear", without=missing)
    assert (cleared.returncode, cleared.stderr) == (0, "")
    assert cleared.stdout.startswith("removed 1 file, ")


def test_a_closed_pipe_is_not_an_error(folder: Path):
    keep("a", 90, "add_flat", 100)
    code = "from tilearray.commands.main import main; import sys; sys.exit(main(['cache', 'list']))"
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# --- what is asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cache"], "the following arguments are required: {list,clear,warm}"),
        (["cache", "warm"], "the following arguments are required: --arch"),
        (
            ["cache", "warm", "--arch", "sm_91"],
            "argument --arch: unknown architecture 'sm_91'; choose from sm_80, sm_86",
        ),
        (["cache", "warm", "--arch", "90"], "argument --arch: unknown architecture '90'; choose from sm_80, sm_86"),
        (
            ["cache", "warm", "--ops", "add,ad"],
            "argument --ops: unknown op 'ad'; choose from add, subtract, multiply, ",
        ),
        (["cache", "warm", "--ops", ""], "argument --ops: unknown op ''; choose from add, subtract, multiply, "),
        (["cache", "warm", "--dtypes", "float31"], "unknown dtype 'float31'; choose from bool, int8, int16, "),
        (
            ["cache", "warm", "--layouts", "rows"],
            "unknown layout 'rows'; choose from contiguous, scalar, row, column, ",
        ),
        (["cache", "warm", "--jobs", "0"], "argument --jobs: expected a number of processes of 1 or more, got '0'"),
        (
            ["cache", "warm", "--jobs", "many"],
            "argument --jobs: expected a number of processes of 1 or more, got 'many'",
        ),
    ],
)
def test_arguments_that_are_not_understood(arguments: list[str], message: str, capsys: Output):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_options_are_lists_may_be_repeated_and_take_all():
    chosen = command.parser().parse_args(
        ["cache", "warm", "--arch", "sm_90,sm_80", "--arch", "sm_100", "--dtypes", "all", "--ops", "add", "--jobs", "3"]
    )
    assert chosen.arch == ["sm_90", "sm_80", "sm_100"]
    assert chosen.dtypes == [dtype.name for dtype in ta.dtypes.ALL]
    assert (chosen.ops, chosen.layouts, chosen.jobs, chosen.mixed) == (["add"], None, 3, False)
