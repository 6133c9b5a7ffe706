"""Run the notebooks and store their outputs, or check that they run.

    scripts/notebooks [--check] [--device DEVICE] [FILE.ipynb ...]      without files: all of notebooks/

Each runs in a fresh kernel, from top to bottom. The script names the first cell that raises, and exits with status 1.
They run on the host, or on the GPU that --device names; each notebook prints the device that its outputs are of. The
script stores no paths and no metadata of the machine.
With --check it writes nothing, and compares what is stored with this run, on whatever device each was: numbers to three
digits, pictures by their kinds. Cells with the tag `device` have outputs that depend on it, such as times and kernels.
It needs the extra `notebooks`, which `scripts/notebooks` installs.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
DEVICE = re.compile(r"device: .*\n|, device=(?:Device\('[^']*'\)|'[^']*')|\b(?:cuda|cpu)(?::\d+)?\b")
NUMBER = re.compile(r"\d+\.?\d*(?:e[+-]?\d+)?")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path, device: str) -> Any:
    """Run a notebook on a device, in a kernel that finds this tree and keeps its settings in a temporary folder."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        private = dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"), folder)
        paths = [str(ROOT), str(ROOT / "backend"), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ.update(private, PYTHONPATH=os.pathsep.join(paths), TILEARRAY_DEVICE=device, MPLBACKEND="agg")
        os.environ.pop("TILEARRAY_SEMANTICS", None)
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True
        ).execute(cwd=folder)
    notebook.metadata = METADATA
    return notebook


def text_of(output: Any) -> str:
    """An output as text that is the same on every device: of pictures and tables their kinds."""
    data = output.get("data", {})
    kinds = "".join(f" {kind}" for kind in sorted(data) if kind != "text/plain")
    text = output.get("text", data.get("text/plain", "" if output["output_type"] == "stream" else kinds))
    return DEVICE.sub("", f"{text if not text.startswith('<IPython') else ''}{kinds}")


def agree(one: str, other: str) -> bool:
    """Whether two texts have the same words, and numbers that agree to three digits."""
    if NUMBER.sub("0", one).split() != NUMBER.sub("0", other).split():
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(math.isclose(float(x), float(y), rel_tol=2e-3, abs_tol=1e-6) for x, y in pairs)


def stale(stored: Any, fresh: Any) -> list[int]:
    """The numbers of the code cells whose stored outputs are not those of a run."""
    pairs = zip(stored.cells, fresh.cells, strict=True)
    code = [(old, new) for old, new in pairs if old.cell_type == "code"]
    found: list[int] = []
    for number, (old, new) in enumerate(code, 1):
        texts = ["\n".join(map(text_of, cell.outputs)) for cell in (old, new)]
        if "device" not in old.metadata.get("tags", ()) and not agree(*texts):
            found.append(number)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--device", default="cpu", help="where arrays are: cpu, which is the default, or cuda")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.ipynb")
    arguments = parser.parse_args()
    status = 0
    for path in arguments.files or sorted((ROOT / "notebooks").glob("*.ipynb")):
        try:
            notebook = executed(path, arguments.device)
        except CellExecutionError as error:
            print(f"{path.name}: {error}")
            status = 1
            continue
        if not arguments.check:
            nbformat.write(notebook, path)
        elif cells := stale(nbformat.read(path, as_version=4), notebook):
            print(f"{path.name}: the stored outputs of code cells {cells} are not those of this run; write it anew")
            status = 1
            continue
        print(f"{path.name}: {'runs' if arguments.check else 'written'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
