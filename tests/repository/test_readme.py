"""README.md: its order, its examples as they print, its commands, and that what it says is missing is missing."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilearray as ta

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def examples(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text)


def test_sections_are_in_order():
    assert list(SECTIONS) == [
        "Two commands",
        "Ten lines",
        "The lattice",
        "Where the semantics differ",
        "Operations",
        "Dtypes",
        "Exchange",
        "Files",
        "On a GPU",
        "In place",
        "Errors",
        "Not there yet",
    ]


def test_what_it_is_takes_three_lines():
    title, text, *_ = README.split("\n\n")
    assert title == "# tilearray"
    assert len(text.splitlines()) == 3
    assert f"**Status: {ta.__version__}, unreleased." in text


def test_every_line_fits():
    prose = [
        line for line in README.splitlines() if not line.startswith(("|", "tilearray.errors.", "  cutile ", "  torch "))
    ]
    assert max(map(len, prose)) <= 120


def test_the_two_commands_are_there():
    commands = re.findall(r"^(scripts/\w+) ", SECTIONS["Two commands"], re.MULTILINE)
    assert commands == ["scripts/demo", "scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_the_number_of_steps_is_the_demos():
    from tilearray.commands.demo.pipeline import STEPS

    assert f"a photograph through {len(STEPS)} steps" in SECTIONS["Two commands"]


def test_the_example_has_ten_lines():
    assert len(examples(SECTIONS["Ten lines"])) == 10
    assert sum(bool(example.want) for example in examples(SECTIONS["Ten lines"])) == 4


def test_examples_print_what_the_page_says():
    """In one go from top to bottom, as somebody would type them; the printed output is compared to the letter."""
    found: list[str] = []
    runner = doctest.DocTestRunner(optionflags=0, verbose=False)
    page = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert len(page.examples) >= 15
    result = runner.run(page, out=found.append)
    assert result.failed == 0, "".join(found)
    assert result.attempted == len(page.examples)


def test_every_block_is_an_example_or_a_program():
    assert [bool(examples(block)) for block in BLOCKS] == [True, True, True, False, True, True, True]


def test_the_exchange_with_torch_shares_memory():
    pytest.importorskip("torch")
    (program,) = (block for block in BLOCKS if not examples(block))
    names: dict[str, object] = {}
    exec(program, names)
    tensor, back = names["tensor"], names["back"]
    assert tensor.tolist() == [[0, 0.5, 0], [0, 0.5, 0]]  # type: ignore[attr-defined]
    assert back.T.tolist() == tensor.tolist()  # type: ignore[attr-defined]
    assert back.data_ptr() == tensor.data_ptr()  # type: ignore[attr-defined]


def test_the_generated_tables_are_there_and_up_to_date():
    assert re.findall("<!-- table: (.*) -->", README) == ["lattice-array-api", "systems", "ops", "dtypes"]
    command = [sys.executable, str(ROOT / "scripts" / "tables"), "--check", str(ROOT / "README.md")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def named(section: str) -> list[str]:
    return [
        name for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", SECTIONS[section]) if name not in ("tilearray", "cpu")
    ]


def test_what_is_listed_is_there():
    prose = SECTIONS["Operations"].rpartition("<!-- end table -->")[2]
    assert set(re.findall(r"`(\w+)`", prose)) >= {"flip", "sliding_window_view", "linspace"}
    listed = re.findall(r"`(?:x\.)?(\w+)(?:\([^`]*\))?`", prose)
    assert len(listed) >= 30
    assert [name for name in listed if not hasattr(ta, name) and not hasattr(ta.Array, name)] == ["None"]


def test_the_complex_functions_that_cuda_lacks_are_listed():
    (sentence,) = re.findall("Complex numbers on a GPU: all but(.*?),? which raise", README, re.DOTALL)
    rows = [row for row in ta.ops.PUBLIC.values() if "complex" in row.kinds]
    assert re.findall(r"`(\w+)`", sentence) == [row.name for row in rows if not {"complex", "any"} & set(row.triton)]


def test_what_is_said_to_be_missing_is_missing():
    missing = named("Not there yet")
    assert {"linalg", "fft"} <= set(missing)
    assert [name for name in missing if hasattr(ta, name) or hasattr(ta.Array, name)] == []
