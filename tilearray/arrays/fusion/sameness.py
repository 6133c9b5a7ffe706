"""When two functions without a name are the same: fused functions that a process reads from pickles again and again.

dask, joblib and others pickle a function of ``__main__`` by value, once for each task. Each reading makes another
function with the same code. `content` describes a function by its code and by all that the code refers to, so that
equal contents give equal results; a process then keeps one fused function for each content, with its plans and kernels.

What may change, or what nothing compares cheaply, has no content: lists, dictionaries, arrays, instances of classes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Hashable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from tilearray.ops.op import Op


class Lasting:
    """A function that a process has once for each content: it is compared by identity."""


_LASTING: tuple[Any, ...] = (ModuleType, type, BuiltinFunctionType, np.ufunc, np.dtype, Op, Lasting)
"""Objects that a process has once, and that are compared as such."""
_BY_TEXT: tuple[Any, ...] = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, np.generic)
"""Values that are compared by their text, in which -0.0 is not 0.0."""


class Incomparable(Exception):  # noqa: N818 - a signal
    """A function refers to something without a content."""


def content(value: Any, outer: tuple[Any, ...] = ()) -> Hashable:
    """Return what describes a function, or a value to which it refers.

    Parameters
    ----------
    outer : tuple
        The functions that refer to this one: one of them is described by its place.

    Raises
    ------
    Incomparable
        If there is something without a content.

    Examples
    --------
    >>> first, second, third = [lambda x, k=k: x + k for k in (1, 1, 2)]
    >>> content(first) == content(second), content(first) == content(third)
    (True, False)
    """
    kind = cast(Any, type(value))
    if issubclass(kind, _BY_TEXT):
        return kind, repr(value)
    if issubclass(kind, _LASTING):
        return kind, value
    if kind is tuple:
        return kind, tuple([content(each, outer) for each in value])
    if kind is slice:
        return kind, content((value.start, value.stop, value.step), outer)
    if kind is functools.partial:
        return kind, content((value.func, value.args, tuple(sorted(value.keywords.items()))), outer)
    if kind is not FunctionType:
        raise Incomparable
    if any(value is each for each in outer):
        return kind, [value is each for each in outer].index(True)
    if is_named(value):
        return kind, value
    return kind, value.__code__, content(_referred(value), (*outer, value))


def is_named(function: Any) -> bool:
    """Whether a pickle has a function by its name."""
    module, name = getattr(function, "__module__", None) or "__main__", getattr(function, "__qualname__", "")
    return module != "__main__" and getattr(sys.modules.get(module), name, None) is function


def _referred(function: FunctionType) -> tuple[Any, ...]:
    """Return all to which the code of a function refers: defaults, variables of outer functions, globals."""
    try:
        cells = tuple([cell.cell_contents for cell in function.__closure__ or ()])
    except ValueError as error:  # a variable of an outer function has no value yet
        raise Incomparable from error
    known = function.__globals__
    outside = tuple([(name, known[name]) for name in _names(function.__code__) if name in known])
    options = tuple(sorted((function.__kwdefaults__ or {}).items()))
    return function.__defaults__ or (), options, cells, outside


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code may look up in its module, and those of the functions in it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
