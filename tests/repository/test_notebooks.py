"""The notebooks run from top to bottom, as somebody would run them; what is stored is small and of no machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "_notebooks.py"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def extra() -> None:
    """The packages of the extra `notebooks`."""
    for package in ("nbclient", "ipykernel", "matplotlib", "rich"):
        pytest.importorskip(package)


def contents(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_there_are_seven():
    assert [path.stem for path in NOTEBOOKS] == [
        "01_an_expression",
        "02_a_photograph",
        "03_three_libraries",
        "04_whose_rules",
        "05_layouts",
        "06_your_own_kernel",
        "07_quantising",
    ]


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path):
    if "import torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    before = path.read_bytes()
    done = run("--check", path)
    assert (done.returncode, done.stdout) == (0, f"{path.name}: runs\n"), done.stdout + done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_are_small_and_name_no_machine(path: Path):
    notebook = contents(path)
    assert path.stat().st_size < 200_000
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert set(notebook["metadata"]["language_info"]) == {"name"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))  # all of one run
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    for output in outputs:
        assert output["output_type"] in ("execute_result", "stream")
        assert output.get("name", "stdout") == "stdout"
        assert all(len("".join(data)) < 60_000 for data in output.get("data", {}).values())
    texts = "\n".join("".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs)
    assert not re.search(r"/(home|root|tmp|usr|Users|var|opt|work)/|[A-Z]:\\\\|0x[0-9a-f]{6}", texts)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_which_device_its_outputs_are_of(path: Path):
    first = next(cell for cell in contents(path)["cells"] if cell["cell_type"] == "code")
    assert "".join(first["outputs"][0]["text"]).startswith("device: cuda:0\n")


@pytest.mark.usefixtures("extra")
def test_outputs_that_are_not_those_of_a_run_are_named(tmp_path: Path):
    notebook = contents(ROOT / "notebooks" / "04_whose_rules.ipynb")
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    path = tmp_path / "stale.ipynb"
    code[0]["outputs"][0]["text"] = ["device: cuda:7\n"]  # another device is no fault
    data = code[2]["outputs"][0]["data"]
    data["text/plain"] = "".join(data["text/plain"]).replace("int32", "int33", 1)
    path.write_text(json.dumps(notebook))
    done = run("--check", path)
    assert done.returncode == 1
    assert done.stdout.startswith("stale.ipynb: the stored outputs of code cells [3] are not those of this run"), done


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_few_cells_have_outputs_of_their_device_alone(path: Path):
    code = [cell for cell in contents(path)["cells"] if cell["cell_type"] == "code"]
    tagged = [cell for cell in code if cell["metadata"]]
    assert all(cell["metadata"] == {"tags": ["device"]} for cell in tagged)
    assert 2 * len(tagged) <= len(code)


@pytest.mark.usefixtures("extra")
def test_the_device_is_an_option():
    done = run("--check", "--device", "cuda:99", ROOT / "notebooks" / "04_whose_rules.ipynb")
    assert done.returncode == 1
    assert "DeviceUnavailableError" in done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_notebooks_lead_somewhere(path: Path):
    text = "\n".join("".join(cell["source"]) for cell in contents(path)["cells"] if cell["cell_type"] == "markdown")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_first_one_shows_pictures_and_the_stages_of_an_expression():
    outputs = [output for cell in contents(NOTEBOOKS[0])["cells"] for output in cell.get("outputs", ())]
    assert sum("image/jpeg" in output.get("data", {}) for output in outputs) == 4
    texts = ["".join(output.get("text", "")) for output in outputs]
    assert any(text.startswith("dtypes  x0: uint8, x1: float32\ngraph   out0: ") for text in texts)
    assert any("@triton.jit\ndef multiply_small_planes(" in text for text in texts)


@pytest.mark.usefixtures("extra")
def test_a_cell_that_raises_is_named(tmp_path: Path):
    notebook = contents(NOTEBOOKS[0])
    broken = {**notebook["cells"][3], "cell_type": "code", "execution_count": None, "outputs": []}
    notebook["cells"] = [{**broken, "source": "import tilearray as ta\nta.zeros(3) + ta.zeros(4)"}]
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps(notebook))
    before = path.read_bytes()
    done = run(path)
    assert done.returncode == 1
    assert done.stdout.startswith("broken.ipynb: An error occurred while executing the following cell:")
    assert "could not be broadcast together with shapes (3,) (4,)" in done.stdout
    assert path.read_bytes() == before
