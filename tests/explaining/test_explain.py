"""`ta.explain`: it says what runs, runs nothing, and needs no GPU."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest
from support.kernels import needs_triton
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.arrays.fusion import tracing
from tilearray.engine import devices
from tilearray.engine.caches import KERNELS, PLANS, RECIPES
from tilearray.engine.expression import ExpressionBuilder
from tilearray.errors import DeviceError, OperandError
from tilearray.explaining.explanation import Explanation, shown_bytes
from tilearray.explaining.wording import graph_lines
from tilearray_host.device import HostDevice


def x(*shape: int, dtype: str = "float32") -> ta.Array:
    return ta.zeros(shape, dtype=dtype, device="cpu")


def graphs(explained: Explanation) -> list[str]:
    return [line for launch in explained.launches for line in launch.graph]


# --- operations ------------------------------------------------------------------------------------------------------


def test_an_operation_from_its_dtypes_to_its_bytes():
    found = ta.explain(ta.add, x(480, 640, dtype="uint8"), x(640))
    (step,) = found.steps
    (launch,) = step.launches
    assert (found.function, found.target, found.semantics) == ("add", "cpu", "array-api")
    assert step.title == "add(uint8 (480, 640), float32 (640,)) -> float32 (480, 640)"
    assert step.promotions[0].steps == ("uint8 and float32: float is the higher kind, so float32",)
    assert step.broadcasts == ("x1 (640,) to (480, 640)",)
    assert (launch.shape, launch.loop_class) == ((480, 640), "broadcast, 2 axes, int32 indices")
    assert [(each.name, each.strides, each.nbytes) for each in launch.arrays] == [
        ("out0", (640, 1), 480 * 640 * 4),
        ("x0", (640, 1), 480 * 640),
        ("x1", (0, 1), 640 * 4),
    ]
    assert (launch.bytes_read, launch.bytes_written) == (480 * 640 + 640 * 4, 480 * 640 * 4)
    assert found.bytes_moved == launch.bytes_read + launch.bytes_written


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ta.explain(ta.exp, x(3)), ["out0: float32 = exp(x0)"]),
        (
            lambda: ta.explain(operator.mul, x(3, dtype="float16"), 2),
            ["out0: float16 = float16(multiply(float32(x0), float32(x1)))"],
        ),
        (lambda: ta.explain(ta.sum, x(3, 4), axis=1), ["out0: float32 = float32(add over float64(x0))"]),
        (lambda: ta.explain(ta.cumulative_sum, x(3)), ["out0: float32 = float32(add over float64(x0))"]),
        (lambda: ta.explain(ta.astype, x(3), "int8"), ["out0: int8 = int8(x0)"]),
        (
            lambda: ta.explain(lambda a: (a + a.T) * 2, x(3, 3)),
            ["out0: float32 = add(x0, x1)", "out0: float32 = multiply(x0, x1)"],
        ),
        (
            lambda: ta.explain(ta.fuse(lambda a, b: a * b - b), x(3), x(3)),
            ["out0: float32 = subtract(multiply(x0, x1), x1)"],
        ),
        (
            lambda: ta.explain(ta.fuse(lambda a: ta.exp(a) * ta.exp(a)), x(3)),
            ["v1 = exp(x0)", "out0: float32 = multiply(v1, v1)"],
        ),
        (lambda: ta.explain(ta.pointwise(lambda a, k: a - k), x(3), 2.0), ["out0: float32 = subtract(x0, x1)"]),
        (lambda: ta.explain(ta.evaluate, "a + 1", a=x(3)), ["out0: float32 = add(x0, x1)"]),
    ],
)
def test_the_expressions_of_functions(call, expected):
    assert graphs(call()) == expected


def test_each_operation_is_the_one_that_runs(monkeypatch):
    """The expressions and loops of an explanation are those for which the host makes kernels."""
    functions = [
        (lambda a, b: ta.softmax(a + b.T, axis=0), [x(30, 41), x(41, 30)]),
        (lambda a, b: ta.var(a, axis=1) * ta.sum(b), [x(35, 46), x(3000, 1001)]),
        (ta.fuse(lambda a, b: (a[1:] - b[:-1], ta.sqrt(a).T)), [x(17, 9), x(17, 9)]),
        (ta.fuse(lambda a, b: a.__iadd__(b * 2)), [x(21), x(21)]),
    ]
    ran: list[object] = []
    real = HostDevice.compile

    def noted(self, expression, loop_class, aligned):
        ran.append(expression.content)
        return real(self, expression, loop_class, aligned)

    monkeypatch.setattr(HostDevice, "compile", noted)
    for function, arrays in functions:
        explained = [launch._note.request.expression.content for launch in ta.explain(function, *arrays).launches]
        assert ran == []
        ta.fuse(lambda a: a + 1)(x(2))  # nothing of the explanation hides a kernel from a call
        ran.clear()
        PLANS.clear()
        RECIPES.clear()
        KERNELS.clear()
        function(*arrays)
        assert set(ran) == set(explained)
        ran.clear()


def test_nothing_runs_and_nothing_is_left():
    a = ta.asarray([1.0, 2.0])
    before = len(PLANS), dict(devices._DEVICES), dict(tracing._TRACING)
    step = ta.fuse(lambda p, g: p.__isub__(g * 0.1))
    ta.explain(step, a, a + 1)
    ta.explain(operator.iadd, a, np.float64(3))
    ta.explain(lambda a: a + ta.ones(2, device=a.device), a)
    ta.explain(ta.fuse(lambda a: a + ta.ones(2, device=a.device)), a)
    assert a.tolist() == [1.0, 2.0]
    assert (dict(devices._DEVICES), dict(tracing._TRACING)) == before[1:]


def test_operands_that_share_memory_are_copied_as_in_a_call():
    def shift(a):
        a[1:] += a[:-1]

    names = [step.name for step in ta.explain(shift, x(10)).steps]
    assert names == ["setitem", "add"]  # the copy, and the sum; a plain sum needs no copy
    assert [step.name for step in ta.explain(operator.iadd, x(10), x(10)).steps] == ["add"]
    fused = ta.explain(ta.fuse(shift), x(10))
    assert [step.name for step in fused.steps] == ["fused", "setitem"]
    assert fused.launches[0].bytes_read == 40  # two views of nine elements each, of ten in memory


def test_a_long_reduction_is_two_launches():
    (step,) = ta.explain(ta.sum, x(1000, 4000)).steps
    first, second = step.launches
    assert (first.bytes_read, second.bytes_written) == (16_000_000, 4)
    assert first.graph == ("out0: float64 = add over float64(x0)",)


def test_arrays_of_other_libraries_and_from_outside():
    outside = x(3)
    assert graphs(ta.explain(ta.add, np.zeros(3), 2)) == ["out0: float64 = add(x0, x1)"]
    for function in (lambda a: a + outside, ta.fuse(lambda a: a + outside)):
        assert graphs(ta.explain(function, x(3))) == ["out0: float32 = add(x0, x1)"]


def test_an_empty_array_has_no_launch():
    found = ta.explain(ta.exp, x(0, 3))
    assert (found.launches, found.bytes_moved) == ((), 0)
    assert found.steps[0].title == "exp(float32 (0, 3)) -> float32 (0, 3)"


def test_the_semantics_in_force_decide():
    with ta.semantics("numpy"):
        found = ta.explain(ta.add, x(3, dtype="int32"), x(3))
    assert found.semantics == "numpy"
    assert found.steps[0].promotions[0].result == np.dtype("float64")
    assert graphs(found) == ["out0: float64 = add(float64(x0), float64(x1))"]


def test_how_the_host_runs_a_launch():
    assert ta.explain(ta.add, x(3), x(3)).launches[0].kernel.source == "add(x0, x1, out=out0)\n"
    kernel = ta.explain(ta.fuse(lambda a: (a * 2).astype("bfloat16")), x(3)).launches[0].kernel
    assert "multiply(x0, x1, out=t0)\n    cast(t0, bfloat16, out0)\n" in kernel.source
    assert kernel.strategy == "a function of NumPy calls, for all elements or for blocks of 65536"
    assert ta.explain(ta.astype, x(3), "int8").launches[0].kernel.source.startswith(("cast(", "def "))


def test_the_text_of_a_long_expression_names_the_dtypes_of_all_casts():
    half = x(3, dtype="bfloat16")
    source = ta.explain(ta.fuse(lambda a: ((a * a + a) * a - a) / a + a * a), half).launches[0].kernel.source
    found = re.findall(r"cast\(\w+, (\w+), \w+\)", source)
    assert len(found) > 10
    assert set(found) == {"float32", "bfloat16"}


def test_selections_and_coordinates_are_written_as_text():
    """Only the kernels of masks on a GPU have these nodes, whose calls need values; `TILEARRAY_DEBUG` prints them."""
    builder = ExpressionBuilder()
    chosen = builder.array(np.dtype("bool"))
    bits = builder.memory(np.dtype("int32"))
    nodes = [builder.node("count", chosen), builder.node("slot", chosen), builder.node("coordinate", 1)]
    nodes += [builder.node("starts", bits), builder.node("slot", None, bits)]
    graph = builder.build(nodes, [np.dtype("int32"), *[np.dtype("int64")] * 4])
    assert graph_lines(graph) == [
        "out0: int32 = count of x0",
        "out1: int64 = slot of x0",
        "out2: int64 = index along axis 1",
        "out3: int64 = sum of the counts of x1",
        "out4: int64 = slot by the bits of x1",
    ]


# --- GPUs that are not there -----------------------------------------------------------------------------------------


@needs_triton
def test_searches_counts_and_folds_are_written_as_text():
    x, index = ta.zeros(1000, dtype="float32"), ta.zeros(1000, dtype="int64")
    for call, expected in (
        (lambda: ta.explain(ta.searchsorted, x, x, arch=90), ["int64 = place of x2 in sorted x0"]),
        (
            lambda: ta.explain(lambda i: ta.bincount(i, minlength=256), index.astype("uint8"), arch=90),
            ["int64 add = how often each integer is x0"],
        ),
        (lambda: ta.explain(lambda x, i: ta.maximum.at(x, i, x), x, index, arch=90), ["float32 maximum = x0"]),
        (
            lambda: ta.explain(lambda x, i: ta.multiply.at(x, i, 2), x, index, arch=90),
            ["int64 = order of x0", "float32 = multiply(v1, x2), one after the other"],
        ),
    ):
        text = str(call())
        assert all(f"out0: {line}" in text for line in expected), text


@needs_triton
def test_a_product_of_matrices_is_explained_as_its_kernel():
    found = ta.explain(lambda a, b: ta.matmul(a, b) * 2, x(48, 64), x(64, 32), arch=90)
    assert graphs(found)[0] == "out0: float32 = matmul(x0, x1)"
    assert found.launches[0].kernel.schedule == "product"


@needs_triton
def test_the_kernel_of_a_gpu_that_is_not_there(tmp_path, monkeypatch):
    from tilearray_cuda.kernels import disk_cache

    monkeypatch.setattr(disk_cache, "_shared", [disk_cache.CubinCache(tmp_path)])
    a = x(4097, 4097)
    kernels = [ta.explain(lambda a: a + a.T, a, arch=arch).launches[0].kernel for arch in (80, "sm_90", 90)]
    assert [(kernel.arch, kernel.kept) for kernel in kernels] == [(80, ""), (90, ""), (90, "memory")]
    kernel = kernels[1]
    assert kernel.name == "add_tile"
    assert f"def {kernel.name}(out0, x0, x1, " in kernel.source
    assert kernel.schedule in ("tile", "skewed_rows", "skewed_columns")
    assert kernel.reasons[-1].startswith(f"{kernel.schedule} runs it: ")
    assert all(" declined (" in reason for reason in kernel.reasons[:-1])
    rows, columns = kernel.tile
    assert rows * columns == 32 * kernel.warps * kernel.elements
    assert kernel.programs >= 4097 * 4097 // (rows * columns)
    assert kernel.code is not None
    assert 16 <= kernel.code.registers <= 255
    assert [entry.key for entry in disk_cache.entries() if entry.arch == 90] == [kernel.key]


@needs_triton
def test_arrays_on_a_gpu_are_explained_for_it():
    """At their addresses: a view that begins between two vectors has another kernel."""
    code = """
import numpy as np
import tilearray as ta
from support.interpreter.emulated_gpu import emulated_device
device = emulated_device()
x = ta.asarray(np.ones(1000, "f4"), device=device)
before = len(device.backend.memory)
for view in (x, x[1:]):
    explained = ta.explain(ta.exp, view)
    print(explained.target, "not a multiple of 16" in explained.launches[0].kernel.source)
print(len(device.backend.memory) - before, device.backend.launches)
"""
    assert in_fresh_python(code).splitlines() == ["sm_90 False", "sm_90 True", "0 0"]


@needs_triton
def test_a_kernel_with_contraction_has_one_instruction_less():
    plain, allowed = [
        ta.explain(ta.fuse(contract=contract)(lambda a, b: a * b + b), x(1000), x(1000), arch=90).launches[0].kernel
        for contract in (False, True)
    ]
    assert plain.source == allowed.source
    assert plain.key != allowed.key
    assert (plain.contract, allowed.contract) == (False, True)


@needs_triton
def test_every_kind_of_kernel_is_explained():
    a = x(300, 400)
    calls = [
        (ta.sum, [a]),
        (ta.softmax, [a]),
        (ta.cumulative_sum, [a[0]]),
        (lambda a, at: a[at], [a, ta.asarray([1, 2], device="cpu")]),
        (ta.fuse(lambda a: a[::-1] * 2), [a]),
    ]
    for function, arrays in calls:
        found = ta.explain(function, *arrays, arch=90)
        assert found.launches
        assert found.target == "sm_90"
        for launch in found.launches:
            assert launch.kernel.code.registers > 0
            assert launch.kernel.programs > 0


# --- text, HTML, times -----------------------------------------------------------------------------------------------


def test_the_text_has_every_stage():
    text = str(ta.explain(ta.add, x(480, 640, dtype="uint8"), x(640)))
    assert text.splitlines()[:3] == [
        "add on cpu under array-api: 1 launch, 1.54 MB",
        "1. add(uint8 (480, 640), float32 (640,)) -> float32 (480, 640)",
        "   dtypes   add(uint8, float32): uint8 and float32: float is the higher kind, so float32; result float32",
    ]
    names = re.findall(r"^   (\w+) ", text, re.MULTILINE)
    assert names == ["dtypes", "repeats", "inputs", "graph", "loop", "class", "memory", "runs", "source"]


@needs_triton
def test_the_text_of_a_gpu_has_its_stages():
    names = re.findall(r"^   (\w+) ", str(ta.explain(ta.exp, x(100), arch=90)), re.MULTILINE)
    assert names == [
        "dtypes",
        "inputs",
        "graph",
        "loop",
        "class",
        "memory",
        "schedule",
        "tile",
        "code",
        "cache",
        "source",
    ]


def test_html_is_escaped_and_folds_sources():
    def less(a):
        return ta.add(a < 1, 2)

    less.__name__ = "<less>"
    found = ta.explain(less, x(3))._repr_html_()
    assert "<b>&lt;less&gt; on cpu" in found
    assert found.count("<table>") == found.count("</table>") == 2
    assert "<details><summary>1 lines</summary><pre>less(x0, x1, out=out0)</pre></details>" in found


def test_times_are_measured_beside_a_copy():
    a = ta.asarray([1.0, 2.0])
    found = ta.explain(operator.iadd, a, 1, time=True)
    assert a.tolist()[0] > 1.0  # it runs
    assert found.timing.seconds > 0
    assert found.timing.rate == pytest.approx(found.bytes_moved / found.timing.seconds / 1e9)
    assert str(found).splitlines()[-1].startswith("time     ")
    assert "a copy of as many bytes" in found._repr_html_()


def test_bytes_for_people():
    assert [shown_bytes(count) for count in (0, 999, 1000, 2**31, 10**16)] == [
        "0 B",
        "999 B",
        "1 kB",
        "2.15 GB",
        "1e+04 TB",
    ]


# --- errors ----------------------------------------------------------------------------------------------------------


RUNS_KERNELS = "explain: expected a function that runs kernels, got one that "


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: ta.explain(3, x(3)),
            OperandError,
            "explain: expected a function, got int; write explain(ta.add, x, y)",
        ),
        (
            lambda: ta.explain(ta.add, 1, 2),
            OperandError,
            "explain: expected at least one array among the arguments, got none; write ta.asarray(x)",
        ),
        (
            lambda: ta.explain(ta.add, x(3), 2, time=1),
            OperandError,
            "explain: expected time True or False, got 1; write time=True",
        ),
        (
            lambda: ta.explain(ta.add, x(3), 2, arch=75),
            DeviceError,
            "explain: expected a compute capability of 80, 86, 87, 89, 90, 100, 103, 120, 121, got 75; write arch=90",
        ),
        (
            lambda: ta.explain(lambda a: a.T, x(3)),
            OperandError,
            f"{RUNS_KERNELS}runs none on its arguments; write explain of a function that computes",
        ),
        (
            lambda: ta.explain(ta.sort, x(3)),
            OperandError,
            f"{RUNS_KERNELS}sorts or searches, which is not a kernel; write explain of its other parts",
        ),
        (lambda: ta.explain(lambda a: a.tolist(), x(3)), OperandError, f"{RUNS_KERNELS}reads the values of an array"),
        (lambda: ta.explain(ta.add, x(3), x(4)), ta.BroadcastError, "add: "),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
