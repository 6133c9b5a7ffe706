"""Build the documentation as a site: Sphinx, MyST and the theme Furo. Warnings are errors.

    scripts/docs [FOLDER]      the pages go to FOLDER/html; without FOLDER to build/site

The sections of docs/README.md are the navigation, so the site and the repository have one list of pages. The script
copies README.md and docs/, and follows their links: other pages and files of the tree that they name become part of the
site. Nothing is loaded from the network when a page is read. It needs the extra `docs`, which `scripts/docs` installs.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import _reference

ROOT = Path(__file__).resolve().parent.parent
END_OF_EXAMPLE = re.compile(r"\n\n```$", re.MULTILINE)
"""doctest ends an output at a blank line, which a reader need not see."""
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
SETTINGS = {
    "project": "tilearray",
    "root_doc": "index",
    "extensions": ["myst_parser"],
    "html_theme": "furo",
    "html_title": "tilearray",
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_show_copyright": False,
    "myst_heading_anchors": 4,
    "default_role": "code",
    "maximum_signature_line_length": 100,
    "suppress_warnings": ["misc.highlighting_failure", "myst.header"],
    "templates_path": [],
    "html_static_path": ["_static"],
    "html_css_files": ["site.css"],
}


def sections() -> dict[str, list[str]]:
    """The pages of each section of docs/README.md, without suffix."""
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {
        title: [f"docs/{name}" for name in re.findall(r"^\| \[[^]]*\]\(([\w/-]+)\.md\)", body, re.MULTILINE)]
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


def linked(path: Path) -> list[Path]:
    """The files of the tree that a page links or shows."""
    targets = LINK.findall(path.read_text(encoding="utf-8")) if path.suffix == ".md" else []
    places = [(path.parent / target).resolve() for target in targets if "://" not in target]
    return [place for place in places if place.is_file() and place.is_relative_to(ROOT)]


def files() -> set[Path]:
    """The pages of docs/ and everything that they lead to."""
    waiting = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += linked(path)
    return found


def toctree(caption: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", f":caption: {caption}", ":maxdepth: 1", "", *pages, "```", ""])


def stage(source: Path) -> None:
    """Write the sources of the site: copies of pages, the reference, the index."""
    shutil.rmtree(source, ignore_errors=True)
    navigation = sections()
    pages = {page for names in navigation.values() for page in names}
    for path in files():
        place = source / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        if path.suffix == ".md":
            head = "" if name in pages else "---\norphan: true\n---\n\n"
            text = END_OF_EXAMPLE.sub("\n```", path.read_text(encoding="utf-8"))
            place.write_text(f"{head}{text}", encoding="utf-8")
    (source / "_static").mkdir()
    shutil.copyfile(Path(__file__).with_name("_site.css"), source / "_static" / "site.css")
    navigation["Reference"] = [f"reference/{name}" for name in _reference.write(source / "reference")]
    intro = (
        "# tilearray\n\nGPU arithmetic on strided arrays, NumPy-like, without torch. See [the project](README.md).\n"
    )
    trees = [toctree(title, names) for title, names in navigation.items() if names]
    (source / "index.md").write_text("\n".join([intro, *trees]), encoding="utf-8")


def build(folder: Path) -> int:
    """Build the site in a folder; return Sphinx's status."""
    from sphinx.application import Sphinx

    stage(folder / "source")
    shutil.rmtree(folder / "html", ignore_errors=True)
    site = Sphinx(
        str(folder / "source"), None, str(folder / "html"), str(folder / "doctrees"), "html", SETTINGS,
        status=None, warningiserror=True, freshenv=True,
    )  # fmt: skip
    site.build()
    return site.statuscode


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    status = build(folder.resolve())
    print(f"the site is in {folder / 'html'}" if not status else "the site has warnings, which are errors")
    return status


if __name__ == "__main__":
    sys.exit(main())
