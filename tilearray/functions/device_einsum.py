"""Einstein sums on a device that runs them as kernels: two operands at a time, as matrix products of transposed views.

>>> import tilearray as ta
>>> x = ta.asarray([[1, 2], [3, 4]])
>>> einsum("ij,ij->", [x, x], ta.int64)
Array(30, dtype=int64, device='cpu')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.functions.conversion import astype
from tilearray.functions.device_products import in_one, multiplied
from tilearray.functions.diagonals import diagonal
from tilearray.functions.manipulation import permute_dims, reshape
from tilearray.functions.planned_products import Made, Words, remember
from tilearray.functions.reductions import sum as sum_of
from tilearray.ops.arithmetic import multiply
from tilearray.ops.reduction import reduction_of
from tilearray.ops.summation_order import order_on

MOST_TRIED = 5
"""The most operands of which all orders are tried, in about a millisecond; results are kept."""


class Term(NamedTuple):
    """An array, and a letter for each of its axes."""

    letters: str
    array: Any

    def sizes(self, letters: Sequence[str]) -> tuple[int, ...]:
        """Return the sizes of axes."""
        return tuple([self.array.shape[self.letters.index(letter)] for letter in letters])

    def axes_beside(self, letters: str) -> tuple[int, ...]:
        """Return the axes of other letters."""
        return tuple([place for place, letter in enumerate(self.letters) if letter not in letters])


def einsum(subscripts: str, operands: Sequence[Any], dtype: np.dtype, words: Words | None = None) -> Any:
    """Return the sum of products that subscripts describe, in memory of its own.

    The product of one pair, or the sum over axes of one operand, is remembered under `words`.

    The pairs are taken in the order of `order_of`. Of more than two operands, narrow floats are computed as float32.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands.
    """
    try:
        order = order_of(subscripts, tuple([x.shape for x in operands]))
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(str(error)) from None
    names, result = _letters(subscripts, tuple([x.ndim for x in operands]))
    narrow = dtypes.info(dtype).kind == "float" and dtypes.info(dtype).bits < 32
    wide = dtypes.float32 if narrow and len(operands) > 2 else dtype
    terms = [Term(name, astype(x, wide, copy=False)) for name, x in zip(names, operands, strict=True)]
    products: list[tuple[Made | None, Any]] = []
    for places in order:
        taken = [terms[place] for place in places]
        terms = [term for place, term in enumerate(terms) if place not in places]
        found, *rest = taken
        while rest:
            needed = "".join([term.letters for term in [*terms, *rest[1:]]]) + result
            found, rest = _pair(found, rest[0], needed, wide, products), rest[1:]
        terms.append(found)
    (last,) = [_on_diagonals(term) for term in terms]
    total = _summed(last, result)
    array = permute_dims(total.array, tuple([total.letters.index(letter) for letter in result]))
    is_view = any(array._buffer is x._buffer for x in operands)
    array = astype(array, dtype, copy=is_view)
    if words is not None and len(products) == 1:
        remember(words, operands, *products[0], array)
    elif words is not None and len(operands) == 1 and last.array.size:
        remember(words, operands, _sum_in_one(last, result), total.array, array)
    return array


@lru_cache(256)
def order_of(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Return which operands are multiplied, one pair after the other, by their places among those that are left.

    NumPy's `einsum_path` tries all orders of up to `MOST_TRIED` operands; of more it takes the best pair each time.
    These are the searches of opt_einsum, by the same author.

    >>> order_of("ij,jk,k->i", ((9, 8), (8, 7), (7,)))
    ((1, 2), (0, 1))
    """
    operands = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    search = "optimal" if len(shapes) <= MOST_TRIED else "greedy"
    return tuple(cast("list[tuple[int, ...]]", np.einsum_path(subscripts, *operands, optimize=search)[0][1:]))


@lru_cache(256)
def _letters(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the letters of each operand and of the result, with letters in the place of dots."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    names = given.split(",")
    spare = [chr(code) for code in range(ord("A"), ord("A") + 200) if chr(code) not in subscripts]
    dotted = [ndim - len(name) + 3 if "..." in name else 0 for name, ndim in zip(names, ndims, strict=True)]
    most = max(dotted)
    dots = "".join(spare[:most])
    names = tuple([name.replace("...", dots[most - count :]) for name, count in zip(names, dotted, strict=True)])
    if arrow and dots and "..." not in result:
        raise ValueError("the output lacks the ellipsis of an operand, and no sum is over its axes")
    if arrow:
        return names, result.replace("...", dots)
    counts = Counter("".join(names))
    return names, dots + "".join(sorted([each for each in counts if counts[each] == 1 and each not in dots]))


def _single(term: Term, needed: str) -> Term:
    """Take the diagonals of letters that stand twice, and sum over letters that nothing else needs."""
    return _summed(_on_diagonals(term), needed)


def _on_diagonals(term: Term) -> Term:
    """Take the diagonals of letters that stand twice."""
    name, x = term
    for letter in dict.fromkeys(name):
        while name.count(letter) > 1:
            first, second = name.index(letter), name.rindex(letter)
            x = diagonal(x, 0, first, second)
            name = "".join([each for place, each in enumerate(name) if place not in (first, second)]) + letter
    return Term(name, x)


def _summed(term: Term, needed: str) -> Term:
    """Sum over letters that nothing else needs."""
    axes, x = term.axes_beside(needed), term.array
    if axes:
        x = sum_of(x, axis=axes, dtype=x.dtype)
    return Term("".join([letter for letter in term.letters if letter in needed]), x)


def _sum_in_one(term: Term, needed: str) -> Made | None:
    """Return how `_summed` makes a sum of elements; None if it sums over nothing."""
    axes, x = term.axes_beside(needed), term.array
    operation = reduction_of("sum", x.dtype, axes, False, order_on(x.device, "sum", "fixed"))
    return Made(operation, (x,), (0,)) if axes else None


def _pair(left: Term, right: Term, needed: str, dtype: np.dtype, products: list[tuple[Made | None, Any]]) -> Term:
    """Multiply two terms, and sum over the letters that nothing else needs. Append how, and the product."""
    left = _single(left, right.letters + needed)
    right = _single(right, left.letters + needed)
    left, right = _without_ones(left, right), _without_ones(right, left)
    both = [letter for letter in left.letters if letter in right.letters]
    summed = [letter for letter in both if letter not in needed]
    if not summed and dtype != dtypes.bool_:
        return _elementwise(left, right, needed, products)
    stacked = [letter for letter in both if letter in needed]
    rows = [letter for letter in left.letters if letter not in both]
    columns = [letter for letter in right.letters if letter not in both]
    matrices = _ordered(left, stacked, rows, summed), _ordered(right, stacked, summed, columns)
    found = multiplied("einsum", *matrices, dtype)
    products.append((in_one("einsum", *matrices, dtype), found))
    shape = (*found.shape[: len(stacked)], *left.sizes(rows), *right.sizes(columns))
    return Term("".join([*stacked, *rows, *columns]), reshape(found, shape))


def _elementwise(left: Term, right: Term, needed: str, products: list[tuple[Made | None, Any]]) -> Term:
    """Multiply two terms of which no letter is summed over: elements, with letters in the order of the result."""
    letters = [letter for letter in dict.fromkeys(needed) if letter in left.letters + right.letters]
    views = _broadcasting(left, letters), _broadcasting(right, letters)
    found = multiply(*views)
    products.append((Made(multiply, views, (0, 1)), found))
    return Term("".join(letters), found)


def _broadcasting(term: Term, letters: Sequence[str]) -> Any:
    """Return an array with an axis for each letter, of size 1 for those that the term does not have."""
    own = [letter for letter in letters if letter in term.letters]
    x = permute_dims(term.array, tuple([term.letters.index(letter) for letter in own]))
    return reshape(x, tuple([term.sizes(letter)[0] if letter in own else 1 for letter in letters]))


def _without_ones(term: Term, other: Term) -> Term:
    """Drop the axes of size 1 of letters that another term has, to whose sizes they broadcast."""
    ones = [
        place
        for place, letter in enumerate(term.letters)
        if letter in other.letters and term.array.shape[place] == 1 != other.sizes(letter)[0]
    ]
    kept = [place for place in range(len(term.letters)) if place not in ones]
    shape = tuple([term.array.shape[place] for place in kept])
    return Term("".join([term.letters[place] for place in kept]), reshape(term.array, shape)) if ones else term


def _ordered(term: Term, stacked: Sequence[str], *groups: Sequence[str]) -> Any:
    """Return an array with the stacked axes first, and with each group of axes as one."""
    letters = [*stacked, *groups[0], *groups[1]]
    x = permute_dims(term.array, tuple([term.letters.index(letter) for letter in letters]))
    sizes = [prod(term.sizes(group)) for group in groups]
    return reshape(x, (*term.sizes(stacked), *sizes))
