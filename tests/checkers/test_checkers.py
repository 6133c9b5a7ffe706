"""What type checkers say: nothing about a typed program, and a message at every deliberate mistake.

pyright and mypy run in their strict modes, as a user's project runs them. mypy reads the library and reports nothing
about it, as about every installed package. Each checker runs once over all programs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import tilearray as ta
from tilearray import dtypes, typing
from tilearray.engine.devices import as_device
from tilearray.ops.options import MODES
from tilearray.promotion.systems import SEMANTICS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM, MISTAKES = HERE / "typed_program.py", HERE / "mistakes.py"

# Expressions whose type is Array.
EXPRESSIONS = """
x + 1; 1 + x; 2.5 - x; x // 2; 2 ** x; x[0]; x[1:, None]; x.T; x.mT; -x; ~x; abs(x); x == 1; x != y; x < y; x @ y
x + np.ones(3); x + [1, 2]; x + np.float32(1); divmod(x, 2)[0]; x.real; x.sum(0); x.round(1); x.clip(0); x.conj()
x.astype("int8"); x.astype(np.float32); x.to_device("cpu"); x.flat[0]; x.nonzero()[0]; x.dot(y); x.ravel(); x.copy()
ta.exp(x); ta.add(x, 1); ta.add(1, x, out=y); ta.where(x > 0, x, 0); ta.isclose(x, y); ta.clip(x, 0); ta.round(x)
ta.divmod(x, 2)[1]; ta.frexp(x)[1]; ta.sum(x); ta.zeros(3); ta.exp(1.5); ta.sqrt([1, 2]); ta.asarray([1])
ta.concat([x, y]); ta.mean([1, 2]); ta.sum(np.ones(3), 0); ta.concat([[1], x]); ta.matmul(x, [1, 2]); ta.sort([2, 1])
ta.add(x, 1, y); ta.exp(x, where=x > 0, dtype="float64"); ta.add.reduce(x); ta.add.outer(x, y); ta.maximum.accumulate(x)
ta.zeros_like([1, 2]); ta.tril([[1, 2], [3, 4]]); ta.full_like(np.ones(3), 2); ta.add.reduceat(x, [0, 2], 1, out=y)
"""

Messages = dict[str, dict[int, list[str]]]
"""The messages of a checker: for each file, for each line."""


def pyright(folder: Path) -> Messages:
    """The messages of ``pyright``, strict, about the files of a folder."""
    pytest.importorskip("pyright")
    rules = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT), str(ROOT / "backend")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(rules | {"reportUnusedExpression": False}), encoding="utf-8")
    process = run(folder, ["pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)])
    found = json.loads(process.stdout)
    assert found["summary"]["filesAnalyzed"] == 3
    places = [(Path(it["file"]).name, it["range"]["start"]["line"] + 1) for it in found["generalDiagnostics"]]
    return by_place(places, [it["message"] for it in found["generalDiagnostics"]])


def mypy(folder: Path) -> Messages:
    """The messages of ``mypy --strict`` about the files of a folder."""
    pytest.importorskip("mypy")
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={folder}", "--no-error-summary"]
    process = run(folder, ["mypy", *options, *[file.name for file in folder.glob("*.py")]])
    assert process.returncode == 1, process.stdout + process.stderr
    found = re.findall(r"^([^:]+):(\d+): error: (.*)$", process.stdout, re.MULTILINE)
    return by_place([(file, int(line)) for file, line, _ in found], [text for _, _, text in found])


def run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MYPYPATH": os.pathsep.join([str(ROOT), str(ROOT / "backend")])}
    command = [sys.executable, "-m", *command]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=folder)


def by_place(places: list[tuple[str, int]], texts: list[str]) -> Messages:
    found: Messages = {}
    for (file, line), text in zip(places, texts, strict=True):
        found.setdefault(file, {}).setdefault(line, []).append(text)
    return found


@pytest.fixture(scope="module", params=[pyright, mypy])
def messages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Messages:
    folder = tmp_path_factory.mktemp("programs")
    for file in (PROGRAM, MISTAKES):
        shutil.copy(file, folder)
    found = [expression for line in EXPRESSIONS.splitlines() for expression in line.split("; ") if expression]
    lines = [f"    assert_type({expression}, ta.Array)" for expression in found]
    head = ["from typing import assert_type", "import numpy as np", "import tilearray as ta"]
    head += ["def f(x: ta.Array, y: ta.Array) -> None:"]
    text = "\n".join([*head, *lines, "    x += 1", "    assert_type(x, ta.Array)"])
    (folder / "expressions.py").write_text(text, encoding="utf-8")
    return request.param(folder)


@pytest.mark.slow
def test_a_typed_program_has_no_message(messages: Messages) -> None:
    assert len(PROGRAM.read_text(encoding="utf-8").splitlines()) >= 80
    assert messages.get(PROGRAM.name, {}) == {}


@pytest.mark.slow
def test_each_of_ten_mistakes_has_a_message_and_no_other_line_has(messages: Messages) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    assert len(wrong) == 10
    assert messages[MISTAKES.name].keys() == wrong


@pytest.mark.slow
def test_the_type_of_each_expression_is_array(messages: Messages) -> None:
    assert messages.get("expressions.py", {}) == {}


def test_the_typed_program_runs() -> None:
    process = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+ arrays, \d+ elements, 0\.0\n", process.stdout)


def test_the_names_for_checkers_are_those_that_the_library_takes() -> None:
    names = get_args(typing.DTypeName)
    known = {dtypes.info(dtype).name for dtype in (*dtypes.ALL, *dtypes.PACKED)}
    assert {dtypes.info(dtypes.as_dtype(name)).name for name in names} == known <= set(names)
    assert set(get_args(typing.SemanticsName)) == set(SEMANTICS)
    assert set(get_args(typing.RoundingMode)) == set(MODES)
    assert {*get_args(typing.DirectedMode), *get_args(typing.FastMode), *get_args(typing.CastMode)} == set(MODES)
    assert as_device("cpu") in ta.devices()
    wanted = ["cpu", "cuda", *(f"cuda:{index}" for index in range(16))]
    assert list(get_args(typing.DeviceName)) == wanted
