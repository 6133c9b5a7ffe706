"""The calls of public functions of `scripts/_differentiability.py`, with arrays for their variables."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.arrays.fusion.containers import leaves

FILE = Path(__file__).parents[2] / "scripts" / "_differentiability.py"
spec = importlib.util.spec_from_file_location("_differentiability", FILE)
assert spec is not None
assert spec.loader is not None
TABLE = importlib.util.module_from_spec(spec)
spec.loader.exec_module(TABLE)

DIFFERENTIABLE, WITHOUT, REFUSED = (TABLE.calls(text) for text in (TABLE.DIFFERENTIABLE, TABLE.WITHOUT, TABLE.REFUSED))
OTHERS = TABLE.OTHERS.split()
FLAT = {"around", "ceil", "fix", "floor", "floor_divide", "rint", "round", "trunc"}

RNG = np.random.default_rng(5)
X, Y = (RNG.permutation(np.linspace(first, last, 12)).reshape(3, 4) for first, last in ((0.12, 0.93), (0.15, 0.9)))
CONSTANTS = {"y": Y, "n": np.arange(12).reshape(3, 4) % 5, "b": X > 0.5}


class Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return getattr(ta, name)


def into(write: Any, x: Any) -> Any:
    out = x * 1 if x.ndim == 2 else ta.zeros_like(x[:, None] * x)
    write(out, x)
    return out


def called(call: str, x: Any, **others: Any) -> Any:
    """The result of a call of the table, with constants on the default device."""
    made = {name: ta.asarray(value) for name, value in CONSTANTS.items()}
    made |= {"x": x, "w": ta.reshape(x, -1)[:5], "m": x @ x.T + ta.eye(3, dtype="float64"), "into": into}
    return eval(call, Names(made | others))


def numbers(result: Any) -> Any:
    """All elements of float results in one axis; a 0 without any."""
    found = [leaf for leaf in leaves(result) if isinstance(leaf, ta.Array) and leaf.dtype.kind in "fc"]
    return ta.concat([ta.reshape(leaf, -1) for leaf in found]) if found else ta.zeros(1)
