"""The site: its navigation and its reference are complete, and the pages that are built hold together."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import tilearray as ta

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
LIMIT = 1_000_000
"""The bytes of a page with all that it loads."""


def script(name: str):
    """A module of scripts/, imported as the scripts import each other."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(SCRIPTS))


def test_every_page_is_in_the_navigation_once() -> None:
    named = Counter(page for pages in script("_site").sections().values() for page in pages)
    written = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert named == dict.fromkeys(written - {"docs/README"}, 1)


def test_the_reference_has_every_public_name_once() -> None:
    chapters = script("_reference").chapters()
    named = Counter(name for names in chapters.values() for name in names)
    assert named == dict.fromkeys(set(ta.__all__) - {"distributed", "fft", "lib", "linalg", "random", "special"}, 1)
    assert all(chapters.values())


def test_links_of_the_pages_are_followed() -> None:
    site = script("_site")
    found = site.files()
    assert ROOT / "docs" / "demo.jpg" in found
    assert ROOT / "benchmarks" / "README.md" in found


def test_the_figures_are_up_to_date() -> None:
    pytest.importorskip("triton")
    done = subprocess.run([sys.executable, str(SCRIPTS / "_figures.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_last_look_of_every_page_is_stored() -> None:
    screenshots = script("_screenshots")
    columns, rows = screenshots.SQUARES
    stored = screenshots.stored()
    places = itertools.product(screenshots.PAGES, screenshots.WINDOWS, screenshots.THEMES)
    assert list(stored) == [" ".join(place) for place in places]
    assert all(re.fullmatch(rf"([0-9a-f]{{{columns}}}\n?){{{rows}}}", look) for look in stored.values())
    light, dark = (stored[f"index wide {theme}"] for theme in screenshots.THEMES)
    assert screenshots.distance(light, light) == 0
    assert screenshots.distance(light, dark) > screenshots.FAR


def test_a_browser_finds_what_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screenshots = script("_screenshots")
    chrome = screenshots.browser()
    if chrome is None:
        pytest.skip("this machine has no browser")
    monkeypatch.setattr(screenshots, "HTML", tmp_path)
    text = "<html><body><article>{}</article></body></html>"
    (tmp_path / "good.html").write_text(text.format("word " * 100))
    (tmp_path / "bad.html").write_text(text.format('<div style="width: 900px">word</div><img src="lost.png">'))
    assert list(screenshots.faults(chrome, "good", (600, 400))) == []
    wide, few, lost = screenshots.faults(chrome, "bad", (600, 400))
    assert re.fullmatch(r"it is 9\d\d pixels wide in a window of 600", wide)
    assert (few, lost) == ("it has 4 letters", "lost.png does not load")


class Page(HTMLParser):
    """The links, the targets and the files that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.targets.add(given.get("id", ""))
        if tag == "a" and "href" in given:
            self.links.append(unescape(given["href"]))
        elif tag in ("script", "img") and "src" in given:
            self.loads.append(given["src"])
        elif tag == "link" and given.get("rel") == "stylesheet":
            self.loads.append(given["href"])


def place(page: Path, link: str) -> Path:
    path = unquote(re.split("[?#]", link)[0])
    return (page.parent / path).resolve() if path else page


@pytest.mark.slow
def test_the_site_builds_and_its_pages_hold_together(tmp_path: Path) -> None:
    for package in ("sphinx", "furo", "myst_parser", "numpydoc"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; the extra `docs` has it")
    command = [sys.executable, str(SCRIPTS / "_site.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "html"
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in html.rglob("*.html")}
    assert len(pages) > 40
    assert (html / "searchindex.js").stat().st_size < LIMIT
    for path, page in pages.items():
        assert [link for link in page.loads if "://" in link or link.startswith("//")] == [], path
        assert path.stat().st_size + sum(place(path, link).stat().st_size for link in page.loads) < LIMIT, path
        assert broken(path, page, pages) == [], path


def broken(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """The links of a page inside the site that lead nowhere."""
    inside = [link for link in page.links if not re.match(r"\w+:", link)]
    wrong = [link for link in inside if not place(path, link).exists()]
    for link in set(inside) - set(wrong):
        _, _, anchor = link.partition("#")
        other = pages.get(place(path, link))
        if anchor and other and unquote(anchor) not in other.targets:
            wrong.append(link)
    return wrong
