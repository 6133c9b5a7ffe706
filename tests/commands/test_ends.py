"""How a command ends: signals, a broken standard output, names that a terminal would obey, and a wrong environment."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.processes import command_in_fresh_python

from tilearray.commands.eval import npy
from tilearray.commands.main import main
from tilearray.commands.text import printable

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and modes are POSIX's")

# A result of two chunks; the first one is written, and then the command receives a signal.
KILLED = """
import os, sys
from tilearray.commands.eval import npy
from tilearray.commands.main import main

def killed(self, data, write=npy._Counting.write):
    write(self, data)
    os.kill(os.getpid(), int(sys.argv[1]))

npy._Counting.write = killed
sys.exit(main(["eval", "zeros(100)", "-o", "out.npy"]))
"""


def fresh(code: str, *arguments: str, folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, **options)


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_removes_the_unfinished_file(name: str, tmp_path: Path):
    number = getattr(signal, name)
    done = fresh(KILLED, str(int(number)), folder=tmp_path)
    assert (done.returncode, done.stderr) == (128 + number, "")
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path):
    """As under nohup."""
    code = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{KILLED}"
    assert fresh(code, str(int(signal.SIGHUP)), folder=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out.npy"]


def test_handlers_are_as_before(capsys: pytest.CaptureFixture[str]):
    before = signal.getsignal(signal.SIGTERM)
    assert main(["eval", "1 + 1"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    assert capsys.readouterr().out == "2\n"


MAIN = "import sys; from tilearray.commands.main import main; sys.exit(main(['eval', '1 + 1']))"


@POSIX
def test_a_closed_standard_output_is_one_line(tmp_path: Path):
    done = fresh(f"import os; os.close(1); os.execv({sys.executable!r}, ['python', '-c', {MAIN!r}])", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "tilearray eval: standard output is closed; write > /dev/null for no output\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
def test_a_full_standard_output_is_one_line(tmp_path: Path):
    done = fresh(
        f"import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)\n"
        f"os.execv({sys.executable!r}, ['python', '-c', {MAIN!r}])",
        folder=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr == "tilearray eval: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("command", [["info"], ["eval", "ones(2)"]])
def test_wrong_semantics_in_the_environment_are_one_line(command: list[str]):
    done = command_in_fresh_python(*command, TILEARRAY_SEMANTICS="nonsense")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"tilearray {command[0]}: ")
    assert "TILEARRAY_SEMANTICS: unknown semantics 'nonsense'; write 'array-api' or" in done.stderr


def test_names_are_printed_in_any_encoding(tmp_path: Path):
    output = tmp_path / "size-\u00e9\x1b[31m.npy"
    done = command_in_fresh_python("eval", "1 + 1", "-o", str(output), PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("size-\\xe9\\x1b[31m.npy: int64 ()\n")
    assert output.exists()
    assert printable("size-\u00e9.npy") == "size-\u00e9.npy"


@POSIX
def test_a_replaced_file_loses_the_bits_of_its_owner(tmp_path: Path):
    place = tmp_path / "out.npy"
    place.touch()
    place.chmod(0o4751)
    npy.write_npy(place, np.zeros(3))
    assert stat.S_IMODE(place.stat().st_mode) == 0o751


@POSIX
def test_a_pipe_is_not_a_file():
    reader, writer = os.pipe()
    try:
        with pytest.raises(npy.FileError, match=r"cannot be written: it is not a regular file; write the path of"):
            npy.check_place(f"/dev/fd/{writer}")
    finally:
        os.close(reader)
        os.close(writer)


def test_unstack_of_an_expression_has_a_bound(capsys: pytest.CaptureFixture[str]):
    assert main(["eval", "unstack(broadcast_to(ones(()), 10**8))[0]"]) == 1
    assert "unstack gives at most 4096 arrays here, not 100000000; write x[0]" in capsys.readouterr().err
    assert main(["eval", "unstack(ones((2, 3)), axis=1)[2]"]) == 0
    assert main(["eval", "unstack(ones((2, 3)), 1)[2]"]) == 0
