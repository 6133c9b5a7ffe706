"""The real driver: errors, contexts, forks and exits behave as in the stub driver of the host tests."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from support.threads import in_thread

import tilearray as ta

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CudaError, NoDeviceError
from tilearray_cuda.runtime import driver

api = driver.api


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)


def current() -> int:
    return int(driver.call(api.cuCtxGetCurrent))


def test_the_device_is_described():
    device = open_device(0)
    assert device.arch >= 80
    assert device.shared_memory >= 48 << 10
    assert 16_384 <= device.most_bins < device.shared_memory // 2
    assert device.name
    assert open_device(0) is device


def test_a_device_that_is_not_there():
    with pytest.raises(NoDeviceError, match=r"cuda:99: the NVIDIA driver offers \d+ GPU"):
        open_device(99)
    with pytest.raises(ta.DeviceUnavailableError, match=r"zeros: cuda:99: the NVIDIA driver offers|cuda:99"):
        ta.zeros(3, device="cuda:99")


def test_an_error_has_a_name_and_a_meaning():
    with pytest.raises(CudaError, match=r"cuDeviceGet: CUDA_ERROR_INVALID_DEVICE: .*invalid device ordinal"):
        driver.call(api.cuDeviceGet, 99)


def test_kernels_say_how_many_arguments_they_take():
    """The check before a launch needs the driver's answer."""
    from tilearray_cuda.runtime import launch

    seen = []
    original = launch.Arguments.__init__

    def spy(self, function, *arguments):
        seen.append(function.parameters)
        original(self, function, *arguments)

    launch.Arguments.__init__ = spy
    try:
        x = ta.asarray(np.arange(77, dtype="int16"), device="cuda:0")
        assert ta.to_numpy(x + x)[1] == 2
    finally:
        launch.Arguments.__init__ = original
    assert seen
    assert None not in seen


def test_a_new_thread_needs_no_preparation():
    x = ta.asarray(np.arange(100), device="cuda:0")
    x + x  # makes the plan, so that the thread only launches
    out = in_thread(lambda: ta.to_numpy(x + x))
    assert out.tolist() == (2 * np.arange(100)).tolist()
    out = in_thread(lambda: (x.__iadd__(x), current())[1])  # the launch is the thread's first driver call
    assert out == int(open_device(0).context)
    assert ta.to_numpy(x)[3] == 6


def test_a_thread_whose_context_is_taken_away():
    x = ta.asarray(np.arange(100), device="cuda:0")

    def body():
        y = x + x
        driver.call(api.cuCtxSetCurrent, api.CUcontext(0))
        y += x
        driver.call(api.cuCtxSetCurrent, api.CUcontext(0))
        return ta.to_numpy(y + x)

    assert in_thread(body).tolist() == (4 * np.arange(100)).tolist()


@pytest.mark.skipif("ta.cuda.device_count() < 2", reason="needs two GPUs")
def test_another_devices_context_is_found_wrong_and_given_back():
    """The effect of torch.cuda.set_device(1) on a thread that launches on cuda:0."""
    x = ta.asarray(np.arange(100), device="cuda:0")
    x + x
    other = open_device(1).context

    def body():
        driver.call(api.cuCtxSetCurrent, other)
        y = x + x
        y += x
        assert current() == int(other)
        return ta.to_numpy(y), current()

    values, after = in_thread(body)
    assert values.tolist() == (3 * np.arange(100)).tolist()
    assert after == int(other)


@pytest.mark.skipif("ta.cuda.device_count() < 2", reason="needs two GPUs")
def test_two_devices():
    """One thread uses arrays of both in turn."""
    arrays = [ta.asarray(np.arange(1000) + index, device=f"cuda:{index}") for index in (0, 1)]
    for _ in range(20):
        arrays = [array + 1 for array in arrays]
    assert [ta.to_numpy(array)[0] for array in arrays] == [20, 21]
    copy = open_device(1).from_device(open_device(0), arrays[0]._buffer)
    assert open_device(1).to_numpy(copy, 0, (1000,), (1,), np.dtype("int64")).tolist() == list(range(20, 1020))


def test_a_forked_child_gets_a_clear_error():
    code = """
import os, sys, warnings
import tilearray as ta
warnings.simplefilter("ignore")
x = ta.ones(10, device="cuda:0") + 1
y = x + 1
del y
if pid := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
from tilearray_cuda.errors import ForkedError
for function in (lambda: x + 1, lambda: x.__iadd__(1), lambda: ta.to_numpy(x), lambda: ta.ones(3, device="cuda:0")):
    try:
        function()
    except ForkedError as error:
        print("clear:", error)
    else:
        print("nothing raised")
sys.stdout.flush()
os._exit(0)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stdout + done.stderr
    assert all("clear: " in line and "cannot use it; start the child with" in line for line in lines)


def test_exit_with_live_arrays_is_silent():
    code = """
import sys, threading
import tilearray as ta
from tilearray import cuda
x = ta.ones((1000, 1000), device="cuda:0") + 1
with cuda.stream(cuda.Stream("cuda:0")):
    y = x * 2
sys.kept = [x, y, cuda.Event(device="cuda:0"), cuda.Stream("cuda:0")]
sys.kept.append(sys.kept)
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_kernel_that_faults_is_explained():
    """In a separate process, because its context is lost."""
    code = """
import numpy as np
import tilearray as ta
from tilearray_cuda.runtime import driver
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CudaError
x = ta.ones(1000, device="cuda:0")
x + x
x._buffer.pointer += 1 << 50
try:
    x + x
    open_device(0).synchronize()
except CudaError as error:
    print(error)
x._buffer.pointer -= 1 << 50
"""
    done = run(code)
    assert "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: " in done.stdout, done.stdout + done.stderr
    assert "restart the process" in done.stdout
