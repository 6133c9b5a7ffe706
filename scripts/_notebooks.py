"""Run the notebooks and store their outputs, or check that they run.

    scripts/notebooks [--check] [--device DEVICE] [FILE.ipynb ...]      without files: all of notebooks/

Each runs in a fresh kernel, from top to bottom. The script names the first cell that raises, and exits with status 1.
They run on the host, or on the GPU that --device names; each notebook prints the device that its outputs are of. The
script stores no paths and no metadata of the machine. With --check it writes nothing.
It needs the extra `notebooks`, which `scripts/notebooks` installs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
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
        os.environ.update(private, PYTHONPATH=os.pathsep.join(paths), TILEARRAY_DEVICE=device)
        os.environ.pop("TILEARRAY_SEMANTICS", None)
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True
        ).execute(cwd=folder)
    notebook.metadata = METADATA
    return notebook


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
        print(f"{path.name}: {'runs' if arguments.check else 'written'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
