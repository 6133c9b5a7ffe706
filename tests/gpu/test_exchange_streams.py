"""Exchange between streams, in captures, in threads and at exit. Each race runs with and without its wait."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray import cuda

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

from tilearray_cuda.runtime import gpu, interop

torch = pytest.importorskip("torch", reason="torch is not installed")

COUNT = 1 << 20
CYCLES = 200_000_000
"""A tenth of a second of a GPU's clock."""


@pytest.fixture(autouse=True)
def _quiet():
    yield
    torch.cuda.synchronize()
    gc.collect()
    cuda.empty_cache("cuda:0")


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Prepare the kernels and torch's operations, so that the host is faster than the GPU's ballast."""
    x = ta.asarray(torch.zeros(COUNT, device="cuda"))
    y = ta.empty(COUNT, dtype="float32", device="cuda:0")
    y[...] = 3
    y += 4
    torch.from_dlpack(x + 1).add(1).fill_(7)
    torch.cuda.synchronize()


class Unready:
    """Torch's export without its wait, for which the consumer must then wait."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **wishes):
        return self.tensor.__dlpack__(**{**wishes, "stream": -1})

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Waits(Unready):
    def __dlpack__(self, **wishes):
        return self.tensor.__dlpack__(**wishes)


def take_early(wrap=lambda tensor: tensor):
    """Read on the default stream a late write of torch's side stream; return whether the read saw it."""
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        tensor.fill_(7)
        x = ta.asarray(wrap(tensor))
    y = x + 1
    torch.cuda.synchronize()
    return bool((ta.to_numpy(y) == 8).all())


def test_late_writes_of_torch_are_waited_for():
    assert take_early()
    assert take_early(Waits)


def test_a_late_write_is_missed_without_the_wait(monkeypatch):
    assert not take_early(Unready)
    monkeypatch.setattr(gpu.Events, "wait", lambda self, stream, other: None)
    assert not take_early()


def give_early(consume):
    """Let torch read on its default stream a late write of our side stream; return whether torch saw it."""
    x = ta.full(COUNT, 3, dtype="float32", device="cuda:0")
    torch.cuda.synchronize()
    side = cuda.Stream("cuda:0")
    with torch.cuda.stream(torch.cuda.ExternalStream(side.handle)):
        torch.cuda._sleep(CYCLES)
    with cuda.stream(side):
        x += 4
    y = consume(x).add(1)
    torch.cuda.synchronize()
    return bool((y == 8).all())


CONSUMERS = {
    "from_dlpack": lambda x: torch.from_dlpack(x),
    "to_torch": lambda x: ta.to_torch(x),
    "as_tensor": lambda x: torch.as_tensor(x, device="cuda"),  # through the CUDA Array Interface
}


@pytest.mark.parametrize("way", CONSUMERS)
def test_our_late_writes_are_waited_for(way):
    assert give_early(CONSUMERS[way])


@pytest.mark.parametrize("way", CONSUMERS)
def test_torch_does_not_wait_without_the_event(way, monkeypatch):
    monkeypatch.setattr(gpu.Events, "wait", lambda self, stream, other: None)
    assert not give_early(CONSUMERS[way])


def reuse_early():
    """Drop our memory before torch reads it on its own stream, and allocate the same size again."""
    x = ta.full(COUNT, 3, dtype="float32", device="cuda:0")
    pointer = x._address
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        tensor = torch.from_dlpack(x)
        torch.cuda._sleep(CYCLES)
        y = tensor.add(1)
    del x, tensor
    others = [ta.full(COUNT, 100, dtype="float32", device="cuda:0") for _ in range(4)]
    reused = pointer in [other._address for other in others]
    torch.cuda.synchronize()
    return reused or not bool((y == 4).all())


def test_our_memory_is_not_reused_while_a_consumer_reads():
    assert not reuse_early()


def test_our_memory_is_reused_without_the_mark(monkeypatch):
    monkeypatch.setattr(interop, "lend", lambda device, buffer, stream: stream)
    assert reuse_early()


def free_early():
    """Drop torch's memory before we read it on our own stream, and let torch allocate it again."""
    tensor = torch.full((COUNT,), 3.0, device="cuda")
    pointer = tensor.data_ptr()
    torch.cuda.synchronize()
    side = cuda.Stream("cuda:0")
    with torch.cuda.stream(torch.cuda.ExternalStream(side.handle)):
        torch.cuda._sleep(CYCLES)
    with cuda.stream(side):
        y = ta.asarray(tensor) + 1
    del tensor
    others = [torch.full((COUNT,), 100.0, device="cuda") for _ in range(4)]
    reused = pointer in [other.data_ptr() for other in others]
    torch.cuda.synchronize()
    return reused or not bool((ta.to_numpy(y) == 4).all())


def test_torchs_memory_is_not_reused_while_we_read():
    assert not free_early()


def test_a_capture_is_not_disturbed():
    static, out = torch.ones(COUNT, device="cuda"), torch.zeros(COUNT, device="cuda")
    ta.asarray(static) * 2  # compiled
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), cuda.stream(torch.cuda.current_stream()):
        y = ta.asarray(static) * 2
        out.copy_(torch.from_dlpack(y))
    static.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((out == 10).all())


# --- lifetimes ------------------------------------------------------------------------------------------------------


def resident() -> int:
    """Return the bytes of host memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def round_trips(count):
    x, tensor = ta.ones(1000, dtype="float32", device="cuda:0"), torch.ones(1000, device="cuda")
    for step in range(count // 5):
        ta.asarray(tensor)
        torch.from_dlpack(x)
        x[step % 7 :].__dlpack__(max_version=(1, 0) if step % 2 else None)
        ta.from_dlpack(Waits(tensor))
        torch.from_dlpack(ta.asarray(torch.empty(100 + step % 50, device="cuda")) * 2)


def memory_after(count):
    assert in_threads(4, lambda _: round_trips(count // 4), patience=600) == [None] * 4
    torch.cuda.synchronize()
    gc.collect()
    return torch.cuda.memory_allocated(), cuda.memory_statistics("cuda:0").live, resident()


def test_a_hundred_thousand_round_trips_leave_memory_as_it_was():
    memory_after(20_000)
    before = memory_after(20_000)
    after = memory_after(100_000)
    assert after[:2] == before[:2]
    assert after[2] < before[2] + (32 << 20)


AT_EXIT = """
import sys
import torch
import tilearray as ta

x = ta.asarray(torch.ones(10, device="cuda")) * 2
kept = [x, x.__dlpack__(), torch.from_dlpack(x), ta.asarray(torch.from_dlpack(x + 1)), ta.asarray(torch.ones(3))]
kept.append(kept)

class Late:
    def __init__(self, array):
        self.array, self.me = array, self

    def __del__(self, take=torch.from_dlpack):
        try:
            take(self.array)
        except Exception:
            pass  # torch itself is partly gone

cycle = Late(x[1:])
sys.modules["kept"] = kept
print("done", flush=True)
"""


def test_nothing_goes_wrong_at_exit():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", AT_EXIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "Exception ignored" not in done.stderr


def test_memory_of_a_tensor_that_got_other_memory():
    tensor = torch.full((COUNT,), 3.0, device="cuda")
    x = ta.asarray(tensor)
    tensor.data = torch.zeros(COUNT, device="cuda")
    others = [torch.full((COUNT,), 100.0, device="cuda") for _ in range(4)]
    assert (ta.to_numpy(x) == 3).all()
    assert len(others) == 4
