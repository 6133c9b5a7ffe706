"""Texts for `tilearray eval` and `ta.evaluate`: they compute, or are refused in the words of the library."""

from __future__ import annotations

import random
import warnings

import numpy as np

import tilearray as ta
from support.attacks.outcome import Outcome
from tilearray.errors import TileArrayError

WORDS = (
    *("a", "b", "a", "b", "x", "sqrt", "exp", "where", "maximum", "sum", "pi", "astype", "float32", "int8", "T"),
    *("__class__", "__import__", "open", "eval", "lambda", "import", "os", "for", "in", "if", "else", "self", "print"),
    *("0", "1", "2.5", "1e400", "1j", "10**9", "0x1F", "1_000", "True", "None", "inf", "nan", "9" * 400),
)
SIGNS = (
    *("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "~", "<<", ">>", "<", "<=", "==", "!=", "=", ":="),
    *("(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "'", '"', "\\", "#", "\n", "\t", "`", "$", "?", "!", "\0"),
    *("é", "\u202e", "…", "\U0001d7d9", "a.b", "a[0]", "a[...]", "f'{a}'", "* a", "** b", "(a)", "((", "))"),
)
WHOLE = (
    "a + b",
    "sqrt(a) * 2",
    "where(a > b, a, b)",
    "-a ** 2",
    "a[0]",
    "a.T + 1",
    "maximum(a, b) - 1",
    "a if b else a",
)


def text(rng: random.Random) -> str:
    """A text that is nearly an expression."""
    if rng.random() < 0.4:
        whole = rng.choice(WHOLE)
        place = rng.randrange(len(whole) + 1)
        return whole[:place] + rng.choice(WORDS + SIGNS) + whole[place + rng.randrange(3) :]
    if rng.random() < 0.03:
        return rng.choice(["(", "-", "[", "a+", "sqrt("]) * rng.randrange(1, 20_000) + "a"
    return rng.choice(["", " "]).join(rng.choice(WORDS + SIGNS) for _ in range(rng.randrange(1, 9)))


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Evaluate random texts over two arrays."""
    outcome, rng = Outcome("texts of expressions", device), random.Random(seed)
    arrays = {name: ta.asarray(np.arange(4.0) + 1, device=device) for name in "ab"}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            given = text(rng)
            try:
                ta.evaluate(given, **arrays)
                outcome.count("computed", cases)
            except TileArrayError:
                outcome.count("refused", cases)
            except Exception as error:
                outcome.count("other errors", cases)
                outcome.fail(f"#{number} of seed {seed}: {given[:60]!r}: {type(error).__name__}: {error}"[:200])
    if any(ta.to_numpy(x.to_device("cpu")).tolist() != [1.0, 2.0, 3.0, 4.0] for x in arrays.values()):
        outcome.fail("a text changed an array")
    return outcome
