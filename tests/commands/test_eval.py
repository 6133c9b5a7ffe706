"""The command `tilearray eval`: results against NumPy, files, messages of a line, exit status, stages."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.processes import command_in_fresh_python

import tilearray as ta
from tilearray.commands.eval import command, npy
from tilearray.commands.eval.vocabulary import FUNCTIONS
from tilearray.commands.main import main

Output = pytest.CaptureFixture[str]

A = np.arange(12, dtype="uint8").reshape(3, 4)
B = np.linspace(-1, 1, 4, dtype="float32")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a.npy and b.npy."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", A)
    np.save("b.npy", B)
    return tmp_path


def said(capsys: Output, status: int, *arguments: str) -> str:
    """What a command that ends so says on standard error, where nothing was printed before."""
    assert main(["eval", *arguments]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tilearray eval: ")
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix("tilearray eval: ").rstrip("\n")


# --- results --------------------------------------------------------------------------------------------------------


def test_a_result_is_printed_as_the_library_prints_it(folder: Path, capsys: Output):
    assert main(["eval", "a * b", "a=a.npy", "b=b.npy"]) == 0
    printed = capsys.readouterr()
    assert printed.out == repr(ta.asarray(A, device="cpu") * ta.asarray(B, device="cpu")) + "\n"
    assert printed.err == ""
    assert main(["eval", "2 ** 10"]) == 0
    assert capsys.readouterr().out == "1024\n"


def test_a_result_is_written(folder: Path, capsys: Output):
    assert main(["eval", "sqrt(a.T[:, ::-1] + 0.5)", "a=a.npy", "-o", "out.npy"]) == 0
    assert capsys.readouterr().out == "wrote out.npy: float32 (4, 3)\n"
    found = np.load("out.npy")
    expected = np.sqrt(A.T[:, ::-1] + np.float32(0.5))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert sorted(os.listdir()) == ["a.npy", "b.npy", "out.npy"]


def test_files_stand_before_and_behind_options(folder: Path, capsys: Output):
    assert main(["eval", "--device", "cpu", "a * b", "a=a.npy", "-o", "out.npy", "b=b.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), A * B)


def test_a_file_is_the_input_and_the_output(folder: Path):
    assert main(["eval", "a[::-1]", "a=a.npy", "--output", "a.npy"]) == 0
    np.testing.assert_array_equal(np.load("a.npy"), A[::-1])


def test_inputs_are_mapped_and_not_copied(folder: Path, monkeypatch: pytest.MonkeyPatch):
    mapped: list[np.ndarray] = []
    opened = npy.open_npy
    monkeypatch.setattr(npy, "open_npy", lambda *arguments: mapped.append(opened(*arguments)) or mapped[-1])
    found = command.computed(command.task("a.T", ["a=a.npy"], None, "cpu"))
    assert isinstance(mapped[0], np.memmap)
    assert np.shares_memory(ta.to_numpy(found), mapped[0])


def test_the_semantics_are_those_that_are_asked_for(folder: Path):
    assert main(["eval", "(a - 7).T // -2", "a=a.npy", "-o", "c.npy", "--semantics", "triton"]) == 1  # uint8 and -2
    np.save("i.npy", np.array([-7, 7], "int32"))
    for semantics, expected in (("triton", [-3, 3]), ("array-api", [-4, 3])):
        assert main(["eval", "i // 2", "i=i.npy", "-o", "c.npy", "--semantics", semantics]) == 0
        assert np.load("c.npy").tolist() == expected
        assert ta.get_semantics().name == "array-api"
    assert main(["eval", "i / 2", "i=i.npy", "-o", "c.npy", "--semantics", "triton,float=float64"]) == 0
    assert np.load("c.npy").dtype == "float64"


def test_new_arrays_are_on_the_device_that_is_asked_for(folder: Path):
    given = command.task("ta.zeros(3)", [], None, "cpu")
    assert given.device is ta.zeros(1, device="cpu").device
    with command.using_device(given.device):
        assert ta.zeros(3).device is given.device


def test_bfloat16_and_float8_come_and_go(folder: Path, capsys: Output):
    for dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        assert main(["eval", f"ta.astype(a, ta.{dtype})", "a=a.npy", "-o", "x.npy"]) == 0
        assert capsys.readouterr().out == (
            f"wrote x.npy: {dtype} (3, 4)\n"
            f"The .npy format has no name for {dtype}; a descriptor tells it. To read the file, write "
            f"ta.asarray(np.load(...)), np.load(...).view('{dtype}'), or here NAME=x.npy\n"
        )
        assert main(["eval", "x + 0", "x=x.npy"]) == 0
        assert f"dtype={dtype}" in capsys.readouterr().out
        expected = A.astype(getattr(ml_dtypes, dtype))
        assert np.load("x.npy").tobytes() == expected.tobytes()
    assert main(["eval", "ta.astype(a, ta.bfloat16)", "a=a.npy", "-o", "x.npy"]) == 0
    assert main(["eval", "x + 0.5", "x=x.npy", "-o", "y.npy"]) == 0
    assert npy.open_npy("y.npy").dtype == ta.bfloat16


def test_the_commands_of_the_documentation_run(folder: Path, capsys: Output):
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = [shlex.split(line, comments=True) for line in page.splitlines() if line.startswith("tilearray eval ")]
    np.save("b.npy", np.ones((4, 3), "float32"))
    np.save("x.npy", B)
    np.save("weights.npy", np.ones(3, ml_dtypes.float8_e4m3fn))
    assert [main(command[1:]) for command in commands] == [0] * 4
    np.testing.assert_array_equal(np.load("result.npy"), np.sqrt(A * A + np.ones((3, 4), "float32")) / 2)


# --- what is said when something is wrong -----------------------------------------------------------------------------

USAGE = [
    (["__import__('os').system('true')", "a=a.npy"], "`__import__('os').system`: an expression cannot call this; "),
    (["a.dtype", "a=a.npy"], "`a.dtype`: an expression cannot read attributes except .T; omit it"),
    (["a" * 1_000_000, "a=a.npy"], "expected an expression of at most 4000 characters, got 1000000; write several"),
    (["a +", "a=a.npy"], "'a +' is not an expression: invalid syntax"),
    (["a + c", "a=a.npy"], "`c`: no array has this name; write c=FILE.npy"),
    (["a", "a=a.npy", "b=b.npy"], "the expression does not use the file 'b'; omit it"),
    (["a", "a=a.npy", "a=b.npy"], "the name 'a' is given twice; write another name for one of the files"),
    (["a", "a.npy"], "expected a name and a file, got 'a.npy'; write NAME=FILE.npy"),
    (["a", "a="], "expected a name and a file, got 'a='; write NAME=FILE.npy"),
    (["a", "1=a.npy"], "'1' cannot be an array's name; write letters, digits and _, but not `ta`"),
    (["ta", "ta=a.npy"], "'ta' cannot be an array's name; write letters, digits and _, but not `ta`"),
    (["a", "a:float31=a.npy"], "a: 'float31' is not a dtype; write one of bool, int8"),
    (["a", "a=a.npy", "--device", "tpu"], "--device: 'tpu' is not a device; write 'cpu', 'cuda' or 'cuda:N'"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[message[:30] for _, message in USAGE])
def test_invalid_arguments_give_status_2(arguments: list[str], message: str, folder: Path, capsys: Output):
    assert said(capsys, 2, *arguments, "-o", "out.npy").startswith(message)
    assert sorted(os.listdir()) == ["a.npy", "b.npy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: EXPR"),
        (
            ["a", "a=a.npy", "--semantics", "cobol"],
            "argument --semantics: unknown semantics 'cobol'; write",
        ),
        (["-a", "a=a.npy"], "unrecognized arguments: -a"),
    ],
)
def test_options_that_are_not_understood_are_status_2(arguments: list[str], message: str, capsys: Output):
    with pytest.raises(SystemExit) as exit_:
        main(["eval", *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


FAILURES = [
    (["a + ta.zeros(5)", "a=a.npy"], "`a + ta.zeros(5)`: add: expected equal sizes, or 1, along axis -1 "),
    (
        ["a + 300", "a=a.npy"],
        "`a + 300`: add: 300 does not fit uint8 (0 to 255); write x.astype('int16') for the array",
    ),
    (["9**9**9"], "`9**9**9`: an integer can have at most 128 bits; write a float, such as 2.0"),
    (["ta.zeros(10**13)"], "`ta.zeros(10**13)`: MemoryError: "),
    (["x", "x=none.npy"], "'none.npy' cannot be read: No such file or directory"),
    (["x", "x=."], "'.' is a folder; write the path of a .npy file"),
    (["x", "x=corrupt.npy"], "'corrupt.npy' is not a .npy file, or is damaged: the magic string is not correct"),
    (["x", "x=short.npy"], "'short.npy' is not a .npy file, or is damaged: mmap length is greater than file size"),
    (["x", "x=objects.npy"], "'objects.npy' contains Python objects, which are not unpickled; save numbers"),
    (["x", "x=fields.npy"], "'fields.npy': dtype 'void64' is not supported: it is structured"),
    (["x", "x=foreign.npy"], "'foreign.npy': dtype '>f4' is float32 in foreign byte order; write x.astype"),
    (
        ["x", "x=raw.npy"],
        "'raw.npy' contains raw elements of 1 byte; write the dtype after the name, as in a:float8_e4m3",
    ),
    (["ta.meshgrid(b, b)", "b=b.npy"], "a .npy file holds one array, but the expression gives 2; write (EXPR)[0]"),
]


@pytest.mark.parametrize(("arguments", "message"), FAILURES, ids=[message[:30] for _, message in FAILURES])
def test_failures_give_status_1(arguments: list[str], message: str, folder: Path, capsys: Output):
    (folder / "corrupt.npy").write_bytes(b"anything but an array")
    (folder / "short.npy").write_bytes((folder / "a.npy").read_bytes()[:-3])
    np.save("objects.npy", np.array([{}], object))
    np.save("fields.npy", np.zeros(2, "i4,f4"))
    np.save("foreign.npy", np.zeros(2, ">f4"))
    np.save("raw.npy", np.zeros(2, "V1"))
    before = sorted(os.listdir())
    assert said(capsys, 1, *arguments, "-o", "out.npy").startswith(message)
    assert sorted(os.listdir()) == before


def test_a_missing_folder_is_an_error_before_the_computation(folder: Path, capsys: Output):
    message = said(capsys, 1, "a + ta.zeros(5)", "a=a.npy", "-o", "no/such.npy")
    assert message == f"'no/such.npy' cannot be written: the folder '{folder / 'no'}' does not exist; make it first"


def test_a_full_disk_leaves_the_old_file(folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    (folder / "out.npy").write_bytes(b"old")
    monkeypatch.setattr(npy._Counting, "write", full)
    message = said(capsys, 1, "a", "a=a.npy", "-o", "out.npy")
    assert message == "'out.npy' cannot be written: No space left on device; the file is unchanged"
    assert (folder / "out.npy").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["a.npy", "b.npy", "out.npy"]


def test_a_missing_device_gives_status_1(folder: Path):
    done = command_in_fresh_python("eval", "a", f"a={folder / 'a.npy'}", "--device", "cuda:97")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tilearray eval: --device: cuda:97: ")
    assert done.stderr.count("\n") == 1


def test_neither_rich_nor_triton_nor_cuda_is_needed(folder: Path):
    missing = ("rich", "triton", "cuda", "matplotlib")
    done = command_in_fresh_python("eval", "a.T + 1", f"a={folder / 'a.npy'}", "--source", without=missing)
    assert (done.returncode, done.stderr) == (0, "")
    assert "def add_flat(" in done.stdout


def test_the_help_lists_the_functions(capsys: Output):
    with pytest.raises(SystemExit) as exit_:
        main(["eval", "--help"])
    assert exit_.value.code == 0
    words = capsys.readouterr().out.replace(",", " ").replace(".", " ").split()
    assert set(FUNCTIONS) <= set(words)


# --- stages -----------------------------------------------------------------------------------------------------------

EXPLAINED = """\
1. a.T -> uint8 (4, 3)
   no elementwise loop

2. b[:, None] -> float32 (4, 1)
   no elementwise loop

3. a.T * b[:, None] -> float32 (4, 3)
   dtypes  x0: uint8, x1: float32
   graph   out0: float32 = multiply(float32(x0), x1)
   result  float32 of shape (4, 3), strides (1, 4), on cpu
   loop    3 x 4: out0 (4, 1), x0 (4, 1), x1 (0, 1)
   class   broadcast, 2 axes, int32 indices

4. clip(a.T * b[:, None], None, 2) -> float32 (4, 3)
   dtypes  x0: float32, x1: float32 (a number)
   graph   out0: float32 = minimum(x0, x1)
   result  float32 of shape (4, 3), strides (1, 4), on cpu
   loop    12: out0 (1,), x0 (1,)
   class   flat, 1 axis, int32 indices

Array("""


def test_explain_prints_every_stage_of_every_step_in_order(folder: Path, capsys: Output):
    assert main(["eval", "clip(a.T * b[:, None], None, 2)", "a=a.npy", "b=b.npy", "--explain"]) == 0
    assert capsys.readouterr().out.startswith(EXPLAINED)


def test_explained_steps_give_the_same_result(folder: Path, capsys: Output):
    for options in ([], ["--explain"], ["--source"]):
        assert main(["eval", "(a * b).T - 1", "a=a.npy", "b=b.npy", "-o", f"x{len(options)}.npy", *options]) == 0
    np.testing.assert_array_equal(np.load("x0.npy"), (A * B).T - 1)
    np.testing.assert_array_equal(np.load("x0.npy"), np.load("x1.npy"))


def test_source_prints_the_kernels_or_the_reason_for_their_absence(
    folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
):
    np.save("c.npy", np.zeros(3, "complex64"))
    assert main(["eval", "exp(c) + 1", "c=c.npy", "--source"]) == 0
    printed = capsys.readouterr().out
    assert "     def exp_flat(out0, x0, n0, BLOCK: tl.constexpr):\n" in printed
    assert "     def add_flat(out0, x0, x1_re, x1_im, n0, BLOCK: tl.constexpr):\n" in printed

    def missing(plan: Any) -> str:
        raise NotImplementedError("exp: not on cuda for complex64 yet")

    monkeypatch.setattr("tilearray.commands.eval.command.kernel_source", missing)
    assert main(["eval", "exp(c)", "c=c.npy", "--source"]) == 0
    assert "   source  Triton, for sm_90\n     # exp: not on cuda for complex64 yet\n" in capsys.readouterr().out


def test_source_of_an_empty_loop(folder: Path, capsys: Output):
    assert main(["eval", "a[:0] + 1", "a=a.npy", "--source"]) == 0
    assert "     # no elements, so no launch\n" in capsys.readouterr().out


# --- progress ---------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_large_files_have_a_progress_bar_in_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    words = ["eval", "a + 1", "a=a.npy", "-o", "out.npy"]
    with contextlib.redirect_stderr(Terminal()) as terminal:
        assert main(words) == 0
    assert terminal.getvalue() == ""
    monkeypatch.setattr(command, "LARGE", 1)
    with contextlib.redirect_stderr(Terminal()) as terminal:
        assert main(words) == 0
    assert "1/1" in terminal.getvalue()
    assert "writing out.npy" in terminal.getvalue()
    with contextlib.redirect_stderr(io.StringIO()) as file:
        assert main(words) == 0
    assert file.getvalue() == ""
    np.testing.assert_array_equal(np.load("out.npy"), A + 1)


def test_an_interrupt_is_said_and_leaves_no_file(folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(npy._Counting, "write", interrupt)
    assert main(["eval", "a", "a=a.npy", "-o", "out.npy"]) == 130
    assert capsys.readouterr().err == "tilearray eval: interrupted\n"
    assert sorted(os.listdir()) == ["a.npy", "b.npy"]
