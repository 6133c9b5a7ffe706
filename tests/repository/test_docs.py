"""The documentation agrees with the tree: links, the index, benchmark records and their figures, errors, settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilearray as ta

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "benchmarks/results/README.md")
PAGES = [*(ROOT / name for name in NAMES), *sorted(DOCS.rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORD = re.compile(r"benchmarks/results/(\d{4}-[\w-]+\.md)")
RECORDS = re.compile(r"benchmarks/results/(\d{4}-[\w-]+)\.(?:md|svg)")


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


def test_every_public_name_is_on_a_page():
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    code = " ".join(re.findall(r"```.*?```|`[^`\n]*`", text, re.DOTALL))
    named = set(re.findall(r"\w+", code))
    x = ta.ones((2, 2))
    attributes = {name for name in dir(x) if not name.startswith("_") and hasattr(x, name)}
    assert {*ta.__all__, *attributes} - named == set()


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
    linked = re.findall(r"\]\(([\w/-]+\.md)\)", page("README.md"))
    written = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(linked) == [name for name in written if name != "README.md"]


def test_every_record_is_cited_or_the_newest_of_its_kind():
    """The rule of CONTRIBUTING.md for benchmark records."""
    stored = {path.stem for path in (ROOT / "benchmarks" / "results").glob("2*.json")}
    cited = {Path(record).stem for path in PAGES for record in RECORD.findall(path.read_text(encoding="utf-8"))}
    newest = {stem[len("2026-11-22T1212-") :]: stem for stem in sorted(stored)}
    assert stored - cited - set(newest.values()) == set()


def test_the_list_of_records_has_each_under_its_own_time():
    folder = ROOT / "benchmarks" / "results"
    listed = re.findall(r"^\| \[([\w-]+)\]\(([\w-]+)\.md\)", (folder / "README.md").read_text(encoding="utf-8"), re.M)
    assert {stem for _, stem in listed} == {path.stem for path in folder.glob("*.md")} - {"README"}
    moment = len("2026-11-22T1212")
    assert [(name, stem) for name, stem in listed if name[:moment] != stem[:moment]] == []


# --- facts --------------------------------------------------------------------------------------------------------


def test_every_table_that_can_be_generated_is_in_the_documentation():
    names = re.findall(
        r"<!-- table: (\S+) -->", "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    )
    assert {"lattice-array-api", "semantics", "systems", "ops", "rounding", "casts", "dtypes"} <= set(names)
    assert len(names) == len(set(names))


def test_the_figures_of_the_readme_are_those_of_the_records_it_links():
    (record,) = set(RECORD.findall(README))
    kernels, calls = rows(record, "Layouts"), rows(record, "Calls")
    fractions = [float(cells["tilearray of copy (sectors)"].split()[0]) for cells in kernels.values()]
    assert f"{sum(part >= 0.95 for part in fractions)} of the {len(fractions)} rows" in README
    transposed = kernels["a + b.T"]
    speed, other = float(transposed["tilearray"]), float(transposed["torch"])
    assert f"**`a + b.T` of two 16384 x 16384 float32 arrays runs at {speed:.0f} GB/s" in README
    assert f"{speed / other:.1f} times torch" in README
    assert f"`a + b` takes {calls['a + b']['tilearray']} µs" in README
    assert f"{calls['a + b']['torch']} µs in torch" in README


SIZES = {16384, 16383, 16385, 1000}
"""Extents of arrays on the page of figures."""


def test_the_figures_of_a_section_are_those_of_the_records_it_links():
    """Each number is one of a record, rounded."""
    for part in re.split(r"^## ", page("performance.md"), flags=re.MULTILINE)[1:]:
        names = {name.removesuffix("-calls").removesuffix("-layouts") for name in RECORDS.findall(part)}
        texts = [(ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8") for name in names]
        known = {float(number) for text in texts for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)}
        prose = re.sub(r"`[^`]*`", "", re.sub(r"\]\([^)]*\)", "]", part))
        for number in set(re.findall(r"(?<![\w.*-])\d+(?:\.\d+)?(?![\w.]*\w)", prose)):
            if float(number) not in SIZES:
                half = 0.5 * 10.0 ** -len(number.partition(".")[2])
                assert any(abs(value - float(number)) < half * 1.0001 for value in known), (
                    part.splitlines()[0],
                    number,
                )


def test_every_error_class_is_listed_with_its_bases():
    listed = dict(re.findall(r"^\| `(\w+)` \| (`.*?`) \|", page("errors.md"), re.MULTILINE))
    for name in (name for name in ta.__all__ if name.endswith("Error") and name != "TileArrayError"):
        bases = [base.__name__ for base in getattr(ta, name).__bases__ if base is not ta.TileArrayError]
        assert re.findall(r"`(\w+)`", listed.pop(name)) == bases
    assert listed == {}
    rows = re.findall(r"^\| `\w+` \| `.*$", page("errors.md"), re.MULTILINE)
    assert all(len([cell for cell in row.split("|")[1:-1] if cell.strip()]) == 4 for row in rows)


def test_every_setting_is_listed():
    sources = [*(ROOT / "tilearray").rglob("*.py"), *(ROOT / "backend").rglob("*.py")]
    read = {name for path in sources for name in re.findall(r'"(TILEARRAY_\w+)"', path.read_text(encoding="utf-8"))}
    assert read == set(re.findall(r"^\| `(TILEARRAY_\w+)`", page("settings.md"), re.MULTILINE))


def test_every_variable_of_the_tree_is_named():
    tops = ("tilearray", "backend", "scripts", "tests", "benchmarks")
    files = [path for top in tops for path in (ROOT / top).rglob("*") if path.suffix in ("", ".py") and path.is_file()]
    used = {name for path in files for name in re.findall(r"\bTILEARRAY_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    assert used - set(re.findall(r"TILEARRAY_[A-Z_]+", page("settings.md"))) == set()


def test_the_map_of_contributing_has_every_folder():
    """And every folder or module that the map names exists."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named: set[str] = set()
    for cell in re.findall(r"^\| (`.*?`) \| ", section(text, "Where things are"), re.MULTILINE):
        names = re.findall(r"`([\w./]+)`", cell)
        parent = Path(names[0]).parent
        named |= {str(Path(name)) if (ROOT / name).exists() else str(parent / name) for name in names}
    assert [name for name in named if not (ROOT / name).exists()] == []
    tops = ("tilearray", "backend", "tests", "benchmarks", "scripts")
    modules = [path for top in tops for path in (ROOT / top).rglob("*.py") if ".venv" not in path.parts]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in modules}
    assert folders - named == {"tilearray", "tests"}
