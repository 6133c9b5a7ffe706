"""`Explanation.to_triton`: the file runs alone, with torch and triton only, and computes what the function does."""

from __future__ import annotations

import ast
import re

import pytest
from support.kernels import needs_triton
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.errors import DeviceError

pytestmark = needs_triton


def x(*shape: int, dtype: str = "float32") -> ta.Array:
    return ta.zeros(shape, dtype=dtype, device="cpu")


def written(function, *arrays, **options) -> str:
    return ta.explain(function, *arrays, arch=90, **options).to_triton()


def run(text: str, folder, check: str) -> str:
    """Run a file in Triton's interpreter, and then a check of its memory `m`, before and after."""
    pytest.importorskip("torch")
    path = folder / "kernels.py"
    path.write_text(text)
    return in_fresh_python(
        f"""
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, {str(folder)!r})
import kernels, torch
memory = kernels.new_memory("cpu")
before = [each.clone().numpy() for each in memory]
kernels.run(*memory)
m = [each.numpy() for each in memory]
assert "tilearray" not in sys.modules
{check}
print("right")
"""
    )


def test_a_file_imports_torch_and_triton_only():
    tree = ast.parse(written(ta.add, x(100), x(100)))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"torch", "triton", "triton.language", "triton.language.extra"}


@pytest.mark.slow
def test_a_fused_function_of_views(tmp_path):
    text = written(ta.fuse(lambda a, b: a * b - b[::-1] * 0.5), x(30, 40), x(30, 40))
    check = """
out, a, b = [each.view("f4").reshape(30, 40) for each in m]
import numpy as np
assert a.any() and b.any() and (before[1] == m[1]).all()
assert (out == a * b - b[::-1] * np.float32(0.5)).all()
"""
    assert run(text, tmp_path, check).split() == ["right"]


@pytest.mark.slow
def test_two_launches_with_scratch_memory(tmp_path):
    text = written(ta.sum, x(1000, 1000))
    check = """
total, given = m[-1].view("f4")[0], m[1].view("f4").astype("f8")
assert len(m) == 3 and abs(total - given.sum()) <= 1e-6 * total
"""
    assert text.count("tl.constexpr):") >= 2
    assert run(text, tmp_path, check).split() == ["right"]


@pytest.mark.slow
def test_a_launch_with_memory_of_its_own(tmp_path):
    text = written(ta.fuse(lambda a: a - ta.max(a, axis=0)), x(70, 5))
    check = """
out, a = [each[:1400].view("f4").reshape(70, 5) for each in m]
assert len(m) == 2 and a.any() and (out == a - a.max(0)).all()
"""
    assert text.count("# scratch") == 1
    assert run(text, tmp_path, check).split() == ["right"]


@pytest.mark.slow
def test_an_operation_in_place_and_a_number_of_its_own_type(tmp_path):
    def f(a):
        a += 3
        a *= 2

    check = """
assert len(m) == 1
assert (m[0][:200].view("i2") == (before[0][:200].view("i2") + 3) * 2).all()
"""
    text = written(f, x(100, dtype="int16"))
    assert 'x1: "i16"' in text
    assert run(text, tmp_path, check).split() == ["right"]


def test_different_functions_of_one_name_get_different_names():
    text = written(lambda a: ta.sum(a) + ta.sum(a, axis=0), x(3000, 500))
    names = re.findall(r"^def (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names))
    launched = re.findall(r"^    (\w+)\[\(", text, re.MULTILINE)
    assert len(launched) == len(set(launched)) >= 3
    assert set(launched) <= set(names)


def test_memory_and_numbers_of_every_dtype_are_written():
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "complex64", "float8_e4m3fn"):
        operands = (x(100, dtype=dtype), x(100, dtype=dtype))
        compile(written(ta.equal, *operands), dtype, "exec")
    text = written(ta.multiply, x(100, dtype="complex64"), 2 + 3j)
    assert "2.0, 3.0,  # x1" in text
    assert 'float("inf"),  # x1' in written(ta.minimum, x(100), float("inf"))
    assert written(ta.fuse(contract=True)(lambda a: a * a + a), x(100)).count("enable_fp_fusion=True") == 1


def test_a_file_on_disk_and_the_error_of_the_host(tmp_path):
    explained = ta.explain(ta.exp, x(100), arch=80)
    assert explained.to_triton(tmp_path / "exp.py") == (tmp_path / "exp.py").read_text()
    with pytest.raises(
        DeviceError,
        match=r"^to_triton: expected kernels of a GPU, got those of the host; write explain\(f, x, arch=90\)$",
    ):
        ta.explain(ta.exp, x(100)).to_triton()


def test_a_kernel_whose_launch_asks_for_memory_has_no_file():
    with pytest.raises(DeviceError, match=r"^to_triton: expected kernels that Triton can launch, got bins_sel"):
        written(lambda x: ta.bincount(x, minlength=65_536), x(2**22, dtype="uint16"))
