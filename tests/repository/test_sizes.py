"""scripts/sizes: it counts lines, files and functions, and judges none of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_sizes_of_a_small_tree(tmp_path: Path):
    folder = tmp_path / "tilearray" / "ops"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(
        "def f():\n    return 1\n\n\nclass A:\n    def g(self):\n        x = 1\n        return x\n"
    )
    (folder / "two.py").write_text("x = 1\n")
    command = [sys.executable, str(ROOT / "scripts" / "sizes"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "folder         files  lines  functions  p90",
        "tilearray/ops      2      9          2    3",
        "longest files of 2:",
        "      8  tilearray/ops/one.py",
        "      1  tilearray/ops/two.py",
    ]
