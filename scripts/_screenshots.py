"""Look at the main pages of the site in a real browser, for gross breakage only.

    scripts/docs --screenshots [--write] [--keep FOLDER]

Each page is shown wide and narrow, light and dark. The script finds

- a page that is blank, or wider than its window;
- a picture that does not load;
- a page that looks unlike the last time: its picture in 16 x 12 squares of 16 shades is compared with that in
  scripts/screenshots.txt, which --write writes anew. Fonts of another machine do not matter.

It needs a site in build/site, Pillow, and Chromium or Chrome, which it finds in PATH, in $CHROME, or among the browsers
of Playwright. --keep stores the screenshots in a folder.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "build" / "site" / "html"
STORED = ROOT / "scripts" / "screenshots.txt"
PAGES = (
    "index", "README", "docs/quick-start", "docs/coming-from-numpy", "docs/comparison", "docs/performance",
    "docs/tiles", "docs/launch/schedule", "reference/arithmetic",
)  # fmt: skip
WINDOWS = {"wide": (1280, 1000), "narrow": (390, 1000)}
THEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}
SQUARES = (16, 12)
FAR = 2.0
"""The mean distance in shades, of 16, from which a page looks unlike the last time."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PLAYWRIGHT = "chromium*/chrome-linux*/*chrom*"
MEASURE = """<script>addEventListener("load", () => {
  const page = document.documentElement, images = [...document.images];
  const lost = images.filter(each => !each.complete || !each.naturalWidth).map(each => each.getAttribute("src"));
  const lines = document.querySelector("article").innerText.length;
  document.body.innerHTML = `measured: ${page.scrollWidth} ${page.clientWidth} ${lines} ${lost.join(" ")} end`;
})</script></body>"""
MEASURED = re.compile(r"measured: (\d+) (\d+) (\d+) (.*?) ?end")


def browser() -> str | None:
    """The path of a browser, or None."""
    given = os.environ.get("CHROME")
    known = [given] if given else [found for name in BROWSERS if (found := shutil.which(name))]
    if known:
        return known[0]
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    return next((str(path) for path in sorted(folder.glob(PLAYWRIGHT)) if os.access(path, os.X_OK)), None)


def run(chrome: str, window: tuple[int, int], *arguments: str) -> str:
    """Run the browser without a window of its own, and return what it prints."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chrome, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
            f"--user-data-dir={profile}", f"--window-size={window[0]},{window[1]}", *arguments,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def faults(chrome: str, page: str, window: tuple[int, int]) -> Iterator[str]:
    """What is wrong with a page in a window."""
    path = HTML / f"{page}.html"
    measured = path.with_name(f"{path.stem}.measured-{window[0]}.html")
    measured.write_text(path.read_text(encoding="utf-8").replace("</body>", MEASURE), encoding="utf-8")
    try:
        found = MEASURED.search(run(chrome, window, "--dump-dom", measured.as_uri()))
    finally:
        measured.unlink()
    if found is None:
        yield "the browser measured nothing"
        return
    wide, inside, letters = (int(number) for number in found.groups()[:3])
    if wide > inside:
        yield f"it is {wide} pixels wide in a window of {inside}"
    if letters < 200:
        yield f"it has {letters} letters"
    yield from [f"{name} does not load" for name in found[4].split()]


def shades(picture: Path) -> str:
    """A picture in squares: a line of hexadecimal digits for each row."""
    from PIL import Image

    with Image.open(picture) as image:
        small = list(image.convert("L").resize(SQUARES, Image.Resampling.BOX).tobytes())
    columns = SQUARES[0]
    rows = [small[start : start + columns] for start in range(0, len(small), columns)]
    return "\n".join("".join(f"{value // 16:x}" for value in row) for row in rows)


def distance(one: str, other: str) -> float:
    """The mean distance of two pictures in squares."""
    pairs = zip(one.replace("\n", ""), other.replace("\n", ""), strict=True)
    found = [abs(int(x, 16) - int(y, 16)) for x, y in pairs]
    return sum(found) / len(found)


def looked_at(chrome: str, page: str, window: str, folder: Path) -> tuple[dict[str, str], list[str]]:
    """A page in both themes of a window, in squares; and what is wrong with it."""
    wrong = [f"{page}, {window}: {fault}" for fault in faults(chrome, page, WINDOWS[window])]
    seen: dict[str, str] = {}
    for theme, options in THEMES.items():
        name = f"{page} {window} {theme}"
        picture = folder / f"{name.replace('/', '-').replace(' ', '-')}.png"
        uri = (HTML / f"{page}.html").as_uri()
        run(chrome, WINDOWS[window], *options, f"--screenshot={picture}", uri)
        seen[name] = shades(picture)
        if len(set(seen[name])) < 3:
            wrong.append(f"{name}: it is blank")
    return seen, wrong


def stored() -> dict[str, str]:
    """The pictures of the last time by name."""
    parts = STORED.read_text(encoding="utf-8").strip().split("\n\n") if STORED.exists() else []
    return {name: rows for name, _, rows in (part.partition("\n") for part in parts)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store how the pages look now")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where screenshots stay")
    arguments = parser.parse_args()
    chrome = browser()
    if chrome is None:
        print("screenshots: found no browser; install chromium, or set CHROME to the path of one")
        return 2
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(4) as pool:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        work = [(page, window) for page in PAGES for window in WINDOWS]
        results = list(pool.map(lambda pair: looked_at(chrome, *pair, folder), work))
    seen = {name: rows for found, _ in results for name, rows in found.items()}
    wrong = [line for _, found in results for line in found]
    if arguments.write:
        STORED.write_text("\n\n".join(f"{name}\n{rows}" for name, rows in seen.items()) + "\n", encoding="utf-8")
    before = stored()
    for name, rows in seen.items():
        away = distance(rows, before[name]) if name in before else float("inf")
        if away > FAR:
            wrong.append(f"{name}: it looks unlike the last time, by {away:.1f} of 16 shades; --write accepts it")
    print("\n".join([*wrong, f"{len(seen)} screenshots, {len(wrong)} faults"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
