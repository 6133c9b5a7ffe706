"""The suite itself: it is collected where optional packages are not installed, and checkouts share no kernels."""

from __future__ import annotations

import os
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = (
    *("array_api_compat", "cuda", "cupy", "hatchling", "ipykernel", "jax", "matplotlib", "mpmath", "nbclient"),
    *("nbformat", "numba", "rich", "scipy", "torch", "triton"),
)

COLLECTION = ("--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain")  # no test runs


def child(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TILEARRAY_CACHE_DIR"} | variables
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("absent", "where"),
    [
        (
            ["cuda.tile", "torch"],
            [
                "tests",
                "--ignore=tests/host",
                "--ignore=tests/functions",
                "--ignore=tests/kernels",
                "--ignore=tests/gpu",
            ],
        ),
        (OPTIONAL, ["tests"]),
    ],
    ids=["cuda.tile and torch", "all optional packages"],
)
def test_the_suite_is_collected_without(absent: list[str], where: list[str]) -> None:
    code = (
        f"import sys, pytest; sys.modules.update(dict.fromkeys({absent!r})); "
        f"sys.exit(pytest.main([*{COLLECTION!r}, *sys.argv[1:]]))"
    )
    done = child(code, *where, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


def test_every_checkout_keeps_its_kernels_in_a_private_folder_of_its_own(tmp_path: Path) -> None:
    code = "import os, runpy, sys; runpy.run_path(sys.argv[1]); print(os.environ['TILEARRAY_CACHE_DIR'])"
    folders = {}
    for checkout in ("one", "other"):
        (tmp_path / checkout / "tests").mkdir(parents=True)
        shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / checkout / "tests")
    for checkout in ("one", "other", "one"):  # the second run of a checkout has the folder of the first
        done = child(code, str(tmp_path / checkout / "tests" / "conftest.py"), TMPDIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        folder = Path(done.stdout.strip())
        assert folders.setdefault(checkout, folder) == folder
        assert not folder.is_relative_to(tmp_path / checkout)
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folders["one"] != folders["other"]


def test_a_folder_that_is_named_is_kept(tmp_path: Path) -> None:
    code = "import os, runpy, sys; runpy.run_path(sys.argv[1]); print(os.environ['TILEARRAY_CACHE_DIR'])"
    done = child(code, str(ROOT / "tests" / "conftest.py"), TILEARRAY_CACHE_DIR=str(tmp_path))
    assert done.stdout.strip() == str(tmp_path)


def test_the_tests_that_coverage_leaves_out_exist() -> None:
    left_out = runpy.run_path(str(ROOT / "scripts" / "coverage"))["IMPOSSIBLE"]
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert isinstance(left_out, tuple)
    assert [name for name in left_out if f"def {name}(" not in tests] == []
