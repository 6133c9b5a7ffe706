"""Printing: NumPy's text under NumPy's options, with dtype and device; and nothing is fetched that is not shown."""

from __future__ import annotations

import bisect
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.views import views

import tilearray as ta
from tilearray import dtypes
from tilearray.functions import printing

NUMPYS = [dtype.name for dtype in dtypes.ALL if dtype.isbuiltin == 1]
SHAPES = [(), (1,), (0,), (3, 0), (5,), (30,), (2, 3), (1, 1, 2), (2, 3, 4), (1001,), (40, 40), (7, 7, 30), (3, 400, 1)]


def body_of(text: str) -> str:
    """What a repr says before dtype and the like: both libraries' first word has six letters with its bracket."""
    return re.split(r",\s+(?:shape|dtype)=|\)$", text)[0].removeprefix("Array(").removeprefix("array(")


def assert_numpys_text(x: ta.Array, source: np.ndarray) -> None:
    assert str(x) == str(source)
    if source.size:
        assert body_of(repr(x)) == body_of(repr(source))
    assert f"dtype={x.dtype.name}, device='cpu')" in re.sub(r"\s+", " ", repr(x))
    *lines, tail = repr(x).split("\n")
    allowed = max(np.get_printoptions()["linewidth"], *map(len, repr(source).split("\n")))
    assert all(len(line) <= allowed for line in lines)
    assert len(tail) <= allowed or tail.startswith("      dtype=")


@pytest.mark.parametrize("name", NUMPYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_text_is_numpys(name, shape):
    size = int(np.prod(shape))
    with np.errstate(all="ignore"):
        source = (np.linspace(-1, 1, size) ** 3 * 100).astype(name).reshape(shape)
    assert_numpys_text(ta.asarray(source), source)


@given(views())
def test_the_text_of_any_view_is_numpys(both):
    assert_numpys_text(*both)


OPTIONS = [
    {"precision": 3},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 0},
    {"threshold": 10**9},
    {"edgeitems": 10, "threshold": 12},
    {"linewidth": 30},
    {"linewidth": 200},
    {"suppress": True},
    {"sign": "+"},
    {"floatmode": "fixed"},
    {"nanstr": "NA", "infstr": "oo"},
    {"formatter": {"float": lambda value: f"<{value:.1f}>"}},
]
VALUES = [
    np.array([[1 / 3, 1e-9, 1e9], [np.nan, -np.inf, -0.0]]),
    np.linspace(0, 1, 60).reshape(3, 20),
    np.linspace(0, 1, 600, dtype="float32").reshape(2, 3, 100),
    np.arange(11),
    np.array(1 / 3),
    np.array([], "float32"),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
@pytest.mark.parametrize("source", VALUES, ids=[str(value.shape) for value in VALUES])
def test_print_options_are_respected(options, source):
    with np.printoptions(**options):
        assert_numpys_text(ta.asarray(source), source)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.integers(1, 3), st.integers(0, 30))
def test_summaries_are_numpys(shape, edgeitems, threshold):
    source = np.arange(np.prod(shape)).reshape(shape) ** 3
    with np.printoptions(edgeitems=edgeitems, threshold=threshold):
        assert_numpys_text(ta.asarray(source), source)


def test_without_edge_items_the_last_one_is_shown():
    with np.printoptions(edgeitems=0, threshold=3):
        for shape in [(11,), (5, 3), (2, 2, 2)]:
            source = np.arange(np.prod(shape)).reshape(shape) + 10
            assert_numpys_text(ta.asarray(source), source)


EXACTLY = [
    (lambda: ta.asarray([1, 2]), "Array([1, 2], dtype=int64, device='cpu')"),
    (lambda: ta.asarray(True), "Array(True, dtype=bool, device='cpu')"),
    (lambda: ta.zeros((2, 0), dtype="int8"), "Array([], shape=(2, 0), dtype=int8, device='cpu')"),
    (lambda: ta.zeros(0), "Array([], dtype=float32, device='cpu')"),
    (lambda: ta.asarray([1, 2.5, -3], dtype="bfloat16"), "Array([ 1. ,  2.5, -3. ], dtype=bfloat16, device='cpu')"),
    (lambda: ta.asarray(0.5, dtype="float8_e4m3fn"), "Array(0.5, dtype=float8_e4m3fn, device='cpu')"),
    (lambda: ta.asarray([448, 0.1], dtype="e4m3"), "Array([4.48e+02, 1.00e-01], dtype=float8_e4m3fn, device='cpu')"),
    (lambda: ta.zeros(3, dtype="bf16"), "Array([0., 0., 0.], dtype=bfloat16, device='cpu')"),
    (lambda: ta.asarray([6, -0.5], dtype="e2m1"), "Array([ 6. , -0.5], dtype=float4_e2m1fn, device='cpu')"),
    (
        lambda: ta.arange(2000),
        "Array([   0,    1,    2, ..., 1997, 1998, 1999], shape=(2000,), dtype=int64,\n      device='cpu')",
    ),
    (
        lambda: ta.full((2, 2), 1.5, dtype="complex128"),
        "Array([[1.5+0.j, 1.5+0.j],\n       [1.5+0.j, 1.5+0.j]], dtype=complex128, device='cpu')",
    ),
]


@pytest.mark.parametrize(("make", "text"), EXACTLY, ids=[text for _, text in EXACTLY])
def test_texts(make, text):
    assert repr(make()).replace(",\n      ", ", ") == text.replace(",\n      ", ", ")


NARROW = [dtype.name for dtype in dtypes.ALL if dtype.name not in NUMPYS]


def every_value(name: str) -> np.ndarray:
    """All values of a format, in the order of their codes."""
    dtype = dtypes.as_dtype(name)
    codes = np.arange(2 ** dtypes.info(dtype).bits).astype(f"u{dtype.itemsize}")
    return codes.view(dtype)


@pytest.mark.parametrize("name", NARROW)
def test_a_narrow_float_is_its_shortest_decimal(name):
    """By Fractions: it rounds to the element and to no neighbour, and no decimal of fewer digits does."""
    values = every_value(name)
    exactly = sorted({float(value) for value in values if np.isfinite(float(value))})
    values = values[:: 11 if name == "bfloat16" else 1]
    with ta.printoptions(threshold=10**6, floatmode="unique"):
        printed = re.findall(r"[^\s\[\]]+", str(ta.asarray(values)))
    assert len(printed) == values.size
    for value, text in zip(values.tolist(), printed, strict=True):
        assert "." in text or text in ("nan", "inf", "-inf")
        if not np.isfinite(value):
            assert text == repr(value)
            continue
        assert text.startswith("-") == (math.copysign(1, value) < 0)
        place = bisect.bisect_left(exactly, value)
        others = exactly[max(place - 1, 0) : place] + exactly[place + 1 : place + 2]
        distance = abs(Fraction(text) - Fraction(value))
        assert all(distance <= abs(Fraction(text) - Fraction(other)) for other in others)
        if value == int(value) and abs(value) < 1e8:
            assert Fraction(text) == int(value)
        elif len(others) == 2 and (digits := len(text.split("e")[0].replace(".", "").strip("-0"))) > 1:
            shorter = Fraction(f"{value:.{digits - 2}e}")
            assert any(abs(shorter - Fraction(other)) <= abs(shorter - Fraction(value)) for other in others)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float4_e2m1fn"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (2000,), (50, 50)], ids=str)
def test_narrow_floats_print_as_float64_does(name, shape):
    source = np.resize([0, 1, 0.5, 3, -2], shape)
    assert_numpys_text(ta.asarray(source.astype(dtypes.as_dtype(name))).astype("float64"), source)
    assert str(ta.asarray(source.astype(dtypes.as_dtype(name)))) == str(source)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
def test_print_options_are_respected_by_narrow_floats(options):
    """The values are those whose shortest decimals are the same in bfloat16 and in float64."""
    source = np.array([[0.5, 1e-9, 1e9], [np.nan, -np.inf, -0.0], [2.5, 100, -7]])
    with ta.printoptions(**options):
        shown = str(ta.asarray(source, dtype="bfloat16"))
        expected = source if options.get("floatmode") != "fixed" else source.astype(ta.bfloat16).astype(float)
        assert shown == str(expected)


def test_the_options_are_numpys():
    assert ta.printoptions is np.printoptions
    before = ta.get_printoptions()
    try:
        ta.set_printoptions(precision=2)
        assert np.get_printoptions()["precision"] == 2
        assert str(ta.asarray([1 / 3, 1])) == "[0.33 1.  ]"
    finally:
        ta.set_printoptions(**before)


def test_format():
    x = ta.asarray([1.5, 2.25])
    assert f"{x}" == "[1.5  2.25]"
    assert f"{x[1]:.1f}" == "2.2"
    assert f"{x[:1]:.2f} {ta.asarray([[7]]):04d} {ta.asarray(0.1, dtype='bf16'):.3f}" == "1.50 0007 0.100"
    assert f"{x:>12}" == " [1.5  2.25]"
    assert f"{x!r}" == repr(x)
    with pytest.raises(TypeError) as caught:
        f"{x:.1f}"
    assert str(caught.value) == (
        "format: expected one element for the format '.1f', got shape (2,); write the format of each element, "
        "[f'{value:.1f}' for value in x], or with ta.printoptions(precision=2): str(x)"
    )


# --- what is fetched -------------------------------


@pytest.mark.parametrize(
    ("shape", "most"),
    [((10_000_000,), 7), ((3000, 3000), 49), ((200, 200, 200), 343), ((3, 1_000_000), 21), ((1_000_000, 2), 14)],
)
@pytest.mark.parametrize("show", [str, repr])
def test_only_the_shown_elements_are_fetched(monkeypatch, shape, most, show):
    x = ta.broadcast_to(ta.asarray(1.0), shape)
    fetched: list[int] = []

    def counting(array: ta.Array) -> np.ndarray:
        fetched.append(array.size)
        return ta.to_numpy(array)

    monkeypatch.setattr(printing, "to_numpy", counting)
    assert "..." in show(x)
    assert 0 < sum(fetched) <= most


def test_nothing_is_fetched_of_an_empty_array(monkeypatch):
    monkeypatch.setattr(printing, "to_numpy", None)
    assert str(ta.zeros((0, 5))) == "[]"
    assert repr(ta.zeros((0, 5))).startswith("Array([], shape=(0, 5)")
