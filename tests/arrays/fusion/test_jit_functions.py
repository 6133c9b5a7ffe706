"""Pointwise functions written for Triton: on the host in Triton's interpreter, their kernels, and errors."""

from __future__ import annotations

import linecache
import re
import textwrap
import warnings

import numpy as np
import pytest
from support.kernels import needs_triton

import tilearray as ta
from tilearray.errors import DTypeError, FusionError, OperandError

pytestmark = [needs_triton, pytest.mark.slow]

HEAD = """
import math
import numpy as np
import triton
import triton.language as tl

TABLE = [1, 2]
SCALE = 2.0
KNOWN = tl.constexpr(3)

def plain(x):
    return x
"""
_number = 0


def written(text, head=HEAD, name="f"):
    """The function `name` of a module with this text."""
    global _number
    _number += 1
    text = head + textwrap.dedent(text)
    file = f"<written {_number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"__name__": "written"}
    exec(compile(text, file, "exec"), names)
    return names[name]


def jitted(text, **options):
    options.setdefault("promotion", [(0, "default")])
    return ta.pointwise(**options)(written(f"@triton.jit\n{textwrap.dedent(text)}"))


def source(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ta.explain(function, *arguments, arch=90, **options).launches[0].kernel.source


@pytest.mark.filterwarnings("ignore:.*interpreter:RuntimeWarning")
def test_results_on_the_host_are_numpys():
    from support.jit_functions import check

    check("cpu")


def test_the_host_warns_once():
    function = jitted("def f(x):\n    return x + 1")
    with pytest.warns(
        RuntimeWarning, match="f is written for Triton, and runs on the host in Triton's interpreter"
    ) as seen:
        assert function(ta.ones(3)).tolist() == [2.0] * 3
    assert [each.filename for each in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(ta.ones(2)).tolist() == [2.0] * 2
        assert function(ta.ones((2, 1), dtype="int32")).tolist() == [[2], [2]]


@pytest.mark.filterwarnings("ignore:.*interpreter:RuntimeWarning")
def test_targets_in_place_and_within_fused_functions():
    function = jitted("def f(x, y):\n    return x * 2 - y", promotion=[(0, 1, "default")])
    x, y = ta.asarray([1.0, 2.0]), ta.asarray([[3.0], [4.0]])
    out = ta.empty((2, 2))
    assert function(x, y, out0=out) is out
    assert out.tolist() == [[-1.0, 1.0], [-2.0, 0.0]]
    function(out, 1.0, out0=out)
    assert out.tolist() == [[-3.0, 1.0], [-5.0, -1.0]]
    fused = ta.fuse(lambda x, y: function(x + 1, y) ** 2)
    assert fused(x, y).tolist() == [[1.0, 9.0], [0.0, 4.0]]
    assert function(np.array([1.0]), 2).tolist() == [0.0]
    assert function.instantiate(1)(x, 1.0).tolist() == [1.0, 3.0]
    assert function(3.0, x[:0]).tolist() == []


def test_a_kernel_has_the_text_and_all_that_it_calls():
    function = written(
        '''
        @triton.jit
        def f(x, y):
            """Not in the kernel."""
            a: tl.constexpr = KNOWN
            return helper(x, a) + tl.math.sqrt(math.pi * y).to(tl.float32)

        @triton.jit
        def helper(x, n: tl.constexpr, kind=tl.float32):
            return tl.sigmoid(x) * n + float("inf") * KNOWN
        ''',
    )
    function = ta.pointwise(promotion=[(0, 1, "default")])(function)
    text = source(function, ta.ones(9), ta.ones(9))
    assert re.search(r"def helper_[0-9a-f]{12}\(x, n: tl\.constexpr, kind=tl\.float32\):", text)
    assert 'return tl.sigmoid(x) * n + float("inf") * 3' in text.replace("'", '"')
    assert "tl.math.sqrt(3.141592653589793 * y)" in text
    assert "Not in the kernel" not in text
    explained = ta.explain(function, ta.ones(9), ta.ones(9), arch=90).launches[0].kernel
    assert explained.code.spills == 0


def test_another_body_is_another_kernel():
    body = "@triton.jit\ndef f(x):\n    return {} + helper(x)\n\n@triton.jit\ndef helper(x):\n    return x * {}\n"
    kernels = [
        ta.explain(ta.pointwise(promotion=[(0, "default")])(written(body.format(*each))), ta.ones(9), arch=90)
        .launches[0]
        .kernel
        for each in (("x", "2"), ("x", "3"), ("1", "2"), ("x", "2"))
    ]
    keys = [kernel.key for kernel in kernels]
    assert keys[0] == keys[3]
    assert len({*keys}) == 3


def test_numbers_are_arguments_and_what_is_common_is_computed_once():
    function = jitted(
        "def f(x, y, rate):\n    z = tl.exp(x) * rate\n    return z, z > y",
        is_tensor=[True, True, False],
        promotion=[(0, "default"), (0, 1, "always_bool")],
    )
    text = source(function, ta.ones(9), ta.ones(9), 0.5)
    assert "x2: float32, a number" in text
    assert "x3" not in text
    function = jitted("def f(x, k):\n    return x * k", is_tensor=[True, False], dtypes=[None, "float64"])
    assert "x1: float64, a number" in source(function, ta.ones(9), 0.5)
    function = jitted("def f(x, k):\n    return x * k", is_tensor=[True, False])
    assert "x1: float32, a number" in source(function, ta.ones(9, dtype="int32"), 0.5)
    assert "x1: int32, a number" in source(function, ta.ones(9, dtype="int32"), 3)
    assert "x1: float64, a number" in source(function, ta.ones(9, dtype="float64"), 3)


def test_narrow_floats_are_computed_in_float32():
    function = jitted("def f(x):\n    return tl.exp(x)")
    for dtype in ("bfloat16", "float16", "float8_e4m3fn"):
        text = source(function, ta.ones(9, dtype=dtype))
        assert re.search(r"tl\.cast\(f_[0-9a-f]{12}\(v\d+\), tl\.float32\)", text)
    function = jitted("def f(x):\n    return -x", promotion=[(0, "no_opmath")])
    assert "tl.bfloat16)" in source(function, ta.ones(9, dtype="bfloat16"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def f(x):\n    return x * SCALE",
            "f reads SCALE from outside, which is not a constant of Triton; write SCALE = ",
        ),
        ("def f(x):\n    return x * TABLE[0]", "f reads TABLE from outside"),
        (
            "def f(x):\n    return plain(x)",
            "f calls plain, which is not a Triton function; write @triton.jit before it",
        ),
        ("def f(x):\n    return np.exp(x)", "f calls np.exp, which is not a Triton function"),
        ("def f(x):\n    return x + nothing", "f reads nothing, which is not defined; define it before"),
        ("def f(x):\n    return f(x)", "f calls itself; write a loop"),
    ],
)
def test_what_a_kernel_cannot_contain_is_an_error_of_the_call(text, message):
    function = jitted(text)
    with pytest.raises(FusionError, match=re.escape(f"pointwise: {message}")):
        function(ta.ones(3))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "def f(x):\n    return x",
            {"promotion": None},
            "expected promotion for f, a @triton.jit function, which has no",
        ),
        ("def f(x, n: tl.constexpr):\n    return x", {}, "n of f is a tl.constexpr, and numbers are never compiled in"),
        ("def f(x):\n    return x, x", {}, "expected 1 results of f, one for each entry of promotion, got 2; write"),
        ("def f(x):\n    return -x", {"promotion": [(0, "default")] * 2}, "expected 2 results of f"),
        ("def f(x):\n    y = x", {}, "expected 1 results of f, one for each entry of promotion, got 0; write"),
        ("def f(x, y):\n    return x", {"is_tensor": [True]}, "expected is_tensor with 2 entries"),
    ],
)
def test_declarations_that_do_not_fit_are_errors_of_the_decorator(text, options, message):
    with pytest.raises(FusionError, match=re.escape(f"pointwise: {message}")):
        jitted(text, **options)


def test_functions_without_source_and_other_objects_of_triton():
    triton = pytest.importorskip("triton")
    with pytest.raises(
        FusionError, match=r"pointwise: expected a Python function or a @triton\.jit function, got Config"
    ):
        ta.pointwise(triton.Config({}))


@pytest.mark.filterwarnings("ignore:.*interpreter:RuntimeWarning")
def test_operands_that_no_triton_function_takes():
    function = jitted("def f(x, y):\n    return x", is_tensor=[True, True])
    with pytest.raises(DTypeError, match="takes bools, integers and floats of at least 16 bits, got complex64 for x"):
        function(ta.ones(3, dtype="complex64"), ta.ones(3))
    with pytest.raises(DTypeError, match="got float8_e5m2 for y; write a promotion with y, or a Python function"):
        function(ta.ones(3), ta.ones(3, dtype="float8_e5m2"))
    with pytest.raises(DTypeError, match="in Triton's interpreter, which has no bfloat16; write promotion with"):
        function(ta.ones(3), ta.ones(3, dtype="bfloat16"))
    with pytest.raises(OperandError, match="f: expected an array as y, got float"):
        function(ta.ones(3), 2.0)
    with pytest.raises(OverflowError):
        jitted("def f(x, k):\n    return x + k", is_tensor=[True, False])(ta.ones(3, dtype="int8"), 300)


@pytest.mark.filterwarnings("ignore:.*interpreter:RuntimeWarning")
def test_errors_of_the_interpreter_are_errors_of_the_call():
    function = jitted("def f(x):\n    tl.static_assert(False)\n    return x")
    with pytest.raises(FusionError, match="Triton's interpreter, which runs a Triton function on the host, says: "):
        function(ta.ones(3))
    assert jitted("def f(x):\n    return x + x")(ta.ones(3)).tolist() == [2.0] * 3


@pytest.mark.filterwarnings("ignore:.*interpreter:RuntimeWarning")
def test_a_process_that_ends_is_an_error_and_the_next_call_starts_another():
    from tilearray_cuda.kernels import interpreted

    function = jitted("def f(x):\n    return x + 2")
    assert function(ta.ones(3)).tolist() == [3.0] * 3
    interpreted._process._process.kill()
    interpreted._process._process.wait()
    with pytest.raises(FusionError, match="the process with Triton's interpreter ended"):
        function(ta.ones(3))
    assert function(ta.ones(3)).tolist() == [3.0] * 3


def test_all_functions_compile_without_spills():
    from support.jit_functions import CASES

    for function, _, kinds in CASES:
        arguments = [ta.empty(2000, dtype=kind) if isinstance(kind, str) else kind for kind in kinds]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (launch,) = ta.explain(function, *arguments, arch=90).launches
        assert launch.kernel.code.spills == 0


def test_a_standalone_file_has_the_function(tmp_path):
    function = jitted("def f(x):\n    return x + KNOWN")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = ta.explain(function, ta.ones(9), arch=90).to_triton()
    compile(text, "file.py", "exec")
    assert re.search(r"@triton\.jit\ndef f_[0-9a-f]{12}\(x\):\n    return x \+ 3\n", text)
