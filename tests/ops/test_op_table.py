"""The op table as a table: every row is complete, public, and the source of its operator; no row lacks an oracle.

What the operations compute is tests/ops/test_op_properties.py.
"""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy as np
import pytest
from support.oracles.rules import RULES

import tilearray as ta
from tilearray.numpy_names import names
from tilearray.ops import BY_UFUNC, OPS, PUBLIC
from tilearray.ops.op import Op

ROWS = pytest.mark.parametrize("row", OPS, ids=lambda row: row.name)
NAMED = pytest.mark.parametrize("name", PUBLIC)


def table(text: str) -> dict[str, tuple[str, str]]:
    """Lines of: Python's operator, the row's name, the word of its methods, as in __add__, __radd__, __iadd__."""
    return {symbol: (name, word) for symbol, name, word in (line.split() for line in text.strip().splitlines())}


BINARY = table("""
    +   add                  add
    -   subtract             sub
    *   multiply             mul
    /   divide               truediv
    //  floor_divide         floordiv
    %   remainder            mod
    **  pow                  pow
    &   bitwise_and          and
    |   bitwise_or           or
    ^   bitwise_xor          xor
    <<  bitwise_left_shift   lshift
    >>  bitwise_right_shift  rshift
""")
COMPARISONS = table("""
    ==  equal          eq
    !=  not_equal      ne
    <   less           lt
    <=  less_equal     le
    >   greater        gt
    >=  greater_equal  ge
""")
UNARY = table("""
    -x      negative        neg
    +x      positive        pos
    ~x      bitwise_invert  invert
    abs(x)  abs             abs
""")
INPLACE = {symbol: getattr(operator, f"i{word}") for symbol, (_, word) in BINARY.items()}


def integers() -> ta.Array:
    return ta.asarray([5, 3, 9])


# --- rows ---------------------------------------------------------------------------------------------------------


@ROWS
def test_a_row_is_complete(row: Any) -> None:
    assert row.summary.endswith(".")
    assert row.__name__ == row.name
    for section in ("Parameters\n---", "Returns\n---", "Raises\n---", "Examples\n---"):
        assert section in row.__doc__
    call, printed = row.example
    assert repr(eval(call, {"ta": ta})) == printed
    assert f">>> {call}\n{printed}\n" in row.__doc__


@ROWS
def test_a_row_agrees_with_its_oracle(row: Any) -> None:
    """Two tables, written apart: arity, accepted kinds, masks, and what is exact."""
    rule = RULES["identity" if row.moves else row.name]
    assert row.arity == rule.arity
    assert (row.masks, row.exponents, row.narrow) == (rule.masks, rule.exponents, rule.narrow)
    assert {"int" if kind == "uint" else kind for kind in row.kinds - {"pair"}} == set(rule.kinds)
    assert ("pair" in row.kinds) == row.moves  # packed pairs are not numbers
    assert ("int" in row.kinds) == ("uint" in row.kinds)
    assert row.exact == (rule.floats is not None or rule.result == "truth" or "float" not in rule.kinds)
    assert row.exact or row.domain is not None


@NAMED
def test_a_row_is_public_under_its_name(name: str) -> None:
    public = PUBLIC[name].part_of or name
    assert public in ta.__all__
    function = getattr(ta, public)
    assert function is PUBLIC[name] or PUBLIC[name].part_of == public
    if not PUBLIC[name].part_of:
        assert pickle.loads(pickle.dumps(function)) is function
        assert repr(function) == f"<elementwise op tilearray.{name}>"


@NAMED
def test_a_wrong_number_of_operands(name: str) -> None:
    row = PUBLIC[name]
    message = f"^{name}: expected {row.arity} operands, got {row.arity + 2}; write ta.{name}\\(x1"
    with pytest.raises(TypeError, match=message):
        row(*[integers()] * (row.arity + 2))  # one more is the target


@pytest.mark.parametrize("word", [word for word in BY_UFUNC if hasattr(np, word)])
def test_numpys_function_of_an_array_is_the_row(word: str) -> None:
    """The ufunc that NumPy calls by this name: ``np.true_divide`` is really ``divide``."""
    row, ufunc = BY_UFUNC[word], getattr(np, word)
    if not isinstance(ufunc, np.ufunc):
        return
    assert ufunc.__name__ == word
    operands = [ta.asarray([1, 0]) for _ in range(row.arity)]
    result = ufunc(*operands)
    assert type(result) is ta.Array
    assert repr(result) == repr(row(*operands))


def test_every_ufunc_of_a_public_name_reaches_its_row() -> None:
    """Not what is made of rows: ``np.divmod`` and ``np.frexp`` have two results; nor products of matrices."""
    public = {name: getattr(ta, name) for name in ta.__all__ if isinstance(getattr(np, name, None), np.ufunc)}
    rows = {getattr(np, name).__name__: row for name, row in public.items() if isinstance(row, Op)}
    assert len(rows) > 60
    assert {word: BY_UFUNC.get(word) for word in rows} == rows
    others = {name for name, row in public.items() if not isinstance(row, Op)}
    made_of_rows = {name for name in others if names.MODULE_OF.get(name) == "numbers"}
    assert made_of_rows == {"fabs", "fmax", "fmin", "modf", "rint"}
    others -= made_of_rows | {"matvec", "vecmat"}  # NumPy 2.1 lacks the last two
    assert others == {"divmod", "frexp", "matmul", "vecdot"}


def test_numpy_scalars_on_the_left() -> None:
    """NumPy compares a scalar as a 0-d array, which counts as the scalar it was."""
    x = ta.asarray(np.array([1, 2, 3], np.int8))
    for symbol, (name, word) in COMPARISONS.items():
        result = getattr(operator, word)(np.int8(2), x)
        assert (symbol, type(result), result.tolist()) == (symbol, ta.Array, PUBLIC[name](np.int8(2), x).tolist())
    assert (np.float64(2) / x).dtype == ta.float64


# --- operators ----------------------------------------------------------------------------------------------------


def test_every_operator_has_its_row() -> None:
    written = {symbol: name for table in (BINARY, COMPARISONS, UNARY) for symbol, (name, _) in table.items()}
    assert {row.operator: row.name for row in OPS if row.operator} == written


@pytest.mark.parametrize("symbol", BINARY)
def test_binary_operators_in_all_three_forms(symbol: str) -> None:
    name, word = BINARY[symbol]
    row = PUBLIC[name]
    assert all(f"__{prefix}{word}__" in vars(ta.Array) for prefix in ("", "r", "i"))
    x, y = integers(), ta.asarray([2, 7, 4])
    forward = eval(f"x {symbol} y")
    assert forward.tolist() == row(x, y).tolist() != row(y, x).tolist() or symbol in "+*&|^"
    assert eval(f"x {symbol} 2").tolist() == row(x, 2).tolist()
    assert eval(f"2 {symbol} x").tolist() == row(2, x).tolist()
    assert getattr(x, f"__r{word}__")(y).tolist() == row(y, x).tolist()
    target = same = integers() if symbol != "/" else ta.asarray([5.0, 3.0, 9.0])
    same = INPLACE[symbol](same, y)
    assert same is target
    assert target.tolist() == pytest.approx(forward.tolist())


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_comparisons(symbol: str) -> None:
    name, word = COMPARISONS[symbol]
    assert f"__{word}__" in vars(ta.Array)
    x, y = integers(), ta.asarray([2, 3, 10])
    assert eval(f"x {symbol} y").tolist() == PUBLIC[name](x, y).tolist()
    assert eval(f"3 {symbol} x").tolist() == PUBLIC[name](3, x).tolist()


@pytest.mark.parametrize("symbol", UNARY)
def test_unary_operators(symbol: str) -> None:
    name, word = UNARY[symbol]
    assert f"__{word}__" in vars(ta.Array)
    x = integers()
    assert eval(symbol).tolist() == PUBLIC[name](x).tolist()


class Foreign:
    """A type of which nothing is known, but that it can do it itself."""

    def __radd__(self, other: object) -> str:
        return "its own"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_an_unknown_type_handles_the_operation_or_it_is_a_type_error() -> None:
    x = integers()
    assert x + Foreign() == "its own"
    assert (x == Foreign()) is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x - Foreign()
    with pytest.raises(TypeError, match="unsupported operand"):
        x += object()


def test_arrays_are_not_hashable_since_equality_is_elementwise() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(integers())


def test_a_row_is_an_attribute_of_the_package() -> None:
    with pytest.raises(AttributeError, match=r"'tilearray.ops' has no attribute 'add'; write ta.add"):
        ta.ops.add  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        ta.ops.nonsense  # noqa: B018
