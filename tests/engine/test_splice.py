"""Spliced expressions: what they read, what they share, and where they round."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.splice import Splicer, is_elementwise
from tilearray.ops import arithmetic, moves, reduction, scan

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")


def expression_of(row, *dtypes, out=None):
    return row.expression(ta.get_semantics(), dtypes, out)


def test_an_intermediate_is_rounded_as_if_it_were_stored():
    multiply, add = (expression_of(row, HALF, HALF) for row in (arithmetic.multiply, arithmetic.add))
    splicer = Splicer()
    x, y = splicer.array("x", HALF), splicer.array("y", HALF)
    found = splicer.build([splicer.splice(add, [splicer.splice(multiply, [x, y]), x])], [HALF])
    assert found.inputs == (("array", "float16"), ("array", "float16"))
    assert [node[0] for node in found.nodes] == [
        "input",
        "input",
        "cast",
        "cast",
        "call",
        "cast",
        "cast",
        "call",
        "cast",
    ]
    assert found.nodes[5:7] == (("cast", 4, "float16"), ("cast", 5, "float32"))
    assert splicer.keys == [("array", "x"), ("array", "y")]


def test_an_intermediate_that_needs_no_rounding_has_none():
    """The size of a float16 is one, also as float32; that of a sum of float32 is not."""
    size, total = expression_of(arithmetic.abs, HALF), expression_of(arithmetic.add, HALF, HALF)
    splicer = Splicer()
    x = splicer.array("x", HALF)
    found = splicer.build([splicer.splice(total, [splicer.splice(size, [x]), x])], [HALF])
    (absolute,) = [place for place, node in enumerate(found.nodes) if node[:2] == ("call", "abs")]
    (added,) = [node for node in found.nodes if node[:2] == ("call", "add")]
    assert added[2] == (absolute, 1)
    other = Splicer()
    y = other.array("y", SINGLE)
    narrow = other.splice(
        expression_of(moves.convert, SINGLE, out=HALF), [other.splice(expression_of(arithmetic.abs, SINGLE), [y])]
    )
    found = other.build([other.splice(size, [narrow])], [HALF])
    assert [node[0] for node in found.nodes] == ["input", "call", "cast", "cast", "call", "cast"]


def test_a_wide_intermediate_is_not_rounded():
    multiply, add = (expression_of(row, HALF, HALF) for row in (arithmetic.multiply, arithmetic.add))
    splicer = Splicer(wide=True)
    x, y = splicer.array("x", HALF), splicer.array("y", HALF)
    found = splicer.build([splicer.splice(add, [splicer.splice(multiply, [x, y]), x])], [HALF])
    assert [node for node in found.nodes if node[0] == "call"][1][2] == (4, 2)
    rounded = Splicer(wide=True)
    x = rounded.array("x", HALF)
    node = rounded.splice(expression_of(arithmetic.add, HALF, SINGLE), [x, rounded.array("z", SINGLE)])
    assert ("cast", 0, "float32") in rounded.build([node], [SINGLE]).nodes  # memory holds rounded numbers


def test_an_expression_that_may_be_contracted_is_another_one():
    splicer = Splicer()
    node = splicer.splice(expression_of(arithmetic.add, SINGLE, SINGLE), [splicer.array("x", SINGLE)] * 2)
    plain, allowed = (splicer.build([node], [SINGLE], contract=contract) for contract in (False, True))
    assert (plain.contract, allowed.contract) == (False, True)
    assert plain is not allowed
    assert allowed is splicer.build([node], [SINGLE], contract=True)


def test_equal_parts_are_one_and_equal_expressions_are_one_object():
    add = expression_of(arithmetic.add, SINGLE, SINGLE)

    def built():
        splicer = Splicer()
        x, two = splicer.array("x", SINGLE), splicer.number("two", SINGLE)
        parts = [splicer.splice(add, [x, two]) for _ in range(3)]
        assert len(set(parts)) == 1
        return splicer.build([parts[0], x], [SINGLE, SINGLE])

    assert built() is built()
    assert built().scalar_dtypes == (None, SINGLE)
    assert built().outputs == (2, 0)


def test_only_elementwise_expressions_and_reductions_are_spliced():
    total = reduction.reduction_of("sum", SINGLE, (0,), False).expression(ta.get_semantics(), (SINGLE,), None)
    assert not is_elementwise(total)
    splicer = Splicer()
    x = splicer.array("x", SINGLE)
    found = splicer.build([splicer.splice(total, [x]), splicer.splice(total, [x])], [SINGLE, SINGLE])
    assert [node[0] for node in found.nodes] == [node[0] for node in total.nodes]
    assert len(set(found.outputs)) == 1
    running = scan.scan_of("cumulative_sum", "add", SINGLE, 0, False).expression(ta.get_semantics(), (SINGLE,), None)
    with pytest.raises(NotImplementedError, match="scan: only elementwise expressions and reductions can be spliced"):
        splicer.splice(running, [x])
    builder = ExpressionBuilder()
    x = builder.array(SINGLE)
    assert not is_elementwise(builder.build([x], [SINGLE], (x,)))
    assert is_elementwise(builder.build([x], [SINGLE]))
