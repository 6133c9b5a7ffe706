"""The record of one client: counts by part, causes with their counts, and each failure with its cause."""

from __future__ import annotations

import importlib
import json
import platform
from collections import Counter
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from clients import causes, peers

LONGEST = 200


def of(
    name: str, client: ModuleType, semantics: str, device: str, outcomes: dict[str, dict[str, Any]], whole: bool = True
) -> dict[str, Any]:
    """Count the outcomes, and judge the failures. ``arrays`` counts the passed calls whose result holds an Array.

    A record that is not `whole` says so: its run ended before its tests did.
    """
    parts: dict[str, Counter[str]] = {}
    kept = [one["kept"] for one in outcomes.values() if "kept" in one]
    failures: list[dict[str, str]] = []
    reasons: Counter[tuple[str, str]] = Counter()
    for test, one in sorted(outcomes.items()):
        parts.setdefault(client.part(test), Counter())[one["outcome"]] += 1
        if one["outcome"] == "failed":
            cause = causes.of(test, one["message"])
            reasons[cause.reason, cause.whose] += 1
            message = " ".join(one["message"].split())[:LONGEST]
            failures.append({"test": test, "message": message, "cause": cause.reason})
    return {
        "client": name,
        "package": client.PACKAGE,
        **({} if peers.name() == peers.OURS else {"library": peers.name()}),
        "versions": versions(client.PACKAGE, peers.name()),
        "semantics": semantics,
        "device": device,
        **({} if whole else {"whole": False}),
        "counts": counts(sum(parts.values(), Counter())),
        **({"arrays": sum(kept)} if kept else {}),
        "parts": {part: counts(count) for part, count in sorted(parts.items())},
        "causes": [{"count": n, "cause": why, "whose": whose} for (why, whose), n in reasons.most_common()],
        "failures": failures,
    }


def counts(outcomes: Counter[str]) -> dict[str, int]:
    return {outcome: outcomes[outcome] for outcome in ("passed", "failed", "skipped")}


def versions(package: str, library: str = peers.OURS) -> dict[str, str]:
    """The versions that a record depends on; a checkout that is not installed has no version."""
    found = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    if library != peers.OURS:
        found[library] = importlib.import_module(library).__version__
    try:
        return found | {package: metadata.version(package)}
    except metadata.PackageNotFoundError:
        return found


def text(found: dict[str, Any]) -> str:
    """A record as lines for a terminal."""
    rows = [f"{'part':16} {'passed':>7} {'failed':>7} {'skipped':>7}"]
    for part, count in [*found["parts"].items(), ("sum", found["counts"])]:
        rows.append(f"{part:16} {count['passed']:7} {count['failed']:7} {count['skipped']:7}")
    rows += [f"{one['count']:5}  {one['cause']} ({one['whose']})" for one in found["causes"]]
    library = found.get("library", peers.OURS)
    cut = "" if found.get("whole", True) else "; the run ended before its tests did"
    title = f"{found['client']} with {library} on {found['device']}, semantics {found['semantics']}{cut}"
    return "\n".join([title, *rows])


def write(found: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
