"""The driver side of the CUDA backend over a stub driver in host memory; no GPU needed, a C compiler is.

The stub is compiled once and takes the place of libcuda.so.1 in a process of its own, in which pytest runs the files
``tests/runtime/stub_driver/cases_*.py``.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "stub_driver"
CASES = sorted(HERE.glob("cases_*.py"))

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stub is a Linux library"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile the stub driver with"),
    pytest.mark.skipif(find_spec("cuda") is None, reason="cuda-python is not installed"),
]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stub")
    options = ["-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC"]
    names = [HERE / "stub_driver.c", "-o", folder / "libcuda.so.1", "-ldl", "-lpthread"]
    subprocess.run(["gcc", *options, *names], check=True)
    return folder


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_over_the_stub_driver(file: Path, library: Path) -> None:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(library), os.environ.get("LD_LIBRARY_PATH")])),
        "TILEARRAY_STUB_CUDA": "1",
        "STUB_DEVICES": "2",
        "STUB_MEMORY": str(1 << 30),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=-ra", str(file)]
    root = HERE.parents[2]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    assert passed >= sum(function.name.startswith("test_") for function in functions)
    assert "skipped" not in done.stdout
