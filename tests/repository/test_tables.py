"""scripts/tables writes tables that are up to date, and names stale, unknown and unbalanced ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "_tables.py"
SYSTEMS = ["array-api", "triton", "cutile", "torch", "numpy"]
NAMES = [
    *(f"lattice-{name}" for name in SYSTEMS),
    "semantics",
    "systems",
    "ops",
    "rounding",
    "casts",
    "dtypes",
    "aliases",
    "names",
]
NAMES += ["clients", "client-causes"]


def tables(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "document.md"
    path.write_text("above\n" + "".join(f"<!-- table: {name} -->\n<!-- end table -->\nbelow\n" for name in NAMES))
    return path


def test_check_names_what_is_stale_and_writes_nothing(document: Path) -> None:
    before = document.read_text()
    checked = tables("--check", document)
    assert checked.returncode == 1
    assert re.findall("the table '(.*)' is stale", checked.stdout) == NAMES
    assert document.read_text() == before


def test_written_tables_are_up_to_date_and_true(document: Path) -> None:
    assert tables(document).returncode == 0
    assert tables("--check", document).returncode == 0
    text = document.read_text()
    for line in (
        "| int8 with uint8 | int16 | uint8 | ✗ | int16 | int16 |",
        "| `(ta.asarray(-7) // 2).item()` | -4 | -3 | -4 | -4 | -4 |",
        "| `bfloat16` | float | 16 | bf16 | 4, 16 | arithmetic |",
        "| **u64** | u64 | ✗ | ✗ | ✗ | ✗ | u64 | u64 | u64 | u64 |",
        "| *no array* | bool | int64 | int64 | int64 | uint64 | float32 | float64 | complex64 |",
        "| *no array* | bool | int64 | int64 | int64 | ✗ | float32 | float32 | complex64 |",
    ):
        assert text.count(line + "\n") == 1
    assert "| `fma` | every float | every float | every float | every float | - | - | f32 | - |" in text
    assert "| float | integer | yes | yes | yes | yes | yes | yes | yes | yes |" in text
    assert "| `bitwise_or` | `\\|` | bool, int |" in text
    assert "(ta.asarray(-7.0) // 2)" not in text  # the semantics agree
    document.write_text(text.replace("| -4 | -3 | -4 |", "| -4 | -4 | -4 |", 1))
    assert re.findall("the table '(.*)' is stale", tables("--check", document).stdout) == ["semantics"]
    assert tables(document).returncode == 0
    assert document.read_text() == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "<!-- table: lattice -->\n<!-- end table -->\n",
            "unknown table 'lattice'; write one of lattice-array-api",
        ),
        ("<!-- table: ops -->\n", "<!-- table: ops --> has no counterpart"),
        ("<!-- end table -->\n", "<!-- end table --> has no counterpart"),
        (
            "<!-- table: ops -->\n<!-- table: dtypes -->\n<!-- end table -->\n",
            "<!-- table: dtypes --> has no counterpart",
        ),
    ],
)
def test_unbalanced_markers_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "document.md"
    path.write_text(text)
    result = tables(path)
    assert result.returncode == 1
    assert complaint in result.stdout
    assert path.read_text() == text


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = tables("--check", tmp_path / "none.md")
    assert result.returncode == 1
    assert "none.md: there is no such file" in result.stdout
