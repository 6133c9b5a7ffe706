"""Expressions of one narrow float, by a table of their results for all its values.

Arithmetic on floats of 16 bits and fewer casts to float32 and back, which takes most of its time. An array of 16 bits
has 65,536 values at most. A large one is looked up in a table, which takes the same time for every expression, and
which the function that it replaces fills.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tilearray_host.casts import dtype_named, is_narrow_float

Array = np.ndarray[Any, np.dtype[Any]]
Evaluate = Callable[..., None]

LEAST = 2**18
"""The elements from which a table is used: it takes the time of a quarter of them if every call has other numbers."""
LEAST_ALONE = 2**16
"""The same for an expression without numbers: all its calls use one table."""
TABLES = 32
"""The tables that are kept, of 64 kB to 1 MB."""
CALLS = {"bfloat16": 3}
"""The functions of an expression from which a table takes less time, where this is not one: casts differ in speed."""


def array_to_look_up(expression: Any, loop: Any) -> int | None:
    """Return the place of the only array that an expression reads, if a table takes less time; else None."""
    arrays = [place for place, (kind, _) in enumerate(expression.inputs) if kind == "array"]
    least = LEAST_ALONE if len(expression.inputs) == 1 else LEAST
    if len(arrays) != 1 or len(expression.outputs) > 1 or prod(loop.shape) < least:
        return None
    name, kinds = expression.inputs[arrays[0]][1], [node[0] for node in expression.nodes]
    if not is_narrow_float(dtype_named(name)) or kinds.count("call") < CALLS.get(name, 1) or "index" in kinds:
        return None
    return arrays[0]


def looked_up(evaluate: Evaluate, place: int) -> Evaluate:
    """Return a function as `evaluate`, by tables of it.

    Examples
    --------
    >>> def halve(out, x, number, temporaries=None, first=0):
    ...     out[...] = x.astype(np.float32) / number
    >>> x, out = np.array([3.0, -np.inf], np.float16), np.empty(2, np.float16)
    >>> with np.errstate(all="ignore"):
    ...     looked_up(halve, 0)(out, x, np.array(2.0))
    >>> out.tolist()
    [1.5, -inf]
    """

    def look_up(out: Array, *inputs: Array, temporaries: Any = None, first: int = 0) -> None:
        del temporaries, first
        x = inputs[place]
        numbers = tuple([(each.dtype, each.tobytes()) for each in (*inputs[:place], *inputs[place + 1 :])])
        table = _table(evaluate, place, x.dtype, out.dtype, numbers)
        table.take(x.view(_codes(x.dtype)), out=out, mode="clip")  # no code is outside; "raise" would buffer the result

    return look_up


@lru_cache(TABLES)
def _table(
    evaluate: Evaluate, place: int, source: np.dtype[Any], target: np.dtype[Any], numbers: Sequence[tuple[Any, bytes]]
) -> Array:
    given = [np.frombuffer(number, dtype).reshape(()) for dtype, number in numbers]
    every = np.arange(2 ** (8 * source.itemsize)).astype(_codes(source)).view(source)
    table = np.empty(every.shape, target)
    evaluate(table, *given[:place], every, *given[place:])
    return table


def _codes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")
