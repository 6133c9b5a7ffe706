"""Launches: separate frames for all threads, packed arguments, the right context, checks before the GPU."""

from __future__ import annotations

import struct
import sys
import types
from itertools import pairwise

import numpy as np
import pytest
from support.threads import in_thread, in_threads

from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.runtime import call_source, driver, launch
from tilearray_cuda.runtime.interop import device_of
from tilearray_cuda.runtime.streams import Stream

api = driver.api
INT64 = np.dtype("int64")


def numbers(device, *values):
    return device.from_numpy(np.array(values, INT64))[0]


def read(device, buffer, count=1):
    return device.to_numpy(buffer, 0, (count,), (1,), INT64).tolist()


def adding(load, count=1):
    """Return the arguments of the stub's addition, and the bytes that a number of elements fixes."""
    arguments = launch.Arguments(load(), ["P", "P", "P"], ["q"])
    return arguments, arguments.fix(1, [count])


def test_a_launch_computes(device, load):
    x, y, out = numbers(device, 1, 2, 3), numbers(device, 10, 20, 30), device.allocate(32, 0)
    arguments, fixed = adding(load, 3)
    call_source.bind_operands(arguments, fixed, [0, 0, 0], [None, None, None])(0, out, 0, x, 0, y, 0)
    assert read(device, out, 3) == [11, 22, 33]
    bound = call_source.bind_operands(
        arguments, fixed, [8, 0, 0], [None, None, None]
    )  # the loop starts at the second element
    bound(0, out, 0, x, 0, out, 0)
    assert read(device, out, 3) == [11, 12, 14]
    bound(0, out, -8, x, 8, y, 8)
    assert read(device, out, 2) == [22, 33]


def test_loops_of_a_kernel_share_its_frames(device, load):
    x, y, out = numbers(device, 1, 2, 3), numbers(device, 10, 20, 30), device.allocate(32, 0)
    arguments = launch.Arguments(load(), ["P", "P", "P"], ["q"])
    frames = [id(frame) for frame in arguments.frames]
    shorter, longer = (
        call_source.bind_operands(arguments, arguments.fix(1, [count]), [0, 0, 0], [None, None, None])
        for count in (1, 3)
    )
    longer(0, out, 0, x, 0, y, 0)
    shorter(0, out, 0, x, 0, x, 0)
    assert read(device, out, 3) == [2, 22, 33]
    assert [id(frame) for frame in arguments.frames] == frames


def converted(*numbers):
    """Return converters of numbers that do not change the numbers."""
    return [lambda number: (number,)] * len(numbers)


def test_everything_reaches_the_driver(device, load, stub):
    function = load("other", shared=60000, warps=8)
    assert stub.shared(function) == 60000
    assert stub.shared(load("other", shared=48 << 10)) == 0  # needs no attribute
    values, stream = (2**64 - 1, -1, 2.5, -2), Stream(device)
    arguments = launch.Arguments(function, ["P", "q", "f4x", "b7x"], [])
    bound = call_source.bind_operands(arguments, arguments.fix(7, []), [None] * 4, converted(*values))
    stub.start_log()
    for handle in (stream.handle, 0):
        bound(handle, *[part for value in values for part in (value, 0)])
    (call, again) = stub.log()
    assert (call.name, call.object, call.size) == ("cuLaunchKernel", int(function.handle), (7 << 32) | 256)
    assert (call.stream, again.stream) == (stream.handle, 0)
    single = struct.unpack("<I", struct.pack("<f", 2.5))[0]
    assert call.arguments[:2] == (2**64 - 1, 2**64 - 1)
    assert (call.arguments[2] & 0xFFFFFFFF, call.arguments[3] & 0xFF) == (single, 254)


def parts(frame):
    """Return the start of a frame's arguments, and the targets of its two references."""
    slab, start, configuration, addresses = frame
    pointers = [launch.ctypes.cast(reference, launch.ctypes.c_void_p).value for reference in (configuration, addresses)]
    return launch.ctypes.addressof(slab) + start, *pointers


def test_constants_scratch_pointers_and_configuration_follow_the_values(device, load):
    arguments = launch.Arguments(load(parameters=None, shared=5), ["P"], ["i4x", "q", "d"])
    fixed = arguments.fix(9, [-7, 2**40, 0.5])
    frame = arguments.frame()
    arguments.pack(*frame[:2], 77, fixed, 88)
    first, configuration, addresses = parts(frame)
    assert struct.unpack_from("P i4x q d PP", frame[0], frame[1]) == (77, -7, 2**40, 0.5, 0, 0)
    assert configuration == first + 6 * 8
    block = (128, 1, 1)
    grid_to_shared_stream_attributes = struct.unpack("7I4xPPI4x", launch.ctypes.string_at(configuration, 56))
    assert grid_to_shared_stream_attributes == (9, 1, 1, *block, 5, 88, 0, 0)
    assert struct.unpack("6P", launch.ctypes.string_at(addresses, 48)) == tuple(range(first, first + 48, 8))


def test_frames_never_overlap(device, load):
    arguments = launch.Arguments(load(parameters=None), ["P"] * 50, ["q"])
    frames = [arguments.frame() for _ in range(200)]
    assert len({id(slab) for slab, *_ in frames}) > 1, "one slab was enough: the test shows nothing"
    places = sorted((first, addresses + 53 * 8) for first, _, addresses in map(parts, frames))
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    first, _, addresses = parts(frames[0])
    assert frames[0][1] + addresses + 53 * 8 - first <= len(frames[0][0])


def test_numbers_are_converted(device, load, stub):
    arguments = launch.Arguments(load("other"), ["P", "f4x", "f4x"], ["q"])
    out = device.allocate(8, 0)
    convert = lambda number: (number.real, number.imag)  # noqa: E731
    bound = call_source.bind_operands(arguments, arguments.fix(1, [1]), [0, None], [None, convert])
    stub.start_log()
    bound(0, out, 0, 1 + 2j, 0)
    low = [argument & 0xFFFFFFFF for argument in stub.log()[0].arguments]
    assert [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in low[1:3]] == [1, 2]


def test_a_launch_makes_its_outputs_and_has_its_constants(device, load, stub):
    """Each output is a block of its own, which comes back with the array, on every stream."""
    function = load("other", parameters=8)
    arguments = launch.Arguments(function, ["P", "P", "P", "f4x", "d", "d"], [])
    signatures = [types.SimpleNamespace(nbytes=4000), None, types.SimpleNamespace(nbytes=8)]
    converters = [None, None, None, lambda number: (number,), lambda number: (number.real, number.imag)]
    shifts = (0, 8, 0, None, None)
    kind = type("Made", (), {})
    bound = call_source.bind_operands(
        arguments, arguments.fix(1, []), shifts, converters, 3, signatures, {3: 2.5, 4: 1 - 2j}, kind
    )
    given, side = device.allocate(64, 0), Stream(device)
    for stream in (0, side.handle):
        before = device.memory.statistics().live
        stub.start_log()
        first, second = bound(stream, given, 16)
        call = next(entry for entry in stub.log() if entry.name == "cuLaunchKernel")
        assert type(first) is type(second) is kind
        assert [each._signature for each in (first, second)] == signatures[::2]
        assert [each._offset for each in (first, second)] == [0, 0]
        assert [each._buffer.stream for each in (first, second)] == [stream, stream]
        assert call.arguments[:3] == (first._buffer.pointer, given.pointer + 24, second._buffer.pointer)
        assert struct.unpack("<ff", struct.pack("<Q", call.arguments[3])) == (2.5, 0.0)
        assert device.memory.statistics().live > before
        del first, second
        assert device.memory.statistics().live == before


def test_a_frame_comes_back_from_a_launch_that_fails(device, load, stub):
    arguments = launch.Arguments(load("other"), ["P", "P", "b7x"], ["q"])
    bound = call_source.bind_operands(arguments, arguments.fix(4, [1]), [None] * 3, converted(1, 2, 3))
    frames = sorted(map(id, arguments.frames))
    with pytest.raises(struct.error):
        bound(0, 1, 0, 2, 0, 300, 0)
    stub.fail("cuLaunchKernel", 1)
    with pytest.raises(CudaError, match=r"cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE: .* \(kernel other, 4 programs"):
        bound(0, 1, 0, 2, 0, 3, 0)
    bound(0, 1, 0, 2, 0, 3, 0)
    assert sorted(map(id, arguments.frames)) == frames


@pytest.mark.parametrize("programs", [0, -1, 2**31])
def test_a_grid_that_the_gpu_does_not_have(load, programs):
    with pytest.raises(CudaError, match=f"stub_add: expected 1 to 2147483647 programs, got {programs}"):
        launch.Arguments(load(), ["P", "P", "P"], ["q"]).fix(programs, [1])


def test_another_number_of_arguments_is_an_error_before_the_launch(load):
    with pytest.raises(CudaError, match="stub_add takes 5 arguments, and the launch would pass 6, 2 of them scratch"):
        launch.Arguments(load(parameters=5), ["P", "P", "P"], ["q"])
    launch.Arguments(load(parameters=None), ["P", "P", "P"], ["q"])  # a driver without an answer
    with pytest.raises(CudaError, match=r"expected struct formats of 8 bytes, got \['P', 'f', 'q'\]"):
        launch.Arguments(load(), ["P", "f"], ["q"])


def test_too_much_shared_memory(load):
    with pytest.raises(CudaError, match=r"needs 300000 bytes of shared memory, and cuda:0 \(Stub 0\) has 232448"):
        load(shared=300000)


def test_a_function_that_is_not_in_the_module(load):
    with pytest.raises(CudaError, match="cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"):
        load("missing")


# --- contexts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_launch_finds_its_context(device, add, stub, elsewhere):
    """In a thread without a context, and in a thread where another library made another device current."""
    x, y, out = numbers(device, 3), numbers(device, 4), device.allocate(8, 0)
    other = driver.call(api.cuDevicePrimaryCtxRetain, driver.call(api.cuDeviceGet, 1))

    def body():
        if elsewhere:
            driver.call(api.cuCtxSetCurrent, other)
        add(0, out, 0, x, 0, y, 0)
        add(0, out, 0, x, 0, out, 0)
        return int(driver.call(api.cuCtxGetCurrent))

    assert in_thread(body) == int(other if elsewhere else device.context)
    assert read(device, out) == [10]


def test_a_wrong_context_is_retried_once(device, add, stub):
    x, out = numbers(device, 3), device.allocate(8, 0)
    for code in (201, 400):
        stub.fail("cuLaunchKernel", code, times=1)
        add(0, out, 0, x, 0, x, 0)
        stub.fail("cuLaunchKernel", code, times=2)
        with pytest.raises(CudaError, match=r"cuLaunchKernelEx: CUDA_ERROR_INVALID_(CONTEXT|HANDLE)"):
            add(0, out, 0, x, 0, x, 0)
    stub.fail("cuLaunchKernel", 700, times=1)
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):  # other errors are not retried
        add(0, out, 0, x, 0, x, 0)


def test_a_status_that_the_bindings_do_not_know_is_an_error_like_others(device, add, stub):
    x, out = numbers(device, 3), device.allocate(8, 0)
    stub.fail("cuLaunchKernel", 12345)
    with pytest.raises(CudaError, match=r"cuLaunchKernelEx: CUDA_ERROR 12345: .* \(kernel stub_add, 1 programs"):
        add(0, out, 0, x, 0, x, 0)
    stub.fail("cuPointerGetAttribute", 12345)
    with pytest.raises(CudaError, match="cuPointerGetAttribute: CUDA_ERROR 12345: "):
        device_of(out.pointer)


def test_a_stream_of_another_device_is_named(device, add):
    from tilearray_cuda.device import CudaDevice

    stream = Stream(CudaDevice(1))
    with pytest.raises(CudaError, match=r"belongs to cuda:1 and cannot order memory of cuda:0; write with ta"):
        device.allocate(8, stream.handle)


def test_a_kernel_may_be_loaded_during_a_capture(device, load, stub):
    stream = Stream(device)
    stub.capture(stream.handle, 4)
    try:
        load()
        mode = driver.call(api.cuThreadExchangeStreamCaptureMode, api.CUstreamCaptureMode(0))
        assert int(mode) == 0  # unchanged
    finally:
        stub.capture(stream.handle, 0)


# --- threads --------------------------------------------------------------------------------------------------------


class OneFrame(list):
    """A wrong implementation of frames: all threads share one."""

    def pop(self):
        return self[0]

    def append(self, frame):
        pass


def wrong_launches(device, arguments, fixed, threads=8, launches=400):
    bound = call_source.bind_operands(arguments, fixed, [0, 0, 0], [None, None, None])
    wrong = []

    def body(seed):
        x, y, out = numbers(device, seed), numbers(device, 1000 * seed), device.allocate(8, 0)
        memory = launch.ctypes.c_int64.from_address(out.pointer)  # the stub's memory is host memory
        for _ in range(launches):
            memory.value = 0
            bound(0, out, 0, x, 0, y, 0)
            if memory.value != 1001 * seed:
                wrong.append(seed)

    assert in_threads(threads, lambda number: body(number + 1), interval=1e-5) == [None] * threads
    return len(wrong)


def test_threads_do_not_share_frames(device, load, stub):
    stub.give_way(True)
    arguments, fixed = adding(load)
    assert wrong_launches(device, arguments, fixed) == 0
    assert 1 <= len(arguments.frames) <= 8
    arguments.frames = OneFrame([arguments.frame()])
    harm = any(wrong_launches(device, arguments, fixed) for _ in range(20))  # on a busy machine, threads may take turns
    assert harm, "a shared frame causes no error: the test shows nothing"


# --- captures by torch ----------------------------------------------------------------------------------------------


def test_a_launch_on_the_default_stream_under_a_capture_of_torch(device, add, stub, use_torch):
    x, out, stream = numbers(device, 3), device.allocate(8, 0), Stream(device).handle
    for initialised in (False, True):
        use_torch(initialised, False)
        add(0, out, 0, x, 0, x, 0)
    use_torch(capturing=True)
    stub.start_log()
    with pytest.raises(CaptureError, match=r"write with ta\.cuda\.stream\(torch\.cuda\.current_stream\(\)\)"):
        add(0, out, 0, x, 0, x, 0)
    with pytest.raises(CaptureError, match="torch is capturing a CUDA graph"):
        device.allocate(123456, 0)
    assert stub.log() == []
    add(stream, out, 0, x, 0, x, 0)
    assert stub.log()[-1].name == "cuLaunchKernel"


def test_a_torch_that_is_being_imported_captures_nothing(device, add, monkeypatch):
    """sys.modules has torch long before another thread's `import torch` is done."""
    x, out, partial = numbers(device, 3), device.allocate(8, 0), types.ModuleType("torch")
    driver.TORCH.forget()
    monkeypatch.setitem(sys.modules, "torch", partial)
    for made in (None, types.ModuleType("torch.cuda")):
        if made is not None:
            partial.cuda = made
        add(0, out, 0, x, 0, x, 0)
        assert read(device, out) == [6]


class Native:
    """The functions of torch for the current stream and for its capture; counts the calls of the second."""

    def __init__(self, stream, capturing):
        self.asked = 0
        self._cuda_getCurrentRawStream = {0: stream}.__getitem__
        self._cuda_isCurrentStreamCapturing = lambda: self.ask() or capturing

    def ask(self):
        self.asked += 1


def test_torch_is_asked_for_captures_only_on_a_stream_that_can_be_captured(device, add, stub, use_torch):
    x, out = numbers(device, 3), device.allocate(8, 0)
    for native, devices, asked in ((Native(0, False), 1, 0), (Native(7, False), 1, 2), (Native(0, False), 2, 2)):
        use_torch(native=native, devices=devices)
        for _ in range(2):
            add(0, out, 0, x, 0, x, 0)
        assert native.asked == asked
    for native, devices in ((Native(7, True), 1), (Native(0, True), 2)):  # the stream of the other one of two devices
        use_torch(native=native, devices=devices)
        stub.start_log()
        with pytest.raises(CaptureError, match="torch is capturing a CUDA graph"):
            add(0, out, 0, x, 0, x, 0)
        assert stub.log() == []


class Placed:
    """An array, as calls take it."""

    def __init__(self, buffer, offset):
        self._buffer, self._offset = buffer, offset


def test_a_call_of_two_launches_writes_memory_between_them(device, load, side):
    """out = (x + y) + x, in arrays that lie anywhere in their buffers, on any stream."""
    arguments, fixed = adding(load, 2)
    add = call_source.bind_operands(arguments, fixed, [0, 0, 0], [None, None, None])
    signature = types.SimpleNamespace(nbytes=16)
    steps = ((-2, False), (0, False), (1, False)), ((-1, False), (-2, False), (0, False))
    bind = call_source.steps_written_out(("array", "array"), steps, 2)
    call = bind((add, add), (None, None), device, (signature, signature), ())
    x = Placed(numbers(device, 0, 1, 2), 8)
    y = Placed(numbers(device, 10, 20), 0)
    for stream in (0, side):
        result = call(stream, x, y)
        assert read(device, result._buffer, 2) == [12, 24]
        assert (result._offset, result._signature) == (0, signature)
        assert result._buffer.stream == stream
        assert type(result) is Placed


def test_a_call_of_two_launches_checks_numbers_before_them(device):
    launches, checked = [], []

    def launched(*given):
        launches.append(given)

    def check(number):
        checked.append(number)
        if number == "two":
            raise TypeError(number)
        return float(number)

    signature = types.SimpleNamespace(nbytes=8)
    between = ((-2, False), (-3, True))
    steps = (*between, (0, False)), ((-1, False), *between, (1, False), (0, False), (2, False))
    bind = call_source.steps_written_out(("array", "float", "number"), steps, 3)
    call = bind((launched, launched), (None, check, check), device, (signature,) * 3, (4, 8))
    x = Placed(numbers(device, 1), 8)
    result = call(0, x, 1.5, 2.5)
    assert checked == [2.5]  # a float is a float
    (first, second), (out, *_) = launches, launches[1][1:]
    one, another = first[1], first[3]
    assert first == (0, one, 0, another, 4, x._buffer, 8)
    assert second == (0, out, 0, one, 0, another, 8, 1.5, 0, x._buffer, 8, 2.5, 0)
    assert out is result._buffer
    assert len({id(each) for each in (out, one, another)}) == 3
    with pytest.raises(TypeError, match="two"):
        call(0, x, "two", 1.0)
    assert call(0, x, 2, 1.0)
    assert checked[-2:] == [2, 1.0]
    assert len(launches) == 4
