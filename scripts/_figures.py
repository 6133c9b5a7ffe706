"""Write the figures of docs/launch, or check that they are up to date: one stage of one call each, as text in SVG.

    python scripts/_figures.py [--check]

The lines of a figure come from `ta.explain` for compute capability 9.0, which needs no GPU.
"""

from __future__ import annotations

import sys
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "backend")]

STAGES = {
    "promotion": ("dtypes", "graph"),
    "layout": ("repeats", "inputs"),
    "loop": ("loop", "class"),
    "schedule": ("schedule", "tile"),
    "source": ("source",),
    "launch": ("memory", "tile"),
}
"""The stages in order, and the lines of the explanation that each shows."""
LINE, WIDTH, LEFT = 18, 860, 150


def explained() -> dict[str, list[str]]:
    """The lines of the call that the pages follow, by label."""
    import tilearray as ta

    with ta.semantics("array-api"):
        x, row = ta.zeros((640, 480), dtype="uint8", device="cpu"), ta.zeros(640, dtype="float32", device="cpu")
        text = str(ta.explain(ta.add, x.T, row, arch=90))
    found: dict[str, list[str]] = {}
    label = ""
    for line in text.splitlines()[2:]:
        label = line[3:12].strip() or label
        found.setdefault(label, []).append(line[12:])
    return found


def figure(stage: str, lines: dict[str, list[str]]) -> str:
    """One figure: the list of stages, with one marked, and its lines."""
    shown: list[tuple[str, str]] = []
    for label in STAGES[stage]:
        parts = source(lines[label]) if label == "source" else textwrap.wrap(" ".join(lines[label]), 76)
        shown += [(label if not number else "", part) for number, part in enumerate(parts)]
    height = max(len(STAGES) * 32, len(shown) * LINE) + 24
    texts = [box(name, number, name == stage) for number, name in enumerate(STAGES)]
    for number, (label, part) in enumerate(shown):
        y = 28 + number * LINE
        texts.append(f'<text x="{LEFT}" y="{y}" font-weight="bold">{escape(label)}</text>')
        texts.append(f'<text x="{LEFT + 80}" y="{y}" xml:space="preserve">{escape(part)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    style = ' font-family="monospace" font-size="13" fill="#202020">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#f6f7f9" rx="6"/>'
    title = f"<title>The stage {stage} of x.T + row, as ta.explain shows it</title>"
    return "\n".join([head + style, title, ground, *texts, "</svg>", ""])


def source(lines: list[str]) -> list[str]:
    """The lines of a source, long comments as several."""
    return [part for line in lines for part in textwrap.wrap(line, 76, subsequent_indent="#   ") or [""]]


def box(name: str, number: int, marked: bool) -> str:
    """The box of a stage in the list on the left."""
    y = 12 + number * 32
    fill, ink = ("#1f5fbf", "#ffffff") if marked else ("#dfe4ea", "#202020")
    return (
        f'<rect x="12" y="{y}" width="120" height="24" rx="4" fill="{fill}"/>'
        f'<text x="22" y="{y + 17}" fill="{ink}">{number + 1} {name}</text>'
    )


def main() -> int:
    lines = explained()
    stale = []
    for stage in STAGES:
        path, text = ROOT / "docs" / "launch" / f"{stage}.svg", figure(stage, lines)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    verb = "stale; run python scripts/_figures.py" if "--check" in sys.argv else "written"
    print(f"{', '.join(stale)}: {verb}" if stale else "all figures are up to date")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
