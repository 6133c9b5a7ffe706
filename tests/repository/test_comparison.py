"""docs/comparison.md: every row is complete, our cells show their evidence, and figures are those of the records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparison.md"
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
LIBRARIES = ["Triton", "cuTile", "PyTorch", "FlagGems", "CuPy", "JAX", "MLX", "NumPy"]
RAN = {"Triton", "cuTile", "PyTorch", "CuPy", "JAX", "NumPy"}
NOTHING = {"-", "no", "none", "nothing", "by hand", "no CPU", "no GPU", "not promised"}
"""Cells about what a library does not have or does not say, which no page shows."""
SOURCES = dict(re.findall(r"^\[([\w-]+)\]: (https://\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
FASTER = {"Where others are faster": False, "Where tilearray is faster": True}
Row = dict[str, str]


def tables() -> dict[str, list[Row]]:
    """The rows of each section's table, by their headers."""
    _, *parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, list[Row]] = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for line in text.splitlines() if line.startswith("|")]
        if lines:
            header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            found[title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


TABLES = tables()
QUALITIES = [row for title, rows in TABLES.items() if title not in FASTER for row in rows]
FIGURES = [(title, row) for title in FASTER for row in TABLES[title]]


def test_the_page_has_the_rows_that_matter() -> None:
    named = " ".join(row[""] for row in QUALITIES)
    for subject in (
        "promotion", "broadcasting", "strides", "padding", "rounding", "bfloat16", "float8", "scales", "DLPack",
        "CUDA toolkit", "gradients", "fusion", "GPUs", "systems", "vmap", "sparse",
    ):  # fmt: skip
        assert subject in named
    assert len(TABLES["Where others are faster"]) >= 10


@pytest.mark.parametrize("row", QUALITIES, ids=lambda row: row[""])
def test_a_row_has_every_library_and_our_cell_has_evidence(row: Row) -> None:
    assert list(row) == ["", "tilearray", *LIBRARIES]
    assert all(row.values())
    links = LINK.findall(row["tilearray"])
    assert links
    assert [link for link in links if not (PAGE.parent / link).is_file()] == []


@pytest.mark.parametrize("row", QUALITIES, ids=lambda row: row[""])
def test_a_cell_about_another_library_links_what_shows_it(row: Row) -> None:
    for name in LIBRARIES:
        cell = row[name]
        links = LINK.findall(cell)
        assert [link for link in links if not (PAGE.parent / link).is_file()] == [], name
        pages = re.findall(r"\]\[([\w-]+)\]", cell)
        assert links or pages or cell in NOTHING, (name, cell)
        assert bool(links) is ("†" in cell), (name, cell)  # what ran here has a test or a record
        assert set(pages) <= SOURCES.keys(), name


def test_every_page_is_of_its_library_and_is_named_once() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(re.search(rf"\]\[{key}\]", text) for key in SOURCES)
    assert len(set(SOURCES.values())) == len(SOURCES)


@pytest.mark.parametrize("row", QUALITIES, ids=lambda row: row[""])
def test_only_what_ran_here_is_marked_as_seen(row: Row) -> None:
    assert {name for name in LIBRARIES if "†" in row[name]} <= RAN


@pytest.mark.parametrize(("title", "row"), FIGURES, ids=lambda part: part if isinstance(part, str) else part["work"])
def test_figures_are_those_of_one_line_of_the_record(title: str, row: Row) -> None:
    (link,) = LINK.findall(row["record"])
    text = (PAGE.parent / link).read_text(encoding="utf-8")
    if "asarray" in row["work"]:  # a record with a line for each call
        numbers = set(re.findall(r"[\d.]+", text))
    else:
        lines = [set(re.findall(r"[\d.]+", line)) for line in text.splitlines() if line.startswith("|")]
        numbers = next((line for line in lines if {row["tilearray"], row["other"]} <= line), set[str]())
    assert {row["tilearray"], row["other"]} <= numbers
    ours, theirs = float(row["tilearray"]), float(row["other"])
    more_is_better = row["work"].endswith(("GB/s", "of a copy"))
    assert ((ours > theirs) if more_is_better else (ours < theirs)) is FASTER[title]


def test_every_library_has_its_source() -> None:
    _, _, sources = PAGE.read_text(encoding="utf-8").partition("\n## Sources\n")
    assert re.findall(r"^- (\w+): \[.*\]\(https://", sources, re.MULTILINE) == LIBRARIES
