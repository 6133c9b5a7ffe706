"""A new operation takes four additions: a row, a host function, an oracle and a public name. CONTRIBUTING lists them.

The tests add them to a copy of the project, and check that all things made from the table have the operation.
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
from support.oracles.promotion import SEMANTICS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COPIED = ("tilearray", "backend", "tests", "scripts", "docs", "README.md", "pyproject.toml")

ROW = """
double = Op("double", "Twice x.", 1, I | F, DEFAULT,
            triton={"any": "{x} + {x}"},
            example=("ta.double(ta.asarray([1, 2]))", "Array([2, 4], dtype=int64, device='cpu')"))
"""
# file -> the line after which something is written, and what
ADDED = {
    "tilearray/ops/arithmetic.py": ("# bits\n", ROW),
    "backend/tilearray_host/functions.py": (
        "FUNCTIONS: dict[str, Callable[..., Any]] = {\n",
        '    "double": lambda x, *, out: np.add(x, x, out=out),\n',
    ),
    "tests/support/oracles/rules.py": (
        "RULES: dict[str, Rule] = {\n",
        '    "double": Rule(1, REAL_NUMBER, lambda x, bits: 2 * x, lambda x: 2 * x),\n',
    ),
    "tilearray/__init__.py": ("__all__ = [\n", '    "double",\n'),
}
IMPORT = ("from tilearray.ops.arithmetic import (\n", "    double,\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that has one operation more."""
    copy = tmp_path_factory.mktemp("project")
    for name in COPIED:
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(source, copy / name, ignore=ignored) if source.is_dir() else shutil.copy(source, copy / name)
    for name, addition in [*ADDED.items(), ("tilearray/__init__.py", IMPORT)]:
        after, text = addition
        before = (copy / name).read_text(encoding="utf-8")
        assert before.count(after) == 1, f"{name} has not one line {after!r}"
        (copy / name).write_text(before.replace(after, after + text), encoding="utf-8")
    return copy


def run(project: Path, *arguments: object) -> str:
    """What a Python in the copy prints; it knows nothing of the original."""
    paths = [project, project / "backend", project / "tests"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "TILEARRAY_EXAMPLES": "40",
        "TILEARRAY_DEVICE": "cpu",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the tests need none of the plugins, which take a second to import
    }
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pytest_in(project: Path, *arguments: str) -> str:
    return run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


def test_it_is_a_function(project: Path) -> None:
    code = "import tilearray as ta; print(ta.double(ta.asarray([1.5, 2])), ta.double(3).item(), ta.__file__)"
    assert run(project, "-c", code).split() == ["[3.", "4.]", "6", str(project / "tilearray" / "__init__.py")]


@needs_triton
def test_it_is_a_kernel(project: Path) -> None:
    """Its source, and what the compiler makes of that."""
    code = (
        "from support.kernels import compiled, flat_kernel; kernel = flat_kernel('double', 'float32'); "
        "print(kernel.source.text, compiled(kernel).ptx)"
    )
    printed = run(project, "-c", code)
    assert "def double_flat(out0, x0, n0, BLOCK: tl.constexpr):" in printed
    assert "v1 = v0 + v0" in printed
    assert re.search(r"\.entry double_flat\(", printed)
    assert "add.f32" in printed or "add.rn.f32" in printed


def test_it_is_in_the_table_of_the_documentation(project: Path) -> None:
    row = "| `double` |  | int, float | the common dtype; 8- and 16-bit floats compute in float32 | Twice x. |"
    assert row not in (project / "docs" / "operations.md").read_text(encoding="utf-8")
    run(project, "scripts/_tables.py")
    assert row in (project / "docs" / "operations.md").read_text(encoding="utf-8")


def test_it_is_in_the_tests_of_the_table_and_in_the_property_tests_of_both_devices(project: Path) -> None:
    table = pytest_in(project, "tests/ops/test_op_table.py", "-k", "double", "-vv")
    assert "test_a_row_is_complete[double] PASSED" in table
    properties = pytest_in(project, "tests/ops/test_op_properties.py", "-k", "double", "-vv")
    assert re.findall(r"test_operation\[double-(.*)\] PASSED", properties) == list(SEMANTICS)
    collected = pytest_in(project, "tests/gpu/test_gpu_op_properties.py", "--collect-only")
    assert "test_operation[double-array-api]" in collected


def test_a_wrong_host_function_is_seen(project: Path) -> None:
    """The oracle is one, and the property test of the new row can fail."""
    functions = project / "backend" / "tilearray_host" / "functions.py"
    right = functions.read_text(encoding="utf-8")
    functions.write_text(right.replace('"double": lambda x, *, out: np.add', '"double": lambda x, *, out: np.multiply'))
    try:
        with pytest.raises(AssertionError, match=f"{len(SEMANTICS)} failed"):
            pytest_in(project, "tests/ops/test_op_properties.py", "-k", "double")
    finally:
        functions.write_text(right, encoding="utf-8")


def test_without_its_oracle_the_tests_complain(project: Path) -> None:
    name = "tests/support/oracles/rules.py"
    rules = project / name
    right = rules.read_text(encoding="utf-8")
    rules.write_text(right.replace(ADDED[name][1], ""), encoding="utf-8")
    try:
        with pytest.raises(AssertionError, match="1 failed"):
            pytest_in(project, "tests/ops/test_op_properties.py", "-k", "these_are_all")
    finally:
        rules.write_text(right, encoding="utf-8")
