"""Memory hooks: they hear of every array and every block, and what they raise or allocate does no harm."""

from __future__ import annotations

import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.errors import OperandError
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import OutOfMemoryError

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _empty():
    cuda.empty_cache("cuda:0")
    yield
    cuda.set_memory_limit(None, device="cuda:0")
    cuda.empty_cache("cuda:0")


def told(kinds, work):
    """The sizes of the events of some kinds that a function causes."""
    events = []
    with cuda.memory_hook(events.append):
        work()
    assert {event.device for event in events} <= {0}
    return [(event.kind, event.nbytes) for event in events if event.kind in kinds]


def test_every_array_is_told_also_those_from_the_cache():
    x = ta.ones(1000, dtype="float32", device="cuda:0")
    x + 1  # its memory is cached, and the plan knows where
    assert told({"take"}, lambda: (x + 1, x + 1)) == [("take", 4000), ("take", 4000)]
    assert told({"obtain"}, lambda: x + 1) == []
    (x + 1, x + 1)
    assert told({"obtain"}, lambda: ta.empty(5000, dtype="int8", device="cuda:0")) == [("obtain", 5120)]


def test_blocks_that_go_back_are_told():
    x = ta.empty(50 * MIB, dtype="int8", device="cuda:0")
    del x
    assert told({"release"}, lambda: cuda.empty_cache("cuda:0")) == [("release", 50 * MIB)]
    cuda.set_memory_limit(MIB, device="cuda:0")

    def too_much():
        with pytest.raises(OutOfMemoryError):
            ta.empty(2 * MIB, dtype="int8", device="cuda:0")

    assert told({"refuse", "take"}, too_much) == [("refuse", 2 * MIB)]


def test_hooks_nest_and_end():
    first, second, size = [], [], 100_000
    with cuda.memory_hook(first.append):
        with cuda.memory_hook(second.append):
            ta.empty(size, dtype="int8", device="cuda:0")
        ta.empty(size, dtype="int8", device="cuda:0")
    ta.empty(size, dtype="int8", device="cuda:0")
    assert [event.kind for event in first] == ["obtain", "take", "take"]
    assert [event.kind for event in second] == ["obtain", "take"]
    pointer = first[0].pointer
    assert {event.pointer for event in first} == {pointer}


def test_after_a_hook_hits_ask_nobody_again(device, stub):
    events = []
    x = ta.ones(1000, device="cuda:0")
    with cuda.memory_hook(events.append):
        x + 1
    x + 1
    legacy = open_device(0).memory.legacy
    assert 4096 in legacy
    with cuda.memory_hook(events.append):
        x + 1
        assert 4096 not in legacy


def test_a_hook_may_allocate_and_raise():
    def greedy(event):
        ta.empty(10, device="cuda:0")
        raise KeyError(event.kind)

    live = cuda.memory_statistics("cuda:0").live
    with pytest.raises(KeyError, match="obtain"), cuda.memory_hook(greedy):
        ta.empty(70_000, dtype="int8", device="cuda:0")
    assert cuda.memory_statistics("cuda:0").live == live
    with pytest.raises(OperandError, match=r"memory_hook: expected a function of one event, got 3 of type int; write"):
        cuda.memory_hook(3)


@pytest.mark.parametrize("limit", [-1, 2.5, True, "1 GiB"])
def test_a_limit_is_a_number_of_bytes(limit):
    with pytest.raises(OperandError, match=r"set_memory_limit: expected a number of bytes or None, got .* of type"):
        cuda.set_memory_limit(limit, device="cuda:0")
