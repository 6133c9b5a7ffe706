"""Runs the attacks at length, and writes their figures into docs/reliability.md.

::

    scripts/reliability                          all attacks on the host, with the cases of the table
    scripts/reliability --cases 1000             the same with 1,000 random calls, and fewer of the others in proportion
    scripts/reliability api differential --seed 7
    scripts/reliability --jobs 12                the cases in parts, each with its own seed, in 12 processes
    scripts/reliability --jobs 12 --seconds 100  the cases that begin within that time, which the attacks share
    scripts/reliability --device cuda --write    on a GPU, and write the figures
    scripts/reliability --device cuda --json h200.json         on another machine: keep the counts in a file
    scripts/reliability --write-from h200.json more.json       here: write the figures from such files

A case is said by its number and the seed, so that `--seed` repeats it. With `--jobs`, part `n` has the seed
`--seed` + n. The status is 1 if something went wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from support.attacks.outcome import Outcome, merged
from support.attacks.parts import ATTACKS, CASES, outcomes

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
HEADER = ("attack", "device", "cases", "how they ended", "wrong", "with")
ROW = re.compile(r"^\| .* \|$", re.MULTILINE)
MARKED = re.compile(r"(<!-- figures -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Run the chosen attacks, and say what went wrong."""
    parser = argparse.ArgumentParser(prog="scripts/reliability", description="Attack the library with random calls.")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(ATTACKS)}; all by default")
    parser.add_argument("--cases", type=int, default=CASES, help=f"random calls of an attack; {CASES:,} by default")
    parser.add_argument("--seed", type=int, default=0, help="of the random draws; 0 by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases; 1 by default")
    parser.add_argument("--seconds", type=float, help="begin no case after this time; attacks share it")
    parser.add_argument("--device", default="cpu", help="where arrays are; the host by default")
    parser.add_argument("--json", type=Path, help="write the counts into a file, after each attack and process")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    parser.add_argument("--write-from", type=Path, nargs="+", metavar="FILE", help="write them from files of --json")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.attacks if name not in ATTACKS]:
        parser.error(f"expected an attack, got {unknown[0]!r}; write one of {', '.join(ATTACKS)}")
    found = read(options.write_from) if options.write_from else attacked(options.attacks or [*ATTACKS], options)
    if options.write or options.write_from:
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8"), merged(found)), encoding="utf-8")
        print(f"wrote the figures into {PAGE.name}")
    return 1 if any(outcome.wrong for outcome in found) else 0


def attacked(names: list[str], options: Any) -> list[Outcome]:
    """Run attacks, print how each ended, and keep the counts in a file if one is named."""
    found: list[Outcome] = []
    for outcome in outcomes(names, options.cases, options.seed, options.device, options.jobs, options.seconds):
        found.append(outcome)
        attack, device, tried, ends, wrong, _ = outcome.row()
        seed = f", seed {outcome.seed}" if options.jobs > 1 else ""
        print(
            f"\r{attack} on {device}{seed}: {tried} cases in {outcome.seconds:.0f} s: {ends}; {wrong} wrong", flush=True
        )
        print("\n".join(f"  {line}" for line in outcome.wrong[:50]), end="\n" if outcome.wrong else "", flush=True)
        if options.json:
            options.json.write_text(json.dumps([each.data() for each in found], indent=1) + "\n", encoding="utf-8")
    return found


def read(files: list[Path]) -> list[Outcome]:
    """Read what `--json` wrote. The same seed twice counts once."""
    found: dict[tuple[str, str, int, str], Outcome] = {}
    for path in files:
        for each in json.loads(path.read_text(encoding="utf-8")):
            outcome = Outcome(**each | {"ends": Counter(each["ends"])})
            found[outcome.attack, outcome.device, outcome.seed, outcome.place] = outcome
    return list(found.values())


def with_figures(page: str, found: list[Outcome]) -> str:
    """Return a page with the rows of these attacks replaced in its table; rows of others stay."""

    def fresh(match: re.Match[str]) -> str:
        rows = {tuple(row.split(" | ")[:2]): row for row in ROW.findall(match[2])[1:] if not row.startswith("|--")}
        for outcome in found:
            if not outcome.tried and not outcome.wrong:  # an attack that this device has no cases of
                continue
            row = "| " + " | ".join(outcome.row()) + " |"
            rows[tuple(row.split(" | ")[:2])] = row
        head = "| " + " | ".join(HEADER) + " |\n|---|---|---:|---|---:|---|\n"
        return f"{match[1]}{head}" + "".join(f"{row}\n" for row in rows.values()) + match[3]

    return MARKED.sub(fresh, page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
