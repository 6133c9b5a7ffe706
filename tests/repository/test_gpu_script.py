"""scripts/gpu over a small folder of tests: what they say survives failures, hangs, kills and the end of the time."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "test_passes": """
        import os, pytest
        def test_settings():
            assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        @pytest.mark.skip(reason="needs two GPUs")
        def test_skipped():
            pass
    """,
    "test_fails": """
        import pathlib
        def test_wrong():
            assert False, "the first line\\n" + "\\n".join(f"line {i}" for i in range(100))
        def test_beside():
            mark = pathlib.Path("ran")
            if not mark.exists():
                mark.touch()
                raise MemoryError("no memory beside others")
    """,
    "test_hangs": """
        import time
        def test_before():
            pass
        def test_sleeps():
            time.sleep(1000)
        def test_after():
            pass
    """,
    "test_dies": """
        import os
        def test_killed():
            os.kill(os.getpid(), 9)
        def test_loses_its_context():
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        def test_after():
            pass
    """,
    "test_needs_all": """
        import sys, pytest
        @pytest.mark.whole_gpu
        @pytest.mark.parametrize("large", [True, False])
        def test_whole(large):
            assert "--alone" in sys.argv
            assert not large, "no memory at all"
        def test_part():
            assert "--alone" not in sys.argv
    """,
    "test_gpu_rows": """
        def test_one(): pass
        def test_two(): pass
        def test_three(): pass
    """,
    "test_broken": "import nothing_of_this_name",
    "test_absent": "import pytest; pytest.importorskip('nothing_of_this_name', reason='nothing is not installed')",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the scripts, a folder of tests, and a benchmark."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    for name, text in FILES.items():
        lines = [line.removeprefix(" " * 8) for line in text.splitlines()]
        (tmp_path / "tests" / "gpu" / f"{name}.py").write_text("\n".join(lines))
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "rows.py").write_text(
        'import pathlib, sys, time\nprint("first row")\n'
        'folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])\n(folder / "record.json").write_text("{}")\n'
        'time.sleep(100 if "slow" in sys.argv else 0)\nsys.exit("wrong" in sys.argv)\n'
    )
    return tmp_path


def gpu(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run scripts/gpu in a tree, where pytest loads no plugins, which take seconds."""
    environment = {**os.environ, "TILEARRAY_PYTHON": sys.executable, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = ["bash", str(tree / "scripts" / "gpu"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def texts(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in folder.glob("*.txt")}


def test_each_file_has_its_text_and_failed_tests_run_again_alone(tree: Path):
    out = tree / "out"
    process = gpu(tree, "tests", "--out", str(out), "--processes", "3", "--test-limit", "4", "test_hangs", "--rest")
    printed = process.communicate(timeout=120)[0]
    assert process.returncode == 1, printed
    found = texts(out)
    assert found["test_passes"].startswith("test_passes: 1 passed, 1 skipped,")
    assert "\nfinished\n" in found["test_passes"]
    assert "  1: needs two GPUs" in found["test_passes"]
    assert "  1: nothing is not installed" in found["test_absent"]
    assert "No module named 'nothing_of_this_name'" in found["test_broken"]
    assert re.search(r"FAILED test_wrong, [\d.]+ s; alone: failed", found["test_fails"])
    assert "AssertionError: the first line" in found["test_fails"]
    assert "line 40" in found["test_fails"]
    assert "line 80" not in found["test_fails"]
    assert re.search(r"FAILED test_beside, [\d.]+ s; alone: passed", found["test_fails"])
    assert "MemoryError: no memory beside others" in found["test_fails"]
    assert found["test_hangs"].startswith("test_hangs: 2 passed, 1 hung,")
    assert "HUNG test_sleeps" in found["test_hangs"]
    assert "line 6 in test_sleeps" in found["test_hangs"]  # the stack
    assert found["test_dies"].startswith("test_dies: 1 passed, 1 failed, 1 died,")
    assert "the process ended with status -9" in found["test_dies"]
    assert "the next test needs a new process" in printed
    assert found["test_needs_all"].startswith("test_needs_all: 2 passed, 1 failed,")
    assert "\nfinished\n" in found["test_needs_all"]
    assert re.search(r"FAILED test_whole\[True\], [\d.]+ s; alone: failed", found["test_needs_all"])
    assert (out / "test_needs_all.events").read_text().count('"event": "began"') == 3
    assert found["test_gpu_rows-1of2"].startswith("test_gpu_rows-1of2: 2 passed,")
    assert found["test_gpu_rows-2of2"].startswith("test_gpu_rows-2of2: 1 passed,")
    assert "test_hangs: 2 passed, 1 hung" in found["summary"]
    assert len(found["summary"].splitlines()) >= len(FILES)


def test_a_run_that_is_killed_loses_nothing_and_goes_on(tree: Path):
    out = tree / "out"
    wanted = ("test_fails", "test_hangs", "test_passes")
    process = gpu(tree, "tests", "--out", str(out), "--processes", "1", *wanted)
    events, end = out / "test_hangs.events", time.monotonic() + 60
    while not (events.exists() and "began" in events.read_text() and "test_sleeps" in events.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    assert texts(out)["test_fails"].startswith("test_fails: 2 failed,")
    with events.open("a") as file:
        file.write('{"event": "en')  # a line that the kill cut off
    hangs = tree / "tests" / "gpu" / "test_hangs.py"
    hangs.write_text(
        hangs.read_text().replace("1000", "0").replace("def test_before():", "def test_before():\n    1 / 0")
    )
    process = gpu(tree, "tests", "--out", str(out), "--resume", *wanted)
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 1, printed
    found = texts(out)
    assert found["test_hangs"].startswith("test_hangs: 3 passed,")  # test_before did not run again
    assert "alone: passed" in found["test_fails"]
    assert found["test_passes"].startswith("test_passes: 1 passed, 1 skipped,")


def test_the_end_of_the_time_names_the_test_and_what_failed_runs_first_then(tree: Path):
    out = tree / "out"
    process = gpu(
        tree, "tests", "--out", str(out), "--minutes", "0.05", "test_hangs", "test_passes", "--processes", "1"
    )
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 3, printed
    assert "0.05 minutes are over; scripts/gpu tests --resume goes on" in printed
    assert "not finished: test_hangs test_passes" in texts(out)["summary"]
    for name in ("test_hangs", "test_broken", "test_absent", "test_fails", "test_needs_all", "test_gpu_rows"):
        (tree / "tests" / "gpu" / f"{name}.py").unlink()
    (tree / "tests" / "gpu" / "test_dies.py").write_text("def test_one(): assert True\n")
    (out / "test_passes.events").write_text('{"event": "broken", "text": "no", "time": 0}\n')
    process = gpu(tree, "tests", "--out", str(out), "--processes", "1")
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 0, printed
    assert [line.split()[1] for line in printed.splitlines() if line.startswith("[")] == [
        "test_passes:",
        "test_dies:",
    ]
    assert (out / "before" / "test_hangs.txt").read_text().startswith("test_hangs: ")


def test_the_files_that_are_run_in_parts_exist(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    parts = importlib.import_module("_gpu_tests").PARTS
    assert sorted(parts) == sorted(name for name in parts if (ROOT / "tests" / "gpu" / f"{name}.py").exists())


def test_a_name_that_is_no_file_of_tests_is_status_2(tree: Path):
    process = gpu(tree, "tests", "--out", str(tree / "out"), "test_nothing")
    assert "tests: expected files of tests/gpu, got test_nothing" in process.communicate(timeout=60)[0]
    assert process.returncode == 2


def test_benchmarks_run_one_after_the_other_within_their_time(tree: Path):
    out = tree / "out"
    process = gpu(tree, "bench", "--out", str(out), "--limit", "1", "rows slow --out {out}")
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 3, printed
    assert "rows slow --out {out}: its 1 s were over" in printed
    assert "== its 1 s were over" in (out / "rows-slow-out-out.txt").read_text()
    (out / "record.json").unlink(missing_ok=True)
    process = gpu(tree, "bench", "--out", str(out), "rows", "rows wrong")
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 1, printed
    assert "first row\n" in printed
    assert "records: record.json" in printed
    assert "== ended with status 0" in (out / "rows.txt").read_text()
    assert "== ended with status 1" in (out / "rows-wrong.txt").read_text()
    process = gpu(tree, "bench", "--out", str(out), "--resume", "rows", "rows wrong")
    printed = process.communicate(timeout=60)[0]
    assert printed.count("ran before") == 2
    assert process.returncode == 0
