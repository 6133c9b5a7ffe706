"""Random calls, drawn by Hypothesis: shapes, views of every kind, difficult values, numbers of every class, targets.

A `View` is a recipe, followed by NumPy and tilearray alike: each makes the view of its own copy of a flat buffer, by
its own functions. The contents of a buffer are drawn as one string of bytes, two for an element, which are indices
into a pool of the dtype: one half difficult values, one half random ones. An example costs few draws and shrinks to
zeros.
"""

from __future__ import annotations

import functools
import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import tilearray as ta
from support.oracles.formats import ARITHMETIC, STORAGE, Number, dtype_of, kind_of, limits_of, width_of
from support.oracles.rules import COMPARISONS, RULES

Draw = st.DrawFn
INTEGERS = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"])
PERCENT = st.integers(0, 99)
SMALL = st.integers(0, 3)

# --- values -------------------------------------------------------------------------------------------------------

SIMPLE = [0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256]
FRACTIONS = [0.5, 1.5, 2.5, 0.1, 1 / 3, math.pi, 1e-3, 1e-8]
LIMITS = [88.0, 88.8, 104.0, 448.0, 464.0, 465.0, 65504.0, 65520.0]  # of exp, float8 and float16
NARROW = (3, 4, 8, 11, 24)  # where the narrower formats' midpoints are: next to one, rounding twice goes wrong


@functools.cache
def pool(name: str) -> np.ndarray:
    """65536 values of a dtype, the first half of them the ones that hurt, over and over."""
    with np.errstate(all="ignore"):
        hurtful, random = _hurtful(name), _random(name, np.random.default_rng(len(name)))
    return np.concatenate([np.resize(hurtful, 32768), np.resize(random, 32768)])


def _hurtful(name: str) -> np.ndarray:
    kind, dtype = kind_of(name), dtype_of(name)
    if kind == "bool":
        return np.array([False, True])
    if kind == "complex":
        part = _hurtful("float32" if name == "complex64" else "float64")
        return _complex(np.repeat(part, 9), np.resize(part[:: len(part) // 9], 9 * len(part)), dtype)
    if kind == "int":
        low, high = limits_of(name)
        around = [2**power + d for power in (7, 8, 15, 16, 24, 31, 32, 53, 63) for d in (-1, 0, 1)]
        ties = [(2**top + 2 ** (top - cut)) + d for top in (20, 29, 40, 61) for cut in NARROW for d in (-1, 0, 1)]
        found = [*SIMPLE, *around, *ties, low, low + 1, high, high - 1]
        return np.array([v for value in found for v in (value, -value) if low <= v <= high], dtype)
    ties = [(1 + 2.0**-cut) * (1 + d * 2.0**-tiny) for cut in NARROW for d in (-1, 0, 1) for tiny in (20, 40)]
    found = [*SIMPLE, *FRACTIONS, *LIMITS, *(ties if width_of(name) >= 32 else [])]
    plain = np.array([value for v in found for value in (v, -v)]).astype(dtype)
    return np.concatenate([plain, _patterns(name, dtype)])


def _patterns(name: str, dtype: np.dtype[Any]) -> np.ndarray:
    """Floats by their bits: next to zero, to the largest, to infinity and to 1; every one of a narrow format."""
    unsigned, bits = np.dtype(f"u{dtype.itemsize}"), min(width_of(name), 8 * dtype.itemsize)
    if bits <= 8:
        return np.arange(2**bits).astype(unsigned).view(dtype)
    half = 2 ** (bits - 1)
    if kind_of(name) == "float" and bits >= 16:
        infinity = int(np.array(math.inf, dtype).view(unsigned))
        one = int(np.array(1, dtype).view(unsigned))
        normal = infinity & -infinity  # the exponent 1, and nothing else
        edges = [0, 1, 2, normal - 1, normal, normal + 1, one - 1, one + 1, infinity - 1, infinity, infinity + 1]
    return np.array([p + sign for p in edges for sign in (0, half)], unsigned).view(dtype)


def _complex(real: np.ndarray, imag: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    found = np.empty(real.size, dtype)
    found.real, found.imag = real, imag
    return found


def _random(name: str, rng: np.random.Generator) -> np.ndarray:
    kind, dtype, n = kind_of(name), dtype_of(name), 8192
    if kind == "bool":
        return rng.random(n) < 0.5
    if kind == "complex":
        real, imag = (_random("float32" if name == "complex64" else "float64", rng) for _ in range(2))
        moderate = rng.uniform(-10, 10, (2, real.size))
        return _complex(np.append(real, moderate[0]), np.append(imag, moderate[1]), dtype)
    anything = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    if kind == "int":
        return np.concatenate([anything, rng.integers(max(-9, limits_of(name)[0]), 10, n).astype(dtype)])
    if name == "float4_e2m1fn":
        anything = (anything.view(np.uint8) & 15).view(dtype)
    spread = rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-20, 20, n)
    return np.concatenate([anything, np.concatenate([spread, rng.uniform(-10, 10, n)]).astype(dtype)])


NUMBERS: list[Number] = [
    *(0, 1, 2, 3, 7, -1, -2, True, False, 0.0, 1.0, 0.5, -1.5, 2.5, 100, 1j, 1 + 2j, -0.5j, complex(math.nan, 1)),
    *(-0.0, math.nan, math.inf, -math.inf, 0.1, 1e-3, 3e38, 3.5e38, 1e300, -1e300, 5e-324, 1e-45, 65504.0, 65520.0),
    *(448.0, 464.1, 127, 128, -128, -129, 255, 256, 32767, 32768, 65535, 65536, 2**24 + 1, 2**31 - 1, 2**31, -(2**31)),
    *(-(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1),
    *(2**70 + 2**46 + 1, -(2**70), 10**400, -(10**400), complex(math.inf, -0.0), 1e30 + 1e-30j),
]
numbers: st.SearchStrategy[Number] = st.one_of(
    st.sampled_from(NUMBERS[:19]),
    st.sampled_from(NUMBERS),
    st.integers(-200, 200),
    st.integers(-(2**65), 2**65),
    st.floats(width=32),
    st.floats(),
)


# --- views --------------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """How to see a shape in a flat buffer, from the element `start` on.

    Either a window, of any strides; or `storage`, the shape of a dense stretch, sliced by `key`, its axes put in
    `order` and then broadcast.
    """

    shape: tuple[int, ...]
    start: int
    size: int  # elements of the buffer that it may reach, from `start` on
    strides: tuple[int, ...] | None = None
    origin: int = 0
    storage: tuple[int, ...] = ()
    key: tuple[slice, ...] = ()
    order: tuple[int, ...] = ()

    def of_numpy(self, flat: np.ndarray) -> np.ndarray:
        if self.strides is not None:
            strides = tuple(stride * flat.itemsize for stride in self.strides)
            offset = (self.start + self.origin) * flat.itemsize
            return np.ndarray(self.shape, flat.dtype, flat.view(np.uint8), offset, strides)
        dense = flat[self.start : self.start + self.size].reshape(self.storage)
        return _broadcast(dense[(*self.key, ...)].transpose(self.order), self.shape)  # ... : a view, if 0-d

    def of_tilearray(self, flat: ta.Array) -> ta.Array:
        if self.strides is not None:
            return ta.as_strided(flat, self.shape, self.strides, self.start + self.origin)
        dense = ta.reshape(flat[self.start : self.start + self.size], self.storage, copy=False)
        return ta.broadcast_to(ta.permute_dims(dense[self.key], self.order), self.shape)

    def overlaps_itself(self, length: int) -> bool:
        places = self.of_numpy(np.arange(length)).ravel()
        return len(set(places.tolist())) < places.size


def _broadcast(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`numpy.broadcast_to` that leaves the view writable where nothing is repeated."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


@st.composite
def shapes(draw: Draw) -> tuple[int, ...]:
    """0 to 5 axes of few elements, a zero now and then."""
    ndim = draw(st.integers(0, 5))
    largest = (1, 40, 9, 5, 4, 3)[ndim]
    shape = [draw(st.integers(1, largest)) for _ in range(ndim)]
    if ndim and draw(PERCENT) >= 93:
        shape[draw(st.integers(0, ndim - 1))] = 0
    return tuple(shape)


@st.composite
def views(draw: Draw, shape: tuple[int, ...], writable: bool = False) -> View:
    """A view of exactly this shape, of more or less than one element per place unless it is to be writable."""
    if draw(PERCENT) >= 80 and not writable:
        strides = tuple(draw(st.integers(-3, 4)) for _ in shape)
        reach = [(n - 1) * stride for n, stride in zip(shape, strides)] if 0 not in shape else []
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return View(shape, draw(SMALL), high - low + 1, strides, -low)
    order = tuple(draw(st.permutations(range(len(shape))))) if len(shape) > 1 else tuple(range(len(shape)))
    plain, extents, slices = draw(PERCENT) < 35, [], []
    room = 400 // max(math.prod(shape), 1)
    for n in shape:
        code = 0 if plain or room < 6 else draw(st.integers(0, 63))
        gap, size, repeated = code % 2, 1 + code // 2 % 3, code >= 54 and not writable
        room = room // (size + gap) if code else room
        stored = 1 if repeated else n
        span = (stored - 1) * size + 1 if stored else 0
        back = code // 6 % 2
        first, last = (gap + span - 1, gap - 1) if back else (gap, gap + span)
        slices.append(slice(first, last if last >= 0 else None, -size if back else size) if stored else slice(0, 0))
        extents.append(gap + span + (code // 12 % 2))
    storage = tuple(extents[axis] for axis in order)
    key = tuple(slices[axis] for axis in order)
    back_again = tuple(order.index(axis) for axis in range(len(shape)))
    return View(shape, draw(SMALL), math.prod(storage), None, 0, storage, key, back_again)


@st.composite
def shapes_under(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    code = draw(st.integers(0, 2**12 - 1))
    if code < 2**11:
        return shape
    shrunk = tuple(1 if code >> axis & 1 and code >> (axis + 5) & 1 else n for axis, n in enumerate(shape))
    return shrunk[draw(st.integers(0, len(shape))) :] if code & 1 else shrunk


# --- calls --------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """An array: a view of one of the case's buffers, perhaps with its bytes read as another dtype."""

    buffer: int
    view: View
    dtype: str


@dataclass
class Case:
    """One call: what it is given, where it writes."""

    form: str  # "function" | "operator" | "in-place" | "astype" | "setitem"
    operands: list[Place | np.generic | Number]
    out: Place | None = None
    dtype: str = ""  # what astype casts to
    readonly: bool = False
    block: int = 65536
    dtypes: list[str] = field(default_factory=list)  # of the buffers
    buffers: list[np.ndarray] = field(default_factory=list)

    def refilled(self, number: int) -> Case:
        """Return the call with other values in its buffers, which its own values and a number determine."""
        rng = np.random.default_rng([number, *(zlib.crc32(buffer.tobytes()) for buffer in self.buffers)])
        pairs = zip(self.dtypes, self.buffers, strict=True)
        return replace(self, buffers=[rng.choice(pool(name), buffer.size) for name, buffer in pairs])


def accepted(name: str) -> list[str]:
    names = [dtype for dtype in ARITHMETIC if kind_of(dtype) in RULES[name].kinds]
    return names + list(STORAGE) * (name == "identity")


_WORDS = """
add add, subtract sub, multiply mul, divide truediv, floor_divide floordiv, remainder mod, pow pow, bitwise_and and_,
bitwise_or or_, bitwise_xor xor, bitwise_left_shift lshift, bitwise_right_shift rshift, negative neg, positive pos,
abs abs, bitwise_invert invert, equal eq, not_equal ne, less lt, less_equal le, greater gt, greater_equal ge"""
OPERATORS: dict[str, str] = dict(pair.split() for pair in _WORDS.split(","))  # the function of module `operator`
IN_PLACE = [name for name in OPERATORS if RULES[name].arity == 2 and name not in COMPARISONS]


class Drawing:
    """The state of one case while it is drawn."""

    def __init__(self, draw: Draw, name: str) -> None:
        self.draw, self.name, self.rule = draw, name, RULES[name]
        self.fitting, self.all = st.sampled_from(accepted(name)), st.sampled_from([*ARITHMETIC, *STORAGE])
        self.shape = draw(shapes())
        self.case = Case("function", [])

    def percent(self) -> int:
        return self.draw(PERCENT)

    def dtype(self, position: int) -> str:
        if position < self.rule.masks:
            return "bool" if self.percent() < 96 else self.draw(self.all)
        if position >= self.rule.arity - self.rule.exponents:
            return self.draw(INTEGERS) if self.percent() < 96 else self.draw(self.all)
        known = [place.dtype for place in self.case.operands[self.rule.masks :] if isinstance(place, Place)]
        if known and self.percent() < 40:
            return known[0]
        return self.draw(self.fitting if self.percent() < 92 else self.all)

    def buffer(self, dtype: str) -> int:
        self.case.dtypes.append(dtype)
        return len(self.case.dtypes) - 1

    def operand(self, position: int) -> Place | np.generic | Number:
        luck, earlier = self.percent(), [o for o in self.case.operands if isinstance(o, Place)]
        if position < self.rule.masks and luck >= 88:
            return self.draw(st.booleans() if luck < 98 else numbers)
        if luck >= 80 and position >= self.rule.masks:
            is_exponent = position >= self.rule.arity - self.rule.exponents and luck < 98
            return self.draw(st.integers(-200, 200) if is_exponent else numbers)
        if luck >= 72 and position >= self.rule.masks:
            return pool(self.dtype(position))[self.draw(st.integers(0, 65535))]
        if earlier and luck >= 66 and not self.rule.exponents:
            return earlier[-1]
        shape = self.draw(shapes_under(self.shape))
        if earlier and luck >= 56 and not self.rule.exponents:
            return Place(earlier[-1].buffer, self.draw(views(shape)), earlier[-1].dtype)
        dtype = self.dtype(position)
        return Place(self.buffer(dtype), self.draw(views(shape)), dtype)

    def target(self) -> Place | None:
        """None; or memory of its own, or the memory of an operand."""
        luck, arrays = self.percent(), [o for o in self.case.operands if isinstance(o, Place)]
        if luck < 55:
            return None
        shape = self.shape if luck < 95 else (2, *self.shape) if luck < 98 else self.shape[1:]
        view = self.draw(views(shape, writable=self.percent() < 93))
        if arrays and luck < 66:
            return self.shared(arrays[self.draw(st.integers(0, len(arrays) - 1))], view)
        is_bool = "bool" in self.rule.result or self.rule.result == "truth"
        dtype = "bool" if is_bool else arrays[-1 - self.rule.exponents :][0].dtype if arrays else "float32"
        dtype = dtype if self.percent() < 60 else self.draw(self.all)
        return Place(self.buffer(dtype), view, dtype)

    def shared(self, operand: Place, view: View) -> Place:
        """A target in an operand's buffer: the operand itself, or its bytes in part, of its dtype or of another."""
        luck = self.percent()
        if luck < 30 and operand.view.shape == self.shape:
            return operand
        return Place(operand.buffer, view, operand.dtype if luck < 85 else self.draw(self.all))

    def first_in_place(self) -> Place:
        dtype = self.dtype(0)
        return Place(self.buffer(dtype), self.draw(views(self.shape, writable=self.percent() < 95)), dtype)

    def call(self) -> None:
        case, form = self.case, self.percent()
        if form < 20 and self.name in IN_PLACE:
            case.form, case.operands = "in-place", [self.first_in_place()]
            case.out = case.operands[0]  # type: ignore[assignment]
        case.operands += [self.operand(position) for position in range(len(case.operands), self.rule.arity)]
        if self.name in COMPARISONS and not any(isinstance(o, (Place, np.generic)) for o in case.operands):
            case.operands[1] = self.first_in_place()  # numbers are not compared alone: Python does that exactly
        if case.form == "function" and form >= 50 and self.name in OPERATORS:
            case.form = "operator" if any(isinstance(o, Place) for o in case.operands) else "function"
        if case.form == "function":
            case.out = self.target()
        case.readonly = case.out is not None and self.percent() >= 97
        case.block = 65536 if self.percent() < 70 else 7

    def move(self, form: str, dtype: str) -> None:
        """A cast of a view to a dtype, or the assignment of a view or number to one."""
        self.case.form = form
        source = self.dtype(0) if self.percent() < 70 else dtype
        array = Place(self.buffer(source), self.draw(views(self.draw(shapes_under(self.shape)))), source)
        if form == "astype":
            self.case.operands, self.case.dtype = [array], dtype
            return
        view = self.draw(views(self.shape, writable=self.percent() < 93))
        luck = self.percent()
        self.case.operands = [array if luck < 75 else self.operand(0)]
        self.case.out = Place(0 if luck < 15 else self.buffer(dtype), view, dtype)

    def fill(self) -> None:
        """Draw what the buffers hold, now that their sizes are known."""
        case = self.case
        places = [o for o in [*case.operands, case.out] if isinstance(o, Place)]
        for number, name in enumerate(case.dtypes):
            mine = [place for place in places if place.buffer == number]
            need = max([(p.view.start + p.view.size) * dtype_of(p.dtype).itemsize for p in mine], default=0)
            length = 16 * max(-(-need // (16 * dtype_of(name).itemsize)), 1)  # whole elements of any dtype
            drawn = min(length, 61)  # of no simple relation to sizes
            found = np.frombuffer(self.draw(st.binary(min_size=2 * drawn, max_size=2 * drawn)), np.uint16)
            case.buffers.append(np.resize(pool(name)[found], length))


@st.composite
def cases(draw: Draw, name: str) -> Case:
    """A call of one operation."""
    drawing = Drawing(draw, name)
    drawing.call()
    drawing.fill()
    return drawing.case


@st.composite
def moves(draw: Draw, form: str, dtype: str) -> Case:
    """A cast or an assignment, to a dtype."""
    drawing = Drawing(draw, "identity")
    drawing.move(form, dtype)
    drawing.fill()
    return drawing.case
