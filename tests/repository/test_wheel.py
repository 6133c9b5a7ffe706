"""The wheel: what is in it, and that it works in an environment and a folder that know nothing of this tree."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BACKENDS = ("tilearray_host", "tilearray_cuda")
PACKAGES = {"tilearray": ROOT / "tilearray", **{name: ROOT / "backend" / name for name in BACKENDS}}


def run(*command: str | Path, folder: Path) -> str:
    """Standard output of a command that sees neither this tree nor this process' Python paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # This environment's hatchling builds: nothing is downloaded.
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of an otherwise empty environment that has the wheel, NumPy and ml_dtypes.

    Those two are links to the ones in use: a whole site-packages on the path would bring this tree's editable
    install and all optional packages along, and installing them anew would need the network.
    """
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=False)
    scripts = home / "bin"
    (site,) = home.glob("lib/python*/site-packages")
    for package in (np, ml_dtypes):
        folder = Path(package.__file__).parent
        for part in (folder, folder.with_name(folder.name + ".libs")):  # .libs: the shared libraries of a wheel
            if part.exists():
                (site / part.name).symlink_to(part)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", scripts / "python"]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, folder=home)
    return scripts


def test_contents_are_the_packages_and_nothing_else(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"{package}/{file.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for file in folder.rglob("*")
        if file.suffix in {".py", ".pyi"} or file.name == "py.typed"
    }
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_metadata(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (entry_points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    parser = configparser.ConfigParser()
    parser.read_string(archive.read(entry_points).decode())
    headers = HeaderParser().parsestr(archive.read(metadata).decode())

    assert dict(parser["console_scripts"]) == {"tilearray": "tilearray.commands.main:main"}
    assert dict(parser["dask.array.backends"]) == {"tilearray": "tilearray.dask.backend:TileArrayBackend"}
    assert (headers["Name"], headers["Version"]) == ("tilearray", ta.__version__)
    assert (headers["License-Expression"], headers["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    runtime = {line for line in headers.get_all("Requires-Dist") if "extra ==" not in line}
    assert {line.split(";")[0].split(">")[0].strip() for line in runtime} == {
        "numpy",
        "ml-dtypes",
        "cuda-python",
        "triton",
    }
    on_linux_only = {line.split(">")[0] for line in runtime if "platform_system == 'Linux'" in line.replace('"', "'")}
    assert on_linux_only == {"cuda-python", "triton"}


def test_installed_wheel_computes_from_another_folder(installed: Path, tmp_path: Path):
    code = (
        "import tilearray as ta, tilearray_host; print(ta.__file__); print(tilearray_host.__file__)\n"
        "print((ta.asarray([[1, 2], [3, 4]], dtype='bfloat16').T * 2).tolist())"
    )
    *files, result = run(installed / "python", "-c", code, folder=tmp_path).splitlines()
    assert [file.startswith(str(installed.parent)) for file in files] == [True, True]
    assert result == "[[2.0, 6.0], [4.0, 8.0]]"


def test_installed_console_script_runs_from_another_folder(installed: Path, tmp_path: Path):
    assert "demo" in run(installed / "tilearray", "--help", folder=tmp_path)
    assert ta.__version__ in run(installed / "tilearray", "info", folder=tmp_path)
