"""README.md and docs: their programs run, their commands exist, and their lists agree with the library.

The examples (lines after `>>>`) of these pages are doctests, which pytest collects from the pages themselves.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilearray as ta
from tilearray.commands.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [*PAGES, ROOT / "CONTRIBUTING.md"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


ALL = "\n".join(map(text_of, PAGES))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def section(title: str) -> str:
    """The text below a heading, on the page that has it."""
    (found,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", ALL, re.MULTILINE | re.DOTALL)
    return found


# --- examples and programs --------------------------------------------------------------------------------------------

PROGRAMS = [
    pytest.param(block, id=f"{name_of(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
    if ">>>" not in block
]


def run(program: str) -> dict[str, object]:
    """The names that a program leaves."""
    for module in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        pytest.importorskip(module)
    names: dict[str, object] = {"__name__": "program"}
    file = f"<program {hash(program):x}>"
    linecache.cache[file] = (len(program), None, program.splitlines(True), file)  # Triton reads the text of functions
    exec(compile(program, file, "exec"), names)
    return names


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str):
    run(program)


def test_the_exchange_with_torch_shares_memory():
    (program,) = (program for param in PROGRAMS for program in param.values if "back = torch" in str(program))
    names = run(str(program))
    tensor, back = names["tensor"], names["back"]
    assert tensor.tolist() == [[0, 0.5, 0], [0, 0.5, 0]]  # type: ignore[attr-defined]
    assert back.T.tolist() == tensor.tolist()  # type: ignore[attr-defined]
    assert back.data_ptr() == tensor.data_ptr()  # type: ignore[attr-defined]


def test_every_page_with_examples_is_collected(pytestconfig: pytest.Config):
    patterns, places = pytestconfig.getoption("doctestglob"), pytestconfig.getini("testpaths")
    for page in PAGES:
        if ">>>" in text_of(page):
            assert any(page.match(pattern) for pattern in patterns), name_of(page)
            assert any(page.is_relative_to(ROOT / place) for place in places), name_of(page)


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_script_that_is_named_can_be_run(page: Path):
    for script in set(re.findall(r"\bscripts/[a-z]\w*", text_of(page))):
        assert os.access(ROOT / script, os.X_OK), script


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_module_that_is_run_exists(page: Path):
    for module in set(re.findall(r"python -m ((?:tilearray|benchmarks)[\w.]*)", text_of(page))):
        assert importlib.util.find_spec(module) is not None, module


def test_every_command_that_is_named_exists(capsys: pytest.CaptureFixture[str]):
    shown = "\n".join(block for page in GUIDES for block in blocks(page, "sh"))
    quoted = "\n".join(re.findall(r"`(tilearray [^`\n]+)`", "\n".join(map(text_of, GUIDES))))
    commands = set(re.findall(r"^tilearray ((?:cache )?[a-z]+)", f"{shown}\n{quoted}", re.MULTILINE))
    assert "eval" in commands
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert ended.value.code == 0, capsys.readouterr().err


# --- statements -------------------------------------------------------------------------------------------------------


def test_the_version_is_the_librarys():
    assert set(re.findall(r"Status: (\d[\w.]*\w)", ALL)) <= {ta.__version__}


def test_the_number_of_steps_is_the_demos():
    from tilearray.commands.demo.pipeline import STEPS

    assert {int(count) for count in re.findall(r"a photograph through (\d+) steps", ALL)} <= {len(STEPS)}


def test_the_generated_tables_are_up_to_date():
    assert "<!-- table: " in ALL
    command = [sys.executable, str(ROOT / "scripts" / "_tables.py"), "--check", *map(str, PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_function_that_is_listed_exists():
    prose = text_of(ROOT / "docs" / "operations.md").rpartition("<!-- end table -->")[2]
    assert set(re.findall(r"`(\w+)`", prose)) >= {"flip", "sliding_window_view", "linspace", "einsum"}
    listed = re.findall(r"`(?:x\.)?(\w+)(?:\([^`]*\))?`", prose)
    assert len(listed) >= 30
    others = {"None", "dir", "einsum_path"}  # the last is NumPy's
    places = (ta, ta.Array, ta.add, ta.special)
    assert {name for name in listed if not any(hasattr(place, name) for place in places)} == others


def test_functions_that_are_said_to_be_missing_are_missing():
    names = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", section("Not there yet"))) - {"tilearray", "cpu"}
    assert names >= {"custom_vjp"}
    assert [name for name in names if hasattr(ta, name) or hasattr(ta.Array, name)] == []
