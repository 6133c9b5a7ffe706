"""Keys of a sort: unsigned integers in the order of elements, and how a sort narrows them.

The key of an integer is its distance from the least one. Keys of floats are those of their bits, turned so that they
are in order; both zeros have one key, and every NaN the last one. The complement of a key turns the order round, and
leaves equal elements as they are.

Elements of 64 bits often fill a part of the range of their keys. A sample tells; if it does, `narrowed` finds the least
key and the bits by which others differ from it, and only these are sorted. `digits_enough` says how many of the upper
digits tell a sample apart. Elements that these digits leave in one run are near their places then.

The exponents of floats of 64 bits take many digits. If the range of all is not too wide for their distances, linear
keys tell most of them apart by 32 bits: places in this range, in equal steps. `linear` asks a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.execute import run, run_fixed
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import FixedOperation, FixedResult, OperandType, Reduced, typed_scalar
from tilearray.engine.plan import Key
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import new_like
from tilearray.functions.reduce import refuse
from tilearray.geometry.layout import Layout
from tilearray.geometry.sorting import BEFORE_COUNTS, DIGIT, DIGITS, LONGEST, OVERFULL, RUN_BITS
from tilearray.ops.row import plain_dtype
from tilearray.promotion.semantics import Semantics

_INT32, _INT64, _UINT32, _UINT64 = dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64
_FLOAT64 = dtypes.float64
_NARROW = 32
"""The bits of a dtype above which its keys have 64 bits."""
SAMPLE = 4096
"""The elements of a row of a sample, which one program sorts."""
SAMPLES = 16
"""The rows of a sample of a row whose short runs may be sorted at last."""
NEAR = 16
"""The most elements on each side with which one is compared, to sort short runs."""
SPACING = 16
"""The elements of a sample that tell how many others have equal linear keys."""
MOST_EQUAL = 2
"""The most elements that have equal linear keys where elements are densest, on average."""
_TINY = 1e-290
"""The least distance of floats whose scale is finite."""


def key_bits(dtype: np.dtype) -> int:
    """Return the number of bits of the key of a dtype.

    >>> key_bits(np.dtype("bool")), key_bits(np.dtype("float32"))
    (1, 32)
    """
    info = dtypes.info(dtype)
    return 1 if info.kind == "bool" else info.bits


def key_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the key of a dtype.

    >>> key_dtype(np.dtype("float64")).name, key_dtype(np.dtype("int8")).name
    ('uint64', 'uint32')
    """
    return _UINT64 if is_wide(dtype) else _UINT32


def is_wide(dtype: np.dtype) -> bool:
    """Whether keys of a dtype have 64 bits.

    >>> is_wide(np.dtype("float64")), is_wide(np.dtype("uint32"))
    (True, False)
    """
    return dtypes.info(dtype).bits > _NARROW


def infinity_of(dtype: np.dtype) -> int:
    """Return the largest code of a positive float that is not NaN; of integers, whether they have a sign.

    >>> infinity_of(np.dtype("float16")), infinity_of(np.dtype("int16")), infinity_of(np.dtype("uint16"))
    (31744, 1, 0)
    """
    info = dtypes.info(dtype)
    form = info.format
    if form is None:
        return int(info.kind == "int")
    return form.largest if form.infinity is None else form.infinity


def _key_text(dtype: np.dtype) -> str:
    """Return the key of an element in Triton."""
    info = dtypes.info(dtype)
    if info.kind == "int":
        return "integer_key({x}, {width})"
    if info.kind != "float":
        return "{x}" if is_wide(dtype) else "{x}.to(tl.uint32)"
    bits = "{x}" if info.bits == 8 else "{x}.to(tl.uint{width}, bitcast=True)"
    return f"float_key({bits}, {infinity_of(dtype)}, {{width}})"


def key_of(builder: ExpressionBuilder, element: int, dtype: np.dtype) -> int:
    """Add the key of an element, and return its node."""
    return builder.call("key", (element,), key_dtype(dtype), _key_text(dtype))


def turned_key(builder: ExpressionBuilder, element: int, dtype: np.dtype, flip: int, base: int | None = None) -> int:
    """Add the key of an element, turned round by a number, and less than it by another one. Return its node."""
    wide = key_dtype(dtype)
    key = turned(builder, key_of(builder, element, dtype), flip, wide)
    return key if base is None else builder.call("narrow", (key, base), wide, "{x} - {y}")


def turned(builder: ExpressionBuilder, key: int, flip: int, wide: np.dtype) -> int:
    """Add a key that is turned round by a number, and return its node."""
    return builder.call("turn", (key, flip), wide, "{x} ^ {y}")


def linear_key(builder: ExpressionBuilder, element: int, center: int, scale: int) -> int:
    """Add the linear key of an element, and return its node."""
    return builder.call("linear", (element, center, scale), _UINT64, "linear_key({x}, {y}, {z})")


class Keyed(ExpressionBuilder):
    """A builder with an element of rows, its key, and the numbers that turn the order round and narrow the keys."""

    def __init__(self, dtype: np.dtype, takes_shift: bool, form: str = "") -> None:
        super().__init__()
        self.element = self.array(dtype)
        wide = self.key_dtype = key_dtype(dtype)
        self.shift = self.number(wide) if takes_shift else -1
        flip = self.number(wide)
        if form == "linear":
            numbers = self.number(_FLOAT64), self.number(_FLOAT64)
            self.key = turned(self, linear_key(self, self.element, *numbers), flip, wide)
        else:
            self.key = turned_key(self, self.element, dtype, flip, self.number(wide) if form == "base" else None)

    def digit(self) -> int:
        """Add the digit at the shift."""
        return self.call("digit", (self.key, self.shift), _INT32, f"(({{x}} >> {{y}}) & {DIGITS - 1}).to(tl.int32)")

    def shifted(self) -> int:
        """Add the key without the bits below the shift."""
        return self.call("shifted", (self.key, self.shift), self.key_dtype, "{x} >> {y}")

    def placed(self, output: int, dtype: np.dtype, places: np.dtype, given: str) -> FixedOperation:
        """Return the operation that stores a node in the order of the digit, with places of a dtype.

        `given` says from what they are found: "sums", "counts" or "swept", as of the node "rank".
        """
        where = self.memory(places), given
        swept = (self.memory(_INT32), BEFORE_COUNTS) if given == "swept" else ()
        place = self.node("rank", self.digit(), *where, *swept)
        return FixedOperation("sort", self.build([output], [dtype], (place,)))


# --- keys that are narrowed -------------------------------------------------------------------------------------------


class Turned(NamedTuple):
    """How keys become those that are sorted: ``(key ^ flip) - base``, integers below ``2**bits``.

    Attributes
    ----------
    flip : int
        0, or all bits for a descending order.
    base : int
    bits : int
    center, scale : float
        Of linear keys, which have 32 bits. The scale is 0 for all others.
    """

    flip: int
    base: int
    bits: int
    center: float = 0.0
    scale: float = 0.0

    @property
    def form(self) -> str:
        """The form of keys: "base", "linear", or "" of those from 0 on."""
        return "linear" if self.scale else "base" if self.base else ""

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that kernels take after a shift: no base that is 0."""
        if self.scale:
            return self.flip & ((1 << _NARROW) - 1), self.center, self.scale
        return (self.flip, self.base) if self.base else (self.flip,)

    def exact(self) -> Turned:
        """Return how keys are turned if these are not linear: those of floats, all bits without a base."""
        return self._replace(bits=2 * _NARROW, center=0.0, scale=0.0) if self.scale else self

    @property
    def digits(self) -> int:
        """The digits of a key."""
        return -(-self.bits // DIGIT)


def turned_by(dtype: np.dtype, descending: bool, bits: int | None = None) -> Turned:
    """Return how keys of a dtype are turned, of which so many bits differ.

    >>> turned_by(np.dtype("uint8"), True)
    Turned(flip=255, base=0, bits=8, center=0.0, scale=0.0)
    """
    bits = key_bits(dtype) if bits is None else max(bits, 1)
    return Turned((1 << bits) - 1 if descending else 0, 0, bits)


def sampled(x: Any, rows: int) -> Any:
    """Return the keys of some elements of a dense array of two axes, in rows of which each has elements of all places.

    Their distance is odd, so that they do not all belong to one column of a table.
    """
    step = (x.size // (rows * SAMPLE) - 1) | 1
    some = x._view(Layout((rows, SAMPLE), (step, rows * step)))
    return run_fixed(_turning(x.dtype), [some, 0], new_like(x, some.shape, key_dtype(x.dtype)))


def range_of(keys: np.ndarray) -> tuple[int, int]:
    """Return a key in the middle of some, and the bits of their range.

    >>> range_of(np.array([7, 3, 1], "uint32"))
    (4, 3)
    """
    least, most = int(keys.min()), int(keys.max())
    return (least + most) // 2, (most - least).bit_length()


def narrowed(x: Any, turned: Turned, middle: int) -> Turned:
    """Return how the keys of an array of two axes are turned and narrowed. The call waits for the device.

    Keys lie no further from one in the middle than the one that is furthest from it.
    """
    wide = key_dtype(x.dtype)
    given: list[Key] = [x._signature, typed_scalar(wide)]
    distance = int(to_numpy(run(_SPREADS[wide], given, (x, middle), None, refuse)))
    last = (1 << key_bits(x.dtype)) - 1
    least, most = max(middle - distance, 0), min(middle + distance, last)
    least, most = (last - most, last - least) if turned.flip else (least, most)
    bits = (most - least).bit_length()
    return Turned(last if turned.flip else 0, least if bits < most.bit_length() else 0, bits)


def linear(x: Any, turned: Turned, keys: np.ndarray) -> Turned | None:
    """Return how keys of floats are made linear, if few elements have equal ones; else None. It waits for the device.

    Parameters
    ----------
    x : Array
    turned : Turned
    keys : numpy.ndarray
        Those of a sample.
    """
    values = np.sort(_floats_of(keys))
    with np.errstate(all="ignore"):
        width, spacing = values[-1] - values[0], (values[SPACING:] - values[:-SPACING]).min()
        share = x.size * SPACING / len(keys) / 2**_NARROW
        if not (np.isfinite(width) and share * width <= MOST_EQUAL * spacing):
            return None
        center = float(values[0] + width / 2)
        given: list[Key] = [x._signature, typed_scalar(_FLOAT64)]
        found = np.uint64(int(to_numpy(run(_DISTANCE, given, (x, center), None, refuse))))
        distance = found.view(np.float64)
        if not (_TINY < distance < np.inf and share * 2 * distance <= MOST_EQUAL * spacing):
            return None
    return Turned(turned.flip, 0, _NARROW, center, float((2**31 - 1) / distance))


def _floats_of(keys: np.ndarray) -> np.ndarray:
    """Return the floats of keys of 64 bits.

    >>> _floats_of(np.array([2**63 - 1, 2**63, 2**63 + (1023 << 52)], "uint64")).tolist()
    [-5e-324, 0.0, 1.0]
    """
    sign = np.uint64(1 << 63)
    return np.where(keys >= sign, keys - sign, (sign - keys) | sign).view(np.float64)


def least_gap(ordered: Any) -> Any:
    """Return the least distance of neighbours in sorted rows of keys, as an array without axes."""
    later, earlier = get(ordered, (slice(None), slice(1, None))), get(ordered, (slice(None), slice(-1)))
    return run(_GAP, [later._signature, earlier._signature], (later, earlier), None, refuse)


def digits_enough(gap: int, bits: int) -> int:
    """Return how many of the upper digits of keys tell a sample apart; 0 if it has equal keys.

    If the keys of no two elements of a sample are nearer than a gap, few of all elements are, and runs of elements with
    equal upper digits are short. But equal keys are in one run, however many they are.

    Parameters
    ----------
    gap : int
        The least distance of two keys of the sample.
    bits : int
        The bits of keys.

    Examples
    --------
    >>> digits_enough(2**20, 30), digits_enough(2**40, 64), digits_enough(0, 64)
    (2, 3, 0)
    """
    return (bits - gap.bit_length()) // DIGIT + 1 if gap else 0


@cache
def _turning(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds keys: elements, and the number that turns round."""
    builder = Keyed(dtype, False)
    return FixedOperation("sort", builder.build([builder.key], [builder.key_dtype]))


@dataclass(frozen=True, eq=False)
class _OfKeys(FixedResult):
    """A reduction of keys: the largest distance from a number, or the least one of two arrays of keys.

    Attributes
    ----------
    result : numpy.dtype
        The dtype of keys.
    graph : callable
        Returns the expression for the dtype of elements.
    """

    result: np.dtype
    graph: Callable[[np.dtype], Expression]
    name: str = "sort"
    reduced: Reduced = field(default=Reduced((0, 1), False))
    into: object = field(default_factory=object, repr=False)
    scanned = None
    selects = False

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression; the same object for all calls."""
        del semantics, out
        return self.graph(plain_dtype(cast(np.dtype, types[0])))


@cache
def _spread(dtype: np.dtype) -> Expression:
    builder, wide = ExpressionBuilder(), key_dtype(dtype)
    key, middle = key_of(builder, builder.array(dtype), dtype), builder.number(wide)
    distance = builder.call("distance", (key, middle), wide, "tl.where({x} > {y}, {x} - {y}, {y} - {x})")
    (found,) = builder.reduce("maximum", (distance,), [wide])
    return builder.build([found], [wide])


@cache
def _distance(dtype: np.dtype) -> Expression:
    """Return the largest distance of floats from a number, as bits: those of a NaN are larger than of all others."""
    builder = ExpressionBuilder()
    given, bits = (builder.array(dtype), builder.number(_FLOAT64)), "tl.abs({x} - {y}).to(tl.uint64, bitcast=True)"
    (found,) = builder.reduce("maximum", (builder.call("distance", given, _UINT64, bits),), [_UINT64])
    return builder.build([found], [_UINT64])


@cache
def _gap(wide: np.dtype) -> Expression:
    builder = ExpressionBuilder()
    gap = builder.call("gap", (builder.array(wide), builder.array(wide)), wide, "{x} - {y}")
    (found,) = builder.reduce("minimum", (gap,), [wide])
    return builder.build([found], [wide])


_SPREADS = {dtype: _OfKeys(dtype, _spread) for dtype in (_UINT32, _UINT64)}
_GAP = _OfKeys(_UINT64, _gap)
_DISTANCE = _OfKeys(_UINT64, _distance)


@cache
def mending(dtype: np.dtype, is_linear: bool = False) -> FixedOperation:
    """Return the operation that sorts short runs of elements whose upper digits are equal.

    Its operands are elements that are sorted by these digits, their memory, their number, the numbers that turn and
    narrow keys, the bits below the digits, the numbers of linear keys, if elements are sorted by these, and a word that
    is set if a run is too long.
    """
    builder = ExpressionBuilder()
    element, memory, count = builder.array(dtype), builder.memory(dtype), builder.number(_INT64)
    flip, base, start = (builder.number(_UINT64) for _ in range(3))
    line = [builder.number(_FLOAT64) if is_linear else builder.constant(0.0, _FLOAT64) for _ in range(2)]
    key = turned_key(builder, element, dtype, flip, base)
    run = builder.call("run", (key, start), _UINT64, "{x} >> {y}")
    run = linear_key(builder, element, *line) if is_linear else run
    moved = builder.node(
        "mended", memory, count, key, run, flip, base, start, *line, infinity_of(dtype), NEAR, is_linear
    )
    return _stored_in_runs(builder, moved, element, dtype)


@cache
def mending_order(dtype: np.dtype) -> FixedOperation:
    """Return the operation that sorts short runs of words, which have upper bits of keys, and positions below them.

    Its operands are words, their memory, their number, the elements that were sorted, the numbers that turn and narrow
    keys, the bits of a word below the digits by which words are sorted, and a word that is set if a run is too long.
    """
    builder = ExpressionBuilder()
    word, memory, count, elements = (
        builder.array(_UINT64), builder.memory(_UINT64), builder.number(_INT64), builder.memory(dtype),
    )  # fmt: skip
    flip, base, start = (builder.number(_UINT64) for _ in range(3))
    moved = builder.node("mended_order", memory, count, word, elements, flip, base, start, infinity_of(dtype), NEAR)
    position = builder.call("position", (word,), _INT64, "{x}.to(tl.uint32).to(tl.int64)")
    return _stored_in_runs(builder, moved, position, _INT64)


def _stored_in_runs(builder: ExpressionBuilder, moved: int, output: int, dtype: np.dtype) -> FixedOperation:
    """Return the operation that stores a node where a node says, which is odd if it does not know."""
    place = builder.call("place", (moved,), _INT64, "{x} >> 1")
    is_cut = builder.call("is_cut", (moved,), dtypes.bool_, "({x} & 1) != 0")
    builder.node("report", is_cut, builder.constant(1, _INT64), builder.memory(_INT64))
    return FixedOperation("sort", builder.build([output], [dtype], (place,)))


# --- integers that are near each other --------------------------------------------------------------------------------


@cache
def marking(dtype: np.dtype) -> FixedOperation:
    """Return the operation that sets a bit of a target for each key: integers, and the number that narrows keys."""
    builder = ExpressionBuilder()
    element, base = builder.array(dtype), builder.number(key_dtype(dtype))
    key = builder.call("narrow", (key_of(builder, element, dtype), base), key_dtype(dtype), "{x} - {y}")
    place = builder.call("place", (key,), _INT64, "{x}.to(tl.int64)")
    return FixedOperation("unique", builder.build([builder.node("marks", place)], [_INT32], combines="or"))


@cache
def reading_marks() -> FixedOperation:
    """Return the operation that tells which bits are set in memory."""
    builder = ExpressionBuilder()
    memory, place = builder.memory(_INT32), builder.node("index")
    word = builder.node("gather", memory, builder.call("word", (place,), _INT64, "{x} >> 5"))
    found = builder.call("bit", (word, place), dtypes.bool_, "(({x} >> ({y} & 31).to(tl.int32)) & 1) != 0")
    return FixedOperation("unique", builder.build([found], [dtypes.bool_]))


@cache
def integers_from(dtype: np.dtype) -> FixedOperation:
    """Return the operation that makes the integers of a dtype from one on, which is given as an int64."""
    builder = ExpressionBuilder()
    found = builder.call("add", (builder.node("index"), builder.number(_INT64)), _INT64, "{x} + {y}")
    return FixedOperation("unique", builder.build([builder.cast(found, _INT64, dtype)], [dtype]))


# --- integers in runs of equal upper bits -----------------------------------------------------------------------------


@cache
def starting_runs(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds where runs of equal upper bits start.

    Its operands are integers that are sorted but for their lowest `RUN_BITS`, their number, and the least integer of
    the first run, as an int64.
    """
    builder = ExpressionBuilder()
    memory, count, first = builder.memory(dtype), builder.number(_INT64), builder.number(_INT64)
    least = builder.call("least", (builder.node("index"), first), _INT64, f"({{x}} << {RUN_BITS}) + {{y}}")
    start = builder.node("search", memory, count, builder.cast(least, _INT64, dtype), "left")
    return FixedOperation("unique", builder.build([builder.cast(start, _INT64, _INT32)], [_INT32]))


class _InRuns(ExpressionBuilder):
    """A builder with integers, their distances from a base, and the places where runs of equal upper bits start."""

    def __init__(self, dtype: np.dtype) -> None:
        super().__init__()
        element, base, wide = self.array(dtype), self.number(key_dtype(dtype)), key_dtype(dtype)
        self.key = self.call("narrow", (key_of(self, element, dtype), base), wide, "{x} - {y}")
        self.starts = self.memory(_INT32)


@cache
def counting_distinct(dtype: np.dtype) -> FixedOperation:
    """Return the operation that counts the distinct integers of runs; a run longer than `LONGEST` has `OVERFULL`.

    Its operands are integers that are sorted but for their lowest `RUN_BITS`, the key of the least one of the first
    run, and where runs start.
    """
    builder = _InRuns(dtype)
    sizes = builder.node("sizes", builder.key, builder.starts, LONGEST, OVERFULL)
    return FixedOperation("unique", builder.build([sizes], [_INT64]))


@cache
def storing_distinct(dtype: np.dtype) -> FixedOperation:
    """Return the operation that stores the distinct integers of runs, one after the other.

    Its operands are those of `counting_distinct`, then the running sums of its results, and the least integer of the
    first run, as an int64.
    """
    builder = _InRuns(dtype)
    found = builder.node("distinct", builder.key, builder.starts, builder.memory(_INT64), OVERFULL)
    integer = builder.call("add", (found, builder.number(_INT64)), _INT64, "{x} + {y}")
    return FixedOperation("unique", builder.build([builder.cast(integer, _INT64, dtype)], [dtype]))


def integer_of(key: int, dtype: np.dtype) -> int:
    """Return the integer that has a key; from 2**63 on that of the same bits with a sign.

    >>> integer_of(0, np.dtype("int8")), integer_of(2**64 - 1, np.dtype("uint64"))
    (-128, -1)
    """
    found = key - ((1 << (key_bits(dtype) - 1)) if dtypes.info(dtype).kind == "int" else 0)
    return found - (1 << 64) if found >= 1 << 63 else found
