"""A new strategy is one file and one entry in the list: it is chosen, and the kernels of all others stay as they are.

The file is added to a copy of the project. It has a fact of its own, its block sizes, its arms and its loads.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.kernels import needs_triton

ROOT = Path(__file__).parents[2]
FOLDER = "backend/tilearray_cuda/kernels/schedules"

SCHEDULE = '''\
"""Reversed copies of whole blocks, which need no masks: elements are read in order and reversed in registers."""

from tilearray_cuda.kernels.schedules.addressing import Arm, Branch
from tilearray_cuda.kernels.schedules.linear import Linear
from tilearray_cuda.kernels.schedules.schedule import Tile

BLOCK = 2048


class ReversedCopy(Linear):
    cases = ("strided",)

    @staticmethod
    def facts(loop):
        whole = loop.shape[0] % BLOCK == 0 and loop.strides == ((1,), (-1,))
        return "whole blocks" if whole else None

    @classmethod
    def fits(cls, spec, facts, arch):
        return cls(spec, Tile(1, BLOCK, 4)) if spec.copies else None

    def setup(self):
        return [f"start = {self.program()} * BLOCK", "index = start + tl.arange(0, BLOCK)"]

    def arms(self):
        return [Arm(None, Branch(None))]

    def index(self, operand, branch):
        return branch.position

    def load(self, operand, branch, place=""):
        return f"tl.flip(tl.load({operand.name} - start - (BLOCK - 1) + tl.arange(0, BLOCK)), 0)"
'''
# file -> the line after which something is written, and the addition
LISTED = {
    "from tilearray_cuda.kernels.schedules.lookup import Lookup\n": (
        "from tilearray_cuda.kernels.schedules.reversed_copy import ReversedCopy\n"
    ),
    "SCHEDULES: tuple[type[Schedule], ...] = (\n": "    ReversedCopy,\n",
}

CODE = """
from support.kernels import body_for, kernel_for
def kernel(name, size, *strides):
    return kernel_for(body_for(name, ["float32"] * (len(strides) - 1)), (size,), strides)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that has one schedule more."""
    copy = tmp_path_factory.mktemp("project")
    for name in ("tilearray", "backend", "tests/support"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / FOLDER / "reversed_copy.py").write_text(SCHEDULE, encoding="utf-8")
    choose = copy / FOLDER / "choose.py"
    text = choose.read_text(encoding="utf-8")
    for after, addition in LISTED.items():
        assert text.count(after) == 1, f"choose.py has not one line {after!r}"
        text = text.replace(after, after + addition)
    choose.write_text(text, encoding="utf-8")
    return copy


def run(project: Path, code: str) -> str:
    """Return the output of code in the copy, which knows nothing of the original."""
    paths = [project, project / "backend", project / "tests"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    command = [sys.executable, "-c", CODE + code]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_chosen_for_its_loops_alone(project: Path) -> None:
    code = """
calls = [("identity", 4096, (1,), (-1,)), ("identity", 4095, (1,), (-1,)), ("identity", 4096, (1,), (-2,)),
         ("identity", 4096, (1,), (1,)), ("add", 4096, (1,), (-1,), (1,))]
print([type(kernel(*call).schedule).__name__ for call in calls])
"""
    assert run(project, code) == "['ReversedCopy', 'Flat', 'Flat', 'Flat', 'Flat']\n"


def test_it_generates_its_kernel(project: Path) -> None:
    text = run(project, "print(kernel('negative', 4096, (1,), (-1,)).source.text)")
    assert "# BLOCK = 2048, 4 warps" in text
    body = re.findall(r"^    (.*)$", text, re.MULTILINE)
    assert body == [
        "start = tl.program_id(0) * BLOCK",
        "index = start + tl.arange(0, BLOCK)",
        "v0 = tl.flip(tl.load(x0 - start - (BLOCK - 1) + tl.arange(0, BLOCK)), 0)",
        "v1 = v0 * -1.0",
        "tl.store(out0 + index, v1)",
    ]


def test_loops_that_differ_in_its_fact_have_classes_of_their_own(project: Path) -> None:
    """And each kernel is bound with its own number of programs."""
    code = """
from types import SimpleNamespace
from tilearray.geometry.loop import make_loop
from tilearray_cuda.kernels.schedules.choose import loop_class
print(len({loop_class(make_loop((size,), [(1,), (-1,)])) for size in range(2000, 6200)}))
from tilearray_cuda.kernel import fixed_by_loop
given = kernel("identity", 6144, (1,), (-1,))
arguments = SimpleNamespace(pack_fixed=lambda *values: values, block=b"", fix=None)
print(fixed_by_loop(given.schedule, arguments)(given.loop))
"""
    pytest.importorskip("tilearray_cuda.kernel")
    assert run(project, code) == "2\n(6144, 3, b'')\n"


@needs_triton
def test_the_compiler_takes_its_kernel(project: Path) -> None:
    """It needs no masks, and stores vectors."""
    code = """
from support.kernels import compiled
code = compiled(kernel("negative", 4096, (1,), (-1,)))
print([dict(code.accesses(kind, masked)) for kind in ("ld", "st") for masked in (True, False)])
"""
    assert run(project, code) == "[{}, {4: 16}, {}, {16: 4}]\n"
