"""Several streams: the order of all dependent accesses, computed from the log of driver calls."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tilearray_cuda.device import CudaDevice
from tilearray_cuda.errors import CudaError
from tilearray_cuda.runtime import gpu
from tilearray_cuda.runtime import streams as driver_streams
from tilearray_cuda.runtime.memory import allocator
from tilearray_cuda.runtime.streams import SHARED, Event, Stream, home_of


@pytest.fixture
def streams(device):
    kept = [Stream(device) for _ in range(3)]
    yield [one.handle for one in kept]
    kept.clear()


def races(log, streams):
    """Return the unordered pairs of accesses to one block of which at least one is a write.

    Each stream, each event and the host have a vector clock. A launch writes its first argument and reads the next two.
    The allocation and the release of a block count as writes.
    """
    clocks = defaultdict(lambda: defaultdict(int))  # also of streams whose blocks an earlier case left to be freed
    clocks.update({one: defaultdict(int) for one in streams})
    events, host = {}, defaultdict(int)
    written, read = {}, defaultdict(dict)
    found = []

    def merge(clock, other):
        for one, time in other.items():
            clock[one] = max(clock[one], time)

    for call in log:
        clock = clocks[call.stream]
        if call.name in ("cuEventQuery", "cuEventSynchronize"):
            merge(host, events[call.object])
        elif call.name == "cuCtxSynchronize":
            for other in clocks.values():
                merge(host, other)
        elif call.name == "cuEventRecord":
            events[call.object] = dict(clock)
        elif call.name == "cuStreamWaitEvent":
            merge(clock, events[call.object])
        elif call.name in ("cuLaunchKernel", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"):
            merge(clock, host)
            clock[call.stream] += 1
            launched = call.name == "cuLaunchKernel"
            target = call.arguments[0] if launched else call.object
            accesses = [(source, False) for source in call.arguments[1:3] if source] if launched else []
            for pointer, writes in [*accesses, (target, True)]:
                earlier = [written[pointer]] if pointer in written else []
                if writes:
                    earlier += read[pointer].items()
                found += [(call.name, one, call.stream) for one, time in earlier if clock[one] < time]
            for pointer, _ in accesses:
                read[pointer][call.stream] = clock[call.stream]
            written[target] = (call.stream, clock[call.stream])
            read[target] = {}
    return found


def work(device, stub, add, streams, seed, steps=1500):
    """Launch at random on random streams over a few live blocks; return the races in the driver calls."""
    draw = random.Random(seed)
    every = [0, *streams]
    stub.start_log()
    live = [device.allocate(8, 0) for _ in range(3)]
    for buffer in live:
        add(0, buffer, 0, buffer, 0, buffer, 0)
    for step in range(steps):
        on = draw.choice(every)
        x, y = draw.choice(live), draw.choice(live)
        out = device.allocate(8, on) if draw.random() < 0.7 else draw.choice(live)
        add(on, out, 0, x, 0, y, 0)
        live.append(out)
        del x, y, out
        while len(live) > 4:
            del live[draw.randrange(len(live))]
        if step % 7 == 0:
            stub.hold(draw.choice(every), draw.random() < 0.5)
        if step % 400 == 399:
            device.memory.collect()
    for one in every:
        stub.hold(one, False)
    live.clear()
    device.empty_cache()
    return races(stub.log(), every)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_races(device, stub, add, streams, seed):
    assert work(device, stub, add, streams, seed) == []
    reused = [call for call in stub.log() if call.name == "cuMemAllocFromPoolAsync"]
    assert len(reused) < 300, "hardly any memory was reused: the test shows nothing"


def without_waits(monkeypatch):
    monkeypatch.setattr(gpu.Events, "wait", lambda self, stream, other: None)


def without_events_of_readers(monkeypatch):
    monkeypatch.setattr(allocator.Allocator, "_events_behind", lambda self, marks: [])


def without_patience(monkeypatch):
    monkeypatch.setattr(allocator, "event_passed", lambda event: True)


def without_marks(monkeypatch):
    monkeypatch.setattr(driver_streams.Shared, "append", lambda self, pointer: self.free.append(pointer))


def without_moving(monkeypatch):
    def move(self, buffer, stream):
        free = buffer.free.free if buffer.stream == SHARED else buffer.free
        buffer.send_to(free)
        buffer.stream = stream

    monkeypatch.setattr(allocator.Allocator, "move", move)


@pytest.mark.parametrize(
    "broken", [without_waits, without_events_of_readers, without_patience, without_marks, without_moving]
)
def test_each_rule_is_needed(device, stub, add, streams, monkeypatch, broken):
    broken(monkeypatch)
    assert work(device, stub, add, streams, 0), "nothing races without it: the test above shows nothing"


def waits(stub):
    return [(call.name, call.stream) for call in stub.log() if call.name in ("cuEventRecord", "cuStreamWaitEvent")]


def test_one_stream_costs_no_event(device, stub, add, streams):
    stub.start_log()
    for on in (0, streams[0]):
        x = device.allocate(8, on)
        for _ in range(10):
            add(on, x, 0, x, 0, device.allocate(8, on), 0)
    assert waits(stub) == []


def test_readers_wait_once_and_never_for_each_other(device, stub, add, streams):
    first, second, _ = streams
    x = device.allocate(8, 0)
    outs = {on: device.allocate(8, on) for on in (0, first, second)}
    stub.start_log()
    for _ in range(5):
        for on, out in outs.items():
            add(on, out, 0, x, 0, x, 0)
    expected = []
    for on in (first, second):
        expected += [("cuEventRecord", 0), ("cuStreamWaitEvent", on)]
    assert waits(stub) == expected
    assert x.stream == SHARED
    assert home_of(x) == 0


def test_a_writer_waits_for_all_readers_and_is_the_new_home(device, stub, add, streams):
    first, second, third = streams
    x = device.allocate(8, 0)
    for on in (first, second):
        device.join(x, on)
    stub.start_log()
    device.join(x, third, True)
    assert sorted(call for call in waits(stub) if call[0] == "cuEventRecord") == sorted(
        ("cuEventRecord", on) for on in (0, first, second)
    )
    assert x.stream == home_of(x) == third
    device.join(x, third, True)
    assert len(waits(stub)) == 6
    pointer = x.pointer
    del x
    assert device.allocate(8, third).pointer == pointer


def test_a_marked_block_comes_back_behind_the_readers(device, stub, streams):
    x = device.allocate(8, 0)
    pointer = x.pointer
    device.join(x, streams[0])
    device.join(x, streams[1])
    stub.hold(streams[1], True)
    del x
    taken = [device.allocate(8, 0) for _ in range(3)]
    assert pointer not in [one.pointer for one in taken]
    stub.hold(streams[1], False)
    assert device.allocate(8, 0).pointer == pointer


def test_a_reader_that_is_gone_costs_a_synchronization_and_no_error(device, stub, streams):
    x = device.allocate(8, 0)
    pointer = x.pointer
    gone = Stream(device)
    device.join(x, gone.handle)
    del x, gone
    driver_streams.destroy_abandoned()
    stub.start_log()
    assert device.allocate(8, 0).pointer == pointer
    assert "cuCtxSynchronize" in [call.name for call in stub.log()]


class TakenByOthers(list):
    """A list while another thread takes the last of its elements behind the question whether there is one."""

    def __bool__(self):
        return True


def test_two_threads_destroy_what_has_no_owner(device, stub, monkeypatch):
    abandoned = TakenByOthers()
    monkeypatch.setattr(driver_streams, "_abandoned", abandoned)
    driver_streams.Event(device, timing=False)
    assert len(abandoned) == 1
    driver_streams.destroy_abandoned()
    assert len(abandoned) == 0


def test_a_captured_stream_waits_for_nothing_outside(device, stub, add, streams):
    captured, other, _ = streams
    x, static = device.allocate(8, 0), device.allocate(8, other)
    stub.capture(captured, 3)
    stub.start_log()
    out = device.allocate(8, captured)
    add(captured, out, 0, x, 0, static, 0)
    add(captured, static, 0, out, 0, out, 0)
    assert waits(stub) == []
    assert (x.stream, static.stream) == (0, other)
    stub.capture(other, 3)  # it joined the capture
    add(other, static, 0, out, 0, out, 0)
    assert waits(stub) == [("cuEventRecord", captured), ("cuStreamWaitEvent", other)]
    stub.capture(captured, 0)
    stub.capture(other, 0)


def test_marks_wait_until_a_capture_is_over(device, stub, streams):
    x = device.allocate(8, 0)
    pointer = x.pointer
    device.join(x, streams[0])
    stub.capture(streams[0], 3)
    del x
    stub.start_log()
    assert device.allocate(8, 0).pointer != pointer
    assert ("cuEventRecord", streams[0]) not in waits(stub)
    stub.capture(streams[0], 0)
    device.memory.collect()
    assert device.allocate(8, 0).pointer == pointer


# --- streams and events ---------------------------------------------------------------------------------------------


def test_events(device, stub):
    one, other = Stream(device), Stream(device)
    start, end = Event(device, True), Event(device, True)
    assert start.passed()  # never recorded
    start.record(one.handle)
    stub.hold(one.handle, True)
    assert not start.passed()
    stub.hold(one.handle, False)
    assert start.passed()
    stub.start_log()
    start.hold_back(other.handle)
    assert waits(stub) == [("cuStreamWaitEvent", other.handle)]
    end.record(other.handle)
    end.synchronize()
    assert end.milliseconds_since(start) == 1.5
    driver_streams.synchronize(device, one.handle)
    assert driver_streams.is_done(device, one.handle)
    assert stub.log()[-1].name == "cuStreamSynchronize"


def test_a_stream_is_destroyed_later(device, stub):
    one = Stream(device)
    handle = one.handle
    stub.start_log()
    del one
    assert stub.log() == []
    Stream(device)
    assert ("cuStreamDestroy", handle) in [(call.name, call.stream) for call in stub.log()]


def test_a_retained_stream_lives_until_its_memory_is_given_back(device, stub):
    one = Stream(device)
    handle = one.handle
    device.memory.retain(handle, one)
    x = device.allocate(8, handle)
    del one
    stub.start_log()
    device.empty_cache()
    assert "cuStreamDestroy" not in [call.name for call in stub.log()]
    del x
    device.empty_cache()
    assert "cuStreamDestroy" in [call.name for call in stub.log()]


def test_a_stream_in_use_is_retained_again_after_emptying(device, stub):
    one = Stream(device)
    handle = one.handle
    device.memory.retain(handle, one)
    device.empty_cache()
    x = device.allocate(8, handle)
    del one
    stub.start_log()
    Stream(device)
    assert ("cuStreamDestroy", handle) not in [(call.name, call.stream) for call in stub.log()]
    del x


def test_a_stream_of_the_wrong_device(device):
    other = Stream(CudaDevice(1))
    assert driver_streams.device_of(other.handle) == 1
    with pytest.raises(CudaError, match="belongs to cuda:1 and cannot order memory of cuda:0"):
        device.allocate(8, other.handle)
