"""README.md and docs/: commands, links, examples, figures and lists agree with the tree."""

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
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
PAGES += [ROOT / "benchmarks" / "README.md", ROOT / "benchmarks" / "results" / "README.md"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORD = re.compile(r"benchmarks/results/(\d{4}-[\w-]+\.md)")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    return re.split(r"^## ", text.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rows(record: str, title: str) -> dict[str, dict[str, str]]:
    """The cells of one table of a benchmark record, by row and column."""
    text = section((ROOT / "benchmarks" / "results" / record).read_text(encoding="utf-8"), title)
    header, _, *lines = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return {cells[0].strip("`"): dict(zip(header, cells, strict=True)) for cells in lines}


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


# --- the shape of the documentation -------------------------------------------------------------------------------


def test_the_status_is_the_version():
    assert f"**Status: {ta.__version__}, unreleased.**" in README


def test_the_commands_are_there():
    commands = re.findall(r"^(scripts/\w+) ", section(README, "Two commands"), re.MULTILINE)
    assert len(commands) == 2
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_the_number_of_steps_is_the_demos():
    from tilearray.commands.demo.pipeline import STEPS

    assert re.findall(r"(\d+) steps", README) == [str(len(STEPS))] * 3
    assert f"a photograph through {len(STEPS)} steps" in page("command-line.md")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path):
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    for link in links:
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        found = path.parent / target if target else path
        assert found.exists(), link
        assert not anchor or anchor in anchors(found), link


def test_every_page_is_in_the_index():
    linked = re.findall(r"\]\(([\w-]+\.md)\)", page("README.md"))
    assert sorted(linked) == sorted(path.name for path in DOCS.glob("*.md") if path.name != "README.md")


def test_every_record_is_cited_or_the_newest_of_its_kind():
    """The rule of CONTRIBUTING.md for benchmark records."""
    stored = {path.stem for path in (ROOT / "benchmarks" / "results").glob("2*.json")}
    cited = {stem for path in PAGES for stem in re.findall(r"(\d{4}-[\w-]+)\.md", path.read_text(encoding="utf-8"))}
    kinds: dict[str, str] = {}
    for stem in sorted(stored):
        kinds[stem[len("2026-11-22T0131-") :]] = stem
    assert stored - cited - set(kinds.values()) == set()


# --- examples -----------------------------------------------------------------------------------------------------


def test_examples_print_what_the_page_says():
    """In one go from top to bottom, as a reader would type them; the output is compared to the letter."""
    found: list[str] = []
    runner = doctest.DocTestRunner(optionflags=0, verbose=False)
    example = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    result = runner.run(example, out=found.append)
    assert result.attempted >= 10
    assert result.failed == 0, "".join(found)


def test_the_exchange_with_torch_shares_memory():
    pytest.importorskip("torch")
    (program,) = (
        block for block in re.findall(r"```python\n(.*?)```", page("exchange.md"), re.DOTALL) if ">>>" not in block
    )
    names: dict[str, object] = {}
    exec(program, names)
    tensor, back = names["tensor"], names["back"]
    assert tensor.tolist() == [[0, 0.5, 0], [0, 0.5, 0]]  # type: ignore[attr-defined]
    assert back.T.tolist() == tensor.tolist()  # type: ignore[attr-defined]
    assert back.data_ptr() == tensor.data_ptr()  # type: ignore[attr-defined]


# --- facts --------------------------------------------------------------------------------------------------------


def test_the_generated_tables_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "_tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_table_that_can_be_generated_is_in_the_documentation():
    names = re.findall(
        r"<!-- table: (\S+) -->", "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    )
    assert {"lattice-array-api", "semantics", "systems", "ops", "rounding", "casts", "dtypes"} <= set(names)
    assert len(names) == len(set(names))


def test_the_figures_of_the_readme_are_those_of_the_records_it_links():
    newest, earlier = sorted(set(RECORD.findall(README)), reverse=True)
    kernels, calls = rows(newest, "Layouts"), rows(earlier, "Calls")
    fractions = [float(cells["tilearray of copy (sectors)"].split()[0]) for cells in kernels.values()]
    assert f"{sum(part >= 0.95 for part in fractions)} of the {len(fractions)} layouts" in README
    transposed = kernels["a + b.T"]
    speed, other = float(transposed["tilearray"]), float(transposed["torch"])
    assert f"**`a + b.T` of two 16384 x 16384 float32 arrays runs at {speed:.0f} GB/s" in README
    assert f"{speed / other:.1f} times torch" in README
    assert f"`a + b` takes {calls['a + b']['tilearray']} µs" in README
    assert f"{calls['a + b']['torch']} µs in torch" in README


def test_the_figures_of_the_tables_are_those_of_the_records():
    text = page("performance.md")
    for title, of_record in (("Kernels", "Layouts"), ("Calls", "Calls")):
        record = rows(RECORD.findall(section(text, title))[0], of_record)
        lines = re.findall(r"^\| `(.*?)` \| ([\d.]+) \| ([\d.]+|-) \|", section(text, title), re.MULTILINE)
        assert len(lines) >= 9
        for name, ours, torch in lines:
            assert record[name]["tilearray"] == ours, name
            assert torch in (record[name]["torch"], "-"), name


def test_listed_functions_are_there():
    prose = page("operations.md").rpartition("<!-- end table -->")[2]
    listed = re.findall(r"`(?:x\.)?(\w+)(?:\([^`]*\))?`", prose)
    assert {"flip", "sliding_window_view", "linspace", "einsum"} <= set(listed)
    assert [name for name in listed if not hasattr(ta, name) and not hasattr(ta.Array, name)] == ["None"]


def test_the_complex_functions_that_cuda_lacks_are_listed():
    (sentence,) = re.findall("Complex numbers on a GPU: all but(.*?),? which raise", page("gpu.md"), re.DOTALL)
    complex_rows = [row for row in ta.ops.PUBLIC.values() if "complex" in row.kinds]
    assert re.findall(r"`(\w+)`", sentence) == [
        row.name for row in complex_rows if not {"complex", "any"} & set(row.triton)
    ]


def test_missing_names_are_missing():
    missing = re.findall(r"`(\w+)`", section(README, "Not there yet"))
    assert {"linalg", "fft", "random"} <= set(missing)
    assert [name for name in missing if hasattr(ta, name) or hasattr(ta.Array, name)] == []


def test_every_error_class_is_listed_with_its_bases():
    listed = dict(re.findall(r"^\| `(\w+)` \| (`.*?`) \|", page("errors.md"), re.MULTILINE))
    for name in (name for name in ta.__all__ if name.endswith("Error") and name != "TileArrayError"):
        bases = [base.__name__ for base in getattr(ta, name).__bases__ if base is not ta.TileArrayError]
        assert re.findall(r"`(\w+)`", listed.pop(name)) == bases
    assert listed == {}


def test_every_setting_is_listed():
    sources = [*(ROOT / "tilearray").rglob("*.py"), *(ROOT / "backend").rglob("*.py")]
    read = {name for path in sources for name in re.findall(r'"(TILEARRAY_\w+)"', path.read_text(encoding="utf-8"))}
    assert read == set(re.findall(r"^\| `(TILEARRAY_\w+)`", page("settings.md"), re.MULTILINE))
