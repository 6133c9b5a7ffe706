"""Facts of machine code: those that NVIDIA's own tools, which Triton brings, read in the same file."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support.kernels import Kernel, body_for, compiled, flat_kernel, kernel_for, needs_triton

from tilearray_cuda.kernels import compile as compiling
from tilearray_cuda.kernels.machine_code import read_machine_code

pytestmark = needs_triton
BYTES = {"8": 1, "16": 2, "64": 8, "128": 16}


def tool(name: str, *arguments: str) -> str:
    import triton

    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    if not path.exists():
        pytest.skip(f"Triton brings no {name}")
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout


def sizes(text: str, name: str) -> tuple[tuple[int, int], ...]:
    """The accesses in a disassembly, by their bytes: LDG.E.U16 is one of 2 bytes, LDG.E of 4."""
    found = [re.search(r"\.[US]?(8|16|64|128)\b", each) for each in re.findall(rf"\b{name}((?:\.\w+)*)", text)]
    return tuple(sorted(Counter(BYTES[each[1]] if each else 4 for each in found).items(), reverse=True))


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
@pytest.mark.parametrize(
    "make",
    [
        lambda arch: flat_kernel("add", "float32", "float16", arch=arch),
        lambda arch: flat_kernel("remainder", "float64", "float64", arch=arch),
        lambda arch: flat_kernel("sin", "float32", arch=arch),
        lambda arch: flat_kernel("equal", "int8", "int8", arch=arch),
        lambda arch: kernel_for(body_for("add", ["int64", "int64"]), (50, 70), [(70, 1), (70, 1), (1, 50)], arch=arch),
    ],
    ids=["add", "remainder", "sin", "equal", "tile"],
)
def test_the_facts_are_those_of_the_tools(make, arch: int, tmp_path: Path):
    kernel: Kernel = make(arch)
    code = compiled(kernel, arch).cubin
    path = tmp_path / "kernel.cubin"
    path.write_bytes(code)
    found = read_machine_code(code)
    usage = re.search(r"REG:(\d+) STACK:(\d+)", tool("cuobjdump", "-res-usage", str(path)))
    assert usage is not None
    assert (found.registers, found.stack) == (int(usage[1]), int(usage[2]))
    text = tool("nvdisasm", "-c", str(path))
    assert (found.loads, found.stores) == (sizes(text, "LDG"), sizes(text, "STG"))
    assert found.spills == len(re.findall(r"\b(?:LDL|STL)\b", text))
    assert found.loads
    assert found.stores


@pytest.mark.parametrize(
    "damage",
    [
        lambda code: b"",
        lambda code: b"\x7fELF" + code[4:100],
        lambda code: b"PTX" + code,
        lambda code: code[: len(code) // 2],
    ],
)
def test_other_bytes_are_refused(damage):
    code = compiled(flat_kernel("add", "float32", "float32")).cubin
    with pytest.raises(ValueError, match="expected the ELF file of one kernel, got"):
        read_machine_code(damage(code))


def test_a_triton_that_flushes_denormals_is_refused(monkeypatch):
    """Up to Triton 3.5 the compiler ignores the option, and float32 quotients and roots were other than the host's."""
    options = pytest.importorskip("triton.backends.nvidia.compiler").CUDAOptions
    monkeypatch.delattr(options, "enable_reflect_ftz")
    compiling._compile_without_a_key.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=r"compile_source: expected Triton 3\.6 or newer, got \d.*; write pip"):
            compiling.compile_source(flat_kernel("add", "float32", "float32").source, 90)
    finally:
        compiling._compile_without_a_key.cache_clear()
