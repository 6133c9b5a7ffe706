"""Expressions as text -> arrays: a small grammar over Python's syntax tree. Python's ``eval`` is never used.

Three functions below handle all kinds of nodes, as values, arguments and indices. Each returns a function that computes
the node from its parts. Any other node is an `ExpressionError`. The whole text is read before any part is computed. An
expression can contain only

- the arrays that are given by name, numbers, and ``ta.pi``, ``ta.e``, ``ta.inf``, ``ta.nan``
- Python's operators except ``and``, ``or``, ``not``, ``in`` and ``is``; one comparison at a time; ``x.T``; ``x[...]``
- calls of `FUNCTIONS`, a part of the public functions, with or without ``ta.`` before the name. Arguments are such
  values, dtypes (``ta.float32`` or ``"float32"``), None, tuples and lists; keywords must be in `KEYWORDS`

The length of the text, the nesting and the size of integers are limited, so that it takes little time to read the text
and to compute with numbers. The sizes of arrays are not limited: an array that does not fit in memory is an error when
it is made.
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
    ast.BoolOp: "`and` and `or` do not work on elements; write (x) & (y), (x) | (y)",
    ast.UnaryOp: "`not` does not work on elements; write ~x",
    ast.Compare: "an expression takes one comparison at a time, without `in` and `is`; write (x < y) & (y < z)",
    ast.IfExp: "`if` does not work on elements; write ta.where(condition, x, y)",
    ast.Tuple: "a tuple can be an argument or an index, but not an operand; write ta.asarray([...])",
    ast.List: "a list can be an argument, but not an operand; write ta.asarray([...])",
    ast.Starred: "an expression does not unpack arguments; write each argument without *",
}

Watch = Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]
"""Runs a step: takes the text of an operator or function call, its operands and a function that computes it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The arrays of a computation by name, and the function that runs its steps."""

    arrays: Mapping[str, Any]
    watch: Watch


Run = Callable[[Scope], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression, not computed yet.

    Attributes
    ----------
    text : the text of the expression
    names : the names of the arrays that it uses, in the order of their first use
    steps : the number of operators, views and function calls
    """

    text: str
    names: tuple[str, ...]
    steps: int
    run: Run

    def evaluate(self, arrays: Mapping[str, Any], watch: Watch = lambda part, operands, compute: compute()) -> Any:
        """Compute the expression over arrays by name. `watch` runs each step.

        Raises
        ------
        ExpressionError
            If a step fails. The message quotes the step and contains the library's message.
        """
        return self.run(Scope(arrays, watch))


def evaluate(expression: str, arrays: Mapping[str, Any]) -> Any:
    """Compute an expression over arrays by name.

    Parameters
    ----------
    expression : str
        The text, in the grammar of the module docstring.
    arrays : mapping of str to Array

    Returns
    -------
    Array, number or tuple of Array
        The value of the expression.

    Raises
    ------
    ExpressionError
        If the text is outside of the grammar or names other arrays; then nothing is computed. Also if an operation
        fails.

    Examples
    --------
    >>> import tilearray as ta
    >>> evaluate("sqrt(a.T + 2**4)[0]", {"a": ta.asarray([[0, 9], [20, 33]])})
    Array([4., 6.], dtype=float32, device='cpu')
    """
    return read(expression, arrays).evaluate(arrays)


def read(expression: str, names: Collection[str], given: str = "array") -> Expression:
    """Parse an expression over arrays with these names. Raise ExpressionError if it is outside of the grammar.

    `given` is how a caller writes an array that it gives a name.

    Examples
    --------
    >>> read("a * ta.exp(b) - a", ["a", "b", "c"]).names
    ('a', 'b')
    """
    for name in names:
        check_name(name)
    reader = _Reader(expression, names, given)
    run = reader.value(_parse(expression))
    return Expression(expression, tuple(reader.used), reader.steps, run)


def check_name(name: str) -> None:
    """Raise ExpressionError unless the name is valid for an array."""
    if not name.isidentifier() or iskeyword(name) or name == "ta":
        raise ExpressionError(f"{short(name)!r} cannot be an array's name; write letters, digits and _, but not `ta`")


def short(text: str) -> str:
    """Return a text for a quotation: one line of printable characters, shortened.

    Examples
    --------
    >>> short("a +\\n   b")
    'a + b'
    """
    line = "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))
    return line if len(line) <= 60 else line[:57] + "..."


def _parse(expression: str) -> ast.expr:
    """Return the syntax tree of an expression. Its depth is limited, so recursive functions can walk it."""
    if len(expression) > LONGEST:
        raise ExpressionError(
            f"expected an expression of at most {LONGEST} characters, got {len(expression)}; "
            f"write several expressions, each with a file for its result"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "\d", 1if 2else 3: a warning of Python is an error here
            body = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ExpressionError(f"{short(expression)!r} is not an expression: {error.msg}{where}") from error
    except (RecursionError, MemoryError) as error:
        raise _too_deep() from error
    except (ValueError, Warning) as error:  # a null byte, half a surrogate pair
        raise ExpressionError(f"{short(expression)!r} is not an expression: {' '.join(str(error).split())}") from error
    level: list[ast.AST] = [body]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise _too_deep()
    return body


def _too_deep() -> ExpressionError:
    return ExpressionError(f"expected at most {DEEPEST} nested operations, got more; write several expressions")


class _Reader:
    """Converts nodes to functions. Records the arrays that are used, and counts the steps."""

    def __init__(self, text: str, names: Collection[str], given: str) -> None:
        self.text = text.strip()
        self.given = given
        self.names = names
        self.used: dict[str, None] = {}
        self.steps = 0

    # --- the grammar ------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Run:
        """Convert an operand: an array, a number, or the result of an operator or call."""
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
        """Convert an argument of a function: a value, None, a dtype, a tuple or a list."""
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
        """Convert the key in brackets: one index for each axis."""
        return self.several(tuple, map(self.index, node.elts)) if isinstance(node, ast.Tuple) else self.index(node)

    def index(self, node: ast.expr) -> Run:
        """Convert an index: a value, a slice, ``...``, or None for a new axis."""
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
            raise self.error(node, f"a function must be called; write {name}(...)")
        if name in DTYPES or name in CONSTANTS:
            raise self.error(node, f"no array has this name; write ta.{name}")
        raise self.error(node, f"no array has this name; write {short(name)}={self.given}")

    def call(self, node: ast.expr, called: ast.expr, given: list[ast.expr], keywords: list[ast.keyword]) -> Run:
        function = FUNCTIONS[self.function(called)]
        arguments = [self.argument(argument) for argument in given]
        named: dict[str, Run] = {}
        for keyword in keywords:
            if keyword.arg is None:
                raise self.error(node, "an expression does not unpack arguments; write each argument without **")
            if keyword.arg not in KEYWORDS:
                raise self.error(node, f"an expression cannot have the keyword {short(keyword.arg)!r}; omit it")
            named[keyword.arg] = self.argument(keyword.value)
        return self.step(node, function, *arguments, **named)

    def function(self, called: ast.expr) -> str:
        """Return the name of the called function, without ``ta.``."""
        match called:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="ta"), attr=name):
                if name in FUNCTIONS:
                    return name
                close = [
                    near for near in difflib.get_close_matches(name, FUNCTIONS) if abs(len(near) - len(name)) <= 2
                ]  # softmax is not max
                hint = f"write ta.{close[0]}" if close else "`tilearray eval --help` lists the functions"
                raise self.error(called, f"an expression cannot call this; {hint}")
            case ast.Attribute(attr=name) if name in FUNCTIONS:
                raise self.error(called, f"an expression cannot call methods; write ta.{name}(x, ...)")
            case _:
                raise self.error(called, "an expression cannot call this; write ta.NAME(...)")

    def step(self, node: ast.expr, function: Callable[..., Any], *arguments: Run, **named: Run) -> Run:
        """Convert an operation: it computes its operands, then the scope's `watch` runs the operation."""
        self.steps += 1
        part = self.part(node)

        def run(scope: Scope) -> Any:
            operands = tuple([argument(scope) for argument in arguments])
            keywords = {name: argument(scope) for name, argument in named.items()}
            try:
                return scope.watch(part, operands, lambda: function(*operands, **keywords))
            except Exception as error:
                raise ExpressionError(f"`{short(part)}`: {message_of(error)}") from error

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
                return self.error(node, f"a function must be called; write ta.{name}(...)")
            case ast.Attribute(value=ast.Name(id="ta"), attr=name):
                return self.error(node, "an expression cannot use this; `tilearray eval --help` lists the grammar")
            case ast.Attribute(attr=name) if name in FUNCTIONS:
                return self.error(node, f"an expression cannot read attributes except .T; write ta.{name}(x)")
            case ast.Attribute():
                return self.error(node, "an expression cannot read attributes except .T; omit it")
            case ast.Constant(value=str()):
                modes = ", ".join(map(repr, MODES))
                return self.error(
                    node, f"expected a string only as a dtype's name, or as rounding= one of {modes}; omit it"
                )
            case _:
                other = f"an expression cannot contain {type(node).__name__}; omit it"
                return self.error(node, INSTEAD.get(type(node), other))


def _is_library(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "ta"


def message_of(error: Exception) -> str:
    """Return the message of an error in one line, with the name of its class unless it is the library's."""
    text = " ".join(str(error).split())
    return text if isinstance(error, TileArrayError) else f"{type(error).__name__}: {text}".removesuffix(": ")
