"""Methods of other libraries' arrays: an error says what to write, and nothing else shows them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilearray as ta
from tilearray.arrays.missing_methods import INSTEAD

X = ta.asarray([[1, 2], [3, 4]])


@pytest.mark.parametrize("name", INSTEAD)
def test_a_missing_method_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^Array has no attribute {name!r}; {re.escape(INSTEAD[name])}$") as found:
        getattr(X, name)
    assert found.value.name == name
    assert not hasattr(X, name)
    assert not hasattr(ta.Array, name)
    assert name not in dir(X)


def test_the_advice_works() -> None:
    """Each expression that an error gives, with values for the names that it leaves open."""
    x = ta.asarray([[3, 1], [2, 4]])
    names = {"ta": ta, "device": "cpu", "dtype": "float32", "axes": (1, 0), "axis": 0, "index": 0, "value": 5, "kth": 1}
    names |= {"choices": [x] * 5, "condition": [True, False], "indices": [[0, 1]], "values": [7], "shape": (1, 3)}
    names |= {"y": x.copy(), "low": 0, "high": 1, "k": 1, "mask": x > 1, "function": lambda x: (x * x).sum()}
    for name, text in INSTEAD.items():
        if name in ("cuda", "detach", "block_until_ready"):  # these need a GPU, or are no expression
            continue
        statement = re.sub(r"[,:] (an Array|Arrays|a new array).*", "", text.removeprefix("write "))
        for one in statement.split(" or "):
            operand = x % 5 if name == "choose" else x.astype("float32") if "grad" in one else x.copy()
            exec(one, names | {"x": operand})


def test_an_array_is_named_as_users_find_it() -> None:
    assert (ta.Array.__module__, ta.Array.__qualname__, repr(ta.Array)) == (
        "tilearray",
        "Array",
        "<class 'tilearray.Array'>",
    )
    shown = dir(X)
    assert {"sum", "shape", "T", "__add__"} <= set(shown)
    assert not {"public", "_public"} & {name for name in shown if not name.startswith("_")}
    assert np.asarray(X).tolist() == X.tolist()
