"""Two pictures of a report: GB/s by layout, and host time by call. Bars show tilearray, and marks show its peers.

The pictures depend on the report alone, so a stored JSON gives the same pictures:
``python -m benchmarks --plot RESULT.json --out DIR``. They need matplotlib (the extra `bench`).
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import file_stem, write_whole

Row = Mapping[str, Any]

OURS = "#9cc3e6"
MARKS = (
    ("o", "#c0392b"),
    ("D", "#2e7d32"),
    ("s", "#7b1fa2"),
    ("^", "#e67e22"),
    ("v", "#00838f"),
    ("P", "#5d4037"),
    ("X", "#555555"),
)
LONGEST = 24  # maximum rows of a column
SHORTEST = 0.1  # microseconds: the left end of the axis for calls
ROW, COLUMN = 0.19, 5.5  # inches
SETTINGS = {"font.size": 8, "svg.hashsalt": "tilearray", "font.family": "DejaVu Sans", "axes.axisbelow": True}


class NoPlotError(Exception):
    """matplotlib is not installed."""


def draw(report: Row, folder: Path) -> list[Path]:
    """Draw the layouts and calls of the report as SVG, and return the paths.

    Raises
    ------
    NoPlotError
        If matplotlib is not installed.
    """
    try:
        matplotlib = importlib.import_module("matplotlib")
        figures = importlib.import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise NoPlotError("pictures need matplotlib; write pip install matplotlib") from error
    paths = []
    for part, picture in (("layouts", layouts), ("calls", calls)):
        if not report[part]:
            continue
        with matplotlib.rc_context(SETTINGS):
            buffer = io.BytesIO()
            picture(figures.Figure, report).savefig(buffer, format="svg", metadata={"Date": None})
        # Strip trailing spaces, so that a stored picture passes checks of text files.
        text = "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().decode().splitlines())
        paths.append(write_whole(folder / f"{file_stem(report)}-{part}.svg", text))
    return paths


def layouts(figure: Any, report: Row) -> Any:
    """Draw bandwidths. A line across a bar is the yardstick's bandwidth, given the sectors of that layout."""
    yardsticks = {name: found["median"] for name, found in report["yardsticks"].items()}
    limits = [
        yardsticks[row["against"]] * row["ideal_bytes"] / row["traffic"] if row["against"] in yardsticks else None
        for row in report["layouts"]
    ]
    title = "GB/s of the bytes that an ideal kernel moves: longer is faster"
    return picture(figure, report, report["layouts"], "gb_per_s", title, limits, "a copy (a fill: memset) in this run")


def calls(figure: Any, report: Row) -> Any:
    """Draw host times on a logarithmic scale: a view takes tenths of a microsecond, a compilation takes thousands.

    The line is a bare launch. A view has none.
    """
    floor = report["launch_floor"]
    limit = floor["microseconds"] if floor and floor["status"] == "ok" else None
    limits = [None if row["name"].startswith("view ") else limit for row in report["calls"]]
    title = "host microseconds until a call returns, on a logarithmic scale: shorter is faster"
    drawn = picture(figure, report, report["calls"], "microseconds", title, limits, "a bare launch in this run")
    for panel in drawn.axes:
        panel.set_xscale("log")
        panel.set_xlim(left=SHORTEST)
        panel.xaxis.set_major_formatter("{x:g}")
    return drawn


def picture(
    figure: Any, report: Row, rows: Sequence[Row], key: str, title: str, limits: Sequence[float | None], limit: str
) -> Any:
    """Draw the rows in several columns with a common scale and legend."""
    columns = -(-len(rows) // LONGEST)
    height = -(-len(rows) // columns)
    drawn = figure(figsize=(COLUMN * max(columns, 2), ROW * height + 1.3), layout="constrained", facecolor="white")
    panels = drawn.subplots(1, columns, sharex=True, squeeze=False)[0]
    peers = [library for library in report["libraries"] if library != "tilearray"]
    for number, panel in enumerate(panels):
        part = slice(number * height, (number + 1) * height)
        fill(panel, rows[part], key, peers)
        lines = [(at, value) for at, value in enumerate(limits[part]) if value is not None]
        for at, value in lines:
            panel.plot([value, value], [at - 0.45, at + 0.45], color="black", linewidth=1, label=limit)
        panel.set_ylim(height - 0.4, -0.6)
    panels[0].set_xlim(left=0)  # the panels share the scale, so set it after all are drawn
    names = {name: handle for panel in panels for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    drawn.legend(names.values(), names.keys(), loc="outside lower center", ncols=len(names) or 1, frameon=False)
    drawn.suptitle(f"{title}\n{caption(report)}", fontsize=9)
    return drawn


def fill(panel: Any, rows: Sequence[Row], key: str, peers: Sequence[str]) -> None:
    """Draw one column: tilearray's bars, every peer's marks, and the names of the rows."""

    def found(library: str) -> tuple[list[int], list[float]]:
        results = [row["results"].get(library, {}) for row in rows]
        timed = [(at, result[key]) for at, result in enumerate(results) if result.get("status") == "ok"]
        return [at for at, _ in timed], [value for _, value in timed]

    panel.barh(*found("tilearray"), height=0.78, color=OURS, label="tilearray")
    for position, library in enumerate(peers):
        marker, colour = MARKS[position % len(MARKS)]
        places, values = found(library)
        panel.plot(values, places, marker, color=colour, markersize=3.6, linestyle="none", label=library)
    panel.set_yticks(range(len(rows)), [row["name"] for row in rows], family="DejaVu Sans Mono", fontsize=7)
    panel.tick_params(left=False)
    panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)


def caption(report: Row) -> str:
    """Return the device, the date and the versions."""
    versions = report["versions"]
    known = [f"{name} {versions[name]}" for name in versions if name.partition("-")[0] in report["libraries"]]
    small = "; a small run, which says nothing about speed" if report["size"] == "small" else ""
    return f"{report['device']['name']}, {report['date'][:10]}, {', '.join(known)}{small}"
