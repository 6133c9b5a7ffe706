"""Handles of CUDA libraries: who has them, in threads, streams and captures, and after errors."""

from __future__ import annotations

import threading

import pytest
from support.threads import in_threads

from tilearray_cuda.errors import CudaError, OutOfMemoryError
from tilearray_cuda.libraries import handles
from tilearray_cuda.libraries.handles import Handles
from tilearray_cuda.runtime.streams import Stream


class Library:
    """A library whose handles are the numbers from 1 on."""

    def __init__(self):
        self.made, self.streams, self.workspaces, self.fails = 0, {}, {}, ""

    def _check(self, function):
        if self.fails == function:
            self.fails = ""
            raise RuntimeError("STATUS_FAILED (1): no")

    def create(self):
        self._check("create")
        self.made += 1
        return self.made

    def set_stream(self, handle, stream):
        self._check("set_stream")
        self.streams[handle] = stream

    def set_workspace(self, handle, address, nbytes):
        self._check("set_workspace")
        self.workspaces[handle] = address


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def pool(device, library):
    return Handles(device, library.create, library.set_stream, library.set_workspace, 1000)


def number_of(handle):
    return handle


def test_calls_of_a_stream_have_one_handle_and_its_workspace(pool, library):
    assert [pool.run(0, number_of) for _ in range(3)] == [1, 1, 1]
    assert library.streams == {1: 0}
    assert pool._idle[0][0].workspace.pointer == library.workspaces[1]


def test_a_call_within_a_call_has_another_handle(pool):
    assert pool.run(0, lambda handle: (handle, pool.run(0, number_of))) == (1, 2)
    assert pool.run(0, lambda handle: (handle, pool.run(0, number_of))) in ((1, 2), (2, 1))


@pytest.mark.parametrize("fails", ["create", "set_stream", "set_workspace"])
def test_an_error_says_that_it_is_of_a_handle_and_loses_none(pool, library, fails):
    library.fails = fails
    with pytest.raises(CudaError, match="the handle of a library: STATUS_FAILED"):
        pool.run(0, number_of)
    assert pool.run(0, number_of) == 1


def test_an_error_of_a_call_has_its_name_and_its_handle_serves_the_next(pool):
    def gemm(handle):
        raise RuntimeError("STATUS_FAILED (1): no")

    with pytest.raises(CudaError, match="gemm: STATUS_FAILED"):
        pool.run(0, gemm)
    assert pool.run(0, number_of) == 1


def test_a_workspace_for_which_there_is_no_memory_loses_no_handle(pool, stub):
    for _ in range(3):
        stub.fail("cuMemAllocFromPoolAsync", 2, times=2)
        with pytest.raises(OutOfMemoryError):
            pool.run(0, number_of)
    assert pool.run(0, number_of) == 1


def test_the_oldest_of_many_streams_gives_its_handles_to_others(device, pool, library):
    streams = [Stream(device) for _ in range(2 * handles.STREAMS_KEPT)]
    found = [pool.run(stream.handle, number_of) for stream in streams]
    assert library.made == handles.STREAMS_KEPT
    assert found[handles.STREAMS_KEPT :] == found[: handles.STREAMS_KEPT]
    assert library.streams[found[-1]] == streams[-1].handle


def test_a_call_that_runs_while_its_stream_gives_its_handles_away_keeps_its_own(device, pool, library):
    streams = [Stream(device) for _ in range(2 * handles.STREAMS_KEPT)]

    def calls_on_others(handle):
        return handle, [pool.run(stream.handle, number_of) for stream in streams]

    for _ in range(3):
        own, others = pool.run(0, calls_on_others)
        assert own not in others
    assert library.made <= handles.STREAMS_KEPT + 1  # none of them was lost


def test_a_captured_call_takes_an_idle_handle_of_any_stream(device, pool, library, stub):
    first, second, captured = (Stream(device) for _ in range(3))

    def call(handle):
        pool.run(second.handle, number_of)  # idle from now on, while the first stream has none
        stub.capture(captured.handle, 7)
        try:
            return pool.run(captured.handle, number_of)
        finally:
            stub.capture(captured.handle, 0)

    assert pool.run(first.handle, call) == 2
    assert library.made == 2


def test_threads_on_many_streams_never_share_a_handle(device, pool):
    streams = [Stream(device) for _ in range(3 * handles.STREAMS_KEPT)]
    busy, shared, lock = set(), [], threading.Lock()

    def call(handle):
        with lock:
            shared.extend([handle] if handle in busy else [])
            busy.add(handle)
        with lock:
            busy.discard(handle)

    def work(seed):
        for i in range(300):
            pool.run(streams[(seed + 7 * i) % len(streams)].handle, call)

    assert in_threads(4, work) == [None] * 4
    assert shared == []
