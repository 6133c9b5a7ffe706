"""Generated sources: that they read well, that they are complete, and that they depend on nothing but the spec."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.drawing import accepted, shapes, views
from support.interpreter.run import planned
from support.kernels import Kernel, body_for, flat_kernel, kernel_for, operands_of
from support.oracles.formats import ARITHMETIC, STORAGE, dtype_of, width_of
from support.oracles.rules import RULES, TRUNCATING
from support.processes import in_fresh_python
from support.random_sources import all_sources as draw_sources
from support.raw_kernels import low_precision_sources, rounding_sources
from support.reduction_sources import all_sources
from support.reduction_sources import sources as reduction_sources
from support.row_sources import source as row_source
from support.scan_sources import all_sources as scan_sources
from support.sort_sources import sort_sources

import tilearray as ta
from tilearray import ops
from tilearray.errors import TileArrayError
from tilearray.fft.device_fourier import _hermitian, _hermitian_mean, _multiplied
from tilearray.functions.binary_search import _dividing, _searching_in_buckets, _starting, searching
from tilearray.functions.indexing.gather import gathering
from tilearray.functions.indexing.scatter import scattering
from tilearray.geometry.loop import make_loop
from tilearray_cuda.kernels.casts import UnsupportedCastError
from tilearray_cuda.kernels.narrow import OF_BFLOAT16
from tilearray_cuda.kernels.schedules import choose
from tilearray_cuda.kernels.schedules.choose import loop_class
from tilearray_cuda.kernels.schedules.extents import NARROW
from tilearray_cuda.kernels.schedules.lookup import Lookup
from tilearray_cuda.kernels.source import DEVICE_FILES, _device_functions, generate
from tilearray_cuda.kernels.spec import make_spec

# --- what a reader sees ---------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).with_name("golden_sources.txt")
"""Whole sources, each below its name; TILEARRAY_GOLDEN=write writes the file anew, and its difference is reviewed."""


def golden_kernels() -> dict[str, Kernel]:
    """A kernel of each kind of loop."""
    add = body_for("add", ["float32"] * 2)
    select = body_for("where", ["bool", "float32", 1.5])
    backwards = [(4096, 1), (1, 4096), (0, -1)]
    return {
        "flat": flat_kernel("add", "float16", "float32"),
        "tile of 3 axes": kernel_for(add, (40, 5, 70), [(350, 70, 1), (350, 70, 1), (1, 40, 200)]),
        "wide row and column": kernel_for(add, (40, 600), [(600, 1), (0, 1), (1, 0)]),
        "narrow row and column": kernel_for(add, (40, 60), [(60, 1), (0, 1), (1, 0)]),
        "selection, unaligned, of 64 bits": kernel_for(
            select, (4096, 4096), backwards, aligned=(True, False, True), index_bits=64
        ),
    }


def test_whole_sources() -> None:
    text = "".join(f"=== {name}\n{kernel.source.text}" for name, kernel in golden_kernels().items())
    if os.environ.get("TILEARRAY_GOLDEN") == "write":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def all_calls() -> list[tuple[str, str, str]]:
    """Every operation on every dtype that kernels compute, under both divisions of integers."""
    return [
        (name, dtype, semantics)
        for name in RULES
        for dtype in accepted(name)
        for semantics in ("array-api", "triton")
        if dtype in ARITHMETIC and (semantics == "array-api" or name in TRUNCATING)
    ]


def kernel_of(name: str, dtype: str, semantics: str = "array-api") -> Kernel | None:
    """The flat kernel of a call, unless the call is refused, or not there yet."""
    try:
        return flat_kernel(name, *operands_of(name, dtype), semantics=semantics)
    except (TileArrayError, NotImplementedError):
        return None


@pytest.mark.parametrize("name", [row.name for row in ops.PUBLIC.values()])
def test_the_expression_of_the_table_is_in_the_source(name: str) -> None:
    """With the operands' names in it, once in each branch."""
    row, seen = ops.PUBLIC[name], 0
    for dtype in accepted(name):
        kernel = kernel_of(name, dtype)
        if kernel is None:
            continue
        (call,) = [node for node in kernel.spec.nodes if node[0] == "call"]
        assert call[4] in row.triton.values()
        if dtype.startswith("complex"):
            continue
        names = dict(zip("xyzw", (f"v{argument}" for argument in call[2]), strict=False))
        is_narrow = (dtype, call[3]) == ("bfloat16", "float32")
        template = OF_BFLOAT16.get(call[4], call[4]) if is_narrow else call[4]
        expression = f"v{kernel.spec.nodes.index(call)} = {template.format(**names, width=width_of(dtype))}\n"
        assert kernel.source.text.count(expression) == 2, expression
        seen += 1
    assert seen


# --- completeness ---------------------------------------------------------------------------------------------------


def undefined_names(text: str) -> set[str]:
    """Names that are read in a source and bound nowhere in it."""
    bound, read = {"triton", "tl", "libdevice", "range", "float"}, set[str]()
    for function in re.split(r"^(?=@)", text, flags=re.MULTILINE):
        its_bound, its_read = names_of(function)
        bound |= its_bound
        read |= its_read
    return read - bound


@cache
def names_of(text: str) -> tuple[set[str], set[str]]:
    """Names that a part of a source binds, and those in it; once for each function, which many kernels share."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return bound, {name.id for name in names}


def test_sources_are_complete_and_device_functions_are_used() -> None:
    """Every function that a kernel calls is in its source; no function is in no source."""
    kernels = [kernel_of(*call) for call in all_calls()]
    for source in ARITHMETIC:
        for target in ARITHMETIC:
            if not source.startswith("complex") or target.startswith("complex") or target == "bool":
                kernels.append(flat_kernel("astype", source, out=target))
    for dtype in STORAGE:
        kernels += [flat_kernel("astype", dtype, out="float32"), flat_kernel("astype", "float32", out=dtype)]
    kernels.append(flat_kernel("less", "int64", "uint64"))
    for dtype in ("float32", "bfloat16"):
        kernels.append(kernel_for(body_for("pow", (dtype, 3)), (1000,), [(1,), (1,)]))
    for dtype in ("int8", "complex128"):
        kernels.append(kernel_for(body_for("add", [dtype] * 2), (64, 64), [(64, 1), (64, 1), (1, 64)]))
    kernels.append(flat_kernel("add", "int8", "int8", aligned=False))
    kernels.append(kernel_for(body_for("subtract", ["int8"] * 2), (64, 4095), [(4095, 1), (1, 0), (0, 1)]))
    kernels.append(kernel_for(body_for("add", ["int8"] * 2), (1151, 1151), [(1151, 1), (1151, 1), (1, 1151)]))
    kernels.append(kernel_for(body_for("identity", ["float32"]), (1151, 1151), [(1151, 1), (1, 1151)]))
    for out in ((320_000, 800, 1), (307_200, 768, 1)):
        kernels.append(kernel_for(body_for("identity", ["complex128"]), (900, 400, out[1]), [out, (1, 900, 360_000)]))
    kernels.append(
        kernel_for(gathering(dtype_of("float32"), (dtype_of("int64"),), True).graph, (1000,), [(1,), (0,), (1,), (0,)])
    )
    for how in ("maximum", "minimum"):
        combined = scattering(dtype_of("float32"), False, how).graph
        kernels.append(kernel_for(combined, (1000,), [(0,), (1,), (1,)]))
    kernels.append(kernel_for(scattering(dtype_of("int64"), True, "count").graph, (1000,), [(0,), (1,)]))
    for side in ("left", "right"):
        kernels.append(kernel_for(searching(dtype_of("float32"), side).graph, (1000,), [(1,), (0,), (1,)]))
    kernels.append(kernel_for(_dividing(dtype_of("float32")).graph, (1,), [(1,), (0,)]))
    kernels.append(kernel_for(_starting(dtype_of("int8")).graph, (257,), [(1,), (0,), (0,)]))
    in_buckets = _searching_in_buckets(dtype_of("int8"), "left").graph
    kernels.append(kernel_for(in_buckets, (1000,), [(1,), (0,), (0,), (0,), (1,)]))
    complex64 = dtype_of("complex64")
    kernels.append(kernel_for(_hermitian(complex64).graph, (1000,), [(1,), (1,), (0,)]))
    kernels.append(kernel_for(_hermitian_mean(complex64).graph, (1000,), [(1,)] * 3))
    kernels.append(kernel_for(_multiplied(complex64).graph, (1000,), [(1,)] * 2))
    used: set[str] = set()
    written = [kernel.source for kernel in kernels if kernel is not None]
    written += [*rounding_sources(), *low_precision_sources(), row_source("softmax", "float32", (3000, 100), axis=0)]
    for source in [*written, *all_sources(), *scan_sources(), *draw_sources(), *sort_sources()]:
        assert undefined_names(source.text) == set()
        defined = re.findall(r"^def (\w+)", source.text, re.MULTILINE)
        assert defined[-1] == source.name
        assert len(set(defined)) == len(defined)
        used |= set(defined)
    for dtype in ("float32", "bfloat16", "float16"):
        used |= set(re.findall(r"^def (\w+)", _source_of_norm(dtype), re.MULTILINE))
    assert _device_functions().keys() - used == set()


def _source_of_norm(dtype: str) -> str:
    """The source of a fused function that divides rows by numbers."""
    x = ta.empty((8192, 4096), dtype=dtype, device="cpu")
    (launch,) = ta.explain(ta.fuse(lambda x: x / ta.max(x, axis=1)[:, None]), x, arch=90).launches
    assert undefined_names(launch.kernel.source) == set()
    return launch.kernel.source


def test_each_tile_is_taken_once_in_turn() -> None:
    """And neighbours a part apart, as nearly as whole tiles allow."""
    names: dict[str, Any] = {"tl": SimpleNamespace(constexpr=int, minimum=min)}
    exec(_device_functions()["tile_in_turn"], names)
    for parts in (2, 8):
        for count in range(1, 70):
            tiles = [names["tile_in_turn"](number, count, parts) for number in range(count)]
            assert sorted(tiles) == list(range(count))
            turns = [second - first for first, second in pairwise(tiles) if second > first]
            assert count < parts or {*turns} <= {count // parts, count // parts + 1}


def test_rows_of_aligned_tiles_of_8_and_16_bytes_are_taken_in_turn() -> None:
    for dtype, parts in (("float32", 0), ("float64", 2), ("complex128", 8)):
        for pitch in (1024, 1023):
            kernel = kernel_for(body_for("identity", [dtype]), (1024, 1024), [(pitch, 1), (1, pitch)])
            taken = re.findall(r"tile_in_turn\([^\n]*, (\d)\)", kernel.source.text)
            assert taken == [str(parts)] * (pitch == 1024 and parts > 0)


def test_device_functions_are_read_whole() -> None:
    found: dict[str, str | None] = {}
    for name in DEVICE_FILES:
        text = (files("tilearray_cuda.kernels.library") / name).read_text()
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        assert found.keys().isdisjoint(node.name for node in functions), "kernels know a function by its name alone"
        found |= {node.name: ast.get_source_segment(text, node) for node in functions}
    assert _device_functions() == found


def test_only_the_functions_that_are_called_are_copied() -> None:
    assert re.findall(r"def (\w+)", flat_kernel("add", "int32", "int32").source.text) == ["add_flat"]
    text = flat_kernel("astype", "int64", out="float8_e5m2").source.text
    assert re.findall(r"def (\w+)", text) == [
        *("odd_float32", "odd_float64_int", "converted_to_8_bits", "float32_to_e5m2", "copy_flat")
    ]


@pytest.mark.parametrize("numbers", [("float32", 1.5), ("complex64", 2), ("bool", True), ("float8_e4m3fn", 0.5)])
def test_arguments_are_the_parameters_in_their_order(numbers: tuple[Any, ...]) -> None:
    kernel = kernel_for(body_for("add", numbers), (6, 50, 70), [(3500, 70, 1), (1, 6, 300)])
    function = ast.parse(kernel.source.text).body[-1]
    assert isinstance(function, ast.FunctionDef)
    names = [argument.name for argument in kernel.source.arguments] + [name for name, _ in kernel.source.constants]
    assert [argument.arg for argument in function.args.args] == names


# --- purity ---------------------------------------------------------------------------------------------------------


def test_generating_needs_no_triton_no_numpy_and_no_tilearray() -> None:
    """The generator sees the spec alone, and gives the same text in any process."""
    kernel = kernel_for(body_for("floor_divide", ["int64", 3]), (6, 50, 70), [(3500, 70, 1), (1, 6, 300)])
    code = f"""
import json, sys
from tilearray_cuda.kernels.spec import KernelSpec, Operand
from tilearray_cuda.kernels.schedules.tile import TileFacts
from tilearray_cuda.kernels.source import generate
spec = {kernel.spec!r}
first, second = generate(spec, 90), generate(spec, 90)
modules = sorted(name.partition(".")[0] for name in sys.modules)
print(json.dumps([first.text, first == second, modules]))
"""
    text, same, modules = json.loads(in_fresh_python(code))
    assert same
    assert text == kernel.source.text
    assert not {"triton", "numpy", "ml_dtypes", "tilearray", "tilearray_host", "cuda"} & set(modules)


def test_specs_are_frozen_hashable_and_equal() -> None:
    one, two = (flat_kernel("add", "float32", "float32").spec for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, flat_kernel("add", "float32", "float64").spec}) == 2
    with pytest.raises(AttributeError):
        one.case = "tile"  # type: ignore[misc]


def test_shapes_make_no_sources() -> None:
    """1000 random shapes of one op have no more sources than layout classes, and those are few."""
    rng = random.Random(7)
    body = body_for("add", ["float32", "float32"])
    classes, texts = set(), set()
    for _ in range(1000):
        shape = tuple(rng.randint(1, 3000) for _ in range(rng.randint(1, 4)))
        order = list(range(len(shape)))
        rng.shuffle(order)
        strides = [0] * len(shape)
        step = 1
        for axis in order:
            strides[axis] = step * rng.choice([1, 1, 1, 0])
            step *= shape[axis] + rng.choice([0, 0, 16])
        dense = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        loop = make_loop(shape, [tuple(dense), tuple(dense), tuple(strides)])
        classes.add(loop_class(loop))
        texts.add(generate(make_spec(body, loop_class(loop), (True,) * 3), 90).text)
    assert len(texts) < 200
    assert len(texts) < len(classes) < 300


def test_shapes_of_a_reduction_make_no_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """1000 random shapes, reduced along random axes, have no more sources than classes of loops, and those are few."""
    rng, texts, classes = random.Random(7), set[str](), set[object]()
    class_of = choose.loop_class
    monkeypatch.setattr(choose, "loop_class", lambda loop: classes.add(class_of(loop)) or class_of(loop))
    for _ in range(1000):
        shape = [round(math.exp(rng.uniform(0, 8))) for _ in range(rng.randint(1, 4))]
        axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
        texts.update(source.text for source in reduction_sources("sum", "float32", shape, sorted(axes)))
    assert len(texts) < 220
    assert len(texts) < len(classes) < 350


def test_the_text_says_all_that_the_compiler_is_told() -> None:
    """It is the key of the cubin cache: equal texts must have equal arguments, constants and warps."""
    told: dict[str, Any] = {}
    layouts = [
        ((5000,), [(1,), (1,), (1,)]),
        ((5000,), [(2,), (1,), (-3,)]),
        ((64, 64), [(64, 1), (64, 1), (0, 1)]),
        ((640, 640), [(640, 1), (1, 0), (0, 1)]),
        ((64, 64), [(64, 1), (64, 1), (1, 64)]),
        ((65, 67), [(67, 1), (67, 1), (1, 65)]),
        ((64, 640), [(640, 1), (656, 1), (1280, 2)]),
        ((16, 32, 48), [(1536, 48, 1), (1, 16, 512), (48, 1, 768)]),
        ((64, 40, 900), [(36000, 900, 1), (36000, 900, 1), (1, 64, 2560)]),
        ((900, 400, 800), [(320_000, 800, 1), (1, 900, 360_000), (320_000, 800, 1)]),
    ]
    count = 0
    for dtype in ("int8", "uint8", "float8_e5m2", "bool", "float16", "float32", "uint64", "complex64", "complex128"):
        for second in (dtype, 1):
            body = body_for("add", [dtype, second])
            for shape, strides in layouts:
                strides = strides if second == dtype else strides[:2]
                for aligned in (True, False):
                    for index_bits in (32, 64):
                        for arch in (80, 90):
                            options = {"aligned": aligned, "index_bits": index_bits, "arch": arch}
                            source = kernel_for(body, shape, strides, **options).source
                            known = (source.name, source.arguments, source.constants, source.tile.warps)
                            assert told.setdefault(source.text, known) == known
                            count += 1
    assert count > len(told) > 300


# --- what the compiler is told is true ------------------------------------------------------------------------------


def check_claims(kernel: Kernel) -> int:
    """Arguments that are said to be multiples of something are. Returns how many were said to be."""
    values = {name: kernel.loop.strides[position][axis] for name, position, axis in kernel.schedule.open_strides()}
    values |= {f"n{axis}": extent for axis, extent in enumerate(kernel.loop.shape)}
    claimed = [argument for argument in kernel.source.arguments if argument.divisor > 1 and argument.name in values]
    for name, _, divisor in claimed:
        assert values[name] % divisor == 0, f"{name} = {values[name]}"
    known = [(known, real) for o, s in zip(kernel.spec.arrays, kernel.loop.strides, strict=True)
             for known, real in zip(o.strides or (), s[-2:], strict=True)]  # fmt: skip
    extent = kernel.loop.shape[-1]
    assert all((extent if known == "extent" else known) == real for known, real in known if known != "other")
    return len(claimed)


@settings(max_examples=300, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_strides_said_to_be_multiples_of_16_are(data: st.DataObject) -> None:
    shape = data.draw(shapes().filter(lambda shape: 0 not in shape))
    flat = np.zeros(4000, np.int8)
    x, y = (data.draw(views(shape)).of_numpy(flat) for _ in range(2))
    check_claims(planned("add", x, y).kernel)


def test_pitches_of_16_are_said_to_be() -> None:
    """With an overlapping window, whose outer stride is 1, nothing is claimed: its rows are misaligned."""
    body = body_for("add", ["float32"] * 2)
    dense = (131072, 2048, 1)
    assert check_claims(kernel_for(body, (16, 64, 2048), [dense, (200000, 3008, 1), dense])) == 6
    assert check_claims(kernel_for(body, (16, 64, 2048), [dense, (1, 5008, 1), dense])) == 0
    assert check_claims(kernel_for(body, (64, 64, 64), [(4096, 64, 1), (1, 64, 4096), (64, 1, 4096)])) > 0
    turned, copy = (1, 901, 360_448), body_for("identity", ["float32"])
    copies = [kernel_for(copy, (901, 400, n), [(400 * n, n, 1), turned]) for n in (800, 768)]
    assert [kernel.skewed_columns for kernel in copies] == [256, 256]
    assert [check_claims(kernel) for kernel in copies] == [3, 2], "the result's pitches, and columns of two axes"


def test_a_block_is_no_longer_than_a_row_that_is_not_narrow() -> None:
    """What the lookup of a row or column relies on: a block reaches into the next row at most."""
    for dtype in ARITHMETIC:
        for arch in (80, 90, 100, 120):
            strides = [(NARROW, 1), (NARROW, 1), (0, 1)]
            kernel = kernel_for(body_for("add", [dtype, dtype]), (100, NARROW), strides, arch=arch)
            assert isinstance(kernel.schedule, Lookup)
            assert kernel.schedule.longest == NARROW
            assert kernel.source.tile.columns <= NARROW


# --- what is not there ----------------------------------------------------------------------------------------------


def test_a_call_without_an_expression_says_what_to_do() -> None:
    """Every row of the table has a kernel for each dtype that it accepts; a row of a user may have none."""
    body = body_for("exp", ["complex64"])
    bare = replace(body, nodes=tuple((*node[:4], None) if node[0] == "call" else node for node in body.nodes))
    message = r"exp: not on cuda for complex64 yet; compute on the host, x\.to_device\('cpu'\)"
    with pytest.raises(NotImplementedError, match=message):
        kernel_for(bare, (100,), [(1,), (1,)])
    for name in RULES:
        for dtype in accepted(name):
            flat_kernel(name, *operands_of(name, dtype))


@pytest.mark.parametrize("dtype", STORAGE)
def test_storage_dtypes_are_moved_without_conversion(dtype: str) -> None:
    text = flat_kernel("where", "bool", dtype, dtype).source.text
    assert "tl.where(v0, v1, v2)" in text


def test_a_spec_that_casts_complex_to_real_is_refused() -> None:
    """The library refuses it before; a body made by hand meets the backend's own error."""
    kernel = flat_kernel("astype", "complex64", out="complex128")
    nodes = (("input", 0), ("cast", 0, "float64"))
    with pytest.raises(
        UnsupportedCastError, match="complex64 does not become float64: the imaginary part would be lost"
    ):
        generate(kernel.spec._replace(nodes=nodes), 90)
