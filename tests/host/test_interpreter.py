"""The CUDA kernels, run by Triton's interpreter on NumPy memory: every layout case, every device function, every cast.

Values are compared bit for bit with NumPy, or with the rules of tests/rules.py and tests/formats.py; see
tests/kernels.py for what the interpreter checks of every memory access, and for what in it is replaced.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from formats import ARITHMETIC, FORMATS, dtype_of, exact, kind_of, limits_of, width_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kernels import (
    Fault,
    Interpreter,
    Kernel,
    Strides,
    body_for,
    flat_kernel,
    interpreting,
    kernel_for,
    needs_triton,
    planned,
    view,
)
from oracles import COMPARISONS, Operand, disagreements, predict, predict_astype
from rules import RULES, TRUNCATING
from strategies import NUMBERS, accepted, pool, shapes, views

from tilearray.body import Body
from tilearray.loop import LayoutCase

pytestmark = needs_triton


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with interpreting() as found:
        yield found


def quarters(dtype: str, size: int, seed: int) -> np.ndarray:
    """Values of both signs, many of them rounded when they are added."""
    drawn = np.random.default_rng(seed).integers(-40, 40, size) / 4
    return (drawn > 0) if dtype == "bool" else drawn.astype(dtype_of(dtype))


# --- layout cases ---------------------------------------------------------------------------------------------------

# name -> case, shape, strides of x, of y, and of out if they are not the library's
LAYOUTS: dict[str, tuple[str, tuple[int, ...], Strides, Strides, Strides | None]] = {
    "contiguous": ("flat", (9001,), (1,), (1,), None),
    "contiguous, of 4 axes": ("flat", (5, 6, 7, 40), (1680, 280, 40, 1), (1680, 280, 40, 1), None),
    "transposed alike": ("flat", (70, 130), (1, 70), (1, 70), None),
    "all backwards": ("flat", (5000,), (-1,), (-1,), (-1,)),
    "one element repeated": ("flat", (5000,), (1,), (0,), None),
    "every second and third": ("strided", (5000,), (2,), (3,), None),
    "one backwards": ("strided", (5000,), (1,), (-1,), None),
    "a target with gaps": ("strided", (5000,), (1,), (0,), (2,)),
    "row": ("lookup", (15, 600), (600, 1), (0, 1), None),
    "column": ("lookup", (15, 600), (600, 1), (1, 0), None),
    "row and column": ("lookup", (15, 600), (0, 1), (1, 0), None),
    "row backwards, column with gaps": ("lookup", (15, 600), (0, -1), (3, 0), None),
    "row and one element": ("lookup", (15, 600), (0, 1), (0, 0), None),
    "narrow row": ("lookup", (400, 30), (30, 1), (0, 1), None),
    "narrow row and column": ("lookup", (400, 7), (0, 2), (-1, 0), None),
    "row of 4 axes": ("lookup", (4, 5, 6, 100), (3000, 600, 100, 1), (0, 0, 100, 1), None),
    "pitches": ("rows", (7, 2100), (2200, 1), (2160, 1), None),
    "pitches of 3 axes": ("rows", (3, 5, 1100), (16000, 1200, 1), (0, 1, 0), None),
    "pitches of 4 axes": ("rows", (2, 3, 4, 1100), (30000, 9000, 1200, 1), (1, 5000, 0, 1), None),
    "narrow pitches": ("rows", (70, 40), (48, 1), (64, 1), None),
    "pitches, one backwards": ("rows", (7, 1100), (1200, -1), (-1104, 1), None),
    "transposed": ("tile", (70, 150), (150, 1), (1, 70), None),
    "transposed, into rows": ("tile", (70, 150), (1, 70), (1, 72), (150, 1)),
    "transposed backwards": ("tile", (70, 150), (160, 1), (-1, -72), None),
    "transposed and row": ("tile", (70, 150), (0, 1), (1, 70), (150, 1)),
    "two axes swapped of 3": ("tile", (5, 40, 70), (2800, 70, 1), (2800, 1, 40), None),
    "first and last swapped of 3": ("tile", (40, 5, 70), (350, 70, 1), (1, 40, 200), None),
    "reversed, of 4 axes": ("tile", (3, 2, 12, 70), (1680, 840, 70, 1), (1, 3, 6, 72), None),
    "three fastest axes": ("mixed", (5, 34, 35), (1, 35 * 5, 5), (34, 1, 34 * 5), (34 * 35, 35, 1)),
    "three fastest of 4 axes": ("mixed", (3, 2, 34, 35), (1, 3, 6, 204), (34, 102, 1, 204), (2380, 1190, 35, 1)),
}  # fmt: skip
SMALL, SMALLER = {"BLOCK": 256, "ROWS": 16, "COLUMNS": 64}, {"BLOCK": 16, "ROWS": 4, "COLUMNS": 8}
ADDED = [
    "float32",
    "int8",
    "bfloat16",
    "complex128",
    "float16",
    "bool",
    "complex64",
    "float8_e4m3fn",
    "uint64",
    "float64",
]


def strided(dtype: str, shape: tuple[int, ...], strides: Strides, seed: int) -> np.ndarray:
    """A view of these strides in a flat buffer of its own."""
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    return view(quarters(dtype, high - low + 1, seed), strides, shape, -low)


def test_the_layouts_are_what_they_are_called() -> None:
    """Each has the case that is written beside it, and there is one for every case and rank."""
    found = set()
    for name, (case, shape, x, y, out) in LAYOUTS.items():
        target = None if out is None else strided("float32", shape, out, 0)
        call = planned("add", strided("float32", shape, x, 1), strided("float32", shape, y, 2), out=target)
        assert call.kernel.spec.case == case, name
        found.add((case, call.kernel.spec.rank))
    assert {case for case, _ in found} == {case.value for case in LayoutCase} - {"empty"}
    assert {(case, rank) for case, rank in found if rank > 2} == {
        *(("rows", 3), ("rows", 4), ("tile", 3), ("tile", 4), ("mixed", 3), ("mixed", 4))
    }


@pytest.mark.parametrize("form", ["int32", "int64", "small blocks"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name: str, form: str, interpreter: Interpreter) -> None:
    """Sums of three dtypes, a selection and a comparison; the dtypes take turns over the layouts."""
    _, shape, x_strides, y_strides, out_strides = LAYOUTS[name]
    turn = list(LAYOUTS).index(name) + ["int32", "int64", "small blocks"].index(form) * 3
    options = {"index_bits": 64 if form == "int64" else None}
    tile = SMALL if form == "small blocks" else None

    def run(op: str, *operands: np.ndarray, out: str) -> np.ndarray:
        target = out if out_strides is None else strided(out, shape, out_strides, 0)
        return interpreter.call(op, *operands, out=target, tile=tile, **options)

    for dtype in [ADDED[(turn + k) % len(ADDED)] for k in range(3)]:
        x, y = strided(dtype, shape, x_strides, 1), strided(dtype, shape, y_strides, 2)
        assert run("add", x, y, out=dtype).tobytes() == (x + y).tobytes()
        condition = strided("bool", shape, x_strides, 3)
        assert run("where", condition, x, y, out=dtype).tobytes() == np.where(condition, x, y).tobytes()
    assert run("equal", x, y, out="bool").tobytes() == (x == y).tobytes()


@settings(max_examples=250, database=None, phases=[Phase.generate, Phase.shrink], derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.data())
def test_any_layout(interpreter: Interpreter, data: st.DataObject) -> None:
    """Views of every kind, into results of the library's layout and into targets of any."""
    shape = data.draw(shapes().filter(lambda shape: 0 not in shape))
    flat = quarters("int16", 4000, 4)
    x, y = (data.draw(views(shape)).of_numpy(flat) for _ in range(2))
    out = data.draw(st.none() | views(shape, writable=True))
    target = None if out is None else out.of_numpy(np.zeros(4000, np.int16))
    index_bits = data.draw(st.sampled_from([32, 64]))
    assert (interpreter.call("add", x, y, out=target, index_bits=index_bits, tile=SMALLER) == x + y).all()


# --- the ends of the index types ------------------------------------------------------------------------------------


def programs_of(kernel: Kernel) -> int:
    block = kernel.source.tile.columns
    return -(-math.prod(kernel.loop.shape) // block)


@pytest.mark.parametrize("size", [2**31 - 1, 2**31 - 1023, 2**31 - 1024, 2**31, 2**31 + 5, 2**33 + 1])
def test_flat_blocks_at_the_end_of_int32(size: int, interpreter: Interpreter) -> None:
    """``start + BLOCK`` may reach 2**31, which is negative as an int32."""
    kernel = flat_kernel("add", "int8", "int8")
    kernel = kernel_for(body_for("add", ["int8", "int8"]), (size,), [(1,), (1,), (1,)])
    assert kernel.spec.index_bits == (32 if size < 2**31 else 64)
    block, last = kernel.source.tile.columns, programs_of(kernel) - 1
    expected = [*range(block), *range(last * block, size)]
    assert interpreter.trace(kernel, [0, last]) == [expected] * 3


@pytest.mark.parametrize(
    ("rows", "columns"), [(2, 2**30 - 1), (65535, 32768), (2**16, 2**15), (3, 2**30), (2**22, 511)]
)
def test_lookup_at_the_end_of_int32(rows: int, columns: int, interpreter: Interpreter) -> None:
    kernel = kernel_for(body_for("add", ["int8", "int8"]), (rows, columns), [(columns, 1), (0, 1), (1, 0)])
    assert kernel.spec.case == "lookup"
    block, last = kernel.source.tile.columns, programs_of(kernel) - 1
    out, row, column = interpreter.trace(kernel, [last])
    places = range(last * block, rows * columns)
    assert out == list(places)
    assert row == sorted({place % columns for place in places})
    assert column == sorted({place // columns for place in places})


@pytest.mark.parametrize("stride", [1, 2**30 - 1, 2**30, -(2**30), 2**31 - 1, 2**31, -(2**32) - 1])
@pytest.mark.parametrize("dtype", ["int8", "complex64", "complex128"])
def test_strides_at_the_end_of_int32(stride: int, dtype: str, interpreter: Interpreter) -> None:
    """A complex128 lies at twice its index in units of float64, which an int32 may not hold."""
    one_axis = kernel_for(body_for("positive" if dtype != "bool" else "identity", [dtype]), (2,), [(1,), (stride,)])
    assert interpreter.trace(one_axis, [0]) == [[0, 1], sorted([0, stride])]
    two_axes = kernel_for(body_for("positive", [dtype]), (2, 40), [(40, 1), (stride, 41)])
    expected = sorted(row * stride + 41 * column for row in range(2) for column in range(40))
    found: set[int] = set()
    for program in range(2 * 40):
        if program < -(-2 // two_axes.source.tile.rows) * -(-40 // two_axes.source.tile.columns):
            found |= set(interpreter.trace(two_axes, [program])[1])
    assert sorted(found) == expected
    three_axes = kernel_for(body_for("positive", [dtype]), (2, 3, 5), [(15, 5, 1), (stride, 1, 3)])
    expected = sorted({stride * i + j + 3 * k for i in range(2) for j in range(3) for k in range(5)})
    if three_axes.spec.rank == 3:
        assert interpreter.trace(three_axes, [0, 1])[1] == expected


# --- that a wrong kernel is seen ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (", mask=inside", "", "reads where no element is"),
        ("index < n0", "index < n0 - 1", "does not write each element once"),
        ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK - 1)", "does not write each element once"),
        ("x1 + index", "x1 + index * 2", "reads where no element is"),
    ],
)
def test_a_wrong_kernel_is_seen(right: str, wrong: str, message: str, interpreter: Interpreter) -> None:
    x = quarters("float32", 5000, 0)
    call = planned("add", x, x)
    source = call.kernel.source
    assert right in source.text
    broken = source._replace(text=source.text.replace(right, wrong))
    with pytest.raises(Fault, match=message):
        interpreter.run(call._replace(kernel=call.kernel._replace(source=broken)))


# --- operations -----------------------------------------------------------------------------------------------------

LIBDEVICE = ("exp", "log", "sin", "tanh")
NOT_YET = [("sqrt", "complex64"), ("sqrt", "complex128")]


def computed_here(name: str, dtype: str) -> bool:
    """Whether the kernel's text alone decides the value."""
    if name in LIBDEVICE or (name, dtype) in NOT_YET:
        return False
    return name != "pow" or kind_of(dtype) == "int"


OPERATIONS = [
    (name, dtype, semantics)
    for name in RULES
    for dtype in accepted(name)
    for semantics in ("array-api", "triton")
    if computed_here(name, dtype) and (semantics == "array-api" or (name in TRUNCATING and kind_of(dtype) == "int"))
]  # fmt: skip


def hurtful(dtype: str, count: int) -> np.ndarray:
    """At most so many of the values that hurt, none twice."""
    found = pool(dtype)[:32768]
    _, first = np.unique(found.view(f"V{found.itemsize}"), return_index=True)
    found = found[np.sort(first)]
    return found if found.size <= count else found[np.random.default_rng(count).permutation(found.size)[:count]]


def columns_for(name: str, dtype: str) -> list[np.ndarray]:
    """Operands: the values that hurt in every combination, and values at random."""
    rule, rng = RULES[name], np.random.default_rng(3)
    arity = rule.arity - rule.masks
    values = hurtful(dtype, {1: 4096, 2: 100, 3: 16}[arity])
    places = np.meshgrid(*[np.arange(values.size)] * arity, indexing="ij")
    more = [pool(dtype)[32768 + rng.permutation(32768)[:1500]] for _ in range(arity)]
    columns = [np.concatenate([values[place.ravel()], extra]) for place, extra in zip(places, more, strict=True)]
    return [np.arange(columns[0].size) % 3 == 0] * rule.masks + columns


@pytest.mark.parametrize(("name", "dtype", "semantics"), OPERATIONS)
def test_operation(name: str, dtype: str, semantics: str, interpreter: Interpreter) -> None:
    columns = columns_for(name, dtype)
    got = interpreter.call(name, *columns, semantics=semantics)
    outcome = predict(name, [Operand(column.dtype.name, exact(column)) for column in columns], semantics)
    assert got.dtype == dtype_of(outcome.dtype)
    assert disagreements(exact(got), outcome) == []


def test_every_row_of_the_table_is_tested_or_named() -> None:
    """What is not run here is libdevice's, checked on a GPU, or not there yet."""
    left_out = {(name, dtype) for name in RULES for dtype in accepted(name)} - {(name, d) for name, d, _ in OPERATIONS}
    assert left_out - set(NOT_YET) == {
        (name, dtype)
        for name in (*LIBDEVICE, "pow")
        for dtype in accepted(name)
        if name in LIBDEVICE or kind_of(dtype) != "int"
    }


MIXED = [
    ("int8", "uint8"),
    ("uint64", "int64"),
    ("int16", "uint64"),
    ("uint64", "int8"),
    ("bool", "uint64"),
    ("uint32", "int32"),
]


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtypes", MIXED)
def test_integers_of_mixed_signedness_compare_as_numbers(
    name: str, dtypes: tuple[str, str], interpreter: Interpreter
) -> None:
    x, y = (hurtful(dtype, 80) for dtype in dtypes)
    columns = [np.repeat(x, y.size), np.tile(y, x.size)]
    got = interpreter.call(name, *columns)
    outcome = predict(name, [Operand(column.dtype.name, exact(column)) for column in columns], "array-api")
    assert disagreements(exact(got), outcome) == []


PROMOTED = [("float16", "bfloat16"), ("float16", "float32"), ("int32", "float16"), ("float8_e5m2", "float8_e4m3fn"),
            ("uint8", "int8"), ("bool", "float64"), ("float64", "complex64"), ("int64", "bfloat16"), ("int64", "float8_e5m2")]  # fmt: skip


@pytest.mark.parametrize("dtypes", PROMOTED)
@pytest.mark.parametrize("semantics", ["array-api", "triton"])
def test_operands_are_rounded_to_the_common_dtype_first(
    dtypes: tuple[str, str], semantics: str, interpreter: Interpreter
) -> None:
    columns = [np.repeat(hurtful(dtypes[0], 60), 60), np.tile(hurtful(dtypes[1], 60), 60)]
    columns[0], columns[1] = (column[: min(map(len, columns))] for column in columns)
    got = interpreter.call("add", *columns, semantics=semantics)
    outcome = predict("add", [Operand(column.dtype.name, exact(column)) for column in columns], semantics)
    assert got.dtype == dtype_of(outcome.dtype)
    assert disagreements(exact(got), outcome) == []


@pytest.mark.parametrize("dtype", ARITHMETIC)
def test_numbers(dtype: str, interpreter: Interpreter) -> None:
    """A Python number is an argument of the kernel, rounded once to the dtype that the semantics give it."""
    x = hurtful(dtype, 20)
    ran = 0
    for number in NUMBERS:
        operands = [Operand(dtype, exact(x)), Operand(None, [number] * x.size, number)]
        outcome = predict("add", operands, "array-api")
        if not outcome.errors:
            got = interpreter.call("add", x, number)
            assert got.dtype == dtype_of(outcome.dtype)
            assert disagreements(exact(got), outcome) == [], number
            ran += 1
    assert ran >= 20


# --- casts ----------------------------------------------------------------------------------------------------------


def near_midpoints(source: str, target: str) -> list[np.ndarray]:
    """Values of a float halfway between two of a narrower one, and beside it."""
    dtype, rng = dtype_of(target), np.random.default_rng(1)
    half = 2 ** (width_of(target) - 1)
    codes = (
        np.arange(half - 1) if half <= 128 else np.unique(np.concatenate([np.arange(99), rng.integers(0, half, 2000)]))
    )
    unsigned = np.dtype(f"u{dtype.itemsize}")
    with np.errstate(all="ignore"):
        below, above = (code.astype(unsigned).view(dtype).astype(np.float64) for code in (codes, codes + 1))
        middle = (below + above) / 2
        middle = np.concatenate([middle, -middle, below])[: 3 * codes.size]
        beside = [middle.astype(dtype_of(source))]
        if source in ("float32", "float64"):
            beside += [np.nextafter(beside[0], np.array(end, source)) for end in (math.inf, -math.inf)]
        if source == "float64":  # nearer to the middle than float32 can tell
            beside += [middle * (1 + tiny) for tiny in (2.0**-52, 2.0**-40, -(2.0**-30), 2.0**-26, -(2.0**-25))]
    return beside


def integers_near_midpoints(source: str, target: str) -> np.ndarray:
    """Integers halfway between two values of a float, and one off."""
    low, high = limits_of(source)
    precision, rng = FORMATS[target].precision, random.Random(5)
    found = []
    for length in range(precision + 1, width_of(source) + 1):
        for _ in range(12):
            value = (rng.getrandbits(precision - 1) | 1 << (precision - 1)) << (length - precision)
            value += 1 << (length - precision - 1)
            found += [sign * (value + off) for off in (-1, 0, 1) for sign in (1, -1)]
    return np.array([value for value in found if low <= value <= high], source)


def near_limits(source: str, target: str) -> np.ndarray:
    """Floats at the ends of an integer's range, and at 0 and -1."""
    low, high = limits_of(target)
    ends = [float(Fraction(end) + Fraction(off, 2)) for end in (low, high, 0) for off in range(-4, 5)]
    with np.errstate(all="ignore"):
        found = np.array([*ends, math.inf, -math.inf, math.nan, -5e-324], np.float64).astype(dtype_of(source))
        if source not in ("float32", "float64"):
            return found
        return np.concatenate([found, *[np.nextafter(found, np.array(end, source)) for end in (math.inf, -math.inf)]])


def to_cast(source: str, target: str) -> np.ndarray:
    """Values that hurt, values at random, and those that this pair is most likely to get wrong."""
    parts = [hurtful(source, 6000), pool(source)[-4000:]]
    kinds = kind_of(source), kind_of(target)
    if kinds == ("float", "float") and width_of(target) < width_of(source):
        parts += near_midpoints(source, target)
    elif kinds == ("int", "float"):
        parts.append(integers_near_midpoints(source, target))
    elif kinds == ("float", "int"):
        parts.append(near_limits(source, target))
    return np.concatenate(parts)


@pytest.mark.parametrize("target", ARITHMETIC)
@pytest.mark.parametrize("source", ARITHMETIC)
def test_cast(source: str, target: str, interpreter: Interpreter) -> None:
    """Every cast rounds once; float to integer saturates; the same values as the rules give, and NaN for NaN."""
    x = to_cast(source, target)
    outcome = predict_astype(Operand(source, exact(x)), target)
    if outcome.errors:
        assert (kind_of(source), kind_of(target) in ("complex", "bool")) == ("complex", False)
        return
    assert disagreements(exact(interpreter.call("astype", x, out=target)), outcome) == []


@pytest.mark.parametrize("target", ["float8_e4m3fn", "float8_e5m2"])
def test_every_float16_and_many_float32_to_8_bits(target: str, interpreter: Interpreter) -> None:
    """All 65536 float16, and float32 of every exponent with random significands."""
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    words = np.random.default_rng(8).integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    narrow = np.random.default_rng(9).uniform(-20, 17, 100_000)
    for x in (halves, words, np.exp2(narrow).astype(np.float32)):
        outcome = predict_astype(Operand(x.dtype.name, exact(x)), target)
        assert disagreements(exact(interpreter.call("astype", x, out=target)), outcome) == []


# --- device functions, called directly ------------------------------------------------------------------------------


def calling(template: str, inputs: list[str], returns: str) -> Body:
    """A body that calls an expression on its inputs."""
    nodes = [("input", position) for position in range(len(inputs))]
    call = ("call", "probe", tuple(range(len(inputs))), returns, template)
    kinds = tuple(("array", name) for name in inputs)
    return Body(kinds, (*nodes, call), (len(inputs),), (returns,), (None,) * len(inputs), dtype_of(returns))


def rounded_to_odd(value: Fraction, precision: int, lowest: int, largest: float) -> float:
    """The float toward zero, its last bit set if anything was lost; in exact arithmetic."""
    magnitude = abs(value)
    if not magnitude:
        return 0.0
    exponent = max(math.frexp(float(magnitude))[1] - precision, lowest)
    while magnitude >= Fraction(2) ** (exponent + precision):  # float() had rounded up
        exponent += 1
    while exponent > lowest and magnitude < Fraction(2) ** (exponent + precision - 1):
        exponent -= 1
    steps = magnitude / Fraction(2) ** exponent
    odd = steps.numerator // steps.denominator | (steps.denominator != 1)
    return math.copysign(min(float(odd * Fraction(2) ** exponent), largest), value)


def test_float64_rounded_to_odd_as_float32(interpreter: Interpreter) -> None:
    x = np.concatenate([hurtful("float64", 6000), pool("float64")[-9000:], *near_midpoints("float64", "bfloat16")])
    got = interpreter.call(calling("odd_float32({x})", ["float64"], "float32"), x).astype(np.float64)
    finite = np.isfinite(x)
    expected = [rounded_to_odd(Fraction(value), 24, -149, FORMATS["float32"].largest) for value in x[finite].tolist()]
    assert got[finite].tolist() == expected
    np.testing.assert_array_equal(got[~finite], x[~finite])
    assert (np.signbit(got) == np.signbit(x))[~np.isnan(x)].all()


@pytest.mark.parametrize("source", ["int64", "uint64"])
def test_integers_rounded_to_odd_as_float64(source: str, interpreter: Interpreter) -> None:
    """Beyond 2**53 the last 11 bits become one that says whether any was set, which is all a float32 has to know."""
    low, high = limits_of(source)
    edges = [
        sign * 2**power + off for power in range(64) for off in (-2049, -1, 0, 1, 1023, 2047, 2048) for sign in (1, -1)
    ]
    x = np.concatenate([np.array([edge for edge in edges if low <= edge <= high], source), pool(source)[-9000:]])
    kind = "int" if source == "int64" else "uint"
    got = interpreter.call(calling(f"odd_float64_{kind}({{x}})", [source], "float64"), x).tolist()
    for value, found in zip(x.tolist(), got, strict=True):
        expected = value if abs(value) < 2**53 else (value // 2048 | (value % 2048 != 0)) * 2048
        assert Fraction(found) == expected


@pytest.mark.parametrize(("dtype", "mantissa", "bias", "largest", "infinity"),
                         [("float8_e4m3fn", 3, 7, "0x7E", -1), ("float8_e5m2", 2, 15, "0x7B", "0x7C")])  # fmt: skip
def test_all_codes_of_8_bits_are_read(
    dtype: str, mantissa: int, bias: int, largest: str, infinity: str, interpreter: Interpreter
) -> None:
    """The function of the device, on bytes; its value is what ml_dtypes says of the code."""
    codes = np.arange(256).astype(np.uint8)
    template = f"bits8_to_float32({{x}}, {mantissa}, {bias}, {largest}, {infinity})"
    got = interpreter.call(calling(template, ["uint8"], "float32"), codes)
    expected = codes.view(dtype_of(dtype)).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    assert (np.signbit(got) == np.signbit(expected)).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_round_each_operation(dtype: str, interpreter: Interpreter) -> None:
    """Two products and a sum, each rounded: nothing is contracted, and infinities and NaN are what that gives."""
    values = hurtful(dtype, 120)
    x, y = np.repeat(values, values.size), np.tile(values, values.size)
    with np.errstate(all="ignore"):
        real = x.real * y.real - x.imag * y.imag
        imag = x.real * y.imag + x.imag * y.real
        square = (x.real - x.imag) * (x.real + x.imag)
    got = interpreter.call("multiply", x, y)
    np.testing.assert_array_equal(got.real, real)
    np.testing.assert_array_equal(got.imag, imag)
    np.testing.assert_array_equal(interpreter.call("square", x).real, square)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients(dtype: str, interpreter: Interpreter) -> None:
    """Within 4 eps of the modulus where nothing overflows; by zero as NumPy divides."""
    part = np.float32 if dtype == "complex64" else np.float64
    rng, eps = np.random.default_rng(0), np.finfo(part).eps
    size = rng.choice([1e-6, 1.0, 1e6], (4, 20_000)) * rng.uniform(-1, 1, (4, 20_000))
    x, y = ((size[k] + 1j * size[k + 1]).astype(dtype) for k in (0, 2))
    got = interpreter.call("divide", x, y)
    wide = np.clongdouble(x) / np.clongdouble(y)
    assert (abs(got - wide) <= 4 * eps * abs(wide)).all()
    zeros = np.array([1 + 2j, -1 + 0j, 0j, complex(math.inf, 1), complex(math.nan, 0)], dtype)
    with np.errstate(all="ignore"):
        expected = zeros / np.zeros(5, dtype)
    np.testing.assert_array_equal(interpreter.call("divide", zeros, np.zeros(5, dtype)), expected)
