"""The programs of examples/ and the NumPy programs that they were made from.

A line that ends in ``# edit`` is not in the NumPy program; the import of tilearray stands for NumPy's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tilearray as ta

FILES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
EDIT = re.compile(r"\n[^\n]*# edit(?=\n)")
IMPORT = "import tilearray as np  # edit"


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def of_numpy(text: str, library: str = "numpy") -> str:
    """The NumPy program that an example was made from, over a library."""
    return EDIT.sub("", text.replace(IMPORT, f"import {library} as np"))


def ran(text: str, capsys: Any) -> tuple[str, Any]:
    """The text that a program prints, and the array that its `main` returns."""
    names: dict[str, Any] = {"__name__": "example"}
    before = ta.get_semantics()
    try:
        exec(compile(text, "example", "exec"), names)  # which sets semantics
        result = names["main"]()
    finally:
        if ta.get_semantics() != before:  # else this may be the semantics of a block, and it would outlive the block
            ta.set_semantics(before)
    return capsys.readouterr().out, result
