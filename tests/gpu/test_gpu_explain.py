"""`ta.explain` and ``TILEARRAY_DEBUG`` on a GPU: its own architecture, the driver's registers, and times."""

from __future__ import annotations

import importlib.util

import pytest

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.engine.execute import plans_in_force
from tilearray.explaining import debug


def test_the_machine_code_is_what_the_driver_loads():
    from cuda.bindings import driver

    x = ta.ones((1000, 1001), dtype="float32", device="cuda")
    (launch,) = ta.explain(lambda x: x + x.T, x[:, :1000]).launches
    kernel = launch.kernel
    assert kernel.arch == x.device.backend.arch
    x[:, :1000] + x[:, :1000].T
    (plan,) = [
        plan for plan in plans_in_force() if plan.operation.name == "add" and plan.kernel.source.text == kernel.source
    ]
    function = plan.kernel.function.handle
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    error, registers = driver.cuFuncGetAttribute(attribute, function)
    assert error == driver.CUresult.CUDA_SUCCESS
    assert kernel.code.registers == registers


def test_times_beside_a_copy():
    x = ta.ones(1 << 26, dtype="float32", device="cuda")
    timing = ta.explain(ta.add, x, x, time=True).timing
    assert 0.5 < timing.rate / timing.copy_rate < 2


def test_debug_prints_the_kernels(capsys):
    PLANS.clear()
    debug.start("4")
    try:
        ta.ones(1000, device="cuda") + 1
    finally:
        debug.start("0")
        PLANS.clear()
    text = capsys.readouterr().err
    assert "   code     " in text
    assert " GB/s" in text


def test_a_triton_file_runs(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    path = tmp_path / "kernels.py"
    ta.explain(ta.fuse(lambda a, b: a * b - b[::-1]), *[ta.ones((30, 40), device="cuda")] * 2).to_triton(path)
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out, a = module.new_memory("cuda")
    module.run(out, a)
    given = a.view(torch.float32).reshape(30, 40)
    assert torch.equal(out.view(torch.float32).reshape(30, 40), given * given - given.flip(0))
