"""Driver calls: errors with their causes, unchanged contexts, forks, exits, missing devices."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from support.threads import in_thread, in_threads

import tilearray_cuda
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CudaError, NoDeviceError, OutOfMemoryError
from tilearray_cuda.runtime import driver

api = driver.api


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def current() -> int:
    return int(driver.call(api.cuCtxGetCurrent))


def test_a_call_returns_the_results_without_the_status(device):
    assert driver.call(api.cuDeviceGetCount) == 2
    with driver.Current(device.context):
        assert driver.call(api.cuCtxSynchronize) is None
        free, total = driver.call(api.cuMemGetInfo)
    assert 0 < free <= total == 1 << 30


def test_an_error_has_the_call_its_name_its_meaning_and_advice(device, stub):
    stub.fail("cuCtxSynchronize", 700)
    with pytest.raises(CudaError) as caught:
        device.synchronize()
    error = caught.value
    assert (error.call, error.name) == ("cuCtxSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert str(error).startswith("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: the stub's meaning of 700; ")
    assert "restart the process" in str(error)
    device.synchronize()


def test_an_error_that_the_driver_cannot_name_still_has_one(device, stub):
    stub.fail("cuCtxSynchronize", 999)
    with pytest.raises(CudaError, match="cuCtxSynchronize: CUDA_ERROR_UNKNOWN: the stub's meaning of 999"):
        device.synchronize()


def test_out_of_memory_is_a_memory_error(device, stub):
    stub.fail("cuMemHostAlloc", 2)
    with pytest.raises(MemoryError) as caught:
        driver.call(api.cuMemHostAlloc, 10, 0)
    assert isinstance(caught.value, OutOfMemoryError)
    assert isinstance(caught.value, CudaError)


def test_a_thread_without_a_context_gets_ours(device):
    def body():
        before = current()
        with driver.Current(device.context):
            inside = current()
        return before, inside, current()

    ours = int(device.context)
    assert in_thread(body) == (0, ours, ours)


@pytest.mark.parametrize("failing", [False, True])
def test_another_librarys_context_is_given_back(device, failing):
    other = driver.call(api.cuDevicePrimaryCtxRetain, driver.call(api.cuDeviceGet, 1))

    def body():
        driver.call(api.cuCtxSetCurrent, other)
        try:
            with driver.Current(device.context):
                inside = current()
                if failing:
                    raise KeyError
        except KeyError:
            pass
        buffer = device.allocate(10 << 20, 0)
        device.to_numpy(buffer, 0, (3,), (1,), np.dtype("int8"))
        return inside, current()

    assert in_thread(body) == (int(device.context), int(other))


def test_devices_are_opened_once():
    assert tilearray_cuda.device_count() == 2
    first = open_device(0)
    assert open_device(0) is first
    assert tilearray_cuda.open_device(1) is open_device(1) is not first
    assert (first.index, first.arch, first.name, repr(first)) == (0, 90, "Stub 0", "<cuda:0 Stub 0>")
    assert set(in_threads(8, lambda _: open_device(1))) == {open_device(1)}


@pytest.mark.parametrize("index", [2, 17, -1])
def test_a_device_that_is_not_there(index):
    with pytest.raises(NoDeviceError, match=rf"cuda:{index}: the NVIDIA driver offers 2 GPUs, cuda:0 to cuda:1; see"):
        tilearray_cuda.open_device(index)


def test_a_driver_without_a_gpu():
    code = """
import tilearray_cuda
from tilearray_cuda.errors import NoDeviceError
assert tilearray_cuda.device_count() == 0
try:
    tilearray_cuda.open_device(0)
except NoDeviceError as error:
    print(error)
import tilearray as ta
assert str(ta.default_device()) == "cpu"
"""
    done = run(code, STUB_DEVICES="0", TILEARRAY_DEVICE="")
    assert "the NVIDIA driver is installed but offers no GPU; see nvidia-smi" in done.stdout, done.stderr
    assert done.returncode == 0


def test_no_driver():
    code = """
import sys, tilearray_cuda
tilearray_cuda.LIBRARY = "no.so"
from tilearray_cuda.errors import NoDriverError
assert tilearray_cuda.device_count() == 0
try:
    tilearray_cuda.open_device(0)
except NoDriverError as error:
    print(error)
assert not any(name.partition(".")[0] in ("cuda", "triton") for name in sys.modules)
"""
    done = run(code)
    assert "cuda:0: this machine has no NVIDIA driver (no.so: cannot open shared object file" in done.stdout


def test_exit_with_live_arrays_is_silent():
    code = """
import numpy as np, tilearray_cuda
from tilearray_cuda.runtime.streams import Event, Stream
device = tilearray_cuda.open_device(0)
stream = Stream(device)
alive = [device.allocate(1000, 0), device.from_numpy(np.ones(5_000_000)), stream, Event(device, True)]
alive.append(alive)
marked = device.allocate(8, 0)
device.join(marked, stream.handle)
import sys
sys.kept = alive  # outlives the modules
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FORKS = {
    "allocating": "device.allocate(1000, 0)",
    "allocating what was just free": "device.allocate(4000, 0)",
    "allocating on a stream": "device.allocate(4000, stream.handle)",
    "launching": "add(0, x, 0, x, 0, x, 0)",
    "copying to the host": "device.to_numpy(x, 0, (1,), (1,), np.dtype('int64'))",
    "copying from the host": "device.from_numpy(np.ones(3))",
    "opening": "tilearray_cuda.open_device(1)",
    "waiting": "device.synchronize()",
    "asking": "device.statistics()",
    "using another stream": "device.join(x, stream.handle)",
    "a new stream": "Stream(device)",
    "emptying": "device.empty_cache()",
}


@pytest.mark.parametrize("what", FORKS)
def test_a_forked_child_gets_a_clear_error(what):
    code = f"""
import os, sys, warnings, numpy as np, tilearray_cuda
from tilearray_cuda.runtime import call_source as calls; from tilearray_cuda.runtime import launch
from tilearray_cuda.kernels.cubin import Cubin
from tilearray_cuda.errors import ForkedError
from tilearray_cuda.runtime.streams import Stream
device = tilearray_cuda.open_device(0)
function = launch.load_function(device, Cubin(b"STUB 6", "stub_add", 4, 0))
arguments = launch.Arguments(function, ["P"] * 3, ["q"])
add = calls.bind_operands(arguments, arguments.fix(1, [1]), [0] * 3, [None] * 3)
x, y, stream = device.allocate(8, 0), device.allocate(4000, 0), Stream(device)
z = device.allocate(4000, stream.handle)
del y, z
add(0, x, 0, x, 0, x, 0)
if pid := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
try:
    {FORKS[what]}
except ForkedError as error:
    print(error)
else:
    print("nothing raised")
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert ": CUDA was in use when this process was forked, and a forked child cannot use it; start" in done.stdout
    assert "multiprocessing.get_context('spawn')" in done.stdout


LOCKED = {
    "a frame": ("launch._slab._lock", "add(0, x, 0, x, 0, x, 0)"),
    "a deferred report": ("device.index_errors._lock", "device.index_errors.deferred(1, 0)"),
    "a product with scales": ("device.products.scaled._lock", "device.products.scaled.planned(0, *product)"),
    "a hook": ("hooks._lock", "hooks.add(print); device.allocate(8, 0)"),
}


@pytest.mark.parametrize(("lock", "call"), LOCKED.values(), ids=LOCKED)
def test_a_fork_while_a_thread_holds_a_lock(lock, call):
    """All frames are in use, and the thread that holds the lock does not exist in the child."""
    code = f"""
import os, signal, sys, threading, types, tilearray_cuda
from tilearray_cuda.runtime import call_source as calls; from tilearray_cuda.runtime import launch
from tilearray_cuda.runtime.memory import hooks
from tilearray_cuda.kernels.cubin import Cubin
from tilearray_cuda.errors import ForkedError
device = tilearray_cuda.open_device(0)
function = launch.load_function(device, Cubin(b"STUB 6", "stub_add", 4, 0))
arguments = launch.Arguments(function, ["P"] * 3, ["q"])
add = calls.bind_operands(arguments, arguments.fix(1, [1]), [0] * 3, [None] * 3)
x = device.allocate(8, 0)
arguments.frames.clear()
device.products.scaled._library = types.SimpleNamespace(create=int)
product = ("float8_e4m3fn", "float8_e4m3fn", "float32"), (16, 16, 16), (16, 16), False
thread = threading.Thread(target={lock}.acquire)
thread.start()
thread.join()
if pid := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.alarm(10)
try:
    {call}
except ForkedError:
    print("refused")
"""
    assert run(code).stdout == "refused\n"


def test_a_child_forked_before_cuda_was_used_is_free_to_use_it():
    code = """
import os, sys, tilearray_cuda.runtime.driver
if pid := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(tilearray_cuda.open_device(0).allocate(10, 0).nbytes)
"""
    assert run(code).stdout == "10\n"
