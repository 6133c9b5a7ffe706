"""The changes between two reports: tilearray's fraction of the yardstick, its ratio to the best peer, its host time.

Absolute figures of two runs depend on two machines and two moments. Ratios are better, because each was measured within
one run. Calls are nevertheless in microseconds, together with the bare launch of both runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import SCHEMA, table

Row = Mapping[str, Any]
Figure = float | str  # a number, or the reason why there is none

LAYOUT_NOISE = 0.02  # relative; smaller changes are not shown
CALL_NOISE = 0.10


class ReportError(Exception):
    """A file that is not a report of this program; the message says why."""


def load(path: Path) -> dict[str, Any]:
    """Read a report from its JSON.

    Raises
    ------
    ReportError
        If the file cannot be read, or is not a report.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: {error}") from error
    if not isinstance(found, dict) or not {"layouts", "calls", "launch_floor"} <= set(found):
        raise ReportError(f"{path} has no layouts and calls; expected the JSON that python -m benchmarks writes")
    if found.get("schema") != SCHEMA:
        raise ReportError(f"{path} has schema {found.get('schema')}, expected {SCHEMA}; measure it again")
    return found


def moved(old: Row, new: Row) -> str:
    """Return the changes between two reports that exceed the noise, as Markdown."""
    calls = "host microseconds" + "".join(f"; a bare launch {text}" for text in launches(old, new))
    parts = [
        heading(old, new),
        part("Layouts: fraction of copy or memset", old["layouts"], new["layouts"], "of_yardstick", LAYOUT_NOISE),
        part(f"Calls: {calls}", old["calls"], new["calls"], "microseconds", CALL_NOISE),
    ]
    return "\n".join(parts)


def heading(old: Row, new: Row) -> str:
    """Return the lines that identify both reports, and the facts that make them hard to compare."""
    lines = ["# Changes", ""]
    for word, report in (("Before", old), ("Now", new)):
        lines.append(f"{word}: {report['device']['name']}, {report['date']}, commit {report['commit']}.")
    for key, noun in (("size", "sizes"), ("libraries", "peers")):
        if old[key] != new[key]:
            lines.append(f"**Different {noun}: {listed(old[key])} before, {listed(new[key])} now.**")
    if old["device"]["name"] != new["device"]["name"]:
        lines.append("**Different devices.**")
    return "\n".join(lines) + "\n"


def listed(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def launches(old: Row, new: Row) -> Iterator[str]:
    """Yield the bare launches of both runs, if both have one."""
    floors = [report["launch_floor"] for report in (old, new)]
    if all(floor and floor["status"] == "ok" for floor in floors):
        yield " and then ".join(f"{floor['microseconds']:.2f}" for floor in floors)


def part(title: str, old: list[Row], new: list[Row], key: str, noise: float) -> str:
    """Return the rows of one table in which a figure changed by more than `noise`, relative."""
    before, now = ({row["name"]: row for row in rows} for rows in (old, new))
    names = [*now, *(name for name in before if name not in now)]
    lines, same = [], 0
    for name in names:
        ours = figure(before.get(name), key), figure(now.get(name), key)
        peers = ratio(before.get(name)), ratio(now.get(name))
        if differs(*ours, noise) or differs(*peers, noise):
            lines.append([f"`{name}`", *map(shown, ours), change(*ours), *map(shown, peers), change(*peers)])
        else:
            same += 1
    text = f"## {title}\n\n"
    if lines:
        columns = ["", "before", "now", "change", "speed over best peer before", "now", "change"]
        text += table(columns, lines) + "\n"
    return text + f"{same} of {len(names)} rows moved by {noise:.0%} or less.\n"


def figure(row: Row | None, key: str) -> Figure:
    """Return tilearray's figure in a row, or the reason why there is none."""
    if row is None:
        return "no such row"
    found = row["results"].get("tilearray", {"status": "not requested"})
    return found[key] if found["status"] == "ok" else found["status"]


def ratio(row: Row | None) -> Figure:
    """Return tilearray's speed as a multiple of the best peer's, or an empty string."""
    return row.get("speed_of_best_peer", "") if row else ""


def differs(before: Figure, now: Figure, noise: float) -> bool:
    if isinstance(before, str) or isinstance(now, str):
        return before != now
    return abs(now / before - 1) > noise


def change(before: Figure, now: Figure) -> str:
    return "" if isinstance(before, str) or isinstance(now, str) else f"{now / before - 1:+.1%}"


def shown(value: Figure) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"
