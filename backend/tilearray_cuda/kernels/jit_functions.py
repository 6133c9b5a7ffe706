"""Functions that users wrote for Triton: their text, and that of all functions that they call, for generated kernels.

A generated kernel is one text, which is also its key in the cache. So a function of a user becomes a part of the text,
under its own name and a hash of its text: another body, or another body of a function that it calls, is another kernel.
Names from outside of a function are replaced: modules and functions of Triton by their names in a generated kernel,
``@triton.jit`` functions by their new names, constants by their values::

    SCALE = tl.constexpr(0.5)                          def half_tanh_5e0b6a1c92d7(x):
                                                           return 0.5 * libdevice.tanh(x)
    @triton.jit
    def half_tanh(x):
        return SCALE * tanh(x)
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import textwrap
from types import ModuleType
from typing import Any

TEXTS: dict[str, str] = {}
"""The text of each function by its name, without its decorator. A name has the hash of the text."""


class JitFunctionError(ValueError):
    """A function of a user cannot be a part of a kernel; the message says what to write instead."""


def is_jit_function(value: object) -> bool:
    """Whether an object is a function with ``@triton.jit``, compiled or interpreted."""
    kind: Any = type(value)
    return kind.__module__.startswith("triton.runtime.") and kind.__name__ in ("JITFunction", "InterpretedFunction")


def definition_of(function: Any) -> ast.FunctionDef:
    """Return the syntax tree of a Python function. Raise JitFunctionError if its text does not exist."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise JitFunctionError(f"the source of {function.__name__} is not available; write it in a file") from error
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            return node
    raise JitFunctionError(f"expected {function.__name__} to be written with def; write def f(x)")


def carried(function: Any) -> str:
    """Return the name of a ``@triton.jit`` function in generated kernels. `TEXTS` has its text from now on.

    Parameters
    ----------
    function : triton.runtime.jit.JITFunction

    Raises
    ------
    JitFunctionError
        If it reads something from outside that a kernel cannot contain.
    """
    return _carried(function.fn, ())


def _carried(function: Any, callers: tuple[Any, ...]) -> str:
    if function in callers:
        raise JitFunctionError(f"{function.__name__} calls itself; write a loop")
    node = definition_of(function)
    names = _Names(function, (*callers, function), node)
    node.decorator_list, node.returns, node.name = [], None, "function"
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    node.args.defaults = [names.literal(value, "a default value") for value in function.__defaults__ or ()]
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = _constexpr(argument.annotation)
    node.body = [names.visit(statement) for statement in node.body]
    text = ast.unparse(ast.fix_missing_locations(node))
    name = f"{function.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    TEXTS[name] = text.replace("def function(", f"def {name}(", 1)
    return name


def _constexpr(annotation: ast.expr | None) -> ast.expr | None:
    """Return the annotation of a constant; others mean nothing to Triton."""
    is_constant = annotation is not None and ast.unparse(annotation).strip("'\"").endswith("constexpr")
    return _expression("tl.constexpr") if is_constant else None


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Names(ast.NodeTransformer):
    """Replaces the names that a function reads from outside."""

    def __init__(self, function: Any, callers: tuple[Any, ...], node: ast.FunctionDef) -> None:
        self._function = function
        self._callers = callers
        stored = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        self._local = {*stored, *function.__code__.co_varnames}
        cells = zip(function.__code__.co_freevars, function.__closure__ or ())
        self._outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name from outside."""
        if node.id in self._local or not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self._outside:
            return self._replaced(self._outside[node.id], node.id)
        if hasattr(builtins, node.id):
            return node
        raise JitFunctionError(f"{self._function.__name__} reads {node.id}, which is not defined; define it before")

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace an attribute of a module that is not Triton's, such as ``math.pi``."""
        value = self._module(node.value)
        if value is None or _path(value) is not None or not hasattr(value, node.attr):
            node.value = self.visit(node.value)
            return node
        found = getattr(value, node.attr)
        if isinstance(found, bool | int | float | str):
            return self.literal(found, ast.unparse(node))
        return self._replaced(found, ast.unparse(node))

    def _module(self, node: ast.expr) -> ModuleType | None:
        """Return the module that an expression names, or None."""
        found: Any = None
        if isinstance(node, ast.Name) and node.id not in self._local:
            found = self._outside.get(node.id)
        elif isinstance(node, ast.Attribute):
            found = getattr(self._module(node.value), node.attr, None)
        return found if isinstance(found, ModuleType) else None

    def _replaced(self, value: Any, name: str) -> ast.expr:
        """Return the expression of an object from outside."""
        if _is_constant(value):
            return self.literal(value.value, name)
        path = _path(value)
        if path is not None:
            return _expression(path)
        if is_jit_function(value):
            return _expression(_carried(value.fn, self._callers))
        if callable(value):
            raise JitFunctionError(
                f"{self._function.__name__} calls {name}, which is not a Triton function; write @triton.jit before it"
            )
        raise JitFunctionError(
            f"{self._function.__name__} reads {name} from outside, which is not a constant of Triton; write "
            f"{name} = tl.constexpr(...), or make it a parameter"
        )

    def literal(self, value: Any, name: str) -> ast.expr:
        """Return the expression of a constant."""
        value = value.value if _is_constant(value) else value
        path = None if isinstance(value, bool | int | float | str | None) else _path(value)
        if path is not None:
            return _expression(path)
        if isinstance(value, float) and not math.isfinite(value):
            return _expression(f'float("{value}")')
        if value is None or isinstance(value, bool | int | float | str):
            return _expression(repr(value))
        raise JitFunctionError(
            f"{self._function.__name__} reads {name}, a {type(value).__name__}; write numbers, bools, strings or dtypes"
        )


def _path(value: Any) -> str | None:
    """Return how a generated kernel names a module, a function or a dtype of Triton; None for all else."""
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice

    if isinstance(value, ModuleType):
        name = value.__name__
        known = {triton: "triton", tl: "tl", tl.math: "tl.math", libdevice: "libdevice"}.get(value)
        is_libdevice = name.startswith("triton.") and name.endswith(".libdevice")
        return known or ("libdevice" if is_libdevice else name if name.partition(".")[0] == "triton" else None)
    if not callable(value) and not isinstance(value, tl.dtype):
        return None
    for place, module in (("tl", tl), ("tl.math", tl.math), ("libdevice", libdevice), ("triton", triton)):
        for name, found in vars(module).items():
            if found is value:
                return f"{place}.{name}"
    function = getattr(value, "fn", value)
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if module.partition(".")[0] != "triton" or not name:
        return None
    return f"libdevice.{name}" if module.endswith(".libdevice") else f"{module}.{name}"


def _is_constant(value: Any) -> bool:
    """Whether a value is a constant of Triton."""
    return type(value).__name__ == "constexpr"


# --- calls -----------------------------------------------------------------------------------------------------------


def results_of(function: Any) -> int | None:
    """Return how many values a function returns, as far as its text says; 0 if it returns nothing, else None."""
    found: set[int | None] = set()
    for node in ast.walk(definition_of(function.fn)):
        if isinstance(node, ast.Return) and node.value is not None:
            single = isinstance(node.value, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)
            found.add(len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1 if single else None)
    return found.pop() if len(found) == 1 else None if found else 0


def constants_of(function: Any) -> list[str]:
    """Return the parameters that are constants."""
    arguments = definition_of(function.fn).args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args) if _constexpr(each.annotation) is not None]


def template_of(name: str, count: int, output: int | None, register: str) -> str:
    """Return the template of a call with `count` arguments: one of its results, or its only one, in a register's type.

    >>> template_of("f_01", 2, None, "tl.float32"), template_of("f_01", 1, 1, "tl.int1")
    ('tl.cast(f_01({0}, {1}), tl.float32)', 'tl.cast(f_01({0})[1], tl.int1)')
    """
    arguments = ", ".join([f"{{{place}}}" for place in range(count)])
    part = "" if output is None else f"[{output}]"
    return f"tl.cast({name}({arguments}){part}, {register})"
