"""Runs the attacks at length, and writes their figures into docs/reliability.md.

::

    scripts/reliability                          all attacks on the host, with the cases of the table
    scripts/reliability --cases 1000             the same with 1,000 random calls, and fewer of the others in proportion
    scripts/reliability api differential --seed 7
    scripts/reliability --device cuda --write    on a GPU, and write the figures

A case is said by its number and the seed, so that `--seed` repeats it. The status is 1 if something went wrong.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tilearray as ta
from support.attacks import api, caches, children, differential, interrupts, texts, threads
from support.attacks.outcome import Outcome

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
ATTACKS: dict[str, tuple[Callable[[int, int, str], Outcome], float]] = {
    "api": (api.run, 1.0),
    "differential": (differential.run, 1.0),
    "threads": (threads.run, 0.8),
    "tasks": (threads.run_tasks, 0.05),
    "texts": (texts.run, 0.2),
    "interrupts": (interrupts.run, 0.05),
    "children": (children.run, 0.00006),
    "exits": (children.run_exits, 0.0002),
    "caches": (caches.run, 0.1),
}
"""For each attack what runs it, and its cases for each case of `--cases`."""
CASES = 200_000
HEADER = ("attack", "device", "cases", "how they ended", "wrong")
ROW = re.compile(r"^\| .* \|$", re.MULTILINE)
MARKED = re.compile(r"(<!-- figures -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Run the chosen attacks, and say what went wrong."""
    parser = argparse.ArgumentParser(prog="scripts/reliability", description="Attack the library with random calls.")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(ATTACKS)}; all by default")
    parser.add_argument("--cases", type=int, default=CASES, help=f"random calls of an attack; {CASES:,} by default")
    parser.add_argument("--seed", type=int, default=0, help="of the random draws; 0 by default")
    parser.add_argument("--device", default="cpu", help="where arrays are; the host by default")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.attacks if name not in ATTACKS]:
        parser.error(f"expected an attack, got {unknown[0]!r}; write one of {', '.join(ATTACKS)}")
    found: list[Outcome] = []
    for name in options.attacks or ATTACKS:
        run, share = ATTACKS[name]
        outcome = run(max(1, round(options.cases * share)), options.seed, options.device)
        found.append(outcome)
        attack, device, tried, ends, wrong = outcome.row()
        print(f"\r{attack} on {device}: {tried} cases in {outcome.seconds:.0f} s: {ends}; {wrong} wrong", flush=True)
        print("\n".join(f"  {line}" for line in outcome.wrong[:50]), end="\n" if outcome.wrong else "", flush=True)
    if options.write:
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
        print(f"wrote the figures into {PAGE.name}")
    return 1 if any(outcome.wrong for outcome in found) else 0


def with_figures(page: str, found: list[Outcome]) -> str:
    """Return a page with the rows of these attacks replaced in its table; rows of others stay."""

    def fresh(match: re.Match[str]) -> str:
        rows = {tuple(row.split(" | ")[:2]): row for row in ROW.findall(match[2])[1:] if not row.startswith("|--")}
        for outcome in found:
            row = "| " + " | ".join(outcome.row()) + " |"
            rows[tuple(row.split(" | ")[:2])] = row
        head = "| " + " | ".join(HEADER) + " |\n|---|---|---:|---|---:|\n"
        versions = f"tilearray {ta.__version__}, Python {platform.python_version()}, NumPy {np.__version__}."
        return f"{match[1]}{versions}\n\n{head}" + "".join(f"{row}\n" for row in rows.values()) + match[3]

    return MARKED.sub(fresh, page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
