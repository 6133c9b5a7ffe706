"""Functions that rows need from the folders above `tilearray.ops`; those folders set them when they are imported.

A row takes lists and ndarrays beside Arrays, and `tilearray.functions.arguments` knows how to read them. Its methods
``reduce``, ``accumulate``, ``outer``, ``at`` and ``reduceat`` need reductions and indexing. Imports go down only, so
the row finds all of these here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Hooks:
    """The functions, each set once.

    Attributes
    ----------
    asarray : the public function
    as_arrays : replaces the ndarrays and sequences among the operands of a call by Arrays, given the function's name,
        the operands and the target
    call : runs a row with options, given the row, the operands, the target and the options
    reduce, accumulate, outer, at, reduceat : the methods of a row, given the row and their arguments
    operator : makes an operator of another library, given its name and a fused or pointwise function
    fuse : the public function
    fingerprint : the deterministic token of an array
    tiles : the grid of an array's tiles
    """

    __slots__ = (
        *("accumulate", "as_arrays", "asarray", "at", "call", "fingerprint", "fuse", "operator", "outer", "reduce"),
        *("reduceat", "tiles"),
    )

    asarray: Callable[[Any], Any]
    as_arrays: Callable[[str, Sequence[Any], Any], list[Any]]
    call: Callable[[Any, Sequence[Any], Any, dict[str, Any]], Any]
    reduce: Callable[..., Any]
    accumulate: Callable[..., Any]
    outer: Callable[..., Any]
    at: Callable[..., None]
    reduceat: Callable[..., Any]
    operator: Callable[[str, Any], Any]
    fuse: Callable[[Callable[..., Any]], Callable[..., Any]]
    fingerprint: Callable[[Any], Any]
    tiles: Callable[..., Any]


HOOKS = Hooks()
