"""The command `tilearray cache warm`: what it compiles, shows and refuses, its exit status, and how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from support.cubins import empty_cache
from support.kernels import needs_triton
from support.processes import command_in_fresh_python

from tilearray.commands.cache import command, warm
from tilearray.commands.main import main
from tilearray_cuda.kernels import disk_cache

TESTS = Path(__file__).parents[1]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of compiled kernels, of this process and of those that it starts."""
    return empty_cache(tmp_path / "kernels", monkeypatch)


WARM = ["cache", "warm", "--arch", "sm_90", "--ops", "add", "--layouts", "contiguous", "--jobs", "1"]


# --- compiling ------------------------------------------------------------------------------------------------------

USED_AFTERWARDS = """
from types import SimpleNamespace
import sys
sys.path.insert(0, {tests!r})
from support.recorder import Recorder
from tilearray_cuda.kernels import disk_cache; from tilearray_cuda.runtime import launch
function = SimpleNamespace(parameters=None, threads=128, shared=0)
launch.load_function = lambda device, cubin: sys.stdout.write(cubin.name) and function
gpu = Recorder()
gpu.array(64, 64) + gpu.array(64, 64).T
assert "triton" not in sys.modules
print(disk_cache.statistics())
"""


@pytest.mark.slow
@needs_triton
def test_warm_compiles_once_opens_no_device_and_calls_find_the_kernels(folder: Path):
    pytest.importorskip("cuda.bindings")
    command = ["cache", "warm", "--arch", "sm_90", "--ops", "add,bitwise_and", "--layouts", "transposed", "--jobs", "2"]
    first = command_in_fresh_python(*command)
    assert first.returncode == 0, first.stderr
    not_supported, totals = first.stdout.splitlines()
    assert not_supported.startswith("not supported: bitwise_and float32 float32: bitwise_and: expected dtypes of kind ")
    assert re.fullmatch(
        rf"9 kernels: 9 compiled, 0 already there, 0 failed; 1 combination not supported; \d+ s, in {folder}", totals
    )
    assert re.fullmatch(r"(\d of 9: add_\w+ float32 float32 -> float32 sm_90\n){9}", first.stderr)
    assert len(disk_cache.entries()) == 9
    assert sorted(path.suffix for path in folder.iterdir()) == [".cubin"] * 9
    again = command_in_fresh_python(*command)
    assert again.returncode == 0
    assert ": 0 compiled, 9 already there, 0 failed; " in again.stdout
    used = run_python(USED_AFTERWARDS.format(tests=str(TESTS)))
    assert used == "add_tileStatistics(memory_hits=0, disk_hits=1, compiles=0, evictions=0)\n"


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@needs_triton
def test_warm_opens_no_device(folder: Path):
    code = (
        "import sys; from tilearray.commands.main import main; code = main(['cache', 'warm', '--arch', 'sm_90', "
        "'--ops', 'sin', '--layouts', 'contiguous']); "
        "import tilearray_cuda; print(code, 'tilearray_cuda.device' in sys.modules)"
    )
    assert run_python(code).endswith("\n0 False\n")


def test_warm_says_that_triton_is_missing(folder: Path):
    done = command_in_fresh_python("cache", "warm", "--arch", "sm_90", without=("triton",))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tilearray cache warm: triton, which compiles the kernels, is not installed; "
        "write: pip install triton (for Linux)\n"
    )
    assert not folder.exists()


@pytest.mark.slow
@needs_triton
def test_warm_compiles_where_cuda_python_is_not_installed(folder: Path, tmp_path: Path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "cuda.py").write_text("raise ImportError('cuda-python is hidden from this process')")
    paths = os.pathsep.join([str(tmp_path / "hidden"), *filter(None, sys.path)])  # reaches the compiling processes, too
    done = command_in_fresh_python(*WARM, PYTHONPATH=paths)
    assert (done.returncode, done.stderr) == (0, "1 of 1: add_flat float32 float32 -> float32 sm_90\n")
    assert "1 kernel: 1 compiled, 0 already there, 0 failed; " in done.stdout
    (entry,) = disk_cache.entries()
    assert (entry.label, entry.arch) == ("add_flat float32 float32 -> float32", 90)


@pytest.fixture
def tools() -> None:
    """What compiling needs."""
    pytest.importorskip("triton")


@pytest.mark.usefixtures("tools")
def test_warm_names_a_directory_that_cannot_be_written(folder: Path, capsys: Output):
    folder.write_text("a file")
    assert main(WARM) == 1
    assert capsys.readouterr().err == (
        f"tilearray cache warm: cannot keep kernels in {str(folder)!r}: File exists; "
        f"set TILEARRAY_CACHE_DIR to another directory\n"
    )


@pytest.mark.usefixtures("tools", "folder")
def test_warm_names_a_size_limit_of_zero(capsys: Output, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEARRAY_CACHE_SIZE", "0")
    assert main(WARM) == 1
    assert capsys.readouterr().err == (
        "tilearray cache warm: TILEARRAY_CACHE_SIZE is 0, so kernels are kept in memory only; unset it\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("tools", "folder")
def test_warm_says_that_the_cache_is_too_small(capsys: Output, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEARRAY_CACHE_SIZE", "12000")
    command = ["cache", "warm", "--arch", "sm_90", "--ops", "add", "--layouts", "row", "--jobs", "1"]
    assert main(command) == 1
    assert re.search(
        r"^tilearray cache warm: the cache evicted \d+ kernels? to make room; "
        r"increase TILEARRAY_CACHE_SIZE, and warm again$",
        capsys.readouterr().err,
        re.MULTILINE,
    )


@pytest.mark.usefixtures("tools", "folder")
def test_a_kernel_that_does_not_compile_is_counted(capsys: Output, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warm, "compile_one", fails)
    assert main(WARM) == 1
    printed = capsys.readouterr()
    label = "add_flat float32 float32 -> float32 sm_90"
    assert printed.err == f"1 of 1: {label}\nfailed: {label}: Trouble: ptxas said no\n"
    assert printed.out.startswith("1 kernel: 0 compiled, 0 already there, 1 failed; 0 combinations not supported; ")


def fails(source: Any, arch: int) -> warm.Outcome:
    return warm.Outcome(f"{source.label} sm_{arch}", False, "Trouble: ptxas\nsaid no", 0)


@pytest.mark.usefixtures("tools", "folder")
@pytest.mark.parametrize(
    ("worker", "message"),
    [
        ("dies", "a compiler process died, perhaps out of memory; write fewer --jobs"),
        ("warns", "no room left"),
    ],
)
def test_warm_ends_where_it_cannot_go_on(worker: str, message: str, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warm, "compile_one", {"dies": dies, "warns": warns}[worker])
    assert main(WARM) == 1
    assert capsys.readouterr().err == f"tilearray cache warm: {message}\n"


def dies(source: Any, arch: int) -> NoReturn:
    os._exit(1)


def warns(source: Any, arch: int) -> NoReturn:
    raise disk_cache.CacheWarning("no room left")


@pytest.mark.usefixtures("tools")
def test_a_selection_without_kernels_is_a_failure(folder: Path, capsys: Output):
    assert main(["cache", "warm", "--arch", "sm_90", "--ops", "bitwise_and"]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "0 kernels: 0 compiled, 0 already there, 0 failed; 1 combination not supported; " in printed.out


def heed_interrupts() -> None:
    """Undo what a shell does to a job in the background, which ignores interrupts, and so do its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def at_work(folder: Path, tmp_path: Path) -> subprocess.Popen[str]:
    """The command in two processes of its own, in the middle of its work, and in a group of its own."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(scratch)}
    code = "import sys; from tilearray.commands.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "cache", "warm", "--arch", "sm_90,sm_80", "--ops", "add,sin", "--jobs", "2"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    assert process.stderr is not None
    assert re.fullmatch(r"\d+ of \d+: .*\n", process.stderr.readline())
    assert processes_with(str(scratch)) >= 3
    return process


def processes_with(variable: str) -> int:
    """How many processes have a value in their environment."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            found += f"={variable}\0".encode() in path.read_bytes()
    return found


def end(variable: str, within: float) -> bool:
    """Whether the processes that have a value in their environment end before long."""
    until = time.monotonic() + within
    while processes_with(variable):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.slow
@needs_triton
@pytest.mark.usefixtures("tools")
def test_an_interrupt_leaves_whole_kernels_only(at_work: subprocess.Popen[str], folder: Path, tmp_path: Path):
    os.killpg(at_work.pid, signal.SIGINT)  # as a terminal does: to the whole group
    out, err = at_work.communicate(timeout=60)
    assert at_work.returncode == 130, err
    assert err.endswith("tilearray cache warm: interrupted\n")
    assert "Traceback" not in err
    compiled, of = (int(re.findall(pattern, out)[0]) for pattern in (r": (\d+) compiled", r"^(\d+) kernels"))
    assert 0 < compiled < of
    files = list(folder.iterdir())
    assert {path.suffix for path in files} == {".cubin"}
    assert compiled <= len(files) <= compiled + 6  # those that were being compiled, or about to be, were finished
    assert all(disk_cache.lookup(path.stem) for path in files)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert end(str(tmp_path / "scratch"), within=60.0)


@pytest.mark.slow
@needs_triton
@pytest.mark.usefixtures("tools")
def test_no_process_outlives_the_command(at_work: subprocess.Popen[str], tmp_path: Path):
    at_work.kill()
    at_work.communicate(timeout=60)
    assert end(str(tmp_path / "scratch"), within=60.0)


# --- progress -------------------------------------------------------------------------------------------------------


Outcomes = Generator[warm.Outcome, None, None]


def outcomes(count: int) -> Outcomes:
    for number in range(count):
        yield warm.Outcome(f"kernel_{number} sm_90", True, "", 0)


def test_progress_is_ten_lines_without_a_terminal(capsys: Output):
    assert list(command.shown(outcomes(25), 25)) == list(outcomes(25))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "3 of 25: kernel_2 sm_90"
    assert lines[-1] == "25 of 25: kernel_24 sm_90"
    assert len(lines) == 10


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_in_a_terminal(capsys: Output, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.redirect_stderr(Terminal()) as terminal:
        assert list(command.shown(outcomes(25), 25)) == list(outcomes(25))
    assert capsys.readouterr().out == ""
    assert "25/25" in terminal.getvalue()
    assert "25 of 25" not in terminal.getvalue()


def test_progress_needs_no_rich(monkeypatch: pytest.MonkeyPatch):
    for module in ("rich", "rich.progress"):
        monkeypatch.setitem(sys.modules, module, None)
    with contextlib.redirect_stderr(Terminal()) as terminal:
        assert len(list(command.shown(outcomes(2), 2))) == 2
    assert terminal.getvalue() == "1 of 2: kernel_0 sm_90\n2 of 2: kernel_1 sm_90\n"


def test_the_work_ends_when_its_watcher_is_closed():
    ended: list[bool] = []

    def work() -> Outcomes:
        try:
            yield from outcomes(5)
        finally:
            ended.append(True)

    working = work()  # held here, so that it does not end for want of a reference
    watched = command.shown(working, 5)
    next(watched)
    watched.close()
    assert ended == [True]


@pytest.mark.parametrize(("given", "expected"), [(None, ["b"]), (["a", "b", "a"], ["a", "b"]), ([], [])])
def test_names_count_once(given: Sequence[str] | None, expected: list[str]):
    assert command.unique(given, ["b"]) == expected
