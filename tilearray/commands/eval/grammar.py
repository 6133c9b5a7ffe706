"""Expressions as text -> arrays: a small grammar, read from Python's syntax tree and never given to Python's ``eval``.

Every kind of node has its place in one of three functions below, for values, arguments and indices. Each returns a
function that computes the node from its parts; what has no place there is an `ExpressionError`. The whole text is read
before anything of it is computed, and nothing can be computed but

- the arrays that are given by name, numbers, and ``ta.pi``, ``ta.e``, ``ta.inf``, ``ta.nan``
- Python's operators but for ``and``, ``or``, ``not``, ``in`` and ``is``; one comparison at a time; ``x.T``; ``x[...]``
- calls of `FUNCTIONS`, which are taken from the public functions; ``ta.`` before the name may be left out. Arguments
  are such values, dtypes (``ta.float32`` or ``"float32"``), None, tuples and lists; keywords are those of `KEYWORDS`

Text, nesting and integers are bounded, so that reading and computing with numbers takes no time; the sizes of arrays
are not: what does not fit in memory is an error when it is made.
"""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from tilearray.commands.eval.vocabulary import (
    BINARY,
    COMPARISONS,
    CONSTANTS,
    DTYPES,
    FUNCTIONS,
    KEYWORDS,
    UNARY,
    WIDEST,
    WORDS,
    item,
    on_operands,
    too_wide,
    transposed,
)
from tilearray.errors import ExpressionError, TileArrayError
from tilearray.ops.options import MODES

LONGEST = 4000  # characters
DEEPEST = 100  # nodes within nodes

INSTEAD: dict[type[ast.AST], str] = {
    ast.BoolOp: "`and` and `or` do not compare elements; write (x) & (y), (x) | (y)",
    ast.UnaryOp: "`not` does not look at elements; write ~x",
    ast.Compare: "one comparison at a time, without `in` and `is`; write (x < y) & (y < z)",
    ast.IfExp: "a choice is made for each element; write ta.where(condition, x, y)",
    ast.Tuple: "a tuple is an argument or an index, no operand; write ta.asarray([...])",
    ast.List: "a list is an argument, no operand; write ta.asarray([...])",
    ast.Starred: "arguments are written out one by one; leave the * out",
}

Watch = Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]
"""Called for every operator and function with its text, its operands and what computes it; returns the result."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression is computed with."""

    arrays: Mapping[str, Any]
    watch: Watch


Run = Callable[[Scope], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read: within the grammar, and not computed yet.

    Attributes
    ----------
    text : what was read
    names : the arrays that it needs, in the order of their first use
    steps : how many operators, views and function calls there are
    """

    text: str
    names: tuple[str, ...]
    steps: int
    run: Run

    def evaluate(self, arrays: Mapping[str, Any], watch: Watch = lambda part, operands, compute: compute()) -> Any:
        """Compute the expression of arrays by name; `watch` sees, and runs, each step.

        Raises
        ------
        ExpressionError
            Whatever goes wrong; the message quotes the part and says what the library says.
        """
        return self.run(Scope(arrays, watch))


def evaluate(expression: str, arrays: Mapping[str, Any]) -> Any:
    """Compute an expression of arrays by name.

    Parameters
    ----------
    expression : str
        Of the grammar above.
    arrays : mapping of str to Array

    Returns
    -------
    Array, number or tuple of Array
        What the expression comes to.

    Raises
    ------
    ExpressionError
        If the text is outside of the grammar or names other arrays, and then nothing was computed; or if an operation
        fails.

    Examples
    --------
    >>> import tilearray as ta
    >>> evaluate("sqrt(a.T + 2**4)[0]", {"a": ta.asarray([[0, 9], [20, 33]])})
    Array([4., 6.], dtype=float32, device='cpu')
    """
    return read(expression, arrays).evaluate(arrays)


def read(expression: str, names: Collection[str]) -> Expression:
    """Read an expression of arrays of these names; ExpressionError if it is outside of the grammar.

    Examples
    --------
    >>> read("a * ta.exp(b) - a", ["a", "b", "c"]).names
    ('a', 'b')
    """
    for name in names:
        check_name(name)
    reader = _Reader(expression, names)
    run = reader.value(_parse(expression))
    return Expression(expression, tuple(reader.used), reader.steps, run)


def check_name(name: str) -> None:
    """Raise ExpressionError unless an array can be called so."""
    if not name.isidentifier() or iskeyword(name) or name == "ta":
        raise ExpressionError(f"{short(name)!r} is no name of an array; write letters, digits and _, but not `ta`")


def short(text: str) -> str:
    """A text to be quoted: in one line, of printable characters, and not long.

    Examples
    --------
    >>> short("a +\\n   b")
    'a + b'
    """
    line = "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))
    return line if len(line) <= 60 else line[:57] + "..."


def _parse(expression: str) -> ast.expr:
    """Python's syntax tree of an expression; bounded, so that whatever walks it may be recursive."""
    if len(expression) > LONGEST:
        raise ExpressionError(
            f"expected an expression of at most {LONGEST} characters, got {len(expression)}; "
            f"write several, each with a file for its result"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "\d", 1if 2else 3: what Python only warns of is as wrong
            body = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ExpressionError(f"{short(expression)!r} is no expression: {error.msg}{where}") from error
    except (RecursionError, MemoryError) as error:
        raise _too_deep() from error
    except (ValueError, Warning) as error:  # a null byte, half a surrogate pair
        raise ExpressionError(f"{short(expression)!r} is no expression: {' '.join(str(error).split())}") from error
    level: list[ast.AST] = [body]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise _too_deep()
    return body


def _too_deep() -> ExpressionError:
    return ExpressionError(f"expected at most {DEEPEST} operations within each other, got more; write several steps")


class _Reader:
    """Turns nodes into functions. Notes the arrays that are used, and counts the steps."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text = text.strip()
        self.names = names
        self.used: dict[str, None] = {}
        self.steps = 0

    # --- the grammar ------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Run:
        """What an operator takes: an array, a number, or what comes of operators and calls."""
        match node:
            case ast.Constant(value=bool() | int() | float() | complex() as number):
                return self.constant(self.bounded(node, number))
            case ast.Attribute(value=ast.Name(id="ta"), attr=name) if name in CONSTANTS:
                return self.constant(CONSTANTS[name])
            case ast.Name(id=name):
                return self.array(node, name)
            case ast.Attribute(value=inner, attr="T") if not _is_library(inner):
                return self.step(node, transposed, self.value(inner))
            case ast.Subscript(value=inner, slice=key):
                return self.step(node, item, self.value(inner), self.key(key))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                return self.step(node, on_operands(UNARY[type(op)]), self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.step(node, on_operands(BINARY[type(op)]), self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                return self.step(node, on_operands(COMPARISONS[type(op)]), self.value(left), self.value(right))
            case ast.Call(func=called, args=arguments, keywords=keywords):
                return self.call(node, called, arguments, keywords)
            case _:
                raise self.refusal(node)

    def argument(self, node: ast.expr) -> Run:
        """What a function takes besides: None, a dtype, tuples and lists."""
        match node:
            case ast.Constant(value=None):
                return self.constant(None)
            case ast.Constant(value=str() as word) if word in WORDS:
                return self.constant(word)
            case ast.Attribute(value=ast.Name(id="ta"), attr=name) if name in DTYPES:
                return self.constant(DTYPES[name])
            case ast.Tuple(elts=parts):
                return self.several(tuple, [self.argument(part) for part in parts])
            case ast.List(elts=parts):
                return self.several(list, [self.argument(part) for part in parts])
            case _:
                return self.value(node)

    def key(self, node: ast.expr) -> Run:
        """What stands between brackets: one index for each axis."""
        return self.several(tuple, map(self.index, node.elts)) if isinstance(node, ast.Tuple) else self.index(node)

    def index(self, node: ast.expr) -> Run:
        """An index: a value, a slice, ``...``, or None for a new axis."""
        match node:
            case ast.Constant(value=None) | ast.Attribute(value=ast.Name(id="ta"), attr="newaxis"):
                return self.constant(None)
            case ast.Constant(value=value) if value is ...:
                return self.constant(...)
            case ast.Slice(lower=lower, upper=upper, step=step):
                ends = [self.constant(None) if end is None else self.value(end) for end in (lower, upper, step)]
                return self.several(lambda values: slice(*values), ends)
            case ast.List():
                return self.argument(node)
            case _:
                return self.value(node)

    # --- its parts --------------------------------------------------------------------------------------------------

    def constant(self, value: Any) -> Run:
        return lambda scope: value

    def several(self, kind: Callable[[Iterable[Any]], Any], parts: Iterable[Run]) -> Run:
        runs = tuple(parts)
        return lambda scope: kind([run(scope) for run in runs])

    def array(self, node: ast.expr, name: str) -> Run:
        if name in self.names:
            self.used[name] = None
            return lambda scope: scope.arrays[name]
        if name in FUNCTIONS:
            raise self.error(node, f"a function is to be called; write {name}(...)")
        if name in DTYPES or name in CONSTANTS:
            raise self.error(node, f"no array of this name is given; write ta.{name}")
        raise self.error(node, f"no array of this name is given; write {short(name)}=FILE.npy")

    def call(self, node: ast.expr, called: ast.expr, given: list[ast.expr], keywords: list[ast.keyword]) -> Run:
        function = FUNCTIONS[self.function(called)]
        arguments = [self.argument(argument) for argument in given]
        named: dict[str, Run] = {}
        for keyword in keywords:
            if keyword.arg is None:
                raise self.error(node, "arguments are written out one by one; leave the ** out")
            if keyword.arg not in KEYWORDS:
                raise self.error(
                    node, f"the keyword {short(keyword.arg)!r} is not taken in an expression; leave it out"
                )
            named[keyword.arg] = self.argument(keyword.value)
        return self.step(node, function, *arguments, **named)

    def function(self, called: ast.expr) -> str:
        """The name of the function that is called, with or without ``ta.``."""
        match called:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="ta"), attr=name):
                if name in FUNCTIONS:
                    return name
                close = difflib.get_close_matches(name, FUNCTIONS, 1)
                hint = f"write ta.{close[0]}" if close else "see `tilearray eval --help` for what it may"
                raise self.error(called, f"an expression may not call this; {hint}")
            case ast.Attribute(attr=name) if name in FUNCTIONS:
                raise self.error(called, f"arrays have no methods in an expression; write ta.{name}(x, ...)")
            case _:
                raise self.error(called, "an expression may not call this; write ta.NAME(...)")

    def step(self, node: ast.expr, function: Callable[..., Any], *arguments: Run, **named: Run) -> Run:
        """An operation: its operands first, then itself, under the eyes of the scope's watch."""
        self.steps += 1
        part = self.part(node)

        def run(scope: Scope) -> Any:
            operands = tuple([argument(scope) for argument in arguments])
            keywords = {name: argument(scope) for name, argument in named.items()}
            try:
                return scope.watch(part, operands, lambda: function(*operands, **keywords))
            except Exception as error:
                raise ExpressionError(f"`{short(part)}`: {said(error)}") from error

        return run

    # --- errors -----------------------------------------------------------------------------------------------------

    def part(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def error(self, node: ast.expr, message: str) -> ExpressionError:
        return ExpressionError(f"`{short(self.part(node))}`: {message}")

    def bounded(self, node: ast.expr, number: Any) -> Any:
        if isinstance(number, int) and number.bit_length() > WIDEST:
            raise self.error(node, str(too_wide()))
        return number

    def refusal(self, node: ast.expr) -> ExpressionError:
        match node:
            case ast.Attribute(value=ast.Name(id="ta"), attr=name) if name in FUNCTIONS:
                return self.error(node, f"a function is to be called; write ta.{name}(...)")
            case ast.Attribute(value=ast.Name(id="ta"), attr=name):
                return self.error(node, "this is not part of expressions; see `tilearray eval --help` for what is")
            case ast.Attribute(attr=name) if name in FUNCTIONS:
                return self.error(node, f"attributes are not read, but for .T; write ta.{name}(x)")
            case ast.Attribute():
                return self.error(node, "attributes are not read, but for .T; leave it out")
            case ast.Constant(value=str()):
                what = f"the name of a dtype or, as rounding=, one of {', '.join(map(repr, MODES))}"
                return self.error(node, f"a text may be an argument: {what}; leave it out")
            case _:
                what = INSTEAD.get(type(node), f"{type(node).__name__} is not part of expressions; leave it out")
                return self.error(node, what)


def _is_library(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "ta"


def said(error: Exception) -> str:
    """What an error says, in a line; one that is not the library's own is named."""
    text = " ".join(str(error).split())
    return text if isinstance(error, TileArrayError) else f"{type(error).__name__}: {text}".removesuffix(": ")
