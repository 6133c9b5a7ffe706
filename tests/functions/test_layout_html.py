"""The HTML of arrays: small, well-formed, true to NumPy's strides, and nothing is fetched from a device to draw it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilearray as ta
from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.functions import layout_html
from tilearray.functions.layout_html import array_html, lowest, occupied

KEYS = st.tuples(*[st.slices(size) for size in (3, 4, 5)])


def svg_of(text: str) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", text)
    assert found
    return ElementTree.fromstring(found[0])


def words_of(text: str) -> list[str]:
    return [element.text or "" for element in svg_of(text) if element.tag.endswith("text")]


@given(KEYS, st.permutations(range(3)))
def test_the_grid_and_the_strip_are_where_numpys_elements_are(key, axes):
    source = np.arange(60).reshape(3, 4, 5)  # each value is its position in the buffer
    x, wanted = ta.asarray(source)[key].permute_dims(*axes), source[key].transpose(axes)
    if wanted.size == 0:
        assert "<svg" not in array_html(x)
        return
    assert lowest(x) == wanted.min()
    assert occupied(x.shape, x.strides, 1000) == {int(value - wanted.min()) for value in wanted.flat}
    *cells, memory = [word for word in words_of(array_html(x)) if word != "…"]
    assert [int(cell) for cell in cells] == wanted[0, :4, :8].flatten().tolist()
    assert memory == f"memory from element {wanted.min()} of the buffer"


@given(st.integers(0, 60), st.integers(1, 40), st.integers(-30, 30), st.integers(1, 40), st.integers(-30, 30))
def test_the_strip_ends_at_its_limit(limit, rows, down, columns, right):
    positions = {i * abs(down) + j * abs(right) for i in range(rows) for j in range(columns)}
    assert occupied((rows, columns), (down, right), limit) | {0} == {place for place in positions if place < limit} | {
        0
    }


CASES = {
    "adjacent": lambda x: x,
    "in steps of 6": lambda x: x.T,
    "backwards": lambda x: x[:, ::-1],
    "backwards in steps of 12": lambda x: x[::-2],
    "repeated, broadcast": lambda x: ta.broadcast_to(x[0], (3, 6)),
    "one element": lambda x: x[:1],
}


@pytest.mark.parametrize("words", CASES)
def test_each_axis_is_described(words):
    assert f"{words}<" in array_html(CASES[words](ta.zeros((4, 6), device="cpu")))


@pytest.mark.parametrize("name", [dtype.name for dtype in dtypes.ALL])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (1,) * 40, (5, 0, 3), (9, 9, 9, 9), (10**6,)], ids=repr)
def test_it_is_small_and_has_the_facts(name, shape):
    x = ta.broadcast_to(ta.zeros((), dtype=name, device="cpu"), shape)
    text = x._repr_html_()
    assert len(text.encode()) < 4000
    assert f"{name} {shape} on cpu" in text
    assert "<script" not in text
    assert ("<svg" in text) == (x.size > 0)
    if x.size:
        svg_of(text)


def test_large_positions_fit():
    x = ta.broadcast_to(ta.zeros((), device="cpu"), (10**9, 10**9))
    y = ta.zeros((40, 10**5), dtype="complex128", device="cpu")[:, ::-9999]
    for array in (x, y):
        assert len(array_html(array).encode()) < 4000


def test_few_values_of_the_host_are_shown_and_others_are_not():
    assert "<pre>[1 2 3]</pre>" in array_html(ta.asarray([1, 2, 3], device="cpu"))
    assert "<pre>" not in array_html(ta.full((5, 5, 5, 5), 1 / 3, device="cpu"))


def test_nothing_is_fetched_from_a_device(monkeypatch):
    def refuse(x):
        raise AssertionError("values were read")

    x = ta.ones((2, 3), device="cpu")
    monkeypatch.setattr(layout_html, "array_str", refuse)
    with pytest.raises(AssertionError, match="values were read"):
        array_html(x)
    monkeypatch.setattr(type(x), "device", property(lambda self: Device("cuda", 0)))
    assert "print(x)" in array_html(x)
    assert "float32 (2, 3) on cuda:0" in array_html(x)


def test_an_array_that_is_differentiated_shows_its_values():
    seen = []
    ta.grad(lambda x: (seen.append(x._repr_html_()), ta.sum(x * x))[1])(ta.asarray([1.0, 2.0], device="cpu"))
    assert "[1. 2.]" in seen[0]


def test_a_traced_array_shows_its_layout_only():
    def traced(x):
        seen.append(x._repr_html_())
        return x + 1

    seen: list[str] = []
    ta.fuse(traced)(ta.ones(3, device="cpu"))
    assert "float32 (3,)" in seen[0]
    with ta.lazy():
        assert "[2. 2.]" in (ta.ones(2, device="cpu") + 1)._repr_html_()
