"""How operands decide the common dtype: arrays by their dtype, Python numbers by their kind and their rung.

There are three rules. Each is a function of the semantics and the operands. In most semantics all arrays have equal
weight, and a number takes part only if its kind is above theirs. In torch's semantics, operands form categories:
arrays with dimensions outrank 0-d arrays, and these outrank numbers. In NumPy's semantics, NumPy decides.

Each rule writes its reasons to a list of steps, in words. A decision is made once for the dtypes of a call and kept
with the call's plan, so the cost of the words is negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Protocol

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import PromotionError, ScalarOverflowError
from tilearray.promotion.lattice import Joins, names, position
from tilearray.promotion.scalars import Number, ScalarClass


class Rules(Protocol):
    """The part of `Semantics` that decides. `Semantics` documents the attributes."""

    @property
    def name(self) -> str: ...
    @property
    def lattice(self) -> Joins: ...
    @property
    def defaults(self) -> Mapping[str, np.dtype]: ...
    @property
    def ladder(self) -> Mapping[ScalarClass, np.dtype]: ...
    @property
    def huge(self) -> bool: ...
    @property
    def rule(self) -> str: ...


RANK: Final[dict[str, int]] = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3, "pair": 4}
_RANK_NAMES: Final = ("bool", "integer", "float", "complex", "pair")
SCALAR_KIND: Final[dict[ScalarClass, str]] = {
    ScalarClass.BOOL: "bool",
    **dict.fromkeys(
        (ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64, ScalarClass.HUGE), "int"
    ),
    **dict.fromkeys((ScalarClass.FLOAT32, ScalarClass.FLOAT64), "float"),
    ScalarClass.COMPLEX: "complex",
}
_SCALAR_RANK: Final = {scalar: RANK[kind] for scalar, kind in SCALAR_KIND.items()}
_RANGE: Final = {
    dtype: (limits.min, limits.max)
    for dtype in dt.ARITHMETIC
    if dt.info(dtype).kind in ("int", "uint", "float")
    for limits in [dt.finfo(dtype) if dt.info(dtype).kind == "float" else dt.iinfo(dtype)]
}
_CLASSES: Final = list(ScalarClass)


@dataclass(frozen=True, slots=True, eq=False)
class ZeroDim:
    """The dtype of a 0-d array, for semantics that treat 0-d arrays differently. `zero_dim` interns it."""

    dtype: np.dtype


_ZERO_DIM: Final = {dtype: ZeroDim(dtype) for dtype in (*dt.ALL, *dt.PACKED)}


def zero_dim(dtype: np.dtype) -> ZeroDim:
    """Return the `ZeroDim` of a dtype."""
    return _ZERO_DIM[dtype]


Operand = np.dtype | ZeroDim | ScalarClass


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a decision by category: dtypes of arrays with dimensions, dtypes of 0-d arrays, and numbers."""

    arrays: list[np.dtype]
    points: list[np.dtype]
    numbers: list[ScalarClass]

    @classmethod
    def of(cls, operands: Iterable[Operand]) -> Operands:
        """Sort operands into their categories."""
        found = cls([], [], [])
        for operand in operands:
            if isinstance(operand, ScalarClass):
                found.numbers.append(operand)
            elif isinstance(operand, ZeroDim):
                found.points.append(operand.dtype)
            else:
                found.arrays.append(operand)
        return found

    @property
    def dtypes(self) -> list[np.dtype]:
        """The dtypes of all arrays."""
        return self.arrays + self.points

    @property
    def rank(self) -> int:
        """The rank of the arrays' highest kind; -1 without arrays."""
        return max([RANK[dt.info(dtype).kind] for dtype in self.dtypes], default=-1)


def _all_arrays_equal(rules: Rules, operands: Operands, function: str, steps: list[str]) -> np.dtype:
    """Join all arrays; a number takes part only if its kind is above theirs."""
    return _join(rules, [*operands.dtypes, *_dtypes_of_numbers(rules, operands, function, steps)], function, steps)


def _by_category(rules: Rules, operands: Operands, function: str, steps: list[str]) -> np.dtype:
    """Combine the categories: arrays, 0-d arrays, numbers. A lower category takes part if its kind is higher."""
    numbers = _dtypes_of_numbers(rules, operands, function, steps)
    categories = (("dimensioned", operands.arrays), ("0-d", operands.points), ("number", numbers))
    found = [(name, _join(rules, dtypes, function, steps)) for name, dtypes in categories if dtypes]

    def outrank(lower: tuple[str, np.dtype], higher: tuple[str, np.dtype]) -> tuple[str, np.dtype]:
        return higher[0], _combined(rules, higher, lower, function, steps)

    return reduce(outrank, reversed(found))[1]


def _combined(
    rules: Rules, higher: tuple[str, np.dtype], lower: tuple[str, np.dtype], function: str, steps: list[str]
) -> np.dtype:
    """Combine two categories, each a name and a dtype, as torch's ``combine_categories`` does."""
    (above, mine), (below, other) = higher, lower
    rank, rank_below = RANK[dt.info(mine).kind], RANK[dt.info(other).kind]
    if rank == RANK["float"] and rank_below == RANK["complex"]:
        found = _COMPLEX_OF.get(mine)
        if found is None:
            raise PromotionError(
                f"{function}: {mine.name} with a complex {below} operand needs a complex dtype of half the width, "
                f"which tilearray does not have; write x.astype('float32') for the {mine.name} operand"
            )
        steps.append(f"{other.name} ({below}) makes {mine.name} ({above}) complex: {found.name}")
        return found
    if rank > RANK["bool"] and rank_below <= rank:
        steps.append(
            f"{other.name} ({below}) is not of a higher kind than {mine.name} ({above}): it does not take part"
        )
        return mine
    if rank == RANK["int"] and rank_below == RANK["complex"]:
        steps.append(f"{other.name} ({below}) is of the higher kind")
        return other
    return _join(rules, [mine, other], function, steps)


_COMPLEX_OF: Final[dict[np.dtype, np.dtype]] = {
    dt.bfloat16: dt.complex64,
    dt.float32: dt.complex64,
    dt.float64: dt.complex128,
}


def _by_numpy(rules: Rules, operands: Operands, function: str, steps: list[str]) -> np.dtype:
    """Ask NumPy. An example of the same class replaces each number."""
    huge = ScalarClass.HUGE in operands.numbers
    if huge and operands.rank < 0:
        raise ScalarOverflowError(f"{function}: no integer dtype holds {ScalarClass.HUGE.value}; write it as a float")
    numbers = [_EXAMPLES[number] for number in sorted(set(operands.numbers), key=_CLASSES.index)]
    found = numpy_result_type(operands.dtypes, numbers, function)
    shown = ", ".join([names([dtype]) for dtype in operands.dtypes] + [repr(number) for number in numbers])
    steps.append(f"numpy.result_type({shown}) is {found.name}")
    return found


def numpy_result_type(dtypes: Iterable[np.dtype], numbers: Iterable[Number], function: str) -> np.dtype:
    """Return NumPy's common dtype. The dtypes are sorted first, so the result does not depend on their order.

    Raises
    ------
    PromotionError
        If NumPy has no common dtype, or has one that is not in the table of dtypes.
    """
    distinct = sorted(set(dtypes), key=position)
    try:
        return dt.as_dtype(np.result_type(*distinct, *numbers), function)
    except (TypeError, ValueError):
        raise PromotionError(
            f"{function}: NumPy has no common dtype for {names(distinct)}; write x.astype('float32') for one of them"
        ) from None


_EXAMPLES: Final[dict[ScalarClass, Number]] = {
    ScalarClass.BOOL: True,
    ScalarClass.INT32: 1,
    ScalarClass.UINT32: 2**31,
    ScalarClass.INT64: 2**40,
    ScalarClass.UINT64: 2**63,
    ScalarClass.HUGE: 2**64,
    ScalarClass.FLOAT32: 0.5,
    ScalarClass.FLOAT64: 1e300,
    ScalarClass.COMPLEX: 1j,
}


def _dtypes_of_numbers(rules: Rules, operands: Operands, function: str, steps: list[str]) -> list[np.dtype]:
    """Return the dtypes by which numbers take part: none, unless their kind is above that of all arrays."""
    numbers = operands.numbers
    if not numbers:
        return []
    if ScalarClass.HUGE in numbers and not rules.huge:
        raise ScalarOverflowError(_beyond(ScalarClass.HUGE, function))
    rank = max([_SCALAR_RANK[number] for number in numbers])
    if rank <= operands.rank:
        steps.append(f"the {_RANK_NAMES[rank]} number is not of a higher kind than the arrays: it does not take part")
        return []
    highest = [number for number in _CLASSES if number in numbers and _SCALAR_RANK[number] == rank]
    if operands.rank < 0:
        found = _without_arrays(rules, highest[-1], function)
        steps.append(f"without arrays, a number of this kind and size is {found.name}")
        return [found]
    rungs = [_rung(rules, number, function) for number in highest]
    if operands.rank == RANK["float"]:
        rungs = [dt.complex64]  # a complex number beside floats has their precision, whatever the default is
    steps.append(f"the {_RANK_NAMES[rank]} number is of a higher kind than the arrays: it takes part as {names(rungs)}")
    return rungs


def _rung(rules: Rules, number: ScalarClass, function: str) -> np.dtype:
    """Return the dtype by which a number takes part beside arrays of a lower kind."""
    found = rules.ladder.get(number)
    if found is not None:
        return found
    if number is ScalarClass.COMPLEX:
        raise PromotionError(f"{function}: semantics {rules.name!r} has no complex numbers; write x.real or x.imag")
    raise ScalarOverflowError(_beyond(number, function))


def _without_arrays(rules: Rules, number: ScalarClass, function: str) -> np.dtype:
    """Return the default dtype of a number's kind, or its rung if the default does not hold the rung's range."""
    rung, default = _rung(rules, number, function), rules.defaults[SCALAR_KIND[number]]
    if rung not in _RANGE or default not in _RANGE:
        return default
    (low, high), (lowest, highest) = _RANGE[rung], _RANGE[default]
    return default if lowest <= low and high <= highest else rung


def _beyond(number: ScalarClass, function: str) -> str:
    integer = number.value if number is ScalarClass.HUGE else f"an integer that needs {number.value}"
    return f"{function}: no integer dtype holds {integer}; write it as a float"


def _join(rules: Rules, dtypes: list[np.dtype], function: str, steps: list[str]) -> np.dtype:
    """Return the lattice's join, and write the reason to `steps`."""
    found = rules.lattice.join(dtypes, function)
    distinct = sorted(set(dtypes), key=position)
    if len(distinct) > 1:
        steps.append(f"{names(distinct)}: {_reason(distinct, found)}")
    return found


_SUPREMA: Final = {
    "int": "the next wider signed integer, which holds both ranges",
    "float": "the next larger float, which holds both",
    "complex": "the complex dtype of the widest part",
}


def _reason(dtypes: list[np.dtype], found: np.dtype) -> str:
    """Return why `found` is the common dtype, in words."""
    rows, row = [dt.info(dtype) for dtype in dtypes], dt.info(found)
    top = max(RANK[other.kind] for other in rows)
    among = [other for other in rows if RANK[other.kind] == top]
    if RANK[row.kind] > top:
        return f"no dtype of their kind is above both, so {found.name}"
    if len(among) == 1 and row is among[0]:
        return f"{_RANK_NAMES[top]} is the higher kind, so {found.name}"
    if row not in among:
        return f"{_SUPREMA.get(row.kind, 'the least dtype above all')}, {found.name}"
    if any(other is not row and other.bits == row.bits for other in among):
        return f"of equal width, {'the unsigned one' if row.kind == 'uint' else 'the higher one'}: {found.name}"
    return f"the wider one, {found.name}"


DECISIONS: Final[dict[str, Callable[[Rules, Operands, str, list[str]], np.dtype]]] = {
    "numbers": _all_arrays_equal,
    "categories": _by_category,
    "numpy": _by_numpy,
}
"""The rule functions by the names that `Semantics.rule` takes."""
