"""The derivative rules of rows, from text to functions.

A row of the op table says for each operand what it adds to the gradient, as an expression (`Row.derivative`)::

    multiply   "g * conj(y)", "g * conj(x)"
    exp        "g * conj(out)"

`g` is the cotangent, the gradient of the result; ``x y z w`` are the operands, and `out` is the result. An expression
uses operators, the rows of the table, and the names of `_vocabulary`. It runs on arrays with memory, on arrays that
`fuse` traces, and on arrays that are differentiated again. For complex numbers the gradient is ``dL/d(real) +
1j * dL/d(imag)`` of a real loss L, as in torch.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from tilearray import dtypes
from tilearray.engine.signature import ArrayBase
from tilearray.functions.conversion import astype
from tilearray.functions.digamma import digamma
from tilearray.functions.manipulation import new_like
from tilearray.functions.searching import where
from tilearray.ops import OPS
from tilearray.ops.execute import fill
from tilearray.ops.number_parts import conj, real

LETTERS = "xyzw"
"""The names of the operands in rules."""
OUT = 4
"""The place of the result among the values that a rule may read, after the operands."""


class Term(NamedTuple):
    """What one operand adds to its gradient.

    Attributes
    ----------
    text : str
    code : code
    reads : set of int
        The operands that the expression reads; `OUT` is the result.
    calls : set of int
        Those of them that a function takes alone: it takes no Python number.
    """

    text: str
    code: CodeType
    reads: frozenset[int]
    calls: frozenset[int]


@functools.lru_cache(512)
def terms_of(rules: tuple[str, ...]) -> tuple[Term | None, ...]:
    """Return the terms of the operands of a row; None for those that add nothing.

    Examples
    --------
    >>> [sorted(term.reads) for term in terms_of(("g * y", "g * x"))]
    [[1], [0]]
    >>> terms_of(("0",))
    (None,)
    """
    return tuple([None if text in ("", "0") else _term(text) for text in rules])


def _term(text: str) -> Term:
    tree = ast.parse(text, mode="eval")
    called: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in ("where", "conj", "is_real", "real"):
            read = {name.id for part in node.args for name in ast.walk(part) if isinstance(name, ast.Name)}
            called |= read if len(read & {*LETTERS, "g", "out"}) == 1 else set()  # else one of them is an array
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Term(text, compile(tree, "<derivative>", "eval"), _places(names), _places(called))


def _places(names: set[str]) -> frozenset[int]:
    found = {LETTERS.index(name) for name in names if name in LETTERS}
    return frozenset(found | {OUT} if "out" in names else found)


def value_of(term: Term, g: Any, values: Sequence[Any], exponents: int = 0) -> Any:
    """Return the value of a term, given the cotangent, and the operands and the result that it reads.

    Integers take the dtype of the cotangent first, and so do Python numbers that are the argument of a function. The
    last `exponents` operands stay integers.
    """
    given: dict[str, Any] = {"g": g}
    end = len(values) - 1 - exponents
    for place in term.reads:
        value = values[-1] if place == OUT else values[place]
        if place < end:
            value = _as_number_like(value, g, place in term.calls)
        given["out" if place == OUT else LETTERS[place]] = value
    return eval(term.code, _vocabulary(), given)


def _as_number_like(value: Any, g: Any, called: bool) -> Any:
    if not isinstance(value, ArrayBase):
        if not called:
            return value
        return fill(new_like(g, ()), value, "vjp")
    kind = dtypes.info(value.dtype).kind
    return astype(value, g.dtype) if kind in ("int", "uint") else value


@functools.cache
def _vocabulary() -> dict[str, Any]:
    names: dict[str, Any] = {row.name: row for row in OPS if not row.part_of or row.part_of == "frexp"}
    constants = {"ln2": math.log(2), "ln10": math.log(10), "two_by_root_pi": 2 / math.sqrt(math.pi)}
    helpers: dict[str, Any] = {"conj": _conj, "digamma": digamma, "is_real": is_real, "real": _real, "where": _where}
    return {**names, **constants, "pi": math.pi, "inf": math.inf, **helpers, "__builtins__": {}}


def is_real(x: Any) -> bool:
    """Return whether an array or a number is not complex."""
    return dtypes.info(x.dtype).kind != "complex" if isinstance(x, ArrayBase) else not isinstance(x, complex)


def _conj(x: Any) -> Any:
    """The conjugate of complex arrays; other operands as they are, without a copy."""
    if isinstance(x, ArrayBase):
        return x if is_real(x) else conj(x)
    return x.conjugate() if isinstance(x, complex) else x


def _real(x: Any) -> Any:
    return x if is_real(x) else real(x) if isinstance(x, ArrayBase) else x.real


def _where(condition: Any, x: Any, y: Any) -> Any:
    if isinstance(condition, ArrayBase):
        return where(condition, x, y)
    return x if condition else y
