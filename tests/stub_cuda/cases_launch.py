"""Launches: frames of their own for all threads, arguments as packed, the right context, guards before the GPU."""

from __future__ import annotations

import struct
import sys
import threading
import types
from itertools import pairwise

import numpy as np
import pytest

from tilearray_cuda import calls, driver, launch
from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.stream import Stream

api = driver.api
INT64 = np.dtype("int64")


def numbers(device, *values):
    return device.from_numpy(np.array(values, INT64))[0]


def read(device, buffer, count=1):
    return device.to_numpy(buffer, 0, (count,), (1,), INT64).tolist()


def test_a_launch_computes(device, load):
    x, y, out = numbers(device, 1, 2, 3), numbers(device, 10, 20, 30), device.allocate(32, 0)
    launcher = launch.make_launcher(load(), 1, ["Q", "Q", "Q"], ["q"], [3])
    launcher(0, out.pointer, x.pointer, y.pointer)
    assert read(device, out, 3) == [11, 22, 33]
    bound = calls.bind_operands(launcher, [8, 0, 0], [None, None, None])  # the loop begins at the second element
    bound(0, out, 0, x, 0, out, 0)
    assert read(device, out, 3) == [11, 12, 14]
    bound(0, out, -8, x, 8, y, 8)
    assert read(device, out, 2) == [22, 33]


def test_grid_block_and_shared_memory_reach_the_driver(device, load, stub):
    function = load("other", shared=60000, warps=8)
    assert stub.shared(function) == 60000
    assert stub.shared(load("other", shared=48 << 10)) == 0  # needs no asking
    stub.start_log()
    launch.make_launcher(function, (7, 2), ["Q", "q", "f4x", "b7x"], [], [])(0, 2**64 - 1, -1, 2.5, -2)
    (call,) = stub.log()
    assert (call.name, call.object, call.size) == ("cuLaunchKernel", int(function.handle), (7 << 32) | 256)
    single = struct.unpack("<I", struct.pack("<f", 2.5))[0]
    assert call.arguments[:2] == (2**64 - 1, 2**64 - 1)
    assert (call.arguments[2] & 0xFFFFFFFF, call.arguments[3] & 0xFF) == (single, 254)


def test_constants_and_scratch_pointers_follow_the_values(device, load):
    launcher = launch.make_launcher(load(parameters=None), 1, ["Q"], ["i4x", "q", "d"], [-7, 2**40, 0.5])
    slab, start, addresses = launcher.frame()
    first = launch.ctypes.addressof(slab) + start
    assert struct.unpack_from("i4xqdQQ", slab, start + 8) == (-7, 2**40, 0.5, 0, 0)
    assert struct.unpack("6Q", launch.ctypes.string_at(addresses, 48)) == tuple(range(first, first + 48, 8))


def test_frames_never_overlap(device, load):
    launcher = launch.make_launcher(load(parameters=None), 1, ["Q"] * 50, ["q"], [1])
    frames = [launcher.frame() for _ in range(200)]
    assert len({id(slab) for slab, _, _ in frames}) > 1, "one slab was enough: the test shows nothing"
    places = sorted((launch.ctypes.addressof(slab) + start, addresses + 53 * 8) for slab, start, addresses in frames)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    slab, start, _ = frames[0]
    assert start + 2 * 53 * 8 <= len(slab)


def test_numbers_are_converted(device, load, stub):
    launcher = launch.make_launcher(load("other"), 1, ["Q", "f4x", "f4x"], ["q"], [1])
    out = device.allocate(8, 0)
    bound = calls.bind_operands(launcher, [0, None], [None, lambda number: (number.real, number.imag)])
    stub.start_log()
    bound(0, out, 0, 1 + 2j, 0)
    low = [argument & 0xFFFFFFFF for argument in stub.log()[0].arguments]
    assert [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in low[1:3]] == [1, 2]


def test_a_frame_comes_back_from_a_launch_that_fails(device, load, stub, add):
    launcher = launch.make_launcher(load("other"), 1, ["Q", "Q", "b7x"], ["q"], [1])
    with pytest.raises(struct.error):
        launcher(0, 1, 2, 300)
    stub.fail("cuLaunchKernel", 1)
    with pytest.raises(CudaError, match=r"cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: .* \(kernel other, grid"):
        launcher(0, 1, 2, 3)
    assert len(launcher.frames) == 1
    launcher(0, 1, 2, 3)
    assert len(launcher.frames) == 1


@pytest.mark.parametrize("grid", [0, -1, 2**31, (1, 65536), (1, 1, 65536), (1, 1, 1, 1)])
def test_a_grid_that_the_gpu_does_not_have(load, grid):
    with pytest.raises(CudaError, match="make_launcher: stub_add: expected a grid within"):
        launch.make_launcher(load(), grid, ["Q", "Q", "Q"], ["q"], [1])


def test_another_number_of_arguments_is_an_error_before_the_launch(load):
    with pytest.raises(CudaError, match="stub_add takes 5 arguments, and 6 would be passed, 2 of them scratch"):
        launch.make_launcher(load(parameters=5), 1, ["Q", "Q", "Q"], ["q"], [1])
    launch.make_launcher(load(parameters=None), 1, ["Q", "Q", "Q"], ["q"], [1])  # a driver that does not say
    with pytest.raises(CudaError, match=r"expected struct formats of 8 bytes, got \['Q', 'f', 'q'\]"):
        launch.make_launcher(load(), 1, ["Q", "f"], ["q"], [1])


def test_more_shared_memory_than_there_is(load):
    with pytest.raises(CudaError, match=r"needs 300000 bytes of shared memory, and cuda:0 \(Stub 0\) has 232448"):
        load(shared=300000)


def test_a_function_that_is_not_in_the_module(load):
    with pytest.raises(CudaError, match="cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"):
        load("missing")


# --- contexts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_launch_finds_its_context(device, add, stub, elsewhere):
    """In a thread without a context, and in one where another library made another device current."""
    x, y, out = numbers(device, 3), numbers(device, 4), device.allocate(8, 0)
    other = driver.call(api.cuDevicePrimaryCtxRetain, driver.call(api.cuDeviceGet, 1))
    after = []

    def body():
        if elsewhere:
            driver.call(api.cuCtxSetCurrent, other)
        add(0, out, 0, x, 0, y, 0)
        add(0, out, 0, x, 0, out, 0)
        after.append(int(driver.call(api.cuCtxGetCurrent)))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert read(device, out) == [10]
    assert after == [int(other if elsewhere else device.context)]


def test_a_wrong_context_is_retried_once(device, add, stub):
    x, out = numbers(device, 3), device.allocate(8, 0)
    for code in (201, 400):
        stub.fail("cuLaunchKernel", code, times=1)
        add(0, out, 0, x, 0, x, 0)
        stub.fail("cuLaunchKernel", code, times=2)
        with pytest.raises(CudaError, match=r"cuLaunchKernel: CUDA_ERROR_INVALID_(CONTEXT|HANDLE)"):
            add(0, out, 0, x, 0, x, 0)
    stub.fail("cuLaunchKernel", 700, times=1)
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):  # others are not retried
        add(0, out, 0, x, 0, x, 0)


def test_a_stream_of_another_device_is_named(device, add):
    from tilearray_cuda.device import CudaDevice

    stream = Stream(CudaDevice(1))
    with pytest.raises(CudaError, match=r"is a stream of cuda:1, and cannot order memory of cuda:0; write with ta"):
        device.allocate(8, stream.handle)


def test_a_kernel_may_be_loaded_during_a_capture(device, load, stub):
    stream = Stream(device)
    stub.capture(stream.handle, 4)
    try:
        load()
        mode = driver.call(api.cuThreadExchangeStreamCaptureMode, api.CUstreamCaptureMode(0))
        assert int(mode) == 0  # as it was
    finally:
        stub.capture(stream.handle, 0)


# --- threads --------------------------------------------------------------------------------------------------------


class OneFrame(list):
    """Frames as they must not be: one, shared by all threads."""

    def pop(self):
        return self[0]

    def append(self, frame):
        pass


def wrong_launches(device, launcher, threads=8, launches=400):
    bound = calls.bind_operands(launcher, [0, 0, 0], [None, None, None])
    wrong = []

    def body(seed):
        x, y, out = numbers(device, seed), numbers(device, 1000 * seed), device.allocate(8, 0)
        memory = launch.ctypes.c_int64.from_address(out.pointer)  # the stub's memory is the host's
        for _ in range(launches):
            memory.value = 0
            bound(0, out, 0, x, 0, y, 0)
            if memory.value != 1001 * seed:
                wrong.append(seed)

    running = [threading.Thread(target=body, args=(seed + 1,)) for seed in range(threads)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return len(wrong)


def test_threads_do_not_share_frames(device, load, stub):
    stub.give_way(True)
    launcher = launch.make_launcher(load(), 1, ["Q", "Q", "Q"], ["q"], [1])
    assert wrong_launches(device, launcher) == 0
    assert 1 <= len(launcher.frames) <= 8
    launcher.frames = OneFrame([launcher.frame()])
    harm = any(wrong_launches(device, launcher) for _ in range(20))  # threads of a busy machine may take turns
    assert harm, "a shared frame does no harm: the test shows nothing"


# --- captures by torch ----------------------------------------------------------------------------------------------


def torch_with(initialised, capturing):
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(
        is_initialized=lambda: initialised,
        is_current_stream_capturing=lambda: capturing if initialised else pytest.fail("asked a torch without CUDA"),
    )
    return torch


def test_a_launch_on_the_default_stream_under_a_capture_of_torch(device, add, load, stub, monkeypatch):
    x, out, stream = numbers(device, 3), device.allocate(8, 0), Stream(device).handle
    launcher = launch.make_launcher(load(), 1, ["Q", "Q", "Q"], ["q"], [1])
    for torch in (torch_with(False, False), torch_with(True, False)):
        monkeypatch.setattr(driver.TORCH, "captures", driver.TORCH.look)
        monkeypatch.setitem(sys.modules, "torch", torch)
        add(0, out, 0, x, 0, x, 0)
    monkeypatch.setattr(driver.TORCH, "captures", driver.TORCH.look)
    monkeypatch.setitem(sys.modules, "torch", torch_with(True, True))
    stub.start_log()
    with pytest.raises(CaptureError, match=r"write with ta\.cuda\.stream\(torch\.cuda\.current_stream\(\)\)"):
        add(0, out, 0, x, 0, x, 0)
    with pytest.raises(CaptureError, match="torch is capturing a CUDA graph"):
        device.allocate(123456, 0)
    with pytest.raises(CaptureError, match="torch is capturing a CUDA graph"):
        launcher(0, out.pointer, x.pointer, x.pointer)
    assert stub.log() == []
    add(stream, out, 0, x, 0, x, 0)
    assert stub.log()[-1].name == "cuLaunchKernel"
