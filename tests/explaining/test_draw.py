"""`ta.draw`: places are those of NumPy's elements, the line goes up in memory, and programs cover the loop."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import needs_triton

import tilearray as ta
from tilearray.errors import OperandError
from tilearray.explaining.draw import Drawing, first_part, in_memory_order, tiles_of

SVG = "{http://www.w3.org/2000/svg}"
KEYS = st.tuples(*[st.slices(size) for size in (3, 4, 5)])


def x(*shape: int, dtype: str = "float32") -> ta.Array:
    return ta.zeros(shape, dtype=dtype, device="cpu")


def grids(drawing: Drawing) -> dict[str, list[list[int]]]:
    """The places below the name of each array of a call."""
    found: dict[str, list[list[int]]] = {}
    name = ""
    for line in drawing.text.splitlines():
        if named := re.match(r"   (out\d+|x\d+) \w+: ", line):
            name = named[1]
            found[name] = []
        elif name and (numbers := re.findall(r"-?\d+", line)):
            found[name].append([int(number) for number in numbers])
    return found


# --- arrays ----------------------------------------------------------------------------------------------------------


@given(KEYS, st.permutations(range(3)))
def test_an_array_is_drawn_where_numpys_elements_are(key, axes):
    source = np.arange(60).reshape(3, 4, 5)  # each value is its position in the buffer
    drawing = ta.draw(ta.asarray(source, device="cpu")[key].permute_dims(*axes))
    wanted = source[key].transpose(axes)
    if not wanted.size:
        assert "memory" not in str(drawing)
        return
    *lines, memory = str(drawing).splitlines()[4:]
    assert [[int(word) for word in re.findall(r"\d+", line)] for line in lines if line.strip() != "..."] == wanted[
        0, :4, :6
    ].tolist()
    strip = memory.partition(": ")[2]
    assert [place for place, mark in enumerate(strip) if mark == "#"] == sorted(
        int(place) for place in wanted.flat - wanted.min() if place < 48
    )


def test_the_drawing_of_an_array_is_text_and_svg():
    drawing = ta.draw(np.zeros((4, 9), "f4")[:, ::-2])
    assert str(drawing).splitlines() == [
        "float32 (4, 5) on cpu, 80 bytes",
        "axis 0: 4, in steps of 9",
        "axis 1: 5, backwards in steps of 2",
        "    8     6     4     2     0",
        "   17    15    13    11     9",
        "   26    24    22    20    18",
        "   35    33    31    29    27",
        "memory from element 0 of the buffer: #.#.#.#.##.#.#.#.##.#.#.#.##.#.#.#.#",
    ]
    texts = [element.text for element in ElementTree.fromstring(drawing._repr_svg_()).iter(f"{SVG}text")]
    assert texts[:5] == ["8", "6", "4", "2", "0"]
    assert drawing._repr_svg_() in drawing._repr_html_()


@pytest.mark.parametrize(("shape", "cells"), [((), ["0"]), ((3,), ["0", "1", "2"]), ((1, 2), ["0", "1"])])
def test_missing_axes_are_drawn_as_one_row(shape, cells):
    lines = str(ta.draw(x(*shape))).splitlines()
    assert lines[-2].split() == cells
    assert lines[-1] == f"memory from element 0 of the buffer: {'#' * len(cells)}"
    assert len(lines) == 3 + len(shape)


# --- calls -----------------------------------------------------------------------------------------------------------


@given(st.tuples(st.slices(4), st.slices(6)), st.booleans())
def test_a_call_visits_the_elements_of_its_operand(key, transposed):
    source = np.arange(24).reshape(4, 6)[key]
    source = source.T if transposed else source
    drawing = ta.draw(ta.negative, source)
    if not source.size:
        assert drawing.text == f"negative on cpu under {ta.get_semantics().name}: 0 launches, 0 B"
        return
    places = [place for line in grids(drawing)["x0"] for place in line]
    if len(places) < source.size:  # a loop of one axis, of which six elements are drawn
        assert "..." in drawing.text
        return
    assert sorted(place - min(places) for place in places) == sorted((source - source.min()).ravel().tolist())


def test_a_transposed_operand_is_walked_down_its_columns():
    found = grids(ta.draw(ta.add, x(480, 640), x(640, 480).T))
    assert found["x0"] == [[row * 640 + column for column in range(6)] for row in range(4)]
    assert found["x1"] == [[row + 480 * column for column in range(6)] for row in range(4)]


def points(element: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(across), float(down)) for across, down in (p.split(",") for p in element.attrib["points"].split())]


def test_the_line_goes_up_in_memory():
    drawing = ta.draw(ta.add, x(4, 3), x(3, 4).T)
    out, _, transposed = [points(line) for line in ElementTree.fromstring(drawing.svg).iter(f"{SVG}polyline")]
    assert [down for _, down in out] == sorted(down for _, down in out)
    assert [across for across, _ in transposed] == sorted(across for across, _ in transposed)
    assert (len(out), len(transposed)) == (12, 12)
    cells = ((5, 3), (1, 5))
    assert [cells[row][column] for row, column in in_memory_order(cells)] == [1, 3, 5]


def test_nothing_is_computed_or_written():
    array = x(3)

    def write(array):
        array += 1

    assert "1. add" in str(ta.draw(write, array))
    assert array.tolist() == [0, 0, 0]


def test_only_some_launches_and_arrays_are_drawn():
    def many(a, count):
        for _ in range(count):
            a = a + 1
        return a

    assert str(ta.draw(many, x(3), 11)).endswith("and 3 more launches")
    assert str(ta.draw(many, x(3), 9)).endswith("and 1 more launch")
    assert "more launch" not in str(ta.draw(many, x(3), 8))
    wide = ta.draw(ta.fuse(lambda *a: sum(a[1:], a[0])), *[x(3) for _ in range(9)])
    assert "and 2 more arrays" in str(wide)
    assert "and 2 more arrays" in wide.svg
    assert "<b>&lt;lambda&gt; on cpu" in ta.draw(lambda a: -a, x(3))._repr_html_()


@needs_triton
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: (ta.add, x(480, 640), x(640, 480).T), "80 programs of 64 x 64 elements: 8 x 10 tiles of the last two"),
        (lambda: (ta.add, x(480, 640), x(640)), "600 programs of 512 elements, in the order of the loop"),
        (
            lambda: (lambda a: ta.sum(a, axis=1), x(480, 640)),
            "480 programs of 1 x 128 elements, along the last axis in",
        ),
        (
            lambda: (ta.sum, x(480, 640)),
            "elements, along the last axis in steps of 2048, in 17 segments",
        ),
        (lambda: (ta.softmax, x(100, 1000)), "25 programs, each with 4 rows in registers, in 128 lanes"),
        (lambda: (ta.matmul, x(480, 640), x(640, 480)), "64 programs of 64 x 64 elements\n"),
    ],
)
def test_programs_share_the_loop(call, words):
    drawing = ta.draw(*call(), arch=90)
    assert words in str(drawing)
    assert words.strip() in drawing.svg.replace("</text>", "\n")
    ElementTree.fromstring(drawing.svg)


@needs_triton
def test_tiles_cover_the_loop_and_the_first_one_is_filled():
    (launch,) = ta.explain(ta.add, x(481, 641), x(641, 481).T, arch=90).launches
    down, across = launch.kernel.tile
    tiles = tiles_of(launch)
    assert tiles == (-(-481 // down), -(-641 // across))
    assert tiles[0] * tiles[1] == launch.kernel.programs
    assert first_part(launch, launch.kernel) == [(0, down, across)]
    (blocks,) = ta.explain(ta.add, x(480, 100), x(100), arch=90).launches
    assert tiles_of(blocks) is None
    part = first_part(blocks, blocks.kernel)
    assert sum(rows * columns for _, rows, columns in part) == blocks.kernel.tile[1]
    assert [top for top, _, _ in part] == [0, part[0][1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ta.draw(5), r"draw: expected an array, or a function and its arguments, got int; write ta\.draw\(x\)"),
        (lambda: ta.draw(x(3), x(3)), "draw: expected a function before other arguments, got an array"),
        (lambda: ta.draw(x(3), arch=90), "draw: expected a function before other arguments"),
        (lambda: ta.draw(ta.add, 1, 2), "expected at least one array"),
    ],
)
def test_errors_say_what_to_write(call, message):
    with pytest.raises(OperandError, match=message):
        call()
