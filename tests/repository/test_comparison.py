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
    assert list(row) == ["", *LIBRARIES, "tilearray"]
    assert all(row.values())
    links = LINK.findall(row["tilearray"])
    assert links
    assert [link for link in links if not (PAGE.parent / link).is_file()] == []


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
